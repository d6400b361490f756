// A product of two matrices is the transpose of the product of their transposes, so either operand
// may fill the lanes; the other one is broadcast. Where both lie along the sum, as in a linear
// layer, y[i, j] = sum over k of x[i, k] * w[j, k], or in a gradient of weights, one of them has to
// be copied across. The operand with fewer elements is the one to copy, if not too many results are
// then stored across. A product with few columns is turned around where its rows could fill the
// lanes instead.
//
// Sizes are symbols, so the answer is an expression of 0 or 1, by which versions of the program are
// told apart (IsVersionFor in loop_maker.h).
#include "jit/schedule/contraction_orientation.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/algorithm/container.h"
#include "jit/schedule/access_moves.h"
#include "loop_ir/affine.h"

namespace nestor::loop {
namespace {

// Copying an element from across takes about 0.4 ns, storing a result across 1 ns. So turning the
// nest around pays where there are less than half as many rows as columns, and more than
// kStepsForRow steps of the sum for each row; but only for columns beyond the caches, from which
// copies are quicker: 0.5 of the time for 16 rows and 2048x2048, but 1.5 for 256x256.
constexpr int64_t kStepsForRow = 5;

// Whether rows would fill lanes without a copy.
bool RowsLieAlongRows(const Program& program, const Contraction& nest) {
  return absl::c_all_of(nest.rows, [&](const Contraction::Operand& operand) {
    const Access access = AccessOf(program, operand);
    return !access.masked && IsAlong(program, access, *nest.row);
  });
}

}  // namespace

bool IsBound(const Program& program, const std::vector<bool>& bound, TensorId tensor) {
  const auto input =
      static_cast<size_t>(absl::c_find(program.inputs, tensor) - program.inputs.begin());
  return input < bound.size() && bound[input];
}

Contraction Exchanged(Contraction nest) {
  std::swap(nest.row, nest.column);
  std::swap(nest.rows, nest.columns);
  return nest;
}

bool HasFewColumns(const Program& program, const Contraction& nest, int64_t lanes) {
  const auto columns = KnownLength(program, *nest.column);
  return columns && *columns >= 2 && 4 * *columns <= 3 * lanes;
}

// The nest with rows and columns exchanged, if lanes along its rows pay more: the product is
// transposed, not the operands.
absl::optional<Contraction> TurnedAround(Program& program, Ranges& ranges, const Contraction& nest,
                                         int64_t lanes, const std::vector<bool>& bound) {
  const auto is_fixed = [&](const Loop& side) {
    return !program.pool.HasVar(ranges.LengthOf(side));
  };
  const auto lies_along = [&](const Contraction::Operand& operand) {
    const Access access = AccessOf(program, operand);
    return !access.masked && !IsBound(program, bound, access.tensor) &&
           IsAlong(program, access, *nest.sums.back());
  };
  if (nest.is_ragged || !is_fixed(*nest.row) || !is_fixed(*nest.column) ||
      !is_fixed(HullLoopsOf(nest).back())) {
    return absl::nullopt;
  }
  // Rows of an image under a window lie along both the rows and the sum.
  const bool pays = RowsLieAlongRows(program, nest) ? HasFewColumns(program, nest, lanes)
                                                    : absl::c_all_of(nest.rows, lies_along) &&
                                                          absl::c_all_of(nest.columns, lies_along);
  return pays ? absl::make_optional(Exchanged(nest)) : absl::nullopt;
}

// min(1, columns / (2 rows + 1)) is 1 where there are more than twice as many columns as rows;
// min(1, steps / (5 rows + 1)) likewise where the sum is long. Both must hold, and a third one for
// their product.
IndexId IsQuickerTurnedAround(Program& program, Ranges& ranges, const Contraction& nest,
                              int64_t lanes, int64_t many_elements) {
  IndexPool& pool = program.pool;
  const IndexId rows = ranges.LengthOf(*nest.row);
  if (RowsLieAlongRows(program, nest))
    return pool.Min(pool.Const(1), pool.Div(rows, pool.Const(lanes)));
  const auto exceeds_rows = [&](const Loop& loop, int64_t times) {
    return pool.Div(ranges.LengthOf(loop),
                    pool.Add(pool.Mul(pool.Const(times), rows), pool.Const(1)));
  };
  const Loop sum = HullLoopsOf(nest).back();
  const IndexId wide = exceeds_rows(*nest.column, 2), deep = exceeds_rows(sum, kStepsForRow);
  const IndexId large = pool.Div(pool.Mul(ranges.LengthOf(*nest.column), ranges.LengthOf(sum)),
                                 pool.Const(std::max<int64_t>(many_elements / 2, 1)));
  for (IndexId each : {wide, deep, large}) {
    if (pool.IsConst(each, 0)) return pool.Const(0);
  }
  return pool.Min(pool.Min(pool.Const(1), large), pool.Min(wide, deep));
}

}  // namespace nestor::loop
