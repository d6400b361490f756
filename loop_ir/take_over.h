// Whether a tensor may be written into the memory of another one whose lifetime ends where its
// own begins.
#ifndef NESTOR_LOOP_IR_TAKE_OVER_H_
#define NESTOR_LOOP_IR_TAKE_OVER_H_

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "loop_ir/program.h"

namespace nestor::loop {

// Remembers what it finds in each loop that it looks into, so that many pairs cost about as much
// as one.
class TakeOver {
 public:
  // REQUIRES: `program` outlives this and does not change.
  explicit TakeOver(const Program& program) : program_(program) {}

  // Whether `heir` may take the memory of `donor`: no element of the donor is read after
  // it is overwritten. REQUIRES: `item` touches both, nothing before it touches the heir,
  // nothing after it the donor, and both have the same shape.
  bool IsSafe(const Item& item, TensorId donor, TensorId heir);

 private:
  // The accesses of a tensor in a loop.
  struct Touches {
    int first, last;  // items of the body that hold some
    // In all of them the place on the axis is the loop's index.
    absl::InlinedVector<bool, 4> along_axis;
  };
  using Loops = absl::flat_hash_map<const Loop*, absl::flat_hash_map<TensorId, Touches>>;

  const absl::flat_hash_map<TensorId, Touches>& In(const Loop& loop);

  const Program& program_;
  Loops loops_;
};

}  // namespace nestor::loop

#endif  // NESTOR_LOOP_IR_TAKE_OVER_H_
