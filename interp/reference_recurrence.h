// Linear recurrences of floats, with steps composed in any tree.
#ifndef NESTOR_INTERP_REFERENCE_RECURRENCE_H_
#define NESTOR_INTERP_REFERENCE_RECURRENCE_H_

#include <cstdint>

#include "interp/enclosure.h"
#include "uops/dtype.h"

namespace nestor {

// The value of a recurrence h = a * h + b at a step. Its enclosure holds the result of every way in
// which steps may be composed before they are taken: h -> a h + b and then h -> c h + d are h -> (c
// a) h + (c b + d). Trees of compositions have kMostLevels levels at most (Blelloch, "Prefix sums
// and their applications", 1990).
//
// The exact result is a sum of products: the start, and each term, times the factors after it. In a
// tree each of these products is rounded once for each operation after the term, and once more for
// each level: where a composed step that holds the term follows another one, it is rounded by an
// addition that is not after it in time. So let S be the sum of their magnitudes, each grown by (1
// + u) for each of its roundings: the error of the result is at most S less the sum of the
// magnitudes themselves. Where a product of factors leaves the normal numbers, each of its
// roundings may lose the least subnormal, magnified by the largest products of consecutive factors,
// before and after it, and by the largest sum. inf and NaN are members where a factor or term may
// be one, or where such a product, or S, may overflow: then every value is possible.
//
// Where all factors and terms are integers so small that no partial result is rounded,
// there is no error.
class LinearRecurrence {
 public:
  static constexpr int64_t kMostLevels = 64;

  // REQUIRES: IsFloat(type).
  LinearRecurrence(DType type, const Enclosure& start);

  DType type() const { return type_; }
  void Multiply(const Enclosure& factor);
  void Add(const Enclosure& term);
  Enclosure Value() const;

 private:
  // Notes inf and NaN; returns whether the value has finite members.
  bool Meet(const Enclosure& value);
  bool IsExact() const;
  // The enclosure for the finite members of the start, factors and terms.
  Enclosure Rest() const;

  DType type_;
  long double low_ = 0, high_ = 0;    // of the exact result
  long double least_ = 0, most_ = 0;  // the sum of the magnitudes, and S but for the levels
  // The largest product of the factors after some step, grown like S; 1 if there are none.
  long double factors_ = 1;
  // The largest factors_ and the largest most_ of all steps so far.
  long double most_factors_ = 1, most_ever_ = 0;
  int64_t operations_ = 0, additions_ = 0;
  bool integers_ = true;                    // all factors and terms are, each of one member
  bool nan_ = false, certain_nan_ = false;  // one may be NaN, or is nothing else
  bool infinity_ = false, certain_infinity_ = false;  // one may be inf, or is no finite number
};

}  // namespace nestor

#endif  // NESTOR_INTERP_REFERENCE_RECURRENCE_H_
