// Which scalar ops have one result, to the bit, in `fast` mode, too (SEMANTICS 5).
#ifndef NESTOR_UOPS_SCALAR_ROUNDING_H_
#define NESTOR_UOPS_SCALAR_ROUNDING_H_

#include "uops/scalar_op.h"

namespace nestor {

// Where a float has been rounded so often on its way, how depends on the program around: a product
// and a sum may be fused, sums may be taken in another order.
inline constexpr int kManyRoundings = 2;

// How often the op, of floats, rounds: 0 where its result is exact, 1 where it is the exact result
// rounded to the nearest; else kManyRoundings, as for a quotient, which may be a product with the
// reciprocal. A value through which at most one rounding goes has the same bits wherever it is
// computed.
inline int RoundingsOf(ScalarOp op) {
  switch (op) {
    case ScalarOp::kAbs:
    case ScalarOp::kCeil:
    case ScalarOp::kClamp:
    case ScalarOp::kCopy:
    case ScalarOp::kFloor:
    case ScalarOp::kFromBits:
    case ScalarOp::kMax:
    case ScalarOp::kMin:
    case ScalarOp::kNeg:
    case ScalarOp::kRelu:
    case ScalarOp::kRelu6:
    case ScalarOp::kRound:
    case ScalarOp::kSelect:
    case ScalarOp::kSign:
    case ScalarOp::kTrunc: return 0;
    case ScalarOp::kAdd:
    case ScalarOp::kCast:
    case ScalarOp::kFma:
    case ScalarOp::kMul:
    case ScalarOp::kMulz:
    case ScalarOp::kSqrt:
    case ScalarOp::kSquare:
    case ScalarOp::kSub: return 1;
    default: return kManyRoundings;
  }
}

}  // namespace nestor

#endif  // NESTOR_UOPS_SCALAR_ROUNDING_H_
