// An index that alone subscripts an axis takes the axis's dimension as its range: the first such
// axis counts, and the others must agree. A statement says `where` only for an index to which this
// gives no range, or another one than it has, or where a later axis might not agree.
#include "uops/notation/print_ranges.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace nestor {

StatedRanges::StatedRanges(const Op& op, const NodeNames& names)
    : graph_(op.graph), pool_(op.graph.pool()), names_(names) {
  for (const Equality& e : op.equalities)
    equal_.emplace(std::min(e.left, e.right), std::max(e.left, e.right));
}

void StatedRanges::Start() {
  ranges_.clear();
  subscripts_.clear();
  late_.clear();
}

// The access itself comes before those in its subscripts.
void StatedRanges::Access(NodeId tensor, absl::Span<const IndexId> place, const Names& names) {
  const Shape& shape = graph_.shape(tensor);
  for (size_t axis = 0; axis < place.size(); ++axis) {
    const int64_t var = pool_.VarValue(place[axis]);
    if (var >= 0) SubscriptsOf(tensor).emplace_back(names[var], shape[axis]);
  }
  for (IndexId e : place) Loads(e, names);
}

void StatedRanges::Access(NodeId tensor, const Names& names) {
  const Shape& shape = graph_.shape(tensor);
  for (size_t axis = 0; axis < names.size(); ++axis)
    SubscriptsOf(tensor).emplace_back(names[axis], shape[axis]);
}

void StatedRanges::Loads(IndexId e, const Names& names) {
  if (!pool_.HasLoad(e)) return;
  const IndexNode& node = pool_[e];
  if (node.kind == IndexKind::kLoad) {
    Access(NodeId{static_cast<int32_t>(node.value)}, node.args, names);
    return;
  }
  for (IndexId arg : node.args) Loads(arg, names);
}

std::string StatedRanges::Where() const {
  std::vector<std::string> bounds;
  for (const auto& [name, extent] : ranges_) {
    if (!IsSaid(name, extent))
      bounds.push_back(absl::StrCat(name, " < ", SymbolicText(pool_, extent)));
  }
  return bounds.empty() ? "" : absl::StrCat(" where ", absl::StrJoin(bounds, ", "));
}

bool StatedRanges::IsSaid(const std::string& index, IndexId extent) const {
  bool first = true, said = false;
  for (const auto& [subscript, dimension] : subscripts_) {
    if (subscript != index) continue;
    said = first ? dimension == extent : said && KnownEqual(dimension, extent);
    first = false;
  }
  // The extent of a block's tensor is not known when ranges are found, but is compared later.
  return said && std::all_of(late_.begin(), late_.end(), [&](const auto& subscript) {
           return subscript.first != index || subscript.second == extent;
         });
}

bool StatedRanges::KnownEqual(IndexId a, IndexId b) const {
  return a == b || equal_.contains({std::min(a, b), std::max(a, b)});
}

}  // namespace nestor
