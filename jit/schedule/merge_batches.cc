// Fusion leaves two loops over batches apart where each holds a contraction that wants tiles of its
// own, so that a matrix is written for all batches before it is read. Merging the loops keeps each
// matrix in a cache, and contraction of the temporary (fusion/contract.h) then drops its batch
// axis.
//
// The test is simpler than fusion's, and faster: for each tensor that one loop changes and the
// other touches, some axis must be subscripted by the bare index of the loop in all accesses of
// both. Then iteration b of one touches only what iteration b of the other does, so that no
// dependence leads from one iteration to another one. For each tensor that a loop touches and does
// not declare, a Touch holds the axes along which all accesses have the loop's bare index, and
// whether the tensor is changed.
#include "jit/schedule/merge_batches.h"

#include <iterator>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/types/optional.h"
#include "fusion/contract.h"
#include "fusion/scopes.h"
#include "loop_ir/dependence.h"
#include "loop_ir/rewrite.h"

namespace nestor::loop {
namespace {

// For each tensor that a loop touches and does not declare: the axes along which all accesses have
// the loop's bare index, and whether the tensor is changed.
struct Touch {
  absl::InlinedVector<bool, 4> by_index;
  bool changed = false;
};
using Touches = absl::flat_hash_map<TensorId, Touch>;

// An axis starts as subscripted by the index, and loses this at the first access that has another.
Touches TouchesOf(const Program& program, const Loop& loop) {
  Touches touches;
  VisitItems(loop.body, [&](const Item& item) {
    VisitAccesses(
        program, item, [&](TensorId tensor, absl::Span<const IndexId> place, AccessKind kind) {
          Touch& touch =
              touches.try_emplace(tensor, Touch{absl::InlinedVector<bool, 4>(place.size(), true)})
                  .first->second;
          touch.changed = touch.changed || kind != AccessKind::kRead;
          for (size_t axis = 0; axis < place.size(); ++axis) {
            if (program.pool.VarValue(place[axis]) != loop.var) touch.by_index[axis] = false;
          }
        });
  });
  VisitItems(loop.body, [&](const Item& item) {
    if (const auto* declaration = item.As<Declaration>()) touches.erase(declaration->tensor);
  });
  return touches;
}

bool IsOwn(const Touch& touch) { return absl::c_linear_search(touch.by_index, true); }

// Whether each iteration of the loop has its own matrices.
bool SharesNoMatrix(const Touches& touches) {
  return absl::c_all_of(touches, [](const auto& entry) {
    return entry.second.by_index.size() < 2 || IsOwn(entry.second);
  });
}

// Whether, in tensors that one of them changes and the other touches, each iteration has elements
// of its own, the same in both.
bool AreIndependent(const Touches& a, const Touches& b) {
  return absl::c_all_of(a, [&](const auto& entry) {
    const auto other = b.find(entry.first);
    if (other == b.end() || (!entry.second.changed && !other->second.changed)) return true;
    for (size_t axis = 0; axis < entry.second.by_index.size(); ++axis) {
      if (entry.second.by_index[axis] && other->second.by_index[axis]) return true;
    }
    return false;
  });
}

class Merger {
 public:
  explicit Merger(Program& program) : program_(program) {}

  // One pass over the items at the top: each either joins the last one that was kept, or is kept.
  // Only neighbours are merged, so none moves past another; declarations are put in order again.
  bool Run() {
    const std::vector<TensorId> temps = DeclaredIn(program_.body);
    if (absl::c_none_of(temps, [&](TensorId temp) { return IsMatrices(temp); })) return false;
    for (const Item& item : program_.body) {
      Footprint footprint = FootprintOf(program_, item);
      footprint.reads.merge(footprint.writes);
      footprint.reads.merge(footprint.accumulates);
      for (TensorId tensor : footprint.reads)
        users_[tensor] += program_[tensor].storage == Storage::kTemp && IsMatrices(tensor);
    }
    Scope merged;
    merged.reserve(program_.body.size());  // last_ stays where it is
    bool changed = false;
    for (Item& item : program_.body) {
      Loop* loop = item.As<Loop>();
      if (item.As<Declaration>() != nullptr) {
        merged.push_back(std::move(item));
        continue;
      }
      absl::optional<Touches> touches;
      if (loop != nullptr && loop->step == 1) touches = TouchesOf(program_, *loop);
      if (touches && MayMerge(*loop, *touches)) {
        Merge(*last_, *loop);
        for (const auto& [tensor, touch] : *touches) Join(tensor, touch);
        changed = true;
        continue;
      }
      may_join_ = touches.has_value();
      is_independent_ = false;
      merged.push_back(std::move(item));
      last_ = merged.back().As<Loop>();
      last_touches_ = touches ? *std::move(touches) : Touches();
    }
    program_.body = std::move(merged);
    if (changed) Declare(program_, program_.body, {});
    return changed;
  }

 private:
  bool IsMatrices(TensorId tensor) const { return program_[tensor].shape.size() >= 3; }

  // Whether the loop may be appended to the last one.
  bool MayMerge(const Loop& loop, const Touches& touches) {
    if (!may_join_ || last_ == nullptr || last_->begin != loop.begin || last_->end != loop.end)
      return false;
    const bool passes = absl::c_any_of(touches, [&](const auto& entry) {
      const auto users = users_.find(entry.first);
      return users != users_.end() && users->second == 2 && last_touches_.contains(entry.first);
    });
    if (!passes || !SharesNoMatrix(touches) || !SharesNoMatrix(last_touches_) ||
        !AreIndependent(last_touches_, touches))
      return false;
    is_independent_ = is_independent_ || !CarriedTensor(program_, *last_);
    return is_independent_ && !CarriedTensor(program_, loop);
  }

  void Merge(Loop& first, Loop& second) {
    VarReplacement replace(program_);
    replace.Set(second.var, program_.pool.Var(first.var));
    RewriteIndices(program_, second.body, [&](IndexId e) { return replace(e); });
    first.body.insert(first.body.end(), std::make_move_iterator(second.body.begin()),
                      std::make_move_iterator(second.body.end()));
  }

  // Adds it to the tensors that the last loop touches.
  void Join(TensorId tensor, const Touch& touch) {
    const auto [known, is_new] = last_touches_.try_emplace(tensor, touch);
    if (is_new) return;
    if (const auto users = users_.find(tensor); users != users_.end()) --users->second;
    known->second.changed = known->second.changed || touch.changed;
    for (size_t axis = 0; axis < touch.by_index.size(); ++axis) {
      known->second.by_index[axis] = known->second.by_index[axis] && touch.by_index[axis];
    }
  }

  Program& program_;
  absl::flat_hash_map<TensorId, int> users_;  // items that touch each temporary of matrices
  Loop* last_ = nullptr;                      // the last item that is kept
  Touches last_touches_;
  bool may_join_ = false, is_independent_ = false;  // that loop
};

}  // namespace

absl::StatusOr<bool> MergeBatches(Program& program) {
  // After a loop is merged, fewer loops use a matrix: then those before may merge as well.
  bool changed = false;
  while (Merger(program).Run()) {
    const absl::StatusOr<bool> contracted = ContractTemporaries(program);
    if (!contracted.ok()) return contracted.status();
    changed = true;
  }
  return changed;
}

}  // namespace nestor::loop
