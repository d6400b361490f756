// Define and Scatter hand the expressions of builder.h over to statement_builder.h, as the notation
// does. Hence the two front ends cannot differ in what a program means.
//
// A misuse does not stop the caller: the builder keeps the first error that it sees (Keep); later
// calls return empty handles, which cause no error of their own.
//
// Handles are numbered in the builder: the pool's Var(i) is the i-th NewIndex until a node is made,
// which numbers its axes from 0.
#include "uops/builder.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "uops/call.h"
#include "uops/invariant.h"
#include "uops/notation/parser.h"
#include "uops/recurrence.h"
#include "uops/statement_builder.h"

namespace nestor {

using internal::ExprNode;
using internal::Form;
using internal::HandleOf;
using internal::IndexHandle;

namespace {

absl::Status Misuse(absl::string_view message) { return absl::InvalidArgumentError(message); }

}  // namespace

OpBuilder::~OpBuilder() = default;

OpBuilder::OpBuilder(absl::string_view name) {
  op_.name = std::string(name);
  Keep(Claim(name, "op"), "its name");
  names_.clear();  // an op may bear the name of a tensor
}

void OpBuilder::Keep(const absl::Status& status, absl::string_view where) {
  if (status.ok() || !first_error_.ok()) return;
  first_error_ = absl::InvalidArgumentError(
      absl::StrCat("op ", op_.name, ": ", where, ": ", status.message()));
}

// Names must be such that the text of the op can be read back: words that are not reserved, and
// unique.
absl::Status OpBuilder::Claim(absl::string_view name, absl::string_view what) {
  const absl::string_view word = what == "parameter" && !name.empty() ? name.substr(1) : name;
  bool fits = IsName(word);
  if (what == "parameter") fits &= name[0] == '$';
  if (what == "op") fits &= !ScalarOpByName(name);
  if (!fits) return Misuse(absl::StrCat("'", name, "' cannot be the name of a ", what));
  if (std::find(names_.begin(), names_.end(), name) != names_.end())
    return Misuse(absl::StrCat("'", name, "' is already defined"));
  names_.push_back(std::string(name));
  return absl::OkStatus();
}

// Extents are numbers over dimensions and $params, so that shapes are known before anything runs.
absl::StatusOr<IndexId> OpBuilder::ResolveExtent(const IndexExpr& index) {
  NESTOR_ASSIGN_OR_RETURN(const IndexId id, ResolveIndex(op_.graph, index.handle));
  if (op_.graph.pool().HasVar(id)) return Misuse("an extent cannot hold an index");
  if (op_.graph.pool().HasLoad(id)) return Misuse("an extent cannot depend on a tensor's values");
  return id;
}

// Numbers of nodes mean nothing in another graph: a handle knows its own.
absl::StatusOr<NodeId> OpBuilder::NodeOf(const TensorRef& tensor) const {
  if (tensor.graph_ == nullptr || !tensor.node_.valid())
    return Misuse("a tensor handle that was never set");
  if (tensor.graph_ != &op_.graph)
    return Misuse(absl::StrCat("'", tensor.name_, "' is a tensor of another builder"));
  return tensor.node_;
}

IndexExpr OpBuilder::Dimension(absl::string_view name) {
  Keep(Claim(name, "dimension"), absl::StrCat("dimension ", name));
  dimensions_.push_back(std::string(name));
  return IndexExpr(HandleOf(op_.graph, op_.graph.pool().Symbol(name)));
}

absl::Status OpBuilder::AddArgument(absl::string_view name, DType type,
                                    const std::vector<IndexExpr>& shape, bool shape_only) {
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

TensorRef OpBuilder::Input(absl::string_view name, DType type,
                           const std::vector<IndexExpr>& shape) {
  const absl::Status status = AddArgument(name, type, shape, false);
  Keep(status, absl::StrCat("argument ", name));
  return TensorRef(&op_.graph, status.ok() ? op_.args.back().node : NodeId(), std::string(name));
}

void OpBuilder::ShapeInput(absl::string_view name, DType type,
                           const std::vector<IndexExpr>& shape) {
  Keep(AddArgument(name, type, shape, true), absl::StrCat("argument ", name));
}

// Literals are read as the text of one would be, so that 0.1 of f32 is rounded once.
absl::Status OpBuilder::AddParam(absl::string_view name, DType type, const ParamLimits& limits) {
  NESTOR_RETURN_IF_ERROR(Claim(name, "parameter"));
  ParamInfo info{std::string(name), type, {}, {}, {}};
  const struct {
    const absl::optional<Expr>& given;
    absl::optional<Scalar>& scalar;
    absl::string_view no_limit;  // empty for the default
  } literals[] = {{limits.value, info.value, ""},
                  {limits.low, info.low, "-inf"},
                  {limits.high, info.high, "inf"}};
  for (const auto& [given, scalar, no_limit] : literals) {
    if (!given) continue;
    const ExprNode& node = *given->node();
    const bool is_literal = node.form == Form::kLiteral;
    if (is_literal && node.text == no_limit) continue;
    if (is_literal) scalar = ParseParamLiteral(node.text, type);
    if (!scalar)
      return Misuse(
          absl::StrCat("its default and limits must be literals that fit ", nestor::Name(type)));
    if (!no_limit.empty() && !std::isfinite(scalar->ToDouble()))
      return Misuse(absl::StrCat("a limit must be a number or ", no_limit, ", which is none"));
  }
  op_.params.push_back(std::move(info));
  return absl::OkStatus();
}

Expr OpBuilder::Param(absl::string_view name, DType type, const ParamLimits& limits) {
  Keep(AddParam(name, type, limits), absl::StrCat("parameter ", name));
  if (IsInteger(type)) return IndexExpr(HandleOf(op_.graph, op_.graph.pool().Symbol(name)));
  return Expr(internal::MakeNode({Form::kParam, type, std::string(name)}));
}

IndexExpr OpBuilder::IndexParam(absl::string_view name, const ParamLimits& limits) {
  return AsIndex(Param(name, DType::kI64, limits));
}

// The tensor is looked at first: a misuse that it carries says more than a name that is taken.
void OpBuilder::Result(absl::string_view name, const TensorRef& tensor) {
  const std::string where = absl::StrCat("result ", name);
  const absl::StatusOr<NodeId> node = NodeOf(tensor);
  Keep(node.status(), where);
  if (!node.ok()) return;
  const Argument* arg = op_.FindArgument(name);  // an argument can be a result by its own name
  if (arg == nullptr || arg->node != *node || op_.FindResult(name) != nullptr)
    Keep(Claim(name, "result"), where);
  op_.results.push_back({std::string(name), *node});
}

void OpBuilder::SetGradient(Op gradient) {
  op_.gradient = std::make_shared<const Op>(std::move(gradient));
}

// Any statement may use the index; in each it has the range that this statement gives it.
IndexExpr OpBuilder::NewIndex(absl::string_view name) {
  IndexHandle handle =
      HandleOf(op_.graph, op_.graph.pool().Var(static_cast<int64_t>(variables_.size())));
  handle.alone = true;
  variables_.push_back({std::string(name)});
  return IndexExpr(std::move(handle));
}

IndexExpr OpBuilder::NewIndex(absl::string_view name, const IndexExpr& extent) {
  IndexExpr index = NewIndex(name);
  const absl::StatusOr<IndexId> limit = ResolveExtent(extent);
  Keep(limit.status(), absl::StrCat("index ", name));
  if (limit.ok()) variables_.back().extent = *limit;
  return index;
}

// The one place where both kinds of statements are built; after an error it builds nothing.
TensorRef OpBuilder::Build(internal::Statement statement) {
  if (!first_error_.ok()) return TensorRef();
  statement.variables = variables_;
  const absl::StatusOr<NodeId> node = BuildStatement(statement, op_);
  Keep(node.status(), statement.name);
  return node.ok() ? TensorRef(&op_.graph, *node, statement.name) : TensorRef();
}

TensorRef OpBuilder::Define(const std::vector<IndexExpr>& indices, const Expr& body) {
  internal::Statement statement;
  statement.name = absl::StrCat("definition ", ++statements_);
  for (const IndexExpr& index : indices) statement.indices.push_back(index.handle);
  statement.body = body.node();
  return Build(std::move(statement));
}

// A wrong extent is noted as the first error and replaced by 0, so that the caller's code runs on.
TensorRef OpBuilder::Scatter(ReduceOp op, DType type, const std::vector<IndexExpr>& shape,
                             const std::vector<Place>& places, const Expr& body) {
  internal::Statement statement;
  statement.name = absl::StrCat("scatter ", ++statements_);
  statement.scatter = internal::ScatterTarget{op, type, {}, {}};
  for (const IndexExpr& extent : shape) {
    const absl::StatusOr<IndexId> id = ResolveExtent(extent);
    Keep(id.status(), statement.name);
    statement.scatter->shape.push_back(id.ok() ? *id : op_.graph.pool().Const(0));
  }
  for (const Place& place : places) statement.scatter->place.push_back(place.index.handle);
  statement.body = body.node();
  return Build(std::move(statement));
}

// Arguments by position, $params and dimensions by name, each as an index or as a rank-0 value.
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
        VisitIndex(callee.graph.pool(), extent,
                   [&, wanted = absl::string_view(name)](IndexId id, const IndexNode& node) {
                     known |= node.kind == IndexKind::kSymbol &&
                              callee.graph.pool().SymbolName(id) == wanted;
                   });
      }
    }
    if (!known) return Misuse(absl::StrCat("it has no parameter or dimension '", name, "'"));
    const ExprNode& node = *value.node();
    if (param == nullptr || IsInteger(param->type)) {
      NESTOR_ASSIGN_OR_RETURN(bindings.indices[name], ResolveExtent(AsIndex(value)));
    } else if (node.form == Form::kIndex && param->type != DType::kBool) {
      NESTOR_ASSIGN_OR_RETURN(const IndexId index, ResolveExtent(IndexExpr(node.indices[0])));
      bindings.values[name] = op_.graph.AddCast(op_.graph.AddIndex(index, {}), param->type);
    } else if (node.form == Form::kParam && node.type == param->type) {
      bindings.values[name] = op_.graph.AddParam(node.text, node.type);
    } else {
      const auto literal =
          node.form == Form::kLiteral ? ParseLiteral(node.text, param->type) : absl::nullopt;
      if (!literal)
        return Misuse(
            absl::StrCat(name, " takes a literal or $param that fits ", nestor::Name(param->type)));
      bindings.values[name] = op_.graph.AddConstant(*literal);
    }
  }
  NESTOR_ASSIGN_OR_RETURN(const std::vector<NodeId> made, CallOp(callee, nodes, bindings, op_));
  for (size_t i = 0; i < made.size(); ++i) {
    results[i] =
        TensorRef(&op_.graph, made[i], absl::StrCat(callee.name, "'s ", callee.results[i].name));
  }
  return absl::OkStatus();
}

std::vector<TensorRef> OpBuilder::Call(const Op& callee, const std::vector<TensorRef>& args,
                                       const std::vector<std::pair<std::string, Expr>>& bindings) {
  std::vector<TensorRef> results(callee.results.size());
  if (first_error_.ok())
    Keep(BindCall(callee, args, bindings, results), absl::StrCat("call of ", callee.name));
  return results;
}

// A node without a meaning of its own, until Settle gives it one.
TensorRef OpBuilder::Carry(DType type, const std::vector<IndexExpr>& shape, int axis,
                           bool backward) {
  Shape extents;
  for (const IndexExpr& extent : shape) {
    const absl::StatusOr<IndexId> id = ResolveExtent(extent);
    Keep(id.status(), "carry");
    if (id.ok()) extents.push_back(*id);
  }
  if (!first_error_.ok()) return TensorRef();
  if (axis < 0 || axis >= static_cast<int>(extents.size())) {
    Keep(Misuse(absl::StrCat("it has no axis ", axis, " but ", extents.size(), " axes")), "carry");
    return TensorRef();
  }
  return TensorRef(&op_.graph, op_.graph.AddCarry(type, std::move(extents), axis, backward),
                   "carry");
}

// A Settler takes correct equations only, so everything is checked before.
absl::StatusOr<std::vector<TensorRef>> OpBuilder::SettleEquations(
    const std::vector<std::pair<TensorRef, TensorRef>>& equations,
    const std::vector<TensorRef>& tensors) {
  std::vector<Equation> nodes;
  for (const auto& [carry, body] : equations) {
    NESTOR_ASSIGN_OR_RETURN(const NodeId carry_node, NodeOf(carry));
    NESTOR_ASSIGN_OR_RETURN(const NodeId body_node, NodeOf(body));
    nodes.push_back({carry_node, body_node});
  }
  std::vector<NodeId> roots;
  for (const TensorRef& tensor : tensors) {
    NESTOR_ASSIGN_OR_RETURN(const NodeId root, NodeOf(tensor));
    roots.push_back(root);
  }
  const std::string misuse = EquationsMisuse(
      op_.graph, nodes, roots, [&](IndexId lag) { return internal::IsLag(op_, lag); });
  if (!misuse.empty()) return Misuse(misuse);
  Settler settler(op_.graph, std::move(nodes));
  std::vector<TensorRef> settled;
  for (size_t i = 0; i < roots.size(); ++i)
    settled.push_back(TensorRef(&op_.graph, settler.Settle(roots[i]), tensors[i].name_));
  return settled;
}

// After an error the results are tensors of nothing: Finish reports the error.
std::vector<TensorRef> OpBuilder::Settle(
    const std::vector<std::pair<TensorRef, TensorRef>>& equations,
    const std::vector<TensorRef>& tensors) {
  std::vector<TensorRef> results(tensors.size());
  if (!first_error_.ok()) return results;
  absl::StatusOr<std::vector<TensorRef>> settled = SettleEquations(equations, tensors);
  Keep(settled.status(), "recurrence");
  return settled.ok() ? *std::move(settled) : results;
}

// Checks things that only the finished op shows: results, carries that were never settled,
// dimensions that no argument binds, names of a gradient given by hand.
absl::Status OpBuilder::CheckSignature() const {
  const auto fail = [&](absl::string_view message) {
    return Misuse(absl::StrCat("op ", op_.name, ": ", message));
  };
  if (op_.results.empty()) return fail("it has no result");
  std::vector<NodeId> views;
  for (int i = 0; i < op_.graph.size(); ++i) {
    if (op_.graph.As<Recurrence>(NodeId{i}) != nullptr) views.push_back(NodeId{i});
  }
  const std::vector<bool> live = Reachable(op_.graph, op_.ResultNodes(), views);
  for (int i = 0; i < op_.graph.size(); ++i) {
    if (live[i] && op_.graph.As<nestor::Carry>(NodeId{i}) != nullptr)
      return fail("a result depends on a carry: give what Settle returns");
  }
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
    const bool adjoint =
        arg.name.rfind("g_", 0) == 0 && op_.FindResult(arg.name.substr(2)) != nullptr;
    if (adjoint || op_.FindArgument(arg.name) != nullptr || op_.FindResult(arg.name) != nullptr)
      continue;
    return fail(absl::StrCat("its gradient's argument ", arg.name,
                             " is neither g_<result> nor an argument or result"));
  }
  for (const nestor::Result& result : op_.gradient->results) {
    if (result.name.rfind("g_", 0) == 0 && op_.FindArgument(result.name.substr(2)) != nullptr)
      continue;
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
