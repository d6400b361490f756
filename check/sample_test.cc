// Samples of shapes of all kinds are as large as asked for, in bounds, and have the corners.
#include "check/sample.h"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>

#include "uops/notation/module.h"

namespace nestor {
namespace {

// There are as many elements as asked for, or hardly fewer, none outside, with the corners.
TEST(Sample, GroupsLieInTheirShape) {
  Random random(3);
  for (const Dims& shape :
       {Dims{}, Dims{0, 9}, Dims{7}, Dims{5000}, Dims{300, 200}, Dims{2, 9000}, Dims{9, 8, 7, 6}}) {
    for (int64_t most : {1, 5, 40, 500, 4096}) {
      const int64_t all = NumElements(shape).value();
      const PointGroups groups = DrawGroups(shape, most, random);
      std::vector<int64_t> numbers = NumbersOf(groups, shape);
      EXPECT_LE(static_cast<int64_t>(numbers.size()), most) << ShapeText(shape);
      EXPECT_GE(2 * static_cast<int64_t>(numbers.size()), std::min(most, all))
          << ShapeText(shape) << most;
      for (int64_t number : numbers) EXPECT_TRUE(number >= 0 && number < all) << ShapeText(shape);
      RemoveRepeated(numbers);
      std::multiset<int64_t> kept(numbers.begin(), numbers.end());
      kept.erase(-1);
      EXPECT_EQ(std::set<int64_t>(kept.begin(), kept.end()).size(), kept.size())
          << ShapeText(shape);
      if (most < 500 || all == 0) continue;
      EXPECT_TRUE(kept.contains(0) && kept.contains(all - 1)) << ShapeText(shape) << most;
    }
  }
}

TEST(Sample, SlicesAreHardlyLargerThanTheSample) {
  const Op op =
      *ParseOp("op f(x: f32[M, N, C]) -> (y) { y[i, j, k] = x[i, j, k] - max[l](x[i, j, l]) }");
  Random random(3);
  const auto draw = [&](const Dims& shape) {
    return DrawSlices(op, SeparableDimensions(op), {shape}, 100, random);
  };
  const Slices slices = draw({50, 60, 20});
  EXPECT_EQ(slices.size(), 2u);
  EXPECT_LE(slices.at("M").size() * slices.at("N").size() * 20, 800u);
  EXPECT_GE(slices.at("M").size() * slices.at("N").size() * 20, 400u);
  for (const auto& [name, extent] : {std::pair<std::string, int64_t>{"M", 50}, {"N", 60}}) {
    EXPECT_TRUE(std::is_sorted(slices.at(name).begin(), slices.at(name).end()));
    EXPECT_EQ(slices.at(name).front(), 0);
    EXPECT_EQ(slices.at(name).back(), extent - 1);
  }
  EXPECT_TRUE(draw({50, 60, 2000}).empty());  // one row is larger than that
}

}  // namespace
}  // namespace nestor
