// Where the elements of a contraction's operands lie in their copies.
#ifndef NESTOR_JIT_SCHEDULE_PACKED_LAYOUT_H_
#define NESTOR_JIT_SCHEDULE_PACKED_LAYOUT_H_

#include <cstdint>
#include <vector>

#include "jit/schedule/contraction.h"
#include "loop_ir/program.h"
#include "loop_ir/ranges.h"
#include "loop_ir/rewrite.h"

namespace nestor::loop {

// An operand that is copied.
struct PackedOperand {
  Contraction::Operand operand;
  bool in_columns;
  std::vector<size_t> sums;  // that it depends on
  TensorId tensor;
  bool in_panels = false;  // `tensor` has the columns beside whole tiles
};

// A place in a tile: a row, a vector of columns and a lane in it, and steps of the sums counted
// from the begin of their hulls. An invalid step: any.
struct TilePlace {
  IndexId row, vector, lane;
  std::vector<IndexId> sums;
};

// Copies have the axes [vector, step of each sum, lane] for columns, [row, step of each sum] for
// rows.
class PackedLayout {
 public:
  // REQUIRES: the arguments outlive this; `ranges` is at the place of the nest.
  PackedLayout(Program& program, Ranges& ranges, const Contraction& nest, int64_t lanes)
      : program_(program), pool_(program.pool), ranges_(ranges), nest_(nest), lanes_(lanes) {}

  // Finds how many rows and columns there are. All below may be called after this only, except for
  // LengthOfHull.
  void Measure();
  // The first `whole` vectors of columns are those of whole tiles.
  void SetWholeTiles(IndexId whole) { whole_ = whole; }

  int64_t lanes() const { return lanes_; }
  IndexId rows() const { return rows_; }
  IndexId columns() const { return columns_; }  // of the hull
  IndexId whole() const { return whole_; }
  IndexId Vectors() const;
  // The length of a loop's hull, whatever its bounds are in an iteration of the batch loops.
  IndexId LengthOfHull(const Loop& loop, const Hull& hull) const;
  IndexId LengthOfHull(size_t sum) const {
    return LengthOfHull(*nest_.sums[sum], nest_.hulls[sum]);
  }

  // The shape of the copy, of all columns or, in panels, of those beside whole tiles.
  Shape ShapeOf(const PackedOperand& packed) const;
  // The element of the copy at that place.
  IndexList PlaceIn(const PackedOperand& packed, const TilePlace& at) const;
  // `value` of the nest at that place.
  ValueId Moved(ValueId value, const TilePlace& at) const;
  // Sets the nest's indices to a row, and to a lane of a vector of columns.
  void Locate(VarReplacement& replace, IndexId row, IndexId vector, IndexId lane) const;
  IndexId ColumnAt(IndexId vector, IndexId lane) const;

  // Whether all lanes of the last vector can be read from the operand, though they are no columns.
  bool ReadsBeyond(const PackedOperand& packed) const;

 private:
  bool ReadsBeyond(const Access& access) const;

  Program& program_;
  IndexPool& pool_;
  Ranges& ranges_;
  const Contraction& nest_;
  const int64_t lanes_;
  IndexId rows_, columns_;  // how many
  IndexId whole_;           // vectors of columns in whole tiles
};

}  // namespace nestor::loop

#endif  // NESTOR_JIT_SCHEDULE_PACKED_LAYOUT_H_
