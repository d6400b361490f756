// The proof that affine index arithmetic does not overflow, for known sizes:
// intervals of every affine expression of a program, from the loops around it.
#ifndef NESTOR_LOOP_IR_INTERVALS_H_
#define NESTOR_LOOP_IR_INTERVALS_H_

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/optional.h"
#include "loop_ir/program.h"

namespace nestor::loop {

// InvalidArgument, naming the expression, where some affine expression of
// `program` might leave int64 in a loop that runs at least once, or where a bound
// or extent has no value. `symbol` gives the value of a dimension or integer
// $param by name. Gathered values, products of indices and divisions by indices
// are not affine: they may overflow, and put an access out of bounds.
absl::Status ProveNoOverflow(const Program& program,
                             absl::FunctionRef<absl::optional<int64_t>(const std::string&)> symbol);

}  // namespace nestor::loop

#endif  // NESTOR_LOOP_IR_INTERVALS_H_
