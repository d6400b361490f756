// Which loops run in strips, and what becomes of them. Their results are compared with the
// interpreter's in tests/jit_contractions_test.
#include "jit/schedule/strips.h"

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "fusion/pass_testing.h"
#include "gtest/gtest.h"
#include "loop_ir/text.h"
#include "loop_ir/verify.h"

namespace nestor::loop {
namespace {

absl::StatusOr<bool> InStrips(Program& program) {
  StripOptions options;
  options.rows = 8;
  return RunInStrips(program, options);
}

constexpr Frame kFrame = {
    "program p(q: f32[30, D], w: f32[S, D], v: f32[S, E]) -> (y: f32[30, S], z: f32[30, E], m: f32[30]) {\n",
    "\n  drop y[0, 0] = 0.0 drop z[0, 0] = 0.0 drop m[0] = 0.0\n}\n"};

TEST(Strips, TextInTextOut) {
  ExpectPass(
      InStrips, kFrame,
      {
          // A triangle: what is kept of it has room for the longest row.
          {"for j in [0, 30) { acc a: f32 = max for k in [0, j + 1) { acc s: f32 = sum "
           "for d in [0, D) { s += q[j, d] * q[k, d] } temp h: f32 h = s * 2.0 a max= h } m[j] = a }",
           R"(for p in [0, 4) {
             temp s_2: f32[8, 30]
             for r in [0, min(-8*p + 30, 8)) {
               for k_2 in [0, min(8*p + 8, 30)) {
                 acc s: f32 = sum for d in [0, D) { s += q[8*p + r, d] * q[k_2, d] } s_2[r, k_2] = s
               }
             }
             for r_2 in [0, min(-8*p + 30, 8)) {
               acc a: f32 = max
               for k in [0, 8*p + r_2 + 1) { temp h: f32 h = s_2[r_2, k] * 2.0 a max= h }
               m[8*p + r_2] = a
             }
           })"},
          // Fewer rows than a strip has, of a known number.
          {"for j in [0, 6) { temp t: f32[S] acc a: f32 = max "
           "for k in [0, S) { acc s: f32 = sum for d in [0, D) { s += q[j, d] * w[k, d] } t[k] = s } "
           "for k_2 in [0, S) { a max= t[k_2] } m[j] = a }",
           R"(assume : 3298534883322*S
           temp t: f32[6, S]
           for r in [0, 6) {
             for k in [0, S) { acc s: f32 = sum for d in [0, D) { s += q[r, d] * w[k, d] } t[r, k] = s }
           }
           for r_2 in [0, 6) {
             acc a: f32 = max
             for k_2 in [0, S) { a max= t[r_2, k_2] }
             m[r_2] = a
           })"},
          // A sum and its use, which needs the whole row. An accumulator of one group
          // stays a scalar.
          {"for j in [0, 30) { temp t: f32[S] acc a: f32 = max "
           "for k in [0, S) { acc s: f32 = sum for d in [0, D) { s += q[j, d] * w[k, d] } t[k] = s a max= t[k] } "
           "for k_2 in [0, S) { y[j, k_2] = t[k_2] - a } }",
           R"(assume : 4398046511096*S
           for p in [0, 4) {
             temp t: f32[8, S]
             for r in [0, min(-8*p + 30, 8)) {
               for k_3 in [0, S) { acc s: f32 = sum for d in [0, D) { s += q[8*p + r, d] * w[k_3, d] } t[r, k_3] = s }
             }
             for r_2 in [0, min(-8*p + 30, 8)) {
               acc a: f32 = max
               for k in [0, S) { a max= t[r_2, k] }
               for k_2 in [0, S) { y[8*p + r_2, k_2] = t[r_2, k_2] - a }
             }
           })"},
          // A sum over rows that one part makes.
          {"for j in [0, 30) { temp t: f32[S] "
           "for k in [0, S) { acc s: f32 = sum for d in [0, D) { s += q[j, d] * w[k, d] } t[k] = s } "
           "for k_2 in [0, S) { m[0] += t[k_2] } }",
           R"(assume : 4398046511096*S
           for p in [0, 4) {
             temp t: f32[8, S]
             for r in [0, min(-8*p + 30, 8)) {
               for k in [0, S) { acc s: f32 = sum for d in [0, D) { s += q[8*p + r, d] * w[k, d] } t[r, k] = s }
             }
             for r_2 in [0, min(-8*p + 30, 8)) { for k_2 in [0, S) { m[0] += t[r_2, k_2] } }
           })"},
          // Not where another part reads it, or its operand.
          {"for j in [0, 30) { temp t: f32[S] "
           "for k in [0, S) { acc s: f32 = sum for d in [0, D) { s += q[j, d] * w[k, d] } t[k] = s } "
           "for k_2 in [0, S) { m[0] += t[k_2] } for k_3 in [0, S) { y[j, k_3] = t[k_3] * m[0] } }",
           ""},
          {"for j in [0, 30) { for k in [0, S) { acc s: f32 = sum for d in [0, D) { s += q[j, d] * w[k, d] * m[0] } m[0] += s } }",
           ""},
          // Two products.
          {"for j in [0, 30) { temp t: f32[S] "
           "for k in [0, S) { acc s: f32 = sum for d in [0, D) { s += q[j, d] * w[k, d] } t[k] = max(s, 0.0) } "
           "for e in [0, E) { acc s_2: f32 = sum for l in [0, S) { s_2 += t[l] * v[l, e] } z[j, e] = s_2 } }",
           R"(assume : 4398046511096*S
           for p in [0, 4) {
             temp t: f32[8, S]
             for r in [0, min(-8*p + 30, 8)) {
               for k in [0, S) { acc s: f32 = sum for d in [0, D) { s += q[8*p + r, d] * w[k, d] } t[r, k] = max(s, 0.0) }
             }
             for r_2 in [0, min(-8*p + 30, 8)) {
               for e in [0, E) { acc s_2: f32 = sum for l in [0, S) { s_2 += t[r_2, l] * v[l, e] } z[8*p + r_2, e] = s_2 }
             }
           })"},
          // An accumulator of two groups has an element for each row.
          {"for j in [0, 30) { acc a: f32 = max "
           "for k in [0, S) { acc s: f32 = sum for d in [0, D) { s += q[j, d] * w[k, d] } a max= s } "
           "for k_2 in [0, S) { acc s_2: f32 = sum for d_2 in [0, D) { s_2 += q[j, d_2] * w[k_2, d_2] * 3.0 } a max= s_2 } m[j] = a }",
           R"(assume : 4398046511096*S
           for p in [0, 4) {
             acc a: f32[8] = max
             temp s_3: f32[8, S]
             temp s_2_2: f32[8, S]
             for r in [0, min(-8*p + 30, 8)) {
               for k_3 in [0, S) { acc s: f32 = sum for d in [0, D) { s += q[8*p + r, d] * w[k_3, d] } s_3[r, k_3] = s }
             }
             for r_2 in [0, min(-8*p + 30, 8)) { for k in [0, S) { a[r_2] max= s_3[r_2, k] } }
             for r_3 in [0, min(-8*p + 30, 8)) {
               for k_2_2 in [0, S) { acc s_2: f32 = sum for d_2 in [0, D) { s_2 += q[8*p + r_3, d_2] * w[k_2_2, d_2] * 3.0 } s_2_2[r_3, k_2_2] = s_2 }
             }
             for r_4 in [0, min(-8*p + 30, 8)) { for k_2 in [0, S) { a[r_4] max= s_2_2[r_4, k_2] } m[8*p + r_4] = a[r_4] }
           })"},
          // A sum that nothing stores, and an accumulator that later groups read.
          {"for j in [0, 30) { acc a: f32 = max "
           "for k in [0, S) { acc s: f32 = sum for d in [0, D) { s += q[j, d] * w[k, d] } a max= s * 2.0 } "
           "for e in [0, E) { acc s_2: f32 = sum for l in [0, S) { s_2 += (q[j, 0 | 0.0] - a) * v[l, e] } z[j, e] = s_2 } }",
           R"(assume : 4398046511096*S
           for p in [0, 4) {
             temp a: f32[8]
             temp s_3: f32[8, S]
             for r in [0, min(-8*p + 30, 8)) {
               for k_2 in [0, S) { acc s: f32 = sum for d in [0, D) { s += q[8*p + r, d] * w[k_2, d] } s_3[r, k_2] = s }
             }
             for r_2 in [0, min(-8*p + 30, 8)) {
               acc a_2: f32 = max
               for k in [0, S) { a_2 max= s_3[r_2, k] * 2.0 }
               a[r_2] = a_2
             }
             for r_3 in [0, min(-8*p + 30, 8)) {
               for e in [0, E) {
                 acc s_2: f32 = sum
                 for l in [0, S) { s_2 += (q[8*p + r_3, 0 | 0.0] - a[r_3]) * v[l, e] }
                 z[8*p + r_3, e] = s_2
               }
             }
           })"},
      });
}

// A loop over heads is put around the groups of its body, which is divided like the row's.
TEST(Strips, OpensLoops) {
  constexpr Frame kHeads = {
      "program p(q: f32[30, D], w: f32[H, S, D]) -> (y: f32[30, H, S], m: f32[30], n: f32[H]) {\n",
      "\n  drop y[0, 0, 0] = 0.0 drop m[0] = 0.0 drop n[0] = 0.0\n}\n"};
  ExpectPass(
      InStrips, kHeads,
      {
          {"for j in [0, 30) { temp t: f32[D] for d_2 in [0, D) { t[d_2] = q[j, d_2] * 2.0 } "
           "for h in [0, H) { temp u: f32[S] acc a: f32 = max "
           "for k in [0, S) { acc s: f32 = sum for d in [0, D) { s += t[d] * w[h, k, d] } u[k] = s a max= u[k] } "
           "for k_2 in [0, S) { y[j, h, k_2] = u[k_2] - a } } }",
           R"(
             assume : 4398046511096*D
             assume : 4398046511096*S
             for p in [0, 4) {
               temp t: f32[8, D]
               for r in [0, min(-8*p + 30, 8)) { for d_2 in [0, D) { t[r, d_2] = q[8*p + r, d_2] * 2.0 } }
               for h in [0, H) {
                 temp u: f32[8, S]
                 for r_2 in [0, min(-8*p + 30, 8)) {
                   for k_3 in [0, S) {
                     acc s: f32 = sum
                     for d in [0, D) { s += t[r_2, d] * w[h, k_3, d] }
                     u[r_2, k_3] = s
                   }
                 }
                 for r_3 in [0, min(-8*p + 30, 8)) {
                   acc a: f32 = max
                   for k in [0, S) { a max= u[r_3, k] }
                   for k_2 in [0, S) { y[8*p + r_3, h, k_2] = u[r_3, k_2] - a }
                 }
               }
             })"},
          // A sum over rows that each head has for itself; not one over heads as well, whose
          // order would change.
          {"for j in [0, 30) { for h in [0, H) { for k in [0, S) { acc s: f32 = sum for d in [0, D) { s += q[j, d] * w[h, k, d] } y[j, h, k] = s } n[h] += q[j, 0] } }",
           R"(
             for p in [0, 4) {
               for h in [0, H) {
                 for r in [0, min(-8*p + 30, 8)) {
                   for k in [0, S) {
                     acc s: f32 = sum
                     for d in [0, D) { s += q[8*p + r, d] * w[h, k, d] }
                     y[8*p + r, h, k] = s
                   }
                 }
                 for r_2 in [0, min(-8*p + 30, 8)) { n[h] += q[8*p + r_2, 0] }
               }
             })"},
          {"for j in [0, 30) { for h in [0, H) { for k in [0, S) { acc s: f32 = sum for d in [0, D) { s += q[j, d] * w[h, k, d] } y[j, h, k] = s } n[0] += q[j, 0] } }",
           ""},
          // Few columns; a loop whose bounds differ for each row.
          {"for j in [0, 30) { m[j] = q[j, 0] for h in [0, H) { for k in [0, 2) { acc s: f32 = sum for d in [0, D) { s += q[j, d] * w[h, k, d | 0.0] } drop y[j, h, k] = s } } }",
           ""},
          {"for j in [0, 30) { m[j] = q[j, 0] for h in [0, min(H, j)) { for k in [0, S) { acc s: f32 = sum for d in [0, D) { s += q[j, d] * w[h, k, d] } y[j, h, k] = s } } }",
           ""},
      });
}

// Each row of a strip takes the columns of all its rows, where nothing else reads what it stores
// beyond its own.
TEST(Strips, WidensTriangles) {
  const auto columns = [](absl::string_view before, absl::string_view bounds,
                          absl::string_view value) {
    return absl::StrCat("for j in [0, 30) { temp t: f32[S] acc a: f32 = max ", before, " for k in ",
                        bounds, " { acc s: f32 = sum for d in [0, D) { s += q[j, d] * ", value,
                        " } t[k] = s a max= s } m[j] = a + t[0] }");
  };
  const std::string kLower = "[0, min(S, j + 1))", kNone = "";
  const struct {
    std::string items;
    const char* bounds;  // of columns, in the strip; "": there is none
  } kCases[] = {
      {columns(kNone, kLower, "w[k, d]"), "[0, min(S, min(8*p + 8, 30)))"},
      {columns(kNone, "[0, min(S, 30 - j))", "w[k, d]"), "[0, min(S, -8*p + 30))"},
      // Places that are out of range for other rows; elements that were stored already.
      {columns(kNone, "[0, min(S, j + 1))", "w[k, d | 0.0] * w[S - j + k - 1, 0]"), ""},
      {columns("for k_0 in [0, S) { t[k_0] = 1.0 }", kLower, "w[k, d]"), ""},
  };
  for (const auto& c : kCases) {
    Program program = ParseVerified(kFrame, c.items);
    ASSERT_EQ(InStrips(program).value(), *c.bounds != 0) << ToText(program);
    EXPECT_TRUE(
        *c.bounds == 0 ||
        absl::StrContains(ToText(program), absl::StrCat(" in ", c.bounds, " {\n        acc s")))
        << c.bounds << ToText(program);
  }
}

bool RunsInStrips(absl::string_view items) {
  Program program = ParseVerified(kFrame, items);
  const std::string before = ToText(program);
  const absl::StatusOr<bool> changed = InStrips(program);
  EXPECT_TRUE(changed.ok()) << changed.status();
  EXPECT_EQ(before != ToText(program), *changed);
  EXPECT_TRUE(!*changed || InStrips(program).value() == false) << ToText(program);
  return *changed;
}

std::string Row(absl::string_view items) {
  return absl::StrCat("for j in [0, 30) { ", items, " }");
}

TEST(Strips, TakesSums) {
  const std::string kSum = "acc s: f32 = sum for d in [0, D) { s += q[j, d] * w[k, d] } ";
  for (
      const std::string& body : std::vector<std::string>{
          "acc a: f32 = min for k in [0, S) { " + kSum + "a min= s } m[j] = a",
          // Statements before the sum, or beside it.
          "acc a: f32 = min for k in [0, S) { temp h: f32 h = v[k, 0 | 0.0] " + kSum +
              "a min= s * h } m[j] = a",
          "acc a: f32 = min for k in [2, S) { " + kSum + "y[j, k] = s a min= y[j, k] } m[j] = a",
          "temp h: f32 h = q[j, 0 | 0.0] for k in [0, S) { acc s: f32 = sum for d in [0, D) { s += q[j, d] * h * w[k, d] } y[j, k] = s }",
          "temp h: f32[D] for c in [0, D) { h[c] = exp(q[j, c]) } "
          "for k in [0, S) { acc s: f32 = sum for d in [0, D) { s += h[d] * w[k, d] } y[j, k] = s }",
      }) {
    EXPECT_TRUE(RunsInStrips(Row(body))) << body;
  }
  // Rows that run in order leave the value of the last one.
  EXPECT_TRUE(RunsInStrips("temp b: f32 b = 0.0 " +
                           Row("for k in [0, S) { " + kSum + "y[j, k] = s b = s }") + ""));
}

TEST(Strips, LeavesWhatIsNone) {
  const std::string kSum = "acc s: f32 = sum for d in [0, D) { s += q[j, d] * w[k, d] } ";
  for (
      const std::string& items : std::vector<std::string>{
          // A contraction as it is; nothing that columns share; rows that depend on each other.
          Row("for k in [0, S) { " + kSum + "y[j, k] = s }"),
          Row("acc a: f32 = min for k in [0, S) { acc s: f32 = sum for d in [0, D) { s += q[j, d] } a min= s } m[j] = a"),
          "temp b: f32 b = 0.0 " +
              Row("for k in [0, S) { acc s: f32 = sum for d in [0, D) { s += q[j, d] * b * w[k, d] } "
                  "y[j, k] = s b = s }") +
              "",
          // Few rows.
          std::string("for j in [0, 3) { acc a: f32 = min for k in [0, S) { " + kSum +
                      "a min= s } m[j] = a }"),
          // The sum reads a value made from the previous one.
          Row("temp h: f32 h = 1.0 acc a: f32 = min for k in [0, S) { acc s: f32 = sum "
              "for d in [0, D) { s += q[j, d] * h * w[k, d] } h = s a min= s } m[j] = a"),
          // Temporaries whose length depends on a loop around the rows.
          "for b in [0, 30) { for j in [0, 30) { temp t: f32[b + 1] for c in [0, b + 1) { t[c] = 1.0 } "
          "for k in [0, S) { " +
              kSum + "drop y[b, k] = s } for c_2 in [0, b + 1) { drop z[j, c_2] = t[c_2] } } }",
      }) {
    EXPECT_FALSE(RunsInStrips(items)) << items;
  }
}

// The number of rows is unknown: in the version for few, they run as they were.
TEST(Strips, FewRowsRunAsTheyWere) {
  const std::string text =
      "(q: f32[L, D], w: f32[S, D]) -> (m: f32[L]) { for j in [0, L) { acc a: f32 = min for k in [0, S) { "
      "acc s: f32 = sum for d in [0, D) { s += q[j, d] * w[k, d] } a min= s } m[j] = a } }";
  const Program before = ParseVerified("program p" + text);
  StripOptions options;
  for (const bool few : {false, true}) {
    Program program = before;
    options.version = {few};
    EXPECT_TRUE(RunInStrips(program, options).value());
    EXPECT_TRUE(Verify(program).ok()) << Verify(program);
    EXPECT_FALSE(RunInStrips(program, options).value()) << ToText(program);
    ASSERT_EQ(program.version.size(), 1);
    EXPECT_EQ(ToText(program, program.version[0].flag), "min(max(-L + 4, 0), 1)");
    program.version.clear();
    EXPECT_EQ(ToText(program) == ToText(before), few) << ToText(program);
  }
}

}  // namespace
}  // namespace nestor::loop
