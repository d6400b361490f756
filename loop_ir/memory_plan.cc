// Lifetimes first, then places.
//
// Items of a scope run in order, so a tensor of that scope is needed from the first item that
// touches it to the last, and not while others run. Where the lifetime of one tensor ends in the
// item where that of another of the same shape begins, the second may take its memory if no element
// is read after it is overwritten:
//
//   for i .. { for j .. { t[i, j] = exp(s[i, j]) } }                     # yes
//   for i .. { for k .. { m max= s[i, k] }  for j .. { t[i, j] = m } }   # yes
//   for i .. { for j .. { t[i, j] = s[j, i] } }                          # no
// (take_over.h proves it.)
//
// Places: the largest first, each into the smallest gap among those placed whose lifetimes meet its
// own ("greedy by size for offset calculation", Y. Pisarchyk and J. Lee, "Efficient Memory
// Management for Deep Neural Net Inference", 2020). The optimum is NP-hard; this is mostly within a
// few percent of the lower bound, and trying other orders as well gains next to nothing. The result
// depends on sizes, so it is found at the first run of a shape.
#include "loop_ir/memory_plan.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "loop_ir/dependence.h"
#include "loop_ir/take_over.h"
#include "uops/invariant.h"
#include "uops/mutant.h"

namespace nestor::loop {
namespace {

// ---- Lifetimes

// The planner's facts about a tensor.
struct Life {
  Lifetime steps;
  const Item *first = nullptr, *last = nullptr;  // of the scope that declares it
  int depth = 0;                                 // of that scope; 0: of the program
  bool is_private = false;                       // a loop's body declares it
  bool planned = false;
};

// Walks the program once: each access extends the life of its tensor over the item that holds the
// access in the tensor's scope.
class LifeWalk {
 public:
  LifeWalk(const Program& program, const MemoryOptions& options)
      : program_(program), lives_(program.tensors.size()) {
    if (options.in_memory == nullptr) return;
    is_listed_.emplace(program.tensors.size(), false);
    for (TensorId tensor : *options.in_memory) (*is_listed_)[tensor.value] = true;
  }

  // `first_steps`: receives the first step of each item at the top.
  std::vector<Life> Run(std::vector<int>& first_steps) {
    for (const Item& item : program_.body) {
      first_steps.push_back(next_step_);
      if (const auto* declaration = item.As<Declaration>()) Declare(declaration->tensor, 0);
      else Walk(item, 0);
    }
    first_steps.push_back(next_step_);
    return std::move(lives_);
  }

 private:
  struct Open {
    const Item* item;
    int first;
    std::vector<TensorId> touched;  // tensors of the scope around the item
  };

  bool IsListed(TensorId tensor, bool otherwise) const {
    return is_listed_ ? (*is_listed_)[tensor.value] : otherwise;
  }

  // Steps are counted on the way; an item stays open while those inside it are visited.
  void Walk(const Item& item, int depth) {
    open_.push_back({&item, next_step_, {}});
    VisitAccesses(program_, item,
                  [&](TensorId tensor, absl::Span<const IndexId>, AccessKind) { Touch(tensor); });
    if (const auto* loop = item.As<Loop>()) {
      for (const Item& inner : loop->body) Walk(inner, depth + 1);
    } else if (const auto* declaration = item.As<Declaration>()) {
      Declare(declaration->tensor, depth);
    }
    Close();
  }

  void Declare(TensorId tensor, int depth) {
    Life& life = lives_[tensor.value];
    life.depth = depth;
    life.is_private = depth > 0;
    life.planned = IsListed(tensor, depth == 0 || LivesInMemory(program_[tensor]));
    // One of the program is filled later.
    if (depth > 0 && program_[tensor].storage == Storage::kAccumulator) Touch(tensor);
  }

  void Touch(TensorId tensor) { open_[lives_[tensor.value].depth].touched.push_back(tensor); }

  // A tensor that was touched anywhere in the item lives for the whole of it.
  void Close() {
    const Open& open = open_.back();
    next_step_ = std::max(next_step_, open.first + 1);
    for (TensorId tensor : open.touched) {
      Life& life = lives_[tensor.value];
      if (life.first == nullptr) life.first = open.item, life.steps.first = open.first;
      life.last = open.item;
      life.steps.last = next_step_ - 1;
    }
    open_.pop_back();
  }

  const Program& program_;
  absl::optional<std::vector<bool>> is_listed_;
  std::vector<Life> lives_;
  std::vector<Open> open_;  // the items around, from the outermost
  int next_step_ = 0;
};

// ---- Buffers

class Planner {
 public:
  Planner(const Program& program, const MemoryOptions& options)
      : program_(program), options_(options), take_over_(program) {}

  // Greedy, in the order of first steps: each tensor takes over a buffer that has become free, if
  // it may; else it gets a new one.
  MemoryPlan Run() {
    lives_ = LifeWalk(program_, options_).Run(plan_.first_steps);
    is_kept_.assign(program_.tensors.size(), false);
    if (options_.kept != nullptr) {
      for (TensorId tensor : *options_.kept) is_kept_[tensor.value] = true;
    }
    for (TensorId tensor : Planned()) AddTensor(tensor);
    for (TensorId output : program_.outputs) AddOutput(output);
    for (const Life& life : lives_) plan_.lifetimes.push_back(life.steps);
    return std::move(plan_);
  }

 private:
  const Life& LifeOf(TensorId tensor) const { return lives_[tensor.value]; }

  // The planned tensors by first step, then by number.
  std::vector<TensorId> Planned() const {
    std::vector<TensorId> order;
    for (size_t i = 0; i < lives_.size(); ++i) {
      if (lives_[i].planned && lives_[i].first != nullptr)
        order.push_back(TensorId{static_cast<int32_t>(i)});
    }
    std::stable_sort(order.begin(), order.end(), [&](TensorId a, TensorId b) {
      return LifeOf(a).steps.first < LifeOf(b).steps.first;
    });
    return order;
  }

  // After the donor's last step always; in the very item where both are touched, only if each
  // element is read before the heir's element is written in its place.
  bool CanTakeOver(TensorId donor, TensorId heir) {
    const TensorInfo& from = program_[donor];
    const TensorInfo& to = program_[heir];
    if (IsArgAccumulator(from) || IsArgAccumulator(to)) return false;
    if (from.shape != to.shape || ByteSize(from.type) != ByteSize(to.type)) return false;
    const Life &before = LifeOf(donor), &after = LifeOf(heir);
    if (before.steps.last < after.steps.first) return true;
    if (NESTOR_MUTANT("memory_taken_over_while_read") && before.last == after.first) return true;
    return before.last == after.first && take_over_.IsSafe(*after.first, donor, heir);
  }

  // The buffer whose last tensor dies in the item where `heir` is born, or -1.
  int DonorOf(TensorId heir) {
    // An accumulator is filled before it is touched.
    if (!options_.in_place || program_[heir].storage == Storage::kAccumulator) return -1;
    const Item* const birth = LifeOf(heir).first;
    for (int i : ending_[birth]) {
      const PlannedBuffer& buffer = plan_.buffers[i];
      const TensorId donor = buffer.tensors.back();
      const bool same_arena = buffer.is_private == LifeOf(heir).is_private;
      if (buffer.output.value >= 0 || !same_arena) continue;
      if (LifeOf(donor).last == birth && CanTakeOver(donor, heir)) return i;
    }
    return -1;
  }

  // A kept tensor gets memory for the whole run; another one takes over that of a tensor that dies
  // where it is born, or a buffer of its own.
  void AddTensor(TensorId tensor) {
    const Life& life = LifeOf(tensor);
    if (is_kept_[tensor.value]) {
      plan_.buffers.push_back({{tensor}, -1, plan_.first_steps.back(), false, TensorId()});
      return;
    }
    const int donor = DonorOf(tensor);
    if (donor < 0) {
      ending_[life.last].push_back(static_cast<int>(plan_.buffers.size()));
      plan_.buffers.push_back(
          {{tensor}, life.steps.first, life.steps.last, life.is_private, TensorId()});
      return;
    }
    ending_[life.last].push_back(donor);
    plan_.buffers[donor].tensors.push_back(tensor);
    plan_.buffers[donor].last = life.steps.last;
  }

  // An output either ends a chain of temporaries, or may share its memory with an input.
  void AddOutput(TensorId output) {
    if (LifeOf(output).first == nullptr) return;
    if (options_.use_outputs) {
      const int donor = DonorOf(output);
      if (donor >= 0) plan_.buffers[donor].output = output;
      return;
    }
    for (TensorId input : program_.inputs) {
      if (!program_[input].shape_only && CanTakeOver(input, output))
        plan_.aliases.emplace_back(output, input);
    }
  }

  const Program& program_;
  const MemoryOptions options_;
  std::vector<Life> lives_;  // by tensor
  std::vector<bool> is_kept_;
  TakeOver take_over_;
  // Buffers by an item in which a tensor of theirs died: the last one, or one before.
  absl::flat_hash_map<const Item*, std::vector<int>> ending_;
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
    arena_.lower_bound = LowerBound(false);
    arena_.private_lower_bound = LowerBound(true);
    return std::move(arena_);
  }

 private:
  // The buffers that an arena holds, the largest first.
  std::vector<int> LargestFirst() const {
    std::vector<int> order;
    for (size_t i = 0; i < plan_.buffers.size(); ++i) {
      if (plan_.buffers[i].output.value < 0) order.push_back(static_cast<int>(i));
    }
    std::stable_sort(order.begin(), order.end(),
                     [&](int a, int b) { return arena_.bytes[a] > arena_.bytes[b]; });
    return order;
  }

  // Whether both are alive at one step; only then must they lie apart. Memory of workers and of the
  // program are two arenas.
  bool Meet(int a, int b) const {
    const PlannedBuffer &x = plan_.buffers[a], &y = plan_.buffers[b];
    return x.is_private == y.is_private && x.first <= y.last && y.first <= x.last &&
           !(NESTOR_MUTANT("arena_slots_overlap") && (x.first == y.last || y.first == x.last));
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

  // Best fit: the smallest gap that is large enough, else after everything that is alive with it.
  absl::Status Place(int buffer) {
    const int64_t bytes = arena_.bytes[buffer];
    int64_t free = 0, best = -1, best_gap = 0;
    for (Placed piece : TakenBeside(buffer)) {
      const int64_t gap = piece.begin - free;
      if (gap >= bytes && (best < 0 || gap < best_gap)) best = free, best_gap = gap;
      free = std::max(free, AlignedForArena(piece.end));
    }
    const int64_t offset = best >= 0 ? best : free;
    if (bytes > kLargestTensor - offset)
      return absl::InvalidArgumentError("the arena's size overflows");
    arena_.offsets[buffer] = offset;
    int64_t& total = plan_.buffers[buffer].is_private ? arena_.private_total : arena_.total;
    total = std::max(total, offset + bytes);
    placed_.push_back(buffer);
    return absl::OkStatus();
  }

  // No plan can do with less than what is alive at once.
  int64_t LowerBound(bool is_private) const {
    // Bytes that come to life, and die, before a step.
    std::vector<std::pair<int, int64_t>> events;
    for (int buffer : placed_) {
      if (plan_.buffers[buffer].is_private != is_private) continue;
      events.emplace_back(plan_.buffers[buffer].first, arena_.bytes[buffer]);
      events.emplace_back(plan_.buffers[buffer].last + 1, -arena_.bytes[buffer]);
    }
    std::sort(events.begin(), events.end());  // deaths first
    int64_t alive = 0, most = 0;
    for (const auto& [step, bytes] : events) {
      alive += bytes;  // never more than the arena's size, as those alive are apart
      most = std::max(most, alive);
    }
    return most;
  }

  const MemoryPlan& plan_;
  Arena arena_;
  std::vector<int> placed_;
};

}  // namespace

MemoryPlan PlanMemory(const Program& program, const MemoryOptions& options) {
  return Planner(program, options).Run();
}

// By item at the top: which temporaries get memory before it, and which lose it after.
std::vector<ItemLives> LivesOfItems(const Program& program, const MemoryPlan& plan) {
  std::vector<ItemLives> items(plan.first_steps.size() - 1);
  const auto item_of = [&](int step) {
    const auto next = std::upper_bound(plan.first_steps.begin(), plan.first_steps.end(), step);
    return static_cast<size_t>(next - plan.first_steps.begin()) - 1;
  };
  for (const PlannedBuffer& buffer : plan.buffers) {
    if (buffer.is_private) continue;
    for (TensorId temp : buffer.tensors)
      items[item_of(plan.lifetimes[temp.value].first)].born.push_back(temp);
  }
  for (size_t i = 0; i < program.tensors.size(); ++i) {
    const Storage storage = program.tensors[i].storage;
    const bool is_temp = storage == Storage::kTemp || storage == Storage::kAccumulator;
    const int last = plan.lifetimes[i].last;
    if (is_temp && last >= 0)
      items[item_of(last)].dying.push_back(TensorId{static_cast<int32_t>(i)});
  }
  return items;
}

// The plan says who may share memory, whatever sizes are; offsets follow from the sizes of a call.
absl::StatusOr<Arena> EvaluatePlan(const MemoryPlan& plan,
                                   absl::FunctionRef<absl::StatusOr<int64_t>(TensorId)> bytes) {
  std::vector<int64_t> sizes;
  for (const PlannedBuffer& buffer : plan.buffers) {
    NESTOR_ASSIGN_OR_RETURN(const int64_t size, bytes(buffer.tensors[0]));
    sizes.push_back(size);
  }
  return Placement(plan, std::move(sizes)).Run();
}

absl::StatusOr<Arena> EvaluatePlan(const SizedProgram& program, const MemoryPlan& plan) {
  return EvaluatePlan(plan, [&](TensorId tensor) { return program.Bytes(tensor); });
}

}  // namespace nestor::loop
