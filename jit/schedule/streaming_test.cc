// Programs with lanes, and which loops fetch which elements ahead.
#include "jit/schedule/streaming.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "fusion/pass_testing.h"
#include "gtest/gtest.h"
#include "jit/schedule/attributes.h"
#include "loop_ir/program.h"
#include "loop_ir/text.h"
#include "loop_ir/verify.h"

namespace nestor::loop {
namespace {

// "j: x[i + 1, j]": the access that loop j prefetches.
std::string PrefetchesIn(const char* text) {
  Program program = ParseVerified(text);
  EXPECT_TRUE(SetLanes(program, jit::Isa::kAvx2).ok());
  EXPECT_TRUE(StreamArguments(program).ok());
  EXPECT_TRUE(Verify(program).ok()) << Verify(program);
  EXPECT_FALSE(*StreamArguments(program));
  std::vector<std::string> lines;
  VisitItems(program, [&](const Item& item) {
    const auto* loop = item.As<Loop>();
    if (loop == nullptr) return;
    for (const auto& [access, cache] : loop->prefetches) {
      lines.push_back(absl::StrCat(program.vars[loop->var], ": ", ToText(program, access)));
    }
  });
  return absl::StrJoin(lines, "; ");
}

TEST(StreamArguments, RowsThatAreWalkedMoreThanOnce) {
  const struct {
    const char* program;
    const char* prefetches;
  } kCases[] = {
      // The last of three walks, also from a loop around that takes two rows at a time.
      {"program f(x: f32[N, C]) -> (y: f32[N, C], z: f32[N, C], w: f32[N, C]) { for i in [0, N) {"
       " for j in [0, C) vector { y[i, j] = x[i, j] } for k in [0, C) vector { z[i, k] = x[i, k] }"
       " for l in [0, C) vector { w[i, l] = x[i, l] * x[i, l] } } }",
       "l: x[i + 1, l]"},
      {"program f(x: f32[64, C]) -> (y: f32[64, C], z: f32[64, C]) { for i in [0, 64) step 2 {"
       " for j in [0, C) vector { y[i, j] = x[i, j] } for k in [0, C) vector { z[i, k] = x[i, k] } } }",
       "k: x[i + 2, k]"},
      // Two inputs; the tails of the second walks do not begin with the row.
      {"program f(x: f32[N, C], u: f32[N, C]) -> (y: f32[N]) { for i in [0, N) { acc a: f32 = sum"
       " acc p: f32[8] = sum register acc q: f32[8] = sum register"
       " for j in [0, C/8) { for l in [0, 8) vector { p[l] += x[i, 8*j + l] * u[i, 8*j + l] } }"
       " for k in [0, C/8) { for m in [0, 8) vector { q[m] += x[i, 8*k + m] - u[i, 8*k + m] } }"
       " for t in [0, C%8) vector { q[t] += x[i, 8*(C/8) + t] - u[i, 8*(C/8) + t] }"
       " for s in [0, 8) { a += p[s] + q[s] } y[i] = a } }",
       "m: x[i + 1, 8*k + m]; m: u[i + 1, 8*k + m]"},
      // The inside of a row, not the vectors at its ends: one walk.
      {"program f(x: f32[N, C]) -> (y: f32[N, C], z: f32[N, C]) { for i in [0, N) {"
       " for a in [0, 8) vector { y[i, a] = x[i, a | 0.0] } for j in [8, C) vector { y[i, j] = x[i, j] }"
       " for k in [0, C) vector { z[i, k] = x[i, k] } for e in [0, min(C, 8)) vector { y[i, e] = x[i, e] } } }",
       "k: x[i + 1, k]"},
      // One walk follows the other through memory: hardware sees that.
      {"program f(x: f32[N, C]) -> (y: f32[N, C]) { for i in [0, N) {"
       " for j in [0, C) vector { y[i, j] = x[i, j] } } }",
       "j: x[i, j + 1024]"},
      // A row that stays; a column; a row of a tensor that is no input.
      {"program f(x: f32[C], n: f32[N]) -> (y: f32[N, C], z: f32[N, C]) { for i in [0, N) {"
       " for j in [0, C) vector { y[i, j] = x[j] } for k in [0, C) vector { z[i, k] = x[k] } } }",
       ""},
      {"program f(x: f32[C, N]) -> (y: f32[N, C], z: f32[N, C]) { for i in [0, N) {"
       " for j in [0, C) vector { y[i, j] = x[j, i] } for k in [0, C) vector { z[i, k] = x[k, i] } } }",
       ""},
      // Which row is next must be looked up; not where an earlier walk has done so.
      {"program f(x: f32[V, C], ids: i64[N]) -> (y: f32[N, C], z: f32[N, C]) { for i in [0, N) {"
       " for j in [0, C) vector { y[i, j] = x[ids[i], j] } for k in [0, C) vector { z[i, k] = x[ids[i], k] } } }",
       "k: x[ids[min(i + 1, N - 1)], k]"},
      {"program f(x: f32[V, C], ids: i64[N]) -> (y: f32[N, C]) { for i in [0, N) {"
       " for j in [0, C) vector { y[i, j] = x[ids[i] + 1, j | 0.0] } } }",
       "j: x[ids[min(i + 1, N - 1)] + 1, j]"},
      {"program f(x: f32[V, C], ids: i64[N]) -> (y: f32[N, C]) { temp t: i64[N] for n in [0, N) { t[n] = ids[n] }"
       " for i in [0, N) { for j in [0, C) vector { y[i, j] = x[t[i], j | 0.0] } } }",
       ""},
      {"program f(x: f32[V, N], ids: i64[C], n: f32[N]) -> (y: f32[N, C]) { for i in [0, N) {"
       " for j in [0, C) vector { y[i, j] = x[ids[j], i | 0.0] } } }",
       ""},
  };
  for (const auto& [program, prefetches] : kCases)
    EXPECT_EQ(PrefetchesIn(program), prefetches) << program;
}

TEST(StreamArguments, PiecesOfRows) {
  const struct {
    const char* program;
    const char* prefetches;
  } kCases[] = {
      // Rows by the loop `r`, pieces by `p`; the clamp of the last piece goes along.
      {"program f(x: f32[N, C]) -> (y: f32[C, N]) { for p in [0, C/8) { for q in [0, N/8) {"
       " temp t: f32[8, 8] register"
       " for r in [0, 8) unroll { for l in [0, 8) vector { t[r, l] = x[8*q + r, 8*p + l] } }"
       " for s in [0, 8) unroll { for m in [0, 8) vector { y[8*p + s, 8*q + m] = t[m, s] } } } } }",
       "l: x[8*q + r, 8*p + l + 8]"},
      {"program f(x: f32[N, C]) -> (y: f32[C/8 + 1, N, 8]) { for p in [0, C/8) { for i in [0, N) {"
       " for l in [0, 8) vector { y[p, i, l] = x[i, min(8*p, C - 8) + l] } } } }",
       "l: x[i, l + min(C - 8, 8*p + 8)]"},
      // Each row to its end; pieces of two lines; pieces that are summed, not copied.
      {"program f(x: f32[N, C]) -> (y: f32[N, C]) { for i in [0, N) { for p in [0, C/8) {"
       " for l in [0, 8) vector { y[i, 8*p + l] = x[i, 8*p + l] } } } }",
       "l: x[i, 8*p + l + 1024]"},
      {"program f(x: f32[N, C]) -> (y: f32[C/32, N, 32]) { for p in [0, C/32) { for i in [0, N) {"
       " for l in [0, 32) vector { y[p, i, l] = x[i, 32*p + l] } } } }",
       ""},
      {"program f(x: f32[N, C]) -> (y: f32[C]) { for p in [0, C/8) { acc a: f32[8] = sum register for i in [0, N) {"
       " for l in [0, 8) vector { a[l] += x[i, 8*p + l] } } for l in [0, 8) vector { y[8*p + l] = a[l] } } }",
       ""},
  };
  for (const auto& [program, prefetches] : kCases)
    EXPECT_EQ(PrefetchesIn(program), prefetches) << program;
}

TEST(StreamArguments, AheadWhereAnInputIsReadFromEndToEnd) {
  const struct {
    const char* program;
    const char* prefetches;
  } kCases[] = {
      {"program f(x: f32[N + 3], u: u8[N]) -> (y: f32[N]) { for i in [0, N) vector { y[i] = x[i + 3] * f32(u[i]) } }",
       "i: x[i + 1027]; i: u[i + 4096]"},
      // Rows in pieces, and a last piece that counts as part of the row; an operand that all rows
      // share is read again and again.
      {"program f(x: f64[N, C], w: f64[C]) -> (y: f64[N, C]) { for i in [0, N) { for p in [0, C/8) {"
       " for l in [0, 8) vector { y[i, 8*p + l] = x[i, 8*p + l] * w[8*p + l] } }"
       " for t in [0, C%8) vector { y[i, 8*(C/8) + t] = x[i, 8*(C/8) + t] } } }",
       "l: x[i, 8*p + l + 512]"},
      // Down, in pieces whose elements go up.
      {"program f(x: f32[C]) -> (y: f32[C]) { for p in [0, C/8) { for l in [0, 8) vector {"
       " y[8*p + l] = x[C - 8*p + l - 8] } } }",
       "l: x[-8*p + l + C - 1032]"},
      // Columns outside; each second element; once in each of two blocks; twice in one.
      {"program f(x: f32[N, C]) -> (y: f32[C, N]) { for j in [0, C) { for i in [0, N) vector { y[j, i] = x[i, j] } } }",
       ""},
      {"program f(x: f32[N]) -> (y: f32[N]) { for i in [0, N/2) vector { y[i] = x[2*i] } }", ""},
      {"program f(x: f32[N]) -> (y: f32[N], z: f32[N]) { for i in [0, N) vector { y[i] = x[i] }"
       " for j in [0, N) vector { z[j] = x[j] } }",
       "i: x[i + 1024]; j: x[j + 1024]"},
      {"program f(x: f32[N]) -> (y: f32[N], z: f32[N]) { for o in [0, 1) { for i in [0, N) vector { y[i] = x[i] }"
       " for j in [0, N) vector { z[j] = x[j] } } }",
       ""},
  };
  for (const auto& [program, prefetches] : kCases)
    EXPECT_EQ(PrefetchesIn(program), prefetches) << program;
}

TEST(StreamArguments, TheNextPlaneWhereAPieceOfEachIsRead) {
  const auto copy = [](absl::string_view loops, absl::string_view place) {
    return PrefetchesIn(
        absl::StrCat("program f(x: f32[C, H, W]) -> (y: f32[H, C, 16, W]) { for s in [0, H/16) { ",
                     loops, " { y[s, c, h, w] = x[", place, "] } } } } }")
            .c_str());
  };
  EXPECT_EQ(copy("for c in [0, C) { for h in [0, 16) { for w in [0, W) vector", "c, 16*s + h, w"),
            "w: x[c + 1, 16*s + h, w]");
  // Not where one row of each plane is, nor where a plane is read again and again.
  EXPECT_EQ(copy("for h in [0, 16) { for c in [0, C) { for w in [0, W) vector", "c, 16*s + h, w"),
            "");
  EXPECT_EQ(copy("for c in [0, C) { for h in [0, 16) { for w in [0, W) vector", "s, h, w"), "");
}

TEST(StreamArguments, BesideTheSumsOfATile) {
  constexpr char kProgram[] =
      "program f(x: f32[N, 8], w: f32[8], u: f32[N, 8], ids: i64[N]) -> (y: f32[N, 8]) { temp o: f32[N, 8] "
      "for q in [0, N) { for k in [0, 8) { o[q, k] = x[q, k] } } "
      "for i in [0, N/2) { temp t: f32[2, 8] register temp own: f32[2, 8] "
      "for r in [0, 2) unroll { for l in [0, 8) vector { t[r, l] = 0.0 own[r, l] = 1.0 } } "
      "for k in [0, 8) { for r_2 in [0, 2) unroll { for l_2 in [0, 8) vector { t[r_2, l_2] = t[r_2, l_2] + x[k, l_2] } } } "
      "for r_3 in [0, 2) unroll { for m in [0, 8) vector { y[2*i + r_3, m] = t[r_3, m] + $value } } } }";
  const auto prefetches = [&](absl::string_view value) {
    return PrefetchesIn(absl::StrReplaceAll(kProgram, {{"$value", value}}).c_str());
  };
  EXPECT_EQ(prefetches("u[2*i + r_3, m]"), "l: u[2*i + r, l]");
  EXPECT_EQ(prefetches("u[2*i + r_3, m] * o[2*i + r_3, m]"), "l: u[2*i + r, l]; l: o[2*i + r, l]");
  EXPECT_EQ(prefetches("w[r_3]"), "") << "one for all lanes";
  EXPECT_EQ(prefetches("own[r_3, m]"), "") << "of the tile's own scope";
  EXPECT_EQ(prefetches("u[ids[i], m]"), "m: u[ids[min(i + 1, N/2 - 1)], m]")
      << "gathered: the next row";
}

// Outputs stream that are written once, and not read.
TEST(StreamArguments, OutputsStream) {
  constexpr PassCase kCases[] = {
      {"acc a: f32 = sum for i in [0, N) { temp t: f32 t = x[i] y[i] = t drop y[i + 1] if i > 3 = t a += t } s = a s += 1.0",
       "acc a: f32 = sum for i in [0, N) { temp t: f32 t = x[i] stream y[i] = t stream drop y[i + 1] if i > 3 = t a += t } stream s = a s += 1.0"},
  };
  ExpectPass(StreamArguments, {"program f(x: f32[N]) -> (y: f32[N], s: f32) {\n", "\n}\n"}, kCases);
}

// Whether y[i] = value streams, of elements of a type.
bool Streams(absl::string_view type, absl::string_view value) {
  Program program =
      ParseVerified(absl::StrCat("program f(x: ", type, "[N]) -> (y: ", type,
                                 "[N]) { for i in [0, N) vector { y[i] = ", value, " } }"));
  EXPECT_TRUE(StreamArguments(program).ok());
  return program.body[0].As<Loop>()->body[0].As<Statement>()->streams;
}

// Loops that are bound by arithmetic store as usual.
TEST(StreamArguments, NotWhereMuchIsComputedForEachByte) {
  EXPECT_TRUE(Streams("bf16", "x[i] * x[i]"));
  EXPECT_TRUE(Streams("f32", "erf(x[i])"));
  EXPECT_FALSE(Streams("bf16", "erf(x[i])"));
  EXPECT_FALSE(Streams("f32", "erf(erf(erf(x[i])))"));
}

// Stores do not stream, either, if their values come, by whatever path, from a register tile that
// sums products of operands shared by its elements.
TEST(StreamArguments, NotWhereATileSumsProducts) {
  constexpr char kProgram[] =
      "program f(x: f32[N, 8], a: f32[N, 2], c: f32) -> (y: f32[N, 8]) { for i in [0, N) { temp turned: f32[2, 8] "
      "temp t: f32[2, 8] register "
      "for r in [0, 2) unroll { for l in [0, 8) vector { t[r, l] = 0.0 } } "
      "for k in [0, N) { for q in [0, 2) unroll { for p in [0, 8) vector { t[q, p] = $value } } } "
      "for r_2 in [0, 2) unroll { for l_2 in [0, 8) vector { turned[r_2, l_2] = t[r_2, l_2] } } "
      "for m in [0, 8) vector { y[i, m] = turned[0, m] } } }";
  const auto streams = [&](absl::string_view value) {
    Program program = ParseVerified(absl::StrReplaceAll(kProgram, {{"$value", value}}));
    EXPECT_TRUE(StreamArguments(program).ok());
    const Item& last = program.body[0].As<Loop>()->body.back();
    return last.As<Loop>()->body[0].As<Statement>()->streams;
  };
  EXPECT_FALSE(streams("t[q, p] + a[k, q] * x[k, p]"));
  EXPECT_TRUE(streams("a[k, q] * x[k, p]")) << "no sum";
  EXPECT_TRUE(streams("t[q, p] + (x[k + q, p] - c) * a[k, q]"))
      << "each element has terms of its own";
  EXPECT_TRUE(streams("t[1 - q, p] + a[k, q] * x[k, p]")) << "of another element";
}

}  // namespace
}  // namespace nestor::loop
