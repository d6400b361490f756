// Writes an op in the notation. The text parses back to the same op: names,
// types, shapes, and graph (SameOp), gradients included. It shows what the graph computes, not what
// the author wrote: calls are inlined, packs are their dimensions, types are known.
//
//   op f(x: T[..N]) -> (y) { y[..n] = 2 * x[..n] }, for x: f32[_, _]
//     ->
//   op f(x: f32[N0, N1]) -> (y) {
//     y[i, j] = 2.0 * x[i, j]
//   }
//
// Thread-safe.
#ifndef NESTOR_UOPS_NOTATION_PRINT_H_
#define NESTOR_UOPS_NOTATION_PRINT_H_

#include "uops/cpp20.h"  // first, so that an older standard is named before all else

#include <string>

#include "uops/op.h"

namespace nestor {

struct PrintOptions {
  // Writes a comment, as in "# K == N", before the statements for each two sizes that must be equal
  // when the op runs, unless their names in the arguments show it.
  bool equalities = false;
};

// The text ends with a newline. Names of tensors between arguments and results are t0, t1, ..
std::string PrintOp(const Op& op, const PrintOptions& options = {});

}  // namespace nestor

#endif  // NESTOR_UOPS_NOTATION_PRINT_H_
