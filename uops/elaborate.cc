// Each expression becomes a node over just the indices that it mentions; where
// two meet, both are repeated over the indices of either. So a reduction that
// stands inside an elementwise expression is computed once per point that it
// depends on, and what an expression costs does not depend on how it is spread
// over statements.
#include "uops/elaborate.h"

#include <algorithm>
#include <cmath>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "uops/call.h"
#include "uops/environment.h"
#include "uops/invariant.h"
#include "uops/lexer.h"
#include "uops/statement_scope.h"
#include "uops/type_inference.h"

namespace nestor {
namespace {

using ast::Expr;
using ast::ExprKind;

absl::Status CheckSize(const Graph& graph, const ast::Position& position) {
  if (graph.size() <= kMostMicroOps) return absl::OkStatus();
  return ErrorAt(position, absl::StrCat("the program grows beyond ", kMostMicroOps, " micro-ops"));
}

// ---- Values

// A node and, for each of its axes, the instance that runs along it.
struct Value {
  NodeId node;
  std::vector<int> axes;
};

class ValueBuilder {
 public:
  ValueBuilder(Environment& environment, const StatementScope& scope, const TypeInference& types)
      : environment_(environment), graph_(environment.op.graph), scope_(scope), types_(types) {}

  absl::StatusOr<Value> Build(const Expr& expr) {
    NESTOR_ASSIGN_OR_RETURN(Value value, BuildUnwidened(expr));
    value.node = graph_.AddCast(value.node, types_.TypeOf(expr));
    return value;
  }

  // `value` repeated over `axes`, in that order.
  NodeId Spread(const Value& value, const std::vector<int>& axes) {
    std::vector<int> positions;
    for (int instance : value.axes) {
      positions.push_back(static_cast<int>(std::find(axes.begin(), axes.end(), instance) - axes.begin()));
    }
    return graph_.AddBroadcast(value.node, ShapeOf(axes), positions);
  }

 private:
  Shape ShapeOf(const std::vector<int>& axes) const {
    Shape shape;
    for (int instance : axes) shape.push_back(scope_.range(instance));
    return shape;
  }

  absl::StatusOr<Value> BuildUnwidened(const Expr& expr) {
    if (scope_.IsIntegerLiteral(expr)) return BuildIntegerLiteral(expr, types_.TypeOf(expr));
    if (scope_.IsIndexValue(expr)) return BuildIndex(expr, scope_.IndexOf(expr, true), types_.TypeOf(expr));
    switch (expr.kind) {
      case ExprKind::kLiteral: return BuildLiteral(expr, types_.TypeOf(expr));
      case ExprKind::kName:
      case ExprKind::kAccess: return BuildAccess(expr);
      case ExprKind::kParam: {
        return Value{graph_.AddParam(expr.text, environment_.params.at(expr.text)), {}};
      }
      case ExprKind::kReduction: return BuildReduction(expr);
      case ExprKind::kPrefix: {
        const ScalarOp op = FindPrefix(expr.text)->op;
        NESTOR_ASSIGN_OR_RETURN(Value operand, Build(*expr.args[0]));
        return Apply(op, absl::MakeSpan(&operand, 1), expr.position);
      }
      case ExprKind::kCall: return BuildFunction(expr);
      case ExprKind::kChain: return BuildChain(expr);
      case ExprKind::kSize: break;
    }
    return ErrorAt(expr.position, "expected a value");
  }

  absl::StatusOr<Value> BuildLiteral(const Expr& expr, DType type) {
    const auto value = ParseLiteral(expr.text, type);
    if (value) return Value{graph_.AddConstant(*value), {}};
    return ErrorAt(expr.position, absl::StrCat("the literal '", expr.text, "' does not fit ", Name(type)));
  }

  absl::StatusOr<Value> BuildIntegerLiteral(const Expr& expr, DType type) {
    if (expr.kind == ExprKind::kLiteral) return BuildLiteral(expr, type);
    NESTOR_ASSIGN_OR_RETURN(const IndexId index, scope_.IndexOf(expr, true));
    return FoldedLiteral(expr, index, type);
  }

  absl::StatusOr<Value> FoldedLiteral(const Expr& expr, IndexId index, DType type) {
    const auto value = graph_.pool().ConstValue(index);
    if (!value) return ErrorAt(expr.position, "the value of this expression of integers overflows i64");
    const Scalar scalar = Scalar::Integer(type, *value);
    const bool fits = IsFloat(type) ? std::isfinite(scalar.ToDouble())
                                    : type != DType::kBool && scalar.ToInt() == *value;
    if (fits) return Value{graph_.AddConstant(scalar), {}};
    return ErrorAt(expr.position, absl::StrCat("the literal '", *value, "' does not fit ", Name(type)));
  }

  absl::StatusOr<Value> BuildIndex(const Expr& expr, absl::StatusOr<IndexId> index, DType type) {
    NESTOR_RETURN_IF_ERROR(index.status());
    if (type == DType::kBool) return ErrorAt(expr.position, "types bool and i64 (an index) do not mix: cast one");
    std::vector<int> axes;
    const IndexId expr_over_axes = Renumber({*index}, axes)[0];
    return Value{graph_.AddCast(graph_.AddIndex(expr_over_axes, ShapeOf(axes)), type), axes};
  }

  // The expressions over Var(position in `axes`), where `axes` gets the instances
  // in them, ascending.
  IndexList Renumber(IndexList list, std::vector<int>& axes) {
    std::vector<int64_t> vars;
    for (IndexId e : list) CollectVars(graph_.pool(), e, vars);
    axes.assign(vars.begin(), vars.end());
    IndexList positions(axes.empty() ? 0 : axes.back() + 1, graph_.pool().Const(0));
    for (size_t i = 0; i < axes.size(); ++i) positions[axes[i]] = graph_.pool().Var(static_cast<int64_t>(i));
    for (IndexId& e : list) e = SubstituteVars(graph_.pool(), e, positions);
    return list;
  }

  absl::StatusOr<Value> BuildAccess(const Expr& expr) {
    NESTOR_ASSIGN_OR_RETURN(const NodeId tensor, environment_.Tensor(expr.text, expr.position));
    NESTOR_ASSIGN_OR_RETURN(IndexList list, scope_.PlaceOf(expr.items, expr.text, graph_.shape(tensor)));
    const size_t rank = list.size();
    for (const ast::ExprPtr& condition : expr.conditions) {
      NESTOR_ASSIGN_OR_RETURN(const IndexId c, scope_.ConditionOf(*condition));
      list.push_back(c);
    }
    NodeId fill;
    if (expr.fill != nullptr) {
      NESTOR_ASSIGN_OR_RETURN(fill, BuildFill(*expr.fill, graph_.type(tensor)));
    }
    std::vector<int> axes;
    list = Renumber(std::move(list), axes);
    IndexList conditions(list.begin() + static_cast<int64_t>(rank), list.end());
    list.resize(rank);
    return Value{graph_.AddReindex(tensor, ShapeOf(axes), std::move(list), fill, std::move(conditions)), axes};
  }

  absl::StatusOr<NodeId> BuildFill(const Expr& fill, DType type) {
    if (fill.kind == ExprKind::kLiteral) {
      NESTOR_ASSIGN_OR_RETURN(const Value value, BuildLiteral(fill, type));
      return value.node;
    }
    const auto it = environment_.params.find(fill.text);
    if (it == environment_.params.end()) {
      return environment_.UnknownName(fill.text, fill.position, "parameter");
    }
    if (it->second != type) {
      return ErrorAt(fill.position, absl::StrCat("the fill ", fill.text, " is ", Name(it->second),
                                                 ", the tensor ", Name(type)));
    }
    return graph_.AddParam(fill.text, type);
  }

  absl::StatusOr<Value> BuildReduction(const Expr& expr) {
    const ReduceOp op = *ReduceOpByName(expr.text);
    NESTOR_ASSIGN_OR_RETURN(const Value body, Build(*expr.args[0]));
    if (!ReduceResultType(op, graph_.type(body.node))) {
      return ErrorAt(expr.position, absl::StrCat("'", expr.text, "' does not take ",
                                                 Name(graph_.type(body.node)),
                                                 graph_.type(body.node) == DType::kBool ? ": cast it" : ""));
    }
    const std::vector<int>& reduced = scope_.reduced(expr);
    std::vector<int> kept;
    for (int instance : body.axes) {
      if (std::find(reduced.begin(), reduced.end(), instance) == reduced.end()) kept.push_back(instance);
    }
    std::vector<int> all = kept, axes;
    for (int instance : reduced) {
      axes.push_back(static_cast<int>(all.size()));
      all.push_back(instance);
    }
    return Value{graph_.AddReduce(op, Spread(body, all), axes), kept};
  }

  absl::StatusOr<Value> BuildFunction(const Expr& expr) {
    std::vector<Value> operands;
    for (const ast::ExprPtr& arg : expr.args) {
      NESTOR_ASSIGN_OR_RETURN(Value operand, Build(*arg));
      operands.push_back(std::move(operand));
    }
    if (const auto target = environment_.FindType(expr.text)) {
      return Value{graph_.AddCast(operands[0].node, *target), operands[0].axes};
    }
    return Apply(*ScalarOpByName(expr.text), absl::MakeSpan(operands), expr.position);
  }

  absl::StatusOr<Value> BuildChain(const Expr& expr) {
    const size_t prefix = IndexPrefix(scope_, expr);
    absl::StatusOr<Value> result = BuildChainStart(expr, prefix);
    NESTOR_RETURN_IF_ERROR(result.status());
    const DType type = types_.OperandType(expr);
    for (size_t i = std::max<size_t>(prefix, 1); i < expr.args.size(); ++i) {
      NESTOR_ASSIGN_OR_RETURN(Value operand, Build(*expr.args[i]));
      Value both[] = {*result, std::move(operand)};
      both[0].node = graph_.AddCast(both[0].node, type);
      const ScalarOp op = expr.operators[i - 1]->op;
      const bool floors = op == ScalarOp::kDiv && !IsFloat(type);
      result = Apply(floors ? ScalarOp::kFloorDiv : op, absl::MakeSpan(both), expr.operator_positions[i - 1]);
      NESTOR_RETURN_IF_ERROR(result.status());
      NESTOR_RETURN_IF_ERROR(CheckSize(graph_, expr.operator_positions[i - 1]));
    }
    return result;
  }

  // The leading index values as one, else the first operand.
  absl::StatusOr<Value> BuildChainStart(const Expr& expr, size_t prefix) {
    if (prefix <= 1) return Build(*expr.args[0]);
    const DType type = types_.OperandType(expr);
    bool literal = true;
    for (size_t i = 0; i < prefix; ++i) literal &= scope_.IsIntegerLiteral(*expr.args[i]);
    absl::StatusOr<IndexId> index = scope_.ChainOf(expr, prefix, true);
    NESTOR_RETURN_IF_ERROR(index.status());
    return literal ? FoldedLiteral(expr, *index, type) : BuildIndex(expr, index, type);
  }

  absl::StatusOr<Value> Apply(ScalarOp op, absl::Span<Value> operands, const ast::Position& position) {
    std::vector<int> axes;
    for (const Value& operand : operands) axes.insert(axes.end(), operand.axes.begin(), operand.axes.end());
    std::sort(axes.begin(), axes.end());
    axes.erase(std::unique(axes.begin(), axes.end()), axes.end());
    NodeList args;
    for (const Value& operand : operands) args.push_back(Spread(operand, axes));
    const DType type = graph_.type(args.back());
    if (!ResultTypeOf(op, type, DType::kF32)) {
      return ErrorAt(position, absl::StrCat("'", Row(op).name, "' takes ", Describe(Row(op).operands),
                                            ", is given ", Name(type)));
    }
    return Value{graph_.AddMap(op, args), axes};
  }

  Environment& environment_;
  Graph& graph_;
  const StatementScope& scope_;
  const TypeInference& types_;
};

// ---- Ops

class Elaborator {
 public:
  Elaborator(const ast::Op& syntax, const ArgumentSpecs& specs, MakeCallee make_callee)
      : syntax_(syntax), specs_(specs), make_callee_(make_callee) {
    environment_.op.name = syntax.name;
  }

  absl::StatusOr<Op> Run() {
    NESTOR_RETURN_IF_ERROR(BindTypes());
    NESTOR_RETURN_IF_ERROR(BindPacks());
    NESTOR_RETURN_IF_ERROR(DeclareDimensions());
    NESTOR_RETURN_IF_ERROR(DeclareParams());
    NESTOR_RETURN_IF_ERROR(DeclareArguments());
    for (const ast::Statement& statement : syntax_.statements) {
      NESTOR_RETURN_IF_ERROR(Run(statement));
      NESTOR_RETURN_IF_ERROR(CheckSize(op().graph, statement.position));
    }
    NESTOR_RETURN_IF_ERROR(CollectResults());
    return std::move(environment_.op);
  }

 private:
  Op& op() { return environment_.op; }

  // ---- Signature

  static bool IsVariable(const ast::TypeName& type) { return !TypeByName(type.text).has_value(); }

  absl::Status BindTypes() {
    for (const ast::Argument& arg : syntax_.args) {
      const auto spec = specs_.find(arg.name);
      if (!IsVariable(arg.type) || spec == specs_.end() || !spec->second.type) continue;
      const auto [it, inserted] = environment_.type_variables.emplace(arg.type.text, *spec->second.type);
      if (!inserted && it->second != *spec->second.type) {
        return absl::InvalidArgumentError(
            absl::StrCat("op ", syntax_.name, ": ", arg.type.text, " is ", Name(it->second),
                         ", but argument ", arg.name, " is given ", Name(*spec->second.type)));
      }
    }
    for (const ast::Argument& arg : syntax_.args) {
      if (IsVariable(arg.type)) environment_.type_variables.emplace(arg.type.text, DType::kF32);
    }
    return absl::OkStatus();
  }

  // A pack's length follows from a given rank where it is the only unknown one.
  absl::Status BindPacks() {
    absl::flat_hash_map<std::string, int> lengths;
    for (bool changed = true; changed;) {
      changed = false;
      for (const ast::Argument& arg : syntax_.args) {
        const auto spec = specs_.find(arg.name);
        if (spec == specs_.end() || !spec->second.rank) continue;
        int known = 0;
        std::vector<std::string> unknown;
        for (const ast::Item& dim : arg.dims) {
          const auto it = lengths.find(dim.pack);
          if (!dim.is_pack) ++known;
          else if (it != lengths.end()) known += it->second;
          else unknown.push_back(dim.pack);
        }
        if (unknown.size() != 1) continue;
        if (*spec->second.rank < known) {
          return absl::InvalidArgumentError(absl::StrCat("op ", syntax_.name, ": argument ", arg.name, " has ",
                                                         *spec->second.rank, " dimensions, at least ", known,
                                                         " are needed"));
        }
        lengths[unknown[0]] = *spec->second.rank - known;
        changed = true;
      }
    }
    for (const ast::Argument& arg : syntax_.args) {
      for (const ast::Item& dim : arg.dims) {
        if (dim.is_pack) DeclarePack(dim.pack, lengths.contains(dim.pack) ? lengths[dim.pack] : 1);
      }
    }
    return absl::OkStatus();
  }

  bool IsNamedDimension(absl::string_view name) const {
    for (const ast::Argument& arg : syntax_.args) {
      if (arg.name == name) return true;
      for (const ast::Item& dim : arg.dims) {
        if (!dim.is_pack && dim.expr->kind == ExprKind::kName && dim.expr->text == name) return true;
      }
    }
    return false;
  }

  void DeclarePack(const std::string& pack, int length) {
    if (environment_.dim_packs.contains(pack)) return;
    std::vector<IndexId>& dims = environment_.dim_packs[pack];
    for (int i = 0; i < length; ++i) {
      const std::string name = FreshName(absl::StrCat(pack, i), [&](absl::string_view n) {
        return IsNamedDimension(n) || environment_.dims.contains(n);
      });
      dims.push_back(op().graph.pool().Symbol(name));
      environment_.dims[name] = dims.back();
    }
  }

  // Every name in an argument's dimensions is a dimension.
  absl::Status DeclareDimensions() {
    for (const ast::Argument& arg : syntax_.args) {
      for (const ast::Item& dim : arg.dims) {
        if (!dim.is_pack) NESTOR_RETURN_IF_ERROR(DeclareNames(*dim.expr));
      }
    }
    return absl::OkStatus();
  }

  absl::Status DeclareNames(const Expr& expr) {
    if (expr.kind == ExprKind::kName) environment_.dims[expr.text] = op().graph.pool().Symbol(expr.text);
    if (expr.kind == ExprKind::kAccess) {
      return ErrorAt(expr.position, "a dimension cannot depend on a tensor's values");
    }
    for (const ast::ExprPtr& arg : expr.args) NESTOR_RETURN_IF_ERROR(DeclareNames(*arg));
    return absl::OkStatus();
  }

  absl::Status DeclareParams() {
    for (const ast::Param& param : syntax_.params) {
      ParamInfo info{param.name, DType::kI64, {}, {}, {}};
      if (param.type) {
        if (IsVariable(*param.type)) environment_.type_variables.emplace(param.type->text, DType::kF32);
        NESTOR_ASSIGN_OR_RETURN(info.type, environment_.Type(*param.type));
      }
      if (!environment_.params.emplace(param.name, info.type).second) {
        return ErrorAt(param.position, absl::StrCat("'", param.name, "' is already defined"));
      }
      NESTOR_ASSIGN_OR_RETURN(info.value, ParamLiteral(param.value, info.type));
      NESTOR_ASSIGN_OR_RETURN(info.low, ParamBound(param.low, info.type));
      NESTOR_ASSIGN_OR_RETURN(info.high, ParamBound(param.high, info.type));
      op().params.push_back(std::move(info));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<absl::optional<Scalar>> ParamLiteral(const absl::optional<ast::Literal>& literal, DType type) {
    if (!literal) return absl::optional<Scalar>();
    const auto value = ParseLiteral(literal->text, type);
    if (value) return value;
    return ErrorAt(literal->position, absl::StrCat("the literal '", literal->text, "' does not fit ", Name(type)));
  }

  absl::StatusOr<absl::optional<Scalar>> ParamBound(const absl::optional<ast::Literal>& literal, DType type) {
    if (!literal || literal->text == "inf" || literal->text == "-inf") return absl::optional<Scalar>();
    return ParamLiteral(literal, type);
  }

  absl::Status DeclareArguments() {
    for (const ast::Argument& arg : syntax_.args) {
      if (environment_.dims.contains(arg.name)) {
        return ErrorAt(arg.position, absl::StrCat("the argument '", arg.name, "' has the name of a dimension"));
      }
      if (environment_.tensors.contains(arg.name) || environment_.shapes.contains(arg.name)) {
        return ErrorAt(arg.position, absl::StrCat("'", arg.name, "' is already defined"));
      }
      NESTOR_ASSIGN_OR_RETURN(const DType type, environment_.Type(arg.type));
      NESTOR_ASSIGN_OR_RETURN(Shape shape, environment_.Extents(arg.dims));
      const auto spec = specs_.find(arg.name);
      if (spec != specs_.end() && spec->second.rank && *spec->second.rank != static_cast<int>(shape.size())) {
        return absl::InvalidArgumentError(absl::StrCat("op ", syntax_.name, ": argument ", arg.name, " has ",
                                                       shape.size(), " dimensions, is given ", *spec->second.rank));
      }
      const NodeId node = op().graph.AddInput(arg.name, type, shape);
      if (arg.shape_only) environment_.shapes.insert(arg.name);
      else environment_.tensors[arg.name] = node;
      op().args.push_back({arg.name, type, std::move(shape), arg.shape_only, node});
    }
    return absl::OkStatus();
  }

  // ---- Statements

  absl::Status Run(const ast::Statement& statement) {
    switch (statement.kind) {
      case ast::StatementKind::kDefinition: return Define(statement);
      case ast::StatementKind::kScatter: return Scatter(statement);
      case ast::StatementKind::kCall: return Call(statement);
    }
    return absl::OkStatus();
  }

  absl::Status CheckFree(const std::string& name, const ast::Position& position) const {
    if (environment_.tensors.contains(name) || environment_.shapes.contains(name)) {
      return ErrorAt(position, absl::StrCat("'", name, "' is already defined"));
    }
    if (environment_.dims.contains(name)) {
      return ErrorAt(position, absl::StrCat("'", name, "' is already defined: it is a dimension"));
    }
    if (environment_.index_names.contains(name)) {
      return ErrorAt(position, absl::StrCat("'", name, "' is already defined: it is an index"));
    }
    return absl::OkStatus();
  }

  absl::Status Define(const ast::Statement& statement) {
    NESTOR_RETURN_IF_ERROR(CheckFree(statement.targets[0], statement.position));
    NESTOR_ASSIGN_OR_RETURN(const StatementScope scope, StatementScope::Analyze(statement, environment_, {}));
    NESTOR_ASSIGN_OR_RETURN(const TypeInference types,
                            TypeInference::Infer(*statement.expr, absl::nullopt, environment_, scope));
    ValueBuilder builder(environment_, scope, types);
    NESTOR_ASSIGN_OR_RETURN(const Value value, builder.Build(*statement.expr));
    return Add(statement, 0, builder.Spread(value, scope.left()));
  }

  absl::Status Scatter(const ast::Statement& statement) {
    NESTOR_RETURN_IF_ERROR(CheckFree(statement.targets[0], statement.position));
    NESTOR_ASSIGN_OR_RETURN(const DType type, environment_.Type(statement.type));
    NESTOR_ASSIGN_OR_RETURN(Shape shape, environment_.Extents(statement.dims));
    NESTOR_ASSIGN_OR_RETURN(const StatementScope scope, StatementScope::Analyze(statement, environment_, shape));
    NESTOR_ASSIGN_OR_RETURN(const TypeInference types,
                            TypeInference::Infer(*statement.expr, type, environment_, scope));
    const ReduceOp op_kind = statement.scatter_op;
    if (!ReduceResultType(op_kind, type)) {
      return ErrorAt(statement.type.position, absl::StrCat("a scatter by '", AccumulationSign(op_kind),
                                                           "=' does not take ", Name(type)));
    }
    ValueBuilder builder(environment_, scope, types);
    NESTOR_ASSIGN_OR_RETURN(const Value value, builder.Build(*statement.expr));
    NESTOR_ASSIGN_OR_RETURN(IndexList place, scope.PlaceOf(statement.items, statement.targets[0], shape));
    // Its own indices, in order of first appearance, become the operand's axes.
    std::vector<int> axes = scope.left();
    const NodeId x = builder.Spread(value, axes);
    int instances = 0;
    for (int instance : axes) instances = std::max(instances, instance + 1);
    IndexList positions(instances, op().graph.pool().Const(0));
    for (size_t i = 0; i < axes.size(); ++i) positions[axes[i]] = op().graph.pool().Var(static_cast<int64_t>(i));
    for (IndexId& e : place) e = SubstituteVars(op().graph.pool(), e, positions);
    return Add(statement, 0, op().graph.AddScatter(op_kind, x, std::move(shape), std::move(place)));
  }

  absl::Status Add(const ast::Statement& statement, size_t target, NodeId node) {
    environment_.tensors[statement.targets[target]] = node;
    return absl::OkStatus();
  }

  absl::Status Call(const ast::Statement& statement) {
    std::vector<NodeId> args;
    std::vector<ArgumentSpec> specs;
    for (size_t i = 0; i < statement.call_args.size(); ++i) {
      NESTOR_ASSIGN_OR_RETURN(const NodeId node,
                              environment_.Tensor(statement.call_args[i], statement.call_arg_positions[i]));
      args.push_back(node);
      specs.push_back({op().graph.type(node), op().graph.rank(node)});
    }
    NESTOR_ASSIGN_OR_RETURN(const Op callee,
                            make_callee_(statement.callee, statement.callee_position, specs));
    if (callee.results.size() != statement.targets.size()) {
      return ErrorAt(statement.position, absl::StrCat("op ", callee.name, " has ", callee.results.size(),
                                                      " results, ", statement.targets.size(), " are named"));
    }
    CallBindings bindings;
    for (const ast::Value& value : statement.call_values) {
      NESTOR_RETURN_IF_ERROR(BindValue(callee, value, bindings));
    }
    const absl::StatusOr<std::vector<NodeId>> results = CallOp(callee, args, bindings, op());
    if (!results.ok()) return ErrorAt(statement.callee_position, results.status().message());
    for (const std::string& warning : callee.warnings()) {
      const std::string text = absl::StrCat("in op ", callee.name, ": ", warning);
      op().AddWarning(std::string(ErrorAt(statement.callee_position, text).message()));
    }
    for (size_t i = 0; i < results->size(); ++i) {
      NESTOR_RETURN_IF_ERROR(CheckFree(statement.targets[i], statement.target_positions[i]));
      NESTOR_RETURN_IF_ERROR(Add(statement, i, (*results)[i]));
    }
    return absl::OkStatus();
  }

  absl::Status BindValue(const Op& callee, const ast::Value& value, CallBindings& bindings) {
    const StatementScope scope(environment_);
    const std::string name = absl::StrCat("$", value.name);
    const ParamInfo* param = callee.FindParam(name);
    if (param == nullptr && !IsDimension(callee, value.name)) {
      std::vector<std::string> known;
      for (const ParamInfo& p : callee.params) known.push_back(p.name.substr(1));
      return ErrorAt(value.position, absl::StrCat("op ", callee.name, " has no parameter '", value.name, "'",
                                                  DidYouMean(value.name, known)));
    }
    if (param == nullptr || IsInteger(param->type)) {
      NESTOR_ASSIGN_OR_RETURN(const IndexId index, scope.IndexOf(*value.expr));
      if (op().graph.pool().HasLoad(index)) {
        return ErrorAt(value.expr->position, "a parameter cannot depend on a tensor's values");
      }
      bindings.indices[param == nullptr ? value.name : name] = index;
      return absl::OkStatus();
    }
    NESTOR_ASSIGN_OR_RETURN(bindings.values[name], ParamValue(scope, *value.expr, param->type));
    return absl::OkStatus();
  }

  static bool IsDimension(const Op& callee, const std::string& name) {
    const IndexPool& pool = callee.graph.pool();
    bool found = false;
    for (const Argument& arg : callee.args) {
      for (IndexId extent : arg.shape) {
        VisitIndex(pool, extent, [&](IndexId id, const IndexNode& node) {
          found |= node.kind == IndexKind::kSymbol && pool.SymbolName(id) == name;
        });
      }
    }
    return found;
  }

  // A rank-0 node for a bool or float $param.
  absl::StatusOr<NodeId> ParamValue(const StatementScope& scope, const Expr& expr, DType type) {
    Graph& graph = op().graph;
    if (expr.kind == ExprKind::kLiteral) {
      const auto literal = ParseLiteral(expr.text, type);
      if (literal) return graph.AddConstant(*literal);
      return ErrorAt(expr.position, absl::StrCat("the literal '", expr.text, "' does not fit ", Name(type)));
    }
    if (expr.kind == ExprKind::kParam && environment_.params.contains(expr.text) &&
        environment_.params.at(expr.text) == type) {
      return graph.AddParam(expr.text, type);
    }
    if (type == DType::kBool) return ErrorAt(expr.position, "expected true, false or a bool $param");
    NESTOR_ASSIGN_OR_RETURN(const IndexId index, scope.IndexOf(expr));
    if (graph.pool().HasLoad(index)) {
      return ErrorAt(expr.position, "a parameter cannot depend on a tensor's values");
    }
    return graph.AddCast(graph.AddIndex(index, {}), type);
  }

  absl::Status CollectResults() {
    absl::flat_hash_set<absl::string_view> named;
    for (const ast::Result& result : syntax_.results) {
      const auto it = environment_.tensors.find(result.name);
      if (it == environment_.tensors.end()) {
        return ErrorAt(result.position, absl::StrCat("the result '", result.name, "' is not defined"));
      }
      if (!named.insert(result.name).second) {
        return ErrorAt(result.position, absl::StrCat("the result '", result.name, "' is named twice"));
      }
      op().results.push_back({result.name, it->second});
    }
    return absl::OkStatus();
  }

  const ast::Op& syntax_;
  const ArgumentSpecs& specs_;
  MakeCallee make_callee_;
  Environment environment_;
};

}  // namespace

absl::StatusOr<Op> Elaborate(const ast::Op& syntax, const ArgumentSpecs& specs, MakeCallee make_callee) {
  return Elaborator(syntax, specs, make_callee).Run();
}

}  // namespace nestor
