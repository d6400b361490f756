// Estimates how much faster a loop runs in lanes, as a number without a unit that is compared
// between the loops of one nest. The moves of accesses count most: an access along the vector costs
// one load, one to every second element two and shuffles, one that jumps more than the scalars, one
// that stays next to nothing. An operation costs a fraction of the scalar ones; twenty operations,
// as in exp, outweigh a jump.
//
//   y[i, j] = x[j, i] * b[j]    along j: 1 (y) - 2 (x) + 1 (b);  along i: -2 + 1 + 0.25
#include "jit/schedule/lane_gain.h"

#include "fusion/cost/work.h"
#include "loop_ir/affine.h"
#include "loop_ir/dependence.h"

namespace nestor::loop {
namespace {

constexpr double kUnit = 1, kEverySecond = 0.5, kJump = -2, kSame = 0.25, kOperation = 0.1;

// The axes after the last one have a single element.
size_t LastAxis(const Program& program, TensorId tensor) {
  const IndexList& shape = program[tensor].shape;
  size_t last = shape.size() - 1;
  while (last > 0 && program.pool.IsConst(shape[last], 1)) --last;
  return last;
}

// The gain of one access: kUnit for adjacent elements, kSame where the index does not move it.
double StepGain(const Program& program, TensorId tensor, absl::Span<const IndexId> place,
                AccessKind kind, int32_t var) {
  const size_t last = LastAxis(program, tensor);
  double gain = kSame;
  for (size_t axis = 0; axis < place.size(); ++axis) {
    const auto step = CoefficientOf(program.pool, place[axis], var);
    if (!step) return kJump;
    if (step->IsZero()) continue;
    const auto elements = axis < last ? absl::nullopt : step->Constant();
    const DType type = program[tensor].type;
    const bool has_shuffles = kind == AccessKind::kRead &&
                              (ByteSize(type) == 4 || (IsInteger(type) && ByteSize(type) < 4));
    if (elements != 1 && (elements != 2 || !has_shuffles)) return kJump;
    gain = elements == 1 ? kUnit : kEverySecond;
  }
  return gain;
}

// A statement in a loop inside counts kIterations times for each level, whatever that loop's
// length.
double ScopeGain(const Program& program, const Scope& scope, int32_t var, double weight) {
  double sum = 0;
  for (const Item& item : scope) {
    if (const auto* loop = item.As<Loop>()) {
      sum += ScopeGain(program, loop->body, var, weight * kIterations);
      continue;
    }
    if (const auto* statement = item.As<Statement>()) {
      sum += weight * kOperation * OperationsOf(program, statement->value);
    }
    VisitAccesses(program, item,
                  [&](TensorId tensor, absl::Span<const IndexId> place, AccessKind kind) {
                    if (!program[tensor].shape.empty())
                      sum += weight * StepGain(program, tensor, place, kind, var);
                  });
  }
  return sum;
}

}  // namespace

double LaneGain(const Program& program, const Loop& loop) {
  return ScopeGain(program, loop.body, loop.var, 1);
}

}  // namespace nestor::loop
