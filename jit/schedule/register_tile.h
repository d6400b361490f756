// One register tile of a contraction: the code that sums in it, and the code that uses the sums.
#ifndef NESTOR_JIT_SCHEDULE_REGISTER_TILE_H_
#define NESTOR_JIT_SCHEDULE_REGISTER_TILE_H_

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/optional.h"
#include "jit/schedule/contraction.h"
#include "jit/schedule/contraction_packing.h"
#include "jit/schedule/loop_maker.h"
#include "jit/schedule/needed_rows.h"
#include "jit/schedule/tile_grid.h"
#include "loop_ir/program.h"
#include "loop_ir/ranges.h"
#include "loop_ir/rewrite.h"

namespace nestor::loop {

// The statements of the nest that use its sum, for the column `column`. `sum` is the element that
// holds it; `at` sets the nest's indices.
Scope FinishSum(Program& program, Ranges& ranges, const Contraction& nest, const Access& sum,
                VarReplacement& at, IndexId column);

class RegisterTile : private SizeArithmetic {
 public:
  using Extent = TileGrid::Extent;
  // Where the sums of a tile are, in memory or registers: at [around.., row + r, vector + v, lane].
  struct SumPlace {
    TensorId tensor;
    IndexList around;
    IndexId row, vector;
  };
  // Where a tile lies: it begins at a row and a vector of columns.
  struct Patch {
    Extent extent;
    IndexId row, vector;
    // The number of rows that are kept, where it may be less than the tile's.
    absl::optional<IndexId> rows_left = absl::nullopt;
    // Whether the patch excludes the last vector, which may have fewer lanes.
    bool is_whole = true;
    Packing::Columns columns = Packing::Columns::kInCopies;
    // Where the sums wait to be used (EndsOfWaiting). Not given: they are used at once.
    absl::optional<SumPlace> waiting = absl::nullopt;
  };
  // Which part of the sums a tile takes.
  struct SumBlock {
    IndexId number, count;
    IndexId begin, end;  // steps of the outermost sum, counted from the begin of its hull
    IndexId length;      // of all blocks but the last
    TensorId partial;    // sums of the blocks before
    // Where the tile is in `partial`: how far the loops within blocks have come, and its
    // row and vector.
    IndexList around;
    IndexId row, vector;
  };
  // The panel of a block of tiles, and how many tiles are above this one: in the blocks of rows
  // `before` its own that share the panel, and in its own block. If there are none, it fills the
  // panel. The next block has the columns `block_vectors` vectors further on.
  struct Below {
    Packing::Panel panel;
    IndexId before, in_block, block_vectors;
  };

  // `rows`, `columns`: how many the nest has. REQUIRES: the arguments outlive this; `packing` has
  // decided; `ranges` is at the place of the nest.
  RegisterTile(Program& program, Ranges& ranges, const Contraction& nest, Packing& packing,
               int64_t lanes, IndexId rows, IndexId columns);

  // The code of the tile, for all the sums' steps, unless `part` is given.
  Scope At(const Patch& patch, const absl::optional<SumBlock>& part = absl::nullopt,
           const absl::optional<Below>& below = absl::nullopt);

  // The code that uses the waiting sums of `patch` once all steps are summed, in the innermost of
  // the loops that `around` makes around it.
  using Around = absl::FunctionRef<Scope(absl::FunctionRef<Scope()> make)>;
  Scope EndsOfWaiting(const Patch& patch, const absl::optional<SumBlock>& part, Around around);

 private:
  using AtPlace = absl::FunctionRef<Scope(IndexId r, IndexId v, IndexId l)>;
  using OverSteps = absl::FunctionRef<Scope(const std::vector<IndexId>& sums)>;
  using StepAt =
      absl::FunctionRef<Scope(const std::vector<IndexId>& sums, IndexId r, IndexId v, IndexId l)>;

  IndexId ColumnsFrom(IndexId vector);
  Scope OverSums(const Patch& patch, const absl::optional<SumBlock>& part, const NeededRows& needed,
                 OverSteps body, std::vector<IndexId> known = {});
  bool IsWrittenOut(size_t sum, const Patch& patch, const absl::optional<SumBlock>& part);
  NeededRows NeededRowsOf(const Patch& patch, const absl::optional<SumBlock>& part);
  Scope Sums(TensorId tile, const Patch& patch, const absl::optional<SumBlock>& part,
             const absl::optional<Below>& below);
  IndexId HasMore(const SumBlock& part);
  void PrefetchNextBlock(Scope& sums, const Patch& patch, const SumBlock& part,
                         size_t first_without_loop);
  void PrefetchNextRows(Scope& sums, const Patch& patch, const absl::optional<SumBlock>& part);
  // The innermost of the loops over the sums that is not written out, and the steps of an
  // iteration of it.
  struct SumLoops {
    Loop* innermost;
    std::vector<std::vector<IndexId>> steps;
  };
  absl::optional<SumLoops> LoopsOf(Scope& sums, size_t first_without_loop);
  std::vector<std::vector<IndexId>> StepsOf(const Loop& loop,
                                            const std::vector<std::vector<IndexId>>& around);
  static bool IsLargeEnoughToFetch(Extent extent);
  bool PrefetchNextPanel(Loop& sum, const Patch& patch, const absl::optional<SumBlock>& part,
                         const Below& below);
  IndexId FetchesNextPanel(Extent extent, const absl::optional<SumBlock>& part, const Below& below);
  Scope RaggedSums(const Patch& patch, StepAt step);
  Scope RaggedEnds(const Patch& patch, const Hull& common, bool before, StepAt step);
  Scope RaggedSteps(const Hull& bounds, OverSteps body);
  Scope If(IndexId condition, absl::FunctionRef<Scope()> body);
  Scope AtEnd(const SumBlock& part, absl::FunctionRef<Scope()> body);
  static SumPlace PartialOf(const SumBlock& part);
  Access ElementOf(const SumPlace& sums, IndexId r, IndexId v, IndexId l);
  Scope Stored(TensorId tile, Extent extent, const SumPlace& sums);
  Scope Begin(TensorId tile, Extent extent, const absl::optional<SumBlock>& part);
  IndexId RowToRead(const Patch& patch, IndexId r);
  IndexId LanesOf(const Patch& patch, IndexId vector);
  Scope IfKept(const Patch& patch, IndexId r, absl::FunctionRef<Scope()> body);
  Scope OverTile(Extent extent, AtPlace at);
  Scope OverRow(IndexId r, int64_t vectors, AtPlace at);
  Scope OverRows(const Patch& patch, AtPlace at);
  Scope OverNeededRows(const Patch& patch, NeededRows& needed, const std::vector<IndexId>& sums,
                       AtPlace at);
  Scope Step(TensorId tile, const IndexList& in_tile, const Packing::Place& at,
             Packing::Columns columns, const Packing::Panel* panel);
  Scope Ends(TensorId tile, const Patch& patch);
  Scope EndsOf(const SumPlace& sums, const Patch& patch, LoopAttributes attributes,
               LoopAttributes lanes, Around around);

  Program& program_;
  Ranges& ranges_;
  LoopMaker make_;
  const Contraction& nest_;
  Packing& packing_;
  const DType type_;
  const int64_t lanes_;
  const IndexId rows_, columns_;
  int operations_after_sum_ = 0;
};

}  // namespace nestor::loop

#endif  // NESTOR_JIT_SCHEDULE_REGISTER_TILE_H_
