// Interval arithmetic with lower ends alone, bottom up: a sum is at least the sum of its parts'
// bounds; a product, or a quotient, only if nothing in it is negative. Nothing is looked up, so that
// the answer depends on the expression alone.
#include "loop_ir/least_value.h"

#include <algorithm>

namespace nestor::loop {
namespace {

// max(a, b) is at least what either is; min(a, b) only what both are.
absl::optional<int64_t> LeastExtreme(const IndexPool& pool, const IndexNode& node) {
  const auto a = LeastValue(pool, node.args[0]), b = LeastValue(pool, node.args[1]);
  if (a && b) return node.kind == IndexKind::kMax ? std::max(*a, *b) : std::min(*a, *b);
  if (node.kind == IndexKind::kMin) return absl::nullopt;
  return a ? a : b;
}

}  // namespace

absl::optional<int64_t> LeastValue(const IndexPool& pool, IndexId e) {
  const IndexNode& node = pool[e];
  switch (node.kind) {
    case IndexKind::kConst: return node.value;
    case IndexKind::kSymbol:
      return pool.SymbolName(e)[0] != '$' ? absl::make_optional<int64_t>(0) : absl::nullopt;
    case IndexKind::kMax:
    case IndexKind::kMin: return LeastExtreme(pool, node);
    case IndexKind::kAdd:
    case IndexKind::kMul:
    case IndexKind::kDiv: break;
    default: return absl::nullopt;
  }
  const auto a = LeastValue(pool, node.args[0]), b = LeastValue(pool, node.args[1]);
  if (!a || !b) return absl::nullopt;
  const bool are_positive = *a >= 0 && *b >= 0;
  if (node.kind == IndexKind::kAdd || (node.kind == IndexKind::kMul && are_positive))
    return CheckedApply(node.kind, *a, *b);
  if (are_positive) return 0;
  const auto divisor = PositiveDivisor(pool, e);
  return divisor ? CheckedApply(IndexKind::kDiv, *a, *divisor) : absl::nullopt;
}

absl::optional<int64_t> PositiveDivisor(const IndexPool& pool, IndexId e) {
  if (pool[e].kind != IndexKind::kDiv) return absl::nullopt;
  const auto divisor = pool.ConstValue(pool[e].args[1]);
  return divisor && *divisor > 0 ? divisor : absl::nullopt;
}

}  // namespace nestor::loop
