// Nodes made anew in another graph, or in the same one, by the constructors, which simplify on the
// way. Inlining, gradients and the comparison of programs all are imports that differ in their
// leaves. Equal programs that are made in one graph have equal ids.
#include <memory>
#include <numeric>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "uops/graph.h"
#include "uops/invariant.h"
#include "uops/recurrence.h"

namespace nestor {

// One case per kind of node: the same constructor on images.
NodeId Rebuild(const Graph& from, NodeId id, Graph& to, const Rebuilding& rebuilding) {
  struct Visitor {
    NodeId operator()(const Input&) const { return Leaf(); }
    NodeId operator()(const Param&) const { return Leaf(); }
    NodeId operator()(const Carry&) const { return Leaf(); }
    NodeId operator()(const Recurrence&) const { return Leaf(); }
    NodeId operator()(const Constant& n) const { return to.AddConstant(n.value); }
    NodeId operator()(const Index& n) const {
      return to.AddIndex(r.index(n.expr), List(node.shape));
    }
    NodeId operator()(const Reindex& n) const {
      return to.AddReindex(r.image(n.x), List(node.shape), List(n.place), r.image(n.fill),
                           List(n.conditions));
    }
    NodeId operator()(const Map& n) const {
      NodeList args;
      for (NodeId arg : n.args) args.push_back(r.image(arg));
      if (n.tag == 0) return to.AddMap(n.op, args, node.type);
      const int64_t tag = r.tag(n.tag);
      return tag == 0 ? args[0] : to.AddTaggedCopy(args[0], tag);  // 0: it is told apart no longer
    }
    NodeId operator()(const Reduce& n) const {
      const NodeId x = r.image(n.x);
      std::vector<int> axes(n.count);
      std::iota(axes.begin(), axes.end(), to.rank(x) - n.count);
      return to.AddReduce(n.op, x, axes);
    }
    NodeId operator()(const Scatter& n) const {
      return to.AddScatter(n.op, r.image(n.x), List(node.shape), List(n.place));
    }

    static NodeId Leaf() { NESTOR_CHECK(false, "a leaf is not rebuilt"); }
    IndexList List(const IndexList& list) const {
      IndexList result;
      for (IndexId e : list) result.push_back(r.index(e));
      return result;
    }
    const Node& node;
    Graph& to;
    const Rebuilding& r;
  };
  const Node node = from[id];  // a copy: the graph may grow
  return absl::visit(Visitor{node, to, rebuilding}, node.op);
}

namespace {

// One import. A node of `from` that no root needs has no image: its entry in `image_` is invalid.
class Import {
 public:
  Import(const Graph& from, Graph& to, const ImportLeaves& leaves)
      : from_(from), to_(to), leaves_(leaves), image_(from.size()) {}

  // In the order of ids, so that operands have their images first.
  std::vector<NodeId> Run(absl::Span<const NodeId> roots) {
    const std::vector<bool> live = Reachable(from_, roots, leaves_.cut);
    for (NodeId id : leaves_.cut) {
      if (live[id.value]) image_[id.value] = leaves_.leaf(id);
    }
    for (int i = 0; i < from_.size(); ++i) {
      if (live[i] && !image_[i].valid()) image_[i] = ImageOf(NodeId{i});
    }
    std::vector<NodeId> result;
    for (NodeId root : roots) result.push_back(image_[root.value]);
    return result;
  }

 private:
  // Carries are made anew: those of two graphs are never the same.
  NodeId ImageOf(NodeId id) {
    if (from_.As<Input>(id) != nullptr || from_.As<Param>(id) != nullptr) return leaves_.leaf(id);
    if (const Carry* carry = from_.As<Carry>(id)) {
      Shape shape;
      for (IndexId e : from_.shape(id)) shape.push_back(Index(e));
      return to_.AddCarry(from_.type(id), std::move(shape), carry->axis, carry->backward);
    }
    if (const Recurrence* recurrence = from_.As<Recurrence>(id)) return Settled(*recurrence);
    return Rebuild(from_, id, to_,
                   {[&](NodeId x) { return image_[x.value]; }, [&](IndexId e) { return Index(e); },
                    leaves_.tag});
  }

  // Symbols by the caller's rule, loads from the images of their tensors; all else is copied.
  IndexId Index(IndexId e) {
    return CopyIndex(
        from_.pool(), e, to_.pool(),
        [&](const IndexNode& node, absl::Span<const IndexId> args) -> absl::optional<IndexId> {
          if (node.kind == IndexKind::kSymbol) return leaves_.symbol(node.value);
          if (node.kind != IndexKind::kLoad) return absl::nullopt;
          return to_.pool().Load(image_[node.value].value, args);
        });
  }

  // The equations are settled anew: images may have been simplified so that they leave the system.
  NodeId Settled(const Recurrence& n) {
    // All views of one system share a settler, and so get one system in the other graph.
    std::unique_ptr<Settler>& settler = settlers_[n.carries[0]];
    if (settler == nullptr) {
      std::vector<Equation> equations;
      for (size_t k = 0; k < n.carries.size(); ++k) {
        // A carry that nothing live reads has no image; its equation is left out.
        if (image_[n.carries[k].value].valid())
          equations.push_back({image_[n.carries[k].value], image_[n.bodies[k].value]});
      }
      settler = std::make_unique<Settler>(to_, std::move(equations));
    }
    return settler->Settle(image_[n.x.value]);
  }

  const Graph& from_;
  Graph& to_;
  const ImportLeaves& leaves_;
  std::vector<NodeId> image_;
  absl::flat_hash_map<NodeId, std::unique_ptr<Settler>> settlers_;  // by the first carry
};

}  // namespace

std::vector<NodeId> ImportNodes(const Graph& from, absl::Span<const NodeId> roots, Graph& to,
                                const ImportLeaves& leaves) {
  return Import(from, to, leaves).Run(roots);
}

namespace {

// `roots` of `from` rebuilt in `to`, inputs and symbols by name, tags dropped.
std::vector<NodeId> ImportByName(const Graph& from, absl::Span<const NodeId> roots, Graph& to) {
  const auto leaf = [&](NodeId id) {
    const Node& node = from[id];
    if (const Param* param = from.As<Param>(id)) return to.AddParam(param->name, node.type);
    Shape shape;
    for (IndexId e : node.shape) shape.push_back(CopyIndex(from.pool(), e, to.pool()));
    return to.AddInput(from.As<Input>(id)->name, node.type, std::move(shape));
  };
  const auto symbol = [](int64_t) -> absl::optional<IndexId> { return absl::nullopt; };
  // Tags are numbers of an op's own calls, which say nothing in another op.
  const auto tag = [](int64_t) -> int64_t { return 0; };
  return ImportNodes(from, roots, to, {leaf, symbol, tag});
}

}  // namespace

bool SameStructure(const Graph& a, absl::Span<const NodeId> roots_a, const Graph& b,
                   absl::Span<const NodeId> roots_b) {
  // Equal programs that are built in one graph have equal ids.
  Graph merged;
  return ImportByName(a, roots_a, merged) == ImportByName(b, roots_b, merged);
}

}  // namespace nestor
