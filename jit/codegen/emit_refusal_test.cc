// Nothing that an instruction set lacks can be encoded: every operation, with every kind of lanes,
// with more lanes than a register has, and with a register in each place that the set lacks.
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "jit/codegen/emit_testing.h"
#include "jit/codegen/operand_constraints.h"
#include "jit/codegen/operations.h"
#include "jit/codegen/registers.h"
#include "uops/dtype.h"

namespace nestor::jit {
namespace {

constexpr Lane kLanes[] = {Lane::kI8, Lane::kI16, Lane::kI32, Lane::kI64, Lane::kF32, Lane::kF64};

bool HasLanes(RegisterClass c) { return c == RegisterClass::kVector || c == RegisterClass::kMask; }

std::vector<Opcode> OpcodesWithLanes() {
  std::vector<Opcode> opcodes;
  for (int i = 0; i < kNumOpcodes; ++i) {
    const OpcodeInfo& info = Info(static_cast<Opcode>(i));
    bool has_lanes = HasLanes(info.result);
    for (const RegisterClass c : info.operands) has_lanes |= HasLanes(c);
    if (has_lanes) opcodes.push_back(info.opcode);
  }
  return opcodes;
}

// A register for every place of the operation; conversions are from i32.
Operation WithRegisters(Opcode opcode, Lane lane, int lanes) {
  Operation op{opcode, lane, static_cast<uint8_t>(lanes), MemoryType(lane)};
  const OpcodeInfo& info = Info(opcode);
  if (info.result != RegisterClass::kNone) op.result = Operand::Register(1);
  for (int i = 0; i < 3; ++i) {
    if (info.operands[i] != RegisterClass::kNone) op.operands[i] = Operand::Register(i + 1);
  }
  if (opcode >= Opcode::kLoad && opcode <= Opcode::kStoreStridedPartial)
    op.memory.base = Operand::Register(6);
  return op;
}

void Encode(Isa isa, const Operation& op) {
  TestFunction f(isa);
  f.Add(op);
  f.Encode();
}

// How many lanes fill a register; for conversions and masks, one of their widest lanes.
int MostLanes(const Operation& one_lane, Isa isa) {
  int bytes = LaneBytes(ResultLane(one_lane));
  for (int i = 0; i < 3; ++i) {
    if (HasLanes(Info(one_lane.opcode).operands[i]))
      bytes = std::max(bytes, LaneBytes(OperandLane(one_lane, i)));
  }
  return VectorBytes(isa) / bytes;
}

TEST(EmitRefusalTest, MoreLanesThanARegisterHas) {
  for (const IsaFacts& set : kIsas) {
    const Isa isa = set.isa;
    for (const Opcode opcode : OpcodesWithLanes()) {
      if (opcode == Opcode::kLaneG) continue;  // reads lane 0 alone
      for (const Lane lane : kLanes) {
        const int lanes = 2 * MostLanes(WithRegisters(opcode, lane, 1), isa);
        const Operation op = WithRegisters(opcode, lane, lanes);
        EXPECT_DEATH(Encode(isa, op),
                     absl::StrCat(Name(isa), ": a vector of ", 2 * VectorBytes(isa), " bytes in `"))
            << Info(opcode).name << ", lane kind " << static_cast<int>(lane);
      }
    }
  }
}

bool IsPartialAccess(Opcode opcode) {
  return opcode == Opcode::kLoadPartial || opcode == Opcode::kStorePartial;
}

// Puts register `number` in each place of class `c` in turn. `lane`: one that every opcode takes.
void ExpectRefused(Isa isa, Opcode opcode, RegisterClass c, int number, const std::string& said) {
  const bool integers = opcode == Opcode::kMulU32;
  const Operation op = WithRegisters(opcode, integers ? Lane::kI64 : Lane::kF32, integers ? 2 : 4);
  const auto on_machine = [&](RegisterClass place) {
    return place == RegisterClass::kMask ? ClassOfMasks(isa) : place;
  };
  const OpcodeInfo& info = Info(opcode);
  for (int i = -1; i < 3; ++i) {
    if (on_machine(i < 0 ? info.result : info.operands[i]) != c) continue;
    if (i >= 0 && info.operands[i] == RegisterClass::kMask && IsPartialAccess(opcode) &&
        !GoesByMask(op, isa))
      continue;
    Operation wrong = op;
    (i < 0 ? wrong.result : wrong.operands[i]) = Operand::Register(number);
    EXPECT_DEATH(Encode(isa, wrong), said) << info.name << ", place " << i;
  }
}

// Whether the operation has a single width, which need not be the one tested.
bool IsOfOneWidth(Opcode opcode) {
  return opcode == Opcode::kPermute128 || opcode == Opcode::kShuffle128;
}

TEST(EmitRefusalTest, VectorRegistersThatTheSetLacks) {
  for (const IsaFacts& set : kIsas) {
    const Isa isa = set.isa;
    const int number = ScratchVector(isa) + 1;
    for (const Opcode opcode : OpcodesWithLanes()) {
      if (IsOfOneWidth(opcode)) continue;
      ExpectRefused(isa, opcode, RegisterClass::kVector, number,
                    absl::StrCat("vector register ", number));
    }
  }
}

TEST(EmitRefusalTest, MaskRegistersThatTheSetLacks) {
  for (const Opcode opcode : OpcodesWithLanes()) {
    ExpectRefused(Isa::kAvx512, opcode, RegisterClass::kMask, 8, "mask register 8");
    ExpectRefused(Isa::kAvx512, opcode, RegisterClass::kMask, 0,
                  "a mask outside of the mask registers");
  }
}

TEST(EmitRefusalTest, LanesThatTheSetLacks) {
  int lacking = 0;
  for (const Opcode opcode : OpcodesWithLanes()) {
    for (const Lane lane : kLanes) {
      const Operation op = WithRegisters(opcode, lane, 2);
      if (IsOfOneWidth(opcode) || opcode == Opcode::kConvert || IsInSet(Isa::kAvx2, op) ||
          !IsInSet(Isa::kAvx512, op))
        continue;
      ++lacking;
      EXPECT_DEATH(Encode(Isa::kAvx2, op), "avx2: v") << Info(opcode).name;
      Encode(Isa::kAvx512, op);
    }
  }
  EXPECT_GE(lacking, 11);
}

TEST(EmitRefusalTest, ConversionsThatTheSetLacks) {
  for (const Lane real : {Lane::kF32, Lane::kF64}) {
    Operation from = WithRegisters(Opcode::kConvert, Lane::kI64, 2),
              to = WithRegisters(Opcode::kConvert, real, 2);
    from.immediate = static_cast<int64_t>(real);
    to.immediate = static_cast<int64_t>(Lane::kI64);
    for (const Operation& op : {from, to}) {
      EXPECT_DEATH(Encode(Isa::kAvx2, op), "avx2: vcvt");
      Encode(Isa::kAvx512, op);
    }
  }
}

TEST(EmitRefusalTest, SaysWhichOperationOfWhich) {
  TestFunction f(Isa::kAvx2);
  f.MoveG(Operand::Register(1), Operand::Immediate(7));
  f.Add(WithRegisters(Opcode::kAdd, Lane::kF32, 16));
  EXPECT_DEATH(f.Encode(),
               "avx2: a vector of 64 bytes in `v1 = add.f32x16 v1, v2` of\n  g1 = move_g 7\n");
}

}  // namespace
}  // namespace nestor::jit
