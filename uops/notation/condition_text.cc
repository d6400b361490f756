// A condition is an expression of the notation without tensors and indices: the parser reads it,
// and the resolver resolves it in an environment that knows the op's sizes alone.
#include "uops/notation/condition_text.h"

#include <utility>

#include "uops/invariant.h"
#include "uops/notation/environment.h"
#include "uops/notation/index_resolver.h"
#include "uops/notation/parser.h"
#include "uops/notation/statement_scope.h"

namespace nestor {
namespace {

// Every dimension that an argument's shape names, and every $param.
void NameSizes(Environment& environment) {
  const IndexPool& pool = environment.op.graph.pool();
  for (const Argument& arg : environment.op.args) {
    for (IndexId extent : arg.shape) {
      VisitIndex(pool, extent, [&](IndexId id, const IndexNode& node) {
        if (node.kind == IndexKind::kSymbol && pool.SymbolName(id)[0] != '$') {
          environment.dims.emplace(pool.SymbolName(id), id);
        }
      });
    }
  }
  for (const ParamInfo& param : environment.op.params) environment.params[param.name] = param.type;
}

}  // namespace

// The op is lent to an environment, since resolving adds to its pool.
absl::StatusOr<IndexId> ParseCondition(absl::string_view text, Op& op) {
  NESTOR_ASSIGN_OR_RETURN(const ast::ExprPtr expr, ParseExpression(text));
  Environment environment;
  environment.op = std::move(op);
  NameSizes(environment);
  const absl::StatusOr<IndexId> condition = IndexResolver(environment).Condition(*expr);
  op = std::move(environment.op);
  return condition;
}

}  // namespace nestor
