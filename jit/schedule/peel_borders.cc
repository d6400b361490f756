// Loop peeling (Allen and Kennedy, "Optimizing Compilers for Modern Architectures", 2001, sec. 5.7)
// by whole vectors. A mask costs more than the load that it is for: some instructions to find the
// lanes that take part, for each vector anew. A stencil needs it in two vectors of a row.
//
// Border: how many places before, and behind, the row the body loads from. The pieces follow from
// it: as many vectors at either end as the border reaches into, and whole vectors from the begin of
// the row between. A row that is no multiple of the lanes ends within the last vector, which is
// counted from the end of the row. That the inside needs no masks is proven, not concluded from the
// border: else the loop stays.
#include "jit/schedule/peel_borders.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/types/optional.h"
#include "fusion/decided_copy.h"
#include "jit/schedule/loop_maker.h"
#include "jit/schedule/widen.h"
#include "jit/target/lanes.h"
#include "loop_ir/affine.h"
#include "loop_ir/dependence.h"
#include "loop_ir/perfect_nest.h"
#include "loop_ir/ranges.h"
#include "loop_ir/rewrite.h"
#include "loop_ir/take_over.h"

namespace nestor::loop {
namespace {

class Peeler : SizeArithmetic {
 public:
  Peeler(Program& program, jit::Isa isa)
      : SizeArithmetic(program.pool), program_(program), ranges_(program), isa_(isa) {}

  bool Run() {
    const size_t values = program_.values.size(), vars = program_.vars.size(),
                 tensors = program_.tensors.size();
    bool changed = false;
    for (Item& item : program_.body) {
      auto* loop = item.As<Loop>();
      if (loop == nullptr || !HoldsMaskedVectors(item)) continue;
      Item before = item;
      if (!VisitInside(*loop)) continue;
      if (RunsInPlaceAs(before, item)) changed = true;
      else item = std::move(before);
    }
    if (!changed) {
      // Drops those of pieces that were taken back.
      program_.values.resize(values);
      program_.vars.resize(vars);
      program_.tensors.resize(tensors);
    }
    return changed;
  }

 private:
  // Places that the body loads from before the row, and behind it.
  struct Border {
    int64_t before = 0, behind = 0;
  };

  // Most nests hold none, and need no closer look.
  bool HoldsMaskedVectors(const Item& nest) const {
    bool holds = false;
    VisitItems(nest, [&](const Item& item) {
      const auto* loop = item.As<Loop>();
      if (holds || loop == nullptr || !loop->attributes.vector) return;
      LoopsAround inner;
      VisitMasked(loop->body, inner, [&](const Access&) { holds = true; });
    });
    return holds;
  }

  // Whether outputs may lie where inputs do after the change if they might before: a caller may
  // rely on it.
  bool RunsInPlaceAs(const Item& before, const Item& after) {
    TakeOver old_nest(program_), new_nest(program_);
    const auto may_be_in = [&](TensorId output, TensorId input) {
      return program_[input].shape == program_[output].shape &&
             old_nest.IsSafe(before, input, output) && !new_nest.IsSafe(after, input, output);
    };
    return absl::c_none_of(program_.outputs, [&](TensorId output) {
      return absl::c_any_of(program_.inputs,
                            [&](TensorId input) { return may_be_in(output, input); });
    });
  }

  bool VisitInside(Loop& around) {
    ranges_.Enter(around);
    bool changed = false;
    Scope body;
    for (Item& item : around.body) {
      auto* loop = item.As<Loop>();
      absl::optional<Scope> pieces = loop == nullptr ? absl::nullopt : PiecesOf(*loop);
      if (pieces) Append(body, *std::move(pieces));
      else if (loop != nullptr) changed |= VisitInside(*loop);
      if (!pieces) body.push_back(std::move(item));
      changed |= pieces.has_value();
    }
    around.body = std::move(body);
    ranges_.Leave();
    return changed;
  }

  // nullopt: it stays.
  absl::optional<Scope> PiecesOf(const Loop& loop) {
    const auto border = MayRunTwice(loop) ? BorderOf(loop) : absl::nullopt;
    if (!border || (border->before == 0 && border->behind == 0)) return absl::nullopt;
    const int64_t lanes = jit::LanesOf(program_, loop, isa_);
    const int64_t first = VectorsIn(border->before, lanes, 0),
                  last = std::max<int64_t>(VectorsIn(border->behind, lanes, lanes - 1), 1);
    // Of a row that is longer by the border, no vector reaches beyond both ends.
    const int64_t least = lanes * std::max(first, last) + std::max(border->before, border->behind);
    if (std::max(first, last) > 2 || ranges_.Less(ranges_.LengthOf(loop), Const(least)))
      return absl::nullopt;
    const IndexId masked = Const(std::max<int64_t>(border->behind, 1));
    const IndexId whole = Times(lanes, Over(pool_.Sub(loop.end, masked), lanes));
    const IndexId is_long = pool_.Min(Over(loop.end, least), Const(1));
    Loop guard{program_.AddVar("z"), Const(0), is_long, 1, {}, {}};
    const Loop inside = Piece(loop, Const(first * lanes), whole);
    ranges_.Enter(guard);
    const bool peels = NeedsNoMasks(inside);
    if (peels) {
      const IndexId begin = pool_.Sub(loop.end, Const(last * lanes));
      AddCopy(Piece(loop, loop.begin, inside.begin), guard.body);
      AddCopy(inside, guard.body);
      AddCopy(Piece(loop, begin, loop.end), guard.body);
    }
    ranges_.Leave();
    if (!peels) return absl::nullopt;
    if (pool_.IsConst(is_long, 1)) return std::move(guard.body);
    Scope scope = ScopeOf(std::move(guard));
    Append(scope, LoopMaker(program_).If(pool_.Sub(Const(1), is_long), [&] {
      return ScopeOf(Piece(loop, loop.begin, pool_.Min(loop.end, Const(least - 1))));
    }));
    return scope;
  }

  // The whole vectors that hold the border, of which `idle` lanes may lie inside.
  static int64_t VectorsIn(int64_t places, int64_t lanes, int64_t idle) {
    return places == 0 ? 0 : (places + idle + lanes - 1) / lanes;
  }

  static Loop Piece(const Loop& loop, IndexId begin, IndexId end) {
    return {loop.var, begin, end, 1, loop.attributes, loop.body};
  }

  void AddCopy(const Loop& piece, Scope& scope) {
    if (ranges_.IsEmpty(piece)) return;
    absl::optional<Loop> copy = FreshCopy(program_, ranges_, piece);
    if (copy) Append(scope, ScopeOf(*std::move(copy)));
  }

  // Whether iterations of the loop, a row, may run again after others: they assign to places that
  // they do not read.
  bool MayRunTwice(const Loop& loop) const {
    if (!loop.attributes.vector || loop.attributes.parallel || loop.step != 1 ||
        !pool_.IsConst(loop.begin, 0))
      return false;
    const Footprint footprint = FootprintOf(program_, loop.body);
    bool assigns = footprint.accumulates.empty();
    VisitItems(loop.body, [&](const Item& item) {
      const auto* statement = item.As<Statement>();
      if (statement == nullptr || !footprint.writes.contains(statement->target.tensor)) return;
      assigns = assigns && !statement->target.masked && statement->needed_if.empty();
    });
    return assigns && absl::c_none_of(footprint.writes, [&](TensorId tensor) {
             return footprint.reads.contains(tensor) || program_[tensor].is_register;
           });
  }

  // nullopt where the loop's index occurs in the range of a masked load in another way.
  absl::optional<Border> BorderOf(const Loop& loop) {
    Border border;
    bool is_known = true;
    LoopsAround inner;
    VisitMasked(loop.body, inner, [&](const Access& access) {
      is_known = is_known && access.conditions.empty();
      for (size_t axis = 0; is_known && axis < access.place.size(); ++axis) {
        if (!HoldsVar(pool_, access.place[axis], loop.var)) continue;
        is_known =
            Reach(access.place[axis], program_[access.tensor].shape[axis], loop, inner, border);
      }
    });
    return is_known ? absl::make_optional(border) : absl::nullopt;
  }

  // Makes the border as wide as the subscript, of an axis of this extent, needs it at all steps of
  // the inner loops. False where that is no number.
  bool Reach(IndexId subscript, IndexId extent, const Loop& loop, const LoopsAround& inner,
             Border& border) {
    IndexId least = subscript, greatest = subscript;
    for (auto it = inner.rbegin(); it != inner.rend(); ++it) {
      const IndexId last = pool_.Sub((*it)->end, Const(1));
      const auto low = ExtremesOver(program_, least, (*it)->var, (*it)->begin, last),
                 high = ExtremesOver(program_, greatest, (*it)->var, (*it)->begin, last);
      if (!low || !high) return false;
      least = low->least;
      greatest = high->greatest;
    }
    const IndexId index = pool_.Var(loop.var);
    const auto before = DifferenceOf(pool_, index, least),
               behind =
                   DifferenceOf(pool_, pool_.Add(greatest, loop.end), pool_.Add(index, extent));
    if (!before || !behind) return false;
    border.before = std::max(border.before, *before);
    border.behind = std::max(border.behind, *behind);
    return true;
  }

  // Whether masked loads of the piece are in range along the axes along which its index moves.
  bool NeedsNoMasks(const Loop& piece) {
    bool inside = true;
    LoopsAround inner;
    ranges_.Enter(piece);
    VisitMasked(piece.body, inner, [&](const Access& access) {
      for (const Loop* loop : inner) ranges_.Enter(*loop);
      for (size_t axis = 0; inside && axis < access.place.size(); ++axis) {
        inside = !HoldsVar(pool_, access.place[axis], piece.var) ||
                 ranges_.InRange(access.place[axis], program_[access.tensor].shape[axis]);
      }
      for (size_t i = 0; i < inner.size(); ++i) ranges_.Leave();
    });
    ranges_.Leave();
    return inside;
  }

  // `inner`: the loops around the load, within the scope.
  template <class F>
  void VisitMasked(const Scope& scope, LoopsAround& inner, F f) const {
    for (const Item& item : scope) {
      if (const auto* loop = item.As<Loop>()) {
        inner.push_back(loop);
        VisitMasked(loop->body, inner, f);
        inner.pop_back();
      }
      const auto* statement = item.As<Statement>();
      if (statement == nullptr) continue;
      VisitLoads(program_, statement->value, [&](ValueId, const Access& access) {
        if (access.masked) f(access);
      });
    }
  }

  Program& program_;
  Ranges ranges_;
  const jit::Isa isa_;
};

}  // namespace

absl::StatusOr<bool> PeelBorders(Program& program, jit::Isa isa) {
  return Peeler(program, isa).Run();
}

}  // namespace nestor::loop
