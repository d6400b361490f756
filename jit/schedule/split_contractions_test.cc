// Nests with several sums before and after each has a nest of its own.
#include "jit/schedule/split_contractions.h"

#include "fusion/pass_testing.h"
#include "gtest/gtest.h"

namespace nestor::loop {
namespace {

constexpr Frame kFrame = {
    "program p(x: f32[N, K], v: f32[K, M], z: f32[N, L], c: f32[L], w: f32[L, M], a: f32[B, N, K], b: f32[B, K, M]) -> "
    "(y: f32[N, M], g: f32[M], t: f32[B, N, M]) {\n",
    "\n  drop y[0, 0] = 0.0  drop g[0] = 0.0  drop t[0, 0, 0] = 0.0\n}\n"};

// Texts that macros make are laid out by hand.
// clang-format off
#define FIRST(s, i, j, k) "acc " s ": f32 = sum for " k " in [0, K) { " s " += x[" i ", " k "] * v[" k ", " j "] } "
#define SECOND(r, i, j, k) "acc " r ": f32 = sum for " k " in [0, L) { " r " += z[" i ", " k "] * w[" k ", " j "] } "
#define NEST(i, j, core) "for " i " in [0, N) { for " j " in [0, M) { " core " } } "
#define ASSUMED "assume : 549755813887*M*N "
// A sum of rows alone.
#define ROW "acc q: f32 = sum for k_9 in [0, K) { q += x[i, k_9] } "
#define BATCHED(s, i, j, k) "acc " s ": f32 = sum for " k " in [0, K) { " s " += a[n, " i ", " k "] * b[n, " k ", " j "] } "

TEST(SplitContractions, TextInTextOut) {
  constexpr PassCase kCases[] = {
      // The last nest keeps the statements that use the sums.
      {NEST("i", "j", FIRST("s", "i", "j", "k") SECOND("r", "i", "j", "l") "y[i, j] = s * r"),
       ASSUMED "temp sums: f32[N, M] " NEST("i_2", "j_2", FIRST("s_2", "i_2", "j_2", "k_2") "sums[i_2, j_2] = s_2")
       NEST("i", "j", SECOND("r", "i", "j", "l") "y[i, j] = sums[i, j] * r") ""},
      // Beside a sum of rows alone, and beside a sum over rows.
      {NEST("i", "j", FIRST("s", "i", "j", "k") ROW "y[i, j] = s - q"),
       ASSUMED "temp sums: f32[N, M] " NEST("i_2", "j_2", FIRST("s_2", "i_2", "j_2", "k_2") "sums[i_2, j_2] = s_2")
       NEST("i", "j", ROW "y[i, j] = sums[i, j] - q") ""},
      {NEST("i", "j", FIRST("s", "i", "j", "k") "g[j] += s * s"),
       ASSUMED "temp sums: f32[N, M] " NEST("i_2", "j_2", FIRST("s_2", "i_2", "j_2", "k_2") "sums[i_2, j_2] = s_2")
       NEST("i", "j", "g[j] += sums[i, j] * sums[i, j]") ""},
      // A sum that is a contraction once it runs on beyond the border of z.
      {NEST("i", "j", "acc s: f32 = sum for k in [max(-j + 1, 0), min(K, -j + L + 1)) { s += x[i, k] * z[i, j + k - 1] } "
            "y[i, j] = s g[j] += s"),
       ""},
      {NEST("i", "j", "acc s: f32 = sum for k in [max(-j + 1, 0), min(K, -j + L + 1)) { s += x[i, k] * c[j + k - 1] } "
            "y[i, j] = s g[j] += s"),
       ASSUMED "temp sums: f32[N, M] "
       NEST("i_2", "j_2", "acc s_2: f32 = sum for k_2 in [max(-j_2 + 1, 0), min(K, -j_2 + L + 1)) { "
            "s_2 += x[i_2, k_2] * c[j_2 + k_2 - 1] } sums[i_2, j_2] = s_2")
       NEST("i", "j", "y[i, j] = sums[i, j] g[j] += sums[i, j]")},
      // It is not split off again inside of a loop over batches.
      {"for n in [0, B) { g[0] = 1.0 " NEST("i", "j", "acc s: f32 = sum for k in [max(-j + 1, 0), min(L, -j + K + 1)) "
            "{ s += z[i, k] * b[n, j + k - 1, 0] } t[n, i, j] = s g[j] += s") "}",
       ASSUMED "for n in [0, B) { g[0] = 1.0 temp sums: f32[N, M] "
       NEST("i_2", "j_2", "acc s_2: f32 = sum for k_2 in [max(-j_2 + 1, 0), min(L, -j_2 + K + 1)) { "
            "s_2 += z[i_2, k_2] * b[n, j_2 + k_2 - 1, 0] } sums[i_2, j_2] = s_2")
       NEST("i", "j", "t[n, i, j] = sums[i, j] g[j] += sums[i, j]") "}"},
      // Loops over batches stay around.
      {"for n in [0, B) { " NEST("i", "j", BATCHED("s", "i", "j", "k") SECOND("r", "i", "j", "l") "t[n, i, j] = s * r") "}",
       ASSUMED "for n in [0, B) { temp sums: f32[N, M] "
       NEST("i_2", "j_2", BATCHED("s_2", "i_2", "j_2", "k_2") "sums[i_2, j_2] = s_2")
       NEST("i", "j", SECOND("r", "i", "j", "l") "t[n, i, j] = sums[i, j] * r") "}"},
      // A sum that is a contraction once each remainder of a quotient has its own nest.
      {NEST("i", "j", SECOND("r", "i", "j", "l") "acc s: f32 = sum "
            "for k in [0, K) { drop s if i%2 == 0 += x[i/2, k] * v[k, j] } y[i, j] = s * r"),
       ASSUMED "temp sums: f32[N, M] "
       NEST("i_2", "j_2", "acc s_2: f32 = sum "
            "for k_2 in [0, K) { drop s_2 if i_2%2 == 0 += x[i_2/2, k_2] * v[k_2, j_2] } sums[i_2, j_2] = s_2")
       NEST("i", "j", SECOND("r", "i", "j", "l") "y[i, j] = sums[i, j] * r") ""},
      // It stays then, beside other things, too.
      {"for n in [0, B) { " NEST("i", "j", SECOND("r", "i", "j", "l") "acc s: f32 = sum "
            "for k in [0, K) { drop s if i%2 == 0 += a[n, i/2, k] * b[n, k, j] } t[n, i, j] = s * r") "}",
       ASSUMED "for n in [0, B) { temp sums: f32[N, M] "
       NEST("i_2", "j_2", "acc s_2: f32 = sum "
            "for k_2 in [0, K) { drop s_2 if i_2%2 == 0 += a[n, i_2/2, k_2] * b[n, k_2, j_2] } sums[i_2, j_2] = s_2")
       NEST("i", "j", SECOND("r", "i", "j", "l") "t[n, i, j] = sums[i, j] * r") "}"},
      // Columns of two loops that each row sums over: the mean of an image.
      {"for n in [0, N) { acc q: f32 = sum for i in [0, B) { for j in [0, M) { acc s: f32 = sum "
       "for k in [0, K) { s += x[n, k] * b[i, k, j] } q += max(s, 0.0) } } drop g[n] = q }",
       "assume : 549755813887*B*M*N temp sums: f32[N, B, M] "
       "for n_2 in [0, N) { for i_2 in [0, B) { for j_2 in [0, M) { acc s_2: f32 = sum "
       "for k_2 in [0, K) { s_2 += x[n_2, k_2] * b[i_2, k_2, j_2] } sums[n_2, i_2, j_2] = s_2 } } } "
       "for n in [0, N) { acc q: f32 = sum for i in [0, B) { for j in [0, M) { q += max(sums[n, i, j], 0.0) } } drop g[n] = q }"},
      // Not where there are other columns for each step of a loop around.
      {"for n in [0, B) { for i in [0, N) { for j in [n, M) { " BATCHED("s", "i", "j", "k") "g[j] += s } } }", ""},
      // Not where the sum reads what a loop around makes.
      {"for n in [0, N) { temp h: f32 h = z[n, 0 | 0.0] acc q: f32 = sum for i in [0, B) { for j in [0, M) { acc s: f32 = sum "
       "for k in [0, K) { s += x[n, k] * h * b[i, k, j] } q += max(s, 0.0) } } drop g[n] = q }", ""},
      // Not columns of one loop, which run in strips.
      {"for n in [0, N) { acc q: f32 = sum for j in [0, M) { acc s: f32 = sum "
       "for k in [0, K) { s += x[n, k] * v[k, j] } q += max(s, 0.0) } drop g[n] = q }", ""},
      // Not nests that are contractions already, or none of whose sums is one; nor a single sum of
      // rows that are not known to be apart.
      {NEST("i", "j", FIRST("s", "i", "j", "k") "drop y[i/2, j] = s"), ""},
      {NEST("i", "j", FIRST("s", "i", "j", "k") "y[i, j] = s + 1.0"), ""},
      {NEST("i", "j", ROW "g[j] += q"), ""},
      // Nor sums of few steps, or that read what the nest makes.
      {NEST("i", "j", "acc s: f32 = sum for k in [0, 7) { s += x[i, k | 0.0] * v[k, j | 0.0] } g[j] += s"), ""},
      {NEST("i", "j", "acc s: f32 = sum for k in [0, K) { s += x[i, k] * g[j] } g[j] += s"), ""},
  };
  ExpectPass(SplitContractions, kFrame, kCases);
}
// clang-format on

}  // namespace
}  // namespace nestor::loop
