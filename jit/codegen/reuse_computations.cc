// Unrolled copies of a body load the same elements and broadcast the same scalars; this finds the
// repetitions by value numbering (Cocke and Schwartz, "Programming languages and their compilers",
// 1970), with a table whose entries go in and out of scope with control flow (as in Briggs, Cooper
// and Simpson, "Value numbering", 1997).
//
//   v1 = load_broadcast [g0]         v1 = load_broadcast [g0]
//   v2 = fma v1, v8, v2              v2 = fma v1, v8, v2
//   v3 = load_broadcast [g0]
//   v4 = fma v3, v9, v4              v4 = fma v1, v9, v4
//
// One walk in the order of the list. A computed value is known from there on, until the walk comes
// to a place that control also reaches without passing the computation: a label ends the knowledge
// of values computed since the branch, both ends of a loop that of all values.
//
// A register that is written more than once has a version for each write so far; a load depends on
// all stores before it, because any of them may have written what it reads, unless it is invariant.
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/hash/hash.h"
#include "jit/codegen/operation_passes.h"
#include "jit/codegen/operations.h"
#include "jit/codegen/pressure.h"

namespace nestor::jit {
namespace {

// Whether it has no result and takes a vector: only stores do.
bool IsStore(Opcode opcode) {
  const OpcodeInfo& info = Info(opcode);
  return info.result == RegisterClass::kNone && info.operands[0] == RegisterClass::kVector;
}

// An operation whose registers carry their versions.
struct Key {
  Operation op;
  int64_t stores = 0;  // before a load

  friend bool operator==(const Key& x, const Key& y) {
    return SameComputation(x.op, y.op) && x.stores == y.stores && x.op.type == y.op.type &&
           x.op.memory.base == y.op.memory.base && x.op.memory.index == y.op.memory.index &&
           x.op.memory.scale == y.op.memory.scale &&
           x.op.memory.displacement == y.op.memory.displacement;
  }
  template <class H>
  friend H AbslHashValue(H h, const Key& key) {
    const Memory& memory = key.op.memory;
    return H::combine(std::move(h), ComputationHash()(key.op), key.stores, key.op.type, memory.base,
                      memory.index, memory.scale, memory.displacement);
  }
};

class Reuse {
 public:
  Reuse(OperationList& list, const RegisterFile& file) : Reuse(list, file, LiveRangesOf(list)) {}

  // In one pass: an operation is renamed by what is known so far, dropped if its value is known,
  // and otherwise makes what it overwrites unknown.
  void Run() {
    for (const Operation& op : list_.operations) {
      if (op.result.is_register()) ++writes_[op.result.value];
    }
    std::vector<Operation> kept;
    kept.reserve(list_.operations.size());
    for (Operation op : list_.operations) {
      ++at_;
      Rename(op);
      if (IsControl(op)) Pass(op);
      else if (IsStore(op.opcode)) ++stores_;
      else if (IsKnown(op)) continue;
      if (op.result.is_register()) ++versions_[op.result.value];
      kept.push_back(op);
    }
    list_.operations = std::move(kept);
  }

 private:
  Reuse(OperationList& list, const RegisterFile& file, const std::vector<LiveRange>& ranges)
      : list_(list), file_(file), pressure_(list, ranges), writes_(list.classes.size(), 0),
        versions_(list.classes.size(), 0), ends_(list.classes.size(), 0),
        names_(list.classes.size()) {
    for (const LiveRange& range : ranges) ends_[range.reg] = range.end;
  }

  struct Known {
    Key key;
    Operand result;
    size_t hash;
  };

  // A label forgets what was found after the first branch to it. Since jumps nest, the values found
  // since are the last ones of `order_`.
  void Pass(const Operation& op) {
    switch (op.opcode) {
      case Opcode::kBranch:
      case Opcode::kJump: known_at_.try_emplace(op.immediate, order_.size()); break;
      case Opcode::kLabel:
        if (const auto at = known_at_.find(op.immediate); at != known_at_.end()) {
          ForgetSince(at->second);
          known_at_.erase(at);
        }
        break;
      case Opcode::kLoopBegin:
      case Opcode::kLoopEnd:
        ForgetSince(0);
        for (auto& [label, count] : known_at_) count = 0;
        break;
      default: break;
    }
  }

  void ForgetSince(size_t count) {
    for (; order_.size() > count; order_.pop_back()) places_.erase(order_.back().hash);
  }

  // Whether a register already holds the result of `op`, or the line is already prefetched; else
  // remembers it.
  bool IsKnown(const Operation& op) {
    const bool is_prefetch = op.opcode == Opcode::kPrefetch || op.opcode == Opcode::kPrefetchSecond;
    if (!is_prefetch && !IsCandidate(op)) return false;
    Key key = KeyOf(op);
    const size_t hash = absl::HashOf(key);
    const auto [place, is_new] = places_.try_emplace(hash, order_.size());
    if (is_new || !(order_[place->second].key == key) || !Keep(order_[place->second].result, op)) {
      place->second = order_.size();
      order_.push_back({std::move(key), op.result, hash});
      return false;
    }
    if (!is_prefetch) names_[op.result.value] = order_[place->second].result;
    return true;
  }

  // Extends the life of `known` to that of the result of `op`, which it is to replace. Whether
  // there is a register for it until then: a load needs a free one, other operations are worth
  // a spill.
  bool Keep(const Operand& known, const Operation& op) {
    if (!known.is_register()) return true;  // a prefetch
    int32_t& end = ends_[known.value];
    const RegisterClass c = list_.classes[known.value];
    if (end < at_) {
      const size_t first = static_cast<size_t>(end), last = static_cast<size_t>(at_) - 1;
      if (HasMemory(op) && pressure_.Most(c, first, last) >= static_cast<int>(file_.Of(c).size()))
        return false;
      pressure_.Add(c, first, last);
    }
    end = std::max(end, ends_[op.result.value]);
    return true;
  }

  // Since its result is written once, another register that is written once can replace it wherever
  // it is read.
  bool IsCandidate(const Operation& op) const {
    return op.result.is_register() && writes_[op.result.value] == 1 &&
           list_.classes[op.result.value] != RegisterClass::kGeneral;
  }

  // Two keys are equal only if the same versions of the same registers are read, and memory is the
  // same.
  Key KeyOf(const Operation& op) const {
    Key key{op};
    key.op.result = {};
    for (Operand* operand : {&key.op.operands[0], &key.op.operands[1], &key.op.operands[2],
                             &key.op.memory.base, &key.op.memory.index}) {
      if (operand->is_register()) operand->value += int64_t{versions_[operand->value]} << 32;
    }
    if (HasMemory(op) && !op.invariant) key.stores = stores_;
    return key;
  }

  void Rename(Operation& op) const {
    for (Operand& operand : op.operands) {
      if (operand.is_register() && names_[operand.value].is_register())
        operand = names_[operand.value];
    }
  }

  OperationList& list_;
  const RegisterFile& file_;
  Pressure pressure_;
  int32_t at_ = -1;             // the operation
  std::vector<int> writes_;     // by register
  std::vector<int> versions_;   // by register: its writes so far
  std::vector<int32_t> ends_;   // by register: the last operation that needs it, by all its names
  std::vector<Operand> names_;  // by register: its replacement, if any
  std::vector<Known> order_;    // the known values, in the order in which they were computed
  absl::flat_hash_map<size_t, size_t> places_;  // in order_, by hash; the last for equal hashes
  // By label: how many were known at the first branch to it.
  absl::flat_hash_map<int64_t, size_t> known_at_;
  int64_t stores_ = 0;
};

}  // namespace

void ReuseComputations(OperationList& list, const RegisterFile& file) { Reuse(list, file).Run(); }

}  // namespace nestor::jit
