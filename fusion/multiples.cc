// A proof of no overflow is about an expression as it is written. Where a pass replaces an index by
// another expression, the parts of c * index are other numbers, and c times one of them may
// overflow although the sum does not. A factor below 2^14 is safe, as extents are at most 2^48.
#include "fusion/multiples.h"

namespace nestor::loop {
namespace {

constexpr int64_t kMuch = int64_t{1} << 14;  // an extent is at most 2^48

// Steps by a constant that is not small: what it subscripts lies on different lines.
bool IsMultipliedByMuch(const IndexPool& pool, IndexId e, int32_t var) {
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

}  // namespace

// Whether putting `by` in the place of the index might make a product leave int64.
bool MovesLargeProduct(const Program& program, const Item& item, int32_t var, IndexId by) {
  if (program.pool.VarValue(by) >= 0 || program.pool.ConstValue(by)) return false;
  bool found = false;
  VisitItems(item, [&](const Item& each) {
    VisitIndices(program, each,
                 [&](IndexId e) { found = found || IsMultipliedByMuch(program.pool, e, var); });
  });
  return found;
}

}  // namespace nestor::loop
