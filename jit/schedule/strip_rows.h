// Which loops run over rows of contractions, for strips of them.
#ifndef NESTOR_JIT_SCHEDULE_STRIP_ROWS_H_
#define NESTOR_JIT_SCHEDULE_STRIP_ROWS_H_

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "loop_ir/dependence.h"
#include "loop_ir/program.h"

namespace nestor::loop {

// The indices of loops that may run over rows: each holds columns, and each part of its body may
// run for some rows before the next part does.
absl::flat_hash_set<int32_t> StripRows(Program& program);

// A place in the body of a loop over rows, which must outlive it.
struct RowPlace {
  const Loop& row;
  std::vector<TensorId> own;  // declared for each row around the place, and so dependent on it
  // The place in a scope that is here.
  RowPlace Inside(const Scope& scope) const;
};

// Whether the summed value has loads that depend on the row, others that depend on the column, and
// none that depend on both.
bool SharesRowsAndColumns(const Program& program, const RowPlace& place, const Loop& column,
                          const Statement& step);

// Whether the loop, at that place, is the same for all rows, has columns inside, and is not itself
// a loop of rows, which would be nearer to them.
bool OpensInStrips(Program& program, const RowPlace& place, const Loop& loop);

// Whether each tensor that is carried from row to row is touched by one of the parts only.
bool AreCarriedInOnePart(const Program& program, const Loop& rows,
                         const std::vector<Footprint>& parts);

}  // namespace nestor::loop

#endif  // NESTOR_JIT_SCHEDULE_STRIP_ROWS_H_
