// Rebuilds values and scopes with something replaced: the building blocks of passes.
//
// Values are immutable: a value in which something was replaced is a new one; a value in which
// nothing was replaced keeps its id.
#ifndef NESTOR_LOOP_IR_REWRITE_H_
#define NESTOR_LOOP_IR_REWRITE_H_

#include <cstdint>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/types/optional.h"
#include "loop_ir/program.h"

namespace nestor::loop {

// The replacement of an index expression, which is given whole: an expression of a place, a
// condition or an IndexValue.
using IndexMap = absl::FunctionRef<IndexId(IndexId)>;
// The replacement of a value whose operands are rewritten already; nullopt: itself.
using ValueMap = absl::FunctionRef<absl::optional<ValueId>(ValueId)>;

Access RewriteAccess(Program& program, Access access, IndexMap index);
ValueId RewriteIndices(Program& program, ValueId value, IndexMap index);
ValueId RewriteValues(Program& program, ValueId value, ValueMap map);

// Lets `change` edit the access of each load of `tensor` in the value: the load keeps the
// conditions and the fill that it leaves.
ValueId RewriteLoads(Program& program, ValueId value, TensorId tensor,
                     absl::FunctionRef<void(Access&)> change);
// The same in a statement's value and position.
void RewriteLoads(Program& program, Statement& statement, TensorId tensor,
                  absl::FunctionRef<void(Access&)> change);

// Replaces every index expression of the scope and below: bounds, places, conditions, values,
// extents of declared tensors.
void RewriteIndices(Program& program, Scope& scope, IndexMap index);

// Lets `change` edit the place of every access in the scope and below: stores, loads, prefetches,
// and loads in index expressions. It says whether it changed the place; the rank of
// the tensor may change with it.
void RewritePlaces(Program& program, Scope& scope,
                   absl::FunctionRef<bool(TensorId, IndexList& place)> change);

// Frees the values that no statement of the program holds any more. The others are renumbered, in
// their order: REQUIRES: nobody else keeps a ValueId.
void DropUnusedValues(Program& program);

// Calls `visit` on every statement of the item and below, in order; with the loops around it
// from the item on; on every statement of the scope and below, and of the program.
void VisitStatements(Item& item, absl::FunctionRef<void(Statement&, const LoopsAround&)> visit);
void VisitStatements(Scope& scope, absl::FunctionRef<void(Statement&)> visit);
void VisitStatements(Program& program, absl::FunctionRef<void(Statement&)> visit);

// Calls `visit` on the scope, and then on the bodies of the loops that it holds, in order, and
// of those below.
void VisitScopes(Scope& scope, absl::FunctionRef<void(Scope&)> visit);

// Replaces loop indices by expressions. Remembers what it has rewritten.
class VarReplacement {
 public:
  explicit VarReplacement(Program& program) : program_(program) {}
  // In the source, so that not each file with a replacement compiles what ends its maps.
  ~VarReplacement();

  // All replacements are made at once: `by` may hold indices that are replaced themselves.
  void Set(int32_t var, IndexId by);
  bool empty() const { return by_.empty(); }
  IndexId operator()(IndexId e);

 private:
  Program& program_;
  absl::flat_hash_map<int32_t, IndexId> by_;
  absl::flat_hash_map<IndexId, IndexId> memo_;
};

}  // namespace nestor::loop

#endif  // NESTOR_LOOP_IR_REWRITE_H_
