// Integer operations on edge values, with each operand in every place, against
// arithmetic of 128 bits; control; and the frame, called by a strict caller.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "jit/codegen/emit_testing.h"
#include "jit/codegen/registers.h"
#include "jit/runtime/abi_harness.h"
#include "uops/dtype.h"

namespace nestor::jit {
namespace {

using Int128 = __int128;

constexpr int64_t kMin = std::numeric_limits<int64_t>::min(),
                  kMax = std::numeric_limits<int64_t>::max();
constexpr int64_t kValues[] = {
    0,     1,       -1,         2,           7,    -7,   64,       int64_t{1} << 31,
    -8192, 1 << 20, 2147483647, -2147483649, 1000, kMin, kMin + 1, kMax};
constexpr Opcode kBinary[] = {Opcode::kAddG,         Opcode::kSubG,     Opcode::kMulG,
                              Opcode::kMinG,         Opcode::kMaxG,     Opcode::kAndG,
                              Opcode::kOrG,          Opcode::kXorG,     Opcode::kFloorDivG,
                              Opcode::kFloorModG,    Opcode::kCompareG, Opcode::kAddOverflowsG,
                              Opcode::kMulOverflowsG};
class EmitGeneralTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!Runs(Isa::kAvx2)) GTEST_SKIP() << "this CPU lacks AVX2, FMA, F16C or BMI2";
  }
};

constexpr Stand kStands[] = {Stand::kRegister, Stand::kResult, Stand::kConstant, Stand::kStack,
                             Stand::kTable};

Operand Register(int r) { return Operand::Register(r); }
Operand Immediate(int64_t v) { return Operand::Immediate(v); }

Operation General(Opcode opcode, int result, Operand a = {}, Operand b = {}) {
  Operation op{opcode, Lane::kI64};
  if (result >= 0) op.result = Register(result);
  op.operands[0] = a;
  op.operands[1] = b;
  return op;
}
Operation Control(Opcode opcode, int64_t label) {
  Operation op{opcode};
  op.immediate = label;
  return op;
}
Operation JumpIf(Opcode opcode, Condition condition, Operand a, Operand b, int64_t label) {
  Operation op = General(opcode, -1, a, b);
  op.condition = condition;
  op.immediate = label;
  return op;
}

bool Holds(int64_t condition, int64_t a, int64_t b) {
  switch (static_cast<Condition>(condition)) {
    case Condition::kEqual: return a == b;
    case Condition::kNotEqual: return a != b;
    case Condition::kLess: return a < b;
    case Condition::kLessEqual: return a <= b;
    case Condition::kGreater: return a > b;
    case Condition::kGreaterEqual: return a >= b;
    case Condition::kBelow: return static_cast<uint64_t>(a) < static_cast<uint64_t>(b);
  }
  return false;
}

Int128 FloorDivide(Int128 a, Int128 b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }
bool Overflows(Int128 v) { return v < kMin || v > kMax; }

int64_t Expected(Opcode opcode, int64_t condition, int64_t x, int64_t y) {
  const Int128 a = x, b = y;
  switch (opcode) {
    case Opcode::kAddG: return static_cast<int64_t>(a + b);
    case Opcode::kSubG: return static_cast<int64_t>(a - b);
    case Opcode::kMulG: return static_cast<int64_t>(a * b);
    case Opcode::kMinG: return std::min(x, y);
    case Opcode::kMaxG: return std::max(x, y);
    case Opcode::kAndG: return x & y;
    case Opcode::kOrG: return x | y;
    case Opcode::kXorG: return x ^ y;
    case Opcode::kFloorDivG: return static_cast<int64_t>(FloorDivide(a, b));
    case Opcode::kFloorModG: return static_cast<int64_t>(a - FloorDivide(a, b) * b);
    case Opcode::kCompareG: return Holds(condition, x, y);
    case Opcode::kAddOverflowsG: return Overflows(a + b);
    case Opcode::kMulOverflowsG: return Overflows(a * b);
    default: ADD_FAILURE() << Info(opcode).name; return 0;
  }
}

// Puts operand i, the value of slot i of the table, in its place.
Operand PlaceOperand(TestFunction& f, int i, Stand stand, int64_t value, int result) {
  const Operand table = Operand::Table(i);
  switch (stand) {
    case Stand::kRegister: f.MoveG(Register(9 + i), table); return Register(9 + i);
    case Stand::kResult: f.MoveG(Register(result), table); return Register(result);
    case Stand::kConstant: return Immediate(value);
    case Stand::kStack: {
      const Operand slot = f.NewSlot(8);
      f.MoveG(slot, table);
      return slot;
    }
    default: return table;
  }
}

struct Places {
  Stand a, b;
  int64_t x, y;
  std::string Describe(Opcode opcode) const {
    return absl::StrCat(Info(opcode).name, " of ", x, " in ", Name(a), " and ", y, " in ", Name(b));
  }
};

// Runs all pairs of places, and of values that they can have.
template <class Do>
void ForEachPlaces(Do doit) {
  for (const Stand a : kStands) {
    for (const Stand b : kStands) {
      for (const int64_t x : kValues) {
        for (const int64_t y : kValues) {
          if (a == Stand::kResult && b == Stand::kResult && x != y) continue;
          doit(Places{a, b, x, y});
        }
      }
    }
  }
}

// Whether the values are part of the code.
bool IsInCode(const Places& p) { return p.a == Stand::kConstant || p.b == Stand::kConstant; }

// The function returns the result, and stores to slot 2 of the table what the registers of the
// operands hold then.
MachineCode BinaryFunction(Opcode opcode, int64_t condition, const Places& p) {
  constexpr int kResult = 11;
  TestFunction f(Isa::kAvx2);
  const Operand x = PlaceOperand(f, 0, p.a, p.x, kResult),
                y = PlaceOperand(f, 1, p.b, p.y, kResult);
  Operation op = General(opcode, kResult, x, y);
  op.immediate = condition;
  f.Add(op);
  f.MoveG(Register(8), Operand::Table(2));
  for (int i = 0; i < 2; ++i) {
    Operation vector{Opcode::kBroadcastGeneral, Lane::kI64},
        store{Opcode::kStore, Lane::kI64, 1, DType::kI64};
    vector.result = store.operands[0] = Register(0);
    vector.operands[0] = Register(9 + i);
    store.memory = {Register(8), {}, 1, 8 * i};
    f.Add(vector);
    f.Add(store);
  }
  f.Return(Register(kResult));
  return f.Encode();
}

void TestBinary(Opcode opcode, int64_t condition) {
  MachineCode code;
  Places made{};
  ForEachPlaces([&](const Places& p) {
    const bool divides = opcode == Opcode::kFloorDivG || opcode == Opcode::kFloorModG;
    if (::testing::Test::HasFailure() || (p.y == 0 && divides)) return;
    if (code.bytes.empty() || IsInCode(p) || made.a != p.a || made.b != p.b) {
      code = BinaryFunction(opcode, condition, p);
      made = p;
    }
    int64_t operands[2];
    const int64_t result = Sealed(code)({p.x, p.y, reinterpret_cast<int64_t>(operands)});
    EXPECT_EQ(result, Expected(opcode, condition, p.x, p.y))
        << p.Describe(opcode) << ", condition " << condition;
    EXPECT_TRUE(p.a != Stand::kRegister || operands[0] == p.x)
        << p.Describe(opcode) << " changes its operand";
    EXPECT_TRUE(p.b != Stand::kRegister || operands[1] == p.y)
        << p.Describe(opcode) << " changes its operand";
  });
}

TEST_F(EmitGeneralTest, Binary) {
  for (const Opcode opcode : kBinary) {
    for (int64_t condition = 0; condition < (opcode == Opcode::kCompareG ? 6 : 1); ++condition) {
      TestBinary(opcode, condition);
    }
  }
}

TEST_F(EmitGeneralTest, Moves) {
  for (const Stand from : {Stand::kRegister, Stand::kConstant, Stand::kStack, Stand::kTable}) {
    for (const bool to_stack : {false, true}) {
      for (const int64_t value : kValues) {
        TestFunction f(Isa::kAvx2);
        const Operand a = PlaceOperand(f, 0, from, value, 11);
        const Operand to = to_stack ? f.NewSlot(8) : Register(14);
        f.MoveG(to, a);
        f.Return(to);
        EXPECT_EQ(Sealed(f.Encode())({value}), value)
            << Name(from) << (to_stack ? " to the stack" : "");
      }
    }
  }
}

TEST_F(EmitGeneralTest, ReturnsWhatStandsAnywhere) {
  for (const Stand from : {Stand::kRegister, Stand::kConstant, Stand::kStack, Stand::kTable}) {
    for (const int64_t value : kValues) {
      TestFunction f(Isa::kAvx2);
      f.Return(PlaceOperand(f, 0, from, value, 11));
      EXPECT_EQ(Sealed(f.Encode())({value}), value) << Name(from);
    }
  }
}

TEST_F(EmitGeneralTest, LoadsAndAddresses) {
  const struct {
    DType type;
    uint64_t bits;
    int64_t want;
  } kCases[] = {
      {DType::kBool, 0xffffffffffffff01, 1},         {DType::kU8, 0xfffffffffffffffe, 254},
      {DType::kI8, 0x00000000000000fe, -2},          {DType::kI32, 0x00000000fffffffd, -3},
      {DType::kU16, 0xfffffffffffffffe, 0xfffe},     {DType::kI16, 0x000000000000fffe, -2},
      {DType::kU32, 0xfffffffffffffffd, 0xfffffffd}, {DType::kI64, 0x8000000000000001, kMin + 1},
      {DType::kU64, 0x8000000000000001, kMin + 1}};
  for (const auto& c : kCases) {
    for (const bool indexed : {false, true}) {
      TestFunction f(Isa::kAvx2);
      Operation load = General(Opcode::kLoadG, 13);
      load.type = c.type;
      f.MoveG(Register(13), Operand::Table(0));
      f.MoveG(Register(12), Immediate(3));
      load.memory =
          indexed ? Memory{Register(13), Register(12), 8, -24} : Memory{Register(13), {}, 1, 0};
      f.Add(load);
      Operation address = General(Opcode::kAddressG, 14);
      address.memory = {Register(12), Register(12), 4, 100};
      f.Add(address);
      f.Add(General(Opcode::kMulG, 14, Register(14), Register(13)));
      f.Return(Register(14));
      EXPECT_EQ(Sealed(f.Encode())({reinterpret_cast<int64_t>(&c.bits)}),
                Expected(Opcode::kMulG, 0, c.want, 115))
          << Name(c.type);
    }
  }
}

TEST_F(EmitGeneralTest, LaneOfAVector) {
  for (const bool spilled : {false, true}) {
    for (const DType type : {DType::kI32, DType::kU32, DType::kI64, DType::kU64}) {
      const Lane lane = LaneOf(type);
      const int64_t whole[8] = {-5};
      TestFunction f(Isa::kAvx2);
      f.LoadWhole(4, 0);
      Operation move{Opcode::kMove, Lane::kI64, 4};
      move.operands[0] = Register(4);
      move.result = spilled ? f.NewSlot(32) : Register(9);
      f.Add(move);
      Operation get{Opcode::kLaneG, lane};
      get.type = type;
      get.operands[0] = move.result;
      get.result = Register(15);
      f.Add(get);
      f.Return(Register(15));
      EXPECT_EQ(Sealed(f.Encode())({reinterpret_cast<int64_t>(whole)}),
                type == DType::kU32 ? int64_t{0xfffffffb} : -5);
    }
  }
}

// ---- Control.

TEST_F(EmitGeneralTest, BranchesOnEveryConditionFromEveryPlace) {
  for (int64_t condition = 0; condition < 7; ++condition) {
    ForEachPlaces([&](const Places& p) {
      if (HasFailure() || p.a == Stand::kResult || p.b == Stand::kResult) return;
      TestFunction f(Isa::kAvx2);
      f.list().labels = 1;
      const Operand x = PlaceOperand(f, 0, p.a, p.x, 11), y = PlaceOperand(f, 1, p.b, p.y, 11);
      f.Add(JumpIf(Opcode::kBranch, static_cast<Condition>(condition), x, y, 0));
      f.Return(Immediate(0));
      f.Add(Control(Opcode::kLabel, 0));
      f.Return(Immediate(1));
      EXPECT_EQ(Sealed(f.Encode())({p.x, p.y}), Holds(condition, p.x, p.y))
          << p.Describe(Opcode::kBranch) << condition;
    });
  }
}

// The sum of i * j over i < table[0], j < i.
TEST_F(EmitGeneralTest, NestedLoopsAndJumps) {
  TestFunction f(Isa::kAvx2);
  f.list().labels = 5;
  const int sum = 3, i = 12, j = 13, product = 14;
  f.MoveG(Register(sum), Immediate(0));
  f.MoveG(Register(i), Immediate(0));
  f.Add(JumpIf(Opcode::kBranch, Condition::kGreaterEqual, Register(i), Operand::Table(0), 3));
  f.Add(Control(Opcode::kLoopBegin, 0));
  f.MoveG(Register(j), Immediate(0));
  f.Add(JumpIf(Opcode::kBranch, Condition::kLess, Register(j), Register(i), 2));
  f.Add(Control(Opcode::kJump, 1));
  f.Add(Control(Opcode::kLabel, 2));
  f.Add(Control(Opcode::kLoopBegin, 4));
  f.Add(General(Opcode::kMulG, product, Register(i), Register(j)));
  f.Add(General(Opcode::kAddG, sum, Register(product), Register(sum)));
  f.Add(General(Opcode::kAddG, j, Register(j), Immediate(1)));
  f.Add(JumpIf(Opcode::kLoopEnd, Condition::kLess, Register(j), Register(i), 4));
  f.Add(Control(Opcode::kLabel, 1));
  f.Add(General(Opcode::kAddG, i, Register(i), Immediate(1)));
  f.Add(JumpIf(Opcode::kLoopEnd, Condition::kLess, Register(i), Operand::Table(0), 0));
  f.Add(Control(Opcode::kLabel, 3));
  f.Return(Register(sum));
  const Sealed function(f.Encode());
  for (int64_t n = 0; n < 20; ++n) {
    int64_t want = 0;
    for (int64_t a = 0; a < n; ++a) {
      for (int64_t b = 0; b < a; ++b) want += a * b;
    }
    EXPECT_EQ(function({n}), want) << n;
  }
}

// ---- The frame.

// Fills every register of the file and as many slots, so that all must be saved.
void UseEverything(TestFunction& f, bool vectors) {
  const RegisterFile file = RegistersOf(f.isa());
  for (const int r : file.general) f.MoveG(Register(r), Immediate(r));
  for (int i = 0; i < 5; ++i) f.MoveG(f.NewSlot(8), Register(file.general[i]));
  if (!vectors) return;
  for (const int v : file.vector) {
    Operation ones{Opcode::kBroadcastGeneral, Lane::kI64,
                   static_cast<uint8_t>(VectorBytes(f.isa()) / 8)};
    ones.operands[0] = Immediate(-1);
    ones.result = Register(v);
    f.Add(ones);
    Operation spill{Opcode::kMove, Lane::kI64, ones.lanes};
    spill.operands[0] = ones.result;
    spill.result = f.NewSlot(VectorBytes(f.isa()));
    f.Add(spill);
  }
}

TEST_F(EmitGeneralTest, KeepsWhatACallerTrusts) {
  const int64_t table[] = {41};
  for (const IsaFacts& set : kIsas) {
    const Isa isa = set.isa;
    for (const bool everything : {false, true}) {
      for (const bool vectors : {false, true}) {
        for (const bool parameters : {false, true}) {
          SCOPED_TRACE(absl::StrCat(Name(isa), everything, vectors, parameters));
          TestFunction f(isa);
          if (everything) UseEverything(f, vectors);
          f.MoveG(Register(9), Operand::Table(0));
          for (int i = 0; i < 3 && parameters; ++i) {
            Operation parameter = General(Opcode::kParameterG, 6);
            parameter.immediate = i;
            f.Add(parameter);
            f.Add(General(Opcode::kMulG, 6, Register(6), Immediate(int64_t{1} << (10 * (i + 1)))));
            f.Add(General(Opcode::kAddG, 9, Register(9), Register(6)));
          }
          f.Return(Register(9));
          const MachineCode code = f.Encode();
          if (!Runs(isa)) continue;
          const Sealed function(code);
          const absl::StatusOr<int64_t> result =
              CallCheckingAbi(function.function(), table, 1, 2, 3);
          ASSERT_TRUE(result.ok()) << result.status();
          EXPECT_EQ(*result, 41 + (parameters ? (1 << 10) + (2 << 20) + (int64_t{3} << 30) : 0));
        }
      }
    }
  }
}

// Frames are aligned whatever rsp was. Each call adds the low bits of the frame's address to what
// it finds.
TEST_F(EmitGeneralTest, AlignsFramesThatHoldVectors) {
  int64_t bits = 0;
  TestFunction f(Isa::kAvx2);
  f.NewSlot(32);
  Operation frame = General(Opcode::kAddressG, 9), load = General(Opcode::kLoadG, 10);
  frame.memory.base = Register(kStackRegister);
  load.type = DType::kI64;
  load.memory.base = Register(11);
  f.MoveG(Register(11), Operand::Table(0));
  f.Add(frame);
  f.Add(load);
  f.Add(General(Opcode::kAndG, 9, Register(9), Immediate(63)));
  f.Add(General(Opcode::kOrG, 9, Register(9), Register(10)));
  Operation vector{Opcode::kBroadcastGeneral, Lane::kI64},
      store{Opcode::kStore, Lane::kI64, 1, DType::kI64};
  vector.result = store.operands[0] = Register(0);
  vector.operands[0] = Register(9);
  store.memory = load.memory;
  f.Add(vector);
  f.Add(store);
  f.Return(Immediate(0));
  const int64_t table[] = {reinterpret_cast<int64_t>(&bits)};
  ASSERT_TRUE(CallCheckingAbi(Sealed(f.Encode()).function(), table, 0, 0, 0).ok());
  EXPECT_EQ(bits, 0);
}

TEST_F(EmitGeneralTest, TellsStatements) {
  TestFunction f(Isa::kAvx2);
  const int32_t statements[] = {-1, 4, 4, -1, 2};
  for (const int32_t statement : statements) {
    Operation op = General(Opcode::kMoveG, 9, Immediate(1));
    op.statement = statement;
    f.Add(op);
  }
  f.Return(Register(9));
  const MachineCode code = f.Encode();
  std::vector<int32_t> order;
  for (size_t i = 0; i < code.statements.size(); ++i) {
    order.push_back(code.statements[i].second);
    EXPECT_TRUE(i == 0 || code.statements[i - 1].first < code.statements[i].first);
  }
  EXPECT_EQ(order, (std::vector<int32_t>{4, -1, 2, -1}));
}

// Wide constants are aligned to their width, whatever precedes them.
TEST_F(EmitGeneralTest, ConstantsStandBehindTheCode) {
  TestFunction f(Isa::kAvx512);
  for (int i = 0; i < 5; ++i)
    f.list().constants.push_back({Lane::kI32, static_cast<uint64_t>(i + 1), 0});
  for (int i = 0; i < 5; ++i) {
    constexpr uint8_t kLanes[] = {4, 8, 16, 4, 8};
    Operation op{Opcode::kMove, Lane::kI32, kLanes[i]};
    // The first one has two widths; the last one is not used.
    op.operands[0] = Operand::Constant(i % 4);
    op.result = Register(i);
    f.Add(op);
  }
  f.Return(Immediate(0));
  const MachineCode code = f.Encode();
  const size_t begin = (static_cast<size_t>(code.code_bytes) + 63) / 64 * 64;
  const uint8_t constants[] = {3, 1, 2, 4};  // the widest first
  const size_t sizes[] = {64, 32, 32, 16};
  ASSERT_EQ(code.bytes.size(), begin + 144);
  size_t at = begin;
  for (size_t i = 0; i < std::size(constants); ++i) {
    EXPECT_EQ(code.bytes[at], constants[i]);
    EXPECT_EQ(at % sizes[i], 0u);
    at += sizes[i];
  }
}

TEST_F(EmitGeneralTest, TooMuchCodeIsAStatus) {
  OperationList list(Isa::kAvx2);
  Allocated allocated;
  Operation op = General(Opcode::kMoveG, 9, Immediate(kMax));  // 10 bytes
  allocated.operations.assign(1700000, op);
  const absl::StatusOr<MachineCode> code = Emit(list, allocated, CodeBuffer());
  EXPECT_EQ(code.status().code(), absl::StatusCode::kResourceExhausted) << code.status();
}

// An operation may need much more code than most.
TEST_F(EmitGeneralTest, CodeGrows) {
  TestFunction f(Isa::kAvx512);
  for (int i = 0; i < 20; ++i)
    f.list().constants.push_back({Lane::kI32, static_cast<uint64_t>(i), 1});
  Operation gather{Opcode::kLoadStridedPartial, Lane::kI32, 16, DType::kI32};
  gather.operands[0] = Operand::Table(0);
  gather.operands[2] = Operand::Table(1);
  gather.memory = {Register(12), Register(13), 8, 1 << 20};
  gather.result = Register(20);
  for (int i = 0; i < 50; ++i) f.Add(gather);
  f.Return(Immediate(0));
  EXPECT_GT(f.Encode().bytes.size(), 50u * 300);
}

// The time for a function as long as a large kernel's is printed, since machines differ.
TEST_F(EmitGeneralTest, TimeToEmit) {
  OperationList list(Isa::kAvx2);
  list.labels = 100;
  list.constants.assign(20, {Lane::kF32, 1, 0});
  Allocated allocated;
  for (int i = 0; i < 100; ++i) {
    allocated.operations.push_back(Control(Opcode::kLoopBegin, i));
    for (int k = 0; k < 8; ++k) {
      Operation op{k < 2   ? Opcode::kLoad
                   : k < 7 ? Opcode::kFma
                           : Opcode::kStore,
                   Lane::kF32, 8, DType::kF32};
      op.memory = {Register(8), Register(9), 4, 32 * k};
      op.result = Register(k);
      for (int j = 0; j < 3; ++j) op.operands[j] = Register(k + j);
      if (k == 3 || k == 4) op.operands[2] = Operand::Constant((i + k) % 20);
      allocated.operations.push_back(op);
    }
    allocated.operations.push_back(
        JumpIf(Opcode::kLoopEnd, Condition::kLess, Register(9), Immediate(100), i));
  }
  const CodeBuffer buffer;
  double best = 1e9;
  for (int repeat = 0; repeat < 20; ++repeat) {
    const auto begin = std::chrono::steady_clock::now();
    ASSERT_TRUE(Emit(list, allocated, buffer).ok());
    const std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - begin;
    best = std::min(best, time.count());
  }
  std::printf("%zu operations: %.0f us\n", allocated.operations.size(), best);
  EXPECT_LT(best, 20000);
}

}  // namespace
}  // namespace nestor::jit
