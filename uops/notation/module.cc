// Look-up of ops: a file's own, each after its definition, hide the library's. Since an op calls
// earlier ones only, there is no recursion, and inlining ends.
//
// A call makes its callee for the types and ranks of the arguments, as templates are made; within
// one instantiation each combination is made once. Without this, ops that call the one before twice
// would take time exponential in their number.
#include "uops/notation/module.h"

#include <utility>

#include "absl/algorithm/container.h"
#include "absl/base/call_once.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "uops/invariant.h"
#include "uops/notation/elaborate.h"
#include "uops/notation/lexer.h"
#include "uops/notation/parser.h"

namespace nestor {

// Read when it is made, or from `text` when its syntax is first asked for.
struct Module::Entry {
  explicit Entry(ast::Op read)
      : name(read.name), name_position(read.name_position), syntax_(std::move(read)) {}
  explicit Entry(const Definition& definition)
      : name(definition.name), name_position{definition.line, 1}, text_(definition.text) {}

  const ast::Op& syntax() const {
    if (text_) absl::call_once(once_, [this] { Read(); });
    return syntax_;
  }

  const std::string name;
  const ast::Position name_position;

 private:
  void Read() const {
    absl::StatusOr<ast::File> file = ParseFile(*text_, name_position.line);
    NESTOR_CHECK(file.ok(), absl::StrCat("op ", name, ": ", file.status().ToString()));
    NESTOR_CHECK(file->ops.size() == 1 && file->ops[0].name == name, name);
    syntax_ = std::move(file->ops[0]);
  }

  const absl::optional<absl::string_view> text_;
  mutable absl::once_flag once_;
  mutable ast::Op syntax_;
};

namespace {

// y = exp(x) must not mean two things.
template <typename Entries>
absl::Status CheckNames(const Entries& ops) {
  absl::flat_hash_set<absl::string_view> names;
  for (const auto& op : ops) {
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

Module::Module() : ops_(std::make_shared<Entries>()) {}

absl::StatusOr<Module> Module::Parse(absl::string_view text, const Module* library) {
  Module module;
  module.library_ = library;
  NESTOR_RETURN_IF_ERROR(module.Append(text));
  return module;
}

Module Module::OfDefinitions(absl::Span<const Definition> definitions) {
  Module module;
  for (const Definition& definition : definitions) module.ops_->emplace_back(definition);
  const absl::Status names = CheckNames(*module.ops_);
  NESTOR_CHECK(names.ok(), names.ToString());
  return module;
}

// Names are checked among all ops; where they clash, the new ops leave again.
absl::Status Module::Append(absl::string_view text) {
  NESTOR_ASSIGN_OR_RETURN(ast::File file, ParseFile(text));
  for (ast::Op& op : file.ops) ops_->emplace_back(std::move(op));
  absl::Status names = CheckNames(*ops_);
  for (size_t i = 0; !names.ok() && i < file.ops.size(); ++i) ops_->pop_back();
  return names;
}

std::vector<std::string> Module::OpNames() const {
  std::vector<std::string> names;
  for (const Entry& op : *ops_) names.push_back(op.name);
  return names;
}

size_t Module::Find(absl::string_view name) const {
  const auto found = absl::c_find_if(*ops_, [&](const Entry& op) { return op.name == name; });
  return static_cast<size_t>(found - ops_->begin());
}

bool Module::Has(absl::string_view name) const { return Find(name) < ops_->size(); }

const ast::Op& Module::Syntax(absl::string_view name) const { return (*ops_)[Find(name)].syntax(); }

// The module that has the callee: this one, or its library.
absl::StatusOr<const Module*> Module::HomeOf(absl::string_view name, const Caller& caller) const {
  const size_t own = Find(name);
  if (own < caller.op) return this;
  if (own == caller.op)
    return ErrorAt(caller.position,
                   absl::StrCat("the op '", name, "' calls itself; ops are not recursive"));
  if (own < ops_->size())
    return ErrorAt(caller.position, absl::StrCat("the op '", name, "' is defined after its use"));
  if (library_ != nullptr && library_->Has(name)) return library_;
  std::vector<std::string> known = OpNames();
  for (const ScalarOpRow& row : AllScalarOps()) known.push_back(row.name);
  if (library_ != nullptr) {
    for (const std::string& op : library_->OpNames()) known.push_back(op);
  }
  return ErrorAt(caller.position, absl::StrCat("unknown op '", name, "'", DidYouMean(name, known)));
}

absl::StatusOr<Op> Module::Instantiate(absl::string_view name, const ArgumentSpecs& specs) const {
  Calls calls;
  return Instantiate(name, specs, calls);
}

// `calls`: what the whole instantiation has made so far, and how deep it is.
absl::StatusOr<Op> Module::Instantiate(absl::string_view name, const ArgumentSpecs& specs,
                                       Calls& calls) const {
  const size_t op = name.empty() && !ops_->empty() ? ops_->size() - 1 : Find(name);
  if (op == ops_->size()) {
    return absl::NotFoundError(
        absl::StrCat("no op named '", name, "'", DidYouMean(name, OpNames())));
  }
  return Elaborate((*ops_)[op].syntax(), specs,
                   [&](absl::string_view callee, const ast::Position& position,
                       absl::Span<const ArgumentSpec> args) {
                     return MakeCallee(callee, {op, position}, args, calls);
                   });
}

// The key says what the callee depends on: where it is from, its name, and each argument's type and
// rank.
absl::StatusOr<Op> Module::MakeCallee(absl::string_view name, const Caller& caller,
                                      absl::Span<const ArgumentSpec> args, Calls& calls) const {
  const ast::Position position = caller.position;
  NESTOR_ASSIGN_OR_RETURN(const Module* home, HomeOf(name, caller));
  const ast::Op& found = home->Syntax(name);
  if (found.args.size() != args.size()) {
    return ErrorAt(position, absl::StrCat("op ", name, " takes ", found.args.size(),
                                          " tensors, is given ", args.size()));
  }
  ArgumentSpecs specs;
  // A file may define an op by the name of one of the library; the two are kept apart.
  std::string key = absl::StrCat(home == this ? "" : "library ", name);
  for (size_t i = 0; i < args.size(); ++i) {
    specs[found.args[i].name] = args[i];
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
  for (const Entry& op : *ops_) {
    NESTOR_RETURN_IF_ERROR(Instantiate(op.name, {}).status());
  }
  return absl::OkStatus();
}

absl::StatusOr<Op> ParseOp(absl::string_view text) {
  NESTOR_ASSIGN_OR_RETURN(const Module module, Module::Parse(text));
  return module.Instantiate("", {});
}

}  // namespace nestor
