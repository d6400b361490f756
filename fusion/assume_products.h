// What passes take for granted of index arithmetic, made a part of the program.
#ifndef NESTOR_FUSION_ASSUME_PRODUCTS_H_
#define NESTOR_FUSION_ASSUME_PRODUCTS_H_

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "loop_ir/program.h"

namespace nestor::loop {

// Adds to Program::assumptions the numbers in places and conditions that are neither
// affine nor hold loads, such as i*j and i/j: where one overflows, its access is out of
// bounds, but a pass that puts a number for i makes an affine expression of it and decides
// it in exact arithmetic. Whoever runs the program then proves for its sizes that none
// overflows (ProveNoOverflow). Returns whether it changed anything; if not, the program is
// untouched.
//
// REQUIRES: Verify accepts the program; and so it does afterwards. Loops that begin at 0
// and end at a number of the program, as lowering makes them: of others nothing is added.
absl::StatusOr<bool> AssumeProducts(Program& program);

// Adds numbers that stand inside the loops `around` to the assumptions: for a pass that puts
// an expression for what was loaded, and so makes exact what was checked. False, and nothing
// is added, where one holds the index of another loop, or of one that is not as lowering makes
// them. REQUIRES: they hold no loads.
bool AssumeNumbers(Program& program, absl::Span<const IndexId> numbers,
                   absl::Span<const Loop* const> around);

}  // namespace nestor::loop

#endif  // NESTOR_FUSION_ASSUME_PRODUCTS_H_
