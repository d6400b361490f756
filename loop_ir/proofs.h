// Facts that code takes as proven: which accesses are in range, and which loops run in lanes.
// Passes write them into the program, so that they are proven once, and can be seen.
#ifndef NESTOR_LOOP_IR_PROOFS_H_
#define NESTOR_LOOP_IR_PROOFS_H_

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "loop_ir/program.h"

namespace nestor::loop {

// Marks the axes of each access along which Ranges (ranges.h) does not prove it to be in range
// where its conditions hold; the program is `proven` then.
absl::StatusOr<bool> MarkChecked(Program& program);

// Gives `lanes_of` lanes to the loops marked `vector` that can run in lanes (lanes.h); to the
// outer one if they are nested. In a proven program the marks say what is in range: nothing is
// proven twice.
absl::StatusOr<bool> MarkLanes(Program& program, absl::FunctionRef<int(const Loop&)> lanes_of);

// Both return whether they changed anything; a second run changes nothing. REQUIRES: Verify
// accepts the program; and so it does afterwards.

// InvalidArgument, naming the first access of a proven program that is neither proven nor marked,
// or the first loop that has lanes and cannot run in them. REQUIRES: Verify accepts the rest.
absl::Status VerifyProofs(const Program& program);

}  // namespace nestor::loop

#endif  // NESTOR_LOOP_IR_PROOFS_H_
