// The function under test fills all vector registers with a pattern, puts the operands in
// their places, does the one operation, and stores its result and then all registers.
// Lanes beyond those of the operation hold noise.
#include "jit/codegen/emit_vector_testing.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "gtest/gtest.h"
#include "jit/codegen/operation_model_testing.h"
#include "jit/codegen/registers.h"

namespace nestor::jit {
namespace {

constexpr int kMaxBytes = 64;
constexpr int kResultTable = 3, kPatternTable = 4, kAfterTable = 5;
constexpr int kRounds = 6;

using Buffer = std::array<uint8_t, kMaxBytes>;

class VectorRun {
 public:
  VectorRun(const VectorCase& c, Isa isa, std::mt19937_64& random)
      : case_(c), isa_(isa), random_(random), f_(isa) {
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
      std::vector<int64_t> table = {At(inputs_[0].data()),
                                    At(inputs_[1].data()),
                                    At(inputs_[2].data()),
                                    At(result.data()),
                                    At(pattern.data()),
                                    At(after.data()),
                                    general_};
      function(table);
      ExpectResult(result);
      ExpectOthersKept(pattern, after);
      if (::testing::Test::HasFailure()) return;
    }
  }

 private:
  static int64_t At(const void* p) { return reinterpret_cast<int64_t>(p); }
  int kFile() const { return ScratchVector(isa_); }
  bool has_high() const { return FactsOf(isa_).vectors > 16; }
  int ResultRegister() const { return has_high() && case_.op.lanes % 3 != 1 ? 22 : 6; }
  int OperandRegister(int i) const {
    static constexpr int kLow[] = {1, 10, 12}, kHigh[] = {1, 19, 28};
    return has_high() ? kHigh[i] : kLow[i];
  }
  RegisterClass OnMachine(RegisterClass c) const {
    return c == RegisterClass::kMask ? ClassOfMasks(isa_) : c;
  }
  RegisterClass ClassOf(int i) const { return Info(case_.op.opcode).operands[i]; }

  // Constants keep their first values.
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
        if (case_.stands[i] == Stand::kResult && case_.stands[j] == Stand::kResult)
          inputs_[i] = inputs_[j];
      }
    }
  }

  void DrawGeneral() {
    general_drawn_ = true;
    general_ = static_cast<int64_t>(RandomLane(random_, Lane::kI64));
    if (case_.op.opcode == Opcode::kMaskOfCount) {
      const int64_t counts[] = {int64_t(random_() % (case_.op.lanes + 1)),
                                case_.op.lanes,
                                255,
                                256,
                                257,
                                int64_t{1} << 31,
                                (int64_t{1} << 32) + 1,
                                INT64_MAX};
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
    // Unused lanes hold anything.
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

  // Moves it to a k register.
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

  // The result by the model.
  Buffer Expected() const {
    Buffer expected{};
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
    const int64_t table[] = {At(inputs_[0].data()), At(inputs_[1].data()), At(inputs_[2].data()),
                             At(expected.data())};
    RunModel(list, table);
    return expected;
  }

  Operand ReferenceOperand(OperationList& list, int i) const {
    if (ClassOf(i) == RegisterClass::kGeneral) return Operand::Immediate(general_);
    const Lane lane = OperandLane(case_.op, i);
    // Unpacking reads all of 128 bits, however many lanes it is asked for.
    const int lanes = std::max<int>(case_.op.lanes, 16 / LaneBytes(lane));
    Operation load{Opcode::kLoad, lane, static_cast<uint8_t>(lanes), MemoryType(lane)};
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

  void ExpectResult(const Buffer& result) const {
    const Buffer expected = Expected();
    const Lane lane = ResultLane(case_.op);
    const int bytes = LaneBytes(lane);
    for (int k = 0; k < DefinedLanes(); ++k) {
      const uint64_t want = LaneAt(expected.data(), bytes, k),
                     got = LaneAt(result.data(), bytes, k);
      EXPECT_TRUE(SameLane(lane, want, got)) << "lane " << k << ": " << Difference(got, want);
    }
  }

  int DefinedLanes() const {
    return case_.op.lanes -
           (case_.op.opcode == Opcode::kLaneShift ? static_cast<int>(case_.op.immediate) : 0);
  }

  // Expects that all registers are kept except those that the test itself has written.
  void ExpectOthersKept(const std::vector<uint8_t>& pattern,
                        const std::vector<uint8_t>& after) const {
    for (int r = 0; r < kFile(); ++r) {
      const uint8_t* want = pattern.data() + r * kMaxBytes;
      if (r == ResultRegister()) continue;
      for (int i = 0; i < NumOperands(case_.op.opcode); ++i) {
        const bool holds =
            OnMachine(ClassOf(i)) == RegisterClass::kVector && case_.stands[i] == Stand::kRegister;
        if (holds && r == OperandRegister(i)) want = inputs_[i].data();
      }
      const uint8_t* got = after.data() + r * kMaxBytes;
      EXPECT_EQ(std::memcmp(want, got, VectorBytes(isa_)), 0) << "register " << r << " changed";
    }
  }

  const VectorCase case_;
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

}  // namespace

int NumOperands(Opcode opcode) { return Info(opcode).LastOperand() + 1; }

void TestVectorCase(const VectorCase& c, Isa isa, bool run, std::mt19937_64& random) {
  VectorRun one(c, isa, random);
  if (run) one.Run();
}

}  // namespace nestor::jit
