// Array contraction (Gao, Olsen, Sarkar and Thekkath, "Collective loop fusion for array
// contraction", 1992): after fusion, a temporary between two nests is often used within one
// iteration of the loops that they share, and needs an element for that iteration alone.
//
// One walk finds for each tensor the scope that declares it and all its accesses, each with the
// chain of loops around it. The loops that all chains share after the declaration are tried from
// the outside; the first one that does not index a common axis of every access ends it, since the
// tensor then lives across its iterations.
//
// A slice is fresh in its iteration, as the tensor was on entry to its scope: no other iteration
// touches it.
#include "fusion/contract.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "fusion/scopes.h"
#include "loop_ir/dependence.h"
#include "loop_ir/rewrite.h"
#include "uops/mutant.h"

namespace nestor::loop {
namespace {

// Which axes of a tensor are removed.
struct Plan {
  std::vector<int32_t> vars;  // of the loops whose bodies get slices of their own, outermost first
  std::vector<size_t> axes;   // the axis that each indexes, and those of one element
};

// The common part of the accesses of a tensor.
struct Uses {
  bool any = false;
  LoopsAround chain;             // the loops around all of them
  std::vector<IndexId> indices;  // per axis the one in all, or invalid: there are several
};

class Analysis {
 public:
  // Notes where each tensor is declared, and how all accesses subscript it.
  explicit Analysis(Program& program)
      : program_(program), uses_(program.tensors.size()), depth_(program.tensors.size(), 0) {
    VisitItemsInLoops(program, [&](const Item& item, const LoopsAround& around) {
      if (const auto* declaration = item.As<Declaration>())
        depth_[declaration->tensor.value] = around.size();
      VisitAccesses(program_, item,
                    [&](TensorId tensor, absl::Span<const IndexId> place, AccessKind) {
                      Note(uses_[tensor.value], place, around);
                    });
    });
  }

  // May add expressions to the program's pool.
  Plan PlanOf(TensorId tensor) {
    Plan plan;
    const Uses& uses = uses_[tensor.value];
    if (!uses.any || program_[tensor].is_register) return plan;
    for (size_t d = depth_[tensor.value]; d < uses.chain.size(); ++d) {
      const Loop& loop = *uses.chain[d];
      const size_t axis = AxisOf(uses, loop);
      if (axis == uses.indices.size() || !Covers(loop, program_[tensor].shape[axis])) break;
      plan.vars.push_back(loop.var);
      plan.axes.push_back(axis);
    }
    for (size_t axis = 0; axis < uses.indices.size(); ++axis) {
      const bool is_first = uses.indices[axis] == program_.pool.Const(0);
      if (is_first && program_.pool.IsConst(program_[tensor].shape[axis], 1))
        plan.axes.push_back(axis);
    }
    return plan;
  }

 private:
  // The axis along which each iteration has an element of its own: at the loop's index, or, in a
  // recurrence that runs from the last step down, at the reversed index. The number of axes: there
  // is none.
  size_t AxisOf(const Uses& uses, const Loop& loop) {
    IndexPool& pool = program_.pool;
    const IndexId index = pool.Var(loop.var);
    auto at = std::find(uses.indices.begin(), uses.indices.end(), index);
    if (at == uses.indices.end()) {
      const IndexId reversed = pool.Sub(pool.Sub(loop.end, pool.Const(1)), index);
      at = std::find(uses.indices.begin(), uses.indices.end(), reversed);
    }
    return static_cast<size_t>(at - uses.indices.begin());
  }

  // An index within the axis, so that no mask of an access depends on it.
  bool Covers(const Loop& loop, IndexId extent) const {
    return program_.pool.IsConst(loop.begin, 0) && loop.end == extent;
  }

  // Shortens the common chain to what this access shares; an axis with two different indices has
  // none.
  static void Note(Uses& uses, absl::Span<const IndexId> place, const LoopsAround& around) {
    if (!uses.any) {
      uses.any = true;
      uses.chain = around;
      uses.indices.assign(place.begin(), place.end());
      return;
    }
    if (NESTOR_MUTANT("contraction_of_what_is_read_later")) return;
    size_t common = 0;
    while (common < uses.chain.size() && common < around.size() &&
           uses.chain[common] == around[common])
      ++common;
    uses.chain.resize(common);
    for (size_t axis = 0; axis < place.size(); ++axis) {
      if (place[axis] != uses.indices[axis]) uses.indices[axis] = IndexId();
    }
  }

  Program& program_;
  std::vector<Uses> uses_;     // by tensor
  std::vector<size_t> depth_;  // by tensor, of its declaration
};

template <class List>
void DropAxes(List& list, const std::vector<size_t>& axes) {
  List kept;
  for (size_t axis = 0; axis < list.size(); ++axis) {
    if (std::find(axes.begin(), axes.end(), axis) == axes.end()) kept.push_back(list[axis]);
  }
  list = std::move(kept);
}

class Contractor {
 public:
  explicit Contractor(Program& program) : program_(program) {}

  // Axes are dropped; a tensor that has become local to a loop is declared in it.
  bool Run() {
    Analysis analysis(program_);
    for (size_t t = 0; t < program_.tensors.size(); ++t) {
      const TensorId tensor{static_cast<int32_t>(t)};
      const Storage storage = program_[tensor].storage;
      if (storage != Storage::kTemp && storage != Storage::kAccumulator) continue;
      Plan plan = analysis.PlanOf(tensor);
      if (plan.axes.empty()) continue;
      if (!plan.vars.empty()) {
        new_scope_[plan.vars.back()].push_back(tensor);
        moved_.insert(tensor.value);
      }
      DropAxes(program_[tensor].shape, plan.axes);
      plans_[tensor.value] = std::move(plan);
    }
    if (plans_.empty()) return false;
    RewritePlaces(program_, program_.body,
                  [&](TensorId tensor, IndexList& place) { return Shrink(tensor, place); });
    MoveDeclarations(program_.body);
    return true;
  }

 private:
  bool Shrink(TensorId tensor, IndexList& place) const {
    const auto it = plans_.find(tensor.value);
    if (it == plans_.end()) return false;
    DropAxes(place, it->second.axes);
    return true;
  }

  // Removes the declarations of tensors that move, and adds them to the bodies of their loops.
  void MoveDeclarations(Scope& scope) {
    scope.erase(std::remove_if(scope.begin(), scope.end(),
                               [&](const Item& item) {
                                 const auto* declaration = item.As<Declaration>();
                                 return declaration != nullptr &&
                                        moved_.contains(declaration->tensor.value);
                               }),
                scope.end());
    for (Item& item : scope) {
      Loop* loop = item.As<Loop>();
      if (loop == nullptr) continue;
      MoveDeclarations(loop->body);
      Declare(*loop);
    }
  }

  void Declare(Loop& loop) {
    const auto it = new_scope_.find(loop.var);
    if (it == new_scope_.end()) return;
    loop::Declare(program_, loop.body, it->second);
  }

  Program& program_;
  absl::flat_hash_map<int32_t, Plan> plans_;  // by tensor
  // Tensors whose declarations move.
  absl::flat_hash_set<int32_t> moved_;
  absl::flat_hash_map<int32_t, std::vector<TensorId>> new_scope_;  // by loop index
};

}  // namespace

absl::StatusOr<bool> ContractTemporaries(Program& program) { return Contractor(program).Run(); }

}  // namespace nestor::loop
