// Linear scan (Poletto and Sarkar, "Linear scan register allocation", 1999): ranges are visited by
// begin; those that have ended give their registers back; the next takes a free one, or the
// cheapest of it and those that hold a register is spilled for its whole length. (There the range
// that ends last is spilled; here the one whose uses, by the depth of their loops, are the fewest
// per operation.) A class that spills is scanned again with registers set aside, through which
// spilled values pass on their way to and from the operations that take no memory: at such
// operations, and only there, so that spills in one loop take no register from another. As long as
// a scan spills at places where the one before did not, the next one sets registers aside there,
// too. Hence, unlike in graph colouring (Chaitin, 1982), no ranges for these transfers are needed,
// and time is linear in the list.
//
// An operation reads before it writes: its result may take the register of an operand that ends
// there, and does so if possible, which saves a move in two-address code.
//
//   v1 = load [g0]           v0 = load [g0]
//   v2 = mul v1, c0          v0 = mul v0, c0        v1 is not needed again
//   v3 = add v2, v9          v0 = add v0, stack[0]  v9 was spilled
#include "jit/codegen/allocate_registers.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "jit/codegen/operand_constraints.h"
#include "jit/codegen/operations.h"
#include "jit/codegen/registers.h"
#include "uops/invariant.h"
#include "uops/mutant.h"

namespace nestor::jit {
namespace {

constexpr int32_t kSpilled = -1;
constexpr int64_t kFrameAlignment = 64;
// The classes in the order of their spill slots: vectors first, so that they are aligned to
// their size.
constexpr RegisterClass kClasses[] = {RegisterClass::kVector, RegisterClass::kMask,
                                      RegisterClass::kGeneral};

// The list and what its scans share.
struct Problem {
  // The price of a range is its weight for each position that it keeps a register busy: what is
  // used often in a short time is dear.
  explicit Problem(const OperationList& list_)
      : list(list_), ranges(LiveRangesOf(list_)), range_of(list_.classes.size(), kSpilled) {
    price.reserve(ranges.size());
    for (size_t i = 0; i < ranges.size(); ++i) {
      range_of[ranges[i].reg] = static_cast<int32_t>(i);
      by_begin[ClassOf(i)].push_back(static_cast<int32_t>(i));
      price.push_back(ranges[i].weight / (EndOf(i) - ranges[i].begin));
    }
    SortByEnd();
  }

  int ClassOf(size_t range) const { return static_cast<int>(list.classes[ranges[range].reg]); }
  // A value that nothing reads needs a place to be written to.
  int32_t EndOf(size_t range) const { return std::max(ranges[range].end, ranges[range].begin + 1); }

  // A counting sort: ends are numbers of operations, and a comparison sort would be the slowest
  // part.
  void SortByEnd() {
    std::vector<int32_t> begin_of_bucket(list.operations.size() + 2, 0);
    for (size_t i = 0; i < ranges.size(); ++i) ++begin_of_bucket[EndOf(i) + 1];
    for (size_t i = 1; i < begin_of_bucket.size(); ++i)
      begin_of_bucket[i] += begin_of_bucket[i - 1];
    std::vector<int32_t> sorted(ranges.size());
    for (size_t i = 0; i < ranges.size(); ++i)
      sorted[begin_of_bucket[EndOf(i)]++] = static_cast<int32_t>(i);
    for (const int32_t range : sorted) by_end[ClassOf(range)].push_back(range);
  }

  const OperationList& list;
  const std::vector<LiveRange> ranges;
  std::vector<int32_t> by_begin[4], by_end[4];  // by class: numbers of ranges
  std::vector<int32_t> range_of;                // by virtual register
  std::vector<double> price;                    // by range: the cost of keeping it in memory
};

// Calls `end(range)` for each range of a class that ends, in order, as a scan proceeds.
class Endings {
 public:
  Endings(const Problem& problem, int register_class)
      : problem_(problem), by_end_(problem.by_end[register_class]) {}

  template <class End>
  void Until(int32_t last, End end) {
    for (; next_ < by_end_.size() && problem_.EndOf(by_end_[next_]) <= last; ++next_)
      end(by_end_[next_]);
  }

 private:
  const Problem& problem_;
  const std::vector<int32_t>& by_end_;
  size_t next_ = 0;
};

// The operations at which spilled values pass through the last `registers` of a file, which hold
// nothing else there.
class SetAside {
 public:
  explicit SetAside(const OperationList& list) : wanted_(list.operations.size(), false) {}

  int registers() const { return registers_; }
  // Adds the registers that the operation needs; whether they are more than before.
  bool Add(size_t operation, int registers) {
    const bool more = registers > registers_ || (registers > 0 && !wanted_[operation]);
    registers_ = std::max(registers_, registers);
    if (registers > 0) wanted_[operation] = true;
    return more;
  }
  void AddEverywhere() { wanted_.assign(wanted_.size(), true); }
  // By operation, how many operations before it need some; empty: none does.
  std::vector<int32_t> Counts() const {
    if (registers_ == 0) return {};
    std::vector<int32_t> counts(wanted_.size() + 1, 0);
    for (size_t i = 0; i < wanted_.size(); ++i) counts[i + 1] = counts[i] + (wanted_[i] ? 1 : 0);
    return counts;
  }

 private:
  int registers_ = 0;
  std::vector<bool> wanted_;  // by operation
};

// The registers of one class, by their place in the file's order.
class Scan {
 public:
  // `assigned`, by range, receives a register or kSpilled.
  Scan(const Problem& problem, RegisterClass register_class, size_t registers,
       const SetAside& aside, std::vector<int32_t>& assigned)
      : problem_(problem), class_(register_class), aside_before_(aside.Counts()),
        holders_(registers), assigned_(assigned),
        endings_(problem, static_cast<int>(register_class)) {
    NESTOR_CHECK(registers <= 32, "free registers are bits of 32");
    free_ = static_cast<uint32_t>((uint64_t{1} << registers) - 1);
    aside_ = free_ & ~static_cast<uint32_t>(
                         (uint64_t{1} << (registers - static_cast<size_t>(aside.registers()))) - 1);
  }

  // How many it spilled.
  int Run() {
    for (const int32_t range : problem_.by_begin[static_cast<int>(class_)]) Place(range);
    return spilled_;
  }

 private:
  // The scan's step for one range: registers of ended ranges are free again, except, at an
  // operation that writes its result early, of those that end right here.
  void Place(int32_t range) {
    const int32_t begin = problem_.ranges[range].begin;
    const Operation& op = problem_.list.operations[begin];
    endings_.Until(Info(op.opcode).Is(kWritesEarly) ? begin - 1 : begin, [&](int32_t ended) {
      if (assigned_[ended] != kSpilled) free_ |= Bit(assigned_[ended]);
    });
    const uint32_t usable = UsableBy(range);
    if ((free_ & usable) == 0) return Spill(range, usable);
    Give(range, PreferredBy(op, free_ & usable));
    free_ &= ~Bit(assigned_[range]);
  }

  // All registers except those that are set aside somewhere in the range.
  uint32_t UsableBy(int32_t range) const {
    if (aside_ == 0) return ~uint32_t{0};
    const LiveRange& live = problem_.ranges[range];
    const bool passes = aside_before_[live.end + 1] > aside_before_[live.begin];
    return passes ? ~aside_ : ~uint32_t{0};
  }

  // The register in `free` of an operand whose last use this is; else one that not every range can
  // use; else the first in the file's order.
  int32_t PreferredBy(const Operation& op, uint32_t free) const {
    for (const Operand& operand : op.operands) {
      if (!operand.is_register() || problem_.list.classes[operand.value] != class_) continue;
      const int32_t its = assigned_[problem_.range_of[operand.value]];
      if (its != kSpilled && (free & Bit(its)) != 0) return its;
    }
    return __builtin_ctz((free & aside_) != 0 ? free & aside_ : free);
  }

  // The range, or a cheaper one that holds a register it could use, stays in memory for its whole
  // length.
  void Spill(int32_t range, uint32_t usable) {
    ++spilled_;
    int32_t victim = range;
    for (size_t i = 0; i < holders_.size(); ++i) {
      // A free register is of no use to this range.
      if ((usable & ~free_ & Bit(static_cast<int32_t>(i))) == 0) continue;
      if (problem_.price[holders_[i]] < problem_.price[victim]) victim = holders_[i];
    }
    const int32_t freed = assigned_[victim];
    assigned_[victim] = kSpilled;
    if (victim != range) Give(range, freed);
  }

  void Give(int32_t range, int32_t index) {
    assigned_[range] = index;
    holders_[index] = range;
  }

  static uint32_t Bit(int32_t index) { return uint32_t{1} << index; }

  const Problem& problem_;
  const RegisterClass class_;
  // By operation: how many operations before it need registers set aside.
  const std::vector<int32_t> aside_before_;
  std::vector<int32_t> holders_;  // by register: the last range that got it
  std::vector<int32_t>& assigned_;
  Endings endings_;
  uint32_t free_ = 0, aside_ = 0;
  int spilled_ = 0;
};

// Adds the scratch registers of a class that each operation needs under `assigned`; whether they
// are more than before. Must agree with Rewriter::LoadAndStoreAround.
// An operation needs one for each spilled operand but the one it takes from memory; the result
// shares one of theirs, unless it is written early.
bool AddScratchWanted(const Problem& problem, RegisterClass c, const std::vector<int32_t>& assigned,
                      SetAside& aside) {
  const auto is_spilled = [&](const Operand& operand) {
    return operand.is_register() && problem.list.classes[operand.value] == c &&
           assigned[problem.range_of[operand.value]] == kSpilled;
  };
  bool more = false;
  for (size_t i = 0; i < problem.list.operations.size(); ++i) {
    const Operation& op = problem.list.operations[i];
    const bool spills = absl::c_any_of(op.operands, is_spilled) || is_spilled(op.memory.base) ||
                        is_spilled(op.memory.index) || is_spilled(op.result);
    if (!spills) continue;
    Operation with_slots = op;
    int loads = 0;
    for (Operand* operand :
         {&with_slots.operands[0], &with_slots.operands[1], &with_slots.operands[2],
          &with_slots.memory.base, &with_slots.memory.index}) {
      if (!is_spilled(*operand)) continue;
      operand->kind = Operand::kStack;
      ++loads;
    }
    const bool result = is_spilled(op.result);
    if (StackOperandOf(with_slots) >= 0) --loads;
    const int wanted =
        std::max(loads, result ? 1 + (Info(op.opcode).Is(kWritesEarly) ? loads : 0) : 0);
    more |= aside.Add(i, std::min(wanted, MostScratchRegisters(c)));
  }
  return more;
}

// Assigns registers of every class, or kSpilled.
// A scan with more set aside may spill more, so the loop need not settle soon: after a few scans
// registers are set aside everywhere, and it ends.
std::vector<int32_t> AssignRegisters(const Problem& problem, const RegisterFile& file) {
  constexpr int kMostScans = 4;
  std::vector<int32_t> assigned(problem.ranges.size(), kSpilled);
  for (const RegisterClass c : kClasses) {
    const size_t all = file.Of(c).size();
    SetAside aside(problem.list);
    if (Scan(problem, c, all, aside, assigned).Run() == 0) continue;
    NESTOR_CHECK(static_cast<int>(all) >= MostScratchRegisters(c),
                 "a register file too small to spill through");
    for (int scans = 1; AddScratchWanted(problem, c, assigned, aside); ++scans) {
      if (scans >= kMostScans) aside.AddEverywhere();
      Scan(problem, c, all, aside, assigned).Run();
    }
  }
  return assigned;
}

struct Locations {
  std::vector<Operand> of;  // by virtual register: a physical one, or a spill slot
  int64_t frame_bytes = 0;
  int spilled = 0;
};

// Adds slots for the spilled ranges of a class, after those of the classes before it; ranges that
// do not overlap share slots.
// Taken by begin, intervals use no more slots than the most that overlap (the left-edge rule of
// channel routing; Hashimoto and Stevens, 1971).
void AddSlots(const Problem& problem, const std::vector<int32_t>& assigned, RegisterClass c,
              Locations& locations) {
  const int64_t slot_bytes = c == RegisterClass::kVector ? VectorBytes(problem.list.isa) : 8;
  const auto location_of = [&](int32_t range) -> Operand& {
    return locations.of[problem.ranges[range].reg];
  };
  std::vector<int64_t> free;
  Endings endings(problem, static_cast<int>(c));
  for (const int32_t range : problem.by_begin[static_cast<int>(c)]) {
    if (assigned[range] != kSpilled) continue;
    const int32_t early = NESTOR_MUTANT("spill_slot_reused_while_live") ? 20 : 0;
    endings.Until(problem.ranges[range].begin + early, [&](int32_t ended) {
      if (early > 0 && location_of(ended).kind != Operand::kStack) return;
      if (assigned[ended] == kSpilled) free.push_back(location_of(ended).value);
    });
    if (free.empty()) {
      free.push_back(locations.frame_bytes);
      locations.frame_bytes += slot_bytes;
    }
    location_of(range) = {Operand::kStack, free.back()};
    free.pop_back();
    ++locations.spilled;
  }
}

// A frame that holds vectors is a multiple of a vector, so that each slot is aligned.
Locations LocationsOf(const Problem& problem, const RegisterFile& file,
                      const std::vector<int32_t>& assigned) {
  Locations locations;
  locations.of.resize(problem.list.classes.size());
  for (const RegisterClass c : kClasses) {
    const std::vector<int>& registers = file.Of(c);
    for (const int32_t range : problem.by_begin[static_cast<int>(c)]) {
      if (assigned[range] == kSpilled) continue;
      locations.of[problem.ranges[range].reg] = Operand::Register(registers[assigned[range]]);
    }
    AddSlots(problem, assigned, c, locations);
  }
  locations.frame_bytes =
      (locations.frame_bytes + kFrameAlignment - 1) / kFrameAlignment * kFrameAlignment;
  return locations;
}

// Rewrites the operations with the locations of their operands: where they are, if none is spilled.
class Rewriter {
 public:
  Rewriter(Isa isa, const RegisterFile& file, const Locations& locations)
      : isa_(isa), file_(file), locations_(locations) {}

  std::vector<Operation> Rewritten(std::vector<Operation> operations) && {
    if (locations_.spilled == 0) {
      for (Operation& op : operations) LocateAll(op);
      return operations;
    }
    out_.reserve(2 * operations.size());
    for (const Operation& op : operations) Rewrite(op);
    return std::move(out_);
  }

 private:
  // The value of a spill slot that a scratch register holds for one operation.
  struct Loaded {
    int64_t slot;
    Operand scratch;
  };

  // Most operations have no spilled operand, and are done with new numbers.
  void Rewrite(const Operation& original) {
    out_.push_back(original);
    const Operation& op = out_.back();
    const bool spilled = LocateAll(out_.back());
    if (!spilled || (Info(op.opcode).Is(kIsMove) && op.operands[0].is_register())) return;
    const Operation with_slots = op;
    out_.pop_back();
    LoadAndStoreAround(with_slots);
  }

  // Replaces all operands by their locations; whether one of them is in memory.
  bool LocateAll(Operation& op) const {
    bool spilled = Locate(op.result);
    for (Operand& operand : op.operands) spilled |= Locate(operand);
    spilled |= Locate(op.memory.base);
    return Locate(op.memory.index) || spilled;
  }

  // Replaces the operand by its location; whether that is in memory.
  bool Locate(Operand& operand) const {
    if (!operand.is_register()) return false;
    operand = locations_.of[operand.value];
    return operand.kind == Operand::kStack;
  }

  // The spilled operands are loaded, except one that the operation takes from memory; the result is
  // stored. One load serves an operand that occurs twice.
  //
  //   v2 = compare v0, v1      s0 = move stack[0]; v2 = compare s0, stack[64]   v0, v1 spilled
  void LoadAndStoreAround(Operation op) {
    const OpcodeInfo& info = Info(op.opcode);
    statement_ = op.statement;
    ForgetLoaded();
    LoadAddress(op);
    const int in_place = StackOperandOf(op);
    for (int i = 0; i < 3; ++i) {
      if (i != in_place) Load(op.operands[i], info.operands[i]);
    }
    if (in_place >= 0) UseLoaded(op.operands[in_place]);

    if (op.result.kind != Operand::kStack) return out_.push_back(op);
    const Operand slot = op.result;
    op.result = Scratch(info.result, Info(op.opcode).Is(kWritesEarly) ? Used(info.result) : 0);
    out_.push_back(op);
    Move(info.result, slot, op.result);
  }

  // If the operation has more general operands to load than there are scratch registers, base and
  // index become one address.
  void LoadAddress(Operation& op) {
    Memory& memory = op.memory;
    const bool both = memory.base.kind == Operand::kStack && memory.index.kind == Operand::kStack;
    Load(memory.base, RegisterClass::kGeneral);
    Load(memory.index, RegisterClass::kGeneral);
    if (!both || GeneralOnStack(op) < 2) return;
    Operation address;
    address.opcode = Opcode::kAddressG;
    address.memory = memory;
    address.result = Scratch(RegisterClass::kGeneral, 0);
    address.statement = statement_;
    out_.push_back(address);
    memory = Memory{address.result, {}};
    ForgetLoaded();
    Used(RegisterClass::kGeneral) = 1;
  }

  static int GeneralOnStack(const Operation& op) {
    int count = 0;
    for (int i = 0; i < 3; ++i) {
      count += op.operands[i].kind == Operand::kStack &&
               Info(op.opcode).operands[i] == RegisterClass::kGeneral;
    }
    return count;
  }

  void Load(Operand& operand, RegisterClass place) {
    if (operand.kind != Operand::kStack || UseLoaded(operand)) return;
    const Operand scratch = Scratch(place, Used(place)++);
    Move(place, scratch, operand);
    loaded_.push_back({operand.value, scratch});
    operand = scratch;
  }

  bool UseLoaded(Operand& operand) const {
    for (const Loaded& loaded : loaded_) {
      if (loaded.slot != operand.value) continue;
      operand = loaded.scratch;
      return true;
    }
    return false;
  }

  // Moves whole registers: it is not known here how many lanes of a value are used.
  void Move(RegisterClass place, const Operand& to, const Operand& from) {
    Operation move;
    move.opcode = Opcode::kMoveG;
    if (place != RegisterClass::kGeneral) {
      move.opcode = OnMachine(place) == RegisterClass::kVector ? Opcode::kMove : Opcode::kMaskMove;
      move.lanes = static_cast<uint8_t>(VectorBytes(isa_) / LaneBytes(move.lane));
    }
    move.result = to;
    move.operands[0] = from;
    move.statement = statement_;
    out_.push_back(move);
  }

  RegisterClass OnMachine(RegisterClass place) const {
    return place == RegisterClass::kMask ? ClassOfMasks(isa_) : place;
  }

  // The last registers of the file.
  Operand Scratch(RegisterClass place, int number) const {
    const RegisterClass c = OnMachine(place);
    NESTOR_CHECK(number < MostScratchRegisters(c),
                 "an operation with more spilled operands than scratch registers");
    return Operand::Register(file_.Of(c).rbegin()[number]);
  }

  // How many of a class hold loaded values.
  int& Used(RegisterClass place) { return used_[static_cast<int>(OnMachine(place))]; }
  void ForgetLoaded() {
    loaded_.clear();
    std::fill(std::begin(used_), std::end(used_), 0);
  }

  const Isa isa_;
  const RegisterFile& file_;
  const Locations& locations_;
  std::vector<Operation> out_;
  std::vector<Loaded> loaded_;
  int used_[4] = {};  // by class
  int32_t statement_ = -1;
};

}  // namespace

// Assign, place what is left on the stack, rewrite.
Allocated AllocateRegisters(OperationList& list, const RegisterFile& file) {
  const Problem problem(list);
  const Locations locations = LocationsOf(problem, file, AssignRegisters(problem, file));
  Allocated allocated;
  allocated.operations = Rewriter(list.isa, file, locations).Rewritten(std::move(list.operations));
  allocated.frame_bytes = locations.frame_bytes;
  allocated.spilled = locations.spilled;
  return allocated;
}

}  // namespace nestor::jit
