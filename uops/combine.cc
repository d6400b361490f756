// Ops joined by names: each is called in the whole op, where its arguments are what earlier ops
// have left under these names. Names and dimensions of several ops meet here, so clashes are found
// here.
#include <algorithm>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "uops/call.h"
#include "uops/invariant.h"
#include "uops/notation/parser.h"

namespace nestor {
namespace {

// The caller's mistake, which no single op shows.
absl::Status CombineError(absl::string_view message) {
  return absl::InvalidArgumentError(absl::StrCat("Combine: ", message));
}

// Calls one op after the other in the whole, where their arguments and results are known by name
// from then on.
// { h = linear(x, w), y = gelu(h) }, results {"y"}   ->   whole(x, w) -> (y)
class Combiner {
 public:
  explicit Combiner(absl::string_view name) { whole_.name = std::string(name); }

  absl::Status Add(const Op& op) {
    const Dimensions known = KnownDimensions(op);
    std::vector<NodeId> args;
    for (const Argument& arg : op.args) args.push_back(TensorFor(op, arg, known));
    CallBindings bindings;
    for (const ParamInfo& param : op.params) NESTOR_RETURN_IF_ERROR(AddParam(param, bindings));
    NESTOR_ASSIGN_OR_RETURN(const std::vector<NodeId> nodes, CallOp(op, args, bindings, whole_));
    for (size_t i = 0; i < nodes.size(); ++i) {
      tensors_[op.results[i].name] = nodes[i];
      results_.push_back(op.results[i].name);
    }
    return absl::OkStatus();
  }

  absl::StatusOr<Op> Finish(absl::Span<const std::string> results) {
    for (const std::string& result : results.empty() ? absl::MakeConstSpan(results_) : results) {
      if (!absl::c_linear_search(results_, result))
        return CombineError(absl::StrCat("no op has a result named ", result));
      if (whole_.FindResult(result) != nullptr) {
        return CombineError(results.empty()
                                ? absl::StrCat("two ops have a result named ", result)
                                : absl::StrCat("the result ", result, " is named twice"));
      }
      whole_.results.push_back({result, tensors_.at(result)});
    }
    NESTOR_RETURN_IF_ERROR(CheckNames());
    return std::move(whole_);
  }

 private:
  using Dimensions = absl::flat_hash_map<std::string, IndexId>;

  // What the tensors that `op` takes from earlier ops say of its dimensions. Another rank than the
  // argument's is an error of the call.
  Dimensions KnownDimensions(const Op& op) const {
    const IndexPool& pool = op.graph.pool();
    Dimensions known;
    for (const Argument& arg : op.args) {
      const auto it = tensors_.find(arg.name);
      if (it == tensors_.end()) continue;
      const Shape& given = whole_.graph.shape(it->second);
      for (size_t axis = 0; axis < std::min(given.size(), arg.shape.size()); ++axis) {
        if (pool[arg.shape[axis]].kind == IndexKind::kSymbol)
          known.try_emplace(pool.SymbolName(arg.shape[axis]), given[axis]);
      }
    }
    return known;
  }

  // A name that no earlier op has given is an argument, and stands for the same tensor in later
  // ops. An argument that any op reads is more than a shape.
  NodeId TensorFor(const Op& op, const Argument& arg, const Dimensions& known) {
    const auto it = tensors_.find(arg.name);
    const NodeId node = it != tensors_.end() ? it->second : AddArgument(op, arg, known);
    tensors_.emplace(arg.name, node);
    for (Argument& own : whole_.args) {
      if (own.name == arg.name && !arg.shape_only) own.shape_only = false;
    }
    return node;
  }

  NodeId AddArgument(const Op& op, const Argument& arg, const Dimensions& known) {
    const IndexPool& pool = op.graph.pool();
    const auto leaf = [&](const IndexNode& node,
                          absl::Span<const IndexId>) -> absl::optional<IndexId> {
      if (node.kind != IndexKind::kSymbol) return absl::nullopt;
      const auto it = known.find(pool.SymbolNameAt(node.value));
      return it == known.end() ? absl::nullopt : absl::optional<IndexId>(it->second);
    };
    Shape shape;
    for (IndexId extent : arg.shape)
      shape.push_back(CopyIndex(pool, extent, whole_.graph.pool(), leaf));
    const NodeId node = whole_.graph.AddInput(arg.name, arg.type, shape);
    whole_.args.push_back({arg.name, arg.type, shape, arg.shape_only, node});
    return node;
  }

  // A $param of several ops is added once.
  absl::Status AddParam(const ParamInfo& param, CallBindings& bindings) {
    const ParamInfo* known = whole_.FindParam(param.name);
    if (known == nullptr) {
      whole_.params.push_back(param);
    } else if (known->type != param.type) {
      return absl::InvalidArgumentError(absl::StrCat(param.name, " is ", Name(known->type),
                                                     " in one op and ", Name(param.type),
                                                     " in another"));
    }
    if (IsInteger(param.type))
      bindings.indices[param.name] = whole_.graph.pool().Symbol(param.name);
    else bindings.values[param.name] = whole_.graph.AddParam(param.name, param.type);
    return absl::OkStatus();
  }

  absl::Status CheckNames() const {
    if (!IsName(whole_.name) || ScalarOpByName(whole_.name))
      return CombineError(absl::StrCat("'", whole_.name, "' cannot be the name of an op"));
    for (const Argument& arg : whole_.args) {
      if (const Argument* of = WithDimension(arg.name)) {
        return CombineError(
            absl::StrCat("the argument ", arg.name, " has the name of a dimension of ", of->name));
      }
    }
    for (const Result& result : whole_.results) {
      // An argument may be a result under its own name.
      const Argument* arg = whole_.FindArgument(result.name);
      if (arg != nullptr && arg->node != WithoutTags(result.node))
        return CombineError(
            absl::StrCat("the result ", result.name, " has the name of an argument"));
      if (const Argument* of = WithDimension(result.name)) {
        return CombineError(
            absl::StrCat("the result ", result.name, " has the name of a dimension of ", of->name));
      }
    }
    return absl::OkStatus();
  }

  // The tensor that `node` is a copy of, as the result of ops with gradients of their own.
  NodeId WithoutTags(NodeId node) const {
    const Map* map = whole_.graph.As<Map>(node);
    return map != nullptr && map->tag > 0 ? WithoutTags(map->args[0]) : node;
  }

  // The first argument whose shape mentions that dimension; null: none.
  const Argument* WithDimension(absl::string_view name) const {
    const IndexPool& pool = whole_.graph.pool();
    for (const Argument& arg : whole_.args) {
      bool found = false;
      for (IndexId extent : arg.shape) {
        VisitIndex(pool, extent, [&](IndexId id, const IndexNode& node) {
          found |= node.kind == IndexKind::kSymbol && pool.SymbolName(id) == name;
        });
      }
      if (found) return &arg;
    }
    return nullptr;
  }

  Op whole_;
  absl::flat_hash_map<std::string, NodeId> tensors_;  // the last of each name
  std::vector<std::string> results_;                  // of all ops, in order
};

}  // namespace

absl::StatusOr<Op> Combine(absl::string_view name, absl::Span<const Op> ops,
                           absl::Span<const std::string> results) {
  Combiner combiner(name);
  for (const Op& op : ops) NESTOR_RETURN_IF_ERROR(combiner.Add(op));
  return combiner.Finish(results);
}

}  // namespace nestor
