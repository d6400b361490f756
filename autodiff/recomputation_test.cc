// Every choice is the one that recounting from scratch makes: random graphs, random
// candidates, dropped one or two at a time.
#include "autodiff/recomputation.h"

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace nestor {
namespace {

using Random = std::mt19937;

bool Chance(Random& random, unsigned percent) { return random() % 100 < percent; }
NodeId Pick(Random& random, const std::vector<NodeId>& nodes) {
  return nodes[random() % nodes.size()];
}

// Counts the nodes of the forward program that are live and not given.
struct Cost {
  int inputs = 0, reductions = 0;
};

Cost CostOf(const Graph& graph, int forward_size, const std::vector<NodeId>& results,
            const std::vector<NodeId>& given) {
  const std::vector<bool> live = Reachable(graph, results, given);
  Cost cost;
  for (int i = 0; i < forward_size; ++i) {
    const NodeId id{i};
    if (!live[i] || std::find(given.begin(), given.end(), id) != given.end()) continue;
    cost.inputs += graph.As<Input>(id) != nullptr;
    cost.reductions += graph.As<Reduce>(id) != nullptr || graph.As<Scatter>(id) != nullptr ||
                       graph.As<Recurrence>(id) != nullptr;
  }
  return cost;
}

// Adds sums of two nodes, sums along the axis and inputs to the graph.
void Grow(Graph& graph, Random& random, int steps, std::vector<NodeId>& nodes) {
  const Shape shape = {graph.pool().Symbol("N")};
  for (int i = 0; i < steps; ++i) {
    const NodeId a = Pick(random, nodes), b = Pick(random, nodes);
    switch (random() % 8) {
      case 0:
        nodes.push_back(graph.AddInput(absl::StrCat("x", nodes.size()), DType::kF32, shape));
        break;
      case 1:
        nodes.push_back(graph.AddSplat(graph.AddReduce(ReduceOp::kSum, a, {0}), shape));
        break;
      case 2:
        nodes.push_back(graph.AddScatter(ReduceOp::kSum, a, shape, {graph.pool().Var(0)}));
        break;
      default: nodes.push_back(graph.AddMap(ScalarOp::kAdd, {a, b})); break;
    }
  }
}

void CheckOne(unsigned seed) {
  Random random(seed);
  Graph graph;
  std::vector<NodeId> nodes = {graph.AddInput("x", DType::kF32, {graph.pool().Symbol("N")})};
  Grow(graph, random, 20, nodes);
  const int forward_size = graph.size();
  std::vector<NodeId> given, results;
  for (NodeId id : nodes) {
    if (graph.As<Input>(id) != nullptr || Chance(random, 40)) given.push_back(id);
  }
  std::sort(given.begin(), given.end());
  given.erase(std::unique(given.begin(), given.end()), given.end());
  std::vector<NodeId> all = nodes;
  Grow(graph, random, 10, all);
  for (int i = 0; i < 2; ++i)
    results.push_back(Chance(random, 50) ? all.back() : Pick(random, all));

  Recomputation recomputed(graph, forward_size, results, given);
  const int least = CostOf(graph, forward_size, results, given).reductions;
  std::vector<NodeId> order = given;
  std::shuffle(order.begin(), order.end(), random);
  for (size_t i = 0; i < order.size();) {
    const size_t count = std::min<size_t>(order.size() - i, Chance(random, 80) ? 1 : 2);
    const std::vector<NodeId> nodes_now(order.begin() + static_cast<int64_t>(i),
                                        order.begin() + static_cast<int64_t>(i + count));
    i += count;
    std::vector<NodeId> fewer;
    for (NodeId id : given) {
      if (std::find(nodes_now.begin(), nodes_now.end(), id) == nodes_now.end()) fewer.push_back(id);
    }
    const Cost cost = CostOf(graph, forward_size, results, fewer);
    const bool drops = cost.inputs == 0 && cost.reductions <= least;
    ASSERT_EQ(recomputed.Drop(nodes_now), drops) << "seed " << seed;
    if (drops) given = fewer;
    ASSERT_EQ(recomputed.Missing().empty(), true) << "seed " << seed;
  }
}

TEST(Recomputation, DropsWhatRecountingWould) {
  for (unsigned seed = 0; seed < 20000; ++seed) {
    CheckOne(seed);
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace nestor
