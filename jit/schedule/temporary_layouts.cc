// Which axis of a temporary lies last is free, as nobody outside sees it. The choice is one of
// constraint propagation: first, contractions say which axis they want last, then statements pass
// their wishes on to each other, until no more tensors get one, and last all axes move at once. A
// tensor that two want differently, or that windows slide over elsewhere, keeps its layout; since
// wishes are only ever added, and each tensor gets one, this ends.
//
//   a contraction stores t[k, i, j]  y[k, i, j] = max(t[k, i, j], 0)  another one sums y over k
//     ->  k is last in t (stored) and in y (summed); a statement between passes it on
#include "jit/schedule/temporary_layouts.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "jit/schedule/access_moves.h"
#include "jit/schedule/contraction.h"
#include "jit/schedule/contraction_orientation.h"
#include "jit/schedule/replace_loops.h"
#include "jit/target/lanes.h"
#include "loop_ir/dependence.h"
#include "loop_ir/rewrite.h"

namespace nestor::loop {
namespace {

class Layouts {
 public:
  Layouts(Program& program, jit::Isa isa, const std::vector<bool>& bound)
      : program_(program), pool_(program.pool), isa_(isa), bound_(bound) {}

  // Only a chain of contractions, where one sums what another has stored, gains by another layout;
  // element-wise statements between them must then agree, so the layout spreads until nothing
  // changes.
  bool Run() {
    // Looking for temporaries takes less time than looking for contractions.
    if (!absl::c_linear_search(bound_, true) || absl::c_none_of(program_.tensors, HasAxes))
      return false;
    Look(program_.body);
    const bool is_chain =
        absl::c_any_of(stored_, [&](TensorId tensor) { return summed_.contains(tensor); });
    if (!is_chain) return false;
    for (const Item* statement : others_) KeepWhatWindowsGoOver(*statement);
    for (bool spreads = true; spreads;) {
      spreads = false;
      for (const Item* statement : others_) spreads = Spread(*statement) || spreads;
    }
    return MoveAxes();
  }

 private:
  // ---- What contractions want

  // Contractions are asked as a whole; all other statements are listed.
  void Look(const Scope& scope) {
    for (const Item& item : scope) {
      if (item.As<Statement>() != nullptr) others_.push_back(&item);
      const Loop* loop = item.As<Loop>();
      if (loop == nullptr) continue;
      const absl::optional<Contraction> nest = ContractionOf(program_, *loop);
      if (nest) Ask(*nest);
      else Look(loop->body);
    }
  }

  // Loops that move a bound operand are either sums (its steps) or kernels, if nothing else moves
  // with them. Without a bound operand, all others keep their layout.
  void Ask(const Contraction& nest) {
    std::vector<Access> weights, others;
    for (const auto* operands : {&nest.rows, &nest.columns}) {
      for (const Contraction::Operand& operand : *operands) {
        Access access = AccessOf(program_, operand);
        (IsBound(program_, bound_, access.tensor) ? weights : others).push_back(std::move(access));
      }
    }
    if (weights.empty()) {
      for (const Access& access : others) kept_.insert(access.tensor);
      return;
    }
    const auto moves_any = [&](const std::vector<Access>& accesses, const Loop& loop) {
      return absl::c_any_of(
          accesses, [&](const Access& access) { return DependsOn(program_, access, loop); });
    };
    LoopsAround sides = nest.batch;
    sides.insert(sides.end(), {nest.row, nest.column});
    std::vector<int64_t> sums, kernels;
    for (const Loop* loop : nest.sums) {
      if (moves_any(weights, *loop)) sums.push_back(loop->var);
    }
    for (const Loop* loop : sides) {
      if (moves_any(weights, *loop) && !moves_any(others, *loop)) kernels.push_back(loop->var);
    }
    for (const Access& access : others) {
      if (WantLast(access.tensor, access.place, sums)) summed_.insert(access.tensor);
    }
    for (const Item& item : *nest.core) {
      if (item.As<Statement>() == nullptr) continue;
      VisitAccesses(program_, item,
                    [&](TensorId tensor, absl::Span<const IndexId> place, AccessKind kind) {
                      if (WantLast(tensor, place, kernels) && kind != AccessKind::kRead)
                        stored_.insert(tensor);
                    });
    }
  }

  static bool HasAxes(const TensorInfo& info) {
    return info.storage == Storage::kTemp && !info.is_register && info.shape.size() > 1;
  }

  // Wants the axis of a temporary last whose subscript is one of the bare indices, if there is one
  // such axis. Returns whether there is.
  bool WantLast(TensorId tensor, absl::Span<const IndexId> place, absl::Span<const int64_t> vars) {
    const TensorInfo& info = program_[tensor];
    if (!HasAxes(info)) return false;
    const auto is_last = [&](IndexId e) { return absl::c_linear_search(vars, pool_.VarValue(e)); };
    if (absl::c_count_if(place, is_last) != 1) return false;
    const auto axis = static_cast<size_t>(absl::c_find_if(place, is_last) - place.begin());
    const auto extent = pool_.ConstValue(info.shape[axis]);
    if (extent && *extent < 2 * jit::LanesOf(info.type, isa_)) kept_.insert(tensor);
    if (last_.try_emplace(tensor, axis).first->second != axis) kept_.insert(tensor);
    return true;
  }

  // ---- What other statements want

  void KeepWhatWindowsGoOver(const Item& statement) {
    VisitAccesses(program_, statement,
                  [&](TensorId tensor, absl::Span<const IndexId> place, AccessKind) {
                    if (absl::c_any_of(place, [&](IndexId e) { return IsOfWindow(e); }))
                      kept_.insert(tensor);
                  });
  }

  // Returns whether the wanted axis becomes known for more tensors.
  bool Spread(const Item& statement) {
    const size_t known = last_.size();
    const auto visit = [&](AccessVisitor visitor) { VisitAccesses(program_, statement, visitor); };
    visit([&](TensorId from, absl::Span<const IndexId> place, AccessKind) {
      const auto axis = last_.find(from);
      if (axis == last_.end() || kept_.contains(from)) return;
      const int64_t last = pool_.VarValue(place[axis->second]);
      if (last < 0) return;
      visit([&](TensorId to, absl::Span<const IndexId> other, AccessKind) {
        if (last_.contains(to) || kept_.contains(to)) return;
        WantLast(to, other, {last});
      });
    });
    return last_.size() > known;
  }

  bool IsOfWindow(IndexId e) const {
    absl::flat_hash_set<int64_t> vars;
    VisitIndex(pool_, e, [&](IndexId, const IndexNode& node) {
      if (node.kind == IndexKind::kVar) vars.insert(node.value);
    });
    return vars.size() > 1;
  }

  // ---- What becomes of it

  // [.., axis, .., last] -> [.., .., last, axis], in shapes and in all subscripts.
  bool MoveAxes() {
    const auto stays = [&](const auto& entry) {
      return kept_.contains(entry.first) || entry.second + 1 == program_[entry.first].shape.size();
    };
    absl::erase_if(last_, stays);
    const auto move = [&](IndexList& list, size_t axis) {
      const auto from = list.begin() + static_cast<int64_t>(axis);
      std::rotate(from, from + 1, list.end());
    };
    for (const auto& [tensor, axis] : last_) move(program_[tensor].shape, axis);
    RewritePlaces(program_, program_.body, [&](TensorId tensor, IndexList& place) {
      const auto axis = last_.find(tensor);
      if (axis == last_.end()) return false;
      move(place, axis->second);
      return true;
    });
    return !last_.empty();
  }

  Program& program_;
  IndexPool& pool_;
  const jit::Isa isa_;
  const std::vector<bool>& bound_;
  std::vector<const Item*> others_;                // statements outside of contractions
  absl::flat_hash_map<TensorId, size_t> last_;     // the axis that is wanted last
  absl::flat_hash_set<TensorId> kept_;             // tensors that stay as they are
  absl::flat_hash_set<TensorId> summed_, stored_;  // by contractions
};

}  // namespace

absl::StatusOr<bool> LayOutTemporaries(Program& program, jit::Isa isa,
                                       const std::vector<bool>& bound) {
  return Layouts(program, isa, bound).Run();
}

}  // namespace nestor::loop
