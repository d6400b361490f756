// Rules over affine expressions seen as sums of products (uops/index/atom_sum.h), bottom up. Each
// is given below with its equation and what must be proven; `/` and `%` are floor division and its
// remainder. The table at the end lists them by topic; those about order are in order_rules.h.
//
// A rule may drop a division only if its divisor is proven not to be zero, since
// an access whose place divides by zero is out of bounds. Where the same divisor
// remains nothing needs to be proven about that.
//
// Sums are the hard part: an index that a reshape tore apart is spread over several terms,
//
//   x/21*21 + x/3%7*3        with x/3%7 = x/3 - 7*(x/21)
//   = x/3*3
//
// so a remainder is written out as a - b*(a/b), or a quotient's multiple b*(a/b)
// as a - a%b, where the sum gets cheaper by it. That ends, as costs fall, and
// needs no matching of patterns in sums.
#include "fusion/index_simplify.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/optional.h"
#include "fusion/order_rules.h"
#include "uops/index/atom_division.h"
#include "uops/index/atom_sum.h"

namespace nestor::loop {
namespace {

using Result = absl::optional<IndexId>;

constexpr int kMaxRewrites = 400;  // of one expression; a bound on time, not reached in practice

// The least integer has no absolute value: 1, a divisor of it, is returned.
int64_t AbsoluteOf(int64_t v) {
  if (v == std::numeric_limits<int64_t>::min()) return 1;
  return v < 0 ? -v : v;
}

bool IsLeaf(IndexKind kind) {
  return kind == IndexKind::kConst || kind == IndexKind::kVar || kind == IndexKind::kSymbol;
}

class Simplifier {
 public:
  Simplifier(IndexPool& pool, Ranges& ranges) : pool_(pool), ranges_(ranges) {}

  // Bottom up, and again after each rewrite, until nothing changes or there were too many.
  IndexId Simplify(IndexId e) {
    if (IsLeaf(pool_[e].kind)) return e;
    const auto it = memo_.find(e);
    if (it != memo_.end()) return it->second;
    IndexId result = SimplifyParts(e);
    if (result == e) result = Rewrite(e).value_or(e);
    if (result != e && ++rewrites_ <= kMaxRewrites) result = Simplify(result);
    if (result != e && !MayReplace(e, result)) result = e;
    memo_.insert_or_assign(e, result);
    return result;
  }

 private:
  // a/b or a%b, seen as sums.
  struct Division {
    IndexKind kind;
    IndexId a, b;
    AtomSum dividend, divisor;
  };
  // g, and x + r = dividend with x a multiple of g: x is a sum that g divides
  // where `divides`, else only its value is a multiple of g.
  struct Factoring {
    AtomSum g, x, r;
    bool divides;
  };

  // ---- What a rule must not lose

  // True where `result`, equal to `e` where both have a value, lacks one where `e` does: it still
  // divides by everything that may be zero, or at least by the factor that may. An expression that
  // was not affine, and so allowed to overflow, stays that way.
  bool MayReplace(IndexId e, IndexId result) {
    if (!pool_.IsAffine(e) && pool_.IsAffine(result) && !pool_.ConstValue(result)) return false;
    const std::vector<IndexId> before = DivisorsOf(e);
    if (std::all_of(before.begin(), before.end(), [&](IndexId d) { return ranges_.NonZero(d); }))
      return true;
    const std::vector<IndexId> after = DivisorsOf(result);
    const auto stays = [&](IndexId d) {
      return std::any_of(after.begin(), after.end(),
                         [&](IndexId left) { return d == left || IsFactor(left, d); });
    };
    return std::all_of(before.begin(), before.end(), [&](IndexId d) {
      return ranges_.NonZero(d) || stays(d) || stays(Simplify(d));
    });
  }

  // d = g*left where g != 0.
  bool IsFactor(IndexId left, IndexId d) {
    const AtomSum divisor = AtomSum::Of(pool_, left), dividend = AtomSum::Of(pool_, d);
    if (!divisor.exact() || divisor.IsZero() || !dividend.exact()) return false;
    const auto g = ExactQuotient(dividend, divisor);
    return g && ranges_.NonZero(g->Build(pool_));
  }

  std::vector<IndexId> DivisorsOf(IndexId e) const {
    std::vector<IndexId> divisors;
    VisitIndex(pool_, e, [&](IndexId, const IndexNode& node) {
      const bool divides = node.kind == IndexKind::kDiv || node.kind == IndexKind::kMod;
      if (divides && !pool_.ConstValue(node.args[1])) divisors.push_back(node.args[1]);
    });
    return divisors;
  }

  // ---- Bottom up

  // A sum as a whole, since its terms may cancel; anything else by its operands.
  IndexId SimplifyParts(IndexId e) {
    const IndexNode node = pool_[e];
    const bool is_sum = node.kind == IndexKind::kAdd || node.kind == IndexKind::kMul;
    if (is_sum && pool_.IsAffine(e)) {
      const AtomSum sum = AtomSum::Of(pool_, e);
      if (sum.exact()) return SimplifyAtoms(e, sum);
    }
    IndexList args;
    for (IndexId arg : node.args) args.push_back(Simplify(arg));
    return pool_.Make(node.kind, node.value, args);
  }

  // Atom by atom, as a sum: rebuilding through the pool at each step would take quadratic time.
  IndexId SimplifyAtoms(IndexId e, const AtomSum& sum) {
    AtomSum result;
    bool changed = false;
    for (const AtomSum::Term& term : sum.terms()) {
      AtomSum product(term.coefficient);
      for (IndexId atom : term.atoms) {
        const IndexId simple = Simplify(atom);
        changed |= simple != atom;
        product = product * AtomSum::Of(pool_, simple);
      }
      result = result + product;
    }
    return changed && result.exact() ? result.Build(pool_) : e;
  }

  Result Rewrite(IndexId e);  // by the first rule of the table that applies

  // ---- Quotients and remainders. Where signs are not mentioned, they may be any.

  Division DivisionOf(IndexId e) const {
    const IndexNode& node = pool_[e];
    return {node.kind, node.args[0], node.args[1], AtomSum::Of(pool_, node.args[0]),
            AtomSum::Of(pool_, node.args[1])};
  }

  // a = q*b + r.
  static absl::optional<std::pair<AtomSum, AtomSum>> Divided(const Division& d) {
    if (!d.dividend.exact() || !d.divisor.exact() || d.divisor.IsZero()) return absl::nullopt;
    auto parts = DividedBy(d.dividend, d.divisor);
    if (!parts.first.exact() || !parts.second.exact()) return absl::nullopt;
    return parts;
  }

  // (q*b + r)/b = q + k,  (q*b + r)%b = r - k*b  where k*b <= r < k*b + b.
  Result DecideDivision(IndexId e) {
    const Division d = DivisionOf(e);
    const auto parts = Divided(d);
    if (!parts) return absl::nullopt;
    const auto& [quotient, rest] = *parts;
    if (rest.IsZero() && ranges_.NonZero(d.b))
      return (d.kind == IndexKind::kDiv ? quotient : AtomSum(0)).Build(pool_);
    const auto k = Window(rest, d.divisor);
    if (!k) return absl::nullopt;
    const AtomSum result =
        d.kind == IndexKind::kDiv ? quotient + AtomSum(*k) : rest - AtomSum(*k) * d.divisor;
    if (!result.exact()) return absl::nullopt;
    return result.Build(pool_);
  }

  // The k of -1, 0, 1 with k*b <= r < k*b + b, which says that b > 0.
  absl::optional<int64_t> Window(const AtomSum& rest, const AtomSum& divisor) {
    const AtomSum twice = divisor + divisor, minus = -divisor;
    if (!twice.exact() || !minus.exact()) return absl::nullopt;
    const IndexId r = rest.Build(pool_), b = divisor.Build(pool_);
    if (ranges_.NonNegative(r)) {
      if (ranges_.Less(r, b)) return 0;
      if (ranges_.LessEqual(b, r) && ranges_.Less(r, twice.Build(pool_))) return 1;
    } else if (ranges_.Less(r, pool_.Const(0)) && ranges_.LessEqual(minus.Build(pool_), r)) {
      return -1;
    }
    return absl::nullopt;
  }

  // (q*b + r)/b = q + r/b,  (q*b + r)%b = r%b.
  Result SplitDivision(IndexId e) {
    const Division d = DivisionOf(e);
    const auto parts = Divided(d);
    if (!parts || parts->first.IsZero() || parts->second.IsZero()) return absl::nullopt;
    if (!HasRoom(d.dividend, parts->second)) return absl::nullopt;
    const IndexId rest = parts->second.Build(pool_);
    if (d.kind == IndexKind::kMod) return pool_.Mod(rest, d.b);
    return pool_.Add(parts->first.Build(pool_), pool_.Div(rest, d.b));
  }

  // Whether the rest of a division overflows nowhere that the dividend does not. A division by a
  // sum makes new terms, of the other sign (a*C = a*(C + 1) - a), which need room beside numbers
  // near the ends of int64.
  static bool HasRoom(const AtomSum& dividend, const AtomSum& rest) {
    const AtomSum cancelled = dividend - rest;
    if (cancelled.exact() && cancelled.size() + rest.size() == dividend.size()) return true;
    constexpr int64_t kSmall = int64_t{1} << 32;
    const auto terms = rest.terms();
    return std::all_of(terms.begin(), terms.end(), [](const AtomSum::Term& term) {
      return -kSmall < term.coefficient && term.coefficient < kSmall;
    });
  }

  // (g*x)/(g*y) = x/y,  (g*x)%(g*y) = g*(x%y)  where g != 0.
  // (g*x + r)/(g*y) = x/y,  (g*x + r)%(g*y) = g*(x%y) + r  where 0 <= r < g, y >= 0
  // (y = 0 has no value on either side).
  Result CancelFactor(IndexId e) {
    const Division d = DivisionOf(e);
    if (!d.dividend.exact() || !d.divisor.exact() || d.divisor.terms().size() != 1)
      return absl::nullopt;
    for (const AtomSum::Term& term : d.dividend.terms()) {
      const auto factoring = FactoringBy(CommonFactor(term, d.divisor.terms().front()), d.dividend);
      if (!factoring || !MayCancel(*factoring, d.divisor)) continue;
      const Factoring& f = *factoring;
      const AtomSum scale = f.divides ? f.g : AtomSum(1);
      const auto x = ExactQuotient(f.x, scale), y = ExactQuotient(d.divisor, scale);
      if (!x || !y) continue;
      const IndexId over = pool_.Make(d.kind, 0, {x->Build(pool_), y->Build(pool_)});
      if (d.kind == IndexKind::kDiv) return over;
      return pool_.Add(pool_.Mul(scale.Build(pool_), over), f.r.Build(pool_));
    }
    return absl::nullopt;
  }

  bool MayCancel(const Factoring& f, const AtomSum& divisor) {
    const IndexId g = f.g.Build(pool_), r = f.r.Build(pool_);
    if (f.r.IsZero()) return f.divides && ranges_.NonZero(g);
    const auto y = ExactQuotient(divisor, f.g);
    return y && ranges_.NonNegative(y->Build(pool_)) && ranges_.NonNegative(r) &&
           ranges_.Less(r, g);
  }

  // If its loop's step makes an index a multiple of a number, that counts as a coefficient.
  int64_t MultipleOf(const AtomSum::Term& term) const {
    int64_t multiple = AbsoluteOf(term.coefficient);
    for (IndexId atom : term.atoms) {
      const int64_t var = pool_.VarValue(atom);
      const auto times =
          CheckedApply(IndexKind::kMul, multiple, var < 0 ? 1 : ranges_.MultipleOf(var));
      multiple = times.value_or(multiple);
    }
    return multiple;
  }

  AtomSum CommonFactor(const AtomSum::Term& a, const AtomSum::Term& b) const {
    AtomProduct common;
    std::set_intersection(a.atoms.begin(), a.atoms.end(), b.atoms.begin(), b.atoms.end(),
                          std::back_inserter(common));
    return AtomSum::OfTerm({common, std::gcd(MultipleOf(a), AbsoluteOf(b.coefficient))});
  }

  // dividend = g * x + r, where r collects the terms that g does not divide.
  absl::optional<Factoring> FactoringBy(const AtomSum& g, const AtomSum& dividend) const {
    if (g == AtomSum(1) || g.terms().size() != 1) return absl::nullopt;
    const AtomSum::Term factor = g.terms().front();
    Factoring f{g, AtomSum(0), AtomSum(0), true};
    for (const AtomSum::Term& term : dividend.terms()) {
      const bool has_atoms = std::includes(term.atoms.begin(), term.atoms.end(),
                                           factor.atoms.begin(), factor.atoms.end());
      const bool multiple = has_atoms && MultipleOf(term) % factor.coefficient == 0;
      (multiple ? f.x : f.r) = (multiple ? f.x : f.r) + AtomSum::OfTerm(term);
      f.divides &= !multiple || term.coefficient % factor.coefficient == 0;
    }
    if (!f.x.exact() || !f.r.exact() || f.x.IsZero()) return absl::nullopt;
    return f;
  }

  // (c*x + r)%b = r%b where the loop's step makes c*x a multiple of the constant b.
  Result DropMultiples(IndexId e) {
    const Division d = DivisionOf(e);
    const auto b = d.divisor.Constant();
    if (!b || *b <= 0 || !d.dividend.exact()) return absl::nullopt;
    AtomSum rest;
    for (const AtomSum::Term& term : d.dividend.terms()) {
      if (MultipleOf(term) % *b != 0) rest = rest + AtomSum::OfTerm(term);
    }
    if (!rest.exact() || rest == d.dividend) return absl::nullopt;
    return pool_.Mod(rest.Build(pool_), d.b);
  }

  // (c*(x%m) + r)%b = (c*x + r)%b  where b divides c*m, and m != 0.
  Result DropInnerRemainder(IndexId e) {
    const Division d = DivisionOf(e);
    if (!d.dividend.exact() || !d.divisor.exact() || d.divisor.IsZero()) return absl::nullopt;
    for (IndexId atom : d.dividend.Atoms()) {
      const IndexNode inner = pool_[atom];
      const auto parts = d.dividend.SplitBy(atom);
      if (inner.kind != IndexKind::kMod || !parts) continue;
      const AtomSum moved = parts->factor * AtomSum::Of(pool_, inner.args[1]);
      if (!moved.exact() || !ExactQuotient(moved, d.divisor) || !ranges_.NonZero(inner.args[1]))
        continue;
      const AtomSum dividend = parts->factor * AtomSum::Of(pool_, inner.args[0]) + parts->rest;
      if (dividend.exact()) return pool_.Mod(dividend.Build(pool_), d.b);
    }
    return absl::nullopt;
  }

  // x/m/b = x/(m*b)  where m, b > 0 are constants: a product of symbols might
  // overflow where the two divisions do not.
  Result MergeDivisions(IndexId e) {
    const IndexNode outer = pool_[e], inner = pool_[outer.args[0]];
    if (inner.kind != IndexKind::kDiv) return absl::nullopt;
    const auto m = pool_.ConstValue(inner.args[1]), b = pool_.ConstValue(outer.args[1]);
    if (!m || !b || *m <= 0 || *b <= 0) return absl::nullopt;
    const auto product = CheckedApply(IndexKind::kMul, *m, *b);
    if (!product) return absl::nullopt;
    return pool_.Div(inner.args[0], pool_.Const(*product));
  }

  // ---- Sums

  // f*(a%b) + rest = f*a - f*b*(a/b) + rest  where b != 0, if that is cheaper.
  Result ExpandRemainder(IndexId e) {
    return RewriteSum(
        e, IndexKind::kMod, [&](const AtomSum::Parts& parts, const Division& d) -> Result {
          for (IndexId quotient : Quotients(d, parts.rest)) {
            const AtomSum sum =
                parts.factor * (d.dividend - d.divisor * AtomSum::Of(pool_, quotient)) + parts.rest;
            if (const Result cheaper = IfCheaper(e, sum)) return cheaper;
          }
          return absl::nullopt;
        });
  }

  // f*b*(a/b) + rest = f*a - f*(a%b) + rest  where b != 0, if that is cheaper.
  Result ExpandQuotient(IndexId e) {
    return RewriteSum(
        e, IndexKind::kDiv, [&](const AtomSum::Parts& parts, const Division& d) -> Result {
          const auto factor =
              d.divisor.IsZero() ? absl::nullopt : ExactQuotient(parts.factor, d.divisor);
          if (!factor) return absl::nullopt;
          const IndexId remainder = Simplify(pool_.Mod(d.a, d.b));
          return IfCheaper(e, *factor * (d.dividend - AtomSum::Of(pool_, remainder)) + parts.rest);
        });
  }

  // Tries the rule on each quotient or remainder in the sum, with the factor before it and the
  // rest.
  template <class Rule>
  Result RewriteSum(IndexId e, IndexKind kind, Rule rule) {
    const AtomSum sum = AtomSum::Of(pool_, e);
    if (!sum.exact()) return absl::nullopt;
    for (IndexId atom : sum.Atoms()) {
      if (pool_[atom].kind != kind) continue;
      const auto parts = sum.SplitBy(atom);
      const Division d = DivisionOf(atom);
      if (!parts || !d.dividend.exact() || !d.divisor.exact() || !ranges_.NonZero(d.b)) continue;
      if (const Result result = rule(*parts, d)) return result;
    }
    return absl::nullopt;
  }

  // Ways to write a/b: for a = x/c and b > 0 also x/(c*b), where that is there
  // already (elsewhere the product might overflow).
  std::vector<IndexId> Quotients(const Division& d, const AtomSum& rest) {
    std::vector<IndexId> quotients = {Simplify(pool_.Div(d.a, d.b))};
    const IndexNode inner = pool_[d.a];
    if (inner.kind != IndexKind::kDiv || !ranges_.Positive(d.b)) return quotients;
    const IndexId merged = pool_.Div(inner.args[0], pool_.Mul(inner.args[1], d.b));
    const AtomProduct present = rest.Atoms();
    if (std::binary_search(present.begin(), present.end(), merged)) quotients.push_back(merged);
    return quotients;
  }

  Result IfCheaper(IndexId e, const AtomSum& sum) {
    if (!sum.exact()) return absl::nullopt;
    const IndexId result = sum.Build(pool_);
    if (!pool_.IsAffine(result) || CostOf(result) >= CostOf(e)) return absl::nullopt;
    return result;
  }

  // The number of nodes; one that is more than an addition or multiplication counts as ten.
  int CostOf(IndexId e) {
    const IndexNode node = pool_[e];
    int cost =
        IsLeaf(node.kind) || node.kind == IndexKind::kAdd || node.kind == IndexKind::kMul ? 1 : 10;
    for (IndexId arg : node.args) cost += CostOf(arg);
    return cost;
  }

  IndexPool& pool_;
  Ranges& ranges_;
  absl::flat_hash_map<IndexId, IndexId> memo_;
  int rewrites_ = 0;
};

// The first rule that changes something wins. They are sorted by kind, the cheap ones first.
Result Simplifier::Rewrite(IndexId e) {
  using Rule = Result (Simplifier::*)(IndexId);
  using Kinds = std::vector<IndexKind>;
  static const struct {
    Kinds kinds;
    Rule rule;
  } kRules[] = {
      // Quotients and remainders.
      {{IndexKind::kDiv, IndexKind::kMod}, &Simplifier::DecideDivision},
      {{IndexKind::kDiv, IndexKind::kMod}, &Simplifier::SplitDivision},
      {{IndexKind::kMod}, &Simplifier::DropMultiples},
      {{IndexKind::kMod}, &Simplifier::DropInnerRemainder},
      {{IndexKind::kDiv}, &Simplifier::MergeDivisions},
      {{IndexKind::kDiv, IndexKind::kMod}, &Simplifier::CancelFactor},
      // Sums of them.
      {{IndexKind::kAdd, IndexKind::kMul}, &Simplifier::ExpandRemainder},
      {{IndexKind::kAdd, IndexKind::kMul}, &Simplifier::ExpandQuotient},
  };
  const IndexKind kind = pool_[e].kind;
  if (IsCondition(kind)) return RewriteCondition(pool_, ranges_, e);
  if (!pool_.IsAffine(e)) return absl::nullopt;
  if (kind == IndexKind::kMin || kind == IndexKind::kMax) return RewriteExtreme(pool_, ranges_, e);
  for (const auto& [kinds, rule] : kRules) {
    if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end()) continue;
    const Result result = (this->*rule)(e);
    if (result && *result != e) return result;
  }
  return absl::nullopt;
}

}  // namespace

bool IsPlainSum(const IndexPool& pool, IndexId e) {
  const IndexNode& node = pool[e];
  if (node.kind == IndexKind::kAdd || node.kind == IndexKind::kMul) {
    return pool.IsAffine(e) && IsPlainSum(pool, node.args[0]) && IsPlainSum(pool, node.args[1]);
  }
  return IsLeaf(node.kind);
}

IndexId SimplifyIndex(IndexPool& pool, Ranges& ranges, IndexId e) {
  return IsPlainSum(pool, e) ? e : Simplifier(pool, ranges).Simplify(e);
}

}  // namespace nestor::loop
