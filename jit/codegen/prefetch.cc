#include "jit/codegen/prefetch.h"

#include <algorithm>

#include "loop_ir/dependence.h"

namespace nestor::jit {
namespace {

using loop::Item;
using loop::Loop;
using loop::Program;
using loop::TensorId;

class Collector {
 public:
  Collector(const Program& program, const Proofs& proofs) : program_(program), proofs_(proofs) {}

  Prefetches Collect() {
    for (const loop::Block& block : program_.blocks) Walk(block.body);
    return std::move(prefetches_);
  }

 private:
  void Walk(const loop::Scope& scope) {
    for (const Item& item : scope) {
      const auto* loop = item.As<Loop>();
      if (loop == nullptr || proofs_.lane_loops.contains(loop->var)) continue;
      LookInto(*loop);
      Walk(loop->body);
    }
  }

  void LookInto(const Loop& around) {
    struct Walks {
      int count = 0;
      int32_t last = -1;
      bool gathered = false;
    };
    absl::flat_hash_map<TensorId, Walks> walks;
    for (const Item& item : around.body) {
      absl::flat_hash_map<TensorId, Walks> here;
      VisitVectorLoops(item, [&](const Loop& loop, TensorId tensor, absl::Span<const IndexId> place) {
        if (WalksRow(loop, tensor, place, around.var)) here[tensor] = {1, loop.var, IsGathered(place, around.var)};
      });
      for (const auto& [tensor, walk] : here) {
        Walks& all = walks[tensor];
        all = {all.count + 1, walk.last, all.gathered || walk.gathered};
      }
    }
    for (const auto& [tensor, walk] : walks) {
      if (walk.count == 1 && !walk.gathered) continue;
      prefetches_.emplace(std::make_pair(walk.last, tensor), RowLoop{around.var, around.step, around.end});
    }
  }

  template <class Visit>
  void VisitVectorLoops(const Item& item, Visit visit) const {
    const auto* loop = item.As<Loop>();
    if (loop == nullptr) return;
    for (const Item& inner : loop->body) {
      VisitVectorLoops(inner, visit);
      if (!proofs_.lane_loops.contains(loop->var)) continue;
      VisitAccesses(program_, inner, [&](TensorId tensor, absl::Span<const IndexId> place, loop::AccessKind kind) {
        if (kind == loop::AccessKind::kRead) visit(*loop, tensor, place);
      });
    }
  }

  // Whether the loop reads a row of an input from its beginning, and the loop around
  // moves from row to row.
  bool WalksRow(const Loop& loop, TensorId tensor, absl::Span<const IndexId> place, int32_t around) const {
    if (program_[tensor].storage != loop::Storage::kInput || place.empty()) return false;
    if (!std::all_of(place.begin(), place.end(), [&](IndexId e) { return IsPlain(e) || IsGather(e); })) return false;
    const auto polynomial = IsPlain(place.back()) ? Polynomial::Of(program_.pool, place.back()) : absl::nullopt;
    if (!polynomial) return false;
    bool along = false;
    for (const Polynomial::Term& term : polynomial->terms()) {
      if (!HoldsAnyVar(term)) return false;
      along |= term.coefficient == 1 && term.atoms.size() == 1 && program_.pool.VarValue(term.atoms[0]) == loop.var;
    }
    return along &&
           std::any_of(place.begin(), place.end(), [&](IndexId e) { return HoldsVar(program_.pool, e, around); });
  }

  bool IsGathered(absl::Span<const IndexId> place, int32_t around) const {
    return std::any_of(place.begin(), place.end(),
                       [&](IndexId e) { return program_.pool.HasLoad(e) && HoldsVar(program_.pool, e, around); });
  }

  bool IsGather(IndexId e) const { return program_.pool.HasLoad(e) && LoadsOnlyInputs(program_, e); }
  bool IsPlain(IndexId e) const { return program_.pool.IsAffine(e) && !program_.pool.HasLoad(e); }

  bool HoldsAnyVar(const Polynomial::Term& term) const {
    return std::any_of(term.atoms.begin(), term.atoms.end(),
                       [&](IndexId atom) { return program_.pool.HasVar(atom); });
  }

  const Program& program_;
  const Proofs& proofs_;
  Prefetches prefetches_;
};

}  // namespace

Prefetches PrefetchesOf(const Program& program, const Proofs& proofs) { return Collector(program, proofs).Collect(); }

}  // namespace nestor::jit
