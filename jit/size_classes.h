// Which sizes of a call its code is made for: the small ones that a program computes with.
//
// The window of a convolution, its stride and its padding occur in index arithmetic. As symbols
// they hide from passes which accesses are in range and which elements lie side by side; as numbers
// they fold away. So do the counts of images, channels or kernels beside windows, where they are
// few: they decide which loop fills lanes, and which fills a tile. So does the extent of a last
// axis of a single element: then the elements of the axis before it lie side by side. So does that
// of a first axis of one, such as a batch: then threads share the axis after it. A size that is
// only the length of a loop gains next to nothing by being a number, and large sizes are many: both
// stay symbols. But where all loops inside of a long one are short, as in products of many small
// matrices, those lengths are worth code of their own; and so are few rows or columns of a product
// with long sums, which then run in lanes.
#ifndef NESTOR_JIT_SIZE_CLASSES_H_
#define NESTOR_JIT_SIZE_CLASSES_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "loop_ir/intervals.h"
#include "loop_ir/program.h"

namespace nestor::jit {

struct SizeClassOptions {
  // Sizes up to it, and $params from minus it up to it, are constants of a variant.
  int64_t largest_constant = 16;
  // Rows of fewer elements are short: the unused part of their last vector matters.
  int64_t short_row = 256;
  // A call has a variant if it computes so many scalar operations for each statement of the unfused
  // program: a long program takes longer to compile. If its index arithmetic has small sizes, a
  // sixteenth is enough: without a variant, windows of such a size run in scalars.
  int64_t least_work = int64_t{1} << 19;
  // Variants that are kept, besides the code for all sizes; 0: none are made.
  int variants = 16;
};

// The constants of a class by name, in the order of names. Empty for the code for all sizes.
using SizeClass = std::vector<std::pair<std::string, int64_t>>;

// Symbols of a program, sorted.
struct ProgramSymbols {
  // The dimensions and integer $params that index arithmetic holds: those in a place, a
  // condition or a value, unless it is a loop's index alone; and those in the end of a loop whose
  // index occurs there: also those of an image whose windows fit H + 2 - R times.
  std::vector<std::string> computed_with;
  // The symbols in the ends of all loops of nests in which windows move along an axis.
  std::vector<std::string> beside_windows;
  // The extents of the first and the last axes of arguments that have more than one axis.
  std::vector<std::string> end_axes;
  // The ends of the loops of each block that sums, outermost first. None for a block that compares:
  // as numbers, its short rows would be unrolled instead of run in lanes.
  std::vector<std::vector<IndexId>> sums;
};
// The symbols of an unfused program.
ProgramSymbols SymbolsOf(const loop::Program& program);

// The number of scalar operations at these sizes; a statement without any counts as one. Loops
// whose bounds contain another loop's index, which lowering never makes, count as one iteration.
double WorkAt(const loop::Program& program, loop::SymbolValue symbol);

// The bytes of the inputs whose elements are read, and of the outputs, where none are strided.
// REQUIRES: the sizes are legal.
double BytesAt(const loop::Program& program, loop::SymbolValue symbol);

// The classes of one unfused program. Immutable.
class SizeClasses {
 public:
  // `program` must outlive this, and not change.
  SizeClasses(const loop::Program& program, const SizeClassOptions& options);

  // Depends on the sizes alone, never on earlier calls. The lengths of the innermost loops of a sum
  // are constants if three or more are small: those of the rows, the columns and the summed axis;
  // the length of rows, or of columns, is one if only they are few (2 to 12) and the sum is long.
  // The symbols beside windows are constants only if the program computes with a small size, or an
  // argument's first or last axis is 1.
  SizeClass Of(loop::SymbolValue symbol) const;
  // Whether the last axis of some argument with more than one axis is short, or, if the program sums
  // and does not compare, any axis but the first.
  bool HasShortRows(loop::SymbolValue symbol) const;
  bool ComputesMuch(loop::SymbolValue symbol) const { return Computes(least_work_, symbol); }
  // Whether many calls gain more by the loops of a version than compiling them costs.
  bool PaysForVersion(loop::SymbolValue symbol) const;

 private:
  std::vector<std::string> SymbolsOfShortSums(loop::SymbolValue symbol) const;
  bool Computes(double work, loop::SymbolValue symbol) const {
    return WorkAt(program_, symbol) >= work;
  }

  const loop::Program& program_;
  const SizeClassOptions options_;
  const ProgramSymbols symbols_;
  double least_work_;
};

// The program with the constants in the place of their symbols.
loop::Program WithConstants(loop::Program program, const SizeClass& constants);

}  // namespace nestor::jit

#endif  // NESTOR_JIT_SIZE_CLASSES_H_
