// Every operation on vectors and masks, for each kind and number of lanes, with each
// operand in every place, against the model of operations: that the result is right,
// and that no other register has changed.
#include <array>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "jit/codegen/emit_testing.h"
#include "jit/codegen/operation_model.h"
#include "jit/codegen/registers.h"

namespace nestor::jit {
namespace {

constexpr int kMaxBytes = 64;
constexpr int kResultTable = 3, kPatternTable = 4, kAfterTable = 5;
constexpr int kRounds = 6;

// Which lanes an opcode takes; of some, 64-bit integers on AVX-512 only.
enum LaneSet : uint8_t { kI32Only, kI64Only, kF32Only, kFloats, kIntegers, kAll, kNoI64OnAvx2, kI64OnAvx512 };

struct Row {
  Opcode opcode;
  LaneSet lanes;
  std::vector<int64_t> immediates = {0};
};

const std::vector<int64_t> kLaneNumbers = {0, 1, 2, 3};

const std::vector<Row>& Rows() {
  static const auto& rows = *new std::vector<Row>{
      {Opcode::kMove, kAll},
      {Opcode::kAdd, kAll},
      {Opcode::kSub, kAll},
      {Opcode::kMul, kNoI64OnAvx2},
      {Opcode::kMulU32, kI64Only},
      {Opcode::kDiv, kFloats},
      {Opcode::kMinX86, kNoI64OnAvx2},
      {Opcode::kMaxX86, kNoI64OnAvx2},
      {Opcode::kSqrt, kFloats},
      {Opcode::kFma, kFloats},
      {Opcode::kRound, kFloats, {0, 1, 2, 3}},
      {Opcode::kAnd, kAll},
      {Opcode::kOr, kAll},
      {Opcode::kXor, kAll},
      {Opcode::kAndNot, kAll},
      {Opcode::kShiftLeft, kIntegers, {0, 1, 13, 31, 32, 63}},
      {Opcode::kShiftRight, kIntegers, {0, 1, 13, 31, 32, 63}},
      {Opcode::kShiftRightSigned, kI64OnAvx512, {0, 1, 13, 31, 32, 63}},
      {Opcode::kShiftLeftBy, kIntegers},
      {Opcode::kShiftRightBy, kIntegers},
      {Opcode::kShiftRightSignedBy, kI64OnAvx512},
      {Opcode::kConvert, kAll, kLaneNumbers},
      {Opcode::kRoundToF16, kF32Only},
      {Opcode::kBroadcast, kAll},
      {Opcode::kBroadcastGeneral, kAll},
      {Opcode::kLaneShift, kAll, {1, 2, 4, 8}},
      {Opcode::kUnpackLow, kAll},
      {Opcode::kUnpackHigh, kAll},
      {Opcode::kPermute128, kAll, {0x20, 0x31, 0x02, 0x13, 0x01, 0x30, 0x08, 0x80, 0x83, 0x38}},
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
    case kIntegers: return !IsFloat(lane);
    case kAll: return true;
    case kNoI64OnAvx2: return lane != Lane::kI64 || isa == Isa::kAvx512;
    case kI64OnAvx512: return lane == Lane::kI32 || (lane == Lane::kI64 && isa == Isa::kAvx512);
  }
  return false;
}

// By the header of operations.h.
bool IsConversion(Lane from, Lane to, Isa isa) {
  if (from == to) return false;
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
    case Opcode::kCompare: return IsFloat(op.lane) || op.immediate < 2;
    case Opcode::kMaskWiden: return 2 * bytes <= VectorBytes(isa);
    default: return true;
  }
}

// The lanes that operand `i` and the result have.
Lane OperandLane(const Operation& op, int i) {
  if (op.opcode == Opcode::kConvert) return static_cast<Lane>(op.immediate);
  if (Info(op.opcode).operands[i] == RegisterClass::kMask) return LaneBytes(op.lane) == 4 ? Lane::kI32 : Lane::kI64;
  return op.lane;
}
Lane ResultLane(const Operation& op) {
  if (op.opcode == Opcode::kMaskWiden) return Lane::kI64;
  if (op.opcode == Opcode::kMaskNarrow) return Lane::kI32;
  if (Info(op.opcode).result == RegisterClass::kMask) return LaneBytes(op.lane) == 4 ? Lane::kI32 : Lane::kI64;
  return op.lane;
}

using Buffer = std::array<uint8_t, kMaxBytes>;

struct Case {
  Operation op;  // its operands and result are ignored
  std::array<Stand, 3> stands{};
};

int NumOperands(Opcode opcode) {
  int n = 0;
  while (n < 3 && Info(opcode).operands[n] != RegisterClass::kNone) ++n;
  return n;
}

class VectorCase {
 public:
  VectorCase(const Case& c, Isa isa, std::mt19937_64& random) : case_(c), isa_(isa), random_(random), f_(isa) {
    for (int i = 0; i < kFile(); ++i) f_.LoadWhole(i, kPatternTable, i * kMaxBytes);
    DrawInputs();
    Operation op = c.op;
    const RegisterClass result_class = OnMachine(Info(op.opcode).result);
    op.result = Operand::Register(result_class == RegisterClass::kMask ? 5 : ResultRegister());
    for (int i = 0; i < NumOperands(op.opcode); ++i) op.operands[i] = PlaceOperand(i, op.result);
    f_.Add(op);
    StoreResult(op);
    for (int i = 0; i < kFile(); ++i) f_.StoreWhole(i, kAfterTable, i * kMaxBytes);
    f_.Return(Operand::Immediate(0));
    code_ = f_.Encode();
  }

  void Run() {
    const Sealed function(code_);
    for (int round = 0; round < kRounds; ++round) {
      if (round > 0) DrawInputs();
      std::vector<uint8_t> pattern(kFile() * kMaxBytes), after(pattern.size());
      for (uint8_t& byte : pattern) byte = static_cast<uint8_t>(random_());
      Buffer result;
      std::vector<int64_t> table = {At(inputs_[0].data()), At(inputs_[1].data()), At(inputs_[2].data()),
                                    At(result.data()),     At(pattern.data()),    At(after.data()), general_};
      function(table);
      ExpectResult(result);
      ExpectOthersKept(pattern, after);
      if (::testing::Test::HasFailure()) return;
    }
  }

 private:
  static int64_t At(const void* p) { return reinterpret_cast<int64_t>(p); }
  int kFile() const { return ScratchVector(isa_); }
  int ResultRegister() const { return isa_ == Isa::kAvx512 && case_.op.lanes % 3 != 1 ? 22 : 6; }
  int OperandRegister(int i) const {
    static constexpr int kLow[] = {1, 10, 12}, kHigh[] = {1, 19, 28};
    return isa_ == Isa::kAvx512 ? kHigh[i] : kLow[i];
  }
  RegisterClass OnMachine(RegisterClass c) const { return c == RegisterClass::kMask ? ClassOfMasks(isa_) : c; }
  RegisterClass ClassOf(int i) const { return Info(case_.op.opcode).operands[i]; }

  // Constants keep what they were first given.
  void DrawInputs() {
    for (int i = 0; i < NumOperands(case_.op.opcode); ++i) {
      if (ClassOf(i) == RegisterClass::kGeneral) {
        if (!general_drawn_ || case_.stands[i] != Stand::kConstant) DrawGeneral();
      } else if (!drawn_[i] || case_.stands[i] != Stand::kConstant) {
        DrawVector(i);
      }
      drawn_[i] = true;
    }
    for (int i = 1; i < 3; ++i) {  // one register, one value
      for (int j = 0; j < i; ++j) {
        if (case_.stands[i] == Stand::kResult && case_.stands[j] == Stand::kResult) inputs_[i] = inputs_[j];
      }
    }
  }

  void DrawGeneral() {
    general_drawn_ = true;
    general_ = static_cast<int64_t>(RandomLane(random_, Lane::kI64));
    if (case_.op.opcode == Opcode::kMaskOfCount) {
      const int64_t counts[] = {int64_t(random_() % (case_.op.lanes + 1)), case_.op.lanes, 255, 256, 257,
                                int64_t{1} << 31, (int64_t{1} << 32) + 1, INT64_MAX};
      general_ = counts[random_() % (random_() % 2 == 0 ? 1 : 8)];
    }
  }

  void DrawVector(int i) {
    const Lane lane = OperandLane(case_.op, i);
    const bool mask = ClassOf(i) == RegisterClass::kMask || case_.op.opcode == Opcode::kMaskOfLanes;
    const auto draw = [&] { return mask ? -(random_() % 2) : RandomLane(random_, lane); };
    PoolConstant& constant = constants_[i];
    constant = {lane, draw(), mask || IsFloat(lane) ? 0 : random_() % 5};
    for (int k = 0; k < kMaxBytes / LaneBytes(lane); ++k) {
      SetLane(inputs_[i].data(), LaneBytes(lane), k,
              case_.stands[i] == Stand::kConstant ? constant.bits + k * constant.step : draw());
    }
    // Lanes that are none hold anything.
    if (case_.stands[i] == Stand::kConstant) return;
    for (int at = case_.op.lanes * LaneBytes(lane); at < kMaxBytes; ++at) {
      inputs_[i][at] = static_cast<uint8_t>(random_());
    }
  }

  Operand PlaceOperand(int i, const Operand& result) {
    if (ClassOf(i) == RegisterClass::kGeneral) return PlaceGeneral(i);
    if (OnMachine(ClassOf(i)) == RegisterClass::kMask) return PlaceMask(i, result);
    switch (case_.stands[i]) {
      case Stand::kConstant: return Operand::Constant(AddConstant(i));
      case Stand::kResult: f_.LoadWhole(static_cast<int>(result.value), i); return result;
      case Stand::kStack: return OnStack(i);
      default: f_.LoadWhole(OperandRegister(i), i); return Operand::Register(OperandRegister(i));
    }
  }

  int64_t AddConstant(int i) {
    f_.list().constants.push_back(constants_[i]);
    return static_cast<int64_t>(f_.list().constants.size()) - 1;
  }

  Operand OnStack(int i) {
    const Operand slot = f_.NewSlot(VectorBytes(isa_)), reg = Operand::Register(OperandRegister(i));
    f_.LoadWhole(OperandRegister(i), i);
    Operation move{Opcode::kMove, Lane::kI32, static_cast<uint8_t>(VectorBytes(isa_) / 4)};
    move.result = slot;
    move.operands[0] = reg;
    f_.Add(move);
    f_.LoadWhole(OperandRegister(i), kPatternTable, OperandRegister(i) * kMaxBytes);
    return slot;
  }

  Operand PlaceGeneral(int i) {
    const Operand table = Operand::Table(6);
    switch (case_.stands[i]) {
      case Stand::kConstant: return Operand::Immediate(general_);
      case Stand::kTable: return table;
      case Stand::kStack: {
        const Operand slot = f_.NewSlot(8);
        f_.MoveG(slot, table);
        return slot;
      }
      default: f_.MoveG(Operand::Register(9), table); return Operand::Register(9);
    }
  }

  // To a k register.
  Operand PlaceMask(int i, const Operand& result) {
    const bool in_result = case_.stands[i] == Stand::kResult;
    const int scratch = OperandRegister(i);
    f_.LoadWhole(scratch, i);
    Operation op{Opcode::kMaskOfLanes, OperandLane(case_.op, i), case_.op.lanes};
    op.result = in_result ? result : Operand::Register(i + 1);
    op.operands[0] = Operand::Register(scratch);
    f_.Add(op);
    f_.LoadWhole(scratch, kPatternTable, scratch * kMaxBytes);
    if (case_.stands[i] != Stand::kStack) return op.result;
    Operation move{Opcode::kMaskMove, op.lane, op.lanes};
    move.operands[0] = op.result;
    move.result = f_.NewSlot(8);
    f_.Add(move);
    return move.result;
  }

  void StoreResult(const Operation& op) {
    int vector = static_cast<int>(op.result.value);
    if (OnMachine(Info(op.opcode).result) == RegisterClass::kMask) {
      vector = ResultRegister();
      Operation lanes{Opcode::kLanesOfMask, ResultLane(op), op.lanes};
      lanes.operands[0] = op.result;
      lanes.result = Operand::Register(vector);
      f_.Add(lanes);
    }
    f_.StoreWhole(vector, kResultTable);
  }

  // By the model, but for what it does not know.
  Buffer Expected() const {
    const Operation& op = case_.op;
    Buffer expected{};
    if (op.opcode == Opcode::kUnpackLow || op.opcode == Opcode::kUnpackHigh) {
      const int bytes = LaneBytes(op.lane), half = 8 / bytes, in_quarter = 16 / bytes;
      for (int k = 0; k < std::max<int>(op.lanes, 1); ++k) {
        const int from = k / in_quarter * in_quarter + k % in_quarter / 2 + (op.opcode == Opcode::kUnpackHigh ? half : 0);
        SetLane(expected.data(), bytes, k, LaneAt(inputs_[k % 2].data(), bytes, from));
      }
      return expected;
    }
    if (op.opcode == Opcode::kPermute128) {
      for (int half = 0; half < 2; ++half) {
        const int64_t selector = op.immediate >> (4 * half);
        if ((selector & 8) != 0) continue;
        std::memcpy(expected.data() + 16 * half, inputs_[(selector >> 1) & 1].data() + 16 * (selector & 1), 16);
      }
      return expected;
    }
    RunReference(expected);
    return expected;
  }

  void RunReference(Buffer& expected) const {
    OperationList list(isa_);
    Operation op = case_.op;
    const int n = NumOperands(op.opcode);
    for (int i = 0; i < n; ++i) op.operands[i] = ReferenceOperand(list, i);
    const RegisterClass result_class = Info(op.opcode).result;
    op.result = result_class == RegisterClass::kMask ? list.NewMask() : list.NewVector();
    list.operations.push_back(op);
    Operand stored = op.result;
    if (result_class == RegisterClass::kMask) {
      Operation lanes{Opcode::kLanesOfMask, ResultLane(op), op.lanes};
      lanes.operands[0] = op.result;
      lanes.result = stored = list.NewVector();
      list.operations.push_back(lanes);
    }
    Operation store{Opcode::kStore, ResultLane(op), op.lanes, MemoryType(ResultLane(op))};
    store.operands[0] = stored;
    store.memory.base = Operand::Table(kResultTable);
    list.operations.push_back(store);
    const int64_t table[] = {At(inputs_[0].data()), At(inputs_[1].data()), At(inputs_[2].data()), At(expected.data())};
    RunModel(list, table);
  }

  Operand ReferenceOperand(OperationList& list, int i) const {
    if (ClassOf(i) == RegisterClass::kGeneral) return Operand::Immediate(general_);
    const Lane lane = OperandLane(case_.op, i);
    Operation load{Opcode::kLoad, lane, case_.op.lanes, MemoryType(lane)};
    load.memory.base = Operand::Table(i);
    load.result = list.NewVector();
    list.operations.push_back(load);
    if (ClassOf(i) != RegisterClass::kMask) return load.result;
    Operation mask{Opcode::kMaskOfLanes, lane, case_.op.lanes};
    mask.operands[0] = load.result;
    mask.result = list.NewMask();
    list.operations.push_back(mask);
    return mask.result;
  }

  static DType MemoryType(Lane lane) {
    constexpr DType kTypes[] = {DType::kI32, DType::kI64, DType::kF32, DType::kF64};
    return kTypes[static_cast<int>(lane)];
  }

  void ExpectResult(const Buffer& result) const {
    const Buffer expected = Expected();
    const Lane lane = ResultLane(case_.op);
    for (int k = 0; k < DefinedLanes(); ++k) {
      const uint64_t want = LaneAt(expected.data(), LaneBytes(lane), k), got = LaneAt(result.data(), LaneBytes(lane), k);
      EXPECT_TRUE(SameLane(lane, want, got)) << "lane " << k << ": " << absl::StrCat(absl::Hex(got), ", not ", absl::Hex(want));
    }
  }

  int DefinedLanes() const {
    return case_.op.lanes - (case_.op.opcode == Opcode::kLaneShift ? static_cast<int>(case_.op.immediate) : 0);
  }

  // All but those that the test itself has written.
  void ExpectOthersKept(const std::vector<uint8_t>& pattern, const std::vector<uint8_t>& after) const {
    for (int r = 0; r < kFile(); ++r) {
      const uint8_t* want = pattern.data() + r * kMaxBytes;
      if (r == ResultRegister()) continue;
      for (int i = 0; i < NumOperands(case_.op.opcode); ++i) {
        const bool holds = OnMachine(ClassOf(i)) == RegisterClass::kVector && case_.stands[i] == Stand::kRegister;
        if (holds && r == OperandRegister(i)) want = inputs_[i].data();
      }
      EXPECT_EQ(std::memcmp(want, after.data() + r * kMaxBytes, VectorBytes(isa_)), 0) << "register " << r << " changed";
    }
  }

  const Case case_;
  const Isa isa_;
  std::mt19937_64& random_;
  TestFunction f_;
  MachineCode code_;
  std::array<Buffer, 3> inputs_{};
  std::array<PoolConstant, 3> constants_{};
  std::array<bool, 3> drawn_{};
  bool general_drawn_ = false;
  int64_t general_ = 0;
};

bool CanStand(const Operation& op, int i, Stand stand, Isa isa) {
  const OpcodeInfo& info = Info(op.opcode);
  const auto on_machine = [&](RegisterClass c) { return c == RegisterClass::kMask ? ClassOfMasks(isa) : c; };
  if (info.operands[i] == RegisterClass::kGeneral) return stand != Stand::kResult;
  if (stand == Stand::kTable) return false;
  if (stand == Stand::kResult) return on_machine(info.operands[i]) == on_machine(info.result);
  if (on_machine(info.operands[i]) != RegisterClass::kMask) return true;
  return stand == Stand::kRegister || (stand == Stand::kStack && op.opcode == Opcode::kMaskMove);
}

// Two operands in the result's register have lanes of one width.
bool IsConsistent(const Case& c) {
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
    Case c{op, {}};
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
    for (const Lane lane : {Lane::kI32, Lane::kI64, Lane::kF32, Lane::kF64}) {
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

std::string Describe(const Case& c) {
  return absl::StrCat(Info(c.op.opcode).name, " lane kind ", static_cast<int>(c.op.lane), " x", c.op.lanes, " immediate ",
                      c.op.immediate, " operands in ", Name(c.stands[0]), ", ", Name(c.stands[1]), ", ",
                      Name(c.stands[2]));
}

void TestAll(Isa isa, bool run) {
  std::mt19937_64 random(1);
  int cases = 0;
  ForEachOperation(isa, [&](const Operation& op) {
    ForEachStand(op, isa, [&](const Case& c) {
      if (::testing::Test::HasFailure()) return;
      SCOPED_TRACE(Describe(c));
      ++cases;
      VectorCase one(c, isa, random);
      if (run) one.Run();
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

}  // namespace
}  // namespace nestor::jit
