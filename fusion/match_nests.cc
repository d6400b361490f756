// When two nests may be fused, and whether that pays: the legality of fusion and interchange
// (Kennedy and McKinley, "Maximizing loop parallelism and improving data locality via loop fusion
// and distribution", 1993), with dependence distances of zero only. A dependence from one nest to
// the other that stays within one iteration of the fused loops is kept; any other prevents the
// fusion of that loop.
//
// For each loop of the earlier band, outermost first, the loop of the later one is looked for that
// has the same range and along which all values pass within one iteration; if there are several,
// the one that moves the most accesses alike. The order of the shared loops is the earlier band's,
// or else the later one's if that lets more loops be shared; pairs are given up, innermost first,
// until both bands may be permuted to it. Example, t passed from left to right:
//
//   for i { for j { t[i, j] = .. } }     for j { for i { .. = t[i, j] } }
//
// matches i with i, j with j, and interchanges the loops on the right.
//
// Only bare loop indices are compared: t[i + 1] is not passed within an iteration of i unless it is
// written as t[i + 1], too, and the loops that lowering and substitution make run over the axes of
// the produced tensor.
#include "fusion/match_nests.h"

#include <algorithm>

#include "fusion/steps.h"
#include "uops/mutant.h"

namespace nestor::loop {
namespace {

bool IsChange(const NestAccess& access) { return access.kind != AccessKind::kRead; }

// ---- Permutation of a band

// Reductions whose result does not depend on the order of its terms.
bool IsExact(ReduceOp op, DType type) {
  switch (op) {
    case ReduceOp::kMax:
    case ReduceOp::kMin:
    case ReduceOp::kAny:
    case ReduceOp::kAll: return true;
    case ReduceOp::kSum:
    case ReduceOp::kProd: return !IsFloat(type);
    case ReduceOp::kArgmax:
    case ReduceOp::kArgmin: return false;
  }
  return false;
}

// All that the nest does to the tensor is to accumulate into it, in one exact way.
bool IsFreelyAccumulated(const Program& program, const Item& item, const Nest& nest,
                         TensorId tensor) {
  const auto accesses = nest.AccessesOf(tensor);
  if (std::any_of(accesses.begin(), accesses.end(), [](const NestAccess& access) {
        return access.kind != AccessKind::kAccumulate;
      })) {
    return false;
  }
  absl::optional<ReduceOp> op;
  bool same = true;
  VisitItems(item.As<Loop>()->body, [&](const Item& inner) {
    const auto* statement = inner.As<Statement>();
    if (statement == nullptr || statement->target.tensor != tensor) return;
    same = same && (!op || op == statement->op);
    op = statement->op;
  });
  return same && op && IsExact(*op, program[tensor].type);
}

// The index walks one axis of the tensor in every access: whatever other loops do,
// iterations of this one stay apart.
bool IsWalked(const Program& program, const Nest& nest, TensorId tensor, int32_t var) {
  const auto accesses = nest.AccessesOf(tensor);
  for (size_t axis = 0; axis < accesses[0].place.size(); ++axis) {
    if (std::all_of(accesses.begin(), accesses.end(), [&](const NestAccess& access) {
          return program.pool.VarValue(access.place[axis]) == var;
        })) {
      return true;
    }
  }
  return false;
}

// True where moving the loop past others of its band might change a result. It is not enough that
// its iterations are independent within one iteration of the loops around it: u[a + b] is another
// element in each iteration of b, yet a and b may not be interchanged.
bool KeepsOrder(const Program& program, const Item& item, const Nest& nest, int32_t var) {
  return std::any_of(nest.touches.begin(), nest.touches.end(), [&](const Touch& touch) {
    return touch.changes && !IsWalked(program, nest, touch.tensor, var) &&
           !IsFreelyAccumulated(program, item, nest, touch.tensor);
  });
}

class Band {
 public:
  Band(const Program& program, const Item& item, const Nest& nest)
      : program_(program), item_(item), nest_(nest) {}

  // Whether the loops may run in the order `first`, then the others as they are;
  // `contiguous`: with the innermost along memory where it was.
  bool MayBegin(const std::vector<int>& first, bool contiguous) const {
    std::vector<int> order = first;
    for (int i = 0; i < static_cast<int>(nest_.band.size()); ++i) {
      if (std::find(first.begin(), first.end(), i) == first.end()) order.push_back(i);
    }
    if (std::is_sorted(order.begin(), order.end())) return true;
    if (NESTOR_MUTANT("pivot_check_skipped")) return true;
    return IsRectangular() && (!contiguous || KeepsContiguous(order)) && KeepsDependences(order);
  }

 private:
  // Only then may the loops be put in any order with the bounds that they have.
  bool IsRectangular() const {
    for (const LoopHead& head : nest_.band) {
      for (const LoopHead& outer : nest_.band) {
        if (HoldsVar(program_.pool, head.begin, outer.var) ||
            HoldsVar(program_.pool, head.end, outer.var))
          return false;
      }
    }
    return true;
  }

  // An innermost loop along the last axis of a matrix stays innermost.
  bool KeepsContiguous(const std::vector<int>& order) const {
    const int last = static_cast<int>(order.size()) - 1;
    if (order.back() == last) return true;
    return std::none_of(
        nest_.accesses.begin(), nest_.accesses.end(), [&](const NestAccess& access) {
          return access.place.size() >= 2 &&
                 program_.pool.VarValue(access.place.back()) == nest_.band[last].var;
        });
  }

  // Loops that carry a dependence must stay in their order among each other; others may go
  // anywhere.
  bool KeepsDependences(const std::vector<int>& order) const {
    std::vector<int> carried;
    if (keeps_.empty()) {
      for (const LoopHead& head : nest_.band)
        keeps_.push_back(KeepsOrder(program_, item_, nest_, head.var));
    }
    for (int i : order) {
      if (keeps_[i]) carried.push_back(i);
    }
    return std::is_sorted(carried.begin(), carried.end()) ||
           NESTOR_MUTANT("permutation_ignores_order");
  }

  const Program& program_;
  const Item& item_;
  const Nest& nest_;
  mutable std::vector<bool> keeps_;  // by loop: whether it keeps its order; filled when asked
};

// ---- Matching

class Matcher {
 public:
  Matcher(const Program& program, const Item& earlier_item, const Nest& earlier,
          const Item& later_item, const Nest& later)
      : program_(program), earlier_(earlier), later_(later),
        earlier_band_(program, earlier_item, earlier), later_band_(program, later_item, later) {}

  // As many loops as match are shared; then those are given up that would make the merged nest
  // wrong.
  absl::optional<NestMatch> Run() {
    FindCommon();
    Pair();
    const std::vector<std::pair<int, int>> pairs = match_.shared;
    GiveUpIllegal();
    if (match_.shared.size() < pairs.size()) TryOrderOfLater(pairs);
    if (match_.shared.empty()) return absl::nullopt;
    match_.gain = Gain();
    return std::move(match_);
  }

 private:
  struct Common {
    absl::Span<const NestAccess> earlier, later;
    bool conflict;
  };

  // The tensors that both touch, and whether one of the nests changes them.
  void FindCommon() {
    const bool earlier_is_smaller = earlier_.touches.size() < later_.touches.size();
    const Nest& smaller = earlier_is_smaller ? earlier_ : later_;
    const Nest& larger = earlier_is_smaller ? later_ : earlier_;
    CountSteps(smaller.touches.size());
    for (const Touch& touch : smaller.touches) {
      const Touch* other = larger.Find(touch.tensor);
      if (other == nullptr) continue;
      const bool conflict = touch.changes || other->changes;
      common_.push_back(
          {earlier_.AccessesOf(touch.tensor), later_.AccessesOf(touch.tensor), conflict});
      if (conflict) match_.relation = Relation::kValues;
    }
  }

  // Both places have the bare index of their loop at one axis.
  bool Alike(absl::Span<const IndexId> x, int32_t a, absl::Span<const IndexId> y, int32_t b) const {
    for (size_t axis = 0; axis < x.size(); ++axis) {
      if (program_.pool.VarValue(x[axis]) == a && program_.pool.VarValue(y[axis]) == b) return true;
    }
    return false;
  }

  // Every value is passed within one iteration, loop a being one with loop b.
  bool IsLegal(int32_t a, int32_t b) const {
    for (const Common& common : common_) {
      if (!common.conflict) continue;
      for (const NestAccess& x : common.earlier) {
        for (const NestAccess& y : common.later) {
          if (NESTOR_MUTANT("merge_across_iterations")) continue;
          if ((IsChange(x) || IsChange(y)) && !Alike(x.place, a, y.place, b)) return false;
        }
      }
    }
    return true;
  }

  bool WalkAlike(const Common& common, int32_t a, int32_t b) const {
    return std::any_of(common.earlier.begin(), common.earlier.end(), [&](const NestAccess& x) {
      return std::any_of(common.later.begin(), common.later.end(),
                         [&](const NestAccess& y) { return Alike(x.place, a, y.place, b); });
    });
  }

  // The number of tensors that the two loops walk alike.
  int Score(int32_t a, int32_t b) const {
    return static_cast<int>(
        std::count_if(common_.begin(), common_.end(),
                      [&](const Common& common) { return WalkAlike(common, a, b); }));
  }

  // Greedy, from the earlier band's outermost loop inwards; each loop of the later band is taken
  // once.
  void Pair() {
    std::vector<bool> taken(later_.band.size());
    int total = 0;
    for (size_t i = 0; i < earlier_.band.size(); ++i) {
      int best = -1, best_score = -1;
      for (size_t j = 0; j < later_.band.size(); ++j) {
        const bool assumed = NESTOR_MUTANT("equal_dimensions_assumed") &&
                             program_.pool[earlier_.band[i].end].kind == IndexKind::kSymbol &&
                             program_.pool[later_.band[j].end].kind == IndexKind::kSymbol;
        if (taken[j] || !(assumed || SameRange(earlier_.band[i], later_.band[j]))) continue;
        const int32_t a = earlier_.band[i].var, b = later_.band[j].var;
        const int score = Score(a, b);
        if (score > best_score && IsLegal(a, b)) best = static_cast<int>(j), best_score = score;
      }
      if (best < 0) continue;
      taken[best] = true;
      total += best_score;
      match_.shared.emplace_back(static_cast<int>(i), best);
      scores_.push_back(best_score);
    }
    if (match_.relation == Relation::kNone && total > 0) match_.relation = Relation::kReads;
    if (match_.relation == Relation::kReads) KeepScored();
  }

  // Where only reads are shared, a loop that moves none of them alike is left out, unless all loops
  // are matched.
  void KeepScored() {
    if (IsWhole()) return;
    std::vector<std::pair<int, int>> kept;
    for (size_t i = 0; i < scores_.size(); ++i) {
      if (scores_[i] > 0) kept.push_back(match_.shared[i]);
    }
    match_.shared = std::move(kept);
  }

  // Removes pairs, innermost first, until the rest is legal and pays.
  void GiveUpIllegal() {
    while (!match_.shared.empty() && !(IsProfitable() && IsOrderLegal())) match_.shared.pop_back();
  }

  // The shared loops in the order of the later nest, if more of them can then be shared.
  void TryOrderOfLater(std::vector<std::pair<int, int>> pairs) {
    std::sort(pairs.begin(), pairs.end(),
              [](const auto& a, const auto& b) { return a.second < b.second; });
    std::swap(match_.shared, pairs);
    in_order_of_later_ = true;
    GiveUpIllegal();
    if (match_.shared.size() <= pairs.size()) std::swap(match_.shared, pairs);
  }

  bool IsWhole() const {
    return match_.shared.size() == earlier_.band.size() &&
           match_.shared.size() == later_.band.size();
  }

  // The shared loops come first in both nests, in one order.
  bool IsOrderLegal() const {
    std::vector<int> first, second;
    for (const auto& [i, j] : match_.shared) {
      first.push_back(i);
      second.push_back(j);
    }
    // A tensor whose values are all passed on need not be stored: that gains more than
    // contiguous order.
    const bool contiguous =
        match_.relation != Relation::kValues || !IsWhole() || in_order_of_later_;
    return earlier_band_.MayBegin(first, contiguous) && later_band_.MayBegin(second, contiguous);
  }

  // ---- Profit

  bool IsProfitable() const {
    const bool products = earlier_.sums_product && later_.sums_product;
    if (match_.relation == Relation::kNone && (products || !IsWhole())) return false;
    if (!earlier_.contraction && !later_.contraction) return true;
    return match_.relation == Relation::kValues && PassesRows();
  }

  // The number of axes of the greatest tensor that both walk alike, and so need to walk only once.
  int Gain() const {
    size_t gain = 0;
    for (const Common& common : common_) {
      const bool alike =
          std::any_of(match_.shared.begin(), match_.shared.end(), [&](const auto& pair) {
            return WalkAlike(common, earlier_.band[pair.first].var, later_.band[pair.second].var);
          });
      if (alike) gain = std::max(gain, common.earlier[0].place.size());
    }
    return static_cast<int>(gain);
  }

  // All that the nests pass each other is, within the shared loops, at most a row.
  bool PassesRows() const {
    for (const Common& common : common_) {
      if (!common.conflict) continue;
      for (const NestAccess& access : common.earlier) {
        if (UnsharedRank(access) > 1) return false;
      }
    }
    return true;
  }

  // The axes along which loops of the earlier nest that are not shared move.
  int UnsharedRank(const NestAccess& access) const {
    return static_cast<int>(std::count_if(access.place.begin(), access.place.end(), [&](IndexId e) {
      std::vector<int64_t> vars;
      CollectVars(program_.pool, e, vars);
      return std::any_of(vars.begin(), vars.end(),
                         [&](int64_t var) { return IsOwn(var) && !IsShared(var); });
    }));
  }

  bool IsOwn(int64_t var) const {
    return std::find(earlier_.vars.begin(), earlier_.vars.end(), var) != earlier_.vars.end();
  }

  bool IsShared(int64_t var) const {
    return std::any_of(match_.shared.begin(), match_.shared.end(),
                       [&](const auto& pair) { return earlier_.band[pair.first].var == var; });
  }

  const Program& program_;
  const Nest& earlier_;
  const Nest& later_;
  const Band earlier_band_, later_band_;
  std::vector<Common> common_;
  NestMatch match_;
  std::vector<int> scores_;  // of match_.shared, before any was given up
  bool in_order_of_later_ = false;
};

}  // namespace

absl::optional<NestMatch> MatchNests(const Program& program, const Item& earlier_item,
                                     const Nest& earlier, const Item& later_item,
                                     const Nest& later) {
  return Matcher(program, earlier_item, earlier, later_item, later).Run();
}

}  // namespace nestor::loop
