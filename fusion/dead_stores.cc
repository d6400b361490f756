// Elements that are stored and never read, as after a loop was split and the reader of one part
// became a number. Liveness of whole tensors (dead_code.h) does not see these, so the ranges of
// stores and reads are compared instead, axis by axis.
//
// An access is described by the loops around it and its place. For a store and a read, two
// iterations are compared within one iteration of the loops around the declaration: they touch the
// same element where their places are equal on all axes. If on one axis the two are proven to
// differ whenever they are equal on the others, the read never sees the store. Loops are shortened
// first, since stores elsewhere may have no reader then.
#include "fusion/dead_stores.h"

#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "fusion/scopes.h"
#include "loop_ir/dependence.h"
#include "loop_ir/ranges.h"
#include "loop_ir/rewrite.h"
#include "uops/mutant.h"

namespace nestor::loop {
namespace {

struct Reach {
  const Statement* statement;  // null: none, as for a loop's bounds
  LoopsAround loops;
  IndexList place;
};

// The accesses of a temporary.
struct Accesses {
  size_t depth = 0;  // loops around its declaration
  std::vector<Reach> reads, stores;
  bool any_other = false;
};

class Eliminator {
 public:
  explicit Eliminator(Program& program)
      : program_(program), pool_(program.pool), ranges_(program) {}

  // Shortens loops to what is read; or, if none can be shorter, removes stores that no read meets.
  bool Run() {
    Collect();
    for (const Accesses& accesses : temporaries_) Shorten(accesses);
    if (!shorter_.empty()) {
      SetBounds(program_.body);
      return true;
    }
    for (const Accesses& accesses : temporaries_) Mark(accesses);
    if (dead_.empty()) return false;
    RemoveStatements(program_.body, dead_);
    return true;
  }

 private:
  // Each access of a temporary, with the loops around it; an accumulation is both and counts as
  // other.
  void Collect() {
    temporaries_.resize(program_.tensors.size());
    VisitItemsInLoops(program_, [&](const Item& item, const LoopsAround& loops) {
      if (const auto* declaration = item.As<Declaration>()) {
        temporaries_[static_cast<size_t>(declaration->tensor.value)].depth = loops.size();
      }
      VisitAccesses(
          program_, item, [&](TensorId tensor, absl::Span<const IndexId> place, AccessKind kind) {
            if (!IsTemporary(tensor)) return;
            Accesses& accesses = temporaries_[static_cast<size_t>(tensor.value)];
            Reach reach{item.As<Statement>(), loops, IndexList(place.begin(), place.end())};
            if (kind == AccessKind::kRead) accesses.reads.push_back(std::move(reach));
            else if (kind == AccessKind::kWrite) accesses.stores.push_back(std::move(reach));
            else accesses.any_other = true;
          });
    });
  }

  bool IsTemporary(TensorId tensor) const {
    const TensorInfo& info = program_[tensor];
    return info.storage == Storage::kTemp && !info.shape.empty() && !info.is_register;
  }

  // ---- Loops whose iterations only store, some of them for nobody

  struct Bounds {
    IndexId begin, end;
    friend bool operator==(const Bounds& a, const Bounds& b) {
      return a.begin == b.begin && a.end == b.end;
    }
  };

  // For a temporary with a single store, alone in its loop, whose reads all run over one range.
  void Shorten(const Accesses& accesses) {
    if (accesses.any_other || accesses.stores.size() != 1) return;
    const Reach& store = accesses.stores[0];
    if (store.loops.size() <= accesses.depth || store.statement->target.masked) return;
    const Loop& loop = *store.loops.back();
    if (loop.step != 1 || loop.body.size() != 1) return;
    for (size_t axis = 0; axis < store.place.size(); ++axis) {
      if (pool_.VarValue(store.place[axis]) != loop.var) continue;
      const absl::optional<Bounds> read = RangeOfReads(accesses, axis);
      if (!read) return;
      for (size_t i = 0; i + 1 < store.loops.size(); ++i) ranges_.Enter(*store.loops[i]);
      Bounds bounds = {loop.begin, loop.end};
      if (IsMore(read->begin, loop.begin)) bounds.begin = read->begin;
      if (IsMore(loop.end, read->end)) bounds.end = read->end;
      for (size_t i = 0; i + 1 < store.loops.size(); ++i) ranges_.Leave();
      if (!(bounds == Bounds{loop.begin, loop.end})) shorter_.emplace(loop.var, bounds);
      return;
    }
  }

  // Whether a is proven to be at least b, and may be greater.
  bool IsMore(IndexId a, IndexId b) { return ranges_.LessEqual(b, a) && !ranges_.LessEqual(a, b); }

  // The range that all reads run over along the axis, if it is the same for all and fixed by the
  // loops around the declaration.
  absl::optional<Bounds> RangeOfReads(const Accesses& accesses, size_t axis) const {
    absl::optional<Bounds> range;
    for (const Reach& read : accesses.reads) {
      const Loop* loop = InnerLoop(read, accesses.depth, pool_.VarValue(read.place[axis]));
      if (loop == nullptr || loop->step != 1 || !IsOutside(loop->begin, read, accesses.depth) ||
          !IsOutside(loop->end, read, accesses.depth)) {
        return absl::nullopt;
      }
      const Bounds bounds = {loop->begin, loop->end};
      if (range && !(*range == bounds)) return absl::nullopt;
      range = bounds;
    }
    return range;
  }

  static const Loop* InnerLoop(const Reach& read, size_t depth, absl::optional<int64_t> var) {
    for (size_t i = depth; var && i < read.loops.size(); ++i) {
      if (read.loops[i]->var == *var) return read.loops[i];
    }
    return nullptr;
  }

  // Whether `e` has the same value where the temporary is declared.
  bool IsOutside(IndexId e, const Reach& read, size_t depth) const {
    if (pool_.HasLoad(e)) return false;
    bool outside = true;
    VisitIndex(pool_, e, [&](IndexId id, const IndexNode&) {
      outside = outside && InnerLoop(read, depth, pool_.VarValue(id)) == nullptr;
    });
    return outside;
  }

  // Loops are found by their index, which is that of one loop alone.
  void SetBounds(Scope& scope) {
    for (Item& item : scope) {
      auto* loop = item.As<Loop>();
      if (loop == nullptr) continue;
      const auto shorter = shorter_.find(loop->var);
      if (shorter != shorter_.end())
        std::tie(loop->begin, loop->end) = std::tie(shorter->second.begin, shorter->second.end);
      SetBounds(loop->body);
    }
  }

  // ---- Stores for nobody

  // A store is dead if it is apart from every read. A temporary with one store is left alone.
  void Mark(const Accesses& accesses) {
    if (accesses.any_other || accesses.stores.size() < 2) return;
    for (const Reach& store : accesses.stores) {
      for (const Loop* loop : store.loops) ranges_.Enter(*loop);
      const auto is_apart = [&](const Reach& read) {
        return AreApart(store, read, accesses.depth);
      };
      if (absl::c_all_of(accesses.reads, is_apart)) dead_.insert(store.statement);
      for (size_t i = 0; i < store.loops.size(); ++i) ranges_.Leave();
    }
  }

  // REQUIRES: `ranges_` is within the store's loops.
  bool AreApart(const Reach& store, const Reach& read, size_t shared) {
    VarReplacement other(program_);
    int32_t fresh = static_cast<int32_t>(program_.vars.size());
    for (size_t i = shared; i < read.loops.size(); ++i) {
      Loop loop{
          fresh++, other(read.loops[i]->begin), other(read.loops[i]->end), read.loops[i]->step, {},
          {}};
      other.Set(read.loops[i]->var, pool_.Var(loop.var));
      ranges_.Enter(loop);
    }
    IndexList place = read.place;
    for (IndexId& e : place) e = other(e);
    const bool apart = AreApart(store.place, place);
    for (size_t i = shared; i < read.loops.size(); ++i) ranges_.Leave();
    return apart;
  }

  // Whether no element has both places: equal on all other axes, they are not on one.
  bool AreApart(const IndexList& a, const IndexList& b) {
    for (size_t axis = 0; axis < a.size(); ++axis) {
      if (pool_.HasLoad(a[axis]) || pool_.HasLoad(b[axis])) continue;
      int assumed = 0;
      for (size_t i = 0; i < a.size(); ++i) {
        if (i == axis || pool_.HasLoad(a[i]) || pool_.HasLoad(b[i])) continue;
        ranges_.Assume(pool_.Condition(IndexKind::kEq, a[i], b[i]));
        ++assumed;
      }
      const bool apart = ranges_.Less(a[axis], b[axis]) || ranges_.Less(b[axis], a[axis]) ||
                         (NESTOR_MUTANT("live_store_removed") && a[axis] != b[axis]);
      for (; assumed > 0; --assumed) ranges_.Forget();
      if (apart) return true;
    }
    return false;
  }

  Program& program_;
  IndexPool& pool_;
  Ranges ranges_;
  std::vector<Accesses> temporaries_;             // by tensor
  absl::flat_hash_map<int32_t, Bounds> shorter_;  // by loop index
  absl::flat_hash_set<const Statement*> dead_;
};

}  // namespace

// The stores that a dead store read from may be dead now, too. Each round but the last removes
// a statement.
absl::StatusOr<bool> EliminateDeadStores(Program& program) {
  bool changed = false;
  while (Eliminator(program).Run()) changed = true;
  return changed;
}

}  // namespace nestor::loop
