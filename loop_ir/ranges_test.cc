// Proofs against tables: one program per line, with the verdicts on each statement's conditions,
// target and loads (see Verdicts); each is also compared with enumeration.
#include "loop_ir/ranges.h"

#include <functional>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "loop_ir/ranges_testing.h"
#include "loop_ir/text.h"

namespace nestor::loop {
namespace {

struct Case {
  const char* signature;  // arguments and $params; the result is r: f32
  const char* items;
  const char* verdicts;  // of the statements, in order
};

void RunCases(const std::vector<Case>& cases) {
  std::mt19937 random(1);
  for (const Case& c : cases) {
    const std::string text =
        absl::StrCat("program p(", c.signature, ") -> (r: f32) {\n", c.items, "\n}");
    absl::StatusOr<Program> program = ParseProgram(text);
    ASSERT_TRUE(program.ok()) << program.status() << "\n" << text;
    const Verdicts verdicts = Judge(*program);
    EXPECT_EQ(verdicts.text, c.verdicts) << text;
    CheckVerdicts(*program, verdicts, random);
  }
}

// Every second element of every second row.
TEST(Ranges, RowsOfAnAxisOfTwo) {
  RunCases(
      {{"x: f32[H*W]", "for k in [0, (H + 1)/2) { for l in [0, (W + 1)/2) { r = x[2*k*W + 2*l] } }",
        "yy"},
       {"x: f32[((H + 1)/2)*((W + 1)/2)]",
        "for k in [0, ((H + 1)/2 + 1)/2) { for l in [0, ((W + 1)/2 + 1)/2) { r = x[2*k*((W + 1)/2) + 2*l] } }",
        "yy"},
       {"x: f32[(((H + 1)/2 + 1)/2)*(((W + 1)/2 + 1)/2)]",
        "for k in [0, (((H + 1)/2 + 1)/2 + 1)/2) { for l in [0, (((W + 1)/2 + 1)/2 + 1)/2) { r = x[2*k*(((W + 1)/2 + 1)/2) + 2*l] } }",
        "yy"},
       {"x: f32[H*W]", "for k in [0, H/2) { for l in [0, (W + 1)/2) { r = x[2*k*W + 2*l + W] } }",
        "yy"},
       {"x: f32[H*W]", "for k in [0, H/2) { for l in [0, W/2) { r = x[2*k*W + 2*l + W + 1] } }",
        "yy"},
       {"x: f32[((H + 1)/2)*((W + 1)/2)]",
        "for k in [0, (H + 1)/2/2) { for l in [0, ((W + 1)/2 + 1)/2) { r = x[2*k*((W + 1)/2) + 2*l + (W + 1)/2] } }",
        "yy"},
       {"x: f32[((H + 1)/2)*((W + 1)/2)]",
        "for k in [0, (H + 1)/2/2) { for l in [0, (W + 1)/2/2) { r = x[2*k*((W + 1)/2) + 2*l + (W + 1)/2 + 1] } }",
        "yy"},
       {"x: f32[H/2], z: f32[H/2]",
        "for k in [0, H/4) { r = x[2*k + 1] + z[H/2 - 2*k - 2] + x[2*k + 2] }", "yyyn"},
       // What whole tiles leave of them.
       {"x: f32[H*W], z: f32[K]",
        "for k in [0, min(K, H*W - 6*(H*W/6))) { r = x[min(H*W - 1, 6*(H*W/6))] }", "yy"}});
}

// Tiles of the area beside a triangle's blocks, as copies in panels walk them.
TEST(Ranges, TilesBesideATriangle) {
  const std::string width = "min(L - 64*i, 64)", from = absl::StrCat("16*((", width, " + 14)/16)");
  const std::string tiles = absl::StrCat("max(L - 64*i - ", from, ", 0)/16");
  const std::string items =
      absl::StrCat("for i in [0, (L + 63)/64) { for q in [0, (", tiles,
                   " + 15)/16) { for k in [16*q, min(16*q + 16, ", tiles,
                   ")) { for l in [0, 16) { r = x[64*i + 16*k + l + ", from, "] } } } }");
  const std::string rest = absl::StrCat("for i in [0, (L + 63)/64) { for r_2 in [16*(", width,
                                        "/16), ", width, ") { r = x[64*i + r_2] } }");
  const std::string steps = absl::StrCat("for i in [0, (L + 63)/64) { for k in [64*i + ", from,
                                         " + 16*(", tiles, "), L) { r = x[k] } }");
  const std::string mod =
      "for r_4 in [0, L) { for l in [0, (L + 63 - r_4)%64) { r = x[r_4 + l + 64*((L + 63 - r_4)/64) - 63] } }";
  RunCases({{"x: f32[L]", items.c_str(), "yy"},
            {"x: f32[L]", rest.c_str(), "yy"},
            {"x: f32[L]", steps.c_str(), "yy"},
            {"x: f32[L]", mod.c_str(), "yy"}});
}

TEST(Ranges, Loops) {
  RunCases({
      {"x: f32[N]", "for i in [0, N) { r = x[i] }", "yy"},
      {"x: f32[N]", "for i in [0, N) { r = x[i + 1] }", "yn"},
      {"x: f32[N]", "for i in [0, N) { r = x[i - 1] }", "yn"},
      {"x: f32[N]", "for i in [1, N) { r = x[i - 1] }", "yy"},
      {"x: f32[N]", "for i in [0, N - 1) { r = x[i + 1] }", "yy"},
      {"x: f32[N]", "for i in [0, N) { r = x[N - 1 - i] }", "yy"},
      {"x: f32[N], z: f32[M]", "for i in [0, N) { r = x[i] + z[i] }", "yyn"},
      {"x: f32[N]", "for i in [0, N) { r = x[0] + x[N - 1] + x[1] }", "yyyn"},
      {"x: f32[N]", "r = x[0]", "yn"},
      {"x: f32[N]; $k: i64", "for i in [0, $k) { r = x[i] }", "yn"},
      {"x: f32[$k]; $k: i64", "for i in [0, $k) { r = x[i] }", "yy"},
      {"x: f32[N]", "for i in [0, N) { for j in [0, i) { r = x[j] + x[i - j] + x[j + 1] } }",
       "yyyy"},
      {"x: f32[N]", "for i in [0, N) { for j in [i, N) { r = x[j] + x[j - i] + x[j + i] } }",
       "yyyn"},
      {"x: f32[N, C]", "for i in [0, N) { for c in [0, C) { r = x[i, c] } }", "yy"},
      {"x: f32[N, C]", "for i in [0, N) { for c in [0, C) { r = x[c, i] } }", "yn"},
      // Known sizes.
      {"x: f32[12]",
       "for i in [0, 3) { for j in [0, 4) { r = x[i*4 + j] + x[i + j*3] + x[i*5 + j] } }", "yyyn"},
      {"x: f32[12]", "for i in [2, 14) { r = x[i - 2] + x[13 - i] + x[i - 1] }", "yyyn"},
      {"x: f32[8], z: f32[4]",
       "for i in [0, 4) { r = x[i] + x[i + 4] + x[i + 5] + z[i - 1] + z[i] + z[i + 1] }",
       "yyynnyn"},
      {"x: f32[8], z: f32[N]",
       "for i in [3, 5) { r = x[i + 3] + x[i + 4] + x[i - 3] + x[i - 4] + z[i - 3] }", "yynynn"},
      {"x: f32[9223372036854775807]",
       "for i in [9223372036854775800, 9223372036854775806) { r = x[i] + x[i + 1] + x[i + 2] }",
       "yyyn"},
      {"x: f32[4]", "for i in [0, 30) { r = x[i/8] + x[i%4] + x[i/7] + x[(0-i)%4] }", "yyyny"},
  });
}

TEST(Ranges, Reshapes) {
  RunCases({
      {"x: f32[N*C]; $n: i64, $c: i64", "for i in [0, $n) { for c in [0, $c) { r = x[i*$c + c] } }",
       "yn"},
      {"x: f32[N, C], z: f32[N*C]",
       "for i in [0, N) { for c in [0, C) { r = z[i*C + c] + z[i*C] + z[i*C + c + 1] } }", "yyyn"},
      {"x: f32[A, B, C], z: f32[A*B*C]",
       "for a in [0, A) { for b in [0, B) { for c in [0, C) { r = z[(a*B + b)*C + c] + z[(c*B + b)*A + a] } } }",
       "yyy"},
      {"x: f32[A, B, C]",
       "for i in [0, A*B*C) { r = x[i/(B*C), i/C%B, i%C] + x[i/(B*C), i/C, i%C] }", "yyn"},
      {"x: f32[A, B], z: f32[A*B]",
       "for i in [0, A*B) { r = x[i/B, i%B] + x[i%A, i/A] + x[i/A, i%A] }", "yyyn"},
      {"x: f32[A, B]; $k: i64", "for i in [0, A*$k) { r = x[i/$k, 0] + x[i%A, 0] }", "ynn"},
      {"x: f32[B*B*C, H, W]",
       "for i in [0, C) { for j in [0, B*H) { for k in [0, B*W) { "
       "r = x[i*B*B + j%B*B + k%B, j/B, k/B] } } }",
       "yy"},
      {"x: f32[A, 4], z: f32[A*4]", "for i in [0, A*4) { r = x[i/4, i%4] }", "yy"},
      {"x: f32[A, B], s: shape f32[A*B/B]", "for i in [0, A*B) { r = x[i/B, i%B] }", "yy"},
      // Grouped: C channels of each group; only where the groups divide O.
      {"x: f32[N, O, C], z: f32[$groups*C]; $groups: i64 = 1 in [1, inf]",
       "for o in [0, O) { for c in [0, C) { r = z[o/(O/$groups)*C + c] } }", "yn"},
      {"x: f32[N, O, C], z: f32[$groups*C]; $groups: i64 = 1 in [1, inf]",
       "for g in [0, $groups) { for c in [0, C) { r = z[g*C + c] } }", "yy"},
  });
}

TEST(Ranges, Windows) {
  const char* conv =
      "x: f32[H], w: f32[R]; $stride: i64 = 1 in [1, inf], $dilation: i64 = 1 in [1, inf]";
  const char* free = "x: f32[H], w: f32[R]; $stride: i64 = 1, $dilation: i64 = 1";
  const char* nest =
      "for h in [0, (H - $dilation*(R - 1) - 1)/$stride + 1) { for r0 in [0, R) { r = x[h*$stride + r0*$dilation] } }";
  RunCases({
      {conv, nest, "yy"},
      {free, nest, "yn"},
      {conv, "for h in [0, (H - R)/$stride + 1) { for k in [0, R) { r = x[h*$stride + k] } }",
       "yy"},
      {conv, "for h in [0, (H - R)/$stride + 2) { for k in [0, R) { r = x[h*$stride + k] } }",
       "yn"},
      {conv, "for h in [0, (H - R)/2 + 1) { for k in [0, R) { r = x[h*2 + k] + x[h*2 + k + 1] } }",
       "yyn"},
      {conv, "for h in [0, H - R + 1) { for k in [0, R) { r = x[h + k] + x[h + R - 1 - k] } }",
       "yyy"},
      {conv, "for h in [0, H/$stride) { for k in [0, $stride) { r = x[h*$stride + k] } }", "yy"},
      {free, "for h in [0, H/$stride) { for k in [0, $stride) { r = x[h*$stride + k] } }", "yy"},
      {conv, "for h in [0, (H + $stride - 1)/$stride) { r = x[h*$stride] + x[h*$stride + 1] }",
       "yyn"},
      // Padded: only inside.
      {"x: f32[H], w: f32[R]; $p: i64 in [0, inf]",
       "for h in [0, H + 2*$p - R + 1) { for k in [0, R) { r = x[h + k - $p] } }", "yn"},
      {"x: f32[H], w: f32[R]; $p: i64 in [0, inf]",
       "for h in [$p, H + $p - R + 1) { for k in [0, R) { r = x[h + k - $p] } }", "yy"},
      {"x: f32[H], w: f32[R]; $p: i64 in [0, inf]",
       "for h in [0, H + 2*$p) { for k in [max(0, $p - h), min(R, H + $p - h)) { r = x[h + k - $p] } }",
       "yy"},
  });
}

TEST(Ranges, Tiles) {
  RunCases({
      // The rest of a row after place i, in vectors: a loop that runs shows that it is not empty.
      {"x: f32[N]",
       "for i in [0, N) { for k in [0, max(N - i - 1, 0)/8) { for l in [0, 8) { r = x[8*k + l + i + 1] + x[8*k + l + i + 2] } } }",
       "yyn"},
      {"x: f32[N]", "for l in [0, N%8) { r = x[8*(N/8) + l] + x[8*(N/8) + l + 1] }", "yyn"},
      {"x: f32[N]",
       "for i in [0, N) { for l in [0, max(N - i - 1, 0)%8) { r = x[8*(max(N - i - 1, 0)/8) + l + i + 1] } }",
       "yy"},
      {"x: f32[N]",
       "for p in [0, N/4) { for i in [0, 4) { for l in [0, max(N - 4*p - i - 1, 0)%8) { "
       "r = x[4*p + 8*(max(N - 4*p - i - 1, 0)/8) + l + i + 1] } } }",
       "yy"},
      {"x: f32[N]", "for i in [0, N) { for l in [0, max(N - i - 1, 0)) { r = x[i + 1] } }", "yy"},
      {"x: f32[N]", "for i in [0, N) { for l in [0, max(N - i - 1, 3)) { r = x[i + 1] } }", "yn"},
      {"x: f32[N], z: f32[M]",
       "for i in [0, N) { for l in [0, max(N - i - 1, M)) { r = x[i + 1] } }", "yn"},
      {"x: f32[N]",
       "for i in [0, N) step 8 { for j in [i, min(N, i + 8)) { r = x[j] + x[j + 1] } }", "yyn"},
      {"x: f32[N]", "for i in [0, N) step 8 { for j in [0, min(8, N - i)) { r = x[i + j] } }",
       "yy"},
      {"x: f32[N]",
       "for i in [0, N/8) { for j in [0, 8) { r = x[i*8 + j] } }  for i in [N/8*8, N) { r = x[i] }",
       "yy yy"},
      {"x: f32[N]", "for i in [0, N) step 8 { for j in [0, 8) { r = x[i + j] } }", "yn"},
      {"x: f32[N*8]", "for i in [0, N*8) step 8 { for j in [0, 8) { r = x[i + j] } }", "yy"},
      {"x: f32[N]", "for q in [0, N/16%3/2) { for l in [0, 32) { r = x[32*q + l + 48*(N/16/3)] } }",
       "yy"},
      {"x: f32[N]", "for i in [0, N - N%4) step 4 { r = x[i + 3] }", "yn"},
      {"x: f32[N]", "for i in [0, N/4*4) step 4 { r = x[i + 3] }", "yy"},
      {"x: f32[N]; $t: i64 in [1, inf]",
       "for i in [0, (N + $t - 1)/$t) { for j in [i*$t, min(N, i*$t + $t)) { r = x[j] } }", "yy"},
      {"x: f32[N]; $t: i64 in [1, inf]",
       "for i in [0, N/$t*$t) { r = x[i/$t*$t + i%$t] + x[i/$t*$t] }", "yyy"},
      {"x: f32[8, N]",
       "for i in [0, N) step 8 { for j in [i, min(N, i + 8)) { r = x[j - i, j] + x[j%8, i] } }",
       "yyy"},
  });
}

// The inside of a nest whose borders are split off: its length is a maximum, greater than 0
// where a tile runs.
TEST(Ranges, TilesBehindABorder) {
  RunCases({
      {"x: f32[N]",
       "for q in [0, max(N - 2, 0)/16) { for l in [0, 16) { r = x[16*q + l + 1] + x[16*q + l + 2] + x[16*q + l + 3] } }",
       "yyyn"},
      {"x: f32[N]", "for q in [0, max(N - 2, 0)/16/3) { for l in [0, 48) { r = x[48*q + l + 1] } }",
       "yy"},
      {"x: f32[N]",
       "for q in [0, (max(N - 2, 0)/16/3 + 5)/6) { for p in [0, min(-6*q + max(N - 2, 0)/16/3, 6)) { for v in [0, 3) {"
       " for l in [0, 16) { r = x[288*q + 48*p + 16*v + l + 1] } } } }",
       "yy"},
      {"x: f32[N]",
       "for q in [0, max(N - 2, 0)/16%3/2) { for l in [0, 32) { r = x[32*q + l + 48*(max(N - 2, 0)/16/3) + 1] } }",
       "yy"},
      {"x: f32[N]",
       "for q in [0, (max(N - 2, 0) + 15)/16 - 3*(max(N - 2, 0)/16/3) - 2*(max(N - 2, 0)/16%3/2)) {"
       " for l in [0, min(-16*q - 48*(max(N - 2, 0)/16/3) - 32*(max(N - 2, 0)/16%3/2) + max(N - 2, 0), 16)) {"
       " r = x[16*q + l + 48*(max(N - 2, 0)/16/3) + 32*(max(N - 2, 0)/16%3/2) + 1] } }",
       "yy"},
      {"x: f32[N]", "for i in [0, max(N - 2, 0)) { r = x[i + 1] + x[i + 2] + x[i + 3] }", "yyyn"},
  });
}

// A strip of an image's rows, of the image itself, and of the rows kept for the strip: its end is
// the lesser of two, one of which tells nothing.
TEST(Ranges, StripsOfAnImage) {
#define HEIGHT "((((H + 1)/2 + 1)/2 + 1)/2)"
#define STRIP \
  "min((" HEIGHT " + 2*max((" HEIGHT " + 15)/16, 1) - 1)/(2*max((" HEIGHT " + 15)/16, 1)), 8)"
#define IN_STRIPS(body)                                                                            \
  "for p in [0, 2*max((" HEIGHT " + 15)/16, 1)) { for k in [p*" STRIP ", min(" HEIGHT ", p*" STRIP \
  " + " STRIP ")) { " body " } }"
  RunCases({
      {"x: f32[" HEIGHT "], z: f32[H]", IN_STRIPS("r = x[k]"), "yy"},
      {"x: f32[" STRIP "], z: f32[H]", IN_STRIPS("r = x[k - p*" STRIP "]"), "yy"},
      {"x: f32[" STRIP " + 3], z: f32[H]",
       IN_STRIPS("for m in [max(-k + 1, 0), min(-k + " HEIGHT " + 1, 3)) { r = x[k - p*" STRIP
                 " + m] }"),
       "yy"},
      {"x: f32[" HEIGHT "*((W + 1)/2)], z: f32[H], u: f32[W]",
       IN_STRIPS(
           "for c in [0, min(-15*min((W + 1)/2/16, 1) + 15, min((W + 1)/2, 15))) { r = x[k*((W + 1)/2) + c] }"),
       "yy"},
  });
}

TEST(Ranges, Checks) {
  RunCases({
      {"x: f32[N], z: f32[M]", "require N == M \"\"  for i in [0, N) { r = z[i] }", "yy"},
      {"x: f32[N], z: f32[M]", "require N == M + 1 \"\"  for i in [0, M) { r = x[i + 1] }", "yy"},
      {"x: f32[N], z: f32[M], w: f32[K]",
       "require N == M \"\" require M == K \"\"  for i in [0, N) { r = w[i] }", "yy"},
      {"x: f32[N], z: f32[M], w: f32[K]",
       "require N == K \"\" require M == K \"\"  for i in [0, N) { r = z[i] }", "yy"},
      {"x: f32[N], z: f32[M]",
       "require N/2 == M \"\"  for i in [0, M) { r = x[2*i + 1] + x[2*i + 2] }", "yyn"},
      {"x: f32[N], z: f32[M]; $s: i64",
       "require N/$s == M \"\" require 1 <= $s <= inf \"\"  for i in [0, M) { r = x[$s*i] }", "yy"},
      {"x: f32[N], z: f32[M]", "require 0 <= N - M <= inf \"\"  for i in [0, M) { r = x[i] }",
       "yy"},
      {"x: f32[N]; $k: i64 in [1, 3]", "for i in [0, N - 3) { r = x[i + $k] + x[i + $k + 1] }",
       "yyn"},
      {"x: f32[N]; $k: i64 in [-3, -1]", "for i in [3, N) { r = x[i + $k] + x[i - $k] }", "yyn"},
      {"x: f32[H/$s], z: f32[H]; $s: i64 in [1, inf]",
       "for i in [0, H/$s) { r = z[i*$s] + x[H/$s - 1 - i] }", "yyy"},
      {"x: f32[H/$s], z: f32[H]; $s: i64 in [1, inf]",
       "drop r if H/$s <= H, H/$s >= 0, H%$s < $s = 1.0", "ttty"},
      {"x: f32[N]; $j: i64, $k: i64", "for i in [0, $j*$k) { drop r if $j >= 1, $k >= 1 = 1.0 }",
       "??y"},
      {"x: f32[N, M]", "for i in [0, N*M) { drop r if N >= 1, M >= 1, N >= 2 = 1.0 }", "tt?y"},
      {"x: f32[N, M], s: shape f32[N - M]", "for i in [0, M) { r = x[i, i] }", "yy"},
  });
}

TEST(Ranges, Conditions) {
  RunCases({
      {"x: f32[N]",
       "for i in [0, N) { drop r if i >= 0, i < N, i < 0, i == N, i != N, i == 3 = 1.0 }",
       "ttfft?y"},
      {"x: f32[N]", "for i in [0, N) { drop r if i > 2 && i < 5 = x[i - 3] + x[i - 2] + x[i + 1] }",
       "?yyyn"},
      {"x: f32[N]", "for i in [0, N) { drop r if i + 1 < N, i != 0 = x[i + 1] + x[i - 1] }",
       "??yyy"},
      {"x: f32[N]", "for i in [0, N) { drop r if !(i + 1 >= N) = x[i + 1] }", "?yy"},
      {"x: f32[N]", "for i in [0, N) { drop r if !(i == 0 || i + 1 == N) = x[i + 1] + x[i - 1] }",
       "?yyy"},
      {"x: f32[N]", "for i in [0, N) { drop r if i < 0 || i >= 3 = x[i - 3] }", "?yy"},
      {"x: f32[N]; $k: i64", "for i in [0, N) { drop r if 0 <= i - $k, i < $k + N = x[i - $k] }",
       "??yy"},
      {"x: f32[N], z: f32[M]",
       "for i in [0, N) { for j in [0, M) { drop r if i + j < N, i == j = x[i + j] + x[j] } }",
       "??yyy"},
      {"x: f32[N], z: f32[M]", "for i in [0, N) { drop r if i < M = z[i] + z[i + 1] }", "?yyn"},
      {"x: f32[N], z: f32[M]", "for i in [0, N) { drop r if i/3 == M = x[3*M] }", "?yy"},
      {"x: f32[N], z: f32[M]", "for i in [0, N) { r = x[i | 0.0 if i < N, i < M, N >= 1, M >= 1] }",
       "yt?t?y"},
      // Signs of dividends; intervals of divisors.
      {"x: f32[N]; $k: i64 in [1, 3]",
       "for i in [-5, N) { drop r if i/$k >= -5, i/$k >= -2, i/$k >= -4 = 1.0 }", "t??y"},
      {"x: f32[N]; $k: i64 in [1, 3]",
       "for i in [-9, -5) { drop r if i/$k <= -2, i/$k <= -3, i/$k <= -6 = 1.0 }", "t??y"},
      {"x: f32[N]; $k: i64 in [2, 3]",
       "for i in [0, 9) { drop r if i/$k <= 4, i/$k <= 3, i/$k < 0 = 1.0 }", "t?fy"},
      {"x: f32[N]; $k: i64 in [2, 3]",
       "for i in [0, 9) { drop r if i%$k <= 2, i%$k <= 1, i%$k >= 0 = 1.0 }", "t?ty"},
      {"x: f32[N]; $k: i64 in [2, 3]",
       "for i in [-4, 2) { drop r if (i + 4)%$k <= i + 4, i*$k <= 3, i*$k >= -12, i*$k >= -11 = 1.0 }",
       "ttt?y"},
      {"x: f32[N]",
       "for i in [-4, N) { drop r if min(i, 3) >= -4, max(i, 3) >= 3, min(i, 3) > 3, max(i, 3) < 3 = 1.0 }",
       "ttffy"},
      // Undecided, since it may have no value.
      {"x: f32[N], z: f32[M]",
       "for i in [0, N) { drop r if i/M >= 0, i%M >= 0, i/N >= 0, M/M == 1 || i >= 0 = 1.0 }",
       "??t?y"},
      {"x: f32[N]; $k: i64", "for i in [0, N) { drop r if i%$k < $k, i/$k*$k <= i = 1.0 }", "??y"},
      {"x: f32[N]; $k: i64",
       "for i in [0, N) { drop r if i/$k == i/$k, $k > 0 && i%$k < $k = 1.0 }", "??y"},
      // Gathered values: only what was assumed is known.
      {"x: f32[N], d: i64[N]",
       "for i in [0, N) { drop r if d[i] < N, 0 <= d[i] = x[d[i] | 0.0 if d[i] < N] }", "??ytn"},
      {"x: f32[N]", "for i in [0, N) { for j in [0, N) { r = x[i*j | 0.0 if i*j >= 0] } }", "y?n"},
  });
}

TEST(Ranges, Edges) {
  RunCases({
      {"x: f32[N]",
       "for i in [0, N) { drop r if i < 9223372036854775807, i > -9223372036854775807 = 1.0 }",
       "?ty"},
      {"x: f32[N]",
       "for i in [-9223372036854775807, -9223372036854775805) { drop r if i < 0, i + 1 > -9223372036854775807, i - 1 < 0 = 1.0 }",
       "t?ty"},
      {"x: f32[N]",
       "for i in [9223372036854775800, 9223372036854775807) { drop r if i > 0, 2*i > 0, i + 1 > 0, i < 9223372036854775807 = 1.0 }",
       "t?tty"},
      {"x: f32[N]; $k: i64",
       "for i in [0, N) { drop r if i + $k >= $k, 9223372036854775807*i >= 0 = 1.0 }", "tty"},
      {"x: f32[N]; $k: i64 in [-1, 0]", "for i in [0, N) { drop r if i%$k <= 0, i/$k <= 0 = 1.0 }",
       "??y"},
      {"x: f32[N]; $k: i64 in [-3, -1]", "for i in [0, N) { drop r if i%$k <= 0, i/$k <= 0 = 1.0 }",
       "??y"},
      {"x: f32[N]",
       "for i in [0, 0) { r = x[i] }  for i in [N, 0) { r = x[i] }  for i in [0, 0 - N) { r = x[i] }",
       "yy yy yy"},
  });
}

// Loops and assumptions are learnt when something is asked inside them: where that is, on
// the way in and out, changes no answer.
TEST(Ranges, AnswersDoNotDependOnWhereItWasAsked) {
  absl::StatusOr<Program> program = ParseProgram(
      "program p(x: f32[N, C]) -> (r: f32) {\n"
      "for i in [0, N) { for j in [1, C) { for k in [i, min(N, C)) { drop r if k < j = x[i, j] } } }\n}");
  ASSERT_TRUE(program.ok()) << program.status();
  std::vector<const Loop*> loops;
  const Access* target = nullptr;
  VisitItems(*program, [&](const Item& item) {
    if (const auto* loop = item.As<Loop>()) loops.push_back(loop);
    if (const auto* statement = item.As<Statement>()) target = &statement->target;
  });
  IndexPool& pool = program->pool;
  const IndexId i = pool.Var(loops[0]->var), j = pool.Var(loops[1]->var),
                k = pool.Var(loops[2]->var);
  const IndexId rows = pool.Symbol("N"), columns = pool.Symbol("C"), zero = pool.Const(0);
  using Step = std::function<void(Ranges&)>;
  const std::vector<Step> steps = {
      [&](Ranges& ranges) { ranges.Enter(*loops[0]); },
      [&](Ranges& ranges) { ranges.AssumeInRange({i}, {rows}); },  // says nothing new
      [&](Ranges& ranges) { ranges.Enter(*loops[1]); },
      [&](Ranges& ranges) { ranges.Assume(target->conditions[0]); },
      [&](Ranges& ranges) { ranges.AssumeInRange({j}, {rows}); },
      [&](Ranges& ranges) { ranges.Enter(*loops[2]); },
  };
  const auto answers = [&](Ranges& ranges) {
    std::string text;
    for (IndexId a : {zero, i, j, k, rows, columns}) {
      for (IndexId b : {zero, i, j, k, rows, columns}) {
        absl::StrAppend(&text, ranges.LessEqual(a, b), ranges.Less(a, b), ranges.InRange(a, b),
                        " ");
      }
    }
    return text;
  };
  std::vector<std::string> want;  // inside so many steps
  for (size_t depth = 0; depth <= steps.size(); ++depth) {
    Ranges ranges(*program);
    for (size_t step = 0; step < depth; ++step) steps[step](ranges);
    want.push_back(answers(ranges));
    EXPECT_EQ(depth == 0 || want[depth] != want[depth - 1], depth != 2) << depth;
  }
  for (unsigned asked = 0; asked < 1u << (2 * steps.size()); ++asked) {
    Ranges ranges(*program);
    for (size_t step = 0; step < steps.size(); ++step) {
      steps[step](ranges);
      if ((asked >> step & 1) == 0) continue;
      ASSERT_EQ(answers(ranges), want[step + 1]) << asked << " in " << step;
    }
    for (size_t depth = steps.size(); depth-- > 0;) {
      ranges.Forget();
      if ((asked >> (steps.size() + depth) & 1) == 0) continue;
      ASSERT_EQ(answers(ranges), want[depth]) << asked << " out " << depth;
    }
  }
}

}  // namespace
}  // namespace nestor::loop
