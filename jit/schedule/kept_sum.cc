// Cuts a nest in two where its sum and the uses of the sum should run in different loops: rows in
// strips, lanes along another axis, results written in another order. The cut is a temporary with
// an element for each iteration of the chosen loops: scalar expansion, then loop distribution
// (Allen and Kennedy, "Optimizing Compilers for Modern Architectures", 2001). A temporary is
// something that the program as written does without, so that its size becomes an assumption of the
// program: where it is large, the program runs as it was.
//
// Strips are made here, too: strip-mining, with bounds that keep the loop's own index, so that
// bodies need no rewriting.
#include "jit/schedule/kept_sum.h"

#include <iterator>
#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/types/optional.h"
#include "fusion/decided_copy.h"
#include "fusion/scopes.h"
#include "jit/schedule/contraction.h"
#include "jit/schedule/loop_maker.h"
#include "loop_ir/perfect_nest.h"
#include "loop_ir/rewrite.h"
#include "uops/mutant.h"

namespace nestor::loop {

Shape LengthsOf(Ranges& ranges, absl::Span<const Loop* const> loops) {
  Shape lengths;
  for (const Loop* loop : loops) lengths.push_back(ranges.LengthOf(*loop));
  return lengths;
}

IndexList IterationsOf(IndexPool& pool, absl::Span<const Loop* const> loops) {
  IndexList place;
  for (const Loop* loop : loops) place.push_back(pool.Sub(pool.Var(loop->var), loop->begin));
  return place;
}

KeptSum::KeptSum(Program& program, Ranges& ranges, absl::string_view name, TensorId accumulator,
                 absl::Span<const Loop* const> loops)
    : program_(program), accumulator_(accumulator), place_(IterationsOf(program.pool, loops)) {
  const Shape shape = LengthsOf(ranges, loops);
  tensor_ =
      program.AddTensor({std::string(name), program[accumulator].type, shape, Storage::kTemp});
  AssumeFewElements(program, shape);
}

Scope KeptSum::Store() const {
  return Assignment(tensor_, place_, program_.AddLoad({accumulator_, {}}));
}

void KeptSum::LoadInstead(Scope& scope) const {
  VisitStatements(scope, [&](Statement& statement) {
    RewriteLoads(program_, statement, accumulator_, [&](Access& load) {
      if (NESTOR_MUTANT("mask_of_kept_sum_dropped")) load = {};
      load.tensor = tensor_;
      load.place = place_;
    });
  });
}

// The core's declarations and loops make the sum; its statements are the ends. The ends get copies
// of their loops, as one index may not belong to two loops beside each other.
Scope KeptSum::SumsAndEnds(Ranges& ranges, const Scope& core, absl::Span<const Loop* const> sums,
                           absl::Span<const Loop* const> ends) const {
  const auto is_statement = [](const Item& item) { return item.As<Statement>() != nullptr; };
  Scope sum, end;
  absl::c_remove_copy_if(core, std::back_inserter(sum), is_statement);
  absl::c_copy_if(core, std::back_inserter(end), is_statement);
  Append(sum, Store());
  LoadInstead(end);
  Scope scope = {DeclarationOf(tensor_)};
  Append(scope, Around(sums, std::move(sum)));
  absl::optional<Loop> fresh =
      FreshCopy(program_, ranges, *Around(ends, std::move(end))[0].As<Loop>());
  if (fresh) Append(scope, ScopeOf(*std::move(fresh)));
  return scope;
}

namespace {

// The strip at p begins at loop.begin + length*p; the last one may be cut off by loop.end.
Strips StripsOf(Program& program, const Loop& loop, IndexId strips, IndexId length) {
  IndexPool& pool = program.pool;
  Strips made;
  made.over = {program.AddVar(program.vars[loop.var]), pool.Const(0), strips, 1, {}, {}};
  made.whole = {
      loop.var, pool.Add(loop.begin, pool.Mul(length, pool.Var(made.over.var))), {}, 1, {}, {}};
  made.whole.end = pool.Add(made.whole.begin, length);
  made.strip = made.whole;
  made.strip.end = pool.Min(loop.end, made.whole.end);
  return made;
}

}  // namespace

Strips StripsOf(Program& program, Ranges& ranges, const Loop& loop, int64_t length) {
  IndexPool& pool = program.pool;
  const IndexId strips =
      pool.Div(pool.Add(ranges.LengthOf(loop), pool.Const(length - 1)), pool.Const(length));
  return StripsOf(program, loop, strips, pool.Const(length));
}

// An even number of strips of at most kMost rows, all but the last of one length, so that two
// workers share them evenly.
Strips EvenStripsOf(Program& program, Ranges& ranges, const Loop& loop) {
  constexpr int64_t kMost = 8;
  IndexPool& pool = program.pool;
  const IndexId length = ranges.LengthOf(loop);
  const IndexId pairs = pool.Max(OverUp(pool, length, pool.Const(2 * kMost)), pool.Const(1));
  const IndexId strips = pool.Mul(pool.Const(2), pairs);
  return StripsOf(program, loop, strips, pool.Min(OverUp(pool, length, strips), pool.Const(kMost)));
}

}  // namespace nestor::loop
