// Sums are compared with numbers: each operation must give the same as arithmetic for random values
// of the atoms. Lengths go from 0 to more than is stored in place.
#include "uops/index/atom_sum.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <random>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "uops/index/atom_division.h"

namespace nestor {
namespace {

constexpr int kAtoms = 6;

class Sums {
 public:
  explicit Sums(uint64_t seed) : random_(seed) {
    for (int i = 0; i < kAtoms; ++i) {
      atoms_.push_back(pool_.Symbol(absl::StrCat("s", i)));
      values_.push_back(Below(7) - 3);
    }
  }

  int64_t Below(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(n)); }
  IndexPool& pool() { return pool_; }
  IndexId Atom() { return atoms_[static_cast<size_t>(Below(kAtoms))]; }

  // A sum of so many products of up to `factors` atoms; equal products become one term.
  AtomSum Draw(int64_t products, int64_t factors) {
    AtomSum sum(Below(5) - 2);
    for (int64_t i = 0; i < products; ++i) {
      AtomSum product(Below(9) - 4);
      for (int64_t k = Below(factors + 1); k > 0; --k) product = product * AtomSum::OfAtom(Atom());
      sum = sum + product;
    }
    return sum;
  }

  // Modulo 2^64, which sums and products agree with.
  uint64_t ValueOf(const AtomSum& sum) const {
    uint64_t value = 0;
    for (const AtomSum::Term& term : sum.terms()) {
      uint64_t product = static_cast<uint64_t>(term.coefficient);
      for (IndexId atom : term.atoms) product *= ValueOf(atom);
      value += product;
    }
    return value;
  }
  uint64_t ValueOf(IndexId atom) const {
    return static_cast<uint64_t>(values_[static_cast<size_t>(NumberOf(atom))]);
  }

 private:
  int NumberOf(IndexId atom) const {
    int number = 0;
    while (atoms_[static_cast<size_t>(number)] != atom) ++number;
    return number;
  }

  IndexPool pool_;
  std::mt19937_64 random_;
  std::vector<IndexId> atoms_;
  std::vector<int64_t> values_;
};

// Greatest products first, atoms ascending, nothing that is 0.
void ExpectInOrder(const AtomSum& sum) {
  size_t count = 0, longest = SIZE_MAX;
  for (const AtomSum::Term& term : sum.terms()) {
    EXPECT_NE(term.coefficient, 0);
    EXPECT_LE(term.atoms.size(), longest);
    EXPECT_TRUE(std::is_sorted(term.atoms.begin(), term.atoms.end()));
    longest = term.atoms.size();
    ++count;
  }
  EXPECT_EQ(count, sum.size());
}

TEST(AtomSumTest, OperationsAreThoseOfNumbers) {
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    Sums sums(seed);
    const AtomSum a = sums.Draw(sums.Below(14), 4), b = sums.Draw(sums.Below(5), 3),
                  c = sums.Draw(sums.Below(3), 9);
    const uint64_t x = sums.ValueOf(a), y = sums.ValueOf(b), z = sums.ValueOf(c);
    const std::pair<AtomSum, uint64_t> cases[] = {
        {a + b, x + y}, {a - b, x - y}, {-c, -z},
        {a * b, x * y}, {b * c, y * z}, {a.PlusProduct(b, c), x + y * z},
    };
    for (const auto& [sum, value] : cases) {
      if (!sum.exact()) continue;  // too long
      EXPECT_EQ(sums.ValueOf(sum), value) << seed;
      ExpectInOrder(sum);
    }
    EXPECT_TRUE((a - a).IsZero()) << seed;
    EXPECT_EQ((a + b) - b, a) << seed;
    EXPECT_EQ(a.HasProductsOf(a + AtomSum(1)), true) << seed;
  }
}

TEST(AtomSumTest, ExpressionsHaveTheValueOfTheirSum) {
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    Sums sums(seed);
    const AtomSum sum = sums.Draw(sums.Below(14), 4);
    const IndexId e = sum.Build(sums.pool());
    EXPECT_EQ(AtomSum::Of(sums.pool(), e), sum) << seed;
    const int64_t divisor = 2 + sums.Below(5);
    for (const int64_t by : {divisor, -divisor}) {
      const auto [quotient, rest] = sum.FloorDividedBy(by);
      const auto whole = static_cast<int64_t>(sums.ValueOf(sum)),
                 part = static_cast<int64_t>(sums.ValueOf(rest));
      EXPECT_EQ(
          static_cast<int64_t>(sums.ValueOf(quotient)) + *CheckedApply(IndexKind::kDiv, part, by),
          CheckedApply(IndexKind::kDiv, whole, by))
          << seed;
    }
  }
}

// Ids go by the order in which nodes are made; the canonical form does not.
TEST(AtomSumTest, CanonicalOrderIsThatOfEveryPool) {
  for (const bool vars_first : {true, false}) {
    IndexPool pool;
    if (vars_first) pool.Add(pool.Var(1), pool.Var(0));
    const IndexId n = pool.Symbol("N"), m = pool.Symbol("M"), i = pool.Var(0), j = pool.Var(1);
    const IndexId made =
        pool.Add(pool.Add(pool.Mul(n, pool.Add(pool.Mul(i, pool.Const(2)), m)), pool.Const(7)),
                 pool.Add(pool.Mul(n, pool.Const(3)), j));
    const AtomSum sum = AtomSum::Of(pool, made);
    std::vector<std::pair<std::vector<IndexId>, int64_t>> terms;
    for (const AtomSum::Term& term : sum.InOrder(pool))
      terms.push_back({{term.atoms.begin(), term.atoms.end()}, term.coefficient});
    const decltype(terms) expected = {{{i, n}, 2}, {{j}, 1}, {{m, n}, 1}, {{n}, 3}, {{}, 7}};
    EXPECT_EQ(terms, expected);
    EXPECT_EQ(sum.Build(pool), made);
  }
}

TEST(AtomSumTest, PartsMakeTheWhole) {
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    Sums sums(seed);
    const AtomSum a = sums.Draw(sums.Below(12), 3), b = sums.Draw(1 + sums.Below(3), 2);
    const IndexId atom = sums.Atom();
    const auto parts = a.SplitBy(atom);
    EXPECT_EQ(a.Holds(atom), !parts || !parts->factor.IsZero()) << seed;
    if (parts) {
      EXPECT_EQ(parts->factor * AtomSum::OfAtom(atom) + parts->rest, a) << seed;
      EXPECT_FALSE(parts->rest.Holds(atom)) << seed;
    }
    if (b.IsZero()) continue;
    const auto [quotient, remainder] = DividedBy(a, b);
    if (quotient.exact()) {
      EXPECT_EQ(quotient * b + remainder, a) << seed;
    }
    if ((a * b).exact()) {
      EXPECT_EQ(ExactQuotient(a * b, b), a) << seed;
    }
  }
}

// Sums of one product to more than any sum may have, stored in place and not.
TEST(AtomSumTest, SumsAreValues) {
  IndexPool pool;
  AtomSum sum(1);
  for (int n = 0; n < 140; ++n) {
    AtomSum copy = sum, moved = std::move(copy);
    EXPECT_EQ(moved, sum) << n;
    copy = moved;
    EXPECT_EQ(copy, sum) << n;
    AtomSum other = AtomSum::OfAtom(pool.Symbol("other"));
    other = std::move(copy);
    EXPECT_EQ(other, sum) << n;
    const AtomSum& itself = other;
    other = itself;
    EXPECT_EQ(other, sum) << n;
    EXPECT_EQ(sum.exact(), n < 128) << n;
    sum = sum + AtomSum::OfAtom(pool.Symbol(absl::StrCat("n", n)));
  }
}

TEST(AtomSumTest, WhatLeavesInt64IsInexact) {
  const AtomSum large(std::numeric_limits<int64_t>::max());
  EXPECT_FALSE((large + AtomSum(1)).exact());
  EXPECT_FALSE((large * AtomSum(2)).exact());
  EXPECT_FALSE((-AtomSum(std::numeric_limits<int64_t>::min())).exact());
  EXPECT_FALSE((AtomSum::Inexact() - AtomSum(1)).exact());
  EXPECT_EQ((large - AtomSum(1)).Constant(), std::numeric_limits<int64_t>::max() - 1);
}

}  // namespace
}  // namespace nestor
