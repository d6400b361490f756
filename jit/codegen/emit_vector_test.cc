// Every operation on vectors and masks, for each kind and number of lanes, with each operand in
// every place, against the model of operations: the result must be right, and no other register
// may change.
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "jit/codegen/emit_testing.h"
#include "jit/codegen/emit_vector_case.h"
#include "jit/runtime/cpu_features_testing.h"

namespace nestor::jit {
namespace {

// The lanes that an opcode takes; for some opcodes, 64-bit integers on AVX-512 only. kWide: lanes
// of 32 and 64 bits.
enum LaneSet : uint8_t {
  kI32Only,
  kI64Only,
  kF32Only,
  kFloats,
  kIntegers,
  kAll,
  kWide,
  kNoI8,
  kIntegersI64OnAvx512,
  kNoI64OnAvx2,
  kProducts,
  kI64OnAvx512,
  kNarrowToo,
  kFloatsOnAvx512
};

struct Row {
  Opcode opcode;
  LaneSet lanes;
  std::vector<int64_t> immediates = {0};
};

const std::vector<int64_t> kLaneNumbers = {0, 1, 2, 3, 4, 5};

const std::vector<Row>& Rows() {
  static const auto& rows = *new std::vector<Row>{
      {Opcode::kMove, kAll},
      {Opcode::kAdd, kAll},
      {Opcode::kSub, kAll},
      {Opcode::kMul, kProducts},
      {Opcode::kMulU32, kI64Only},
      {Opcode::kDiv, kFloats},
      {Opcode::kMinX86, kNoI64OnAvx2},
      {Opcode::kMaxX86, kNoI64OnAvx2},
      {Opcode::kMinUnsigned, kIntegersI64OnAvx512},
      {Opcode::kMaxUnsigned, kIntegersI64OnAvx512},
      {Opcode::kMaxNumber, kFloatsOnAvx512},
      {Opcode::kScale, kFloatsOnAvx512},
      {Opcode::kSqrt, kFloats},
      {Opcode::kFma, kFloats},
      {Opcode::kDotHalves, kI32Only},
      {Opcode::kRound, kFloats, {0, 1, 2, 3}},
      {Opcode::kAnd, kAll},
      {Opcode::kOr, kAll},
      {Opcode::kXor, kAll},
      {Opcode::kAndNot, kAll},
      {Opcode::kShiftLeft, kNoI8, {0, 1, 13, 31, 32, 63}},
      {Opcode::kShiftRight, kNoI8, {0, 1, 13, 31, 32, 63}},
      {Opcode::kShiftRightSigned, kNarrowToo, {0, 1, 13, 31, 32, 63}},
      {Opcode::kShiftLeftBy, kWide},
      {Opcode::kShiftRightBy, kWide},
      {Opcode::kShiftRightSignedBy, kI64OnAvx512},
      {Opcode::kConvert, kWide, kLaneNumbers},
      {Opcode::kRoundToF16, kF32Only},
      {Opcode::kBroadcast, kAll},
      {Opcode::kBroadcastGeneral, kAll},
      {Opcode::kLaneShift, kAll, {1, 2, 3, 4, 5, 8, 16, 21, 32}},
      {Opcode::kUnpackLow, kWide},
      {Opcode::kUnpackHigh, kWide},
      {Opcode::kPermute128, kWide, {0x20, 0x31, 0x02, 0x13, 0x01, 0x30, 0x08, 0x80, 0x83, 0x38}},
      {Opcode::kShuffle128, kWide, {0x88, 0xdd, 0x1b, 0xe4, 0x2c}},
      {Opcode::kCompare, kAll, {0, 1, 2, 3, 4}},
      {Opcode::kMaskMove, kIntegers},
      {Opcode::kMaskAnd, kIntegers},
      {Opcode::kMaskOr, kIntegers},
      {Opcode::kMaskXor, kIntegers},
      {Opcode::kMaskAndNot, kIntegers},
      {Opcode::kMaskWiden, kI32Only},
      {Opcode::kMaskNarrow, kI64Only},
      {Opcode::kMaskOfCount, kIntegers},
      {Opcode::kMaskOfLanes, kIntegers},
      {Opcode::kLanesOfMask, kIntegers},
      {Opcode::kBlend, kAll},
  };
  return rows;
}

bool Takes(LaneSet set, Lane lane, Isa isa) {
  switch (set) {
    case kI32Only: return lane == Lane::kI32;
    case kI64Only: return lane == Lane::kI64;
    case kF32Only: return lane == Lane::kF32;
    case kFloats: return IsFloat(lane);
    case kFloatsOnAvx512: return IsFloat(lane) && isa == Isa::kAvx512;
    case kIntegers: return !IsFloat(lane);
    case kAll: return true;
    case kWide: return LaneBytes(lane) >= 4;
    case kNoI8: return lane != Lane::kI8;
    case kIntegersI64OnAvx512: return !IsFloat(lane) && Takes(kNoI64OnAvx2, lane, isa);
    case kNoI64OnAvx2: return lane != Lane::kI64 || isa == Isa::kAvx512;
    case kProducts: return lane != Lane::kI8 && Takes(kNoI64OnAvx2, lane, isa);
    case kNarrowToo: return lane == Lane::kI16 || Takes(kI64OnAvx512, lane, isa);
    case kI64OnAvx512: return lane == Lane::kI32 || (lane == Lane::kI64 && isa == Isa::kAvx512);
  }
  return false;
}

// As the header of operations.h says.
bool IsConversion(Lane from, Lane to, Isa isa) {
  if (from == to || LaneBytes(from) < 4) return false;
  if (from == Lane::kI64 || to == Lane::kI64) {
    const Lane other = from == Lane::kI64 ? to : from;
    return other == Lane::kI32 || isa == Isa::kAvx512;
  }
  return true;
}

bool IsLegal(const Operation& op, Isa isa) {
  const int bytes = op.lanes * LaneBytes(op.lane);
  switch (op.opcode) {
    case Opcode::kShiftLeft:
    case Opcode::kShiftRight:
    case Opcode::kShiftRightSigned: return op.immediate < 8 * LaneBytes(op.lane);
    case Opcode::kConvert:
      return IsConversion(static_cast<Lane>(op.immediate), op.lane, isa) &&
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
  for (const Row& row : Rows()) {
    for (const Lane lane :
         {Lane::kI8, Lane::kI16, Lane::kI32, Lane::kI64, Lane::kF32, Lane::kF64}) {
      if (!Takes(row.lanes, lane, isa)) continue;
      for (int lanes = 1; lanes * LaneBytes(lane) <= VectorBytes(isa); lanes *= 2) {
        for (const int64_t immediate : row.immediates) {
          Operation op{row.opcode, lane, static_cast<uint8_t>(lanes)};
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

TEST(EmitVectorTest, RowsAreAllOperations) {
  std::vector<Opcode> opcodes;
  for (const Row& row : Rows()) opcodes.push_back(row.opcode);
  std::vector<Opcode> all;
  for (int i = static_cast<int>(Opcode::kMove); i <= static_cast<int>(Opcode::kBlend); ++i) {
    all.push_back(static_cast<Opcode>(i));
  }
  EXPECT_EQ(opcodes, all);
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
