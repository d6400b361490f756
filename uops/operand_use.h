// How a small change of an operand affects a scalar op's result: it is passed on, or it decides
// a jump.
#ifndef NESTOR_UOPS_OPERAND_USE_H_
#define NESTOR_UOPS_OPERAND_USE_H_

#include "uops/dtype.h"
#include "uops/scalar_op.h"

namespace nestor {

// An operand may do both: in mod(a, b) = a - b * floor(a / b), a is a term and decides the floor.
// An operand that is not a float does neither: it changes by a jump or not at all.
struct OperandUse {
  // It reaches a discrete step of the row: floor, ceil, round, sign, a comparison, a
  // cast to an integer or bool.
  bool steps = false;
  // Its value passes on into a float result, other than through such a step.
  bool passes = false;
};

// Derived from the table: a row whose result is not a float is a step, as is one with the
// trait kStep; a composed row uses its operands as its body does. A transcendental
// passes on, and steps only by that trait (fmod): its stated error holds however its body
// computes it.
//
// `operand` and `target` as in FunctionOf (scalar_body.h). REQUIRES: the row takes
// `operand`; 0 <= index < its arity. Thread-safe.
OperandUse UseOf(ScalarOp op, DType operand, DType target, int index);

}  // namespace nestor

#endif  // NESTOR_UOPS_OPERAND_USE_H_
