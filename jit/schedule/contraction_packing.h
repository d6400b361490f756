// The operands of a contraction on their way to register tiles: read where they are, or
// copied in the order in which tiles read them.
#ifndef NESTOR_JIT_SCHEDULE_CONTRACTION_PACKING_H_
#define NESTOR_JIT_SCHEDULE_CONTRACTION_PACKING_H_

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "jit/schedule/contraction.h"
#include "jit/schedule/loop_maker.h"
#include "loop_ir/program.h"
#include "loop_ir/ranges.h"
#include "loop_ir/rewrite.h"

namespace nestor::jit {

class Packing {
 public:
  // REQUIRES: the arguments outlive this; `ranges` is at the place of the nest.
  Packing(loop::Program& program, loop::Ranges& ranges, const Contraction& nest, int64_t lanes);

  // Whether what would be packed may be read for all steps of the sums' hulls, though some of
  // them are not summed, or there is no row at all.
  bool IsInRange();

  // How many there are, which all that follows needs.
  void Measure();

  // Whether no column operand is packed.
  bool ColumnsAreInPlace();

  // Chooses what is packed, and declares its tensors. What a copy may need more memory for
  // than its tensor has becomes an assumption of the program: where it is large, the program
  // runs as it was written.
  void Decide();

  // Declarations and copies of what depends on just the first `depth` batch loops, each in
  // loops of no iteration unless `flag`, if it is given, is 1.
  loop::Scope CopiesBehind(size_t depth, absl::optional<IndexId> flag);

  // Of a tile: a row, a vector of columns and a lane in it, and steps of the sums counted
  // from the begin of their hulls.
  struct Place {
    IndexId row, vector, lane;
    std::vector<IndexId> sums;
  };
  // The value that is summed there.
  loop::ValueId ValueAt(const Place& at);

  // Sets where a row, a vector of columns and a lane in it are in terms of the nest.
  void Locate(loop::VarReplacement& replace, IndexId row, IndexId vector, IndexId lane);
  IndexId ColumnAt(IndexId vector, IndexId lane);

  // Of a sum's hull, whatever the batch loops make of its bounds.
  IndexId LengthOfHull(size_t sum) { return LengthOfHull(*nest_.sums[sum], nest_.hulls[sum]); }

 private:
  struct Packed {
    Contraction::Operand operand;
    bool in_columns;
    std::vector<size_t> sums;  // that it depends on
    loop::TensorId tensor;
  };
  using Steps = std::vector<IndexId>;  // by sum; invalid: any
  using OverSteps = absl::FunctionRef<loop::Scope(const Steps& steps)>;

  IndexId LengthOfHull(const loop::Loop& loop, const Hull& hull);
  bool IsRow(const Contraction::Operand& operand) const;
  bool MovesLastAlone(const loop::Access& access, const loop::Loop& loop) const;
  std::vector<size_t> SumsOf(const loop::Access& access) const;
  bool FitsItsTensor(const Packed& packed) const;
  bool IsInPlace(const Packed& packed);
  void AddPacked(const Contraction::Operand& operand, bool in_columns);
  IndexList PlaceIn(const Packed& packed, const Place& at) const;
  loop::Scope CopyRows(const Packed& packed, absl::optional<IndexId> flag);
  loop::Scope CopyRaggedRows(const Packed& packed, absl::optional<IndexId> flag);
  loop::Scope CopyRaggedBlocks(const Packed& packed, size_t level, IndexId begin, IndexId rows,
                               absl::optional<Hull> copied, absl::optional<IndexId> flag);
  IndexId RoundedUp(IndexId step);
  std::vector<Hull> PartsBeside(const absl::optional<Hull>& taken, const Hull& bounds);
  loop::Scope CopyRectangle(const Packed& packed, IndexId first, IndexId count, const Hull& steps);
  loop::Scope CopyColumns(const Packed& packed, absl::optional<IndexId> flag);
  bool LieAcross(const loop::Access& access) const;
  bool ReadsBeyond(const Packed& packed);
  loop::Scope OverHulls(const Packed& packed, OverSteps body, Steps steps, size_t begin, size_t end);
  loop::ValueId Moved(loop::ValueId value, IndexId row, IndexId vector, IndexId lane, const Steps& steps);
  IndexId Guarded(absl::optional<IndexId> flag, IndexId count);
  IndexId Vectors();

  loop::Program& program_;
  IndexPool& pool_;
  loop::Ranges& ranges_;
  LoopMaker make_;
  const Contraction& nest_;
  const int64_t lanes_;
  IndexId rows_, columns_;   // how many; of columns, those of the hull
  std::vector<Packed> packed_;
};

}  // namespace nestor::jit

#endif  // NESTOR_JIT_SCHEDULE_CONTRACTION_PACKING_H_
