// Liveness as one interval per register, without the data-flow equations that general control flow
// would need: loops are marked in the list, and all other jumps go forward.
//
// One walk over the list with the stack of loops that are open. If an operation touches a register
// that was first written before some of these loops, the register must live to the end of the
// outermost of them: the next iteration may need it. Such a loop and the one of a later access are
// the same or follow each other, so the last one found is enough.
//
//   0  g0 = ..                   g0: [0, 3], since iteration 2 reads it again
//   1  loop_begin                v1: [2, 2]
//   2    v1 = load [g0]
//   3  loop_end
//
// No other jump goes back, and none leaves a loop, so outside of loops the order of the list is
// enough.
#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "jit/codegen/allocate_registers.h"
#include "jit/codegen/operations.h"
#include "uops/invariant.h"
#include "uops/mutant.h"

namespace nestor::jit {
namespace {

constexpr int32_t kNone = -1;
// The factor by which each surrounding loop multiplies the price of an access.
constexpr double kTripsOfALoop = 8;
// The divisor of this price between a likely branch and its label.
constexpr double kPassesOfABranch = 4096;

class RangeFinder {
 public:
  explicit RangeFinder(const OperationList& list)
      : list_(list), range_of_(list.classes.size(), kNone) {
    ranges_.reserve(list.classes.size());
    carrier_.reserve(list.classes.size());
  }

  // A loop's end is known only once it was passed, so ranges are extended at last.
  std::vector<LiveRange> Ranges() && {
    loop_end_.assign(list_.operations.size(), kNone);
    for (at_ = 0; at_ < static_cast<int32_t>(list_.operations.size()); ++at_)
      Visit(list_.operations[at_]);
    NESTOR_CHECK(loops_.empty(), "a loop without end:\n" + ToString(list_));
    for (size_t i = 0; i < ranges_.size(); ++i) {
      if (NESTOR_MUTANT("hoisted_constant_clobbered")) continue;
      if (carrier_[i] != kNone) ranges_[i].end = std::max(ranges_[i].end, loop_end_[carrier_[i]]);
    }
    return std::move(ranges_);
  }

 private:
  // A loop's price is that of its trips; code that a likely branch skips costs less.
  void Visit(const Operation& op) {
    if (op.opcode == Opcode::kLoopBegin) {
      loops_.push_back(at_);
      price_ *= kTripsOfALoop;
    }
    if (op.opcode == Opcode::kLabel && !jumps_.empty() && jumps_.back() == op.immediate) {
      jumps_.pop_back();
      price_ *= kPassesOfABranch;
    }
    for (const Operand& operand : op.operands) Read(operand);
    Read(op.memory.base);
    Read(op.memory.index);
    if (op.result.is_register()) Write(op.result);
    if (op.opcode == Opcode::kBranch && op.likely) {
      jumps_.push_back(op.immediate);
      price_ /= kPassesOfABranch;
    }
    if (op.opcode == Opcode::kLoopEnd) {
      NESTOR_CHECK(!loops_.empty(), "an end without its loop:\n" + ToString(list_));
      loop_end_[loops_.back()] = at_;
      loops_.pop_back();
      price_ /= kTripsOfALoop;
    }
  }

  void Read(const Operand& operand) {
    if (!operand.is_register()) return;
    const int32_t range = range_of_[operand.value];
    if (range == kNone) FailToRead();
    Touch(range);
  }

  // Separate from Read, which is called for each operand: most are not registers.
  [[gnu::noinline]] void FailToRead() const {
    NESTOR_CHECK(false, "operation " + std::to_string(at_) +
                            " reads what nothing writes before it:\n" + ToString(list_));
  }

  // A register that is written several times has one range, from the first write to the last use.
  void Write(const Operand& result) {
    int32_t& range = range_of_[result.value];
    if (range == kNone) {
      range = static_cast<int32_t>(ranges_.size());
      ranges_.push_back({static_cast<int32_t>(result.value), at_, at_, 0});
      carrier_.push_back(kNone);
    }
    Touch(range);
  }

  void Touch(int32_t number) {
    LiveRange& range = ranges_[number];
    range.end = at_;
    range.weight += price_;
    if (loops_.empty() || loops_.back() < range.begin) return;
    carrier_[number] = *std::upper_bound(loops_.begin(), loops_.end(), range.begin);
  }

  const OperationList& list_;
  std::vector<LiveRange> ranges_;
  std::vector<int32_t> carrier_;   // by range: the loop to whose end it must live
  std::vector<int32_t> range_of_;  // by virtual register
  std::vector<int32_t> loops_;     // open ones by their LoopBegin, outermost first
  std::vector<int32_t> loop_end_;  // by LoopBegin
  std::vector<int64_t> jumps_;     // labels of the likely branches that the walk has passed
  int32_t at_ = 0;
  double price_ = 1;
};

}  // namespace

std::vector<LiveRange> LiveRangesOf(const OperationList& list) {
  return RangeFinder(list).Ranges();
}

}  // namespace nestor::jit
