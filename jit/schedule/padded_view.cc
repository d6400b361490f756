// The set of elements that an operand reads in some loops is a box, if subscripts are affine: along
// each axis from the least place to the greatest. The view is that box, and a place in it counts
// from the least place. Each axis that several loops move has one axis in the view (i + r: windows
// share elements); one that a single loop moves has an element for each of its steps, without those
// between.
//
//   x[n, i + 2*r - 1] for i in [0, N), r in [0, 3)  ->  view[i + 2*r]; view[t] is x[n, t - 1]
//
// Every element is read through a mask, so that those outside of the tensor become the fill;
// SplitLoops then cuts the box into borders and an inside that needs no mask. Invariant: `first`
// plus step * place, by axis, is the subscript of the operand at the same iteration.
#include "jit/schedule/padded_view.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "fusion/scopes.h"
#include "jit/schedule/access_moves.h"
#include "jit/schedule/loop_maker.h"
#include "jit/target/products.h"
#include "loop_ir/affine.h"
#include "loop_ir/perfect_nest.h"
#include "loop_ir/rewrite.h"

namespace nestor::loop {

namespace {

// Moves the axes from number `middle` on before those from `begin` on.
void Rotate(View& view, size_t begin, size_t middle, size_t end) {
  const auto rotate = [&](auto& parts) {
    std::rotate(parts.begin() + begin, parts.begin() + middle, parts.begin() + end);
  };
  rotate(view.place);
  rotate(view.shape);
  rotate(view.axes);
}

}  // namespace

absl::optional<View> ViewMaker::ViewOf(const Contraction::Operand& operand,
                                       const LoopsAround& inside, int64_t slack) {
  const Access access = AccessOf(program_, operand);
  View view{operand, {}, {}, {}, {}};
  for (size_t axis = 0; axis < access.place.size(); ++axis) {
    if (!AddAxis(static_cast<int>(axis), access.place[axis], inside, view)) return absl::nullopt;
    const bool is_last = axis + 1 == access.place.size();
    const bool has_vectors = is_last && HoldsVar(pool_, access.place[axis], inside.back()->var);
    if (!has_vectors) continue;
    // Columns move along their axis unless they have no iterations: then nothing is read.
    if (view.axes.empty() || view.axes.back().of_operand != static_cast<int>(axis))
      return absl::nullopt;
    view.shape.back() = pool_.Add(view.shape.back(), pool_.Const(slack));
  }
  if (!KnowsIndices(view, inside)) return absl::nullopt;
  // Memory cannot be planned for a shape that moves with a loop around.
  if (absl::c_any_of(view.shape, [&](IndexId extent) { return pool_.HasVar(extent); }))
    return absl::nullopt;
  return view;
}

// Whether each index that is used as a value or in a condition follows from the place in the view:
// else one element of it would have two values.
bool ViewMaker::KnowsIndices(const View& view, const LoopsAround& inside) const {
  const auto follows = [&](IndexId e) {
    return absl::c_all_of(inside, [&](const Loop* loop) {
      const auto is_alone = [&](const View::Axis& axis) { return axis.alone == loop->var; };
      return !HoldsVar(pool_, e, loop->var) || absl::c_any_of(view.axes, is_alone);
    });
  };
  bool knows = true;
  VisitValues(program_, view.operand.read, [&](ValueId, const Value& value) {
    if (const auto* index = absl::get_if<IndexValue>(&value.node))
      knows = knows && follows(index->index);
    if (const auto* load = absl::get_if<LoadValue>(&value.node))
      knows = knows && absl::c_all_of(load->access.conditions, follows);
  });
  return knows;
}

// A place is that at the loops' begins, plus the coefficients times how far the loops have come. As
// that is less than a loop's length, the lengths bound the extent: it has more elements than needed
// where several loops move, but sums of lengths are easy to reason with.
bool ViewMaker::AddAxis(int axis, IndexId e, const LoopsAround& inside, View& view) {
  VarReplacement at_begin(program_);
  IndexId forth = pool_.Const(0), back = pool_.Const(0), moved = pool_.Const(0);
  std::vector<const Loop*> movers;
  for (const Loop* loop : inside) {
    const auto coefficient = CoefficientOf(pool_, e, loop->var);
    if (!coefficient) return false;
    at_begin.Set(loop->var, loop->begin);
    if (coefficient->IsZero()) continue;
    movers.push_back(loop);
    const IndexId step = coefficient->Build(pool_);
    const bool forwards = ranges_.NonNegative(step);
    if (!forwards && !ranges_.NonNegative(pool_.Neg(step))) return false;
    const IndexId reach = pool_.Mul(step, ranges_.LengthOf(*loop));
    IndexId& sum = forwards ? forth : back;
    sum = pool_.Add(sum, reach);
    moved = pool_.Add(moved, pool_.Mul(step, pool_.Sub(pool_.Var(loop->var), loop->begin)));
  }
  view.first.push_back(pool_.Add(at_begin(e), back));
  const IndexId reach = pool_.Sub(forth, back);
  if (pool_.IsConst(reach, 0)) return true;
  const auto step = movers.size() == 1 ? StrideIn(pool_, e, movers[0]->var) : absl::nullopt;
  if (step && *step > 0) {
    view.axes.push_back({axis, *step, movers[0]->var, movers[0]->begin});
    view.shape.push_back(ranges_.LengthOf(*movers[0]));
    view.place.push_back(pool_.Sub(pool_.Var(movers[0]->var), movers[0]->begin));
    return true;
  }
  view.axes.push_back({axis});
  view.shape.push_back(pool_.IsConst(back, 0) ? reach : pool_.Add(reach, pool_.Const(1)));
  view.place.push_back(pool_.Sub(moved, back));
  return true;
}

// Copies all elements but the slack, which is filled with zeros: lanes read it, but no result does.
Scope ViewMaker::Copy(const View& view, TensorId tensor) {
  const DType type = program_[view.operand.read].type;
  Shape begin(view.shape.size(), pool_.Const(0)), end = view.shape;
  if (view.unused.value >= 0) end.back() = pool_.Sub(end.back(), view.unused);
  if (view.slack > 0) end.back() = pool_.Sub(end.back(), pool_.Const(view.slack));
  Scope scope =
      Fill(tensor, begin, end, [&](const IndexList& place) { return ElementOf(view, place); });
  if (view.slack == 0) return scope;
  begin.back() = end.back();
  Append(scope, Fill(tensor, begin, view.shape,
                     [&](const IndexList&) { return program_.AddConstant(Scalar::Zero(type)); }));
  return scope;
}

// The element at the place of the view.
ValueId ViewMaker::ElementOf(const View& view, const IndexList& place) {
  const Access operand = AccessOf(program_, view.operand);
  IndexList first = view.first;
  VarReplacement replace(program_);
  for (size_t i = 0; i < place.size(); ++i) {
    const View::Axis& axis = view.axes[i];
    IndexId& e = first[static_cast<size_t>(axis.of_operand)];
    e = pool_.Add(e, pool_.Mul(pool_.Const(axis.step), place[i]));
    if (axis.alone >= 0) replace.Set(axis.alone, pool_.Add(axis.begin, place[i]));
  }
  return RewriteValues(program_, view.operand.read, [&](ValueId id) -> absl::optional<ValueId> {
    const auto* index = absl::get_if<IndexValue>(&program_[id].node);
    if (index != nullptr) return program_.AddIndexValue(replace(index->index));
    const auto* load = absl::get_if<LoadValue>(&program_[id].node);
    if (load == nullptr) return absl::nullopt;
    Access access = load->access;
    for (size_t axis = 0; axis < first.size(); ++axis) {
      access.place[axis] =
          pool_.Add(first[axis], pool_.Sub(access.place[axis], operand.place[axis]));
    }
    for (IndexId& condition : access.conditions) condition = replace(condition);
    if (!access.masked) access.fill = program_.AddConstant(Scalar::Zero(program_[id].type));
    access.masked = true;
    return program_.AddLoad(std::move(access));
  });
}

// Fills the part of a view from `begin` to `end` of each axis; a view without axes is one element.
Scope ViewMaker::Fill(TensorId tensor, const Shape& begin, const Shape& end,
                      absl::FunctionRef<ValueId(const IndexList& place)> value) {
  IndexList place;
  std::vector<Loop> loops;
  for (size_t axis = 0; axis < end.size(); ++axis) {
    loops.push_back({program_.AddVar("t"), begin[axis], end[axis], 1, {}, {}});
    place.push_back(pool_.Var(loops.back().var));
  }
  Scope scope = Assignment(tensor, place, value(place));
  for (size_t i = loops.size(); i-- > 0;) scope = Around(loops[i], std::move(scope));
  return scope;
}

// Then each row of a tile is one stretch of memory.
void ViewMaker::PutFirst(const Loop& side, View& view) const {
  const auto axis = OnlyAxisAlong(program_, view.place, side);
  if (axis && *axis + 1 != view.place.size()) Rotate(view, 0, *axis, *axis + 1);
}

void ViewMaker::PutLast(const Loop& side, int64_t slack, View& view) const {
  const auto axis = OnlyAxisAlong(program_, view.place, side);
  if (!axis || *axis + 1 == view.place.size()) return;
  Rotate(view, *axis, *axis + 1, view.place.size());
  view.shape.back() = pool_.Add(view.shape.back(), pool_.Const(slack));
  view.slack = slack;
}

// 16 elements are a cache line of f32. A row of 256 channels or more gets one that is not copied,
// so that adjacent rows do not map to the same sets.
void ViewMaker::MoveRowsApart(View& view) const {
  constexpr int64_t kLongRow = 256, kLine = 16;
  IndexId& length = view.shape.back();
  view.unused = pool_.Mul(pool_.Const(kLine),
                          pool_.Min(pool_.Const(1), pool_.Div(length, pool_.Const(kLongRow))));
  length = pool_.Add(length, view.unused);
}

// Shapes may differ: a place in both is then that of the same element.
bool ViewMaker::HaveSameElements(const View& a, const View& b) const {
  const Access x = AccessOf(program_, a.operand), y = AccessOf(program_, b.operand);
  const auto same_axes = [](const View::Axis& i, const View::Axis& j) {
    return i.of_operand == j.of_operand && i.step == j.step;
  };
  return !a.operand.is_computed() && !b.operand.is_computed() && a.slack == b.slack &&
         x.tensor == y.tensor && x.conditions == y.conditions && HaveSameOutside(x, y) &&
         a.first == b.first && absl::c_equal(a.axes, b.axes, same_axes);
}

// If an access is not masked, views have zeros outside of its tensor.
bool ViewMaker::HaveSameOutside(const Access& x, const Access& y) const {
  const auto is_zero = [&](const Access& access) {
    return !access.masked || jit::IsPlusZero(program_, access.fill);
  };
  if (is_zero(x) || is_zero(y)) return is_zero(x) && is_zero(y);
  const auto constant = [&](const Access& access) {
    return absl::get_if<ConstantValue>(&program_[access.fill].node);
  };
  const ConstantValue *a = constant(x), *b = constant(y);
  return x.fill == y.fill || (a != nullptr && b != nullptr && a->value.bits == b->value.bits);
}

TensorId ViewMaker::Declare(const View& view, Scope& scope) {
  TensorInfo info;
  info.name = "view";
  info.type = program_[view.operand.read].type;
  info.shape = view.shape;
  AssumeFewElements(program_, view.shape);
  const TensorId tensor = program_.AddTensor(std::move(info));
  scope.push_back(DeclarationOf(tensor));
  Append(scope, Copy(view, tensor));
  return tensor;
}

}  // namespace nestor::loop
