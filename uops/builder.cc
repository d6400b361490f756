// An Expr is a tree that is only held until Define or Scatter says which indices
// there are; then it is walked three times: Walk finds what each index runs over,
// Infer the types, and Build makes the nodes. As in elaborate.cc a value is a node
// over just the indices that it mentions, and is repeated where it meets others.
// The indices in scope form a stack (left ones, then the reductions' from outside
// in), whose order is the order of a value's axes. Subtrees are shared, so each
// walk remembers what it has seen, per reduction body, since there the stack is
// another.
//
// Handles are numbered in the builder: the pool's Var(i) is the i-th NewIndex
// until a node is made, which numbers its axes from 0.
#include "uops/builder.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "uops/call.h"
#include "uops/invariant.h"
#include "uops/module.h"
#include "uops/operators.h"
#include "uops/parser.h"

namespace nestor {

using internal::ExprNode;
using internal::IndexHandle;
using NodePtr = std::shared_ptr<const ExprNode>;

namespace internal {
enum class Form { kLiteral, kParam, kIndex, kAccess, kMap, kCast, kReduce };
struct ExprNode {
  Form form;
  DType type = DType::kF32;        // literal: bool, i64 or, of any float, f64; param, cast
  std::string text = {};           // literal; param; access: the tensor's name
  std::vector<IndexExpr> indices = {};  // index: one; access: the place; reduce: its own
  std::vector<Condition> conditions = {};
  Graph* graph = nullptr;  // access
  NodeId tensor = {};
  ScalarOp op = ScalarOp::kCopy;
  ReduceOp reduce = ReduceOp::kSum;
  std::vector<NodePtr> args = {};  // access: the fill, if any
  int depth = 1;
};
}  // namespace internal
using internal::Form;

namespace {

constexpr int kMaxDepth = 1000;

absl::Status Misuse(absl::string_view message) { return absl::InvalidArgumentError(message); }

Expr Wrap(ExprNode node) {
  for (const NodePtr& arg : node.args) node.depth = std::max(node.depth, arg->depth + 1);
  return Expr(std::make_shared<const ExprNode>(std::move(node)));
}

template <class Function>  // IndexId(IndexPool&, IndexId, IndexId)
IndexHandle Combine(const IndexHandle& a, const IndexHandle& b, Function function) {
  for (const IndexHandle* h : {&a, &b}) {
    if (!h->error.empty()) return *h;
  }
  if (a.graph != nullptr && b.graph != nullptr && a.graph != b.graph) return {nullptr, {}, 0, "an index of another builder"};
  Graph* graph = a.graph != nullptr ? a.graph : b.graph;
  IndexPool scratch;
  IndexPool& pool = graph != nullptr ? graph->pool() : scratch;
  const auto id = [&](const IndexHandle& h) { return h.graph != nullptr ? h.id : pool.Const(h.constant); };
  const IndexId result = function(pool, id(a), id(b));
  if (graph != nullptr) return {graph, result, 0, ""};
  const auto value = EvaluateIndex(pool, result, [](const IndexNode&, absl::Span<const int64_t>) { return absl::nullopt; });
  return value ? IndexHandle{nullptr, {}, *value, ""} : IndexHandle{nullptr, {}, 0, "the value of an index expression overflows i64"};
}

// By the infix operator that `op` is on bool, and so on conditions.
IndexHandle Infix(ScalarOp op, const IndexHandle& a, const IndexHandle& b) {
  const InfixOperator& infix = *InfixOf(op, DType::kBool);
  return Combine(a, b, [&](IndexPool& pool, IndexId x, IndexId y) { return CombineIndices(pool, infix, x, y); });
}

}  // namespace

#define VALUE_OPERATOR(Name, Op) \
  Expr Name(const Expr& a, const Expr& b) { return Apply(ScalarOp::Op, {a, b}); }
#define ARITHMETIC(Name, Op)                                                                                   \
  IndexExpr Name(const IndexExpr& a, const IndexExpr& b) { return IndexExpr(Infix(ScalarOp::Op, a.handle, b.handle)); } \
  VALUE_OPERATOR(Name, Op)
#define FUNCTION(Name, Op)                                                                                     \
  IndexExpr Name(const IndexExpr& a, const IndexExpr& b) {                                                     \
    return IndexExpr(Combine(a.handle, b.handle, [](IndexPool& p, IndexId x, IndexId y) { return p.Name(x, y); })); \
  }                                                                                                            \
  VALUE_OPERATOR(Name, Op)
#define COMPARISON(Name, Op)                                                                                   \
  Condition Name(const IndexExpr& a, const IndexExpr& b) { return {Infix(ScalarOp::Op, a.handle, b.handle)}; } \
  VALUE_OPERATOR(Name, Op)
#define LOGICAL(Name, Op)                                                                                      \
  Condition Name(const Condition& a, const Condition& b) { return {Infix(ScalarOp::Op, a.handle, b.handle)}; } \
  VALUE_OPERATOR(Name, Op)
ARITHMETIC(operator+, kAdd) ARITHMETIC(operator-, kSub) ARITHMETIC(operator*, kMul) ARITHMETIC(operator/, kDiv)
ARITHMETIC(operator%, kMod) FUNCTION(Min, kMin) FUNCTION(Max, kMax)
COMPARISON(operator<, kLt) COMPARISON(operator<=, kLe) COMPARISON(operator>, kGt) COMPARISON(operator>=, kGe)
COMPARISON(operator==, kEq) COMPARISON(operator!=, kNe)
LOGICAL(operator&&, kAnd) LOGICAL(operator||, kOr) VALUE_OPERATOR(Pow, kPow)
#undef LOGICAL
#undef COMPARISON
#undef FUNCTION
#undef ARITHMETIC
#undef VALUE_OPERATOR
Condition operator!(const Condition& a) {
  return {Combine(a.handle, a.handle, [](IndexPool& p, IndexId x, IndexId) { return p.Not(x); })};
}
IndexExpr operator-(const IndexExpr& a) { return IndexExpr(0) - a; }
Expr operator-(const Expr& a) { return Apply(ScalarOp::kNeg, {a}); }
Expr operator!(const Expr& a) { return Apply(ScalarOp::kNot, {a}); }

Expr Apply(ScalarOp op, std::vector<Expr> operands) {
  ExprNode node{Form::kMap};
  node.op = op;
  for (const Expr& e : operands) node.args.push_back(e.node());
  return Wrap(std::move(node));
}

Expr Cast(DType type, const Expr& a) {
  ExprNode node{Form::kCast, type};
  node.args = {a.node()};
  return Wrap(std::move(node));
}

Expr Reduce(ReduceOp op, std::vector<IndexExpr> indices, const Expr& body) {
  ExprNode node{Form::kReduce};
  node.reduce = op;
  node.indices = std::move(indices);
  node.args = {body.node()};
  return Wrap(std::move(node));
}

Expr Expr::Literal(DType type, std::string text) { return Wrap({Form::kLiteral, type, std::move(text)}); }
Expr Expr::Literal(double value) { return Literal(DType::kF64, LiteralText(Scalar::Float(DType::kF64, value))); }

Expr::Expr(const IndexExpr& index) {
  if (index.handle.graph == nullptr && index.handle.error.empty()) {
    *this = Expr(index.handle.constant);
  } else {
    *this = Wrap({Form::kIndex, DType::kI64, "", {index}});
  }
}

// A condition as a value: comparisons of index values.
Expr::Expr(const Condition& condition) {
  const IndexHandle& h = condition.handle;
  if (h.graph == nullptr) {
    *this = h.error.empty() ? Expr(h.constant != 0) : Expr(IndexExpr(h));
    return;
  }
  const IndexNode node = h.graph->pool()[h.id];
  if (!IsCondition(node.kind)) {
    *this = Expr(node.value != 0);  // a constant
    return;
  }
  const InfixOperator* infix = InfixOf(node.kind);
  std::vector<Expr> operands;
  for (IndexId arg : node.args) {
    const IndexHandle operand{h.graph, arg, 0, ""};
    operands.push_back(infix != nullptr && infix->Compares() ? Expr(IndexExpr(operand)) : Expr(Condition{operand}));
  }
  *this = Apply(infix != nullptr ? infix->op : ScalarOp::kNot, std::move(operands));
}

Access Access::Or(const Expr& fill) const {
  ExprNode node = *this->node();
  node.args = {fill.node()};
  return Access(Wrap(std::move(node)).node());
}

Access Access::If(const Condition& condition) const {
  ExprNode node = *this->node();
  node.conditions.push_back(condition);
  return Access(Wrap(std::move(node)).node());
}

Access TensorRef::At(std::vector<Place> places) const {
  ExprNode node{Form::kAccess};
  node.text = name_;
  node.graph = graph_;
  node.tensor = node_;
  for (Place& place : places) node.indices.push_back(std::move(place.index));
  return Access(Wrap(std::move(node)).node());
}

IndexExpr AsIndex(const Expr& value) {
  const ExprNode& node = *value.node();
  const auto misuse = [](std::string text) { return IndexExpr(IndexHandle{nullptr, {}, 0, std::move(text)}); };
  if (node.form == Form::kIndex) return node.indices[0];
  if (node.form == Form::kLiteral && node.type == DType::kI64) {
    return IndexExpr(ParseLiteral(node.text, DType::kI64)->ToInt());
  }
  if (node.form != Form::kAccess) return misuse("an index is an index expression or an integer tensor's element");
  if (node.graph == nullptr || !node.tensor.valid()) return misuse("a tensor handle that was never set");
  if (!IsInteger(node.graph->type(node.tensor))) {
    return misuse(absl::StrCat("'", node.text, "' is not an integer tensor and cannot be an index"));
  }
  if (!node.args.empty() || !node.conditions.empty()) return misuse("an access inside an index takes no fill and no condition");
  const size_t rank = static_cast<size_t>(node.graph->rank(node.tensor));
  if (node.indices.size() != rank) {
    return misuse(absl::StrCat("'", node.text, "' has ", rank, " dimensions and is given ", node.indices.size(), " indices"));
  }
  IndexList place;
  for (const IndexExpr& e : node.indices) {
    if (!e.handle.error.empty()) return e;
    if (e.handle.graph != nullptr && e.handle.graph != node.graph) return misuse("an index of another builder");
    place.push_back(e.handle.graph != nullptr ? e.handle.id : node.graph->pool().Const(e.handle.constant));
  }
  return IndexExpr(IndexHandle{node.graph, node.graph->pool().Load(node.tensor.value, place), 0, ""});
}

// ---- Statements

// Builds one Define or Scatter.
class StatementBuilder {
 public:
  StatementBuilder(OpBuilder& builder, std::string name, bool scatter)
      : builder_(builder), op_(builder.op_), graph_(builder.op_.graph), pool_(graph_.pool()), name_(std::move(name)), scatter_(scatter) {}

  absl::StatusOr<NodeId> Define(const std::vector<IndexExpr>& indices, const Expr& body) {
    for (const IndexExpr& index : indices) NESTOR_RETURN_IF_ERROR(Push(index));
    left_ = stack_.size();
    NESTOR_ASSIGN_OR_RETURN(const Value value, BuildWhole(body, absl::nullopt));
    return Spread(value, Variables());
  }

  absl::StatusOr<NodeId> Scatter(ReduceOp op, DType type, Shape shape, const std::vector<Place>& places,
                                 const Expr& body) {
    if (op != ReduceOp::kSum && op != ReduceOp::kProd && op != ReduceOp::kMax && op != ReduceOp::kMin) {
      return Misuse(absl::StrCat("a scatter cannot be by '", nestor::Name(op), "'"));
    }
    if (!ReduceResultType(op, type)) return Misuse(absl::StrCat("a scatter by '", nestor::Name(op), "' does not take ", nestor::Name(type)));
    if (places.size() != shape.size()) {
      return Misuse(absl::StrCat("it has ", shape.size(), " dimensions and is given ", places.size(), " indices"));
    }
    IndexList place;
    for (const Place& p : places) {
      NESTOR_ASSIGN_OR_RETURN(const IndexId e, builder_.Resolve(p.index));
      place.push_back(e);
    }
    NESTOR_RETURN_IF_ERROR(WalkPlace(place, name_, shape));
    NESTOR_ASSIGN_OR_RETURN(const Value value, BuildWhole(body, type));
    const std::vector<int64_t> axes = Variables();
    const NodeId x = Spread(value, axes);
    return graph_.AddScatter(op, x, std::move(shape), Renumber(std::move(place), axes));
  }

 private:
  struct Bound {  // an index in scope
    int64_t variable;
    IndexId range;       // invalid until known
    std::string origin;  // the place where it was found
  };
  struct Value {  // a node and the index along each axis, in stack order
    NodeId node;
    std::vector<int64_t> axes;
  };
  struct Type {  // what is known of an expression's type; see type_inference.h
    absl::optional<DType> type = {};
    bool float_literal = false, index_value = false;
    DType Resolved() const {
      if (!type) return float_literal ? DType::kF32 : DType::kI64;
      return index_value && IsInteger(*type) ? DType::kI64 : *type;
    }
  };

  absl::StatusOr<Value> BuildWhole(const Expr& body, absl::optional<DType> declared) {
    if (body.node()->depth > kMaxDepth) {
      return Misuse(absl::StrCat("the expression is nested deeper than ", kMaxDepth, ": define a part of it"));
    }
    NESTOR_RETURN_IF_ERROR(Walk(body.node()));
    NESTOR_RETURN_IF_ERROR(CheckRanges(0));
    NESTOR_ASSIGN_OR_RETURN(Type type, Infer(body.node()));
    if (declared) {
      NESTOR_ASSIGN_OR_RETURN(type, Unify({declared}, type));
      if (type.Resolved() != *declared) return Misuse(absl::StrCat("types ", nestor::Name(*declared), " and i64 (an index) do not mix: cast one"));
    }
    return Build(body.node(), type.Resolved());
  }

  // ---- Indices

  const std::string& NameOf(int64_t variable) const { return builder_.variables_[variable].name; }
  Bound* Find(int64_t variable) {
    for (Bound& bound : stack_) {
      if (bound.variable == variable) return &bound;
    }
    return nullptr;
  }
  std::vector<int64_t> Variables() const {
    std::vector<int64_t> variables;
    for (const Bound& bound : stack_) variables.push_back(bound.variable);
    return variables;
  }
  Bound Fresh(int64_t variable) const {
    return {variable, builder_.variables_[variable].extent.value_or(IndexId()), ""};
  }

  absl::Status Push(const IndexExpr& index) {
    NESTOR_ASSIGN_OR_RETURN(const IndexId id, builder_.Resolve(index));
    const int64_t variable = pool_.VarValue(id);
    if (variable < 0) return Misuse("what is defined or reduced over must be an index of NewIndex standing alone");
    if (Find(variable) != nullptr) return Misuse(absl::StrCat("the index '", NameOf(variable), "' is already in use here"));
    stack_.push_back(Fresh(variable));
    return absl::OkStatus();
  }

  // Every index in `id` is in scope, or of a scatter comes to be.
  absl::Status CheckScope(IndexId id) {
    absl::Status status;
    VisitIndex(pool_, id, [&](IndexId, const IndexNode& node) {
      if (node.kind != IndexKind::kVar || Find(node.value) != nullptr) return;
      if (scatter_) stack_.insert(stack_.begin() + static_cast<int64_t>(left_++), Fresh(node.value));
      else status.Update(Misuse(absl::StrCat("the index '", NameOf(node.value), "' is neither on the left nor reduced")));
    });
    return status;
  }

  // `id` stands on an axis of that extent.
  void Stand(IndexId id, IndexId extent, absl::string_view tensor, size_t axis) {
    const int64_t variable = pool_.VarValue(id);
    WarnBeyond(id, extent, tensor, axis);
    if (variable < 0 || builder_.variables_[variable].extent) return;
    Bound& bound = *Find(variable);
    std::string place = absl::StrCat("axis ", axis, " of ", tensor, " (", SymbolicText(pool_, extent), ")");
    if (bound.range == IndexId()) {
      bound.range = extent;
      bound.origin = std::move(place);
    } else if (bound.range != extent) {
      op_.equalities.push_back({bound.range, extent, absl::StrCat("index ", NameOf(variable), " runs over ", bound.origin, " and over ", place)});
    }
  }

  void WarnBeyond(IndexId id, IndexId extent, absl::string_view tensor, size_t axis) {
    const std::string beyond = AlwaysOutOfBounds(pool_, id, extent, tensor, axis);
    if (!beyond.empty()) op_.AddWarning(absl::StrCat("op ", op_.name, ": ", name_, ": ", beyond));
  }

  void WalkLoads(IndexId id) {
    const IndexNode node = pool_[id];
    if (!pool_.HasLoad(id)) return;
    if (node.kind == IndexKind::kLoad) {
      const NodeId tensor{static_cast<int32_t>(node.value)};
      const Argument* arg = nullptr;
      for (const Argument& a : op_.args) arg = a.node == tensor ? &a : arg;
      for (size_t i = 0; i < node.args.size(); ++i) {
        Stand(node.args[i], graph_.shape(tensor)[i], arg != nullptr ? arg->name : "a tensor", i);
      }
    }
    for (IndexId arg : node.args) WalkLoads(arg);
  }

  absl::Status WalkPlace(const IndexList& place, absl::string_view tensor, const Shape& shape) {
    for (IndexId e : place) NESTOR_RETURN_IF_ERROR(CheckScope(e));
    for (size_t i = 0; i < shape.size(); ++i) Stand(place[i], shape[i], tensor, i);
    for (IndexId e : place) WalkLoads(e);
    return absl::OkStatus();
  }

  absl::Status CheckRanges(size_t first) const {
    for (size_t i = first; i < stack_.size(); ++i) {
      if (stack_[i].range != IndexId()) continue;
      return Misuse(absl::StrCat("the index '", NameOf(stack_[i].variable), "' has no range: give NewIndex an extent"));
    }
    return absl::OkStatus();
  }

  absl::Status Walk(const NodePtr& node) {
    if (!walked_.insert(node.get()).second) return absl::OkStatus();
    if (node->form == Form::kReduce) return WalkReduction(*node);
    if (node->form == Form::kIndex) {
      NESTOR_ASSIGN_OR_RETURN(const IndexId id, builder_.Resolve(node->indices[0]));
      if (pool_.HasLoad(id)) return Misuse("an index value cannot hold a tensor's element: compute with the element as an Expr");
      return CheckScope(id);
    }
    if (node->form == Form::kAccess) {
      NESTOR_RETURN_IF_ERROR(CheckTensor(*node));
      NESTOR_ASSIGN_OR_RETURN(const IndexList place, PlaceAndConditions(*node));
      return WalkPlace(place, node->text, graph_.shape(node->tensor));
    }
    for (const NodePtr& arg : node->args) NESTOR_RETURN_IF_ERROR(Walk(arg));
    return absl::OkStatus();
  }

  absl::Status CheckTensor(const ExprNode& node) const {
    if (node.graph == nullptr || !node.tensor.valid()) return Misuse("a tensor handle that was never set");
    if (node.graph != &graph_) return Misuse(absl::StrCat("'", node.text, "' is a tensor of another builder"));
    const size_t rank = graph_.shape(node.tensor).size();
    if (rank == node.indices.size()) return absl::OkStatus();
    return Misuse(absl::StrCat("'", node.text, "' has ", rank, " dimensions and is given ", node.indices.size(), " indices"));
  }

  absl::StatusOr<IndexList> PlaceAndConditions(const ExprNode& node) {
    IndexList list;
    for (const IndexExpr& e : node.indices) {
      NESTOR_ASSIGN_OR_RETURN(const IndexId id, builder_.Resolve(e));
      list.push_back(id);
    }
    for (const Condition& c : node.conditions) {
      NESTOR_ASSIGN_OR_RETURN(const IndexId id, builder_.Resolve(IndexExpr(c.handle)));
      list.push_back(id);
    }
    return list;
  }

  absl::Status WalkReduction(const ExprNode& node) {
    auto outside = std::exchange(walked_, {});
    const size_t count = node.indices.size();
    for (const IndexExpr& index : node.indices) NESTOR_RETURN_IF_ERROR(Push(index));
    NESTOR_RETURN_IF_ERROR(Walk(node.args[0]));
    NESTOR_RETURN_IF_ERROR(CheckRanges(stack_.size() - count));
    reduced_[&node].assign(stack_.end() - static_cast<int64_t>(count), stack_.end());
    stack_.resize(stack_.size() - count);
    walked_ = std::move(outside);
    return absl::OkStatus();
  }

  // ---- Types

  absl::StatusOr<Type> Unify(Type a, Type b) const {
    for (Type* t : {&a, &b}) {
      if (t->type) t->type = t->Resolved();
    }
    if (a.type && b.type && *a.type != *b.type) {
      // A widened integer meets the same one unwidened.
      const bool widened = (a.index_value || b.index_value) && IsInteger(*a.type) && IsInteger(*b.type);
      return Misuse(absl::StrCat("types ", nestor::Name(*a.type), " and ", nestor::Name(*b.type), " do not mix", widened ? " (one is widened by an index)" : "", ": cast one"));
    }
    return Type{a.type ? a.type : b.type, a.float_literal || b.float_literal, a.index_value || b.index_value};
  }

  absl::StatusOr<Type> Infer(const NodePtr& node) {
    const auto it = types_.find(node.get());
    if (it != types_.end()) return it->second;
    NESTOR_ASSIGN_OR_RETURN(const Type type, InferNew(*node));
    return types_[node.get()] = type;
  }

  absl::StatusOr<Type> InferNew(const ExprNode& node) {
    switch (node.form) {
      case Form::kLiteral:
        if (node.type == DType::kBool) return Type{DType::kBool};
        return Type{absl::nullopt, node.type == DType::kF64};
      case Form::kParam: return Type{node.type};
      case Form::kIndex: return Type{absl::nullopt, false, true};
      case Form::kAccess: return Type{graph_.type(node.tensor)};
      case Form::kCast: {
        NESTOR_RETURN_IF_ERROR(Infer(node.args[0]).status());
        return Type{node.type};
      }
      case Form::kReduce: {
        NESTOR_ASSIGN_OR_RETURN(const Type body, Infer(node.args[0]));
        return IsArg(node.reduce) ? Type{DType::kI64} : body;
      }
      case Form::kMap: break;
    }
    const ScalarOpRow& row = Row(node.op);
    NESTOR_ASSIGN_OR_RETURN(const Type operands, OperandType(node));
    if (row.result == ResultType::kSame || row.result == ResultType::kChoice) return operands;
    const auto result = ResultTypeOf(node.op, operands.Resolved(), DType::kF32);
    if (result && row.result != ResultType::kTarget) return Type{*result};
    return Misuse(absl::StrCat("'", row.name, "' does not take ", nestor::Name(operands.Resolved())));
  }

  // What the operands (of `where`: the branches) of a map have in common.
  absl::StatusOr<Type> OperandType(const ExprNode& node) {
    const ScalarOpRow& row = Row(node.op);
    if (static_cast<int>(node.args.size()) != row.arity) {
      return Misuse(absl::StrCat("'", row.name, "' takes ", row.arity, " operands, is given ", node.args.size()));
    }
    Type all;
    for (size_t i = 0; i < node.args.size(); ++i) {
      NESTOR_ASSIGN_OR_RETURN(const Type operand, Infer(node.args[i]));
      if (row.result == ResultType::kChoice && i == 0) {
        NESTOR_RETURN_IF_ERROR(Unify(Type{DType::kBool}, operand).status());
      } else {
        NESTOR_ASSIGN_OR_RETURN(all, Unify(all, operand));
      }
    }
    return all;
  }

  // ---- Nodes

  NodeId Spread(const Value& value, const std::vector<int64_t>& axes) {
    std::vector<int> positions;
    for (int64_t v : value.axes) {
      positions.push_back(static_cast<int>(std::find(axes.begin(), axes.end(), v) - axes.begin()));
    }
    return graph_.AddBroadcast(value.node, ShapeOf(axes), positions);
  }
  Shape ShapeOf(const std::vector<int64_t>& axes) {
    Shape shape;
    for (int64_t v : axes) shape.push_back(Find(v)->range);
    return shape;
  }
  // Those of the stack's indices for which `used` holds.
  template <class Used>
  std::vector<int64_t> InOrder(Used used) const {
    std::vector<int64_t> axes = Variables();
    axes.erase(std::remove_if(axes.begin(), axes.end(), [&](int64_t v) { return !used(v); }), axes.end());
    return axes;
  }
  std::vector<int64_t> AxesOf(const IndexList& list) const {
    std::vector<int64_t> vars;
    for (IndexId e : list) CollectVars(pool_, e, vars);
    return InOrder([&](int64_t v) { return std::find(vars.begin(), vars.end(), v) != vars.end(); });
  }
  IndexList Renumber(IndexList list, const std::vector<int64_t>& axes) {
    IndexList positions(builder_.variables_.size(), pool_.Const(0));
    for (size_t i = 0; i < axes.size(); ++i) positions[axes[i]] = pool_.Var(static_cast<int64_t>(i));
    for (IndexId& e : list) e = SubstituteVars(pool_, e, positions);
    return list;
  }

  // REQUIRES: Infer(node) unifies with `type`.
  absl::StatusOr<Value> Build(const NodePtr& node, DType type) {
    const auto key = std::make_pair(node.get(), type);
    const auto it = built_.find(key);
    if (it != built_.end()) return it->second;
    NESTOR_ASSIGN_OR_RETURN(Value value, BuildNew(*node, type));
    value.node = graph_.AddCast(value.node, type);  // where an index value widens an integer
    return built_[key] = value;
  }

  absl::StatusOr<Value> BuildNew(const ExprNode& node, DType type) {
    switch (node.form) {
      case Form::kLiteral: {
        NESTOR_ASSIGN_OR_RETURN(const NodeId literal, Leaf(node, type));
        return Value{literal, {}};
      }
      case Form::kParam: return Value{graph_.AddParam(node.text, node.type), {}};
      case Form::kIndex: {
        if (type == DType::kBool) return Misuse("types bool and i64 (an index) do not mix: cast one");
        NESTOR_ASSIGN_OR_RETURN(const IndexId id, builder_.Resolve(node.indices[0]));
        const std::vector<int64_t> axes = AxesOf({id});
        return Value{graph_.AddCast(graph_.AddIndex(Renumber({id}, axes)[0], ShapeOf(axes)), type), axes};
      }
      case Form::kAccess: return BuildAccess(node);
      case Form::kCast: return BuildCast(node);
      case Form::kReduce: return BuildReduction(node, type);
      case Form::kMap: return BuildMap(node, type);
    }
    return Misuse("expected a value");
  }

  absl::StatusOr<Value> BuildCast(const ExprNode& node) {
    NESTOR_ASSIGN_OR_RETURN(const Type operand, Infer(node.args[0]));
    const bool literal = node.args[0]->form == Form::kLiteral && !operand.type;
    NESTOR_ASSIGN_OR_RETURN(Value value, Build(node.args[0], literal ? node.type : operand.Resolved()));
    value.node = graph_.AddCast(value.node, node.type);
    return value;
  }

  // A literal or $param.
  absl::StatusOr<NodeId> Leaf(const ExprNode& node, DType type) {
    if (node.form == Form::kParam && node.type == type) return graph_.AddParam(node.text, type);
    if (node.form == Form::kParam) {
      return Misuse(absl::StrCat("the fill ", node.text, " is ", nestor::Name(node.type), ", the tensor ", nestor::Name(type)));
    }
    if (node.form != Form::kLiteral) return Misuse("a fill is a literal or a bool or float $param");
    const auto value = ParseLiteral(node.text, type);
    if (value) return graph_.AddConstant(*value);
    return Misuse(absl::StrCat("the literal '", node.text, "' does not fit ", nestor::Name(type)));
  }

  absl::StatusOr<Value> BuildAccess(const ExprNode& node) {
    NESTOR_ASSIGN_OR_RETURN(IndexList list, PlaceAndConditions(node));
    NodeId fill;
    if (!node.args.empty()) {
      NESTOR_ASSIGN_OR_RETURN(fill, Leaf(*node.args[0], graph_.type(node.tensor)));
    }
    const std::vector<int64_t> axes = AxesOf(list);
    list = Renumber(std::move(list), axes);
    IndexList conditions(list.begin() + static_cast<int64_t>(node.indices.size()), list.end());
    list.resize(node.indices.size());
    return Value{graph_.AddReindex(node.tensor, ShapeOf(axes), std::move(list), fill, std::move(conditions)), axes};
  }

  absl::StatusOr<Value> BuildReduction(const ExprNode& node, DType type) {
    DType body_type = type;
    if (IsArg(node.reduce)) {
      NESTOR_ASSIGN_OR_RETURN(const Type body, Infer(node.args[0]));
      body_type = body.Resolved();
    }
    if (!ReduceResultType(node.reduce, body_type)) {
      return Misuse(absl::StrCat("'", nestor::Name(node.reduce), "' does not take ", nestor::Name(body_type)));
    }
    const std::vector<Bound>& own = reduced_.at(&node);
    auto outside = std::exchange(built_, {});
    stack_.insert(stack_.end(), own.begin(), own.end());
    NESTOR_ASSIGN_OR_RETURN(const Value body, Build(node.args[0], body_type));
    std::vector<int64_t> kept = body.axes, all;
    kept.erase(std::remove_if(kept.begin(), kept.end(), [&](int64_t v) {
                 return std::any_of(own.begin(), own.end(), [&](const Bound& b) { return b.variable == v; });
               }), kept.end());
    all = kept;
    std::vector<int> axes;
    for (const Bound& bound : own) {
      axes.push_back(static_cast<int>(all.size()));
      all.push_back(bound.variable);
    }
    const NodeId result = graph_.AddReduce(node.reduce, Spread(body, all), axes);
    stack_.resize(stack_.size() - own.size());
    built_ = std::move(outside);
    return Value{result, std::move(kept)};
  }

  absl::StatusOr<Value> BuildMap(const ExprNode& node, DType type) {
    const ScalarOpRow& row = Row(node.op);
    NESTOR_ASSIGN_OR_RETURN(const Type common, OperandType(node));
    const bool same = row.result == ResultType::kSame || row.result == ResultType::kChoice;
    const DType operand_type = same ? type : common.Resolved();
    const ScalarOp op = node.op == ScalarOp::kDiv && IsInteger(operand_type) ? ScalarOp::kFloorDiv : node.op;
    if (!ResultTypeOf(op, operand_type, DType::kF32)) {
      return Misuse(absl::StrCat("'", Row(op).name, "' takes ", Describe(Row(op).operands), ", is given ", nestor::Name(operand_type)));
    }
    std::vector<Value> operands;
    for (size_t i = 0; i < node.args.size(); ++i) {
      const bool condition = row.result == ResultType::kChoice && i == 0;
      NESTOR_ASSIGN_OR_RETURN(Value operand, Build(node.args[i], condition ? DType::kBool : operand_type));
      operands.push_back(std::move(operand));
    }
    const std::vector<int64_t> axes = InOrder([&](int64_t v) {
      return std::any_of(operands.begin(), operands.end(), [&](const Value& o) {
        return std::find(o.axes.begin(), o.axes.end(), v) != o.axes.end();
      });
    });
    NodeList args;
    for (const Value& operand : operands) args.push_back(Spread(operand, axes));
    return Value{graph_.AddMap(op, args), axes};
  }

  OpBuilder& builder_;
  Op& op_;
  Graph& graph_;
  IndexPool& pool_;
  const std::string name_;
  const bool scatter_;
  std::vector<Bound> stack_;
  size_t left_ = 0;  // how many of the stack are the statement's own
  absl::flat_hash_set<const ExprNode*> walked_;
  absl::flat_hash_map<const ExprNode*, std::vector<Bound>> reduced_;
  absl::flat_hash_map<const ExprNode*, Type> types_;
  absl::flat_hash_map<std::pair<const ExprNode*, DType>, Value> built_;
};

// ---- The builder

OpBuilder::OpBuilder(absl::string_view name) {
  op_.name = std::string(name);
  Keep(Claim(name, "op"), "its name");
  names_.clear();  // an op may bear the name of a tensor
}

void OpBuilder::Keep(const absl::Status& status, absl::string_view where) {
  if (status.ok() || !first_error_.ok()) return;
  first_error_ = absl::InvalidArgumentError(absl::StrCat("op ", op_.name, ": ", where, ": ", status.message()));
}

absl::Status OpBuilder::Claim(absl::string_view name, absl::string_view what) {
  const absl::string_view word = what == "parameter" && !name.empty() ? name.substr(1) : name;
  bool fits = !word.empty() && !absl::ascii_isdigit(static_cast<unsigned char>(word[0])) && !IsReserved(word);
  if (what == "parameter") fits &= name[0] == '$';
  if (what == "op") fits &= !ScalarOpByName(name);
  for (char c : word) fits &= c == '_' || absl::ascii_isalnum(static_cast<unsigned char>(c));
  if (!fits) return Misuse(absl::StrCat("'", name, "' cannot be the name of a ", what));
  if (std::find(names_.begin(), names_.end(), name) != names_.end()) return Misuse(absl::StrCat("'", name, "' is already defined"));
  names_.push_back(std::string(name));
  return absl::OkStatus();
}

absl::StatusOr<IndexId> OpBuilder::Resolve(const IndexExpr& index) {
  const IndexHandle& h = index.handle;
  if (!h.error.empty()) return Misuse(h.error);
  if (h.graph == nullptr) return op_.graph.pool().Const(h.constant);
  if (h.graph != &op_.graph) return Misuse("an index of another builder");
  return h.id;
}

absl::StatusOr<IndexId> OpBuilder::ResolveExtent(const IndexExpr& index) {
  NESTOR_ASSIGN_OR_RETURN(const IndexId id, Resolve(index));
  if (op_.graph.pool().HasVar(id)) return Misuse("an extent cannot hold an index");
  if (op_.graph.pool().HasLoad(id)) return Misuse("an extent cannot depend on a tensor's values");
  return id;
}

absl::StatusOr<NodeId> OpBuilder::NodeOf(const TensorRef& tensor) const {
  if (tensor.graph_ == nullptr || !tensor.node_.valid()) return Misuse("a tensor handle that was never set");
  if (tensor.graph_ != &op_.graph) return Misuse(absl::StrCat("'", tensor.name_, "' is a tensor of another builder"));
  return tensor.node_;
}

IndexExpr OpBuilder::Dimension(absl::string_view name) {
  Keep(Claim(name, "dimension"), absl::StrCat("dimension ", name));
  dimensions_.push_back(std::string(name));
  return IndexExpr(IndexHandle{&op_.graph, op_.graph.pool().Symbol(name), 0, ""});
}

absl::Status OpBuilder::AddArgument(absl::string_view name, DType type, const std::vector<IndexExpr>& shape,
                                    bool shape_only) {
  NESTOR_RETURN_IF_ERROR(Claim(name, "argument"));
  Shape extents;
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    const absl::StatusOr<IndexId> extent = ResolveExtent(shape[axis]);
    if (!extent.ok()) return Misuse(absl::StrCat("axis ", axis, ": ", extent.status().message()));
    extents.push_back(*extent);
  }
  const NodeId node = op_.graph.AddInput(name, type, extents);
  op_.args.push_back({std::string(name), type, std::move(extents), shape_only, node});
  return absl::OkStatus();
}

TensorRef OpBuilder::Input(absl::string_view name, DType type, const std::vector<IndexExpr>& shape) {
  const absl::Status status = AddArgument(name, type, shape, false);
  Keep(status, absl::StrCat("argument ", name));
  return TensorRef(&op_.graph, status.ok() ? op_.args.back().node : NodeId(), std::string(name));
}

void OpBuilder::ShapeInput(absl::string_view name, DType type, const std::vector<IndexExpr>& shape) {
  Keep(AddArgument(name, type, shape, true), absl::StrCat("argument ", name));
}

absl::Status OpBuilder::AddParam(absl::string_view name, DType type, const ParamLimits& limits) {
  NESTOR_RETURN_IF_ERROR(Claim(name, "parameter"));
  ParamInfo info{std::string(name), type, {}, {}, {}};
  const std::pair<const absl::optional<Expr>*, absl::optional<Scalar>*> literals[] = {
      {&limits.value, &info.value}, {&limits.low, &info.low}, {&limits.high, &info.high}};
  for (const auto& [expr, scalar] : literals) {
    if (!*expr) continue;
    const ExprNode& node = *(*expr)->node();
    if (node.form == Form::kLiteral) *scalar = ParseLiteral(node.text, type);
    if (!*scalar) return Misuse(absl::StrCat("its default and limits must be literals that fit ", nestor::Name(type)));
  }
  op_.params.push_back(std::move(info));
  return absl::OkStatus();
}

Expr OpBuilder::Param(absl::string_view name, DType type, const ParamLimits& limits) {
  Keep(AddParam(name, type, limits), absl::StrCat("parameter ", name));
  if (IsInteger(type)) return IndexExpr(IndexHandle{&op_.graph, op_.graph.pool().Symbol(name), 0, ""});
  return Wrap({Form::kParam, type, std::string(name)});
}

IndexExpr OpBuilder::IndexParam(absl::string_view name, const ParamLimits& limits) {
  return AsIndex(Param(name, DType::kI64, limits));
}

void OpBuilder::Result(absl::string_view name, const TensorRef& tensor) {
  const std::string where = absl::StrCat("result ", name);
  const absl::StatusOr<NodeId> node = NodeOf(tensor);
  Keep(node.status(), where);
  if (!node.ok()) return;
  const Argument* arg = op_.FindArgument(name);  // an argument can be a result by its own name
  if (arg == nullptr || arg->node != *node || op_.FindResult(name) != nullptr) Keep(Claim(name, "result"), where);
  op_.results.push_back({std::string(name), *node});
}

void OpBuilder::SetGradient(Op gradient) { op_.gradient = std::make_shared<const Op>(std::move(gradient)); }

IndexExpr OpBuilder::NewIndex(absl::string_view name) {
  variables_.push_back({std::string(name), absl::nullopt});
  return IndexExpr(IndexHandle{&op_.graph, op_.graph.pool().Var(static_cast<int64_t>(variables_.size()) - 1), 0, ""});
}

IndexExpr OpBuilder::NewIndex(absl::string_view name, const IndexExpr& extent) {
  IndexExpr index = NewIndex(name);
  const absl::StatusOr<IndexId> limit = ResolveExtent(extent);
  Keep(limit.status(), absl::StrCat("index ", name));
  if (limit.ok()) variables_.back().extent = *limit;
  return index;
}

TensorRef OpBuilder::Define(const std::vector<IndexExpr>& indices, const Expr& body) {
  const std::string name = absl::StrCat("definition ", ++statements_);
  if (!first_error_.ok()) return TensorRef();
  const absl::StatusOr<NodeId> node = StatementBuilder(*this, name, false).Define(indices, body);
  Keep(node.status(), name);
  return node.ok() ? TensorRef(&op_.graph, *node, name) : TensorRef();
}

TensorRef OpBuilder::Scatter(ReduceOp op, DType type, const std::vector<IndexExpr>& shape,
                             const std::vector<Place>& places, const Expr& body) {
  const std::string name = absl::StrCat("scatter ", ++statements_);
  Shape extents;
  for (const IndexExpr& extent : shape) {
    const absl::StatusOr<IndexId> id = ResolveExtent(extent);
    Keep(id.status(), name);
    extents.push_back(id.ok() ? *id : op_.graph.pool().Const(0));
  }
  if (!first_error_.ok()) return TensorRef();
  const absl::StatusOr<NodeId> node = StatementBuilder(*this, name, true).Scatter(op, type, std::move(extents), places, body);
  Keep(node.status(), name);
  return node.ok() ? TensorRef(&op_.graph, *node, name) : TensorRef();
}

absl::Status OpBuilder::BindCall(const Op& callee, const std::vector<TensorRef>& args,
                                 const std::vector<std::pair<std::string, Expr>>& values,
                                 std::vector<TensorRef>& results) {
  std::vector<NodeId> nodes;
  for (const TensorRef& arg : args) {
    NESTOR_ASSIGN_OR_RETURN(const NodeId node, NodeOf(arg));
    nodes.push_back(node);
  }
  CallBindings bindings;
  for (const auto& [name, value] : values) {
    const ParamInfo* param = callee.FindParam(name);
    bool known = param != nullptr;
    for (const Argument& arg : callee.args) {
      for (IndexId extent : arg.shape) {
        VisitIndex(callee.graph.pool(), extent, [&, wanted = absl::string_view(name)](IndexId id, const IndexNode& node) {
          known |= node.kind == IndexKind::kSymbol && callee.graph.pool().SymbolName(id) == wanted;
        });
      }
    }
    if (!known) return Misuse(absl::StrCat("it has no parameter or dimension '", name, "'"));
    const ExprNode& node = *value.node();
    if (param == nullptr || IsInteger(param->type)) {
      NESTOR_ASSIGN_OR_RETURN(bindings.indices[name], ResolveExtent(AsIndex(value)));
    } else if (node.form == Form::kIndex && param->type != DType::kBool) {
      NESTOR_ASSIGN_OR_RETURN(const IndexId index, ResolveExtent(node.indices[0]));
      bindings.values[name] = op_.graph.AddCast(op_.graph.AddIndex(index, {}), param->type);
    } else if (node.form == Form::kParam && node.type == param->type) {
      bindings.values[name] = op_.graph.AddParam(node.text, node.type);
    } else {
      const auto literal = node.form == Form::kLiteral ? ParseLiteral(node.text, param->type) : absl::nullopt;
      if (!literal) return Misuse(absl::StrCat(name, " takes a literal or $param that fits ", nestor::Name(param->type)));
      bindings.values[name] = op_.graph.AddConstant(*literal);
    }
  }
  NESTOR_ASSIGN_OR_RETURN(const std::vector<NodeId> made, CallOp(callee, nodes, bindings, op_));
  for (size_t i = 0; i < made.size(); ++i) {
    results[i] = TensorRef(&op_.graph, made[i], absl::StrCat(callee.name, "'s ", callee.results[i].name));
  }
  return absl::OkStatus();
}

std::vector<TensorRef> OpBuilder::Call(const Op& callee, const std::vector<TensorRef>& args,
                                       const std::vector<std::pair<std::string, Expr>>& bindings) {
  std::vector<TensorRef> results(callee.results.size());
  if (first_error_.ok()) Keep(BindCall(callee, args, bindings, results), absl::StrCat("call of ", callee.name));
  return results;
}

absl::Status OpBuilder::CheckSignature() const {
  const auto fail = [&](absl::string_view message) { return Misuse(absl::StrCat("op ", op_.name, ": ", message)); };
  if (op_.results.empty()) return fail("it has no result");
  const IndexPool& pool = op_.graph.pool();
  for (const std::string& dimension : dimensions_) {
    bool found = false;
    for (const Argument& arg : op_.args) {
      for (IndexId extent : arg.shape) {
        VisitIndex(pool, extent, [&](IndexId id, const IndexNode& node) {
          found |= node.kind == IndexKind::kSymbol && pool.SymbolName(id) == dimension;
        });
      }
    }
    if (!found) return fail(absl::StrCat("dimension ", dimension, " is in no argument's shape"));
  }
  if (op_.gradient == nullptr) return absl::OkStatus();
  for (const Argument& arg : op_.gradient->args) {
    const bool adjoint = arg.name.rfind("g_", 0) == 0 && op_.FindResult(arg.name.substr(2)) != nullptr;
    if (adjoint || op_.FindArgument(arg.name) != nullptr || op_.FindResult(arg.name) != nullptr) continue;
    return fail(absl::StrCat("its gradient's argument ", arg.name, " is neither g_<result> nor an argument or result"));
  }
  for (const nestor::Result& result : op_.gradient->results) {
    if (result.name.rfind("g_", 0) == 0 && op_.FindArgument(result.name.substr(2)) != nullptr) continue;
    return fail(absl::StrCat("its gradient's result ", result.name, " is not g_<argument>"));
  }
  return absl::OkStatus();
}

absl::StatusOr<Op> OpBuilder::Build() const {
  NESTOR_RETURN_IF_ERROR(first_error_);
  NESTOR_RETURN_IF_ERROR(CheckSignature());
  return op_;
}

}  // namespace nestor
