// There is one line for each row. Where the definition would cancel or overflow half-way, the line
// is written so that it does not.
#include "tests/scalar_screen.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace nestor {
namespace {

template <class T>
T Sigmoid(T x) {
  return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x));
}
template <class T>
T Softplus(T x) {
  return std::max(x, T{0}) + std::log1p(std::exp(-std::fabs(x)));
}

struct Row {
  absl::string_view op;
  Screen screen;
};

#define NESTOR_SCREEN(name, expression)                                                          \
  {                                                                                              \
    name, {                                                                                      \
      []([[maybe_unused]] double a, [[maybe_unused]] double b) -> double { return expression; }, \
          []([[maybe_unused]] long double a, [[maybe_unused]] long double b) -> long double {    \
            return expression;                                                                   \
          }                                                                                      \
    }                                                                                            \
  }
constexpr Row kRows[] = {
    NESTOR_SCREEN("exp", std::exp(a)),        NESTOR_SCREEN("exp2", std::exp2(a)),
    NESTOR_SCREEN("expm1", std::expm1(a)),    NESTOR_SCREEN("log", std::log(a)),
    NESTOR_SCREEN("log2", std::log2(a)),      NESTOR_SCREEN("log10", std::log10(a)),
    NESTOR_SCREEN("log1p", std::log1p(a)),    NESTOR_SCREEN("sin", std::sin(a)),
    NESTOR_SCREEN("cos", std::cos(a)),        NESTOR_SCREEN("tan", std::tan(a)),
    NESTOR_SCREEN("asin", std::asin(a)),      NESTOR_SCREEN("acos", std::acos(a)),
    NESTOR_SCREEN("atan", std::atan(a)),      NESTOR_SCREEN("sinh", std::sinh(a)),
    NESTOR_SCREEN("cosh", std::cosh(a)),      NESTOR_SCREEN("tanh", std::tanh(a)),
    NESTOR_SCREEN("asinh", std::asinh(a)),    NESTOR_SCREEN("acosh", std::acosh(a)),
    NESTOR_SCREEN("atanh", std::atanh(a)),    NESTOR_SCREEN("sigmoid", Sigmoid(a)),
    NESTOR_SCREEN("softplus", Softplus(a)),   NESTOR_SCREEN("erf", std::erf(a)),
    NESTOR_SCREEN("erfc", std::erfc(a)),      NESTOR_SCREEN("pow", std::pow(a, b)),
    NESTOR_SCREEN("atan2", std::atan2(a, b)), NESTOR_SCREEN("hypot", std::hypot(a, b)),
    NESTOR_SCREEN("fmod", std::fmod(a, b)),
};
#undef NESTOR_SCREEN

constexpr double kInfinity = std::numeric_limits<double>::infinity();

template <class Wide>
double Distance(Wide exact, double result, int precision, int min_exponent, int max_exponent) {
  if (std::isnan(exact) || std::isnan(result))
    return std::isnan(exact) && std::isnan(result) ? 0 : kInfinity;
  if (std::isinf(exact)) return exact == result ? 0 : kInfinity;
  if (std::signbit(exact) != std::signbit(result)) return kInfinity;
  const Wide limit = std::ldexp(Wide{1}, max_exponent + 1);
  const Wide y = std::min(std::fabs(exact), limit), got = std::min<Wide>(std::fabs(result), limit);
  const int exponent =
      y == 0 ? min_exponent : std::clamp(std::ilogb(y), min_exponent, max_exponent);
  return static_cast<double>(std::ldexp(std::fabs(got - y), precision - 1 - exponent));
}

}  // namespace

Screen ScreenOf(absl::string_view op) {
  for (const Row& row : kRows) {
    if (row.op == op) return row.screen;
  }
  return {nullptr, nullptr};
}

double ScreenedError(const Screen& screen, DType type, double a, double b, double result) {
  if (type == DType::kF32) return Distance(screen.narrow(a, b), result, 24, -126, 127);
  return Distance(screen.wide(a, b), result, 53, -1022, 1023);
}

double StructuredArguments::Uniform(double low, double high) {
  return low + (high - low) * (static_cast<double>(random_() >> 11) * 0x1p-53);
}

double StructuredArguments::One() {
  const int64_t kind = number_++ % 8;
  const double sign = random_() % 2 == 0 ? 1 : -1;
  const double range = type_ == DType::kF64 ? 760 : 105;
  switch (kind) {
    case 0: {
      const Bits bits = type_ == DType::kF64 ? random_() : random_() & 0xffffffff;
      const double x = Scalar{type_, bits}.ToDouble();
      return std::isnan(x) ? 0 : x;
    }
    case 1: return Uniform(-1, 1);
    case 2: return Uniform(-3, 3);
    case 3: return Uniform(-30, 30);
    case 4: return Uniform(-range, range);
    case 5: return 1 + std::ldexp(Uniform(-1, 1), -static_cast<int>(random_() % 40));
    case 6: return sign * std::ldexp(Uniform(1, 2), static_cast<int>(random_() % 60) - 40);
    default: return std::nearbyint(Uniform(-40, 40));
  }
}

std::pair<double, double> StructuredArguments::Next() {
  const double a = One();
  const double ratio = std::ldexp(Uniform(-2, 2), static_cast<int>(random_() % 64) - 32);
  return {a, random_() % 2 == 0 ? One() : a * ratio};
}

}  // namespace nestor
