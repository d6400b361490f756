// A function of a kernel under construction: frames, addresses on top of them, and on top of these
// index expressions of any kind.
#ifndef NESTOR_JIT_CODEGEN_FUNCTION_BUILDER_H_
#define NESTOR_JIT_CODEGEN_FUNCTION_BUILDER_H_

#include "jit/codegen/address_builder.h"
#include "jit/codegen/operations.h"
#include "loop_ir/program.h"

namespace nestor::jit {

// An index expression that may have no value: a gather from outside a tensor, or an
// overflow. `valid`: kNone where it always has one, else 0 or 1.
struct CheckedIndex {
  Operand value, valid;
};

enum class Loads : uint8_t { kChecked, kInRange };

class FunctionBuilder : public AddressBuilder {
 public:
  using AddressBuilder::AddressBuilder;

  // For any expression; emitted in place. `loads`: whether loads in it are known to be in range.
  CheckedIndex Checked(IndexId e, Loads loads = Loads::kChecked);
  // The value of a condition, 0 or 1; 0 if e has no value.
  Operand ConditionValue(IndexId e);
  // 1 where 0 <= e < extent, with e as Checked gave it.
  Operand InRange(const CheckedIndex& e, IndexId extent);
  // a && b, where kNone means true.
  Operand Both(Operand a, Operand b);

 private:
  Operand DividesByNonzero(IndexId e);
  CheckedIndex CheckedLoad(const IndexNode& node, Loads loads);
  Operand IsIndex(DType type, Operand number);
  CheckedIndex CheckedArithmetic(const IndexNode& node, Loads loads);
};

}  // namespace nestor::jit

#endif  // NESTOR_JIT_CODEGEN_FUNCTION_BUILDER_H_
