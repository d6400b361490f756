#include "jit/schedule/padded_views.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/functional/function_ref.h"
#include "absl/types/optional.h"
#include "fusion/scopes.h"
#include "fusion/split_loops.h"
#include "jit/schedule/contraction.h"
#include "jit/schedule/loop_maker.h"
#include "jit/schedule/replace_loops.h"
#include "loop_ir/lanes.h"
#include "loop_ir/ranges.h"
#include "loop_ir/rewrite.h"
#include "uops/invariant.h"

namespace nestor::jit {
namespace {

using loop::Access;
using loop::Item;
using loop::Loop;
using loop::Program;
using loop::Scope;
using loop::Statement;
using loop::TensorId;
using loop::ValueId;

// Elements behind the last of a row: whole vectors of a contraction's columns may be read,
// though the last of them are no columns.
constexpr int64_t kSlack = 16;

// Iterations of a loop around windows that share a copy: for windows of three, a half more
// is copied than there is.
constexpr int64_t kStripLength = 4, kStripOfOneChannel = 16;

// Loops around windows that are known to be no longer, as those over the window of which a gradient is made,
// share a copy whole.
constexpr int64_t kMostShared = 8;

// With no more iterations around them, these share it, too: they are too few to be shared out.
constexpr int64_t kFewOutside = 4;

// An operand's elements, by how far the loops inside have come along each of its axes.
struct View {
  struct Axis {
    int of_operand;
    int64_t step = 1;    // elements of the operand from one of the view to the next
    int32_t alone = -1;  // the index that moves it, from `begin` on, if there is but one
    IndexId begin = {};
  };
  Contraction::Operand operand;
  Shape shape;           // of the axes along which the loops move
  std::vector<Axis> axes;
  IndexList first;       // by axis of the operand: the place of the least element
  IndexList place;       // in the view, by the loops' indices
  int64_t slack = 0;     // of the last axis: elements without any of the operand, copied by themselves
};

class Materializer {
 public:
  Materializer(Program& program, loop::Ranges& ranges) : program_(program), pool_(program.pool), ranges_(ranges) {}

  // The nest with views of its operands; nullopt where it needs none.
  absl::optional<Scope> Materialize(const Loop& loop) {
    absl::optional<Contraction> nest = ContractionOf(program_, loop);
    if (!nest) nest = WindowsOf(program_, loop);
    if (!nest) return absl::nullopt;
    const Sharing sharing = SharingOf(*nest);
    std::vector<View> views;
    if (nest->row != nullptr) AddViews(nest->rows, *nest->row, *nest, sharing, views);
    AddViews(nest->columns, *nest->column, *nest, sharing, views);
    if (views.empty()) return absl::nullopt;
    return Rebuilt(*nest, sharing, views);
  }

 private:
  // Iterations of a batch loop, `inside`, that share views: windows of one overlap those of the next.
  struct Strip {
    Loop over, inside;
  };
  // The innermost batch loops whose iterations all share views, and strips of the one around them.
  struct Sharing {
    std::vector<Loop> whole;  // outermost first, with as many iterations as there may be
    absl::optional<Strip> strip;
  };

  Sharing SharingOf(const Contraction& nest) {
    Sharing sharing;
    size_t around = nest.batch.size();
    for (; around > 0 && WindowsOverlap(nest, *nest.batch[around - 1]); --around) {
      const Loop& batch = *nest.batch[around - 1];
      const absl::optional<IndexId> most = MostIterations(batch);
      if (nest.row == nullptr || !most || !ranges_.Less(*most, pool_.Const(kMostShared + 1))) {
        sharing.strip = StripOf(nest, batch);
        break;
      }
      sharing.whole.insert(sharing.whole.begin(), batch);
      sharing.whole.front().end = pool_.Add(batch.begin, *most);
    }
    if (!sharing.whole.empty() && !sharing.strip && Iterations(nest, around) <= kFewOutside) {
      for (; around > 0; --around) sharing.whole.insert(sharing.whole.begin(), *nest.batch[around - 1]);
    }
    return sharing;
  }

  // A number of symbols that the loop's iterations do not exceed, at any iteration of those around.
  absl::optional<IndexId> MostIterations(const Loop& loop) { return MostUpTo(loop.end, loop.begin); }
  absl::optional<IndexId> MostUpTo(IndexId end, IndexId begin) {
    const IndexId length = pool_.Sub(end, begin);
    if (!pool_.HasVar(length)) return length;
    if (pool_[end].kind != IndexKind::kMin) return absl::nullopt;
    const auto arguments = pool_[end].args;  // a copy: the pool grows
    for (const IndexId argument : arguments) {
      if (const auto most = MostUpTo(argument, begin)) return most;
    }
    return absl::nullopt;
  }

  // Of so many of the outermost batch loops, or more than any few.
  int64_t Iterations(const Contraction& nest, size_t loops) const {
    int64_t iterations = 1;
    for (size_t i = 0; i < loops; ++i) {
      iterations *= std::min(KnownLength(program_, *nest.batch[i]).value_or(kFewOutside + 1), kFewOutside + 1);
    }
    return iterations;
  }

  Strip StripOf(const Contraction& nest, const Loop& loop) {
    const int64_t most = nest.row == nullptr ? kStripOfOneChannel : kStripLength;
    const IndexId length = pool_.Const(most);
    const IndexId strips = pool_.Div(pool_.Add(ranges_.LengthOf(loop), pool_.Const(most - 1)), length);
    Strip strip{{program_.AddVar(program_.vars[loop.var]), pool_.Const(0), strips, 1, {}, {}},
                {loop.var, {}, {}, 1, {}, {}}};
    strip.inside.begin = pool_.Add(loop.begin, pool_.Mul(length, pool_.Var(strip.over.var)));
    strip.inside.end = pool_.Add(strip.inside.begin, length);
    return strip;
  }

  bool WindowsOverlap(const Contraction& nest, const Loop& loop) const {
    const auto has_windows = [&](const Contraction::Operand& operand) {
      return SlidesAlong(program_, AccessOf(program_, operand), nest.sums, loop);
    };
    return absl::c_any_of(nest.rows, has_windows) || absl::c_any_of(nest.columns, has_windows);
  }

  void AddViews(const std::vector<Contraction::Operand>& operands, const Loop& side, const Contraction& nest,
                const Sharing& sharing, std::vector<View>& views) {
    const std::vector<Loop> hulls = HullLoopsOf(nest);
    std::vector<const Loop*> inside;
    for (const Loop& hull : hulls) inside.push_back(&hull);
    for (const Loop& batch : sharing.whole) inside.push_back(&batch);
    if (sharing.strip) inside.push_back(&sharing.strip->inside);
    inside.push_back(&side);
    const int64_t slack = nest.row != nullptr && &side == nest.column ? kSlack : 0;
    for (const Contraction::Operand& operand : operands) {
      const Access access = AccessOf(program_, operand);
      if (!access.masked && !LeavesAtHulls(operand, nest) && !IsWindow(operand, side, nest)) continue;
      absl::optional<View> view = ViewOf(operand, access, inside, slack);
      if (!view) continue;
      if (FillsLanes(access, nest, sharing)) PutLast(side, *view);
      else if (&side == nest.row) PutRowFirst(side, *view);
      views.push_back(*std::move(view));
    }
  }

  // Whether the operand is read at each place of a window that is a loop around, and results are stored across
  // either side: then its elements have the lanes, side by side in the copy, and nothing is packed for each place.
  bool FillsLanes(const Access& access, const Contraction& nest, const Sharing& sharing) const {
    const auto slides = [&](const Loop& batch) { return SlidesAlong(program_, access, nest.sums, batch); };
    const auto is_stored_along = [&](const Item& item) {
      const auto* statement = item.As<Statement>();
      if (statement == nullptr) return false;
      const IndexList& place = statement->target.place;
      const auto moves_with = [&](const Loop* side) { return HoldsVar(pool_, place.back(), side->var); };
      return !place.empty() && (moves_with(nest.row) || moves_with(nest.column));
    };
    return nest.row != nullptr && absl::c_any_of(sharing.whole, slides) && absl::c_none_of(*nest.core, is_stored_along);
  }

  // Rows that lie across what is summed lie one after the other in the copy: tiles read them there.
  void PutRowFirst(const Loop& row, View& view) const {
    const auto axis = OnlyAxisAlong(program_, view.place, row);
    if (axis && *axis + 1 != view.place.size()) Rotate(view, 0, *axis, *axis + 1);
  }

  // Whole vectors of it can be read, too.
  void PutLast(const Loop& side, View& view) const {
    const auto axis = OnlyAxisAlong(program_, view.place, side);
    if (!axis || *axis + 1 == view.place.size()) return;
    Rotate(view, *axis, *axis + 1, view.place.size());
    view.shape.back() = pool_.Add(view.shape.back(), pool_.Const(kSlack));
    view.slack = kSlack;
  }

  // Axes from number `middle` on come before those from `begin` on.
  static void Rotate(View& view, size_t begin, size_t middle, size_t end) {
    const auto rotate = [&](auto& parts) {
      std::rotate(parts.begin() + begin, parts.begin() + middle, parts.begin() + end);
    };
    rotate(view.place);
    rotate(view.shape);
    rotate(view.axes);
  }

  // Whether it leaves its tensor at steps that are not summed.
  bool LeavesAtHulls(const Contraction::Operand& operand, const Contraction& nest) {
    return !IsInRange(program_, ranges_, nest, operand) && IsInRange(program_, ranges_, nest, operand, Steps::kOfSums);
  }

  // Of columns that overlap, so that a packed copy would hold each element often, and that are
  // not read to the end of a view yet.
  bool IsWindow(const Contraction::Operand& operand, const Loop& side, const Contraction& nest) {
    const Access access = AccessOf(program_, operand);
    const auto slides = [&](const Loop* sum) { return HoldsVar(pool_, access.place.back(), sum->var); };
    const bool overlaps =
        &side == nest.column && IsAlong(program_, access, side) && absl::c_any_of(nest.sums, slides);
    return overlaps && program_[access.tensor].storage != loop::Storage::kTemp &&
           IsInRange(program_, ranges_, nest, operand);
  }

  absl::optional<View> ViewOf(const Contraction::Operand& operand, const Access& access, const std::vector<const Loop*>& inside,
                              int64_t slack) {
    for (const Loop* loop : inside) {
      for (IndexId condition : access.conditions) {
        if (HoldsVar(pool_, condition, loop->var)) return absl::nullopt;
      }
    }
    View view{operand, {}, {}, {}, {}};
    for (size_t axis = 0; axis < access.place.size(); ++axis) {
      if (!AddAxis(static_cast<int>(axis), access.place[axis], inside, view)) return absl::nullopt;
      const bool is_last = axis + 1 == access.place.size();
      const bool has_vectors = is_last && HoldsVar(pool_, access.place[axis], inside.back()->var);
      if (!has_vectors) continue;
      // Columns that do not move along their axis have no iterations: nothing is read.
      if (view.axes.empty() || view.axes.back().of_operand != static_cast<int>(axis)) return absl::nullopt;
      view.shape.back() = pool_.Add(view.shape.back(), pool_.Const(slack));
    }
    if (!KnowsIndices(view, inside)) return absl::nullopt;
    // What moves with a loop around has no place in a plan of memory.
    if (absl::c_any_of(view.shape, [&](IndexId extent) { return pool_.HasVar(extent); })) return absl::nullopt;
    return view;
  }

  // Whether each index that is computed with, too, follows from the place in the view.
  bool KnowsIndices(const View& view, const std::vector<const Loop*>& inside) const {
    bool knows = true;
    VisitValues(program_, view.operand.read, [&](ValueId, const loop::Value& value) {
      const auto* index = absl::get_if<loop::IndexValue>(&value.node);
      if (index == nullptr) return;
      for (const Loop* loop : inside) {
        const auto is_alone = [&](const View::Axis& axis) { return axis.alone == loop->var; };
        knows = knows && (!HoldsVar(pool_, index->index, loop->var) || absl::c_any_of(view.axes, is_alone));
      }
    });
    return knows;
  }

  // The place is that at the loops' begins, plus their steps times how far they are. As
  // that is less than a loop's length, the lengths say how much there may be: an element
  // more than needed, where several loops move, but sums of lengths are easy to reason with.
  bool AddAxis(int axis, IndexId e, const std::vector<const Loop*>& inside, View& view) {
    loop::VarReplacement at_begin(program_);
    IndexId forth = pool_.Const(0), back = pool_.Const(0), moved = pool_.Const(0);
    std::vector<const Loop*> movers;
    for (const Loop* loop : inside) {
      const auto step = CoefficientOf(program_, e, loop->var);
      if (!step || pool_.HasVar(*step)) return false;
      at_begin.Set(loop->var, loop->begin);
      if (pool_.IsConst(*step, 0)) continue;
      movers.push_back(loop);
      const bool forwards = ranges_.NonNegative(*step);
      if (!forwards && !ranges_.NonNegative(pool_.Neg(*step))) return false;
      const IndexId reach = pool_.Mul(*step, ranges_.LengthOf(*loop));
      IndexId& sum = forwards ? forth : back;
      sum = pool_.Add(sum, reach);
      moved = pool_.Add(moved, pool_.Mul(*step, pool_.Sub(pool_.Var(loop->var), loop->begin)));
    }
    view.first.push_back(pool_.Add(at_begin(e), back));
    const IndexId reach = pool_.Sub(forth, back);
    if (pool_.IsConst(reach, 0)) return true;
    const auto step =
        movers.size() == 1 ? pool_.ConstValue(*CoefficientOf(program_, e, movers[0]->var)) : absl::nullopt;
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

  // The batch loops, around the views, and around those that share them, rows and columns.
  Scope Rebuilt(const Contraction& nest, const Sharing& sharing, const std::vector<View>& views) {
    Scope scope;
    std::vector<TensorId> tensors;
    for (const View& view : views) {
      loop::TensorInfo info;
      info.name = "view";
      info.type = program_[view.operand.read].type;
      info.shape = view.shape;
      AssumeFewElements(program_, view.shape);
      tensors.push_back(program_.AddTensor(std::move(info)));
      scope.push_back(fusion::DeclarationOf(tensors.back()));
      Append(scope, Copy(view, tensors.back()));
    }
    Scope core = *nest.core;
    VisitStatements(core, [&](Statement& statement) {
      statement.value = RewriteValues(program_, statement.value, [&](ValueId id) -> absl::optional<ValueId> {
        for (size_t i = 0; i < views.size(); ++i) {
          if (views[i].operand.read == id) return program_.AddLoad({tensors[i], views[i].place});
        }
        return absl::nullopt;
      });
    });
    Scope tile = Around(*nest.column, std::move(core));
    if (nest.row != nullptr) tile = Around(*nest.row, std::move(tile));
    size_t outer = nest.batch.size();
    for (size_t i = 0; i < sharing.whole.size(); ++i) tile = Around(*nest.batch[--outer], std::move(tile));
    if (sharing.strip) {
      Loop inside = sharing.strip->inside;
      inside.end = pool_.Min(nest.batch[--outer]->end, inside.end);
      tile = Around(inside, std::move(tile));
    }
    Append(scope, std::move(tile));
    if (sharing.strip) scope = Around(sharing.strip->over, std::move(scope));
    while (outer-- > 0) scope = Around(*nest.batch[outer], std::move(scope));
    return scope;
  }

  Scope Copy(const View& view, TensorId tensor) {
    const DType type = program_[view.operand.read].type;
    Shape begin(view.shape.size(), pool_.Const(0)), end = view.shape;
    if (view.slack > 0) end.back() = pool_.Sub(end.back(), pool_.Const(view.slack));
    Scope scope = Fill(tensor, begin, end, [&](const IndexList& place) { return ElementOf(view, place); });
    if (view.slack == 0) return scope;
    begin.back() = end.back();
    Append(scope, Fill(tensor, begin, view.shape, [&](const IndexList&) {
      return program_.AddConstant(Scalar::Zero(type));
    }));
    return scope;
  }

  // What stands at the place of the view.
  ValueId ElementOf(const View& view, const IndexList& place) {
    const Access operand = AccessOf(program_, view.operand);
    IndexList first = view.first;
    loop::VarReplacement replace(program_);
    for (size_t i = 0; i < place.size(); ++i) {
      const View::Axis& axis = view.axes[i];
      IndexId& e = first[static_cast<size_t>(axis.of_operand)];
      e = pool_.Add(e, pool_.Mul(pool_.Const(axis.step), place[i]));
      if (axis.alone >= 0) replace.Set(axis.alone, pool_.Add(axis.begin, place[i]));
    }
    return RewriteValues(program_, view.operand.read, [&](ValueId id) -> absl::optional<ValueId> {
      const auto* index = absl::get_if<loop::IndexValue>(&program_[id].node);
      if (index != nullptr) return program_.AddIndexValue(replace(index->index));
      const auto* load = absl::get_if<loop::LoadValue>(&program_[id].node);
      if (load == nullptr) return absl::nullopt;
      Access access = load->access;
      for (size_t axis = 0; axis < first.size(); ++axis) {
        access.place[axis] = pool_.Add(first[axis], pool_.Sub(access.place[axis], operand.place[axis]));
      }
      if (!access.masked) access.fill = program_.AddConstant(Scalar::Zero(program_[id].type));
      access.masked = true;
      return program_.AddLoad(std::move(access));
    });
  }

  // The part of a view from `begin` to `end` of each axis; of one without axes, its element.
  Scope Fill(TensorId tensor, const Shape& begin, const Shape& end,
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

  Program& program_;
  IndexPool& pool_;
  loop::Ranges& ranges_;
};

}  // namespace

absl::StatusOr<bool> MaterializePaddedViews(Program& program) {
  loop::Ranges ranges(program);
  Materializer materializer(program, ranges);
  const bool changed = ReplaceLoops(program, ranges, [&](Loop& loop) { return materializer.Materialize(loop); });
  // The inside of a copy needs no mask.
  if (changed) NESTOR_RETURN_IF_ERROR(fusion::SplitLoops(program).status());
  return changed;
}

}  // namespace nestor::jit
