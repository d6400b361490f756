// Passes write new nests as C++ that looks like the nest: a loop is a call, its body a lambda that
// gets the index, so that an index cannot be used outside of its loop:
//
//   make.Counted("k", length, kPlain, [&](IndexId k) { return Assignment(t, {k}, value(k)); })
//     # for k in [0, length) { t[k] = value(k) }
//
// Loops that are known to be empty are never made, so that callers need no special case where a
// block has no rest. There is no `if` in the IR: OnlyIf makes the bound of a loop 0 instead.
#include "jit/schedule/loop_maker.h"

#include <iterator>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "fusion/scopes.h"
#include "loop_ir/affine.h"
#include "loop_ir/perfect_nest.h"
#include "loop_ir/rewrite.h"
#include "uops/graph.h"
#include "uops/mutant.h"

namespace nestor::loop {

Scope LoopMaker::Counted(absl::string_view name, IndexId end, LoopAttributes attributes,
                         Body body) {
  return Between(name, program_.pool.Const(0), end, attributes, body);
}

// Nothing where the loop is known to be empty, or its body is.
Scope LoopMaker::CountedTwice(absl::string_view outer, IndexId outer_end, absl::string_view inner,
                              IndexId inner_end,
                              absl::FunctionRef<Scope(IndexId o, IndexId i)> body) {
  return Counted(outer, outer_end, kPlain, [&](IndexId o) {
    return Counted(inner, inner_end, kPlain, [&](IndexId i) { return body(o, i); });
  });
}

Scope LoopMaker::Between(absl::string_view name, IndexId begin, IndexId end,
                         LoopAttributes attributes, Body body) {
  IndexPool& pool = program_.pool;
  if (DifferenceOf(pool, end, begin).value_or(1) <= 0) return {};
  Loop loop{program_.AddVar(name), begin, end, 1, attributes, {}};
  loop.body = body(pool.Var(loop.var));
  return loop.body.empty() ? Scope() : ScopeOf(std::move(loop));
}

Scope LoopMaker::If(IndexId flag, absl::FunctionRef<Scope()> body) {
  IndexPool& pool = program_.pool;
  const IndexId runs = IsAtMostOne(pool, flag) ? flag : pool.Min(flag, pool.Const(1));
  return Counted("z", runs, kPlain, [&](IndexId) { return body(); });
}

// `body` in a copy of the loop with an index of its own, since an index is that of one loop.
Scope AroundAnew(Program& program, const Loop& loop, Scope body) {
  Loop own = loop;
  own.var = program.AddVar(program.vars[loop.var]);
  VarReplacement replace(program);
  replace.Set(loop.var, program.pool.Var(own.var));
  RewriteIndices(program, body, [&](IndexId e) { return replace(e); });
  return Around(own, std::move(body));
}

// Indices are replaced in the bounds, too: an inner loop's bounds may hold an outer one's index.
Item InOwnLoops(Program& program, const LoopsAround& loops, Statement statement) {
  VarReplacement replace(program);
  std::vector<int32_t> vars;
  for (const Loop* loop : loops) {
    vars.push_back(program.AddVar(program.vars[loop->var]));
    replace.Set(loop->var, program.pool.Var(vars.back()));
  }
  Scope scope = Around(loops, {Item{std::move(statement)}});
  RewriteIndices(program, scope, [&](IndexId e) { return replace(e); });
  Scope* inside = &scope;
  for (int32_t var : vars) {
    auto* loop = (*inside)[0].As<Loop>();
    loop->var = var;
    inside = &loop->body;
  }
  return std::move(scope[0]);
}

Scope Assignment(TensorId tensor, IndexList place, ValueId value) {
  Scope scope;
  scope.push_back({Statement{{tensor, std::move(place)}, absl::nullopt, value, {}}});
  return scope;
}

// A tree: 16 -> 8 -> 4 -> 2 -> 1 lanes, lane l with lane l + width. Each half is a register tile of
// its own, as a store must not change what the same vector operation reads.
Access CombineLanes(Program& program, TensorId vector, const IndexList& around, ReduceOp op,
                    absl::FunctionRef<std::string(int64_t width)> name, Scope& scope) {
  IndexPool& pool = program.pool;
  const DType type = program[vector].type;
  IndexList before = around;  // of the vector that is halved next
  const auto at = [&](IndexId lane) {
    Access access = {vector, before};
    access.place.push_back(lane);
    return access;
  };
  const int64_t least = NESTOR_MUTANT("lane_partial_dropped") ? 2 : 1;
  for (int64_t width = *pool.ConstValue(program[vector].shape.back()) / 2; width >= least;
       width /= 2) {
    const IndexId lanes = pool.Const(width);
    const TensorId half =
        program.AddTensor({name(width), type, {lanes}, Storage::kTemp, op, /*is_register=*/true});
    scope.push_back(DeclarationOf(half));
    Append(scope, LoopMaker(program).Counted("l", lanes, kVector, [&](IndexId l) {
      const ValueId both = program.AddApply(
          StepOp(op), {program.AddLoad(at(l)), program.AddLoad(at(pool.Add(l, lanes)))}, type);
      return Assignment(half, {l}, both);
    }));
    vector = half;
    before.clear();
  }
  return at(pool.Const(0));
}

bool AddPrefetch(Loop& loop, Access access, Prefetch::Cache cache) {
  const bool known = absl::c_any_of(loop.prefetches, [&](const Prefetch& other) {
    return other.access.tensor == access.tensor && other.access.place == access.place;
  });
  if (!known) loop.prefetches.push_back({std::move(access), cache});
  return !known;
}

// min(count, flag * 2^49) is affine but for the minimum, so that ranges and bounds are proven as
// usual.
IndexId OnlyIf(IndexPool& pool, IndexId flag, IndexId count) {
  if (pool.IsConst(count, 0) || pool.IsConst(flag, 1)) return count;
  if (pool.IsConst(flag, 0)) return pool.Const(0);
  constexpr int64_t kMany = int64_t{1} << 49;  // more than any extent
  return pool.Min(count, pool.Mul(flag, pool.Const(kMany)));
}

bool IsVersionFor(Program& program, IndexId flag, const std::vector<bool>& version) {
  if (const auto known = program.pool.ConstValue(flag)) return *known == 1;
  const auto test = absl::c_find_if(program.version,
                                    [&](const VersionTest& other) { return other.flag == flag; });
  if (test != program.version.end()) return test->value;
  const size_t number = program.version.size();
  program.version.push_back({flag, number < version.size() && version[number]});
  return program.version.back().value;
}

bool IsVersionForFew(Program& program, IndexId count, int64_t least,
                     const std::vector<bool>& version) {
  IndexPool& pool = program.pool;
  if (pool.HasVar(count)) return false;
  const IndexId missing = pool.Max(pool.Const(0), pool.Sub(pool.Const(least), count));
  return IsVersionFor(program, pool.Min(pool.Const(1), missing), version);
}

IndexId OverUp(IndexPool& pool, IndexId e, IndexId divisor) {
  return pool.Div(pool.Add(e, pool.Sub(divisor, pool.Const(1))), divisor);
}

}  // namespace nestor::loop
