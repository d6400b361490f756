// Temporaries in the type in which they are read.
#ifndef NESTOR_FUSION_NARROW_TEMPORARIES_H_
#define NESTOR_FUSION_NARROW_TEMPORARIES_H_

#include "absl/status/statusor.h"
#include "loop_ir/program.h"

namespace nestor::loop {

// Where every read of a temporary is cast to one type that takes less memory, the cast moves to
// what is stored:
//
//   temp t: i64[N]                              temp t: f32[N]
//   for i in [0, N) { t[i] = n }         ==>    for i in [0, N) { t[i] = f32(n) }
//   for i in [0, N) { y[i] = f32(t[i]) }        for i in [0, N) { y[i] = t[i] }
//
// No result changes in any bit. Temporaries that are read with a fill, or by subscripts, stay.
//
// Returns whether it changed anything; if not, the program is untouched. A second run changes
// nothing. REQUIRES: Verify accepts the program; and so it does afterwards.
absl::StatusOr<bool> NarrowTemporaries(Program& program);

}  // namespace nestor::loop

#endif  // NESTOR_FUSION_NARROW_TEMPORARIES_H_
