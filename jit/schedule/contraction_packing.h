// The operands of a contraction on their way to register tiles: read where they are, or
// copied in the order in which tiles read them.
#ifndef NESTOR_JIT_SCHEDULE_CONTRACTION_PACKING_H_
#define NESTOR_JIT_SCHEDULE_CONTRACTION_PACKING_H_

#include <cstdint>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "jit/schedule/contraction.h"
#include "jit/schedule/operand_copies.h"
#include "jit/schedule/packed_layout.h"
#include "loop_ir/program.h"
#include "loop_ir/ranges.h"
#include "loop_ir/rewrite.h"

namespace nestor::loop {

class Packing {
 public:
  // See ContractionTileOptions.
  struct Options {
    const std::vector<bool>& bound;
    bool panels;
  };
  // REQUIRES: the arguments outlive this; `ranges` is at the place of the nest.
  Packing(Program& program, Ranges& ranges, const Contraction& nest, int64_t lanes,
          const Options& options);

  // Whether the operands to pack may be read for all steps of the sums' hulls, even if some of them
  // are not summed, or there is no row at all.
  bool IsInRange();

  // Whether all column operands lie along the columns, or along the sum.
  bool ColumnsLieWell();

  // Finds how many rows and columns there are, which all calls below need.
  void Measure() { layout_.Measure(); }

  // Whether no column operand is packed; and whether no row operand is.
  bool ColumnsAreInPlace();
  bool RowsAreInPlace() const;

  // Chooses what is packed, and declares its tensors. Where a copy may need more memory than its
  // tensor, its being small becomes an assumption of the program: where it is large, the program
  // runs as it was written. The first `whole` vectors of columns are those of whole tiles.
  void Decide(IndexId whole);

  // The number of batch loops, from the outermost on, that packed operands depend on.
  size_t BatchLoops() const;

  // Declarations and copies of operands that depend on the first `depth` batch loops only. If
  // `flag` is given, the loops of the copies run only where it is 1.
  Scope CopiesBehind(size_t depth, absl::optional<IndexId> flag);

  using Place = TilePlace;
  // Where columns that lie well are read: the columns of whole tiles in their operand, or in a
  // panel; the others in a copy. Everything else is read where Decide says.
  enum class Columns { kInCopies, kInOperands, kInPanel };
  // A copy of a block of columns, which the topmost tiles make as they sum: the copy takes no extra
  // time, and stays in the caches until the tiles below have read it.
  struct Panel {
    std::vector<TensorId> tensors;  // by operand
    IndexId first_vector;           // of the block
  };
  // Whether there are columns for panels.
  bool UsesPanels() const {
    return absl::c_any_of(packed_, [](const PackedOperand& packed) { return packed.in_panels; });
  }
  // Declares a panel of that many vectors in `scope`.
  Panel PanelOf(int64_t vectors, IndexId first_vector, Scope& scope);
  // Copies columns to the panel.
  Scope ToPanel(const Panel& panel, const Place& at);
  // The elements that are copied to a panel; those that are read, in copies or in place, for
  // columns without a panel; and the one that is read for an operand.
  std::vector<Access> ReadForPanel(const Place& at);
  std::vector<Access> ReadOfColumns(const Place& at);
  Access ReadOf(const Contraction::Operand& operand, const Place& at);

  // The value that is summed at that place. `panel`: null unless columns are in one.
  ValueId ValueAt(const Place& at, Columns columns, const Panel* panel);

  // Of PackedLayout, whose comments hold here, too.
  void Locate(VarReplacement& replace, IndexId row, IndexId vector, IndexId lane) {
    layout_.Locate(replace, row, vector, lane);
  }
  IndexId ColumnAt(IndexId vector, IndexId lane) { return layout_.ColumnAt(vector, lane); }
  IndexId LengthOfHull(size_t sum) { return layout_.LengthOfHull(sum); }

 private:
  bool IsRow(const Contraction::Operand& operand) const;
  std::vector<size_t> SumsOf(const Access& access) const;
  bool FitsItsTensor(const PackedOperand& packed) const;
  bool IsInPlace(const PackedOperand& packed);
  Access OperandAt(const Contraction::Operand& operand, const Place& at);
  std::vector<PackedOperand>::const_iterator FindPacked(ValueId read) const;
  void AddPacked(const Contraction::Operand& operand, bool in_columns);
  bool FitsPanels(const PackedOperand& packed) const;
  absl::flat_hash_set<int64_t> LoopsAround() const;
  IndexList PlaceInPanel(const Panel& panel, const Place& at);

  Program& program_;
  IndexPool& pool_;
  Ranges& ranges_;
  const Contraction& nest_;
  const Options options_;
  PackedLayout layout_;
  OperandCopies copies_;
  std::vector<PackedOperand> packed_;
};

}  // namespace nestor::loop

#endif  // NESTOR_JIT_SCHEDULE_CONTRACTION_PACKING_H_
