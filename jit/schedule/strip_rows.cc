// A loop runs over rows if it holds a loop over columns: one around a sum whose value is computed
// from loads that move with the row alone and others that move with the column alone. Columns may
// lie in further loops, as over the heads of attention, which are opened. Whether such a sum is a
// contraction that tiles can take is found later, when strips are tried.
#include "jit/schedule/strip_rows.h"

#include <iterator>

#include "absl/algorithm/container.h"
#include "fusion/scopes.h"
#include "jit/schedule/access_moves.h"
#include "jit/schedule/contraction.h"
#include "loop_ir/affine.h"
#include "loop_ir/perfect_nest.h"

namespace nestor::loop {
namespace {

// No loop is opened for so few columns: vectors would be mostly empty, and values would be in
// memory rather than in registers.
constexpr int64_t kFewColumns = 7;

// The most statements of a loop of rows: dividing it takes time for each pair of them.
constexpr int kMostStatements = 64;

// Whether the loop holds a sum that is a contraction's, with the loop as its column.
bool IsColumn(const Program& program, const RowPlace& place, const Loop& column) {
  return absl::c_any_of(column.body, [&](const Item& item) {
    const auto* sum = item.As<Loop>();
    const Statement* step = sum == nullptr ? nullptr : OnlyStatementIn(*sum);
    return step != nullptr && step->op && SharesRowsAndColumns(program, place, column, *step);
  });
}

// Whether the scope has a loop of columns, more than `few` if that is known, in loops to be opened
// or not. `inside`: the place in the scope.
bool HasColumns(Program& program, const RowPlace& inside, const Scope& scope, int64_t few = 0) {
  return absl::c_any_of(scope, [&](const Item& item) {
    const auto* loop = item.As<Loop>();
    if (loop == nullptr) return false;
    if (!IsColumn(program, inside, *loop)) return OpensInStrips(program, inside, *loop);
    const auto length = KnownLength(program, *loop);
    return !length || *length > few;
  });
}

bool IsLong(const Loop& loop) {
  int statements = 0;
  VisitItems(loop.body, [&](const Item& item) { statements += item.As<Statement>() != nullptr; });
  return statements > kMostStatements;
}

// Whether each part of the body may run for some rows before the next part does: tensors carried
// from row to row, above all sums over rows, stay in one part, and so in the order of the rows.
bool MayDivide(const Program& program, const Loop& rows) {
  std::vector<Footprint> parts;
  for (const Item& item : rows.body) parts.push_back(FootprintOf(program, item));
  return AreCarriedInOnePart(program, rows, parts);
}

// Whether the loop has columns, as rows.
bool HasColumns(Program& program, const Loop& rows) {
  return HasColumns(program, RowPlace{rows, DeclaredIn(rows.body)}, rows.body);
}

// Outer loops come first; contractions as they are need no strips.
void FindRows(Program& program, const Scope& scope, absl::flat_hash_set<int32_t>& rows) {
  for (const Item& item : scope) {
    const auto* loop = item.As<Loop>();
    if (loop == nullptr || ContractionOf(program, *loop)) continue;
    if (loop->step == 1 && HasColumns(program, *loop) && !IsLong(*loop) &&
        MayDivide(program, *loop))
      rows.insert(loop->var);
    FindRows(program, loop->body, rows);
  }
}

}  // namespace

absl::flat_hash_set<int32_t> StripRows(Program& program) {
  absl::flat_hash_set<int32_t> rows;
  FindRows(program, program.body, rows);
  return rows;
}

RowPlace RowPlace::Inside(const Scope& scope) const {
  RowPlace inside = *this;
  absl::c_copy(DeclaredIn(scope), std::back_inserter(inside.own));
  return inside;
}

bool SharesRowsAndColumns(const Program& program, const RowPlace& place, const Loop& column,
                          const Statement& step) {
  bool any_row = false, any_column = false, any_both = false;
  VisitLoads(program, step.value, [&](ValueId, const Access& access) {
    const bool in_row =
        DependsOn(program, access, place.row) || absl::c_linear_search(place.own, access.tensor);
    const bool in_column = DependsOn(program, access, column);
    any_row |= in_row;
    any_column |= in_column;
    any_both |= in_row && in_column;
  });
  return any_row && any_column && !any_both;
}

bool OpensInStrips(Program& program, const RowPlace& place, const Loop& loop) {
  const auto is_fixed = [&](IndexId e) {
    return !HoldsVar(program.pool, e, place.row.var) && !program.pool.HasLoad(e);
  };
  const bool is_plain = loop.step == 1 && is_fixed(loop.begin) && is_fixed(loop.end);
  if (!is_plain || IsColumn(program, place, loop)) return false;
  return HasColumns(program, place.Inside(loop.body), loop.body, kFewColumns) &&
         !HasColumns(program, loop);
}

bool AreCarriedInOnePart(const Program& program, const Loop& rows,
                         const std::vector<Footprint>& parts) {
  return absl::c_all_of(CarriedTensors(program, rows), [&](TensorId tensor) {
    return absl::c_count_if(parts, [&](const Footprint& part) { return part.Touches(tensor); }) ==
           1;
  });
}

}  // namespace nestor::loop
