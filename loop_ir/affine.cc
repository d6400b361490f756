// Multivariate polynomials with integer coefficients. The order of terms is a graded lexicographic
// one, which multiplication preserves: so a product of a sorted sum with one term is sorted, and
// division by leading terms ends (Cox, Little and O'Shea, "Ideals, Varieties, and Algorithms", sec.
// 2.2 and 2.3).
//
// Proofs add and subtract sums by the hundred thousand, so a sum is one list of words with room for
// the usual length, and a difference is one merge of two sorted lists.
#include "loop_ir/affine.h"

#include <algorithm>
#include <limits>

#include "absl/algorithm/container.h"
#include "uops/invariant.h"

namespace nestor::loop {
namespace {

// Long sums are left alone: proofs about them cost too much.
constexpr size_t kMaxTerms = 64;

using Factors = absl::Span<const IndexId>;

// Negative where `a` comes first.
int Compare(Factors a, Factors b) {
  if (a.size() != b.size()) return a.size() > b.size() ? -1 : 1;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] != b[i]) return a[i] < b[i] ? -1 : 1;
  }
  return 0;
}

// a / b as products; nullopt where b does not divide a.
absl::optional<AtomProduct> Without(Factors a, Factors b) {
  if (!std::includes(a.begin(), a.end(), b.begin(), b.end())) return absl::nullopt;
  AtomProduct rest(a.size() - b.size());
  std::set_difference(a.begin(), a.end(), b.begin(), b.end(), rest.begin());
  return rest;
}

}  // namespace

// ---- Words

// Few words lie in the object itself and must be copied; `other` is empty afterwards.
void AtomWords::Take(AtomWords& other) {
  size_ = other.size_;
  capacity_ = other.capacity_;
  if (capacity_ > kFew) {
    data_ = other.data_;
    other.data_ = other.Few();
    other.capacity_ = kFew;
  } else {
    data_ = Few();
    std::memcpy(few_, other.few_, sizeof few_);
  }
  other.size_ = 0;
}

void AtomWords::Grow(size_t words) {
  const size_t capacity = std::max<size_t>(words, 2 * capacity_);
  IndexId* const data = static_cast<IndexId*>(::operator new(capacity * sizeof(IndexId)));
  std::memcpy(static_cast<void*>(data), data_, size_ * sizeof(IndexId));
  Free();
  data_ = data;
  capacity_ = static_cast<uint32_t>(capacity);
}

// ---- Sums

inline void AtomSum::AddCoefficient(int64_t coefficient) {
  IndexId halves[2];
  std::memcpy(static_cast<void*>(halves), &coefficient, sizeof coefficient);
  words_.Append(halves, 2);
  ++products_;
}

inline void AtomSum::Add(Factors atoms, int64_t coefficient) {
  if (atoms.empty()) {
    constant_ = coefficient;
    return;
  }
  words_.Reserve(words_.size() + atoms.size() + 3);
  words_.Append(IndexId{static_cast<int32_t>(atoms.size())});
  words_.Append(atoms.data(), atoms.size());
  AddCoefficient(coefficient);
}

// Merges two ascending products into one.
void AtomSum::AddProduct(Factors a, Factors b, int64_t coefficient) {
  if (a.empty()) return Add(b, coefficient);
  if (b.empty()) return Add(a, coefficient);
  const size_t size = a.size() + b.size();
  words_.Reserve(words_.size() + size + 3);
  words_.Append(IndexId{static_cast<int32_t>(size)});
  size_t i = 0, j = 0;
  while (i < a.size() || j < b.size()) {
    const bool first = j == b.size() || (i < a.size() && !(b[j] < a[i]));
    words_.Append(first ? a[i++] : b[j++]);
  }
  AddCoefficient(coefficient);
}

AtomSum AtomSum::OfTerm(const Term& term) {
  AtomSum sum;
  if (term.coefficient != 0) sum.Add(term.atoms, term.coefficient);
  return sum;
}

AtomSum AtomSum::Inexact() {
  AtomSum sum;
  sum.exact_ = false;
  return sum;
}

AtomSum AtomSum::Of(const IndexPool& pool, IndexId e) {
  if (!pool.IsAffine(e)) return Inexact();
  const IndexNode& node = pool[e];
  if (node.kind == IndexKind::kConst) return AtomSum(node.value);
  if (node.kind == IndexKind::kAdd) return Of(pool, node.args[0]) + Of(pool, node.args[1]);
  if (node.kind == IndexKind::kMul) return Of(pool, node.args[0]) * Of(pool, node.args[1]);
  return OfAtom(e);
}

// This takes one pass, since most sums are differences.
AtomSum AtomSum::Merged(const AtomSum& a, const AtomSum& b, int64_t times) {
  if (!a.exact_ || !b.exact_ || a.size() + b.size() > kMaxTerms) return Inexact();
  int64_t constant;
  if (__builtin_mul_overflow(times, b.constant_, &constant) ||
      __builtin_add_overflow(a.constant_, constant, &constant)) {
    return Inexact();
  }
  AtomSum sum;
  if (b.products_ == 0) sum = a;
  sum.constant_ = constant;
  if (b.products_ == 0) return sum;
  sum.words_.Reserve(a.words_.size() + b.words_.size());
  Iterator x(a.words_.begin(), a.words_.end(), 0), y(b.words_.begin(), b.words_.end(), 0);
  Term left = *x, right = *y;
  while (x.at_ != x.end_ || y.at_ != y.end_) {
    const int order = x.at_ == x.end_ ? 1 : y.at_ == y.end_ ? -1 : Compare(left.atoms, right.atoms);
    if (order < 0) {
      sum.Add(left.atoms, left.coefficient);
      left = *++x;
      continue;
    }
    int64_t c;
    if (__builtin_mul_overflow(times, right.coefficient, &c)) return Inexact();
    if (order == 0 && __builtin_add_overflow(left.coefficient, c, &c)) return Inexact();
    if (c != 0) sum.Add(right.atoms, c);
    right = *++y;
    if (order == 0) left = *++x;
  }
  return sum;
}

AtomSum AtomSum::PlusProduct(const AtomSum& factor, const AtomSum& by) const {
  const absl::optional<int64_t> number = factor.Constant();
  return number && *number != 0 ? Merged(*this, by, *number) : factor * by + *this;
}

// Multiplying all terms by one product keeps their order.
AtomSum AtomSum::Times(const Term& by) const {
  AtomSum product;
  product.words_.Reserve(words_.size() + products_ * by.atoms.size() + by.atoms.size() + 3);
  for (const Term& term : terms()) {
    int64_t c;
    if (__builtin_mul_overflow(by.coefficient, term.coefficient, &c)) return Inexact();
    product.AddProduct(by.atoms, term.atoms, c);
  }
  return product;
}

AtomSum operator*(const AtomSum& a, const AtomSum& b) {
  if (!a.exact_ || !b.exact_) return AtomSum::Inexact();
  if (a.size() == 1) return b.Times(a.terms().front());
  if (b.size() == 1) return a.Times(b.terms().front());
  AtomSum sum;
  for (const AtomSum::Term& x : a.terms()) sum = sum + b.Times(x);
  return sum;
}

// Long division: the first term goes to the quotient if the divisor's first term divides it, else
// to the remainder.
std::pair<AtomSum, AtomSum> AtomSum::DividedBy(const AtomSum& divisor) const {
  if (!exact_ || !divisor.exact_) return {Inexact(), Inexact()};
  AtomSum quotient, remainder, rest = *this;
  const Term lead = divisor.terms().front();
  for (size_t steps = 0; rest.exact_ && rest.size() > 0; ++steps) {
    const Term first = rest.terms().front();
    const auto atoms = Without(first.atoms, lead.atoms);
    // -2^63 / -1 has no quotient.
    const bool divides = atoms && lead.coefficient != std::numeric_limits<int64_t>::min() &&
                         first.coefficient != std::numeric_limits<int64_t>::min() &&
                         first.coefficient % lead.coefficient == 0;
    const AtomSum part =
        OfTerm(divides ? Term{*atoms, first.coefficient / lead.coefficient} : first);
    rest = rest - (divides ? part * divisor : part);
    (divides ? quotient : remainder) = (divides ? quotient : remainder) + part;
    if (steps == kMaxTerms) return {Inexact(), Inexact()};
  }
  if (!rest.exact_) return {Inexact(), Inexact()};
  return {std::move(quotient), std::move(remainder)};
}

// Division by 1 is the frequent case.
absl::optional<AtomSum> AtomSum::ExactQuotient(const AtomSum& divisor) const {
  if (divisor == AtomSum(1)) return *this;
  auto [quotient, remainder] = DividedBy(divisor);
  if (!remainder.IsZero() || !quotient.exact_) return absl::nullopt;
  return std::move(quotient);
}

absl::optional<AtomSum::Parts> AtomSum::SplitBy(IndexId atom) const {
  Parts parts;
  parts.factor.exact_ = parts.rest.exact_ = exact_;
  for (const Term& term : terms()) {
    const size_t at = static_cast<size_t>(std::find(term.atoms.begin(), term.atoms.end(), atom) -
                                          term.atoms.begin());
    if (at == term.atoms.size()) {
      parts.rest.Add(term.atoms, term.coefficient);
      continue;
    }
    const Factors before = term.atoms.first(at), behind = term.atoms.subspan(at + 1);
    if (!behind.empty() && behind[0] == atom) return absl::nullopt;
    // Dividing all terms by one atom keeps their order.
    parts.factor.AddProduct(before, behind, term.coefficient);
  }
  return parts;
}

bool AtomSum::Holds(IndexId atom) const {
  for (const Term& term : terms()) {
    if (std::find(term.atoms.begin(), term.atoms.end(), atom) != term.atoms.end()) return true;
  }
  return false;
}

AtomProduct AtomSum::Atoms() const {
  AtomProduct atoms;
  for (const Term& term : terms()) atoms.insert(atoms.end(), term.atoms.begin(), term.atoms.end());
  std::sort(atoms.begin(), atoms.end());
  atoms.erase(std::unique(atoms.begin(), atoms.end()), atoms.end());
  return atoms;
}

// The pool puts it into its own canonical form.
IndexId AtomSum::Build(IndexPool& pool) const {
  NESTOR_CHECK(exact_, "an inexact sum has no expression");
  IndexId sum = pool.Const(0);
  for (const Term& term : terms()) {
    IndexId product = pool.Const(term.coefficient);
    for (IndexId atom : term.atoms) product = pool.Mul(product, atom);
    sum = pool.Add(sum, product);
  }
  return sum;
}

// ---- Coefficients

absl::optional<AtomSum> CoefficientOf(const IndexPool& pool, IndexId e, int64_t var) {
  if (pool.VarValue(e) == var) return absl::make_optional<AtomSum>(1);
  if (!HoldsVar(pool, e, var)) return absl::make_optional<AtomSum>();
  const IndexKind kind = pool[e].kind;
  if (!pool.IsAffine(e) || (kind != IndexKind::kAdd && kind != IndexKind::kMul))
    return absl::nullopt;
  const IndexId a = pool[e].args[0], b = pool[e].args[1];
  auto of_a = CoefficientOf(pool, a, var), of_b = CoefficientOf(pool, b, var);
  if (!of_a || !of_b) return absl::nullopt;
  // One factor of an affine product holds no loop index.
  AtomSum sum = kind == IndexKind::kAdd ? *of_a + *of_b
                : pool.HasVar(a)        ? *of_a * AtomSum::Of(pool, b)
                                        : AtomSum::Of(pool, a) * *of_b;
  return sum.exact() ? absl::make_optional(std::move(sum)) : absl::nullopt;
}

absl::optional<int64_t> StrideIn(const IndexPool& pool, IndexId e, int64_t var) {
  const auto coefficient = CoefficientOf(pool, e, var);
  return coefficient ? coefficient->Constant() : absl::nullopt;
}

AtomSum FixedPart(const IndexPool& pool, IndexId e) {
  const AtomSum sum = AtomSum::Of(pool, e);
  AtomSum fixed = sum.exact() ? AtomSum() : AtomSum::Inexact();
  for (const AtomSum::Term& term : sum.terms()) {
    if (absl::c_none_of(term.atoms, [&](IndexId atom) { return pool.HasVar(atom); }))
      fixed = fixed + AtomSum::OfTerm(term);
  }
  return fixed;
}

absl::optional<int64_t> DifferenceOf(const IndexPool& pool, IndexId a, IndexId b) {
  return (AtomSum::Of(pool, a) - AtomSum::Of(pool, b)).Constant();
}

bool DifferenceIsMultiple(const IndexPool& pool, IndexId a, IndexId b, int64_t divisor) {
  const AtomSum difference = AtomSum::Of(pool, a) - AtomSum::Of(pool, b);
  return difference.exact() && absl::c_all_of(difference.terms(), [&](const AtomSum::Term& term) {
           return term.coefficient % divisor == 0;
         });
}

}  // namespace nestor::loop
