// In each band the longest run of loops, ending with the innermost, is taken that all
// accesses allow: each access has either none of their indices, or all of them, bare,
// at adjacent axes whose extents are the loops' ends, and nowhere else. Bounds inside,
// conditions, index values and extents hold none.
#include "fusion/collapse.h"

#include <algorithm>
#include <vector>

#include "fusion/nest.h"
#include "loop_ir/rewrite.h"

namespace nestor::fusion {
namespace {

using loop::Item;
using loop::Loop;
using loop::Program;
using loop::Scope;
using loop::TensorId;
using loop::Value;
using loop::ValueId;

class BandCollapser {
 public:
  BandCollapser(Program& program, Loop& nest) : program_(program), nest_(nest), band_(BandOf(nest)) {}

  bool Run() {
    size_t first = band_.size();
    while (first > 0 && IsWhole(band_[first - 1]) && Allows(first - 1)) --first;
    if (band_.size() - first < 2) return false;
    Collapse(first);
    return true;
  }

 private:
  bool IsWhole(const LoopHead& head) const {
    return program_.pool.IsConst(head.begin, 0) && head.step == 1 && !program_.pool.HasVar(head.end);
  }

  // ---- Whether the loops from `first` on walk alike everywhere

  bool Allows(size_t first) const {
    bool allowed = true;
    VisitItems(CoreOf(nest_), [&](const Item& item) { allowed = allowed && AllowsItem(first, item); });
    return allowed;
  }

  bool AllowsItem(size_t first, const Item& item) const {
    if (const auto* statement = item.As<loop::Statement>()) {
      return AllowsAccess(first, statement->target) && AllowsValue(first, statement->value) &&
             (!statement->position.valid() || AllowsValue(first, statement->position));
    }
    bool allowed = true;
    VisitIndices(program_, item, [&](IndexId e) { allowed = allowed && !Holds(first, e); });
    return allowed;
  }

  bool AllowsValue(size_t first, ValueId id) const {
    bool allowed = true;
    VisitValues(program_, id, [&](ValueId, const Value& value) {
      if (const auto* load = absl::get_if<loop::LoadValue>(&value.node)) {
        allowed = allowed && AllowsAccess(first, load->access);
      } else if (const auto* index = absl::get_if<loop::IndexValue>(&value.node)) {
        allowed = allowed && !Holds(first, index->index);
      }
    });
    return allowed;
  }

  bool AllowsAccess(size_t first, const loop::Access& access) const {
    for (IndexId condition : access.conditions) {
      if (Holds(first, condition)) return false;
    }
    const auto& place = access.place;
    const auto begin = std::find_if(place.begin(), place.end(), [&](IndexId e) { return Holds(first, e); });
    if (begin == place.end()) return true;
    const size_t at = begin - place.begin(), count = band_.size() - first;
    if (at + count > place.size()) return false;
    for (size_t i = 0; i < count; ++i) {
      if (program_.pool.VarValue(place[at + i]) != band_[first + i].var) return false;
      if (program_[access.tensor].shape[at + i] != band_[first + i].end) return false;
    }
    return std::none_of(begin + static_cast<int64_t>(count), place.end(), [&](IndexId e) { return Holds(first, e); });
  }

  bool Holds(size_t first, IndexId e) const {
    return std::any_of(band_.begin() + static_cast<int64_t>(first), band_.end(),
                       [&](const LoopHead& head) { return HoldsVar(program_.pool, e, head.var); });
  }

  // ---- The rewrite

  void Collapse(size_t first) {
    IndexPool& pool = program_.pool;
    const int32_t var = program_.AddVar(program_.vars[band_[first].var]);
    loop::VarReplacement replacement(program_);
    IndexId rest = pool.Var(var), total = pool.Const(1);
    for (size_t i = band_.size(); i > first; --i) {
      const LoopHead& head = band_[i - 1];
      replacement.Set(head.var, i - 1 == first ? rest : pool.Mod(rest, head.end));
      rest = pool.Div(rest, head.end);
      total = pool.Mul(total, head.end);
    }
    Scope core = std::move(CoreOf(nest_));
    loop::RewriteIndices(program_, core, [&](IndexId e) { return replacement(e); });
    std::vector<LoopHead> heads(band_.begin(), band_.begin() + static_cast<int64_t>(first));
    heads.push_back({var, pool.Const(0), total, 1});
    Scope scope = Around(heads, std::move(core));
    nest_ = std::move(*scope[0].As<Loop>());
  }

  Program& program_;
  Loop& nest_;
  const std::vector<LoopHead> band_;
};

bool CollapseIn(Program& program, Scope& scope) {
  bool changed = false;
  for (Item& item : scope) {
    Loop* loop = item.As<Loop>();
    if (loop == nullptr) continue;
    changed |= BandCollapser(program, *loop).Run();
    changed |= CollapseIn(program, CoreOf(*loop));
  }
  return changed;
}

}  // namespace

absl::StatusOr<bool> CollapseLoops(Program& program) {
  bool changed = false;
  for (loop::Block& block : program.blocks) changed |= CollapseIn(program, block.body);
  return changed;
}

}  // namespace nestor::fusion
