// Nests that read the same elements again and again: matrix products, convolutions, and
// whatever else reduces over elements that a row and a column share.
#ifndef NESTOR_JIT_SCHEDULE_CONTRACTION_H_
#define NESTOR_JIT_SCHEDULE_CONTRACTION_H_

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/types/optional.h"
#include "loop_ir/program.h"
#include "loop_ir/ranges.h"

namespace nestor::loop {

// The most steps of sums that tiles write out: more make the code longer, and no faster.
inline constexpr int64_t kMostWrittenOut = 12;

// Bounds that depend on symbols alone and contain those of a loop.
struct Hull {
  IndexId begin, end;
};

//   for ..batch.. { for i { for j {
//     acc s = op
//     for k.. { s op= f(x[i, k], w[j, k], ..) }
//     y[i, j] = g(s, ..)
//   } } }
//
// with the loops over i and j in any order among the others. Each load of the sum's value depends
// on i, the row, or on j, the column, or on neither; some loads depend on each.
struct Contraction {
  // A load of the value, and the loops of `batch` up to the last that it depends on. `read` is what
  // is copied: the largest part of the value that reads this element alone, and elements at a fixed
  // distance from it, if it fills a lane and has all uses of the load: a cast to a wider type, say.
  // Else `read` is the load.
  struct Operand {
    ValueId load, read;
    int batch_loops = 0;
    bool is_computed() const { return read != load; }
  };
  std::vector<const Loop*> batch;  // outermost first
  const Loop* row = nullptr;
  const Loop* column = nullptr;   // the one that fills lanes
  std::vector<const Loop*> sums;  // outermost first
  std::vector<Hull> hulls;        // of the sums
  // There is one sum, whose bounds rise or fall with the row: a triangle. Packed column operands
  // are inputs then, or stored whole: more of them is read than is summed.
  bool is_ragged = false;
  const Statement* step = nullptr;  // of the innermost sum
  TensorId accumulator;
  std::vector<Operand> rows, columns;  // loads, each once
  // Those of all these loops that are known to be shorter than others: the length of one is
  // subtracted in another's, as a window's size R is in the number of its places, N - R + 1.
  std::vector<const Loop*> windows;
  const Scope* core = nullptr;  // what the innermost loop of the band holds
  // A loop taken out of `batch` so that its iterations lie beside each other in a tile: then all
  // columns fit one vector, and each iteration has a vector. Null: none.
  const Loop* jammed = nullptr;
};

// The contraction that begins with `loop`. All loops but those over k carry no dependence and run
// in steps of one; bounds of rows and columns are expressions of symbols. Bounds of sums may move
// with batch loops, and the ends of all with loops around the nest, where HullOf finds a hull;
// those of a single sum may move with the row. The sum's operands are not changed in the nest. The
// result points into `loop`. `stored_whole`: temporaries that are known to be (stored_whole.h).
absl::optional<Contraction> ContractionOf(Program& program, const Loop& loop,
                                          const absl::flat_hash_set<TensorId>& stored_whole = {});

// The same for a nest of this form whose rows share no operand, so that it is no contraction,
// though masked windows slide along a column: a depthwise convolution. There is no row, all other
// loops are batch loops, and `columns` has the masked loads only.
absl::optional<Contraction> WindowsOf(Program& program, const Loop& loop);

Access AccessOf(const Program& program, const Contraction::Operand& operand);
// The number of batch loops up to the last that the access depends on.
int BatchLoopsOf(const Program& program, const Contraction& nest, const Access& access);
// Accesses to all elements that are read for the operand, its own first.
std::vector<Access> AccessesOf(const Program& program, const Contraction::Operand& operand);

// The hull of a sum with bounds max(0, R - i) and min(R, N - i) is 0 and R. nullopt where the
// bounds do not have this form.
absl::optional<Hull> HullOf(const Program& program, const Loop& loop);

// The sums' loops, without bodies, over all steps that their hulls hold.
std::vector<Loop> HullLoopsOf(const Contraction& nest);

// The bounds of a ragged sum at one row; and those within which it sums at all rows from number
// `first` to `last`, counted from the row loop's begin.
Hull BoundsAt(Program& program, const Contraction& nest, IndexId row);
Hull CommonBounds(Program& program, const Contraction& nest, IndexId first, IndexId last);
// The parts of `bounds` before and after `common`, which lies within them or is empty; without the
// parts that are known to be empty.
std::vector<Hull> RaggedParts(Program& program, const Contraction& nest, const Hull& common,
                              const Hull& bounds);

// The columns that a copy of the operand holds: those of their hull, or fewer.
Hull CopiedColumns(const Program& program, const Contraction& nest,
                   const Contraction::Operand& operand);
// Whether the operand, and what else is read for it without a mask, is in range at all rows, all
// columns that are copied, and all steps of the sums, or of their hulls, that it moves with, even
// where other loops have no iteration. REQUIRES: `ranges` is at the place of the nest.
enum class CheckedSteps { kOfSums, kOfHulls };
bool IsInRange(Program& program, Ranges& ranges, const Contraction& nest,
               const Contraction::Operand& operand, CheckedSteps steps = CheckedSteps::kOfHulls);

// Assumes (Program::assumptions) that a copy of this shape, which the program as it was
// written does without, has fewer than 2^24 elements: where it has more, the program runs as
// it was written.
void AssumeFewElements(Program& program, const Shape& shape);

}  // namespace nestor::loop

#endif  // NESTOR_JIT_SCHEDULE_CONTRACTION_H_
