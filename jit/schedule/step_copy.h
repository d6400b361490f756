// A loop's statements, written out for one place of its index.
#ifndef NESTOR_JIT_SCHEDULE_STEP_COPY_H_
#define NESTOR_JIT_SCHEDULE_STEP_COPY_H_

#include "absl/container/flat_hash_map.h"
#include "loop_ir/program.h"
#include "loop_ir/rewrite.h"

namespace nestor::loop {

// Copies what is asked for, and the definitions of the loop's own scalars that it needs, each once.
// REQUIRES: MayCopy. Both arguments outlive this.
class StepCopy {
 public:
  // Whether the body has only assignments and declarations of scalars; each scalar that it assigns is
  // assigned once, if it is the loop's own before it is read, and read by values alone, unmasked.
  static bool MayCopy(const Program& program, const Loop& loop);

  StepCopy(Program& program, const Loop& loop, IndexId at);

  // `value` replaces each read of the scalar, whose definition is no longer copied.
  void Replace(TensorId scalar, ValueId value) { known_[scalar] = value; }

  // The value at this place; the statements that it needs are appended to `scope`.
  ValueId Value(ValueId value, Scope& scope);

  // Appends the stores to tensors that have axes, and the statements that they need.
  void Stores(Scope& scope);

 private:
  void Define(ValueId value, Scope& scope);

  Program& program_;
  const Loop& loop_;
  VarReplacement replace_;
  absl::flat_hash_map<TensorId, ValueId> known_;  // the copies of scalars
};

}  // namespace nestor::loop

#endif  // NESTOR_JIT_SCHEDULE_STEP_COPY_H_
