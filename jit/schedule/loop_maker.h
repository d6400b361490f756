// Loops and their indices, made together.
#ifndef NESTOR_JIT_SCHEDULE_LOOP_MAKER_H_
#define NESTOR_JIT_SCHEDULE_LOOP_MAKER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "loop_ir/program.h"

namespace nestor::loop {

inline constexpr LoopAttributes kPlain = {}, kUnrolled = {false, false, true},
                                kVector = {false, true, false};

class LoopMaker {
 public:
  explicit LoopMaker(Program& program) : program_(program) {}

  using Body = absl::FunctionRef<Scope(IndexId index)>;
  // A loop named after `name` around the body at its index. Empty where the loop never runs, or
  // has no body.
  Scope Counted(absl::string_view name, IndexId end, LoopAttributes attributes, Body body);
  // A loop over i in another, over o, around the body at both.
  Scope CountedTwice(absl::string_view outer, IndexId outer_end, absl::string_view inner,
                     IndexId inner_end, absl::FunctionRef<Scope(IndexId o, IndexId i)> body);
  Scope Between(absl::string_view name, IndexId begin, IndexId end, LoopAttributes attributes,
                Body body);
  // The body once where `flag`, 0 or 1, is 1. The form of the loop says that it runs at most once:
  // what the body alone reads needs no register after that.
  Scope If(IndexId flag, absl::FunctionRef<Scope()> body);

 private:
  Program& program_;
};

// As Around (perfect_nest.h) one loop, with an index of its own, which takes the place of the
// loop's in the body.
Scope AroundAnew(Program& program, const Loop& loop, Scope body);
// The statement alone in copies of the loops, outermost first, with indices of their own.
Item InOwnLoops(Program& program, const LoopsAround& loops, Statement statement);
// tensor[place] = value
Scope Assignment(TensorId tensor, IndexList place, ValueId value);
// Adds the prefetch unless the loop has it already; returns whether it was added.
bool AddPrefetch(Loop& loop, Access access, Prefetch::Cache cache = Prefetch::Cache::kFirst);

// Appends code to `scope` that combines the lanes of a vector in registers by halves until one is
// left; returns that element. `around`: the place of the vector without its last axis, the lanes.
// `name`: the name of a half with that many lanes.
Access CombineLanes(Program& program, TensorId vector, const IndexList& around, ReduceOp op,
                    absl::FunctionRef<std::string(int64_t width)> name, Scope& scope);

// `count` where `flag`, 0 or 1, is 1; else 0. For bounds of loops: a choice between nests at
// run time.
IndexId OnlyIf(IndexPool& pool, IndexId flag, IndexId count);

// Whether to make the loops for sizes at which `flag`, 0 or 1, is 1: a choice between nests while
// they are made. Adds a test to Program::version unless the flag is known, or has one. `version`:
// the values of the tests, in the order in which they are added; false where there are none.
// REQUIRES: `flag` is over symbols.
bool IsVersionFor(Program& program, IndexId flag, const std::vector<bool>& version);
// The same for sizes at which `count` is less than `least`. False where it moves with a loop.
bool IsVersionForFew(Program& program, IndexId count, int64_t least,
                     const std::vector<bool>& version);

// The quotient, rounded up.
IndexId OverUp(IndexPool& pool, IndexId e, IndexId divisor);

// Sizes computed from sizes, for a class that makes loops.
class SizeArithmetic {
 protected:
  explicit SizeArithmetic(IndexPool& pool) : pool_(pool) {}

  IndexId Const(int64_t value) { return pool_.Const(value); }
  IndexId Times(int64_t factor, IndexId e) { return pool_.Mul(Const(factor), e); }
  IndexId Over(IndexId e, int64_t divisor) { return pool_.Div(e, Const(divisor)); }
  IndexId OverUp(IndexId e, IndexId divisor) { return loop::OverUp(pool_, e, divisor); }
  IndexId OverUp(IndexId e, int64_t divisor) { return OverUp(e, Const(divisor)); }

  IndexPool& pool_;
};

}  // namespace nestor::loop

#endif  // NESTOR_JIT_SCHEDULE_LOOP_MAKER_H_
