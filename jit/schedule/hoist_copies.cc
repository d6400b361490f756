// Packing copies an operand inside of the loops around its nest, as it knows nothing of them; where
// the copy is the same in each iteration, it moves before the loop. This is loop-invariant code
// motion (Aho, Lam, Sethi and Ullman, "Compilers", 2nd ed. 2006, sec. 9.5) with whole loops in
// place of values: an item moves if it fills a temporary, depends neither on the loop's index nor
// on anything that the loop changes, comes before the first read, and nothing else writes that
// temporary.
//
// The loop may have no iteration. Then the copy must not read elements that do not exist, which is
// proven by IsInRange at the place of the loop itself, and should not cost time, so that its end
// becomes 0 there (KeepIfRuns).
//
// Inner loops are visited first, so that a copy moves out of one loop after the other. One that
// moves with a short loop alone, as the weights of a recurrence do with its gates, moves out of it
// with one axis more (scalar expansion), if it leaves the next loop, too.
#include "jit/schedule/hoist_copies.h"

#include <iterator>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "fusion/scopes.h"
#include "jit/schedule/loop_maker.h"
#include "jit/schedule/widen.h"
#include "loop_ir/dependence.h"
#include "loop_ir/ranges.h"
#include "loop_ir/rewrite.h"
#include "uops/mutant.h"

namespace nestor::loop {
namespace {

// The most copies of a temporary that are kept at once where it has another axis.
constexpr int64_t kMostCopies = 16;

class Hoister {
 public:
  explicit Hoister(Program& program) : program_(program), pool_(program.pool), ranges_(program) {}

  bool Run() { return Visit(program_.body); }

 private:
  bool Visit(Scope& scope) {
    bool changed = false;
    Scope result;
    for (Item& item : scope) {
      if (auto* loop = item.As<Loop>()) {
        ranges_.Enter(*loop);
        changed |= Visit(loop->body);
        ranges_.Leave();
        changed |= ExpandFills(*loop);
        changed |= MoveFills(*loop, result);
      }
      result.push_back(std::move(item));
    }
    scope = std::move(result);
    return changed;
  }

  // Copies that differ from iteration to iteration of a short inner loop, but not of `loop`, get an
  // axis for the inner one and move before it, from where they may leave `loop`.
  bool ExpandFills(Loop& loop) {
    bool changed = false;
    Scope body;
    for (Item& item : loop.body) {
      auto* inner = item.As<Loop>();
      if (inner != nullptr && IsShort(*inner)) {
        const absl::flat_hash_set<TensorId> filled = FilledAlikeInside(*inner, loop);
        changed |= !filled.empty();
        if (!filled.empty()) Append(body, Expanded(filled, *inner));
      }
      body.push_back(std::move(item));
    }
    loop.body = std::move(body);
    return changed;
  }

  // What the inner loop fills alike in each iteration of `loop`, unless this one runs once at most,
  // which is asked last, as most loops fill nothing.
  absl::flat_hash_set<TensorId> FilledAlikeInside(const Loop& inner, const Loop& loop) {
    ranges_.Enter(inner);
    absl::flat_hash_set<TensorId> filled = FilledAlike(inner.body, loop);
    ranges_.Leave();
    absl::erase_if(filled, [&](TensorId tensor) { return !MayMove(tensor, inner); });
    if (!filled.empty() && ranges_.Less(ranges_.LengthOf(loop), pool_.Const(2))) filled.clear();
    return filled;
  }

  bool IsShort(const Loop& loop) const {
    const auto length = pool_.ConstValue(loop.end);
    return loop.step == 1 && pool_.IsConst(loop.begin, 0) && length && *length > 1 &&
           *length <= kMostCopies;
  }

  // The declarations of the temporaries, each with an axis for the loop, and what fills them.
  Scope Expanded(const absl::flat_hash_set<TensorId>& filled, Loop& loop) {
    for (TensorId tensor : filled) {
      Shape& shape = program_[tensor].shape;
      shape.insert(shape.begin(), loop.end);
    }
    RewritePlaces(program_, loop.body, [&](TensorId tensor, IndexList& place) {
      if (!filled.contains(tensor)) return false;
      place.insert(place.begin(), pool_.Var(loop.var));
      return true;
    });
    Scope scope;
    for (Item& item : TakeFills(filled, loop)) {
      if (item.As<Declaration>() != nullptr) scope.push_back(std::move(item));
      else Append(scope, AroundAnew(program_, loop, {std::move(item)}));
    }
    return scope;
  }

  // A temporary that is filled from one that has left the loop may leave it next.
  bool MoveFills(Loop& loop, Scope& before) {
    bool changed = false;
    for (;; changed = true) {
      const absl::flat_hash_set<TensorId> filled = FilledAlike(loop.body, loop);
      if (filled.empty()) return changed;
      Append(before, TakeFills(filled, loop));
    }
  }

  bool MayMove(TensorId tensor, const Loop& loop) const {
    const TensorInfo& info = program_[tensor];
    if (info.storage != Storage::kTemp || info.is_register || info.shape.empty()) return false;
    return absl::c_none_of(info.shape, [&](IndexId e) { return HoldsVar(pool_, e, loop.var); });
  }

  // The temporaries of `body`, that of the loop or of one inside, that only loops write that do the
  // same in each iteration of `loop`, before anything else reads the temporaries.
  absl::flat_hash_set<TensorId> FilledAlike(const Scope& body, const Loop& loop) {
    absl::flat_hash_set<TensorId> filled, open, read;
    const std::vector<TensorId> declared = DeclaredIn(body);
    absl::c_copy_if(declared, std::inserter(open, open.end()),
                    [&](TensorId tensor) { return MayMove(tensor, loop); });
    if (open.empty()) return filled;
    Footprint all = FootprintOf(program_, loop.body);  // without what the bodies declare
    all.writes.insert(declared.begin(), declared.end());
    absl::c_copy(DeclaredIn(loop.body), std::inserter(all.writes, all.writes.end()));
    for (const Item& item : body) {
      const Footprint footprint = FootprintOf(program_, item);
      const auto change = [&](TensorId tensor) {
        if (!open.contains(tensor)) return;
        const bool is_fill = !read.contains(tensor) && IsFill(item, footprint, all, loop);
        if (is_fill) filled.insert(tensor);
        else open.erase(tensor);
      };
      absl::c_for_each(footprint.writes, change);
      absl::c_for_each(footprint.accumulates, change);
      read.insert(footprint.reads.begin(), footprint.reads.end());
    }
    absl::erase_if(
        filled, [&](TensorId tensor) { return !open.contains(tensor) || !read.contains(tensor); });
    return filled;
  }

  // Whether the item is a loop that writes one tensor, does the same in each iteration of `around`,
  // and may run where `around` does not.
  bool IsFill(const Item& item, const Footprint& footprint, const Footprint& all,
              const Loop& around) {
    const auto* fill = item.As<Loop>();
    if (fill == nullptr || footprint.writes.size() != 1 || !footprint.accumulates.empty())
      return false;
    const bool reads_same =
        NESTOR_MUTANT("changing_copy_hoisted") ||
        absl::c_none_of(footprint.reads, [&](TensorId read) { return all.Changes(read); });
    // The index of an element that it reads from a tile in registers must stay a number.
    const bool reads_registers =
        absl::c_any_of(footprint.reads, [&](TensorId read) { return program_[read].is_register; });
    return reads_same && !reads_registers && IsSame(item, around) &&
           IsInRange(program_, ranges_, *fill);
  }

  // Whether no index in it, in bounds, subscripts or values, holds the loop's index.
  bool IsSame(const Item& fill, const Loop& around) const {
    bool same = true;
    const auto look = [&](const Item& item) {
      VisitIndices(program_, item,
                   [&](IndexId e) { same = same && !HoldsVar(pool_, e, around.var); });
    };
    look(fill);
    VisitItems(fill.As<Loop>()->body, look);
    return same;
  }

  // Takes their declarations and the loops that fill them out of the loop's body.
  Scope TakeFills(const absl::flat_hash_set<TensorId>& filled, Loop& loop) {
    Scope fills, rest;
    for (Item& item : loop.body) {
      const auto* declaration = item.As<Declaration>();
      bool moves = declaration != nullptr && filled.contains(declaration->tensor);
      if (auto* fill = item.As<Loop>()) {
        const Footprint footprint = FootprintOf(program_, item);
        moves = footprint.writes.size() == 1 && filled.contains(*footprint.writes.begin());
        if (moves) KeepIfRuns(*fill, loop);
      }
      (moves ? fills : rest).push_back(std::move(item));
    }
    loop.body = std::move(rest);
    return fills;
  }

  // Nothing is filled where the loop runs no iteration.
  void KeepIfRuns(Loop& fill, const Loop& around) {
    if (ranges_.Less(around.begin, around.end)) return;
    const IndexId runs = pool_.Min(pool_.Const(1), ranges_.LengthOf(around));
    fill.end = pool_.Add(fill.begin, OnlyIf(pool_, runs, ranges_.LengthOf(fill)));
  }

  Program& program_;
  IndexPool& pool_;
  Ranges ranges_;
};

}  // namespace

absl::StatusOr<bool> HoistCopies(Program& program) { return Hoister(program).Run(); }

}  // namespace nestor::loop
