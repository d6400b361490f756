// From the text of a statement to micro-ops that do no more work than the text says. Each
// expression becomes a node over just the indices that it mentions; where two are combined, both
// are repeated over the indices of either. So a reduction inside an elementwise expression is
// computed once for each point that it depends on, and the cost of an expression does not depend on
// how it is spread over statements.
//
//   y[i, j] = x[i, j] / sum[k](x[i, k])     s over i, one sum per row; y = x / (s repeated)
//
// A value's axes are in the order of the stack of indices in scope: the statement's own, then the
// reductions' from outside in. The result for a node that others share is remembered, separately
// for each reduction's body, where the stack is a different one.
#include "uops/statement_builder.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "uops/call.h"
#include "uops/infer_ranges.h"
#include "uops/infer_types.h"
#include "uops/invariant.h"

namespace nestor::internal {
namespace {

// The walks recurse once per level. No text reaches it: kMaxNesting brackets, each with a
// chain of each precedence in it.
constexpr int kMaxDepth = 1500;

using Axes = std::vector<int64_t>;  // the index along each axis

// A node over just the indices that it depends on.
struct Value {
  NodeId node;
  Axes axes;
};

bool Holds(const Axes& axes, int64_t variable) {
  return std::find(axes.begin(), axes.end(), variable) != axes.end();
}

class NodeBuilder {
 public:
  NodeBuilder(Graph& graph, const Ranges& ranges, const Types& types)
      : graph_(graph), pool_(graph.pool()), ranges_(ranges), types_(types), stack_(ranges.own) {}

  absl::StatusOr<NodeId> Define(const ExprNodePtr& body) {
    NESTOR_ASSIGN_OR_RETURN(const Value value, Build(body, types_.at(body.get()).own.Resolved()));
    return Broadcast(value, AllAxes());
  }

  absl::StatusOr<NodeId> Scatter(const ScatterTarget& target, const ExprNodePtr& body) {
    NESTOR_ASSIGN_OR_RETURN(const Value value, Build(body, target.type));
    const Axes axes = AllAxes();
    const NodeId x = Broadcast(value, axes);
    NESTOR_ASSIGN_OR_RETURN(IndexList place, Resolve(target.place));
    return graph_.AddScatter(target.op, x, target.shape, Renumber(std::move(place), axes));
  }

 private:
  // ---- Axes

  Axes AllAxes() const {
    Axes axes;
    for (const RangedIndex& index : stack_) axes.push_back(index.variable);
    return axes;
  }

  // Those of the stack's indices for which `used` holds.
  template <class Used>
  Axes InOrder(Used used) const {
    Axes axes;
    for (const RangedIndex& index : stack_) {
      if (used(index.variable)) axes.push_back(index.variable);
    }
    return axes;
  }

  Axes AxesOf(const IndexList& list) const {
    Axes mentioned;
    for (IndexId e : list) CollectVars(pool_, e, mentioned);
    return InOrder([&](int64_t v) { return Holds(mentioned, v); });
  }

  Shape ShapeOf(const Axes& axes) const {
    Shape shape;
    for (int64_t variable : axes) {
      const auto of = [&](const RangedIndex& index) { return index.variable == variable; };
      shape.push_back(std::find_if(stack_.begin(), stack_.end(), of)->extent);
    }
    return shape;
  }

  // `value` repeated over `axes`, in that order.
  NodeId Broadcast(const Value& value, const Axes& axes) {
    std::vector<int> positions;
    for (int64_t v : value.axes) {
      positions.push_back(static_cast<int>(std::find(axes.begin(), axes.end(), v) - axes.begin()));
    }
    return graph_.AddBroadcast(value.node, ShapeOf(axes), positions);
  }

  absl::StatusOr<IndexList> Resolve(const std::vector<IndexHandle>& handles) const {
    IndexList list;
    for (const IndexHandle& handle : handles) {
      NESTOR_ASSIGN_OR_RETURN(const IndexId id, ResolveIndex(graph_, handle));
      list.push_back(id);
    }
    return list;
  }

  // The expressions over Var(position in `axes`).
  // 2*v7 + v3 over the axes {v3, v7}   ->   2*Var(1) + Var(0)
  IndexList Renumber(IndexList list, const Axes& axes) {
    bool same = true;
    for (size_t i = 0; i < axes.size(); ++i) same &= axes[i] == static_cast<int64_t>(i);
    if (same) return list;
    const auto renumbered = [&](int64_t var) {
      return absl::make_optional(
          pool_.Var(std::find(axes.begin(), axes.end(), var) - axes.begin()));
    };
    for (IndexId& e : list) {
      if (pool_.HasVar(e)) e = ReplaceLeaves(pool_, e, IndexKind::kVar, renumbered);
    }
    return list;
  }

  // ---- Values

  // REQUIRES: the inferred type of `node` unifies with `type`.
  absl::StatusOr<Value> Build(const ExprNodePtr& node, DType type) {
    if (node.use_count() > 1) return BuildShared(node, type);
    NESTOR_ASSIGN_OR_RETURN(Value value, BuildNew(*node, type));
    value.node = graph_.AddCast(value.node, type);  // where an index value widens an integer
    return value;
  }

  // An expression that occurs twice is built once, or a chain of x = x + x would take exponential
  // time.
  absl::StatusOr<Value> BuildShared(const ExprNodePtr& node, DType type) {
    const auto key = std::make_pair(node.get(), type);
    const auto it = built_.find(key);
    if (it != built_.end()) return it->second;
    NESTOR_ASSIGN_OR_RETURN(Value value, BuildNew(*node, type));
    value.node = graph_.AddCast(value.node, type);
    return built_[key] = value;
  }

  // `type`: that of the result, which a literal or an index value takes.
  absl::StatusOr<Value> BuildNew(const ExprNode& node, DType type) {
    switch (node.form) {
      case Form::kLiteral: {
        NESTOR_ASSIGN_OR_RETURN(const NodeId literal, BuildLiteral(node, type));
        return Value{literal, {}};
      }
      case Form::kParam: return Value{graph_.AddParam(node.text, node.type), {}};
      case Form::kIndex: return BuildIndex(node, type);
      case Form::kAccess: return BuildAccess(node);
      case Form::kCast: return BuildCast(node);
      case Form::kReduce: return BuildReduction(node, type);
      case Form::kMap: return BuildMap(node, type);
      case Form::kChain: return BuildChain(node, type);
    }
    return ErrorIn(node.position, "expected a value");
  }

  absl::StatusOr<NodeId> BuildLiteral(const ExprNode& node, DType type) {
    const auto value = ParseLiteral(node.text, type);
    if (value) return graph_.AddConstant(*value);
    return ErrorIn(node.position,
                   absl::StrCat("the literal '", node.text, "' does not fit ", Name(type)));
  }

  // An index as a value has the axes of the indices in it, and no others.
  absl::StatusOr<Value> BuildIndex(const ExprNode& node, DType type) {
    if (type == DType::kBool)
      return ErrorIn(node.position, "types bool and i64 (an index) do not mix: cast one");
    NESTOR_ASSIGN_OR_RETURN(IndexList list, Resolve(node.indices));
    Axes axes = AxesOf(list);
    const IndexId over_axes = Renumber(std::move(list), axes)[0];
    return Value{graph_.AddCast(graph_.AddIndex(over_axes, ShapeOf(axes)), type), std::move(axes)};
  }

  // Over the indices that its subscripts and conditions mention.
  absl::StatusOr<Value> BuildAccess(const ExprNode& node) {
    NESTOR_ASSIGN_OR_RETURN(IndexList list, Resolve(node.indices));
    NESTOR_ASSIGN_OR_RETURN(const IndexList conditions, Resolve(node.conditions));
    list.insert(list.end(), conditions.begin(), conditions.end());
    NodeId fill;
    if (!node.args.empty()) {
      NESTOR_ASSIGN_OR_RETURN(fill, BuildFill(*node.args[0], graph_.type(node.tensor)));
    }
    Axes axes = AxesOf(list);
    list = Renumber(std::move(list), axes);
    const auto middle = list.begin() + static_cast<int64_t>(node.indices.size());
    const NodeId read =
        graph_.AddReindex(node.tensor, ShapeOf(axes), IndexList(list.begin(), middle), fill,
                          IndexList(middle, list.end()));
    return Value{read, std::move(axes)};
  }

  // A literal or a $param.
  absl::StatusOr<NodeId> BuildFill(const ExprNode& fill, DType type) {
    if (fill.form == Form::kLiteral) return BuildLiteral(fill, type);
    if (fill.form != Form::kParam)
      return ErrorIn(fill.position, "a fill is a literal or a bool or float $param");
    if (fill.type == type) return graph_.AddParam(fill.text, type);
    return ErrorIn(fill.position, absl::StrCat("the fill ", fill.text, " is ", Name(fill.type),
                                               ", the tensor ", Name(type)));
  }

  absl::StatusOr<Value> BuildCast(const ExprNode& node) {
    const MetType& operand = types_.at(&node).operands;
    // A cast types its literal directly.
    const bool literal = node.args[0]->form == Form::kLiteral && !operand.type;
    NESTOR_ASSIGN_OR_RETURN(Value value,
                            Build(node.args[0], literal ? node.type : operand.Resolved()));
    value.node = graph_.AddCast(value.node, node.type);
    return value;
  }

  // The body is repeated over the reduced indices even where it does not mention them: each term
  // counts.
  absl::StatusOr<Value> BuildReduction(const ExprNode& node, DType type) {
    const std::vector<RangedIndex>& own = ranges_.reduced.at(&node);
    auto outside = std::exchange(built_, {});
    stack_.insert(stack_.end(), own.begin(), own.end());
    NESTOR_ASSIGN_OR_RETURN(
        const Value body,
        Build(node.args[0], IsArg(node.reduce) ? types_.at(&node).operands.Resolved() : type));
    NESTOR_RETURN_IF_ERROR(CheckReduction(node, graph_.type(body.node)));
    Axes reduced;
    for (const RangedIndex& index : own) reduced.push_back(index.variable);
    Axes kept = body.axes;
    kept.erase(
        std::remove_if(kept.begin(), kept.end(), [&](int64_t v) { return Holds(reduced, v); }),
        kept.end());
    Axes all = kept;
    std::vector<int> positions;
    for (int64_t variable : reduced) {
      positions.push_back(static_cast<int>(all.size()));
      all.push_back(variable);
    }
    const NodeId result = graph_.AddReduce(node.reduce, Broadcast(body, all), positions);
    stack_.resize(stack_.size() - own.size());
    built_ = std::move(outside);
    return Value{result, std::move(kept)};
  }

  static absl::Status CheckReduction(const ExprNode& node, DType type) {
    if (ReduceResultType(node.reduce, type)) return absl::OkStatus();
    return ErrorIn(node.position,
                   absl::StrCat("'", Name(node.reduce), "' does not take ", Name(type),
                                type == DType::kBool ? ": cast it" : ""));
  }

  // Operands have the result's type, or, where the row's result has another one, that which was
  // inferred for them.
  absl::StatusOr<Value> BuildMap(const ExprNode& node, DType type) {
    const ResultType result = Row(node.op).result;
    const bool choice = result == ResultType::kChoice;
    const DType operand_type =
        choice || result == ResultType::kSame ? type : types_.at(&node).operands.Resolved();
    std::vector<Value> operands;
    for (size_t i = 0; i < node.args.size(); ++i) {
      NESTOR_ASSIGN_OR_RETURN(Value operand,
                              Build(node.args[i], choice && i == 0 ? DType::kBool : operand_type));
      operands.push_back(std::move(operand));
    }
    return Apply(node.op, operands, node.position);
  }

  // From the left, so that a - b + c is (a - b) + c.
  absl::StatusOr<Value> BuildChain(const ExprNode& node, DType type) {
    const bool compares = Row(node.steps[0].op).result == ResultType::kBoolean;
    const DType operand_type = compares ? types_.at(&node).operands.Resolved() : type;
    NESTOR_ASSIGN_OR_RETURN(Value result, Build(node.args[0], operand_type));
    for (size_t i = 1; i < node.args.size(); ++i) {
      const ChainStep& step = node.steps[i - 1];
      NESTOR_ASSIGN_OR_RETURN(Value operand, Build(node.args[i], operand_type));
      // `/` of integers is a floor division.
      const bool floors = step.op == ScalarOp::kDiv && !IsFloat(operand_type);
      const Value operands[] = {std::move(result), std::move(operand)};
      NESTOR_ASSIGN_OR_RETURN(
          result, Apply(floors ? ScalarOp::kFloorDiv : step.op, operands, step.position));
      NESTOR_RETURN_IF_ERROR(CheckSize(graph_, step.position));
    }
    return result;
  }

  // Over the indices of any operand; those that lack one are repeated over it.
  absl::StatusOr<Value> Apply(ScalarOp op, absl::Span<const Value> operands,
                              const TextPosition& position) {
    const DType type = graph_.type(operands.back().node);
    if (!ResultTypeOf(op, type, DType::kF32)) {
      return ErrorIn(position, absl::StrCat("'", Row(op).name, "' takes ",
                                            Describe(Row(op).operands), ", is given ", Name(type)));
    }
    Axes axes = InOrder([&](int64_t v) {
      return std::any_of(operands.begin(), operands.end(),
                         [&](const Value& o) { return Holds(o.axes, v); });
    });
    NodeList args;
    for (const Value& operand : operands) args.push_back(Broadcast(operand, axes));
    return Value{graph_.AddMap(op, args), std::move(axes)};
  }

  Graph& graph_;
  IndexPool& pool_;
  const Ranges& ranges_;
  const Types& types_;
  std::vector<RangedIndex> stack_;
  absl::flat_hash_map<std::pair<const ExprNode*, DType>, Value> built_;
};

absl::Status CheckDepth(const ExprNodePtr& body) {
  if (body->depth <= kMaxDepth) return absl::OkStatus();
  return ErrorIn(body->position, absl::StrCat("the expression is nested deeper than ", kMaxDepth,
                                              ": define a part of it"));
}

// Only the ops that the notation writes with a sign: += *= max= min=.
absl::Status CheckTarget(const ScatterTarget& target) {
  if (target.op != ReduceOp::kSum && target.op != ReduceOp::kProd && target.op != ReduceOp::kMax &&
      target.op != ReduceOp::kMin) {
    return absl::InvalidArgumentError(
        absl::StrCat("a scatter cannot be by '", Name(target.op), "'"));
  }
  if (ReduceResultType(target.op, target.type)) return absl::OkStatus();
  return ErrorIn(target.type_position, absl::StrCat("a scatter by '", AccumulationSign(target.op),
                                                    "=' does not take ", Name(target.type)));
}

}  // namespace

// The same inference as for building, but with open accesses, and without lasting effect on `op`.
absl::StatusOr<Signature> InferSignature(const Statement& statement, Op& op) {
  NESTOR_RETURN_IF_ERROR(CheckDepth(statement.body));
  const auto known = static_cast<int64_t>(op.equalities.size());
  const absl::StatusOr<Ranges> ranges = InferRanges(statement, op, /*partial=*/true);
  // The equalities are added when the statement is built.
  op.equalities.erase(op.equalities.begin() + known, op.equalities.end());
  NESTOR_RETURN_IF_ERROR(ranges.status());
  NESTOR_ASSIGN_OR_RETURN(const Types types, InferTypes(*statement.body, absl::nullopt, op.graph));
  const MetType& type = types.at(statement.body.get()).own;
  Signature signature{type.Resolved(), {}, type.type.has_value()};
  for (const RangedIndex& index : ranges->own) signature.shape.push_back(index.extent);
  return signature;
}

// Ranges, then types, then nodes: each step uses what the ones before it found.
absl::StatusOr<NodeId> BuildStatement(const Statement& statement, Op& op) {
  const ExprNodePtr& body = statement.body;
  NESTOR_RETURN_IF_ERROR(CheckDepth(body));
  absl::optional<DType> declared;
  if (statement.scatter) {
    NESTOR_RETURN_IF_ERROR(CheckTarget(*statement.scatter));
    declared = statement.scatter->type;
  }
  NESTOR_ASSIGN_OR_RETURN(const Ranges ranges, InferRanges(statement, op));
  NESTOR_ASSIGN_OR_RETURN(const Types types, InferTypes(*body, declared, op.graph));
  NodeBuilder builder(op.graph, ranges, types);
  const absl::StatusOr<NodeId> node =
      statement.scatter ? builder.Scatter(*statement.scatter, body) : builder.Define(body);
  NESTOR_RETURN_IF_ERROR(node.status());
  NESTOR_RETURN_IF_ERROR(CheckSize(op.graph, statement.position));
  return node;
}

bool IsLag(const Op& op, IndexId lag) {
  const IndexPool& pool = op.graph.pool();
  if (const auto constant = pool.ConstValue(lag)) return *constant >= 1;
  if (pool[lag].kind != IndexKind::kSymbol) return false;
  const ParamInfo* param = op.FindParam(pool.SymbolName(lag));
  return param != nullptr && param->low && param->low->ToInt() >= 1;
}

absl::Status CheckSize(const Graph& graph, const TextPosition& position) {
  if (graph.size() <= kMostMicroOps) return absl::OkStatus();
  return ErrorIn(position, absl::StrCat("the program grows beyond ", kMostMicroOps, " micro-ops"));
}

}  // namespace nestor::internal
