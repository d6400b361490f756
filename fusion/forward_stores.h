// Forwarding: a scope does not read back what it stores.
#ifndef NESTOR_FUSION_FORWARD_STORES_H_
#define NESTOR_FUSION_FORWARD_STORES_H_

#include "absl/status/statusor.h"
#include "loop_ir/program.h"

namespace nestor::loop {

// A load of an element to which the same scope stored a constant or a scalar temporary, both
// unchanged since, becomes that constant or scalar:
//
//   t[k] = h   s += t[k]      becomes      t[k] = h   s += h
//
// so that the store may have no reader left (see dead_stores), and the sum's terms are seen to be
// equal. An accumulator to which nothing is added is the constant that it starts at.
//
// An expression is not forwarded: common_subexpressions finds what is computed twice. An
// accumulator is not forwarded either: where a loop's statements are separated later, the tensor
// passes the value between them.
//
// Returns whether it changed anything; if not, the program is untouched. No result changes in
// any bit. A second run changes nothing. REQUIRES: Verify accepts the program; and so it does
// afterwards.
absl::StatusOr<bool> ForwardStores(Program& program);

}  // namespace nestor::loop

#endif  // NESTOR_FUSION_FORWARD_STORES_H_
