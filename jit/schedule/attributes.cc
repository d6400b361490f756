// A nest is searched from the outside in, and a loop taken if that gains at least as
// much as the best of those inside.
#include "jit/schedule/attributes.h"

#include <algorithm>
#include <vector>

#include "jit/schedule/lane_gain.h"
#include "jit/target/lanes.h"
#include "loop_ir/dependence.h"
#include "loop_ir/lanes.h"
#include "loop_ir/proofs.h"
#include "loop_ir/ranges.h"
#include "uops/mutant.h"

namespace nestor::jit {
namespace {

using loop::Item;
using loop::Loop;
using loop::Program;
using loop::Scope;

class VectorMarker {
 public:
  explicit VectorMarker(Program& program) : program_(program), ranges_(program) {}

  bool Run() {
    bool changed = false;
    for (loop::Block& block : program_.blocks) changed |= Visit(block.body);
    return changed;
  }

 private:
  bool Visit(Scope& scope) {
    bool changed = false;
    for (Item& item : scope) {
      auto* loop = item.As<Loop>();
      if (loop != nullptr) changed |= Visit(*loop);
    }
    return changed;
  }

  // Marks one loop of a chain of nested loops, or goes down into what it holds.
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
    if (gain <= 0 || CarriedTensor(program_, loop).has_value() || !RunsInLanes(program_, ranges_, loop)) return 0;
    return gain;
  }

  Program& program_;
  loop::Ranges ranges_;
};

}  // namespace

Scheduled ScheduledOf(const Loop& loop) {
  if (loop.attributes.vector || loop.attributes.unroll) return Scheduled::kAll;
  bool all = true, nothing = true;
  for (const Item& item : loop.body) {
    Scheduled part = Scheduled::kNothing;
    if (const auto* inner = item.As<Loop>()) part = ScheduledOf(*inner);
    else if (item.As<loop::Statement>() == nullptr) continue;
    all = all && part == Scheduled::kAll;
    nothing = nothing && part == Scheduled::kNothing;
    if (!all && !nothing) return Scheduled::kInPart;
  }
  return nothing ? Scheduled::kNothing : Scheduled::kAll;
}

absl::StatusOr<bool> MarkParallel(Program& program) {
  bool changed = false;
  for (loop::Block& block : program.blocks) {
    if (block.body.size() != 1) continue;
    auto* loop = block.body[0].As<Loop>();
    const bool carries = loop != nullptr && CarriedTensor(program, *loop).has_value();
    if (loop == nullptr || loop->attributes.parallel || (carries && !NESTOR_MUTANT("dependent_loop_parallel"))) continue;
    loop->attributes.parallel = true;
    changed = true;
  }
  return changed;
}

absl::StatusOr<bool> MarkInnerParallel(Program& program) {
  // A few vectors are less work than it is to find out which iteration they belong to.
  const auto is_work = [&](const Item& item) {
    constexpr int64_t kMostOfVectors = 64;
    const auto* loop = item.As<Loop>();
    if (loop == nullptr) return false;
    const auto length = program.pool.ConstValue(program.pool.Sub(loop->end, loop->begin));
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
  for (loop::Block& block : program.blocks) {
    Loop* around = block.body.size() == 1 ? block.body[0].As<Loop>() : nullptr;
    while (around != nullptr && around->body.size() == 1) {
      Loop* loop = around->body[0].As<Loop>();
      if (loop == nullptr || !marks(*around, *loop)) break;
      loop->attributes.parallel = changed = true;
      around = loop;
    }
  }
  return changed;
}

absl::StatusOr<bool> MarkVector(Program& program) { return VectorMarker(program).Run(); }

absl::StatusOr<bool> SetLanes(Program& program, Isa isa) {
  return MarkLanes(program, [&](const Loop& loop) { return LanesOf(program, loop, isa); });
}

}  // namespace nestor::jit
