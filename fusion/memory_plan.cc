// Lifetimes first, then places.
//
// Blocks run once, in order, so a tensor of the program is needed from the first
// step that touches it to the last, and not between other steps. Where one tensor
// dies in the step that gives birth to another of its shape, the second may take
// its memory if no element is read after it is overwritten:
//
//   for i .. { for j .. { t[i, j] = exp(s[i, j]) } }                     # yes
//   for i .. { for k .. { m max= s[i, k] }  for j .. { t[i, j] = m } }   # yes
//   for i .. { for j .. { t[i, j] = s[j, i] } }                          # no
//
// The proof: go down from the step through the loops that hold accesses of both
// tensors. If such a loop's index stands alone on one axis of all these accesses,
// then no two iterations meet in an element; and within an iteration,
// all that touches s comes before what touches t; what touches both is looked into
// in turn, down to a statement, which reads before it writes.
//
// Places: the largest first, each into the smallest gap among those placed whose
// lifetimes meet its own ("greedy by size for offset calculation", Y. Pisarchyk
// and J. Lee, "Efficient Memory Management for Deep Neural Net Inference", 2020).
// The optimum is NP-hard; this is mostly within a few percent of the lower bound,
// and trying other orders besides gains next to nothing. The result depends on
// sizes, so it is found at the first run of a shape.
#include "fusion/memory_plan.h"

#include <algorithm>
#include <utility>

#include "loop_ir/dependence.h"
#include "uops/invariant.h"

namespace nestor::fusion {
namespace {

using loop::AccessKind;
using loop::Block;
using loop::Declaration;
using loop::Item;
using loop::Loop;
using loop::Program;
using loop::Scope;
using loop::Statement;
using loop::Storage;
using loop::TensorId;
using loop::TensorInfo;

// ---- In place

// Whether `heir` may take the memory of `donor`, both being touched by `item`:
// see the head of this file.
class TakeOver {
 public:
  TakeOver(const Program& program, TensorId donor, TensorId heir) : program_(program), donor_(donor), heir_(heir) {}

  bool IsSafe(const Item& item) const {
    const Item* shared = &item;
    while (const Loop* loop = shared->As<Loop>()) {
      if (!SeparatesIterations(*loop)) return false;
      const Scope& body = loop->body;
      const int last = LastOf(body, donor_), first = FirstOf(body, heir_);
      if (last < first) return true;
      if (last > first) return false;
      shared = &body[last];
    }
    // Here the donor is read, as the heir is written: what the heir held before has
    // not been written, so that nothing reads it.
    return shared->As<Statement>()->target.tensor == heir_;
  }

 private:
  bool Touches(const Item& item, TensorId tensor) const {
    const loop::Footprint footprint = FootprintOf(program_, item);
    return footprint.Touches(tensor);
  }

  int FirstOf(const Scope& scope, TensorId tensor) const {
    const auto touches = [&](const Item& item) { return Touches(item, tensor); };
    return static_cast<int>(std::find_if(scope.begin(), scope.end(), touches) - scope.begin());
  }

  int LastOf(const Scope& scope, TensorId tensor) const {
    int last = static_cast<int>(scope.size()) - 1;
    while (last >= 0 && !Touches(scope[last], tensor)) --last;
    return last;
  }

  // On some axis, every place in both tensors is the loop's index.
  bool SeparatesIterations(const Loop& loop) const {
    std::vector<bool> separates(program_[donor_].shape.size(), true);
    VisitItems(loop.body, [&](const Item& item) {
      VisitAccesses(program_, item, [&](TensorId tensor, absl::Span<const IndexId> place, AccessKind) {
        if (tensor != donor_ && tensor != heir_) return;
        for (size_t axis = 0; axis < place.size(); ++axis) {
          if (program_.pool.VarValue(place[axis]) != loop.var) separates[axis] = false;
        }
      });
    });
    return std::find(separates.begin(), separates.end(), true) != separates.end();
  }

  const Program& program_;
  const TensorId donor_, heir_;
};

// ---- Lifetimes

struct Lifetime {
  int first = -1, last = -1;  // -1: never touched
  bool planned = false;
  bool in_loop = false;       // declared in a loop's body
};

class Planner {
 public:
  Planner(const Program& program, const MemoryOptions& options)
      : program_(program), options_(options), lifetimes_(program.tensors.size()) {}

  MemoryPlan Run() {
    for (TensorId temp : program_.temps) Declare(temp, 0);
    for (const Block& block : program_.blocks) {
      for (const Item& item : block.body) AddStep(item);
    }
    std::vector<TensorId> order = Planned();
    for (TensorId tensor : order) AddTensor(tensor);
    for (TensorId output : program_.outputs) AddOutput(output);
    return std::move(plan_);
  }

 private:
  Lifetime& LifetimeOf(TensorId tensor) { return lifetimes_[tensor.value]; }

  // An accumulator holds its identity from its declaration on.
  void Declare(TensorId tensor, int step) {
    Lifetime& lifetime = LifetimeOf(tensor);
    lifetime.planned = true;
    if (program_[tensor].storage == Storage::kAccumulator) lifetime.first = lifetime.last = step;
  }

  void Touch(TensorId tensor, int step) {
    Lifetime& lifetime = LifetimeOf(tensor);
    if (lifetime.first < 0) lifetime.first = step;
    lifetime.last = step;
  }

  void AddStep(const Item& item) {
    const int step = static_cast<int>(steps_.size());
    steps_.push_back(&item);
    if (const auto* declaration = item.As<Declaration>()) DeclareInScope(declaration->tensor, step, false);
    if (const auto* loop = item.As<Loop>()) DeclareBelow(loop->body, step);
    const loop::Footprint footprint = FootprintOf(program_, item);
    for (const auto* set : {&footprint.reads, &footprint.writes, &footprint.accumulates}) {
      for (TensorId tensor : *set) Touch(tensor, step);
    }
  }

  void DeclareBelow(const Scope& scope, int step) {
    VisitItems(scope, [&](const Item& inner) {
      const auto* declaration = inner.As<Declaration>();
      if (declaration != nullptr) DeclareInScope(declaration->tensor, step, true);
    });
  }

  void DeclareInScope(TensorId tensor, int step, bool in_loop) {
    if (!LivesInMemory(program_[tensor])) return;
    Declare(tensor, step);
    LifetimeOf(tensor).in_loop = in_loop;
    if (in_loop) Touch(tensor, step);
  }

  // By first step, then by number, so that the order of hash sets does not show.
  std::vector<TensorId> Planned() {
    std::vector<TensorId> order;
    for (size_t i = 0; i < lifetimes_.size(); ++i) {
      if (lifetimes_[i].planned && lifetimes_[i].first >= 0) order.push_back(TensorId{static_cast<int32_t>(i)});
    }
    std::stable_sort(order.begin(), order.end(),
                     [&](TensorId a, TensorId b) { return LifetimeOf(a).first < LifetimeOf(b).first; });
    return order;
  }

  // ---- Buffers

  bool CanTakeOver(TensorId donor, TensorId heir) {
    const TensorInfo& from = program_[donor];
    const TensorInfo& to = program_[heir];
    const bool is_arg = to.storage == Storage::kAccumulator && IsArg(to.op);
    if (is_arg || (from.storage == Storage::kAccumulator && IsArg(from.op))) return false;
    if (from.shape != to.shape || ByteSize(from.type) != ByteSize(to.type)) return false;
    const int step = LifetimeOf(heir).first;
    const int last = LifetimeOf(donor).last;
    return last < step || (last == step && TakeOver(program_, donor, heir).IsSafe(*steps_[step]));
  }

  // The buffer whose last tensor dies where `heir` is born, or -1.
  int DonorOf(TensorId heir) {
    if (!options_.in_place || LifetimeOf(heir).in_loop) return -1;
    // An accumulator is filled before it is touched.
    if (program_[heir].storage == Storage::kAccumulator) return -1;
    for (size_t i = 0; i < plan_.buffers.size(); ++i) {
      const PlannedBuffer& buffer = plan_.buffers[i];
      const TensorId donor = buffer.tensors.back();
      if (buffer.output.value >= 0 || LifetimeOf(donor).in_loop) continue;
      if (buffer.last == LifetimeOf(heir).first && CanTakeOver(donor, heir)) return static_cast<int>(i);
    }
    return -1;
  }

  void AddTensor(TensorId tensor) {
    const Lifetime& lifetime = LifetimeOf(tensor);
    const int donor = DonorOf(tensor);
    if (donor < 0) {
      plan_.buffers.push_back({{tensor}, lifetime.first, lifetime.last, lifetime.in_loop, TensorId()});
      return;
    }
    plan_.buffers[donor].tensors.push_back(tensor);
    plan_.buffers[donor].last = lifetime.last;
  }

  void AddOutput(TensorId output) {
    if (LifetimeOf(output).first < 0) return;
    if (options_.use_outputs) {
      const int donor = DonorOf(output);
      if (donor >= 0) plan_.buffers[donor].output = output;
      return;
    }
    for (TensorId input : program_.inputs) {
      if (!program_[input].shape_only && CanTakeOver(input, output)) plan_.aliases.emplace_back(output, input);
    }
  }

  const Program& program_;
  const MemoryOptions options_;
  std::vector<Lifetime> lifetimes_;  // by tensor
  std::vector<const Item*> steps_;
  MemoryPlan plan_;
};

// ---- Places

struct Placed {
  int64_t begin, end;  // in the arena
};

class Placement {
 public:
  Placement(const MemoryPlan& plan, std::vector<int64_t> bytes) : plan_(plan) {
    arena_.offsets.assign(bytes.size(), -1);
    arena_.bytes = std::move(bytes);
  }

  absl::StatusOr<Arena> Run() {
    for (int buffer : LargestFirst()) NESTOR_RETURN_IF_ERROR(Place(buffer));
    FindLowerBound();
    return std::move(arena_);
  }

 private:
  // Of those that the arena holds.
  std::vector<int> LargestFirst() const {
    std::vector<int> order;
    for (size_t i = 0; i < plan_.buffers.size(); ++i) {
      if (plan_.buffers[i].output.value < 0) order.push_back(static_cast<int>(i));
    }
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return arena_.bytes[a] > arena_.bytes[b]; });
    return order;
  }

  bool Meet(int a, int b) const {
    return plan_.buffers[a].first <= plan_.buffers[b].last && plan_.buffers[b].first <= plan_.buffers[a].last;
  }

  // The arena's pieces that buffers alive with this one hold, from left to right.
  std::vector<Placed> TakenBeside(int buffer) const {
    std::vector<Placed> taken;
    for (int other : placed_) {
      if (Meet(buffer, other) && arena_.bytes[other] > 0) {
        taken.push_back({arena_.offsets[other], arena_.offsets[other] + arena_.bytes[other]});
      }
    }
    std::sort(taken.begin(), taken.end(), [](Placed a, Placed b) { return a.begin < b.begin; });
    return taken;
  }

  // `end` rounded up to where a buffer may begin. Ends are at most 2^62.
  static int64_t Aligned(int64_t end) { return (end + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment; }

  absl::Status Place(int buffer) {
    const int64_t bytes = arena_.bytes[buffer];
    int64_t free = 0, best = -1, best_gap = 0;
    for (Placed piece : TakenBeside(buffer)) {
      const int64_t gap = piece.begin - free;
      if (gap >= bytes && (best < 0 || gap < best_gap)) best = free, best_gap = gap;
      free = std::max(free, Aligned(piece.end));
    }
    const int64_t offset = best >= 0 ? best : free;
    if (bytes > kLargest - offset) return absl::InvalidArgumentError("the arena's size overflows");
    arena_.offsets[buffer] = offset;
    arena_.total = std::max(arena_.total, offset + bytes);
    placed_.push_back(buffer);
    return absl::OkStatus();
  }

  void FindLowerBound() {
    // Bytes that come to life, and die, before a step.
    std::vector<std::pair<int, int64_t>> events;
    for (int buffer : placed_) {
      events.emplace_back(plan_.buffers[buffer].first, arena_.bytes[buffer]);
      events.emplace_back(plan_.buffers[buffer].last + 1, -arena_.bytes[buffer]);
    }
    std::sort(events.begin(), events.end());  // deaths first
    int64_t alive = 0;
    for (const auto& [step, bytes] : events) {
      alive += bytes;  // never more than the arena's total, as those alive are apart
      arena_.lower_bound = std::max(arena_.lower_bound, alive);
    }
  }

  static constexpr int64_t kLargest = int64_t{1} << 62;
  const MemoryPlan& plan_;
  Arena arena_;
  std::vector<int> placed_;
};

}  // namespace

MemoryPlan PlanMemory(const Program& program, const MemoryOptions& options) {
  return Planner(program, options).Run();
}

absl::StatusOr<Arena> EvaluatePlan(const SizedProgram& program, const MemoryPlan& plan) {
  std::vector<int64_t> bytes;
  for (const PlannedBuffer& buffer : plan.buffers) {
    NESTOR_ASSIGN_OR_RETURN(const int64_t size, program.Bytes(buffer.tensors[0]));
    bytes.push_back(size);
  }
  return Placement(plan, std::move(bytes)).Run();
}

}  // namespace nestor::fusion
