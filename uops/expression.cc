// Arithmetic on index handles, and the making of expression nodes.
//
// A handle is a number as long as only numbers are combined, and an expression in a pool once an
// index or dimension is: C++ has no pool at hand for IndexExpr(2) + 3. A misuse is a handle with an
// error, which every operation passes on.
#include "uops/expression.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "uops/notation/lexer.h"

namespace nestor::internal {
namespace {

// Index expressions are walked recursively.
constexpr int kMaxIndexDepth = 10000;

using Function = absl::FunctionRef<IndexId(IndexPool&, IndexId, IndexId)>;

IndexId IdIn(IndexPool& pool, const IndexHandle& handle) {
  return handle.graph != nullptr ? handle.id : pool.Const(handle.constant);
}

// Combines two constants, in a pool that is thrown away.
IndexHandle CombineConstants(IndexHandle a, const IndexHandle& b, Function function) {
  IndexPool pool;
  const IndexId result = function(pool, IdIn(pool, a), IdIn(pool, b));
  const auto value = EvaluateIndex(
      pool, result, [](const IndexNode&, absl::Span<const int64_t>) { return absl::nullopt; });
  if (!value) return Misused("the value of an index expression overflows i64");
  a.constant = *value;
  return a;
}

// The first error wins. The accesses in both are kept, in the order of the text: ranges are
// inferred from them.
IndexHandle CombineBy(IndexHandle a, const IndexHandle& b, Function function) {
  if (!a.error.empty()) return a;
  if (!b.error.empty()) return b;
  if (a.graph != nullptr && b.graph != nullptr && a.graph != b.graph)
    return Misused("an index of another builder");
  Graph* graph = a.graph != nullptr ? a.graph : b.graph;
  if (graph == nullptr) return CombineConstants(std::move(a), b, function);
  a.id = function(graph->pool(), IdIn(graph->pool(), a), IdIn(graph->pool(), b));
  a.graph = graph;
  a.alone = false;
  a.loads.insert(a.loads.end(), b.loads.begin(), b.loads.end());
  if (graph->pool().Depth(a.id) <= kMaxIndexDepth) return a;
  return Misused(
      absl::StrCat("the index expression is too long (more than ", kMaxIndexDepth, " terms)"));
}

}  // namespace

ExprNodePtr MakeNode(ExprNode node) {
  for (const ExprNodePtr& arg : node.args) node.depth = std::max(node.depth, arg->depth + 1);
  return std::make_shared<const ExprNode>(std::move(node));
}

absl::Status ErrorIn(const TextPosition& position, absl::string_view message) {
  return position ? ErrorAt(*position, message) : absl::InvalidArgumentError(message);
}

IndexHandle HandleOf(Graph& graph, IndexId id) {
  IndexHandle handle;
  handle.graph = &graph;
  handle.id = id;
  return handle;
}

IndexHandle Misused(std::string error) {
  IndexHandle handle;
  handle.error = std::move(error);
  return handle;
}

IndexHandle Combine(const InfixOperator& op, IndexHandle a, const IndexHandle& b) {
  return CombineBy(std::move(a), b, [&](IndexPool& pool, IndexId x, IndexId y) {
    return CombineIndices(pool, op, x, y);
  });
}

IndexHandle Combine(const IndexFunction& function, IndexHandle a, const IndexHandle& b) {
  return CombineBy(std::move(a), b, [&](IndexPool& pool, IndexId x, IndexId y) {
    return pool.Make(function.index, 0, {x, y});
  });
}

IndexHandle Not(IndexHandle a) {
  return CombineBy(std::move(a), IndexHandle{},
                   [](IndexPool& pool, IndexId x, IndexId) { return pool.Not(x); });
}

// Checked where the access is used: a handle may be made long before.
std::string AccessMisuse(const ExprNode& access, const Graph& graph) {
  if (access.graph == nullptr || !access.tensor.valid())
    return "a tensor handle that was never set";
  if (access.graph != &graph)
    return absl::StrCat("'", access.text, "' is a tensor of another builder");
  const size_t rank = graph.shape(access.tensor).size();
  if (rank == access.indices.size()) return "";
  return absl::StrCat("'", access.text, "' has ", rank, " dimensions and is given ",
                      access.indices.size(), " indices");
}

// Nothing is known about a tensor of an open block but that it is read: a stand-in that keeps the
// access.
IndexHandle LoadOf(const ExprNodePtr& access) {
  if (access->form != Form::kAccess)
    return Misused("an index is an index expression or an integer tensor's element");
  Graph* graph = access->graph;
  if (graph == nullptr) return Misused("a tensor handle that was never set");
  if (IsOpen(*access)) {
    IndexHandle unknown = HandleOf(*graph, graph->pool().Const(0));
    unknown.loads = {access};
    return unknown;
  }
  if (!IsInteger(graph->type(access->tensor))) {
    return Misused(
        absl::StrCat("'", access->text, "' is not an integer tensor and cannot be an index"));
  }
  if (!access->args.empty() || !access->conditions.empty()) {
    return Misused("an access inside an index takes no fill and no condition");
  }
  IndexList place;
  for (const IndexHandle& index : access->indices) {
    const absl::StatusOr<IndexId> id = ResolveIndex(*graph, index);
    if (!id.ok()) return Misused(std::string(id.status().message()));
    place.push_back(*id);
  }
  IndexHandle handle = HandleOf(*graph, graph->pool().Load(access->tensor.value, place));
  handle.loads = {access};
  return handle;
}

absl::StatusOr<IndexId> ResolveIndex(Graph& graph, const IndexHandle& handle) {
  if (!handle.error.empty()) return absl::InvalidArgumentError(handle.error);
  if (handle.graph == nullptr) return graph.pool().Const(handle.constant);
  if (handle.graph != &graph) return absl::InvalidArgumentError("an index of another builder");
  return handle.id;
}

}  // namespace nestor::internal
