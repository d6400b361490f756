#include "loop_ir/affine.h"

#include "gtest/gtest.h"

namespace nestor::loop {
namespace {

TEST(CoefficientTest, IsTheRiseOfLinearExpressions) {
  IndexPool pool;
  const IndexId i = pool.Var(0), j = pool.Var(1), n = pool.Symbol("N"), two = pool.Const(2);
  const IndexId ni = pool.Mul(n, i), sum = pool.Add(pool.Add(ni, pool.Mul(two, i)), pool.Mul(n, j));
  const struct {
    IndexId e;
    absl::optional<AtomSum> expected;
  } cases[] = {
      {i, AtomSum(1)},
      {n, AtomSum(0)},
      {pool.Min(j, n), AtomSum(0)},
      {pool.Sub(n, pool.Mul(two, i)), AtomSum(-2)},
      {ni, AtomSum::OfAtom(n)},
      {sum, AtomSum::OfAtom(n) + AtomSum(2)},
      {pool.Mul(pool.Add(i, n), pool.Div(n, two)), AtomSum::OfAtom(pool.Div(n, two))},
      {pool.Div(i, two), absl::nullopt},
      {pool.Min(i, n), absl::nullopt},
      {pool.Mul(i, j), absl::nullopt},
      {pool.Load(0, {i}), absl::nullopt},
      {pool.Load(0, {j}), AtomSum(0)},
  };
  const size_t size = pool.size();
  for (const auto& [e, expected] : cases) {
    EXPECT_EQ(CoefficientOf(pool, e, 0), expected) << e.value;
    EXPECT_EQ(StrideIn(pool, e, 0), expected ? expected->Constant() : absl::nullopt) << e.value;
  }
  EXPECT_EQ(pool.size(), size);
}

TEST(CoefficientTest, PartsAndDifferencesOfExpressions) {
  IndexPool pool;
  const IndexId i = pool.Var(0), n = pool.Symbol("N"), in = pool.Mul(i, n),
                load = pool.Load(0, {i});
  const IndexId above = pool.Add(in, n), sum = pool.Add(above, pool.Const(3));
  const size_t size = pool.size();
  EXPECT_EQ(FixedPart(pool, sum), AtomSum::OfAtom(n) + AtomSum(3));
  EXPECT_TRUE(FixedPart(pool, in).IsZero());
  EXPECT_EQ(DifferenceOf(pool, sum, above), 3);
  EXPECT_EQ(DifferenceOf(pool, sum, in), absl::nullopt);
  EXPECT_EQ(DifferenceOf(pool, load, load), absl::nullopt);  // nothing is known about it
  EXPECT_EQ(pool.size(), size);
}

TEST(IsAtMostOneTest, SeesTheFormAlone) {
  IndexPool pool;
  const IndexId n = pool.Symbol("N"), one = pool.Const(1), flag = pool.Min(n, one);
  EXPECT_TRUE(IsAtMostOne(pool, one));
  EXPECT_TRUE(IsAtMostOne(pool, flag));
  EXPECT_TRUE(IsAtMostOne(pool, pool.Min(pool.Sub(one, flag), one)));
  EXPECT_FALSE(IsAtMostOne(pool, pool.Sub(one, flag)));
  EXPECT_FALSE(IsAtMostOne(pool, pool.Max(n, one)));
  EXPECT_FALSE(IsAtMostOne(pool, pool.Const(2)));
}

}  // namespace
}  // namespace nestor::loop
