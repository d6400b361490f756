// Functions under construction: in which frame a computation lands, how often it is made, and how
// pointers run with loops.
#include "jit/codegen/function_builder.h"

#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "fusion/pass_testing.h"
#include "gtest/gtest.h"
#include "jit/codegen/operations.h"
#include "jit/codegen/table.h"
#include "jit/target/isa.h"
#include "loop_ir/program.h"

namespace nestor::jit {
namespace {

// Builds a function of two loops, i in [0, 8) around j in [2, 10) in steps of 4. Its table has a
// slot for each number that the code asks for, in the order in which it does.
class FunctionBuilderTest : public testing::Test {
 protected:
  FunctionBuilderTest()
      : program_(
            loop::ParseVerified("program f(x: f32[N, M], u: f32[8, 16]) -> (y: f32[N, M])"
                                " { for i in [0, N) { for j in [0, M) { y[i, j] = x[i, j] } } }")),
        places_(program_.tensors.size(), {TensorPlace::kTable, CompactLayout(2), {}}),
        f_(program_, table_, places_, kLeastIsa) {}

  IndexId Index(int var) { return program_.pool.Var(var); }
  IndexId I() { return Index(0); }
  IndexId J() { return Index(1); }
  IndexId Const(int64_t value) { return program_.pool.Const(value); }
  IndexId Symbol(const char* name) { return program_.pool.Symbol(name); }
  loop::TensorId x() const { return program_.inputs[0]; }
  loop::TensorId u() const { return program_.inputs[1]; }

  // The function with `body` in the inner loop.
  std::string InLoops(absl::FunctionRef<void()> body) {
    const auto loop = [&](int32_t var, int64_t begin, int64_t end, int64_t step,
                          absl::FunctionRef<void()> inside) {
      f_.OpenRegion();
      const Operand index = f_.General(Opcode::kMoveG, Immediate(begin));
      f_.OpenIteration(var, index, 0, step, Immediate(begin));
      inside();
      f_.CloseIteration(Immediate(end));
      f_.CloseRegion();
    };
    loop(0, 0, 8, 1, [&] { loop(1, 2, 10, 4, body); });
    return "\n" + ToString(f_.Finish());
  }

  // Reads the address, so that it is seen.
  void Use(const Memory& memory) {
    f_.General(Opcode::kAddressG, {});
    f_.list().operations.back().memory = memory;
  }

  loop::Program program_;
  Table table_;
  std::vector<TensorPlace> places_;
  FunctionBuilder f_;
};

TEST_F(FunctionBuilderTest, ComputesIndicesWhereTheyAreKnown) {
  IndexPool& pool = program_.pool;
  EXPECT_EQ(InLoops([&] {
              // Of i alone: before the loop over j; of both: inside. Twice: once.
              const IndexId row = pool.Mul(I(), Const(3)), both = pool.Add(row, J());
              for (int again = 0; again < 2; ++again) f_.General(Opcode::kMoveG, f_.Index(both));
              // Of sizes alone: a slot of the table.
              f_.General(Opcode::kMoveG, f_.Index(pool.Add(Symbol("N"), Const(1))));
            }),
            R"(
g0 = move_g 0
loop_begin L1
  g2 = mul_g 3, g0
  g1 = move_g 2
  loop_begin L0
    g3 = add_g g2, g1
    g4 = move_g g3
    g5 = move_g g3
    g6 = move_g table[0]
    g1 = add_g g1, 4
  loop_end less g1, 10, L0
  g0 = add_g g0, 1
loop_end less g0, 8, L1
)");
}

TEST_F(FunctionBuilderTest, DividesByNothingThatMayBeZero) {
  IndexPool& pool = program_.pool;
  EXPECT_EQ(InLoops([&] { f_.General(Opcode::kMoveG, f_.Index(pool.Div(I(), Symbol("M")))); }), R"(
g0 = move_g 0
loop_begin L1
  g2 = floordiv_g g0, table[1]
  g1 = move_g 2
  loop_begin L0
    g3 = move_g g2
    g1 = add_g g1, 4
  loop_end less g1, 10, L0
  g0 = add_g g0, 1
loop_end less g0, 8, L1
)");
  // The first slot is M itself.
  ASSERT_EQ(table_.slots.size(), 2u);
  EXPECT_EQ(table_.slots[1].kind, TableSlot::kDivisor);
}

TEST_F(FunctionBuilderTest, PointersRunWithLoops) {
  IndexPool& pool = program_.pool;
  EXPECT_EQ(InLoops([&] {
              // The row's pointer moves in the loop over i, the element is a scaled index; the next element
              // has the same pointer, the next row one more.
              Use(f_.Address(x(), {I(), J()}));
              Use(f_.Address(x(), {I(), pool.Add(J(), Const(1))}));
              Use(f_.Address(x(), {pool.Add(I(), Const(1)), J()}));
            }),
            R"(
g2 = move_g table[0]
g6 = add_g g2, table[1]
g3 = move_g g2
g7 = move_g g6
g0 = move_g 0
loop_begin L1
  g1 = move_g 2
  loop_begin L0
    g4 = address_g [g3 + g1 * 4]
    g5 = address_g [g3 + g1 * 4 + 4]
    g8 = address_g [g7 + g1 * 4]
    g1 = add_g g1, 4
  loop_end less g1, 10, L0
  g3 = add_g g3, table[1]
  g7 = add_g g7, table[1]
  g0 = add_g g0, 1
loop_end less g0, 8, L1
)");
}

// Rows 1 and 3 of a tile, and elements 0 and 1 of a window over rows, are 1, 3, 2 and 4 rows away:
// all have one pointer, and an index that is a multiple of the unknown distance.
TEST_F(FunctionBuilderTest, DistancesOfLoopsWrittenOutAddUp) {
  IndexPool& pool = program_.pool;
  EXPECT_EQ(InLoops([&] {
              for (int element = 0; element < 2; ++element) {
                f_.OpenIteration(2, Immediate(element), 0, 0, {});
                for (const int row : {1, 3}) {
                  f_.OpenIteration(3, Immediate(row), 0, 0, {});
                  Use(f_.Address(x(), {pool.Add(pool.Add(I(), Index(2)), Index(3)), J()}));
                  f_.CloseRegion();
                }
                f_.CloseRegion();
              }
            }),
            R"(
g2 = move_g table[0]
g3 = move_g g2
g6 = move_g table[1]
g8 = move_g table[2]
g0 = move_g 0
loop_begin L1
  g5 = mul_g 2, 4
  g4 = add_g g3, g5
  g1 = move_g 2
  loop_begin L0
    g7 = address_g [g4 + g6 * 1]
    g9 = address_g [g4 + g8 * 1]
    g10 = address_g [g4 + g6 * 2]
    g11 = address_g [g4 + g6 * 4]
    g4 = add_g g4, 16
    g1 = add_g g1, 4
  loop_end less g1, 10, L0
  g3 = add_g g3, table[1]
  g0 = add_g g0, 1
loop_end less g0, 8, L1
)");
}

TEST_F(FunctionBuilderTest, KnownStridesNeedNoTable) {
  EXPECT_EQ(InLoops([&] {
              Use(f_.Address(u(), {I(), J()}));
              Use(f_.Address(u(), {J(), I()}));
            }),
            R"(
g2 = move_g table[0]
g3 = move_g g2
g5 = move_g g2
g0 = move_g 0
loop_begin L1
  g7 = mul_g 2, 64
  g6 = add_g g5, g7
  g1 = move_g 2
  loop_begin L0
    g4 = address_g [g3 + g1 * 4]
    g8 = address_g [g6]
    g6 = add_g g6, 256
    g1 = add_g g1, 4
  loop_end less g1, 10, L0
  g3 = add_g g3, 64
  g5 = add_g g5, 4
  g0 = add_g g0, 1
loop_end less g0, 8, L1
)");
  EXPECT_EQ(table_.slots.size(), 1u);  // the address of u
}

TEST_F(FunctionBuilderTest, StridesOfPlaces) {
  IndexPool& pool = program_.pool;
  InLoops([&] {
    const IndexId twice = pool.Mul(I(), Const(2));
    EXPECT_EQ(f_.Stride(u(), {J(), I()}, 0), Immediate(4));
    EXPECT_EQ(f_.Stride(u(), {J(), I()}, 1), Immediate(64));
    EXPECT_EQ(f_.Stride(u(), {twice, I()}, 0), Immediate(132));
    EXPECT_EQ(f_.Stride(u(), {J(), J()}, 0), Immediate(0));
    EXPECT_EQ(f_.Stride(x(), {I(), J()}, 0).kind, Operand::kTable);
  });
}

TEST_F(FunctionBuilderTest, EqualOperationsOnEntryAreOne) {
  EXPECT_EQ(InLoops([&] {
              Operation load{Opcode::kLoadBroadcast};
              load.lane = Lane::kF32;
              load.lanes = 8;
              load.type = DType::kF32;
              load.memory = f_.Address(x(), {I(), Const(0)});
              const Operand first = f_.OnEntry(f_.FrameOf(I()), load);
              EXPECT_EQ(f_.OnEntry(f_.FrameOf(I()), load), first);
            }),
            R"(
g2 = move_g table[0]
g3 = move_g g2
g0 = move_g 0
loop_begin L1
  v4 = load_broadcast.f32x8 f32 [g3]
  g1 = move_g 2
  loop_begin L0
    g1 = add_g g1, 4
  loop_end less g1, 10, L0
  g3 = add_g g3, table[1]
  g0 = add_g g0, 1
loop_end less g0, 8, L1
)");
}

// A gathered index that is out of range gives 0, and says so.
TEST_F(FunctionBuilderTest, ChecksWhatMayHaveNoValue) {
  IndexPool& pool = program_.pool;
  EXPECT_EQ(InLoops([&] {
              const CheckedIndex product = f_.Checked(pool.Mul(I(), J()));
              f_.General(Opcode::kMoveG, f_.InRange(product, Symbol("N")));
            }),
            R"(
g0 = move_g 0
loop_begin L1
  g1 = move_g 2
  loop_begin L0
    g2 = mul_overflows_g g0, g1
    g3 = compare_g equal g2, 0
    g4 = mul_g g0, g1
    g5 = compare_g below g4, table[0]
    g6 = and_g g3, g5
    g7 = move_g g6
    g1 = add_g g1, 4
  loop_end less g1, 10, L0
  g0 = add_g g0, 1
loop_end less g0, 8, L1
)");
}

}  // namespace
}  // namespace nestor::jit
