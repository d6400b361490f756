// Which nodes get names is a choice between two bad texts: one statement per node is unreadable,
// and one expression for all repeats what is shared, and is read back by a recursion of its depth.
//
// Names are given in passes over the graph, each of which sees which nodes the ones before it
// named: nodes that need a name, then shared nodes, then index values that would join their
// neighbours into one index expression, then deep nodes. The tensors are numbered at the end.
#include "uops/notation/print_names.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "uops/index/operators.h"
#include "uops/notation/parser.h"
#include "uops/recurrence.h"

namespace nestor {
namespace {

// Far below kMaxNesting of the parser.
constexpr int kMaxInlineDepth = 40;

// Ops that the notation would read as part of an index expression.
bool IsIndexArithmetic(ScalarOp op) {
  const InfixOperator* infix = InfixOf(op, DType::kI64);
  return op == ScalarOp::kNeg || (infix != nullptr && infix->IsArithmetic()) ||
         FindIndexFunction(Row(op).name) != nullptr;
}

}  // namespace

NodeNames::NodeNames(const Op& op)
    : op_(op), graph_(op.graph), pool_(op.graph.pool()),
      live_(Reachable(op.graph, op.ResultNodes())), steps_(op.graph, live_) {
  FindAliases();
  CollectIdentifiers();
  NameArgumentsAndResults();
  NameWhatNeedsIt();
  NameWhatIsShared();
  NameIndexOperands();
  NameWhatIsDeep();
  NumberNames();
}

// A step, its carry and the view of it from outside are one tensor in the text, by one name.
void NodeNames::FindAliases() {
  for (int i = 0; i < graph_.size(); ++i) {
    const Recurrence* recurrence = graph_.As<Recurrence>(NodeId{i});
    if (!live_[i] || recurrence == nullptr) continue;
    alias_[NodeId{i}] = recurrence->x;
    for (size_t k = 0; k < recurrence->carries.size(); ++k)
      alias_[recurrence->carries[k]] = recurrence->bodies[k];
  }
}

NodeId NodeNames::Named(NodeId id) const {
  const auto it = alias_.find(id);
  return it == alias_.end() ? id : it->second;
}

// Names that new ones must not take: of arguments, dimensions and results.
void NodeNames::CollectIdentifiers() {
  for (const Argument& arg : op_.args) {
    identifiers_.insert(arg.name);
    for (IndexId extent : arg.shape) {
      VisitIndex(pool_, extent, [&](IndexId id, const IndexNode& node) {
        if (node.kind == IndexKind::kSymbol) identifiers_.insert(pool_.SymbolName(id));
      });
    }
  }
  for (const Result& result : op_.results) identifiers_.insert(result.name);
  step_index_ = FreshName("t", [&](absl::string_view name) { return Taken(name); });
}

bool NodeNames::Taken(absl::string_view name) const {
  return identifiers_.contains(name) || IsReserved(name) || ScalarOpByName(name);
}

std::string NodeNames::FreshTensor() {
  for (;;) {
    std::string name = absl::StrCat("t", next_tensor_++);
    if (!Taken(name)) {
      identifiers_.insert(name);
      return name;
    }
  }
}

// First of all, so that a result that is also used elsewhere keeps its own name.
void NodeNames::NameArgumentsAndResults() {
  for (const Argument& arg : op_.args) named_.emplace(arg.node, arg.name);
  for (const Result& result : op_.results) named_.emplace(Named(result.node), result.name);
  for (const auto& [node, named] : alias_) {
    Name(node);
    Name(named);
  }
}

// ---- Which nodes are named

// Its subscripts are indices alone, in ascending order, over whole axes.
bool NodeNames::IsRepeat(NodeId id) const {
  const Reindex* reindex = graph_.As<Reindex>(id);
  if (reindex == nullptr || !reindex->conditions.empty()) return false;
  int64_t last = -1;
  for (size_t j = 0; j < reindex->place.size(); ++j) {
    const int64_t var = pool_.VarValue(reindex->place[j]);
    if (var <= last || graph_.shape(id)[var] != graph_.shape(reindex->x)[j]) return false;
    last = var;
  }
  return true;
}

bool NodeNames::IsLeaf(NodeId id) const {
  return graph_.As<Constant>(id) != nullptr || graph_.As<Param>(id) != nullptr;
}

NodeId NodeNames::ThroughRepeats(NodeId id) const {
  while (!named_.contains(id) && IsRepeat(id)) id = graph_.As<Reindex>(id)->x;
  return id;
}
bool NodeNames::IsIndexOperand(NodeId id) const {
  id = ThroughRepeats(id);
  return !named_.contains(id) && graph_.As<Index>(id) != nullptr;
}
bool NodeNames::IsConstantOperand(NodeId id) const {
  id = ThroughRepeats(id);
  return !named_.contains(id) && graph_.As<Constant>(id) != nullptr;
}

void NodeNames::Name(NodeId id) {
  if (!named_.contains(id)) named_.emplace(id, "");
}

// Tensors are numbered in the order of the text.
void NodeNames::NumberNames() {
  for (int i = 0; i < graph_.size(); ++i) {
    const auto it = named_.find(NodeId{i});
    if (it != named_.end() && it->second.empty() && !alias_.contains(NodeId{i}))
      it->second = FreshTensor();
  }
  // A copy: the map grows.
  for (const auto& [node, named] : alias_) named_[node] = std::string(named_.at(named));
}

// The tensors that an index expression gathers from.
void NodeNames::NameLoaded(IndexId e) {
  VisitIndex(pool_, e, [&](IndexId, const IndexNode& node) {
    if (node.kind == IndexKind::kLoad) Name(NodeId{static_cast<int32_t>(node.value)});
  });
}

// The notation gathers from, and reads at other places than its own indices, tensors with names
// only.
// x[i + 1] reads a named x: (a + b)[i + 1] is no text
void NodeNames::NameWhatNeedsIt() {
  for (int i = 0; i < graph_.size(); ++i) {
    const NodeId id{i};
    if (!live_[i]) continue;
    if (const Reindex* reindex = graph_.As<Reindex>(id)) {
      if (!IsRepeat(id)) Name(reindex->x);
      for (IndexId e : reindex->place) NameLoaded(e);
      for (IndexId c : reindex->conditions) NameLoaded(c);
    } else if (graph_.As<Index>(id) != nullptr) {
      VisitOperands(graph_, id, [&](NodeId x) { Name(x); });
    } else if (graph_.As<Scatter>(id) != nullptr) {
      Name(id);
      VisitOperands(graph_, id, [&](NodeId x) { Name(x); });
    }
  }
}

// A repetition that is used twice counts as two uses of its operand, since it is written as that.
void NodeNames::NameWhatIsShared() {
  std::vector<int> uses(graph_.size(), 0);
  for (int i = graph_.size() - 1; i >= 0; --i) {
    const NodeId id{i};
    if (!live_[i]) continue;
    const bool transparent = IsRepeat(id) && !named_.contains(id);
    if (uses[i] > 1 && !transparent && !IsLeaf(id)) Name(id);
    // Two stands for many: a product of counts along a chain could overflow.
    const int weight = transparent ? std::min(uses[i], 2) : 1;
    VisitOperands(graph_, id, [&](NodeId x) { uses[x.value] += weight; });
  }
}

// An index value must not join its neighbours into one index expression.
void NodeNames::NameIndexOperands() {
  for (int i = 0; i < graph_.size(); ++i) {
    const Map* map = graph_.As<Map>(NodeId{i});
    if (!live_[i] || map == nullptr || !IsIndexArithmetic(map->op)) continue;
    bool all = true;
    for (NodeId arg : map->args) all &= IsIndexOperand(arg) || IsConstantOperand(arg);
    if (!all) continue;
    for (NodeId arg : map->args) {
      if (IsIndexOperand(arg)) Name(ThroughRepeats(arg));
    }
  }
}

// An expression is parsed, and its types are found, by recursion.
void NodeNames::NameWhatIsDeep() {
  std::vector<int> depth(graph_.size(), 0);
  for (int i = 0; i < graph_.size(); ++i) {
    if (!live_[i]) continue;
    VisitOperands(graph_, NodeId{i}, [&](NodeId x) {
      if (!named_.contains(x)) depth[i] = std::max(depth[i], depth[x.value] + 1);
    });
    if (depth[i] > kMaxInlineDepth) Name(NodeId{i});
  }
}

}  // namespace nestor
