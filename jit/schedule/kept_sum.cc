#include "jit/schedule/kept_sum.h"

#include <string>

#include "jit/schedule/contraction.h"
#include "jit/schedule/loop_maker.h"
#include "loop_ir/rewrite.h"

namespace nestor::jit {

using loop::Loop;
using loop::Program;
using loop::Scope;

Shape LengthsOf(loop::Ranges& ranges, absl::Span<const Loop* const> loops) {
  Shape lengths;
  for (const Loop* loop : loops) lengths.push_back(ranges.LengthOf(*loop));
  return lengths;
}

KeptSum::KeptSum(Program& program, loop::Ranges& ranges, absl::string_view name, loop::TensorId accumulator,
                 absl::Span<const Loop* const> loops)
    : program_(program), accumulator_(accumulator) {
  IndexPool& pool = program.pool;
  for (const Loop* loop : loops) place_.push_back(pool.Sub(pool.Var(loop->var), loop->begin));
  const Shape shape = LengthsOf(ranges, loops);
  tensor_ = program.AddTensor({std::string(name), program[accumulator].type, shape, loop::Storage::kTemp});
  AssumeFewElements(program, shape);
}

Scope KeptSum::Store() const { return Assignment(tensor_, place_, program_.AddLoad({accumulator_, {}})); }

void KeptSum::LoadInstead(Scope& scope) const {
  VisitStatements(scope, [&](loop::Statement& statement) {
    RewriteLoads(program_, statement, accumulator_, [&](loop::Access& load) { load = {tensor_, place_}; });
  });
}

}  // namespace nestor::jit
