// A vector can do part of what as many scalars do: load adjacent elements, or elements at a fixed
// stride; combine them; store. A walk over the loop's body that looks for values that differ from
// lane to lane in a way that vectors cannot follow: control flow (bounds of inner loops,
// conditions), gathered places, and indices that are not linear. That iterations are independent is
// not asked here (dependence.h).
#include "loop_ir/lanes.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "loop_ir/affine.h"
#include "loop_ir/dependence.h"

namespace nestor::loop {
namespace {

class LaneCheck {
 public:
  // Without ranges, the marks of accesses say what is in range.
  LaneCheck(const Program& program, Ranges* ranges, const Loop& loop, LaneMasks masks)
      : program_(program), ranges_(ranges), var_(loop.var), masks_(masks) {
    VisitItems(loop.body, [&](const Item& item) {
      const auto* declaration = item.As<Declaration>();
      if (declaration != nullptr) own_.insert(declaration->tensor);
    });
  }

  bool Body(const Loop& loop) {
    if (ranges_ != nullptr) ranges_->Enter(loop);
    const bool good = std::all_of(loop.body.begin(), loop.body.end(),
                                  [&](const Item& item) { return One(item); });
    if (ranges_ != nullptr) ranges_->Leave();
    return good;
  }

 private:
  // Whether an item can run in lanes: an inner loop must take the same steps in all of them, and a
  // tensor that it declares is a scalar in each.
  bool One(const Item& item) {
    if (const auto* loop = item.As<Loop>()) {
      return !Differs(loop->begin) && !Differs(loop->end) && !loop->attributes.parallel &&
             Body(*loop);
    }
    if (const auto* statement = item.As<Statement>()) return Stores(*statement);
    return program_[item.As<Declaration>()->tensor].shape.empty();
  }

  bool Stores(const Statement& statement) {
    if (!Place(statement.target, /*may_be_masked=*/false)) return false;
    return Values(statement.value) && (!statement.position.valid() || Values(statement.position));
  }

  // Loads at places that vectors can reach, and indices that grow evenly from lane to lane.
  bool Values(ValueId root) {
    bool good = true;
    VisitValues(program_, root, [&](ValueId, const Value& value) {
      if (const auto* load = absl::get_if<LoadValue>(&value.node))
        good = good && Place(load->access, CanBeMasked(load->access));
      if (const auto* index = absl::get_if<IndexValue>(&value.node))
        good = good && Linear(index->index);
    });
    return good;
  }

  // Whether e may differ from lane to lane: it holds the loop's index, or loads from a tensor that
  // each lane has for itself.
  bool Differs(IndexId e) const {
    if (HoldsVar(program_.pool, e, var_)) return true;
    if (!program_.pool.HasLoad(e)) return false;
    bool differs = false;
    VisitIndex(program_.pool, e, [&](IndexId, const IndexNode& node) {
      differs |= node.kind == IndexKind::kLoad &&
                 own_.contains(TensorId{static_cast<int32_t>(node.value)});
    });
    return differs;
  }

  // The same in all lanes, or a number more in each: then lanes lie at a fixed stride.
  bool Linear(IndexId e) const {
    if (!Differs(e)) return true;
    return !program_.pool.HasLoad(e) && StrideIn(program_.pool, e, var_);
  }

  // Whether each lane can have a mask: the elements must be in memory, and no booleans, which are
  // masks themselves.
  bool CanBeMasked(const Access& access) const {
    const TensorInfo& info = program_[access.tensor];
    return masks_ == LaneMasks::kLoads && access.masked && info.type != DType::kBool &&
           !info.is_register && !info.shape.empty();
  }

  // `may_be_masked`: the place may be out of range along one axis on which it goes up by one
  // from lane to lane.
  bool Place(const Access& access, bool may_be_masked) {
    for (IndexId condition : access.conditions) {
      if (Differs(condition)) return false;
    }
    for (size_t axis = 0; axis < access.place.size(); ++axis) {
      const IndexId e = access.place[axis];
      if (!Differs(e)) continue;
      const auto step = CoefficientOf(program_.pool, e, var_);
      if (program_.pool.HasLoad(e) || !step) return false;
      if (InRange(access, axis)) continue;
      if (!may_be_masked || step->Constant() != 1) return false;
      may_be_masked = false;
    }
    return true;
  }

  // By proof, or by the marks that an earlier proof has left.
  bool InRange(const Access& access, size_t axis) {
    if (ranges_ == nullptr) return !access.IsChecked(axis);
    for (IndexId condition : access.conditions) ranges_->Assume(condition);
    const bool inside = ranges_->InRange(access.place[axis], program_[access.tensor].shape[axis]);
    for (size_t i = 0; i < access.conditions.size(); ++i) ranges_->Forget();
    return inside;
  }

  const Program& program_;
  Ranges* const ranges_;
  const int32_t var_;
  const LaneMasks masks_;
  absl::flat_hash_set<TensorId> own_;  // declared in the loop
};

}  // namespace

bool LoadsOnlyInputs(const Program& program, IndexId e) {
  bool inputs = true;
  VisitIndex(program.pool, e, [&](IndexId, const IndexNode& node) {
    if (node.kind != IndexKind::kLoad) return;
    inputs =
        inputs && program[TensorId{static_cast<int32_t>(node.value)}].storage == Storage::kInput;
  });
  return inputs;
}

bool RunsInLanes(const Program& program, Ranges& ranges, const Loop& loop, LaneMasks masks) {
  return loop.step == 1 && LaneCheck(program, &ranges, loop, masks).Body(loop);
}

bool RunsInLanesAsMarked(const Program& program, const Loop& loop) {
  return loop.step == 1 && LaneCheck(program, nullptr, loop, LaneMasks::kLoads).Body(loop);
}

absl::optional<int64_t> TileExtent(const Program& program, const Loop& loop) {
  absl::optional<int64_t> most;
  const auto look = [&](TensorId tensor, absl::Span<const IndexId> place, AccessKind) {
    if (!program[tensor].is_register) return;
    for (size_t axis = 0; axis < place.size(); ++axis) {
      if (!HoldsVar(program.pool, place[axis], loop.var)) continue;
      const auto extent = program.pool.ConstValue(program[tensor].shape[axis]);
      if (extent) most = std::max(most.value_or(0), *extent);
    }
  };
  VisitItems(loop.body, [&](const Item& item) { VisitAccesses(program, item, look); });
  return most;
}

absl::optional<int64_t> MostIterations(const Program& program, const Loop& loop) {
  const auto length = KnownLength(program, loop);
  if (length) return length;
  const IndexPool& pool = program.pool;
  const auto begin = pool.ConstValue(loop.begin);
  const IndexNode& end = pool[loop.end];
  if (begin && end.kind == IndexKind::kMin) {
    for (const IndexId argument : end.args) {
      if (const auto bound = pool.ConstValue(argument))
        return std::max<int64_t>(*bound - *begin, 0);
    }
  }
  return TileExtent(program, loop);
}

}  // namespace nestor::loop
