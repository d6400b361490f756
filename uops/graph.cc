// Hash-consing (Ershov, "On programming of arithmetic operations", 1958) and the canonical form of
// graph.h: a node that is added again is the node that is there, so common subexpressions are found
// by construction, and equality of programs is equality of ids.
//
// The rules of the canonical form all ask three questions about an operand: which axes does its
// value depend on (UsedAxes), which node is it on those axes alone (Restrict), and can a reindex of
// it ever leave its bounds (NeverOutOfBounds). Only reindex nodes need an answer, since every
// constructor has already pushed repetition outwards: an elementwise node or a reduction depends on
// all of its axes.
//
//   y[i,j] = exp(x[i])   is   e[i] = exp(x[i]), y[i,j] = e[i]
#include "uops/graph.h"

#include <algorithm>
#include <numeric>

#include "absl/algorithm/container.h"
#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"
#include "uops/invariant.h"

namespace nestor {
namespace {

// Equality of nodes by kind and parts; two kinds, by the last overload, are never equal.
struct OpEquals {
  bool operator()(const Input& a, const Input& b) const { return a.name == b.name; }
  bool operator()(const Param& a, const Param& b) const { return a.name == b.name; }
  bool operator()(const Constant& a, const Constant& b) const { return a.value == b.value; }
  bool operator()(const Index& a, const Index& b) const { return a.expr == b.expr; }
  bool operator()(const Reindex& a, const Reindex& b) const {
    return a.x == b.x && a.place == b.place && a.fill == b.fill && a.conditions == b.conditions;
  }
  bool operator()(const Map& a, const Map& b) const {
    return a.op == b.op && a.args == b.args && a.tag == b.tag;
  }
  bool operator()(const Reduce& a, const Reduce& b) const {
    return a.op == b.op && a.x == b.x && a.count == b.count;
  }
  bool operator()(const Scatter& a, const Scatter& b) const {
    return a.op == b.op && a.x == b.x && a.place == b.place;
  }
  bool operator()(const Carry& a, const Carry& b) const {
    return a.number == b.number && a.axis == b.axis && a.backward == b.backward;
  }
  bool operator()(const Recurrence& a, const Recurrence& b) const {
    return a.x == b.x && a.carries == b.carries && a.bodies == b.bodies;
  }
  template <class A, class B>
  bool operator()(const A&, const B&) const {
    return false;
  }
};

// ([N, M, K], {2, 0}) -> [K, N]
Shape Pick(const Shape& shape, absl::Span<const int> axes) {
  Shape picked;
  for (int axis : axes) picked.push_back(shape[axis]);
  return picked;
}

// old axis -> Var(new position), for axes kept in `axes`.
IndexList Renumbering(IndexPool& pool, size_t rank, absl::Span<const int> axes) {
  IndexList vars(rank, pool.Const(0));
  for (size_t j = 0; j < axes.size(); ++j) vars[axes[j]] = pool.Var(static_cast<int64_t>(j));
  return vars;
}

// The expressions hold no index but those of `rank` axes: another one would be looked up in a shape
// that has no such axis.
void CheckVars(const IndexPool& pool, const IndexList& list, int rank, const char* what) {
  std::vector<int64_t> vars;
  for (IndexId e : list) CollectVars(pool, e, vars);
  NESTOR_CHECK(vars.empty() || vars.back() < rank, what);
}

}  // namespace

Graph::Graph() = default;
Graph::Graph(const Graph&) = default;
Graph::Graph(Graph&&) noexcept = default;
Graph& Graph::operator=(const Graph&) = default;
Graph& Graph::operator=(Graph&&) noexcept = default;
Graph::~Graph() = default;

bool operator==(const Node& a, const Node& b) {
  return a.type == b.type && a.shape == b.shape && absl::visit(OpEquals(), a.op, b.op);
}

// One look-up for finding and adding. Ids grow with each new node, so operands, which are there
// already, have smaller ids than their users: the order of ids is topological.
NodeId Graph::Intern(MicroOp op, DType type, Shape shape) {
  Node node{std::move(op), type, std::move(shape)};
  SameHash& ids = interned_[absl::HashOf(node)];
  const NodeId known = FindIn(ids, node);
  if (known.valid()) return known;
  const NodeId added{size()};
  ids.push_back(added);
  nodes_.push_back(std::move(node));
  return added;
}

NodeId Graph::Find(const Node& node) const {
  const auto it = interned_.find(absl::HashOf(node));
  return it == interned_.end() ? NodeId() : FindIn(it->second, node);
}

NodeId Graph::FindIn(const SameHash& ids, const Node& node) const {
  const auto it = absl::c_find_if(ids, [&](NodeId id) { return nodes_[id.value] == node; });
  return it == ids.end() ? NodeId() : *it;
}

NodeId Graph::AddInput(absl::string_view name, DType type, Shape shape) {
  return Intern(Input{std::string(name)}, type, std::move(shape));
}

NodeId Graph::AddParam(absl::string_view name, DType type) {
  return Intern(Param{std::string(name)}, type, {});
}

NodeId Graph::AddConstant(Scalar value) {
  return Intern(Constant{value.Canonical()}, value.type, {});
}

// An expression over some of the axes only is a node over those, repeated.
NodeId Graph::AddIndex(IndexId expr, Shape shape) {
  if (const auto value = pool_.ConstValue(expr)) {
    return AddSplat(AddConstant(Scalar::I64(*value)), std::move(shape));
  }
  std::vector<int64_t> vars;
  CollectVars(pool_, expr, vars);
  NESTOR_CHECK(vars.empty() || vars.back() < static_cast<int64_t>(shape.size()),
               "an index of an expression is an axis of the result");
  // 2*j over [i, j] is t[j] = 2*j, repeated along i
  if (vars.size() == shape.size()) return Intern(Index{expr}, DType::kI64, std::move(shape));
  const std::vector<int> axes(vars.begin(), vars.end());
  const IndexId small = SubstituteVars(pool_, expr, Renumbering(pool_, shape.size(), axes));
  const NodeId index = AddIndex(small, Pick(shape, axes));
  return AddBroadcast(index, std::move(shape), axes);
}

IndexList Graph::IdentityPlace(size_t rank) {
  IndexList place;
  for (size_t i = 0; i < rank; ++i) place.push_back(pool_.Var(static_cast<int64_t>(i)));
  return place;
}

// Only where each subscript is an index alone that runs over the whole axis. x[i + 1] may well be
// in range for the sizes of a call, but the form of a graph does not depend on sizes.
bool Graph::NeverOutOfBounds(NodeId x, const Shape& shape, const IndexList& place) const {
  for (size_t j = 0; j < place.size(); ++j) {
    const int64_t var = pool_.VarValue(place[j]);
    if (var < 0 || shape[var] != this->shape(x)[j]) return false;
  }
  return true;
}

// (x[inner])[place] is x[inner o place]: a read of a read that never leaves its bounds is one read.
// u[i] = x[i - 1], y[j, i] = u[i]   ->   y[j, i] = x[i - 1]
NodeId Graph::Compose(const Reindex& inner, Shape shape, const IndexList& place) {
  IndexList composed, conditions;
  for (IndexId e : inner.place) composed.push_back(SubstituteVars(pool_, e, place));
  for (IndexId c : inner.conditions) conditions.push_back(SubstituteVars(pool_, c, place));
  return AddReindex(inner.x, std::move(shape), std::move(composed), inner.fill,
                    std::move(conditions));
}

// `total`: never out of bounds, so that neither fill nor order of checks matters.
NodeId Graph::AddReindex(NodeId x, Shape shape, IndexList place, NodeId fill,
                         IndexList conditions) {
  NESTOR_CHECK(place.size() == this->shape(x).size(), "a place has one index per axis");
  const int axes = static_cast<int>(shape.size());
  CheckVars(pool_, place, axes, "an index of a place is an axis of the result");
  CheckVars(pool_, conditions, axes, "an index of a condition is an axis of the result");
  if (!fill.valid()) fill = AddConstant(Scalar::Zero(type(x)));
  NESTOR_CHECK(rank(fill) == 0 && type(fill) == type(x),
               "a fill is a scalar of the operand's type");
  conditions.erase(std::remove_if(conditions.begin(), conditions.end(),
                                  [&](IndexId c) { return pool_.IsConst(c, 1); }),
                   conditions.end());
  const bool total = conditions.empty() && NeverOutOfBounds(x, shape, place);
  if (total) {
    if (shape == this->shape(x) && place == IdentityPlace(place.size())) return x;
    if (const Reindex* inner = As<Reindex>(x)) {
      return Compose(Reindex(*inner), std::move(shape), place);
    }
    // A fill that is never used is not part of the node.
    fill = AddConstant(Scalar::Zero(type(x)));
  }
  const DType result = type(x);
  return Intern(Reindex{x, std::move(place), fill, std::move(conditions)}, result,
                std::move(shape));
}

NodeId Graph::AddBroadcast(NodeId x, Shape shape, absl::Span<const int> axes) {
  IndexList place;
  for (int axis : axes) place.push_back(pool_.Var(axis));
  return AddReindex(x, std::move(shape), std::move(place));
}

// All axes of any node but a reindex; see the head of the file.
std::vector<int> Graph::UsedAxes(NodeId x) const {
  const Reindex* reindex = As<Reindex>(x);
  if (reindex == nullptr) {
    std::vector<int> all(rank(x));
    std::iota(all.begin(), all.end(), 0);
    return all;
  }
  std::vector<int64_t> vars;
  for (IndexId e : reindex->place) CollectVars(pool_, e, vars);
  for (IndexId c : reindex->conditions) CollectVars(pool_, c, vars);
  return {vars.begin(), vars.end()};
}

// Only a reindex can depend on fewer axes than it has; its expressions are renumbered.
NodeId Graph::Restrict(NodeId x, absl::Span<const int> axes) {
  if (static_cast<int>(axes.size()) == rank(x)) return x;
  const Reindex node = *As<Reindex>(x);
  const IndexList vars = Renumbering(pool_, shape(x).size(), axes);
  IndexList place, conditions;
  for (IndexId e : node.place) place.push_back(SubstituteVars(pool_, e, vars));
  for (IndexId c : node.conditions) conditions.push_back(SubstituteVars(pool_, c, vars));
  return AddReindex(node.x, Pick(shape(x), axes), std::move(place), node.fill,
                    std::move(conditions));
}

// Literals with a sign, and casts of constants, are constants: both are written
// so in the notation.
NodeId Graph::FoldConstant(ScalarOp op, absl::Span<const NodeId> args, DType result) {
  if (op != ScalarOp::kNeg && op != ScalarOp::kCast) return NodeId();
  const Constant* c = As<Constant>(args[0]);
  if (c == nullptr) return NodeId();
  // By the row's own reference, so a folded constant has the bits that a run would give.
  const Bits bits = Primitive(op, c->value.type, result)(&c->value.bits);
  return AddConstant(Scalar{result, bits});
}

// On the axes that any operand uses, then repeated over the others.
NodeId Graph::AddMap(ScalarOp op, absl::Span<const NodeId> args, DType target) {
  const ScalarOpRow& row = Row(op);
  NESTOR_CHECK(static_cast<int>(args.size()) == row.arity, row.name);
  const DType operand = type(args.back());
  const auto result = ResultTypeOf(op, operand, target);
  NESTOR_CHECK(result.has_value(), absl::StrCat(row.name, " of ", Name(operand)));
  std::vector<int> axes;
  for (size_t i = 0; i < args.size(); ++i) {
    const bool condition = row.result == ResultType::kChoice && i == 0;
    NESTOR_CHECK(type(args[i]) == (condition ? DType::kBool : operand), row.name);
    NESTOR_CHECK(shape(args[i]) == shape(args[0]), absl::StrCat(row.name, " of unequal shapes"));
    for (int axis : UsedAxes(args[i])) axes.push_back(axis);
  }
  if (op == ScalarOp::kCast && target == operand) return args[0];
  std::sort(axes.begin(), axes.end());
  axes.erase(std::unique(axes.begin(), axes.end()), axes.end());
  const Shape full = shape(args[0]);
  // exp(x[i]) over [i, j] is computed over [i], then repeated: the work is that of x.
  if (axes.size() < full.size()) {
    NodeList small;
    for (NodeId arg : args) small.push_back(Restrict(arg, axes));
    return AddBroadcast(AddMap(op, small, target), full, axes);
  }
  const NodeId folded = FoldConstant(op, args, *result);
  if (folded.valid()) return folded;
  return Intern(Map{op, {args.begin(), args.end()}}, *result, full);
}

// A copy that no rule removes: it marks the result of a call of an op with a gradient of its own.
NodeId Graph::AddTaggedCopy(NodeId x, int64_t tag) {
  return Intern(Map{ScalarOp::kCopy, {x}, tag}, type(x), shape(x));
}

// A permuted elementwise op of accesses is that op of permuted accesses: a product that is only
// summed is not stored in one order to be read in another.
NodeId Graph::PermuteOperands(NodeId x) {
  const Reindex* found = As<Reindex>(x);
  if (found == nullptr || rank(found->x) != rank(x)) return x;
  const Reindex permutation = *found;
  if (!permutation.conditions.empty() ||
      !NeverOutOfBounds(permutation.x, shape(x), permutation.place))
    return x;
  const Map* map = As<Map>(permutation.x);
  if (map == nullptr || map->tag != 0) return x;
  const Map op = *map;
  for (NodeId arg : op.args) {
    if (As<Reindex>(arg) == nullptr && As<Input>(arg) == nullptr) return x;
  }
  // A place that repeats an axis is no permutation.
  if (UsedAxes(x).size() != permutation.place.size()) return x;
  const Shape permuted = shape(x);
  const DType result = type(x);
  NodeList args;
  for (NodeId arg : op.args) args.push_back(AddReindex(arg, permuted, permutation.place));
  return AddMap(op.op, args, result);
}

// A reduction over no axes has one element: its result is the first place, or the element. A sum
// starts from +0, which turns -0 into +0.
NodeId Graph::ReduceNothing(ReduceOp op, NodeId x) {
  const Shape shape = this->shape(x);
  if (IsArg(op)) return AddSplat(AddConstant(Scalar::I64(0)), shape);
  if (op != ReduceOp::kSum || !IsFloat(type(x))) return x;
  return AddMap(ScalarOp::kAdd, {AddSplat(AddConstant(Scalar::Zero(type(x))), shape), x});
}

// The operand is put into the form [kept axes that it uses, reduced axes as listed]. A reduced axis
// stays even if the operand does not use it: the sum of n equal terms is a sum of n terms.
// sum[k] over x[k, i] read as [i, j, k]   ->   sum over u[i, k] = x[k, i], repeated along j
NodeId Graph::AddReduce(ReduceOp op, NodeId x, absl::Span<const int> axes) {
  const auto result = ReduceResultType(op, type(x));
  NESTOR_CHECK(result.has_value(), absl::StrCat(Name(op), " of ", Name(type(x))));
  if (axes.empty()) return ReduceNothing(op, x);
  std::vector<bool> reduced(rank(x), false);
  for (int axis : axes) {
    NESTOR_CHECK(axis >= 0 && axis < rank(x) && !reduced[axis],
                 "the axes of a reduction are distinct axes of its operand");
    reduced[axis] = true;
  }
  const std::vector<int> used = UsedAxes(x);
  std::vector<int> kept, kept_used;
  for (int axis = 0; axis < rank(x); ++axis) {
    if (reduced[axis]) continue;
    if (std::binary_search(used.begin(), used.end(), axis)) {
      kept_used.push_back(static_cast<int>(kept.size()));
    }
    kept.push_back(axis);
  }
  const Shape full = Pick(shape(x), kept);
  // Kept axes in use, then the reduced ones as listed: new axis i is old axis
  // order[i].
  std::vector<int> order;
  for (int position : kept_used) order.push_back(kept[position]);
  order.insert(order.end(), axes.begin(), axes.end());
  NodeId operand = x;
  std::vector<int> sorted = order;
  std::sort(sorted.begin(), sorted.end());
  if (sorted.size() < static_cast<size_t>(rank(x))) {
    operand = Restrict(x, sorted);
    for (int& axis : order) {
      axis =
          static_cast<int>(std::lower_bound(sorted.begin(), sorted.end(), axis) - sorted.begin());
    }
  }
  IndexList place(order.size());
  for (size_t i = 0; i < order.size(); ++i) place[order[i]] = pool_.Var(static_cast<int64_t>(i));
  operand = PermuteOperands(AddReindex(operand, Pick(shape(operand), order), std::move(place)));
  const Shape small = Pick(full, kept_used);
  const NodeId reduce = Intern(Reduce{op, operand, static_cast<int>(axes.size())}, *result, small);
  return AddBroadcast(reduce, full, kept_used);
}

// The order of the operand's axes has no meaning for a scatter, so it is fixed: that in which the
// place mentions them, then the others.
// y[Var(1)] += x over [i, j]   ->   y[Var(0)] += x' over [j, i], with x'[j, i] = x[i, j]
NodeId Graph::AddScatter(ReduceOp op, NodeId x, Shape shape, IndexList place) {
  NESTOR_CHECK(op <= ReduceOp::kMin, "a scatter is by sum, prod, max or min");
  NESTOR_CHECK(ReduceResultType(op, type(x)).has_value(),
               absl::StrCat("a scatter by ", Name(op), " of ", Name(type(x))));
  NESTOR_CHECK(place.size() == shape.size(), "a place has one index per axis");
  CheckVars(pool_, place, rank(x), "an index of a place is an axis of the scatter's operand");
  std::vector<int> order;
  const auto mention = [&](int axis) {
    if (std::find(order.begin(), order.end(), axis) == order.end()) order.push_back(axis);
  };
  for (IndexId e : place) {
    VisitIndex(pool_, e, [&](IndexId, const IndexNode& node) {
      if (node.kind == IndexKind::kVar) mention(static_cast<int>(node.value));
    });
  }
  for (int axis = 0; axis < rank(x); ++axis) mention(axis);
  IndexList vars(order.size());
  for (size_t i = 0; i < order.size(); ++i) vars[order[i]] = pool_.Var(static_cast<int64_t>(i));
  const NodeId operand = AddReindex(x, Pick(this->shape(x), order), vars);
  for (IndexId& e : place) e = SubstituteVars(pool_, e, vars);
  const DType result = type(x);
  return Intern(Scatter{op, operand, std::move(place)}, result, std::move(shape));
}

// Each carry is a node of its own, whatever its type and shape: two systems never share one.
NodeId Graph::AddCarry(DType type, Shape shape, int axis, bool backward) {
  NESTOR_CHECK(axis >= 0 && axis < static_cast<int>(shape.size()),
               "a carry is stepped along an axis of its own");
  return Intern(Carry{carries_++, axis, backward}, type, std::move(shape));
}

// Views of one system have equal carries; the first of them is listed in recurrences().
NodeId Graph::AddRecurrence(NodeId x, absl::Span<const NodeId> carries,
                            absl::Span<const NodeId> bodies) {
  NESTOR_CHECK(!carries.empty() && carries.size() == bodies.size(),
               "a recurrence has an equation for each carry");
  const bool is_new = std::none_of(recurrences_.begin(), recurrences_.end(), [&](NodeId known) {
    return absl::c_equal(As<Recurrence>(known)->carries, carries);
  });
  const Shape shape = this->shape(x);
  const NodeId id =
      Intern(Recurrence{x, {carries.begin(), carries.end()}, {bodies.begin(), bodies.end()}},
             type(x), shape);
  if (is_new) recurrences_.push_back(id);
  return id;
}

NodeId Graph::AddCast(NodeId x, DType target) { return AddMap(ScalarOp::kCast, {x}, target); }

// ---- Traversal

namespace {

// Tensors that indices gather from are operands, too.
void VisitLoads(const IndexPool& pool, const IndexList& list,
                absl::FunctionRef<void(NodeId)> visit) {
  for (IndexId e : list) {
    if (!pool.HasLoad(e)) continue;
    VisitIndex(pool, e, [&](IndexId, const IndexNode& node) {
      if (node.kind == IndexKind::kLoad) visit(NodeId{static_cast<int32_t>(node.value)});
    });
  }
}

}  // namespace

// A Carry has none, though it stands for its body: the graph has no cycles.
void VisitOperands(const Graph& graph, NodeId id, absl::FunctionRef<void(NodeId)> visit) {
  struct Visitor {
    const IndexPool& pool;
    absl::FunctionRef<void(NodeId)> visit;
    void operator()(const Input&) const {}
    void operator()(const Param&) const {}
    void operator()(const Constant&) const {}
    void operator()(const Index& n) const { VisitLoads(pool, {n.expr}, visit); }
    void operator()(const Reindex& n) const {
      visit(n.x);
      visit(n.fill);
      VisitLoads(pool, n.place, visit);
      VisitLoads(pool, n.conditions, visit);
    }
    void operator()(const Map& n) const {
      for (NodeId arg : n.args) visit(arg);
    }
    void operator()(const Reduce& n) const { visit(n.x); }
    void operator()(const Scatter& n) const {
      visit(n.x);
      VisitLoads(pool, n.place, visit);
    }
    void operator()(const Carry&) const {}
    void operator()(const Recurrence& n) const {
      visit(n.x);
      for (NodeId body : n.bodies) visit(body);
    }
  };
  absl::visit(Visitor{graph.pool(), visit}, graph[id].op);
}

// Operands have smaller ids than their users, so one pass downwards finds all.
std::vector<bool> Reachable(const Graph& graph, absl::Span<const NodeId> from,
                            absl::Span<const NodeId> cut) {
  std::vector<bool> reached(graph.size(), false), ends(graph.size(), false);
  for (NodeId id : from) reached[id.value] = true;
  for (NodeId id : cut) ends[id.value] = true;
  for (int i = graph.size() - 1; i >= 0; --i) {
    if (reached[i] && !ends[i])
      VisitOperands(graph, NodeId{i}, [&](NodeId x) { reached[x.value] = true; });
  }
  return reached;
}

}  // namespace nestor
