// Expansions of the scalar ops into low-level operations, which give in each lane what the
// interpreter gives: primitives by a table with one expansion per row of scalar_ops.inc, so that a
// primitive without one does not compile; composed rows and transcendentals by their bodies.
#ifndef NESTOR_JIT_CODEGEN_SCALAR_ROWS_H_
#define NESTOR_JIT_CODEGEN_SCALAR_ROWS_H_

#include <cstdint>
#include <initializer_list>

#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "jit/codegen/operations.h"
#include "uops/dtype.h"
#include "uops/scalar_op.h"

namespace nestor::jit {

// A value of an element type in registers. Integers narrower than their lanes are extended by their
// own signedness, so that lanes compare as signed numbers except unsigned ones that fill their
// lanes; narrow floats are held as the f32 of the same value; a bool is a mask. Any NaN stands for
// the one NaN; for an f16, the upper half of its bits is a NaN, too, and for a bf16 the lower half
// is 0, as for its numbers.
struct TypedValue {
  DType type;
  Operand operand;          // a vector register or constant; for a bool a mask register
  int mask_lane_bytes = 0;  // for a bool: the width of the lanes that the mask is for
};

// Appends to `list`, working on `lanes` lanes. Any operand may be a constant: it is moved to a
// register if the operation cannot take it. `narrow_bytes`: 1 or 2 if all values are booleans or
// integers of that width, in lanes of that width; else kLeastLaneBytes.
class ValueBuilder {
 public:
  ValueBuilder(OperationList& list, int lanes, int narrow_bytes = kLeastLaneBytes)
      : list_(list), lanes_(lanes), narrow_bytes_(narrow_bytes) {}
  OperationList& list() { return list_; }
  Isa isa() const { return list_.isa; }
  // Whether the instruction set has the operation.
  bool Has(Opcode opcode, Lane lane) const { return HasOperation(isa(), opcode, lane); }
  int lanes() const { return lanes_; }
  // The lanes that values of the type are in.
  Lane LaneOf(DType type) const { return jit::LaneOf(type, narrow_bytes_); }

  // ---- One operation each; the result is a new register.
  Operand Vector(Opcode opcode, Lane lane, absl::Span<const Operand> operands,
                 int64_t immediate = 0);
  Operand Vector(Opcode opcode, Lane lane, std::initializer_list<Operand> operands,
                 int64_t immediate = 0);
  Operand Mask(Opcode opcode, Lane lane, std::initializer_list<Operand> operands,
               int64_t immediate = 0);
  Operand General(Opcode opcode, std::initializer_list<Operand> operands, int64_t immediate = 0);

  // ---- Constants, the same in every lane.
  TypedValue Constant(const Scalar& value);  // for bool it is a mask register
  Operand ConstantOf(Lane lane, uint64_t bits);
  Operand FloatOf(Lane lane, double value);
  // The bits of a constant that is the same in every lane.
  absl::optional<uint64_t> KnownBits(Operand operand) const;

  // ---- Masks
  TypedValue Compare(Predicate predicate, Lane lane, Operand a, Operand b);
  // kMaskAnd, kMaskOr, kMaskXor or kMaskAndNot, for the lanes of a.
  TypedValue Combine(Opcode opcode, const TypedValue& a, const TypedValue& b);
  TypedValue Not(const TypedValue& mask);
  // `mask` for lanes of that width.
  Operand MaskFor(const TypedValue& mask, int lane_bytes);
  // 0 or -1 in lanes of that width.
  Operand LanesOf(const TypedValue& mask, int lane_bytes);
  // mask ? b : c
  Operand Select(const TypedValue& mask, Lane lane, Operand b, Operand c);

 private:
  Operand Append(Opcode opcode, Lane lane, absl::Span<const Operand> operands, int64_t immediate,
                 Operand result);

  OperationList& list_;
  int lanes_, narrow_bytes_;
};

// The result of `op`; `target` is its type. REQUIRES: the row takes the arguments, and `builder`
// has no more lanes than the widest lane that LaneBytesOf names allows.
TypedValue ApplyScalarOp(ValueBuilder& builder, ScalarOp op, absl::Span<const TypedValue> args,
                         DType target);

// The value of `type` that lanes hold after an operation on them: narrow floats are rounded, and
// only the low bits of narrow integers count.
TypedValue Narrowed(ValueBuilder& builder, DType type, Operand lanes);
// The same for floats that are not NaN, or a NaN passed on from values of the type, or the NaN that
// arithmetic makes.
TypedValue NarrowedOwn(ValueBuilder& builder, DType type, Operand lanes);

// Conversions between memory and registers: from the result of Load for an element of `type` to a
// value, and from a value to the operand of Store (a bool in memory is any byte but 0, and written
// as 1).
TypedValue FromLoaded(ValueBuilder& builder, DType type, Operand loaded);
Operand ToStored(ValueBuilder& builder, const TypedValue& value);

}  // namespace nestor::jit

#endif  // NESTOR_JIT_CODEGEN_SCALAR_ROWS_H_
