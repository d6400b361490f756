// To prove that a sum P is not negative, its atoms are eliminated one by one, in the manner of
// Fourier and Motzkin (for integers: Williams, "Fourier-Motzkin elimination extension to integer
// programming problems", 1976; Pugh, "The Omega test", 1991). The atom that no other atom of P
// depends on is eliminated first: P = A*v + B. Where A >= 0 is proven, v is replaced by a lower
// bound, where A <= 0 by an upper one, else P, linear in v, is proven at both ends. All bounds have
// the form c*v >= L or c*v <= L with c > 0:
//
//   loop index      begin <= v <= end - 1
//   q = a / b       b*q >= a - b + 1,  b*q <= a         where b > 0 is proven
//   m = a % b       0 <= m <= b - 1, and m = a - b*(a/b) where a/b occurs too
//   min, max        of either argument, or by cases
//   known F >= 0    F = c*v + G gives c*v >= -G
//
// If c divides A, then A*v >= (A/c)*L. Else c*P >= A*L + c*B, and since P is an integer, P >= 0 if
// that is at least -(c - 1): so q >= 0 follows from a >= 0.
//
// Example: h*$s + r < H for h in [0, (H-R)/$s + 1), r in [0, R). P = H - 1 - h*$s - r; r <= R-1 and
// h <= q with q = (H-R)/$s leave H - R - q*$s; $s*q <= H - R leaves 0.
//
// This is not a decision procedure for Presburger arithmetic: strides and extents are symbols, so
// products of unknowns are the rule, and there are thousands of small queries. The search is cut
// off by a number of steps. It is sound all the same: each step replaces P by something that is no
// greater, up to a positive factor, so a P that is proven is not negative at any values for which
// the facts hold.
#include <algorithm>
#include <tuple>

#include "absl/algorithm/container.h"
#include "loop_ir/ranges_numbers.h"
#include "loop_ir/ranges_proof.h"
#include "uops/index/atom_division.h"

namespace nestor::loop {
namespace {

constexpr int kMaxDepth = 24;  // atoms eliminated in a row
constexpr int kSoon = 4;       // steps

}  // namespace

class ProofSearch {
 public:
  ProofSearch(Facts& facts, int steps) : facts_(facts), pool_(facts.pool_), steps_(steps) {}

  bool Proves(const AtomSum& p) { return Proves(p, 0, 0); }
  // Uses only the own bounds of atoms, no known facts: there are fewer ways to go.
  bool ProvesByOwnBounds(const AtomSum& p) { return Proves(p, ~FactSet{0}, 0); }

 private:
  using FactSet = uint64_t;  // the known facts used on the way here
  static_assert(Facts::kMaxKnown <= 64, "one bit each");

  // Depth first over the choices of an atom and of a bound for it. A known fact is used once on
  // each path, so paths end.
  bool Proves(const AtomSum& p, FactSet used, int depth) {
    if (!p.exact()) return false;
    if (const auto constant = p.Constant()) return *constant >= 0;
    const Limits limits = facts_.LimitsOf(p);
    if (IsEvident(p, limits)) return true;
    if (depth == kMaxDepth || --steps_ < 0) return false;
    if (limits.high && *limits.high < 0) return false;
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
    return ProvesWithBound(atom, true, *parts, used, depth) &&
           ProvesWithBound(atom, false, *parts, used, depth);
  }

  // Looks at limits, or writes each atom as its lower bound plus something that is not
  // negative: then no coefficient may be negative. For a sum of single atoms the latter says no
  // more than its limits.
  bool IsEvident(const AtomSum& p, const Limits& limits) {
    if (IsNonNegative(limits)) return true;
    const size_t longest = p.terms().front().atoms.size();
    if (longest <= 1) return false;
    bool all_from_zero = true;
    for (const AtomSum::Term& term : p.terms()) {
      // After that rewriting, no other term can hold this product.
      if (term.atoms.size() == longest && term.coefficient < 0) return false;
      for (IndexId atom : term.atoms) {
        const Number low = facts_.LimitsOf(atom).low;
        if (!low) return false;
        all_from_zero = all_from_zero && *low == 0;
      }
    }
    return HasNoNegative(all_from_zero ? p : Shifted(p));
  }

  static bool HasNoNegative(const AtomSum& p) {
    return p.exact() &&
           absl::c_all_of(p.terms(), [](const AtomSum::Term& t) { return t.coefficient >= 0; });
  }

  // `p` with each atom replaced by the atom plus its lower bound.
  AtomSum Shifted(const AtomSum& p) {
    AtomSum shifted;
    for (const AtomSum::Term& term : p.terms()) {
      AtomSum product(term.coefficient);
      for (IndexId atom : term.atoms) {
        product = product * (AtomSum::OfAtom(atom) + AtomSum(*facts_.LimitsOf(atom).low));
      }
      shifted = shifted + product;
    }
    return shifted;
  }

  // Evidently.
  bool IsPositive(const AtomSum& scale) {
    if (const auto constant = scale.Constant()) return *constant >= 1;
    const AtomSum less = scale - AtomSum(1);
    return less.exact() && IsEvident(less, facts_.LimitsOf(less));
  }

  // The atom that no other one depends on: the one of the innermost loop, or the deepest; a
  // remainder before its quotient, since it is written with that. If there are only symbols, all of
  // them, the last one first.
  AtomProduct Choices(const AtomSum& p) {
    Rank highest;
    for (const AtomSum::Term& term : p.terms()) {
      for (IndexId atom : term.atoms) {
        if (atom != std::get<IndexId>(highest)) highest = std::max(highest, RankOf(atom));
      }
    }
    const IndexId first = std::get<IndexId>(highest);
    if (pool_[first].kind != IndexKind::kSymbol) return {first};
    AtomProduct atoms = p.Atoms();
    absl::c_sort(atoms, [&](IndexId a, IndexId b) { return RankOf(b) < RankOf(a); });
    return atoms;
  }

  using Rank = std::tuple<int, int, bool, IndexId>;
  Rank RankOf(IndexId atom) {
    return {facts_.LevelOf(atom), pool_.Depth(atom), pool_[atom].kind == IndexKind::kMod, atom};
  }

  // 1: not negative, -1: not positive, 0: unknown.
  int SignOf(const AtomSum& factor, FactSet used, int depth) {
    if (const auto constant = factor.Constant()) return *constant >= 0 ? 1 : -1;
    if (Proves(factor, used, depth + 1)) return 1;
    return Proves(-factor, used, depth + 1) ? -1 : 0;
  }

  // A min that needs a lower bound, a max that needs an upper bound, or either if it needs both.
  bool IsCase(IndexId atom, int sign) const {
    const IndexKind kind = pool_[atom].kind;
    return (kind == IndexKind::kMin && sign >= 0) || (kind == IndexKind::kMax && sign <= 0);
  }

  // The extreme is one of its arguments: P is proven with each that it may be.
  bool ProvesCases(IndexId atom, const AtomSum::Parts& parts, FactSet used, int depth) {
    const IndexNode node = pool_[atom];
    for (IndexId arg : node.args) {
      const bool holds =
          Proves(parts.rest.PlusProduct(parts.factor, facts_.SumOf(arg)), used, depth + 1);
      if (!holds && !IsOther(atom, node.kind, facts_.SumOf(arg), used)) return false;
    }
    return true;
  }

  // Whether the minimum is proven to be less than the argument, the maximum to be greater.
  bool IsOther(IndexId atom, IndexKind kind, const AtomSum& arg, FactSet used) {
    const AtomSum above = AtomSum::OfAtom(atom) - arg;
    return Proves((kind == IndexKind::kMax ? above : -above) - AtomSum(1), used, kMaxDepth / 2);
  }

  // Proves it with the atom replaced by its bound: scale * atom >= limit, or <=; scale > 0.
  bool ProvesReplaced(const AtomSum::Parts& parts, const AtomSum& scale, const AtomSum& limit,
                      FactSet used, int depth) {
    if (scale.Constant() == 1)
      return Proves(parts.rest.PlusProduct(parts.factor, limit), used, depth + 1);
    if (const auto times = ExactQuotient(parts.factor, scale)) {
      return Proves(parts.rest.PlusProduct(*times, limit), used, depth + 1);
    }
    return Proves(parts.factor * limit + scale * parts.rest + scale - AtomSum(1), used, depth + 1);
  }

  // Uses bounds from known facts only where the atom's own do not suffice.
  bool ProvesWithBound(IndexId atom, bool lower, const AtomSum::Parts& parts, FactSet used,
                       int depth) {
    if (ProvesWithOwnBound(atom, lower, parts, used, depth)) return true;
    if (ProvesWithKnown(atom, lower, parts, used, depth)) return true;
    const Limits limits = facts_.LimitsOf(atom);
    const Number number = lower ? limits.low : limits.high;
    return number && ProvesReplaced(parts, 1, *number, used, depth);
  }

  // A loop index by its first or last value; min and max by an argument; a quotient or remainder by
  // the inequalities that define it.
  bool ProvesWithOwnBound(IndexId atom, bool lower, const AtomSum::Parts& parts, FactSet used,
                          int depth) {
    const IndexNode node = pool_[atom];
    switch (node.kind) {
      case IndexKind::kVar: {
        const Facts::Var* v = facts_.FindVar(atom);
        return v != nullptr && ProvesReplaced(parts, 1, lower ? v->first : v->last, used, depth);
      }
      case IndexKind::kMin:
      case IndexKind::kMax: return ProvesWithAny(Guided(node), parts, used, depth);
      case IndexKind::kDiv:
      case IndexKind::kMod: return ProvesWithDivision(node, lower, parts, used, depth);
      default: return false;
    }
  }

  // Proves it with any of the arguments. Each is tried for a few steps first: one that fails can
  // use up all the steps that are left.
  bool ProvesWithAny(const AtomProduct& arguments, const AtomSum::Parts& parts, FactSet used,
                     int depth) {
    const auto proves = [&](IndexId argument) {
      return ProvesReplaced(parts, 1, facts_.SumOf(argument), used, depth);
    };
    const auto proves_soon = [&](IndexId argument) {
      const int before = steps_, few = std::min(before, kSoon);
      steps_ = few;
      const bool good = proves(argument);
      steps_ += before - few;
      return good;
    };
    return absl::c_any_of(arguments, proves_soon) || absl::c_any_of(arguments, proves);
  }

  // The arguments, ordered so that those that are 0 or more than any extent come last: a minimum
  // with one of them says whether a loop runs, and not how far.
  AtomProduct Guided(const IndexNode& node) {
    AtomProduct args(node.args.begin(), node.args.end());
    const auto is_guard = [&](IndexId arg) {
      return absl::c_any_of(facts_.SumOf(arg).terms(), [](const AtomSum::Term& term) {
        return term.coefficient > kMaxExtent || term.coefficient < -kMaxExtent;
      });
    };
    absl::c_stable_partition(args, [&](IndexId arg) { return !is_guard(arg); });
    return args;
  }

  // The bounds of quotients and remainders by a divisor that is proven positive, the likeliest
  // first.
  bool ProvesWithDivision(const IndexNode& node, bool lower, const AtomSum::Parts& parts,
                          FactSet used, int depth) {
    const AtomSum &a = facts_.SumOf(node.args[0]), &b = facts_.SumOf(node.args[1]);
    if (!Proves(b - AtomSum(1), used, kMaxDepth / 2)) return false;
    if (node.kind == IndexKind::kDiv) {
      return ProvesReplaced(parts, b, lower ? a - b + AtomSum(1) : a, used, depth) ||
             ProvesByQuotient(node, lower, parts, used, depth) ||
             ProvesByWholeQuotient(parts, a, b, used, depth);
    }
    const IndexId quotient = pool_.Div(node.args[0], node.args[1]);
    const bool is_small = !lower && Proves(a, used, kMaxDepth / 2);
    if (parts.rest.Holds(quotient) &&
        ProvesReplaced(parts, 1, a - b * AtomSum::OfAtom(quotient), used, depth)) {
      return true;
    }
    if (ProvesReplaced(parts, 1, lower ? AtomSum(0) : b - AtomSum(1), used, depth)) return true;
    return is_small && ProvesReplaced(parts, 1, a, used, depth);
  }

  // a / (b*c) as (a / b) / c, where a / b occurs too.
  bool ProvesByQuotient(const IndexNode& node, bool lower, const AtomSum::Parts& parts,
                        FactSet used, int depth) {
    const Number divisor = pool_.ConstValue(node.args[1]);
    if (!divisor) return false;
    return absl::c_any_of(parts.rest.Atoms(), [&](IndexId atom) {
      const IndexNode& other = pool_[atom];
      if (other.kind != IndexKind::kDiv || other.args[0] != node.args[0]) return false;
      const Number b = pool_.ConstValue(other.args[1]);
      if (!b || *b <= 0 || *b >= *divisor || *divisor % *b != 0) return false;
      const int64_t c = *divisor / *b;
      return ProvesReplaced(parts, c, AtomSum::OfAtom(atom) - AtomSum(lower ? c - 1 : 0), used,
                            depth);
    });
  }

  // f*q + G with q = a / b and G >= g: f*q >= -g where q is at least -g/f rounded up (at most, for
  // f < 0, rounded down), which bounds a. The bound above loses b - 1 of a.
  bool ProvesByWholeQuotient(const AtomSum::Parts& parts, const AtomSum& a, const AtomSum& b,
                             FactSet used, int depth) {
    const Number f = parts.factor.Constant(), g = facts_.LimitsOf(parts.rest).low;
    if (!f || !g || *f == 0) return false;
    const bool lower = *f > 0;
    const Number limit = lower ? Product(Apply(IndexKind::kDiv, g, f), -1)
                               : Apply(IndexKind::kDiv, g, Product(f, -1));
    if (!limit) return false;
    const AtomSum least = a - b * AtomSum(*limit);  // a % b where q is the limit
    return Proves(lower ? least : b - AtomSum(1) - least, used, depth + 1);
  }

  // A known F = c*v + G >= 0: c*v >= -G, and of a negative c: -c*v <= G.
  bool ProvesWithKnown(IndexId atom, bool lower, const AtomSum::Parts& parts, FactSet used,
                       int depth) {
    for (size_t i = 0; i < facts_.known_.size(); ++i) {
      const FactSet bit = FactSet{1} << i;
      if ((used & bit) != 0 || !facts_.known_[i].Holds(atom)) continue;
      const auto known = facts_.known_[i].SplitBy(atom);
      if (!known) continue;
      const AtomSum scale = lower ? known->factor : -known->factor;
      if (!IsPositive(scale)) continue;
      if (ProvesReplaced(parts, scale, lower ? -known->rest : known->rest, used | bit, depth))
        return true;
    }
    return false;
  }

  Facts& facts_;
  IndexPool& pool_;
  int steps_;  // left
};

// Cheap attempts first: a known sum, then the atoms' own bounds, then the search. What is known is
// found late by a search, among all others; and one for what is known to be false uses up its steps.
bool Facts::Proves(const AtomSum& sum, int steps) {
  if (KnownLeast(sum).value_or(-1) >= 0) return true;
  if (IsKnownNegative(sum)) return false;
  const bool in_full = steps >= kSteps && !known_.empty();
  return (in_full && ProofSearch(*this, kOwnSteps).ProvesByOwnBounds(sum)) ||
         ProofSearch(*this, steps).Proves(sum);
}

}  // namespace nestor::loop
