// Facts and their immediate consequences: those of a fact without its divisions, minima and maxima,
// and limits of numbers. ranges_search.cc searches for proofs.
//
// Each expression that is no sum or product counts as an atom, and each fact is a polynomial over
// atoms that is not negative. Eliminating divisions when a fact is learned keeps searches short:
// from h <= (H - R)/$s follows $s*h <= H - R, which no later search has to find. Limits give
// quick answers for what is bounded by numbers. All of this is undone when a scope is left: facts
// are a stack, and a version says which memos are still valid.
#include "loop_ir/ranges_proof.h"

#include <algorithm>
#include <limits>

#include "absl/algorithm/container.h"
#include "loop_ir/ranges_numbers.h"

namespace nestor::loop {
namespace {

constexpr int kMaxConsequences = 3;  // divisions eliminated from a fact

Number Sum(Number a, Number b) {
  int64_t sum;
  return a && b && !__builtin_add_overflow(*a, *b, &sum) ? Number(sum) : absl::nullopt;
}

Limits Exactly(int64_t value) { return {value, value}; }

Limits Plus(const Limits& a, const Limits& b) { return {Sum(a.low, b.low), Sum(a.high, b.high)}; }

// The hull of the products at the four corners; unbounded where one is missing.
Limits Corners(const Limits& a, const Limits& b) {
  Limits hull;
  bool first = true;
  for (const Number& x : {a.low, a.high}) {
    for (const Number& y : {b.low, b.high}) {
      const Number value = Product(x, y);
      if (!value) return Limits();
      hull.low = first ? value : std::min(hull.low, value);
      hull.high = first ? value : std::max(hull.high, value);
      first = false;
    }
  }
  return hull;
}

Limits Times(const Limits& a, const Limits& b) {
  if (!IsNonNegative(a) || !IsNonNegative(b)) return Corners(a, b);
  return {Product(a.low, b.low), Product(a.high, b.high)};
}

// A negative factor exchanges the ends.
Limits Scaled(const Limits& a, int64_t by) {
  if (by == 1) return a;
  const Number low = Product(a.low, by), high = Product(a.high, by);
  return by < 0 ? Limits{high, low} : Limits{low, high};
}

// For a divisor of at least 1.
Limits Quotient(const Limits& a, const Limits& b) {
  Limits result;
  if (a.low)
    result.low = *a.low >= 0 ? (b.high ? Apply(IndexKind::kDiv, a.low, b.high) : Number(0))
                             : Apply(IndexKind::kDiv, a.low, b.low);
  if (a.high)
    result.high = *a.high >= 0 ? Apply(IndexKind::kDiv, a.high, b.low)
                               : (b.high ? Apply(IndexKind::kDiv, a.high, b.high) : Number(-1));
  return result;
}

// For a divisor of at least 1: [0, b - 1], or up to a where that is smaller.
Limits Remainder(const Limits& a, const Limits& b) {
  const Number high = Apply(IndexKind::kAdd, b.high, -1);
  const bool small = IsNonNegative(a) && a.high && (!high || *a.high < *high);
  return {0, small ? a.high : high};
}

// The interval of min(a, b): not above either upper end, though one of them is unknown.
Limits Least(const Limits& a, const Limits& b) {
  Limits result{Apply(IndexKind::kMin, a.low, b.low), a.high ? a.high : b.high};
  if (a.high && b.high) result.high = std::min(*a.high, *b.high);
  return result;
}

// After the first term.
bool RestIsConstant(const AtomSum& sum) {
  return sum.size() == 1 || (sum.size() == 2 && sum.ConstantTerm() != 0);
}

bool IsProductAndNumber(const AtomSum& sum) {
  return sum.exact() && !sum.Constant() && sum.terms().front().atoms.size() > 1 &&
         RestIsConstant(sum);
}

Limits Negative(const Limits& a) { return Scaled(a, -1); }

}  // namespace

// ---- Facts

// Equalities between dimensions are used by writing one for the other.
IndexId Facts::Substituted(IndexId e) {
  if (substitutions_.empty()) return e;
  return ReplaceLeaves(pool_, e, IndexKind::kSymbol,
                       [&](int64_t number) -> absl::optional<IndexId> {
                         const IndexId symbol = pool_.Make(IndexKind::kSymbol, number, {});
                         for (const auto& [from, to] : substitutions_) {
                           if (from == symbol) return to;
                         }
                         return absl::nullopt;
                       });
}

// Earlier substitutions get the new one applied, so that a single pass replaces everything.
void Facts::Substitute(IndexId symbol, IndexId by) {
  const size_t before = substitutions_.size();
  substitutions_.push_back({symbol, Substituted(by)});
  for (size_t i = 0; i < before; ++i) {
    const IndexId to = Substituted(substitutions_[i].second);
    substitutions_[i].second = to;
  }
  for (Numbers& numbers : numbers_) numbers.sum = -1;
  sums_.clear();
}

Facts::Numbers& Facts::NumbersOf(IndexId e) {
  const size_t i = static_cast<size_t>(e.value);
  if (i >= numbers_.size()) numbers_.resize(pool_.size());
  return numbers_[i];
}

int32_t Facts::NumberOf(IndexId atom) {
  Numbers& numbers = NumbersOf(atom);
  if (numbers.atom < 0) {
    numbers.atom = static_cast<int32_t>(atoms_.size());
    atoms_.emplace_back();
  }
  return numbers.atom;
}

// Made once for each expression; proofs ask for the same ones many times.
const AtomSum& Facts::SumOf(IndexId e) {
  const int32_t known = NumbersOf(e).sum;
  if (known >= 0) return sums_[static_cast<size_t>(known)];
  const bool usable = pool_.IsAffine(e) && !IsCondition(pool_[e].kind);
  AtomSum sum = usable ? AtomSum::Of(pool_, Substituted(e)) : AtomSum::Inexact();
  NumbersOf(e).sum = static_cast<int32_t>(sums_.size());
  return sums_.emplace_back(std::move(sum));
}

void Facts::AddVar(int64_t var, const AtomSum& first, const AtomSum& last) {
  vars_.push_back({var, first, last});
  Tighten(pool_.Var(var), {LimitsOf(first).low, LimitsOf(last).high});
  Changed();
}

const Facts::Var* Facts::FindVar(IndexId atom) const {
  const int64_t var = pool_.VarValue(atom);
  for (const Var& v : vars_) {
    if (v.var == var) return &v;
  }
  return nullptr;
}

// The innermost loop whose index is in the atom. Searches remove inner atoms first.
int Facts::LevelOf(IndexId atom) {
  if (!pool_.HasVar(atom)) return 0;
  Atom& memo = atoms_[static_cast<size_t>(NumberOf(atom))];
  if (memo.level_version == version_) return memo.level;
  if (memo.vars.empty()) CollectVars(pool_, atom, memo.vars);
  size_t level = vars_.size();
  while (level > 0 && !std::binary_search(memo.vars.begin(), memo.vars.end(), vars_[level - 1].var))
    --level;
  memo.level_version = version_;
  return memo.level = static_cast<int>(level);
}

// The old limits are kept for Restore.
void Facts::Tighten(IndexId atom, Limits by) {
  const int32_t number = NumberOf(atom);
  Limits& stated = atoms_[static_cast<size_t>(number)].stated;
  Limits next = stated;
  if (by.low && (!next.low || *by.low > *next.low)) next.low = by.low;
  if (by.high && (!next.high || *by.high < *next.high)) next.high = by.high;
  if (next.low == stated.low && next.high == stated.high) return;
  overwritten_.push_back({number, stated});
  stated = next;
  Changed();
}

// c*v + k >= 0 bounds v; any other fact is kept, with its consequences.
void Facts::AddNonNegative(const AtomSum& sum) { AddConsequences(sum, 0); }

// sum = factor*atom + rest >= 0, with a number for the factor. A quotient, a remainder or an
// extreme is replaced by what bounds it from the side that keeps the fact true; `depth`: how often
// already.
void Facts::AddConsequences(const AtomSum& sum, int depth) {
  // Known facts are not added. A search would recognise more of them, but takes longer than
  // remembering them.
  if (!sum.exact() || sum.Constant() || known_.size() >= kMaxKnown ||
      IsNonNegative(KnownLimitsOf(sum)))
    return;
  const AtomSum::Term first = sum.terms().front();
  const bool alone = first.atoms.size() == 1 && RestIsConstant(sum);
  if (alone && first.coefficient != std::numeric_limits<int64_t>::min()) {
    // v >= -floor(k/c), or if c is negative, v <= floor(k/-c).
    const int64_t k = sum.ConstantTerm(), c = first.coefficient;
    if (c > 0)
      Tighten(first.atoms[0],
              {Apply(IndexKind::kMul, CheckedApply(IndexKind::kDiv, k, c), -1), {}});
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
      const Number least = LimitsOf(atom).low;
      if (up || !least) continue;
      // From v*w - 6*q >= k and q >= 0 follows v*w >= k. Where there is a single atom instead of the
      // product, a search finds this.
      const AtomSum above = parts->factor * AtomSum(*least) + parts->rest;
      if (IsProductAndNumber(above)) AddConsequences(above, depth + 1);
    } else if (node.kind == IndexKind::kMod && up && ProvesPositive(node.args[1]) &&
               Proves(SumOf(node.args[0]), kFewSteps)) {
      AddConsequences(parts->factor * SumOf(node.args[0]) + parts->rest, depth + 1);
    } else if (node.kind == (up ? IndexKind::kMin : IndexKind::kMax)) {
      for (IndexId arg : node.args)
        AddConsequences(parts->factor * SumOf(arg) + parts->rest, depth + 1);
    } else if (node.kind == (up ? IndexKind::kMax : IndexKind::kMin)) {
      // If one argument cannot reach the bound, the other does.
      for (size_t i : {0, 1}) {
        const Number other = LimitsOf(parts->factor * SumOf(node.args[1 - i]) + parts->rest).high;
        if (other && *other < 0)
          AddConsequences(parts->factor * SumOf(node.args[i]) + parts->rest, depth + 1);
      }
    }
  }
}

// c*v*w >= k with c, k > 0: if no factor is negative, none is zero.
void Facts::AddFactors(const AtomSum& sum) {
  const AtomSum::Term first = sum.terms().front();
  if (first.atoms.size() < 2 || first.coefficient < 0 || !RestIsConstant(sum) ||
      sum.ConstantTerm() >= 0)
    return;
  const bool signs_known = std::all_of(first.atoms.begin(), first.atoms.end(),
                                       [&](IndexId atom) { return IsNonNegative(LimitsOf(atom)); });
  for (IndexId atom : first.atoms) {
    if (signs_known) Tighten(atom, {1, {}});
  }
}

// Undoes in reverse order what was stated since `state`, as a scope ends.
void Facts::Restore(const State& state) {
  while (overwritten_.size() > state.limits) {
    atoms_[static_cast<size_t>(overwritten_.back().first)].stated = overwritten_.back().second;
    overwritten_.pop_back();
  }
  known_.resize(state.known);
  while (vars_.size() > state.vars) vars_.pop_back();
  version_ = state.version;
}

// ---- Limits

// The stated interval, met with the one that follows from the atom's parts.
Limits Facts::LimitsOf(IndexId atom) {
  const size_t number = static_cast<size_t>(NumberOf(atom));
  if (pool_[atom].args.empty()) return atoms_[number].stated;
  if (atoms_[number].version == version_) return atoms_[number].limits;
  Limits result = ComputeLimits(atom);
  Atom& memo = atoms_[number];
  const Limits& s = memo.stated;
  if (s.low && (!result.low || *s.low > *result.low)) result.low = s.low;
  if (s.high && (!result.high || *s.high < *result.high)) result.high = s.high;
  memo.limits = result;
  memo.version = version_;
  return result;
}

// From the limits of its arguments; divisors must be positive.
Limits Facts::ComputeLimits(IndexId atom) {
  const IndexNode node = pool_[atom];
  if (node.kind != IndexKind::kDiv && node.kind != IndexKind::kMod &&
      node.kind != IndexKind::kMin && node.kind != IndexKind::kMax) {
    return Limits();
  }
  const Limits a = KnownLimitsOf(SumOf(node.args[0])), b = KnownLimitsOf(SumOf(node.args[1]));
  if (node.kind == IndexKind::kMin) return Least(a, b);
  if (node.kind == IndexKind::kMax) return Negative(Least(Negative(a), Negative(b)));
  if (!b.low || *b.low < 1) return Limits();
  return node.kind == IndexKind::kDiv ? Quotient(a, b) : Remainder(a, b);
}

// Term by term, as if atoms were independent: wide, but quick to find out.
Limits Facts::LimitsOf(const AtomSum& sum) {
  if (!sum.exact()) return Limits();
  Limits total = Exactly(0);
  for (const AtomSum::Term& term : sum.terms()) {
    Limits product = Exactly(1);
    for (IndexId atom : term.atoms) product = Times(product, LimitsOf(atom));
    total = Plus(total, Scaled(product, term.coefficient));
    if (!total.low && !total.high) return total;
  }
  return total;
}

// This also uses facts about the sum as a whole that the limits of its atoms do not give, such
// as that W - S + 1 is not negative.
Limits Facts::KnownLimitsOf(const AtomSum& sum) {
  Limits limits = LimitsOf(sum);
  if (!limits.low) limits.low = KnownLeast(sum);
  return limits;
}

// If known >= 0 was stated, a sum that is larger by a number is at least that number.
Number Facts::KnownLeast(const AtomSum& sum) const {
  Number least;
  if (!sum.exact() || sum.size() < 2) return least;
  for (const AtomSum& known : known_) {
    const Number more = sum.HasProductsOf(known) ? (sum - known).Constant() : absl::nullopt;
    if (more && (!least || *more > *least)) least = *more;
  }
  return least;
}

// If -sum is at least a number above 0.
bool Facts::IsKnownNegative(const AtomSum& sum) const { return KnownLeast(-sum).value_or(0) > 0; }

}  // namespace nestor::loop
