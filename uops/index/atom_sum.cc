// Multivariate polynomials with integer coefficients. The order of terms is a graded lexicographic
// one, which multiplication preserves: so a product of a sorted sum with one term is sorted (Cox,
// Little and O'Shea, "Ideals, Varieties, and Algorithms", sec. 2.2).
//
// Proofs add and subtract sums by the hundred thousand, so a sum is one list of words with room for
// the usual length, and a difference is one merge of two sorted lists.
#include "uops/index/atom_sum.h"

#include <algorithm>

#include "uops/invariant.h"

namespace nestor {
namespace {

using Factors = absl::Span<const IndexId>;

// Negative where `a` comes first.
int Compare(Factors a, Factors b) {
  if (a.size() != b.size()) return a.size() > b.size() ? -1 : 1;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] != b[i]) return a[i] < b[i] ? -1 : 1;
  }
  return 0;
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
  AtomSum sum;
  sum.exact_ = pool.IsAffine(e);
  if (!sum.exact_) return sum;
  for (; pool[e].kind == IndexKind::kAdd; e = pool[e].args[0])
    sum.AddExpression(pool, pool[e].args[1]);
  sum.AddExpression(pool, e);
  return sum;
}

// The summands of a canonical sum are products of numbers and atoms.
void AtomSum::AddExpression(const IndexPool& pool, IndexId e) {
  const IndexKind kind = pool[e].kind;
  if (kind == IndexKind::kConst) return Insert({}, pool[e].value);
  if (kind != IndexKind::kAdd && kind != IndexKind::kMul) return Insert({&e, 1}, 1);
  AtomProduct atoms;
  int64_t coefficient = 1;
  const auto multiply = [&](IndexId factor) {
    const IndexNode& node = pool[factor];
    if (node.kind == IndexKind::kConst)
      return !__builtin_mul_overflow(coefficient, node.value, &coefficient);
    atoms.push_back(factor);
    return node.kind != IndexKind::kAdd && node.kind != IndexKind::kMul;
  };
  IndexId first = e;
  bool is_product = true;
  for (; is_product && pool[first].kind == IndexKind::kMul; first = pool[first].args[0])
    is_product = multiply(pool[first].args[1]);
  if (is_product && multiply(first)) {
    if (atoms.size() > 1) std::sort(atoms.begin(), atoms.end());
    return Insert(atoms, coefficient);
  }
  const AtomSum a = Of(pool, pool[e].args[0]), b = Of(pool, pool[e].args[1]);
  *this = *this + (kind == IndexKind::kMul ? a * b : a + b);
}

// Most products are new.
void AtomSum::Insert(Factors atoms, int64_t coefficient) {
  const IndexId *at = words_.begin(), *const end = words_.end();
  int order = !exact_ || coefficient == 0 || size() == kMaxSize ? 0 : 1;
  if (atoms.empty()) {
    if (constant_ != 0) order = 0;
  } else if (order != 0) {
    for (; at != end; at += 3 + at->value) {
      order = Compare({at + 1, static_cast<size_t>(at->value)}, atoms);
      if (order >= 0) break;
    }
  }
  if (order == 0) {
    *this = *this + OfTerm({atoms, coefficient});
    return;
  }
  const size_t to = static_cast<size_t>(at - words_.begin()), from = words_.size();
  Add(atoms, coefficient);
  if (at != end && !atoms.empty()) words_.MoveUp(from, to);
}

// This takes one pass, since most sums are differences. All results are one variable, which the
// compiler need not copy.
AtomSum AtomSum::Merged(const AtomSum& a, const AtomSum& b, int64_t times) {
  AtomSum sum;
  int64_t constant;
  sum.exact_ = a.exact_ && b.exact_ && a.size() + b.size() <= kMaxSize &&
               !__builtin_mul_overflow(times, b.constant_, &constant) &&
               !__builtin_add_overflow(a.constant_, constant, &constant);
  if (!sum.exact_) return sum;
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
    if (__builtin_mul_overflow(times, right.coefficient, &c) ||
        (order == 0 && __builtin_add_overflow(left.coefficient, c, &c))) {
      sum = Inexact();
      return sum;
    }
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

std::pair<AtomSum, AtomSum> AtomSum::FloorDividedBy(int64_t divisor) const {
  AtomSum quotient, rest;
  for (const auto& [atoms, coefficient] : terms()) {
    const int64_t whole = *CheckedApply(IndexKind::kDiv, coefficient, divisor),
                  remainder = *CheckedApply(IndexKind::kMod, coefficient, divisor);
    const bool splits = atoms.empty() || remainder == 0;
    if (splits && whole != 0) quotient.Add(atoms, whole);
    if (remainder != 0) rest.Add(atoms, splits ? remainder : coefficient);
  }
  return {std::move(quotient), std::move(rest)};
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

// ---- The canonical form

namespace {

// Loop indices sort before symbols, those before compound atoms.
int CompareAtoms(const IndexPool& pool, IndexId a, IndexId b) {
  if (pool.HasVar(a) != pool.HasVar(b)) return pool.HasVar(a) ? -1 : 1;
  return CompareStructure(pool, a, b);
}

int CompareProducts(const IndexPool& pool, Factors a, Factors b) {
  for (size_t i = 0; i < a.size() && i < b.size(); ++i) {
    if (a[i] != b[i]) return CompareAtoms(pool, a[i], b[i]);
  }
  // The longer product first, so that the constant term comes last.
  return a.size() == b.size() ? 0 : (a.size() > b.size() ? -1 : 1);
}

}  // namespace

// Numbers and single atoms are used where they are; `memory` gets products in their own order.
absl::InlinedVector<AtomSum::Term, 8> AtomSum::Sorted(const IndexPool& pool,
                                                      AtomSum& memory) const {
  absl::InlinedVector<Term, 8> sorted;
  memory.words_.Reserve(words_.size());
  for (Term term : terms()) {
    if (term.atoms.size() > 1) {
      memory.Add(term.atoms, term.coefficient);
      IndexId *const end = memory.words_.end() - 2, *const begin = end - term.atoms.size();
      std::sort(begin, end, [&](IndexId a, IndexId b) { return CompareAtoms(pool, a, b) < 0; });
      term.atoms = {begin, term.atoms.size()};
    }
    sorted.push_back(term);
  }
  const auto is_before = [&](const Term& a, const Term& b) {
    return CompareProducts(pool, a.atoms, b.atoms) < 0;
  };
  std::sort(sorted.begin(), sorted.end(), is_before);
  return sorted;
}

AtomSum::OrderedTerms AtomSum::InOrder(const IndexPool& pool) const {
  AtomSum memory;
  OrderedTerms result;
  for (const Term& term : Sorted(pool, memory)) result.sum_.Add(term.atoms, term.coefficient);
  return result;
}

// Left-associated sums of left-associated products, the coefficient first: the only shape in which
// a canonical expression occurs.
IndexId AtomSum::Build(IndexPool& pool) const {
  NESTOR_CHECK(exact_, "an inexact sum has no expression");
  IndexId sum;
  AtomSum memory;
  for (const Term& term : Sorted(pool, memory)) {
    IndexId product;
    if (term.coefficient != 1 || term.atoms.empty()) product = pool.Const(term.coefficient);
    for (IndexId atom : term.atoms) {
      product = product.value < 0 ? atom : pool.Intern({IndexKind::kMul, 0, {product, atom}});
    }
    sum = sum.value < 0 ? product : pool.Intern({IndexKind::kAdd, 0, {sum, product}});
  }
  return sum.value < 0 ? pool.Const(0) : sum;
}

}  // namespace nestor
