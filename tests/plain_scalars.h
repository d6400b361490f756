// The types' values and arithmetic once more, for tests. Internal to uops_evaluator.
#ifndef NESTOR_TESTS_PLAIN_SCALARS_H_
#define NESTOR_TESTS_PLAIN_SCALARS_H_

#include "uops/dtype.h"

namespace nestor::plain {

using Int128 = __int128;

// Of an integer type or bool.
Int128 ToInteger(DType type, Bits bits);
// The value of any type, exactly.
long double ToReal(DType type, Bits bits);
// Rounded to nearest even.
Bits EncodeFloat(DType type, long double x);
// Of an integer type or bool.
Int128 LeastOf(DType type);
Int128 GreatestOf(DType type);
// Modulo 2^width, in the type's range.
Bits Wrap(DType type, Int128 x);
Int128 FloorQuotient(Int128 a, Int128 b);
Bits Cast(DType from, DType to, Bits bits);

}  // namespace nestor::plain

#endif  // NESTOR_TESTS_PLAIN_SCALARS_H_
