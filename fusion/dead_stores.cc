// The accesses of each temporary are collected in the scope that declares it, where bounds of
// the loops around mean the same to all of them.
#include "fusion/dead_stores.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/types/optional.h"
#include "fusion/scopes.h"
#include "loop_ir/dependence.h"
#include "loop_ir/ranges.h"
#include "uops/mutant.h"

namespace nestor::fusion {
namespace {

using loop::AccessKind;
using loop::Item;
using loop::Loop;
using loop::Program;
using loop::Scope;
using loop::Statement;
using loop::TensorId;

// By axis the indices that an access goes over: [begin, end), in terms of what is known
// outside of the scope that declares the tensor; nullopt: any.
struct Extent {
  IndexId begin, end;
};
using Region = std::vector<absl::optional<Extent>>;

struct Accesses {
  std::vector<Region> reads;
  std::vector<std::pair<const Statement*, Region>> stores;
  bool any_other = false;
};

using AccessesOf = absl::flat_hash_map<TensorId, Accesses>;

class Eliminator {
 public:
  explicit Eliminator(Program& program) : program_(program), pool_(program.pool), ranges_(program) {}

  bool Run() {
    for (loop::Block& block : program_.blocks) Visit(block.body);
    if (dead_.empty()) return false;
    for (loop::Block& block : program_.blocks) Remove(block.body);
    auto& blocks = program_.blocks;
    blocks.erase(std::remove_if(blocks.begin(), blocks.end(), [](const loop::Block& b) { return b.body.empty(); }), blocks.end());
    return true;
  }

 private:
  void Visit(const Scope& scope) {
    AccessesOf accesses;
    for (TensorId tensor : DeclaredIn(scope)) {
      const loop::TensorInfo& info = program_[tensor];
      if (info.storage == loop::Storage::kTemp && !info.shape.empty() && !info.is_register) accesses.try_emplace(tensor);
    }
    if (!accesses.empty()) {
      inner_.clear();
      Collect(scope, accesses);
      for (const auto& [tensor, of_tensor] : accesses) Mark(of_tensor);
    }
    for (const Item& item : scope) {
      const auto* loop = item.As<Loop>();
      if (loop == nullptr) continue;
      ranges_.Enter(*loop);
      Visit(loop->body);
      ranges_.Leave();
    }
  }

  void Mark(const Accesses& accesses) {
    if (accesses.any_other || accesses.stores.size() < 2) return;
    for (const auto& [store, region] : accesses.stores) {
      const bool unread = std::all_of(accesses.reads.begin(), accesses.reads.end(),
                                      [&, &region = region](const Region& read) { return AreApart(read, region); });
      if (unread) dead_.insert(store);
    }
  }

  void Collect(const Scope& scope, AccessesOf& accesses) {
    VisitItems(scope, [&](const Item& item) {
      if (const auto* loop = item.As<Loop>()) inner_[loop->var] = loop;
      VisitAccesses(program_, item, [&](TensorId tensor, absl::Span<const IndexId> place, AccessKind kind) {
        const auto found = accesses.find(tensor);
        if (found == accesses.end()) return;
        Accesses& of_tensor = found->second;
        if (kind == AccessKind::kRead) of_tensor.reads.push_back(RegionOf(place));
        else if (kind == AccessKind::kWrite) of_tensor.stores.emplace_back(item.As<Statement>(), RegionOf(place));
        else of_tensor.any_other = true;
      });
    });
  }

  Region RegionOf(absl::Span<const IndexId> place) const {
    Region region;
    for (IndexId e : place) region.push_back(ExtentOf(e));
    return region;
  }

  // Of an index of a loop inside whose bounds are known outside.
  absl::optional<Extent> ExtentOf(IndexId e) const {
    const auto loop = inner_.find(pool_.VarValue(e));
    if (loop == inner_.end()) return absl::nullopt;
    const Extent extent{loop->second->begin, loop->second->end};
    if (!IsKnown(extent.begin) || !IsKnown(extent.end)) return absl::nullopt;
    return extent;
  }

  bool IsKnown(IndexId e) const {
    bool known = !pool_.HasLoad(e);
    VisitIndex(pool_, e, [&](IndexId, const IndexNode& node) {
      known = known && (node.kind != IndexKind::kVar || !inner_.contains(node.value));
    });
    return known;
  }

  bool AreApart(const Region& a, const Region& b) {
    for (size_t axis = 0; axis < a.size(); ++axis) {
      if (!a[axis] || !b[axis]) continue;
      if (NESTOR_MUTANT("live_store_removed") && a[axis]->begin != b[axis]->begin) return true;
      if (ranges_.LessEqual(a[axis]->end, b[axis]->begin) || ranges_.LessEqual(b[axis]->end, a[axis]->begin)) return true;
    }
    return false;
  }

  // Marked statements, and what they leave empty.
  void Remove(Scope& scope) {
    const auto is_dead = [&](Item& item) {
      auto* loop = item.As<Loop>();
      if (loop == nullptr) return item.As<Statement>() != nullptr && dead_.contains(item.As<Statement>());
      Remove(loop->body);
      return loop->body.empty();
    };
    Scope kept;
    for (Item& item : scope) {
      if (!is_dead(item)) kept.push_back(std::move(item));
    }
    scope = std::move(kept);
  }

  Program& program_;
  IndexPool& pool_;
  loop::Ranges ranges_;
  absl::flat_hash_map<int64_t, const Loop*> inner_;  // loops of the scope that were walked, by index
  absl::flat_hash_set<const Statement*> dead_;
};

}  // namespace

// What a dead store read may be dead now, too. Each round but the last removes a statement.
absl::StatusOr<bool> EliminateDeadStores(Program& program) {
  bool changed = false;
  while (Eliminator(program).Run()) changed = true;
  return changed;
}

}  // namespace nestor::fusion
