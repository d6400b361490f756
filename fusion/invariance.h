// Which values a loop does not change.
#ifndef NESTOR_FUSION_INVARIANCE_H_
#define NESTOR_FUSION_INVARIANCE_H_

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "loop_ir/program.h"

namespace nestor::loop {

// Facts about one loop, remembered. While this lives, the loop must go on with the same
// loops, targets and declarations; values may be added to the program.
class Invariance {
 public:
  Invariance(const Program& program, const Loop& loop) : program_(program), loop_(loop) {}

  // The expression or value is the same in all iterations: it holds neither the
  // loop's index nor one of a loop inside, and reads nothing that the loop changes or
  // declares.
  bool Holds(IndexId e) const;
  bool Holds(ValueId value) const;

 private:
  void Collect() const;
  bool HoldsLoad(const Access& access) const;

  const Program& program_;
  const Loop& loop_;
  mutable bool is_collected_ = false;
  mutable absl::flat_hash_set<int64_t> vars_;
  mutable absl::flat_hash_set<TensorId> changed_;
  mutable absl::flat_hash_map<int32_t, bool> known_;  // by value
};

}  // namespace nestor::loop

#endif  // NESTOR_FUSION_INVARIANCE_H_
