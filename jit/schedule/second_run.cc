// A transformation that is right for finite numbers alone is applied all the same, if inf and NaN
// can be found afterwards: the nest as it was runs again where they were, and overwrites all
// results. Flags are accumulators by maximum, so that any number of statements may set one, in any
// order; conditions on a flag are indices that load it, which code tests before a loop and not in
// it.
//
// A number is not finite exactly if its product with 0 is not 0 (inf * 0 and NaN * 0 are NaN): one
// multiply and one compare, which run in lanes.
#include "jit/schedule/second_run.h"

#include <cstdint>
#include <iterator>
#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/types/optional.h"
#include "fusion/decided_copy.h"
#include "fusion/scopes.h"
#include "jit/schedule/loop_maker.h"
#include "jit/schedule/zero_factor.h"
#include "loop_ir/perfect_nest.h"
#include "loop_ir/rewrite.h"
#include "uops/mutant.h"

namespace nestor::loop {

IndexId SecondRun::Flag(absl::string_view name, Scope& scope) {
  const TensorId flag = program_.AddTensor(
      {std::string(name), DType::kI64, {}, Storage::kAccumulator, ReduceOp::kMax});
  scope.push_back(DeclarationOf(flag));
  return pool_.Load(flag.value, {});
}

IndexId SecondRun::IsSet(IndexId flag) {
  return pool_.Condition(IndexKind::kEq, flag,
                         pool_.Const(NESTOR_MUTANT("second_run_skipped") ? 2 : 1));
}

Scope SecondRun::FlagIf(ValueId value, IndexId flag, IndexId condition, const LoopsAround& loops) {
  Statement statement{{TensorId{static_cast<int32_t>(pool_[flag].value)}},
                      ReduceOp::kMax,
                      program_.AddApply(ScalarOp::kCast, {value}, DType::kI64),
                      {}};
  statement.target.masked = condition.value >= 0;
  if (statement.target.masked) statement.target.conditions = {condition};
  return {InOwnLoops(program_, loops, std::move(statement))};
}

// A value is asked in the loops that move it only: others would ask for it again.
Scope SecondRun::FlagIfNotFinite(absl::Span<const ValueId> values, IndexId flag, IndexId condition,
                                 const LoopsAround& loops) {
  Scope scope;
  for (const ValueId value : values) {
    LoopsAround of_value;
    absl::c_copy_if(loops, std::back_inserter(of_value),
                    [&](const Loop* loop) { return DependsOn(program_, value, *loop); });
    Append(scope, FlagIf(IsNotFinite(value), flag, condition, of_value));
  }
  return scope;
}

ValueId SecondRun::IsNotFinite(ValueId value) {
  const ValueId zero = program_.AddConstant(Scalar::Zero(program_[value].type));
  return program_.AddApply(ScalarOp::kNe, {program_.AddApply(ScalarOp::kMul, {value, zero}), zero});
}

void SecondRun::OnlyWhere(IndexId condition, Scope& body) const {
  VisitStatements(body, [&](Statement& statement) {
    statement.target.masked = true;
    statement.target.conditions.push_back(condition);
  });
}

Scope SecondRun::Copied(const LoopsAround& loops, Scope body) {
  if (body.empty()) return {};
  absl::optional<Loop> fresh =
      FreshCopy(program_, ranges_, *Around(loops, std::move(body))[0].As<Loop>());
  return fresh ? ScopeOf(*std::move(fresh)) : Scope();
}

}  // namespace nestor::loop
