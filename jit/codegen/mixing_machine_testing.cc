// Runs lists so that operations whose results do not matter mix their operands into a number.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "jit/codegen/operand_constraints.h"
#include "jit/codegen/operations.h"
#include "jit/codegen/operations_testing.h"

namespace nestor::jit {
namespace {

RegisterClass OnMachine(RegisterClass place, Isa isa) {
  return place == RegisterClass::kMask ? ClassOfMasks(isa) : place;
}

using Value = absl::optional<uint64_t>;  // nullopt: never written

class Machine {
 public:
  // `virtual_registers`: operands are numbered through all classes.
  Machine(Isa isa, bool virtual_registers, int64_t frame_bytes)
      : isa_(isa), virtual_(virtual_registers), stack_(frame_bytes / 8) {}

  // The stored and returned values, hashed one by one. Stops at the first error.
  std::vector<uint64_t> Run(const std::vector<Operation>& operations) {
    std::vector<int> labels;
    for (size_t i = 0; i < operations.size(); ++i) {
      if (operations[i].opcode != Opcode::kLabel && operations[i].opcode != Opcode::kLoopBegin)
        continue;
      labels.resize(std::max<size_t>(labels.size(), operations[i].immediate + 1));
      labels[operations[i].immediate] = static_cast<int>(i);
    }
    int at = 0;
    while (error_.empty() && at < static_cast<int>(operations.size())) {
      const Operation& op = operations[at];
      if (++steps_ > 10'000'000) error_ = "does not end";
      at = Step(op) ? labels[op.immediate] : at + 1;
      if (!error_.empty()) error_ += absl::StrCat(" at operation ", &op - operations.data());
      if (op.opcode == Opcode::kReturn) break;
    }
    return trace_;
  }
  const std::string& error() const { return error_; }

 private:
  static uint64_t Mix(uint64_t h, uint64_t v) {
    h = (h ^ v) * 0x9e3779b97f4a7c15;
    return h ^ (h >> 29);
  }

  Value& Register(RegisterClass place, int64_t number) {
    const size_t key = virtual_ ? number : 64 * static_cast<int>(OnMachine(place, isa_)) + number;
    if (key >= registers_.size()) registers_.resize(key + 1);
    return registers_[key];
  }

  int64_t Words(RegisterClass place) const {
    return OnMachine(place, isa_) == RegisterClass::kVector ? VectorBytes(isa_) / 8 : 1;
  }

  bool InFrame(RegisterClass place, int64_t offset) {
    const int64_t words = Words(place);
    const bool is =
        offset >= 0 && offset % (8 * words) == 0 && offset / 8 + words <= std::ssize(stack_);
    if (!is) error_ = "outside of the frame, or not aligned";
    return is;
  }

  uint64_t Read(const Operand& operand, RegisterClass place) {
    switch (operand.kind) {
      case Operand::kNone: return 0;
      case Operand::kConstant:
      case Operand::kTable: return Mix(operand.kind, operand.value);
      case Operand::kImmediate: return operand.value;
      case Operand::kRegister: return Known(Register(place, operand.value));
      case Operand::kStack: break;
    }
    if (!InFrame(place, operand.value)) return 0;
    const auto first = stack_.begin() + operand.value / 8;
    if (std::any_of(first, first + Words(place),
                    [&](const Value& word) { return word != *first; })) {
      error_ = "slots overlap";
    }
    return Known(*first);
  }

  uint64_t Known(const Value& value) {
    if (!value.has_value()) error_ = "reads what was not written";
    return value.value_or(0);
  }

  void Write(const Operand& result, RegisterClass place, Value value) {
    if (result.kind != Operand::kStack) {
      Register(place, result.value) = value;
    } else if (InFrame(place, result.value)) {
      std::fill_n(stack_.begin() + result.value / 8, Words(place), value);
    }
  }

  // Runs the operation; whether it jumps.
  bool Step(const Operation& op) {
    const OpcodeInfo& info = Info(op.opcode);
    if (op.result.kind != Operand::kNone && Info(op.opcode).Is(kWritesEarly))
      Write(op.result, info.result, absl::nullopt);
    uint64_t in[3];
    for (int i = 0; i < 3; ++i) in[i] = Read(op.operands[i], info.operands[i]);
    uint64_t address = 0;
    if (op.memory.base.kind != Operand::kNone) {
      address = Read(op.memory.base, RegisterClass::kGeneral) + op.memory.displacement +
                Read(op.memory.index, RegisterClass::kGeneral) * op.memory.scale;
    }
    if (op.opcode == Opcode::kJump) return true;
    if (op.opcode == Opcode::kBranch || op.opcode == Opcode::kLoopEnd)
      return Holds(op.condition, in[0], in[1]);
    const uint64_t out = Result(op, in, address);
    if (op.result.kind != Operand::kNone) {
      Write(op.result, info.result, out);
    } else if (op.opcode != Opcode::kLabel && op.opcode != Opcode::kLoopBegin) {
      trace_.push_back(out);
    }
    return false;
  }

  static bool Holds(Condition condition, int64_t a, int64_t b) {
    switch (condition) {
      case Condition::kEqual: return a == b;
      case Condition::kNotEqual: return a != b;
      case Condition::kLess: return a < b;
      case Condition::kLessEqual: return a <= b;
      case Condition::kGreater: return a > b;
      case Condition::kGreaterEqual: return a >= b;
      case Condition::kBelow: return static_cast<uint64_t>(a) < static_cast<uint64_t>(b);
    }
    __builtin_unreachable();
  }

  // The exact result if the allocator or a counter needs it, else a mix.
  static uint64_t Result(const Operation& op, const uint64_t (&in)[3], uint64_t address) {
    if (Info(op.opcode).Is(kIsMove)) return in[0];
    switch (op.opcode) {
      case Opcode::kAddG: return in[0] + in[1];
      case Opcode::kSubG: return in[0] - in[1];
      case Opcode::kMulG: return in[0] * in[1];
      case Opcode::kAddressG: return address;
      default: break;
    }
    uint64_t h =
        Mix(static_cast<uint64_t>(op.opcode) << 16 | static_cast<uint64_t>(op.lane) << 8 | op.lanes,
            address);
    for (const uint64_t v : in) h = Mix(h, v);
    return Mix(h, op.immediate);
  }

  const Isa isa_;
  const bool virtual_;
  std::vector<Value> registers_, stack_;
  std::vector<uint64_t> trace_;
  std::string error_;
  int64_t steps_ = 0;
};

MixedRun Run(Machine machine, const std::vector<Operation>& operations) {
  MixedRun run;
  run.trace = machine.Run(operations);
  run.error = machine.error();
  return run;
}

}  // namespace

MixedRun RunMixing(const OperationList& list) {
  return Run(Machine(list.isa, true, 0), list.operations);
}

MixedRun RunMixing(Isa isa, const std::vector<Operation>& allocated, int64_t frame_bytes) {
  return Run(Machine(isa, false, frame_bytes), allocated);
}

}  // namespace nestor::jit
