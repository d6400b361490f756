// The reference for the transcendental scalar ops. Each op is one row: a function that leaves its value, to about 150
// bits, in an MPFR number. A row is written from the op's definition, but so that nothing cancels: gelu over erfc, softplus
// over log1p. MPFR's own functions are correctly rounded and follow C99 at the special values; a value composed of a few
// of them is off by some units in the 160th bit, far below what a format of 53 bits can tell.
// MPFR's exponents have more than 30 bits, so nothing overflows or underflows here that is not far out of the range of f64.

#include "tests/transcendental_reference.h"

#include <mpfr.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>

namespace nestor {
namespace {

constexpr mpfr_prec_t kWorkingBits = 160;
constexpr mpfr_rnd_t kNearest = MPFR_RNDN;

class Number {
 public:
  explicit Number(double value = 0) {
    mpfr_init2(number_, kWorkingBits);
    mpfr_set_d(number_, value, kNearest);
  }
  Number(const Number&) = delete;
  Number& operator=(const Number&) = delete;
  ~Number() { mpfr_clear(number_); }
  operator mpfr_ptr() { return number_; }

 private:
  mpfr_t number_;
};

using Args = absl::Span<const double>;

template <int (*Function)(mpfr_t, const mpfr_t, mpfr_rnd_t)>
void Unary(Args args, mpfr_ptr y) {
  Number x(args[0]);
  Function(y, x, kNearest);
}

void Pow(Args args, mpfr_ptr y) {
  Number a(args[0]), b(args[1]);
  mpfr_pow(y, a, b, kNearest);
}

void Recip(Args args, mpfr_ptr y) {
  Number x(args[0]);
  mpfr_ui_div(y, 1, x, kNearest);
}

void Rsqrt(Args args, mpfr_ptr y) {  // 1/sqrt(-0) is -inf, unlike mpfr_rec_sqrt
  Number x(args[0]);
  mpfr_sqrt(y, x, kNearest);
  mpfr_ui_div(y, 1, y, kNearest);
}

void Sigmoid(Args args, mpfr_ptr y) {  // 1 / (1 + exp(-x))
  Number x(args[0]);
  mpfr_neg(x, x, kNearest);
  mpfr_exp(y, x, kNearest);
  mpfr_add_ui(y, y, 1, kNearest);
  mpfr_ui_div(y, 1, y, kNearest);
}

void Silu(Args args, mpfr_ptr y) {  // x sigmoid(x)
  Sigmoid(args, y);
  mpfr_mul_d(y, y, args[0], kNearest);
}

void Gelu(Args args, mpfr_ptr y) {  // x/2 (1 + erf(x/sqrt(2))) = x/2 erfc(-x/sqrt(2))
  Number t(2);
  mpfr_sqrt(t, t, kNearest);
  mpfr_d_div(t, -args[0], t, kNearest);
  mpfr_erfc(y, t, kNearest);
  mpfr_mul_d(y, y, args[0], kNearest);
  mpfr_div_2ui(y, y, 1, kNearest);
}

void Softplus(Args args, mpfr_ptr y) {  // log(1 + exp(x)) = max(x, 0) + log1p(exp(-|x|))
  Number t(-std::abs(args[0]));
  mpfr_exp(t, t, kNearest);
  mpfr_log1p(y, t, kNearest);
  if (args[0] > 0) mpfr_add_d(y, y, args[0], kNearest);
}

struct Row {
  absl::string_view op;
  int arity;
  void (*value)(Args, mpfr_ptr);
};

constexpr Row kRows[] = {
    {"exp", 1, Unary<mpfr_exp>},   {"log", 1, Unary<mpfr_log>},   {"sin", 1, Unary<mpfr_sin>},   {"cos", 1, Unary<mpfr_cos>},
    {"tanh", 1, Unary<mpfr_tanh>}, {"erf", 1, Unary<mpfr_erf>},   {"sqrt", 1, Unary<mpfr_sqrt>}, {"pow", 2, Pow},
    {"recip", 1, Recip},           {"rsqrt", 1, Rsqrt},           {"sigmoid", 1, Sigmoid},       {"silu", 1, Silu},
    {"gelu", 1, Gelu},             {"softplus", 1, Softplus},
};

struct Format {
  absl::string_view type;
  int precision;
  int min_exponent, max_exponent;  // of normal numbers: 1.m * 2^e
};

constexpr Format kFormats[] = {{"f64", 53, -1022, 1023}, {"f32", 24, -126, 127}, {"f16", 11, -14, 15}, {"bf16", 8, -126, 127}};

void Evaluate(absl::string_view op, Args args, mpfr_ptr y) {
  for (const Row& row : kRows) {
    if (row.op == op && static_cast<size_t>(row.arity) == args.size()) return row.value(args, y);
  }
  std::fprintf(stderr, "no reference for %.*s of %zu arguments\n", static_cast<int>(op.size()), op.data(), args.size());
  std::abort();
}

const Format& FindFormat(absl::string_view type) {
  for (const Format& format : kFormats) {
    if (format.type == type) return format;
  }
  std::fprintf(stderr, "no format %.*s\n", static_cast<int>(type.size()), type.data());
  std::abort();
}

// The exponent of the last place of a finite x in the format.
long LastPlace(const Format& format, mpfr_ptr x) {
  const long exponent = mpfr_zero_p(x) ? format.min_exponent : mpfr_get_exp(x) - 1;
  return std::clamp<long>(exponent, format.min_exponent, format.max_exponent) + 1 - format.precision;
}

}  // namespace

bool HasReference(absl::string_view op) {
  return std::any_of(std::begin(kRows), std::end(kRows), [op](const Row& row) { return row.op == op; });
}

double ReferenceValue(absl::string_view op, absl::string_view type, absl::Span<const double> args) {
  const Format& format = FindFormat(type);
  Number y;
  Evaluate(op, args, y);
  if (!mpfr_number_p(y)) return mpfr_get_d(y, kNearest);
  const long last = LastPlace(format, y);
  mpfr_mul_2si(y, y, -last, kNearest);  // then the value is an integer in the format
  mpfr_rint(y, y, kNearest);            // half to even
  mpfr_mul_2si(y, y, last, kNearest);
  if (!mpfr_zero_p(y) && mpfr_get_exp(y) - 1 > format.max_exponent) mpfr_set_inf(y, mpfr_signbit(y) ? -1 : 1);
  return mpfr_get_d(y, kNearest);
}

double UlpError(absl::string_view op, absl::string_view type, absl::Span<const double> args, double result) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  const Format& format = FindFormat(type);
  Number exact;
  Evaluate(op, args, exact);
  if (mpfr_nan_p(exact)) return std::isnan(result) ? 0 : kInf;
  if (mpfr_inf_p(exact)) return result == mpfr_get_d(exact, kNearest) ? 0 : kInf;
  if (std::isnan(result)) return kInf;
  if (result == 0 && std::signbit(result) != (mpfr_signbit(exact) != 0)) return kInf;
  Number difference(result), limit(std::signbit(result) ? -1 : 1);
  mpfr_mul_2si(limit, limit, format.max_exponent + 1, kNearest);
  if (std::isinf(result)) mpfr_set(difference, limit, kNearest);
  if (mpfr_cmpabs(exact, limit) > 0) mpfr_copysign(exact, limit, exact, kNearest);
  const long last = LastPlace(format, exact);
  mpfr_sub(difference, difference, exact, kNearest);
  mpfr_mul_2si(difference, difference, -last, kNearest);
  return std::abs(mpfr_get_d(difference, kNearest));
}

}  // namespace nestor
