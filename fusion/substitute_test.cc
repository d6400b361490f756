// Definitions before and after they are put in the place of their reads, by the reason: it is
// legal, it pays, it is bounded.
#include "fusion/substitute.h"

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "fusion/pass_testing.h"
#include "gtest/gtest.h"
#include "loop_ir/text.h"
#include "loop_ir/verify.h"

namespace nestor::loop {
namespace {

constexpr Frame kFrame = {
    "program p(x: f32[N], x2: f32[N, M], u: f32[M], s: f32, ids: i64[N]; $f: f32 = 1.0, $k: i64 = 1) -> "
    "(y: f32[N], z: f32[N], w: f32[N, M], g: bf16[N], q: f32) {\n",
    "\n  drop y[0] = 0.0  drop z[0] = 0.0  drop w[0, 0] = 0.0"
    "\n  drop g[0] = bf16(0.0)  q = 0.0\n}\n"};

TEST(Substitute, WhatComputesNothing) {
  constexpr PassCase kCases[] = {
      // A read, composed with the place of its reader; the statement is removed with the last read.
      {"temp t: f32[N]  for i in [0, N) { t[i] = x[i] }  for j in [0, N) { y[j] = exp(t[j]) }",
       "for j in [0, N) { y[j] = exp(x[j]) }"},
      {"temp t: f32[N]  for i in [0, N) { t[i] = x[N - 1 - i] }  for j in [0, N) { y[j] = t[N - 1 - j] + t[j] }",
       "for j in [0, N) { y[j] = x[j] + x[N - 1 - j] }"},
      {"temp t: f32[M, N]  for i in [0, N) { for j in [0, M) { t[j, i] = x2[i, j] } }  for a in [0, N) { for b in [0, M) { w[a, b] = t[b, a] } }",
       "for a in [0, N) { for b in [0, M) { w[a, b] = x2[a, b] } }"},
      {"temp t: f32[N]  for i in [0, N) { t[i] = x[ids[i]] }  for j in [0, N) { y[j] = t[N - 1 - j] }",
       "for j in [0, N) { y[j] = x[ids[N - 1 - j]] }"},
      // Reads on both sides of accumulations; of a scalar.
      {"temp t: f32[N]  for i in [0, N) { t[i] = x[i] }  for j in [0, N) { acc a: f32 = sum  for k in [0, N) { a += t[k] * t[j] }  y[j] = a }",
       "for j in [0, N) { acc a: f32 = sum  for k in [0, N) { a += x[k] * x[j] }  y[j] = a }"},
      {"temp t: f32  t = s  for j in [0, N) { y[j] = t }", "for j in [0, N) { y[j] = s }"},
      {"acc a: f32 = argmax  temp t: f32[N]  temp d: i64[N]  for i in [0, N) { t[i] = x[i] }  for k in [0, N) { d[k] = ids[k] }  "
       "for j in [0, N) { a argmax= (t[j], d[j]) }",
       "acc a: f32 = argmax  for j in [0, N) { a argmax= (x[j], ids[j]) }"},
      // A constant, a $param, an index.
      {"temp t: f32[N]  for i in [0, N) { t[i] = 2.0 }  for j in [0, N) { y[j] = t[j] * x[j] }",
       "for j in [0, N) { y[j] = 2.0 * x[j] }"},
      {"temp t: f32[N]  for i in [0, N) { t[i] = $f }  for j in [0, N) { y[j] = t[j] * x[j] }",
       "for j in [0, N) { y[j] = $f * x[j] }"},
      {"temp t: i64[N]  for i in [0, N) { t[i] = index(2*i + $k) }  for j in [0, N) { y[j] = f32(t[N - j - 1]) }",
       "for j in [0, N) { y[j] = f32(index(2*N - 2*j + $k - 2)) }"},
      // Chains, whole.
      {"temp t: f32[N]  temp v: f32[N]  for i in [0, N) { t[i] = x[N - 1 - i] }  for k in [0, N) { v[k] = t[N - 1 - k] }  "
       "for j in [0, N) { y[j] = v[j] }",
       "for j in [0, N) { y[j] = x[j] }"},
      // A stored value keeps its rounding.
      {"temp t: bf16[N]  for i in [0, N) { t[i] = bf16(x[i]) }  for j in [0, N) { y[j] = f32(t[j]) + 1.0 }",
       "for j in [0, N) { y[j] = f32(bf16(x[j])) + 1.0 }"},
      // In a loop's body, and at the top.
      {"for j in [0, N) { temp t: f32  t = x[j]  y[j] = t * t }",
       "for j in [0, N) { y[j] = x[j] * x[j] }"},
      {"temp t: f32  t = s  q = t + 1.0", "q = s + 1.0"},
      {"for j in [0, N) { temp t: f32[M]  for k in [0, M) { t[k] = x2[j, k] }  for l in [0, M) { w[j, l] = t[M - 1 - l] } }",
       "for j in [0, N) { for l in [0, M) { w[j, l] = x2[j, M - 1 - l] } }"},
  };
  ExpectPass(SubstituteTemporaries, kFrame, kCases);
}

// Ops on narrower elements, also where they are read again and again: a few ops, or a cast of
// a number.
TEST(Substitute, WhatWidens) {
  constexpr Frame kNarrow = {
      "program p(h: bf16[N], n: i8[N], x: f32[N]; $k: i64 = 1) -> (y: f32[N], z: i32[N]) {\n",
      "\n  drop y[0] = 0.0  drop z[0] = i32(0)\n}\n"};
  constexpr PassCase kCases[] = {
      {"temp t: f32[N]  for i in [0, N) { t[i] = f32(h[i]) }  for j in [0, N) { acc a: f32 = sum  for k in [0, N) { a += t[k] * x[j] }  y[j] = a }",
       "for j in [0, N) { acc a: f32 = sum  for k in [0, N) { a += f32(h[k]) * x[j] }  y[j] = a }"},
      {"temp s: i32  temp t: i32[N]  s = i32(index($k))  for i in [0, N) { t[i] = i32(n[i]) - s }"
       "  for j in [0, N) { acc a: i32 = sum  for k in [0, N) { a += t[k] * t[j] }  z[j] = a }",
       "for j in [0, N) { acc a: i32 = sum  for k in [0, N) { a += (i32(n[k]) - i32(index($k))) * (i32(n[j]) - i32(index($k))) }  z[j] = a }"},
      // Not if the elements are as wide, or the ops take long.
      {"temp t: f32[N]  for i in [0, N) { t[i] = x[i] + 1.0 }  for j in [0, N) { acc a: f32 = sum  for k in [0, N) { a += t[k] * x[j] }  y[j] = a }",
       ""},
      {"temp t: f32[N]  for i in [0, N) { t[i] = exp(f32(h[i])) }  for j in [0, N) { acc a: f32 = sum  for k in [0, N) { a += t[k] * x[j] }  y[j] = a }",
       ""},
  };
  ExpectPass(SubstituteTemporaries, kNarrow, kCases);
}

// One op on elements that the reader reads anyway, also in a reduction.
TEST(Substitute, OpsOnElementsThatAreRead) {
  constexpr PassCase kCases[] = {
      {"temp t: f32[N]  for i in [0, N) { t[i] = x[i] * x[i] }  for j in [0, N) { acc a: f32 = sum  for k in [0, N) { a += x[N - 1 - k] * t[N - 1 - k] }  y[j] = a }",
       "for j in [0, N) { acc a: f32 = sum  for k in [0, N) { a += x[N - 1 - k] * (x[N - 1 - k] * x[N - 1 - k]) }  y[j] = a }"},
      // Not where it reads others, or the op takes long.
      {"temp t: f32[N]  for i in [0, N) { t[i] = x[i] * x[i] }  for j in [0, N) { acc a: f32 = sum  for k in [0, N) { a += x[j] * t[N - 1 - k] }  y[j] = a }",
       ""},
      {"temp t: f32[N]  for i in [0, N) { t[i] = x[i] * s }  for j in [0, N) { acc a: f32 = sum  for k in [0, N) { a += x[N - 1 - k] * t[N - 1 - k] }  y[j] = a }",
       ""},
      {"temp t: f32[N]  for i in [0, N) { t[i] = x[i] / x[i] }  for j in [0, N) { acc a: f32 = sum  for k in [0, N) { a += x[N - 1 - k] * t[N - 1 - k] }  y[j] = a }",
       ""},
  };
  ExpectPass(SubstituteTemporaries, kFrame, kCases);
}

TEST(Substitute, MaskedReads) {
  constexpr PassCase kCases[] = {
      // One masked read, its conditions first: where the place is in range of the temporary, unless
      // the same axis of the tensor that is read tells.
      {"temp t: f32[N]  for i in [0, N) { t[i] = x[i] }  for j in [0, N) { y[j] = t[j - 1 | 0.5] }",
       "for j in [0, N) { y[j] = x[j - 1 | 0.5] }"},
      {"temp t: f32[N]  for i in [0, N) { t[i] = x[i] }  for j in [0, N) { y[j] = t[j - 1 | 0.5 if j < 3, ids[j] < 2] }",
       "for j in [0, N) { y[j] = x[j - 1 | 0.5 if j < 3, ids[j] < 2] }"},
      {"temp t: f32[N, M]  for i in [0, N) { for k in [0, M) { t[i, k] = u[k] } }  for a in [0, N) { for b in [0, M) { w[a, b] = t[a - 1, b + 1 | 0.0] } }",
       "for a in [0, N) { for b in [0, M) { w[a, b] = u[b + 1 | 0.0 if 0 <= a - 1, a - 1 < N] } }"},
      {"temp t: f32[N]  for i in [0, N) { t[i] = s }  for j in [0, N) { y[j] = t[j + 1 | 0.0] }",
       "for j in [0, N) { y[j] = s[ | 0.0 if 0 <= j + 1, j + 1 < N] }"},
      // A gathered place that has no value is in no range.
      {"temp t: f32[N]  for i in [0, N) { t[i] = s }  for j in [0, N) { y[j] = t[ids[j] | 0.0] }",
       "for j in [0, N) { y[j] = s[ | 0.0 if 0 <= ids[j], ids[j] < N] }"},
      // The same fill: one read with both masks.
      {"temp t: f32[N]  for i in [0, N) { t[i] = x[i - 1 | 0.5] }  for j in [0, N) { y[j] = t[j + 2 | 0.5] }",
       "for j in [0, N) { y[j] = x[j + 1 | 0.5 if 0 <= j + 2, j + 2 < N] }"},
      {"temp t: f32[N]  for i in [0, N) { t[i] = x[i - 1 | $f] }  for j in [0, N) { y[j] = t[j + 2 | $f] }",
       "for j in [0, N) { y[j] = x[j + 1 | $f if 0 <= j + 2, j + 2 < N] }"},
      // Other fills, also those that differ by the sign of zero; no reads at all.
      {"temp t: f32[N]  for i in [0, N) { t[i] = x[i - 1 | 0.0] }  for j in [0, N) { y[j] = t[j + 2 | -0.0] }",
       "for j in [0, N) { y[j] = where(index(0) <= index(j + 2) && index(j + 2) < index(N), "
       "x[j + 1 | 0.0 if 0 <= j + 2, j + 2 < N], -0.0) }"},
      {"temp t: f32[N]  for i in [0, N) { t[i] = 2.0 }  for j in [0, N) { y[j] = t[j - 1 | 0.0] }",
       "for j in [0, N) { y[j] = where(index(0) <= index(j - 1) && index(j - 1) < index(N), 2.0, 0.0) }"},
      // `where` evaluates both branches, so the reads take the conditions.
      {"temp t: f32[N]  for i in [0, N) { t[i] = exp(x[i] + s) }  for j in [0, N) { y[j] = t[j - 1 | 0.5 if j < 3] }",
       "for j in [0, N) { y[j] = where(index(j) < index(3) && index(0) <= index(j - 1) && index(j - 1) < index(N), "
       "exp(x[j - 1 | 0.0 if j < 3, 0 <= j - 1, j - 1 < N] + s), 0.5) }"},
      // A gathered or undefined place has no condition that could be a value.
      {"temp t: f32[N]  for i in [0, N) { t[i] = exp(x[i]) }  for j in [0, N) { y[j] = t[ids[j] | 0.0] }",
       ""},
      {"temp t: f32[N]  for i in [0, N) { t[i] = exp(x[i]) }  for j in [0, N) { y[j] = t[7/$k + j | 0.0] }",
       ""},
      // A store that is dropped evaluates no value; nor does its substitute.
      {"temp t: f32[N]  for i in [0, N) { t[i] = x[i] }  for j in [0, N + 1) { drop y[j] if j < 3 = t[j] }",
       "for j in [0, N + 1) { drop y[j] if j < 3 = x[j] }"},
  };
  ExpectPass(SubstituteTemporaries, kFrame, kCases);
}

TEST(Substitute, InIndexExpressions) {
  constexpr PassCase kCases[] = {
      // A read of the same shape, or an index; nothing else can be held by a gather.
      {"temp d: i64[N]  for i in [0, N) { d[i] = ids[i] }  for j in [0, N) { drop y[d[j]] if d[j] < 3 = x[d[j - 1] | 0.0] }",
       "for j in [0, N) { drop y[ids[j]] if ids[j] < 3 = x[ids[j - 1] | 0.0] }"},
      // A number that was checked when computed from the loaded one becomes an assumption.
      {"temp d: i64  d = index(-N)  for j in [0, N) { y[j] = x[d[]*1048576 + j | 0.0] }",
       "assume : -1048576*N  assume d_2 < N: d_2 - 1048576*N  for j in [0, N) { y[j] = x[j - 1048576*N | 0.0] }"},
      {"temp d: i64  d = index(N - 1)  for j in [0, N) { y[j] = x[d[] - j] }",
       "for j in [0, N) { y[j] = x[N - 1 - j] }"},
      {"temp d: i64[N]  for i in [0, N) { d[i] = index(2*i) }  for j in [0, N) { y[j] = x[d[j] | 0.0] }",
       ""},
      {"temp d: i64[N]  for i in [0, N) { d[i] = ids[N - 1 - i] }  for j in [0, N) { y[j] = x[d[j] | 0.0] }",
       ""},
      {"temp d: i64[N]  for i in [0, N) { d[i] = ids[i | 0] }  for j in [0, N) { y[j] = x[d[j] | 0.0] }",
       ""},
      {"temp d: i64[M]  for i in [0, M) { d[i] = ids[i] }  for j in [0, N) { y[j] = x[d[j] | 0.0] }",
       ""},
      {"temp d: i64[N]  for i in [0, N) { d[i] = ids[i] + 1 }  for j in [0, N) { y[j] = x[d[j] | 0.0] }",
       ""},
  };
  ExpectPass(SubstituteTemporaries, kFrame, kCases);
}

TEST(Substitute, WhereItIsLegal) {
  constexpr PassCase kCases[] = {
      // A tensor that the definition reads has changed meanwhile, or changes in the reader.
      {"temp t: f32[N]  for i in [0, N) { t[i] = y[i] }  for k in [0, N) { y[k] = 2.0 }  for j in [0, N) { z[j] = t[j] }",
       ""},
      {"temp t: f32[N]  for i in [0, N) { t[i] = y[i] }  drop y[0] += 1.0  for j in [0, N) { z[j] = t[j] }",
       ""},
      {"temp t: f32[N]  for i in [0, N) { t[i] = y[i] }  for j in [0, N) { y[j] = t[N - 1 - j] }",
       ""},
      {"temp t: f32[N]  for i in [0, N) { t[i] = y[i] }  for j in [0, N) { z[j] = t[j] }  for k in [0, N) { y[k] = 2.0 }",
       "for j in [0, N) { z[j] = y[j] }  for k in [0, N) { y[k] = 2.0 }"},
      {"temp t: f32[N]  for i in [0, N) { t[i] = y[i]  y[i] = 2.0 }  for j in [0, N) { z[j] = t[j] }",
       ""},
      {"temp t: f32[N]  temp d: i64[N]  for k in [0, N) { d[k] = ids[k] + 1 }  for i in [0, N) { t[i] = x[d[i] | 0.0] }  "
       "for l in [0, N) { d[l] = 0 }  for j in [0, N) { z[j] = t[j] }",
       ""},
      // Only reads after the definition are replaced; earlier ones stay.
      {"temp t: f32[N]  for k in [0, N) { z[k] = t[k | 0.0 if k < 0] }  for i in [0, N) { t[i] = x[i] }  for j in [0, N) { y[j] = t[j] }",
       "temp t: f32[N]  for k in [0, N) { z[k] = t[k | 0.0 if k < 0] }  for i in [0, N) { t[i] = x[i] }  for j in [0, N) { y[j] = x[j] }"},
      {"temp t: f32[N]  for i in [0, N) { t[i] = x[i]  z[i] = t[i] }  for j in [0, N) { y[j] = t[j] }",
       "temp t: f32[N]  for i in [0, N) { t[i] = x[i]  z[i] = t[i] }  for j in [0, N) { y[j] = x[j] }"},
      // A value that lives in the definition's loop only.
      {"temp t: f32[N]  for i in [0, N) { temp v: f32  v = x[i]  v = v + 1.0  t[i] = v }  for j in [0, N) { y[j] = t[j] }",
       ""},
      // Written twice, in part, masked, accumulated, or by other elements.
      {"temp t: f32[N]  for i in [0, N) { t[i] = x[i] }  drop t[0] = 1.0  for j in [0, N) { y[j] = t[j] }",
       ""},
      {"temp t: f32[N]  for i in [0, N) { t[i] = 1.0  t[i] = x[i] }  for j in [0, N) { y[j] = t[j] }",
       ""},
      {"temp t: f32[N]  for i in [1, N) { t[i] = x[i] }  for j in [1, N) { y[j] = t[j] }", ""},
      {"temp t: f32[N]  for i in [0, N - 1) { t[i] = x[i] }  for j in [0, N - 1) { y[j] = t[j] }",
       ""},
      {"temp t: f32[N]  for i in [0, N) step 2 { t[i] = x[i] }  for j in [0, N) step 2 { y[j] = t[j] }",
       ""},
      {"temp t: f32[N]  for i in [0, N) { drop t[i] = x[i] }  for j in [0, N) { y[j] = t[j] }", ""},
      {"acc t: f32[N] = sum  for i in [0, N) { t[i] += x[i] }  for j in [0, N) { y[j] = t[j] }",
       ""},
      {"temp t: f32[N, N]  for i in [0, N) { t[i, i] = x[i] }  for j in [0, N) { y[j] = t[j, j] }",
       ""},
      {"temp t: f32[N]  for k in [0, 3) { for i in [0, N) { t[i] = x[i] } }  for j in [0, N) { y[j] = t[j] }",
       ""},
      {"temp t: f32  for i in [0, N) { t = x[i] }  for j in [0, N) { y[j] = t }", ""},
      {"temp t: f32[N]  for i in [0, N) { drop t[ids[i]] = x[i] }  for j in [0, N) { y[j] = t[j] }",
       ""},
      // Results are kept, and read.
      {"for i in [0, N) { y[i] = x[i] }  for j in [0, N) { z[j] = y[j] }", ""},
  };
  ExpectPass(SubstituteTemporaries, kFrame, kCases);
}

TEST(Substitute, WhereItPays) {
  constexpr PassCase kCases[] = {
      // The only read, of each element once.
      {"temp t: f32[N]  for i in [0, N) { t[i] = exp(x[i]) * x[i] }  for j in [0, N) { y[j] = t[j] + 1.0 }",
       "for j in [0, N) { y[j] = exp(x[j]) * x[j] + 1.0 }"},
      {"temp t: f32[N]  for i in [0, N) { t[i] = exp(x[i]) }  for j in [0, N) { y[j] = t[j] * t[j] }",
       ""},
      {"temp t: f32[N]  for i in [0, N) { t[i] = exp(x[i]) }  for j in [0, N) { y[j] = t[j] }  for k in [0, N) { z[k] = t[k] }",
       ""},
      // A few ops on one tensor of that size, at every such read; not on two tensors.
      {"temp t: f32[N]  for i in [0, N) { t[i] = x[i] * $f + s }  for j in [0, N) { y[j] = t[j] * t[j] }  for k in [0, N) { z[k] = t[k] }",
       "for j in [0, N) { y[j] = (x[j] * $f + s) * (x[j] * $f + s) }  for k in [0, N) { z[k] = x[k] * $f + s }"},
      {"temp t: f32[N]  for i in [0, N) { t[i] = x[i] * f32(ids[i]) }  for j in [0, N) { y[j] = t[j] }  for k in [0, N) { z[k] = t[k] }",
       ""},
      // Little from tensors of fewer dimensions: always.
      {"temp t: f32[N, M]  for i in [0, N) { for k in [0, M) { t[i, k] = x[i] * u[k] } }  "
       "for j in [0, N) { acc a: f32 = sum  for l in [0, M) { a += t[j, l] * t[j, l] }  y[j] = a }",
       "for j in [0, N) { acc a: f32 = sum  for l in [0, M) { a += x[j] * u[l] * (x[j] * u[l]) }  y[j] = a }"},
      // Again and again in a reduction: stored; assigned along other loops: computed again.
      {"temp t: f32[N]  for i in [0, N) { t[i] = exp(x[i]) }  for j in [0, N) { acc a: f32 = sum  for k in [0, N) { a += t[k] }  y[j] = a }",
       ""},
      {"temp t: f32[N]  for i in [0, N) { t[i] = exp(x[i]) }  for j in [0, N) { y[j] = t[N - 1 - j] }",
       "for j in [0, N) { y[j] = exp(x[N - 1 - j]) }"},
      {"temp t: f32[M]  for i in [0, M) { t[i] = exp(u[i]) }  for a in [0, N) { for b in [0, M) { w[a, b] = t[b] } }",
       "for a in [0, N) { for b in [0, M) { w[a, b] = exp(u[b]) } }"},
      // A loop's prefix can be merged, so the value is left to that.
      {"temp t: f32[N]  for i in [0, N) { t[i] = exp(x[i]) }  for a in [0, N) { for b in [0, M) { w[a, b] = t[a] } }",
       ""},
  };
  ExpectPass(SubstituteTemporaries, kFrame, kCases);
}

// Each of these recomputations has twice the reads of the one before.
TEST(Substitute, IsBounded) {
  std::string items = "for i in [0, N) { t0[i] = x[i] }  ";
  std::string temps = "temp t0: f32[N]  ";
  for (int k = 1; k <= 12; ++k) {
    absl::StrAppend(&temps, "temp t", k, ": f32[N]  ");
    absl::StrAppend(&items, "for i in [0, N) { t", k, "[i] = t", k - 1, "[i - 1 | 0.0] * t", k - 1,
                    "[i + 1 | 0.0] }  ");
  }
  Program program =
      ParseVerified(kFrame, absl::StrCat(temps, items, "for j in [0, N) { y[j] = t12[j] }"));
  EXPECT_TRUE(*SubstituteTemporaries(program));
  EXPECT_TRUE(Verify(program).ok()) << Verify(program);
  EXPECT_LT(ToText(program).size(), 1000000u);
  EXPECT_FALSE(*SubstituteTemporaries(program));
}

// An index value in a branch of `where` must have a value where the mask is false;
// and so must a scalar that only the definition's loop needs.
TEST(Substitute, IndexValuesBehindAMask) {
  constexpr PassCase kCases[] = {
      {"temp t: f32[N]  for i in [0, N) { t[i] = f32(index(N/(i + 1))) }  for j in [0, N) { y[j] = t[j - 1 | 0.0] }",
       ""},
      {"temp t: f32[N]  for i in [0, N) { t[i] = f32(index(ids[i])) }  for j in [0, N) { y[j] = t[j - 1 | 0.0] }",
       ""},
      {"temp v: f32  temp t: f32[N]  for k in [0, N) { v = x[k] }  for i in [0, N) { t[i] = v * 2.0 }  for j in [0, M) { w[0, j] = t[j | 0.0] }",
       // Where N is 0, v was never written.
       "temp v: f32  for k in [0, N) { v = x[k] }  for j in [0, M) { w[0, j] = "
       "where(index(0) <= index(j) && index(j) < index(N), v[ | 0.0 if 0 <= j, j < N] * 2.0, 0.0) }"},
  };
  ExpectPass(SubstituteTemporaries, kFrame, kCases);
}

}  // namespace
}  // namespace nestor::loop
