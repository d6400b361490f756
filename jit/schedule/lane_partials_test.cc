// Mostly with one vector of partial results, so that halving is short.
#include "jit/schedule/lane_partials.h"

#include "absl/types/span.h"
#include "fusion/pass_testing.h"
#include "gtest/gtest.h"

namespace nestor::loop {
namespace {

constexpr Frame kFrame = {
    "program p(x: f32[N, K], s: f32[N, 64], z: f32[N, A, B], w: i64[N, K], v: f32[N], ids: i64[K]) -> "
    "(y: f32[N], yk: f32[K], o: f32[N, K], c: i64[N], d: f64[N]) {\n",
    "\n  drop y[0] = 0.0  drop yk[0] = 0.0  drop o[0, 0] = 0.0  drop c[0] = 0  drop d[0] = f64(0.0)\n}\n"};

void Expect(const LanePartialsOptions& options, absl::Span<const PassCase> cases) {
  ExpectPass([&](Program& program) { return SumInLanes(program, options); }, kFrame, cases);
}

TEST(LanePartials, TextInTextOut) {
  LanePartialsOptions options;
  options.vectors = 1;
  Expect(
      options,
      {
          // Groups of lanes, the steps left over, and halving.
          {"for i in [0, N) { acc a: f32 = sum  for k in [0, K) { a += x[i, k] }  y[i] = a }",
           R"(
         for i in [0, N) {
           acc a: f32 = sum
           acc a_lanes: f32[8] = sum register
           for k_2 in [0, K/8) { for l in [0, 8) vector { a_lanes[l] += x[i, 8*k_2 + l] } }
           for l_2 in [0, K%8) vector { a_lanes[l_2] += x[i, l_2 + 8*(K/8)] }
           temp a_4: f32[4] register
           for l_3 in [0, 4) vector { a_4[l_3] = a_lanes[l_3] + a_lanes[l_3 + 4] }
           temp a_2: f32[2] register
           for l_4 in [0, 2) vector { a_2[l_4] = a_4[l_4] + a_4[l_4 + 2] }
           temp a_1: f32[1] register
           for l_5 in [0, 1) vector { a_1[l_5] = a_2[l_5] + a_2[l_5 + 1] }
           a += a_1[0]
           y[i] = a
         })"},
          {"for i in [0, N) { acc a: f32 = prod  for k in [1, K) { a *= x[i, k] }  y[i] = a }",
           R"(
         for i in [0, N) {
           acc a: f32 = prod
           acc a_lanes: f32[8] = prod register
           for k_2 in [0, max(K - 1, 0)/8) { for l in [0, 8) vector { a_lanes[l] *= x[i, 8*k_2 + l + 1] } }
           for l_2 in [0, max(K - 1, 0)%8) vector { a_lanes[l_2] *= x[i, l_2 + 8*(max(K - 1, 0)/8) + 1] }
           temp a_4: f32[4] register
           for l_3 in [0, 4) vector { a_4[l_3] = a_lanes[l_3] * a_lanes[l_3 + 4] }
           temp a_2: f32[2] register
           for l_4 in [0, 2) vector { a_2[l_4] = a_4[l_4] * a_4[l_4 + 2] }
           temp a_1: f32[1] register
           for l_5 in [0, 1) vector { a_1[l_5] = a_2[l_5] * a_2[l_5 + 1] }
           a *= a_1[0]
           y[i] = a
         })"},
          {"for i in [0, N) { acc a: f32 = min  for k in [0, 64) { a min= s[i, k] }  y[i] = a }",
           R"(
         for i in [0, N) {
           acc a: f32 = min
           acc a_lanes: f32[8] = min register
           for k_2 in [0, 8) { for l in [0, 8) vector { a_lanes[l] min= s[i, 8*k_2 + l] } }
           temp a_4: f32[4] register
           for l_2 in [0, 4) vector { a_4[l_2] = min(a_lanes[l_2], a_lanes[l_2 + 4]) }
           temp a_2: f32[2] register
           for l_3 in [0, 2) vector { a_2[l_3] = min(a_4[l_3], a_4[l_3 + 2]) }
           temp a_1: f32[1] register
           for l_4 in [0, 1) vector { a_1[l_4] = min(a_2[l_4], a_2[l_4 + 1]) }
           a min= a_1[0]
           y[i] = a
         })"},
          {"acc a: f32 = sum  for k in [0, N) { a += v[k] }  y[0] = a",
           R"(
         acc a: f32 = sum
         acc a_lanes: f32[8] = sum register
         for k_2 in [0, N/8) { for l in [0, 8) vector { a_lanes[l] += v[8*k_2 + l] } }
         for l_2 in [0, N%8) vector { a_lanes[l_2] += v[l_2 + 8*(N/8)] }
         temp a_4: f32[4] register
         for l_3 in [0, 4) vector { a_4[l_3] = a_lanes[l_3] + a_lanes[l_3 + 4] }
         temp a_2: f32[2] register
         for l_4 in [0, 2) vector { a_2[l_4] = a_4[l_4] + a_4[l_4 + 2] }
         temp a_1: f32[1] register
         for l_5 in [0, 1) vector { a_1[l_5] = a_2[l_5] + a_2[l_5 + 1] }
         a += a_1[0]
         y[0] = a)"},
          // 64-bit lanes are half as many.
          {"for i in [0, N) { acc a: i64 = sum  for k in [0, K) { a += w[i, k] }  c[i] = a }",
           R"(
         for i in [0, N) {
           acc a: i64 = sum
           acc a_lanes: i64[4] = sum register
           for k_2 in [0, K/4) { for l in [0, 4) vector { a_lanes[l] += w[i, 4*k_2 + l] } }
           for l_2 in [0, K%4) vector { a_lanes[l_2] += w[i, l_2 + 4*(K/4)] }
           temp a_2: i64[2] register
           for l_3 in [0, 2) vector { a_2[l_3] = a_lanes[l_3] + a_lanes[l_3 + 2] }
           temp a_1: i64[1] register
           for l_4 in [0, 1) vector { a_1[l_4] = a_2[l_4] + a_2[l_4 + 1] }
           a += a_1[0]
           c[i] = a
         })"},
          {"for i in [0, N) { acc a: f64 = sum  for k in [0, K) { a += f64(x[i, k]) }  d[i] = a }",
           R"(
         for i in [0, N) {
           acc a: f64 = sum
           acc a_lanes: f64[4] = sum register
           for k_2 in [0, K/4) { for l in [0, 4) vector { a_lanes[l] += f64(x[i, 4*k_2 + l]) } }
           for l_2 in [0, K%4) vector { a_lanes[l_2] += f64(x[i, l_2 + 4*(K/4)]) }
           temp a_2: f64[2] register
           for l_3 in [0, 2) vector { a_2[l_3] = a_lanes[l_3] + a_lanes[l_3 + 2] }
           temp a_1: f64[1] register
           for l_4 in [0, 1) vector { a_1[l_4] = a_2[l_4] + a_2[l_4 + 1] }
           a += a_1[0]
           d[i] = a
         })"},
          // Several accumulators, and other statements in the loop.
          {"for i in [0, N) { acc a: f32 = sum  acc m: f32 = max  for k in [0, K) { temp t: f32  t = x[i, k] * 2.0  "
           "o[i, k] = t  a += t  m max= x[i, k] }  y[i] = a + m }",
           R"(
         for i in [0, N) {
           acc a: f32 = sum
           acc m: f32 = max
           acc a_lanes: f32[8] = sum register
           acc m_lanes: f32[8] = max register
           for k_2 in [0, K/8) {
             for l in [0, 8) vector {
               temp t_2: f32
               t_2 = x[i, 8*k_2 + l] * 2.0
               o[i, 8*k_2 + l] = t_2
               a_lanes[l] += t_2
               m_lanes[l] max= x[i, 8*k_2 + l]
             }
           }
           for l_2 in [0, K%8) vector {
             temp t_3: f32
             t_3 = x[i, l_2 + 8*(K/8)] * 2.0
             o[i, l_2 + 8*(K/8)] = t_3
             a_lanes[l_2] += t_3
             m_lanes[l_2] max= x[i, l_2 + 8*(K/8)]
           }
           temp a_4: f32[4] register
           for l_3 in [0, 4) vector { a_4[l_3] = a_lanes[l_3] + a_lanes[l_3 + 4] }
           temp a_2: f32[2] register
           for l_4 in [0, 2) vector { a_2[l_4] = a_4[l_4] + a_4[l_4 + 2] }
           temp a_1: f32[1] register
           for l_5 in [0, 1) vector { a_1[l_5] = a_2[l_5] + a_2[l_5 + 1] }
           a += a_1[0]
           temp m_4: f32[4] register
           for l_6 in [0, 4) vector { m_4[l_6] = max(m_lanes[l_6], m_lanes[l_6 + 4]) }
           temp m_2: f32[2] register
           for l_7 in [0, 2) vector { m_2[l_7] = max(m_4[l_7], m_4[l_7 + 2]) }
           temp m_1: f32[1] register
           for l_8 in [0, 1) vector { m_1[l_8] = max(m_2[l_8], m_2[l_8 + 1]) }
           m max= m_1[0]
           y[i] = a + m
         })"},
          // The partial results live in the outermost scope in which nothing else
          // uses the accumulator.
          {"for i in [0, N) { acc a: f32 = sum  for j in [0, A) { for k in [0, B) { a += z[i, j, k] } }  y[i] = a }",
           R"(
         for i in [0, N) {
           acc a: f32 = sum
           acc a_lanes: f32[8] = sum register
           for j in [0, A) {
             for k_2 in [0, B/8) { for l in [0, 8) vector { a_lanes[l] += z[i, j, 8*k_2 + l] } }
             for l_2 in [0, B%8) vector { a_lanes[l_2] += z[i, j, l_2 + 8*(B/8)] }
           }
           temp a_4: f32[4] register
           for l_3 in [0, 4) vector { a_4[l_3] = a_lanes[l_3] + a_lanes[l_3 + 4] }
           temp a_2: f32[2] register
           for l_4 in [0, 2) vector { a_2[l_4] = a_4[l_4] + a_4[l_4 + 2] }
           temp a_1: f32[1] register
           for l_5 in [0, 1) vector { a_1[l_5] = a_2[l_5] + a_2[l_5 + 1] }
           a += a_1[0]
           y[i] = a
         })"},
          {"for i in [0, N) { acc a: f32 = sum  for j in [0, A) { a += 1.0  for k in [0, B) { a += z[i, j, k] } }  "
           "y[i] = a }",
           R"(
         for i in [0, N) {
           acc a: f32 = sum
           for j in [0, A) {
             a += 1.0
             acc a_lanes: f32[8] = sum register
             for k_2 in [0, B/8) { for l in [0, 8) vector { a_lanes[l] += z[i, j, 8*k_2 + l] } }
             for l_2 in [0, B%8) vector { a_lanes[l_2] += z[i, j, l_2 + 8*(B/8)] }
             temp a_4: f32[4] register
             for l_3 in [0, 4) vector { a_4[l_3] = a_lanes[l_3] + a_lanes[l_3 + 4] }
             temp a_2: f32[2] register
             for l_4 in [0, 2) vector { a_2[l_4] = a_4[l_4] + a_4[l_4 + 2] }
             temp a_1: f32[1] register
             for l_5 in [0, 1) vector { a_1[l_5] = a_2[l_5] + a_2[l_5 + 1] }
             a += a_1[0]
           }
           y[i] = a
         })"},
          // Masks that all lanes share are kept.
          {"for i in [0, N) { acc a: f32 = sum  for k in [0, K) { a += x[i - 1, k | 0.0 if i < 5] }  y[i] = a }",
           R"(
         for i in [0, N) {
           acc a: f32 = sum
           acc a_lanes: f32[8] = sum register
           for k_2 in [0, K/8) { for l in [0, 8) vector { a_lanes[l] += x[i - 1, 8*k_2 + l | 0.0 if i < 5] } }
           for l_2 in [0, K%8) vector { a_lanes[l_2] += x[i - 1, l_2 + 8*(K/8) | 0.0 if i < 5] }
           temp a_4: f32[4] register
           for l_3 in [0, 4) vector { a_4[l_3] = a_lanes[l_3] + a_lanes[l_3 + 4] }
           temp a_2: f32[2] register
           for l_4 in [0, 2) vector { a_2[l_4] = a_4[l_4] + a_4[l_4 + 2] }
           temp a_1: f32[1] register
           for l_5 in [0, 1) vector { a_1[l_5] = a_2[l_5] + a_2[l_5 + 1] }
           a += a_1[0]
           y[i] = a
         })"},
          // As many lanes as the widest value leaves room for.
          {"for i in [0, N) { acc a: f32 = sum  acc b: f64 = sum  for k in [0, K) { a += x[i, k]  "
           "b += f64(x[i, k]) }  y[i] = a  d[i] = b }",
           R"(
         for i in [0, N) {
           acc a: f32 = sum
           acc b: f64 = sum
           acc a_lanes: f32[4] = sum register
           acc b_lanes: f64[4] = sum register
           for k_2 in [0, K/4) {
             for l in [0, 4) vector {
               a_lanes[l] += x[i, 4*k_2 + l]
               b_lanes[l] += f64(x[i, 4*k_2 + l])
             }
           }
           for l_2 in [0, K%4) vector {
             a_lanes[l_2] += x[i, l_2 + 4*(K/4)]
             b_lanes[l_2] += f64(x[i, l_2 + 4*(K/4)])
           }
           temp a_2: f32[2] register
           for l_3 in [0, 2) vector { a_2[l_3] = a_lanes[l_3] + a_lanes[l_3 + 2] }
           temp a_1: f32[1] register
           for l_4 in [0, 1) vector { a_1[l_4] = a_2[l_4] + a_2[l_4 + 1] }
           a += a_1[0]
           temp b_2: f64[2] register
           for l_5 in [0, 2) vector { b_2[l_5] = b_lanes[l_5] + b_lanes[l_5 + 2] }
           temp b_1: f64[1] register
           for l_6 in [0, 1) vector { b_1[l_6] = b_2[l_6] + b_2[l_6 + 1] }
           b += b_1[0]
           y[i] = a
           d[i] = b
         })"},
          {"for i in [0, N) { acc a: f32 = sum  for k in [0, K) { a += pow(x[i, k], 1.5) }  y[i] = a }",
           R"(
         for i in [0, N) {
           acc a: f32 = sum
           acc a_lanes: f32[4] = sum register
           for k_2 in [0, K/4) { for l in [0, 4) vector { a_lanes[l] += pow(x[i, 4*k_2 + l], 1.5) } }
           for l_2 in [0, K%4) vector { a_lanes[l_2] += pow(x[i, l_2 + 4*(K/4)], 1.5) }
           temp a_2: f32[2] register
           for l_3 in [0, 2) vector { a_2[l_3] = a_lanes[l_3] + a_lanes[l_3 + 2] }
           temp a_1: f32[1] register
           for l_4 in [0, 1) vector { a_1[l_4] = a_2[l_4] + a_2[l_4 + 1] }
           a += a_1[0]
           y[i] = a
         })"},
          // Not for fewer elements than lanes.
          {"for i in [0, N) { acc a: f32 = sum  for k in [0, 7) { a += s[i, k] }  y[i] = a }", ""},
          // Not for places, nor for bools.
          {"for i in [0, N) { acc a: f32 = argmax  for k in [0, K) { a argmax= (x[i, k], index(k)) }  "
           "c[i] = index(a[]) }",
           ""},
          {"for i in [0, N) { acc a: bool = any  for k in [0, K) { a any= x[i, k] > 0.0 }  y[i] = f32(a) }",
           ""},
          // Not where the accumulator is used in between, or twice, or is none.
          {"for i in [0, N) { acc a: f32 = sum  for k in [0, K) { a += x[i, k]  o[i, k] = a }  y[i] = a }",
           ""},
          {"for i in [0, N) { acc a: f32 = sum  for k in [0, K) { a += x[i, k]  a += 1.0 }  y[i] = a }",
           ""},
          {"for i in [0, N) { acc a: f32 = sum  for k in [0, K) { drop a[] if i < 5 += x[i, k] }  y[i] = a }",
           ""},
          {"for i in [0, N) { temp t: f32  t = 0.0  for k in [0, K) { t = t + x[i, k] }  y[i] = t }",
           ""},
          {"for i in [0, N) { temp t: f32  t = 1.0  for k in [0, K) { t += x[i, k] }  y[i] = t }",
           ""},
          {"for i in [0, N) { for k in [0, K) { y[i] += x[i, k] } }", ""},
          // Not with another dependence.
          {"for i in [0, N) { acc a: f32 = sum  for k in [0, K) { a += x[i, k]  y[0] = x[i, k] }  y[i] = a }",
           ""},
          // Not where lanes have masks or places of their own.
          {"for i in [0, N) { acc a: f32 = sum  for k in [0, K) { a += x[i, k + 1 | 0.0] }  y[i] = a }",
           ""},
          {"for i in [0, N) { acc a: f32 = sum  for k in [0, K) { a += x[i, k | 0.0 if k < 5] }  y[i] = a }",
           ""},
          {"for i in [0, N) { acc a: f32 = sum  for k in [0, K) { a += x[i, ids[k] | 0.0] }  y[i] = a }",
           ""},
          // Not across rows, around other loops, or with larger steps.
          {"for i in [0, K) { acc a: f32 = sum  for k in [0, N) { a += x[k, i] }  yk[i] = a }", ""},
          {"for i in [0, N) { acc a: f32 = sum  for k in [0, K) { acc b: f32 = sum  "
           "for l in [0, A) { b += z[i, l, 0] }  a += b * x[i, k] }  y[i] = a }",
           ""},
          {"for i in [0, N) { acc a: f32 = sum  for k in [0, K) step 2 { a += x[i, k] }  y[i] = a }",
           ""},
      });
}

// Beside loops over windows, which are too short for lanes.
TEST(LanePartials, BesideShortLoops) {
  LanePartialsOptions options;
  options.vectors = 1;
  Expect(
      options,
      {
          {"for i in [0, N) { acc a: f32 = sum  for k in [0, K - 2) { temp m: f32  m = 0.0  for n in [0, 3) { m = max(m, x[i, k + n]) }  a += m }  y[i] = a }",
           R"(
         for i in [0, N) {
           acc a: f32 = sum
           acc a_lanes: f32[8] = sum register
           for k_2 in [0, max(K - 2, 0)/8) {
             for l in [0, 8) vector {
               temp m_2: f32
               m_2 = 0.0
               for n_2 in [0, 3) { m_2 = max(m_2, x[i, 8*k_2 + l + n_2]) }
               a_lanes[l] += m_2
             }
           }
           for l_2 in [0, max(K - 2, 0)%8) vector {
             temp m_3: f32
             m_3 = 0.0
             for n_3 in [0, 3) { m_3 = max(m_3, x[i, l_2 + n_3 + 8*(max(K - 2, 0)/8)]) }
             a_lanes[l_2] += m_3
           }
           temp a_4: f32[4] register
           for l_3 in [0, 4) vector { a_4[l_3] = a_lanes[l_3] + a_lanes[l_3 + 4] }
           temp a_2: f32[2] register
           for l_4 in [0, 2) vector { a_2[l_4] = a_4[l_4] + a_4[l_4 + 2] }
           temp a_1: f32[1] register
           for l_5 in [0, 1) vector { a_1[l_5] = a_2[l_5] + a_2[l_5 + 1] }
           a += a_1[0]
           y[i] = a
         })"},
          // Not if these accumulate, too.
          {"for i in [0, N) { acc a: f32 = sum  for k in [0, K - 2) { for n in [0, 3) { a += x[i, k + n] } }  y[i] = a }",
           ""},
          {"for i in [0, N) { acc a: f32 = sum  acc b: f32 = sum  for k in [0, K - 2) { for n in [0, 3) { b += x[i, k + n] }  a += x[i, k] }  y[i] = a + b }",
           ""},
      });
}

TEST(LanePartials, ExactOnes) {
  LanePartialsOptions options;
  options.vectors = 1;
  options.reorders_rounding = false;
  Expect(
      options,
      {
          // Sums and products of floats round; other accumulations do not.
          {"for i in [0, N) { acc a: f32 = sum  for k in [0, 64) { a += s[i, k] }  y[i] = a }", ""},
          {"for i in [0, N) { acc a: f32 = prod  for k in [0, 64) { a *= s[i, k] }  y[i] = a }",
           ""},
          {"for i in [0, N) { acc a: f64 = sum  for k in [0, 64) { a += f64(s[i, k]) }  d[i] = a }",
           ""},
          {"for i in [0, N) { acc a: f32 = max  acc b: f32 = sum  for k in [0, 64) { a max= s[i, k]  "
           "b += s[i, k] }  y[i] = a + b }",
           ""},
          {"for i in [0, N) { acc a: f32 = max  for k in [0, 64) { a max= s[i, k] }  y[i] = a }",
           R"(
         for i in [0, N) {
           acc a: f32 = max
           acc a_lanes: f32[8] = max register
           for k_2 in [0, 8) { for l in [0, 8) vector { a_lanes[l] max= s[i, 8*k_2 + l] } }
           temp a_4: f32[4] register
           for l_2 in [0, 4) vector { a_4[l_2] = max(a_lanes[l_2], a_lanes[l_2 + 4]) }
           temp a_2: f32[2] register
           for l_3 in [0, 2) vector { a_2[l_3] = max(a_4[l_3], a_4[l_3 + 2]) }
           temp a_1: f32[1] register
           for l_4 in [0, 1) vector { a_1[l_4] = max(a_2[l_4], a_2[l_4 + 1]) }
           a max= a_1[0]
           y[i] = a
         })"},
          {"for i in [0, N) { acc a: i64 = prod  for k in [0, K) { a *= w[i, k] }  c[i] = a }",
           R"(
         for i in [0, N) {
           acc a: i64 = prod
           acc a_lanes: i64[4] = prod register
           for k_2 in [0, K/4) { for l in [0, 4) vector { a_lanes[l] *= w[i, 4*k_2 + l] } }
           for l_2 in [0, K%4) vector { a_lanes[l_2] *= w[i, l_2 + 4*(K/4)] }
           temp a_2: i64[2] register
           for l_3 in [0, 2) vector { a_2[l_3] = a_lanes[l_3] * a_lanes[l_3 + 2] }
           temp a_1: i64[1] register
           for l_4 in [0, 1) vector { a_1[l_4] = a_2[l_4] * a_2[l_4 + 1] }
           a *= a_1[0]
           c[i] = a
         })"},
      });
}

TEST(LanePartials, SeveralVectors) {
  LanePartialsOptions options;
  options.vectors = 2;
  Expect(options,
         {
             // Two vectors of partial results are as many lanes.
             {"for i in [0, N) { acc a: f32 = max  for k in [0, 64) { a max= s[i, k] }  y[i] = a }",
              R"(
                for i in [0, N) {
                  acc a: f32 = max
                  acc a_lanes: f32[16] = max register
                  for k_2 in [0, 4) { for l in [0, 16) vector { a_lanes[l] max= s[i, 16*k_2 + l] } }
                  temp a_8: f32[8] register
                  for l_2 in [0, 8) vector { a_8[l_2] = max(a_lanes[l_2], a_lanes[l_2 + 8]) }
                  temp a_4: f32[4] register
                  for l_3 in [0, 4) vector { a_4[l_3] = max(a_8[l_3], a_8[l_3 + 4]) }
                  temp a_2: f32[2] register
                  for l_4 in [0, 2) vector { a_2[l_4] = max(a_4[l_4], a_4[l_4 + 2]) }
                  temp a_1: f32[1] register
                  for l_5 in [0, 1) vector { a_1[l_5] = max(a_2[l_5], a_2[l_5 + 1]) }
                  a max= a_1[0]
                  y[i] = a
                })"},
         });
}

TEST(LanePartials, LongBodies) {
  LanePartialsOptions options;
  options.vectors = 4;
  Expect(
      options,
      {
          // With a function, or a maximum, of many steps two vectors are enough.
          {"for i in [0, N) { acc a: f32 = sum  for k in [0, 64) { a += exp(s[i, k]) }  y[i] = a }",
           R"(
         for i in [0, N) {
           acc a: f32 = sum
           acc a_lanes: f32[16] = sum register
           for k_2 in [0, 4) { for l in [0, 16) vector { a_lanes[l] += exp(s[i, 16*k_2 + l]) } }
           temp a_8: f32[8] register
           for l_2 in [0, 8) vector { a_8[l_2] = a_lanes[l_2] + a_lanes[l_2 + 8] }
           temp a_4: f32[4] register
           for l_3 in [0, 4) vector { a_4[l_3] = a_8[l_3] + a_8[l_3 + 4] }
           temp a_2: f32[2] register
           for l_4 in [0, 2) vector { a_2[l_4] = a_4[l_4] + a_4[l_4 + 2] }
           temp a_1: f32[1] register
           for l_5 in [0, 1) vector { a_1[l_5] = a_2[l_5] + a_2[l_5 + 1] }
           a += a_1[0]
           y[i] = a
         })"},
          {"for i in [0, N) { acc a: f32 = max  for k in [0, 64) { a max= s[i, k] }  y[i] = a }",
           R"(
         for i in [0, N) {
           acc a: f32 = max
           acc a_lanes: f32[16] = max register
           for k_2 in [0, 4) { for l in [0, 16) vector { a_lanes[l] max= s[i, 16*k_2 + l] } }
           temp a_8: f32[8] register
           for l_2 in [0, 8) vector { a_8[l_2] = max(a_lanes[l_2], a_lanes[l_2 + 8]) }
           temp a_4: f32[4] register
           for l_3 in [0, 4) vector { a_4[l_3] = max(a_8[l_3], a_8[l_3 + 4]) }
           temp a_2: f32[2] register
           for l_4 in [0, 2) vector { a_2[l_4] = max(a_4[l_4], a_4[l_4 + 2]) }
           temp a_1: f32[1] register
           for l_5 in [0, 1) vector { a_1[l_5] = max(a_2[l_5], a_2[l_5 + 1]) }
           a max= a_1[0]
           y[i] = a
         })"},
      });
}

TEST(LanePartials, Avx512) {
  LanePartialsOptions options;
  options.vectors = 1;
  options.isa = jit::Isa::kAvx512;
  Expect(
      options,
      {
          {"for i in [0, N) { acc a: f32 = sum  for k in [0, 64) { a += s[i, k] }  y[i] = a }",
           R"(
         for i in [0, N) {
           acc a: f32 = sum
           acc a_lanes: f32[16] = sum register
           for k_2 in [0, 4) { for l in [0, 16) vector { a_lanes[l] += s[i, 16*k_2 + l] } }
           temp a_8: f32[8] register
           for l_2 in [0, 8) vector { a_8[l_2] = a_lanes[l_2] + a_lanes[l_2 + 8] }
           temp a_4: f32[4] register
           for l_3 in [0, 4) vector { a_4[l_3] = a_8[l_3] + a_8[l_3 + 4] }
           temp a_2: f32[2] register
           for l_4 in [0, 2) vector { a_2[l_4] = a_4[l_4] + a_4[l_4 + 2] }
           temp a_1: f32[1] register
           for l_5 in [0, 1) vector { a_1[l_5] = a_2[l_5] + a_2[l_5 + 1] }
           a += a_1[0]
           y[i] = a
         })"},
          {"for i in [0, N) { acc a: f32 = sum  for k in [0, 15) { a += s[i, k] }  y[i] = a }", ""},
      });
}

}  // namespace
}  // namespace nestor::loop
