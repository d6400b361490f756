// A nest is searched from the outside in: a loop is worth more the more of its
// accesses lie side by side from one iteration to the next, where an access counts as
// often as the loops inside repeat it. What lies at the loop's own depth counts as
// once; each loop in between as many times again.
#include "jit/schedule/attributes.h"

#include <algorithm>
#include <vector>

#include "jit/codegen/lanes.h"
#include "loop_ir/dependence.h"
#include "loop_ir/ranges.h"

namespace nestor::jit {
namespace {

using loop::Item;
using loop::Loop;
using loop::Program;
using loop::Scope;
using loop::Storage;
using loop::TensorId;

// The weight of a loop level: an inner loop repeats its body so often.
constexpr double kIterations = 16;
// What a vector costs, compared with as many scalars: an access along the vector one
// load, one that jumps about as much as the scalars, one that stays nothing.
constexpr double kUnit = 1, kJump = -2, kSame = 0.5;

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
    if (loop.attributes.vector) return false;
    const double own = Gain(loop);
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
    const double gain = Side(loop.body, loop.var, kIterations);
    if (gain <= 0 || CarriedTensor(program_, loop).has_value() || !RunsInLanes(program_, ranges_, loop)) return 0;
    return gain / kIterations;
  }

  double Side(const Scope& scope, int32_t var, double weight) const {
    double sum = 0;
    for (const Item& item : scope) {
      if (const auto* loop = item.As<Loop>()) {
        sum += Side(loop->body, var, weight * kIterations);
        continue;
      }
      VisitAccesses(program_, item, [&](TensorId tensor, absl::Span<const IndexId> place, loop::AccessKind) {
        if (!program_[tensor].shape.empty()) sum += weight * Step(place, var);
      });
    }
    return sum;
  }

  double Step(absl::Span<const IndexId> place, int32_t var) const {
    double step = kSame;
    for (size_t axis = 0; axis < place.size(); ++axis) {
      const auto coefficient = CoefficientOf(program_, place[axis], var);
      if (!coefficient) return kJump;
      if (program_.pool.IsConst(*coefficient, 0)) continue;
      const bool side_by_side = axis + 1 == place.size() && program_.pool.IsConst(*coefficient, 1);
      if (!side_by_side) return kJump;
      step = kUnit;
    }
    return step;
  }

  Program& program_;
  loop::Ranges ranges_;
};

}  // namespace

absl::StatusOr<bool> MarkParallel(Program& program) {
  bool changed = false;
  for (loop::Block& block : program.blocks) {
    if (block.body.size() != 1) continue;
    auto* loop = block.body[0].As<Loop>();
    if (loop == nullptr || loop->attributes.parallel || CarriedTensor(program, *loop).has_value()) continue;
    loop->attributes.parallel = true;
    changed = true;
  }
  return changed;
}

absl::StatusOr<bool> MarkVector(Program& program) { return VectorMarker(program).Run(); }

}  // namespace nestor::jit
