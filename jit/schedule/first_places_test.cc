// Searches for the place of an extreme before and after the pass.
#include "jit/schedule/first_places.h"

#include "fusion/pass_testing.h"
#include "gtest/gtest.h"

namespace nestor::loop {
namespace {

constexpr Frame kFrame = {
    "program p(x: f32[N, K], w: f32[N, K], a: i32[N, K], ids: i64[N]) -> (y: i64[N], z: f32[N]) {\n",
    "\n  drop y[0] = 0 drop z[0] = 0.0\n}\n"};

TEST(FindFirstPlaces, TextInTextOut) {
  constexpr PassCase kCases[] = {
      {"for i in [0, N) { acc best: f32 = argmax"
       " for j in [0, K) { best argmax= (x[i, j], index(j)) } y[i] = best }",
       R"(
         for i in [0, N) {
           temp best: i64
           acc extreme: f32 = max
           for j in [0, K) { extreme max= x[i, j] }
           acc first: i64 = min
           for j_2 in [0, K) {
             first min= where(x[i, j_2] == extreme || x[i, j_2] != x[i, j_2], index(j_2), 9223372036854775807)
           }
           best = where(first == 9223372036854775807, -1, first)
           y[i] = best
         })"},
      // Integers have no NaN. The least.
      {"for i in [0, N) { acc best: i32 = argmin"
       " for j in [0, K) { best argmin= (a[i, j], index(j + 1)) } y[i] = best }",
       R"(
         for i in [0, N) {
           temp best: i64
           acc extreme: i32 = min
           for j in [0, K) { extreme min= a[i, j] }
           acc first: i64 = min
           for j_2 in [0, K) { first min= where(a[i, j_2] == extreme, index(j_2 + 1), 9223372036854775807) }
           best = where(first == 9223372036854775807, -1, first)
           y[i] = best
         })"},
      // What rounds once is computed twice, what may be fused is stored.
      {"for i in [0, N) { acc best: f32 = argmax"
       " for j in [0, K) { best argmax= (x[i, j] + w[i, j], index(j)) } y[i] = best }",
       R"(
         for i in [0, N) {
           temp best: i64
           acc extreme: f32 = max
           for j in [0, K) { extreme max= x[i, j] + w[i, j] }
           acc first: i64 = min
           for j_2 in [0, K) {
             first min= where(x[i, j_2] + w[i, j_2] == extreme || x[i, j_2] + w[i, j_2] != x[i, j_2] + w[i, j_2], index(j_2), 9223372036854775807)
           }
           best = where(first == 9223372036854775807, -1, first)
           y[i] = best
         })"},
      {"for i in [0, N) { acc best: f32 = argmax"
       " for j in [0, K) { best argmax= (x[i, j] * w[i, j] + 1.0, index(j)) } y[i] = best }",
       R"(
         assume : 549755813887*K
         for i in [0, N) {
           temp best: i64
           acc extreme: f32 = max
           temp kept: f32[K]
           for j in [0, K) { kept[j] = x[i, j] * w[i, j] + 1.0 }
           for j_2 in [0, K) { extreme max= kept[j_2] }
           acc first: i64 = min
           for j_3 in [0, K) {
             first min= where(kept[j_3] == extreme || kept[j_3] != kept[j_3], index(j_3), 9223372036854775807)
           }
           best = where(first == 9223372036854775807, -1, first)
           y[i] = best
         })"},
      // So is what the loop computes.
      {"for i in [0, N) { acc best: f32 = argmax"
       " for j in [0, K) { temp s: f32 s = exp(x[i, j]) best argmax= (s, index(j)) } y[i] = best }",
       R"(
         assume : 549755813887*K
         for i in [0, N) {
           temp best: i64
           acc extreme: f32 = max
           temp kept: f32[K]
           for j in [0, K) {
             temp s: f32
             s = exp(x[i, j])
             kept[j] = s
           }
           for j_2 in [0, K) { extreme max= kept[j_2] }
           acc first: i64 = min
           for j_3 in [0, K) {
             first min= where(kept[j_3] == extreme || kept[j_3] != kept[j_3], index(j_3), 9223372036854775807)
           }
           best = where(first == 9223372036854775807, -1, first)
           y[i] = best
         })"},
      // Steps in several loops.
      {"for i in [0, N) { acc best: f32 = argmax"
       " for j in [0, 2) { best argmax= (x[i, j | 0.0], index(j)) }"
       " for j in [2, K) { best argmax= (x[i, j], index(j)) } y[i] = best }",
       R"(
         for i in [0, N) {
           temp best: i64
           acc extreme: f32 = max
           for j in [0, 2) { extreme max= x[i, j | 0.0] }
           for j_2 in [2, K) { extreme max= x[i, j_2] }
           acc first: i64 = min
           for j_3 in [0, 2) {
             first min= where(x[i, j_3 | 0.0] == extreme || x[i, j_3 | 0.0] != x[i, j_3 | 0.0], index(j_3), 9223372036854775807)
           }
           for j_2_2 in [2, K) {
             first min= where(x[i, j_2_2] == extreme || x[i, j_2_2] != x[i, j_2_2], index(j_2_2), 9223372036854775807)
           }
           best = where(first == 9223372036854775807, -1, first)
           y[i] = best
         })"},
      // No extent is known outside of the loop over i.
      {"for i in [0, N) { acc best: f32 = argmax"
       " for j in [0, min(i, K)) { best argmax= (exp(x[i, j]), index(j)) } y[i] = best }",
       ""},
      // The loop over j walks along memory.
      {"for j in [0, K) { acc best: f32 = argmax"
       " for i in [0, N) { best argmax= (exp(x[i, j]), index(i)) } drop z[0] = f32(best) }",
       ""},
      // It is read on the way.
      {"for i in [0, N) { acc best: f32 = argmax"
       " for j in [0, K) { best argmax= (x[i, j], index(j)) y[i] = best } }",
       ""},
  };
  ExpectPass(FindFirstPlaces, kFrame, kCases);
}

}  // namespace
}  // namespace nestor::loop
