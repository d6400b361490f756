#include "jit/codegen/operand_constraints.h"

#include <string>

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
    {"v1 = add.f32x8 v0, v1", -1},
    {"v1 = add.f32x8 v0, stack[0]", 1},
    {"v1 = add.f32x8 stack[0], v0", -1},
    {"v1 = add.f32x8 stack[0], stack[32]", 1},
    {"v1 = add.f32x8 stack[0], c0", -1},
    {"v1 = add.f32x8 c0, stack[0]", -1},
    {"v1 = sub.f32x8 v0, stack[0]", 1},
    {"v1 = mul.f32x8 v0, stack[0]", 1},
    {"v1 = mul_u32.i64x4 v0, stack[0]", 1},
    {"v1 = div.f32x8 v0, stack[0]", 1},
    {"v1 = min_x86.f32x8 v0, stack[0]", 1},
    {"v1 = max_x86.f32x8 v0, stack[0]", 1},
    {"v1 = and.f32x8 v0, stack[0]", 1},
    {"v1 = or.f32x8 v0, stack[0]", 1},
    {"v1 = xor.f32x8 v0, stack[0]", 1},
    {"v1 = andnot.f32x8 v0, stack[0]", 1},
    {"v1 = unpack_low.f32x8 v0, stack[0]", 1},
    {"v1 = unpack_high.f32x8 v0, stack[0]", 1},
    {"v1 = fma.f32x8 v0, v0, stack[0]", 2},
    {"v1 = fma.f32x8 stack[0], v0, v1", -1},
    {"v1 = fma.f32x8 v0, stack[0], c0", -1},
    {"v1 = fma.f32x8 v0, c0, stack[0]", -1},
    {"v1 = sqrt.f32x8 stack[0]", 0},
    {"v1 = round.f32x8 floor stack[0]", 0},
    {"v1 = convert.f32x8 from i32 stack[0]", 0},
    {"v1 = convert.f64x4 from i32 stack[0]", -1},
    {"v1 = convert.i32x4 from f64 stack[0]", -1},
    {"v1 = move.f32x8 stack[0]", 0},
    {"v1 = shl.i32x8 stack[0], 3", -1},
    {"v1 = shl_by.i32x8 v0, stack[0]", -1},
    {"v1 = broadcast.f32x8 stack[0]", -1},
    {"v1 = permute_128.f32x8 v0, stack[0], 1", -1},
    {"v2 = compare.f32x8 less v0, stack[0]", 1},
    {"v2 = compare.f32x8 less stack[0], v0", -1},
    {"v2 = blend.f32x8 v0, v1, stack[0]", 2},
    {"v2 = blend.f32x8 v0, stack[0], v1", -1},
    {"v2 = blend.f32x8 stack[0], v0, v1", -1},
    {"v2 = mask_and.i32x8 v0, stack[0]", -1},
    {"v2 = mask_move.i32x8 stack[0]", 0},
    {"store.f32x8 f32 [g0], stack[0]", -1},
    {"v1 = broadcast_g.i32x8 stack[0]", -1},
    {"v1 = load_strided.f32x8 f32 [g0], stack[0]", -1},
    {"g1 = move_g stack[0]", 0},
    {"g1 = add_g stack[0], g0", 0},
    {"g1 = add_g g0, stack[0]", 1},
    {"g1 = add_g stack[0], stack[8]", 1},
    {"g1 = sub_g stack[0], table[2]", 0},
    {"g1 = mul_g g0, stack[0]", 1},
    {"g1 = min_g stack[0], 7", 0},
    {"g1 = max_g stack[0], g0", 0},
    {"g1 = and_g stack[0], g0", 0},
    {"g1 = or_g stack[0], g0", 0},
    {"g1 = xor_g stack[0], g0", 0},
    {"g1 = compare_g less stack[0], g0", 0},
    {"g1 = floordiv_g g0, stack[0]", -1},
    {"g1 = floormod_g stack[0], g0", -1},
    {"g1 = add_overflows_g g0, stack[0]", -1},
    {"g1 = mul_overflows_g g0, stack[0]", -1},
    {"branch less stack[0], g0, L0", 0},
    {"loop_end less g0, stack[0], L0", 1},
    {"return stack[0]", -1},
};

TEST(OperandConstraints, WhichOperandMayStayOnTheStack) {
  for (const Case& c : kCases) {
    EXPECT_EQ(StackOperandOf(ParseOperations(c.operation, Isa::kAvx2).operations[0]), c.operand)
        << c.operation;
  }
}

TEST(OperandConstraints, WhichWriteEarly) {
  std::string early;
  for (int i = 0; i < kNumOpcodes; ++i) {
    if (WritesResultEarly(static_cast<Opcode>(i)))
      early += std::string(Info(static_cast<Opcode>(i)).name) + " ";
  }
  EXPECT_EQ(
      early,
      "mask_widen mask_narrow load_strided load_strided_partial min_g max_g floordiv_g floormod_g compare_g "
      "add_overflows_g mul_overflows_g ");
}

}  // namespace
}  // namespace nestor::jit
