// Scalar ops in executable form: a primitive's reference, or a body compiled into a straight line
// of steps. One value at a time; the oracle's arithmetic.
#ifndef NESTOR_UOPS_SCALAR_BODY_H_
#define NESTOR_UOPS_SCALAR_BODY_H_

#include <memory>
#include <vector>

#include "uops/dtype.h"
#include "uops/scalar_op.h"

namespace nestor {

struct ScalarBody;

// How to compute `op` on operands of a type: exactly one of the two is set.
// Copyable; the body lives as long as the process.
struct ScalarFunction {
  PrimitiveFunction primitive = nullptr;
  const ScalarBody* body = nullptr;

  Bits operator()(const Bits* operands) const;
};

// A straight line: step i computes register first_step + i from earlier ones.
struct ScalarBody {
  struct Step {
    ScalarFunction function;
    int args[3];
    // `function` is FunctionOf(op, operand, target).
    ScalarOp op;
    DType operand, target;
  };
  int arity;
  std::vector<Bits> constants;  // registers arity .. arity + constants.size()
  std::vector<DType> constant_types;
  std::vector<Step> steps;
  int result;  // a register
};

// `operand` is the type of the operands (for a select: of the branches), `target` that of
// the result. REQUIRES: the row takes `operand`. Bodies are compiled at first use and
// kept; thread-safe.
ScalarFunction FunctionOf(ScalarOp op, DType operand, DType target,
                          BodyForm form = BodyForm::kFactors);

}  // namespace nestor

#endif  // NESTOR_UOPS_SCALAR_BODY_H_
