// Why this changes no bit: where the condition is false, 0 times a finite factor is +0 or -0, and a
// sum that starts at +0 is never -0 (+0 + -0 is +0), so that adding either leaves it as it is. If
// the factor is inf or NaN, the product is NaN, and so is the sum: then the nest runs again as it
// was (sum_nest.h).
#include "jit/schedule/gated_sums.h"

#include <iterator>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/types/optional.h"
#include "fusion/scopes.h"
#include "jit/schedule/contraction.h"
#include "jit/schedule/kept_sum.h"
#include "jit/schedule/loop_maker.h"
#include "jit/schedule/replace_loops.h"
#include "jit/schedule/sum_nest.h"
#include "jit/schedule/widen.h"
#include "jit/schedule/zero_factor.h"
#include "jit/target/products.h"
#include "loop_ir/perfect_nest.h"
#include "loop_ir/ranges.h"
#include "loop_ir/rewrite.h"

namespace nestor::loop {
namespace {

class SumGater {
 public:
  SumGater(Program& program, Ranges& ranges)
      : program_(program), pool_(program.pool), ranges_(ranges) {}

  absl::optional<Scope> Gated(const Loop& outermost) {
    const absl::optional<SumNest> nest = SumNestOf(program_, outermost);
    const absl::optional<Gate> gate = nest ? GateOf(*nest) : absl::nullopt;
    if (!gate) return absl::nullopt;
    const LoopsAround loops = LoopsOf(*nest, *gate);
    const Shape shape = LengthsOf(ranges_, loops);
    const auto moves = [&](IndexId extent) { return pool_.HasVar(extent); };
    if (absl::c_any_of(shape, moves) || absl::c_any_of(LengthsOf(ranges_, nest->band), moves) ||
        !IsInRange(*nest, *gate, loops))
      return absl::nullopt;
    AssumeFewElements(program_, shape);
    const DType type = program_[gate->factor].type;
    const TensorId gated = program_.AddTensor({"gated", type, shape, Storage::kTemp});
    const IndexList place = IterationsOf(pool_, loops);
    const ValueId factor =
        program_.AddApply(ScalarOp::kSelect, {gate->condition, gate->factor, gate->zero}, type);
    Scope scope = {DeclarationOf(gated)};
    scope.push_back(InOwnLoops(program_, loops, {{gated, place}, absl::nullopt, factor, {}}));
    ValueId first = program_.AddLoad({gated, place}), second = gate->other;
    if (gate->product == ScalarOp::kMulz) std::swap(first, second);
    const ValueId product = program_.AddApply(gate->product, {first, second}, type);
    Append(scope, WithSecondRun(program_, ranges_, *nest, 0, WithStep(*nest, product, outermost),
                                {gate->other}));
    return scope;
  }

 private:
  // where(condition, factor * other, zero), or where(condition, mulz(other, factor), zero)
  struct Gate {
    ValueId condition, factor, other, zero;
    ScalarOp product;
  };

  absl::optional<Gate> GateOf(const SumNest& nest) const {
    if (!IsFloat(program_[nest.step->value].type)) return absl::nullopt;
    for (const Gate& gate : GatesOf(nest.step->value)) {
      if (IsShared(nest, gate)) return gate;
    }
    return absl::nullopt;
  }

  // The forms of a value with a condition:
  //
  //   where(c, a * b, 0)       either factor may take the condition
  //   mulz(where(c, a, 0), b)  as gradients have it: where(c, mulz(a, b), 0)
  std::vector<Gate> GatesOf(ValueId value) const {
    if (const ApplyValue* choice = ChoiceOf(value)) {
      const ApplyValue* product = jit::AsApply(program_, choice->args[1], ScalarOp::kMul);
      if (product == nullptr) return {};
      const auto gate = [&](int factor) {
        return Gate{choice->args[0], product->args[factor], product->args[1 - factor],
                    choice->args[2], ScalarOp::kMul};
      };
      return {gate(0), gate(1)};
    }
    const ApplyValue* product = jit::AsApply(program_, value, ScalarOp::kMulz);
    const ApplyValue* choice = product == nullptr ? nullptr : ChoiceOf(product->args[0]);
    if (choice == nullptr) return {};
    return {{choice->args[0], product->args[1], choice->args[1], choice->args[2], ScalarOp::kMulz}};
  }

  // The value if it is where(.., .., 0), else null.
  const ApplyValue* ChoiceOf(ValueId value) const {
    const ApplyValue* choice = jit::AsApply(program_, value, ScalarOp::kSelect);
    return choice != nullptr && jit::IsPlusZero(program_, choice->args[2]) ? choice : nullptr;
  }

  bool Moves(const Gate& gate, const Loop& loop) const {
    return DependsOn(program_, gate.condition, loop) || DependsOn(program_, gate.factor, loop);
  }

  // Whether one choice serves many products, as a row's does those with all columns, and the other
  // factor several rows.
  bool IsShared(const SumNest& nest, const Gate& gate) const {
    const auto is_column = [&](const Loop* loop) {
      return DependsOn(program_, gate.other, *loop) && !Moves(gate, *loop);
    };
    const auto is_row = [&](const Loop* loop) { return !DependsOn(program_, gate.other, *loop); };
    return absl::c_any_of(nest.band, is_column) &&
           absl::c_all_of(nest.sums, [&](const Loop* sum) { return Moves(gate, *sum); }) &&
           (absl::c_any_of(nest.band, is_row) || !IsOutermost(program_, *nest.band[0]));
  }

  // Those around the sum with which the choice moves, then the sums with all their steps.
  LoopsAround LoopsOf(const SumNest& nest, const Gate& gate) const {
    LoopsAround loops;
    absl::c_copy_if(nest.band, std::back_inserter(loops),
                    [&](const Loop* loop) { return Moves(gate, *loop); });
    for (const Loop& sum : nest.hulls) loops.push_back(&sum);
    return loops;
  }

  // Whether the choice may be made wherever the loops run, though the others of the nest do not.
  bool IsInRange(const SumNest& nest, const Gate& gate, const LoopsAround& loops) {
    Scope reads;
    for (const ValueId value : {gate.condition, gate.factor})
      Append(reads, Assignment(nest.step->target.tensor, {}, value));
    return loop::IsInRange(program_, ranges_, *Around(loops, std::move(reads))[0].As<Loop>());
  }

  // The nest with this value in its sum.
  Loop WithStep(const SumNest& nest, ValueId value, Loop whole) const {
    PutSumsFirst(nest, whole);
    VisitStatements(CoreIn(nest, whole), [&](Statement& statement) {
      if (statement.target.tensor == nest.step->target.tensor) statement.value = value;
    });
    return whole;
  }

  Program& program_;
  IndexPool& pool_;
  Ranges& ranges_;
};

}  // namespace

absl::StatusOr<bool> GateFactors(Program& program) {
  Ranges ranges(program);
  SumGater gater(program, ranges);
  return ReplaceLoops(program, ranges, [&](Loop& loop) { return gater.Gated(loop); });
}

}  // namespace nestor::loop
