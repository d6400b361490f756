// Internal to the translation: tensors get their registers, and accumulators their start values.
#ifndef NESTOR_JIT_CODEGEN_TRANSLATE_DECLARATIONS_H_
#define NESTOR_JIT_CODEGEN_TRANSLATE_DECLARATIONS_H_

#include <cstdint>

#include "jit/codegen/lane_builder.h"
#include "jit/codegen/operations.h"
#include "jit/codegen/translate_accesses.h"
#include "jit/codegen/translate_tensors.h"
#include "jit/codegen/translate_values.h"
#include "loop_ir/program.h"

namespace nestor::jit {

class DeclarationTranslator {
 public:
  // REQUIRES: the arguments outlive this.
  DeclarationTranslator(loop::Program& program, Tensors& tensors, LaneBuilder& f,
                        AccessTranslator& accesses, ValueTranslator& values)
      : program_(program), tensors_(tensors), f_(f), accesses_(accesses), values_(values) {}

  // Gives the tensor its registers, or fills its memory, with its start value.
  void Declare(loop::TensorId tensor);

 private:
  void DeclareScalar(loop::TensorId tensor);
  void DeclareTile(loop::TensorId tensor);
  void Fill(loop::TensorId tensor);
  void FillMemory(Memory memory, DType type, uint64_t bits, Operand count);

  loop::Program& program_;
  Tensors& tensors_;
  LaneBuilder& f_;
  AccessTranslator& accesses_;
  ValueTranslator& values_;
};

}  // namespace nestor::jit

#endif  // NESTOR_JIT_CODEGEN_TRANSLATE_DECLARATIONS_H_
