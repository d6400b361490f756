// Rows, accumulations and rounding on sets, case by case. enclosure_test.cc tests that they are
// sound for all values; this file, that they hold no more than they need.
#include <cmath>
#include <vector>

#include "gtest/gtest.h"
#include "interp/enclosure.h"
#include "interp/reference_rows.h"
#include "interp/reference_sum.h"

namespace nestor {
namespace {

Enclosure Set(double low, double high) { return FromEnds(DType::kF32, low, high); }

TEST(ReferenceArithmetic, Rows) {
  const Enclosure nan = Point(Scalar::Float(DType::kF32, NAN));
  const struct {
    ScalarOp op;
    std::vector<Enclosure> args;
    const char* want;
  } kCases[] = {
      {ScalarOp::kAdd, {Set(1, 2), Set(3, 4)}, "[4, 6]"},
      {ScalarOp::kAdd, {Set(-0.0, -0.0), Set(-0.0, 0)}, "[-0, 0]"},
      {ScalarOp::kAdd, {Set(INFINITY, INFINITY), Set(-INFINITY, 1)}, "inf or nan"},
      {ScalarOp::kSub, {Set(1, 2), Set(1, 2)}, "[-1, 1]"},
      {ScalarOp::kMul, {Set(-1, 2), Set(3, 4)}, "[-4, 8]"},
      {ScalarOp::kMul, {Set(0, 1), Set(INFINITY, INFINITY)}, "inf or nan"},
      {ScalarOp::kMul, {Set(-0.0, -0.0), Set(3, 4)}, "-0"},
      {ScalarOp::kDiv, {Set(1, 1), Set(2, 4)}, "[0.25, 0.5]"},
      {ScalarOp::kDiv, {Set(1, 2), Set(0, 0)}, "inf"},
      {ScalarOp::kDiv, {Set(1, 2), Set(-0.0, -0.0)}, "-inf"},
      {ScalarOp::kDiv, {Set(0, 1), Set(0, 0)}, "inf or nan"},
      {ScalarOp::kSqrt, {Set(4, 9)}, "[2, 3]"},
      {ScalarOp::kSqrt, {Set(-1, 4)}, "[-0, 2] or nan"},
      {ScalarOp::kAbs, {Set(-3, 2)}, "[0, 3]"},
      {ScalarOp::kNeg, {Set(0, INFINITY)}, "[-3.40282346638528859812e+38, -0] or -inf"},
      {ScalarOp::kMax, {Set(-INFINITY, -INFINITY), Set(1, 2)}, "[1, 2]"},
      {ScalarOp::kMax, {Set(0, 3), Set(1, 2)}, "[1, 3]"},
      {ScalarOp::kMax, {Set(0, 3), nan}, "nan"},
      {ScalarOp::kMin, {Set(-0.0, -0.0), Set(0, 1)}, "-0"},
      {ScalarOp::kFloor, {Set(0.5, 1.5)}, "[0, 1]"},
      {ScalarOp::kRound, {Set(0.5, 1.5)}, "[0, 2]"},
      {ScalarOp::kSign, {Set(-2, 3)}, "[-1, 1]"},
      {ScalarOp::kSquare, {Set(-1, 2)}, "[0, 4]"},
      {ScalarOp::kRelu, {Set(-1, 2)}, "[0, 2]"},
      {ScalarOp::kMulz, {Set(0, 0), nan}, "0"},
      {ScalarOp::kExp, {Set(-INFINITY, -INFINITY)}, "0"},
      {ScalarOp::kLog, {Set(0, 0)}, "-inf"},
      {ScalarOp::kLog, {Set(1, 1)}, "0"},
      {ScalarOp::kLog, {Set(-2, -1)}, "nan"},
      {ScalarOp::kTanh, {Set(-0.0, 0)}, "[-0, 0]"},
      {ScalarOp::kSin, {Set(INFINITY, INFINITY)}, "nan"},
      {ScalarOp::kSin, {Set(0, 7)}, "[-1.00000011920928955078, 1.00000011920928955078]"},
      {ScalarOp::kPow, {Set(-1, 2), Set(0, 0)}, "1"},
      {ScalarOp::kPow, {nan, Set(0, 0)}, "1"},
      {ScalarOp::kPow, {Set(-0.0, -0.0), Set(-3, -3)}, "-inf"},
  };
  for (const auto& c : kCases) {
    EXPECT_EQ(ToString(ApplyRow(c.op, DType::kF32, DType::kF32, c.args)), c.want) << Row(c.op).name;
  }
}

TEST(ReferenceArithmetic, Rounded) {
  const struct {
    DType type;
    long double low, high;
    const char* want;
  } kCases[] = {
      {DType::kF32, 1 + 0x1p-25L, 1 + 0x1p-25L, "1"},
      {DType::kF32, 1 + 0x1p-24L, 1 + 0x3p-24L, "[1, 1.00000023841857910156]"},  // ties to even
      {DType::kF32, -0x1p-151L, 0x1p-151L, "[-0, 0]"},
      {DType::kF32, 1, 0x1.ffffffp127L, "[1, 3.40282346638528859812e+38] or inf"},
      {DType::kF32, -0x1p128L, -0x1p128L, "-inf"},
      {DType::kF64, 1 + 0x1p-60L, 1 + 0x1p-60L, "1"},
      {DType::kF16, 65519, 65520, "65504 or inf"},
      // Just above a tie: up in one step, but f32 makes it the tie, which goes down.
      {DType::kBF16, 1 + 0x1p-8L + 0x1p-40L, 1 + 0x1p-8L + 0x1p-40L, "[1, 1.0078125]"},
      {DType::kI32, 3, 4, "[3, 4]"},
  };
  for (const auto& c : kCases)
    EXPECT_EQ(ToString(Rounded(c.type, FromEnds(c.type, c.low, c.high))), c.want);
}

TEST(ReferenceArithmetic, RowsOfIntegers) {
  const auto set = [](int64_t low, int64_t high) { return FromEnds(DType::kI64, low, high); };
  const int64_t large = int64_t{1} << 62;
  const struct {
    ScalarOp op;
    std::vector<Enclosure> args;
    const char* want;
  } kCases[] = {
      {ScalarOp::kAdd, {set(large, large), set(large, large)}, "-9223372036854775808"},
      {ScalarOp::kAdd, {set(0, 1000), set(0, 1000)}, "[0, 2000]"},
      {ScalarOp::kAdd,
       {set(large - 1000, large), set(large - 1000, large)},
       "[-9223372036854775808, 9223372036854775807]"},
      {ScalarOp::kMul, {set(-1000, 2000), set(3, 5000)}, "[-5000000, 10000000]"},
      {ScalarOp::kMod, {set(5, 7), set(4, 4)}, "[1, 3]"},
      {ScalarOp::kAbs, {set(-3000, 10)}, "[0, 3000]"},
      {ScalarOp::kMax, {set(-3000, 10), set(0, 5)}, "[0, 10]"},
      {ScalarOp::kMul, {set(-5000, -3), set(0, 1000)}, "[-5000000, 0]"},
      {ScalarOp::kNot, {set(0, 1)}, "[-2, -1]"},
  };
  for (const auto& c : kCases) {
    EXPECT_EQ(ToString(ApplyRow(c.op, DType::kI64, DType::kI64, c.args)), c.want) << Row(c.op).name;
  }
}

TEST(ReferenceArithmetic, RowsOfOtherIntegers) {
  const auto set = [](long double low, long double high) {
    return FromEnds(DType::kU64, low, high);
  };
  const long double half = 0x1p63L;
  const char* const kAllU64 = "[0, 18446744073709551615]";
  const struct {
    DType type;
    ScalarOp op;
    std::vector<Enclosure> args;
    const char* want;
  } kCases[] = {
      {DType::kU64, ScalarOp::kAdd, {set(half, half), set(half, half)}, "0"},
      {DType::kU64, ScalarOp::kAdd, {set(0, half - 1), set(0, half)}, kAllU64},
      {DType::kU64, ScalarOp::kAdd, {set(0, half), set(0, half)}, kAllU64},
      {DType::kU64,
       ScalarOp::kAdd,
       {set(half, half + 1000), set(0, 1000)},
       "[9223372036854775808, 9223372036854777808]"},
      {DType::kU64, ScalarOp::kMul, {set(3, 0x1p32L), set(0, 0x1p31L)}, "[0, 9223372036854775808]"},
      {DType::kU64, ScalarOp::kMul, {set(0, 2 * half - 1), set(1, 2 * half - 1)}, kAllU64},
      {DType::kU64, ScalarOp::kNeg, {set(1, 2)}, "[18446744073709551614, 18446744073709551615]"},
      {DType::kU64, ScalarOp::kNeg, {set(1, 1000)}, kAllU64},
      {DType::kU64, ScalarOp::kAbs, {set(0, half + 3000)}, "[0, 9223372036854778808]"},
      {DType::kU64,
       ScalarOp::kMax,
       {set(half, half + 3000), set(0, half)},
       "[9223372036854775808, 9223372036854778808]"},
      {DType::kU64, ScalarOp::kNot, {set(0, 1)}, "[18446744073709551614, 18446744073709551615]"},
      {DType::kU32, ScalarOp::kSub, {set(0, 1000), set(0, 1000)}, "[0, 4294967295]"},
      {DType::kU32, ScalarOp::kAdd, {set(0, 4294967295), set(0, 0)}, "[0, 4294967295]"},
      {DType::kI16, ScalarOp::kAbs, {set(-32768, 32767)}, "[-32768, 32767]"},
      {DType::kI16, ScalarOp::kMul, {set(-100, 200), set(3, 150)}, "[-15000, 30000]"},
      {DType::kU16, ScalarOp::kMul, {set(0, 1000), set(0, 66)}, "[0, 65535]"},
  };
  for (const auto& c : kCases) {
    EXPECT_EQ(ToString(ApplyRow(c.op, c.type, c.type, c.args)), c.want)
        << Row(c.op).name << " of " << Name(c.type);
  }
  EXPECT_EQ(ToString(ApplyRow(ScalarOp::kCast, DType::kU64, DType::kI64, {set(0, half)})),
            "[-9223372036854775808, 9223372036854775807]");
  EXPECT_EQ(ToString(ApplyRow(ScalarOp::kCast, DType::kU64, DType::kU16, {set(3, 65535)})),
            "[3, 65535]");
  EXPECT_EQ(
      ToString(ApplyRow(ScalarOp::kCast, DType::kU64, DType::kF64, {set(half - 1, 2 * half - 1)})),
      "[9223372036854775808, 18446744073709551616]");
}

TEST(ReferenceArithmetic, Accumulations) {
  const struct {
    ReduceOp op;
    std::vector<double> terms;
    const char* want;
  } kCases[] = {
      {ReduceOp::kSum, {}, "0"},
      {ReduceOp::kSum, {-0.0}, "[-0, 0]"},
      {ReduceOp::kSum, {-0.0, 0.0}, "0"},
      {ReduceOp::kSum, {0.1, 0}, "0.100000001490116119385"},
      {ReduceOp::kSum, {1, 2, 3, -4}, "2"},  // exact in every order
      {ReduceOp::kSum, {0x1p24, 1, 1}, "[16777216, 16777220]"},
      {ReduceOp::kSum,
       {3e38, 3e38, -3e38},
       "[2.99999919420137161171e+38, 3.00000081679413990384e+38] or inf"},
      {ReduceOp::kSum, {INFINITY, 1}, "inf"},
      {ReduceOp::kSum, {INFINITY, -INFINITY}, "nan"},
      {ReduceOp::kSum, {3e38, 3e38, -INFINITY}, "-inf or nan"},
      {ReduceOp::kProd, {}, "1"},
      {ReduceOp::kProd, {3, 5, -7}, "-105"},
      {ReduceOp::kProd, {0.0, -7}, "-0"},
      {ReduceOp::kProd, {0.0, 1e30, 1e30}, "0 or nan"},
      {ReduceOp::kProd, {1e-30, 1e-30, 4}, "[0, 1.68155815718978048511e-44]"},
  };
  for (const auto& c : kCases) {
    Accumulation accumulation(c.op, DType::kF32);
    for (double term : c.terms) accumulation.Take(Point(Scalar::Float(DType::kF32, term)));
    EXPECT_EQ(ToString(accumulation.Value()), c.want)
        << Name(c.op) << " " << testing::PrintToString(c.terms);
  }
}

// Products of half the least subnormal, each added by an FMA: the tie goes up every
// time, where the product alone rounds to 0.
TEST(ReferenceArithmetic, AccumulatesUnderflowingFmas) {
  const float least = 0x1p-149f, tiny = 0x1p-75f;
  Accumulation accumulation(ReduceOp::kSum, DType::kF32);
  float sum = 0;
  for (int i = 0; i < 20; ++i) {
    const Enclosure factor = Point(Scalar::Of(DType::kF32, tiny));
    accumulation.Take(Point(Scalar::Of(DType::kF32, least)));
    accumulation.Take(ApplyRow(ScalarOp::kMul, DType::kF32, DType::kF32, {factor, factor}));
    sum = std::fma(tiny, tiny, sum + least);
  }
  EXPECT_EQ(sum, 40 * least);
  EXPECT_TRUE(Encloses(accumulation.Value(), Scalar::Of(DType::kF32, sum)))
      << ToString(accumulation.Value());
}

}  // namespace
}  // namespace nestor
