// Sums of products of atoms, the arithmetic of proofs about index expressions.
// Unlike nestor::Polynomial they need no canonical order across programs, may
// multiply loop indices, and can be divided, split by an atom and compared fast.
//
// Mathematical integers: where a coefficient leaves int64 the sum is inexact, and
// so is all that is made of it; nothing may be concluded from an inexact sum.
#ifndef NESTOR_LOOP_IR_RANGES_TERMS_H_
#define NESTOR_LOOP_IR_RANGES_TERMS_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/types/optional.h"
#include "uops/index_expr.h"

namespace nestor::loop {

// Atoms are loop indices, symbols, and nodes kDiv, kMod, kMin, kMax of a pool.
using AtomProduct = absl::InlinedVector<IndexId, 3>;  // ascending ids, with repetition

class AtomSum {
 public:
  struct Term {
    AtomProduct atoms;
    int64_t coefficient;
    friend bool operator==(const Term& a, const Term& b) {
      return a.coefficient == b.coefficient && a.atoms == b.atoms;
    }
  };

  using Terms = absl::InlinedVector<Term, 3>;

  AtomSum() = default;
  AtomSum(int64_t constant);  // NOLINT: numbers are sums
  static AtomSum OfAtom(IndexId atom);
  static AtomSum OfTerm(Term term);
  static AtomSum Inexact();
  // Of an affine expression.
  static AtomSum Of(const IndexPool& pool, IndexId e);

  bool exact() const { return exact_; }
  // Greatest products first (by number of atoms, then by their ids), so the
  // constant is last; no zero coefficient.
  const Terms& terms() const { return terms_; }
  bool IsZero() const { return exact_ && terms_.empty(); }
  // The value, where it holds no atom.
  absl::optional<int64_t> Constant() const;
  int64_t ConstantTerm() const;

  friend AtomSum operator+(const AtomSum& a, const AtomSum& b);
  friend AtomSum operator-(const AtomSum& a, const AtomSum& b);
  friend AtomSum operator*(const AtomSum& a, const AtomSum& b);
  friend AtomSum operator-(const AtomSum& a);
  friend bool operator==(const AtomSum& a, const AtomSum& b) {
    return a.exact_ == b.exact_ && a.terms_ == b.terms_;
  }

  // Quotient and remainder of the division by leading terms: *this =
  // first * divisor + second, no term of `second` being divisible by the
  // divisor's first term; both inexact where either of the two is, or the quotient is too
  // long. REQUIRES: the divisor is not zero.
  std::pair<AtomSum, AtomSum> DividedBy(const AtomSum& divisor) const;
  // *this / divisor where that leaves nothing.
  absl::optional<AtomSum> ExactQuotient(const AtomSum& divisor) const;

  // *this = factor * atom + rest, `rest` being free of the atom; nullopt where
  // the atom occurs in some product more than once.
  struct Parts;
  absl::optional<Parts> SplitBy(IndexId atom) const;

  // Whether some product holds the atom.
  bool Holds(IndexId atom) const;
  // The distinct atoms, ascending.
  AtomProduct Atoms() const;
  // The expression, through the pool's constructors. REQUIRES: exact().
  IndexId Build(IndexPool& pool) const;

  template <class H>
  friend H AbslHashValue(H h, const AtomSum& s) {
    for (const Term& t : s.terms_) h = H::combine(std::move(h), t.atoms, t.coefficient);
    return H::combine(std::move(h), s.exact_, s.terms_.size());
  }

 private:
  static AtomSum Merged(const AtomSum& a, const AtomSum& b, int64_t sign);
  AtomSum Times(const Term& by) const;

  Terms terms_;
  bool exact_ = true;
};

struct AtomSum::Parts {
  AtomSum factor, rest;
};

}  // namespace nestor::loop

#endif  // NESTOR_LOOP_IR_RANGES_TERMS_H_
