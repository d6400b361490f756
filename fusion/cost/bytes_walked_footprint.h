// Footprints: which elements of a tensor an access reaches while loops run, as
// boxes. The estimate's geometry; see bytes_walked.cc.
#ifndef NESTOR_FUSION_COST_BYTES_WALKED_FOOTPRINT_H_
#define NESTOR_FUSION_COST_BYTES_WALKED_FOOTPRINT_H_

#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "loop_ir/sized_program.h"

namespace nestor::loop {

struct Box {
  std::vector<Progression> axes;
  double elements = 0;        // different ones; at most the product of counts
  bool is_scattered = false;  // a gather, or a remainder, jumps about in it
};

// The box around both, with as many elements as both have together, if they fit in it.
Box BoundingBox(const Box& a, const Box& b);
// Elements in both, as if each box were filled evenly.
double CommonElements(const Box& a, const Box& b);

using Boxes = absl::flat_hash_map<TensorId, Box>;

// Boxes of accesses, with the loops around them at the middle of their runs. Not thread-safe.
class Footprints {
 public:
  explicit Footprints(const SizedProgram& sized);

  double ElementBytes(TensorId tensor) const { return element_bytes_[tensor.value]; }
  bool IsWalked(TensorId tensor) const { return element_bytes_[tensor.value] > 0; }

  // Puts the loop's index at the middle of its run and returns the run's length, which may be 0.
  // Leave() the loop before entering the next one beside it.
  double Enter(const Loop& loop);
  void Leave(const Loop& loop);

  // The elements that the access reaches, all inside the tensor, and perhaps none.
  Box Of(TensorId tensor, absl::Span<const IndexId> place) const;
  // The elements that each tensor's accesses in the loop reach together in all iterations.
  Boxes Of(const Loop& loop);

 private:
  void Collect(const Loop& loop, Boxes& boxes);
  void CollectAccesses(const Item& item, Boxes& boxes) const;
  double Touches(absl::Span<const IndexId> place) const;
  bool JumpsAbout(IndexId e) const;

  const SizedProgram& sized_;
  std::vector<std::vector<int64_t>> extents_;  // by tensor
  std::vector<double> element_bytes_;          // by tensor; 0: not walked
  VarValues values_;                           // of the loops entered or collected
  VarValues middles_;                          // the same, each at its middle
  std::vector<double> trips_;                  // by index: how many values it takes; entered: 1
};

}  // namespace nestor::loop

#endif  // NESTOR_FUSION_COST_BYTES_WALKED_FOOTPRINT_H_
