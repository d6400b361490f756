// Operands of contractions that read only every second column or row, say, are copied first.
#ifndef NESTOR_JIT_SCHEDULE_SAMPLED_COLUMNS_H_
#define NESTOR_JIT_SCHEDULE_SAMPLED_COLUMNS_H_

#include "absl/status/statusor.h"
#include "loop_ir/program.h"

namespace nestor::loop {

//   for o in [0, O) { for i in [0, H) { for j in [0, W) {
//     acc s: f32 = sum  for c in [0, C) { s += w[o, c] * x[c, 2*i, 2*j] }  t[o, i, j] = s
//   } } }
//     ->
//   temp sample: f32[C, H, W]
//   for c in [0, C) { for i in [0, H) { for j in [0, W) { sample[c, i, j] = x[c, 2*i, 2*j] } } }
//   for o { for i { for j { acc s: f32 = sum  for c { s += w[o, c] * sample[c, i, j] }  t[o, i, j] = s } } }
//
// for a nest that ContractionOf finds whose results are rows of temporaries: then all tensors that
// it walks along i and j may have one axis for both (fusion/merge_axes.h), and its columns fill
// vectors. Rows that lie along the sum are copied as well, x[2*i, 2*j, c] for results t[i, j, o],
// unless windows slide over them: a copy would hold elements several times. That the copy is small
// is an assumption of the program (AssumeFewElements).
//
// Returns whether it changed anything; if not, the program is untouched. A second run changes
// nothing. No result changes in any bit. REQUIRES: Verify accepts the program; and so it does
// afterwards.
absl::StatusOr<bool> CopySampledColumns(Program& program);

}  // namespace nestor::loop

#endif  // NESTOR_JIT_SCHEDULE_SAMPLED_COLUMNS_H_
