// From syntax to a graph: names, ranges, types, and the micro-ops of each statement. Used by
// Module alone.
#ifndef NESTOR_UOPS_NOTATION_ELABORATE_H_
#define NESTOR_UOPS_NOTATION_ELABORATE_H_

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "uops/notation/ast.h"
#include "uops/notation/module.h"
#include "uops/op.h"

namespace nestor {

// Makes the callee of a call for the tensors given; errors carry the position of the call.
using MakeCallee = absl::FunctionRef<absl::StatusOr<Op>(
    absl::string_view name, const ast::Position& position, absl::Span<const ArgumentSpec> args)>;

// `specs`: types and ranks of arguments, by name; others take their defaults (module.h).
// `make_callee` is called for each call in the text. InvalidArgument, mostly "LINE:COLUMN: ...".
absl::StatusOr<Op> Elaborate(const ast::Op& syntax, const ArgumentSpecs& specs,
                             MakeCallee make_callee);

}  // namespace nestor

#endif  // NESTOR_UOPS_NOTATION_ELABORATE_H_
