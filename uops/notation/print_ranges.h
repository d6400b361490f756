// Which ranges of a statement's indices follow from its text, and which ones it must give.
#ifndef NESTOR_UOPS_NOTATION_PRINT_RANGES_H_
#define NESTOR_UOPS_NOTATION_PRINT_RANGES_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "uops/notation/print_names.h"
#include "uops/op.h"

namespace nestor {

// Notes one statement's indices and accesses as they are written, in the order in which
// infer_ranges.cc will see them.
class StatedRanges {
 public:
  using Names = std::vector<std::string>;  // of the indices along a node's axes

  // REQUIRES: both outlive this.
  StatedRanges(const Op& op, const NodeNames& names);

  // Forgets all, for the next statement.
  void Start();
  // The range of an index is 0 .. extent - 1.
  void Set(absl::string_view index, IndexId extent) { ranges_.emplace_back(index, extent); }
  // The tensor is read, or scattered to, at `place` over the indices `names`.
  void Access(NodeId tensor, absl::Span<const IndexId> place, const Names& names);
  // The tensor is read at the indices `names` themselves.
  void Access(NodeId tensor, const Names& names);
  // The accesses inside an index expression.
  void Loads(IndexId e, const Names& names);

  // " where i < .." for the indices whose range the accesses do not say.
  std::string Where() const;

 private:
  using Pairs = std::vector<std::pair<std::string, IndexId>>;

  Pairs& SubscriptsOf(NodeId tensor) { return names_.IsStep(tensor) ? late_ : subscripts_; }
  bool KnownEqual(IndexId a, IndexId b) const;
  bool IsSaid(const std::string& index, IndexId extent) const;

  const Graph& graph_;
  const IndexPool& pool_;
  const NodeNames& names_;
  absl::flat_hash_set<std::pair<IndexId, IndexId>> equal_;
  Pairs ranges_;
  Pairs subscripts_;  // indices that are the whole subscript of an axis, and its dimension
  Pairs late_;        // the same, of the block's own tensors
};

}  // namespace nestor

#endif  // NESTOR_UOPS_NOTATION_PRINT_RANGES_H_
