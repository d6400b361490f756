// Loop interchange. Steps of a scatter depend on each other only where they accumulate into the same
// element; where that may happen in any order, all loops of its perfect nest may change places whose
// bounds do not hold each other's indices.
//
// Along an axis with the subscript j + i*N/3, consecutive j are neighbours in memory; consecutive i
// are not even equally far apart. From the innermost loop outwards, each loop that moves an axis by
// one goes inside of the last one that moves the same axis by a quotient.
#include "jit/schedule/scatter_order.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/types/span.h"
#include "fusion/split_loops.h"
#include "jit/schedule/reordering.h"
#include "jit/schedule/replace_loops.h"
#include "loop_ir/affine.h"
#include "loop_ir/dependence.h"
#include "loop_ir/perfect_nest.h"
#include "uops/index/atom_sum.h"
#include "uops/invariant.h"

namespace nestor::loop {
namespace {

class ScatterOrder {
 public:
  ScatterOrder(Program& program, bool reorders_rounding)
      : program_(program), reorders_rounding_(reorders_rounding) {}

  bool Run() {
    Visit(program_.body);
    return changed_;
  }

 private:
  void Visit(Scope& scope) {
    for (Item& item : scope) {
      auto* loop = item.As<Loop>();
      if (loop == nullptr) continue;
      const Statement* statement = OnlyStatementIn(*loop);
      if (statement == nullptr) Visit(loop->body);
      else if (MayReorder(BandOf(std::as_const(*loop)), *statement)) Reorder(*loop, *statement);
    }
  }

  bool MayReorder(const LoopsAround& band, const Statement& statement) const {
    const TensorInfo& target = program_[statement.target.tensor];
    if (!statement.op || IsArg(*statement.op) || target.storage == Storage::kAccumulator ||
        !loop::MayReorder(StepOp(*statement.op), target.type, reorders_rounding_)) {
      return false;
    }
    const bool bounds_move = absl::c_any_of(band, [&](const Loop* loop) {
      return absl::c_any_of(band, [&](const Loop* other) {
        return BoundsMoveWith(program_.pool, *loop, other->var);
      });
    });
    bool reads_target = false;
    VisitAccesses(program_, Item{statement},
                  [&](TensorId tensor, absl::Span<const IndexId>, AccessKind kind) {
                    reads_target |= kind == AccessKind::kRead && tensor == statement.target.tensor;
                  });
    return !bounds_move && !reads_target;
  }

  void Reorder(Loop& outermost, const Statement& statement) {
    LoopsAround order = BandOf(std::as_const(outermost));
    bool moves = false;
    for (size_t i = order.size(); i-- > 0;) {
      const size_t last = LastJump(statement.target.place, order, i);
      moves |= last > i;
      std::rotate(order.begin() + i, order.begin() + i + 1, order.begin() + last + 1);
    }
    if (!moves) return;
    Scope reordered = Around(order, std::move(CoreOf(outermost)));
    outermost = Loop(std::move(*reordered[0].As<Loop>()));
    changed_ = true;
  }

  // The number of the innermost of these loops that jumps along an axis that loop number `number`
  // moves by one; `number` itself where none inside of it does.
  size_t LastJump(const IndexList& place, absl::Span<const Loop* const> loops,
                  size_t number) const {
    size_t last = number;
    for (const IndexId e : place) {
      if (StrideIn(program_.pool, e, loops[number]->var) != 1) continue;
      for (size_t i = last + 1; i < loops.size(); ++i) {
        if (MovesByQuotient(e, loops[i]->var)) last = i;
      }
    }
    return last;
  }

  bool MovesByQuotient(IndexId e, int32_t var) const {
    const AtomProduct atoms = AtomSum::Of(program_.pool, e).Atoms();
    return absl::c_any_of(atoms, [&](IndexId atom) {
      return program_.pool[atom].kind == IndexKind::kDiv && HoldsVar(program_.pool, atom, var);
    });
  }

  Program& program_;
  const bool reorders_rounding_;
  bool changed_ = false;
};

}  // namespace

absl::StatusOr<bool> ScatterInMemoryOrder(Program& program, const ScatterOrderOptions& options) {
  if (!ScatterOrder(program, options.reorders_rounding).Run()) return false;
  NESTOR_RETURN_IF_ERROR(SplitLoops(program).status());
  return true;
}

}  // namespace nestor::loop
