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

// What TYPE(v) is, in the order of AllTypes: bool u8 i8 i32 i64 bf16 f16 f32 f64.
using Row = std::vector<std::string>;

template <class T>
void ExpectRow(T v, const Row& row) {
  ASSERT_EQ(row.size(), AllTypes().size());
  for (size_t i = 0; i < row.size(); ++i) {
    const DType type = AllTypes()[i];
    const Scalar scalar = Scalar::Of(type, v);
    EXPECT_EQ(scalar.type, type);
    EXPECT_EQ(ParseLiteral(row[i], type), scalar) << Name(type) << " of " << +v << " is " << LiteralText(scalar);
  }
}

TEST(Scalar, OfDouble) {
  ExpectRow(2.5, {"true", "2", "2", "2", "2", "2.5", "2.5", "2.5", "2.5"});
  ExpectRow(-2.5, {"true", "0", "-2", "-2", "-2", "-2.5", "-2.5", "-2.5", "-2.5"});
  ExpectRow(0.0, {"false", "0", "0", "0", "0", "0.0", "0.0", "0.0", "0.0"});
  ExpectRow(-0.0, {"false", "0", "0", "0", "0", "-0.0", "-0.0", "-0.0", "-0.0"});
  ExpectRow(300.0, {"true", "255", "127", "300", "300", "300.0", "300.0", "300.0", "300.0"});
  ExpectRow(-300.0, {"true", "0", "-128", "-300", "-300", "-300.0", "-300.0", "-300.0", "-300.0"});
  ExpectRow(65520.0, {"true", "255", "127", "65520", "65520", "65536.0", "inf", "65520.0", "65520.0"});
  // Just above a tie of f16, bf16 and f32 in turn: rounded once, upwards.
  EXPECT_EQ(LiteralText(Scalar::Of(DType::kF16, 1 + 0x1p-11 + 0x1p-40)), LiteralText(Scalar::Of(DType::kF16, 1 + 0x1p-10)));
  EXPECT_EQ(LiteralText(Scalar::Of(DType::kBF16, 1 + 0x1p-8 + 0x1p-40)), LiteralText(Scalar::Of(DType::kBF16, 1 + 0x1p-7)));
  EXPECT_EQ(LiteralText(Scalar::Of(DType::kF32, 1 + 0x1p-24 + 0x1p-50)), LiteralText(Scalar::Of(DType::kF32, 1 + 0x1p-23)));
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
    EXPECT_EQ(LiteralText(Scalar::Of(type, kNaN)), is_float ? "nan" : is_bool ? "true" : "0") << Name(type);
    EXPECT_EQ(Scalar::Of(type, kNaN), Scalar::Of(type, -std::numeric_limits<float>::quiet_NaN())) << Name(type);
    EXPECT_EQ(Scalar::Of(type, kInf), is_bool ? Scalar::Of(type, true) : Highest(type)) << Name(type);
    EXPECT_EQ(Scalar::Of(type, -kInf), is_bool ? Scalar::Of(type, true) : Lowest(type)) << Name(type);
  }
}

TEST(Scalar, OfInt) {
  ExpectRow(3, {"true", "3", "3", "3", "3", "3.0", "3.0", "3.0", "3.0"});
  ExpectRow(0, {"false", "0", "0", "0", "0", "0.0", "0.0", "0.0", "0.0"});
  ExpectRow(-1, {"true", "255", "-1", "-1", "-1", "-1.0", "-1.0", "-1.0", "-1.0"});
  ExpectRow(300, {"true", "44", "44", "300", "300", "300.0", "300.0", "300.0", "300.0"});
  // To nearest even at once, where a double between would make a tie of it.
  ExpectRow((int64_t{1} << 60) + (int64_t{1} << 52) + 1,
            {"true", "1", "1", "1", "1157425104234217473", "1.16e18", "inf", "1.1574251e18", "1.1574251042342175e18"});
  const int64_t above = (int64_t{1} << 60) + (int64_t{1} << 36) + 1;
  EXPECT_EQ(Scalar::Of(DType::kF32, above), Scalar::Of(DType::kF32, 0x1p60f + 0x1p37f));
  const int64_t above_half = (int64_t{1} << 60) + (int64_t{1} << 52) + 1;
  EXPECT_EQ(Scalar::Of(DType::kBF16, above_half), Scalar::Of(DType::kBF16, 0x1p60 + 0x1p53));
  ExpectRow(std::numeric_limits<uint64_t>::max(), {"true", "255", "-1", "-1", "-1", "1.845e19", "inf", "1.8446744e19",
                                                   "1.8446744073709552e19"});
}

TEST(Scalar, OfBool) {
  ExpectRow(true, {"true", "1", "1", "1", "1", "1.0", "1.0", "1.0", "1.0"});
  ExpectRow(false, {"false", "0", "0", "0", "0", "0.0", "0.0", "0.0", "0.0"});
}

// Floats of all widths, and the constructors named for one type, are the same rule.
TEST(Scalar, EveryConstructorAgrees) {
  for (const DType type : AllTypes()) {
    for (const double v : {2.5, -1.0, 0.0, 300.0, 1e30, -kInf, kNaN}) {
      EXPECT_EQ(Scalar::Float(type, v), Scalar::Of(type, v)) << Name(type) << " " << v;
      EXPECT_EQ(Scalar::Of(type, static_cast<float>(v)), Scalar::Of(type, double{static_cast<float>(v)})) << Name(type) << " " << v;
      const BF16 bf16 = BF16::Round(static_cast<float>(v));
      EXPECT_EQ(Scalar::Of(type, bf16), Scalar::Of(type, bf16.Widen())) << Name(type) << " " << v;
      const F16 f16 = F16::Round(static_cast<float>(v));
      EXPECT_EQ(Scalar::Of(type, f16), Scalar::Of(type, f16.Widen())) << Name(type) << " " << v;
    }
    for (const int64_t v : {int64_t{0}, int64_t{-1}, int64_t{300}, std::numeric_limits<int64_t>::min()}) {
      EXPECT_EQ(Scalar::Integer(type, v), Scalar::Of(type, v)) << Name(type) << " " << v;
      EXPECT_EQ(Scalar::Of(type, static_cast<int8_t>(v)), Scalar::Of(type, int64_t{static_cast<int8_t>(v)})) << Name(type) << " " << v;
    }
  }
}

}  // namespace
}  // namespace nestor
