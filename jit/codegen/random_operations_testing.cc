// A block is a sequence of operations, loops and branches; values that a block has written are
// known after it, except those of the arms of a branch, which may not be entered.
#include <cstdint>
#include <random>
#include <vector>

#include "jit/codegen/operand_constraints.h"
#include "jit/codegen/operations.h"
#include "jit/codegen/operations_testing.h"

namespace nestor::jit {
namespace {

constexpr RegisterClass kClasses[] = {RegisterClass::kVector, RegisterClass::kMask,
                                      RegisterClass::kGeneral};

class Generator {
 public:
  explicit Generator(const RandomListOptions& options)
      : options_(options), random_(options.seed), list_(options.isa) {}

  OperationList Generate() && {
    Begin();
    Block(options_.operations, 0);
    End();
    return std::move(list_);
  }

 private:
  using Values = std::vector<Operand>;
  Values& Known(RegisterClass c) {
    return known_[static_cast<int>(c == RegisterClass::kMask ? ClassOfMasks(options_.isa) : c)];
  }

  int Below(int n) { return static_cast<int>(random_() % n); }
  Lane AnyLane() { return static_cast<Lane>(Below(kNumLanes)); }

  Operation& Append(Opcode opcode, Operand result = {}, Operand a = {}, Operand b = {}) {
    Operation& op = list_.operations.emplace_back();
    op.opcode = opcode;
    op.result = result;
    op.operands[0] = a;
    op.operands[1] = b;
    op.lanes = 4;
    return op;
  }

  void AppendAt(Opcode opcode, int label) { Append(opcode).immediate = label; }

  // Writes a new value of the class, from nothing but the first general register.
  void BeginValue(RegisterClass c) {
    const Operand value = list_.NewRegister(c);
    if (c == RegisterClass::kGeneral) {
      Append(Opcode::kMulG, value, base_, Operand::Immediate(Below(1000)));
    } else if (c == RegisterClass::kMask) {
      Append(Opcode::kMaskOfCount, value, base_).immediate = Below(1000);
    } else {
      Operation& load = Append(Opcode::kLoad, value);
      load.memory.base = base_;
      load.memory.displacement = Below(1000);
    }
    Known(c).push_back(value);
  }

  void Begin() {
    for (int i = 0; i < 3; ++i) {
      Known(RegisterClass::kGeneral).push_back(list_.NewGeneral());
      Append(Opcode::kParameterG, Known(RegisterClass::kGeneral).back()).immediate = i;
    }
    base_ = Known(RegisterClass::kGeneral)[0];
    list_.AddConstant({Lane::kI32, 7});
    const bool own_masks = ClassOfMasks(options_.isa) == RegisterClass::kMask;
    int left[] = {0, options_.live_vectors + 1, own_masks ? options_.live_masks + 1 : 0,
                  options_.live_generals};
    while (left[1] + left[2] + left[3] > 0) {
      const RegisterClass c = kClasses[Below(3)];
      if (left[static_cast<int>(c)]-- > 0) BeginValue(c);
      for (int& n : left) n = std::max(n, 0);
    }
    if (Known(RegisterClass::kMask).empty()) BeginValue(ClassOfMasks(options_.isa));
    for (const RegisterClass c : kClasses) live_[static_cast<int>(c)] = known_[static_cast<int>(c)];
  }

  void StoreVector(const Operand& vector) {
    Append(Opcode::kStore, {}, vector).memory.base = base_;
  }

  void End() {
    for (const Operand& value : live_[static_cast<int>(RegisterClass::kVector)]) StoreVector(value);
    for (const Operand& value : live_[static_cast<int>(RegisterClass::kMask)]) {
      const Operand lanes = list_.NewVector();
      Append(Opcode::kLanesOfMask, lanes, value);
      StoreVector(lanes);
    }
    for (const Operand& value : live_[static_cast<int>(RegisterClass::kGeneral)]) {
      const Operand lanes = list_.NewVector();
      Append(Opcode::kBroadcastGeneral, lanes, value);
      StoreVector(lanes);
    }
    Append(Opcode::kReturn, {}, Operand::Immediate(0));
  }

  void Block(int operations, int depth) {
    while (operations > 0) {
      const int part = 1 + Below(1 + operations / 2);
      if (depth < 3 && part > 3 && Below(3) == 0) {
        Loop(part, depth);
        operations -= part;
      } else if (depth < 5 && part > 3 && Below(2) == 0) {
        Arms(part, depth);
        operations -= part;
      } else {
        AnyOperation();
        --operations;
      }
    }
  }

  void Loop(int operations, int depth) {
    const Operand counter = list_.NewGeneral(), count = list_.NewGeneral();
    const bool constant = Below(2) == 0;
    const Operand trips = Operand::Immediate(1 + Below(3));
    Append(Opcode::kMoveG, counter, Operand::Immediate(0));
    if (!constant) Append(Opcode::kMoveG, count, trips);
    counters_.push_back(counter);
    const int label = list_.NewLabel();
    AppendAt(Opcode::kLoopBegin, label);
    Block(operations, depth + 1);
    Append(Opcode::kAddG, counter, counter, Operand::Immediate(1));
    Operation& back = Append(Opcode::kLoopEnd, {}, counter, constant ? trips : count);
    back.condition = Condition::kLess;
    back.immediate = label;
    counters_.pop_back();
  }

  void Arms(int operations, int depth) {
    const int end = list_.NewLabel();
    const RegisterClass c = kClasses[Below(3)];
    const Operand merged =
        list_.NewRegister(c == RegisterClass::kMask ? ClassOfMasks(options_.isa) : c);
    const bool two = Below(2) == 0;
    const int other = two ? list_.NewLabel() : end;
    Operation& branch =
        Append(Opcode::kBranch, {}, Any(RegisterClass::kGeneral), Any(RegisterClass::kGeneral));
    branch.condition = static_cast<Condition>(Below(7));
    branch.immediate = other;
    Arm(operations, depth, c, merged);
    if (two) {
      AppendAt(Opcode::kJump, end);
      AppendAt(Opcode::kLabel, other);
      Arm(operations, depth, c, merged);
    }
    AppendAt(Opcode::kLabel, end);
    if (two) Known(c).push_back(merged);
  }

  // Ends with a write of `merged`; its other values are not known afterwards.
  void Arm(int operations, int depth, RegisterClass c, const Operand& merged) {
    size_t sizes[4];
    for (int i = 0; i < 4; ++i) sizes[i] = known_[i].size();
    Block(operations / 2, depth + 1);
    const Opcode copy = c == RegisterClass::kGeneral  ? Opcode::kMoveG
                        : c == RegisterClass::kVector ? Opcode::kMove
                                                      : Opcode::kMaskMove;
    Append(copy, merged, Any(c));
    for (int i = 0; i < 4; ++i) known_[i].resize(sizes[i]);
  }

  // Picks recent values more often.
  Operand Any(RegisterClass c) {
    if (c == RegisterClass::kGeneral && !counters_.empty() && Below(8) == 0)
      return counters_[Below(counters_.size())];
    const Values& known = Known(c);
    const int n = static_cast<int>(known.size());
    return known[Below(2) == 0 ? n - 1 - Below(std::min(n, 6)) : Below(n)];
  }

  void AnyOperation() {
    const auto opcode = static_cast<Opcode>(Below(static_cast<int>(Opcode::kLabel)));
    if (opcode == Opcode::kParameterG) return;
    const OpcodeInfo& info = Info(opcode);
    Operation op;
    op.opcode = opcode;
    op.lane = AnyLane();
    op.lanes = static_cast<uint8_t>(1 << Below(3));
    op.immediate = Below(4);
    for (int i = 0; i < 3; ++i) {
      if (info.operands[i] != RegisterClass::kNone) op.operands[i] = Any(info.operands[i]);
    }
    if (opcode >= Opcode::kLoad && opcode <= Opcode::kStoreStridedPartial) AddMemory(op);
    if (opcode == Opcode::kLoadG || opcode == Opcode::kAddressG) AddMemory(op);
    if (Below(4) == 0) PutOtherOperand(op);
    if (info.result != RegisterClass::kNone) PutResult(op);
    list_.operations.push_back(op);
  }

  void AddMemory(Operation& op) {
    op.memory.base = Any(RegisterClass::kGeneral);
    if (Below(2) == 0) op.memory.index = Any(RegisterClass::kGeneral);
    op.memory.scale = static_cast<int8_t>(1 << Below(4));
    op.memory.displacement = Below(200) - 100;
  }

  // Puts in a constant, an immediate or a slot of the table, if the operation takes one.
  void PutOtherOperand(Operation& op) {
    const OpcodeInfo& info = Info(op.opcode);
    const int last = info.LastOperand();
    if (op.opcode <= Opcode::kShuffle128 && info.operands[last] == RegisterClass::kVector) {
      op.operands[last] = Operand::Constant(0);
    } else if (op.opcode >= Opcode::kMoveG && op.opcode <= Opcode::kMulOverflowsG) {
      const int value = Below(9);
      op.operands[Below(last + 1)] =
          Below(2) == 0 ? Operand::Immediate(value) : Operand::Table(value);
    }
  }

  void PutResult(Operation& op) {
    const RegisterClass c = Info(op.opcode).result;
    Values& known = Known(c);
    op.result = known[Below(static_cast<int>(known.size()))];
    const bool own =
        op.result == op.operands[0] || op.result == op.operands[1] || op.result == op.operands[2];
    if (Below(2) == 0 && !(own && Info(op.opcode).Is(kWritesEarly))) return;
    op.result = list_.NewRegister(c == RegisterClass::kMask ? ClassOfMasks(options_.isa) : c);
    known.push_back(op.result);
  }

  const RandomListOptions options_;
  std::mt19937_64 random_;
  OperationList list_;
  Values known_[4], live_[4];  // by class; written on every path to here
  Operand base_;               // the first general register
  Values counters_;            // of the surrounding loops; must not be written
};

}  // namespace

OperationList RandomOperations(const RandomListOptions& options) {
  return Generator(options).Generate();
}

}  // namespace nestor::jit
