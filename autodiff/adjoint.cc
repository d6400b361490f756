// Reverse mode (Griewank and Walther, "Evaluating Derivatives", 2nd ed., 2008), on whole tensors:
// the adjoint of a value v is d(results * seeds) / dv, and if y = f(.., v, ..), y's adjoint times
// df/dv is one of its summands. So one walk gives all gradients, at a cost that does not grow with
// the number of arguments:
//
//   y[i] = sum[k] exp(x[i,k])       g_e[i,k] = g_y[i]              (a sum spreads its adjoint)
//                                   g_x[i,k] = g_e[i,k] * e[i,k]   (exp is its own derivative)
//
// Nodes are visited from the results to the arguments; each hands its adjoint on to its operands,
// one case per micro-op, and contributions add up. Only active nodes (activity.h) take part. Each
// adjoint carries along what it has passed, since products with it depend on that (chain_rule.h).
// The forward values that adjoints need are referred to as nodes: which of them are computed again
// and which are given is decided later (recomputation.h).
//
// A recurrence is visited as one node: the same walk over its steps finds the equations of its
// adjoint (adjoint_recurrence.h).
#include "autodiff/adjoint.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "autodiff/activity.h"
#include "autodiff/adjoint_recurrence.h"
#include "autodiff/algebra.h"
#include "autodiff/chain_rule.h"
#include "autodiff/product_of_others.h"
#include "autodiff/pull_back.h"
#include "autodiff/repeatable.h"
#include "uops/call.h"
#include "uops/invariant.h"
#include "uops/mutant.h"
#include "uops/recurrence.h"

namespace nestor {
namespace {

// The number of nodes of the forward program: adjoints come after them.
int ForwardSize(absl::Span<const Seed> seeds, const Graph& graph) {
  int size = graph.size();
  for (const Seed& seed : seeds) size = std::min(size, seed.adjoint.value);
  return size;
}

CallBindings BindingsOf(const Op::CustomCall& call) {
  CallBindings bindings;
  for (const auto& [name, value] : call.index_params) bindings.indices[name] = value;
  for (const auto& [name, value] : call.value_params) bindings.values[name] = value;
  return bindings;
}

// The node for an argument of a gradient that was written by hand: the op's argument or result of
// that name, or a result's adjoint, g_<result>. Invalid: there is none.
NodeId ArgumentOf(const Op::CustomCall& call, absl::string_view name,
                  const std::vector<NodeId>& adjoints, Algebra& algebra, const Graph& graph) {
  for (size_t i = 0; i < call.op->args.size(); ++i) {
    if (call.op->args[i].name == name) return call.args[i];
  }
  for (size_t i = 0; i < call.op->results.size(); ++i) {
    const NodeId result = call.results[i];
    if (call.op->results[i].name == name) return result;
    if (absl::StrCat("g_", call.op->results[i].name) != name) continue;
    // Results that are the same node share an adjoint, which is given once, with the first
    // of them.
    const auto first = std::find(call.results.begin(), call.results.end(), result);
    const bool is_first = first == call.results.begin() + static_cast<std::ptrdiff_t>(i);
    const NodeId g = is_first ? adjoints[result.value] : NodeId();
    return g.valid() ? g : algebra.Splat(0.0, graph.type(result), graph.shape(result));
  }
  return NodeId();
}

class ReverseWalk {
 public:
  ReverseWalk(Op& op, absl::Span<const Seed> seeds, absl::Span<const NodeId> wrt)
      : op_(op), graph_(op.graph), pool_(op.graph.pool()), seeds_(seeds), wrt_(wrt),
        forward_size_(ForwardSize(seeds, op.graph)), algebra_(op.graph, forward_size_),
        chain_rule_(op.graph, algebra_), repeatable_(op.graph), adjoints_(forward_size_),
        masks_(forward_size_, kUnmasked) {}

  // From the last node to the first: when a node is visited, all its users have contributed, so its
  // adjoint is complete. A system of equations is visited once, at its oldest view, which may be
  // one that has no adjoint itself.
  absl::StatusOr<std::vector<NodeId>> Run() {
    FindActive();
    FindViews();
    for (const Seed& seed : seeds_) Contribute(seed.result, seed.adjoint, kUnmasked);
    for (int i = forward_size_ - 1; i >= 0; --i) {
      if (adjoints_[i].valid() || graph_.As<Recurrence>(NodeId{i}) != nullptr)
        NESTOR_RETURN_IF_ERROR(Visit(NodeId{i}));
    }
    std::vector<NodeId> result;
    for (NodeId id : wrt_) result.push_back(adjoints_[id.value]);
    return result;
  }

 private:
  void FindActive() {
    std::vector<NodeId> results;
    for (const Seed& seed : seeds_) results.push_back(seed.result);
    active_ = ActiveNodes(op_, results, wrt_, forward_size_);
  }

  void FindViews() {
    for (int i = 0; i < forward_size_; ++i) {
      const Recurrence* recurrence = graph_.As<Recurrence>(NodeId{i});
      if (recurrence != nullptr) views_[recurrence->carries[0]].push_back(NodeId{i});
    }
  }

  // Adds to the adjoint of `to`: a value with several users has the sum over them. A contribution
  // of a recurrence's steps to a node outside of it waits until the loop is closed, for it is one
  // term of each step.
  void Contribute(NodeId to, NodeId adjoint, uint8_t mask) {
    if (!active_[to.value]) return;
    if (recurrence_ != nullptr && !recurrence_->Holds(to)) {
      outside_.push_back({to, adjoint, mask});
      return;
    }
    NodeId& sum = adjoints_[to.value];
    sum = sum.valid() && !NESTOR_MUTANT("fan_out_assigned") ? algebra_.Add(sum, adjoint) : adjoint;
    masks_[to.value] |= mask;
  }

  // Hands on the adjoint of one node, which is complete: all its users are younger and were
  // visited.
  absl::Status Visit(NodeId id) {
    struct Visitor {
      ReverseWalk& self;
      NodeId id, g;
      absl::Status operator()(const Input&) const { return absl::OkStatus(); }
      absl::Status operator()(const Param&) const { return absl::OkStatus(); }
      absl::Status operator()(const Constant&) const { return absl::OkStatus(); }
      absl::Status operator()(const Index&) const { return absl::OkStatus(); }
      absl::Status operator()(const Reindex& n) const { return self.VisitReindex(id, n, g); }
      absl::Status operator()(const Map& n) const { return self.VisitMap(id, n, g); }
      absl::Status operator()(const Reduce& n) const { return self.VisitReduce(id, n, g); }
      absl::Status operator()(const Scatter& n) const { return self.VisitScatter(id, n, g); }
      absl::Status operator()(const Carry&) const { return absl::OkStatus(); }
      absl::Status operator()(const Recurrence& n) const { return self.VisitRecurrence(id, n); }
    };
    const MicroOp op = graph_[id].op;  // a copy: the graph grows
    return absl::visit(Visitor{*this, id, adjoints_[id.value]}, op);
  }

  // ---- Recurrences

  // x as a value that an adjoint is computed from.
  NodeId ValueOf(NodeId x) const { return recurrence_ == nullptr ? x : recurrence_->ValueOf(x); }
  IndexId ValueOf(IndexId e) const { return recurrence_ == nullptr ? e : recurrence_->ValueOf(e); }
  NodeList ValuesOf(const NodeList& list) const {
    NodeList values;
    for (NodeId x : list) values.push_back(ValueOf(x));
    return values;
  }
  IndexList ValuesOf(const IndexList& list) const {
    IndexList values;
    for (IndexId e : list) values.push_back(ValueOf(e));
    return values;
  }

  // This is done once, at the oldest view of the recurrence, when all users of all views have
  // been visited.
  absl::Status VisitRecurrence(NodeId id, const Recurrence& n) {
    std::vector<NodeId> views = views_.at(n.carries[0]);
    if (views[0] < id) return absl::OkStatus();
    views.erase(std::remove_if(views.begin(), views.end(),
                               [&](NodeId view) { return !adjoints_[view.value].valid(); }),
                views.end());
    if (views.empty()) return absl::OkStatus();
    AdjointRecurrence recurrence(graph_, algebra_, n);
    recurrence_ = &recurrence;
    for (NodeId view : views)
      Contribute(graph_.As<Recurrence>(view)->x, adjoints_[view.value], masks_[view.value]);
    const absl::Status walked = WalkSteps();
    recurrence_ = nullptr;
    NESTOR_RETURN_IF_ERROR(walked);
    for (NodeId step : recurrence.steps()) adjoints_[step.value] = NodeId();
    Settler settler(graph_, recurrence.Equations());
    for (const Contribution& c : std::exchange(outside_, {}))
      Contribute(c.to, settler.Settle(c.adjoint), c.mask);
    return absl::OkStatus();
  }

  // From the last step to the first; a read of an earlier step contributes to no node of this one.
  absl::Status WalkSteps() {
    const std::vector<NodeId>& steps = recurrence_->steps();
    for (NodeId step : steps) {
      const NodeId carry = recurrence_->CarryReadBy(step);
      if (!carry.valid() || !active_[carry.value]) continue;
      const absl::optional<Contribution> c = recurrence_->Expect(step);
      if (c) Contribute(c->to, c->adjoint, c->mask);
    }
    for (size_t i = steps.size(); i-- > 0;) {
      const NodeId step = steps[i], g = adjoints_[step.value];
      if (!g.valid()) continue;
      if (!recurrence_->Expects(step)) {
        NESTOR_RETURN_IF_ERROR(Visit(step));
        continue;
      }
      // An earlier step that is out of bounds is no element of the carry.
      recurrence_->HandBack(step, Masked(g, IndexList(graph_.As<Reindex>(step)->conditions)));
    }
    return absl::OkStatus();
  }

  // ---- Elementwise

  // Each operand gets g times the partial derivative of the operation, which is a text in the
  // operation's row, an op over the operands, the result and g.
  absl::Status VisitMap(NodeId id, const Map& map, NodeId g) {
    if (map.tag > 0) return VisitCustomCall(id, map);
    const ScalarOpRow& row = Row(map.op);
    for (size_t i = 0; i < map.args.size(); ++i) {
      if (!active_[map.args[i].value] || row.derivatives[i][0] == '\0') continue;
      const uint8_t mask = masks_[id.value];
      const Op& derivative =
          DerivativeOf(map.op, static_cast<int>(i), graph_.type(map.args.back()), graph_.type(id));
      const NodeId d = chain_rule_.Apply(derivative, ValuesOf(map.args), ValueOf(id), g, mask);
      const uint8_t own = map.op == ScalarOp::kMulz ? kZeroed | kUnbridled
                          : row.traits & kGate      ? kZeroed
                                                    : kUnmasked;
      Contribute(map.args[i], d, mask | own);
    }
    return absl::OkStatus();
  }

  // ---- Reindex

  // The transpose of a gather is a scatter: y[i] = x[place(i)] gives x'[place(i)] += y'[i].
  // Elements whose conditions do not hold read nothing, so they give nothing.
  absl::Status VisitReindex(NodeId id, const Reindex& n, NodeId g) {
    if (!active_[n.x.value]) return absl::OkStatus();
    const uint8_t mask = masks_[id.value] | (ReadsAll(id, n) ? kUnmasked : kZeroed);
    const NodeId read = Masked(g, n.conditions);
    Contribute(n.x,
               PullBack(graph_, algebra_, read, ValuesOf(n.place), Shape(graph_.shape(n.x)),
                        recurrence_ == nullptr ? StepAxes() : recurrence_->AxesOf(id, n.x)),
               mask);
    return absl::OkStatus();
  }

  // The adjoint of a read where its conditions hold, else 0.
  NodeId Masked(NodeId g, const IndexList& conditions) {
    const Shape shape = graph_.shape(g);
    return graph_.AddReindex(g, shape, graph_.IdentityPlace(shape.size()), NodeId(),
                             ValuesOf(conditions));
  }

  // Every element of x is read, unconditionally, somewhere.
  bool ReadsAll(NodeId id, const Reindex& n) {
    if (!n.conditions.empty()) return false;
    std::vector<bool> used(graph_.rank(id), false);
    for (size_t j = 0; j < n.place.size(); ++j) {
      const int64_t var = pool_.VarValue(n.place[j]);
      if (var < 0 || used[var] || graph_.shape(id)[var] != graph_.shape(n.x)[j]) return false;
      used[var] = true;
    }
    return true;
  }

  // ---- Reductions

  std::vector<int> LeadingAxes(int count) {
    std::vector<int> axes(count);
    std::iota(axes.begin(), axes.end(), 0);
    return axes;
  }

  // A value of the reduction's shape at every point of its operand.
  NodeId Spread(NodeId value, const Reduce& n) {
    return graph_.AddBroadcast(value, graph_.shape(n.x), LeadingAxes(graph_.rank(value)));
  }

  // A sum gives each term the whole adjoint; a product, the adjoint times the product of the other
  // factors; an extremum, equal shares to the elements that attain it.
  absl::Status VisitReduce(NodeId id, const Reduce& n, NodeId g) {
    const uint8_t mask = masks_[id.value];
    switch (n.op) {
      case ReduceOp::kSum: Contribute(n.x, Spread(g, n), mask); return absl::OkStatus();
      case ReduceOp::kProd: {
        const NodeList factors = {Spread(g, n), ProductOfOthers(graph_, ValueOf(n.x), n.count)};
        const bool guard = chain_rule_.NeedsMulz(factors, 0, mask);
        Contribute(
            n.x,
            guard ? graph_.AddMap(ScalarOp::kMulz, factors) : algebra_.Mul(factors[0], factors[1]),
            mask);
        return absl::OkStatus();
      }
      case ReduceOp::kMax:
      case ReduceOp::kMin: {
        std::vector<int> axes(n.count);
        std::iota(axes.begin(), axes.end(), graph_.rank(n.x) - n.count);
        NodeId x = ValueOf(n.x), extremum = ValueOf(id);
        if (!repeatable_.Contains(x)) {
          x = Apart(x);
          extremum = graph_.AddReduce(n.op, x, axes);
        }
        const NodeId tie = Ties(x, Spread(extremum, n));
        const NodeId count = graph_.AddReduce(ReduceOp::kSum, AsCount(tie), axes);
        const NodeId share = NESTOR_MUTANT("ties_given_in_full")
                                 ? g
                                 : algebra_.Div(g, graph_.AddCast(count, graph_.type(id)));
        Contribute(n.x, Where(tie, Spread(share, n)), mask | kZeroed);
        return absl::OkStatus();
      }
      default: return absl::OkStatus();
    }
  }

  // x for an extremum that is computed anew, beside the ties with it, in the gradient. That of the
  // forward program may be given, and then be no element of x, if rounded in another way: x / s may
  // be x * (1 / s) there, where nothing is compared, and not here.
  NodeId Apart(NodeId x) {
    constexpr int64_t kNoCall = -1;  // the gradient op has the value itself
    return NESTOR_MUTANT("ties_with_what_is_given") ? x : graph_.AddTaggedCopy(x, kNoCall);
  }

  // Where x attains the extremum, or both are NaN.
  NodeId Ties(NodeId x, NodeId extremum) {
    const NodeId equal = graph_.AddMap(ScalarOp::kEq, {x, extremum});
    const NodeId nan = graph_.AddMap(
        ScalarOp::kAnd,
        {graph_.AddMap(ScalarOp::kNe, {x, x}), graph_.AddMap(ScalarOp::kNe, {extremum, extremum})});
    return graph_.AddMap(ScalarOp::kOr, {equal, nan});
  }

  NodeId AsCount(NodeId tie) { return graph_.AddCast(tie, DType::kI64); }

  NodeId Where(NodeId condition, NodeId value) {
    const NodeId zero = algebra_.Splat(0.0, graph_.type(value), graph_.shape(value));
    return graph_.AddMap(ScalarOp::kSelect, {condition, value, zero});
  }

  // ---- Scatter

  // The adjoint is read where each element went. A product would need the product of the others
  // that went to the same place, for which there is no node.
  absl::Status VisitScatter(NodeId id, const Scatter& n, NodeId g) {
    if (!active_[n.x.value]) return absl::OkStatus();
    const Shape shape = graph_.shape(n.x);
    const IndexList place = ValuesOf(n.place);
    if (n.op == ReduceOp::kSum) {
      Contribute(n.x, graph_.AddReindex(g, shape, place), masks_[id.value]);
      return absl::OkStatus();
    }
    if (n.op == ReduceOp::kProd) {
      return absl::InvalidArgumentError(
          absl::StrCat("op ", op_.name, ": a scatter by *= has no gradient"));
    }
    NodeId x = ValueOf(n.x), extrema = ValueOf(id);
    if (!repeatable_.Contains(x)) {
      x = Apart(x);
      extrema = graph_.AddScatter(n.op, x, graph_.shape(id), place);
    }
    const NodeId tie = Ties(x, graph_.AddReindex(extrema, shape, place));
    const NodeId count = graph_.AddScatter(ReduceOp::kSum, AsCount(tie), graph_.shape(id), place);
    const NodeId one = graph_.AddSplat(graph_.AddConstant(Scalar::I64(1)), graph_.shape(id));
    const NodeId never_zero = graph_.AddMap(ScalarOp::kMax, {count, one});
    const NodeId share = algebra_.Div(g, graph_.AddCast(never_zero, graph_.type(id)));
    Contribute(n.x, Where(tie, graph_.AddReindex(share, shape, place)), masks_[id.value] | kZeroed);
    return absl::OkStatus();
  }

  // ---- Ops with gradients of their own

  // This is done once per call, at the oldest of its results that has an adjoint.
  absl::Status VisitCustomCall(NodeId id, const Map& map) {
    const Op::CustomCall call = op_.custom_calls[map.tag - 1];
    for (NodeId result : call.results) {
      if (result < id && adjoints_[result.value].valid()) return absl::OkStatus();
    }
    const Op& gradient = *call.op->gradient;
    std::vector<NodeId> args;
    for (const Argument& arg : gradient.args) {
      const NodeId node = ArgumentOf(call, arg.name, adjoints_, algebra_, graph_);
      if (!node.valid()) {
        return absl::InvalidArgumentError(
            absl::StrCat("op ", call.op->name, ": its gradient's argument ", arg.name,
                         " is none of its arguments, results or adjoints"));
      }
      args.push_back(node);
    }
    NESTOR_ASSIGN_OR_RETURN(const std::vector<NodeId> results,
                            CallOp(gradient, args, BindingsOf(call), op_));
    for (size_t i = 0; i < call.op->args.size(); ++i) {
      const std::string name = absl::StrCat("g_", call.op->args[i].name);
      for (size_t r = 0; r < gradient.results.size(); ++r) {
        if (gradient.results[r].name == name)
          Contribute(call.args[i], results[r], masks_[id.value]);
      }
    }
    return absl::OkStatus();
  }

  Op& op_;
  Graph& graph_;
  IndexPool& pool_;
  absl::Span<const Seed> seeds_;
  absl::Span<const NodeId> wrt_;
  const int forward_size_;
  Algebra algebra_;
  ChainRule chain_rule_;
  RepeatableValues repeatable_;
  std::vector<NodeId> adjoints_;
  std::vector<uint8_t> masks_;  // by forward node, of its adjoint
  std::vector<bool> active_;    // by forward node
  // The Recurrence nodes of each system, the oldest first, by its first carry.
  absl::flat_hash_map<NodeId, std::vector<NodeId>> views_;
  AdjointRecurrence* recurrence_ = nullptr;  // while its steps are walked
  std::vector<Contribution> outside_;        // of its steps to other nodes; settled at the end
};

}  // namespace

absl::StatusOr<std::vector<NodeId>> Adjoints(Op& op, absl::Span<const Seed> seeds,
                                             absl::Span<const NodeId> wrt) {
  return ReverseWalk(op, seeds, wrt).Run();
}

}  // namespace nestor
