// Contraction: a temporary loses the dimensions that the loops around make
// redundant.
#ifndef NESTOR_FUSION_CONTRACT_H_
#define NESTOR_FUSION_CONTRACT_H_

#include "absl/status/statusor.h"
#include "loop_ir/program.h"

namespace nestor::loop {

// Where every access of a temporary or accumulator lies in one loop and indexes the same axis with
// that loop's index, each iteration has a slice of its own: the axis is removed, and the
// declaration moves into the loop's body. This is repeated inwards.
//
//   temp t: f32[N]                          for i in [0, N) {
//   for i in [0, N) { t[i] = x[i]    ==>      temp t: f32
//                     y[i] = t[i] }           t = x[i]   y[i] = t }
//
// An axis of one element is removed as well, where all accesses have subscript 0.
//
// Returns whether it changed anything; if not, the program is untouched. A second
// run changes nothing. REQUIRES: Verify accepts the program; and so it does
// afterwards.
absl::StatusOr<bool> ContractTemporaries(Program& program);

}  // namespace nestor::loop

#endif  // NESTOR_FUSION_CONTRACT_H_
