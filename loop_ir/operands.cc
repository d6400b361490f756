// The type rule of scalar ops: the table's row gives the number of operands, their types, and the
// type of the result; this adds the rule that operands have one type, and the messages where they
// do not.
#include "loop_ir/operands.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace nestor::loop {

// The number of operands first, then the condition, then that all others agree, then that the row
// takes their type: the message names the first that fails.
absl::StatusOr<DType> TypeOfApply(ScalarOp op, absl::Span<const DType> operands, DType target) {
  const ScalarOpRow& row = Row(op);
  if (static_cast<int>(operands.size()) != row.arity) {
    return absl::InvalidArgumentError(absl::StrCat("'", row.name, "' takes ", row.arity,
                                                   " operands, is given ", operands.size()));
  }
  const bool chooses = row.result == ResultType::kChoice;
  if (chooses && operands[0] != DType::kBool) {
    return absl::InvalidArgumentError(
        absl::StrCat("the condition of '", row.name, "' is bool, is given ", Name(operands[0])));
  }
  for (DType type : operands.subspan(chooses ? 1 : 0)) {
    if (type == operands.back()) continue;
    return absl::InvalidArgumentError(absl::StrCat("types ", Name(type), " and ",
                                                   Name(operands.back()), " do not mix in '",
                                                   row.name, "': cast one"));
  }
  if (const auto type = ResultTypeOf(op, operands.back(), target)) return *type;
  return absl::InvalidArgumentError(absl::StrCat("'", row.name, "' takes ", Describe(row.operands),
                                                 ", is given ", Name(operands.back())));
}

}  // namespace nestor::loop
