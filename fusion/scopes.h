// Small things that several passes do to scopes.
#ifndef NESTOR_FUSION_SCOPES_H_
#define NESTOR_FUSION_SCOPES_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "loop_ir/program.h"

namespace nestor::loop {

// `scalar = value`, for a tensor of rank 0.
Item AssignmentOf(TensorId scalar, ValueId value);

// The items with a declaration of each tensor before the first that uses it; a tensor that no item
// uses is declared at the end.
Scope WithDeclarations(const Program& program, Scope items, absl::Span<const TensorId> declared);

// Removes the scope's own declarations and returns what they declared, in order.
std::vector<TensorId> TakeDeclarations(Scope& scope);

// Declares `more` as well as what the scope declares already, each tensor before the
// first item that uses it.
void Declare(const Program& program, Scope& scope, absl::Span<const TensorId> more);

// The number of values and conditions that are written in the expression, or in all statements of
// the item.
int64_t SizeOf(const Program& program, ValueId value);
int64_t SizeOf(const Program& program, const Item& item);

// Puts the items before item number `at`, or at the end; or in the place of that item.
void Insert(Scope& scope, size_t at, Scope items);
void ReplaceItem(Scope& scope, size_t at, Scope items);

// Removes these statements from the scope and below, and loops that they leave empty.
void RemoveStatements(Scope& scope, const absl::flat_hash_set<const Statement*>& removed);

// Each item as a scope of its own, for passes that replace items by several; and these as one.
std::vector<Scope> Apart(Scope scope);
Scope Joined(std::vector<Scope> scopes);

}  // namespace nestor::loop

#endif  // NESTOR_FUSION_SCOPES_H_
