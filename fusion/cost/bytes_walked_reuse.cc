// The distance from an element's last touch in one sweep to its first in the next is the rest of
// the first sweep, what is executed between the two, and the second sweep up to it. A tensor that
// is touched several times in between counts once.
// This is the reuse distance of a fully associative cache with LRU replacement (Mattson, Gecsei,
// Slutz and Traiger, "Evaluation techniques for storage hierarchies", 1970): an element is a hit if
// fewer different bytes than the cache holds were touched since. Where the sweeps go in the same
// order, the distance is linear in the element's position, and the share of hits has a closed form
// (InOrder); where they do not, as in a transpose, both positions vary independently, and a grid of
// 16 x 16 is counted (OutOfOrder).
#include "fusion/cost/bytes_walked_reuse.h"

#include <algorithm>
#include <cmath>

namespace nestor::loop {

const Use* WalkNode::Find(TensorId tensor) const {
  const auto it =
      std::find_if(uses.begin(), uses.end(), [&](const Use& use) { return use.tensor == tensor; });
  return it == uses.end() ? nullptr : &*it;
}

// Each tensor counts by the largest of its uses, as the others walk the same elements.
void TensorBytes::Cover(const WalkNode& node) {
  for (const Use& use : node.uses) {
    double& bytes = bytes_[use.tensor.value];
    if (use.bytes <= bytes) continue;
    if (bytes == 0) touched_.push_back(use.tensor);
    total_ += use.bytes - bytes;
    bytes = use.bytes;
  }
}

double TensorBytes::BytesBeyond(const TensorBytes& other) const {
  double bytes = 0;
  for (TensorId tensor : touched_) bytes += std::max(0.0, Of(tensor) - other.Of(tensor));
  return bytes;
}

void TensorBytes::Clear() {
  for (TensorId tensor : touched_) bytes_[tensor.value] = 0;
  touched_.clear();
  total_ = 0;
}

// Between two uses of an element lie the rest of the first walk, all walks in between, and the
// begin of the second one; if both go the same way, the rest and the begin add up to one walk.
double ReuseDistance::HitShare(const Sweep& from, const Sweep& to) {
  beside_.Clear();
  for (const Sweep* sweep : {&from, &to}) {
    for (const WalkNode* node : sweep->beside) beside_.Cover(*node);
  }
  const double between = between_.total() + beside_.BytesBeyond(between_);
  const double tail = Beyond(*from.walk), head = Beyond(*to.walk);
  const bool in_order = from.axis == to.axis || from.axis < 0 || to.axis < 0;
  return in_order ? InOrder(tail, between, head)
                  : OutOfOrder(tail, between, head, Shared(*from.walk, *to.walk));
}

double ReuseDistance::Beyond(const Use& use) const {
  return std::max(0.0, use.bytes - std::max(between_.Of(use.tensor), beside_.Of(use.tensor)));
}

double ReuseDistance::Beyond(const WalkNode& walk) const {
  double bytes = 0;
  for (const Use& use : walk.uses) bytes += Beyond(use);
  return bytes;
}

double ReuseDistance::Shared(const WalkNode& a, const WalkNode& b) const {
  double bytes = 0;
  for (const Use& use : a.uses) {
    if (const Use* other = b.Find(use.tensor)) bytes += std::min(Beyond(use), Beyond(*other));
  }
  return bytes;
}

// The share of p in [0, 1] with (1 - p)*tail + between + p*head <= cache.
double ReuseDistance::InOrder(double tail, double between, double head) const {
  const double room = cache_ - between;
  if (std::max(tail, head) <= room) return 1;
  if (std::min(tail, head) > room) return 0;
  return (room - std::min(tail, head)) / std::abs(head - tail);
}

// The same where the position in one sweep says nothing about that in the other. For a tensor in
// both, the share p of one and the share q of the other have p*q in common.
double ReuseDistance::OutOfOrder(double tail, double between, double head, double shared) const {
  constexpr int kSteps = 16;
  int hits = 0;
  for (int i = 0; i < kSteps; ++i) {
    for (int j = 0; j < kSteps; ++j) {
      const double p = (i + 1.0) / kSteps, q = (j + 1.0) / kSteps;
      hits += p * tail + between + q * head - p * q * shared <= cache_;
    }
  }
  return static_cast<double>(hits) / (kSteps * kSteps);
}

}  // namespace nestor::loop
