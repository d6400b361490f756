// A loop whose bounds move with a row is replaced by one with the bounds of all rows of a block.
// The extremes of an expression over an interval are at the ends of the interval if it is
// monotonic, which a walk over its nodes shows: a sum, minimum or maximum of expressions that do
// not run against each other is, and so is a product with a number or a floor quotient by a
// positive one (the rules of interval arithmetic for monotonic functions; Moore, 1966). i - i/2 is
// not recognized, as i and -(i/2) run against each other. The additional iterations must be
// harmless: IsInRange proves that everything which they read or write exists.
#include "jit/schedule/widen.h"

#include "absl/algorithm/container.h"
#include "loop_ir/rewrite.h"

namespace nestor::loop {
namespace {

// 1: rises with the index, or stays; -1: falls; 0: does not depend on it.
absl::optional<int> DirectionOf(const IndexPool& pool, IndexId e, int32_t var) {
  if (!HoldsVar(pool, e, var)) return 0;
  const IndexNode& node = pool[e];
  if (node.kind == IndexKind::kVar) return 1;
  if (node.kind == IndexKind::kMul) {
    const auto factor = pool.ConstValue(node.args[0]) ? pool.ConstValue(node.args[0])
                                                      : pool.ConstValue(node.args[1]);
    const auto other =
        DirectionOf(pool, pool.ConstValue(node.args[0]) ? node.args[1] : node.args[0], var);
    if (!factor || !other) return absl::nullopt;
    return *factor < 0 ? -*other : *other;
  }
  if (node.kind == IndexKind::kDiv) {
    const auto divisor = pool.ConstValue(node.args[1]);
    return divisor && *divisor > 0 ? DirectionOf(pool, node.args[0], var) : absl::nullopt;
  }
  if (node.kind != IndexKind::kAdd && node.kind != IndexKind::kMin && node.kind != IndexKind::kMax)
    return absl::nullopt;
  const auto a = DirectionOf(pool, node.args[0], var), b = DirectionOf(pool, node.args[1], var);
  if (!a || !b || *a * *b < 0) return absl::nullopt;
  return *a + *b > 0 ? 1 : -1;
}

// A masked access may lie anywhere, as long as its subscripts and conditions have values at all.
bool IsInRange(Program& program, Ranges& ranges, const Access& access) {
  const auto defined = [&](IndexId e) { return ranges.Defined(e); };
  if (access.masked)
    return absl::c_all_of(access.place, defined) && absl::c_all_of(access.conditions, defined);
  return ranges.InRange(access.place, program[access.tensor].shape);
}

// Values that are indices must have values, too: no division by what may be 0.
bool IsInRange(Program& program, Ranges& ranges, const Statement& statement) {
  bool good = IsInRange(program, ranges, statement.target);
  VisitValues(program, statement.value, [&](ValueId, const Value& node) {
    if (const auto* load = absl::get_if<LoadValue>(&node.node))
      good = good && IsInRange(program, ranges, load->access);
    if (const auto* index = absl::get_if<IndexValue>(&node.node))
      good = good && ranges.Defined(index->index);
  });
  return good;
}

}  // namespace

// A monotone expression has its extremes at the ends of its variable's range.
absl::optional<Extremes> ExtremesOver(Program& program, IndexId e, int32_t var, IndexId first,
                                      IndexId last) {
  const auto direction = DirectionOf(program.pool, e, var);
  if (!direction) return absl::nullopt;
  const auto at = [&](IndexId index) {
    VarReplacement replace(program);
    replace.Set(var, index);
    return replace(e);
  };
  if (*direction < 0) return Extremes{at(last), at(first)};
  return Extremes{at(first), at(last)};
}

bool IsInRange(Program& program, Ranges& ranges, const Loop& loop) {
  ranges.Enter(loop);
  const bool good = absl::c_all_of(loop.body, [&](const Item& item) {
    if (const auto* inner = item.As<Loop>()) return IsInRange(program, ranges, *inner);
    const auto* statement = item.As<Statement>();
    return statement == nullptr || IsInRange(program, ranges, *statement);
  });
  ranges.Leave();
  return good;
}

}  // namespace nestor::loop
