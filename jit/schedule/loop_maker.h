// Loops and their indices, made together.
#ifndef NESTOR_JIT_SCHEDULE_LOOP_MAKER_H_
#define NESTOR_JIT_SCHEDULE_LOOP_MAKER_H_

#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "loop_ir/program.h"

namespace nestor::jit {

inline constexpr loop::LoopAttributes kPlain = {}, kUnrolled = {false, false, true}, kVector = {false, true, false};

class LoopMaker {
 public:
  explicit LoopMaker(loop::Program& program) : program_(program) {}

  using Body = absl::FunctionRef<loop::Scope(IndexId index)>;
  // A loop named after `name` around the body at its index. Nothing where it never runs, or
  // has no body.
  loop::Scope Counted(absl::string_view name, IndexId end, loop::LoopAttributes attributes, Body body);
  loop::Scope Between(absl::string_view name, IndexId begin, IndexId end, loop::LoopAttributes attributes, Body body);

 private:
  loop::Program& program_;
};

// A scope with nothing else.
loop::Scope ScopeOf(loop::Loop loop);
// The loop's range around another body.
loop::Scope Around(const loop::Loop& loop, loop::Scope body);
// The ranges of several, outermost first.
loop::Scope Around(absl::Span<const loop::Loop* const> loops, loop::Scope body);
// The same with an index of its own, which takes the place of the loop's in the body.
loop::Scope AroundAnew(loop::Program& program, const loop::Loop& loop, loop::Scope body);
// The statement alone in copies of the loops, outermost first, with indices of their own.
loop::Item InOwnLoops(loop::Program& program, const loop::LoopsAround& loops, loop::Statement statement);
// tensor[place] = value
loop::Scope Assignment(loop::TensorId tensor, IndexList place, loop::ValueId value);
void Append(loop::Scope& scope, loop::Scope more);
// Unless the loop prefetches it already; whether it did not.
bool AddPrefetch(loop::Loop& loop, loop::Access access, loop::Prefetch::Cache cache = loop::Prefetch::Cache::kFirst);

// Combines the lanes of a vector in registers by halves, which `scope` gets, until one is left: its element. `around`: the
// place of the vector but for its last axis, along which lanes are. `name`: of a half of so many lanes.
loop::Access CombineLanes(loop::Program& program, loop::TensorId vector, const IndexList& around, ReduceOp op,
                          absl::FunctionRef<std::string(int64_t width)> name, loop::Scope& scope);

// `count` where `flag`, 0 or 1, is 1; else 0. For bounds of loops: a choice between nests at
// run time.
IndexId OnlyIf(IndexPool& pool, IndexId flag, IndexId count);

// The quotient, rounded up.
IndexId OverUp(IndexPool& pool, IndexId e, IndexId divisor);

}  // namespace nestor::jit

#endif  // NESTOR_JIT_SCHEDULE_LOOP_MAKER_H_
