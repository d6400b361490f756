// Sums and products of floats in any order.
#ifndef NESTOR_INTERP_REFERENCE_SUM_H_
#define NESTOR_INTERP_REFERENCE_SUM_H_

#include "interp/enclosure.h"
#include "uops/graph.h"

namespace nestor {

// What an element accumulates by += or *=. Its value holds the result of every
// order, every tree of additions (or multiplications), of partials in lanes, of
// products contracted into FMAs, in the element's type or a wider one: the exact
// result, off by at most gamma_k = k u / (1 - k u) times the largest magnitude that
// a partial result may have, for k roundings (Higham, Accuracy and Stability of
// Numerical Algorithms, ch. 3 and 4), and by the least subnormal for each of them
// where something may underflow. inf and NaN belong to it where some partial
// result may overflow.
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
  void Take(const Enclosure& term);
  // Of the terms taken so far and the identity.
  Enclosure Value() const { return op_ == ReduceOp::kSum ? Sum() : Product(); }

 private:
  void AddTerm(const Enclosure& term);
  void MultiplyFactor(const Enclosure& factor);
  Enclosure Sum() const;
  Enclosure Product() const;
  bool SumIsExact() const;
  bool ProductIsExact() const;
  // gamma of the roundings so far; infinite where it has no bound.
  long double Gamma() const;

  ReduceOp op_;
  DType type_;
  int64_t terms_ = 0;     // taken
  int64_t changing_ = 0;  // of them, not the identity
  bool may_be_finite_ = true;
  bool nan_ = false;
  bool points_ = true;    // every term has one finite member

  long double low_, high_;  // of the exact result

  // Of a sum.
  bool plus_infinity_ = false, minus_infinity_ = false;                  // a term may be
  bool certain_plus_infinity_ = false, certain_minus_infinity_ = false;  // a term is nothing else
  long double positive_ = 0, negative_ = 0;     // no partial sum lies beyond positive_ or -negative_
  int grid_ = 1 << 20;                          // all terms are multiples of 2^grid_

  // Of a product.
  bool infinity_ = false, zero_ = false;        // a factor may be
  bool certain_zero_ = false;
  bool sign_known_ = true, negative_sign_ = false;
  long double large_ = 1, small_ = 1;           // bounds of all partial products' magnitudes
  int64_t bits_ = 0;                            // significant, of all factors
};

}  // namespace nestor

#endif  // NESTOR_INTERP_REFERENCE_SUM_H_
