// Products with few columns sum in lanes: a vector of the sum's steps at a time, for some rows
// and all columns.
#ifndef NESTOR_JIT_SCHEDULE_DOT_TILES_H_
#define NESTOR_JIT_SCHEDULE_DOT_TILES_H_

#include <cstdint>
#include <vector>

#include "absl/types/optional.h"
#include "jit/schedule/contraction.h"
#include "jit/target/isa.h"
#include "loop_ir/program.h"
#include "loop_ir/ranges.h"

namespace nestor::loop {

//   for i in [0, M) { for j in [0, 4) { acc s: f32 = sum  for k in [0, K) { s += a[i, k] * b[k, j] }  c[i, j] = s } }
//     ->
//   temp columns: f32[K/16.., 4, 16]    # vectors of steps, those of all columns beside each other
//   for k, v, l in columns { columns[k, v, l] = b[16*k + l, v] }
//   for p in [0, M/6) {
//     temp t: f32[6, 4, 16] register
//     for r, v, l in t { t[r, v, l] = 0 }
//     for k in [0, K/16) { for r, v, l in t { t[r, v, l] = t[r, v, l] + a[6*p + r, 16*k + l] * columns[k, v, l] } }
//     for l in [0, K%16) { .. }
//     for r, v in t { c[6*p + r, v] = sum of t[r, v, ..] }
//   }
//   for p in [6*(M/6), M) { .. }      # row by row
//
// A vector of columns would have most of its lanes empty. Reorders rounding.

// `nest`, perhaps turned around, where it is known to have at least two columns, and at most three
// quarters of the lanes, and elements of rows lie along its only sum; nullopt for others. REQUIRES:
// `ranges` is at the place of the nest.
absl::optional<Contraction> WithFewColumns(Program& program, Ranges& ranges,
                                           const Contraction& nest, jit::Isa isa,
                                           const std::vector<bool>& bound);

// 1 at sizes where the sum is so long that these tiles are faster, else 0.
IndexId IsLongSum(Program& program, Ranges& ranges, const Contraction& nest, jit::Isa isa);

// The scope that replaces the nest.
Scope DotTiles(Program& program, Ranges& ranges, const Contraction& nest, jit::Isa isa);

}  // namespace nestor::loop

#endif  // NESTOR_JIT_SCHEDULE_DOT_TILES_H_
