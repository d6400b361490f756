// A sum that is stored, to be read elsewhere.
#ifndef NESTOR_JIT_SCHEDULE_KEPT_SUM_H_
#define NESTOR_JIT_SCHEDULE_KEPT_SUM_H_

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "loop_ir/program.h"
#include "loop_ir/ranges.h"

namespace nestor::loop {

//   for j { acc s  for k { s += .. }  y[j] = g(s) }    ==>    temp sums[J]
//                                                             for j { acc s  for k { s += .. }  sums[j] = s }
//                                                             for j { y[j] = g(sums[j]) }
class KeptSum {
 public:
  // Makes a temporary with an element for each step of these loops, outermost first, and assumes
  // that they are few (AssumeFewElements). REQUIRES: the extents do not move with any loop;
  // `ranges` is at the place of the first one.
  KeptSum(Program& program, Ranges& ranges, absl::string_view name, TensorId accumulator,
          absl::Span<const Loop* const> loops);

  TensorId tensor() const { return tensor_; }
  // The statement that stores the sum at a step of the loops.
  Scope Store() const;
  // Loads of the accumulator become those of the temporary.
  void LoadInstead(Scope& scope) const;
  // All of the above for a nest that holds `core`, the sum and the statements that use it: the
  // declaration; the sum in `sums`; the statements in `ends`, the same loops in some order, with
  // indices of their own. Outermost first.
  Scope SumsAndEnds(Ranges& ranges, const Scope& core, absl::Span<const Loop* const> sums,
                    absl::Span<const Loop* const> ends) const;

 private:
  Program& program_;
  const TensorId accumulator_;
  TensorId tensor_;
  IndexList place_;
};

// How often each of the loops runs. REQUIRES: `ranges` is at the place of the first one.
Shape LengthsOf(Ranges& ranges, absl::Span<const Loop* const> loops);
// Which iteration of each of the loops this is, in their bodies: a place in a tensor of that shape.
IndexList IterationsOf(IndexPool& pool, absl::Span<const Loop* const> loops);

// A loop in strips of `length` iterations, the last of which may have fewer.
//
//   for i in [b, e)  ->  for p in [0, ceil((e - b)/4)) { for i in [b + 4*p, min(e, b + 4*p + 4)) { .. } }
struct Strips {
  Loop over;   // over strips
  Loop strip;  // over the iterations of one
  Loop whole;  // the same, as if the last strip were full
};
Strips StripsOf(Program& program, Ranges& ranges, const Loop& loop, int64_t length);
// The same in an even number of strips of equal length, except the last, so that two threads get
// equal shares. Each has at most 8 iterations of a loop over which windows slide, enough that
// operands that do not move with them are seldom read again.
Strips EvenStripsOf(Program& program, Ranges& ranges, const Loop& loop);

}  // namespace nestor::loop

#endif  // NESTOR_JIT_SCHEDULE_KEPT_SUM_H_
