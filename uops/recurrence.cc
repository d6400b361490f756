// Settling a system of equations: only what really recurs stays in it. The equations that depend on
// each other are the strongly connected components of the relation "needs". Systems have few
// equations, so they are found by its transitive closure (Warshall, "A theorem on Boolean
// matrices", 1962).
//
//   carry c: c[t] = c[t-1] + x[t]        one system of one equation
//   carry d: d[t] = c[t-1] * 2           needs c, not itself: computed from the whole of c, outside
//
// Settling works on sets of carries: `Needs(x)` are those that x depends on. Equations that need
// each other, directly or not, are one component; components are settled in the order in which they
// need each other, and in each the nodes in the order of their ids, so that nothing recurses.
#include "uops/recurrence.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "uops/invariant.h"
#include "uops/match_recurrence.h"

namespace nestor {
namespace {

// Finds the axis along which a node is stepped from where it reads steps.
class StepAxis {
 public:
  StepAxis(const Graph& graph, const absl::flat_hash_map<NodeId, int>& axes)
      : graph_(graph), pool_(graph.pool()), axes_(axes) {}

  // nullopt where the node does not follow the rule.
  absl::optional<int> Of(NodeId id) {
    absl::visit(*this, graph_[id].op);
    if (broken_ || axis_ < 0) return absl::nullopt;
    return axis_;
  }

  void operator()(const Index& n) { Loads({n.expr}); }
  void operator()(const Reindex& n) {
    if (Stepped(n.x)) Meet(n.x, n.place);
    Loads(n.place);
    Loads(n.conditions);
  }
  void operator()(const Map& n) {
    for (NodeId arg : n.args) {
      if (Stepped(arg)) MeetAxis(Whole(arg));
    }
  }
  void operator()(const Reduce& n) {
    const int axis = Whole(n.x);
    if (axis >= graph_.rank(n.x) - n.count) broken_ = true;
    MeetAxis(axis);
  }
  // A scatter moves the step's axis: it is where the subscript is the step's index and nothing
  // else.
  void operator()(const Scatter& n) {
    if (Stepped(n.x)) MeetAxis(Whole(n.x));
    Loads(n.place);
    // Its own axis is the one whose subscript is just the step's index.
    const auto is_step = [&](IndexId e) { return pool_.VarValue(e) == axis_; };
    if (absl::c_count_if(n.place, is_step) != 1) broken_ = true;
    axis_ = static_cast<int>(absl::c_find_if(n.place, is_step) - n.place.begin());
  }
  template <class Leaf>
  void operator()(const Leaf&) {
    broken_ = true;
  }

 private:
  bool Stepped(NodeId x) const { return axes_.contains(x) || graph_.As<Carry>(x) != nullptr; }

  // A node that is read at its own index: no carry.
  int Whole(NodeId x) {
    const auto it = axes_.find(x);
    if (it != axes_.end()) return it->second;
    broken_ = true;
    return -1;
  }

  void MeetAxis(int axis) {
    if (axis < 0 || (axis_ >= 0 && axis_ != axis)) broken_ = true;
    axis_ = axis;
  }

  // x is read at `place`, over this node's axes.
  void Meet(NodeId x, absl::Span<const IndexId> place) {
    const Carry* carry = graph_.As<Carry>(x);
    if (carry == nullptr) return MeetAxis(static_cast<int>(pool_.VarValue(place[axes_.at(x)])));
    std::vector<int64_t> vars;
    CollectVars(pool_, place[carry->axis], vars);
    if (vars.size() != 1) return MeetAxis(-1);
    MeetAxis(static_cast<int>(vars[0]));
  }

  void Loads(const IndexList& list) {
    for (IndexId e : list) {
      if (!pool_.HasLoad(e)) continue;
      VisitIndex(pool_, e, [&](IndexId, const IndexNode& node) {
        const NodeId loaded{static_cast<int32_t>(node.value)};
        if (node.kind == IndexKind::kLoad && Stepped(loaded)) Meet(loaded, node.args);
      });
    }
  }

  const Graph& graph_;
  const IndexPool& pool_;
  const absl::flat_hash_map<NodeId, int>& axes_;
  int axis_ = -1;
  bool broken_ = false;
};

// Ascending: the nodes that depend on one of `carries` and on which one of `bodies` depends.
std::vector<NodeId> StepNodes(const Graph& graph, absl::Span<const NodeId> carries,
                              absl::Span<const NodeId> bodies) {
  const std::vector<bool> live = Reachable(graph, bodies);
  std::vector<bool> stepped(graph.size(), false);
  for (NodeId carry : carries) stepped[carry.value] = true;
  std::vector<NodeId> nodes;
  const int last = std::max_element(bodies.begin(), bodies.end())->value;
  for (int i = std::min_element(carries.begin(), carries.end())->value; i <= last; ++i) {
    if (!live[i] || stepped[i]) continue;
    VisitOperands(graph, NodeId{i}, [&](NodeId x) { stepped[i] = stepped[i] || stepped[x.value]; });
    if (stepped[i]) nodes.push_back(NodeId{i});
  }
  return nodes;
}

}  // namespace

Steps StepsOf(const Graph& graph, const Recurrence& recurrence) {
  Steps steps;
  steps.nodes = StepNodes(graph, recurrence.carries, recurrence.bodies);
  for (NodeId id : steps.nodes) {
    const auto axis = StepAxis(graph, steps.axes).Of(id);
    NESTOR_CHECK(axis.has_value(),
                 absl::StrCat("node ", id.value, " of a recurrence is stepped along no axis"));
    steps.axes[id] = *axis;
  }
  return steps;
}

namespace {

// An equation by itself.
std::string EquationMisuse(const Graph& graph, const Equation& equation) {
  if (graph.As<Carry>(equation.carry) == nullptr) return "an equation of what is no carry";
  if (graph.type(equation.carry) != graph.type(equation.body)) {
    return absl::StrCat("a carry of ", Name(graph.type(equation.carry)), " that is ",
                        Name(graph.type(equation.body)));
  }
  return graph.shape(equation.carry) == graph.shape(equation.body)
             ? ""
             : "a carry that is of another shape";
}

// Whether each read of a carry in the node is at an earlier step of its axis `axis`.
bool ReadsEarlierSteps(Graph& graph, NodeId id, int axis, absl::FunctionRef<bool(IndexId)> is_lag) {
  bool earlier = true;
  const auto look = [&](NodeId x, absl::Span<const IndexId> place) {
    const Carry* carry = graph.As<Carry>(x);
    if (carry == nullptr) return;
    const auto lag = LagOf(graph.pool(), place[carry->axis], axis, carry->backward);
    earlier = earlier && lag && is_lag(*lag);
  };
  const auto look_in = [&](const IndexList& list) {
    for (IndexId e : list) {
      VisitIndex(graph.pool(), e, [&](IndexId, const IndexNode& node) {
        if (node.kind == IndexKind::kLoad)
          look(NodeId{static_cast<int32_t>(node.value)}, node.args);
      });
    }
  };
  const Node node = graph[id];
  if (absl::get_if<Map>(&node.op) != nullptr || absl::get_if<Reduce>(&node.op) != nullptr) {
    VisitOperands(graph, id, [&](NodeId x) { earlier = earlier && graph.As<Carry>(x) == nullptr; });
  }
  if (const auto* reindex = absl::get_if<Reindex>(&node.op)) {
    look(reindex->x, reindex->place);
    look_in(reindex->place);
    look_in(reindex->conditions);
  }
  if (const auto* scatter = absl::get_if<Scatter>(&node.op)) look_in(scatter->place);
  if (const auto* index = absl::get_if<Index>(&node.op)) look_in({index->expr});
  return earlier;
}

}  // namespace

// Each equation by itself, then whether every carry has one, then the rule for steps, node by node
// in topological order.
std::string EquationsMisuse(Graph& graph, absl::Span<const Equation> equations,
                            absl::Span<const NodeId> tensors,
                            absl::FunctionRef<bool(IndexId)> is_lag) {
  absl::flat_hash_map<NodeId, NodeId> bodies;
  std::vector<NodeId> roots(tensors.begin(), tensors.end()), views, carries;
  for (const Equation& equation : equations) {
    const std::string misuse = EquationMisuse(graph, equation);
    if (!misuse.empty()) return misuse;
    if (!bodies.emplace(equation.carry, equation.body).second) return "a carry with two equations";
    roots.push_back(equation.body);
    carries.push_back(equation.carry);
  }
  for (int i = 0; i < graph.size(); ++i) {
    if (graph.As<Recurrence>(NodeId{i}) != nullptr) views.push_back(NodeId{i});
  }
  const std::vector<bool> live = Reachable(graph, roots, views);
  for (int i = 0; i < graph.size(); ++i) {
    if (live[i] && graph.As<Carry>(NodeId{i}) != nullptr && !bodies.contains(NodeId{i}))
      return "a carry without an equation";
  }
  if (equations.empty()) return "";
  absl::flat_hash_map<NodeId, int> axes;
  for (NodeId id : StepNodes(
           graph, carries,
           std::vector<NodeId>(roots.end() - static_cast<int64_t>(carries.size()), roots.end()))) {
    const auto axis = StepAxis(graph, axes).Of(id);
    if (!ReadsEarlierSteps(graph, id, axis.value_or(0), is_lag))
      return "a carry that is read at no earlier step";
    if (!axis) return "a step that reads others along more than one axis, or along none";
    const Carry& carry = *graph.As<Carry>(carries[0]);
    if (graph.shape(id)[*axis] != graph.shape(carries[0])[carry.axis])
      return "a step over another range than the carry";
    axes[id] = *axis;
  }
  for (const Equation& equation : equations) {
    const auto axis = axes.find(equation.body);
    if (axis != axes.end() && axis->second != graph.As<Carry>(equation.carry)->axis)
      return "a carry that is stepped along another axis";
  }
  return "";
}

// The difference of index and place, in which the index must cancel.
absl::optional<IndexId> LagOf(IndexPool& pool, IndexId place, int axis, bool backward) {
  if (pool.HasLoad(place)) return absl::nullopt;
  const IndexId index = pool.Var(axis);
  const IndexId lag = backward ? pool.Sub(place, index) : pool.Sub(index, place);
  if (pool.HasVar(lag)) return absl::nullopt;
  const auto known = pool.ConstValue(lag);
  if (known && *known < 1) return absl::nullopt;
  return lag;
}

class Settler::Impl {
 public:
  Impl(Graph& graph, std::vector<Equation> equations)
      : graph_(graph), equations_(std::move(equations)), size_(graph.size()), needs_(size_),
        settled_(size_) {
    for (size_t k = 0; k < equations_.size(); ++k)
      number_[equations_[k].carry] = static_cast<int>(k);
    FindNeeds();
    FindComponents();
    for (Component& component : components_) SettleComponent(component);
  }

  NodeId Settle(NodeId x) {
    if (IsSettled(x)) return Settled(x);
    Sweep({x});
    return Settled(x);
  }

 private:
  using Set = std::vector<bool>;  // of equations; empty: none

  struct Component {
    std::vector<int> equations;
    std::vector<NodeId> carries, bodies;        // once it is settled
    absl::flat_hash_map<NodeId, NodeId> steps;  // their images
    bool is_plain = false;                      // one equation that does not need itself
    bool is_settled = false;
  };

  // ---- Which equations need which

  bool IsNew(NodeId x) const { return x.value >= size_; }

  void Join(Set& into, const Set& set) {
    if (set.empty()) return;
    if (into.empty()) into.assign(equations_.size(), false);
    for (size_t k = 0; k < set.size(); ++k) into[k] = into[k] || set[k];
  }

  // One pass over the nodes in topological order; a carry needs itself.
  void FindNeeds() {
    if (equations_.empty()) return;
    int first = size_;  // nothing before it needs a carry
    for (const Equation& equation : equations_) first = std::min(first, equation.carry.value);
    for (int i = first; i < size_; ++i) {
      const auto carry = number_.find(NodeId{i});
      if (carry != number_.end()) {
        needs_[i].assign(equations_.size(), false);
        needs_[i][carry->second] = true;
        continue;
      }
      VisitOperands(graph_, NodeId{i}, [&](NodeId x) { Join(needs_[i], needs_[x.value]); });
    }
  }

  // Equation k needs the carries that its body needs, and those that they need in turn.
  std::vector<Set> Closure() {
    const size_t n = equations_.size();
    std::vector<Set> reach(n, Set(n, false));
    for (size_t k = 0; k < n; ++k) Join(reach[k], needs_[equations_[k].body.value]);
    for (size_t via = 0; via < n; ++via) {
      for (size_t k = 0; k < n; ++k) {
        if (reach[k][via]) Join(reach[k], reach[via]);
      }
    }
    return reach;
  }

  // A component comes after those that it needs: those need fewer equations, counting themselves.
  void FindComponents() {
    const std::vector<Set> reach = Closure();
    const int n = static_cast<int>(equations_.size());
    std::vector<int> order(n);
    for (int k = 0; k < n; ++k) order[k] = k;
    const auto count = [&](int k) {
      return std::count(reach[k].begin(), reach[k].end(), true) + !reach[k][k];
    };
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return count(a) < count(b); });
    std::vector<bool> is_placed(n, false);
    for (int k : order) {
      if (is_placed[k]) continue;
      Component component;
      component.is_plain = !reach[k][k];
      for (int other = 0; other < n; ++other) {
        if (other != k && !(reach[k][other] && reach[other][k])) continue;
        component.equations.push_back(other);
        is_placed[other] = true;
      }
      components_.push_back(std::move(component));
    }
  }

  // ---- Nodes outside of the equations

  // The component of which x is a step or a carry, or null.
  Component* ComponentOf(NodeId x) {
    const auto step = step_of_.find(x);
    return step == step_of_.end() ? nullptr : &components_[step->second];
  }

  bool IsSettled(NodeId x) {
    if (IsNew(x) || needs_[x.value].empty() || settled_[x.value].valid()) return true;
    const Component* component = ComponentOf(x);
    return component != nullptr && component->is_settled;
  }

  // REQUIRES: IsSettled(x).
  NodeId Settled(NodeId x) {
    if (IsNew(x) || needs_[x.value].empty()) return x;
    NodeId& settled = settled_[x.value];
    if (settled.valid()) return settled;
    Component& component = *ComponentOf(x);
    const auto carry = number_.find(x);
    const NodeId step = carry == number_.end() ? x : equations_[carry->second].body;
    if (component.is_plain) return settled = Settled(step);
    return settled =
               graph_.AddRecurrence(component.steps.at(step), component.carries, component.bodies);
  }

  // Settles the nodes that `roots` depend on, except those that depend on a component that is not
  // settled yet.
  void Sweep(absl::Span<const NodeId> roots) {
    const std::vector<bool> live = Reachable(graph_, roots);
    for (int i = 0; i < size_; ++i) {
      const NodeId id{i};
      if (!live[i] || IsSettled(id) || ComponentOf(id) != nullptr) continue;
      bool ready = true;
      VisitOperands(graph_, id, [&](NodeId x) { ready = ready && IsSettled(x); });
      if (ready) settled_[i] = Image(id, [&](NodeId x) { return Settled(x); });
    }
  }

  NodeId Image(NodeId id, absl::FunctionRef<NodeId(NodeId)> image) {
    NESTOR_CHECK(graph_.As<Recurrence>(id) == nullptr, "a recurrence in a step of another");
    const auto image_of = [&](int64_t node) {
      return image(NodeId{static_cast<int32_t>(node)}).value;
    };
    const auto index = [&](IndexId e) { return ReplaceLoads(graph_.pool(), e, image_of); };
    return Rebuild(graph_, id, graph_, {image, index, [](int64_t tag) { return tag; }});
  }

  // ---- One component

  // Tensors that the steps read from outside are settled first. The steps are then rebuilt until no
  // two carries turn out to be the same tensor; a rebuilt step may be simpler, and make further
  // carries equal.
  void SettleComponent(Component& component) {
    std::vector<NodeId> carries, bodies;
    for (int k : component.equations) {
      carries.push_back(equations_[k].carry);
      bodies.push_back(equations_[k].body);
    }
    const int number = static_cast<int>(&component - components_.data());
    for (NodeId carry : carries) step_of_[carry] = number;
    std::vector<NodeId> steps;
    if (!component.is_plain) steps = StepNodes(graph_, carries, bodies);
    for (NodeId step : steps) step_of_[step] = number;
    Sweep(bodies);
    component.is_settled = true;
    if (component.is_plain) return;
    for (NodeId carry : carries) component.steps[carry] = carry;
    do {
      MakeImages(component, steps);
    } while (MergeCarries(component, carries, bodies));
    for (size_t k = 0; k < carries.size(); ++k) {
      if (component.steps.at(carries[k]) != carries[k]) continue;
      component.carries.push_back(carries[k]);
      component.bodies.push_back(component.steps.at(bodies[k]));
    }
    MeetKnown(component);
  }

  // Rebuilds the steps: those of the component by their images, all else settled.
  void MakeImages(Component& component, absl::Span<const NodeId> steps) {
    absl::flat_hash_map<NodeId, NodeId>& images = component.steps;
    for (NodeId step : steps) images.erase(step);
    for (NodeId step : steps) {
      const NodeId made = Image(step, [&](NodeId x) {
        const auto it = images.find(x);
        return it != images.end() ? it->second : Settled(x);
      });
      images[step] = made;
    }
  }

  // Merges carries that have the same body. Returns whether there were any.
  bool MergeCarries(Component& component, absl::Span<const NodeId> carries,
                    absl::Span<const NodeId> bodies) {
    absl::flat_hash_map<NodeId, NodeId> first;  // carry, by the image of its body
    bool merged = false;
    for (size_t k = 0; k < carries.size(); ++k) {
      NodeId& image = component.steps.at(carries[k]);
      if (image != carries[k]) continue;
      image = first.try_emplace(component.steps.at(bodies[k]), carries[k]).first->second;
      merged = merged || image != carries[k];
    }
    return merged;
  }

  // Reuses the same system of the graph, if there is one.
  void MeetKnown(Component& component) {
    for (NodeId id : graph_.recurrences()) {
      const Recurrence& other = *graph_.As<Recurrence>(id);
      if (other.carries.size() != component.carries.size()) continue;
      if (absl::c_equal(other.carries, component.carries)) continue;
      for (size_t j = 0; j < other.bodies.size(); ++j) {
        if (MeetAt(component, other, j)) return;
      }
    }
  }

  // Whether the component equals `other`, with its first equation as number j there; if so,
  // reuses that.
  bool MeetAt(Component& component, const Recurrence& other, size_t j) {
    const auto images = MatchRecurrence(graph_, component.carries, component.bodies, other, j);
    if (!images) return false;
    const auto image = [&](NodeId x) {
      const auto it = images->find(x);
      return it != images->end() ? it->second : x;
    };
    for (auto& [step, node] : component.steps) node = image(node);
    component.carries.assign(other.carries.begin(), other.carries.end());
    component.bodies.assign(other.bodies.begin(), other.bodies.end());
    return true;
  }

  Graph& graph_;
  const std::vector<Equation> equations_;
  const int size_;                           // of the graph, before anything was settled
  absl::flat_hash_map<NodeId, int> number_;  // of the equation, by carry
  std::vector<Set> needs_;                   // by node
  std::vector<NodeId> settled_;              // by node; invalid until asked for
  std::vector<Component> components_;
  absl::flat_hash_map<NodeId, int> step_of_;
};

Settler::Settler(Graph& graph, std::vector<Equation> equations)
    : impl_(std::make_unique<Impl>(graph, std::move(equations))) {}
Settler::~Settler() = default;

NodeId Settler::Settle(NodeId x) { return impl_->Settle(x); }

}  // namespace nestor
