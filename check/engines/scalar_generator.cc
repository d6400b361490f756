// Types that kernels use most are drawn most often. Some literals are values that engines easily
// get wrong: -0, NaN, a subnormal and the ends of a type's range. Every draw is a statement of its
// own, as in program_generator.cc: the order in which C++ evaluates operands is not fixed.
#include "check/engines/scalar_generator.h"

#include <cstdint>
#include <cstdlib>
#include <limits>

namespace nestor {
namespace {

// Rows without kinks and jumps, whose difference quotients converge.
constexpr ScalarOp kSmoothOps[] = {
    ScalarOp::kNeg,    ScalarOp::kSin,  ScalarOp::kCos,  ScalarOp::kTanh,    ScalarOp::kSigmoid,
    ScalarOp::kErf,    ScalarOp::kAdd,  ScalarOp::kSub,  ScalarOp::kMul,     ScalarOp::kFma,
    ScalarOp::kSquare, ScalarOp::kGelu, ScalarOp::kSilu, ScalarOp::kSoftplus};

}  // namespace

DType ScalarGenerator::FloatType() {
  if (options_.smooth) return random_.Pick({DType::kF64, DType::kF64, DType::kF32});
  return DrawFloatType(random_, {DType::kF32, DType::kF32, DType::kF32, DType::kF64});
}

DType ScalarGenerator::IndexType() {
  return random_.Chance(40) ? DType::kI64 : DrawIntegerType(random_);
}

DType ScalarGenerator::ValueType() {
  if (options_.floats_only || random_.Chance(55)) return FloatType();
  return random_.Chance(20) ? DType::kBool : IndexType();
}

Scalar ScalarGenerator::Literal(DType type) {
  if (type == DType::kBool) return Scalar::Of(type, random_.Chance(50));
  if (IsInteger(type)) {
    const int kind = static_cast<int>(random_.Below(20));
    if (kind == 0) return Lowest(type);
    if (kind == 1) return Highest(type);
    const int64_t value = random_.Between(-2, 4);
    return Scalar::Integer(type, IsUnsigned(type) ? std::abs(value) : value);
  }
  const int kind = static_cast<int>(random_.Below(options_.smooth ? 12 : 20));
  if (kind < 8) return Scalar::Float(type, static_cast<double>(random_.Between(-3, 3)));
  if (kind < 12) return Scalar::Float(type, static_cast<double>(random_.Between(-20, 20)) / 8);
  if (kind < 15) return Scalar::Float(type, 0.1 * static_cast<double>(random_.Between(-30, 30)));
  if (kind == 15) return Scalar::Float(type, -0.0);
  if (kind == 16) return Lowest(type);
  if (kind == 17) return Highest(type);
  if (kind == 18) return Scalar::Float(type, std::numeric_limits<double>::quiet_NaN());
  return Scalar::Float(type, 1e-41);
}

bool ScalarGenerator::Allowed(ScalarOp op) const {
  if (options_.smooth) {
    for (ScalarOp smooth : kSmoothOps) {
      if (op == smooth) return true;
    }
    return false;
  }
  if (!options_.floats_only || op == ScalarOp::kCast) return true;
  const ScalarOpRow& row = Row(op);
  return Accepts(row.operands, DType::kF32) &&
         (row.result == ResultType::kSame || row.result == ResultType::kChoice);
}

}  // namespace nestor
