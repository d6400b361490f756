// Drawn elements have their character, lie in their range, and are the same on every machine.
#include "check/draw_elements.h"

#include <cmath>
#include <cstring>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "check/elements.h"
#include "uops/stable_hash.h"

namespace nestor {
namespace {

constexpr DType kFloats[] = {DType::kBF16, DType::kF16, DType::kF32, DType::kF64};
constexpr int kCharacters = static_cast<int>(Character::kAnyBits) + 1;

Tensor Floats(DType type, Character character, int64_t count, bool special = false,
              double low = -1e300, double high = 1e300) {
  Tensor tensor = Tensor::Create(type, {count}).value();
  RandomWords words(7);
  DrawFloats({character, 4.0, low, high, special}, words, tensor);
  return tensor;
}

Tensor Integers(DType type, const IntegerDraw& draw, int64_t count = 5000) {
  Tensor tensor = Tensor::Create(type, {count}).value();
  RandomWords words(7);
  DrawIntegers(draw, words, tensor);
  return tensor;
}

std::vector<double> Numbers(const Tensor& tensor) {
  std::vector<double> numbers;
  VisitNumbers(tensor, [&](double x) { numbers.push_back(x); });
  return numbers;
}

double ShareOf(const std::vector<double>& numbers, const std::function<bool(double)>& test) {
  return static_cast<double>(std::count_if(numbers.begin(), numbers.end(), test)) /
         static_cast<double>(numbers.size());
}

uint64_t Hash(const Tensor& tensor) {
  return StableHash(
      {static_cast<const char*>(tensor.data()), static_cast<size_t>(tensor.num_bytes())});
}

// A trial is reproduced by its seed: a change here changes every case.
TEST(DrawElements, AreTheSameOnEveryMachine) {
  uint64_t hash = 0;
  for (DType type : kFloats) {
    for (int c = 0; c < kCharacters; ++c) {
      for (bool special : {false, true})
        hash = hash * 31 + Hash(Floats(type, Character(c), 1000, special, -700, 2.5));
    }
  }
  EXPECT_EQ(absl::StrCat(absl::Hex(hash)), "537c3439838e8ec5");
  hash = 0;
  for (DType type : {DType::kBool, DType::kU8, DType::kI8, DType::kI32, DType::kI64}) {
    hash = hash * 31 + Hash(Integers(type, {0, 1, 10, -2, 5}));
  }
  EXPECT_EQ(absl::StrCat(absl::Hex(hash)), "3af37c3b7eeeebc7");
}

TEST(DrawElements, BeginAlikeInEveryLength) {
  for (DType type : kFloats) {
    const Tensor all = Floats(type, Character::kModerate, 200);
    for (int64_t count : {0, 1, 2, 63, 64, 65, 199}) {
      const Tensor some = Floats(type, Character::kModerate, count);
      EXPECT_TRUE(count == 0 ||
                  std::memcmp(some.data(), all.data(), static_cast<size_t>(some.num_bytes())) == 0);
    }
  }
}

TEST(DrawElements, HaveTheirCharacter) {
  struct Case {
    Character character;
    std::function<bool(double)> each;  // holds for all
    std::function<bool(double)> some;  // holds for a share of at least
    double share;
  };
  const auto magnitude = [](double low, double high) {
    return [=](double x) { return std::abs(x) >= low && std::abs(x) <= high; };
  };
  const auto negative = [](double x) { return x < 0; };
  const Case cases[] = {
      {Character::kModerate, magnitude(0, 2), negative, 0.45},
      {Character::kIntegers, [](double x) { return x == std::floor(x) && std::abs(x) <= 3; },
       magnitude(3, 3), 0.2},
      {Character::kCancelling, magnitude(90, 10100), negative, 0.45},
      {Character::kWide, [](double) { return true; }, magnitude(0, 0.01), 0.2},
      {Character::kWide, [](double x) { return x != 0; }, magnitude(100, 1e300), 0.2},
      {Character::kLarge, magnitude(59, 1001), negative, 0.45},
      {Character::kEqual, [](double x) { return x == 4; }, magnitude(4, 4), 1},
      {Character::kSpikes, magnitude(0, 200), magnitude(0, 0), 0.8},
      {Character::kSpikes, magnitude(0, 200), magnitude(1, 200), 0.1},
      {Character::kPositive, [](double x) { return x >= 0 && x <= 1; }, magnitude(0.5, 1), 0.45},
      {Character::kAnyBits, [](double x) { return std::isfinite(x); }, negative, 0.45},
  };
  for (DType type : kFloats) {
    for (const Case& c : cases) {
      const std::vector<double> numbers = Numbers(Floats(type, c.character, 5000));
      const auto name = absl::StrCat(Name(type), " ", static_cast<int>(c.character));
      EXPECT_EQ(ShareOf(numbers, c.each), 1) << name;
      EXPECT_GE(ShareOf(numbers, c.some), c.share) << name;
      if (c.character == Character::kEqual) continue;
      const std::set<double> distinct(numbers.begin(), numbers.end());
      EXPECT_GE(distinct.size(), c.character == Character::kIntegers ? 7u : 200u) << name;
    }
  }
}

TEST(DrawElements, AreSubnormalInTheirType) {
  for (DType type : kFloats) {
    const double least = type == DType::kF16 ? 0x1p-14 : type == DType::kF64 ? 0x1p-1022 : 0x1p-126;
    const std::vector<double> numbers = Numbers(Floats(type, Character::kSubnormal, 5000));
    EXPECT_EQ(ShareOf(numbers, [&](double x) { return std::abs(x) < 2 * least; }), 1) << Name(type);
    EXPECT_GE(ShareOf(numbers, [&](double x) { return std::abs(x) < least; }), 0.45) << Name(type);
    EXPECT_GE(ShareOf(numbers, [&](double x) { return x < 0; }), 0.45) << Name(type);
  }
}

TEST(DrawElements, HaveFractionsOfTheirType) {
  const std::vector<double> wide = Numbers(Floats(DType::kF64, Character::kModerate, 1000));
  EXPECT_GE(ShareOf(wide, [](double x) { return x != static_cast<double>(static_cast<float>(x)); }),
            0.99);
  const std::vector<double> single = Numbers(Floats(DType::kF32, Character::kModerate, 1000));
  EXPECT_GE(ShareOf(single, [](double x) { return x * 0x1p20 != std::floor(x * 0x1p20); }), 0.9);
}

TEST(DrawElements, CancelTheOneBefore) {
  const std::vector<double> numbers = Numbers(Floats(DType::kF32, Character::kCancelling, 5000));
  int pairs = 0;
  for (size_t i = 1; i < numbers.size(); ++i) pairs += std::abs(numbers[i] + numbers[i - 1]) < 0.05;
  EXPECT_GT(pairs, 2000);
  EXPECT_LT(pairs, 3000);
}

TEST(DrawElements, LieInTheRangeThatIsAskedFor) {
  for (DType type : kFloats) {
    for (int c = 0; c < kCharacters; ++c) {
      for (const auto& [low, high] :
           {std::pair{2.0, 3.0}, std::pair{-1.0, 0.0}, std::pair{0.0, 8192.0}}) {
        const std::vector<double> numbers =
            Numbers(Floats(type, Character(c), 1000, false, low, high));
        EXPECT_THAT(numbers, testing::Each(testing::AllOf(testing::Ge(low), testing::Le(high))))
            << Name(type) << " " << c;
      }
    }
  }
}

TEST(DrawElements, HoldInfinitiesAndNaNWhereAskedFor) {
  for (DType type : kFloats) {
    for (int c = 0; c < kCharacters; ++c) {
      const std::vector<double> numbers = Numbers(Floats(type, Character(c), 5000, true, -1, 1));
      EXPECT_NEAR(ShareOf(numbers, [](double x) { return std::isnan(x); }), 0.01, 0.006)
          << Name(type) << c;
      EXPECT_NEAR(ShareOf(numbers, [](double x) { return std::isinf(x); }), 0.02, 0.008)
          << Name(type) << c;
      EXPECT_GT(ShareOf(numbers, [](double x) { return x == 0 && std::signbit(x); }), 0.003)
          << Name(type) << c;
      EXPECT_EQ(ShareOf(numbers, [](double x) { return std::isfinite(x) && std::abs(x) > 1; }), 0)
          << Name(type) << c;
    }
  }
}

TEST(DrawElements, IntegersCoverTheirRange) {
  const std::pair<int64_t, int64_t> ranges[] = {{0, 0}, {0, 1}, {-3, 3}, {-100, 100}, {-128, 127}};
  for (DType type : {DType::kI8, DType::kI16, DType::kI32, DType::kI64}) {
    for (const auto& [low, high] : ranges) {
      const std::vector<double> numbers = Numbers(Integers(type, {low, high}));
      const std::set<double> distinct(numbers.begin(), numbers.end());
      EXPECT_EQ(static_cast<int64_t>(distinct.size()), high - low + 1) << Name(type);
      EXPECT_EQ(*distinct.begin(), low);
      EXPECT_EQ(*distinct.rbegin(), high);
    }
  }
  EXPECT_NEAR(ShareOf(Numbers(Integers(DType::kBool, {0, 1})), [](double x) { return x == 1; }),
              0.5, 0.03);
  for (DType type : AllTypes()) {  // any bits
    if (!IsInteger(type)) continue;
    const std::vector<double> any =
        Numbers(Integers(type, {Lowest(type).ToInt(), Highest(type).ToInt()}));
    const double middle = Lowest(type).ToDouble() / 2 + Highest(type).ToDouble() / 2;
    EXPECT_NEAR(ShareOf(any, [&](double x) { return x < middle; }), 0.5, 0.03) << Name(type);
    const double high = middle / 2 + Highest(type).ToDouble() / 2;
    EXPECT_GT(ShareOf(any, [&](double x) { return x > high; }), 0.2) << Name(type);
  }
}

TEST(DrawElements, FewIntegersLieInAnotherRange) {
  const std::vector<double> numbers = Numbers(Integers(DType::kI64, {0, 9, 10, -2, -1}));
  EXPECT_NEAR(ShareOf(numbers, [](double x) { return x < 0; }), 0.1, 0.02);
  EXPECT_EQ(ShareOf(numbers, [](double x) { return x >= -2 && x <= 9; }), 1);
}

}  // namespace
}  // namespace nestor
