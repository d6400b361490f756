// Every way to make a Scalar from a C++ value, for every type: the bits are always those
// of a value of the type.
#include "uops/dtype.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace nestor {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// The values of TYPE(v), in the order of AllTypes:
// bool u8 i8 u16 i16 u32 i32 u64 i64 bf16 f16 f32 f64.
using Row = std::vector<std::string>;

template <class T>
void ExpectRow(T v, const Row& row) {
  ASSERT_EQ(row.size(), AllTypes().size());
  for (size_t i = 0; i < row.size(); ++i) {
    const DType type = AllTypes()[i];
    const Scalar scalar = Scalar::Of(type, v);
    EXPECT_EQ(scalar.type, type);
    EXPECT_EQ(ParseLiteral(row[i], type), scalar)
        << Name(type) << " of " << +v << " is " << LiteralText(scalar);
  }
}

TEST(Scalar, OfDouble) {
  ExpectRow(2.5, {"true", "2", "2", "2", "2", "2", "2", "2", "2", "2.5", "2.5", "2.5", "2.5"});
  ExpectRow(-2.5,
            {"true", "0", "-2", "0", "-2", "0", "-2", "0", "-2", "-2.5", "-2.5", "-2.5", "-2.5"});
  ExpectRow(0.0, {"false", "0", "0", "0", "0", "0", "0", "0", "0", "0.0", "0.0", "0.0", "0.0"});
  ExpectRow(-0.0,
            {"false", "0", "0", "0", "0", "0", "0", "0", "0", "-0.0", "-0.0", "-0.0", "-0.0"});
  ExpectRow(300.0, {"true", "255", "127", "300", "300", "300", "300", "300", "300", "300.0",
                    "300.0", "300.0", "300.0"});
  ExpectRow(-300.0, {"true", "0", "-128", "0", "-300", "0", "-300", "0", "-300", "-300.0", "-300.0",
                     "-300.0", "-300.0"});
  ExpectRow(65520.0, {"true", "255", "127", "65520", "32767", "65520", "65520", "65520", "65520",
                      "65536.0", "inf", "65520.0", "65520.0"});
  // Just above a tie of f16, bf16 and f32 in turn: rounded once, upwards.
  EXPECT_EQ(LiteralText(Scalar::Of(DType::kF16, 1 + 0x1p-11 + 0x1p-40)),
            LiteralText(Scalar::Of(DType::kF16, 1 + 0x1p-10)));
  EXPECT_EQ(LiteralText(Scalar::Of(DType::kBF16, 1 + 0x1p-8 + 0x1p-40)),
            LiteralText(Scalar::Of(DType::kBF16, 1 + 0x1p-7)));
  EXPECT_EQ(LiteralText(Scalar::Of(DType::kF32, 1 + 0x1p-24 + 0x1p-50)),
            LiteralText(Scalar::Of(DType::kF32, 1 + 0x1p-23)));
}

TEST(Scalar, NothingButALiteralIsOne) {
  for (const DType type : AllTypes()) {
    for (const char* text : {"", "x", "-", "1x", "1.5x", "0.5 ", "1,5", "true1", "infx"}) {
      EXPECT_EQ(ParseLiteral(text, type), absl::nullopt) << Name(type) << " '" << text << "'";
    }
  }
}

TEST(Scalar, OfWhatIsNotFinite) {
  for (const DType type : AllTypes()) {
    const bool is_float = IsFloat(type), is_bool = type == DType::kBool;
    EXPECT_EQ(LiteralText(Scalar::Of(type, kNaN)), is_float  ? "nan"
                                                   : is_bool ? "true"
                                                             : "0")
        << Name(type);
    EXPECT_EQ(Scalar::Of(type, kNaN), Scalar::Of(type, -std::numeric_limits<float>::quiet_NaN()))
        << Name(type);
    EXPECT_EQ(Scalar::Of(type, kInf), is_bool ? Scalar::Of(type, true) : Highest(type))
        << Name(type);
    EXPECT_EQ(Scalar::Of(type, -kInf), is_bool ? Scalar::Of(type, true) : Lowest(type))
        << Name(type);
  }
}

TEST(Scalar, OfInt) {
  ExpectRow(3, {"true", "3", "3", "3", "3", "3", "3", "3", "3", "3.0", "3.0", "3.0", "3.0"});
  ExpectRow(0, {"false", "0", "0", "0", "0", "0", "0", "0", "0", "0.0", "0.0", "0.0", "0.0"});
  ExpectRow(-1, {"true", "255", "-1", "65535", "-1", "4294967295", "-1", "18446744073709551615",
                 "-1", "-1.0", "-1.0", "-1.0", "-1.0"});
  ExpectRow(300, {"true", "44", "44", "300", "300", "300", "300", "300", "300", "300.0", "300.0",
                  "300.0", "300.0"});
  // Rounds to nearest even at once, where a double in between would make a tie of it.
  ExpectRow((int64_t{1} << 60) + (int64_t{1} << 52) + 1,
            {"true", "1", "1", "1", "1", "1", "1", "1157425104234217473", "1157425104234217473",
             "1.16e18", "inf", "1.1574251e18", "1.1574251042342175e18"});
  const int64_t above = (int64_t{1} << 60) + (int64_t{1} << 36) + 1;
  EXPECT_EQ(Scalar::Of(DType::kF32, above), Scalar::Of(DType::kF32, 0x1p60f + 0x1p37f));
  const int64_t above_half = (int64_t{1} << 60) + (int64_t{1} << 52) + 1;
  EXPECT_EQ(Scalar::Of(DType::kBF16, above_half), Scalar::Of(DType::kBF16, 0x1p60 + 0x1p53));
  ExpectRow(std::numeric_limits<uint64_t>::max(),
            {"true", "255", "-1", "65535", "-1", "4294967295", "-1", "18446744073709551615", "-1",
             "1.845e19", "inf", "1.8446744e19", "1.8446744073709552e19"});
}

TEST(Scalar, OfBool) {
  ExpectRow(true, {"true", "1", "1", "1", "1", "1", "1", "1", "1", "1.0", "1.0", "1.0", "1.0"});
  ExpectRow(false, {"false", "0", "0", "0", "0", "0", "0", "0", "0", "0.0", "0.0", "0.0", "0.0"});
}

// A float past the ends of a type becomes the end; one just before them is truncated.
TEST(Scalar, OfLargeDouble) {
  ExpectRow(0x1p63, {"true", "255", "127", "65535", "32767", "4294967295", "2147483647",
                     "9223372036854775808", "9223372036854775807", "9.22e18", "inf", "9.223372e18",
                     "9.223372036854775808e18"});
  ExpectRow(0x1p64 - 0x1p11, {"true", "255", "127", "65535", "32767", "4294967295", "2147483647",
                              "18446744073709549568", "9223372036854775807", "1.845e19", "inf",
                              "1.8446744e19", "18446744073709549568.0"});
  ExpectRow(0x1p64, {"true", "255", "127", "65535", "32767", "4294967295", "2147483647",
                     "18446744073709551615", "9223372036854775807", "1.845e19", "inf",
                     "1.8446744e19", "18446744073709551616.0"});
}

// The facts of a row against those of the C++ type.
TEST(TypeFacts, AreThoseOfTheCppType) {
  for (const TypeFacts& facts : kTypeFacts) {
    EXPECT_EQ(&facts, &FactsOf(facts.type));
    EXPECT_EQ(TypeByName(facts.name), facts.type);
    VisitType(facts.type, [&](auto zero) {
      using T = decltype(zero);
      using Limits = std::numeric_limits<T>;
      EXPECT_EQ(facts.bytes, static_cast<int>(sizeof(zero))) << facts.name;
      if constexpr (Half<T>) {
        const float least_normal = FromBits<T>(Bits{1} << (facts.significand - 1)).Widen();
        EXPECT_EQ(least_normal, std::ldexp(1.0f, facts.least_exponent)) << facts.name;
        EXPECT_EQ(FromBits<T>(1).Widen(), std::ldexp(least_normal, 1 - facts.significand))
            << facts.name;
        return;
      }
      EXPECT_EQ(facts.significand, Limits::digits) << facts.name;
      EXPECT_EQ(IsFloat(facts.type), !Limits::is_integer) << facts.name;
      EXPECT_EQ(IsSigned(facts.type) || IsFloat(facts.type), Limits::is_signed) << facts.name;
      EXPECT_EQ(facts.least_exponent, IsFloat(facts.type) ? Limits::min_exponent - 1 : 0)
          << facts.name;
    });
  }
}

TEST(Literals, OfIntegersFitTheirRangeExactly) {
  const struct {
    DType type;
    const char *below, *least, *greatest, *above;
  } kCases[] = {
      {DType::kU8, "-1", "0", "255", "256"},
      {DType::kI8, "-129", "-128", "127", "128"},
      {DType::kU16, "-1", "0", "65535", "65536"},
      {DType::kI16, "-32769", "-32768", "32767", "32768"},
      {DType::kU32, "-1", "0", "4294967295", "4294967296"},
      {DType::kI32, "-2147483649", "-2147483648", "2147483647", "2147483648"},
      {DType::kU64, "-1", "0", "18446744073709551615", "18446744073709551616"},
      {DType::kI64, "-9223372036854775809", "-9223372036854775808", "9223372036854775807",
       "9223372036854775808"},
  };
  for (const auto& c : kCases) {
    EXPECT_EQ(ParseLiteral(c.least, c.type), Lowest(c.type)) << Name(c.type);
    EXPECT_EQ(ParseLiteral(c.greatest, c.type), Highest(c.type)) << Name(c.type);
    EXPECT_EQ(LiteralText(Lowest(c.type)), c.least);
    EXPECT_EQ(LiteralText(Highest(c.type)), c.greatest);
    for (const char* text :
         {c.below, c.above, "-18446744073709551615", "36893488147419103232", "1.5", "1e3"}) {
      EXPECT_EQ(ParseLiteral(text, c.type), absl::nullopt) << Name(c.type) << " " << text;
    }
    EXPECT_EQ(ParseLiteral("-0", c.type), Scalar::Zero(c.type)) << Name(c.type);
    EXPECT_EQ(ParseParamLiteral(c.greatest, c.type).has_value(), c.type != DType::kU64)
        << Name(c.type);
  }
  EXPECT_EQ(ParseParamLiteral("9223372036854775807", DType::kU64),
            Scalar::Of(DType::kU64, ~uint64_t{0} >> 1));
}

// Floats of all widths, and the constructors named for one type, are the same rule.
TEST(Scalar, EveryConstructorAgrees) {
  for (const DType type : AllTypes()) {
    for (const double v : {2.5, -1.0, 0.0, 300.0, 1e30, -kInf, kNaN}) {
      EXPECT_EQ(Scalar::Float(type, v), Scalar::Of(type, v)) << Name(type) << " " << v;
      EXPECT_EQ(Scalar::Of(type, static_cast<float>(v)),
                Scalar::Of(type, double{static_cast<float>(v)}))
          << Name(type) << " " << v;
      const BF16 bf16 = BF16::Round(static_cast<float>(v));
      EXPECT_EQ(Scalar::Of(type, bf16), Scalar::Of(type, bf16.Widen())) << Name(type) << " " << v;
      const F16 f16 = F16::Round(static_cast<float>(v));
      EXPECT_EQ(Scalar::Of(type, f16), Scalar::Of(type, f16.Widen())) << Name(type) << " " << v;
    }
    for (const int64_t v :
         {int64_t{0}, int64_t{-1}, int64_t{300}, std::numeric_limits<int64_t>::min()}) {
      EXPECT_EQ(Scalar::Integer(type, v), Scalar::Of(type, v)) << Name(type) << " " << v;
      EXPECT_EQ(Scalar::Of(type, static_cast<int8_t>(v)),
                Scalar::Of(type, int64_t{static_cast<int8_t>(v)}))
          << Name(type) << " " << v;
    }
  }
}

}  // namespace
}  // namespace nestor
