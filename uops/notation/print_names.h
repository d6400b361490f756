// Which nodes of an op have a name in its text, and which one.
//
// A node is named where the notation needs a name (it is gathered from, scattered, or accessed out
// of order or out of bounds), where it is used more than once, and where an expression would grow
// too deep. A step of a recurrence, its carry and its Recurrence have one name.
#ifndef NESTOR_UOPS_NOTATION_PRINT_NAMES_H_
#define NESTOR_UOPS_NOTATION_PRINT_NAMES_H_

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "uops/op.h"
#include "uops/recurrence.h"

namespace nestor {

class NodeNames {
 public:
  // REQUIRES: `op` outlives this.
  explicit NodeNames(const Op& op);

  bool Has(NodeId id) const { return named_.contains(id); }
  // REQUIRES: it has one.
  const std::string& Of(NodeId id) const { return named_.at(id); }
  // The node whose name it bears.
  NodeId Named(NodeId id) const;
  // Whether the name is taken, so that no index may have it.
  bool Taken(absl::string_view name) const;

  // Repeats its operand along more axes, in order: written as the operand.
  bool IsRepeat(NodeId id) const;
  // A literal, perhaps repeated.
  bool IsConstantOperand(NodeId id) const;

  // ---- Recurrences

  // The name of the index that all steps use.
  const std::string& step_index() const { return step_index_; }
  const std::vector<NodeId>& StepsOf(const Recurrence& recurrence) const {
    return steps_.Of(recurrence);
  }
  // The axis along which a node is stepped; -1 if it is no step.
  int StepAxisOf(NodeId id) const { return steps_.AxisOf(id); }
  // Whether it is a step inside its block, and no view of one.
  bool IsStep(NodeId id) const { return StepAxisOf(id) >= 0 || graph_.As<Carry>(id) != nullptr; }

 private:
  void FindAliases();
  void CollectIdentifiers();
  std::string FreshTensor();
  void NameArgumentsAndResults();
  NodeId ThroughRepeats(NodeId id) const;
  bool IsLeaf(NodeId id) const;
  bool IsIndexOperand(NodeId id) const;
  void Name(NodeId id);
  void NumberNames();
  void NameLoaded(IndexId e);
  void NameWhatNeedsIt();
  void NameWhatIsShared();
  void NameIndexOperands();
  void NameWhatIsDeep();

  const Op& op_;
  const Graph& graph_;
  const IndexPool& pool_;
  const std::vector<bool> live_;
  const SteppedNodes steps_;
  absl::flat_hash_set<std::string> identifiers_;
  absl::flat_hash_map<NodeId, std::string> named_;
  int next_tensor_ = 0;
  absl::flat_hash_map<NodeId, NodeId> alias_;  // of carries and recurrences: the step
  std::string step_index_;
};

}  // namespace nestor

#endif  // NESTOR_UOPS_NOTATION_PRINT_NAMES_H_
