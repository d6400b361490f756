// Looks up names, and makes the messages for those that are not known: each suggests the nearest
// name, of a list in a fixed order, so that the message does not depend on a hash.
#include "uops/notation/environment.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "uops/message.h"
#include "uops/notation/lexer.h"

namespace nestor {

// Three kinds of help: that it is an index elsewhere, what the notation has for it, or a name that
// is near.
absl::Status Environment::UnknownName(const std::string& name, const ast::Position& position,
                                      absl::string_view what) const {
  std::vector<std::string> known(index_names.begin(), index_names.end());
  for (const auto& [tensor, node] : tensors) known.push_back(tensor);
  for (const auto& [dim, id] : dims) known.push_back(dim);
  for (const auto& [param, type] : params) known.push_back(param);
  std::sort(known.begin(), known.end());
  const bool elsewhere = index_names.contains(name);
  const std::string hint = elsewhere ? ": it is an index elsewhere" : ForeignHint(name);
  return ErrorAt(position, absl::StrCat("unknown ", what, " '", name, "'",
                                        hint.empty() ? DidYouMean(name, known) : hint));
}

absl::StatusOr<NodeId> Environment::Tensor(const std::string& name,
                                           const ast::Position& position) const {
  const auto it = tensors.find(name);
  if (it != tensors.end()) return it->second;
  if (shapes.contains(name)) {
    return ErrorAt(position,
                   absl::StrCat("'", name, "' is a shape: only its dimensions can be read"));
  }
  return UnknownName(name, position, "tensor");
}

absl::optional<DType> Environment::FindType(const std::string& name) const {
  if (const auto type = TypeByName(name)) return type;
  const auto it = type_variables.find(name);
  if (it != type_variables.end()) return it->second;
  return absl::nullopt;
}

absl::StatusOr<DType> Environment::Type(const ast::TypeName& name) const {
  if (const auto type = FindType(name.text)) return *type;
  return ErrorAt(name.position, absl::StrCat("unknown type '", name.text, "'"));
}

}  // namespace nestor
