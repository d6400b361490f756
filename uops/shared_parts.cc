// Common subexpressions inside scalar ops. A composed op is one node, so hash-consing does not see
// into it; writing all of them out would lose the names by which the rest of the compiler knows
// them. So it is done where it pays: equal nodes of a graph are one node, the bodies are written
// out into a copy of the graph, and one shares a part if writing it out meets a node that was
// there.
#include "uops/shared_parts.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "uops/graph.h"
#include "uops/scalar_body.h"

namespace nestor {
namespace {

// Null: the node is no composed scalar op with a costly part.
const ScalarBody* BodyOf(const Graph& graph, NodeId id) {
  const Map* map = graph.As<Map>(id);
  if (map == nullptr || map->tag != 0 || Row(map->op).transcendental) return nullptr;
  const ScalarBody* body = FunctionOf(map->op, graph.type(map->args.back()), graph.type(id)).body;
  const auto is_costly = [](const ScalarBody::Step& step) { return Row(step.op).transcendental; };
  const bool has_costly =
      body != nullptr && std::any_of(body->steps.begin(), body->steps.end(), is_costly);
  return has_costly ? body : nullptr;
}

// The nodes that the body computes from the arguments: its registers.
std::vector<NodeId> WriteOut(const ScalarBody& body, const NodeList& args, Graph& graph) {
  std::vector<NodeId> registers(args.begin(), args.end());
  const Shape shape = graph.shape(args.back());
  for (size_t i = 0; i < body.constants.size(); ++i) {
    registers.push_back(
        graph.AddSplat(graph.AddConstant({body.constant_types[i], body.constants[i]}), shape));
  }
  for (const ScalarBody::Step& step : body.steps) {
    NodeList operands;
    for (int i = 0; i < Row(step.op).arity; ++i)
      operands.push_back(registers[static_cast<size_t>(step.args[i])]);
    registers.push_back(graph.AddMap(step.op, operands, step.target));
  }
  return registers;
}

class Writer {
 public:
  explicit Writer(const Op& op)
      : op_(op), size_(op.graph.size()), live_(Reachable(op.graph, op.ResultNodes())) {}

  absl::optional<Op> Run() {
    const std::vector<bool> shares = FindSharers();
    if (shares.empty()) return absl::nullopt;
    out_ = op_;
    for (int i = 0; i < size_; ++i)
      image_.push_back(live_[i] ? ImageOf(NodeId{i}, shares[i]) : NodeId{i});
    for (Result& result : out_.results) result.node = Image(result.node);
    return std::move(out_);
  }

 private:
  // By node, whether it shares a part; empty if none does. The graph is copied for the first node
  // that may share one.
  std::vector<bool> FindSharers() {
    std::vector<bool> shares(static_cast<size_t>(size_), false);
    bool any = false;
    Graph scratch;
    for (int i = 0; i < size_; ++i) {
      const ScalarBody* body = live_[i] ? BodyOf(op_.graph, NodeId{i}) : nullptr;
      if (body == nullptr) continue;
      if (scratch.size() == 0) scratch = op_.graph;
      const std::vector<NodeId> registers =
          WriteOut(*body, op_.graph.As<Map>(NodeId{i})->args, scratch);
      const auto first_step = registers.end() - static_cast<int64_t>(body->steps.size());
      shares[i] = std::any_of(first_step, registers.end(),
                              [&](NodeId part) { return IsCostlyAndThere(scratch, part); });
      any = any || shares[i];
    }
    return any ? shares : std::vector<bool>();
  }

  bool IsCostlyAndThere(const Graph& scratch, NodeId part) const {
    const Map* map = scratch.As<Map>(part);
    return part.value < size_ && live_[part.value] && map != nullptr && Row(map->op).transcendental;
  }

  NodeId Image(NodeId id) const { return id.valid() ? image_[id.value] : id; }

  // A node without changed operands is kept; the new nodes come after all old ones.
  NodeId ImageOf(NodeId id, bool shares) {
    Graph& graph = out_.graph;
    if (shares) {
      NodeList args;
      for (const NodeId arg : graph.As<Map>(id)->args) args.push_back(Image(arg));
      const ScalarBody& body = *BodyOf(graph, id);
      return WriteOut(body, args, graph)[static_cast<size_t>(body.result)];
    }
    bool is_same = true;
    VisitOperands(graph, id,
                  [&](NodeId operand) { is_same = is_same && Image(operand) == operand; });
    if (is_same) return id;
    const auto image = [&](NodeId x) { return Image(x); };
    const auto index = [&](IndexId e) {
      return ReplaceLoads(graph.pool(), e, [&](int64_t tensor) -> int64_t {
        return Image(NodeId{static_cast<int32_t>(tensor)}).value;
      });
    };
    const auto tag = [](int64_t number) { return number; };
    return Rebuild(graph, id, graph, {image, index, tag});
  }

  const Op& op_;
  Op out_;          // a copy, made where something is written out: most ops are lowered as they are
  const int size_;  // of the graph as it was
  const std::vector<bool> live_;
  std::vector<NodeId> image_;
};

}  // namespace

absl::optional<Op> WriteOutSharedParts(const Op& op) {
  if (!op.graph.recurrences().empty()) return absl::nullopt;
  return Writer(op).Run();
}

}  // namespace nestor
