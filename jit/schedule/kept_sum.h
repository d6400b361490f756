// A sum that is stored for what reads it elsewhere.
#ifndef NESTOR_JIT_SCHEDULE_KEPT_SUM_H_
#define NESTOR_JIT_SCHEDULE_KEPT_SUM_H_

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "loop_ir/program.h"
#include "loop_ir/ranges.h"

namespace nestor::jit {

//   for j { acc s  for k { s += .. }  y[j] = g(s) }    ==>    temp sums[J]
//                                                             for j { acc s  for k { s += .. }  sums[j] = s }
//                                                             for j { y[j] = g(sums[j]) }
class KeptSum {
 public:
  // Makes a temporary with an element for each step of these loops, outermost first, and assumes
  // that they are few (AssumeFewElements). REQUIRES: the extents do not move with any loop;
  // `ranges` is at the place of the first one.
  KeptSum(loop::Program& program, loop::Ranges& ranges, absl::string_view name, loop::TensorId accumulator,
          absl::Span<const loop::Loop* const> loops);

  loop::TensorId tensor() const { return tensor_; }
  // What stores the sum at a step of the loops.
  loop::Scope Store() const;
  // Loads of the accumulator become those of the temporary.
  void LoadInstead(loop::Scope& scope) const;
  // All of the above for a nest that holds `core`, the sum and what is done with it: the declaration; the sum in
  // `sums`; what is done with it in `ends`, the same loops in some order, with indices of their own. Outermost first.
  loop::Scope SumsAndEnds(loop::Ranges& ranges, const loop::Scope& core, absl::Span<const loop::Loop* const> sums,
                          absl::Span<const loop::Loop* const> ends) const;

 private:
  loop::Program& program_;
  const loop::TensorId accumulator_;
  loop::TensorId tensor_;
  IndexList place_;
};

// How often each of the loops runs. REQUIRES: `ranges` is at the place of the first one.
Shape LengthsOf(loop::Ranges& ranges, absl::Span<const loop::Loop* const> loops);
// Which iteration of each of the loops this is, in their bodies: a place in a tensor of that shape.
IndexList IterationsOf(IndexPool& pool, absl::Span<const loop::Loop* const> loops);

// A loop by strips of `length` iterations, the last of which may have less.
//
//   for i in [b, e)  ->  for p in [0, ceil((e - b)/4)) { for i in [b + 4*p, min(e, b + 4*p + 4)) { .. } }
struct Strips {
  loop::Loop over;   // over strips
  loop::Loop strip;  // over the iterations of one
  loop::Loop whole;  // the same, as if the last one had them all
};
Strips StripsOf(loop::Program& program, loop::Ranges& ranges, const loop::Loop& loop, int64_t length);
// The same by an even number of strips as long as each other but for the last, so that two threads get equal shares: of
// at most 8 iterations of a loop over which windows slide, enough that what does not move with them is seldom read again.
Strips EvenStripsOf(loop::Program& program, loop::Ranges& ranges, const loop::Loop& loop);

}  // namespace nestor::jit

#endif  // NESTOR_JIT_SCHEDULE_KEPT_SUM_H_
