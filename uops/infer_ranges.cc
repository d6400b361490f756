// In y[i] = sum[k](a[i, k] * b[k]), nothing says how far i and k run but the tensors. The first
// axis that an index alone subscripts gives its extent; every further one must be as long, which is
// checked when the op runs if the sizes are not known to be equal (here: axis 1 of a and axis 0 of
// b). An index in a compound subscript, such as x[i + r], gets no range from it.
//
// One walk over the statement in the order of its text. The indices in scope form a stack: the
// statement's own, then the reductions' from outside in. Each time that an index comes into scope
// it is bound anew, since an index made in C++ may be reduced over many times. Subtrees may be
// shared; the walk remembers which of these it has seen, separately for each reduction's body,
// where the stack is a different one.
#include "uops/infer_ranges.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "uops/invariant.h"
#include "uops/notation/lexer.h"

namespace nestor::internal {
namespace {

class RangeWalk {
 public:
  RangeWalk(const Statement& statement, Op& op, bool partial)
      : statement_(statement), partial_(partial), op_(op), graph_(op.graph),
        pool_(op.graph.pool()) {}

  // The left side first, then the body: the first axis in the text gives an index its range.
  absl::StatusOr<Ranges> Run() {
    for (const IndexHandle& index : statement_.indices) NESTOR_RETURN_IF_ERROR(Push(index));
    own_ = stack_.size();
    if (statement_.scatter) NESTOR_RETURN_IF_ERROR(WalkTarget(*statement_.scatter));
    NESTOR_RETURN_IF_ERROR(Walk(statement_.body));
    NESTOR_RETURN_IF_ERROR(CheckRanges());
    Ranges ranges;
    ranges.own = RangedIndices(stack_);
    for (const auto& [node, numbers] : reduced_)
      ranges.reduced.emplace(node, RangedIndices(numbers));
    return ranges;
  }

 private:
  struct Binding {
    int64_t variable;
    IndexId extent;             // invalid until known
    const std::string* tensor;  // where the extent was found
    size_t axis;
  };

  const IndexVariable& VariableOf(const Binding& binding) const {
    return statement_.variables[binding.variable];
  }

  std::vector<RangedIndex> RangedIndices(const std::vector<size_t>& numbers) const {
    std::vector<RangedIndex> indices;
    for (size_t number : numbers)
      indices.push_back({bindings_[number].variable, bindings_[number].extent});
    return indices;
  }

  // ---- Scope

  Binding* Find(int64_t variable) {
    for (size_t number : stack_) {
      if (bindings_[number].variable == variable) return &bindings_[number];
    }
    return nullptr;
  }

  // A new binding's number.
  size_t Bind(int64_t variable) {
    const IndexVariable& index = statement_.variables[variable];
    // The extent that accesses are compared with is an axis of the tensor that the
    // statement defines.
    bindings_.push_back(
        {variable, index.extent.value_or(IndexId()), &statement_.name, stack_.size()});
    return bindings_.size() - 1;
  }

  // Brings an index into scope. A variable can be in scope once: otherwise its uses would be
  // ambiguous.
  absl::Status Push(const IndexHandle& index) {
    NESTOR_ASSIGN_OR_RETURN(const IndexId id, ResolveIndex(graph_, index));
    const int64_t variable = pool_.VarValue(id);
    if (variable < 0) {
      return ErrorIn(index.position,
                     "what is defined or reduced over must be an index of NewIndex standing alone");
    }
    if (Find(variable) != nullptr) {
      return ErrorIn(index.position,
                     absl::StrCat("the index '", statement_.variables[variable].name,
                                  "' is already in use here"));
    }
    stack_.push_back(Bind(variable));
    return absl::OkStatus();
  }

  // The expression of `index`. All of its indices must be in scope; a scatter adds those that
  // are not.
  absl::StatusOr<IndexId> InScope(const IndexHandle& index) {
    NESTOR_ASSIGN_OR_RETURN(const IndexId id, ResolveIndex(graph_, index));
    absl::Status status;
    if (!pool_.HasVar(id)) return id;
    VisitIndex(pool_, id, [&](IndexId, const IndexNode& node) {
      if (node.kind != IndexKind::kVar || Find(node.value) != nullptr) return;
      if (statement_.scatter)
        stack_.insert(stack_.begin() + static_cast<int64_t>(own_++), Bind(node.value));
      else status.Update(NotInScope(index, statement_.variables[node.value].name));
    });
    if (!status.ok()) return status;
    return id;
  }

  static absl::Status NotInScope(const IndexHandle& index, absl::string_view name) {
    return ErrorIn(index.position,
                   absl::StrCat("the index '", name, "' is neither on the left nor reduced"));
  }

  // ---- Ranges

  // `index` is on that axis of the tensor `name`.
  absl::Status MeetAxis(const IndexHandle& index, const std::string& name, const Shape& shape,
                        size_t axis) {
    NESTOR_ASSIGN_OR_RETURN(const IndexId id, ResolveIndex(graph_, index));
    WarnBeyond(index, AlwaysOutOfBounds(pool_, id, shape[axis], name, axis));
    if (!index.alone) return absl::OkStatus();
    Binding& binding = *Find(pool_.VarValue(id));
    if (VariableOf(binding).extent && !VariableOf(binding).is_compared) return absl::OkStatus();
    if (binding.extent == IndexId()) {
      binding.extent = shape[axis];
      binding.tensor = &name;
      binding.axis = axis;
    } else if (binding.extent != shape[axis]) {
      op_.equalities.push_back(
          {binding.extent, shape[axis],
           absl::StrCat("index ", VariableOf(binding).name, " runs over ",
                        AxisText(*binding.tensor, binding.extent, binding.axis), " and over ",
                        AxisText(name, shape[axis], axis))});
    }
    return absl::OkStatus();
  }

  std::string AxisText(const std::string& tensor, IndexId extent, size_t axis) const {
    return absl::StrCat("axis ", axis, " of ", tensor, " (", SymbolicText(pool_, extent), ")");
  }

  void WarnBeyond(const IndexHandle& index, const std::string& beyond) {
    if (beyond.empty()) return;
    op_.AddWarning(index.position
                       ? std::string(ErrorAt(*index.position, beyond).message())
                       : absl::StrCat("op ", op_.name, ": ", statement_.name, ": ", beyond));
  }

  // Every index must have a range in the end; in a first pass over a block, only those on the left.
  absl::Status CheckRanges() const {
    for (const Binding& binding : bindings_) {
      if (binding.extent != IndexId() || (partial_ && !IsOwn(binding))) continue;
      const IndexVariable& index = VariableOf(binding);
      return ErrorIn(index.position,
                     absl::StrCat("the index '", index.name, "' has no range: ",
                                  index.position ? absl::StrCat("add 'where ", index.name, " < ..'")
                                                 : "give NewIndex an extent"));
    }
    return absl::OkStatus();
  }

  bool IsOwn(const Binding& binding) const {
    const auto end = stack_.begin() + static_cast<int64_t>(own_);
    return std::find(stack_.begin(), end, static_cast<size_t>(&binding - bindings_.data())) != end;
  }

  // ---- The walk

  absl::Status WalkTarget(const ScatterTarget& target) {
    if (target.place.size() != target.shape.size()) {
      const std::string name = statement_.position ? absl::StrCat("'", statement_.name, "'") : "it";
      return ErrorIn(statement_.position,
                     absl::StrCat(name, " has ", target.shape.size(), " dimensions and is given ",
                                  target.place.size(), " indices"));
    }
    return WalkPlace(target.place, statement_.name, target.shape);
  }

  absl::Status WalkPlace(const std::vector<IndexHandle>& place, const std::string& name,
                         const Shape& shape) {
    for (const IndexHandle& index : place) NESTOR_RETURN_IF_ERROR(InScope(index).status());
    for (size_t i = 0; i < place.size(); ++i)
      NESTOR_RETURN_IF_ERROR(MeetAxis(place[i], name, shape, i));
    return WalkLoads(place);
  }

  absl::Status WalkLoads(const std::vector<IndexHandle>& list) {
    for (const IndexHandle& index : list) {
      for (const ExprNodePtr& load : index.loads) NESTOR_RETURN_IF_ERROR(WalkAccess(*load));
    }
    return absl::OkStatus();
  }

  // All subscripts must be in scope before any is compared with an axis: a scatter binds new ones
  // on the way.
  absl::Status WalkAccess(const ExprNode& node) {
    if (IsOpen(node)) {
      for (const IndexHandle& index : node.indices) NESTOR_RETURN_IF_ERROR(InScope(index).status());
      NESTOR_RETURN_IF_ERROR(WalkLoads(node.indices));
    } else {
      const std::string misuse = AccessMisuse(node, graph_);
      if (!misuse.empty()) return ErrorIn(node.position, misuse);
      NESTOR_RETURN_IF_ERROR(WalkPlace(node.indices, node.text, graph_.shape(node.tensor)));
    }
    for (const IndexHandle& condition : node.conditions)
      NESTOR_RETURN_IF_ERROR(InScope(condition).status());
    return WalkLoads(node.conditions);
  }

  // A node that only one parent has is not remembered: nothing can come to it again.
  absl::Status Walk(const ExprNodePtr& node) {
    if (node.use_count() > 1 && !walked_.insert(node.get()).second) return absl::OkStatus();
    if (node->form == Form::kReduce) return WalkReduction(*node);
    if (node->form == Form::kAccess) return WalkAccess(*node);
    if (node->form == Form::kIndex) {
      NESTOR_ASSIGN_OR_RETURN(const IndexId id, InScope(node->indices[0]));
      if (!pool_.HasLoad(id)) return absl::OkStatus();
      return ErrorIn(
          node->position,
          "an index value cannot hold a tensor's element: compute with the element as an Expr");
    }
    for (const ExprNodePtr& arg : node->args) NESTOR_RETURN_IF_ERROR(Walk(arg));
    return absl::OkStatus();
  }

  // The body is seen with the reduction's indices in scope; the ranges found are kept for the
  // builder.
  absl::Status WalkReduction(const ExprNode& node) {
    auto outside = std::exchange(walked_, {});
    for (const IndexHandle& index : node.indices) NESTOR_RETURN_IF_ERROR(Push(index));
    NESTOR_RETURN_IF_ERROR(Walk(node.args[0]));
    const auto own = stack_.end() - static_cast<int64_t>(node.indices.size());
    reduced_[&node].assign(own, stack_.end());
    stack_.erase(own, stack_.end());
    walked_ = std::move(outside);
    return absl::OkStatus();
  }

  const Statement& statement_;
  const bool partial_;
  Op& op_;
  Graph& graph_;
  IndexPool& pool_;
  std::vector<Binding> bindings_;  // in the order in which they came into scope
  std::vector<size_t> stack_;      // the numbers of those in scope
  size_t own_ = 0;                 // how many of the stack are the statement's own
  absl::flat_hash_map<const ExprNode*, std::vector<size_t>> reduced_;
  absl::flat_hash_set<const ExprNode*> walked_;
};

}  // namespace

absl::StatusOr<Ranges> InferRanges(const Statement& statement, Op& op, bool partial) {
  return RangeWalk(statement, op, partial).Run();
}

}  // namespace nestor::internal
