// Linear recurrences of floats, with steps composed in any tree.
#ifndef NESTOR_INTERP_REFERENCE_RECURRENCE_H_
#define NESTOR_INTERP_REFERENCE_RECURRENCE_H_

#include <cstdint>

#include "interp/enclosure.h"
#include "uops/dtype.h"

namespace nestor {

// What a recurrence h = a * h + b holds at a step. Its value holds the result of every way in which
// steps may be composed before they are taken: h -> a h + b and then h -> c h + d are h -> (c a) h
// + (c b + d). Trees of compositions have kMostLevels levels at most (Blelloch, "Prefix sums and
// their applications", 1990).
//
// The exact result is a sum of products: of the start, and of each term, with the factors behind
// it. In a tree each of these products is rounded once for each operation behind the term, and once
// more for each level: where a composed step that holds the term follows another one, an addition
// rounds it that is not behind it in time. So with S the sum of their magnitudes, in which each has
// grown by (1 + u) for each of its roundings, the result is off by S less the sum of the magnitudes
// themselves. Where a product of factors leaves the normal numbers, each of its roundings may lose
// the least subnormal, magnified by the largest products of factors that stand next to each other,
// before and behind it, and by the largest sum. inf and NaN belong to it where a factor or term may
// be one, or where such a product, or S, may overflow: then anything may come of it.
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
  // Notes inf and NaN; whether there is more to the value.
  bool Meet(const Enclosure& value);
  bool IsExact() const;
  // Of numbers.
  Enclosure Rest() const;

  DType type_;
  long double low_ = 0, high_ = 0;    // of the exact result
  long double least_ = 0, most_ = 0;  // the sum of the magnitudes, and S but for the levels
  // The largest product of those behind some step, grown like S; 1 of none.
  long double factors_ = 1;
  // The largest of factors_ and of most_ at all steps so far.
  long double most_factors_ = 1, most_ever_ = 0;
  int64_t operations_ = 0, additions_ = 0;
  bool integers_ = true;                    // all factors and terms are, each of one member
  bool nan_ = false, certain_nan_ = false;  // one may be NaN, or is nothing else
  bool infinity_ = false, certain_infinity_ = false;  // one may be inf, or is no finite number
};

}  // namespace nestor

#endif  // NESTOR_INTERP_REFERENCE_RECURRENCE_H_
