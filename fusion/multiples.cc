#include "fusion/multiples.h"

namespace nestor::fusion {

bool IsMultipliedByMuch(const IndexPool& pool, IndexId e, int64_t var) {
  constexpr int64_t kMuch = int64_t{1} << 14;  // an extent is at most 2^48
  if (!HoldsVar(pool, e, var)) return false;
  bool found = false;
  VisitIndex(pool, e, [&](IndexId id, const IndexNode& node) {
    if (node.kind != IndexKind::kMul || !HoldsVar(pool, id, var)) return;
    for (IndexId factor : node.args) {
      const int64_t constant = pool.ConstValue(factor).value_or(0);
      found = found || constant > kMuch || constant < -kMuch;
    }
  });
  return found;
}

}  // namespace nestor::fusion
