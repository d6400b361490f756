// Small things that several passes do to scopes.
#ifndef NESTOR_FUSION_SCOPES_H_
#define NESTOR_FUSION_SCOPES_H_

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "loop_ir/program.h"

namespace nestor::loop {

Item DeclarationOf(TensorId tensor);
// `scalar = value`, for a tensor of rank 0.
Item AssignmentOf(TensorId scalar, ValueId value);

// The tensors that the scope itself declares, in order.
std::vector<TensorId> DeclaredIn(const Scope& scope);

// The items with a declaration of each tensor before the first that uses it; a tensor that no item
// uses is declared at the end.
Scope WithDeclarations(const Program& program, Scope items, absl::Span<const TensorId> declared);

// Declares `more` as well as what the scope declares already, each tensor before the
// first item that uses it.
void Declare(const Program& program, Scope& scope, absl::Span<const TensorId> more);

// The number of values and conditions that are written in the expression, or in all statements of
// the item.
int64_t SizeOf(const Program& program, ValueId value);
int64_t SizeOf(const Program& program, const Item& item);

// Removes these statements from the scope and below, and loops that they leave empty.
void RemoveStatements(Scope& scope, const absl::flat_hash_set<const Statement*>& removed);

// True where each block is one loop or one statement.
bool IsFlat(const Program& program);
// The items of the blocks of a flat program, as one scope, and back.
Scope TakeItems(Program& program);
void PutItems(Program& program, Scope items);

// Calls `rewrite` on the items of a flat program as one scope, which declares the
// program's temps (`is_program`), else on each block's own; true where a call was.
bool RewriteTopScopes(Program& program,
                      absl::FunctionRef<bool(Scope& scope, bool is_program)> rewrite);

}  // namespace nestor::loop

#endif  // NESTOR_FUSION_SCOPES_H_
