// Programs with which `nestor check` found an engine to be wrong, each made small: all engines run
// on them, with many seeds.
#include <string>

#include "absl/time/time.h"
#include "check/engines/self_check.h"
#include "check/engines/trial.h"
#include "check/engines/trial_programs.h"
#include "gtest/gtest.h"
#include "uops/notation/module.h"

namespace nestor {
namespace {

struct Found {
  const char* why;
  const char* program;
};

constexpr Found kFound[] = {
    {"partial results of three vectors were combined by halves",
     "op f(x: f32[M, N]) -> (y) { y[i] = prod[j](x[i, j]) }"},
    {"a tile with rows of its own had no vectors",
     "op f(a: f32[M, K], b: f32[K, N]) -> (c) { c[i, j] = sum[k](a[i, k] * b[k, j]) }"},
    {"a copy of what a product reads had another length in each iteration of a batch loop",
     R"(op f(g: bf16[M, K, N], x: bf16[L, M]) -> (y) {
  t[i, j, k, l] = g[i, j, k] * x[l, 1]
  y[i, j, k] = sum[l](t[i, l, j, k if k <= i])
})"},
    {"of rows of a strip that became columns, those that the last strip does not have were copied",
     R"(op f(x: i64[B, L, 5], z: i64[B, 5, L], w: i64[5, L]) -> (y) {
  y[i, j, k] = prod[l](x[i, l, j if j < 4] * z[i, j, l] * w[k, l])
})"},
    {"an operand's first element along a sum was copied where that sum has no terms, nor the tensor an element",
     "op f(x: i64[N, L], z: i64[M, L]) -> (y) { y[i, j] = prod[k](x[i, k] * z[j, 0]) }"},
    {"the same of two sums",
     "op f(x: f32[K, M], z: f32[K, N, L]) -> (y) { y[i, j] = sum[k, l](x[l, i] * z[0, j, k]) }"},
    {"a scalar that nothing sets, in a loop that never runs, was left without its declaration",
     R"(op f(g: f64[0, 0], x: f64[0, 1], z: f64[0]) -> (y) {
  t[i, j, k] = x[i, k] * z[j]
  u[i, j, k] = g[i, j] * prod[l](t[i, j, l if l != k]) * x[i, k]
  y[i, j] = sum[k](u[k, i, j])
})"},
    {"the condition of a sum that a strip keeps was dropped",
     R"(op f(x: i32[L], z: i32[N, L]) -> (y) {
  t[i, j] = sum[k](x[i] * z[j, k])
  y[i] = max[j](t[i, j if j%2 == 0])
})"},
    {"the same of a sum that is stored",
     R"(op f(x: i32[L, K], z: i32[N, K]) -> (y) {
  t[i, j] = sum[k](x[i, k] * z[j, k])
  y[i, j] = t[i, j if j%2 == 0] - max[l](t[i, l if l <= i])
})"},
    {"the same of a sum in a register tile",
     R"(op f(x: f32[K, L], z: f32[M, K, N]) -> (y, t) {
  t[i, j, k] = sum[l](x[l, i] * z[k, l, j])
  y[i, j, k] = t[i, j, k if k%2 == 0]
})"},
    {"what a strip keeps had an extent that moves with the loop around it, for which there is no memory",
     R"(op f(x: f16[N, L, K]) -> (y, z) {
  t[i, j, k, l] = f16(j) * x[i, l, k] where j < L
  u[i, j, k] = min[l](t[i, j, k, l])
  z[i, j, k] = u[k, j, i if k <= i]
  y[i, j, k, l] = t[i, j, k, l] != u[i, j, k]
})"},
    {"the same in code: a tile's place was looked for in memory",
     R"(op f(x: f32[K, L], z: f32[M, K, N]) -> (y, t) {
  s[i, j, k] = sum[l](x[l, i] * z[k, l, j])
  t[i, j, k] = s[j, k, i]
  y[i, j, k] = s[i, j, k if k%2 == 0]
})"},
    {"columns of a product moved with a condition alone: a scalar has no last axis",
     R"(op f(g: f16[L], x: f16[B, N, M]) -> (y) {
  t[i, j, k, l] = sum[m](g[m]) where i < B, j < N, k < M, l < L
  y[i, j, k] = sum[l](x[i, l, j] + t[i, l, j, k if k == 0])
})"},
    {"a nest was copied for few rows without end, where a division by zero left nothing to be known of rows",
     R"(op f(x: f32[B, H, L, S], z: f32[B, G, S, N]) -> (y) {
  y[i, j, k, l] = sum[m](x[i, j, k, m] * z[i, j/(H/G), m, l])
})"},
    {"a product that a quotient by 1 (a number for some sizes) hid from a sum was rounded in the bounds, not in code",
     R"(op f(x: f32[M, N], z: f32[N], w: f32[N]) -> (y) {
  y[i, j] = z[j] * w[j] / f32(M) + x[i, j]
})"},
    {"the same of other operations that give their operand back",
     "op f(x: f32[N], z: f32[N], w: f32[N]) -> (y) { y[i] = -0.0 + (1.0 * (x[i] * z[i]) - 0.0) + w[i] }"},
    {"sums under a condition were kept for a number of columns that moves with the row",
     R"(op f(x: f32[N, K], m: bool[N, K], w: f32[K, N]) -> (y) {
  y[i, j] = where(j <= i, i32(sum[k](where(m[i, k], x[i, k] * w[k, j if j <= i], 0.0))), 0) where i < N, j < N
})"},
};

TEST(CheckFindings, StayMended) {
  for (const Found& found : kFound) {
    const Op op = ParseOp(found.program).value();
    TrialCounts counts;
    for (uint64_t seed = 1; seed <= 60; ++seed) {
      const Finding finding = CheckTrial(op, seed, {}, counts);
      ASSERT_FALSE(finding.has_value()) << found.why << ", seed " << seed << ": " << *finding;
    }
    EXPECT_GT(counts.pairs, 60) << found.why;
  }
}

// Faults that no smaller program shows.
TEST(CheckFindings, StayMendedOfRandomPrograms) {
  // A view of windows had no axis for columns without iterations, in code for some sizes; rows that
  // a strip of a known, smaller number of rows does not have were copied as idle columns.
  for (uint64_t seed : {1032464, 221269}) {
    SelfCheckOptions options;
    options.first_seed = seed;
    options.trials = 1;
    options.shrinking = absl::ZeroDuration();
    const SelfCheckReport report = SelfCheck(DrawTrialOp, options);
    for (const SelfCheckFinding& finding : report.findings)
      ADD_FAILURE() << seed << ": " << finding.what;
  }
}

}  // namespace
}  // namespace nestor
