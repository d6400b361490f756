// Every operation on vectors and masks, for each kind and number of lanes, with each operand in
// every place, against the model of operations: the result must be right, and no other register
// may change.
#include <cstdint>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "jit/codegen/emit_testing.h"
#include "jit/codegen/emit_vector_testing.h"
#include "jit/runtime/cpu_features_testing.h"

namespace nestor::jit {
namespace {

// Immediates that show all that an emitter distinguishes.
std::vector<int64_t> ImmediatesOf(Opcode opcode) {
  const auto up_to = [](int n) {
    std::vector<int64_t> numbers(n);
    std::iota(numbers.begin(), numbers.end(), 0);
    return numbers;
  };
  switch (Info(opcode).immediate) {
    case ImmediateKind::kRounding: return up_to(static_cast<int>(RoundingMode::kTruncate) + 1);
    case ImmediateKind::kLaneKind: return up_to(kNumLanes);
    case ImmediateKind::kPredicate: return up_to(static_cast<int>(Predicate::kNotEqual) + 1);
    case ImmediateKind::kNumber: break;
    default: return {0};
  }
  switch (opcode) {
    case Opcode::kPermute128: return {0x20, 0x31, 0x02, 0x13, 0x01, 0x30, 0x08, 0x80, 0x83, 0x38};
    case Opcode::kShuffle128: return {0x88, 0xdd, 0x1b, 0xe4, 0x2c};
    case Opcode::kLaneShift: return {1, 2, 3, 4, 5, 8, 16, 21, 32};
    default: return {0, 1, 13, 31, 32, 63};  // shifts
  }
}

bool IsLegal(const Operation& op, Isa isa) {
  const int bytes = op.lanes * LaneBytes(op.lane);
  switch (op.opcode) {
    case Opcode::kShiftLeft:
    case Opcode::kShiftRight:
    case Opcode::kShiftRightSigned: return op.immediate < 8 * LaneBytes(op.lane);
    case Opcode::kConvert:
      return HasConversion(isa, static_cast<Lane>(op.immediate), op.lane) &&
             op.lanes * LaneBytes(static_cast<Lane>(op.immediate)) <= VectorBytes(isa);
    case Opcode::kLaneShift: return op.immediate < op.lanes;
    case Opcode::kPermute128: return bytes == 32;
    case Opcode::kShuffle128: return bytes == 64;
    case Opcode::kCompare: return IsFloat(op.lane) || op.immediate < 2;
    case Opcode::kMaskWiden: return 2 * bytes <= VectorBytes(isa);
    default: return true;
  }
}

bool CanStand(const Operation& op, int i, Stand stand, Isa isa) {
  const OpcodeInfo& info = Info(op.opcode);
  const auto on_machine = [&](RegisterClass c) {
    return c == RegisterClass::kMask ? ClassOfMasks(isa) : c;
  };
  if (info.operands[i] == RegisterClass::kGeneral) return stand != Stand::kResult;
  if (stand == Stand::kTable) return false;
  if (stand == Stand::kResult) return on_machine(info.operands[i]) == on_machine(info.result);
  if (on_machine(info.operands[i]) != RegisterClass::kMask) return true;
  return stand == Stand::kRegister || (stand == Stand::kStack && op.opcode == Opcode::kMaskMove);
}

// Two operands in the result's register have lanes of one width.
bool IsConsistent(const VectorCase& c) {
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < i; ++j) {
      const bool shared = c.stands[i] == Stand::kResult && c.stands[j] == Stand::kResult;
      const auto classes = Info(c.op.opcode).operands;
      if (shared && classes[i] != classes[j] && classes[i] != RegisterClass::kNone) return false;
    }
  }
  return true;
}

template <class Do>
void ForEachStand(const Operation& op, Isa isa, Do doit) {
  const int n = NumOperands(op.opcode);
  constexpr int kStands = 5;
  int combinations = 1;
  for (int i = 0; i < n; ++i) combinations *= kStands;
  for (int code = 0; code < combinations; ++code) {
    VectorCase c{op, {}};
    bool legal = true;
    for (int i = 0, rest = code; i < n; ++i, rest /= kStands) {
      c.stands[i] = static_cast<Stand>(rest % kStands);
      legal &= CanStand(op, i, c.stands[i], isa);
    }
    if (legal && IsConsistent(c)) doit(c);
  }
}

template <class Do>
void ForEachOperation(Isa isa, Do doit) {
  for (int i = static_cast<int>(Opcode::kMove); i <= static_cast<int>(Opcode::kBlend); ++i) {
    const auto opcode = static_cast<Opcode>(i);
    for (int kind = 0; kind < kNumLanes; ++kind) {
      const auto lane = static_cast<Lane>(kind);
      if (!HasOperation(isa, opcode, lane)) continue;
      for (int lanes = 1; lanes * LaneBytes(lane) <= VectorBytes(isa); lanes *= 2) {
        for (const int64_t immediate : ImmediatesOf(opcode)) {
          Operation op{opcode, lane, static_cast<uint8_t>(lanes)};
          op.immediate = immediate;
          if (IsLegal(op, isa)) doit(op);
        }
      }
    }
  }
}

std::string Describe(const VectorCase& c) {
  return absl::StrCat(Info(c.op.opcode).name, " lane kind ", static_cast<int>(c.op.lane), " x",
                      c.op.lanes, " immediate ", c.op.immediate, " operands in ", Name(c.stands[0]),
                      ", ", Name(c.stands[1]), ", ", Name(c.stands[2]));
}

void TestAll(Isa isa, bool run) {
  std::mt19937_64 random(1);
  int cases = 0;
  ForEachOperation(isa, [&](const Operation& op) {
    ForEachStand(op, isa, [&](const VectorCase& c) {
      if (::testing::Test::HasFailure()) return;
      SCOPED_TRACE(Describe(c));
      ++cases;
      TestVectorCase(c, isa, run, random);
    });
  });
  ::testing::Test::RecordProperty("cases", cases);
  EXPECT_GT(cases, 5000);
}

TEST(EmitVectorTest, RunsOnAvx2) {
  if (!Runs(Isa::kAvx2)) GTEST_SKIP() << "this CPU lacks AVX2, FMA, F16C or BMI2";
  TestAll(Isa::kAvx2, true);
}

TEST(EmitVectorTest, EncodesForAvx512) { TestAll(Isa::kAvx512, false); }

TEST(EmitVectorTest, RunsOnAvx512) {
  if (!Runs(Isa::kAvx512)) GTEST_SKIP() << "this CPU lacks AVX-512 F, VL, BW or DQ";
  TestAll(Isa::kAvx512, true);
}

// Dot products are then two instructions.
TEST(EmitVectorTest, RunsOnAvx512WithoutDotProducts) {
  if (!Runs(Isa::kAvx512)) GTEST_SKIP() << "this CPU lacks AVX-512 F, VL, BW or DQ";
  const LackForTesting lack("AVX512_VNNI");
  std::mt19937_64 random(2);
  for (const uint8_t lanes : {1, 4, 8, 16}) {
    const Operation op{Opcode::kDotHalves, Lane::kI32, lanes};
    ForEachStand(op, Isa::kAvx512, [&](const VectorCase& c) {
      SCOPED_TRACE(Describe(c));
      TestVectorCase(c, Isa::kAvx512, true, random);
    });
  }
}

}  // namespace
}  // namespace nestor::jit
