// Of a program, inputs are arguments; outputs have shapes that follow.
#include "loop_ir/signature.h"

namespace nestor::loop {

Signature SignatureOf(const Program& program) {
  Signature signature{program.name,    &program.pool,       {},
                      &program.params, &program.equalities, &program.range_checks};
  for (TensorId id : program.inputs) {
    const TensorInfo& info = program[id];
    signature.args.push_back({info.name, info.type, &info.shape, info.shape_only});
  }
  return signature;
}

}  // namespace nestor::loop
