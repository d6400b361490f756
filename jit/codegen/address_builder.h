// Affine index expressions and addresses on top of frames: each is computed in the outermost frame
// that knows the loop indices in it, and only once there. An address is kept per loop as a pointer
// that runs with the loop's index, so that an inner loop neither multiplies nor divides.
#ifndef NESTOR_JIT_CODEGEN_ADDRESS_BUILDER_H_
#define NESTOR_JIT_CODEGEN_ADDRESS_BUILDER_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "jit/codegen/address_sums.h"
#include "jit/codegen/frames.h"
#include "jit/codegen/table.h"
#include "loop_ir/program.h"

namespace nestor::jit {

class AddressBuilder : public Frames {
 public:
  // REQUIRES: the arguments outlive this. Adds expressions to the program's pool.
  AddressBuilder(loop::Program& program, Table& table, const std::vector<TensorPlace>& places,
                 Isa isa)
      : Frames(isa), program_(program), table_(table), places_(places),
        sums_(program, table, places) {}

  // REQUIRES: `e` is affine, without loads; see index_expr.h.
  Operand Index(IndexId e);
  // The operand that holds a loop index now, and the offset to add to it.
  std::pair<Operand, int64_t> Var(int64_t var) const;
  // The innermost frame that knows an index of `e`; 0: none.
  int FrameOf(IndexId e) const;

  // Whether addresses follow `e` by strides (AddressSums).
  bool IsFollowed(IndexId e) { return sums_.IsFollowed(e); }
  // The address of the element. `computed` has numbers for the axes that are not followed.
  Memory Address(loop::TensorId tensor, const IndexList& place,
                 absl::Span<const ComputedPlace> computed);
  Memory Address(loop::TensorId tensor, const IndexList& place) {
    return Address(tensor, place, {});
  }
  // The distance in bytes from one value of `var` to the next: a constant, or a slot.
  Operand Stride(loop::TensorId tensor, const IndexList& place, int32_t var);

 protected:
  // The opcode of an operation on index expressions, and the condition if it is a comparison.
  static Opcode OpcodeOf(IndexKind kind);
  static Condition ConditionOf(IndexKind kind);

  loop::Program& program_;
  Table& table_;
  const std::vector<TensorPlace>& places_;

 private:
  Operand Compute(IndexId e, int depth);  // in the frame that FrameOf gives
  Operand BaseOf(loop::TensorId tensor);
  int NearDepth() const;
  // A summand of an address: its atom, as often as the coefficient says.
  struct Step {
    const AddressSummand* summand;
    int depth;                      // of the frame that knows the atom
    absl::optional<int64_t> times;  // the atom, if it is a number there
  };
  using Steps = absl::InlinedVector<Step, 8>;
  Steps StepsOf(AddressSummands& summands);  // from the outside in
  absl::optional<int64_t> KnownTimes(const AddressSummand& summand, int depth) const;
  static void AddUp(Steps& steps);
  Operand PointerAt(Operand pointer, const Step& step, Memory& memory, bool last, bool keeps_index);
  Operand RunningPointer(int depth, Operand pointer, const AddressSummand& summand);

  AddressSums sums_;
};

}  // namespace nestor::jit

#endif  // NESTOR_JIT_CODEGEN_ADDRESS_BUILDER_H_
