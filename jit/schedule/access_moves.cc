// Schedule passes ask the same few questions again and again: does this access change from one step
// of a loop to the next, along which axis, and by how many elements? The answers come from the
// affine form of each subscript (CoefficientOf in loop_ir/lanes.h), never from running a loop: the
// coefficient of the loop's index is the stride in elements along that axis, and an index that is
// not affine in it, such as a gathered one, has no coefficient. In doubt the answer is that the
// access moves, or does not lie along the loop, which costs speed and never a result.
//
//   x[i + r, 2*j]    i moves axis 0 by 1, r too (a window that slides along i), j axis 1 by 2
#include "jit/schedule/access_moves.h"

#include "absl/algorithm/container.h"
#include "loop_ir/affine.h"
#include "uops/index/index_expr.h"

namespace nestor::loop {

bool MovesWithAny(const IndexPool& pool, IndexId e, absl::Span<const Loop* const> loops) {
  return absl::c_any_of(loops, [&](const Loop* loop) { return HoldsVar(pool, e, loop->var); });
}

bool DependsOn(const Program& program, const Access& access, const Loop& loop) {
  const auto holds = [&](IndexId e) { return HoldsVar(program.pool, e, loop.var); };
  return absl::c_any_of(access.place, holds) || absl::c_any_of(access.conditions, holds);
}

absl::optional<size_t> OnlyAxisAlong(const Program& program, const IndexList& place,
                                     const Loop& loop) {
  const auto moves = [&](IndexId e) { return HoldsVar(program.pool, e, loop.var); };
  if (absl::c_count_if(place, moves) != 1) return absl::nullopt;
  return static_cast<size_t>(absl::c_find_if(place, moves) - place.begin());
}

// In x[i, j, 0] of f32[N, M, 1], j is the index that steps to the adjacent element: an axis of one
// element, known by its constant extent, takes no place in memory.
bool IsAlong(const Program& program, const Access& access, const Loop& loop) {
  const Shape& shape = program[access.tensor].shape;
  size_t last = shape.size();  // axes after it have one element
  while (last > 0 && program.pool.IsConst(shape[last - 1], 1)) --last;
  for (size_t axis = 0; axis < access.place.size(); ++axis) {
    if (StrideIn(program.pool, access.place[axis], loop.var) != (axis + 1 == last ? 1 : 0))
      return false;
  }
  return last > 0;
}

bool StoresLieAlong(const Program& program, const Scope& scope, const Loop& loop) {
  return absl::c_all_of(scope, [&](const Item& item) {
    const auto* statement = item.As<Statement>();
    return statement == nullptr || statement->target.place.empty() ||
           IsAlong(program, statement->target, loop);
  });
}

// Steps by a number on the last axis, and not at all on the others.
bool MovesLastAlone(const Program& program, const Access& access, const Loop& loop) {
  for (size_t axis = 0; axis < access.place.size(); ++axis) {
    const auto by = StrideIn(program.pool, access.place[axis], loop.var);
    if (!by || (*by != 0) != (axis + 1 == access.place.size())) return false;
  }
  return true;
}

// In x[i + r], where r is summed: step i + 1 reads again all elements of step i but one.
bool SlidesAlong(const Program& program, const Access& access, const std::vector<const Loop*>& sums,
                 const Loop& loop) {
  return absl::c_any_of(access.place, [&](IndexId e) {
    return HoldsVar(program.pool, e, loop.var) && absl::c_any_of(sums, [&](const Loop* sum) {
             return HoldsVar(program.pool, e, sum->var);
           });
  });
}

bool AreRowsOfTemporary(const Program& program, const Access& access, const Loop& row) {
  return program[access.tensor].storage == Storage::kTemp && MovesLastAlone(program, access, row);
}

bool IsReadOnce(const Program& program, const Access& access, absl::Span<const Loop* const> loops) {
  const auto movers = [&](IndexId e) {
    return absl::c_count_if(loops,
                            [&](const Loop* loop) { return HoldsVar(program.pool, e, loop->var); });
  };
  return !access.masked && absl::c_all_of(access.place, [&](IndexId e) { return movers(e) <= 1; });
}

}  // namespace nestor::loop
