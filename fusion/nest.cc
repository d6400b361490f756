// A summary of an item, so that merging need not walk nests for each pair that it looks at. One
// walk over an item collects its accesses with the loops around each, leaving out tensors that are
// declared in it; the rest follows from that list. Lists are sorted by tensor, so that two nests
// are compared in time linear in their tensors, and the summary of a merged nest is made from the
// two (JoinedNest).
#include "fusion/nest.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/hash/hash.h"
#include "fusion/steps.h"
#include "loop_ir/perfect_nest.h"
#include "uops/mutant.h"

namespace nestor::loop {
namespace {

// Accesses by their number in a list, equal where the accesses are.
struct AccessHash {
  const std::vector<NestAccess>* accesses;
  size_t operator()(size_t i) const {
    const NestAccess& access = (*accesses)[i];
    return absl::HashOf(access.tensor, access.kind, absl::MakeConstSpan(access.place));
  }
};
struct AccessEqual {
  const std::vector<NestAccess>* accesses;
  bool operator()(size_t i, size_t j) const { return (*accesses)[i] == (*accesses)[j]; }
};

std::vector<int32_t> VarsOf(const Loop& loop) {
  std::vector<int32_t> vars = {loop.var};
  VisitItems(loop.body, [&](const Item& item) {
    if (const Loop* inner = item.As<Loop>()) vars.push_back(inner->var);
  });
  return vars;
}

// Whether each tensor is read or changed, by the accesses, which are in order.
std::vector<Touch> TouchesOf(absl::Span<const NestAccess> accesses) {
  std::vector<Touch> touches;
  for (const NestAccess& access : accesses) {
    if (touches.empty() || touches.back().tensor != access.tensor)
      touches.push_back({access.tensor});
    Touch& touch = touches.back();
    touch.reads |= access.kind == AccessKind::kRead;
    touch.changes |= access.kind != AccessKind::kRead;
  }
  return touches;
}

// The accesses, which are in order, to one tensor.
absl::Span<const NestAccess> OfTensor(absl::Span<const NestAccess> accesses, TensorId tensor) {
  const auto begin =
      std::lower_bound(accesses.begin(), accesses.end(), tensor,
                       [](const NestAccess& a, TensorId id) { return a.tensor.value < id.value; });
  auto end = begin;
  while (end != accesses.end() && end->tensor == tensor) ++end;
  return accesses.subspan(begin - accesses.begin(), end - begin);
}

// The accesses of both nests in order; for each tensor, those of the earlier nest, then those that
// only the later one has.
std::vector<NestAccess> JoinedAccesses(absl::Span<const NestAccess> earlier,
                                       absl::Span<const NestAccess> later,
                                       absl::FunctionRef<IndexId(IndexId)> rename) {
  CountSteps(earlier.size() + later.size());
  std::vector<NestAccess> joined;
  joined.reserve(earlier.size() + later.size());
  auto next = earlier.begin();
  for (NestAccess access : later) {
    for (; next != earlier.end() && next->tensor.value <= access.tensor.value; ++next)
      joined.push_back(*next);
    for (IndexId& e : access.place) e = rename(e);
    const auto known = OfTensor(joined, access.tensor);
    if (std::find(known.begin(), known.end(), access) == known.end())
      joined.push_back(std::move(access));
  }
  joined.insert(joined.end(), next, earlier.end());
  return joined;
}

class Collector {
 public:
  explicit Collector(const Program& program)
      : program_(program), known_(0, AccessHash{&nest_.accesses}, AccessEqual{&nest_.accesses}) {}
  Collector(const Collector&) = delete;
  Collector& operator=(const Collector&) = delete;

  // Accesses are collected in the order of the program, and sorted by tensor in the end.
  Nest Run(const Item& item) {
    Walk(item);
    if (const Loop* loop = item.As<Loop>()) {
      nest_.band = HeadsOf(*loop);
      nest_.vars = VarsOf(*loop);
    }
    auto& accesses = nest_.accesses;
    accesses.erase(
        std::remove_if(accesses.begin(), accesses.end(),
                       [&](const NestAccess& a) { return declared_.contains(a.tensor.value); }),
        accesses.end());
    std::stable_sort(
        accesses.begin(), accesses.end(),
        [](const NestAccess& a, const NestAccess& b) { return a.tensor.value < b.tensor.value; });
    nest_.touches = TouchesOf(accesses);
    return std::move(nest_);
  }

 private:
  // Equal accesses are kept once: unrolled programs repeat them by the thousand.
  void Walk(const Item& item) {
    if (const auto* declaration = item.As<Declaration>()) {
      declared_[declaration->tensor.value] = vars_.size();
    }
    VisitAccesses(program_, item,
                  [&](TensorId tensor, absl::Span<const IndexId> place, AccessKind kind) {
                    CountSteps(1);
                    nest_.accesses.push_back({tensor, {place.begin(), place.end()}, kind});
                    if (!known_.insert(nest_.accesses.size() - 1).second) nest_.accesses.pop_back();
                  });
    if (const auto* statement = item.As<Statement>()) {
      nest_.contraction = nest_.contraction || IsContraction(*statement);
      nest_.sums_product = nest_.sums_product || SumsProduct(*statement);
      NoteFactors(*statement);
    }
    const Loop* loop = item.As<Loop>();
    if (loop == nullptr) return;
    vars_.push_back(loop->var);
    for (const Item& inner : loop->body) Walk(inner);
    vars_.pop_back();
  }

  // ---- Contractions

  // A set of the loops around: by depth, whether each is in it.
  using LoopSet = absl::InlinedVector<bool, 8>;

  // The loops that move the place; `rank`: along how many axes.
  LoopSet LoopsOf(absl::Span<const IndexId> place, int* rank) const {
    LoopSet loops(vars_.size(), false);
    *rank = 0;
    for (IndexId e : place) {
      bool moves = false;
      for (size_t i = 0; i < vars_.size(); ++i) {
        if (!HoldsVar(program_.pool, e, vars_[i])) continue;
        loops[i] = moves = true;
      }
      *rank += moves;
    }
    return loops;
  }

  // The loops that an accumulation's result lives across; it sums over the others.
  LoopSet KeptBy(const Statement& statement) const {
    int rank = 0;
    LoopSet kept = LoopsOf(statement.target.place, &rank);
    const auto declared = declared_.find(statement.target.tensor.value);
    const size_t depth = declared == declared_.end() ? 0 : declared->second;
    std::fill(kept.begin(), kept.begin() + static_cast<int64_t>(std::min(depth, kept.size())),
              true);
    return kept;
  }

  // An operand of a value: the loops that move its place, and the number of axes that they move
  // it along.
  struct Factor {
    LoopSet loops;
    int rank;
  };

  // Adds the factor of a load; if the tensor was computed in the nest, as a product that is summed
  // in loops of its own is, adds the operands that it was computed from.
  void AddFactors(const Access& access, std::vector<Factor>& factors) const {
    const auto computed = factors_.find(access.tensor.value);
    if (computed == factors_.end()) {
      Factor factor;
      factor.loops = LoopsOf(access.place, &factor.rank);
      factors.push_back(std::move(factor));
      return;
    }
    for (const AxesOfFactor& of : computed->second) {
      int rank = 0;
      IndexList place;
      for (size_t axis = 0; axis < access.place.size(); ++axis) {
        if (of.moves[axis]) place.push_back(access.place[axis]);
      }
      factors.push_back({LoopsOf(place, &rank), of.rank});
    }
  }

  std::vector<Factor> FactorsOf(const Statement& statement) const {
    std::vector<Factor> factors;
    VisitLoads(program_, statement.value,
               [&](ValueId, const Access& access) { AddFactors(access, factors); });
    return factors;
  }

  // Remembers, for a product that is stored in many dimensions before it is summed, which axes come
  // from which operand.
  void NoteFactors(const Statement& statement) {
    const Access& target = statement.target;
    if (statement.op || target.place.size() < kRankOfProduct) return;
    const std::vector<Factor> factors = FactorsOf(statement);
    if (factors.size() > kMostFactors) return;
    std::vector<AxesOfFactor>& known = factors_[target.tensor.value];
    known.clear();
    for (const Factor& factor : factors) {
      AxesOfFactor of{{}, factor.rank};
      for (const IndexId e : target.place) {
        int rank = 0;
        const LoopSet loops = LoopsOf({e}, &rank);
        bool moves = false;
        for (size_t i = 0; i < loops.size(); ++i) moves = moves || (loops[i] && factor.loops[i]);
        of.moves.push_back(moves);
      }
      const auto is_same = [&](const AxesOfFactor& other) {
        return other.moves == of.moves && other.rank == of.rank;
      };
      if (std::none_of(known.begin(), known.end(), is_same)) known.push_back(std::move(of));
    }
  }

  bool SumsProduct(const Statement& statement) const {
    if (statement.op != ReduceOp::kSum) return false;
    bool found = false;
    VisitValues(program_, statement.value, [&](ValueId, const Value& value) {
      const auto* apply = absl::get_if<ApplyValue>(&value.node);
      if (found || apply == nullptr || apply->op != ScalarOp::kMul) return;
      const auto left = MatricesIn(apply->args[0]), right = MatricesIn(apply->args[1]);
      found = absl::c_any_of(left, [&](TensorId tensor) {
        return absl::c_any_of(right, [&](TensorId other) { return other != tensor; });
      });
    });
    return found;
  }

  // The tensors of two axes or more that the value loads.
  absl::InlinedVector<TensorId, 4> MatricesIn(ValueId value) const {
    absl::InlinedVector<TensorId, 4> tensors;
    VisitLoads(program_, value, [&](ValueId, const Access& access) {
      if (access.place.size() >= 2) tensors.push_back(access.tensor);
    });
    return tensors;
  }

  // Whether an operand of two axes or more moves along a loop that is summed over, and stays along
  // a loop that the result has: then it is read again and again.
  bool IsContraction(const Statement& statement) const {
    if (!statement.op) return false;
    const LoopSet kept = KeptBy(statement);
    if (std::find(kept.begin(), kept.end(), false) == kept.end()) return false;
    for (const Factor& factor : FactorsOf(statement)) {
      bool reduced = false, misses_kept = false;
      for (size_t i = 0; i < kept.size(); ++i) {
        reduced |= factor.loops[i] && !kept[i];
        misses_kept |= kept[i] && !factor.loops[i];
      }
      if (factor.rank >= 2 && reduced && misses_kept) return true;
    }
    return false;
  }

  // By axis of a tensor: whether it moves an operand of an element; `rank`: how many axes of its
  // own the operand has.
  struct AxesOfFactor {
    absl::InlinedVector<bool, 8> moves;
    int rank;
  };
  // The rank of a product of two matrices before it is summed, at a step of a recurrence (elsewhere
  // substitution has left none), and the most operands of a product.
  static constexpr size_t kRankOfProduct = 4, kMostFactors = 4;

  const Program& program_;
  Nest nest_;
  std::vector<int32_t> vars_;                                        // of the loops around
  absl::flat_hash_map<int32_t, size_t> declared_;                    // depth, by tensor
  absl::flat_hash_map<int32_t, std::vector<AxesOfFactor>> factors_;  // by tensor
  absl::flat_hash_set<size_t, AccessHash, AccessEqual> known_;       // numbers of nest_.accesses
};

}  // namespace

const Touch* Nest::Find(TensorId tensor) const {
  const auto it =
      std::lower_bound(touches.begin(), touches.end(), tensor,
                       [](const Touch& t, TensorId id) { return t.tensor.value < id.value; });
  return it == touches.end() || it->tensor != tensor ? nullptr : &*it;
}

absl::Span<const NestAccess> Nest::AccessesOf(TensorId tensor) const {
  return OfTensor(accesses, tensor);
}

Nest NestOf(const Program& program, const Item& item) { return Collector(program).Run(item); }

// The facts that a new collection of the joined loops would find, in less time.
Nest JoinedNest(const Loop& joined, const Nest& earlier, const Nest& later,
                absl::FunctionRef<IndexId(IndexId)> rename) {
  Nest nest;
  nest.band = HeadsOf(joined);
  nest.vars = VarsOf(joined);
  nest.accesses = JoinedAccesses(earlier.accesses, later.accesses, rename);
  nest.touches = TouchesOf(nest.accesses);
  nest.contraction = earlier.contraction || later.contraction;
  nest.sums_product = earlier.sums_product || later.sums_product;
  return nest;
}

// Whether the order of the two matters: both touch a tensor that one of them changes (Bernstein's
// conditions, 1966).
bool Conflict(const Nest& a, const Nest& b) {
  const Nest& smaller = a.touches.size() < b.touches.size() ? a : b;
  const Nest& larger = a.touches.size() < b.touches.size() ? b : a;
  CountSteps(smaller.touches.size());
  return std::any_of(smaller.touches.begin(), smaller.touches.end(), [&](const Touch& touch) {
    const Touch* other = larger.Find(touch.tensor);
    return other != nullptr && (touch.changes || other->changes);
  });
}

// The strongest touch of each tensor counts.
void TouchSet::Add(absl::Span<const Touch> touches) {
  CountSteps(touches.size());
  for (const Touch& touch : touches) {
    const size_t tensor = static_cast<size_t>(touch.tensor.value);
    if (states_.size() <= tensor) states_.resize(tensor + 1, State::kUntouched);
    State& state = states_[tensor];
    if (state == State::kUntouched) added_.push_back(touch.tensor);
    state = std::max(state, touch.changes ? State::kChanged : State::kRead);
  }
}

bool TouchSet::ConflictsWith(absl::Span<const Touch> touches) const {
  if (added_.empty()) return false;
  CountSteps(touches.size());
  return std::any_of(touches.begin(), touches.end(), [&](const Touch& touch) {
    const size_t tensor = static_cast<size_t>(touch.tensor.value);
    const State state = tensor < states_.size() ? states_[tensor] : State::kUntouched;
    return state == State::kChanged || (state == State::kRead && touch.changes);
  });
}

void TouchSet::Clear() {
  for (TensorId tensor : added_) states_[tensor.value] = State::kUntouched;
  added_.clear();
}

// Nests that depend on the first, directly or through others between, move after the last.
absl::optional<std::vector<bool>> MovedBehind(absl::Span<const Nest* const> nests,
                                              TouchSet& scratch) {
  absl::optional<std::vector<bool>> behind(absl::in_place);
  if (nests.size() == 2) return behind;
  scratch.Add(nests.front()->touches);
  for (const Nest* nest : nests.subspan(1, nests.size() - 2)) {
    const bool moves =
        !NESTOR_MUTANT("merge_right_across_dependence") && scratch.ConflictsWith(nest->touches);
    if (moves && Conflict(*nest, *nests.back()) && !NESTOR_MUTANT("merge_left_across_dependence")) {
      behind.reset();
      break;
    }
    behind->push_back(moves);
    if (moves) scratch.Add(nest->touches);
  }
  scratch.Clear();
  return behind;
}

std::vector<LoopHead> HeadsOf(const Loop& outermost) {
  std::vector<LoopHead> heads;
  for (const Loop* loop : BandOf(outermost))
    heads.push_back({loop->var, loop->begin, loop->end, loop->step});
  return heads;
}

Scope Around(absl::Span<const LoopHead> heads, Scope body) {
  for (size_t i = heads.size(); i-- > 0;)
    body =
        ScopeOf({heads[i].var, heads[i].begin, heads[i].end, heads[i].step, {}, std::move(body)});
  return body;
}

}  // namespace nestor::loop
