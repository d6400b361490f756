// Canonical form, text and checked evaluation of index expressions. tests/random_test.cc tests that
// simplification keeps values; here are the forms themselves and the edges of int64.
#include "uops/index/index_expr.h"

#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "uops/notation/module.h"
#include "uops/notation/print.h"

namespace nestor {
namespace {

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
constexpr int64_t kMin = std::numeric_limits<int64_t>::min();

struct Form {
  const char* written;
  const char* canonical;
};

// `written` as the place of an access in x[..], with indices i, j, dimensions N, M,
// parameters $p, $q and the integer tensor t.
std::string Canonical(const std::string& written) {
  const absl::StatusOr<Op> op =
      ParseOp(absl::StrCat("op f(x: f32[N], t: i64[M]; $p, $q) -> (y) { y[i, j] = x[", written,
                           "] where i < N, j < M }"));
  if (!op.ok()) return op.status().ToString();
  const std::string text = PrintOp(*op);
  const size_t from = text.find("= x[") + 4;
  return text.substr(from, text.rfind("] where") - from);
}

TEST(IndexExpr, CanonicalForms) {
  constexpr Form kForms[] = {
      {"0 + i*1", "i"},
      {"j + i", "i + j"},
      {"i + i + i", "3*i"},
      {"(i + 1)*2 - 2*i + j*0", "2"},
      {"$p*(i + N) - $p*N", "i*$p"},
      {"i - (j - i)", "2*i - j"},
      {"(4*i + 6)/2", "2*i + 3"},
      {"(4*i + 7)/4", "i + 1"},
      {"(4*i + j)/4", "i + j/4"},
      {"(4*i + j + 9)%4", "(j + 1)%4"},
      {"-7/2", "-4"},
      {"-7%2", "1"},
      {"7/-2", "-4"},
      {"7%-2", "-1"},
      {"i/1 + i%1", "i"},
      {"i/$p*$p", "i/$p*$p"},
      {"min(i, i) + max(2, 3)", "i + 3"},
      {"N - N + i", "i"},
      // An expression that is not affine stays as it is written.
      {"(t[i] + 1)*2 - 2", "(t[i] + 1)*2 - 2"},
      {"t[j] + t[i]", "t[j] + t[i]"},
      {"i*j + j*i", "i*j + j*i"},
      {"0*t[i]", "0*t[i]"},
      {"j + (t[i] - (i + 3))", "j + (t[i] + (-i - 3))"},
  };
  for (const Form& form : kForms) {
    const std::string canonical = Canonical(form.written);
    EXPECT_EQ(canonical, form.canonical) << form.written;
    EXPECT_EQ(Canonical(canonical), canonical) << "not idempotent: " << form.written;
  }
}

TEST(IndexExpr, CheckedArithmetic) {
  EXPECT_EQ(CheckedApply(IndexKind::kAdd, kMax, 1), absl::nullopt);
  EXPECT_EQ(CheckedApply(IndexKind::kAdd, kMin, -1), absl::nullopt);
  EXPECT_EQ(CheckedApply(IndexKind::kMul, kMin, -1), absl::nullopt);
  EXPECT_EQ(CheckedApply(IndexKind::kDiv, kMin, -1), absl::nullopt);
  EXPECT_EQ(CheckedApply(IndexKind::kMod, kMin, -1), 0);
  EXPECT_EQ(CheckedApply(IndexKind::kDiv, 1, 0), absl::nullopt);
  EXPECT_EQ(CheckedApply(IndexKind::kMod, 1, 0), absl::nullopt);
  EXPECT_EQ(CheckedApply(IndexKind::kDiv, kMin, 2), kMin / 2);
  EXPECT_EQ(CheckedApply(IndexKind::kMod, kMin, kMax), kMax - 1);
}

TEST(IndexExpr, FloorDivisionAndRemainderExhaustively) {
  for (int64_t a = -20; a <= 20; ++a) {
    for (int64_t b = -7; b <= 7; ++b) {
      if (b == 0) continue;
      const int64_t q = *CheckedApply(IndexKind::kDiv, a, b),
                    r = *CheckedApply(IndexKind::kMod, a, b);
      EXPECT_EQ(q * b + r, a);
      EXPECT_TRUE(b > 0 ? (r >= 0 && r < b) : (r <= 0 && r > b)) << a << " % " << b;
    }
  }
}

// Every form a*i + c over a divisor: the simplified expression equals the plain one.
TEST(IndexExpr, DivisionByConstantsExhaustively) {
  IndexPool pool;
  const IndexId i = pool.Var(0);
  for (int64_t a = -6; a <= 6; ++a) {
    for (int64_t c = -5; c <= 5; ++c) {
      for (int64_t d = -4; d <= 4; ++d) {
        if (d == 0) continue;
        const IndexId e = pool.Add(pool.Mul(pool.Const(a), i), pool.Const(c));
        for (const IndexKind kind : {IndexKind::kDiv, IndexKind::kMod}) {
          const IndexId simplified = pool.Make(kind, 0, {e, pool.Const(d)});
          for (int64_t v = -9; v <= 9; ++v) {
            const auto leaf = [&](const IndexNode&, absl::Span<const int64_t>) {
              return absl::optional<int64_t>(v);
            };
            EXPECT_EQ(EvaluateIndex(pool, simplified, leaf), CheckedApply(kind, a * v + c, d));
          }
        }
      }
    }
  }
}

TEST(IndexExpr, OverflowingConstantsStayAsWritten) {
  IndexPool pool;
  const auto nothing = [](const IndexNode&, absl::Span<const int64_t>) {
    return absl::optional<int64_t>();
  };
  const IndexId sum = pool.Add(pool.Const(kMax), pool.Const(1));
  EXPECT_EQ(EvaluateIndex(pool, sum, nothing), absl::nullopt);
  EXPECT_EQ(pool.Sub(sum, pool.Const(1)), pool.Sub(sum, pool.Const(1)));
}

TEST(IndexExpr, LongSumsTakeLinearTime) {
  IndexPool pool;
  IndexId sum = pool.Const(0);
  for (int64_t d = 2; d < 3000; ++d) sum = pool.Add(sum, pool.Mod(pool.Var(0), pool.Const(d)));
  EXPECT_LT(pool.size(), 50000u);
}

// A node that is being visited does not change while the pool grows.
// A chain of mirrors has 2^60 paths to its variable.
TEST(IndexExpr, SharedPartsAreNotVisitedForEachPath) {
  IndexPool pool;
  IndexId e = pool.Var(3);
  for (int i = 0; i < 60; ++i) e = pool.Min(e, pool.Sub(pool.Symbol("N"), e));
  EXPECT_TRUE(HoldsVar(pool, e, 3));
  EXPECT_FALSE(HoldsVar(pool, e, 2));
  std::vector<int64_t> vars;
  CollectVars(pool, e, vars);
  EXPECT_EQ(vars, std::vector<int64_t>{3});
}

TEST(IndexExpr, VisitorsMayAddToThePool) {
  IndexPool pool;
  const IndexId e = pool.Load(7, {pool.Var(1), pool.Mod(pool.Var(2), pool.Const(5))});
  std::vector<IndexKind> kinds;
  VisitIndex(pool, e, [&](IndexId id, const IndexNode& node) {
    const IndexKind kind = node.kind;
    const size_t args = node.args.size();
    for (int64_t i = 0; i < 1000; ++i)
      pool.Add(pool.Var(i), pool.Const(1000 * static_cast<int64_t>(id.value) + i));
    EXPECT_EQ(node.kind, kind);
    EXPECT_EQ(node.args.size(), args);
    kinds.push_back(node.kind);
  });
  EXPECT_EQ(kinds, (std::vector<IndexKind>{IndexKind::kVar, IndexKind::kVar, IndexKind::kConst,
                                           IndexKind::kMod, IndexKind::kLoad}));
}

}  // namespace
}  // namespace nestor
