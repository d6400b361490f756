// Arithmetic differs from uops/arithmetic.h on purpose: integers compute in 128 bits and wrap at
// the end, and roundings go through a long double that holds every value of every type exactly.
#include "tests/plain_scalars.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <limits>

#include "tests/uops_evaluator.h"
#include "uops/scalar_body.h"

namespace nestor {
namespace plain {
namespace {

static_assert(LDBL_MANT_DIG >= 64, "a long double holds every i64");

// ---- Values of the types

struct FloatFormat {
  int digits;        // of the significand, the hidden one included
  int least;         // log2 of the smallest subnormal
  int end_exponent;  // 2^this is the first value that is too large
};

FloatFormat FormatOf(DType type) {
  switch (type) {
    case DType::kBF16: return {8, -133, 128};
    case DType::kF16: return {11, -24, 16};
    case DType::kF32: return {24, -149, 128};
    default: return {53, -1074, 1024};
  }
}

// `x` in the format, to nearest even.
long double RoundTo(DType type, long double x) {
  if (std::isnan(x) || std::isinf(x) || x == 0) return x;
  const FloatFormat format = FormatOf(type);
  int exponent;
  std::frexp(x, &exponent);
  const int unit = std::max(exponent - format.digits, format.least);
  const long double rounded = std::ldexp(std::rint(std::ldexp(x, -unit)), unit);
  const bool too_large = std::fabs(rounded) >= std::ldexp(1.0L, format.end_exponent);
  return too_large ? std::copysign(std::numeric_limits<long double>::infinity(), x) : rounded;
}

// The bits of a value that the format holds.
Bits EncodeF16(long double x) {
  const Bits sign = std::signbit(x) ? 0x8000 : 0;
  const long double magnitude = std::fabs(x);
  if (std::isinf(x)) return sign | 0x7c00;
  if (magnitude < 0x1p-14L) return sign | static_cast<Bits>(magnitude * 0x1p24L);
  int exponent;
  const long double fraction = std::frexp(magnitude, &exponent);  // in [1/2, 1)
  return sign | (static_cast<Bits>(exponent + 14) << 10) |
         static_cast<Bits>((2 * fraction - 1) * 1024);
}

}  // namespace

Bits EncodeFloat(DType type, long double x) {
  if (std::isnan(x)) {
    if (type == DType::kBF16) return 0x7fc0;
    if (type == DType::kF16) return 0x7e00;
    return type == DType::kF32 ? 0x7fc00000 : 0x7ff8000000000000;
  }
  x = RoundTo(type, x);
  if (type == DType::kF16) return EncodeF16(x);
  if (type == DType::kF64) return absl::bit_cast<uint64_t>(static_cast<double>(x));
  const uint32_t single = absl::bit_cast<uint32_t>(static_cast<float>(x));
  return type == DType::kBF16 ? single >> 16 : single;
}

namespace {

long double DecodeF16(Bits bits) {
  const int exponent = static_cast<int>((bits >> 10) & 31);
  const long double fraction = static_cast<long double>(bits & 1023);
  long double magnitude =
      exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
  if (exponent == 31) {
    magnitude = fraction == 0 ? std::numeric_limits<long double>::infinity()
                              : std::numeric_limits<long double>::quiet_NaN();
  }
  return bits & 0x8000 ? -magnitude : magnitude;
}

bool HasNoSign(DType type) { return type == DType::kBool || Name(type)[0] == 'u'; }

}  // namespace

Int128 ToInteger(DType type, Bits bits) {
  return HasNoSign(type) ? Int128{bits} : Int128{static_cast<int64_t>(bits)};
}

long double ToReal(DType type, Bits bits) {
  switch (type) {
    case DType::kF64: return absl::bit_cast<double>(bits);
    case DType::kF32: return absl::bit_cast<float>(static_cast<uint32_t>(bits));
    case DType::kBF16: return absl::bit_cast<float>(static_cast<uint32_t>(bits << 16));
    case DType::kF16: return DecodeF16(bits);
    default: return static_cast<long double>(ToInteger(type, bits));
  }
}

namespace {

int WidthOf(DType type) { return type == DType::kBool ? 1 : 8 * ByteSize(type); }

}  // namespace

Int128 LeastOf(DType type) { return HasNoSign(type) ? 0 : -(Int128{1} << (WidthOf(type) - 1)); }
Int128 GreatestOf(DType type) {
  return HasNoSign(type) ? (Int128{1} << WidthOf(type)) - 1
                         : (Int128{1} << (WidthOf(type) - 1)) - 1;
}

Bits Wrap(DType type, Int128 x) {
  const Int128 modulus = Int128{1} << WidthOf(type);
  x %= modulus;
  if (x < LeastOf(type)) x += modulus;
  if (x > GreatestOf(type)) x -= modulus;
  return static_cast<Bits>(static_cast<int64_t>(x));
}

Int128 FloorQuotient(Int128 a, Int128 b) {
  Int128 q = a / b;
  if (q * b > a && b > 0) --q;
  if (q * b < a && b < 0) --q;
  return q;
}

// ---- Scalar ops

Bits Cast(DType from, DType to, Bits bits) {
  const long double x = ToReal(from, bits);
  if (to == DType::kBool) return x != 0;
  if (IsFloat(to)) return EncodeFloat(to, x);
  if (!IsFloat(from)) return Wrap(to, ToInteger(from, bits));
  if (std::isnan(x)) return 0;
  if (x <= static_cast<long double>(LeastOf(to))) return Wrap(to, LeastOf(to));
  if (x >= static_cast<long double>(GreatestOf(to))) return Wrap(to, GreatestOf(to));
  return Wrap(to, static_cast<Int128>(x));
}

// Ops on a float type or an integer type, including bool; nullopt: not here.
template <class Real>
absl::optional<Real> FloatOp(ScalarOp op, Real a, Real b, Real c) {
  const Real nan = std::numeric_limits<Real>::quiet_NaN();
  switch (op) {
    case ScalarOp::kNeg: return std::copysign(a, std::signbit(a) ? Real{1} : Real{-1});
    case ScalarOp::kAbs: return std::copysign(a, Real{1});
    case ScalarOp::kSign: return a == 0 || a != a ? a : std::copysign(Real{1}, a);
    case ScalarOp::kFloor: return std::floor(a);
    case ScalarOp::kCeil: return -std::floor(-a);
    case ScalarOp::kRound: return std::rint(a);
    case ScalarOp::kSqrt: return std::sqrt(a);
    case ScalarOp::kAdd: return a + b;
    case ScalarOp::kSub: return a - b;
    case ScalarOp::kMul:
    case ScalarOp::kSquare: return a * (op == ScalarOp::kMul ? b : a);
    case ScalarOp::kDiv: return a / b;
    case ScalarOp::kRecip: return 1 / a;
    case ScalarOp::kFma: return std::fma(a, b, c);
    case ScalarOp::kLdexp:
      if (!std::isfinite(b)) return a * std::exp2(b);
      return std::ldexp(a, static_cast<int>(std::floor(std::clamp(b, Real{-5000}, Real{5000}))));
    case ScalarOp::kMax:
      if (a != a || b != b) return nan;
      if (a == 0 && b == 0) return std::signbit(a) && std::signbit(b) ? -Real{0} : Real{0};
      return a < b ? b : a;
    case ScalarOp::kMin:
      if (a != a || b != b) return nan;
      if (a == 0 && b == 0) return std::signbit(a) || std::signbit(b) ? -Real{0} : Real{0};
      return a < b ? a : b;
    case ScalarOp::kMulz: return a == 0 || b == 0 ? Real{0} : a * b;
    case ScalarOp::kRelu: return a != a ? nan : (a > 0 ? a : Real{0});
    default: return absl::nullopt;
  }
}

namespace {

// The 16-bit floats compute in float.
absl::optional<Bits> FloatOpOnBits(ScalarOp op, DType type, const Bits* v, int arity) {
  const long double x[] = {ToReal(type, v[0]), arity > 1 ? ToReal(type, v[1]) : 0,
                           arity > 2 ? ToReal(type, v[2]) : 0};
  if (type == DType::kF64) {
    const auto y = FloatOp<double>(op, x[0], x[1], x[2]);
    return y ? absl::make_optional(EncodeFloat(type, *y)) : absl::nullopt;
  }
  const auto y = FloatOp<float>(op, x[0], x[1], x[2]);
  return y ? absl::make_optional(EncodeFloat(type, *y)) : absl::nullopt;
}

// Modulo 2^128.
Int128 Product(Int128 a, Int128 b) {
  return static_cast<Int128>(static_cast<unsigned __int128>(a) * static_cast<unsigned __int128>(b));
}

absl::optional<Int128> IntegerOp(ScalarOp op, DType type, Int128 a, Int128 b) {
  const bool wide_shift = b < 0 || b >= WidthOf(type);
  switch (op) {
    case ScalarOp::kNeg: return -a;
    case ScalarOp::kAbs: return a < 0 ? -a : a;
    case ScalarOp::kSign: return (a > 0) - (a < 0);
    case ScalarOp::kNot: return type == DType::kBool ? 1 - a : -1 - a;
    case ScalarOp::kAdd: return a + b;
    case ScalarOp::kSub: return a - b;
    case ScalarOp::kMul:
    case ScalarOp::kMulz: return Product(a, b);
    case ScalarOp::kSquare: return Product(a, a);
    case ScalarOp::kRelu: return a > 0 ? a : 0;
    case ScalarOp::kFloorDiv: return b == 0 ? 0 : FloorQuotient(a, b);
    case ScalarOp::kMod: return b == 0 ? 0 : a - b * FloorQuotient(a, b);
    case ScalarOp::kMax: return a < b ? b : a;
    case ScalarOp::kMin: return a < b ? a : b;
    case ScalarOp::kAnd: return a & b;
    case ScalarOp::kOr: return a | b;
    case ScalarOp::kXor: return a ^ b;
    case ScalarOp::kShl: return wide_shift ? 0 : Product(a, Int128{1} << static_cast<int>(b));
    case ScalarOp::kShr:
      return wide_shift ? (a < 0 ? -1 : 0) : FloorQuotient(a, Int128{1} << static_cast<int>(b));
    default: return absl::nullopt;
  }
}

absl::optional<bool> Comparison(ScalarOp op, long double a, long double b) {
  switch (op) {
    case ScalarOp::kEq: return a == b;
    case ScalarOp::kNe: return a != b;
    case ScalarOp::kLt: return a < b;
    case ScalarOp::kLe: return a <= b;
    case ScalarOp::kGt: return a > b;
    case ScalarOp::kGe: return a >= b;
    default: return absl::nullopt;
  }
}

// Ops that move their operands' bits, or whose rows round more than once.
absl::optional<Bits> SpecialOp(ScalarOp op, DType type, DType target, const Bits* v) {
  switch (op) {
    case ScalarOp::kCopy: return v[0];
    case ScalarOp::kSelect: return v[0] != 0 ? v[1] : v[2];
    case ScalarOp::kCast: return Cast(type, target, v[0]);
    case ScalarOp::kToBits: return Wrap(target, static_cast<Int128>(v[0]));
    case ScalarOp::kFromBits: {
      const Bits bits = target == DType::kF32 ? v[0] & 0xffffffff : v[0];
      return std::isnan(ToReal(target, bits)) ? EncodeFloat(target, NAN) : bits;
    }
    case ScalarOp::kRsqrt: {
      const Bits root = ApplyScalarOp(ScalarOp::kSqrt, type, type, v);
      return ApplyScalarOp(ScalarOp::kRecip, type, type, &root);
    }
    case ScalarOp::kFloorDiv: {
      if (!IsFloat(type)) return absl::nullopt;
      const Bits quotient = ApplyScalarOp(ScalarOp::kDiv, type, type, v);
      return ApplyScalarOp(ScalarOp::kFloor, type, type, &quotient);
    }
    default: return absl::nullopt;
  }
}

Bits Apply(ScalarOp op, DType operand, DType target, const Bits* v) {
  if (const auto y = SpecialOp(op, operand, target, v)) return *y;
  const int arity = Row(op).arity;
  if (arity == 2) {
    const auto y = Comparison(op, ToReal(operand, v[0]), ToReal(operand, v[1]));
    if (y) return *y;
  }
  if (IsFloat(operand)) {
    if (const auto y = FloatOpOnBits(op, operand, v, arity)) return *y;
  } else {
    const auto y =
        IntegerOp(op, operand, ToInteger(operand, v[0]), arity > 1 ? ToInteger(operand, v[1]) : 0);
    if (y) return Wrap(operand, *y);
  }
  return FunctionOf(op, operand, target)(v);
}

}  // namespace
}  // namespace plain

Bits ApplyScalarOp(ScalarOp op, DType operand, DType target, const Bits* operands) {
  return plain::Apply(op, operand, target, operands);
}

}  // namespace nestor
