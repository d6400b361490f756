// A parsed file of the notation, and the making of Ops from it.
//
//   NESTOR_ASSIGN_OR_RETURN(Module module, Module::Parse(text));
//   NESTOR_ASSIGN_OR_RETURN(Op op, module.Instantiate("softmax", {}));
//
// An op is made for the types and ranks of its arguments, as a template is: `f(x: T[..N, C])` for
// x: bf16[_, _, _] is another Op than for x: f32[_, _]. Sizes stay symbols.
//
// Immutable once parsed; const use from many threads is fine.
#ifndef NESTOR_UOPS_NOTATION_MODULE_H_
#define NESTOR_UOPS_NOTATION_MODULE_H_

#include "uops/cpp20.h"  // first, so that an older standard is named before all else

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "uops/message.h"
#include "uops/notation/ast.h"
#include "uops/op.h"

namespace nestor {

// The known types and ranks of the tensors that an op will be given, by argument name. By default a
// type variable is f32 and a pack is one dimension. For x: T[..N, C],
//   {{"x", {DType::kBF16, 3}}}
// makes T bf16, and ..N the two dimensions N0 and N1.
struct ArgumentSpec {
  absl::optional<DType> type;
  absl::optional<int> rank;
};
using ArgumentSpecs = absl::flat_hash_map<std::string, ArgumentSpec>;

// Copies share their ops: what is appended to one is in all.
class Module {
 public:
  // The text of one op, which must outlive the module.
  struct Definition {
    absl::string_view name, text;
    int line = 1;  // of its file, where the text begins
  };

  // Reads `text`. Ops that the text calls and does not define are looked up in
  // `library`, which may be null and must outlive the module. An op of the text hides one of the
  // library. InvalidArgument for what is no op of the grammar, and for a name that is taken; what
  // the statements say is checked when ops are instantiated.
  static absl::StatusOr<Module> Parse(absl::string_view text, const Module* library = nullptr);

  // Ops that are read when they are first asked for: a process that calls a few of a large library
  // does not wait for the others. REQUIRES: each text is an op of the grammar, of that name, and
  // Parse would accept the names.
  static Module OfDefinitions(absl::Span<const Definition> definitions);

  // Adds the ops of another text after those that are here. The Statuses of Parse; then nothing is
  // added. Not thread-safe.
  absl::Status Append(absl::string_view text);

  // The names of the ops, in the order of the text, without those of the library.
  std::vector<std::string> OpNames() const;
  bool Has(absl::string_view name) const;
  // As parsed: names are not resolved, types not known. Thread-safe. REQUIRES: Has(name).
  const ast::Op& Syntax(absl::string_view name) const;

  // The op `name` (empty: the last one) for arguments as given. Errors in the text
  // read "LINE:COLUMN: ...".
  // NotFound where there is no op of that name. `specs` may leave out arguments; names that are no
  // arguments are ignored. Thread-safe.
  absl::StatusOr<Op> Instantiate(absl::string_view name, const ArgumentSpecs& specs) const;

  // Instantiates every op for arguments of which nothing is known: finds the errors of a
  // whole text.
  absl::Status Check() const;

 private:
  // An op, read or not.
  struct Entry;
  using Entries = std::deque<Entry>;  // entries never move
  // The callees that one instantiation has made so far, by name, types and ranks: an op that is
  // called from many places, and by ops that are called from many places, is made once.
  struct Calls {
    absl::flat_hash_map<std::string, Op> made;
    int depth = 0;
  };
  // A place in the text: the op with that number.
  struct Caller {
    size_t op;
    ast::Position position;
  };

  Module();
  // The op's number in the order of the text; how many ops there are, where none has the name.
  size_t Find(absl::string_view name) const;
  absl::StatusOr<Op> Instantiate(absl::string_view name, const ArgumentSpecs& specs,
                                 Calls& calls) const;
  absl::StatusOr<Op> MakeCallee(absl::string_view name, const Caller& caller,
                                absl::Span<const ArgumentSpec> args, Calls& calls) const;
  absl::StatusOr<const Module*> HomeOf(absl::string_view name, const Caller& caller) const;

  std::shared_ptr<Entries> ops_;
  const Module* library_ = nullptr;
};

// The op in a text (the last one, if there are several), with nothing known about its arguments:
// for programs that name their types. It has no library to call; nestor::Parse has.
absl::StatusOr<Op> ParseOp(absl::string_view text);

}  // namespace nestor

#endif  // NESTOR_UOPS_NOTATION_MODULE_H_
