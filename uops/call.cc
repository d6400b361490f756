// Inlining by import: the callee's dimensions become the extents of the nodes that it is given, its
// arguments become these nodes, and every node is rebuilt by the caller's constructors, which
// simplify on the way. There are no calls in a graph, so every later stage sees one program, and
// the callee's values fuse with the caller's like any others.
//
//   op scale(x: T[n]) -> (y) { y[i] = x[i] * 2.0 }
//   v = scale(u), u: f32[M]      n is M, x is u: v is u[i] * 2.0 over [0, M)
//
// The callee's demands on sizes move into the caller's checks, with the callee's name before the
// message. A callee with a gradient of its own leaves a trace: its results are tagged copies.
#include "uops/call.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "uops/invariant.h"

namespace nestor {
namespace {

class Inliner {
 public:
  Inliner(const Op& callee, absl::Span<const NodeId> args, const CallBindings& bindings, Op& caller)
      : callee_(callee), args_(args), bindings_(bindings), caller_(caller),
        from_(callee.graph.pool()), to_(caller.graph.pool()) {}

  // Checks come first: a failed call leaves at most unused nodes.
  absl::StatusOr<std::vector<NodeId>> Run() {
    if (caller_.graph.size() + callee_.graph.size() > kMostMicroOps) {
      return Error(absl::StrCat("the program grows beyond ", kMostMicroOps, " micro-ops"));
    }
    NESTOR_RETURN_IF_ERROR(CheckArguments());
    NESTOR_RETURN_IF_ERROR(BindParams());
    NESTOR_RETURN_IF_ERROR(BindDimensions());
    NESTOR_RETURN_IF_ERROR(CheckFills());
    AddChecks();
    if (callee_.gradient != nullptr) return CallWithGradient();
    return Import();
  }

 private:
  absl::Status Error(absl::string_view message) const {
    return absl::InvalidArgumentError(absl::StrCat("op ", callee_.name, ": ", message));
  }

  // The callee was made for these types and ranks, except where a caller in C++ mixes them up.
  absl::Status CheckArguments() const {
    if (args_.size() != callee_.args.size()) {
      return Error(
          absl::StrCat("takes ", callee_.args.size(), " tensors, is given ", args_.size()));
    }
    for (size_t i = 0; i < args_.size(); ++i) {
      const Argument& arg = callee_.args[i];
      const DType type = caller_.graph.type(args_[i]);
      if (type != arg.type && !arg.shape_only) {
        return Error(
            absl::StrCat("argument ", arg.name, " is ", Name(arg.type), ", is given ", Name(type)));
      }
      const int rank = caller_.graph.rank(args_[i]);
      if (rank != static_cast<int>(arg.shape.size())) {
        return Error(absl::StrCat("argument ", arg.name, " has ", arg.shape.size(),
                                  " dimensions, is given ", rank));
      }
    }
    return absl::OkStatus();
  }

  // An integer $param is an index expression of the caller, any other one a value.
  absl::Status BindParams() {
    for (const ParamInfo& param : callee_.params) {
      if (IsInteger(param.type)) {
        NESTOR_RETURN_IF_ERROR(BindIndexParam(param));
      } else {
        NESTOR_RETURN_IF_ERROR(BindValueParam(param));
      }
    }
    return absl::OkStatus();
  }

  // The range of an integer $param, which it must be in to have a value of its type at all.
  RangeCheck CheckOf(const ParamInfo& param, IndexId value) const {
    RangeCheck check{value, absl::nullopt, absl::nullopt,
                     absl::StrCat("op ", callee_.name, ": ", param.name)};
    // An index is i64 itself.
    if (param.type != DType::kI64) check.low = Lowest(param.type).ToInt();
    if (ByteSize(param.type) < ByteSize(DType::kI64)) check.high = Highest(param.type).ToInt();
    if (param.low) check.low = std::max(check.low.value_or(INT64_MIN), param.low->ToInt());
    if (param.high) check.high = std::min(check.high.value_or(INT64_MAX), param.high->ToInt());
    return check;
  }

  // A $param may be an expression over the caller's sizes; its range is then checked when the op
  // runs.
  absl::Status BindIndexParam(const ParamInfo& param) {
    const auto given = bindings_.indices.find(param.name);
    IndexId value;
    if (given != bindings_.indices.end()) value = given->second;
    else if (param.value) value = to_.Const(param.value->ToInt());
    else return Error(absl::StrCat(param.name, " has no default and must be given"));
    symbols_[param.name] = value;
    RangeCheck check = CheckOf(param, value);
    if (!check.low && !check.high) return absl::OkStatus();
    if (const auto constant = to_.ConstValue(value)) {
      if (*constant < check.low.value_or(*constant) || *constant > check.high.value_or(*constant)) {
        return Error(absl::StrCat(param.name, " = ", *constant, " is out of its range"));
      }
      return absl::OkStatus();
    }
    checks_.push_back(std::move(check));
    return absl::OkStatus();
  }

  // Likewise for bool and float $params. Ranges are checked here where values are constants; where
  // they are $params of the caller, these get the ranges.
  absl::Status BindValueParam(const ParamInfo& param) {
    const auto given = bindings_.values.find(param.name);
    if (given != bindings_.values.end()) {
      values_[param.name] = given->second;
    } else if (param.value) {
      values_[param.name] = caller_.graph.AddConstant(*param.value);
    } else {
      return Error(absl::StrCat(param.name, " has no default and must be given"));
    }
    const NodeId value_node = values_[param.name];
    if (caller_.graph.type(value_node) != param.type || caller_.graph.rank(value_node) != 0) {
      return Error(absl::StrCat(param.name, " is ", Name(param.type), " of rank 0, is given ",
                                Name(caller_.graph.type(value_node)), " of rank ",
                                caller_.graph.rank(value_node)));
    }
    if (const Param* of_caller = caller_.graph.As<Param>(value_node))
      narrowed_.emplace_back(of_caller->name, &param);
    const Constant* constant = caller_.graph.As<Constant>(value_node);
    if (constant == nullptr) return absl::OkStatus();
    const double value = constant->value.ToDouble();
    if ((param.low && !(value >= param.low->ToDouble())) ||
        (param.high && !(value <= param.high->ToDouble()))) {
      return Error(
          absl::StrCat(param.name, " = ", LiteralText(constant->value), " is out of its range"));
    }
    return absl::OkStatus();
  }

  // A dimension is the extent of the first axis that has just its name; other axes give equalities.
  absl::Status BindDimensions() {
    for (size_t i = 0; i < args_.size(); ++i) {
      const Shape& shape = callee_.args[i].shape;
      for (size_t axis = 0; axis < shape.size(); ++axis) {
        if (from_[shape[axis]].kind != IndexKind::kSymbol) continue;
        symbols_.try_emplace(from_.SymbolName(shape[axis]), caller_.graph.shape(args_[i])[axis]);
      }
    }
    for (const auto& [name, value] : bindings_.indices) symbols_.try_emplace(name, value);
    for (const Argument& arg : callee_.args) {
      for (IndexId extent : arg.shape) NESTOR_RETURN_IF_ERROR(CheckBound(extent));
    }
    return absl::OkStatus();
  }

  // Every dimension must have a value now: from an axis that is just its name, or by name.
  absl::Status CheckBound(IndexId extent) const {
    absl::Status status;
    VisitIndex(from_, extent, [&](IndexId id, const IndexNode& node) {
      if (node.kind == IndexKind::kSymbol && !symbols_.contains(from_.SymbolName(id))) {
        status = Error(
            absl::StrCat("dimension ", from_.SymbolName(id), " cannot be had from the arguments"));
      }
    });
    return status;
  }

  // An index expression of the callee, with what the caller has for its dimensions and $params.
  IndexId Translate(IndexId e) {
    return CopyIndex(
        from_, e, to_,
        [&](const IndexNode& node, absl::Span<const IndexId>) -> absl::optional<IndexId> {
          if (node.kind != IndexKind::kSymbol) return absl::nullopt;
          return Symbol(node.value);
        });
  }

  absl::optional<IndexId> Symbol(int64_t number) const {
    const auto it = symbols_.find(from_.SymbolNameAt(number));
    return it == symbols_.end() ? absl::nullopt : absl::optional<IndexId>(it->second);
  }

  // Adds what the callee's argument dimensions, $params and statements require.
  void AddChecks() {
    for (size_t i = 0; i < args_.size(); ++i) {
      const Argument& arg = callee_.args[i];
      for (size_t axis = 0; axis < arg.shape.size(); ++axis) {
        const std::string where =
            absl::StrCat("op ", callee_.name, ": axis ", axis, " of ", arg.name, " (",
                         SymbolicText(from_, arg.shape[axis]), ")");
        AddEquality(caller_.graph.shape(args_[i])[axis], Translate(arg.shape[axis]), where);
      }
    }
    for (const Equality& e : callee_.equalities) {
      AddEquality(Translate(e.left), Translate(e.right),
                  absl::StrCat("op ", callee_.name, ": ", e.message));
    }
    for (RangeCheck check : callee_.range_checks) {
      check.value = Translate(check.value);
      check.message = absl::StrCat("op ", callee_.name, ": ", check.message);
      caller_.range_checks.push_back(std::move(check));
    }
    for (RangeCheck& check : checks_) caller_.range_checks.push_back(std::move(check));
    for (ParamInfo& param : caller_.params) {
      for (const auto& [name, by] : narrowed_) {
        if (param.name == name) Narrow(param, *by);
      }
    }
  }

  static void Narrow(ParamInfo& param, const ParamInfo& by) {
    if (by.low && (!param.low || param.low->ToDouble() < by.low->ToDouble())) param.low = by.low;
    if (by.high && (!param.high || param.high->ToDouble() > by.high->ToDouble()))
      param.high = by.high;
  }

  void AddEquality(IndexId left, IndexId right, std::string message) {
    if (left != right) caller_.equalities.push_back({left, right, std::move(message)});
  }

  // The callee's own calls of ops with gradients come along: their arguments and results are
  // imported as further roots, and their tags continue the caller's.
  std::vector<NodeId> Import() {
    const auto leaf = [&](NodeId id) -> NodeId {
      if (const Param* param = callee_.graph.As<Param>(id))
        return ParamNode(param->name, callee_.graph.type(id));
      const std::string& name = callee_.graph.As<Input>(id)->name;
      for (size_t i = 0; i < args_.size(); ++i) {
        if (callee_.args[i].name == name) return AsShaped(i);
      }
      NESTOR_CHECK(false, name);
    };
    const auto symbol = [&](int64_t number) { return Symbol(number); };
    const int64_t first_tag = static_cast<int64_t>(caller_.custom_calls.size());
    const auto tag = [&](int64_t t) { return t + first_tag; };
    ImportCustomCalls();
    std::vector<NodeId> roots = callee_.ResultNodes();
    for (const Op::CustomCall& call : callee_.custom_calls) {
      roots.insert(roots.end(), call.args.begin(), call.args.end());
      roots.insert(roots.end(), call.results.begin(), call.results.end());
      for (const auto& [name, node] : call.value_params) roots.push_back(node);
    }
    std::vector<NodeId> images =
        ImportNodes(callee_.graph, roots, caller_.graph, {leaf, symbol, tag});
    size_t next = callee_.results.size();
    for (size_t i = 0; i < callee_.custom_calls.size(); ++i) {
      Op::CustomCall& call = caller_.custom_calls[first_tag + i];
      for (NodeId& node : call.args) node = images[next++];
      for (NodeId& node : call.results) node = images[next++];
      for (auto& [name, node] : call.value_params) node = images[next++];
    }
    images.resize(callee_.results.size());
    return images;
  }

  // An integer $param is a node only as a fill, which must stay a literal or a
  // $param: CheckFills has seen to it.
  NodeId ParamNode(const std::string& name, DType type) {
    if (!IsInteger(type)) return values_.at(name);
    const IndexId value = symbols_.at(name);
    if (const auto constant = to_.ConstValue(value)) {
      return caller_.graph.AddConstant(Scalar::Integer(type, *constant));
    }
    return caller_.graph.AddParam(to_.SymbolName(value), type);
  }

  // The notation allows a literal or a $param as a fill, so an expression passed for one has no
  // form.
  absl::Status CheckFills() const {
    for (int i = 0; i < callee_.graph.size(); ++i) {
      const Param* param = callee_.graph.As<Param>(NodeId{i});
      if (param == nullptr || !IsInteger(callee_.graph.type(NodeId{i}))) continue;
      const IndexId value = symbols_.at(param->name);
      const IndexKind kind = to_[value].kind;
      if (kind == IndexKind::kConst) continue;
      if (kind != IndexKind::kSymbol || to_.SymbolName(value)[0] != '$') {
        return Error(absl::StrCat(param->name,
                                  " is the fill of an access and must be a literal or a $param"));
      }
      const auto given = absl::c_find_if(
          caller_.params, [&](const ParamInfo& p) { return p.name == to_.SymbolName(value); });
      const DType type = callee_.graph.type(NodeId{i});
      if (given == caller_.params.end() || given->type == type) continue;
      return Error(absl::StrCat(param->name, " is the fill of an access and must be ", Name(type),
                                ", is given ", given->name, ", which is ", Name(given->type)));
    }
    return absl::OkStatus();
  }

  // Argument i with the extents that the callee knows it by; where they are other
  // symbols than the caller's, a check sees to it that they are equal.
  NodeId AsShaped(size_t i) {
    Shape shape;
    for (IndexId extent : callee_.args[i].shape) shape.push_back(Translate(extent));
    IndexList place = caller_.graph.IdentityPlace(shape.size());
    return caller_.graph.AddReindex(args_[i], std::move(shape), std::move(place));
  }

  void ImportCustomCalls() {
    for (Op::CustomCall call : callee_.custom_calls) {
      for (auto& [name, value] : call.index_params) value = Translate(value);
      caller_.custom_calls.push_back(std::move(call));
    }
  }

  // The results become tagged copies, at which differentiation turns to the
  // callee's own gradient.
  absl::StatusOr<std::vector<NodeId>> CallWithGradient() {
    std::vector<NodeId> results = Import();
    Op::CustomCall call{
        std::make_shared<const Op>(callee_), {args_.begin(), args_.end()}, {}, {}, {}};
    call.value_params.assign(values_.begin(), values_.end());
    for (const ParamInfo& param : callee_.params) {
      if (IsInteger(param.type))
        call.index_params.emplace_back(param.name, symbols_.at(param.name));
    }
    const int64_t tag = static_cast<int64_t>(caller_.custom_calls.size()) + 1;
    for (NodeId& node : results) node = caller_.graph.AddTaggedCopy(node, tag);
    call.results = results;
    caller_.custom_calls.push_back(std::move(call));
    return results;
  }

  const Op& callee_;
  absl::Span<const NodeId> args_;
  const CallBindings& bindings_;
  Op& caller_;
  const IndexPool& from_;
  IndexPool& to_;
  absl::flat_hash_map<std::string, IndexId> symbols_;
  absl::flat_hash_map<std::string, NodeId> values_;
  std::vector<RangeCheck> checks_;
  // $params of the caller by name, with those of the callee that they are given for.
  std::vector<std::pair<std::string, const ParamInfo*>> narrowed_;
};

}  // namespace

absl::StatusOr<std::vector<NodeId>> CallOp(const Op& callee, absl::Span<const NodeId> args,
                                           const CallBindings& bindings, Op& caller) {
  return Inliner(callee, args, bindings, caller).Run();
}

}  // namespace nestor
