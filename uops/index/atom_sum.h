// Sums of products of atoms: the arithmetic behind the canonical form of index expressions, and of
// proofs about them.
// Terms are ordered by ids, which makes sums quick to add and compare, but depends on the pool.
// Where a decision depends on the order, a pass looks at them InOrder, so that a program and its
// text have the same results.
//
// Mathematical integers: where a coefficient leaves int64 the sum is inexact, and so is everything
// computed from it; nothing may be concluded from an inexact sum.
#ifndef NESTOR_UOPS_INDEX_ATOM_SUM_H_
#define NESTOR_UOPS_INDEX_ATOM_SUM_H_

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "uops/index/index_expr.h"

namespace nestor {

// Atoms are loop indices, symbols, and nodes kDiv, kMod, kMin, kMax of a pool.
using AtomProduct = absl::InlinedVector<IndexId, 6>;  // ascending ids, with repetition

// A list of words whose memory is copied as it is, with room for the words of most sums.
class AtomWords {
 public:
  AtomWords() = default;
  AtomWords(const AtomWords& other) { Append(other.begin(), other.size()); }
  AtomWords(AtomWords&& other) noexcept { Take(other); }
  AtomWords& operator=(const AtomWords& other) {
    if (this == &other) return *this;
    size_ = 0;
    Append(other.begin(), other.size());
    return *this;
  }
  AtomWords& operator=(AtomWords&& other) noexcept {
    if (this == &other) return *this;
    Free();
    Take(other);
    return *this;
  }
  ~AtomWords() { Free(); }

  const IndexId* begin() const { return data_; }
  const IndexId* end() const { return data_ + size_; }
  IndexId* end() { return data_ + size_; }
  size_t size() const { return size_; }
  // Makes room for so many words in all.
  void Reserve(size_t words) {
    if (words > capacity_) Grow(words);
  }
  // Moves the words from `from` on to the place `to` before them.
  void MoveUp(size_t from, size_t to) { std::rotate(data_ + to, data_ + from, data_ + size_); }
  // REQUIRES: there is room.
  void Append(IndexId word) { data_[size_++] = word; }
  void Append(const IndexId* words, size_t count) {
    Reserve(size_ + count);
    for (size_t i = 0; i < count; ++i) data_[size_ + i] = words[i];  // few
    size_ += static_cast<uint32_t>(count);
  }

 private:
  static constexpr uint32_t kFew = 28;
  IndexId* Few() { return reinterpret_cast<IndexId*>(few_); }
  void Free() {
    if (capacity_ > kFew) ::operator delete(data_);
  }
  void Take(AtomWords& other);
  void Grow(size_t words);

  alignas(IndexId) unsigned char few_[kFew * sizeof(IndexId)];
  IndexId* data_ = Few();
  uint32_t size_ = 0, capacity_ = kFew;
};

// A sum of integer coefficients times products of atoms (loop indices, symbols, divisions, min,
// max), in one piece of memory and ordered by ids, since proofs add and multiply often. A product
// may hold several loop indices. An inexact sum stands for what could not be written so, or grew
// too long; nothing is proven of it.
class AtomSum {
 public:
  // A sum of more terms is too long.
  static constexpr size_t kMaxSize = IndexPool::kMaxTerms;

  struct Term {
    absl::Span<const IndexId> atoms;  // of the sum that has the term, while it does not change
    int64_t coefficient;
  };
  // The terms, one after the other.
  class Iterator;
  class Terms;
  class OrderedTerms;

  AtomSum() = default;
  AtomSum(int64_t constant) : constant_(constant) {}  // NOLINT: numbers are sums
  static AtomSum OfAtom(IndexId atom) { return OfTerm({{&atom, 1}, 1}); }
  static AtomSum OfTerm(const Term& term);
  static AtomSum Inexact();
  // The expression as a sum; inexact where it is not affine.
  static AtomSum Of(const IndexPool& pool, IndexId e);

  bool exact() const { return exact_; }
  // Greatest products first (by number of atoms, then by their ids), so the
  // constant is last; no zero coefficient.
  Terms terms() const;
  size_t size() const { return products_ + (constant_ != 0); }
  bool IsZero() const { return exact_ && size() == 0; }
  // The value, where it holds no atom.
  absl::optional<int64_t> Constant() const {
    return exact_ && products_ == 0 ? absl::make_optional(constant_) : absl::nullopt;
  }
  int64_t ConstantTerm() const { return constant_; }

  friend AtomSum operator+(const AtomSum& a, const AtomSum& b) { return Merged(a, b, 1); }
  friend AtomSum operator-(const AtomSum& a, const AtomSum& b) { return Merged(a, b, -1); }
  friend AtomSum operator*(const AtomSum& a, const AtomSum& b);
  // factor * by + *this.
  AtomSum PlusProduct(const AtomSum& factor, const AtomSum& by) const;
  friend AtomSum operator-(const AtomSum& a) { return Merged({}, a, -1); }
  friend bool operator==(const AtomSum& a, const AtomSum& b) {
    return a.exact_ == b.exact_ && a.constant_ == b.constant_ && a.HasProductsOf(b);
  }

  // Whether only numbers differ between the two.
  bool HasProductsOf(const AtomSum& other) const {
    return absl::MakeConstSpan(words_.begin(), words_.size()) ==
           absl::MakeConstSpan(other.words_.begin(), other.words_.size());
  }

  // Quotient and remainder of the division by a number (by sums: atom_division.h), for all values
  // of the atoms: first + floor(second / divisor) is the floor of *this / divisor. `second` has the
  // terms that are no multiples, and of the constant the remainder. REQUIRES: exact(), and the
  // divisor is neither 0 nor -1.
  std::pair<AtomSum, AtomSum> FloorDividedBy(int64_t divisor) const;

  // *this = factor * atom + rest, `rest` being free of the atom; nullopt where
  // the atom occurs in some product more than once.
  struct Parts;
  absl::optional<Parts> SplitBy(IndexId atom) const;

  // Whether some product holds the atom.
  bool Holds(IndexId atom) const;
  // The distinct atoms, ascending.
  AtomProduct Atoms() const;
  // The terms in the order of the canonical form (see index_expr.h): those with loop indices first,
  // then symbolic ones, the constant last. This order of terms, and of atoms, is the same in every
  // pool.
  OrderedTerms InOrder(const IndexPool& pool) const;
  // The expression, in the canonical form. REQUIRES: exact().
  IndexId Build(IndexPool& pool) const;

 private:
  // a + times*b.
  static AtomSum Merged(const AtomSum& a, const AtomSum& b, int64_t times);
  AtomSum Times(const Term& by) const;
  // The terms in the canonical order, whose atoms are those of this sum or of `memory`.
  absl::InlinedVector<Term, 8> Sorted(const IndexPool& pool, AtomSum& memory) const;
  // Adds the value of an affine expression, mostly a product of numbers and atoms.
  void AddExpression(const IndexPool& pool, IndexId e);
  // Adds a product in its place.
  void Insert(absl::Span<const IndexId> atoms, int64_t coefficient);
  // Appends a product with a coefficient that is not 0. The product of no atoms is the constant.
  void Add(absl::Span<const IndexId> atoms, int64_t coefficient);
  void AddProduct(absl::Span<const IndexId> a, absl::Span<const IndexId> b, int64_t coefficient);
  void AddCoefficient(int64_t coefficient);

  // A product with its coefficient is stored in `words_` as the number of its atoms, the atoms, and
  // the two halves of the coefficient.
  AtomWords words_;
  int64_t constant_ = 0;
  uint32_t products_ = 0;  // how many
  bool exact_ = true;
};

class AtomSum::Iterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using difference_type = std::ptrdiff_t;
  using value_type = Term;
  using pointer = const Term*;
  using reference = Term;
  Term operator*() const {
    if (at_ == end_) return {{}, constant_};
    const size_t atoms = Atoms();
    int64_t coefficient;
    std::memcpy(&coefficient, at_ + 1 + atoms, sizeof coefficient);
    return {{at_ + 1, atoms}, coefficient};
  }
  Iterator& operator++() {
    if (at_ == end_) constant_ = 0;
    else at_ += 3 + Atoms();
    return *this;
  }
  friend bool operator==(const Iterator& a, const Iterator& b) {
    return a.at_ == b.at_ && a.constant_ == b.constant_;
  }
  friend bool operator!=(const Iterator& a, const Iterator& b) { return !(a == b); }

 private:
  friend class AtomSum;
  friend class Terms;
  Iterator(const IndexId* at, const IndexId* end, int64_t constant)
      : at_(at), end_(end), constant_(constant) {}
  size_t Atoms() const { return static_cast<size_t>(at_->value); }

  const IndexId *at_, *end_;
  int64_t constant_;  // after the products; 0: none, or already visited
};

class AtomSum::Terms {
 public:
  explicit Terms(const AtomSum& sum) : sum_(sum) {}
  Iterator begin() const { return {sum_.words_.begin(), sum_.words_.end(), sum_.constant_}; }
  Iterator end() const { return {sum_.words_.end(), sum_.words_.end(), 0}; }
  size_t size() const { return sum_.size(); }
  Term front() const { return *begin(); }

 private:
  const AtomSum& sum_;
};

inline AtomSum::Terms AtomSum::terms() const { return Terms(*this); }

// The terms in the canonical order, in memory of their own.
class AtomSum::OrderedTerms {
 public:
  Iterator begin() const { return sum_.terms().begin(); }
  Iterator end() const { return sum_.terms().end(); }

 private:
  friend class AtomSum;
  AtomSum sum_;  // but for the order
};

struct AtomSum::Parts {
  AtomSum factor, rest;
};

}  // namespace nestor

#endif  // NESTOR_UOPS_INDEX_ATOM_SUM_H_
