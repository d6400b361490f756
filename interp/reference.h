// The interpreter's `reference` mode: runs a loop_ir program and gives, for each
// element of its results, an enclosure of every value that an allowed evaluation
// may have there (SEMANTICS 5, `fast`): sums and products in any order, contracted
// into FMAs, in the accumulator's type or a wider one; quotients as products with
// reciprocals, unless a discrete step sees them (loop_ir/discrete_steps.h); each scalar op
// within its stated error. A kernel is right where its
// results lie inside; docs/bounds.md says what is proven and how tight it is.
#ifndef NESTOR_INTERP_REFERENCE_H_
#define NESTOR_INTERP_REFERENCE_H_

#include "uops/cpp20.h"  // first, so that an older standard is named before all else

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "interp/enclosure.h"
#include "interp/interpreter.h"
#include "loop_ir/program.h"
#include "tensor/binding.h"
#include "tensor/tensor.h"

namespace nestor {

// Elements in row-major order.
struct ReferenceTensor {
  DType type = DType::kF32;
  Dims shape;
  std::vector<Enclosure> elements;
};

// The types in which an allowed evaluation computes.
enum class Precision {
  kAsWritten,  // in the program's own
  // Each value in its own type or a wider one: f32 for 16-bit floats, f64 for all, and literals
  // as they were before their types rounded them. Values that an op casts to a narrower type are
  // rounded to that.
  kAsWrittenOrWider,
};

// Runs `program` on inputs that are taken as exact; the results are in the order of
// its signature. Errors as Interpret; besides, InvalidArgument "... undecided ..."
// where an element to write, a condition or an index depends on a value that its enclosure does not
// decide (a few candidates to load from are allowed). options.max_bytes counts the enclosures;
// loops run in order, options.shuffle_seed is not used. Thread-safe.
absl::StatusOr<std::vector<ReferenceTensor>> InterpretReference(
    const loop::Program& program, const RunInputs& inputs, const InterpreterOptions& options = {},
    Precision precision = Precision::kAsWritten);

// OK where every element of `got` lies in its enclosure. Else InvalidArgument that names the worst
// one: its index, value and enclosure, and how many half-widths of the enclosure it lies from the
// middle; for inf or NaN, whether it is possible there, and whether because another order may
// overflow. InvalidArgument, too, where type or shape differ.
absl::Status CheckEnclosed(const ReferenceTensor& want, const TensorView& got);

}  // namespace nestor

#endif  // NESTOR_INTERP_REFERENCE_H_
