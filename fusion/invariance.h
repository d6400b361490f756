// What a loop does not change.
#ifndef NESTOR_FUSION_INVARIANCE_H_
#define NESTOR_FUSION_INVARIANCE_H_

#include "absl/container/flat_hash_set.h"
#include "loop_ir/program.h"

namespace nestor::fusion {

// Facts about one loop as it is now.
class Invariance {
 public:
  Invariance(const loop::Program& program, const loop::Loop& loop);

  // The expression or value is the same in all iterations: it holds neither the
  // loop's index nor one of a loop inside, and reads nothing that the loop changes or
  // declares.
  bool Holds(IndexId e) const;
  bool Holds(loop::ValueId value) const;

 private:
  const loop::Program& program_;
  absl::flat_hash_set<int64_t> vars_;
  absl::flat_hash_set<loop::TensorId> changed_;
};

}  // namespace nestor::fusion

#endif  // NESTOR_FUSION_INVARIANCE_H_
