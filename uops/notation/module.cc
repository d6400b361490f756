// Look-up of ops: a file's own, each after its definition, hide the library's. Since an op calls
// earlier ones only, there is no recursion, and inlining ends.
//
// A call makes its callee for the types and ranks of the arguments, as templates are made; within
// one instantiation each combination is made once. Without this, ops that call the one before twice
// would take time exponential in their number.
#include "uops/notation/module.h"

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "uops/invariant.h"
#include "uops/notation/elaborate.h"
#include "uops/notation/lexer.h"
#include "uops/notation/parser.h"

namespace nestor {
namespace {

const ast::Op* Find(const std::vector<ast::Op>& ops, absl::string_view name) {
  for (const ast::Op& op : ops) {
    if (op.name == name) return &op;
  }
  return nullptr;
}

// y = exp(x) must not mean two things.
absl::Status CheckNames(const std::vector<ast::Op>& ops) {
  absl::flat_hash_set<absl::string_view> names;
  for (const ast::Op& op : ops) {
    if (ScalarOpByName(op.name)) {
      return ErrorAt(op.name_position,
                     absl::StrCat("an op may not be named like the scalar op '", op.name, "'"));
    }
    if (!names.insert(op.name).second) {
      return ErrorAt(op.name_position, absl::StrCat("the op '", op.name, "' is already defined"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Module> Module::Parse(absl::string_view text, const Module* library) {
  Module module;
  module.ops_ = std::make_shared<std::vector<ast::Op>>();
  module.library_ = library;
  NESTOR_RETURN_IF_ERROR(module.Append(text));
  return module;
}

// Names are checked among all ops; where they clash, the new ops leave again.
absl::Status Module::Append(absl::string_view text) {
  NESTOR_ASSIGN_OR_RETURN(ast::File file, ParseFile(text));
  const auto before = static_cast<std::ptrdiff_t>(ops_->size());
  for (ast::Op& op : file.ops) ops_->push_back(std::move(op));
  absl::Status names = CheckNames(*ops_);
  if (!names.ok()) ops_->erase(ops_->begin() + before, ops_->end());
  return names;
}

std::vector<std::string> Module::OpNames() const {
  std::vector<std::string> names;
  for (const ast::Op& op : *ops_) names.push_back(op.name);
  return names;
}

bool Module::Has(absl::string_view name) const { return Find(*ops_, name) != nullptr; }

const ast::Op& Module::Syntax(absl::string_view name) const { return *Find(*ops_, name); }

// Ops of a file lie in one vector in the order of the text, so their addresses tell which is
// earlier.
absl::StatusOr<const ast::Op*> Module::FindCallee(absl::string_view name, const ast::Op& caller,
                                                  const ast::Position& position,
                                                  const Module** home) const {
  *home = this;
  const ast::Op* own = Find(*ops_, name);
  if (own == &caller)
    return ErrorAt(position,
                   absl::StrCat("the op '", name, "' calls itself; ops are not recursive"));
  if (own != nullptr) {
    if (own < &caller) return own;
    return ErrorAt(position, absl::StrCat("the op '", name, "' is defined after its use"));
  }
  if (library_ != nullptr) {
    if (const ast::Op* found = Find(*library_->ops_, name)) {
      *home = library_;
      return found;
    }
  }
  std::vector<std::string> known = OpNames();
  for (const ScalarOpRow& row : AllScalarOps()) known.push_back(row.name);
  if (library_ != nullptr) {
    for (const std::string& op : library_->OpNames()) known.push_back(op);
  }
  return ErrorAt(position, absl::StrCat("unknown op '", name, "'", DidYouMean(name, known)));
}

absl::StatusOr<Op> Module::Instantiate(absl::string_view name, const ArgumentSpecs& specs) const {
  Calls calls;
  return Instantiate(name, specs, calls);
}

// `calls`: what the whole instantiation has made so far, and how deep it is.
absl::StatusOr<Op> Module::Instantiate(absl::string_view name, const ArgumentSpecs& specs,
                                       Calls& calls) const {
  const ast::Op* syntax = nullptr;
  if (!name.empty()) syntax = Find(*ops_, name);
  else if (!ops_->empty()) syntax = &ops_->back();
  if (syntax == nullptr) {
    return absl::NotFoundError(
        absl::StrCat("no op named '", name, "'", DidYouMean(name, OpNames())));
  }
  return Elaborate(*syntax, specs,
                   [&](absl::string_view callee, const ast::Position& position,
                       absl::Span<const ArgumentSpec> args) {
                     return MakeCallee(callee, *syntax, position, args, calls);
                   });
}

// The key says what the callee depends on: where it is from, its name, and each argument's type and
// rank.
absl::StatusOr<Op> Module::MakeCallee(absl::string_view name, const ast::Op& caller,
                                      const ast::Position& position,
                                      absl::Span<const ArgumentSpec> args, Calls& calls) const {
  const Module* home;
  NESTOR_ASSIGN_OR_RETURN(const ast::Op* found, FindCallee(name, caller, position, &home));
  if (found->args.size() != args.size()) {
    return ErrorAt(position, absl::StrCat("op ", name, " takes ", found->args.size(),
                                          " tensors, is given ", args.size()));
  }
  ArgumentSpecs specs;
  // A file may define an op by the name of one of the library; the two are kept apart.
  std::string key = absl::StrCat(home == this ? "" : "library ", name);
  for (size_t i = 0; i < args.size(); ++i) {
    specs[found->args[i].name] = args[i];
    absl::StrAppend(&key, " ", Name(*args[i].type), "/", *args[i].rank);
  }
  const auto known = calls.made.find(key);
  if (known != calls.made.end()) return known->second;
  constexpr int kMaxCallDepth = 200;
  if (calls.depth >= kMaxCallDepth) {
    return ErrorAt(position,
                   absl::StrCat("calls nested too deeply (more than ", kMaxCallDepth, " levels)"));
  }
  ++calls.depth;
  absl::StatusOr<Op> op = home->Instantiate(name, specs, calls);
  --calls.depth;
  // "5:7: in op f: 2:10: ..": the place of the call, then that in the callee
  if (!op.ok()) return ErrorAt(position, absl::StrCat("in op ", name, ": ", op.status().message()));
  return calls.made.emplace(std::move(key), *std::move(op)).first->second;
}

absl::Status Module::Check() const {
  for (const ast::Op& op : *ops_) {
    NESTOR_RETURN_IF_ERROR(Instantiate(op.name, {}).status());
  }
  return absl::OkStatus();
}

absl::StatusOr<Op> ParseOp(absl::string_view text) {
  NESTOR_ASSIGN_OR_RETURN(const Module module, Module::Parse(text));
  return module.Instantiate("", {});
}

}  // namespace nestor
