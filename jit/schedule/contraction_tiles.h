// Matrix products, convolutions and their like go through register tiles, with operands
// packed beside each other and loops blocked for the caches.
#ifndef NESTOR_JIT_SCHEDULE_CONTRACTION_TILES_H_
#define NESTOR_JIT_SCHEDULE_CONTRACTION_TILES_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "jit/target/isa.h"
#include "loop_ir/program.h"

namespace nestor::loop {

// With fewer rows than that, a packed copy of columns that lie well where they are does not pay.
constexpr int64_t kLeastRows = 4;

struct ContractionTileOptions {
  jit::Isa isa = jit::kLeastIsa;
  // Rows, and vectors of columns, of the register tile; there are fewer rows where registers do not
  // suffice. 0: as many as there are registers for.
  int64_t rows = 0, vectors = 0;
  // The size of a block: steps of all sums together (at least one of the outermost), tiles one
  // below the other, tiles beside each other. A block of columns stays in the second cache while
  // the rows of a tile stay in the first.
  int64_t sum_block = 384;
  int64_t row_block = 16;
  int64_t column_block = 3;
  // Columns of at least this many elements, more than the caches hold, are read in place rather
  // than from a panel even where rows make several tiles.
  int64_t many_elements = int64_t{1} << 21;
  // Whether columns that only one block reads may be copied by its topmost tiles, rather than
  // before the nest.
  bool panels = true;
  // Whether the loop over blocks of columns goes around the one over blocks of rows.
  bool columns_outside = false;
  // Which version of the program is made: see IsVersionFor.
  std::vector<bool> version;
  // By input: whether it is the same in many calls, so that what is computed from it alone is
  // computed once. Empty: none is.
  std::vector<bool> bound;
};

//   for i in [0, M) { for j in [0, N) { acc s: f32 = sum  for k in [0, K) { s += a[i, k] * b[k, j] }  c[i, j] = s } }
//     ->
//   temp packed: f32[N/16.., K, 16]         # columns in vectors, what is left over filled with zeros
//   for v, k, l in packed { packed[v, k, l] = b[k, 16*v + l] }
//   for p in [0, M/8) { for q in [0, N/48) {
//     temp t: f32[8, 3, 16] register
//     for r, v, l in t { t[r, v, l] = 0 }
//     for k in [0, K) { for r, v, l in t { t[r, v, l] = t[r, v, l] + a[8*p + r, k] * packed[3*q + v, k, l] } }
//     for r, v, l in t { c[8*p + r, 48*q + 16*v + l] = t[r, v, l] }
//   } }
//   ...                                     # rows and columns that are left over: smaller tiles
//
// with loops over blocks of rows, columns and sums around. Columns that lie side by side and are
// read by nothing else are packed by the first tile of a block of rows, as it sums. Any nest that
// ContractionOf finds is taken, whatever it computes from its operands, and every sum keeps its
// order. Rows that walk along memory are read where they are; others are packed as well. The nest
// runs as it was where packing costs more than it gains, because rows are few, or where it is known
// to be less than a tile.
//
// The method is that of Goto and van de Geijn, "Anatomy of High-Performance Matrix
// Multiplication" (2008), with one operand in place.
//
// Returns whether it changed anything; if not, the program is untouched. A second run changes
// nothing. REQUIRES: Verify accepts the program; and so it does afterwards.
absl::StatusOr<bool> TileContractions(Program& program, const ContractionTileOptions& options);

// The same for nests with few columns only: at sizes where their sums are long, these run in lanes
// (dot_tiles.h). *Reorders rounding*.
absl::StatusOr<bool> TileFewColumns(Program& program, const ContractionTileOptions& options);

}  // namespace nestor::loop

#endif  // NESTOR_JIT_SCHEDULE_CONTRACTION_TILES_H_
