// The walk goes over scopes with an index rather than iterators, as a loop may be replaced by any
// number of items. The items that replace a loop are not visited: a pass would otherwise take its
// own result again, and most results contain the nest in its old form, for other sizes. `ranges`
// holds exactly the loops around the place at each call, so that proofs may use their bounds.
#include "jit/schedule/replace_loops.h"

#include <utility>

#include "absl/algorithm/container.h"
#include "fusion/scopes.h"
#include "jit/schedule/attributes.h"
#include "loop_ir/dependence.h"
#include "loop_ir/perfect_nest.h"

namespace nestor::loop {
namespace {

using Replace = absl::FunctionRef<absl::optional<Scope>(Loop& loop)>;

// A loop that is scheduled in part is never offered whole; the loops in it are.
bool Visit(Scope& scope, Ranges& ranges, Replace replace) {
  bool changed = false;
  for (size_t i = 0; i < scope.size(); ++i) {
    auto* loop = scope[i].As<Loop>();
    const Scheduled scheduled = loop == nullptr ? Scheduled::kAll : ScheduledOf(*loop);
    if (scheduled == Scheduled::kAll) continue;
    absl::optional<Scope> by;
    if (scheduled == Scheduled::kNothing) by = replace(*loop);
    if (!by) {
      ranges.Enter(*loop);
      changed |= Visit(loop->body, ranges, replace);
      ranges.Leave();
      continue;
    }
    changed = true;
    const size_t count = by->size();
    ReplaceItem(scope, i, *std::move(by));
    i += count;
    --i;
  }
  return changed;
}

}  // namespace

bool ReplaceLoops(Program& program, Ranges& ranges, Replace replace) {
  return Visit(program.body, ranges, replace);
}

bool IsOutermost(const Program& program, const Loop& loop) {
  return absl::c_any_of(program.body, [&](const Item& item) { return item.As<Loop>() == &loop; });
}

bool LoadsFrom(const IndexPool& pool, IndexId e, TensorId tensor) {
  if (!pool.HasLoad(e)) return false;
  bool loads = false;
  VisitIndex(pool, e, [&](IndexId, const IndexNode& node) {
    loads |= node.kind == IndexKind::kLoad && node.value == tensor.value;
  });
  return loads;
}

bool BoundsMove(const IndexPool& pool, const Loop& loop) {
  return pool.HasVar(loop.begin) || pool.HasVar(loop.end);
}

bool BoundsMoveWith(const IndexPool& pool, const Loop& loop, int32_t var) {
  return HoldsVar(pool, loop.begin, var) || HoldsVar(pool, loop.end, var);
}

bool AreIndependent(const Program& program, const Loop& outermost, const Loop& innermost) {
  for (const Loop* loop = &outermost;; loop = OnlyLoopIn(loop->body)) {
    if (CarriedTensor(program, *loop).has_value()) return false;
    if (loop == &innermost) return true;
  }
}

}  // namespace nestor::loop
