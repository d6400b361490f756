// The ways to name the op that a kernel is checked against.
#ifndef NESTOR_CHECK_CHECKED_OP_H_
#define NESTOR_CHECK_CHECKED_OP_H_

#include "uops/cpp20.h"  // first, so that an older standard is named before all else

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "autodiff/gradient.h"
#include "uops/notation/module.h"
#include "uops/op.h"

namespace nestor {

// The op that a kernel is for: a macro op's name, an op's text, an Op, a gradient program.
class CheckedOp {
 public:
  CheckedOp(const char* name_or_text) : text_(name_or_text) {}
  CheckedOp(absl::string_view name_or_text) : text_(name_or_text) {}
  CheckedOp(std::string name_or_text) : text_(std::move(name_or_text)) {}
  CheckedOp(Op op) : op_(std::move(op)) {}
  CheckedOp(const GradientResult& gradient) : op_(gradient.op) {}

  // The op for arguments of these specs; if it was given as an Op, the specs must be its own.
  absl::StatusOr<Op> Instantiate(const ArgumentSpecs& specs) const;
  // The arguments that take any type; none if it was given as an Op.
  absl::StatusOr<std::vector<std::string>> TypeVariableArguments() const;
  // The name in the macro library, or "".
  std::string MacroName() const;

 private:
  absl::StatusOr<Module> Parsed() const;

  std::string text_;
  absl::optional<Op> op_;
};

}  // namespace nestor

#endif  // NESTOR_CHECK_CHECKED_OP_H_
