// The sum of a contraction in blocks of steps: partial sums of tiles are kept in memory from one
// block to the next, while the columns of a block stay in the caches.
#ifndef NESTOR_JIT_SCHEDULE_SUM_BLOCKS_H_
#define NESTOR_JIT_SCHEDULE_SUM_BLOCKS_H_

#include <cstdint>

#include "absl/types/optional.h"
#include "jit/schedule/contraction.h"
#include "jit/schedule/contraction_packing.h"
#include "jit/schedule/register_tile.h"
#include "jit/schedule/short_loops.h"
#include "loop_ir/program.h"

namespace nestor::loop {

class SumBlocks {
 public:
  // The blocks into which the outermost sum is cut.
  struct Cut {
    IndexId length, count;  // steps of a block; blocks
    TensorId partial;       // partial sums of the tiles of a block of columns
  };

  // REQUIRES: the arguments outlive this.
  SumBlocks(Program& program, const Contraction& nest, Packing& packing, ShortLoops& short_loops)
      : program_(program), pool_(program.pool), nest_(nest), packing_(packing),
        short_(short_loops) {}

  // Cuts the sum into blocks of about `steps` steps of all sums together. Partial sums are kept for
  // that many rows and vectors of `lanes` lanes, at each iteration of the short loops around sums.
  // nullopt: the sum is not cut, as it is short, or its bounds move.
  absl::optional<Cut> CutAt(int64_t steps, int64_t rows, int64_t vectors, int64_t lanes);

  // Cuts it into blocks of `length` steps of the outermost sum, whose partial sums are kept in a
  // tensor of this shape.
  Cut BlocksOf(IndexId length, Shape kept);

  // Block `number` of a tile whose partial sums are kept at `row` and `vector`.
  RegisterTile::SumBlock At(const Cut& cut, IndexId number, IndexId row, IndexId vector);

 private:
  IndexId LengthOf(int64_t steps);

  Program& program_;
  IndexPool& pool_;
  const Contraction& nest_;
  Packing& packing_;
  ShortLoops& short_;
};

}  // namespace nestor::loop

#endif  // NESTOR_JIT_SCHEDULE_SUM_BLOCKS_H_
