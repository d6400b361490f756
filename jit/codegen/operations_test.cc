// The table of operations, the pool, and the text of lists.
#include "jit/codegen/operations.h"

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "jit/codegen/operations_testing.h"
#include "uops/dtype.h"

namespace nestor::jit {
namespace {

TEST(Operations, EveryRowStandsAtItsOpcodeUnderItsOwnName) {
  std::set<std::string> names;
  for (int i = 0; i < kNumOpcodes; ++i) {
    const auto opcode = static_cast<Opcode>(i);
    EXPECT_EQ(Info(opcode).opcode, opcode);
    EXPECT_TRUE(names.insert(std::string(Info(opcode).name)).second) << Info(opcode).name;
  }
  EXPECT_EQ(Info(Opcode::kFma).operands[2], RegisterClass::kVector);
  EXPECT_EQ(Info(Opcode::kStorePartial).operands[1], RegisterClass::kMask);
  EXPECT_EQ(Info(Opcode::kReturn).result, RegisterClass::kNone);
}

TEST(Operations, LanesOfElementTypes) {
  const std::pair<DType, Lane> cases[] = {
      {DType::kBool, Lane::kI32}, {DType::kU8, Lane::kI32},  {DType::kI8, Lane::kI32},
      {DType::kI32, Lane::kI32},  {DType::kI64, Lane::kI64}, {DType::kBF16, Lane::kF32},
      {DType::kF16, Lane::kF32},  {DType::kF32, Lane::kF32}, {DType::kF64, Lane::kF64},
  };
  for (const auto& [type, lane] : cases) EXPECT_EQ(LaneOf(type), lane) << Name(type);
  EXPECT_EQ(LaneOf(DType::kU8, 1), Lane::kI8);
  EXPECT_EQ(LaneOf(DType::kI16, 2), Lane::kI16);
  EXPECT_EQ(LaneOf(DType::kBool, 2), Lane::kI16);
}

TEST(Operations, BytesOfOperandsAndResults) {
  struct Case {
    const char* operation;
    std::vector<int> operands;
    int result;
  };
  const Case cases[] = {
      {"v1 = add.f32x8 v0, v0", {32, 32}, 32},
      {"v1 = add.f64x8 v0, v0", {64, 64}, 64},
      {"v1 = add.f32x1 v0, v0", {16, 16}, 16},
      {"v1 = convert.f32x8 from i32 v0", {32}, 32},
      {"v1 = convert.f32x16 from i32 v0", {64}, 64},
      {"v1 = convert.f64x8 from i32 v0", {32}, 64},
      {"v1 = convert.f64x2 from f32 v0", {16}, 16},
      {"v1 = convert.i32x8 from f64 v0", {64}, 32},
      {"v1 = broadcast.f32x8 v0", {16}, 32},
      {"m1 = compare.f64x4 less v0, v0", {32, 32}, 32},
      {"m1 = mask_widen.i32x4 m0", {16}, 32},
      {"m1 = mask_narrow.i64x4 m0", {32}, 16},
      {"v1 = load.f64x4 f64 [g0]", {}, 32},
      {"store.i32x8 u8 [g0], v0", {32}, 0},
      {"store.i8x64 u8 [g0], v0", {64}, 0},
      {"v1 = load.i16x8 i16 [g0]", {}, 16},
      {"v1 = load.i32x8 i16 [g0]", {}, 32},
      {"store_partial.f64x8 f64 [g0], v0, m0, g0", {64, 64}, 0},
  };
  for (const Case& c : cases) {
    const Operation op = ParseOperations(c.operation, Isa::kAvx512).operations[0];
    for (size_t i = 0; i < c.operands.size(); ++i) {
      EXPECT_EQ(OperandBytes(op, static_cast<int>(i)), c.operands[i])
          << c.operation << ", operand " << i;
    }
    EXPECT_TRUE(c.result == 0 || c.result == ResultBytes(op))
        << c.operation << ": " << ResultBytes(op);
  }
}

TEST(Operations, EqualConstantsAreShared) {
  struct Case {
    PoolConstant constant;
    int64_t number;
  };
  const Case cases[] = {
      {{Lane::kF32, 0x3f800000}, 0},    {{Lane::kI32, 0x3f800000}, 0},  // the same bits
      {{Lane::kI64, 0x3f800000}, 1},                                    // in wider lanes
      {{Lane::kI32, 0x3f800000, 1}, 2}, {{Lane::kI32, ~uint64_t{0}}, 3},
      {{Lane::kF32, 0xffffffff}, 3},  // -1 is 32 bits wide there
      {{Lane::kI64, ~uint64_t{0}}, 4},  {{Lane::kI32, 0, ~uint64_t{0}}, 5},
      {{Lane::kI32, 0, 0xffffffff}, 5}, {{Lane::kF32, 0x3f800000}, 0},
  };
  OperationList list(Isa::kAvx2);
  for (const Case& c : cases) EXPECT_EQ(list.AddConstant(c.constant), Operand::Constant(c.number));
  EXPECT_EQ(list.constants.size(), 6u);
}

TEST(Operations, MasksHaveRegistersOfTheirOwnOnAvx512) {
  OperationList avx2(Isa::kAvx2), avx512(Isa::kAvx512);
  avx2.NewMask();
  avx512.NewMask();
  EXPECT_EQ(avx2.classes[0], RegisterClass::kVector);
  EXPECT_EQ(avx512.classes[0], RegisterClass::kMask);
}

constexpr char kText[] =
    R"(c0 = f32 0x3f800000
c1 = i64 0x0 + lane * 0x8
g0 = parameter_g 1
g1 = load_g u8 [g0 + 3]
g9 = address_g [g0 + g1 * 8 - 16]
g2 = move_g table[4]
loop_begin L0
  v3 = load.f32x8 bf16 [g0 + g2 * 2 + 64]
  m4 = compare.f32x8 less_equal v3, c0
  m5 = mask_of_count.i32x8 g2
  branch greater_equal g1, -7, L1
  loop_begin L2
    v6 = fma.f32x8 v3, v3, stack[64]
    v6 = blend.f32x8 m4, v6, c0
  loop_end not_equal g1, g2, L2
  label L1
  v7 = convert.f64x4 from i32 v6
  v7 = round.f64x4 truncate v7
  v7 = shl.i64x4 v7, 12
  v7 = load_partial.f64x4 f64 [g0], m5, g2
  store_strided.f64x4 f64 [g9], v7, g1
  g8 = compare_g less g1, table[0]
  g8 = lane_g.i64x1 v7
  jump L3
  label L3
loop_end less g2, stack[0], L0
return g8
)";

TEST(Operations, TextIsReadBackAndPrintedTheSame) {
  const OperationList list = ParseOperations(kText, Isa::kAvx512);
  EXPECT_EQ(ToString(list), kText);
  EXPECT_EQ(list.labels, 4);
  EXPECT_EQ(list.constants[1].step, 8u);
  const Operation& load = list.operations[5];
  EXPECT_EQ(load.opcode, Opcode::kLoad);
  EXPECT_EQ(load.memory.scale, 2);
  EXPECT_EQ(load.memory.displacement, 64);
  EXPECT_EQ(load.type, DType::kBF16);
}

TEST(Operations, TextOfRandomListsIsReadBack) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    for (const Isa isa : {Isa::kAvx2, Isa::kAvx512}) {
      const std::string text = ToString(RandomOperations({isa, seed, 5, 5, 5, 200}));
      EXPECT_EQ(ToString(ParseOperations(text, isa)), text) << "seed " << seed;
    }
  }
}

TEST(Operations, MasksAreVectorsInTheTextOfAvx2) {
  const OperationList list =
      ParseOperations("v1 = load.f32x8 f32 [g0]\nv2 = compare.f32x8 less v1, v1\n", Isa::kAvx2);
  EXPECT_EQ(ToString(list, list.operations[1]), "v2 = compare.f32x8 less v1, v1");
}

}  // namespace
}  // namespace nestor::jit
