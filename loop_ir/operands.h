// The type rule of scalar ops on values, with messages: the row's operand types, with all operands
// of one type, except for the condition of `where`.
#ifndef NESTOR_LOOP_IR_OPERANDS_H_
#define NESTOR_LOOP_IR_OPERANDS_H_

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "uops/dtype.h"
#include "uops/scalar_op.h"

namespace nestor::loop {

// The type of op(operands); `target` is the type that a cast names. An
// InvalidArgument Status says what does not fit.
absl::StatusOr<DType> TypeOfApply(ScalarOp op, absl::Span<const DType> operands, DType target);

}  // namespace nestor::loop

#endif  // NESTOR_LOOP_IR_OPERANDS_H_
