// In a copy of the op's graph the adjoints are built first, over whatever forward values they need.
// Then the values that the gradient op is given are chosen: given values end the walk back from the
// adjoints to the arguments, and the reductions of the forward program that the walk meets have to
// be recomputed. Candidates are dropped one at a time while that number does not grow.
//
// Reductions count, and elementwise work does not, because elementwise values are recomputed inside
// the loops that use them, at the cost of the reads they replace; a reduction is a pass over memory
// of its own. For y = softmax(x): given y, the gradient (g_y - sum(g_y * y)) * y recomputes
// nothing; given x instead, a max and a sum.
#include "autodiff/gradient.h"

#include <algorithm>
#include <numeric>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "autodiff/adjoint.h"
#include "autodiff/recomputation.h"
#include "uops/call.h"
#include "uops/invariant.h"
#include "uops/notation/module.h"

namespace nestor {
namespace {

class Differentiator {
 public:
  Differentiator(const Op& op, const GradientRequest& request)
      : op_(op), request_(request), work_(op), forward_size_(op.graph.size()),
        used_names_(NamesOfOp()) {}

  absl::StatusOr<GradientResult> Run() {
    NESTOR_RETURN_IF_ERROR(ChooseResults());
    NESTOR_RETURN_IF_ERROR(ChooseArguments());
    NESTOR_RETURN_IF_ERROR(BuildAdjoints());
    NESTOR_RETURN_IF_ERROR(ChooseGiven());
    ChooseShapes();
    return Assemble();
  }

 private:
  struct Candidate {  // an argument or result that the gradient op may be given
    std::string name;
    NodeId node;
    int rank;
    bool is_result;
  };

  absl::Status Error(absl::string_view message) const {
    return absl::InvalidArgumentError(absl::StrCat("gradient of op ", op_.name, ": ", message));
  }

  // ---- What to differentiate, and by what

  // The results that the request names, or all floats if it names none.
  absl::Status ChooseResults() {
    for (const std::string& name : request_.of) {
      const Result* result = op_.FindResult(name);
      if (result == nullptr) return Unknown("result", name, ResultNames());
      if (!IsFloat(op_.graph.type(result->node))) {
        return Error(absl::StrCat("result ", name, " is ", Name(op_.graph.type(result->node)),
                                  ", not a float"));
      }
      of_.push_back(result);
    }
    if (!request_.of.empty()) return absl::OkStatus();
    for (const Result& result : op_.results) {
      if (IsFloat(op_.graph.type(result.node))) of_.push_back(&result);
    }
    return of_.empty() ? Error("no result is a float") : absl::OkStatus();
  }

  // Those that were asked for, or all floats; an argument of which only the shape is used has no
  // gradient.
  absl::Status ChooseArguments() {
    for (const std::string& name : request_.wrt) {
      const Argument* arg = op_.FindArgument(name);
      if (arg == nullptr) return Unknown("argument", name, ArgumentNames());
      if (!IsFloat(arg->type))
        return Error(absl::StrCat("argument ", name, " is ", Name(arg->type), ", not a float"));
      wrt_.push_back(arg);
    }
    if (!request_.wrt.empty()) return absl::OkStatus();
    for (const Argument& arg : op_.args) {
      if (IsFloat(arg.type) && !arg.shape_only) wrt_.push_back(&arg);
    }
    return wrt_.empty() ? Error("no argument is a float") : absl::OkStatus();
  }

  absl::Status Unknown(absl::string_view what, const std::string& name,
                       const std::vector<std::string>& known) const {
    return Error(absl::StrCat("no ", what, " is named '", name, "'", DidYouMean(name, known),
                              " (there are ", absl::StrJoin(known, ", "), ")"));
  }
  std::vector<std::string> ArgumentNames() const {
    std::vector<std::string> names;
    for (const Argument& arg : op_.args) names.push_back(arg.name);
    return names;
  }
  std::vector<std::string> ResultNames() const {
    std::vector<std::string> names;
    for (const Result& result : op_.results) names.push_back(result.name);
    return names;
  }

  // A name that neither the op nor the gradient op uses yet.
  std::string Fresh(const std::string& name) {
    std::string fresh =
        FreshName(name, [&](absl::string_view n) { return used_names_.contains(n); });
    used_names_.insert(fresh);
    return fresh;
  }

  // Names that are taken: an argument of the gradient must not be called as one of these.
  absl::flat_hash_set<std::string> NamesOfOp() const {
    absl::flat_hash_set<std::string> names;
    for (const Argument& arg : op_.args) {
      names.insert(arg.name);
      for (IndexId extent : arg.shape) {
        VisitIndex(op_.graph.pool(), extent, [&](IndexId id, const IndexNode& node) {
          if (node.kind == IndexKind::kSymbol) names.insert(op_.graph.pool().SymbolName(id));
        });
      }
    }
    for (const Result& result : op_.results) names.insert(result.name);
    return names;
  }

  // ---- Adjoints

  // Adds an argument g_<result> for each result. A gradient to which nothing flows is zeros.
  absl::Status BuildAdjoints() {
    Graph& graph = work_.graph;
    std::vector<Seed> seeds;
    for (const Result* result : of_) {
      const std::string name = Fresh(absl::StrCat("g_", result->name));
      const Shape shape = graph.shape(result->node);
      const NodeId node = graph.AddInput(name, graph.type(result->node), shape);
      adjoint_args_.push_back({name, graph.type(node), shape, false, node});
      seeds.push_back({result->node, node});
    }
    std::vector<NodeId> nodes;
    for (const Argument* arg : wrt_) nodes.push_back(arg->node);
    NESTOR_ASSIGN_OR_RETURN(gradients_, Adjoints(work_, seeds, nodes));
    for (size_t i = 0; i < gradients_.size(); ++i) {
      if (gradients_[i].valid()) continue;
      const NodeId zero = graph.AddConstant(Scalar::Zero(wrt_[i]->type));
      gradients_[i] = graph.AddSplat(zero, graph.shape(nodes[i]));
    }
    return absl::OkStatus();
  }

  // ---- What is given

  // The values that a caller of the gradient has at hand: the op's arguments, and its results where
  // these are computed.
  std::vector<Candidate> Candidates() const {
    std::vector<Candidate> candidates;
    for (const Argument& arg : op_.args) {
      if (!arg.shape_only)
        candidates.push_back({arg.name, arg.node, op_.graph.rank(arg.node), false});
    }
    for (const Result& result : op_.results) {
      const bool plain = op_.graph.As<Input>(result.node) != nullptr ||
                         op_.graph.As<Constant>(result.node) != nullptr ||
                         op_.graph.As<Param>(result.node) != nullptr;
      // An op with a gradient of its own hands an argument on as a copy, under the same name.
      const bool is_named_alone = op_.FindArgument(result.name) == nullptr;
      if (!plain && is_named_alone)
        candidates.push_back({result.name, result.node, op_.graph.rank(result.node), true});
    }
    return candidates;
  }

  std::vector<NodeId> CutAt(const std::vector<Candidate>& given) const {
    std::vector<NodeId> cut;
    for (const Candidate& c : given) cut.push_back(c.node);
    return cut;
  }

  // All candidates are given at first. Those with the most axes are tried first, since they take
  // the most memory until the backward pass; arguments go before results of the same rank.
  absl::Status ChooseGiven() {
    if (request_.given) return TakeGiven(*request_.given);
    const std::vector<Candidate> all = Candidates();
    Recomputation recomputed(work_.graph, forward_size_, gradients_, CutAt(all));
    std::vector<size_t> order(all.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return all[a].rank != all[b].rank ? all[a].rank > all[b].rank
                                        : all[a].is_result < all[b].is_result;
    });
    // One name may denote two nodes, and two names may denote one node, which is given until both
    // are dropped.
    absl::flat_hash_map<NodeId, int> names;
    absl::flat_hash_map<std::string, std::vector<size_t>> named;
    for (size_t i = 0; i < all.size(); ++i) {
      ++names[all[i].node];
      named[all[i].name].push_back(i);
    }
    std::vector<bool> dropped(all.size(), false);
    // Something that no candidate gives is needed all the same; then nothing is dropped.
    if (!recomputed.Missing().empty()) order.clear();
    for (const size_t i : order) {
      if (dropped[i]) continue;
      std::vector<NodeId> nodes;
      for (const size_t k : named[all[i].name]) {
        if (--names[all[k].node] == 0) nodes.push_back(all[k].node);
      }
      // Keeps the drop only where no more reductions have to be recomputed.
      const bool drop = recomputed.Drop(nodes);
      for (const size_t k : named[all[i].name]) {
        dropped[k] = drop;
        if (!drop) ++names[all[k].node];
      }
    }
    for (size_t i = 0; i < all.size(); ++i) {
      if (!dropped[i]) given_.push_back(all[i]);
    }
    return absl::OkStatus();
  }

  // Takes the arguments that the caller asks for, if the gradient can be computed from them.
  absl::Status TakeGiven(const std::vector<std::string>& names) {
    const std::vector<Candidate> candidates = Candidates();
    std::vector<std::string> known, missing;
    for (const Candidate& c : candidates) known.push_back(c.name);
    for (const Argument& adjoint : adjoint_args_) known.push_back(adjoint.name);
    const absl::flat_hash_set<std::string> sought(names.begin(), names.end()),
        found(known.begin(), known.end());
    for (const std::string& name : names) {
      if (!found.contains(name)) return Unknown("given value", name, known);
    }
    const auto is_given = [&](const std::string& name) { return sought.contains(name); };
    for (const Candidate& c : candidates) {
      if (is_given(c.name)) given_.push_back(c);
    }
    const std::vector<bool> live = Reachable(work_.graph, gradients_, CutAt(given_));
    for (const Argument& adjoint : adjoint_args_) {
      if (live[adjoint.node.value] && !is_given(adjoint.name)) missing.push_back(adjoint.name);
    }
    const Recomputation recomputed(work_.graph, forward_size_, gradients_, CutAt(given_));
    for (const std::string& name : recomputed.Missing()) missing.push_back(name);
    if (missing.empty()) return absl::OkStatus();
    return Error(absl::StrCat("what is given does not suffice: it also needs ",
                              absl::StrJoin(missing, ", ")));
  }

  // ---- Dimensions

  template <class Visit>
  void VisitSymbols(const Shape& shape, Visit visit) const {
    const IndexPool& pool = work_.graph.pool();
    for (IndexId e : shape) {
      VisitIndex(pool, e, [&](IndexId id, const IndexNode& node) {
        if (node.kind == IndexKind::kSymbol && pool.SymbolName(id)[0] != '$')
          visit(pool.SymbolName(id));
      });
    }
  }

  // The dimensions that shapes and subscripts of the gradient mention: an argument of which no
  // element is needed may still have to say how long one is.
  absl::flat_hash_set<std::string> NeededDimensions() const {
    absl::flat_hash_set<std::string> needed;
    const auto need = [&](const std::string& name) { needed.insert(name); };
    const std::vector<bool> live = Reachable(work_.graph, gradients_, CutAt(given_));
    for (int i = 0; i < work_.graph.size(); ++i) {
      if (!live[i]) continue;
      const Node& node = work_.graph[NodeId{i}];
      VisitSymbols(node.shape, need);
      if (const Index* index = absl::get_if<Index>(&node.op)) VisitSymbols({index->expr}, need);
      if (const Reindex* reindex = absl::get_if<Reindex>(&node.op)) {
        VisitSymbols(reindex->place, need);
        VisitSymbols(reindex->conditions, need);
      }
      if (const Scatter* scatter = absl::get_if<Scatter>(&node.op))
        VisitSymbols(scatter->place, need);
    }
    for (const Argument& arg : adjoint_args_) VisitSymbols(arg.shape, need);
    for (const Candidate& c : given_) VisitSymbols(work_.graph.shape(c.node), need);
    return needed;
  }

  // An argument whose dimensions alone are needed appears as a shape.
  void ChooseShapes() {
    absl::flat_hash_set<std::string> unbound = NeededDimensions();
    const IndexPool& pool = work_.graph.pool();
    const auto bind = [&](const Shape& shape) {
      bool useful = false;
      for (IndexId e : shape) {
        if (pool[e].kind == IndexKind::kSymbol) useful |= unbound.erase(pool.SymbolName(e)) > 0;
      }
      return useful;
    };
    // What is given anyway binds its dimensions first; a shape is asked for only for the rest.
    for (const Argument& arg : adjoint_args_) bind(arg.shape);
    for (const Candidate& c : given_) bind(work_.graph.shape(c.node));
    absl::flat_hash_set<std::string> listed;  // the given names, and then shapes
    for (const Candidate& c : given_) listed.insert(c.name);
    const auto list = [&](const Argument& arg) {
      listed.insert(arg.name);
      shapes_.push_back(&arg);
    };
    for (const Argument& arg : op_.args) {
      if (!listed.contains(arg.name) && bind(arg.shape)) list(arg);
    }
    // A dimension that nothing can bind must be mentioned, so that the caller can
    // give it.
    const auto mention = [&](const Shape& shape) {
      bool useful = false;
      VisitSymbols(shape, [&](const std::string& name) { useful |= unbound.erase(name) > 0; });
      return useful;
    };
    for (const Argument& arg : adjoint_args_) mention(arg.shape);
    for (const Candidate& c : given_) mention(work_.graph.shape(c.node));
    for (const Argument* arg : shapes_) mention(arg->shape);
    for (const Argument& arg : op_.args) {
      if (!listed.contains(arg.name) && mention(arg.shape)) list(arg);
    }
  }

  // ---- The op

  // A fresh op with what the gradients depend on, and nothing else of the forward program.
  absl::StatusOr<GradientResult> Assemble() {
    GradientResult result;
    Op& op = result.op;
    op.name = absl::StrCat(op_.name, "_grad");
    op.params = op_.params;
    for (const Argument& arg : adjoint_args_) AddArgument(op, arg.name, arg.node, false);
    for (const Candidate& c : given_) {
      AddArgument(op, c.name, c.node, false);
      result.mask.push_back(c.name);
    }
    for (const Argument* arg : shapes_) {
      AddArgument(op, arg->name, arg->node, true);
      result.mask.push_back(arg->name);
      result.shapes.push_back(arg->name);
    }
    const std::vector<NodeId> images = Import(op);
    for (size_t i = 0; i < wrt_.size(); ++i) {
      const std::string name = Fresh(absl::StrCat("g_", wrt_[i]->name));
      op.results.push_back({name, images[i]});
      result.results.push_back(name);
    }
    CopyChecks(op);
    return result;
  }

  // An input of `op` that stands for `node`: the import ends there instead of at its computation.
  void AddArgument(Op& op, const std::string& name, NodeId node, bool shape_only) {
    Shape shape;
    for (IndexId e : work_.graph.shape(node)) {
      shape.push_back(CopyIndex(work_.graph.pool(), e, op.graph.pool()));
    }
    const DType type = work_.graph.type(node);
    const NodeId input = op.graph.AddInput(name, type, shape);
    images_[node] = input;
    op.args.push_back({name, type, std::move(shape), shape_only, input});
  }

  // Copies what the gradients need into `op`, as far as the values that it is given as arguments.
  std::vector<NodeId> Import(Op& op) {
    const auto leaf = [&](NodeId id) {
      const auto it = images_.find(id);
      if (it != images_.end()) return it->second;
      const Param* param = work_.graph.As<Param>(id);
      NESTOR_CHECK(param != nullptr, "an argument that is not given");
      return op.graph.AddParam(param->name, work_.graph.type(id));
    };
    const auto symbol = [](int64_t) -> absl::optional<IndexId> { return absl::nullopt; };
    // A recomputed call with a gradient of its own is an ordinary one here: its second derivative
    // is derived from what it computes.
    const auto tag = [](int64_t) -> int64_t { return 0; };
    const std::vector<NodeId> cut = CutAt(given_);
    return ImportNodes(work_.graph, gradients_, op.graph, {leaf, symbol, tag, cut});
  }

  // The forward program's checks whose symbols the gradient op knows.
  void CopyChecks(Op& op) {
    absl::flat_hash_set<std::string> bound;
    for (const Argument& arg : op.args) {
      for (IndexId e : arg.shape) {
        VisitIndex(op.graph.pool(), e, [&](IndexId id, const IndexNode& node) {
          if (node.kind == IndexKind::kSymbol) bound.insert(op.graph.pool().SymbolName(id));
        });
      }
    }
    const auto known = [&](IndexId e) {
      bool all = true;
      VisitSymbols({e}, [&](const std::string& name) { all &= bound.contains(name); });
      return all;
    };
    const auto copy = [&](IndexId e) { return CopyIndex(work_.graph.pool(), e, op.graph.pool()); };
    for (const Equality& e : work_.equalities) {
      if (known(e.left) && known(e.right))
        op.equalities.push_back({copy(e.left), copy(e.right), e.message});
    }
    for (RangeCheck check : work_.range_checks) {
      if (!known(check.value)) continue;
      check.value = copy(check.value);
      op.range_checks.push_back(std::move(check));
    }
  }

  const Op& op_;
  const GradientRequest& request_;
  Op work_;  // the forward graph and, after it, the adjoints
  const int forward_size_;
  absl::flat_hash_set<std::string> used_names_;  // the op's and the gradient op's
  std::vector<const Result*> of_;
  std::vector<const Argument*> wrt_;
  std::vector<Argument> adjoint_args_;
  std::vector<NodeId> gradients_;  // of wrt_, in work_
  std::vector<Candidate> given_;
  std::vector<const Argument*> shapes_;
  absl::flat_hash_map<NodeId, NodeId> images_;
};

}  // namespace

absl::StatusOr<GradientResult> Gradient(const Op& op, const GradientRequest& request) {
  if (op.gradient != nullptr) {
    // The op is differentiated as a call of it would be.
    NESTOR_ASSIGN_OR_RETURN(const Op whole, Combine(op.name, {op}));
    return Differentiator(whole, request).Run();
  }
  return Differentiator(op, request).Run();
}

}  // namespace nestor
