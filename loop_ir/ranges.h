// Facts about index expressions at a place of a program: proofs for passes, with symbolic sizes.
//
//   Ranges ranges(program);
//   ranges.Enter(loop);                 // now inside its body
//   if (ranges.InRange(access.place, program[access.tensor].shape)) ...
//   ranges.Leave();
//
// Known are: dimensions and the extents of inputs and outputs are not negative;
// integer $params, range checks and equalities hold; a loop index lies within
// its bounds, and within a body the loop runs; conditions that were assumed.
//
// Every yes is proven for all sizes with which the program runs, and includes that the expression
// has a value: it is affine (so free of overflow: uops/index/index_expr.h) and no divisor in it is
// zero. Everything else is "not proven": nothing is ever concluded about gathered values or
// products of loop indices, except that a condition on them holds where it was assumed (it must be
// forgotten before a tensor that it gathers from is changed).
//
// Queries are cheap (microseconds) and remembered until a scope changes; the
// search for a proof is bounded and deterministic. Not thread-safe.
#ifndef NESTOR_LOOP_IR_RANGES_H_
#define NESTOR_LOOP_IR_RANGES_H_

#include <vector>

#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "loop_ir/program.h"
#include "loop_ir/scope_facts.h"

namespace nestor::loop {

// One object follows one walk over a program: Enter and Leave as the walk does.
class Ranges : private ScopeFacts {
 public:
  // Queries add expressions to the program's pool, and change nothing else. What the program says
  // is learnt with the first one. REQUIRES: `program` outlives this; its signature and checks stay.
  explicit Ranges(Program& program);
  Ranges(const Ranges&) = delete;
  Ranges& operator=(const Ranges&) = delete;

  // Moves into the loop's body, and back out of the loop entered last. The facts of the loop are
  // derived only when something is asked inside it: most passes ask nothing in most loops.
  void Enter(const Loop& loop) {
    unasked_.push_back(Head{loop.var, loop.begin, loop.end, loop.step});
  }
  void Leave() { Forget(); }
  // Assumes that a condition holds, or that a place is within a tensor's shape; Forget ends what
  // began last: such an assumption, or a loop.
  void Assume(IndexId condition);
  void AssumeInRange(absl::Span<const IndexId> place, const Shape& shape);
  void Forget();

  // Whether `e` has a value wherever this place is reached.
  bool Defined(IndexId e);
  bool NonNegative(IndexId e);           // e >= 0
  bool Positive(IndexId e);              // e >= 1
  bool LessEqual(IndexId a, IndexId b);  // a <= b
  bool Less(IndexId a, IndexId b);       // a < b
  bool Equal(IndexId a, IndexId b);      // a == b
  // Whether e != 0: divisors above all.
  bool NonZero(IndexId e);
  // The value that a condition always has here; nullopt where none is proven.
  absl::optional<bool> Decide(IndexId condition);
  // 0 <= e < extent.
  bool InRange(IndexId e, IndexId extent);
  // The same for every axis.
  bool InRange(absl::Span<const IndexId> place, const Shape& shape);
  // Whether `e` is the index of a loop around with the range [c, extent), 0 <= c; or that of a loop
  // between constants, plus a constant, and lies in [0, extent) by those. Most places are of this
  // kind, and then need no proof that they are in range.
  bool IsLoopIndex(IndexId e, IndexId extent) const;
  // Whether the loop runs no iteration, or exactly one, whenever it is reached. Neither holds for
  // most loops, so the search is short.
  bool IsEmpty(const Loop& loop);
  bool RunsOnce(const Loop& loop);
  // end - begin, or 0 where that may be negative and is.
  IndexId LengthOf(const Loop& loop);

  // `e` with each symbol that equalities bind replaced by one representative: equal results mean
  // equal values.
  IndexId Representative(IndexId e) {
    Settle();
    return facts_.Substituted(e);
  }

  // The step of the loop around that has the index `var`, if the index is known to be a multiple of
  // it; else 1.
  int64_t MultipleOf(int64_t var);

 private:
  // Learns the scopes that were entered since it was last called.
  void Settle() {
    if (!unasked_.empty()) LearnUnasked();
  }
  // The same, but where a comparison of the two needs no facts.
  void SettleFor(IndexId a, IndexId b) {
    if (!unasked_.empty() && !(pool_.ConstValue(a) && pool_.ConstValue(b))) LearnUnasked();
  }
  // Facts are learnt when the first question comes: most scopes are entered without one.
  void LearnUnasked();
  void LearnProgram();
  // The checks that binding makes before the program runs: extents are not negative, $params lie in
  // their ranges, range checks hold.
  void AddSymbols();
  void AddChecks();
  // From then on one symbol is written for the other, or for an expression that it equals.
  void SubstituteEqual(IndexId left, IndexId right);
  bool SubstituteSymbol(IndexId symbol, IndexId by);

  Program& program_;
  // The scopes within the last frame in which nothing was asked yet; the first is the program,
  // whose index is -1. nullopt: an assumption that says nothing new.
  std::vector<absl::optional<Head>> unasked_;
};

}  // namespace nestor::loop

#endif  // NESTOR_LOOP_IR_RANGES_H_
