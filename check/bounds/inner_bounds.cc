// For each node of the op, a set that surely lies within the oracle's enclosure. So an element
// inside of its bounds is right; about one outside nothing is said, and it is left to the oracle.
// Compiled bounds judge at the speed of machine code, where the oracle interprets.
//
// The sets are built in a copy of the op's graph, node by node in its order. So shapes, places and
// integer computations stay the same nodes; lowering takes those that the new results need.
#include "check/bounds/inner_bounds.h"

#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "check/bounds/inner_rows.h"
#include "check/bounds/inner_set.h"
#include "check/bounds/inner_sums.h"
#include "uops/operand_use.h"
#include "uops/recurrence.h"

namespace nestor {
namespace {

// Adds to `decides` the nodes that follow from those in it within one step of each recurrence.
void MarkDeciding(const Graph& graph, std::vector<bool>& decides) {
  for (int i = graph.size() - 1; i >= 0; --i) {
    const NodeId id{i};
    if (const Map* map = graph.As<Map>(id)) {
      for (size_t j = 0; j < map->args.size(); ++j) {
        const OperandUse use =
            UseOf(map->op, graph.type(map->args.back()), graph.type(id), static_cast<int>(j));
        if (use.steps || (use.passes && decides[i])) decides[map->args[j].value] = true;
      }
    }
    const Reduce* reduce = graph.As<Reduce>(id);
    if (reduce != nullptr && (IsArg(reduce->op) || decides[i])) decides[reduce->x.value] = true;
    const Reindex* reindex = graph.As<Reindex>(id);
    if (reindex != nullptr && decides[i]) decides[reindex->x.value] = true;
    const Scatter* scatter = graph.As<Scatter>(id);
    if (scatter != nullptr && decides[i]) decides[scatter->x.value] = true;
    const Recurrence* recurrence = graph.As<Recurrence>(id);
    if (recurrence != nullptr && decides[i]) decides[recurrence->x.value] = true;
  }
}

// Which values of the graph may reach a discrete step (SEMANTICS 5), backwards from the steps.
// A superset of those of the lowered program (loop_ir/discrete_steps.h).
// Nodes come after their operands, so one backward walk is enough but for carries, whose bodies
// come later; each round adds a node, so it ends.
std::vector<bool> Deciding(const Graph& graph) {
  std::vector<bool> decides(graph.size(), false);
  bool changed = true;
  while (changed) {
    MarkDeciding(graph, decides);
    changed = false;
    for (NodeId id : graph.recurrences()) {
      const Recurrence& recurrence = *graph.As<Recurrence>(id);
      for (size_t k = 0; k < recurrence.carries.size(); ++k) {
        const NodeId carry = recurrence.carries[k], body = recurrence.bodies[k];
        if (decides[carry.value] && !decides[body.value]) decides[body.value] = changed = true;
      }
    }
  }
  return decides;
}

class InnerBoundsWalk {
 public:
  explicit InnerBoundsWalk(const Op& op)
      : op_(op), bounds_(op), graph_(bounds_.graph), f64_(bounds_.graph) {}

  // Builds an op with two f64 results for each result of the given one, its lower and its upper
  // inner bound, node by node; a node that has no rule ends it with a Status.
  absl::StatusOr<Op> Run() {
    const std::vector<bool> live = Reachable(op_.graph, op_.ResultNodes());
    sets_.resize(op_.graph.size());
    decides_ = Deciding(op_.graph);
    for (int i = 0; i < op_.graph.size() && status_.ok(); ++i) {
      if (live[i]) sets_[i] = SetOf(NodeId{i});
    }
    bounds_.name = absl::StrCat(op_.name, "_bounds");
    bounds_.results.clear();
    bounds_.gradient = nullptr;
    bounds_.custom_calls.clear();
    for (const Result& result : op_.results) {
      if (status_.ok()) AddResult(result);
    }
    if (!status_.ok()) return status_;
    return std::move(bounds_);
  }

 private:
  void Refuse(absl::string_view what) {
    if (status_.ok())
      status_ =
          absl::UnimplementedError(absl::StrCat("op ", op_.name, ": no inner bounds: ", what));
  }

  // ---- One case per micro-op

  // Inputs, params and constants are exact; all other nodes are computed on sets, by kind.
  InnerSet SetOf(NodeId id) {
    const Node node = op_.graph[id];
    struct Visitor {
      InnerBoundsWalk& self;
      NodeId id;
      const Node& node;
      InnerSet operator()(const Input&) const { return self.Exact(id); }
      InnerSet operator()(const Param&) const { return self.Exact(id); }
      InnerSet operator()(const Constant&) const { return self.Exact(id); }
      InnerSet operator()(const Index& n) const {
        return IntegerSet{self.graph_.AddIndex(self.Mapped(n.expr), node.shape),
                          self.KnownIndex(n.expr, node.shape)};
      }
      InnerSet operator()(const Reindex& n) const { return self.Moved(n, node.shape); }
      InnerSet operator()(const Map& n) const {
        return self.Row(n, node.type, self.decides_[id.value]);
      }
      InnerSet operator()(const Reduce& n) const { return self.Reduced(n); }
      InnerSet operator()(const Scatter& n) const { return self.Scattered(n, node.shape); }
      InnerSet operator()(const Carry& n) const { return self.Carried(n, node); }
      InnerSet operator()(const Recurrence& n) const { return self.Settled(n); }
    };
    return absl::visit(Visitor{*this, id, node}, node.op);
  }

  // The ends at earlier steps are separate carries.
  InnerSet Carried(const Carry& carry, const Node& node) {
    if (!IsFloat(node.type)) Refuse("a recurrence of integers or bools");
    const auto end = [&] {
      return graph_.AddCarry(DType::kF64, node.shape, carry.axis, carry.backward);
    };
    if (node.type == DType::kF64) return PointSet(end());
    const NodeId low = end();
    return FloatSet{low, end(), /*rounded=*/true};
  }

  // The enclosure of a scan, which holds for every order, holds the results of taking one step
  // after the other.
  InnerSet Settled(const Recurrence& recurrence) {
    std::vector<Equation> equations;
    for (size_t k = 0; k < recurrence.carries.size(); ++k) {
      const FloatSet& carry = absl::get<FloatSet>(sets_[recurrence.carries[k].value]);
      const NodeId body = recurrence.bodies[k];
      const FloatSet ends =
          RoundedSet(f64_, op_.graph.type(body), absl::get<FloatSet>(sets_[body.value]));
      equations.push_back({carry.low, ends.low});
      if (!carry.IsPoint()) equations.push_back({carry.high, ends.high});
    }
    Settler settler(graph_, std::move(equations));
    const auto settle = [&](NodeId x) { return x.valid() ? settler.Settle(x) : x; };
    const InnerSet& set = sets_[recurrence.x.value];
    if (const auto* x = absl::get_if<FloatSet>(&set))
      return FloatSet{settle(x->low), settle(x->high), x->rounded};
    if (const auto* x = absl::get_if<IntegerSet>(&set))
      return IntegerSet{settle(x->value), settle(x->known)};
    const TruthSet& x = absl::get<TruthSet>(set);
    return TruthSet{settle(x.may_be_true), settle(x.may_be_false), x.exclusive};
  }

  InnerSet Exact(NodeId id) {
    const DType type = graph_.type(id);
    if (IsFloat(type)) return PointSet(graph_.AddCast(id, DType::kF64));
    if (type == DType::kBool) return DecidedSet(f64_, id);
    return IntegerSet{id, NodeId()};
  }

  InnerSet Row(const Map& map, DType target, bool decides) {
    std::vector<InnerSet> args;
    for (NodeId arg : map.args) args.push_back(sets_[arg.value]);
    if (map.op == ScalarOp::kDiv && !decides) {
      return InnerQuotient(f64_, target, absl::get<FloatSet>(args[0]),
                           absl::get<FloatSet>(args[1]));
    }
    return InnerRow(f64_, map.op, graph_.type(map.args.back()), target, args);
  }

  // ---- Places

  const IntegerSet& Looked(int64_t node) const {
    return absl::get<IntegerSet>(sets_[static_cast<size_t>(node)]);
  }

  // The expression on the members of the integers that it loads.
  // x[ids[i]] reads at the member of ids' set; KnownIndex says where that member is the only value
  // that an allowed evaluation can have.
  IndexId Mapped(IndexId e) {
    return ReplaceLoads(graph_.pool(), e, [&](int64_t node) { return Looked(node).value.value; });
  }

  IndexList Mapped(absl::Span<const IndexId> list) {
    IndexList mapped;
    for (IndexId e : list) mapped.push_back(Mapped(e));
    return mapped;
  }

  // A bool over the axes of `shape`: whether everything that the index loads is known; not valid:
  // it is known everywhere.
  NodeId KnownIndex(IndexId e, const Shape& shape) {
    std::vector<IndexNode> loads;
    VisitIndex(graph_.pool(), e, [&](IndexId, const IndexNode& node) {
      if (node.kind == IndexKind::kLoad && Looked(node.value).known.valid()) loads.push_back(node);
    });
    NodeId known;
    for (const IndexNode& load : loads) {
      const NodeId own =
          graph_.AddReindex(Looked(load.value).known, shape, Mapped(load.args), Truth(true));
      known = KnownBoth(f64_, known, own);
    }
    return known;
  }

  NodeId KnownPlace(const Reindex& reindex, const Shape& shape) {
    NodeId known;
    for (const IndexList& list : {reindex.place, reindex.conditions}) {
      for (IndexId e : list) known = KnownBoth(f64_, known, KnownIndex(e, shape));
    }
    return known;
  }

  NodeId Truth(bool value) { return graph_.AddConstant(Scalar::Of(DType::kBool, value)); }

  // The set where `known` holds, or all of it.
  InnerSet OnlyWhere(NodeId known, const InnerSet& set) {
    if (!known.valid()) return set;
    if (const auto* x = absl::get_if<FloatSet>(&set)) {
      return FloatSet{f64_.OnlyWhere(known, x->low), f64_.OnlyWhere(known, x->high), x->rounded};
    }
    if (const auto* x = absl::get_if<IntegerSet>(&set))
      return IntegerSet{x->value, KnownBoth(f64_, x->known, known)};
    const TruthSet& x = absl::get<TruthSet>(set);
    return TruthSet{f64_.And(x.may_be_true, known), f64_.And(x.may_be_false, known), x.exclusive};
  }

  InnerSet Moved(const Reindex& reindex, const Shape& shape) {
    const IndexList place = Mapped(reindex.place), conditions = Mapped(reindex.conditions);
    const auto move = [&](NodeId x, NodeId fill) {
      return graph_.AddReindex(x, shape, place, fill, conditions);
    };
    struct Visitor {
      InnerBoundsWalk& self;
      NodeId fill;
      Move move;
      InnerSet operator()(const FloatSet& x) const { return self.MovedFloat(x, fill, move); }
      InnerSet operator()(const IntegerSet& x) const {
        return IntegerSet{move(x.value, fill),
                          x.known.valid() ? move(x.known, self.Truth(true)) : NodeId()};
      }
      InnerSet operator()(const TruthSet& x) const { return self.MovedTruth(x, fill, move); }
    };
    return OnlyWhere(KnownPlace(reindex, shape),
                     absl::visit(Visitor{*this, reindex.fill, move}, sets_[reindex.x.value]));
  }

  using Move = absl::FunctionRef<NodeId(NodeId x, NodeId fill)>;

  InnerSet MovedFloat(const FloatSet& x, NodeId fill, Move move) {
    const Constant* constant = graph_.As<Constant>(fill);
    if (constant == nullptr) return FilledWithParam(x, fill, move);
    const NodeId wide = graph_.AddConstant(Scalar::Float(DType::kF64, constant->value.ToDouble()));
    return FloatSet{move(x.low, wide), move(x.high, wide), x.rounded};
  }

  // True where the operand is read and not the fill; `x` has the operand's shape.
  NodeId Inside(NodeId x, Move move) { return move(f64_.Truth(true, x), Truth(false)); }

  // A fill is a constant or a $param of the operand's type, so a cast $param is chosen by a select.
  InnerSet FilledWithParam(const FloatSet& x, NodeId fill, Move move) {
    const NodeId inside = Inside(x.low, move);
    const NodeId wide =
        graph_.AddSplat(graph_.AddCast(fill, DType::kF64), Shape(graph_.shape(inside)));
    const auto filled = [&](NodeId end) { return f64_.Where(inside, move(end, NodeId()), wide); };
    return FloatSet{filled(x.low), filled(x.high), x.rounded};
  }

  InnerSet MovedTruth(const TruthSet& x, NodeId fill, Move move) {
    const NodeId may_be_true = move(x.may_be_true, fill);
    if (IsDecided(f64_, x)) return DecidedSet(f64_, may_be_true);
    const NodeId inside = Inside(x.may_be_false, move);
    const NodeId filled = f64_.Not(graph_.AddSplat(fill, Shape(graph_.shape(inside))));
    return TruthSet{may_be_true, f64_.Where(inside, move(x.may_be_false, Truth(false)), filled),
                    x.exclusive};
  }

  // ---- Accumulations

  // A sum of inner bounds is an inner bound of the sum only if roundings are bounded, too, which is
  // InnerAccumulation's part; an argmax is known where all elements are numbers.
  InnerSet Reduced(const Reduce& reduce) {
    const auto accumulate = [&](ReduceOp op, NodeId x) {
      std::vector<int> axes(reduce.count);
      std::iota(axes.begin(), axes.end(), graph_.rank(x) - reduce.count);
      return graph_.AddReduce(op, x, axes);
    };
    const InnerSet& set = sets_[reduce.x.value];
    if (const auto* x = absl::get_if<TruthSet>(&set))
      return ReducedTruth(reduce.op, *x, accumulate);
    if (const auto* x = absl::get_if<IntegerSet>(&set))
      return ReducedInteger(reduce.op, *x, accumulate);
    const FloatSet& x = absl::get<FloatSet>(set);
    const DType type = graph_.type(reduce.x);
    if (!IsArg(reduce.op)) return InnerAccumulation(f64_, reduce.op, type, x, accumulate);
    // Members' extreme is a candidate of the oracle.
    const NodeId member = RoundedSet(f64_, type, x).low;
    return IntegerSet{accumulate(reduce.op, member),
                      accumulate(ReduceOp::kAll, f64_.IsNumber(member))};
  }

  static InnerSet ReducedTruth(ReduceOp op, const TruthSet& x, Accumulate accumulate) {
    const ReduceOp opposite = op == ReduceOp::kAny ? ReduceOp::kAll : ReduceOp::kAny;
    return TruthSet{accumulate(op, x.may_be_true), accumulate(opposite, x.may_be_false),
                    x.exclusive};
  }

  static InnerSet ReducedInteger(ReduceOp op, const IntegerSet& x, Accumulate accumulate) {
    return IntegerSet{accumulate(op, x.value),
                      x.known.valid() ? accumulate(ReduceOp::kAll, x.known) : NodeId()};
  }

  InnerSet Scattered(const Scatter& scatter, const Shape& shape) {
    for (IndexId e : scatter.place) {
      if (KnownIndex(e, graph_.shape(scatter.x)).valid())
        Refuse("a place to store to was made of a float");
    }
    const IndexList place = Mapped(scatter.place);
    const auto accumulate = [&](ReduceOp op, NodeId x) {
      return graph_.AddScatter(op, x, shape, place);
    };
    const InnerSet& set = sets_[scatter.x.value];
    if (const auto* x = absl::get_if<FloatSet>(&set)) {
      return InnerAccumulation(f64_, scatter.op, graph_.type(scatter.x), *x, accumulate);
    }
    const IntegerSet& x = absl::get<IntegerSet>(set);
    return IntegerSet{accumulate(scatter.op, x.value),
                      x.known.valid() ? AllKnown(x.known, accumulate) : NodeId()};
  }

  // Whether all terms of an element are known; bools are not scattered.
  NodeId AllKnown(NodeId known, Accumulate accumulate) {
    const NodeId all = accumulate(ReduceOp::kMin, graph_.AddCast(known, DType::kF64));
    return f64_.Apply(ScalarOp::kGt, all, 0);
  }

  // ---- Results

  void AddResult(const Result& result) {
    const DType type = op_.graph.type(result.node);
    if (type == DType::kF64) return Refuse(absl::StrCat("result ", result.name, " is f64"));
    const FloatSet ends = ResultEnds(sets_[result.node.value], type);
    bounds_.results.push_back({absl::StrCat(result.name, "_low"), ends.low});
    bounds_.results.push_back({absl::StrCat(result.name, "_high"), ends.high});
  }

  FloatSet ResultEnds(const InnerSet& set, DType type) {
    if (const auto* x = absl::get_if<FloatSet>(&set)) return RoundedSet(f64_, type, *x);
    if (const auto* x = absl::get_if<TruthSet>(&set)) {
      return absl::get<FloatSet>(InnerRow(f64_, ScalarOp::kCast, DType::kBool, DType::kF32, {*x}));
    }
    return IntegerEnds(absl::get<IntegerSet>(set), type);
  }

  // An integer beyond 2^53 is not an f64.
  FloatSet IntegerEnds(const IntegerSet& x, DType type) {
    const NodeId wide = graph_.AddCast(x.value, DType::kF64);
    NodeId known = x.known;
    if (ByteSize(type) == 8)
      known = KnownBoth(f64_, known, f64_.Apply(ScalarOp::kLt, f64_.Abs(wide), 0x1p53));
    return PointSet(known.valid() ? f64_.OnlyWhere(known, wide) : wide);
  }

  const Op& op_;
  Op bounds_;
  Graph& graph_;  // of bounds_
  Doubles f64_;
  std::vector<InnerSet> sets_;  // by node of op_
  std::vector<bool> decides_;   // likewise
  absl::Status status_;
};

}  // namespace

absl::StatusOr<Op> InnerBounds(const Op& op) { return InnerBoundsWalk(op).Run(); }

}  // namespace nestor
