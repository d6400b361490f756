// The expansions of the primitive rows of scalar_ops.inc, for use by scalar_rows.cc,
// which makes a table of them: Expand##Enumerator for each row.
#ifndef NESTOR_JIT_CODEGEN_SCALAR_ROWS_EXPANSIONS_H_
#define NESTOR_JIT_CODEGEN_SCALAR_ROWS_EXPANSIONS_H_

#include "absl/types/span.h"
#include "jit/codegen/operations.h"
#include "jit/codegen/scalar_rows.h"
#include "uops/dtype.h"

namespace nestor::jit {

// One use of a row: what to append to, what the row is applied to, and what it must give.
//
//   max(x, 0.0) of f32:  args = {x in a register, a constant}, target = f32
//
// A function gives in each lane what the interpreter gives for the row (uops/scalar_ops.inc), with
// values as TypedValue has them. It may append any number of operations and new registers, and must
// not write the registers of its operands.
struct Expansion {
  ValueBuilder& builder;
  absl::Span<const TypedValue> args;
  DType target;
  // In a transcendental's body: its result does not depend on which NaN it meets, and ldexp meets
  // no infinite second operand that matters.
  bool in_transcendental;

  DType type() const { return args.back().type; }  // of the operands; in a select, of the branches
  Lane lane() const { return builder.LaneOf(type()); }
  // The operands, of which there are as many as the row takes. In a select, a is the mask.
  Operand a() const { return args[0].operand; }
  Operand b() const { return args[1].operand; }
  Operand c() const { return args[2].operand; }
};

// ---- scalar_rows_arithmetic.cc: of floats and integers, which wrap
TypedValue ExpandNeg(const Expansion& x);
TypedValue ExpandAbs(const Expansion& x);
TypedValue ExpandSign(const Expansion& x);
TypedValue ExpandFloor(const Expansion& x);
TypedValue ExpandCeil(const Expansion& x);
TypedValue ExpandRound(const Expansion& x);
TypedValue ExpandTrunc(const Expansion& x);
TypedValue ExpandSqrt(const Expansion& x);
TypedValue ExpandAdd(const Expansion& x);
TypedValue ExpandSub(const Expansion& x);
TypedValue ExpandMul(const Expansion& x);
TypedValue ExpandDiv(const Expansion& x);
TypedValue ExpandFma(const Expansion& x);
TypedValue ExpandLdexp(const Expansion& x);
TypedValue ExpandMax(const Expansion& x);
TypedValue ExpandMin(const Expansion& x);

// ---- scalar_rows_division.cc; of integers
TypedValue ExpandFloorDiv(const Expansion& x);
TypedValue ExpandMod(const Expansion& x);

// ---- scalar_rows_bits.cc: comparisons and choices of any type, logic of bool and integers
TypedValue ExpandCopy(const Expansion& x);
TypedValue ExpandEq(const Expansion& x);
TypedValue ExpandNe(const Expansion& x);
TypedValue ExpandLt(const Expansion& x);
TypedValue ExpandLe(const Expansion& x);
TypedValue ExpandGt(const Expansion& x);
TypedValue ExpandGe(const Expansion& x);
TypedValue ExpandSelect(const Expansion& x);
TypedValue ExpandNot(const Expansion& x);
TypedValue ExpandAnd(const Expansion& x);
TypedValue ExpandOr(const Expansion& x);
TypedValue ExpandXor(const Expansion& x);
TypedValue ExpandShl(const Expansion& x);
TypedValue ExpandShr(const Expansion& x);
TypedValue ExpandPopcount(const Expansion& x);
TypedValue ExpandClz(const Expansion& x);
TypedValue ExpandDotHalves(const Expansion& x);
TypedValue ExpandIsNan(const Expansion& x);
TypedValue ExpandIsInf(const Expansion& x);
TypedValue ExpandToBits(const Expansion& x);
TypedValue ExpandFromBits(const Expansion& x);

// ---- scalar_rows_cast.cc: from x.type() to x.target
TypedValue ExpandCast(const Expansion& x);

// ---- Shared: scalar_rows_narrow.cc

// Makes 0 what must be 0 in a NaN (TypedValue), as in a number of the type. REQUIRES: float lanes.
Operand WithCleanNaN(ValueBuilder& builder, DType type, Operand lanes);
// An f64 rounded once to f32 or a narrower float.
TypedValue NarrowedF64(ValueBuilder& builder, DType type, Operand v);

// ---- Shared: scalar_rows_values.cc

// 0x80 .. 0 of the lane's width. Less 1 it is the mask of all other bits.
inline uint64_t SignBitOf(Lane lane) { return uint64_t{1} << (8 * LaneBytes(lane) - 1); }

// Whether the type's values fill such lanes and have no sign: lanes compare and convert as
// signed numbers.
inline bool FillsUnsigned(Lane lane, DType type) {
  return IsUnsigned(type) && ByteSize(type) == LaneBytes(lane);
}

// a < b, of an integer type.
TypedValue LessOfIntegers(ValueBuilder& builder, DType type, Operand a, Operand b);

// The floats of integers in lanes of 32 bits, each rounded once. `to`: a float lane.
Operand I32ToFloat(ValueBuilder& builder, DType from, Lane to, Operand v);
// An f64 as a u32. REQUIRES: it is a whole number in [0, 2^32), or the result does not matter.
Operand WholeToU32(ValueBuilder& builder, Operand whole);

// The low 64 bits of the product of lanes of 64 bits, which are the same for signed and unsigned.
Operand MulOfI64(ValueBuilder& builder, Operand x, Operand y);

}  // namespace nestor::jit

#endif  // NESTOR_JIT_CODEGEN_SCALAR_ROWS_EXPANSIONS_H_
