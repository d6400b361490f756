// Every row of the table, by its results for operands that are close to each other.
#include "uops/operand_use.h"

#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "uops/scalar_body.h"

namespace nestor {
namespace {

std::string Text(OperandUse use) {
  return use.steps ? use.passes ? "both" : "steps" : use.passes ? "passes" : "neither";
}

std::string UsesOf(ScalarOp op, DType operand, DType target) {
  std::string text;
  for (int i = 0; i < Row(op).arity; ++i)
    absl::StrAppend(&text, i == 0 ? "" : " ", Text(UseOf(op, operand, target, i)));
  return text;
}

TEST(OperandUse, Rows) {
  const struct {
    ScalarOp op;
    DType operand, target;
    const char* uses;
  } kCases[] = {
      {ScalarOp::kAdd, DType::kF32, DType::kF32, "passes passes"},
      {ScalarOp::kFma, DType::kF64, DType::kF64, "passes passes passes"},
      {ScalarOp::kMax, DType::kF32, DType::kF32, "passes passes"},
      {ScalarOp::kRelu, DType::kF32, DType::kF32, "passes"},
      {ScalarOp::kSelect, DType::kF32, DType::kF32, "neither passes passes"},
      {ScalarOp::kFloor, DType::kBF16, DType::kBF16, "steps"},
      {ScalarOp::kLt, DType::kF32, DType::kBool, "steps steps"},
      {ScalarOp::kLt, DType::kI32, DType::kBool, "neither neither"},
      {ScalarOp::kCast, DType::kF32, DType::kI32, "steps"},
      {ScalarOp::kCast, DType::kF32, DType::kBool, "steps"},
      {ScalarOp::kCast, DType::kF64, DType::kF16, "passes"},
      {ScalarOp::kCast, DType::kI64, DType::kF32, "neither"},
      {ScalarOp::kToBits, DType::kF32, DType::kI32, "steps"},
      {ScalarOp::kFromBits, DType::kI32, DType::kF32, "neither"},
      // Rows that are decided by their bodies.
      {ScalarOp::kFloorDiv, DType::kF32, DType::kF32, "steps steps"},
      {ScalarOp::kFloorDiv, DType::kI64, DType::kI64, "neither neither"},
      {ScalarOp::kMod, DType::kF32, DType::kF32, "both both"},
      {ScalarOp::kMulz, DType::kF32, DType::kF32, "both both"},
      {ScalarOp::kRecip, DType::kF32, DType::kF32, "passes"},
      {ScalarOp::kGelu, DType::kF16, DType::kF16, "passes"},
      // A transcendental only passes on.
      {ScalarOp::kExp, DType::kF32, DType::kF32, "passes"},
      {ScalarOp::kPow, DType::kF64, DType::kF64, "passes passes"},
  };
  for (const auto& c : kCases) {
    EXPECT_EQ(UsesOf(c.op, c.operand, c.target), c.uses)
        << Row(c.op).name << " of " << Name(c.operand);
  }
}

double Apply(ScalarOp op, double x) {
  const Bits operand = ToBits(x);
  return FromBits<double>(FunctionOf(op, DType::kF64, DType::kF64)(&operand));
}

// Whether neighbours around some half of an integer have results far apart; infinities
// of a pole are no jump.
bool Jumps(ScalarOp op) {
  for (double half = -8; half <= 8; ++half) {
    const double x = half / 2, low = Apply(op, std::nextafter(x, -1e9)),
                 high = Apply(op, std::nextafter(x, 1e9));
    const bool ordinary = std::fabs(low) < 1e9 && std::fabs(high) < 1e9;
    if (ordinary && std::fabs(high - low) > 0.25) return true;
  }
  return false;
}

// The trait is where a row of one float jumps, and nowhere else: a new row that truncates
// cannot come without it.
TEST(OperandUse, UnaryRowsThatJumpAreSteps) {
  int steps = 0;
  for (const ScalarOpRow& row : AllScalarOps()) {
    if (row.arity != 1 || row.result != ResultType::kSame || !Accepts(row.operands, DType::kF64))
      continue;
    const OperandUse use = UseOf(row.op, DType::kF64, DType::kF64, 0);
    EXPECT_EQ(use.steps, Jumps(row.op)) << row.name;
    EXPECT_NE(use.steps, use.passes) << row.name;
    steps += use.steps;
  }
  EXPECT_EQ(steps, 5);  // sign floor ceil round trunc
}

}  // namespace
}  // namespace nestor
