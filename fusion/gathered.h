// The tensors whose elements are subscripts.
#ifndef NESTOR_FUSION_GATHERED_H_
#define NESTOR_FUSION_GATHERED_H_

#include <cstddef>
#include <cstdint>

#include "absl/container/flat_hash_set.h"
#include "loop_ir/program.h"

namespace nestor::loop {

// The tensors that some index of a pool loads from, used or not; the pool may grow, and must outlive
// this.
class Gathered {
 public:
  explicit Gathered(const IndexPool& pool) : pool_(pool) {}

  // Pools only grow: what was seen before need not be looked at again.
  bool Contains(TensorId tensor) {
    for (; seen_ < pool_.size(); ++seen_) {
      const IndexNode& node = pool_[IndexId{static_cast<int32_t>(seen_)}];
      if (node.kind == IndexKind::kLoad)
        tensors_.insert(TensorId{static_cast<int32_t>(node.value)});
    }
    return tensors_.contains(tensor);
  }

 private:
  const IndexPool& pool_;
  size_t seen_ = 0;
  absl::flat_hash_set<TensorId> tensors_;
};

}  // namespace nestor::loop

#endif  // NESTOR_FUSION_GATHERED_H_
