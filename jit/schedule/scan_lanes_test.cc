// Scans before and after the pass, by operation and direction, and loops that are left alone. All
// in f64 on AVX2, so that there are four lanes.
#include "jit/schedule/scan_lanes.h"

#include "fusion/pass_testing.h"
#include "gtest/gtest.h"

namespace nestor::loop {
namespace {

constexpr Frame kFrame = {
    "program p(x: f64[C], w: f64[C], "
    "m: f64[C, N], s: f64[15], e: f64[32], g: f64[32], k: i64[C], f: f32[C]) -> "
    "(y: f64[C], z: f64[C], v: f64[C, N], i: i64[C], o: f32[C], u: f64[32], q: f64[32]) { "
    "temp a: f64  temp b: f64  temp j: i64  temp h: f32\n",
    "\n  drop y[0] = f64(0.0)  drop z[0] = f64(0.0)  drop v[0, 0] = f64(0.0)  drop i[0] = 0  "
    "drop o[0] = 0.0  u[0] = f64(0.0)  q[0] = f64(0.0)\n}\n"};

absl::StatusOr<bool> InAnyOrder(Program& program) {
  return ScanInLanes(program, {jit::Isa::kAvx2, true});
}
absl::StatusOr<bool> Exactly(Program& program) {
  return ScanInLanes(program, {jit::Isa::kAvx2, false});
}

TEST(ScanInLanes, TextInTextOut) {
  constexpr PassCase kCases[] = {
      {"a = f64(0.0)  for t in [0, C) { temp now: f64  now = a + x[t]  y[t] = now  a = now }",
       R"(
         a = f64(0.0)
         for t_2 in [0, C/16) {
           temp terms: f64[4, 4] register
           for r in [0, 4) unroll { for l in [0, 4) vector { terms[r, l] = x[16*t_2 + 4*r + l] } }
           temp scans: f64[4, 4] register
           for l_2 in [0, 4) vector { scans[0, l_2] = terms[l_2, 0] }
           for r_2 in [1, 4) unroll {
             for l_3 in [0, 4) vector { scans[r_2, l_3] = scans[r_2 - 1, l_3] + terms[l_3, r_2] }
           }
           temp ends: f64[4]
           for l_4 in [0, 4) vector { ends[l_4] = scans[3, l_4] }
           temp starts: f64[4]
           for r_3 in [0, 4) unroll { starts[r_3] = a  a = a + ends[r_3] }
           for r_4 in [0, 4) unroll {
             for l_5 in [0, 4) vector {
               temp now_2: f64
               now_2 = starts[r_4] + scans[l_5, r_4]
               y[16*t_2 + 4*r_4 + l_5] = now_2
             }
           }
         }
         for t in [16*(C/16), C) { temp now: f64  now = a + x[t]  y[t] = now  a = now }
      )"},
      // From the last step down, storing the value before each step. Rows of blocks are aligned
      // with vectors of memory.
      {"a = f64(1.0)  for t in [1, C) { temp now: f64  now = x[C - 1 - t] * a  y[C - 1 - t] = a  a = now }",
       R"(
         a = f64(1.0)
         for t_2 in [1, min(C, (C + 3)%4 + 1)) {
           temp now_2: f64
           now_2 = x[-t_2 + C - 1] * a
           y[-t_2 + C - 1] = a
           a = now_2
         }
         for t_3 in [0, max(C - (C + 3)%4 - 1, 0)/16) {
           temp terms: f64[4, 4] register
           for r in [0, 4) unroll {
             for l in [0, 4) vector { terms[r, l] = x[-16*t_3 + 4*r + l - (C + 3)%4 + C - 17] }
           }
           temp scans: f64[4, 4] register
           for l_2 in [0, 4) vector { scans[3, l_2] = terms[l_2, 3] }
           for r_2 in [1, 4) unroll {
             for l_3 in [0, 4) vector { scans[-r_2 + 3, l_3] = scans[-r_2 + 4, l_3] * terms[l_3, -r_2 + 3] }
           }
           temp ends: f64[4]
           for l_4 in [0, 4) vector { ends[l_4] = scans[0, l_4] }
           temp earlier: f64[4, 4] register
           for l_5 in [0, 4) vector { earlier[3, l_5] = f64(1.0) }
           for r_3 in [1, 4) unroll { for l_6 in [0, 4) vector { earlier[-r_3 + 3, l_6] = scans[-r_3 + 4, l_6] } }
           temp starts: f64[4]
           for r_4 in [0, 4) unroll { starts[-r_4 + 3] = a  a = a * ends[-r_4 + 3] }
           for r_5 in [0, 4) unroll {
             for l_7 in [0, 4) vector {
               temp last: f64
               last = starts[r_5] * earlier[l_7, r_5]
               y[-16*t_3 + 4*r_5 + l_7 - (C + 3)%4 + C - 17] = last
             }
           }
         }
         for t in [16*(max(C - (C + 3)%4 - 1, 0)/16) + (C + 3)%4 + 1, C) {
           temp now: f64
           now = x[-t + C - 1] * a
           y[-t + C - 1] = a
           a = now
         }
      )"},
      // Terms of several parts, a scalar that terms and stores need, and a known length.
      {"a = f64(0.0)  for t in [0, 32) { temp p: f64  p = e[t] * g[t]  temp c: f64  c = p + a  temp n: f64  "
       "n = c - g[t]  u[t] = n * p  q[t] = p  a = n }",
       R"(
         a = f64(0.0)
         for t_2 in [0, 2) {
           temp terms: f64[4, 4] register
           for r in [0, 4) unroll {
             for l in [0, 4) vector {
               temp p_2: f64
               p_2 = e[16*t_2 + 4*r + l] * g[16*t_2 + 4*r + l]
               terms[r, l] = p_2 + -g[16*t_2 + 4*r + l]
             }
           }
           temp scans: f64[4, 4] register
           for l_2 in [0, 4) vector { scans[0, l_2] = terms[l_2, 0] }
           for r_2 in [1, 4) unroll {
             for l_3 in [0, 4) vector { scans[r_2, l_3] = scans[r_2 - 1, l_3] + terms[l_3, r_2] }
           }
           temp ends: f64[4]
           for l_4 in [0, 4) vector { ends[l_4] = scans[3, l_4] }
           temp starts: f64[4]
           for r_3 in [0, 4) unroll { starts[r_3] = a  a = a + ends[r_3] }
           for r_4 in [0, 4) unroll {
             for l_5 in [0, 4) vector {
               temp now: f64
               now = starts[r_4] + scans[l_5, r_4]
               temp p_3: f64
               p_3 = e[16*t_2 + 4*r_4 + l_5] * g[16*t_2 + 4*r_4 + l_5]
               u[16*t_2 + 4*r_4 + l_5] = now * p_3
               q[16*t_2 + 4*r_4 + l_5] = p_3
             }
           }
         }
      )"},
      // What blocks share is loaded only where there is one: w may have no element.
      {"a = f64(0.0)  for t in [0, C) { temp now: f64  now = a * w[0] + x[t]  y[t] = now  a = now }",
       R"(
         a = f64(0.0)
         for z_2 in [0, min(C/16, 1)) {
           temp factor: f64
           factor = w[0]
           temp product: f64
           product = factor * factor
           temp product_2: f64
           product_2 = product * factor
           temp product_3: f64
           product_3 = product_2 * factor
           for t_2 in [0, C/16) {
             temp terms: f64[4, 4] register
             for r in [0, 4) unroll { for l in [0, 4) vector { terms[r, l] = x[16*t_2 + 4*r + l] } }
             temp turned: f64[4, 4] register
             for r_2 in [0, 4) unroll { for l_2 in [0, 4) vector { turned[r_2, l_2] = terms[l_2, r_2] } }
             temp sums: f64[4, 4] register
             for l_3 in [0, 4) vector { sums[0, l_3] = turned[0, l_3] }
             for r_3 in [1, 4) unroll {
               for l_4 in [0, 4) vector {
                 sums[r_3, l_4] = sums[r_3 - 1, l_4] * factor + turned[r_3, l_4]
               }
             }
             temp ends: f64[4]
             for l_5 in [0, 4) vector { ends[l_5] = sums[3, l_5] }
             temp starts: f64[4]
             for r_4 in [0, 4) unroll { starts[r_4] = a  a = a * product_3 + ends[r_4] }
             temp scans: f64[4, 4] register
             for l_6 in [0, 4) vector { scans[0, l_6] = starts[l_6] * factor + turned[0, l_6] }
             for r_5 in [1, 4) unroll {
               for l_7 in [0, 4) vector {
                 scans[r_5, l_7] = scans[r_5 - 1, l_7] * factor + turned[r_5, l_7]
               }
             }
             for r_6 in [0, 4) unroll {
               for l_8 in [0, 4) vector {
                 temp now_2: f64
                 now_2 = scans[l_8, r_6]
                 y[16*t_2 + 4*r_6 + l_8] = now_2
               }
             }
           }
         }
         for t in [16*(C/16), C) { temp now: f64  now = a * w[0] + x[t]  y[t] = now  a = now }
      )"},
  };
  ExpectPass(InAnyOrder, kFrame, kCases);
}

// Expects whether the pass changes the items, with steps in any order and with exact rounding.
void ExpectTaken(const char* items, bool in_any_order, bool exactly) {
  Program program = ParseVerified(kFrame, items), same = program;
  EXPECT_EQ(InAnyOrder(program).value(), in_any_order) << items;
  EXPECT_EQ(Exactly(same).value(), exactly) << items;
}

TEST(ScanInLanes, WhatRounds) {
  // Sums and products of floats depend on the order; maxima, minima and integers do not.
  ExpectTaken("a = f64(0.0)  for t in [0, C) { temp n: f64  n = a + x[t]  y[t] = n  a = n }", true,
              false);
  ExpectTaken("a = f64(0.0)  for t in [0, C) { temp n: f64  n = a - x[t]  y[t] = n  a = n }", true,
              false);
  ExpectTaken("a = f64(0.0)  for t in [0, C) { temp n: f64  n = a * x[t]  y[t] = n  a = n }", true,
              false);
  ExpectTaken("a = f64(0.0)  for t in [0, C) { temp n: f64  n = w[t] * a + x[t]  y[t] = n  a = n }",
              true, false);
  ExpectTaken("j = 0  for t in [0, C) { temp n: i64  n = k[t] * j + k[t]  i[t] = n  j = n }", true,
              true);
  ExpectTaken("a = f64(0.0)  for t in [0, C) { temp n: f64  n = max(a, x[t])  y[t] = n  a = n }",
              true, true);
  ExpectTaken("a = f64(0.0)  for t in [0, C) { temp n: f64  n = min(x[t], a)  y[t] = n  a = n }",
              true, true);
  ExpectTaken("j = 0  for t in [0, C) { temp n: i64  n = j + k[t]  i[t] = n  j = n }", true, true);
}

TEST(ScanInLanes, WhatIsLeftAlone) {
  for (
      const char* items : {
          // No operation leads back, an unsupported one, some that do not combine, or one on values
          // that depend on the scalar.
          "a = f64(0.0)  for t in [0, C) { y[t] = a  a = x[t] }",
          "a = f64(0.0)  for t in [0, C) { y[t] = a  a = x[t] - a }",
          "a = f64(0.0)  for t in [0, C) { y[t] = a  a = x[t] / a }",
          "a = f64(0.0)  for t in [0, C) { y[t] = a  a = max(w[t] * a, x[t]) }",
          "a = f64(0.0)  for t in [0, C) { y[t] = a  a = w[t] - x[t] * a }",
          "a = f64(0.0)  for t in [0, C) { y[t] = a  a = a + a }",
          "a = f64(0.0)  for t in [0, C) { temp n: f64  n = a * x[t]  y[t] = n  a = a + n }",
          // Computed in another type than the scalar's.
          "a = f64(0.0)  for t in [0, C) { y[t] = a  a = f64(f32(a) + f32(x[t])) }",
          // Two scalars are carried from step to step, or one is read after its update.
          "a = f64(0.0)  b = f64(0.0)  for t in [0, C) { y[t] = a  z[t] = b  a = a + x[t]  b = b + w[t] }",
          "a = f64(0.0)  for t in [0, C) { a = a + x[t]  y[t] = a }",
          // A stored element is read, accumulated into, or stored by several steps.
          "a = f64(0.0)  for t in [1, C) { y[t] = a + z[t - 1 | f64(0.0)]  z[t] = a  a = a + x[t] }",
          "a = f64(0.0)  for t in [0, C) { y[t] = a  z[t] += a  a = a + x[t] }",
          "a = f64(0.0)  for t in [0, C) { y[0] = a  a = a + x[t] }",
          // The loop declares a tensor that is no scalar.
          "a = f64(0.0)  for t in [0, C) { temp n: f64[1]  n[0] = a + x[t]  y[t] = n[0]  a = n[0] }",
          // Lanes are not those of its type, or not along memory, or the loop is short.
          "h = 0.0  for t in [0, C) { o[t] = h  y[t] = x[t]  h = h + f[t] }",
          "a = f64(0.0)  for n in [0, N) { for t in [0, C) { v[t, n] = a  a = a + m[t, n] } }",
          "a = f64(0.0)  for t in [0, 15) { drop y[t] = a  a = a + s[t] }",
          "a = f64(0.0)  for t in [0, C) step 2 { y[t] = a  a = a + x[t] }",
      }) {
    ExpectTaken(items, false, false);
  }
}

}  // namespace
}  // namespace nestor::loop
