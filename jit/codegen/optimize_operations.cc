// A straight translation computes masks, constants and broadcasts where they are used, and the
// copies of an unrolled body load the same elements again. One walk in the order of the list mends
// this, with a table of the values that registers hold (known_values.h):
//
//   loop_begin                          v9 = load_broadcast [g1];  v8 = move c0
//     v4 = load_broadcast [g1]          loop_begin
//     v5 = load [g0]                      v5 = load [g0]
//     v6 = fma v4, v5, c0                 v6 = fma v9, v5, v8
//     v7 = load_broadcast [g1]
//     v2 = mul v7, v6                     v2 = mul v9, v6
//   loop_end                            loop_end
//
// An operation whose value is known is dropped, and its result gets the other name. This lengthens
// live ranges, and so does what follows: from the innermost loops outwards, operations that do not
// change in a loop move before it, and constants are loaded there, the most useful ones first.
// `Pressure` counts the registers that are left. Where general registers are too few, live ranges
// are split before innermost loops (Cooper and Simpson, "Live range splitting in a graph coloring
// register allocator", 1998).
#include "jit/codegen/optimize_operations.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "jit/codegen/allocate_registers.h"
#include "jit/codegen/known_values.h"
#include "jit/codegen/operand_constraints.h"
#include "jit/codegen/pressure.h"

namespace nestor::jit {
namespace {

constexpr RegisterClass kHoisted[] = {RegisterClass::kVector, RegisterClass::kMask};

// `op`: an Operation, const or not.
template <class Op, class Visit>
void VisitReads(Op& op, Visit visit) {
  for (auto& operand : op.operands) {
    if (operand.is_register()) visit(operand);
  }
  if (op.memory.base.is_register()) visit(op.memory.base);
  if (op.memory.index.is_register()) visit(op.memory.index);
}

bool IsPrefetch(const Operation& op) {
  return op.opcode == Opcode::kPrefetch || op.opcode == Opcode::kPrefetchSecond;
}

bool IsLoad(const Operation& op) {
  return HasMemory(op) || (op.opcode == Opcode::kMove && op.operands[0].kind == Operand::kConstant);
}

// Whether it has no result and takes a vector: only stores do.
bool IsStore(const Operation& op) {
  const OpcodeInfo& info = Info(op.opcode);
  return info.result == RegisterClass::kNone && info.operands[0] == RegisterClass::kVector;
}

// Where each register is written, as numbers of operations.
class Writes {
 public:
  explicit Writes(const OperationList& list) : begin_(list.classes.size() + 1, 0) {
    for (const Operation& op : list.operations) {
      if (op.result.is_register()) ++begin_[op.result.value + 1];
    }
    for (size_t i = 1; i < begin_.size(); ++i) begin_[i] += begin_[i - 1];
    places_.resize(begin_.back());
    std::vector<int32_t> next(begin_.begin(), begin_.end() - 1);
    for (size_t i = 0; i < list.operations.size(); ++i) {
      const Operand& result = list.operations[i].result;
      if (result.is_register()) places_[next[result.value]++] = static_cast<int32_t>(i);
    }
  }

  bool IsWrittenOnce(const Operand& reg) const {
    return begin_[reg.value + 1] - begin_[reg.value] == 1;
  }
  // Whether operations (first, last) write it.
  bool Within(const Operand& reg, int32_t first, int32_t last) const {
    const auto end = places_.begin() + begin_[reg.value + 1];
    const auto next = std::upper_bound(places_.begin() + begin_[reg.value], end, first);
    return next != end && *next < last;
  }
  // The register's only write moves there.
  void Move(const Operand& reg, int32_t to) { places_[begin_[reg.value]] = to; }
  // A new register is written there.
  void Add(int32_t at) {
    places_.push_back(at);
    begin_.push_back(static_cast<int32_t>(places_.size()));
  }

 private:
  std::vector<int32_t> begin_;   // by register, in places_
  std::vector<int32_t> places_;  // ascending for each register
};

// Removes operations whose result register is written again before anything reads it: one walk
// backwards tracks this for each register, and forgets it at each label and jump. `stretch` numbers
// the parts between labels and jumps, so that none of the states needs to be reset.
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

class Optimizer {
 public:
  Optimizer(OperationList& list, const RegisterFile& file)
      : Optimizer(list, file, LiveRangesOf(list)) {}

  void Run(bool hoists) {
    for (at_ = 0; at_ < Size(); ++at_) Visit(list_.operations[at_]);
    if (hoists) Hoist();
    Rewrite();
  }

 private:
  // An operation that may move before the loop around it.
  struct Candidate {
    int32_t at;      // where it stands, or the begin of the loop before which it stands
    int32_t number;  // in hoisted_, if it has moved already; else -1
    bool always;     // no jump passes it: the loop runs it if it runs
  };
  struct Loop {
    int32_t around;  // the loop around it, in loops_; -1: none
    int32_t begin, end = 0;
    bool innermost = true;
    bool always = true;  // no jump passes what comes now
    std::vector<Candidate> candidates = {};
  };
  // An operation that has moved to the begin of a loop.
  struct Hoisted {
    int32_t before;
    Operation op;
    bool moved_on = false;  // before a loop around that one
  };

  Optimizer(OperationList& list, const RegisterFile& file, const std::vector<LiveRange>& ranges)
      : list_(list), file_(file), pressure_(list, ranges), writes_(list),
        known_(list.classes.size()), ends_(list.classes.size(), 0),
        touched_(list.classes.size(), 0), names_(list.classes.size()),
        dropped_(list.operations.size(), false) {
    for (const LiveRange& range : ranges) ends_[range.reg] = range.end;
  }

  int32_t Size() const { return static_cast<int32_t>(list_.operations.size()); }

  // An operation is renamed by what is known so far, dropped if its value is known, and otherwise
  // makes what it overwrites unknown.
  void Visit(Operation& op) {
    Rename(op);
    if (IsControl(op)) return Control(op);
    if (IsStore(op)) known_.Store();
    else if (IsCandidate(op) && IsKnown(op)) return Drop(op);
    if (op.result.is_register()) {
      known_.Write(op.result);
      touched_[op.result.value] = at_;
    }
    VisitReads(op, [&](const Operand& read) { touched_[read.value] = at_; });
    if (open_ >= 0 && MayHoist(op))
      loops_[open_].candidates.push_back({at_, -1, loops_[open_].always});
  }

  void Control(const Operation& op) {
    known_.Control(op);
    if (open_ >= 0) loops_[open_].always = false;
    if (op.opcode == Opcode::kLoopBegin) {
      if (open_ >= 0) loops_[open_].innermost = false;
      loops_.push_back({open_, at_});
      open_ = static_cast<int32_t>(loops_.size()) - 1;
    }
    if (op.opcode != Opcode::kLoopEnd) return;
    loops_[open_].end = at_;
    open_ = loops_[open_].around;
  }

  // Drops the operation, which may be the last one that needed some of its operands.
  void Drop(const Operation& op) {
    dropped_[at_] = true;
    for (const Operand& operand : op.operands) {
      if (!operand.is_register() || ends_[operand.value] != at_) continue;
      pressure_.Add(list_.classes[operand.value], touched_[operand.value], at_, -1);
      ends_[operand.value] = touched_[operand.value];
    }
  }

  // ---- Values that are known

  // Since its result is written once, another register that is written once can replace it wherever
  // it is read.
  bool IsCandidate(const Operation& op) const {
    return IsPrefetch(op) ||
           (IsWrittenOnce(op) && list_.classes[op.result.value] != RegisterClass::kGeneral);
  }
  bool IsWrittenOnce(const Operation& op) const {
    return op.result.is_register() && writes_.IsWrittenOnce(op.result);
  }

  // Whether a register already holds its result, or the line is already prefetched.
  bool IsKnown(const Operation& op) {
    const Operand* known = known_.FindOrAdd(op);
    if (known == nullptr) return false;
    if (known->is_register()) {
      if (!Keep(*known, op)) {
        known_.Add(op);
        return false;
      }
      names_[op.result.value] = *known;
    }
    return true;
  }

  // Extends the life of `known` to that of the result of `op`, which it is to replace. Whether
  // there is a register for it until then: a load, also of a constant, needs a free one; other
  // operations are worth a spill.
  bool Keep(const Operand& known, const Operation& op) {
    int32_t& end = ends_[known.value];
    const int32_t own_end = ends_[op.result.value];
    const RegisterClass c = list_.classes[known.value];
    if (end < at_) {
      if (IsLoad(op) && pressure_.Most(c, end, at_) >= NumRegisters(c)) return false;
      pressure_.Add(c, end, at_, 1);
    } else {
      pressure_.Add(c, at_, std::min(end, own_end), -1);
    }
    end = std::max(end, own_end);
    return true;
  }

  // ---- Loop invariants

  // These cannot fail, so they may run even if the loop's code jumps past them.
  bool MayHoist(const Operation& op) const {
    return Info(op.opcode).Is(kHoists) && (!HasMemory(op) || op.invariant) && IsWrittenOnce(op);
  }

  // Inner loops come after those around them in loops_.
  void Hoist() {
    for (const RegisterClass c : kHoisted) {
      usable_[static_cast<int>(c)] = NumRegisters(c) - (Spills(c) ? MostScratchRegisters(c) : 0);
    }
    for (size_t i = loops_.size(); i-- > 0;) HoistFrom(loops_[i]);
    if (Spills(RegisterClass::kGeneral)) CopyBeforeInnermostLoops();
  }

  int NumRegisters(RegisterClass c) const { return static_cast<int>(file_.Of(c).size()); }
  // Whether more values live somewhere than there are registers.
  bool Spills(RegisterClass c) const {
    return pressure_.Most(c, 0, list_.operations.size()) > NumRegisters(c);
  }

  // In the order of the list, so that an operation on a hoisted result is hoisted, too.
  void HoistFrom(const Loop& loop) {
    for (const RegisterClass c : kHoisted)
      FreeOf(c) = usable_[static_cast<int>(c)] - pressure_.Most(c, loop.begin, loop.end + 1);
    const size_t first = hoisted_.size();
    for (const Candidate& candidate : loop.candidates) HoistIfItPays(candidate, loop, first);
    if (loop.innermost) HoistConstants(loop);
    if (loop.around < 0) return;
    for (size_t i = first; i < hoisted_.size(); ++i)
      loops_[loop.around].candidates.push_back({loop.begin, static_cast<int32_t>(i), false});
  }

  // `first`: in hoisted_, of those from this loop; there are no more of them than registers.
  void HoistIfItPays(const Candidate& candidate, const Loop& loop, size_t first) {
    Operation op =
        candidate.number < 0 ? list_.operations[candidate.at] : hoisted_[candidate.number].op;
    Rename(op);
    if (Changes(op, loop) || (HasMemory(op) && !candidate.always)) return;
    const auto same =
        std::find_if(hoisted_.begin() + static_cast<int64_t>(first), hoisted_.end(),
                     [&](const Hoisted& other) { return SameComputation(other.op, op); });
    const bool is_new = same == hoisted_.end();
    int& free = FreeOf(list_.classes[op.result.value]);
    if (is_new && free <= 0) return;
    if (candidate.number < 0) dropped_[candidate.at] = true;
    else hoisted_[candidate.number].moved_on = true;
    if (!is_new) {
      names_[op.result.value] = same->op.result;
      return;
    }
    --free;
    LivesThrough(loop, op.result, candidate.at);
    writes_.Move(op.result, loop.begin);
    hoisted_.push_back({loop.begin, op});
  }

  int& FreeOf(RegisterClass c) { return free_[static_cast<int>(c)]; }

  bool Changes(const Operation& op, const Loop& loop) const {
    bool changes = false;
    VisitReads(op, [&](const Operand& read) {
      changes = changes || writes_.Within(read, loop.begin, loop.end);
    });
    return changes;
  }

  // The register is needed all through the loop, not only from `at` on.
  void LivesThrough(const Loop& loop, const Operand& reg, int32_t at) {
    if (loop.around < 0) return;  // nobody asks any more
    const RegisterClass c = list_.classes[reg.value];
    pressure_.Add(c, loop.begin, at, 1);
    pressure_.Add(c, ends_[reg.value], loop.end, 1);
    ends_[reg.value] = std::max(ends_[reg.value], loop.end);
  }

  // ---- Constants

  struct Use {
    int64_t constant;
    int gain = 0;   // 1 for a memory operand, 2 for an instruction
    int bytes = 0;  // the most that are read of it
  };

  // The most useful constants first: one that an operation cannot take from memory costs a load
  // each time, another one only a wider instruction.
  void HoistConstants(const Loop& loop) {
    std::vector<Use> uses = UsesIn(loop);
    std::stable_sort(uses.begin(), uses.end(),
                     [](const Use& a, const Use& b) { return a.gain > b.gain; });
    for (const Use& use : uses) {
      if (FreeOf(RegisterClass::kVector)-- <= 0) return;
      Operation load{Opcode::kMove, Lane::kI32,
                     static_cast<uint8_t>(use.bytes / LaneBytes(Lane::kI32))};
      load.operands[0] = Operand::Constant(use.constant);
      load.result = list_.NewVector();
      names_.emplace_back();
      ends_.push_back(loop.begin);
      writes_.Add(loop.begin);
      LivesThrough(loop, load.result, loop.begin);
      Load(Operand::Constant(use.constant), load.result, loop);
      hoisted_.push_back({loop.begin, load});
    }
  }

  // Replaces a constant by `loaded`, a register. A register that is only ever a copy of the
  // constant becomes `loaded`, too.
  void Load(const Operand& constant, const Operand& loaded, const Loop& loop) {
    for (int32_t i = loop.begin; i < loop.end; ++i) {
      if (dropped_[i]) continue;
      Operation& op = list_.operations[i];
      for (Operand& operand : op.operands) {
        if (operand == constant) operand = loaded;
      }
      if (op.opcode != Opcode::kMove || !(op.operands[0] == loaded) || !IsWrittenOnce(op)) continue;
      names_[op.result.value] = loaded;
      pressure_.Add(RegisterClass::kVector, i, ends_[op.result.value], -1);
      dropped_[i] = true;
    }
  }

  // How much each constant would save in the loop, and how wide it must be.
  std::vector<Use> UsesIn(const Loop& loop) const {
    std::vector<Use> uses;
    absl::flat_hash_map<int64_t, size_t> places;  // in `uses`, by constant
    for (int32_t i = loop.begin; i < loop.end; ++i) {
      if (dropped_[i]) continue;
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

  // ---- General registers

  // What an innermost loop reads and does not write is copied before it, and read there from the
  // copy. For a range is spilled for its whole length: that of a stride, say, is long, and so cheap,
  // however often the loop uses it; the copy's is short and dear.
  void CopyBeforeInnermostLoops() {
    std::vector<Operand> copies(list_.classes.size());  // by register: its copy for the loop
    for (const Loop& loop : loops_) {
      if (!loop.innermost) continue;
      const size_t first = hoisted_.size();
      for (int32_t i = loop.begin + 1; i <= loop.end; ++i) {
        if (dropped_[i]) continue;
        VisitReads(list_.operations[i], [&](Operand& read) {
          if (list_.classes[read.value] != RegisterClass::kGeneral ||
              writes_.Within(read, loop.begin, loop.end))
            return;
          Operand& copy = copies[read.value];
          if (!copy.is_register()) copy = CopyBefore(loop, read);
          read = copy;
        });
      }
      for (size_t i = first; i < hoisted_.size(); ++i)
        copies[hoisted_[i].op.operands[0].value] = {};
    }
  }

  Operand CopyBefore(const Loop& loop, const Operand& reg) {
    Operation copy{Opcode::kMoveG};
    copy.operands[0] = reg;
    copy.result = list_.NewGeneral();
    names_.emplace_back();
    hoisted_.push_back({loop.begin, copy});
    return copy.result;
  }

  // ---- Rewriting

  // Each replaced register is written once, so that all its reads, wherever they are, can be
  // replaced.
  void Rename(Operation& op) const {
    for (Operand& operand : op.operands) {
      while (operand.is_register() && names_[operand.value].is_register())
        operand = names_[operand.value];
    }
  }

  // All moves of all loops at once, since inserting into the list one by one would be quadratic.
  // From its end on, so that the list needs no second memory: what stays gathers at the end.
  void Rewrite() {
    std::stable_sort(hoisted_.begin(), hoisted_.end(),
                     [](const Hoisted& a, const Hoisted& b) { return a.before < b.before; });
    const int32_t size = Size();
    list_.operations.resize(list_.operations.size() + hoisted_.size());
    auto kept = list_.operations.end();
    const auto put = [&](const Operation& op) {
      *--kept = op;
      Rename(*kept);
    };
    auto hoisted = hoisted_.rbegin();
    for (int32_t i = size; i-- > 0;) {
      if (!dropped_[i]) put(list_.operations[i]);
      for (; hoisted != hoisted_.rend() && hoisted->before == i; ++hoisted) {
        if (!hoisted->moved_on) put(hoisted->op);
      }
    }
    list_.operations.erase(list_.operations.begin(), kept);
  }

  OperationList& list_;
  const RegisterFile& file_;
  Pressure pressure_;
  Writes writes_;
  KnownValues known_;
  int32_t at_ = 0;                // the operation
  std::vector<int32_t> ends_;     // by register: the last operation that needs it, by all its names
  std::vector<int32_t> touched_;  // by register: the last operation so far that is not dropped
  std::vector<Operand> names_;    // by register: its replacement, if any
  std::vector<bool> dropped_;     // by operation
  // Registers by class: that need not be kept for spills, and those that are free in a loop.
  int usable_[4] = {}, free_[4] = {};
  int32_t open_ = -1;        // the innermost open loop, in loops_
  std::vector<Loop> loops_;  // in the order of their begins
  std::vector<Hoisted> hoisted_;
};

}  // namespace

void OptimizeOperations(OperationList& list, const RegisterFile& file, bool hoists) {
  RemoveDeadWrites(list);
  Optimizer(list, file).Run(hoists);
}

}  // namespace nestor::jit
