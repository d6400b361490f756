// Where the tensors of a program are while it is translated: in memory, or in which registers.
#ifndef NESTOR_JIT_CODEGEN_TRANSLATE_TENSORS_H_
#define NESTOR_JIT_CODEGEN_TRANSLATE_TENSORS_H_

#include <vector>

#include "jit/codegen/address_sums.h"
#include "jit/codegen/homes.h"
#include "jit/codegen/operations.h"
#include "jit/codegen/scalar_rows.h"
#include "jit/codegen/table.h"
#include "loop_ir/program.h"

namespace nestor::jit {

// A tensor in registers, while its scope is open.
struct TensorRegisters {
  TypedValue value;  // of a scalar
  Operand position;  // of an arg accumulator
  std::vector<Operand> tile;
  std::vector<Operand> columns;  // of the tile as it is now; empty: not made yet
  int lanes = 1;                 // that it was declared for
};

class Tensors {
 public:
  // `homes`: by tensor. `layouts`: by argument, inputs first; empty: all compact.
  Tensors(const loop::Program& program, std::vector<Home> homes,
          const std::vector<Layout>& layouts);

  const Home& HomeOf(loop::TensorId tensor) const { return homes_[tensor.value]; }
  HomeKind KindOf(loop::TensorId tensor) const { return HomeOf(tensor).kind; }
  bool AreRegisters(loop::TensorId tensor) const;
  // For addresses.
  const std::vector<TensorPlace>& places() const { return places_; }

  // REQUIRES: AreRegisters(tensor); the scope that declares it is open.
  TensorRegisters& Registers(loop::TensorId tensor) { return registers_[tensor.value]; }
  // Subscripts that load the scalar find it in this register.
  void SetScalar(loop::TensorId tensor, Operand scalar) { places_[tensor.value].scalar = scalar; }

 private:
  std::vector<Home> homes_;  // all three by tensor
  std::vector<TensorPlace> places_;
  std::vector<TensorRegisters> registers_;
};

}  // namespace nestor::jit

#endif  // NESTOR_JIT_CODEGEN_TRANSLATE_TENSORS_H_
