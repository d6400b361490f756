// To prove that a sum P is not negative, its atoms are eliminated one by one, in
// the manner of Fourier and Motzkin. The atom that no other atom of P depends on
// goes first: P = A*v + B. Where A >= 0 is proven, v is replaced by a lower bound,
// where A <= 0 by an upper one, else P, linear in v, is proven at both ends. All
// bounds have the form c*v >= L or c*v <= L with c > 0:
//
//   loop index      begin <= v <= end - 1
//   q = a / b       b*q >= a - b + 1,  b*q <= a         where b > 0 is proven
//   m = a % b       0 <= m <= b - 1, and m = a - b*(a/b) where a/b occurs too
//   min, max        of either argument, or by cases
//   known F >= 0    F = c*v + G gives c*v >= -G
//
// If c divides A, then A*v >= (A/c)*L. Else c*P >= A*L + c*B, and since P is an
// integer, P >= 0 if that is at least -(c - 1): so q >= 0 follows from a >= 0.
//
// Example: h*$s + r < H for h in [0, (H-R)/$s + 1), r in [0, R). P = H - 1 - h*$s
// - r; r <= R-1 and h <= q with q = (H-R)/$s leave H - R - q*$s; $s*q <= H - R
// leaves 0.
//
// Not a decision procedure for Presburger arithmetic: strides and extents are
// symbols, so products of unknowns are the rule, and there are thousands of small
// queries. The search is cut off by a number of steps.
#include "loop_ir/ranges_proof.h"

#include <algorithm>
#include <limits>
#include <tuple>

#include "absl/types/span.h"

namespace nestor::loop {
namespace {

constexpr int kMaxDepth = 24;       // atoms eliminated in a row
constexpr size_t kMaxFacts = 64;    // beyond, facts are not recorded
constexpr int kMaxConsequences = 3; // divisions eliminated from a fact

using Number = absl::optional<int64_t>;

Number Apply(IndexKind kind, Number a, Number b) {
  if (!a || !b) return absl::nullopt;
  return CheckedApply(kind, *a, *b);
}

Interval Exactly(int64_t value) { return {value, value}; }

Interval Plus(const Interval& a, const Interval& b) {
  return {Apply(IndexKind::kAdd, a.low, b.low), Apply(IndexKind::kAdd, a.high, b.high)};
}

bool IsNonNegative(const Interval& a) { return a.low && *a.low >= 0; }

// The hull of the operation at the four corners; unbounded where one is missing.
Interval Corners(IndexKind kind, const Interval& a, const Interval& b) {
  Interval hull;
  bool first = true;
  for (const Number& x : {a.low, a.high}) {
    for (const Number& y : {b.low, b.high}) {
      const Number value = Apply(kind, x, y);
      if (!value) return Interval();
      hull.low = first ? value : std::min(hull.low, value);
      hull.high = first ? value : std::max(hull.high, value);
      first = false;
    }
  }
  return hull;
}

Interval Times(const Interval& a, const Interval& b) {
  if (!IsNonNegative(a) || !IsNonNegative(b)) return Corners(IndexKind::kMul, a, b);
  return {Apply(IndexKind::kMul, a.low, b.low), Apply(IndexKind::kMul, a.high, b.high)};
}

Interval Scaled(const Interval& a, int64_t by) {
  const Number low = Apply(IndexKind::kMul, a.low, by), high = Apply(IndexKind::kMul, a.high, by);
  return by < 0 ? Interval{high, low} : Interval{low, high};
}

// For a divisor of at least 1.
Interval Quotient(const Interval& a, const Interval& b) {
  Interval result;
  if (a.low) result.low = *a.low >= 0 ? (b.high ? Apply(IndexKind::kDiv, a.low, b.high) : Number(0))
                                      : Apply(IndexKind::kDiv, a.low, b.low);
  if (a.high) result.high = *a.high >= 0 ? Apply(IndexKind::kDiv, a.high, b.low)
                                         : (b.high ? Apply(IndexKind::kDiv, a.high, b.high) : Number(-1));
  return result;
}

Interval Remainder(const Interval& a, const Interval& b) {
  const Number high = Apply(IndexKind::kAdd, b.high, -1);
  const bool small = IsNonNegative(a) && a.high && (!high || *a.high < *high);
  return {0, small ? a.high : high};
}

Interval Least(const Interval& a, const Interval& b) {
  Interval result{Apply(IndexKind::kMin, a.low, b.low), a.high ? a.high : b.high};
  if (a.high && b.high) result.high = std::min(*a.high, *b.high);
  return result;
}

// Behind the first term.
bool RestIsConstant(const AtomSum& sum) {
  return sum.terms().size() == 1 || (sum.terms().size() == 2 && sum.terms()[1].atoms.empty());
}

Interval Negative(const Interval& a) { return Scaled(a, -1); }

}  // namespace

// ---- Facts

IndexId Facts::Substituted(IndexId e) {
  if (substitutions_.empty()) return e;
  return CopyIndex(pool_, e, pool_,
                   [&](const IndexNode& node, absl::Span<const IndexId>) -> absl::optional<IndexId> {
                     if (node.kind != IndexKind::kSymbol) return absl::nullopt;
                     const IndexId symbol = pool_.Make(node.kind, node.value, {});
                     for (const auto& [from, to] : substitutions_) {
                       if (from == symbol) return to;
                     }
                     return absl::nullopt;
                   });
}

void Facts::Substitute(IndexId symbol, IndexId by) {
  const size_t before = substitutions_.size();
  substitutions_.push_back({symbol, Substituted(by)});
  for (size_t i = 0; i < before; ++i) {
    const IndexId to = Substituted(substitutions_[i].second);
    substitutions_[i].second = to;
  }
  sums_.clear();
}

const AtomSum& Facts::SumOf(IndexId e) {
  const auto it = sums_.find(e);
  if (it != sums_.end()) return it->second;
  const bool usable = pool_.IsAffine(e) && !IsCondition(pool_[e].kind);
  AtomSum sum = usable ? AtomSum::Of(pool_, Substituted(e)) : AtomSum::Inexact();
  return sums_.emplace(e, std::move(sum)).first->second;
}

void Facts::AddVar(int64_t var, const AtomSum& first, const AtomSum& last) {
  vars_.push_back({var, first, last});
  Tighten(pool_.Var(var), {IntervalOf(first).low, IntervalOf(last).high});
  Changed();
}

const Facts::Var* Facts::FindVar(IndexId atom) const {
  const int64_t var = pool_.VarValue(atom);
  for (const Var& v : vars_) {
    if (v.var == var) return &v;
  }
  return nullptr;
}

int Facts::LevelOf(IndexId atom) {
  if (!pool_.HasVar(atom)) return 0;
  const auto [it, inserted] = vars_in_.try_emplace(atom);
  if (inserted) CollectVars(pool_, atom, it->second);
  int level = 0;
  for (size_t i = 0; i < vars_.size(); ++i) {
    if (std::binary_search(it->second.begin(), it->second.end(), vars_[i].var)) level = static_cast<int>(i) + 1;
  }
  return level;
}

void Facts::Tighten(IndexId atom, Interval by) {
  const Interval old = intervals_[atom];
  Interval next = old;
  if (by.low && (!next.low || *by.low > *next.low)) next.low = by.low;
  if (by.high && (!next.high || *by.high < *next.high)) next.high = by.high;
  if (next.low == old.low && next.high == old.high) return;
  overwritten_.push_back({atom, old});
  intervals_[atom] = next;
  Changed();
}

// c*v + k >= 0 bounds v; anything else is kept, with what follows from it.
void Facts::AddNonNegative(const AtomSum& sum) {
  AddConsequences(sum, 0);
}

void Facts::AddConsequences(const AtomSum& sum, int depth) {
  if (!sum.exact() || sum.Constant() || known_.size() >= kMaxFacts || Proves(sum, kFewSteps)) return;
  const AtomSum::Term& first = sum.terms().front();
  const bool alone = first.atoms.size() == 1 && RestIsConstant(sum);
  if (alone && first.coefficient != std::numeric_limits<int64_t>::min()) {
    // v >= -floor(k/c), or of a negative c, v <= floor(k/-c).
    const int64_t k = sum.ConstantTerm(), c = first.coefficient;
    if (c > 0) Tighten(first.atoms[0], {Apply(IndexKind::kMul, CheckedApply(IndexKind::kDiv, k, c), -1), {}});
    if (c < 0) Tighten(first.atoms[0], {{}, CheckedApply(IndexKind::kDiv, k, -c)});
  }
  if (!alone) known_.push_back(sum);
  AddFactors(sum);
  Changed();
  if (depth == kMaxConsequences) return;
  for (IndexId atom : sum.Atoms()) {
    if (pool_[atom].args.empty()) continue;
    const IndexNode node = pool_[atom];
    const auto parts = sum.SplitBy(atom);
    const Number factor = parts ? parts->factor.Constant() : absl::nullopt;
    if (!factor) continue;
    const bool up = *factor > 0;  // an upper bound of the atom bounds the sum from above
    if (node.kind == IndexKind::kDiv && ProvesPositive(node.args[1])) {
      const AtomSum a = SumOf(node.args[0]), b = SumOf(node.args[1]);
      AddConsequences(parts->factor * (up ? a : a - b + AtomSum(1)) + b * parts->rest, depth + 1);
    } else if (node.kind == IndexKind::kMod && up && ProvesPositive(node.args[1]) && Proves(SumOf(node.args[0]), kFewSteps)) {
      AddConsequences(parts->factor * SumOf(node.args[0]) + parts->rest, depth + 1);
    } else if (node.kind == (up ? IndexKind::kMin : IndexKind::kMax)) {
      for (IndexId arg : node.args) AddConsequences(parts->factor * SumOf(arg) + parts->rest, depth + 1);
    } else if (node.kind == (up ? IndexKind::kMax : IndexKind::kMin)) {
      // What one of them does not reach the other does.
      for (size_t i : {0, 1}) {
        const Number other = (parts->factor * SumOf(node.args[1 - i]) + parts->rest).Constant();
        if (other && *other < 0) AddConsequences(parts->factor * SumOf(node.args[i]) + parts->rest, depth + 1);
      }
    }
  }
}

// c*v*w >= k with c, k > 0: of factors that are not negative, none is zero.
void Facts::AddFactors(const AtomSum& sum) {
  const AtomSum::Term& first = sum.terms().front();
  if (first.atoms.size() < 2 || first.coefficient < 0 || !RestIsConstant(sum) || sum.ConstantTerm() >= 0) return;
  const bool signs_known = std::all_of(first.atoms.begin(), first.atoms.end(),
                                       [&](IndexId atom) { return IsNonNegative(IntervalOf(atom)); });
  for (IndexId atom : first.atoms) {
    if (signs_known) Tighten(atom, {1, {}});
  }
}

void Facts::Changed() { computed_.clear(); }

void Facts::Restore(const State& state) {
  while (overwritten_.size() > state.intervals) {
    intervals_[overwritten_.back().first] = overwritten_.back().second;
    overwritten_.pop_back();
  }
  known_.resize(state.known);
  while (vars_.size() > state.vars) vars_.pop_back();
  Changed();
}

// ---- Intervals of numbers

Interval Facts::IntervalOf(IndexId atom) {
  if (pool_[atom].args.empty()) {
    const auto stated = intervals_.find(atom);
    return stated == intervals_.end() ? Interval() : stated->second;
  }
  const auto it = computed_.find(atom);
  if (it != computed_.end()) return it->second;
  Interval result = ComputeInterval(atom);
  const auto stated = intervals_.find(atom);
  if (stated != intervals_.end()) {
    const Interval& s = stated->second;
    if (s.low && (!result.low || *s.low > *result.low)) result.low = s.low;
    if (s.high && (!result.high || *s.high < *result.high)) result.high = s.high;
  }
  computed_.emplace(atom, result);
  return result;
}

Interval Facts::ComputeInterval(IndexId atom) {
  const IndexNode node = pool_[atom];
  if (node.kind != IndexKind::kDiv && node.kind != IndexKind::kMod && node.kind != IndexKind::kMin &&
      node.kind != IndexKind::kMax) {
    return Interval();
  }
  const Interval a = KnownIntervalOf(SumOf(node.args[0])), b = KnownIntervalOf(SumOf(node.args[1]));
  if (node.kind == IndexKind::kMin) return Least(a, b);
  if (node.kind == IndexKind::kMax) return Negative(Least(Negative(a), Negative(b)));
  if (!b.low || *b.low < 1) return Interval();
  return node.kind == IndexKind::kDiv ? Quotient(a, b) : Remainder(a, b);
}

Interval Facts::IntervalOf(const AtomSum& sum) {
  if (!sum.exact()) return Interval();
  Interval total = Exactly(0);
  for (const AtomSum::Term& term : sum.terms()) {
    Interval product = Exactly(1);
    for (IndexId atom : term.atoms) product = Times(product, IntervalOf(atom));
    total = Plus(total, Scaled(product, term.coefficient));
  }
  return total;
}

// Also by what is known of the sum as a whole, which intervals of its atoms do not say:
// that W - S + 1 is not negative, say.
Interval Facts::KnownIntervalOf(const AtomSum& sum) {
  Interval interval = IntervalOf(sum);
  if (interval.low || !sum.exact() || sum.terms().size() < 2) return interval;
  for (const AtomSum& known : known_) {
    const auto more = (sum - known).Constant();
    if (more && (!interval.low || *more > *interval.low)) interval.low = *more;
  }
  return interval;
}

// ---- The search

class ProofSearch {
 public:
  ProofSearch(Facts& facts, int steps) : facts_(facts), pool_(facts.pool_), steps_(steps) {}

  bool Proves(const AtomSum& p) { return Proves(p, 0, 0); }

 private:
  using FactSet = uint64_t;  // the known facts used on the way here
  static_assert(kMaxFacts <= 64, "one bit each");

  // scale * v >= limit, or <=; scale > 0.
  struct Bound {
    AtomSum scale, limit;
    FactSet used;
  };

  bool Proves(const AtomSum& p, FactSet used, int depth) {
    if (!p.exact()) return false;
    if (const auto constant = p.Constant()) return *constant >= 0;
    const Interval interval = facts_.IntervalOf(p);
    if (IsEvident(p, interval)) return true;
    if (depth == kMaxDepth || --steps_ < 0) return false;
    if (interval.high && *interval.high < 0) return false;
    for (IndexId atom : Choices(p)) {
      if (ProvesWithout(atom, p, used, depth)) return true;
    }
    return false;
  }

  // `p` >= 0 with the atom eliminated.
  bool ProvesWithout(IndexId atom, const AtomSum& p, FactSet used, int depth) {
    const auto parts = p.SplitBy(atom);
    if (!parts) return false;
    const int sign = SignOf(parts->factor, used, depth);
    if (IsCase(atom, sign)) return ProvesCases(atom, *parts, used, depth);
    if (sign != 0) return ProvesWithBound(atom, sign > 0, *parts, used, depth);
    return ProvesWithBound(atom, true, *parts, used, depth) && ProvesWithBound(atom, false, *parts, used, depth);
  }

  // By intervals, or by writing each atom as its lower bound plus something that
  // is not negative: then no coefficient may be negative. Of a sum of single atoms that
  // says what its interval does.
  bool IsEvident(const AtomSum& p, const Interval& interval) {
    if (IsNonNegative(interval)) return true;
    if (p.terms().front().atoms.size() <= 1) return false;
    AtomSum shifted;
    for (const AtomSum::Term& term : p.terms()) {
      AtomSum product(term.coefficient);
      for (IndexId atom : term.atoms) {
        const Number low = facts_.IntervalOf(atom).low;
        if (!low) return false;
        product = product * (AtomSum::OfAtom(atom) + AtomSum(*low));
      }
      shifted = shifted + product;
    }
    return shifted.exact() && std::all_of(shifted.terms().begin(), shifted.terms().end(),
                                          [](const AtomSum::Term& t) { return t.coefficient >= 0; });
  }

  // Evidently.
  bool IsPositive(const AtomSum& scale) {
    if (const auto constant = scale.Constant()) return *constant >= 1;
    const AtomSum less = scale - AtomSum(1);
    return less.exact() && IsEvident(less, facts_.IntervalOf(less));
  }

  // The atom that no other one depends on: of the innermost loop, the deepest; a remainder
  // before its quotient, as it goes into that. Of symbols alone, any, the last one first.
  AtomProduct Choices(const AtomSum& p) {
    AtomProduct atoms = p.Atoms();
    if (atoms.size() == 1) return atoms;
    const auto rank = [&](IndexId a) {
      return std::make_tuple(facts_.LevelOf(a), pool_.Depth(a), pool_[a].kind == IndexKind::kMod, a.value);
    };
    std::sort(atoms.begin(), atoms.end(), [&](IndexId a, IndexId b) { return rank(a) > rank(b); });
    if (pool_[atoms[0]].kind != IndexKind::kSymbol) atoms.resize(1);
    return atoms;
  }

  // 1: not negative, -1: not positive, 0: unknown.
  int SignOf(const AtomSum& factor, FactSet used, int depth) {
    if (const auto constant = factor.Constant()) return *constant >= 0 ? 1 : -1;
    if (Proves(factor, used, depth + 1)) return 1;
    return Proves(-factor, used, depth + 1) ? -1 : 0;
  }

  // min in want of a lower bound, max of an upper one, either of both.
  bool IsCase(IndexId atom, int sign) const {
    const IndexKind kind = pool_[atom].kind;
    return (kind == IndexKind::kMin && sign >= 0) || (kind == IndexKind::kMax && sign <= 0);
  }

  bool ProvesCases(IndexId atom, const AtomSum::Parts& parts, FactSet used, int depth) {
    const IndexNode node = pool_[atom];
    for (IndexId arg : node.args) {
      const bool holds = Proves(parts.factor * facts_.SumOf(arg) + parts.rest, used, depth + 1);
      if (!holds && !IsOther(atom, node.kind, facts_.SumOf(arg), used)) return false;
    }
    return true;
  }

  // Whether the minimum is proven to be less than the argument, the maximum to be greater.
  bool IsOther(IndexId atom, IndexKind kind, const AtomSum& arg, FactSet used) {
    const AtomSum above = AtomSum::OfAtom(atom) - arg;
    return Proves((kind == IndexKind::kMax ? above : -above) - AtomSum(1), used, kMaxDepth / 2);
  }

  bool ProvesWithSome(const std::vector<Bound>& bounds, const AtomSum::Parts& parts, int depth) {
    for (const Bound& bound : bounds) {
      if (Proves(Replaced(parts, bound), bound.used, depth + 1)) return true;
    }
    return false;
  }

  static AtomSum Replaced(const AtomSum::Parts& parts, const Bound& bound) {
    if (const auto times = parts.factor.ExactQuotient(bound.scale)) return *times * bound.limit + parts.rest;
    return parts.factor * bound.limit + bound.scale * parts.rest + bound.scale - AtomSum(1);
  }

  // Those of known facts only where its own do not do.
  bool ProvesWithBound(IndexId atom, bool lower, const AtomSum::Parts& parts, FactSet used, int depth) {
    std::vector<Bound> bounds;
    AddOwnBounds(atom, lower, parts, used, bounds);
    if (ProvesWithSome(bounds, parts, depth)) return true;
    bounds.clear();
    AddKnownBounds(atom, lower, used, bounds);
    const Interval interval = facts_.IntervalOf(atom);
    if (const Number number = lower ? interval.low : interval.high) bounds.push_back({1, *number, used});
    return ProvesWithSome(bounds, parts, depth);
  }

  void AddOwnBounds(IndexId atom, bool lower, const AtomSum::Parts& parts, FactSet used, std::vector<Bound>& bounds) {
    const IndexNode node = pool_[atom];
    switch (node.kind) {
      case IndexKind::kVar:
        if (const Facts::Var* v = facts_.FindVar(atom)) bounds.push_back({1, lower ? v->first : v->last, used});
        return;
      case IndexKind::kMin:
      case IndexKind::kMax:
        for (IndexId arg : node.args) bounds.push_back({1, facts_.SumOf(arg), used});
        return;
      case IndexKind::kDiv:
      case IndexKind::kMod: break;
      default: return;
    }
    const AtomSum a = facts_.SumOf(node.args[0]), b = facts_.SumOf(node.args[1]);
    if (!Proves(b - AtomSum(1), used, kMaxDepth / 2)) return;
    if (node.kind == IndexKind::kDiv) {
      bounds.push_back({b, lower ? a - b + AtomSum(1) : a, used});
      return;
    }
    const IndexId quotient = pool_.Div(node.args[0], node.args[1]);
    const AtomProduct others = parts.rest.Atoms();
    if (std::binary_search(others.begin(), others.end(), quotient)) {
      bounds.push_back({1, a - b * AtomSum::OfAtom(quotient), used});
    }
    bounds.push_back({1, lower ? AtomSum(0) : b - AtomSum(1), used});
    if (!lower && Proves(a, used, kMaxDepth / 2)) bounds.push_back({1, a, used});
  }

  // A known F = c*v + G >= 0: c*v >= -G, and of a negative c: -c*v <= G.
  void AddKnownBounds(IndexId atom, bool lower, FactSet used, std::vector<Bound>& bounds) {
    for (size_t i = 0; i < facts_.known_.size(); ++i) {
      const FactSet bit = FactSet{1} << i;
      if ((used & bit) != 0 || !facts_.known_[i].Holds(atom)) continue;
      const auto parts = facts_.known_[i].SplitBy(atom);
      if (!parts) continue;
      const AtomSum scale = lower ? parts->factor : -parts->factor;
      if (!IsPositive(scale)) continue;
      bounds.push_back({scale, lower ? -parts->rest : parts->rest, used | bit});
    }
  }

  Facts& facts_;
  IndexPool& pool_;
  int steps_;  // left
};

bool Facts::Proves(const AtomSum& sum, int steps) { return ProofSearch(*this, steps).Proves(sum); }

}  // namespace nestor::loop
