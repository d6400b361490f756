// Comparisons that could be decided if a loop were cut: every place where a body asks about its
// index. A comparison has the form a <= b, whatever the program writes: a < b is a + 1 <= b, an
// equality is two comparisons. So one kind of turning point (turning_points.h) serves masks,
// choices, extremes and windows.
//
//   x[v - 1 | 0.0]                 0 <= v - 1,  v <= N
//   where(v == 0, a, b)            v <= 0,  0 <= v
//   x[min(max(v - 2, 0), N - 1)]   N - 1 <= max(v - 2, 0),  v - 2 <= 0
#include "fusion/comparisons.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "fusion/decided_copy.h"
#include "loop_ir/affine.h"
#include "loop_ir/rewrite.h"
#include "uops/scalar_op.h"

namespace nestor::loop {
namespace {

// Each comparison in the condition, however && || and ! combine them.
void VisitCondition(IndexPool& pool, IndexId condition, ComparisonVisitor visit) {
  const IndexNode node = pool[condition];
  switch (node.kind) {
    case IndexKind::kLt: return visit({pool.Add(node.args[0], pool.Const(1)), node.args[1]});
    case IndexKind::kLe: return visit({node.args[0], node.args[1]});
    case IndexKind::kEq:
    case IndexKind::kNe:
      visit({node.args[0], node.args[1]});
      return visit({node.args[1], node.args[0]});
    case IndexKind::kAnd:
    case IndexKind::kOr:
    case IndexKind::kNot:
      for (IndexId arg : node.args) VisitCondition(pool, arg, visit);
      return;
    default: return;
  }
}

// The conditions that all loads of a product have in common, if the product is +0 where they do
// not hold.
IndexList GatesOf(const Program& program, ValueId value) {
  absl::optional<IndexList> gates;
  bool is_product = true;
  VisitValues(program, value, [&](ValueId, const Value& v) {
    if (const auto* load = absl::get_if<LoadValue>(&v.node)) {
      const auto* fill = load->access.masked
                             ? absl::get_if<ConstantValue>(&program[load->access.fill].node)
                             : nullptr;
      is_product = is_product && fill != nullptr && fill->value.bits == Scalar::Zero(v.type).bits;
      if (!gates) gates = load->access.conditions;
      gates->erase(std::remove_if(gates->begin(), gates->end(),
                                  [&](IndexId c) {
                                    return !absl::c_linear_search(load->access.conditions, c);
                                  }),
                   gates->end());
    } else if (const auto* apply = absl::get_if<ApplyValue>(&v.node)) {
      is_product = is_product && apply->op == ScalarOp::kMul;
    }
  });
  return is_product && gates ? *gates : IndexList();
}

}  // namespace

// 0 <= e and e + 1 <= extent for each axis, and the conditions.
void VisitMask(Program& program, const Access& access, ComparisonVisitor visit) {
  if (!access.masked) return;
  IndexPool& pool = program.pool;
  for (IndexId condition : access.conditions) VisitCondition(pool, condition, visit);
  for (size_t axis = 0; axis < access.place.size(); ++axis) {
    visit({pool.Const(0), access.place[axis]});
    visit({pool.Add(access.place[axis], pool.Const(1)), program[access.tensor].shape[axis]});
  }
}

void VisitExtreme(const IndexPool& pool, IndexId e, ComparisonVisitor visit) {
  const IndexNode& node = pool[e];
  if (node.kind != IndexKind::kMin && node.kind != IndexKind::kMax) return;
  const bool first_moves = pool.HasVar(node.args[0]);
  const IndexId moving = node.args[first_moves ? 0 : 1], other = node.args[first_moves ? 1 : 0];
  visit(node.kind == IndexKind::kMin ? Comparison{other, moving} : Comparison{moving, other});
}

void VisitExtremes(const IndexPool& pool, const Access& access, ComparisonVisitor visit) {
  for (IndexId e : access.place) {
    if (pool.HasVar(e))
      VisitIndex(pool, e, [&](IndexId part, const IndexNode&) { VisitExtreme(pool, part, visit); });
  }
}

// Those that decide what an element is: masks of loads, min and max in their places, and conditions
// of selects; for a sum also those that gate its terms.
void VisitComparisons(Program& program, const Statement& statement, ComparisonVisitor visit) {
  std::vector<ValueId> ids;
  VisitValues(program, statement.value, [&](ValueId id, const Value&) { ids.push_back(id); });
  for (ValueId id : ids) {
    const auto* load = absl::get_if<LoadValue>(&program[id].node);
    if (load != nullptr && (!statement.op || id == statement.value)) {
      const Access access = load->access;
      VisitMask(program, access, visit);
      VisitExtremes(program.pool, access, visit);
    }
    const auto* apply = absl::get_if<ApplyValue>(&program[id].node);
    if (apply == nullptr || apply->op != ScalarOp::kSelect) continue;
    const auto condition = ConditionOf(program, apply->args[0]);
    if (condition) VisitCondition(program.pool, *condition, visit);
  }
  if (!statement.op) return;
  for (IndexId gate : GatesOf(program, statement.value)) VisitCondition(program.pool, gate, visit);
}

namespace {

// Whether bounds that are numbers, or extremes with one, are at most kMostOfFilter steps apart.
bool HasFewSteps(const IndexPool& pool, const Loop& loop) {
  constexpr int64_t kMostOfFilter = 16;
  const auto number = [&](IndexId e, IndexKind extreme) -> absl::optional<int64_t> {
    if (const auto own = pool.ConstValue(e)) return own;
    if (pool[e].kind != extreme) return absl::nullopt;
    const auto first = pool.ConstValue(pool[e].args[0]);
    return first ? first : pool.ConstValue(pool[e].args[1]);
  };
  const auto begin = number(loop.begin, IndexKind::kMax), end = number(loop.end, IndexKind::kMin);
  return begin && end && *end - *begin <= kMostOfFilter;
}

}  // namespace

// Perfectly nested loops around one accumulation into an accumulator.
absl::optional<Window> WindowOf(const Program& program, const Loop& outermost) {
  Window window{{&outermost}, nullptr};
  const auto only = [&] {
    return window.loops.back()->body.size() == 1 ? &window.loops.back()->body[0] : nullptr;
  };
  while (only() != nullptr && only()->As<Loop>() != nullptr)
    window.loops.push_back(only()->As<Loop>());
  window.step = only() != nullptr ? only()->As<Statement>() : nullptr;
  if (window.step == nullptr || !window.step->op) return absl::nullopt;
  if (program[window.step->target.tensor].storage != Storage::kAccumulator) return absl::nullopt;
  const auto* apply = absl::get_if<ApplyValue>(&program[window.step->value].node);
  const bool sums_products = apply != nullptr && apply->op == ScalarOp::kMul;
  const auto has_few = [&](const Loop* loop) { return HasFewSteps(program.pool, *loop); };
  if (sums_products && (window.step->target.masked || !absl::c_all_of(window.loops, has_few)))
    return absl::nullopt;
  return window;
}

// For each masked load: the window is in range along an axis if its least place is not negative and
// its greatest is below the extent. The extremes of an affine place are at the ends of the loops.
void VisitWindow(Program& program, const Window& window,
                 absl::FunctionRef<bool(const Access&, size_t)> asks, ComparisonVisitor visit) {
  IndexPool& pool = program.pool;
  const auto extreme = [&](IndexId e, bool least) -> absl::optional<IndexId> {
    VarReplacement replace(program);
    for (const Loop* loop : window.loops) {
      const auto by = StrideIn(pool, e, loop->var);
      if (!by || pool.HasVar(loop->begin) || pool.HasVar(loop->end)) return absl::nullopt;
      replace.Set(loop->var, (*by > 0) == least ? loop->begin : pool.Sub(loop->end, pool.Const(1)));
    }
    return replace(e);
  };
  std::vector<ValueId> ids;
  VisitValues(program, window.step->value, [&](ValueId id, const Value&) { ids.push_back(id); });
  for (const ValueId id : ids) {
    const auto* load = absl::get_if<LoadValue>(&program[id].node);
    if (load == nullptr || !load->access.masked) continue;
    const Access access = load->access;
    for (size_t axis = 0; axis < access.place.size(); ++axis) {
      if (!asks(access, axis)) continue;
      if (const auto least = extreme(access.place[axis], true)) visit({pool.Const(0), *least});
      if (const auto greatest = extreme(access.place[axis], false)) {
        visit({pool.Add(*greatest, pool.Const(1)), program[access.tensor].shape[axis]});
      }
    }
  }
}

}  // namespace nestor::loop
