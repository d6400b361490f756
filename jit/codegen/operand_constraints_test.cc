// Operations as text, with the operand that may stay on the stack.
#include "jit/codegen/operand_constraints.h"

#include "gtest/gtest.h"
#include "jit/codegen/operations.h"
#include "jit/codegen/operations_testing.h"

namespace nestor::jit {
namespace {

struct Case {
  const char* operation;
  int operand;  // that may stay on the stack
};
const Case kCases[] = {
    {"v1 = add.f32x8 v0, v1", -1},           {"v1 = add.f32x8 v0, stack[0]", 1},
    {"v1 = add.f32x8 stack[0], v0", -1},     {"v1 = add.f32x8 stack[0], stack[32]", 1},
    {"v1 = add.f32x8 stack[0], c0", -1},     {"v1 = add.f32x8 c0, stack[0]", -1},
    {"v1 = fma.f32x8 v0, c0, stack[0]", -1}, {"v1 = convert.f64x4 from i32 stack[0]", -1},
    {"v1 = shl.i32x8 stack[0], 3", -1},      {"v2 = blend.f32x8 stack[0], v0, v1", -1},
    {"store.f32x8 f32 [g0], stack[0]", -1},  {"g1 = add_g stack[0], g0", 0},
    {"g1 = add_g g0, stack[0]", 1},          {"g1 = add_g stack[0], stack[8]", 1},
    {"g1 = sub_g stack[0], table[2]", 0},    {"g1 = floordiv_g g0, stack[0]", -1},
    {"loop_end less g0, stack[0], L0", 1},
};

TEST(OperandConstraints, WhichOperandMayStayOnTheStack) {
  for (const Case& c : kCases) {
    EXPECT_EQ(StackOperandOf(ParseOperations(c.operation, Isa::kAvx2).operations[0]), c.operand)
        << c.operation;
  }
}

}  // namespace
}  // namespace nestor::jit
