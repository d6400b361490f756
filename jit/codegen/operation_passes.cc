// Two clean-ups that a straight translation makes necessary: it sets registers at their declaration
// though the first store overwrites them, and it makes masks and constants where they are used.
//
// Dead writes: one walk backwards tracks for each register whether it is written again before it is
// read; this knowledge ends at each label and jump.
//
//   v1 = move c0             (removed)
//   v1 = load [g0]           v1 = load [g0]
//
// Hoisting is loop-invariant code motion (Allen and Cocke, "A catalogue of optimizing
// transformations", 1971), restricted by the registers that are left (pressure.h). It looks at
// innermost loops alone: operations of a few kinds (broadcasts, masks) whose operands the loop does
// not write move before it, then constants do, as long as live ranges leave registers free. So a
// hoisted value never makes another one spill.
//
//   loop_begin                              v9 = broadcast v3;  v8 = move c0
//     v4 = broadcast v3                     loop_begin
//     v5 = fma v4, v2, c0                     v5 = fma v9, v2, v8
#include "jit/codegen/operation_passes.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "jit/codegen/allocate_registers.h"
#include "jit/codegen/operand_constraints.h"
#include "jit/codegen/pressure.h"

namespace nestor::jit {
namespace {

template <class Visit>
void VisitReads(const Operation& op, Visit visit) {
  for (const Operand& operand : op.operands) {
    if (operand.is_register()) visit(operand);
  }
  if (op.memory.base.is_register()) visit(op.memory.base);
  if (op.memory.index.is_register()) visit(op.memory.index);
}

class Hoister {
 public:
  Hoister(OperationList& list, const RegisterFile& file)
      : list_(list), file_(file), pressure_(list, LiveRangesOf(list)), writes_(list.classes.size()),
        writes_inside_(list.classes.size()) {
    for (const RegisterClass c : kHoisted) {
      const int all = static_cast<int>(file_.Of(c).size());
      const bool spills = pressure_.Most(c, 0, list_.operations.size() - 1) > all;
      usable_[static_cast<int>(c)] = all - (spills ? MostScratchRegisters(c) : 0);
    }
  }

  void Run() {
    for (const Operation& op : list_.operations) {
      if (op.result.is_register()) ++writes_[op.result.value];
    }
    size_t begin = 0;
    for (size_t i = 0; i < list_.operations.size(); ++i) {
      if (list_.operations[i].opcode == Opcode::kLoopBegin) begin = i;
      if (list_.operations[i].opcode != Opcode::kLoopEnd) continue;
      if (begin != kOutside) Enter(begin, i);
      begin = kOutside;  // the loop around is not an innermost one
    }
    if (!hoisted_.empty()) Rewrite();
    if (renamed_.empty()) return;
    for (Operation& op : list_.operations) Rename(op);
  }

 private:
  static constexpr size_t kOutside = static_cast<size_t>(-1);
  static constexpr RegisterClass kHoisted[] = {RegisterClass::kVector, RegisterClass::kMask};

  // One innermost loop: operations [begin, end].
  void Enter(size_t begin, size_t end) {
    for (const RegisterClass c : kHoisted) {
      free_[static_cast<int>(c)] = usable_[static_cast<int>(c)] - pressure_.Most(c, begin, end);
    }
    for (size_t i = begin; i < end; ++i) {
      if (list_.operations[i].result.is_register())
        ++writes_inside_[list_.operations[i].result.value];
    }
    HoistOperations(begin, end);
    HoistConstants(begin, end);
    for (size_t i = begin; i < end; ++i) {
      if (list_.operations[i].result.is_register())
        writes_inside_[list_.operations[i].result.value] = 0;
    }
  }

  int& FreeOf(const Operand& reg) { return free_[static_cast<int>(list_.classes[reg.value])]; }

  // ---- Operations

  // These cannot fail, so they may run even if the loop's code jumps past them; a load may only if
  // the loop always makes it.
  static bool MayHoist(const Operation& op, bool always) {
    return Info(op.opcode).Is(kHoists) && (!HasMemory(op) || (op.invariant && always));
  }

  // In the order of the loop, so that an operation on a hoisted result is hoisted, too.
  void HoistOperations(size_t begin, size_t end) {
    Computed before;     // computations hoisted out of this loop
    bool always = true;  // no jump passes the operation: the loop runs it if it runs
    for (size_t i = begin + 1; i < end; ++i) {
      always = always && !IsControl(list_.operations[i]);
      if (!MayHoist(list_.operations[i], always) || writes_[list_.operations[i].result.value] != 1)
        continue;
      const Operation op = Renamed(list_.operations[i]);
      bool moves = false;
      VisitReads(op, [&](const Operand& read) { moves |= writes_inside_[read.value] > 0; });
      if (moves) continue;
      const bool loads = HasMemory(op);
      if (const auto known = before.find(op); known != before.end() && !loads) {
        renamed_[op.result] = known->second;
      } else if (FreeOf(op.result) <= 0) {
        continue;
      } else {
        --FreeOf(op.result);
        if (!loads) before.emplace(op, op.result);
        hoisted_.push_back({begin, op});
      }
      writes_inside_[op.result.value] = 0;
      removed_.push_back(i);
    }
  }

  // ---- Registers that others replace. Each is written once, so that all its reads, wherever they
  // are, can be replaced in one walk at the end.

  void Rename(Operation& op) const {
    for (Operand& operand : op.operands) {
      if (!operand.is_register()) continue;
      for (auto by = renamed_.find(operand); by != renamed_.end(); by = renamed_.find(operand))
        operand = by->second;
    }
  }

  Operation Renamed(Operation op) const {
    Rename(op);
    return op;
  }

  // ---- Constants

  struct Use {
    int64_t constant;
    int gain = 0;   // 1 for a memory operand, 2 for an instruction
    int bytes = 0;  // the most that are read of it
  };

  // The most useful constants first: one that an operation cannot take from memory costs a load
  // each time, another one only a wider instruction.
  void HoistConstants(size_t begin, size_t end) {
    std::vector<Use> uses = UsesIn(begin, end);
    std::stable_sort(uses.begin(), uses.end(),
                     [](const Use& a, const Use& b) { return a.gain > b.gain; });
    int& free = free_[static_cast<int>(RegisterClass::kVector)];
    for (const Use& use : uses) {
      if (free <= 0) return;
      --free;
      Operation load{Opcode::kMove, Lane::kI32,
                     static_cast<uint8_t>(use.bytes / LaneBytes(Lane::kI32))};
      load.operands[0] = Operand::Constant(use.constant);
      load.result = list_.NewVector();
      Load(Operand::Constant(use.constant), load.result, begin, end);
      hoisted_.push_back({begin, load});
    }
  }

  // Replaces a constant by `loaded`, a register. A register that is only ever a copy of the
  // constant becomes `loaded`, too.
  void Load(const Operand& constant, const Operand& loaded, size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      Operation& op = list_.operations[i];
      for (Operand& operand : op.operands) {
        if (operand == constant) operand = loaded;
      }
      if (op.opcode != Opcode::kMove || !(op.operands[0] == loaded) ||
          writes_[op.result.value] != 1)
        continue;
      renamed_[op.result] = loaded;
      removed_.push_back(i);
    }
  }

  // How much each constant would save in the loop, and how wide it must be.
  std::vector<Use> UsesIn(size_t begin, size_t end) const {
    std::vector<Use> uses;
    absl::flat_hash_map<int64_t, size_t> places;  // in `uses`, by constant
    for (size_t i = begin; i < end; ++i) {
      const Operation& op = list_.operations[i];
      for (int k = 0; k < 3; ++k) {
        if (op.operands[k].kind != Operand::kConstant) continue;
        const int64_t number = op.operands[k].value;
        const auto [place, is_new] = places.try_emplace(number, uses.size());
        if (is_new) uses.push_back({number});
        Use& use = uses[place->second];
        use.gain += InMemory(op, k) ? 1 : 2;
        use.bytes = std::max(use.bytes, OperandBytes(op, k));
      }
    }
    return uses;
  }

  // Whether the constant is the operation's memory operand and needs no instruction of its own.
  static bool InMemory(Operation op, int number) {
    if (Info(op.opcode).Is(kIsMove)) return false;
    for (Operand& operand : op.operands) {
      if (operand.kind == Operand::kConstant) operand.kind = Operand::kRegister;
    }
    op.operands[number].kind = Operand::kStack;
    return StackOperandOf(op) == number;
  }

  // All moves of all loops at once, since inserting into the list one by one would be quadratic.
  void Rewrite() {
    std::sort(removed_.begin(), removed_.end());
    std::stable_sort(hoisted_.begin(), hoisted_.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<Operation> out;
    out.reserve(list_.operations.size() + hoisted_.size());
    auto hoisted = hoisted_.begin();
    auto removed = removed_.begin();
    for (size_t i = 0; i < list_.operations.size(); ++i) {
      for (; hoisted != hoisted_.end() && hoisted->first == i; ++hoisted)
        out.push_back(hoisted->second);
      if (removed != removed_.end() && *removed == i) ++removed;
      else out.push_back(list_.operations[i]);
    }
    list_.operations = std::move(out);
  }

  OperationList& list_;
  const RegisterFile& file_;
  const Pressure pressure_;
  std::vector<int> writes_, writes_inside_;  // by register: in the list, in the loop
  // Registers by class, that need not be kept for spills.
  int usable_[4] = {};
  int free_[4] = {};                                   // ... in the loop
  absl::flat_hash_map<Operand, Operand> renamed_;      // registers and their replacements
  std::vector<std::pair<size_t, Operation>> hoisted_;  // before the loop that begins there
  std::vector<size_t> removed_;
};

}  // namespace

// `stretch` numbers the parts between labels and jumps, so that none of the states needs to be
// reset.
void RemoveDeadWrites(OperationList& list) {
  // By register: the stretch after which it is written before it is read.
  std::vector<int> dead(list.classes.size(), 0);
  auto kept = list.operations.end();  // the operations that stay gather at the end
  int stretch = 1;
  for (size_t i = list.operations.size(); i-- > 0;) {
    const Operation& op = list.operations[i];
    if (IsControl(op)) ++stretch;
    if (op.result.is_register()) {
      int& state = dead[op.result.value];
      if (state == stretch) continue;
      state = stretch;
    }
    VisitReads(op, [&](const Operand& read) { dead[read.value] = 0; });
    *--kept = op;
  }
  list.operations.erase(list.operations.begin(), kept);
}

void HoistFromInnermostLoops(OperationList& list, const RegisterFile& file) {
  Hoister(list, file).Run();
}

}  // namespace nestor::jit
