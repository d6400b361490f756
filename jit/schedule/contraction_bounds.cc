// Operands are copied for all steps of a sum before the sum runs, so a copy needs bounds that hold
// for every row and every iteration of the batch loops, not the bounds of one iteration. Two kinds
// of moving bounds have such hulls:
//
// - clipped ones: for k in [max(0, R - i), min(K, N - i)), whose hull is [0, K): the arguments of
//   the maximum and minimum that do not move;
// - triangles: for k in [0, i + 1), whose bounds are monotone in the row i, so that the extremes
//   are at the first and last row of a block. Between the largest begin and the least end all rows
//   of the block sum (CommonBounds), which makes a rectangle; what is left on either side
//   (RaggedParts) is summed in smaller pieces.
//
// A copy reads elements that the nest as written might not read. IsInRange proves that these exist,
// with only those loops entered that move the operand, since another loop may have no iteration at
// all and then says nothing about sizes.
#include <cstddef>
#include <iterator>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/types/optional.h"
#include "jit/schedule/access_moves.h"
#include "jit/schedule/contraction.h"
#include "jit/schedule/widen.h"
#include "loop_ir/rewrite.h"

namespace nestor::loop {

// The columns of a temporary may be stored only where they are summed. Those of an argument are all
// there, and then one copy serves all iterations of a loop around with which their end moves.
Hull CopiedColumns(const Program& program, const Contraction& nest,
                   const Contraction::Operand& operand) {
  const TensorId from = AccessOf(program, operand).tensor;
  return program[from].storage == Storage::kTemp ? Hull{nest.column->begin, nest.column->end}
                                                 : *HullOf(program, *nest.column);
}

bool IsInRange(Program& program, Ranges& ranges, const Contraction& nest,
               const Contraction::Operand& operand, CheckedSteps steps) {
  std::vector<Loop> inside = HullLoopsOf(nest);
  for (size_t i = 0; i < inside.size() && steps == CheckedSteps::kOfSums; ++i) {
    inside[i].begin = nest.sums[i]->begin;
    inside[i].end = nest.sums[i]->end;
  }
  std::vector<const Loop*> nested = nest.batch;
  if (nest.jammed != nullptr) nested.push_back(nest.jammed);
  if (nest.row != nullptr) nested.push_back(nest.row);
  const Hull columns = CopiedColumns(program, nest, operand);
  inside.push_back({nest.column->var, columns.begin, columns.end, 1, {}, {}});
  for (const Loop& loop : inside) nested.push_back(&loop);
  const Access access = AccessOf(program, operand);
  // A copy is made even if another loop runs no iteration: loops that do not move the operand imply
  // nothing about its sizes.
  std::vector<const Loop*> around;
  absl::c_copy_if(nested, std::back_inserter(around),
                  [&](const Loop* loop) { return DependsOn(program, access, *loop); });
  for (const Loop* loop : around) ranges.Enter(*loop);
  const auto is_in_range = [&](const Access& each) {
    return ranges.InRange(each.place, program[each.tensor].shape);
  };
  std::vector<Access> others = AccessesOf(program, operand);
  others.erase(others.begin());
  const bool in_range = is_in_range(access) && absl::c_all_of(others, [&](const Access& other) {
                          return other.masked || is_in_range(other);
                        });
  for (size_t i = 0; i < around.size(); ++i) ranges.Leave();
  return in_range;
}

// The first argument that holds no loop index bounds the maximum (minimum) from the outer side.
absl::optional<Hull> HullOf(const Program& program, const Loop& loop) {
  const IndexPool& pool = program.pool;
  const auto fixed = [&](IndexId e, IndexKind kind) -> absl::optional<IndexId> {
    if (!pool.HasVar(e)) return e;
    if (pool[e].kind != kind) return absl::nullopt;
    for (IndexId arg : pool[e].args) {
      if (!pool.HasVar(arg)) return arg;
    }
    return absl::nullopt;
  };
  const auto begin = fixed(loop.begin, IndexKind::kMax), end = fixed(loop.end, IndexKind::kMin);
  if (!begin || !end) return absl::nullopt;
  return Hull{*begin, *end};
}

std::vector<Loop> HullLoopsOf(const Contraction& nest) {
  std::vector<Loop> loops;
  for (size_t i = 0; i < nest.sums.size(); ++i) {
    loops.push_back({nest.sums[i]->var, nest.hulls[i].begin, nest.hulls[i].end, 1, {}, {}});
  }
  return loops;
}

Hull BoundsAt(Program& program, const Contraction& nest, IndexId row) {
  VarReplacement replace(program);
  replace.Set(nest.row->var, program.pool.Add(nest.row->begin, row));
  return {replace(nest.sums[0]->begin), replace(nest.sums[0]->end)};
}

// The steps that all rows from `first` to `last` take: the greatest begin and the least end.
Hull CommonBounds(Program& program, const Contraction& nest, IndexId first, IndexId last) {
  IndexPool& pool = program.pool;
  const auto over = [&](IndexId e) {
    return *ExtremesOver(program, e, nest.row->var, pool.Add(nest.row->begin, first),
                         pool.Add(nest.row->begin, last));
  };
  return {over(nest.sums[0]->begin).greatest, over(nest.sums[0]->end).least};
}

// The steps of a row that are not common to all rows: those before and those after the common ones.
std::vector<Hull> RaggedParts(Program& program, const Contraction& nest, const Hull& common,
                              const Hull& bounds) {
  IndexPool& pool = program.pool;
  std::vector<Hull> parts;
  if (HoldsVar(pool, nest.sums[0]->begin, nest.row->var)) {
    parts.push_back({bounds.begin, pool.Min(common.begin, bounds.end)});
  }
  if (HoldsVar(pool, nest.sums[0]->end, nest.row->var)) {
    parts.push_back({pool.Max(common.begin, common.end), bounds.end});
  }
  return parts;
}

}  // namespace nestor::loop
