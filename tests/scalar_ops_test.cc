// The table of scalar ops, row by row: values against references that share nothing with it, and
// properties of the table itself.
//
// Every row is found automatically; a row without a reference here fails the test, so that a new
// row gets one. A row's result is known in one of three ways:
//
//   exactly       kReferences: the row's sentence in SEMANTICS 3, computed in __float128 and
//                 __int128, which hold every value and round to every type once
//   within ulps   a transcendental, against MPFR, by the error that its row states
//   within a bound  kBounded: a composed row that cancels, against MPFR, by a bound of the
//                 errors of its rows
//
// Values are drawn by kind of type: all values (8 bits, and 16 bits of unary ops), else every
// special value, alone and in pairs, and random ones from a fixed seed.
#include <mpfr.h>

#include <cmath>
#include <cstdlib>
#include <functional>
#include <map>
#include <random>
#include <set>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "interp/interpreter.h"
#include "loop_ir/lower.h"
#include "tests/transcendental_reference.h"
#include "uops/notation/module.h"
#include "uops/scalar_body.h"
#include "uops/scalar_op.h"

namespace nestor {
namespace {

// 113 bits: sums, products and quotients of doubles round once more, harmlessly.
using Quad = __float128;
using Int = __int128;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kPi = 3.141592653589793;

// ---- Formats ----

struct Format {
  int precision;
  int min_exponent, max_exponent;  // of normal numbers
};
Format FormatOf(DType type) {
  switch (type) {
    case DType::kBF16: return {8, -126, 127};
    case DType::kF16: return {11, -14, 15};
    case DType::kF32: return {24, -126, 127};
    default: return {53, -1022, 1023};
  }
}
int WidthOf(DType type) { return type == DType::kBool ? 1 : 8 * ByteSize(type); }
bool IsHalf(DType type) { return type == DType::kBF16 || type == DType::kF16; }

// x rounded to a 16-bit format, once. Exact for x from any of the types, i64 included.
double RoundToHalf(DType type, long double x) {
  if (!std::isfinite(x) || x == 0) return static_cast<double>(x);
  const Format format = FormatOf(type);
  const int exponent = std::max(std::ilogb(x), format.min_exponent);
  const int last_place = exponent + 1 - format.precision;
  const long double rounded = std::ldexp(std::nearbyint(std::ldexp(x, -last_place)), last_place);
  const long double limit = std::ldexp(1.0L, format.max_exponent + 1);
  return std::fabs(rounded) >= limit ? std::copysign(kInf, static_cast<double>(x))
                                     : static_cast<double>(rounded);
}

// SEMANTICS 3: one rounding to the type; the 16-bit floats compute in f32 and round then.
Quad Round(DType type, Quad x) {
  if (type == DType::kF64) return static_cast<double>(x);
  const float f = static_cast<float>(x);
  return IsHalf(type) ? RoundToHalf(type, f) : f;
}

double ToDouble(DType type, Bits bits) { return Scalar{type, bits}.ToDouble(); }

// The bits of a value of the type, found without the code under test.
Bits FloatBits(DType type, double x) {
  if (type == DType::kF64) return std::isnan(x) ? 0x7ff8000000000000 : ToBits(x);
  if (type == DType::kF32) return std::isnan(x) ? 0x7fc00000 : ToBits(static_cast<float>(x));
  if (std::isnan(x)) return type == DType::kF16 ? 0x7e00 : 0x7fc0;
  const Format format = FormatOf(type);
  const Bits sign = std::signbit(x) ? 0x8000 : 0;
  const int mantissa_bits = format.precision - 1;
  if (std::isinf(x)) return sign | static_cast<Bits>(2 * format.max_exponent + 1) << mantissa_bits;
  if (x == 0) return sign;
  const int exponent = std::max(std::ilogb(x), format.min_exponent);
  const Bits significand = static_cast<Bits>(std::ldexp(std::fabs(x), mantissa_bits - exponent));
  // A subnormal's significand lacks the leading bit that a normal's adds to the exponent field.
  return sign |
         ((static_cast<Bits>(exponent - format.min_exponent) << mantissa_bits) + significand);
}

// The types' names say which have a sign.
bool HasSign(DType type) { return Name(type)[0] == 'i'; }

// The number that bits of an integer type or bool are.
Int IntegerOf(DType type, Bits bits) {
  return HasSign(type) ? Int{static_cast<int64_t>(bits)} : Int{bits};
}

// The value modulo 2^width, as the sign-extended bits of a signed type.
Bits IntegerBits(DType type, Int x) {
  const int width = WidthOf(type);
  const Int modulus = Int{1} << width;
  Int wrapped = ((x % modulus) + modulus) % modulus;
  if (HasSign(type) && wrapped >= modulus / 2) wrapped -= modulus;
  return static_cast<Bits>(static_cast<int64_t>(wrapped));
}

// ---- References ----

struct Floats {
  DType type;
  Quad a, b, c;
  Quad operator()(Quad x) const { return Round(type, x); }  // one rounding
};
struct Integers {
  int width;
  Int a, b, c;
};

bool Negative(Quad x) { return std::signbit(static_cast<double>(x)); }
bool IsNaN(Quad x) { return x != x; }

double Floor(Quad x) {
  const double d = static_cast<double>(x);
  if (!(std::fabs(d) < 0x1p52)) return d;
  double whole = static_cast<double>(static_cast<int64_t>(d));
  if (whole > d) whole -= 1;
  return whole == 0 ? std::copysign(0.0, d) : whole;
}
double RoundHalfToEven(Quad x) {
  const double d = static_cast<double>(x), below = Floor(x), rest = d - below;
  if (!(std::fabs(d) < 0x1p52)) return d;
  const bool odd = static_cast<int64_t>(below) % 2 != 0;
  return std::copysign(rest > 0.5 || (rest == 0.5 && odd) ? below + 1 : below, d);
}

Quad Scaled(Quad a, Quad b) {
  if (IsNaN(b) || b == kInf || b == -kInf) return a * (b > 0 ? Quad{kInf} : b < 0 ? Quad{0} : b);
  const double n = Floor(b);
  for (int i = 0; i < std::min(std::fabs(n), 4000.0); ++i) a *= n > 0 ? 2 : Quad{0.5};
  return a;
}

// a * b + c with all bits kept until the one rounding.
Quad Fma(const Floats& v, Quad a, Quad b, Quad c) {
  mpfr_t x, y, z;
  mpfr_inits2(4400, x, y, z, nullptr);
  mpfr_set_d(x, static_cast<double>(a), MPFR_RNDN);
  mpfr_set_d(y, static_cast<double>(b), MPFR_RNDN);
  mpfr_set_d(z, static_cast<double>(c), MPFR_RNDN);
  mpfr_fma(x, x, y, z, MPFR_RNDN);
  const double result =
      v.type == DType::kF64 ? mpfr_get_d(x, MPFR_RNDN) : mpfr_get_flt(x, MPFR_RNDN);
  mpfr_clears(x, y, z, nullptr);
  return result;
}

Quad Sqrt(const Floats& v) {
  return ReferenceValue("sqrt", Name(v.type), {static_cast<double>(v.a)});
}

// IEEE 754-2019 maximum: NaN wins, -0 < +0.
Quad Maximum(Quad a, Quad b) {
  if (IsNaN(a) || IsNaN(b)) return kNaN;
  if (a == b) return Negative(a) && Negative(b) ? a : a == 0 ? Quad{0} : a;
  return a > b ? a : b;
}
Quad Minimum(Quad a, Quad b) { return -Maximum(-a, -b); }

Int FloorDivide(Int a, Int b) {
  if (b == 0) return 0;
  const Int quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}
Int FloorRemainder(Int a, Int b) { return b == 0 ? 0 : a - b * FloorDivide(a, b); }

// Modulo 2^128: the product of two u64 may be beyond an Int.
Int Product(Int a, Int b) {
  return static_cast<Int>(static_cast<unsigned __int128>(a) * static_cast<unsigned __int128>(b));
}

int Ones(int width, Int a) {
  int count = 0;
  for (int bit = 0; bit < width; ++bit) count += static_cast<int>(a >> bit & 1);
  return count;
}
int Zeros(int width, Int a) {
  int count = 0;
  while (count < width && (a >> (width - 1 - count) & 1) == 0) ++count;
  return count;
}

Quad HardSigmoid(const Floats& v) { return Minimum(Maximum(v(v.a + 3), 0), 6) / 6; }

struct Reference {
  Quad (*floats)(const Floats&);     // rounded by the caller; null where the row takes none
  Int (*integers)(const Integers&);  // wrapped by the caller; bool is the integer of one bit
};

const std::map<std::string, Reference>& References() {
  using F = const Floats&;
  using I = const Integers&;
  static const auto& references = *new std::map<std::string, Reference>{
      {"neg", {[](F v) { return -v.a; }, [](I v) { return -v.a; }}},
      {"abs",
       {[](F v) { return Negative(v.a) ? -v.a : v.a; }, [](I v) { return v.a < 0 ? -v.a : v.a; }}},
      {"sign",
       {[](F v) { return IsNaN(v.a) || v.a == 0 ? v.a
                         : Negative(v.a)        ? Quad{-1}
                                                : Quad{1}; },
        [](I v) { return Int{v.a > 0} - Int{v.a < 0}; }}},
      {"floor", {[](F v) { return Quad{Floor(v.a)}; }, nullptr}},
      {"ceil", {[](F v) { return -Quad{Floor(-v.a)}; }, nullptr}},
      {"round", {[](F v) { return Quad{RoundHalfToEven(v.a)}; }, nullptr}},
      {"trunc",
       {[](F v) { return Negative(v.a) ? -Quad{Floor(-v.a)} : Quad{Floor(v.a)}; }, nullptr}},
      {"isnan", {[](F v) { return Quad(IsNaN(v.a)); }, nullptr}},
      {"isinf", {[](F v) { return Quad(v.a == kInf || v.a == -kInf); }, nullptr}},
      {"sqrt", {Sqrt, nullptr}},
      {"rsqrt", {[](F v) { return 1 / Sqrt(v); }, nullptr}},
      {"recip", {[](F v) { return 1 / v.a; }, nullptr}},
      {"not", {nullptr, [](I v) { return -1 - v.a; }}},
      {"copy", {[](F v) { return v.a; }, [](I v) { return v.a; }}},
      {"add", {[](F v) { return v.a + v.b; }, [](I v) { return v.a + v.b; }}},
      {"sub", {[](F v) { return v.a - v.b; }, [](I v) { return v.a - v.b; }}},
      {"mul", {[](F v) { return v.a * v.b; }, [](I v) { return Product(v.a, v.b); }}},
      {"div", {[](F v) { return v.a / v.b; }, nullptr}},
      {"fma", {[](F v) { return Fma(v, v.a, v.b, v.c); }, nullptr}},
      {"ldexp", {[](F v) { return Scaled(v.a, v.b); }, nullptr}},
      {"floordiv",
       {[](F v) { return Quad{Floor(v(v.a / v.b))}; }, [](I v) { return FloorDivide(v.a, v.b); }}},
      {"mod",
       {[](F v) {
          const Quad r = v(Fma(v, -Quad{Floor(v(v.a / v.b))}, v.b, v.a));
          return r != 0 && (r < 0) != (v.b < 0) ? r + v.b : r;
        },
        [](I v) { return FloorRemainder(v.a, v.b); }}},
      {"max", {[](F v) { return Maximum(v.a, v.b); }, [](I v) { return v.a > v.b ? v.a : v.b; }}},
      {"min", {[](F v) { return Minimum(v.a, v.b); }, [](I v) { return v.a < v.b ? v.a : v.b; }}},
      {"eq", {[](F v) { return Quad(v.a == v.b); }, [](I v) { return Int{v.a == v.b}; }}},
      {"ne", {[](F v) { return Quad(v.a != v.b); }, [](I v) { return Int{v.a != v.b}; }}},
      {"lt", {[](F v) { return Quad(v.a < v.b); }, [](I v) { return Int{v.a < v.b}; }}},
      {"le", {[](F v) { return Quad(v.a <= v.b); }, [](I v) { return Int{v.a <= v.b}; }}},
      {"gt", {[](F v) { return Quad(v.a > v.b); }, [](I v) { return Int{v.a > v.b}; }}},
      {"ge", {[](F v) { return Quad(v.a >= v.b); }, [](I v) { return Int{v.a >= v.b}; }}},
      {"where",
       {[](F v) { return v.a != 0 ? v.b : v.c; }, [](I v) { return v.a != 0 ? v.b : v.c; }}},
      {"and", {nullptr, [](I v) { return v.a & v.b; }}},
      {"or", {nullptr, [](I v) { return v.a | v.b; }}},
      {"xor", {nullptr, [](I v) { return v.a ^ v.b; }}},
      {"shl",
       {nullptr, [](I v) { return v.b < 0 || v.b >= v.width ? 0 : v.a << static_cast<int>(v.b); }}},
      {"shr",
       {nullptr,
        [](I v) {
          const Int floored =
              FloorDivide(v.a, Int{1} << static_cast<int>(v.b >= 0 && v.b < v.width ? v.b : 64));
          return floored;
        }}},
      {"popcount", {nullptr, [](I v) { return Int{Ones(v.width, v.a)}; }}},
      {"clz", {nullptr, [](I v) { return Int{Zeros(v.width, v.a)}; }}},
      {"dot_halves",
       {nullptr,
        [](I v) {
          const Int high_a = FloorDivide(v.a + 0x8000, 0x10000),
                    high_b = FloorDivide(v.b + 0x8000, 0x10000);
          return v.c + (v.a - high_a * 0x10000) * (v.b - high_b * 0x10000) +
                 FloorDivide(v.a, 0x10000) * FloorDivide(v.b, 0x10000);
        }}},
      {"square", {[](F v) { return v.a * v.a; }, [](I v) { return Product(v.a, v.a); }}},
      {"mulz",
       {[](F v) { return v.a == 0 || v.b == 0 ? Quad{0} : v.a * v.b; },
        [](I v) { return Product(v.a, v.b); }}},
      {"relu", {[](F v) { return Maximum(v.a, 0); }, [](I v) { return v.a > 0 ? v.a : Int{0}; }}},
      {"relu6",
       {[](F v) { return Minimum(Maximum(v.a, 0), 6); },
        [](I v) { return v.a > 6   ? Int{6}
                         : v.a > 0 ? v.a
                                   : Int{0}; }}},
      {"leaky_relu", {[](F v) { return Maximum(v.a, 0) + v(v.b * Minimum(v.a, 0)); }, nullptr}},
      {"softsign", {[](F v) { return v.a / v(1 + (Negative(v.a) ? -v.a : v.a)); }, nullptr}},
      {"hard_sigmoid", {HardSigmoid, nullptr}},
      {"hard_swish", {[](F v) { return v.a * v(HardSigmoid(v)); }, nullptr}},
      {"clamp",
       {[](F v) { return Minimum(Maximum(v.a, v.b), v.c); },
        [](I v) { return std::min(std::max(v.a, v.b), v.c); }}},
  };
  return references;
}

// Rows whose operands and results have different types; each has a test of its own below.
const std::set<std::string>& Conversions() {
  static const auto& names = *new std::set<std::string>{"cast", "bits", "from_bits"};
  return names;
}

// The ingredients of a bound: a type has the relative rounding error u = 2^-p and the least
// subnormal `tiny`; a transcendental's error is `ulp` ulps, so relative to its result 2 ulp u.
struct Errors {
  double u, tiny, greatest;
  int ulp;
  double Row() const { return 2 * ulp * u; }
};

// The largest error of a composed row at `x` whose exact value is y. Terms of the second order
// are in the slack of coefficients like 1.01.
using Bound = double (*)(absl::Span<const double> x, double y, const Errors& e);

// max(a, 0) + scale expm1(t), t = min(a, 0) / b, where t's error of u is that of expm1(t) times
// t e^t / expm1(t), at most 1 below 0 and 1 + t above. Where expm1(t) overflows, nothing holds.
double BoundOfLinearAndExponential(double t, double scale, double y, const Errors& e) {
  if (std::expm1(t) * 1.5 > e.greatest) return kInf;
  const double condition = t > 0 ? 1 + t : 1;
  return std::fabs(y) * (e.Row() + std::expm1(condition * e.u) + 3.02 * e.u) +
         ((e.ulp + 1) * std::fabs(scale) + 2) * e.tiny;
}

// a sigmoid(z), z of a relative error of `units` u: the sigmoid's is that times |z| (1
// - sigmoid(z)).
double BoundOfGated(double a, double z, int units, double y, const Errors& e) {
  if (y == 0) return (e.ulp * std::fabs(a) + 1) * e.tiny;
  const double within = std::clamp(z, -1e4, 1e4);  // beyond, the sigmoid is 0 or 1
  const double moved =
      std::expm1(units * e.u * std::fabs(within) / (1 + std::exp(std::min(within, 700.0))));
  return (e.Row() + 1.01 * e.u + 1.1 * moved) * std::fabs(y) + (e.ulp * std::fabs(a) + 1) * e.tiny;
}

const std::map<std::string, Bound>& Bounded() {
  using X = absl::Span<const double>;
  using E = const Errors&;
  static const auto& bounds = *new std::map<std::string, Bound>{
      // 0.5 x (1 + erf(t)), t = x c: t is off by 1.5 u |t| and so erf(t) by 1.5 u |t| erf'(t),
      // which is <= 0.73 u for every t; then erf's own error and the rounding of a sum <= 2; then
      // two products. Second-order terms are within the slack of the 0.73, rounded up to 1.
      {"gelu",
       [](X x, double y, E e) {
         return 0.5 * std::fabs(x[0]) * e.u * (1 + 2 * e.ulp + 2) + 2 * e.u * std::fabs(y) +
                (1 + std::fabs(x[0])) * 2 * e.tiny;
       }},
      // A product: sigmoid's relative error, or its absolute one where it is subnormal,
      // and a rounding.
      {"silu", [](X x, double y, E e) { return BoundOfGated(x[0], 0, 0, y, e); }},
      // The argument: two constants, a cube, two products and a sum of one sign.
      {"gelu_tanh",
       [](X x, double y, E e) {
         return BoundOfGated(x[0], 1.5957691216057308 * (x[0] + 0.044715 * x[0] * x[0] * x[0]), 8,
                             y, e);
       }},
      {"elu", [](X x, double y, E e) { return BoundOfLinearAndExponential(0, x[1], y, e); }},
      {"selu", [](X, double y, E e) { return BoundOfLinearAndExponential(0, 1.8, y, e); }},
      {"celu",
       [](X x, double y, E e) {
         return BoundOfLinearAndExponential(std::min(x[0], 0.0) / x[1], x[1], y, e);
       }},
      // Two rows, of which the outer has a condition of at most 1, and a product.
      {"mish",
       [](X x, double y, E e) {
         return (2 * e.Row() + 1.05 * e.u) * std::fabs(y) +
                (2 * e.ulp * std::fabs(x[0]) + 1) * e.tiny;
       }},
      // A quotient, to which tanh has a condition of at most 1, the row, a product.
      {"softcap",
       [](X x, double y, E e) {
         return (e.Row() + 2.05 * e.u) * std::fabs(y) +
                ((e.ulp + 1) * std::fabs(x[1]) + 1) * e.tiny;
       }},
      // A difference and a quotient move the logarithm by 2 u.
      {"logit", [](X, double y, E e) { return e.Row() * std::fabs(y) + 2.05 * e.u + e.tiny; }},
      // exp(-d) is at most 1, and so is d exp(-d); log1p moves no more than its argument, and
      // is at most 0.7.
      {"logaddexp",
       [](X, double y, E e) {
         return 1.01 * e.u * std::fabs(y) + (1 + 2 * e.Row() / e.u) * 1.01 * e.u + 3 * e.tiny;
       }},
      {"xlogy",
       [](X x, double y, E e) {
         return (e.Row() + 1.01 * e.u) * std::fabs(y) + (e.ulp * std::fabs(x[0]) + 1) * e.tiny;
       }},
  };
  return bounds;
}

// ---- Values ----

std::vector<Bits> SpecialValues(DType type) {
  std::set<Bits> values;
  if (IsFloat(type)) {
    const Format format = FormatOf(type);
    const double ulp = std::ldexp(1.0, 1 - format.precision);
    const double least_normal = std::ldexp(1.0, format.min_exponent), least = least_normal * ulp;
    const double greatest = std::ldexp(2 - ulp, format.max_exponent);
    for (double x : {0.0,
                     0.5,
                     1.0,
                     1.5,
                     2.0,
                     2.5,
                     3.0,
                     7.0,
                     100.5,
                     1 - ulp / 2,
                     1 + ulp,
                     1 / ulp,
                     1 / ulp - 1,
                     2 / ulp,
                     0.5 / ulp - 0.5,
                     0.5 - ulp / 4,
                     1.0 / 3,
                     3.14159265358979,
                     88.5,
                     least,
                     2 * least,
                     least_normal - least,
                     least_normal,
                     greatest,
                     greatest / 2,
                     std::sqrt(greatest),
                     kInf}) {
      for (double y : {x, -x}) {
        const double rounded =
            IsHalf(type) ? RoundToHalf(type, y) : static_cast<double>(Round(type, y));
        values.insert(FloatBits(type, rounded));
      }
    }
    values.insert(FloatBits(type, kNaN));
  } else {
    const int width = WidthOf(type);
    const Int half = (Int{1} << width) / 2;
    const auto power = [](int n) { return Int{1} << n; };
    for (Int x : {Int{0},
                  Int{1},
                  Int{2},
                  Int{3},
                  Int{5},
                  Int{7},
                  Int{8},
                  Int{31},
                  Int{32},
                  Int{63},
                  Int{64},
                  Int{65},
                  Int{100},
                  half - 1,
                  half,
                  half + 1,
                  Int{0x7f0000ff},
                  power(width / 2),
                  power(24) + 1,
                  power(53) + 1,
                  power(30) + power(22) + 1,
                  power(62) + power(54) + 1,
                  power(62) + power(38) + 1}) {
      values.insert(IntegerBits(type, x));
      values.insert(IntegerBits(type, -x));
    }
  }
  return {values.begin(), values.end()};
}

using Random = std::mt19937_64;

// A random value: any bits, or (for wide types) moderate size.
Bits RandomValue(DType type, Random& random) {
  const uint64_t raw = random();
  if (!IsFloat(type))
    return IntegerBits(type, static_cast<int64_t>(raw >> (raw % 3 == 0 ? 32 : 0)));
  if (raw % 2 == 0) {
    const double x =
        std::ldexp(static_cast<int64_t>(random()) * 0x1p-63, static_cast<int>(raw / 2 % 12) - 3);
    return FloatBits(type,
                     IsHalf(type) ? RoundToHalf(type, x) : static_cast<double>(Round(type, x)));
  }
  const Bits bits = random() & (type == DType::kF64 ? ~Bits{0} : (Bits{1} << WidthOf(type)) - 1);
  return std::isnan(ToDouble(type, bits)) ? FloatBits(type, kNaN) : bits;
}

std::vector<Bits> AllValues(DType type) {
  std::vector<Bits> values;
  for (Bits i = 0; i < Bits{1} << WidthOf(type); ++i) {
    const Bits bits = IsFloat(type) ? i : IntegerBits(type, static_cast<Int>(i));
    if (!IsFloat(type) || !std::isnan(ToDouble(type, bits))) values.push_back(bits);
  }
  if (IsFloat(type)) values.push_back(FloatBits(type, kNaN));
  return values;
}

// The types of a row's operands, where that of the last ones is `type`.
std::vector<DType> OperandTypesOf(const ScalarOpRow& row, DType type) {
  std::vector<DType> types(row.arity, type);
  if (row.result == ResultType::kChoice) types[0] = DType::kBool;
  return types;
}

// Calls `visit` with operands of the types given: all there are where that is feasible, else the
// special ones in every combination (of three operands: at most `kCombinations`) and random ones.
void VisitOperandValues(const std::vector<DType>& types, int random_cases,
                        const std::function<void(const Bits*)>& visit) {
  constexpr int kCombinations = 1 << 17;
  Random random(20230817);
  int total_width = 0;
  for (DType type : types) total_width += WidthOf(type);
  const bool all = total_width <= 16;
  std::vector<std::vector<Bits>> values;
  size_t combinations = 1;
  for (DType type : types) {
    values.push_back(all ? AllValues(type) : SpecialValues(type));
    combinations *= values.back().size();
  }
  Bits operands[3] = {0, 0, 0};
  const size_t step = combinations / kCombinations + 1;
  for (size_t i = 0; i < combinations; i += step) {
    size_t rest = i;
    for (size_t j = 0; j < types.size(); ++j) {
      operands[j] = values[j][rest % values[j].size()];
      rest /= values[j].size();
    }
    visit(operands);
  }
  for (int i = 0; i < (all ? 0 : random_cases); ++i) {
    for (size_t j = 0; j < types.size(); ++j) operands[j] = RandomValue(types[j], random);
    visit(operands);
  }
}

// Collects failures of one row and type, and prints the first few.
class Failures {
 public:
  Failures(const ScalarOpRow& row, DType type)
      : title_(absl::StrCat(row.name, " of ", Name(type))) {}
  ~Failures() {
    if (count_ != 0)
      ADD_FAILURE() << title_ << ": " << count_ << " of " << cases_ << " cases are wrong\n"
                    << text_;
  }
  void Case() { ++cases_; }
  void Add(const std::vector<DType>& types, const Bits* operands, const std::string& got,
           const std::string& want) {
    if (++count_ > 5) return;
    absl::StrAppend(&text_, "  (");
    for (size_t i = 0; i < types.size(); ++i) {
      absl::StrAppend(&text_, i == 0 ? "" : ", ", LiteralText({types[i], operands[i]}));
    }
    absl::StrAppend(&text_, ") = ", got, ", want ", want, "\n");
  }

 private:
  std::string title_, text_;
  int count_ = 0, cases_ = 0;
};

std::string Text(DType type, Bits bits) {
  return absl::StrCat(LiteralText({type, bits}), " (bits ", absl::Hex(bits), ")");
}

// ---- Values of the rows ----

Bits ExactResult(const Reference& reference, DType type, DType result,
                 const std::vector<DType>& types, const Bits* v) {
  const int n = static_cast<int>(types.size());
  if (IsFloat(type)) {
    Floats floats{type, 0, 0, 0};
    Quad* const slots[] = {&floats.a, &floats.b, &floats.c};
    for (int i = 0; i < n; ++i)
      *slots[i] = types[i] == DType::kBool ? Quad(v[i]) : Quad{ToDouble(type, v[i])};
    const Quad y = reference.floats(floats);
    return result == DType::kBool ? y != 0 : FloatBits(type, static_cast<double>(Round(type, y)));
  }
  const auto value = [&](int i) {
    if (i >= n) return Int{0};
    return IntegerOf(types[i], v[i]);
  };
  return IntegerBits(result, reference.integers({WidthOf(type), value(0), value(1), value(2)}));
}

void CheckExact(const ScalarOpRow& row, DType type, const Reference& reference) {
  const DType result = *ResultTypeOf(row.op, type, type);
  const std::vector<DType> types = OperandTypesOf(row, type);
  const ScalarFunction function = FunctionOf(row.op, type, result);
  ASSERT_TRUE(IsFloat(type) ? reference.floats != nullptr : reference.integers != nullptr)
      << row.name << " takes " << Name(type) << ", for which this test has no reference";
  Failures failures(row, type);
  // MPFR of 4400 bits.
  const bool slow = absl::string_view(row.name) == "fma" || absl::string_view(row.name) == "mod";
  VisitOperandValues(types, slow ? 20000 : 100000, [&](const Bits* v) {
    failures.Case();
    const Bits want = ExactResult(reference, type, result, types, v), got = function(v);
    if (got != want) failures.Add(types, v, Text(result, got), Text(result, want));
  });
}

// The 16-bit floats: f32's result, rounded once.
void CheckNarrowTranscendental(const ScalarOpRow& row, DType type) {
  const std::vector<DType> types = OperandTypesOf(row, type);
  const ScalarFunction function = FunctionOf(row.op, type, type),
                       wide = FunctionOf(row.op, DType::kF32, DType::kF32);
  const double limit = 0.5 + row.ulp32 * std::ldexp(1.0, FormatOf(type).precision - 24);
  Failures failures(row, type);
  int number = 0;
  VisitOperandValues(types, 50000, [&](const Bits* v) {
    failures.Case();
    Bits widened[3] = {0, 0, 0};
    std::vector<double> args;
    for (int i = 0; i < row.arity; ++i) {
      args.push_back(ToDouble(type, v[i]));
      widened[i] = FloatBits(DType::kF32, args.back());
    }
    const Bits got = function(v);
    const Bits want = FloatBits(type, RoundToHalf(type, ToDouble(DType::kF32, wide(widened))));
    if (got != want) return failures.Add(types, v, Text(type, got), Text(type, want));
    if (++number % 16 != 0) return;  // MPFR is slow
    const double error = UlpError(row.name, Name(type), args, ToDouble(type, got));
    if (!(error <= limit))
      failures.Add(types, v, Text(type, got), absl::StrCat("within ", limit, " ulp, not ", error));
  });
}

// Operands of a transcendental where it is neither saturated nor trivial, as it mostly is
// for random bits.
void VisitInterestingOperands(int arity, DType type, int count,
                              const std::function<void(const Bits*)>& visit) {
  Random random(77);
  const auto uniform = [&](double low, double high) {
    return low + (high - low) * ((random() >> 11) * 0x1p-53);
  };
  const auto bits = [&](double x) { return FloatBits(type, static_cast<double>(Round(type, x))); };
  const double range = type == DType::kF64 ? 745 : 104;
  for (int i = 0; i < count; ++i) {
    const double scale = std::vector<double>{1e-3, 1, 10, range, 1e5}[i % 5];
    if (arity == 1) {
      const Bits operands[] = {
          bits(i % 7 == 0 ? 1 + uniform(-1e-3, 1e-3) : uniform(-scale, scale))};
      visit(operands);
    } else if (i % 2 == 0) {  // of similar sizes, or far from it
      const double a = uniform(-scale, scale),
                   ratio = std::exp(uniform(-range, range) / (i % 3 == 0 ? 1000 : 8));
      const Bits operands[] = {bits(a), bits(i % 4 == 0 ? a * ratio : -a * ratio)};
      visit(operands);
    } else {
      // pow: a near 1 or of any size, and b such that the result is in range; whole b
      // for negative a.
      const double a = i % 3 == 0 ? 1 + uniform(-1e-2, 1e-2) : std::exp(uniform(-range, range) / 4);
      const double b = uniform(-range, range) / std::max(std::fabs(std::log(a)), 1e-3);
      const bool whole = i % 4 == 0;
      const Bits operands[] = {bits(whole ? -a : a), bits(whole ? std::nearbyint(b) : b)};
      visit(operands);
    }
  }
}

void CheckTranscendental(const ScalarOpRow& row, DType type) {
  ASSERT_TRUE(HasReference(row.name))
      << row.name << " has no row in tests/transcendental_reference.cc";
  if (IsHalf(type)) return CheckNarrowTranscendental(row, type);
  const std::vector<DType> types = OperandTypesOf(row, type);
  const ScalarFunction function = FunctionOf(row.op, type, type);
  const double limit = type == DType::kF32 ? row.ulp32 : row.ulp64;
  Failures failures(row, type);
  const auto check = [&](const Bits* v) {
    failures.Case();
    std::vector<double> args;
    for (int i = 0; i < row.arity; ++i) args.push_back(ToDouble(type, v[i]));
    const Bits got = function(v);
    const double error = UlpError(row.name, Name(type), args, ToDouble(type, got));
    const bool one_nan = !std::isnan(ToDouble(type, got)) || got == FloatBits(type, kNaN);
    if (!(error <= limit) || !one_nan) {
      failures.Add(types, v, Text(type, got), absl::StrCat("within ", limit, " ulp, not ", error));
    }
  };
  VisitOperandValues(types, 8000, check);
  VisitInterestingOperands(row.arity, type, 16000, check);
}

void CheckBounded(const ScalarOpRow& row, DType type, Bound bound) {
  ASSERT_TRUE(HasReference(row.name))
      << row.name << " has no row in tests/transcendental_reference.cc";
  const Format format = FormatOf(type);
  // The body's rows with the largest stated error: 2 ulps in f64; a 16-bit row is
  // rounded once more.
  const double u = std::ldexp(1.0, -format.precision),
               greatest = std::ldexp(2 - 2 * u, format.max_exponent);
  const Errors errors{u, std::ldexp(2 * u, format.min_exponent), greatest, 2};
  const std::vector<DType> types = OperandTypesOf(row, type);
  const ScalarFunction function = FunctionOf(row.op, type, type);
  Failures failures(row, type);
  int number = 0;
  const auto check = [&](const Bits* v) {
    if (IsHalf(type) && ++number % 4 != 0) return;  // MPFR is slow
    failures.Case();
    std::vector<double> x;
    for (int i = 0; i < row.arity; ++i) x.push_back(ToDouble(type, v[i]));
    const double got = ToDouble(type, function(v)), want = ReferenceValue(row.name, "f64", x);
    const double limit = bound(x, want, errors) + (type == DType::kF64 ? u * std::fabs(want) : 0);
    const bool overflow =
        std::isinf(got) && std::fabs(want) + limit >= std::ldexp(2 - u, format.max_exponent);
    const bool special = !std::isfinite(want) || !std::isfinite(got);
    const bool same = got == want || (std::isnan(got) && std::isnan(want));
    if (special ? !same && !overflow : !(std::fabs(got - want) <= limit))
      failures.Add(types, v, Text(type, function(v)), absl::StrCat(want, " within ", limit));
  };
  VisitOperandValues(types, 8000, check);
  if (!IsHalf(type)) VisitInterestingOperands(row.arity, type, 16000, check);
}

TEST(ScalarOps, Values) {
  for (const ScalarOpRow& row : AllScalarOps()) {
    if (Conversions().count(row.name)) continue;
    const auto exact = References().find(row.name);
    const auto bounded = Bounded().find(row.name);
    EXPECT_EQ(1, row.transcendental + (exact != References().end()) + (bounded != Bounded().end()))
        << "the row '" << row.name << "' needs one reference in this test";
    for (DType type : AllTypes()) {
      if (!ResultTypeOf(row.op, type, type)) continue;
      if (row.transcendental) CheckTranscendental(row, type);
      else if (exact != References().end()) CheckExact(row, type, exact->second);
      else if (bounded != Bounded().end()) CheckBounded(row, type, bounded->second);
    }
  }
}

// Values that are exact, whatever a row's stated error: C11 Annex F, and SEMANTICS 3.
TEST(ScalarOps, SpecialValuesOfTranscendentals) {
  const struct {
    const char* op;
    std::vector<double> args;
    double want;
  } kCases[] = {
      {"exp", {0}, 1},
      {"exp", {-0.0}, 1},
      {"exp", {-kInf}, 0},
      {"exp", {kInf}, kInf},
      {"exp", {kNaN}, kNaN},
      {"exp", {1e4}, kInf},
      {"exp", {-1e4}, 0},
      {"exp2", {0}, 1},
      {"exp2", {-0.0}, 1},
      {"exp2", {3}, 8},
      {"exp2", {-14}, 0x1p-14},
      {"exp2", {-kInf}, 0},
      {"exp2", {kInf}, kInf},
      {"exp2", {kNaN}, kNaN},
      {"exp2", {1e4}, kInf},
      {"exp2", {-1e4}, 0},
      {"expm1", {0}, 0},
      {"expm1", {-0.0}, -0.0},
      {"expm1", {-kInf}, -1},
      {"expm1", {-1e4}, -1},
      {"expm1", {kInf}, kInf},
      {"expm1", {1e4}, kInf},
      {"expm1", {kNaN}, kNaN},
      {"log2", {1}, 0},
      {"log2", {0}, -kInf},
      {"log2", {-0.0}, -kInf},
      {"log2", {-1}, kNaN},
      {"log2", {kInf}, kInf},
      {"log2", {-kInf}, kNaN},
      {"log2", {kNaN}, kNaN},
      {"log2", {8}, 3},
      {"log2", {0x1p-14}, -14},
      {"log10", {1}, 0},
      {"log10", {0}, -kInf},
      {"log10", {-0.0}, -kInf},
      {"log10", {-1}, kNaN},
      {"log10", {kInf}, kInf},
      {"log10", {-kInf}, kNaN},
      {"log10", {kNaN}, kNaN},
      {"log10", {1000}, 3},
      {"log1p", {0}, 0},
      {"log1p", {-0.0}, -0.0},
      {"log1p", {-1}, -kInf},
      {"log1p", {-2}, kNaN},
      {"log1p", {kInf}, kInf},
      {"log1p", {-kInf}, kNaN},
      {"log1p", {kNaN}, kNaN},
      {"tan", {0}, 0},
      {"tan", {-0.0}, -0.0},
      {"tan", {kInf}, kNaN},
      {"tan", {-kInf}, kNaN},
      {"tan", {kNaN}, kNaN},
      {"asin", {0}, 0},
      {"asin", {-0.0}, -0.0},
      {"asin", {1.5}, kNaN},
      {"asin", {-1.5}, kNaN},
      {"asin", {kInf}, kNaN},
      {"asin", {kNaN}, kNaN},
      {"acos", {1}, 0},
      {"acos", {1.5}, kNaN},
      {"acos", {-1.5}, kNaN},
      {"acos", {-kInf}, kNaN},
      {"acos", {kNaN}, kNaN},
      {"atan", {0}, 0},
      {"atan", {-0.0}, -0.0},
      {"atan", {kInf}, 1.5707963267948966},
      {"atan", {-kInf}, -1.5707963267948966},
      {"atan", {kNaN}, kNaN},
      {"sinh", {0}, 0},
      {"sinh", {-0.0}, -0.0},
      {"sinh", {kInf}, kInf},
      {"sinh", {-kInf}, -kInf},
      {"sinh", {-1e4}, -kInf},
      {"sinh", {kNaN}, kNaN},
      {"cosh", {0}, 1},
      {"cosh", {-0.0}, 1},
      {"cosh", {kInf}, kInf},
      {"cosh", {-kInf}, kInf},
      {"cosh", {-1e4}, kInf},
      {"cosh", {kNaN}, kNaN},
      {"asinh", {0}, 0},
      {"asinh", {-0.0}, -0.0},
      {"asinh", {kInf}, kInf},
      {"asinh", {-kInf}, -kInf},
      {"asinh", {kNaN}, kNaN},
      {"acosh", {1}, 0},
      {"acosh", {0.5}, kNaN},
      {"acosh", {-1}, kNaN},
      {"acosh", {-3}, kNaN},
      {"acosh", {kInf}, kInf},
      {"acosh", {-kInf}, kNaN},
      {"acosh", {kNaN}, kNaN},
      {"atanh", {0}, 0},
      {"atanh", {-0.0}, -0.0},
      {"atanh", {1}, kInf},
      {"atanh", {-1}, -kInf},
      {"atanh", {1.5}, kNaN},
      {"atanh", {-3}, kNaN},
      {"atanh", {kInf}, kNaN},
      {"atanh", {kNaN}, kNaN},
      {"erfc", {0}, 1},
      {"erfc", {-0.0}, 1},
      {"erfc", {kInf}, 0},
      {"erfc", {-kInf}, 2},
      {"erfc", {1e4}, 0},
      {"erfc", {-1e4}, 2},
      {"erfc", {kNaN}, kNaN},
      {"atan2", {0, 1}, 0},
      {"atan2", {-0.0, 1}, -0.0},
      {"atan2", {0, 0}, 0},
      {"atan2", {-0.0, 0}, -0.0},
      {"atan2", {0, -0.0}, kPi},
      {"atan2", {-0.0, -0.0}, -kPi},
      {"atan2", {0, -2}, kPi},
      {"atan2", {-0.0, -2}, -kPi},
      {"atan2", {3, 0}, kPi / 2},
      {"atan2", {3, -0.0}, kPi / 2},
      {"atan2", {-3, 0}, -kPi / 2},
      {"atan2", {-3, -0.0}, -kPi / 2},
      {"atan2", {3, kInf}, 0},
      {"atan2", {-3, kInf}, -0.0},
      {"atan2", {3, -kInf}, kPi},
      {"atan2", {-3, -kInf}, -kPi},
      {"atan2", {kInf, 3}, kPi / 2},
      {"atan2", {-kInf, -3}, -kPi / 2},
      {"atan2", {kInf, kInf}, kPi / 4},
      {"atan2", {-kInf, kInf}, -kPi / 4},
      {"atan2", {kInf, -kInf}, 3 * kPi / 4},
      {"atan2", {-kInf, -kInf}, -3 * kPi / 4},
      {"atan2", {kNaN, 1}, kNaN},
      {"atan2", {1, kNaN}, kNaN},
      {"atan2", {kInf, kNaN}, kNaN},
      {"atan2", {kNaN, kInf}, kNaN},
      {"atan2", {kNaN, -kInf}, kNaN},
      {"hypot", {3, 4}, 5},
      {"hypot", {-3, 4}, 5},
      {"hypot", {0, -0.0}, 0},
      {"hypot", {-0.0, -0.0}, 0},
      {"hypot", {0, -7}, 7},
      {"hypot", {kInf, kNaN}, kInf},
      {"hypot", {kNaN, -kInf}, kInf},
      {"hypot", {-kInf, 0}, kInf},
      {"hypot", {kNaN, 0}, kNaN},
      {"hypot", {1, kNaN}, kNaN},
      {"fmod", {5, 3}, 2},
      {"fmod", {-5, 3}, -2},
      {"fmod", {5, -3}, 2},
      {"fmod", {6, 3}, 0},
      {"fmod", {-6, 3}, -0.0},
      {"fmod", {0, 3}, 0},
      {"fmod", {-0.0, 3}, -0.0},
      {"fmod", {0, 0}, kNaN},
      {"fmod", {5, 0}, kNaN},
      {"fmod", {5, -0.0}, kNaN},
      {"fmod", {kInf, 3}, kNaN},
      {"fmod", {-kInf, 3}, kNaN},
      {"fmod", {5, kInf}, 5},
      {"fmod", {-5, -kInf}, -5},
      {"fmod", {kInf, kInf}, kNaN},
      {"fmod", {kNaN, 3}, kNaN},
      {"fmod", {5, kNaN}, kNaN},
      {"log", {1}, 0},
      {"log", {0}, -kInf},
      {"log", {-0.0}, -kInf},
      {"log", {-1}, kNaN},
      {"log", {kInf}, kInf},
      {"log", {-kInf}, kNaN},
      {"log", {kNaN}, kNaN},
      {"sin", {0}, 0},
      {"sin", {-0.0}, -0.0},
      {"sin", {kInf}, kNaN},
      {"sin", {-kInf}, kNaN},
      {"sin", {kNaN}, kNaN},
      {"cos", {0}, 1},
      {"cos", {-0.0}, 1},
      {"cos", {kInf}, kNaN},
      {"cos", {-kInf}, kNaN},
      {"cos", {kNaN}, kNaN},
      {"tanh", {0}, 0},
      {"tanh", {-0.0}, -0.0},
      {"tanh", {kInf}, 1},
      {"tanh", {-kInf}, -1},
      {"tanh", {kNaN}, kNaN},
      {"sigmoid", {0}, 0.5},
      {"sigmoid", {-0.0}, 0.5},
      {"sigmoid", {kInf}, 1},
      {"sigmoid", {-kInf}, 0},
      {"sigmoid", {kNaN}, kNaN},
      {"erf", {0}, 0},
      {"erf", {-0.0}, -0.0},
      {"erf", {kInf}, 1},
      {"erf", {-kInf}, -1},
      {"erf", {kNaN}, kNaN},
      {"softplus", {kInf}, kInf},
      {"softplus", {-kInf}, 0},
      {"softplus", {kNaN}, kNaN},
      {"softplus", {1e4}, 1e4},
      {"pow", {2, 10}, 1024},
      {"pow", {-2, 3}, -8},
      {"pow", {-2, 2}, 4},
      {"pow", {4, 0.5}, 2},
      {"pow", {5, 1}, 5},
      {"pow", {kNaN, 0}, 1},
      {"pow", {kNaN, -0.0}, 1},
      {"pow", {0, 0}, 1},
      {"pow", {kInf, 0}, 1},
      {"pow", {-3, 0}, 1},
      {"pow", {1, kNaN}, 1},
      {"pow", {1, kInf}, 1},
      {"pow", {1, -kInf}, 1},
      {"pow", {-1, kInf}, 1},
      {"pow", {-1, -kInf}, 1},
      {"pow", {kNaN, 1}, kNaN},
      {"pow", {2, kNaN}, kNaN},
      {"pow", {-2, 0.5}, kNaN},
      {"pow", {-2, -1.5}, kNaN},
      {"pow", {0, 3}, 0},
      {"pow", {-0.0, 3}, -0.0},
      {"pow", {-0.0, 2}, 0},
      {"pow", {-0.0, 0.5}, 0},
      {"pow", {0, -3}, kInf},
      {"pow", {-0.0, -3}, -kInf},
      {"pow", {-0.0, -2}, kInf},
      {"pow", {0, -0.5}, kInf},
      {"pow", {0, kInf}, 0},
      {"pow", {0, -kInf}, kInf},
      {"pow", {-0.0, -kInf}, kInf},
      {"pow", {0.5, kInf}, 0},
      {"pow", {0.5, -kInf}, kInf},
      {"pow", {-0.5, -kInf}, kInf},
      {"pow", {2, kInf}, kInf},
      {"pow", {-2, kInf}, kInf},
      {"pow", {2, -kInf}, 0},
      {"pow", {kInf, 2}, kInf},
      {"pow", {kInf, -2}, 0},
      {"pow", {-kInf, 3}, -kInf},
      {"pow", {-kInf, 2}, kInf},
      {"pow", {-kInf, 0.5}, kInf},
      {"pow", {-kInf, -3}, -0.0},
      {"pow", {-kInf, -2}, 0},
      {"pow", {-kInf, -0.5}, 0},
  };
  std::set<std::string> seen;
  for (const auto& c : kCases) {
    seen.insert(c.op);
    for (DType type : {DType::kBF16, DType::kF16, DType::kF32, DType::kF64}) {
      Bits operands[3] = {0, 0, 0};
      for (size_t i = 0; i < c.args.size(); ++i)
        operands[i] = FloatBits(type, static_cast<double>(Round(type, c.args[i])));
      const Bits got = FunctionOf(*ScalarOpByName(c.op), type, type)(operands);
      const Bits want = FloatBits(type, static_cast<double>(Round(type, c.want)));
      EXPECT_EQ(got, want) << c.op << "(" << c.args[0]
                           << (c.args.size() > 1 ? absl::StrCat(", ", c.args[1]) : "") << ") of "
                           << Name(type) << " = " << Text(type, got) << ", want " << c.want;
    }
  }
  for (const ScalarOpRow& row : AllScalarOps()) {
    EXPECT_TRUE(!row.transcendental || seen.count(row.name))
        << row.name << " has no special values in this test";
  }
}

// mod as a number, apart from the rows that it is composed of: a - b floor(a / b), which is fmod
// (exact in double) brought to the divisor's sign by one rounded addition, as long as the quotient
// is a whole number of the type.
TEST(ScalarOps, ModHasTheDivisorsSign) {
  for (DType type : {DType::kBF16, DType::kF16, DType::kF32, DType::kF64}) {
    const ScalarFunction function = FunctionOf(ScalarOp::kMod, type, type);
    const double limit = std::ldexp(1.0, FormatOf(type).precision - 1);
    Failures failures(Row(ScalarOp::kMod), type);
    VisitOperandValues({type, type}, 100000, [&](const Bits* v) {
      const double a = ToDouble(type, v[0]), b = ToDouble(type, v[1]);
      if (!(std::fabs(a / b) < limit) || std::isinf(b)) return;
      failures.Case();
      double want = std::fmod(a, b);
      if (want != 0 && (want < 0) != (b < 0))
        want = static_cast<double>(Round(type, Quad{want} + Quad{b}));
      const double got = ToDouble(type, function(v));
      if (got != want) failures.Add({type, type}, v, absl::StrCat(got), absl::StrCat(want));
    });
  }
}

// ---- Conversions ----

Bits CastReference(DType from, DType to, Bits v) {
  if (IsFloat(from)) {
    const double x = ToDouble(from, v);
    if (to == DType::kBool) return x != 0;
    if (IsHalf(to)) return FloatBits(to, RoundToHalf(to, x));
    if (IsFloat(to)) return FloatBits(to, static_cast<double>(Round(to, x)));
    if (std::isnan(x)) return 0;
    const Int end = Int{1} << (WidthOf(to) - (HasSign(to) ? 1 : 0)), low = HasSign(to) ? -end : 0;
    if (x >= static_cast<double>(end)) return IntegerBits(to, end - 1);
    return IntegerBits(to, x <= static_cast<double>(low) ? low : static_cast<Int>(x));
  }
  const Int x = IntegerOf(from, v);
  if (to == DType::kBool) return x != 0;
  if (!IsFloat(to)) return IntegerBits(to, x);
  if (IsHalf(to)) return FloatBits(to, RoundToHalf(to, static_cast<long double>(x)));
  return to == DType::kF64 ? ToBits(static_cast<double>(x)) : ToBits(static_cast<float>(x));
}

TEST(ScalarOps, Casts) {
  for (DType from : AllTypes()) {
    for (DType to : AllTypes()) {
      SCOPED_TRACE(absl::StrCat("to ", Name(to)));
      const ScalarFunction function = FunctionOf(ScalarOp::kCast, from, to);
      Failures failures(Row(ScalarOp::kCast), from);
      VisitOperandValues({from}, 100000, [&](const Bits* v) {
        failures.Case();
        const Bits got = function(v), want = CastReference(from, to, v[0]);
        if (got != want) failures.Add({from}, v, Text(to, got), Text(to, want));
      });
      // Values around the ends of the integer types, and around the ties of the 16-bit floats.
      if (!IsFloat(from)) continue;
      for (int exponent : {7, 8, 11, 15, 16, 31, 32, 63, 64}) {
        for (int steps = -3; steps <= 3; ++steps) {
          for (double sign : {1.0, -1.0}) {
            double x = std::ldexp(1.0, exponent);
            for (int i = 0; i < std::abs(steps); ++i) x = std::nextafter(x, steps < 0 ? 0 : kInf);
            const Bits v[] = {CastReference(DType::kF64, from, ToBits(sign * x))};
            failures.Case();
            const Bits got = function(v), want = CastReference(from, to, v[0]);
            if (got != want) failures.Add({from}, v, Text(to, got), Text(to, want));
          }
        }
      }
    }
  }
}

// Rounding twice shows at a value of a wide type next to a tie of a 16-bit one.
TEST(ScalarOps, CastsRoundOnce) {
  Random random(5);
  for (DType from : AllTypes()) {
    for (DType to : {DType::kBF16, DType::kF16, DType::kF32}) {
      const int digits = IsFloat(from) ? 40 : WidthOf(from) - HasSign(from);
      if (WidthOf(to) >= WidthOf(from) && (IsFloat(from) || digits <= FormatOf(to).precision))
        continue;
      SCOPED_TRACE(absl::StrCat("to ", Name(to)));
      const ScalarFunction function = FunctionOf(ScalarOp::kCast, from, to);
      Failures failures(Row(ScalarOp::kCast), from);
      for (int i = 0; i < 20000; ++i) {
        const int top = static_cast<int>(random() % static_cast<unsigned>(digits));
        const int p = FormatOf(to).precision;
        if (top < p + 1) continue;
        Int x = (Int{1} << top) +
                static_cast<Int>(random() % (1 << (p - 1))) * (Int{1} << (top - p + 1));
        x += Int{1} << (top - p);                 // a tie
        x += static_cast<Int>(random() % 5) - 2;  // and its neighbours
        if (random() % 2) x = -x;
        double scaled = std::ldexp(static_cast<double>(x), -static_cast<int>(random() % 60));
        const Bits v[] = {IsFloat(from) ? FloatBits(from, static_cast<double>(Round(from, scaled)))
                                        : IntegerBits(from, x)};
        failures.Case();
        const Bits got = function(v), want = CastReference(from, to, v[0]);
        if (got != want) failures.Add({from}, v, Text(to, got), Text(to, want));
      }
    }
  }
}

TEST(ScalarOps, BitsAndBack) {
  for (const auto& [real, integer] :
       {std::pair(DType::kF32, DType::kI32), std::pair(DType::kF64, DType::kI64)}) {
    ASSERT_EQ(ResultTypeOf(ScalarOp::kToBits, real, real), integer);
    ASSERT_EQ(ResultTypeOf(ScalarOp::kFromBits, integer, integer), real);
    const ScalarFunction to = FunctionOf(ScalarOp::kToBits, real, integer),
                         back = FunctionOf(ScalarOp::kFromBits, integer, real);
    VisitOperandValues({real}, 100000, [&, real = real, integer = integer](const Bits* v) {
      const Bits bits = to(v);
      ASSERT_EQ(bits, IntegerBits(integer, static_cast<Int>(v[0]))) << LiteralText({real, v[0]});
      ASSERT_EQ(back(&bits), v[0]) << LiteralText({real, v[0]});
    });
    // Any NaN's bits give the one NaN.
    for (Int pattern : {Int{1}, Int{0x1234}}) {
      const Bits infinity = FloatBits(real, -kInf);
      const Bits bits[] = {IntegerBits(integer, static_cast<Int>(infinity) + pattern)};
      EXPECT_EQ(back(bits), FloatBits(real, kNaN));
    }
  }
  for (DType type : {DType::kBF16, DType::kF16})
    EXPECT_FALSE(ResultTypeOf(ScalarOp::kToBits, type, type));
  for (DType type : AllTypes()) {
    const bool taken = type == DType::kI32 || type == DType::kI64;
    EXPECT_EQ(ResultTypeOf(ScalarOp::kFromBits, type, type).has_value(), taken) << Name(type);
  }
}

// ---- Rows in programs ----

// The values of a program's one result, as bits.
absl::StatusOr<std::vector<Bits>> RunText(const std::string& text,
                                          const std::vector<Tensor>& args) {
  const absl::StatusOr<Op> op = ParseOp(text);
  if (!op.ok()) return op.status();
  RunInputs inputs;
  for (size_t i = 0; i < op->args.size(); ++i) inputs.tensors[op->args[i].name] = args[i].view();
  const auto results = Interpret(Lower(*op), inputs);
  if (!results.ok()) return results.status();
  std::vector<Bits> bits;
  const Tensor& y = (*results)[0];
  for (int64_t i = 0; i < y.num_elements(); ++i) {
    bits.push_back(
        Load(y.type(), static_cast<const char*>(y.data()) + i * ByteSize(y.type())).bits);
  }
  return bits;
}

Tensor TensorOfBits(DType type, const std::vector<Bits>& values) {
  Tensor tensor = *Tensor::Create(type, {static_cast<int64_t>(values.size())});
  char* element = static_cast<char*>(tensor.data());
  for (Bits bits : values) {
    Store(Scalar{type, bits}, element);
    element += ByteSize(type);
  }
  return tensor;
}

// At most about `most` combinations of special values, by operand.
std::vector<std::vector<Bits>> SampleOperands(const std::vector<DType>& types, size_t most) {
  std::vector<std::vector<Bits>> special, operands(types.size());
  size_t combinations = 1;
  for (DType type : types) {
    special.push_back(SpecialValues(type));
    combinations *= special.back().size();
  }
  for (size_t i = 0; i < combinations; i += combinations / most + 1) {
    size_t rest = i;
    for (size_t j = 0; j < types.size(); ++j) {
      operands[j].push_back(special[j][rest % special[j].size()]);
      rest /= special[j].size();
    }
  }
  return operands;
}

// One row on one type.
struct RowCase {
  const ScalarOpRow& row;
  DType type, result;
  std::vector<DType> types;                 // of the operands
  std::vector<std::vector<Bits>> operands;  // by operand, then by element
};

// The row on tensors of the operands, or with operand number `literal` (if not -1) a literal.
void CheckInProgram(const RowCase& c, int literal, Bits literal_bits) {
  std::string signature, call;
  std::vector<Tensor> args;
  for (int i = 0; i < c.row.arity; ++i) {
    const std::string name(1, static_cast<char>('a' + i));
    const std::string cast =
        absl::StrCat(Name(c.types[i]), "(", LiteralText({c.types[i], literal_bits}), ")");
    absl::StrAppend(&call, i == 0 ? "" : ", ", i == literal ? cast : name + "[i]");
    absl::StrAppend(&signature, i == 0 ? "" : ", ", name, ": ", Name(c.types[i]), "[N]");
    args.push_back(TensorOfBits(c.types[i], c.operands[i]));
  }
  const std::string text = absl::StrCat("op f(", signature, ") -> (y) { y[i] = ", c.row.name, "(",
                                        call, ") where i < N }");
  const absl::StatusOr<std::vector<Bits>> got = RunText(text, args);
  ASSERT_TRUE(got.ok()) << got.status() << "\n" << text;
  ASSERT_EQ(got->size(), c.operands[0].size()) << text;
  const ScalarFunction function = FunctionOf(c.row.op, c.type, c.result);
  SCOPED_TRACE(text);
  Failures failures(c.row, c.type);
  for (size_t k = 0; k < got->size(); ++k) {
    Bits v[3] = {0, 0, 0};
    for (int i = 0; i < c.row.arity; ++i) v[i] = i == literal ? literal_bits : c.operands[i][k];
    failures.Case();
    const Bits want = function(v);
    if ((*got)[k] != want)
      failures.Add(c.types, v, Text(c.result, (*got)[k]), Text(c.result, want));
  }
}

// A program computes the row itself, whatever simplification knows about it: on special values in
// tensors, and with each operand in turn a literal.
TEST(ScalarOps, InPrograms) {
  for (const ScalarOpRow& row : AllScalarOps()) {
    for (DType type : AllTypes()) {
      const auto result = ResultTypeOf(row.op, type, type);
      if (!result || row.result == ResultType::kTarget) continue;
      RowCase c{row, type, *result, OperandTypesOf(row, type), {}};
      c.operands = SampleOperands(c.types, 300);
      CheckInProgram(c, -1, 0);
      for (int literal = 0; literal < row.arity; ++literal) {
        for (Bits bits : SpecialValues(c.types[literal])) CheckInProgram(c, literal, bits);
      }
    }
  }
}

// ---- The table itself ----

TEST(ScalarOpTable, NamesAreUniqueAndFound) {
  std::set<std::string> names;
  for (const ScalarOpRow& row : AllScalarOps()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_EQ(ScalarOpByName(row.name), row.op) << row.name;
    EXPECT_EQ(&Row(row.op), &row) << row.name;
    EXPECT_TRUE(row.arity >= 1 && row.arity <= 3) << row.name;
  }
  EXPECT_FALSE(ScalarOpByName("no_such_row").has_value());
  for (const auto& [name, reference] : References())
    EXPECT_TRUE(names.count(name)) << name << " is no row";
}

TEST(ScalarOpTable, CommutingRowsCommute) {
  for (const ScalarOpRow& row : AllScalarOps()) {
    if (!(row.traits & kCommutes)) continue;
    ASSERT_EQ(row.arity, 2) << row.name;
    for (DType type : AllTypes()) {
      const auto result = ResultTypeOf(row.op, type, type);
      if (!result) continue;
      const ScalarFunction function = FunctionOf(row.op, type, *result);
      Failures failures(row, type);
      VisitOperandValues({type, type}, 20000, [&, result = *result](const Bits* v) {
        const Bits swapped[] = {v[1], v[0]};
        failures.Case();
        const Bits got = function(v), want = function(swapped);
        if (got != want) failures.Add({type, type}, v, Text(result, got), Text(result, want));
      });
    }
  }
}

// The derivative by operand number `operand`, an op over the operands, the result and its adjoint,
// which are of type T, except bools and results of a cast.
absl::StatusOr<Op> DerivativeOp(const ScalarOpRow& row, int operand, DType type) {
  const char* const result = row.result == ResultType::kBoolean  ? "bool"
                             : row.result == ResultType::kTarget ? "f64"
                                                                 : "T";
  std::string args;
  for (int i = 0; i < row.arity; ++i) {
    const bool condition = row.result == ResultType::kChoice && i == 0;
    absl::StrAppend(&args, std::string(1, static_cast<char>('a' + i)), ": ",
                    condition ? "bool" : "T", "[], ");
  }
  const std::string text = absl::StrCat("op d(", args, "y: ", result, "[], g: ", result,
                                        "[]) -> (d) { d = ", row.derivatives[operand], " }");
  absl::StatusOr<Module> module = Module::Parse(text);
  if (!module.ok()) return module.status();
  ArgumentSpecs specs;
  for (int i = 0; i < row.arity; ++i) {
    const bool condition = row.result == ResultType::kChoice && i == 0;
    specs[std::string(1, static_cast<char>('a' + i))] = {condition ? DType::kBool : type, 0};
  }
  return module->Instantiate("", specs);
}

bool HasDerivative(const ScalarOpRow& row, int operand) {
  return row.derivatives[operand] != nullptr && *row.derivatives[operand] != '\0';
}

TEST(ScalarOpTable, DerivativesAreNotation) {
  for (const ScalarOpRow& row : AllScalarOps()) {
    for (int operand = 0; operand < row.arity; ++operand) {
      if (!HasDerivative(row, operand)) continue;
      for (DType type : AllTypes()) {
        if (!IsFloat(type) || !ResultTypeOf(row.op, type, type)) continue;
        const absl::StatusOr<Op> op = DerivativeOp(row, operand, type);
        ASSERT_TRUE(op.ok()) << row.name << " by operand " << operand << ": " << op.status();
        const Op& derivative = *op;
        EXPECT_EQ(derivative.graph.type(derivative.results[0].node), type) << row.name;
      }
    }
  }
}

// The derivative at operands (of f64), with the adjoint g.
class Derivative {
 public:
  Derivative(const ScalarOpRow& row, int operand)
      : row_(row), types_(OperandTypesOf(row, DType::kF64)),
        function_(FunctionOf(row.op, DType::kF64, *ResultTypeOf(row.op, DType::kF64, DType::kF64))),
        program_(Lower(*DerivativeOp(row, operand, DType::kF64))) {}

  double At(const std::vector<double>& operands, double g) const {
    Bits bits[3] = {0, 0, 0};
    std::map<std::string, Tensor> tensors;
    for (int i = 0; i < row_.arity; ++i) {
      bits[i] = types_[i] == DType::kBool ? operands[i] != 0 : ToBits(operands[i]);
      tensors[std::string(1, static_cast<char>('a' + i))] =
          Tensor::Of(types_[i], {}, {operands[i]});
    }
    tensors["y"] = Tensor::Of<double>({}, {ToDouble(DType::kF64, function_(bits))});
    tensors["g"] = Tensor::Of<double>({}, {g});
    RunInputs inputs;
    for (const auto& [name, tensor] : tensors) inputs.tensors[name] = tensor.view();
    const auto results = Interpret(program_, inputs);
    EXPECT_TRUE(results.ok()) << results.status();
    return results.ok() ? (*results)[0].values<double>()[0] : kNaN;
  }

 private:
  const ScalarOpRow& row_;
  std::vector<DType> types_;
  ScalarFunction function_;
  loop::Program program_;
};

void VisitPoints(const ScalarOpRow& row, const std::vector<double>& points,
                 const std::function<void(const std::vector<double>&)>& visit) {
  std::vector<size_t> digits(row.arity, 0);
  for (size_t carry = 0; carry < digits.size();) {
    std::vector<double> operands;
    for (size_t digit : digits) operands.push_back(points[digit]);
    visit(operands);
    for (carry = 0; carry < digits.size() && ++digits[carry] == points.size(); ++carry)
      digits[carry] = 0;
  }
}

std::string PointText(const std::vector<double>& point) {
  std::string text = "(";
  for (double x : point) absl::StrAppend(&text, text == "(" ? "" : ", ", x);
  return text + ")";
}

// kUnbounded exactly where the partial derivative is inf or NaN at some finite operands. Points
// whose squares overflow are left out: the trait is not about these.
TEST(ScalarOpTable, UnboundedDerivativesAreMarked) {
  for (const ScalarOpRow& row : AllScalarOps()) {
    std::string blows_up_at;
    bool any = false;
    for (int operand = 0; operand < row.arity; ++operand) {
      if (!HasDerivative(row, operand)) continue;
      any = true;
      const Derivative derivative(row, operand);
      VisitPoints(row, {0.0, -0.0, 0.5, -0.5, 1, -1, 2, -2, 3.7, -3.7, 1e3, -1e3, 1e5, -1e5},
                  [&](const std::vector<double>& point) {
                    const double partial = derivative.At(point, 1);
                    if (!std::isfinite(partial))
                      blows_up_at = absl::StrCat("operand ", operand, " at ", PointText(point),
                                                 ": ", partial);
                  });
    }
    if (!any) continue;
    EXPECT_EQ((row.traits & kUnbounded) != 0, !blows_up_at.empty())
        << row.name << " " << blows_up_at;
  }
}

// d(2 g) = 2 d(g) and d(0) = 0 wherever the partial derivative is finite.
TEST(ScalarOpTable, DerivativesAreLinearInTheAdjoint) {
  for (const ScalarOpRow& row : AllScalarOps()) {
    for (int operand = 0; operand < row.arity; ++operand) {
      if (!HasDerivative(row, operand)) continue;
      const Derivative derivative(row, operand);
      VisitPoints(row, {0.0, 0.3, -0.7, 1, -2, 3.7, -12.5, 40},
                  [&](const std::vector<double>& point) {
                    const double one = derivative.At(point, 1);
                    if (!std::isfinite(one)) return;
                    EXPECT_EQ(derivative.At(point, 2), 2 * one)
                        << row.name << " by operand " << operand << " at " << PointText(point);
                    EXPECT_EQ(derivative.At(point, 0), 0)
                        << row.name << " by operand " << operand << " at " << PointText(point);
                  });
    }
  }
}

}  // namespace
}  // namespace nestor
