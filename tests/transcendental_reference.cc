// The reference for the transcendental scalar ops. Each op is one row: a function that leaves its
// value, to about 150 bits, in an MPFR number. A row follows the op's definition, but is written so
// that nothing cancels: gelu over erfc, softplus over log1p, gelu_tanh as a quotient. MPFR's own
// functions are correctly rounded and follow C99 at the special values; a value composed of a few
// of them is off by some units in the 160th bit, far below what a format of 53 bits can tell.
// MPFR's exponents have more than 30 bits, so nothing overflows or underflows here that is not far
// out of the range of f64.

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

template <int (*Function)(mpfr_t, const mpfr_t, const mpfr_t, mpfr_rnd_t)>
void Binary(Args args, mpfr_ptr y) {
  Number a(args[0]), b(args[1]);
  Function(y, a, b, kNearest);
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

// max(a, 0) + scale expm1(min(a, 0) / divisor)
void LinearAndExponential(double a, double scale, double divisor, double slope, mpfr_ptr y) {
  Number t(std::isnan(a) ? a : std::min(a, 0.0)), positive(std::isnan(a) ? a : std::max(a, 0.0));
  mpfr_div_d(t, t, divisor, kNearest);
  mpfr_expm1(y, t, kNearest);
  mpfr_mul_d(y, y, scale, kNearest);
  mpfr_mul_d(positive, positive, slope, kNearest);
  mpfr_add(y, y, positive, kNearest);
}

void Elu(Args args, mpfr_ptr y) { LinearAndExponential(args[0], args[1], 1, 1, y); }
void Celu(Args args, mpfr_ptr y) { LinearAndExponential(args[0], args[1], args[1], 1, y); }
void Selu(Args args, mpfr_ptr y) {
  LinearAndExponential(args[0], 1.7580993408473766, 1, 1.0507009873554805, y);
}

// x/2 (1 + tanh(z)) = x / (1 + exp(-2 z)), z = sqrt(2/pi) (x + 0.044715 x^3).
void GeluTanh(Args args, mpfr_ptr y) {
  Number x(args[0]), z(args[0]);
  mpfr_sqr(z, x, kNearest);
  mpfr_mul(z, z, x, kNearest);
  mpfr_mul_d(z, z, 0.044715, kNearest);
  mpfr_add(z, z, x, kNearest);
  mpfr_mul_d(z, z, -1.5957691216057308, kNearest);
  mpfr_exp(z, z, kNearest);
  mpfr_add_ui(z, z, 1, kNearest);
  mpfr_div(y, x, z, kNearest);
}

void Mish(Args args, mpfr_ptr y) {  // x tanh(softplus(x))
  Softplus(args, y);
  mpfr_tanh(y, y, kNearest);
  mpfr_mul_d(y, y, args[0], kNearest);
}

void Softcap(Args args, mpfr_ptr y) {  // b tanh(a / b)
  Number t(args[0]);
  mpfr_div_d(t, t, args[1], kNearest);
  mpfr_tanh(y, t, kNearest);
  mpfr_mul_d(y, y, args[1], kNearest);
}

void Logit(Args args, mpfr_ptr y) {  // log(x / (1 - x))
  Number x(args[0]), rest;
  mpfr_ui_sub(rest, 1, x, kNearest);
  mpfr_div(x, x, rest, kNearest);
  mpfr_log(y, x, kNearest);
}

void Logaddexp(Args args, mpfr_ptr y) {  // log(exp(a) + exp(b)) = max(a, b) + log1p(exp(-|a - b|))
  Number a(args[0]), b(args[1]), difference;
  if (args[0] != args[1]) mpfr_sub(difference, a, b, kNearest);
  mpfr_abs(difference, difference, kNearest);
  mpfr_neg(difference, difference, kNearest);
  mpfr_exp(difference, difference, kNearest);
  mpfr_log1p(difference, difference, kNearest);
  mpfr_max(a, a, b, kNearest);
  mpfr_add(y, a, difference, kNearest);
}

void Xlogy(Args args, mpfr_ptr y) {  // a log(b), 0 where a is and b is a number
  if (args[0] == 0 && !std::isnan(args[1])) return void(mpfr_set_zero(y, 1));
  Number b(args[1]);
  mpfr_log(y, b, kNearest);
  mpfr_mul_d(y, y, args[0], kNearest);
}

struct Row {
  absl::string_view op;
  int arity;
  void (*value)(Args, mpfr_ptr);
};

constexpr Row kRows[] = {
    {"exp", 1, Unary<mpfr_exp>},
    {"exp2", 1, Unary<mpfr_exp2>},
    {"expm1", 1, Unary<mpfr_expm1>},
    {"log", 1, Unary<mpfr_log>},
    {"log2", 1, Unary<mpfr_log2>},
    {"log10", 1, Unary<mpfr_log10>},
    {"log1p", 1, Unary<mpfr_log1p>},
    {"sin", 1, Unary<mpfr_sin>},
    {"cos", 1, Unary<mpfr_cos>},
    {"tan", 1, Unary<mpfr_tan>},
    {"asin", 1, Unary<mpfr_asin>},
    {"acos", 1, Unary<mpfr_acos>},
    {"atan", 1, Unary<mpfr_atan>},
    {"sinh", 1, Unary<mpfr_sinh>},
    {"cosh", 1, Unary<mpfr_cosh>},
    {"tanh", 1, Unary<mpfr_tanh>},
    {"asinh", 1, Unary<mpfr_asinh>},
    {"acosh", 1, Unary<mpfr_acosh>},
    {"atanh", 1, Unary<mpfr_atanh>},
    {"erf", 1, Unary<mpfr_erf>},
    {"erfc", 1, Unary<mpfr_erfc>},
    {"sqrt", 1, Unary<mpfr_sqrt>},
    {"pow", 2, Binary<mpfr_pow>},
    {"atan2", 2, Binary<mpfr_atan2>},
    {"hypot", 2, Binary<mpfr_hypot>},
    {"fmod", 2, Binary<mpfr_fmod>},
    {"recip", 1, Recip},
    {"rsqrt", 1, Rsqrt},
    {"sigmoid", 1, Sigmoid},
    {"silu", 1, Silu},
    {"gelu", 1, Gelu},
    {"softplus", 1, Softplus},
    {"elu", 2, Elu},
    {"celu", 2, Celu},
    {"selu", 1, Selu},
    {"gelu_tanh", 1, GeluTanh},
    {"mish", 1, Mish},
    {"softcap", 2, Softcap},
    {"logit", 1, Logit},
    {"logaddexp", 2, Logaddexp},
    {"xlogy", 2, Xlogy},
};

struct Format {
  absl::string_view type;
  int precision;
  int min_exponent, max_exponent;  // of normal numbers: 1.m * 2^e
};

constexpr Format kFormats[] = {
    {"f64", 53, -1022, 1023}, {"f32", 24, -126, 127}, {"f16", 11, -14, 15}, {"bf16", 8, -126, 127}};

void Evaluate(absl::string_view op, Args args, mpfr_ptr y) {
  for (const Row& row : kRows) {
    if (row.op == op && static_cast<size_t>(row.arity) == args.size()) return row.value(args, y);
  }
  std::fprintf(stderr, "no reference for %.*s of %zu arguments\n", static_cast<int>(op.size()),
               op.data(), args.size());
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
  return std::clamp<long>(exponent, format.min_exponent, format.max_exponent) + 1 -
         format.precision;
}

}  // namespace

bool HasReference(absl::string_view op) {
  return std::any_of(std::begin(kRows), std::end(kRows),
                     [op](const Row& row) { return row.op == op; });
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
  if (!mpfr_zero_p(y) && mpfr_get_exp(y) - 1 > format.max_exponent)
    mpfr_set_inf(y, mpfr_signbit(y) ? -1 : 1);
  return mpfr_get_d(y, kNearest);
}

double UlpError(absl::string_view op, absl::string_view type, absl::Span<const double> args,
                double result) {
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
