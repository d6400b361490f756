// Makes what passes take for granted about index arithmetic a part of the program.
#ifndef NESTOR_FUSION_ASSUME_PRODUCTS_H_
#define NESTOR_FUSION_ASSUME_PRODUCTS_H_

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "loop_ir/program.h"

namespace nestor::loop {

// Adds to Program::assumptions the numbers in places and conditions that are neither affine nor
// hold loads, such as i*j and i/j: where one overflows, its access is out of bounds, but a pass
// that replaces i by a number makes it an affine expression and decides it in exact arithmetic.
// Whoever runs the program then proves for its sizes that none overflows (ProveNoOverflow). Returns
// whether it changed anything; if not, the program is untouched.
//
// REQUIRES: Verify accepts the program; and so it does afterwards. Only loops as lowering makes
// them, which begin at 0 and end at a number of the program, are looked at: nothing is added
// for others.
absl::StatusOr<bool> AssumeProducts(Program& program);

// Adds numbers that occur inside the loops `around` to the assumptions: for a pass that replaces a
// load by an expression, and so makes exact what was checked. False, and nothing is added, where a
// number holds the index of another loop, or of a loop that is not as lowering makes them.
// REQUIRES: they hold no loads.
bool AssumeNumbers(Program& program, absl::Span<const IndexId> numbers,
                   absl::Span<const Loop* const> around);

}  // namespace nestor::loop

#endif  // NESTOR_FUSION_ASSUME_PRODUCTS_H_
