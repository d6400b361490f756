// Memory of a tensor may be reused by the next one even while the first is still read, if each
// element is read before its place is overwritten: y = exp(x) in place. The proof: go down through
// the loops that hold accesses of both tensors. The index of such a loop must be the whole
// subscript on one axis of all these accesses, so that no two iterations meet in an element; and
// within an iteration, all items that touch the donor must come before those that touch the heir.
// An item that touches both is looked into in turn, down to a statement, which reads before it
// writes.
#include "loop_ir/take_over.h"

#include <algorithm>

#include "loop_ir/dependence.h"

namespace nestor::loop {

// Equal subscripts mean equal bytes, as both tensors have the same shape and element size.
bool TakeOver::IsSafe(const Item& item, TensorId donor, TensorId heir) {
  const Item* shared = &item;
  while (const Loop* loop = shared->As<Loop>()) {
    const auto& touches = In(*loop);
    const auto before = touches.find(donor), after = touches.find(heir);
    // A tensor that the loop itself declares cannot be handed on by the loop.
    if (before == touches.end() || after == touches.end()) return false;
    bool separates = false;
    for (size_t axis = 0; axis < before->second.along_axis.size(); ++axis) {
      separates = separates || (before->second.along_axis[axis] && after->second.along_axis[axis]);
    }
    if (!separates) return false;
    if (before->second.last != after->second.first)
      return before->second.last < after->second.first;
    shared = &loop->body[before->second.last];
  }
  // Here the donor is read, since the heir is written: the heir has not been written before, so
  // nothing reads it.
  const auto* statement = shared->As<Statement>();
  return statement != nullptr && statement->target.tensor == heir;
}

// The accesses in the loop's body, by tensor, found at the first question about the loop.
const absl::flat_hash_map<TensorId, TakeOver::Touches>& TakeOver::In(const Loop& loop) {
  const auto [known, is_new] = loops_.try_emplace(&loop);
  auto& touches = known->second;
  if (!is_new) return touches;
  for (size_t i = 0; i < loop.body.size(); ++i) {
    const int position = static_cast<int>(i);
    const auto look = [&](TensorId tensor, absl::Span<const IndexId> place, AccessKind) {
      const auto [it, first] = touches.try_emplace(tensor, Touches{position, position, {}});
      if (first) it->second.along_axis.assign(place.size(), true);
      it->second.last = position;
      for (size_t axis = 0; axis < place.size(); ++axis) {
        if (program_.pool.VarValue(place[axis]) != loop.var) it->second.along_axis[axis] = false;
      }
    };
    VisitItems(loop.body[i], [&](const Item& item) { VisitAccesses(program_, item, look); });
  }
  return touches;
}

}  // namespace nestor::loop
