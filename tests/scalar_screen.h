// Quickly recognizes a right result of a transcendental scalar op by the C library in a wider type,
// which is off by at most a thousandth of an ulp of the narrower one. MPFR judges results that it
// cannot clear (transcendental_reference.h).
#ifndef NESTOR_TESTS_SCALAR_SCREEN_H_
#define NESTOR_TESTS_SCALAR_SCREEN_H_

#include <random>
#include <utility>

#include "absl/strings/string_view.h"
#include "uops/dtype.h"

namespace nestor {

// The row's value at (a, b), b ignored by rows of one operand. REQUIRES: the op is a transcendental
// row of the table.
using WideFunction = long double (*)(long double a, long double b);
using DoubleFunction = double (*)(double a, double b);

struct Screen {
  DoubleFunction narrow;  // for f32
  WideFunction wide;      // for f64
};
// Null functions where there is no such op.
Screen ScreenOf(absl::string_view op);

// |result - exact| in ulps of `type` (f32 or f64), as transcendental_reference.h measures it,
// off by some thousandths; infinite where the two differ in being NaN or infinite, or a zero has
// the wrong sign.
double ScreenedError(const Screen& screen, DType type, double a, double b, double result);

// Arguments where a row is neither saturated nor trivial, as it mostly is for random
// bits: of every size, near 0 and 1, whole, in the range of exponentials, and pairs of
// similar sizes. Deterministic.
class StructuredArguments {
 public:
  explicit StructuredArguments(DType type) : type_(type) {}
  std::pair<double, double> Next();

 private:
  double Uniform(double low, double high);
  double One();

  DType type_;
  std::mt19937_64 random_{20240229};
  int64_t number_ = 0;
};

}  // namespace nestor

#endif  // NESTOR_TESTS_SCALAR_SCREEN_H_
