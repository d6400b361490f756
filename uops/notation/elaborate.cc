// From the syntax tree to a graph, one statement after the other. The signature binds types, packs
// and dimensions (bind_signature.h); then each statement's names are resolved (statement_scope.h,
// resolver.h), and the statement is built (statement_builder.h) or called (call.h).
//
// The one thing that cannot be done statement by statement is a `for` block, whose tensors read
// each other's earlier steps:
//
//   for t < N { h[t] = 0.5 * h[t - 1] + x[t] }
//
// The type and shape of h are needed to build the read of h[t - 1], before h is built. So a block
// is gone through twice: first for types and shapes, with reads of unknown tensors left open, then
// to build, with a carry for each tensor that is read at an earlier step.
#include "uops/notation/elaborate.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "uops/call.h"
#include "uops/invariant.h"
#include "uops/notation/bind_signature.h"
#include "uops/notation/environment.h"
#include "uops/notation/index_resolver.h"
#include "uops/notation/lexer.h"
#include "uops/notation/resolver.h"
#include "uops/notation/statement_scope.h"
#include "uops/recurrence.h"
#include "uops/statement_builder.h"

namespace nestor {
namespace {

using ast::Expr;
using ast::ExprKind;

class Elaborator {
 public:
  Elaborator(const ast::Op& syntax, const ArgumentSpecs& specs, MakeCallee make_callee)
      : syntax_(syntax), specs_(specs), make_callee_(make_callee) {
    environment_.op.name = syntax.name;
  }

  absl::StatusOr<Op> Run() {
    NESTOR_RETURN_IF_ERROR(BindSignature(syntax_, specs_, environment_));
    for (const ast::Statement& statement : syntax_.statements) {
      NESTOR_RETURN_IF_ERROR(Run(statement));
    }
    NESTOR_RETURN_IF_ERROR(CollectResults());
    return std::move(environment_.op);
  }

 private:
  Op& op() { return environment_.op; }

  // ---- Statements

  absl::Status Run(const ast::Statement& statement) {
    switch (statement.kind) {
      case ast::StatementKind::kDefinition:
      case ast::StatementKind::kScatter: return Define(statement);
      case ast::StatementKind::kCall: return Call(statement);
      case ast::StatementKind::kFor: return RunBlock(statement);
    }
    return absl::OkStatus();
  }

  // ---- Blocks
  //
  // Types and ranges of the tensors are inferred first, from whichever statements say enough, then
  // from the statements that are left. Once these are known, a statement can read a tensor that is
  // defined after it.

  // Twice over the statements: types and shapes first, since a statement may read an earlier step
  // of a tensor that is defined after it.
  absl::Status RunBlock(const ast::Statement& statement) {
    NESTOR_RETURN_IF_ERROR(OpenBlock(statement));
    NESTOR_RETURN_IF_ERROR(InferTensors(statement.block));
    environment_.block->inferring = false;
    for (const ast::Statement& inner : statement.block) NESTOR_RETURN_IF_ERROR(BuildStep(inner));
    CloseBlock();
    return internal::CheckSize(op().graph, statement.position);
  }

  // From here to CloseBlock, names of the block's tensors mean steps.
  absl::Status OpenBlock(const ast::Statement& statement) {
    StepBlock block;
    block.index = statement.targets[0];
    NESTOR_RETURN_IF_ERROR(CheckFreeOfTensors(block.index, statement.target_positions[0]));
    environment_.index_names.insert(block.index);
    NESTOR_ASSIGN_OR_RETURN(block.extent, IndexResolver(environment_).Index(*statement.expr));
    if (op().graph.pool().HasLoad(block.extent)) {
      return ErrorAt(statement.expr->position, "a bound cannot depend on a tensor's values");
    }
    environment_.block = std::move(block);
    for (const ast::Statement& inner : statement.block) NESTOR_RETURN_IF_ERROR(DeclareStep(inner));
    return absl::OkStatus();
  }

  // Names the tensors of the block before any statement is looked at, since each may read all
  // others.
  absl::Status DeclareStep(const ast::Statement& statement) {
    StepBlock& block = *environment_.block;
    if (statement.kind == ast::StatementKind::kCall) {
      return ErrorAt(statement.position,
                     "an op cannot be called in a 'for' block: call it before or after");
    }
    const std::string& name = statement.targets[0];
    NESTOR_RETURN_IF_ERROR(CheckFree(name, statement.position));
    const int stepped = static_cast<int>(
        std::count_if(statement.items.begin(), statement.items.end(), [&](const ast::Item& item) {
          return !item.is_pack && item.expr->kind == ExprKind::kName &&
                 item.expr->text == block.index;
        }));
    if (stepped != 1) {
      return ErrorAt(statement.position,
                     absl::StrCat("'", name, "' is defined in a block over ", block.index, ": ",
                                  block.index, " must stand alone as one of its indices"));
    }
    environment_.tensors[name] = NodeId();
    block.tensors[name] = {};
    return absl::OkStatus();
  }

  // Statements that know enough make others know enough, until all are done or none gets further.
  absl::Status InferTensors(const std::vector<ast::Statement>& statements) {
    std::vector<const ast::Statement*> left;
    for (const ast::Statement& statement : statements) left.push_back(&statement);
    // When there is nothing else left, the types of literals and indices are taken.
    for (bool is_last_chance = false; !left.empty();) {
      std::vector<const ast::Statement*> open;
      absl::Status first_error;
      for (const ast::Statement* statement : left) {
        const absl::StatusOr<bool> known = InferTensor(*statement, is_last_chance);
        first_error.Update(known.status());
        if (!known.ok() || !*known) open.push_back(statement);
      }
      const bool progress = open.size() < left.size();
      if (!progress && is_last_chance) return first_error;
      is_last_chance = !progress;
      left = std::move(open);
    }
    return absl::OkStatus();
  }

  // Whether the tensor is known now.
  absl::StatusOr<bool> InferTensor(const ast::Statement& statement, bool takes_literals) {
    NESTOR_ASSIGN_OR_RETURN(Prepared prepared, Prepare(statement));
    StepBlock::Tensor& tensor = environment_.block->tensors.at(statement.targets[0]);
    if (prepared.built.scatter) {
      tensor.type = prepared.built.scatter->type;
      tensor.shape = prepared.built.scatter->shape;
      tensor.axis = StepPosition(prepared.built.scatter->place, prepared.scope);
    } else {
      NESTOR_ASSIGN_OR_RETURN(internal::Signature signature, InferSignature(prepared.built, op()));
      if (!signature.is_typed && !takes_literals) return false;
      tensor.type = signature.type;
      tensor.shape = std::move(signature.shape);
      tensor.axis = StepPosition(prepared.built.indices, prepared.scope);
    }
    // A node of that type and shape, which no result depends on.
    tensor.known = op().graph.AddInput(statement.targets[0], *tensor.type, tensor.shape);
    environment_.tensors[statement.targets[0]] = tensor.known;
    return true;
  }

  int StepPosition(const std::vector<internal::IndexHandle>& place, const StatementScope& scope) {
    const IndexId step = op().graph.pool().Var(scope.step());
    const auto at =
        std::find_if(place.begin(), place.end(),
                     [&](const internal::IndexHandle& index) { return index.id == step; });
    return static_cast<int>(at - place.begin());
  }

  // Indices keep the extents that the first pass found, and all accesses, also those that were open
  // then, must agree with them.
  absl::Status BuildStep(const ast::Statement& statement) {
    NESTOR_ASSIGN_OR_RETURN(Prepared prepared, Prepare(statement));
    StepBlock& block = *environment_.block;
    StepBlock::Tensor& tensor = block.tensors.at(statement.targets[0]);
    // All accesses must agree with the inferred extents.
    std::vector<internal::IndexVariable> variables = prepared.scope.variables();
    for (size_t i = 0; i < prepared.built.indices.size() && !prepared.built.scatter; ++i) {
      internal::IndexVariable& variable = variables[prepared.scope.left()[i]];
      if (variable.extent) continue;
      variable.extent = tensor.shape[i];
      variable.is_compared = true;
    }
    prepared.built.variables = variables;
    NESTOR_ASSIGN_OR_RETURN(tensor.body, internal::BuildStatement(prepared.built, op()));
    const Graph& graph = op().graph;
    if (graph.type(tensor.body) != *tensor.type) {
      return ErrorAt(
          statement.position,
          absl::StrCat("types ", Name(graph.type(tensor.body)), " and ", Name(*tensor.type),
                       " do not mix in '", statement.targets[0], "': cast one"));
    }
    if (prepared.built.scatter && tensor.shape[tensor.axis] != block.extent) {
      op().equalities.push_back({tensor.shape[tensor.axis], block.extent,
                                 absl::StrCat("axis ", tensor.axis, " of ", statement.targets[0],
                                              " and the block over ", block.index)});
    }
    return absl::OkStatus();
  }

  // The equations are complete: what the steps define is settled, and the block's names are views
  // of it.
  void CloseBlock() {
    std::vector<Equation> equations;
    for (const auto& [name, tensor] : environment_.block->tensors) {
      if (tensor.carry.valid()) equations.push_back({tensor.carry, tensor.body});
    }
    // Sorts them into a fixed order, whatever that of the map.
    std::sort(equations.begin(), equations.end(),
              [](const Equation& a, const Equation& b) { return a.carry < b.carry; });
    Settler settler(op().graph, std::move(equations));
    std::vector<std::pair<NodeId, std::string>> bodies;
    for (const auto& [name, tensor] : environment_.block->tensors)
      bodies.emplace_back(tensor.body, name);
    std::sort(bodies.begin(), bodies.end());
    for (const auto& [body, name] : bodies) environment_.tensors[name] = settler.Settle(body);
    environment_.block.reset();
  }

  absl::Status CheckFreeOfTensors(const std::string& name, const ast::Position& position) const {
    if (environment_.tensors.contains(name) || environment_.shapes.contains(name)) {
      return ErrorAt(position, absl::StrCat("the index '", name, "' has the name of a tensor"));
    }
    if (environment_.dims.contains(name)) {
      return ErrorAt(position, absl::StrCat("the index '", name, "' has the name of a dimension"));
    }
    return absl::OkStatus();
  }

  // Tensors, dimensions and indices share one space of names.
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

  // A definition or a scatter, its names resolved.
  struct Prepared {
    StatementScope scope;
    internal::Statement built;  // its variables are the scope's
  };

  // Resolved without building; done twice for a statement in a block.
  absl::StatusOr<Prepared> Prepare(const ast::Statement& statement) {
    Prepared prepared;
    internal::Statement& built = prepared.built;
    built.name = statement.targets[0];
    built.position = statement.position;
    Shape shape;
    if (statement.kind == ast::StatementKind::kScatter) {
      NESTOR_ASSIGN_OR_RETURN(const DType type, environment_.Type(statement.type));
      NESTOR_ASSIGN_OR_RETURN(shape, IndexResolver(environment_).Extents(statement.dims));
      built.scatter =
          internal::ScatterTarget{statement.scatter_op, type, shape, {}, statement.type.position};
    }
    NESTOR_ASSIGN_OR_RETURN(prepared.scope,
                            StatementScope::Analyze(statement, environment_, shape));
    const IndexResolver indices(environment_, prepared.scope);
    built.variables = prepared.scope.variables();  // it stays where it is when the scope is moved
    built.indices = indices.Handles(prepared.scope.left());
    if (built.scatter) {
      NESTOR_ASSIGN_OR_RETURN(built.scatter->place, indices.Place(statement.items));
    }
    NESTOR_ASSIGN_OR_RETURN(built.body,
                            Resolver(environment_, prepared.scope).Value(*statement.expr));
    return prepared;
  }

  absl::Status Define(const ast::Statement& statement) {
    NESTOR_RETURN_IF_ERROR(CheckFree(statement.targets[0], statement.position));
    NESTOR_ASSIGN_OR_RETURN(const Prepared prepared, Prepare(statement));
    NESTOR_ASSIGN_OR_RETURN(environment_.tensors[statement.targets[0]],
                            internal::BuildStatement(prepared.built, op()));
    return absl::OkStatus();
  }

  // The callee is made for the types and ranks of the tensors given, then inlined.
  absl::Status Call(const ast::Statement& statement) {
    std::vector<NodeId> args;
    std::vector<ArgumentSpec> specs;
    for (size_t i = 0; i < statement.call_args.size(); ++i) {
      NESTOR_ASSIGN_OR_RETURN(
          const NodeId node,
          environment_.Tensor(statement.call_args[i], statement.call_arg_positions[i]));
      args.push_back(node);
      specs.push_back({op().graph.type(node), op().graph.rank(node)});
    }
    NESTOR_ASSIGN_OR_RETURN(const Op callee,
                            make_callee_(statement.callee, statement.callee_position, specs));
    if (callee.results.size() != statement.targets.size()) {
      return ErrorAt(statement.position,
                     absl::StrCat("op ", callee.name, " has ", callee.results.size(), " results, ",
                                  statement.targets.size(), " are named"));
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
      environment_.tensors[statement.targets[i]] = (*results)[i];
    }
    return internal::CheckSize(op().graph, statement.position);
  }

  // NAME = value: an index for integers and dimensions, else a rank-0 node.
  absl::Status BindValue(const Op& callee, const ast::Value& value, CallBindings& bindings) {
    const std::string name = absl::StrCat("$", value.name);
    const ParamInfo* param = callee.FindParam(name);
    if (param == nullptr && !IsDimension(callee, value.name)) {
      std::vector<std::string> known;
      for (const ParamInfo& p : callee.params) known.push_back(p.name.substr(1));
      return ErrorAt(value.position, absl::StrCat("op ", callee.name, " has no parameter '",
                                                  value.name, "'", DidYouMean(value.name, known)));
    }
    if (param == nullptr || IsInteger(param->type)) {
      NESTOR_ASSIGN_OR_RETURN(const IndexId index, IndexResolver(environment_).Index(*value.expr));
      if (op().graph.pool().HasLoad(index)) {
        return ErrorAt(value.expr->position, "a parameter cannot depend on a tensor's values");
      }
      bindings.indices[param == nullptr ? value.name : name] = index;
      return absl::OkStatus();
    }
    NESTOR_ASSIGN_OR_RETURN(bindings.values[name], ParamValue(*value.expr, param->type));
    return absl::OkStatus();
  }

  // Dimensions that no argument has as an axis of its own must be given by name in the call.
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
  absl::StatusOr<NodeId> ParamValue(const Expr& expr, DType type) {
    Graph& graph = op().graph;
    if (expr.kind == ExprKind::kLiteral) {
      const auto literal = ParseLiteral(expr.text, type);
      if (literal) return graph.AddConstant(*literal);
      return ErrorAt(expr.position,
                     absl::StrCat("the literal '", expr.text, "' does not fit ", Name(type)));
    }
    if (expr.kind == ExprKind::kParam && environment_.params.contains(expr.text) &&
        environment_.params.at(expr.text) == type) {
      return graph.AddParam(expr.text, type);
    }
    if (type == DType::kBool)
      return ErrorAt(expr.position, "expected true, false or a bool $param");
    NESTOR_ASSIGN_OR_RETURN(const IndexId index, IndexResolver(environment_).Index(expr));
    if (graph.pool().HasLoad(index)) {
      return ErrorAt(expr.position, "a parameter cannot depend on a tensor's values");
    }
    return graph.AddCast(graph.AddIndex(index, {}), type);
  }

  // A result is a tensor by its name; an argument may be one.
  absl::Status CollectResults() {
    absl::flat_hash_set<absl::string_view> named;
    for (const ast::Result& result : syntax_.results) {
      const auto it = environment_.tensors.find(result.name);
      if (it == environment_.tensors.end()) {
        return ErrorAt(result.position,
                       absl::StrCat("the result '", result.name, "' is not defined"));
      }
      if (!named.insert(result.name).second) {
        return ErrorAt(result.position,
                       absl::StrCat("the result '", result.name, "' is named twice"));
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

absl::StatusOr<Op> Elaborate(const ast::Op& syntax, const ArgumentSpecs& specs,
                             MakeCallee make_callee) {
  return Elaborator(syntax, specs, make_callee).Run();
}

}  // namespace nestor
