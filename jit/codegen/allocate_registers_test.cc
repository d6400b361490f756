// Lists are run before and after allocation: the stored values and their places must be the same.
#include "jit/codegen/allocate_registers.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "gtest/gtest.h"
#include "jit/codegen/operand_constraints.h"
#include "jit/codegen/operations.h"
#include "jit/codegen/operations_testing.h"
#include "jit/codegen/registers.h"

namespace nestor::jit {
namespace {

constexpr RegisterClass kClasses[] = {RegisterClass::kVector, RegisterClass::kMask,
                                      RegisterClass::kGeneral};

RegisterClass OnMachine(RegisterClass place, Isa isa) {
  return place == RegisterClass::kMask ? ClassOfMasks(isa) : place;
}

// The fewest registers that are allowed.
RegisterFile SmallFile(Isa isa) {
  RegisterFile file = RegistersOf(isa);
  file.vector.resize(8);
  file.general.resize(8);
  if (isa == Isa::kAvx512) file.mask.resize(4);
  return file;
}

// ---- The errors in an allocation; empty if there are none.

std::string ShapeError(const Operation& op, const RegisterFile& file, Isa isa) {
  const OpcodeInfo& info = Info(op.opcode);
  const auto in_file = [&](const Operand& operand, RegisterClass place) {
    const std::vector<int>& registers = file.Of(OnMachine(place, isa));
    return !operand.is_register() ||
           std::find(registers.begin(), registers.end(), operand.value) != registers.end();
  };
  for (int i = 0; i < 3; ++i) {
    if (!in_file(op.operands[i], info.operands[i])) return "a register that is not in the file";
    if (op.operands[i].kind == Operand::kStack && StackOperandOf(op) != i)
      return "an operand that must be loaded";
  }
  if (!in_file(op.result, info.result)) return "a register that is not in the file";
  if (op.result.kind == Operand::kStack &&
      (!Info(op.opcode).Is(kIsMove) || !op.operands[0].is_register())) {
    return "a result that must be stored";
  }
  for (const Operand& operand : {op.memory.base, op.memory.index}) {
    if (operand.kind == Operand::kStack) return "an address in memory";
    if (!in_file(operand, RegisterClass::kGeneral)) return "a register that is not in the file";
  }
  return "";
}

std::string ErrorOf(const OperationList& list, const RegisterFile& file,
                    const Allocated& allocated) {
  for (const Operation& op : allocated.operations) {
    const std::string error = ShapeError(op, file, list.isa);
    if (!error.empty()) return absl::StrCat(error, ": ", ToString(list, op));
  }
  if (allocated.frame_bytes % 64 != 0) return "a frame that is not aligned";
  const MixedRun before = RunMixing(list),
                 after = RunMixing(list.isa, allocated.operations, allocated.frame_bytes);
  if (!before.error.empty()) return "the list itself " + before.error;
  if (!after.error.empty()) return after.error;
  return before.trace == after.trace ? "" : "stores something else";
}

// The list itself stays as it is.
Allocated Allocate(OperationList list, const RegisterFile& file) {
  return AllocateRegisters(list, file);
}

std::string TextOf(const OperationList& list, const Allocated& allocated) {
  OperationList after(list.isa);
  after.operations = allocated.operations;
  after.constants = list.constants;
  return ToString(after);
}

void ExpectRight(const OperationList& list, const RegisterFile& file, const Allocated& allocated) {
  const std::string error = ErrorOf(list, file, allocated);
  if (!error.empty())
    FAIL() << error << "\n" << ToString(list) << "is allocated as\n" << TextOf(list, allocated);
}

// How many operands and results of a class are in memory.
int InMemory(const Allocated& allocated, RegisterClass c, Isa isa) {
  int count = 0;
  for (const Operation& op : allocated.operations) {
    const OpcodeInfo& info = Info(op.opcode);
    count += op.result.kind == Operand::kStack && OnMachine(info.result, isa) == c;
    for (int i = 0; i < 3; ++i) {
      count += op.operands[i].kind == Operand::kStack && OnMachine(info.operands[i], isa) == c;
    }
  }
  return count;
}

// ---- Live ranges

struct RangeCase {
  const char* what;
  const char* text;
  const char* ranges;  // register, first and last operation, weight
};
const RangeCase kRangeCases[] = {
    {"to the last use",
     R"(g0 = parameter_g 0
        v1 = load.f32x8 f32 [g0]
        v2 = add.f32x8 v1, v1
        store.f32x8 f32 [g0], v2
        return 0)",
     "g0 0-3 3, v1 1-2 3, v2 2-3 2"},
    {"base and index are uses",
     R"(g0 = parameter_g 0
        g1 = parameter_g 1
        v2 = load.f32x8 f32 [g0 + g1 * 4 + 8]
        store.f32x8 f32 [g0 + g1 * 4], v2)",
     "g0 0-3 3, g1 1-3 3, v2 2-3 2"},
    {"one that nothing reads",
     R"(g0 = parameter_g 0
        g1 = move_g g0
        return g0)",
     "g0 0-2 3, g1 1-1 1"},
    {"a redefinition lengthens a range",
     R"(g0 = move_g 1
        g0 = add_g g0, 2
        return 0
        g0 = move_g 5)",
     "g0 0-3 4"},
    {"what enters a loop lives to its end",
     R"(g0 = move_g 0
        g1 = move_g 7
        loop_begin L0
          g2 = add_g g1, 1
          g0 = add_g g0, 1
        loop_end less g0, 9, L0
        return g0)",
     "g0 0-6 26, g1 1-5 9, g2 3-3 8"},
    {"what a loop writes first does not live around it",
     R"(g0 = move_g 0
        loop_begin L0
          g1 = move_g 1
          g2 = add_g g1, 1
          g0 = add_g g0, g2
        loop_end less g0, 9, L0
        return g2)",
     "g0 0-5 25, g1 2-3 16, g2 3-6 17"},
    {"to the end of the outermost loop that it enters",
     R"(g0 = move_g 0
        loop_begin L0
          g1 = move_g 0
          loop_begin L1
            loop_begin L2
              g1 = add_g g1, g0
            loop_end less g1, 9, L2
            g3 = move_g g1
          loop_end less g1, 9, L1
          g4 = move_g 0
        loop_end less g4, 9, L0
        return 0)",
     "g0 0-10 513, g1 2-8 1672, g3 7-7 64, g4 9-10 16"},
    {"a second loop that a range enters",
     R"(g0 = move_g 0
        loop_begin L0
          g1 = add_g g0, 1
        loop_end less g1, 9, L0
        loop_begin L1
          g2 = add_g g0, 1
          g3 = move_g g2
        loop_end less g2, 9, L1
        return 0)",
     "g0 0-7 17, g1 2-3 16, g2 5-7 24, g3 6-6 8"},
    {"a use behind the loops that it entered",
     R"(g0 = move_g 0
        loop_begin L0
          g1 = add_g g0, 1
        loop_end less g1, 9, L0
        return g0)",
     "g0 0-4 10, g1 2-3 16"},
    {"both arms write",
     R"(g0 = parameter_g 0
        branch less g0, 5, L0
        g1 = move_g 1
        jump L1
        label L0
        g1 = move_g 2
        label L1
        return g1)",
     "g0 0-1 2, g1 2-7 3"},
};

TEST(LiveRanges, Table) {
  for (const RangeCase& c : kRangeCases) {
    const OperationList list = ParseOperations(c.text, Isa::kAvx2);
    std::string text;
    for (const LiveRange& range : LiveRangesOf(list)) {
      absl::StrAppend(&text, text.empty() ? "" : ", ",
                      list.classes[range.reg] == RegisterClass::kVector ? "v" : "g", range.reg, " ",
                      range.begin, "-", range.end, " ", range.weight);
    }
    EXPECT_EQ(text, c.ranges) << c.what;
  }
}

// ---- Allocation in text

struct TextCase {
  const char* what;
  const char* before;
  const char* after;
};
const TextCase kTextCases[] = {
    {"in the file's order; a result takes the register of an operand that ends",
     R"(c0 = f32 0x1
        g0 = parameter_g 0
        v1 = load.f32x8 f32 [g0]
        v2 = load.f32x8 f32 [g0 + 32]
        v3 = add.f32x8 v1, v2
        v4 = mul.f32x8 v1, c0
        v4 = fma.f32x8 v3, v4, v2
        store.f32x8 f32 [g0], v4
        return 0)",
     R"(c0 = f32 0x1
g1 = parameter_g 0
v0 = load.f32x8 f32 [g1]
v1 = load.f32x8 f32 [g1 + 32]
v2 = add.f32x8 v0, v1
v0 = mul.f32x8 v0, c0
v0 = fma.f32x8 v2, v0, v1
store.f32x8 f32 [g1], v0
return 0
)"},
    {"but not where the result is written early",
     R"(g0 = parameter_g 0
        g1 = parameter_g 1
        g2 = min_g g0, g1
        g3 = add_g g2, 1
        return g3)",
     R"(g1 = parameter_g 0
g6 = parameter_g 1
g8 = min_g g1, g6
g8 = add_g g8, 1
return g8
)"},
    {"a mask is a vector on AVX2, and the result may share its register",
     R"(g0 = parameter_g 0
        v1 = load.f32x8 f32 [g0]
        v2 = compare.f32x8 less v1, v1
        v3 = mask_widen.f64x4 v2
        v4 = lanes_of_mask.i64x4 v3
        store.i64x4 i64 [g0], v4
        return 0)",
     R"(g1 = parameter_g 0
v0 = load.f32x8 f32 [g1]
v0 = compare.f32x8 less v0, v0
v1 = mask_widen.f64x4 v0
v1 = lanes_of_mask.i64x4 v1
store.i64x4 i64 [g1], v1
return 0
)"},
};

TEST(AllocateRegisters, TextTable) {
  for (const TextCase& c : kTextCases) {
    const OperationList list = ParseOperations(c.before, Isa::kAvx2);
    const Allocated allocated = Allocate(list, RegistersOf(Isa::kAvx2));
    EXPECT_EQ(TextOf(list, allocated), c.after) << c.what;
    EXPECT_EQ(allocated.frame_bytes, 0);
    EXPECT_EQ(allocated.spilled, 0);
  }
}

// Nine general registers live throughout and eight in the file: three are set aside,
// and four spilled, those that are used least.
TEST(AllocateRegisters, SpilledGeneralRegisters) {
  std::string text;
  for (int i = 0; i < 9; ++i) absl::StrAppend(&text, "g", i, " = parameter_g 0\n");
  text += "store_strided_partial.f32x8 f32 [g0 + g1 * 4 + 8], v9, g2, g3\n"
          "g0 = floordiv_g g1, g0\n"
          "g1 = add_g g2, g3\n"
          "g2 = mul_g g3, g3\n"
          "loop_begin L0\n  loop_end less g4, g5, L0\nloop_begin L1\n  loop_end less g6, g7, L1\n"
          "loop_begin L2\n  loop_end less g8, g8, L2\n";
  for (int i = 0; i < 9; ++i) absl::StrAppend(&text, "store.f32x8 f32 [g", i, "], v9\n");
  const OperationList list = ParseOperations("v9 = broadcast_g.f32x8 0\n" + text, Isa::kAvx2);
  const RegisterFile file = SmallFile(Isa::kAvx2);
  const Allocated allocated = Allocate(list, file);
  EXPECT_EQ(allocated.spilled, 4);
  EXPECT_EQ(allocated.frame_bytes, 64);
  const std::string after = TextOf(list, allocated);
  constexpr char kMiddle[] = "g5 = move_g stack[0]\n"
                             "g3 = move_g stack[8]\n"
                             "g5 = address_g [g5 + g3 * 4 + 8]\n"
                             "g3 = move_g stack[16]\n"
                             "g11 = move_g stack[24]\n"
                             "store_strided_partial.f32x8 f32 [g5], v0, g3, g11\n"
                             "g5 = move_g stack[8]\n"
                             "g3 = move_g stack[0]\n"
                             "g11 = floordiv_g g5, g3\n"
                             "stack[0] = move_g g11\n"
                             "g5 = move_g stack[16]\n"
                             "g5 = add_g g5, stack[24]\n"
                             "stack[8] = move_g g5\n"
                             "g5 = move_g stack[24]\n"
                             "g5 = mul_g g5, g5\n"
                             "stack[16] = move_g g5\n";
  EXPECT_NE(after.find(kMiddle), std::string::npos) << after;
}

// ---- Allocation of random lists

TEST(AllocateRegisters, RandomListsStoreTheSame) {
  int spilled = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    for (const Isa isa : {Isa::kAvx2, Isa::kAvx512}) {
      for (const int live : {2, 100}) {
        const OperationList list =
            RandomOperations({isa, seed, live, live, live, 40 + static_cast<int>(seed) * 2});
        for (const RegisterFile& file : {RegistersOf(isa), SmallFile(isa)}) {
          SCOPED_TRACE(absl::StrCat("seed ", seed, " ", Name(isa), " live ", live, " file ",
                                    file.vector.size()));
          const Allocated allocated = Allocate(list, file);
          ExpectRight(list, file, allocated);
          if (HasFatalFailure()) return;
          spilled += allocated.spilled;
        }
      }
    }
  }
  EXPECT_GT(spilled, 300 * 2 * 150);
}

TEST(AllocateRegisters, PressureInOneClassSpillsNoOther) {
  for (const Isa isa : {Isa::kAvx2, Isa::kAvx512}) {
    for (const RegisterClass c : kClasses) {
      if (isa == Isa::kAvx2 && c == RegisterClass::kMask) continue;
      RandomListOptions options{isa, 1, 1, 1, 1, 0};
      (c == RegisterClass::kVector ? options.live_vectors
       : c == RegisterClass::kMask ? options.live_masks
                                   : options.live_generals) = 100;
      const OperationList list = RandomOperations(options);
      const Allocated allocated = Allocate(list, RegistersOf(isa));
      ExpectRight(list, RegistersOf(isa), allocated);
      for (const RegisterClass other : kClasses) {
        EXPECT_EQ(InMemory(allocated, other, isa) > 0, other == c)
            << Name(isa) << static_cast<int>(c);
      }
    }
  }
}

TEST(AllocateRegisters, WhatIsUsedInnermostStaysInRegisters) {
  std::string text = "g0 = parameter_g 0\ng1 = move_g 0\n";
  // Five accumulators, defined last, and twenty others that the outer loop reads.
  for (int i = 10; i < 35; ++i)
    absl::StrAppend(&text, "v", i, " = load.f32x8 f32 [g0 + ", i, "]\n");
  text += "loop_begin L0\n  g2 = move_g 0\n  loop_begin L1\n";
  for (int i = 30; i < 35; ++i)
    absl::StrAppend(&text, "v", i, " = add.f32x8 v", i, ", v", 30 + (i + 1) % 5, "\n");
  text += "    g2 = add_g g2, 1\n  loop_end less g2, 3, L1\n";
  for (int i = 10; i < 30; ++i) absl::StrAppend(&text, "store.f32x8 f32 [g0], v", i, "\n");
  text += "g1 = add_g g1, 1\nloop_end less g1, 2, L0\n";
  for (int i = 30; i < 35; ++i) absl::StrAppend(&text, "store.f32x8 f32 [g0], v", i, "\n");
  const OperationList list = ParseOperations(text, Isa::kAvx2);
  const RegisterFile file = SmallFile(Isa::kAvx2);
  const Allocated allocated = Allocate(list, file);
  ExpectRight(list, file, allocated);
  // Spilled values pass through one of the eight registers.
  EXPECT_EQ(allocated.spilled, 25 - 7);
  const std::string after = TextOf(list, allocated);
  const size_t inner = after.find("loop_begin L1");
  EXPECT_EQ(after.substr(inner, after.find("loop_end less", inner) - inner).find("stack"),
            std::string::npos)
      << after;
}

// A loop that needs every register keeps them, whatever is spilled after it.
TEST(AllocateRegisters, SpillsElsewhereTakeNoRegister) {
  const RegisterFile file = SmallFile(Isa::kAvx2);
  const int all = static_cast<int>(file.vector.size());
  std::string text = "g0 = parameter_g 0\ng1 = move_g 0\n";
  for (int i = 0; i < all; ++i)
    absl::StrAppend(&text, "v", 10 + i, " = load.f32x8 f32 [g0 + ", i, "]\n");
  text += "loop_begin L0\n";
  for (int i = 0; i < all; ++i)
    absl::StrAppend(&text, "v", 10 + i, " = add.f32x8 v", 10 + i, ", v", 10 + (i + 1) % all, "\n");
  text += "g1 = add_g g1, 1\nloop_end less g1, 3, L0\n";
  for (int i = 0; i < all; ++i) absl::StrAppend(&text, "store.f32x8 f32 [g0], v", 10 + i, "\n");
  for (int i = 0; i < 2 * all; ++i)
    absl::StrAppend(&text, "v", 100 + i, " = load.f32x8 f32 [g0 + ", i, "]\n");
  for (int i = 0; i < 2 * all; ++i)
    absl::StrAppend(&text, "store.f32x8 f32 [g0], v", 100 + i, "\n");
  const OperationList list = ParseOperations(text, Isa::kAvx2);
  const Allocated allocated = Allocate(list, file);
  ExpectRight(list, file, allocated);
  EXPECT_EQ(allocated.spilled, all + 1);  // all that overlap one, which spilled values pass through
  const std::string after = TextOf(list, allocated);
  EXPECT_EQ(after.substr(0, after.find("loop_end")).find("stack"), std::string::npos) << after;
}

// Values that do not live at the same time take the same slots.
TEST(AllocateRegisters, SlotsAreShared) {
  std::string text = "g0 = parameter_g 0\n";
  for (int phase = 0; phase < 5; ++phase) {
    for (int i = 0; i < 40; ++i)
      absl::StrAppend(&text, "v", 1 + phase * 40 + i, " = load.f32x8 f32 [g0 + ", i, "]\n");
    for (int i = 0; i < 40; ++i)
      absl::StrAppend(&text, "store.f32x8 f32 [g0], v", 1 + phase * 40 + i, "\n");
  }
  const OperationList list = ParseOperations(text, Isa::kAvx2);
  const Allocated allocated = Allocate(list, RegistersOf(Isa::kAvx2));
  ExpectRight(list, RegistersOf(Isa::kAvx2), allocated);
  EXPECT_EQ(allocated.spilled, 5 * (40 - 14));
  EXPECT_LE(allocated.frame_bytes, (40 - 14 + 1) * 32);
}

TEST(AllocateRegisters, EmptyList) {
  const Allocated allocated = Allocate(OperationList(Isa::kAvx512), RegistersOf(Isa::kAvx512));
  EXPECT_TRUE(allocated.operations.empty());
  EXPECT_EQ(allocated.frame_bytes, 0);
}

// The bound is far above the printed time, and only fails if time is not linear.
TEST(AllocateRegisters, Time) {
  for (const int live : {5, 100}) {
    for (const int operations : {1000, 10000}) {
      const OperationList list = RandomOperations({Isa::kAvx2, 3, live, live, live, operations});
      int spilled = 0;
      double best = 1e9;
      for (int i = 0; i < 50; ++i) {
        const auto start = std::chrono::steady_clock::now();
        spilled = Allocate(list, RegistersOf(Isa::kAvx2)).spilled;
        const std::chrono::duration<double, std::micro> time =
            std::chrono::steady_clock::now() - start;
        best = std::min(best, time.count());
      }
      std::cout << list.operations.size() << " operations, " << spilled << " spilled: " << best
                << " us\n";
      EXPECT_LT(best, 10.0 * list.operations.size());
    }
  }
}

}  // namespace
}  // namespace nestor::jit
