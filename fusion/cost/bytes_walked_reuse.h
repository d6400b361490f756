// How long ago an element was touched, in bytes of different elements since, from
// footprints. The estimate's clock; see bytes_walked.cc.
#ifndef NESTOR_FUSION_COST_BYTES_WALKED_REUSE_H_
#define NESTOR_FUSION_COST_BYTES_WALKED_REUSE_H_

#include <memory>
#include <vector>

#include "fusion/cost/bytes_walked_footprint.h"

namespace nestor::loop {

struct WalkNode;

// How a tensor's box is walked through at the beginning or end of a node.
struct Sweep {
  const WalkNode* walk = nullptr;       // one execution of this sweeps the box
  int axis = -1;                        // along this axis of the tensor, most slowly; -1: at once
  std::vector<const WalkNode*> beside;  // executed whole before the first, or after the last, sweep
};

// The traffic of one execution of a node with a tensor, in bytes. `loads` and `stores` count from a
// cache that holds nothing of the tensor, and leave out what is dirty at the end.
struct Use {
  TensorId tensor;
  Box box = {};
  double bytes = 0;  // of the box
  double loads = 0;
  double stores = 0;
  double load_share = 0;   // share of elements whose first touch needs the old value
  double dirty_share = 0;  // share of elements that are changed at the end
  Sweep first = {}, last = {};
};

// An execution of a statement, a loop, or a scope.
struct WalkNode {
  std::vector<Use> uses;  // in the order of the first touch
  std::vector<std::unique_ptr<WalkNode>> children;
  double bytes = 0;  // of all boxes

  const Use* Find(TensorId tensor) const;
};

// A set of tensors with the bytes of each, which can be emptied quickly.
class TensorBytes {
 public:
  explicit TensorBytes(size_t tensors) : bytes_(tensors) {}
  double Of(TensorId tensor) const { return bytes_[tensor.value]; }
  double total() const { return total_; }
  // The larger box of each tensor counts.
  void Cover(const WalkNode& node);
  // The bytes that `other` lacks, summed over the tensors.
  double BytesBeyond(const TensorBytes& other) const;
  void Clear();

 private:
  std::vector<double> bytes_;
  std::vector<TensorId> touched_;
  double total_ = 0;
};

class ReuseDistance {
 public:
  ReuseDistance(size_t tensors, double cache)
      : cache_(cache), between_(tensors), beside_(tensors) {}

  // The nodes that are executed between the two sweeps of HitShare.
  void ClearBetween() { between_.Clear(); }
  void AddBetween(const WalkNode& node) { between_.Cover(node); }
  bool ExceedsCache() const { return between_.total() > cache_; }

  // The share of elements that are still in the cache when the sweep `to` comes to
  // them.
  double HitShare(const Sweep& from, const Sweep& to);
  // The same for accesses all over the node's footprint.
  double HitShareOfScattered(const WalkNode& node) const {
    return node.bytes <= cache_ ? 1 : cache_ / node.bytes;
  }

 private:
  double Beyond(const Use& use) const;
  double Beyond(const WalkNode& walk) const;
  double Shared(const WalkNode& a, const WalkNode& b) const;
  double InOrder(double tail, double between, double head) const;
  double OutOfOrder(double tail, double between, double head, double shared) const;

  const double cache_;
  TensorBytes between_, beside_;
};

}  // namespace nestor::loop

#endif  // NESTOR_FUSION_COST_BYTES_WALKED_REUSE_H_
