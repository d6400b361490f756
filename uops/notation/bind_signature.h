// Binds the signature of an op, before its statements are elaborated: the type variables, packs,
// dimensions, $params and arguments that the statements name. The caller may give the types and
// ranks of some arguments only; this finds the type variables and the lengths of packs that
// follow from them.
#ifndef NESTOR_UOPS_NOTATION_BIND_SIGNATURE_H_
#define NESTOR_UOPS_NOTATION_BIND_SIGNATURE_H_

#include "absl/status/status.h"
#include "uops/notation/ast.h"
#include "uops/notation/environment.h"
#include "uops/notation/module.h"

namespace nestor {

// Adds the signature's names to `environment`, and its $params and arguments to the op there.
// REQUIRES: nothing has been bound in `environment`. Errors: types or ranks in `specs` that
// contradict the signature; a name that is defined twice; an unknown type; a dimension that depends
// on a tensor's values; a literal that does not fit its $param.
absl::Status BindSignature(const ast::Op& syntax, const ArgumentSpecs& specs,
                           Environment& environment);

}  // namespace nestor

#endif  // NESTOR_UOPS_NOTATION_BIND_SIGNATURE_H_
