#include "jit/schedule/hoist_copies.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "jit/schedule/loop_maker.h"
#include "loop_ir/dependence.h"

namespace nestor::jit {
namespace {

using loop::Footprint;
using loop::Item;
using loop::Loop;
using loop::Program;
using loop::Scope;
using loop::TensorId;

// Of one nest.
class CopyHoister {
 public:
  CopyHoister(const Program& program, const Item& nest) : program_(program), nest_(FootprintOf(program, nest)) {}

  // What is taken out of the nest.
  Scope Take(Loop& loop) {
    vars_.insert(loop.var);
    Scope taken = TakeFrom(loop.body);
    for (Item& item : loop.body) {
      Loop* inner = item.As<Loop>();
      if (inner != nullptr) Append(taken, Take(*inner));
    }
    vars_.erase(loop.var);
    return taken;
  }

 private:
  Scope TakeFrom(Scope& scope) {
    absl::flat_hash_set<TensorId> copies;
    for (const Item& item : scope) {
      const auto* declaration = item.As<loop::Declaration>();
      if (declaration != nullptr && IsCopy(declaration->tensor, scope)) copies.insert(declaration->tensor);
    }
    Scope taken;
    if (copies.empty()) return taken;
    const auto left = std::stable_partition(scope.begin(), scope.end(),
                                            [&](const Item& item) { return !BelongsTo(item, copies); });
    taken.assign(std::make_move_iterator(left), std::make_move_iterator(scope.end()));
    scope.erase(left, scope.end());
    return taken;
  }

  bool BelongsTo(const Item& item, const absl::flat_hash_set<TensorId>& copies) const {
    const auto* declaration = item.As<loop::Declaration>();
    if (declaration != nullptr) return copies.contains(declaration->tensor);
    const Footprint footprint = FootprintOf(program_, item);
    return absl::c_any_of(copies, [&](TensorId copy) { return footprint.Changes(copy); });
  }

  bool IsCopy(TensorId tensor, const Scope& scope) const {
    const loop::TensorInfo& info = program_[tensor];
    if (info.storage != loop::Storage::kTemp || info.shape.empty() || info.is_register) return false;
    if (absl::c_any_of(info.shape, [&](IndexId e) { return Moves(e); })) return false;
    bool is_filled = false;
    for (const Item& item : scope) {
      const Footprint footprint = FootprintOf(program_, item);
      if (!footprint.Changes(tensor)) continue;
      if (item.As<Loop>() == nullptr || !Copies(item, footprint)) return false;
      is_filled = true;
    }
    return is_filled;
  }

  // Whether the item does nothing but to fill one tensor, in each iteration with the same.
  bool Copies(const Item& item, const Footprint& footprint) const {
    if (footprint.writes.size() != 1 || !footprint.accumulates.empty()) return false;
    bool moves = false;
    const auto visit = [&](const Item& inside) {
      VisitIndices(program_, inside, [&](IndexId e) { moves = moves || Moves(e); });
    };
    visit(item);
    VisitItems(item.As<Loop>()->body, visit);
    return !moves && absl::c_all_of(footprint.reads, [&](TensorId read) { return IsFixed(read); });
  }

  // Neither changed in the nest, nor declared there: then its footprint does not have it.
  bool IsFixed(TensorId tensor) const { return nest_.reads.contains(tensor) && !nest_.Changes(tensor); }

  bool Moves(IndexId e) const {
    return absl::c_any_of(vars_, [&](int32_t var) { return HoldsVar(program_.pool, e, var); });
  }

  const Program& program_;
  const Footprint nest_;
  absl::flat_hash_set<int32_t> vars_;  // of the loops around
};

}  // namespace

absl::StatusOr<bool> HoistCopies(Program& program) {
  bool changed = false;
  for (loop::Block& block : program.blocks) {
    Scope scope;
    for (Item& item : block.body) {
      if (Loop* loop = item.As<Loop>()) {
        Scope taken = CopyHoister(program, item).Take(*loop);
        changed = changed || !taken.empty();
        Append(scope, std::move(taken));
      }
      scope.push_back(std::move(item));
    }
    block.body = std::move(scope);
  }
  return changed;
}

}  // namespace nestor::jit
