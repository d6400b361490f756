#include "jit/schedule/padded_views.h"

#include <utility>
#include <vector>

#include "absl/types/optional.h"
#include "fusion/scopes.h"
#include "fusion/split_loops.h"
#include "jit/codegen/lanes.h"
#include "jit/schedule/attributes.h"
#include "jit/schedule/contraction.h"
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

// Elements behind the last of a row: whole vectors of columns may be read, though the last
// of them are no columns.
constexpr int64_t kSlack = 16;

// An operand's elements, by how far the loops inside have come along each of its axes.
struct View {
  ValueId load;
  Shape shape;           // of the axes along which the loops move
  std::vector<int> axes;
  IndexList first;       // by axis of the operand: the place of the least element
  IndexList place;       // in the view, by the loops' indices
};

class Materializer {
 public:
  explicit Materializer(Program& program) : program_(program), pool_(program.pool), ranges_(program) {}

  bool Run() {
    bool changed = false;
    for (loop::Block& block : program_.blocks) changed |= Visit(block.body);
    return changed;
  }

 private:
  bool Visit(Scope& scope) {
    bool changed = false;
    for (Item& item : scope) {
      auto* loop = item.As<Loop>();
      if (loop == nullptr || ScheduledOf(*loop) != Scheduled::kNothing) continue;
      if (Materialize(scope, item)) return true;
      ranges_.Enter(*loop);
      changed |= Visit(loop->body);
      ranges_.Leave();
    }
    return changed;
  }

  // Views of the item's operands; where they belong to no loop of it, in `scope`.
  bool Materialize(Scope& scope, Item& item) {
    const absl::optional<Contraction> nest = ContractionOf(program_, ranges_, *item.As<Loop>());
    if (!nest) return false;
    std::vector<View> views;
    AddViews(nest->rows, *nest->row, *nest, views);
    AddViews(nest->columns, *nest->column, *nest, views);
    if (views.empty()) return false;
    const size_t at = static_cast<size_t>(&item - scope.data());
    Scope made = Rebuilt(*nest, views);
    scope.erase(scope.begin() + static_cast<int64_t>(at));
    scope.insert(scope.begin() + static_cast<int64_t>(at), std::make_move_iterator(made.begin()),
                 std::make_move_iterator(made.end()));
    return true;
  }

  void AddViews(const std::vector<Contraction::Operand>& operands, const Loop& side, const Contraction& nest,
                std::vector<View>& views) {
    std::vector<const Loop*> inside = nest.sums;
    inside.push_back(&side);
    for (const Contraction::Operand& operand : operands) {
      const Access access = absl::get<loop::LoadValue>(program_[operand.load].node).access;
      if (!access.masked) continue;
      if (absl::optional<View> view = ViewOf(operand.load, access, inside)) views.push_back(*std::move(view));
    }
  }

  absl::optional<View> ViewOf(ValueId load, const Access& access, const std::vector<const Loop*>& inside) {
    for (const Loop* loop : inside) {
      for (IndexId condition : access.conditions) {
        if (HoldsVar(pool_, condition, loop->var)) return absl::nullopt;
      }
    }
    View view{load, {}, {}, {}, {}};
    for (size_t axis = 0; axis < access.place.size(); ++axis) {
      if (!AddAxis(static_cast<int>(axis), access.place[axis], inside, view)) return absl::nullopt;
    }
    return view;
  }

  // The place is that at the loops' begins, plus their steps times how far they are. As
  // that is less than a loop's length, the lengths say how much there may be: an element
  // more than needed, where several loops move, but sums of lengths are easy to reason with.
  bool AddAxis(int axis, IndexId e, const std::vector<const Loop*>& inside, View& view) {
    loop::VarReplacement at_begin(program_);
    IndexId forth = pool_.Const(0), back = pool_.Const(0), moved = pool_.Const(0);
    for (const Loop* loop : inside) {
      const auto step = CoefficientOf(program_, e, loop->var);
      if (!step || pool_.HasVar(*step)) return false;
      at_begin.Set(loop->var, loop->begin);
      if (pool_.IsConst(*step, 0)) continue;
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
    view.axes.push_back(axis);
    view.shape.push_back(pool_.IsConst(back, 0) ? reach : pool_.Add(reach, pool_.Const(1)));
    const bool is_last = axis + 1 == static_cast<int>(absl::get<loop::LoadValue>(program_[view.load].node).access.place.size());
    if (is_last && HoldsVar(pool_, e, inside.back()->var)) {
      view.shape.back() = pool_.Add(view.shape.back(), pool_.Const(kSlack));
    }
    view.place.push_back(pool_.Sub(moved, back));
    return true;
  }

  // The batch loops, around the views, and around rows and columns.
  Scope Rebuilt(const Contraction& nest, const std::vector<View>& views) {
    Scope scope;
    std::vector<TensorId> tensors;
    for (const View& view : views) {
      loop::TensorInfo info;
      info.name = "view";
      info.type = program_[view.load].type;
      info.shape = view.shape;
      tensors.push_back(program_.AddTensor(std::move(info)));
      scope.push_back(fusion::DeclarationOf(tensors.back()));
      scope.push_back(Copy(view, tensors.back()));
    }
    Scope core = *nest.core;
    VisitStatements(core, [&](Statement& statement) {
      statement.value = RewriteValues(program_, statement.value, [&](ValueId id) -> absl::optional<ValueId> {
        for (size_t i = 0; i < views.size(); ++i) {
          if (views[i].load == id) return program_.AddLoad({tensors[i], views[i].place});
        }
        return absl::nullopt;
      });
    });
    scope.push_back(Around(*nest.row, OneItem(Around(*nest.column, std::move(core)))));
    for (size_t i = nest.batch.size(); i-- > 0;) scope = OneItem(Around(*nest.batch[i], std::move(scope)));
    return scope;
  }

  static Scope OneItem(Item item) {
    Scope scope;
    scope.push_back(std::move(item));
    return scope;
  }

  static Item Around(const Loop& loop, Scope body) {
    return {Loop{loop.var, loop.begin, loop.end, 1, {}, std::move(body)}};
  }

  Item Copy(const View& view, TensorId tensor) {
    Access from = absl::get<loop::LoadValue>(program_[view.load].node).access;
    from.place = view.first;
    IndexList place;
    std::vector<int32_t> vars;
    for (const int axis : view.axes) {
      vars.push_back(program_.AddVar("t"));
      place.push_back(pool_.Var(vars.back()));
      from.place[axis] = pool_.Add(from.place[axis], place.back());
    }
    Item item = {Statement{{tensor, place}, absl::nullopt, program_.AddLoad(from), {}}};
    for (size_t i = vars.size(); i-- > 0;) {
      item = {Loop{vars[i], pool_.Const(0), view.shape[i], 1, {}, OneItem(std::move(item))}};
    }
    return item;
  }

  Program& program_;
  IndexPool& pool_;
  loop::Ranges ranges_;
};

}  // namespace

absl::StatusOr<bool> MaterializePaddedViews(Program& program) {
  bool changed = false;
  // A nest is looked for anew where one was changed.
  while (Materializer(program).Run()) changed = true;
  // The inside of a copy needs no mask.
  if (changed) NESTOR_RETURN_IF_ERROR(fusion::SplitLoops(program).status());
  return changed;
}

}  // namespace nestor::jit
