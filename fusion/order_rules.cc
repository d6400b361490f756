// Each rule is given with its equation and what must be proven. An operand may be dropped only where
// it has a value, since an expression without one is out of bounds.
#include "fusion/order_rules.h"

namespace nestor::loop {
namespace {

using Result = absl::optional<IndexId>;

// min(a, b) = a where a <= b.
Result DecideExtreme(IndexPool& pool, Ranges& ranges, IndexId e) {
  const IndexNode node = pool[e];
  const bool is_min = node.kind == IndexKind::kMin;
  for (int i : {0, 1}) {
    const IndexId a = node.args[i], b = node.args[1 - i];
    if (is_min ? ranges.LessEqual(a, b) : ranges.LessEqual(b, a)) return a;
  }
  return absl::nullopt;
}

// min(min(a, b), c) = min(b, c) where c <= a.
Result DropInnerExtreme(IndexPool& pool, Ranges& ranges, IndexId e) {
  const IndexNode node = pool[e];
  const bool is_min = node.kind == IndexKind::kMin;
  for (int i : {0, 1}) {
    const IndexNode inner = pool[node.args[i]];
    const IndexId c = node.args[1 - i];
    if (inner.kind != node.kind) continue;
    for (int j : {0, 1}) {
      const IndexId a = inner.args[j];
      if (!(is_min ? ranges.LessEqual(c, a) : ranges.LessEqual(a, c))) continue;
      return pool.Make(node.kind, 0, {inner.args[1 - j], c});
    }
  }
  return absl::nullopt;
}

// true && c = c,  false && c = false where c has a value; || likewise.
Result DropConstantOperand(IndexPool& pool, Ranges& ranges, IndexId e) {
  const IndexNode node = pool[e];
  const bool neutral = node.kind == IndexKind::kAnd;
  for (int i : {0, 1}) {
    const auto constant = pool.ConstValue(node.args[i]);
    const IndexId other = node.args[1 - i];
    if (!constant) continue;
    if ((*constant != 0) == neutral) return other;
    if (ranges.Defined(other)) return pool.Const(!neutral);
  }
  if (node.args[0] == node.args[1]) return node.args[0];
  return absl::nullopt;
}

// !!c = c,  !(a < b) = b <= a, and so on.
Result Negate(IndexPool& pool, IndexId e) {
  const IndexNode inner = pool[pool[e].args[0]];
  switch (inner.kind) {
    case IndexKind::kNot: return inner.args[0];
    case IndexKind::kLt: return pool.Condition(IndexKind::kLe, inner.args[1], inner.args[0]);
    case IndexKind::kLe: return pool.Condition(IndexKind::kLt, inner.args[1], inner.args[0]);
    case IndexKind::kEq: return pool.Condition(IndexKind::kNe, inner.args[0], inner.args[1]);
    case IndexKind::kNe: return pool.Condition(IndexKind::kEq, inner.args[0], inner.args[1]);
    default: return absl::nullopt;
  }
}

}  // namespace

absl::optional<IndexId> RewriteExtreme(IndexPool& pool, Ranges& ranges, IndexId e) {
  const Result decided = DecideExtreme(pool, ranges, e);
  return decided ? decided : DropInnerExtreme(pool, ranges, e);
}

absl::optional<IndexId> RewriteCondition(IndexPool& pool, Ranges& ranges, IndexId e) {
  const IndexKind kind = pool[e].kind;
  if (const auto decided = ranges.Decide(e)) return pool.Const(*decided);
  if (kind == IndexKind::kAnd || kind == IndexKind::kOr)
    return DropConstantOperand(pool, ranges, e);
  return kind == IndexKind::kNot ? Negate(pool, e) : absl::nullopt;
}

}  // namespace nestor::loop
