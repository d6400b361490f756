// Programs before and after the pass, by what is simplified: masks, places, loops, values, checks.
#include "fusion/simplify.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "fusion/pass_testing.h"
#include "gtest/gtest.h"

namespace nestor::loop {
namespace {

constexpr char kHead[] =
    "program p("
    "x: f32[N, C], v: f32[N], z: f32[K], ids: i64[N], w: f32[R]; $s: i64 = 1 in [1, inf], $p: i64 = 0 in [0, inf], "
    "$k: i64, $b: bool, $f: f32"
    ") -> (y: f32[N], r: f32) {\n";

void ExpectSimplified(absl::Span<const PassCase> cases, absl::string_view checks = "") {
  ExpectPass(Simplify, {absl::StrCat(kHead, checks), "\n  r = 1.0\n}\n"}, cases);
}

TEST(Simplify, Masks) {
  ExpectSimplified({
      {"for i in [0, N) { y[i] = x[i, 0 | 0.0] }", ""},
      {"for i in [0, N) { y[i] = v[i | 0.0] }", "for i in [0, N) { y[i] = v[i] }"},
      {"for i in [0, N) { y[i] = v[i | 0.0 if i < N, i >= 0] }", "for i in [0, N) { y[i] = v[i] }"},
      {"for i in [0, N) { y[i] = v[i | 0.0 if i < 3] }", ""},
      {"for i in [0, N) { y[i] = v[i | 0.0 if i < 3, i < 4] }",
       "for i in [0, N) { y[i] = v[i | 0.0 if i < 3] }"},
      {"for i in [0, N) { y[i] = v[i | 0.0 if i < 4, i < 3] }",
       "for i in [0, N) { y[i] = v[i | 0.0 if i < 3] }"},
      {"for i in [0, N) { y[i] = v[i | 0.0 if i < 3, i < 3] }",
       "for i in [0, N) { y[i] = v[i | 0.0 if i < 3] }"},
      {"for i in [0, N) { y[i] = v[i | 0.0 if i < 3 && i > 1 && i < N] }",
       "for i in [0, N) { y[i] = v[i | 0.0 if i < 3, i > 1] }"},
      // Conditions that follow from being in range.
      {"for i in [0, N) { y[i] = v[i - 1 | 0.0 if i >= 1] }",
       "for i in [0, N) { y[i] = v[i - 1 | 0.0] }"},
      {"for i in [0, N) { y[i] = v[i - $p | 0.0 if i >= $p, i - $p < N] }",
       "for i in [0, N) { y[i] = v[i - $p | 0.0] }"},
      {"for i in [0, N) { y[i] = v[i + 1 | 0.0 if i >= 1] }", ""},
      {"for i in [1, N) { y[i] = v[i - 1 | 0.0] }", "for i in [1, N) { y[i] = v[i - 1] }"},
      // Never, and so the fill.
      {"for i in [0, N) { y[i] = v[i | 2.0 if i < 0] }", "for i in [0, N) { y[i] = 2.0 }"},
      {"for i in [0, N) { y[i] = v[i | $f if i < 3, i > 5] }", "for i in [0, N) { y[i] = $f }"},
      {"for i in [0, N) { y[i] = v[i + N | 2.0] }", "for i in [0, N) { y[i] = 2.0 }"},
      {"for i in [0, N) { y[i] = v[i - N | 2.0] }", "for i in [0, N) { y[i] = 2.0 }"},
      {"for i in [0, N) { y[i] = v[i | 2.0 if i/$k == 1 && i < 0] }",
       "for i in [0, N) { y[i] = 2.0 }"},
      // Stores: dropped never, or always; and what the value may rely on.
      {"for i in [0, N) { drop y[i] = 1.0 }", "for i in [0, N) { y[i] = 1.0 }"},
      {"for i in [0, N) { drop y[i] if i < N = 1.0 }", "for i in [0, N) { y[i] = 1.0 }"},
      {"for i in [0, N) { y[i] = 1.0  drop y[i] if i < 0 = 2.0 }",
       "for i in [0, N) { y[i] = 1.0 }"},
      {"for i in [0, N) { y[i] = 1.0  drop y[i + N] = 2.0 }", "for i in [0, N) { y[i] = 1.0 }"},
      {"for i in [0, N) { drop y[i] if i < 0 = 2.0 }", ""},  // or nothing would write y
      {"for i in [0, N) { drop y[i] if i < K = z[i | 0.0] }",
       "for i in [0, N) { drop y[i] if i < K = z[i] }"},
      {"for i in [0, K) { drop y[i] = v[i | 0.0] }", "for i in [0, K) { drop y[i] = v[i] }"},
      {"for i in [0, N) { drop y[i] if i < 3 = z[i%8 | 0.0 if i < 5] }",
       "for i in [0, N) { drop y[i] if i < 3 = z[i | 0.0] }"},
      // Gathers come after the conditions that may guard them.
      {"for i in [0, N) { y[i] = v[ids[i] | 0.0] }", ""},
      {"for i in [0, N) { y[i] = x[ids[i], i | 0.0 if i < C] }", ""},
      {"for i in [0, N) { y[i] = v[i | 0.0 if ids[i] < 3, ids[i] < 3, i < N] }",
       "for i in [0, N) { y[i] = v[i | 0.0 if ids[i] < 3] }"},
      {"for i in [0, N) { y[i] = v[i + 1 | 0.0 if i + 1 < N, ids[i + 1] < 3] }", ""},
      // A division that may have no value decides.
      {"for i in [0, N) { y[i] = v[i | 0.0 if i/$k == i/$k] }", ""},
      {"for i in [0, N) { y[i] = v[i | 0.0 if i/$s <= i] }", "for i in [0, N) { y[i] = v[i] }"},
      {"for i in [0, N) { y[i] = v[i/$k*0 | 0.0] }", "for i in [0, N) { y[i] = v[0] }"},
      {"for i in [0, N) { y[i] = z[i%$k | 0.0 if i%$k < $k] }", ""},
  });
}

TEST(Simplify, Places) {
  ExpectSimplified({
      {"for i in [0, N) { for c in [0, C) { y[(i*C + c)/C] = x[(i*C + c)/C, (i*C + c)%C | 0.0] } }",
       "for i in [0, N) { for c in [0, C) { y[i] = x[i, c] } }"},
      {"for i in [0, N) { y[i] = f32(index(i%N + i/N)) }",
       "for i in [0, N) { y[i] = f32(index(i)) }"},
      {"for i in [0, N) { y[i] = f32(index(i%1 + 3)) }", "for i in [0, N) { y[i] = 3.0 }"},
      // Low bits, except those of gathered or divided numbers.
      {"for i in [0, N) { y[i] = f32(index((i - 5)%256)) }",
       "for i in [0, N) { y[i] = f32(and(index(i + 251), 255)) }"},
      {"for i in [0, N) { y[i] = f32(index(i%8)) }", ""},
      {"for i in [0, N) { y[i] = f32(and(and(index(i), 15), 31)) }",
       "for i in [0, N) { y[i] = f32(and(index(i), 15)) }"},
      {"for i in [0, N) { y[i] = f32(and(and(index(i), 15), 23)) }", ""},
      {"for i in [0, N) { y[i] = f32(index((i - 5)%600)) }", ""},
      {"for i in [0, N) { y[i] = v[ids[i%N] | 0.0] }",
       "for i in [0, N) { y[i] = v[ids[i] | 0.0] }"},
      {"for h in [0, (N - R)/$s + 1) { for r0 in [0, R) { y[h] = v[h*$s + r0 | 0.0] } }",
       "for h in [0, (N - R)/$s + 1) { for r0 in [0, R) { y[h] = v[h*$s + r0] } }"},
      {"for i in [0, N) step 8 { for j in [i, min(N, i + 8)) { y[j] = v[j | 0.0] } }",
       "for i in [0, N) step 8 { for j in [i, min(N, i + 8)) { y[j] = v[j] } }"},
  });
}

TEST(Simplify, Loops) {
  ExpectSimplified({
      {"for i in [0, min(N, N + 1)) { y[i] = 1.0 }", "for i in [0, N) { y[i] = 1.0 }"},
      {"for i in [0, N) { y[i] = 1.0  for j in [i, i) { y[j] = 2.0 } }",
       "for i in [0, N) { y[i] = 1.0 }"},
      {"for i in [0, N) { y[i] = 1.0  for j in [N, i) { y[j] = 2.0 } }",
       "for i in [0, N) { y[i] = 1.0 }"},
      {"for i in [0, N) { y[i] = 1.0 }  for j in [N, 0) { y[j] = 2.0 }",
       "for i in [0, N) { y[i] = 1.0 }"},
      {"for j in [N, 0) { y[j] = v[j | 0.0] }", ""},  // the only one that writes y
      {"for i in [0, N) { y[i] = 1.0  for j in [0, i/$k) { y[j] = 2.0 } }", ""},
      {"for i in [0, N) { for j in [i, i + 1) { y[j] = v[j] } }",
       "for i in [0, N) { y[i] = v[i] }"},
      {"for i in [0, N) { for j in [0, 1) { temp t: f32[j + 1]  t[j] = v[i]  y[i + j] = t[j] } }",
       "for i in [0, N) { temp t: f32[1]  t[0] = v[i]  y[i] = t[0] }"},
      {"for i in [0, 8) step 8 { y[i] = v[i] }", "y[0] = v[0]"},
      {"for i in [0, N) { for j in [i, min(i + 2, N)) { y[j] = v[j] } }", ""},
      {"for i in [0, N) { for j in [max(i, 0), N) parallel { y[j] = v[j | 0.0] } }",
       "for i in [0, N) { for j in [i, N) parallel { y[j] = v[j] } }"},
      {"for i in [0, N) { y[i] = 1.0  for j in [0, 3) { drop y[j] if i < 0 = 2.0 } }",
       "for i in [0, N) { y[i] = 1.0 }"},
      {"for i in [0, N) { y[i] = 1.0  for j in [0, 3) {} }", ""},
  });
}

TEST(Simplify, Values) {
  const std::vector<std::pair<const char*, const char*>> values = {
      // Choice.
      {"where(true, v[i], 2.0)", "v[i]"},
      {"where(false, v[i], 2.0)", "2.0"},
      {"where($b, v[i], v[i])", "v[i]"},
      {"where($b, v[i], v[i] + 1.0)", ""},
      {"where(index(i) < index(N), v[i], 2.0)", "v[i]"},
      {"where(index(i) >= 0, v[i], 2.0)", "v[i]"},
      {"where(index(i) == index(N), v[i], 2.0)", "2.0"},
      {"where(index(i) > 3, v[i], 2.0)", ""},
      {"where(index(i/$k) <= index(i/$k), v[i], 2.0)", ""},
      {"where(index(i) < index(K), z[i | 1.0], 2.0)", ""},
      {"max(v[i], v[i])", "v[i]"},
      // Arithmetic.
      {"v[i]*1.0", "v[i]"},
      {"1.0*v[i]", "v[i]"},
      {"v[i]/1.0", "v[i]"},
      {"v[i] - 0.0", "v[i]"},
      {"v[i] - -0.0", ""},
      {"v[i] + 0.0", ""},
      {"v[i] + -0.0", "v[i]"},
      {"v[i]*0.0", ""},
      {"v[i] - v[i]", ""},
      {"mulz(0.0, v[i])", "0.0"},
      {"mulz(v[i], 0.0)", "0.0"},
      {"mulz(-0.0, v[i])", "0.0"},
      {"v[i]/v[i]", ""},
      {"-(-v[i])", "v[i]"},
      {"f32(index(i) + 0)", "f32(index(i))"},
      {"f32(index(i)*1)", "f32(index(i))"},
      // Logic.
      {"where(!(!$b), v[i], 2.0)", "where($b, v[i], 2.0)"},
      {"where($b && true, v[i], 2.0)", "where($b, v[i], 2.0)"},
      {"where($b && index(i) >= 0, v[i], 2.0)", "where($b, v[i], 2.0)"},
      {"where($b && false, v[i], 2.0)", "2.0"},
      {"where($b || index(i) >= 0, v[i], 2.0)", "v[i]"},
      {"where($b || false, v[i], 2.0)", "where($b, v[i], 2.0)"},
      {"where($b && $b, v[i], 2.0)", "where($b, v[i], 2.0)"},
      {"f32(and(ids[i], -1))", "f32(ids[i])"},
      {"f32(or(ids[i], 0))", "f32(ids[i])"},
      {"f32(and(ids[i], 0))", "0.0"},
      // Types and constants.
      {"copy(v[i])", "v[i]"},
      {"2.0*3.0 + 1.0", "7.0"},
      {"sqrt(2.0)", "1.4142135"},
      {"1.0/0.0", "inf"},
      {"0.0/0.0", "nan"},
      {"$f*2.0*3.0", ""},
  };
  std::vector<std::string> texts;
  texts.reserve(2 * values.size());
  std::vector<PassCase> cases;
  for (const auto& [before, after] : values) {
    texts.push_back(absl::StrCat("for i in [0, N) { y[i] = ", before, " }"));
    texts.push_back(*after ? absl::StrCat("for i in [0, N) { y[i] = ", after, " }") : "");
    cases.push_back({texts[texts.size() - 2].c_str(), texts.back().c_str()});
  }
  ExpectSimplified(cases);
}

// Adding an identity is removed if the sum began at it.
TEST(Simplify, SumsOfNothing) {
  ExpectSimplified({
      {"for i in [0, N) { acc a: f32 = sum  a += v[i]  a += 2.0*0.0  y[i] = a }",
       "for i in [0, N) { acc a: f32 = sum  a += v[i]  y[i] = a }"},
      {"for i in [0, N) { acc a: f32 = sum  a += v[i]  a += -0.0  y[i] = a }", ""},
      {"for i in [0, N) { acc a: f32 = prod  a *= 1.0  a *= v[i]  y[i] = a }",
       "for i in [0, N) { acc a: f32 = prod  a *= v[i]  y[i] = a }"},
      {"for i in [0, N) { y[i] = v[i]  y[i] += 0.0 }", ""},
  });
}

TEST(Simplify, Equalities) {
  ExpectSimplified(
      {
          {"for i in [0, N) { y[i] = z[i | 0.0] }", "for i in [0, N) { y[i] = z[i] }"},
          {"for i in [0, K) { y[i] = v[i] }", "for i in [0, N) { y[i] = v[i] }"},
          {"temp t: f32[K]  for i in [0, K) { t[i] = v[i] }  for i in [0, N) { y[i] = t[i] }",
           "temp t: f32[N]  for i in [0, N) { t[i] = v[i] }  for i in [0, N) { y[i] = t[i] }"},
          // Nothing longer.
          {"for i in [0, C) { y[i] = z[i] }", ""},
          {"for i in [0, N) { for c in [0, 2*R) { y[i] = x[i, c + 1 | 0.0] } }",
           "for i in [0, N) { for c in [0, 2*R) { y[i] = x[i, c + 1] } }"},
      },
      "require N == K \"\" require 2*R + 1 == C \"\"");
}

// A loop that never runs is removed, and so is a loop that reads what it would store: an output
// without elements needs no write.
TEST(Simplify, OutputsWithoutElements) {
  constexpr Frame kFrame = {"program p(x: f32[0, N]) -> (y: f32[0, N], r: f32) {\n",
                            "\n  r = 1.0\n}\n"};
  ExpectPass(
      Simplify, kFrame,
      {
          {"temp t: f32[0]  for i in [0, 0) { t[i] = 2.0 }  for i in [0, 0) { for j in [0, N) { y[i, j] = t[i] } }",
           "temp t: f32[0]"},
          {"for i in [0, 0) { for j in [0, N) { y[i, j] = x[i, j] } }", " "},
      });
}

}  // namespace
}  // namespace nestor::loop
