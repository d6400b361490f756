// Sums and products of floats in any order.
#ifndef NESTOR_INTERP_REFERENCE_SUM_H_
#define NESTOR_INTERP_REFERENCE_SUM_H_

#include "interp/enclosure.h"
#include "uops/graph.h"

namespace nestor {

// The enclosure where roundings have no bound: every value, as something may overflow.
Enclosure Unbounded(DType type);

// The largest relative error of one rounding of an operation in `type`; 16-bit floats compute in
// f32, then round.
long double RoundingError(DType type);

// The value that an element accumulates by += or *=. Its enclosure holds the result of every order,
// every tree of additions (or multiplications), of partials in lanes, of products contracted into
// FMAs, in the element's type or a wider one: the exact result, off by at most gamma_k = k u / (1 -
// k u) times the largest magnitude that a partial result may have, for k roundings (Higham,
// Accuracy and Stability of Numerical Algorithms, ch. 3 and 4), and by the least subnormal for each
// of them where something may underflow. inf and NaN are members where some partial result may
// overflow, and only there:
//  - a sum is inf where its positive terms alone may overflow, -inf where its negative ones
//    do, NaN where both; infinite terms count among these sums;
//  - a product is infinite where its factors above 1 alone may overflow or one is infinite,
//    with the sign of the product, and NaN where, in addition, its factors below 1 alone
//    may vanish or one is zero.
//
// A sum of n terms that are not zero has k = n - 1. Where the terms are multiples
// of one power of two and so small that each partial sum is a value of the type,
// there is no error; likewise for products with few significant bits.
class Accumulation {
 public:
  // REQUIRES: op is sum or prod, IsFloat(type).
  Accumulation(ReduceOp op, DType type) : op_(op), type_(type) {
    low_ = high_ = op == ReduceOp::kSum ? -0.0L : 1;
  }

  ReduceOp op() const { return op_; }
  DType type() const { return type_; }
  void Take(const Enclosure& term);
  // The enclosure for the terms taken so far and the identity.
  Enclosure Value() const { return op_ == ReduceOp::kSum ? Sum() : Product(); }

 private:
  void AddTerm(const Enclosure& term);
  void MultiplyFactor(const Enclosure& factor);
  Enclosure Sum() const;
  Enclosure Product() const;
  bool SumIsExact() const;
  bool ProductIsExact() const;
  // The partial result over all terms that move it in one direction: no partial result lies beyond.
  struct Extreme {
    long double value;
    int64_t count = 0;  // of such terms
  };
  bool MayOverflow(const Extreme& extreme) const;
  bool MayVanish(const Extreme& extreme) const;
  // gamma for so many roundings; infinite where it has no bound.
  long double Gamma(int64_t roundings) const;
  // gamma for all terms so far.
  long double Gamma() const { return Gamma(changing_ - 1); }

  ReduceOp op_;
  DType type_;
  int64_t terms_ = 0;     // taken
  int64_t changing_ = 0;  // of them, not the identity
  bool may_be_finite_ = true;
  bool nan_ = false;           // a term may be
  bool certain_nan_ = false;   // a term is nothing else
  bool may_overflow_ = false;  // something on the way to a term
  bool points_ = true;         // every term has one finite member

  long double low_, high_;  // of the exact result

  // Of a sum.
  bool plus_infinity_ = false, minus_infinity_ = false;                  // a term may be
  bool certain_plus_infinity_ = false, certain_minus_infinity_ = false;  // a term is nothing else
  Extreme positive_{0}, negative_{0};  // magnitudes of the sums of either sign
  int grid_ = 1 << 20;                 // all terms are multiples of 2^grid_

  // Of a product.
  bool infinity_ = false, zero_ = false;  // a factor may be
  bool certain_zero_ = false;
  bool sign_known_ = true, negative_sign_ = false;
  // Magnitudes of the products of factors above and below 1.
  Extreme large_{1}, small_{1};
  int64_t bits_ = 0;  // significant, of all factors
};

}  // namespace nestor

#endif  // NESTOR_INTERP_REFERENCE_SUM_H_
