#include "jit/schedule/loops_from_zero.h"

#include <utility>

#include "absl/types/optional.h"
#include "jit/schedule/contraction.h"
#include "jit/schedule/replace_loops.h"
#include "loop_ir/perfect_nest.h"
#include "loop_ir/ranges.h"
#include "loop_ir/rewrite.h"

namespace nestor::loop {
namespace {

// `end` less `begin`, with one minimum outermost where it was there before.
IndexId Less(IndexPool& pool, IndexId end, IndexId begin) {
  if (pool[end].kind != IndexKind::kMin) return pool.Sub(end, begin);
  const IndexId first = pool[end].args[0], second = pool[end].args[1];
  return pool.Min(Less(pool, first, begin), Less(pool, second, begin));
}

absl::optional<Scope> FromZero(Program& program, const Loop& loop) {
  IndexPool& pool = program.pool;
  if (loop.step != 1 || !pool.HasVar(loop.begin) || HullOf(program, loop)) return absl::nullopt;
  Loop moved = loop;
  moved.begin = pool.Const(0);
  moved.end = Less(pool, loop.end, loop.begin);
  if (!HullOf(program, moved)) return absl::nullopt;
  VarReplacement replace(program);
  replace.Set(loop.var, pool.Add(loop.begin, pool.Var(loop.var)));
  RewriteIndices(program, moved.body, [&](IndexId e) { return replace(e); });
  return ScopeOf(std::move(moved));
}

}  // namespace

absl::StatusOr<bool> CountFromZero(Program& program) {
  Ranges ranges(program);
  bool changed = false;
  // What replaces a loop is visited in the next round.
  while (ReplaceLoops(program, ranges, [&](Loop& loop) { return FromZero(program, loop); }))
    changed = true;
  return changed;
}

}  // namespace nestor::loop
