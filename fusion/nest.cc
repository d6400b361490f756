// One walk over an item collects its accesses with the loops around each, what is
// declared in it left out; the rest follows from that list.
#include "fusion/nest.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "fusion/steps.h"

namespace nestor::fusion {
namespace {

using loop::AccessKind;
using loop::Declaration;
using loop::Item;
using loop::Loop;
using loop::Program;
using loop::Scope;
using loop::Statement;
using loop::TensorId;
using VarSet = absl::flat_hash_set<int32_t>;

class Collector {
 public:
  explicit Collector(const Program& program) : program_(program) {}

  Nest Run(const Item& item) {
    Walk(item);
    if (const Loop* loop = item.As<Loop>()) nest_.band = BandOf(*loop);
    auto& accesses = nest_.accesses;
    accesses.erase(std::remove_if(accesses.begin(), accesses.end(),
                                  [&](const NestAccess& a) { return declared_.contains(a.tensor.value); }),
                   accesses.end());
    std::stable_sort(accesses.begin(), accesses.end(), [](const NestAccess& a, const NestAccess& b) {
      return a.tensor.value < b.tensor.value;
    });
    for (const NestAccess& access : accesses) Add(access);
    return std::move(nest_);
  }

 private:
  void Walk(const Item& item) {
    if (const auto* declaration = item.As<Declaration>()) {
      declared_[declaration->tensor.value] = vars_.size();
    }
    loop::VisitAccesses(program_, item, [&](TensorId tensor, absl::Span<const IndexId> place, AccessKind kind) {
      CountSteps(1);
      IndexList list(place.begin(), place.end());
      if (known_.emplace(tensor, kind, list).second) nest_.accesses.push_back({tensor, std::move(list), kind});
    });
    if (const auto* statement = item.As<Statement>()) {
      nest_.contraction = nest_.contraction || IsContraction(*statement);
    }
    const Loop* loop = item.As<Loop>();
    if (loop == nullptr) return;
    nest_.vars.push_back(loop->var);
    vars_.push_back(loop->var);
    for (const Item& inner : loop->body) Walk(inner);
    vars_.pop_back();
  }

  void Add(const NestAccess& access) {
    if (nest_.touches.empty() || nest_.touches.back().tensor != access.tensor) {
      nest_.touches.push_back({access.tensor});
    }
    Touch& touch = nest_.touches.back();
    touch.reads |= access.kind == AccessKind::kRead;
    touch.changes |= access.kind != AccessKind::kRead;
  }

  // ---- Contractions

  VarSet VarsOf(absl::Span<const IndexId> place, const VarSet& among, int* rank) const {
    VarSet vars;
    *rank = 0;
    for (IndexId e : place) {
      std::vector<int64_t> found;
      CollectVars(program_.pool, e, found);
      bool moves = false;
      for (int64_t v : found) {
        if (!among.contains(static_cast<int32_t>(v))) continue;
        vars.insert(static_cast<int32_t>(v));
        moves = true;
      }
      *rank += moves;
    }
    return vars;
  }

  // The loops that an accumulation's result lives across, and those it sums over.
  void Classify(const Statement& statement, VarSet& kept, VarSet& reduced) const {
    const VarSet all(vars_.begin(), vars_.end());
    int rank = 0;
    kept = VarsOf(statement.target.place, all, &rank);
    const auto declared = declared_.find(statement.target.tensor.value);
    const size_t depth = declared == declared_.end() ? 0 : declared->second;
    for (size_t i = 0; i < vars_.size(); ++i) {
      if (i < depth) kept.insert(vars_[i]);
      else if (!kept.contains(vars_[i])) reduced.insert(vars_[i]);
    }
  }

  bool IsContraction(const Statement& statement) const {
    if (!statement.op) return false;
    VarSet kept, reduced;
    Classify(statement, kept, reduced);
    if (reduced.empty()) return false;
    const VarSet all(vars_.begin(), vars_.end());
    bool found = false;
    loop::VisitValues(program_, statement.value, [&](loop::ValueId, const loop::Value& value) {
      const auto* load = absl::get_if<loop::LoadValue>(&value.node);
      if (load == nullptr) return;
      int rank = 0;
      const VarSet vars = VarsOf(load->access.place, all, &rank);
      const auto in_load = [&](int32_t v) { return vars.contains(v); };
      found = found || (rank >= 2 && std::any_of(reduced.begin(), reduced.end(), in_load) &&
                        !std::all_of(kept.begin(), kept.end(), in_load));
    });
    return found;
  }

  const Program& program_;
  Nest nest_;
  std::vector<int32_t> vars_;                       // of the loops around
  absl::flat_hash_map<int32_t, size_t> declared_;   // depth, by tensor
  absl::flat_hash_set<std::tuple<TensorId, AccessKind, IndexList>> known_;
};

}  // namespace

const Touch* Nest::Find(TensorId tensor) const {
  const auto it = std::lower_bound(touches.begin(), touches.end(), tensor, [](const Touch& t, TensorId id) {
    return t.tensor.value < id.value;
  });
  return it == touches.end() || it->tensor != tensor ? nullptr : &*it;
}

absl::Span<const NestAccess> Nest::AccessesOf(TensorId tensor) const {
  const auto begin = std::lower_bound(accesses.begin(), accesses.end(), tensor, [](const NestAccess& a, TensorId id) {
    return a.tensor.value < id.value;
  });
  auto end = begin;
  while (end != accesses.end() && end->tensor == tensor) ++end;
  return absl::MakeConstSpan(accesses).subspan(begin - accesses.begin(), end - begin);
}

Nest NestOf(const Program& program, const Item& item) { return Collector(program).Run(item); }

void TouchSet::Add(absl::Span<const Touch> touches) {
  CountSteps(touches.size());
  for (const Touch& touch : touches) changed_[touch.tensor] |= touch.changes;
}

bool TouchSet::ConflictsWith(absl::Span<const Touch> touches) const {
  CountSteps(touches.size());
  return std::any_of(touches.begin(), touches.end(), [&](const Touch& touch) {
    const auto it = changed_.find(touch.tensor);
    return it != changed_.end() && (it->second || touch.changes);
  });
}

absl::optional<std::vector<bool>> MovedBehind(absl::Span<const Nest* const> nests) {
  std::vector<bool> behind;
  if (nests.size() == 2) return behind;
  TouchSet moved, needed;
  moved.Add(nests.front()->touches);
  needed.Add(nests.back()->touches);
  for (const Nest* nest : nests.subspan(1, nests.size() - 2)) {
    behind.push_back(moved.ConflictsWith(nest->touches));
    if (!behind.back()) continue;
    if (needed.ConflictsWith(nest->touches)) return absl::nullopt;
    moved.Add(nest->touches);
  }
  return behind;
}

std::vector<LoopHead> BandOf(const Loop& loop) {
  std::vector<LoopHead> band;
  for (const Loop* at = &loop; at != nullptr; at = at->body.size() == 1 ? at->body[0].As<Loop>() : nullptr) {
    band.push_back({at->var, at->begin, at->end, at->step});
  }
  return band;
}

const Scope& CoreOf(const Loop& loop) {
  const Loop* at = &loop;
  while (at->body.size() == 1 && at->body[0].As<Loop>() != nullptr) at = at->body[0].As<Loop>();
  return at->body;
}

Scope& CoreOf(Loop& loop) { return const_cast<Scope&>(CoreOf(static_cast<const Loop&>(loop))); }

Scope Around(absl::Span<const LoopHead> heads, Scope body) {
  for (size_t i = heads.size(); i > 0; --i) {
    const LoopHead& head = heads[i - 1];
    Scope outer;
    outer.push_back(Item{Loop{head.var, head.begin, head.end, head.step, {}, std::move(body)}});
    body = std::move(outer);
  }
  return body;
}

}  // namespace nestor::fusion
