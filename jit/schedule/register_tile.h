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
#include "jit/schedule/register_tile_prefetches.h"
#include "jit/schedule/tile_grid.h"
#include "jit/schedule/tile_parts.h"
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
  using SumPlace = TileSums;
  using Patch = TilePatch;
  using SumBlock = TileSumBlock;
  using Below = TileBelow;

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
  void PrefetchNextRows(Scope& sums, const Patch& patch, const absl::optional<SumBlock>& part);
  Scope RaggedSums(const Patch& patch, StepAt step);
  Scope RaggedEnds(const Patch& patch, const Hull& common, bool before, StepAt step);
  Scope RaggedSteps(const Hull& bounds, OverSteps body);
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
  RegisterTilePrefetches prefetches_;
  const DType type_;
  const int64_t lanes_;
  const IndexId rows_, columns_;
  int operations_after_sum_ = 0;
};

}  // namespace nestor::loop

#endif  // NESTOR_JIT_SCHEDULE_REGISTER_TILE_H_
