// Decides which loops run on threads and which in the lanes of vectors. All it may do is set
// attributes, so that the program computes the same bits; the proof is that the loop carries no
// dependence (CarriedTensor in loop_ir/dependence.h).
//
// Vectors: a nest is searched from the outside in, and a loop is taken if it gains at least as much
// as the best loops inside, where a loop level counts kIterations times. So in
//
//   for i in [0, N) { for j in [0, M) { y[i, j] = x[i, j] } }   # j: adjacent elements, i: jumps
//
// j becomes the vector; in `y[j, i] = x[j, i]` it is i, with j as a loop in its body. At most one
// loop of a chain is marked.
//
// Threads: a loop at the top, and those perfectly nested in it whose bounds are
// independent of it, since code generation cuts their joint iteration space into equal pieces.
//
// Lanes: how many a vector loop has follows from its widest type; NarrowLoops are the exception.
//
// Vectors: two run side by side, and what is left is masked, unless there is nothing left. Short
// loops, and those over register tiles, are written out.
#include "jit/schedule/attributes.h"

#include <algorithm>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "jit/schedule/lane_gain.h"
#include "jit/target/lanes.h"
#include "loop_ir/affine.h"
#include "loop_ir/dependence.h"
#include "loop_ir/lanes.h"
#include "loop_ir/perfect_nest.h"
#include "loop_ir/proofs.h"
#include "loop_ir/ranges.h"
#include "loop_ir/rewrite.h"
#include "uops/mutant.h"

namespace nestor::loop {
namespace {

class VectorMarker {
 public:
  explicit VectorMarker(Program& program) : program_(program), ranges_(program) {}

  bool Run() { return Visit(program_.body); }

 private:
  bool Visit(Scope& scope) {
    bool changed = false;
    for (Item& item : scope) {
      auto* loop = item.As<Loop>();
      if (loop != nullptr) changed |= Visit(*loop);
    }
    return changed;
  }

  // Marks one loop of a chain of nested loops, or looks further at its items.
  bool Visit(Loop& loop) {
    const Scheduled scheduled = ScheduledOf(loop);
    if (scheduled == Scheduled::kAll) return false;
    const double own = scheduled == Scheduled::kNothing ? Gain(loop) : 0;
    if (own > 0 && own >= BestInside(loop)) {
      loop.attributes.vector = true;
      return true;
    }
    ranges_.Enter(loop);
    const bool changed = Visit(loop.body);
    ranges_.Leave();
    return changed;
  }

  // The sum of the best gains of what the loop holds, each item by itself.
  double BestInside(Loop& loop) {
    ranges_.Enter(loop);
    double sum = 0;
    for (Item& item : loop.body) {
      auto* inner = item.As<Loop>();
      if (inner != nullptr) sum += kIterations * std::max(Gain(*inner), BestInside(*inner));
    }
    ranges_.Leave();
    return sum;
  }

  // 0 where the loop cannot run in lanes.
  double Gain(Loop& loop) {
    const double gain = LaneGain(program_, loop);
    if (gain <= 0 || CarriedTensor(program_, loop).has_value()) return 0;
    // Few loops need masks: only these are asked whether they are long.
    const bool runs = RunsInLanes(program_, ranges_, loop, LaneMasks::kNone) ||
                      (RunsInLanes(program_, ranges_, loop, LaneMasks::kLoads) && !IsBorder(loop));
    return runs ? gain : 0;
  }

  // Whether the loop is known to be so short that masks for its lanes take longer
  // than its iterations: a few elements at the border of a row, as against a short row.
  bool IsBorder(const Loop& loop) {
    constexpr int64_t kMostAtBorder = 8, kLeastOfRow = 4;
    const auto length = KnownLength(program_, loop);
    if (length) return *length < kLeastOfRow;
    return ranges_.Less(ranges_.LengthOf(loop), program_.pool.Const(kMostAtBorder + 1));
  }

  Program& program_;
  Ranges ranges_;
};

}  // namespace

// A loop of declarations alone counts as not scheduled, so that `nothing` wins where both hold.
Scheduled ScheduledOf(const Loop& loop) {
  if (loop.attributes.vector || loop.attributes.unroll) return Scheduled::kAll;
  bool all = true, nothing = true;
  for (const Item& item : loop.body) {
    Scheduled part = Scheduled::kNothing;
    if (const auto* inner = item.As<Loop>()) part = ScheduledOf(*inner);
    else if (item.As<Statement>() == nullptr) continue;
    all = all && part == Scheduled::kAll;
    nothing = nothing && part == Scheduled::kNothing;
    if (!all && !nothing) return Scheduled::kInPart;
  }
  return nothing ? Scheduled::kNothing : Scheduled::kAll;
}

// A loop at the top whose iterations do not depend on each other.
absl::StatusOr<bool> MarkParallel(Program& program) {
  bool changed = false;
  for (Item& item : program.body) {
    auto* loop = item.As<Loop>();
    const bool carries = loop != nullptr && CarriedTensor(program, *loop).has_value();
    if (loop == nullptr || loop->attributes.parallel ||
        (carries && !NESTOR_MUTANT("dependent_loop_parallel")))
      continue;
    loop->attributes.parallel = true;
    changed = true;
  }
  return changed;
}

// A chain of loops directly in a parallel one, while they begin at 0, step by 1 and have ends that
// do not move: then the iterations of all of them count as one range, which keeps workers busy
// where the outermost loop alone is short.
absl::StatusOr<bool> MarkInnerParallel(Program& program) {
  // A few vectors are less work than finding out which iteration they belong to.
  const auto is_work = [&](const Item& item) {
    constexpr int64_t kMostOfVectors = 64;
    const auto* loop = item.As<Loop>();
    if (loop == nullptr) return false;
    const auto length = KnownLength(program, *loop);
    return !loop->attributes.vector || !length || *length > kMostOfVectors;
  };
  const auto marks = [&](const Loop& around, const Loop& loop) {
    const bool holds_loop = std::any_of(loop.body.begin(), loop.body.end(), is_work);
    return around.attributes.parallel && !around.attributes.vector && !loop.attributes.parallel &&
           !loop.attributes.vector && !loop.attributes.unroll && loop.step == 1 &&
           program.pool.IsConst(loop.begin, 0) && !program.pool.HasVar(loop.end) && holds_loop &&
           !CarriedTensor(program, loop).has_value();
  };
  bool changed = false;
  for (Item& item : program.body) {
    Loop* around = item.As<Loop>();
    while (around != nullptr) {
      Loop* loop = OnlyLoopIn(around->body);
      if (loop == nullptr || !marks(*around, *loop)) break;
      loop->attributes.parallel = changed = true;
      around = loop;
    }
  }
  return changed;
}

absl::StatusOr<bool> MarkVector(Program& program) { return VectorMarker(program).Run(); }

namespace {

// Loops of narrow integers that have lanes of their width, more than a vector has for other
// types: those loops that are long enough. A register tile has the same number of lanes in all
// loops that use it.
class NarrowLoops {
 public:
  NarrowLoops(const Program& program, jit::Isa isa) : program_(program) {
    std::vector<const Loop*> others;
    VisitItems(program, [&](const Item& item) {
      const auto* loop = item.As<Loop>();
      if (loop == nullptr || !loop->attributes.vector) return;
      const int bytes = jit::NarrowLaneBytes(program_, *loop),
                lanes = jit::VectorBytes(isa) / bytes;
      const bool is_narrow = bytes < jit::kLeastLaneBytes && !IsShort(*loop, lanes);
      is_narrow ? void(loops_.emplace(loop, lanes)) : others.push_back(loop);
    });
    while (!loops_.empty() && !others.empty()) others = TakeSharersOf(others);
  }
  // nullopt: it is none of these loops.
  absl::optional<int> CountOf(const Loop& loop) const {
    const auto of = loops_.find(&loop);
    return of == loops_.end() ? absl::nullopt : absl::make_optional(of->second);
  }

 private:
  // Whether it accesses memory, and has fewer iterations than `lanes`; except for the remainder of
  // a loop of whole vectors, which works on the same tile.
  bool IsShort(const Loop& loop, int lanes) const {
    const auto length = KnownLength(program_, loop);
    if (!length || *length >= lanes) return false;
    bool in_memory = false, has_long_tile = false;
    VisitTensors(loop, [&](TensorId tensor) {
      const TensorInfo& info = program_[tensor];
      if (!info.is_register) in_memory |= !info.shape.empty();
      else has_long_tile |= program_.pool.ConstValue(info.shape.back()).value_or(0) >= lanes;
    });
    return in_memory && !has_long_tile;
  }

  // Removes, and returns, the loops that share a register tile with one of `others`.
  std::vector<const Loop*> TakeSharersOf(absl::Span<const Loop* const> others) {
    absl::flat_hash_set<TensorId> tiles;
    for (const Loop* loop : others) {
      VisitTensors(*loop, [&](TensorId tensor) {
        if (program_[tensor].is_register) tiles.insert(tensor);
      });
    }
    std::vector<const Loop*> sharers;
    for (const auto& [loop, lanes] : loops_) {
      bool shares = false;
      VisitTensors(*loop, [&](TensorId tensor) { shares |= tiles.contains(tensor); });
      if (shares) sharers.push_back(loop);
    }
    for (const Loop* loop : sharers) loops_.erase(loop);
    return sharers;
  }

  template <class F>
  void VisitTensors(const Loop& loop, F f) const {
    VisitItems(loop.body, [&](const Item& item) {
      VisitAccesses(program_, item,
                    [&](TensorId tensor, absl::Span<const IndexId>, AccessKind) { f(tensor); });
    });
  }

  const Program& program_;
  absl::flat_hash_map<const Loop*, int> loops_;
};

}  // namespace

absl::StatusOr<bool> SetLanes(Program& program, jit::Isa isa) {
  const NarrowLoops narrow(program, isa);
  return MarkLanes(program, [&](const Loop& loop) {
    return narrow.CountOf(loop).value_or(jit::LanesOf(program, loop, isa));
  });
}

namespace {

// The vectors of a loop that run side by side: a processor looks only so far ahead, and within a
// vector most operations wait for the one before.
constexpr int kInterleaved = 2;

void SetVectors(const Program& program, Loop& loop) {
  LoopAttributes& attributes = loop.attributes;
  const auto most = MostIterations(program, loop);
  const bool is_short = most && *most <= int64_t{kInterleaved} * attributes.lanes;
  attributes.unroll = is_short || TileExtent(program, loop).has_value();
  if (!attributes.unroll) attributes.interleave = kInterleaved;
  attributes.tail = !LengthIsMultiple(program, loop, attributes.lanes);
}

}  // namespace

absl::StatusOr<bool> DecideVectors(Program& program) {
  bool changed = false;
  const auto decide = [&](Scope& scope) {
    for (Item& item : scope) {
      auto* loop = item.As<Loop>();
      if (loop == nullptr || loop->attributes.lanes == 0 || loop->attributes.HasVectors()) continue;
      SetVectors(program, *loop);
      changed = true;
    }
  };
  VisitScopes(program.body, decide);
  return changed;
}

}  // namespace nestor::loop
