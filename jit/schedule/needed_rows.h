// Rows of a register tile that can skip a step of the sums (Statement::needed_if).
#ifndef NESTOR_JIT_SCHEDULE_NEEDED_ROWS_H_
#define NESTOR_JIT_SCHEDULE_NEEDED_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "jit/schedule/contraction.h"
#include "loop_ir/program.h"
#include "loop_ir/ranges.h"

namespace nestor::loop {

// At the first row of an image, the window's first elements are padding:
//
//   s += w[p] * x[i + p - 1 | 0.0] needed if 1 <= i + p, i + p - 1 < W      of row 0 not where p = 0
//
// Where steps of the window are written out, conditions of rows 1 and up are known to hold in all
// tiles from the first on, and only the last row's conditions depend on whether the tile is the
// last one: so only row 0 and the last row are tested.
class NeededRows {
 public:
  // `rows`: how many the nest has. `is_written_out`: whether the steps of the sum of that number
  // are known where they are written. REQUIRES: the arguments outlive this; `ranges` is at the
  // place of the nest.
  NeededRows(Program& program, Ranges& ranges, const Contraction& nest, IndexId rows,
             absl::FunctionRef<bool(size_t)> is_written_out);

  // The first sum whose steps say whether a row is needed; the number of sums where none do.
  size_t first_sum() const { return first_sum_; }

  // 1 where row `r` of a tile of `tile_rows` rows that begins at `row` takes part in the step,
  // else 0; the constant 1 where it does in all tiles. `sums`: the step, counted from the
  // begin of hulls.
  IndexId At(IndexId row, int64_t r, int64_t tile_rows, const std::vector<IndexId>& sums);

 private:
  bool CanBeUsed(IndexId condition, absl::FunctionRef<bool(size_t)> is_written_out);
  IndexId MarginAt(IndexId margin, IndexId row, const std::vector<IndexId>& sums);

  Program& program_;
  IndexPool& pool_;
  Ranges& ranges_;
  const Contraction& nest_;
  const IndexId rows_;
  // The margin of a condition, which holds where the difference is positive: b - a for a < b.
  struct Margin {
    IndexId difference;
    bool falls;  // with the row
  };
  std::vector<Margin> margins_;
  size_t first_sum_;
};

}  // namespace nestor::loop

#endif  // NESTOR_JIT_SCHEDULE_NEEDED_ROWS_H_
