// Buffers hold what their specs say, the same each time that they are made; differences are
// relative to the size of the values.
#include "bench/buffers.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "gtest/gtest.h"

namespace nestor::bench {
namespace {

TEST(BuffersTest, FillsByKind) {
  absl::StatusOr<Buffers> made =
      Buffers::Create({{"x", DType::kF32, {3, 100}},
                       {"again", DType::kF32, {3, 100}},
                       {"n", DType::kU8, {200}},
                       {"h", DType::kBF16, {200}},
                       {"s", DType::kF32, {200}, Fill::kUniform, /*scale=*/0.25},
                       {.name = "labels", .type = DType::kI64, .shape = {200}, .below = 10},
                       {"ids", DType::kI64, {50}, Fill::kPermutation},
                       {"y", DType::kF64, {7}, Fill::kOutput}});
  ASSERT_TRUE(made.ok()) << made.status();
  Buffers buffers = *std::move(made);
  const auto x = buffers["x"].values<float>();
  const auto [least, most] = std::minmax_element(x.begin(), x.end());
  EXPECT_GE(*least, -1);
  EXPECT_LT(*least, -0.9);
  EXPECT_LT(*most, 1);
  EXPECT_GT(*most, 0.9);
  EXPECT_FALSE(BitEqual(buffers["x"], buffers["again"]));
  for (const uint8_t n : buffers["n"].values<uint8_t>()) EXPECT_LT(n, 16);
  for (const BF16 h : buffers["h"].values<BF16>()) EXPECT_LE(std::abs(h.Widen()), 1);
  const auto scaled = buffers["s"].values<float>();
  EXPECT_LT(*std::max_element(scaled.begin(), scaled.end()), 0.25);
  EXPECT_GT(*std::max_element(scaled.begin(), scaled.end()), 0.2);
  const auto labels = buffers["labels"].values<int64_t>();
  EXPECT_EQ(std::set<int64_t>(labels.begin(), labels.end()).size(), 10);
  EXPECT_EQ(*std::max_element(labels.begin(), labels.end()), 9);
  const auto ids = buffers["ids"].values<int64_t>();
  EXPECT_EQ(std::set<int64_t>(ids.begin(), ids.end()).size(), 50);
  EXPECT_EQ(*std::max_element(ids.begin(), ids.end()), 49);
  EXPECT_FALSE(std::is_sorted(ids.begin(), ids.end()));
  EXPECT_EQ(buffers.outputs(), std::vector<std::string>{"y"});
  for (const double y : buffers["y"].values<double>()) EXPECT_TRUE(std::isnan(y));
}

TEST(BuffersTest, SameSpecsGiveSameValues) {
  const BufferSpec spec{"x", DType::kF64, {1000}};
  absl::StatusOr<Buffers> a = Buffers::Create({spec}), b = Buffers::Create({spec});
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_TRUE(BitEqual((*a)["x"], (*b)["x"]));
}

TEST(BuffersTest, MaxRelativeDifference) {
  const double nan = NAN, inf = INFINITY;
  const struct {
    std::vector<double> want, got;
    double difference;
  } kCases[] = {
      {{}, {}, 0},
      {{1, 2}, {1, 2}, 0},
      {{1, -2}, {1, -2.5}, 0.25},
      // sqrt(16 / 2) is the scale where the element itself is smaller.
      {{0, 4}, {1, 4}, 1 / std::sqrt(8.0)},
      {{0, 0}, {0, 0}, 0},
      {{0, 0}, {0, 1}, inf},
      {{nan, 1}, {nan, 1}, 0},
      {{1, 1}, {nan, 1}, inf},
      {{inf, 1}, {inf, 1}, 0},
      {{1, 1}, {inf, 1}, inf},
  };
  for (const auto& c : kCases) {
    const Dims shape = {static_cast<int64_t>(c.want.size())};
    const absl::StatusOr<double> difference =
        MaxRelativeDifference(Tensor::Of<double>(shape, c.want), Tensor::Of<double>(shape, c.got));
    ASSERT_TRUE(difference.ok());
    if (std::isinf(c.difference)) {
      EXPECT_EQ(*difference, c.difference) << testing::PrintToString(c.got);
    } else {
      EXPECT_NEAR(*difference, c.difference, 1e-12) << testing::PrintToString(c.got);
    }
  }
  EXPECT_FALSE(
      MaxRelativeDifference(Tensor::Of<float>({1}, {1.f}), Tensor::Of<float>({1, 1}, {1.f})).ok());
  EXPECT_FALSE(
      MaxRelativeDifference(Tensor::Of<float>({1}, {1.f}), Tensor::Of<double>({1}, {1.0})).ok());
}

}  // namespace
}  // namespace nestor::bench
