// Inner loops first, so that a copy moves out of one loop after the other.
#include "jit/schedule/hoist_copies.h"

#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "fusion/scopes.h"
#include "jit/schedule/loop_maker.h"
#include "jit/schedule/widen.h"
#include "loop_ir/dependence.h"
#include "loop_ir/ranges.h"

namespace nestor::jit {
namespace {

using loop::Footprint;
using loop::Item;
using loop::Loop;
using loop::Program;
using loop::Scope;
using loop::TensorId;

class Hoister {
 public:
  explicit Hoister(Program& program) : program_(program), pool_(program.pool), ranges_(program) {}

  bool Run() {
    bool changed = false;
    for (loop::Block& block : program_.blocks) changed |= Visit(block.body);
    return changed;
  }

 private:
  bool Visit(Scope& scope) {
    bool changed = false;
    Scope result;
    for (Item& item : scope) {
      if (auto* loop = item.As<Loop>()) {
        ranges_.Enter(*loop);
        changed |= Visit(loop->body);
        ranges_.Leave();
        for (TensorId tensor : fusion::DeclaredIn(loop->body)) {
          if (!IsFilledAlike(tensor, *loop)) continue;
          Append(result, TakeFills(tensor, *loop));
          changed = true;
        }
      }
      result.push_back(std::move(item));
    }
    scope = std::move(result);
    return changed;
  }

  // Whether all that writes the tensor are loops that do the same in each iteration, before
  // others touch it.
  bool IsFilledAlike(TensorId tensor, const Loop& loop) {
    const loop::TensorInfo& info = program_[tensor];
    if (info.storage != loop::Storage::kTemp || info.is_register) return false;
    const auto holds_index = [&](IndexId e) { return HoldsVar(pool_, e, loop.var); };
    if (info.shape.empty() || absl::c_any_of(info.shape, holds_index)) return false;
    bool any = false, is_read = false;
    for (const Item& item : loop.body) {
      const Footprint footprint = FootprintOf(program_, item);
      if (footprint.Changes(tensor)) {
        if (is_read || !IsFill(item, footprint, tensor, loop)) return false;
        any = true;
      } else {
        is_read = is_read || footprint.Touches(tensor);
      }
    }
    return any && is_read;
  }

  bool IsFill(const Item& item, const Footprint& footprint, TensorId tensor, const Loop& around) {
    const auto* fill = item.As<Loop>();
    if (fill == nullptr || footprint.writes.size() != 1 || !footprint.accumulates.empty()) return false;
    const Footprint all = FootprintOf(program_, around.body);
    const std::vector<TensorId> declared = fusion::DeclaredIn(around.body);
    const bool reads_same = absl::c_none_of(footprint.reads, [&](TensorId read) {
      return read == tensor || all.Changes(read) || absl::c_linear_search(declared, read);
    });
    return reads_same && IsSame(item, around) && IsInRange(program_, ranges_, *fill);
  }

  bool IsSame(const Item& fill, const Loop& around) const {
    bool same = true;
    const auto look = [&](const Item& item) {
      VisitIndices(program_, item, [&](IndexId e) { same = same && !HoldsVar(pool_, e, around.var); });
    };
    look(fill);
    VisitItems(fill.As<Loop>()->body, look);
    return same;
  }

  // The tensor's declaration and what fills it, out of the loop's body.
  Scope TakeFills(TensorId tensor, Loop& loop) {
    Scope fills, rest;
    fills.push_back(fusion::DeclarationOf(tensor));
    for (Item& item : loop.body) {
      const auto* declaration = item.As<loop::Declaration>();
      if (declaration != nullptr && declaration->tensor == tensor) continue;
      const bool is_fill = declaration == nullptr && FootprintOf(program_, item).Changes(tensor);
      if (is_fill) KeepIfRuns(*item.As<Loop>(), loop);
      (is_fill ? fills : rest).push_back(std::move(item));
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
  loop::Ranges ranges_;
};

}  // namespace

absl::StatusOr<bool> HoistCopies(Program& program) { return Hoister(program).Run(); }

}  // namespace nestor::jit
