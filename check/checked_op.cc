// An op that is given as text or by name may have type variables, so it is instantiated when
// types are known.
#include "check/checked_op.h"

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "macro_ops/library.h"
#include "uops/invariant.h"
#include "uops/message.h"

namespace nestor {

absl::StatusOr<Module> CheckedOp::Parsed() const { return Module::Parse(text_, &MacroLibrary()); }

// A name of the library wins; text of the notation is never a mere name.
std::string CheckedOp::MacroName() const { return !op_ && MacroLibrary().Has(text_) ? text_ : ""; }

absl::StatusOr<Op> CheckedOp::Instantiate(const ArgumentSpecs& specs) const {
  if (op_) return *op_;
  if (!MacroName().empty()) return MacroLibrary().Instantiate(text_, specs);
  // Without a brace it cannot be notation, so it was meant as a name: the message suggests a near
  // one.
  if (!absl::StrContains(text_, "{")) {
    return absl::InvalidArgumentError(absl::StrCat("there is no macro op '", text_, "'",
                                                   DidYouMean(text_, MacroLibrary().OpNames())));
  }
  NESTOR_ASSIGN_OR_RETURN(const Module module, Parsed());
  return module.Instantiate("", specs);
}

// op f(x: T[N], s: f32[N]) -> (y) {..} has {x}.
absl::StatusOr<std::vector<std::string>> CheckedOp::TypeVariableArguments() const {
  std::vector<std::string> names;
  if (op_) return names;
  const auto collect = [&](const Module& module, const std::string& name) {
    for (const ast::Argument& arg : module.Syntax(name).args) {
      if (!TypeByName(arg.type.text)) names.push_back(arg.name);
    }
    return names;
  };
  if (!MacroName().empty()) return collect(MacroLibrary(), text_);
  NESTOR_ASSIGN_OR_RETURN(const Module module, Parsed());
  return collect(module, module.OpNames().back());
}

}  // namespace nestor
