#include "jit/schedule/merge_batches.h"

#include <iterator>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "fusion/contract.h"
#include "loop_ir/dependence.h"
#include "loop_ir/rewrite.h"

namespace nestor::jit {
namespace {

using loop::Item;
using loop::Loop;
using loop::Program;
using loop::TensorId;

// Of each tensor that a loop touches and does not declare: along which axes all accesses have
// its bare index, and whether it is changed.
struct Touch {
  absl::InlinedVector<bool, 4> by_index;
  bool changed = false;
};
using Touches = absl::flat_hash_map<TensorId, Touch>;

Touches TouchesOf(const Program& program, const Loop& loop) {
  Touches touches;
  VisitItems(loop.body, [&](const Item& item) {
    VisitAccesses(program, item, [&](TensorId tensor, absl::Span<const IndexId> place, loop::AccessKind kind) {
      Touch& touch = touches.try_emplace(tensor, Touch{absl::InlinedVector<bool, 4>(place.size(), true)}).first->second;
      touch.changed = touch.changed || kind != loop::AccessKind::kRead;
      for (size_t axis = 0; axis < place.size(); ++axis) {
        if (program.pool.VarValue(place[axis]) != loop.var) touch.by_index[axis] = false;
      }
    });
  });
  VisitItems(loop.body, [&](const Item& item) {
    if (const auto* declaration = item.As<loop::Declaration>()) touches.erase(declaration->tensor);
  });
  return touches;
}

bool IsOwn(const Touch& touch) { return absl::c_linear_search(touch.by_index, true); }

// Whether every matrix in the loop is the iteration's own.
bool SharesNoMatrix(const Touches& touches) {
  return absl::c_all_of(touches, [](const auto& entry) { return entry.second.by_index.size() < 2 || IsOwn(entry.second); });
}

// Whether what one of them changes and the other touches is the iteration's own in both.
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

Loop* LoopOf(loop::Block& block) { return block.body.size() == 1 ? block.body[0].As<Loop>() : nullptr; }

class Merger {
 public:
  explicit Merger(Program& program) : program_(program) {}

  bool Run() {
    bool changed = false;
    for (size_t i = 0; i + 1 < program_.blocks.size();) {
      if (!MayMerge(i)) {
        ++i;
        continue;
      }
      Merge(*LoopOf(program_.blocks[i]), *LoopOf(program_.blocks[i + 1]));
      program_.blocks.erase(program_.blocks.begin() + static_cast<int64_t>(i) + 1);
      changed = true;
    }
    return changed;
  }

 private:
  // Blocks number i and i + 1.
  bool MayMerge(size_t i) {
    const Loop *first = LoopOf(program_.blocks[i]), *second = LoopOf(program_.blocks[i + 1]);
    if (first == nullptr || second == nullptr || first->begin != second->begin || first->end != second->end) return false;
    if (first->step != 1 || second->step != 1) return false;
    const Touches a = TouchesOf(program_, *first), b = TouchesOf(program_, *second);
    const bool passes = absl::c_any_of(program_.temps, [&](TensorId tensor) { return PassesMatrix(tensor, a, b, i); });
    return passes && SharesNoMatrix(a) && SharesNoMatrix(b) && AreIndependent(a, b) && !CarriedTensor(program_, *first) &&
           !CarriedTensor(program_, *second);
  }

  // Whether it goes from one of the blocks to the other, and nowhere else.
  bool PassesMatrix(TensorId tensor, const Touches& a, const Touches& b, size_t i) const {
    if (program_[tensor].shape.size() < 3 || !a.contains(tensor) || !b.contains(tensor)) return false;
    for (size_t other = 0; other < program_.blocks.size(); ++other) {
      if (other == i || other == i + 1) continue;
      if (FootprintOf(program_, program_.blocks[other].body).Touches(tensor)) return false;
    }
    return true;
  }

  void Merge(Loop& first, Loop& second) {
    loop::VarReplacement replace(program_);
    replace.Set(second.var, program_.pool.Var(first.var));
    RewriteIndices(program_, second.body, [&](IndexId e) { return replace(e); });
    first.body.insert(first.body.end(), std::make_move_iterator(second.body.begin()), std::make_move_iterator(second.body.end()));
  }

  Program& program_;
};

}  // namespace

absl::StatusOr<bool> MergeBatches(Program& program) {
  if (!Merger(program).Run()) return false;
  const absl::StatusOr<bool> contracted = fusion::ContractTemporaries(program);
  if (!contracted.ok()) return contracted.status();
  return true;
}

}  // namespace nestor::jit
