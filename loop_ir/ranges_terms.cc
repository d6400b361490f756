// The order of terms is a graded lexicographic one, which multiplication
// preserves: so a product of a sorted sum with one term is sorted, and division
// by leading terms ends.
#include "loop_ir/ranges_terms.h"

#include <algorithm>
#include <limits>

#include "uops/invariant.h"

namespace nestor::loop {
namespace {

// Long sums are left alone: proofs about them cost too much.
constexpr size_t kMaxTerms = 64;

// Negative where `a` comes first.
int Compare(const AtomProduct& a, const AtomProduct& b) {
  if (a.size() != b.size()) return a.size() > b.size() ? -1 : 1;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] != b[i]) return a[i] < b[i] ? -1 : 1;
  }
  return 0;
}

AtomProduct Product(const AtomProduct& a, const AtomProduct& b) {
  if (a.empty()) return b;
  if (b.empty()) return a;
  AtomProduct product(a.size() + b.size());
  std::merge(a.begin(), a.end(), b.begin(), b.end(), product.begin());
  return product;
}

// a / b as products; nullopt where b does not divide a.
absl::optional<AtomProduct> Without(const AtomProduct& a, const AtomProduct& b) {
  if (!std::includes(a.begin(), a.end(), b.begin(), b.end())) return absl::nullopt;
  AtomProduct rest(a.size() - b.size());
  std::set_difference(a.begin(), a.end(), b.begin(), b.end(), rest.begin());
  return rest;
}

}  // namespace

AtomSum::AtomSum(int64_t constant) {
  if (constant != 0) terms_.push_back({{}, constant});
}

AtomSum AtomSum::OfAtom(IndexId atom) { return OfTerm({{atom}, 1}); }

AtomSum AtomSum::OfTerm(Term term) {
  AtomSum sum;
  if (term.coefficient != 0) sum.terms_.push_back(std::move(term));
  return sum;
}

AtomSum AtomSum::Inexact() {
  AtomSum sum;
  sum.exact_ = false;
  return sum;
}

AtomSum AtomSum::Of(const IndexPool& pool, IndexId e) {
  const IndexNode& node = pool[e];
  if (node.kind == IndexKind::kConst) return AtomSum(node.value);
  if (node.kind == IndexKind::kAdd) return Of(pool, node.args[0]) + Of(pool, node.args[1]);
  if (node.kind == IndexKind::kMul) return Of(pool, node.args[0]) * Of(pool, node.args[1]);
  return OfAtom(e);
}

absl::optional<int64_t> AtomSum::Constant() const {
  if (!exact_ || terms_.size() > 1) return absl::nullopt;
  if (terms_.empty()) return 0;
  if (!terms_[0].atoms.empty()) return absl::nullopt;
  return terms_[0].coefficient;
}

int64_t AtomSum::ConstantTerm() const {
  return terms_.empty() || !terms_.back().atoms.empty() ? 0 : terms_.back().coefficient;
}

// a + sign*b, in one pass: most sums are differences.
AtomSum AtomSum::Merged(const AtomSum& a, const AtomSum& b, int64_t sign) {
  if (!a.exact_ || !b.exact_ || a.terms_.size() + b.terms_.size() > kMaxTerms) return Inexact();
  AtomSum sum;
  sum.terms_.reserve(a.terms_.size() + b.terms_.size());
  auto x = a.terms_.begin(), y = b.terms_.begin();
  while (x != a.terms_.end() || y != b.terms_.end()) {
    const int order = x == a.terms_.end() ? 1 : y == b.terms_.end() ? -1 : Compare(x->atoms, y->atoms);
    if (order < 0) {
      sum.terms_.push_back(*x++);
      continue;
    }
    const auto by = CheckedApply(IndexKind::kMul, sign, y->coefficient);
    const auto c = by && order == 0 ? CheckedApply(IndexKind::kAdd, x->coefficient, *by) : by;
    if (!c) return Inexact();
    if (*c != 0) sum.terms_.push_back({y->atoms, *c});
    ++y;
    if (order == 0) ++x;
  }
  return sum;
}

AtomSum operator+(const AtomSum& a, const AtomSum& b) { return AtomSum::Merged(a, b, 1); }
AtomSum operator-(const AtomSum& a, const AtomSum& b) { return AtomSum::Merged(a, b, -1); }
AtomSum operator-(const AtomSum& a) { return AtomSum::Merged({}, a, -1); }

AtomSum AtomSum::Times(const Term& by) const {
  AtomSum product;
  product.terms_.reserve(terms_.size());
  for (const Term& term : terms_) {
    const auto c = CheckedApply(IndexKind::kMul, by.coefficient, term.coefficient);
    if (!c) return Inexact();
    product.terms_.push_back({Product(by.atoms, term.atoms), *c});
  }
  return product;
}

AtomSum operator*(const AtomSum& a, const AtomSum& b) {
  if (!a.exact_ || !b.exact_) return AtomSum::Inexact();
  if (a.terms_.size() == 1) return b.Times(a.terms_[0]);
  if (b.terms_.size() == 1) return a.Times(b.terms_[0]);
  AtomSum sum;
  for (const AtomSum::Term& x : a.terms_) sum = sum + b.Times(x);
  return sum;
}

std::pair<AtomSum, AtomSum> AtomSum::DividedBy(const AtomSum& divisor) const {
  if (!exact_ || !divisor.exact_) return {Inexact(), Inexact()};
  AtomSum quotient, remainder, rest = *this;
  const Term& lead = divisor.terms_.front();
  for (size_t steps = 0; rest.exact_ && !rest.terms_.empty(); ++steps) {
    const Term first = rest.terms_.front();
    const auto atoms = Without(first.atoms, lead.atoms);
    // -2^63 / -1 has no quotient.
    const bool divides = atoms && lead.coefficient != std::numeric_limits<int64_t>::min() &&
                         first.coefficient != std::numeric_limits<int64_t>::min() &&
                         first.coefficient % lead.coefficient == 0;
    const AtomSum part = OfTerm(divides ? Term{*atoms, first.coefficient / lead.coefficient} : first);
    rest = rest - (divides ? part * divisor : part);
    (divides ? quotient : remainder) = (divides ? quotient : remainder) + part;
    if (steps == kMaxTerms) return {Inexact(), Inexact()};
  }
  if (!rest.exact_) return {Inexact(), Inexact()};
  return {std::move(quotient), std::move(remainder)};
}

absl::optional<AtomSum> AtomSum::ExactQuotient(const AtomSum& divisor) const {
  if (divisor == AtomSum(1)) return *this;
  auto [quotient, remainder] = DividedBy(divisor);
  if (!remainder.IsZero() || !quotient.exact_) return absl::nullopt;
  return std::move(quotient);
}

absl::optional<AtomSum::Parts> AtomSum::SplitBy(IndexId atom) const {
  Parts parts;
  parts.factor.exact_ = parts.rest.exact_ = exact_;
  for (const Term& term : terms_) {
    const auto at = std::find(term.atoms.begin(), term.atoms.end(), atom);
    if (at == term.atoms.end()) {
      parts.rest.terms_.push_back(term);
      continue;
    }
    Term without = term;
    without.atoms.erase(without.atoms.begin() + (at - term.atoms.begin()));
    if (std::binary_search(without.atoms.begin(), without.atoms.end(), atom)) return absl::nullopt;
    // Dividing all terms by one atom keeps their order.
    parts.factor.terms_.push_back(std::move(without));
  }
  return parts;
}

bool AtomSum::Holds(IndexId atom) const {
  return std::any_of(terms_.begin(), terms_.end(), [&](const Term& term) {
    return std::find(term.atoms.begin(), term.atoms.end(), atom) != term.atoms.end();
  });
}

AtomProduct AtomSum::Atoms() const {
  AtomProduct atoms;
  for (const Term& term : terms_) atoms.insert(atoms.end(), term.atoms.begin(), term.atoms.end());
  std::sort(atoms.begin(), atoms.end());
  atoms.erase(std::unique(atoms.begin(), atoms.end()), atoms.end());
  return atoms;
}

IndexId AtomSum::Build(IndexPool& pool) const {
  NESTOR_CHECK(exact_, "an inexact sum has no expression");
  IndexId sum = pool.Const(0);
  for (const Term& term : terms_) {
    IndexId product = pool.Const(term.coefficient);
    for (IndexId atom : term.atoms) product = pool.Mul(product, atom);
    sum = pool.Add(sum, product);
  }
  return sum;
}

}  // namespace nestor::loop
