// The estimate against its definition, element by element.
#include "fusion/cost/bytes_walked.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "fusion/cost/bytes_walked_testing.h"
#include "gtest/gtest.h"
#include "loop_ir/text.h"
#include "loop_ir/verify.h"

namespace nestor::loop {
namespace {

struct Case {
  const char* name;
  const char* program;
  Sizes sizes;
  std::vector<int64_t> caches;
  double factor;  // of both sums; 1: exactly
};

const char kTwoMaps[] =
    "program p(x: f32[N]) -> (y: f32[N]) { temp t: f32[N] "
    "for i in [0, N) { t[i] = exp(x[i]) } for j in [0, N) { y[j] = t[j] + 1.0 } }";
const char kOneMap[] =
    "program p(x: f32[N]) -> (y: f32[N]) { for i in [0, N) { temp t: f32  t = exp(x[i])  y[i] = t + 1.0 } }";
const char kSharedInput[] =
    "program p(x: f32[N], z: f32[N]) -> (y: f32[N]) { temp t: f32[N] "
    "for i in [0, N) { t[i] = exp(x[i]) } for j in [0, N) { y[j] = t[j] + x[j] * z[j] } }";
const char kSoftmaxUnfused[] =
    "program p(x: f32[N, C]) -> (y: f32[N, C]) { temp m: f32[N]  temp e: f32[N, C]  temp s: f32[N] "
    "for i in [0, N) { acc a: f32 = max  for j in [0, C) { a max= x[i, j] }  m[i] = a } "
    "for i in [0, N) { for j in [0, C) { e[i, j] = exp(x[i, j] - m[i]) } } "
    "for i in [0, N) { acc a: f32 = sum  for j in [0, C) { a += e[i, j] }  s[i] = a } "
    "for i in [0, N) { for j in [0, C) { y[i, j] = e[i, j] / s[i] } } }";
const char kSoftmaxFused[] =
    "program p(x: f32[N, C]) -> (y: f32[N, C]) { for n in [0, N) { temp e: f32[C]  acc m: f32 = max "
    "for k in [0, C) { m max= x[n, k] }  acc s: f32 = sum  for c in [0, C) { e[c] = exp(x[n, c] - m)  s += e[c] } "
    "for d in [0, C) { y[n, d] = e[d] / s } } }";
const char kMatmul[] =
    "program p(a: f32[M, K], b: f32[K, N]) -> (c: f32[M, N]) { "
    "for i in [0, M) { for j in [0, N) { acc s: f32 = sum  for k in [0, K) { s += a[i, k] * b[k, j] }  c[i, j] = s } } }";
const char kMatmulOuter[] =
    "program p(a: f32[M, K], b: f32[K, N]) -> (c: f32[M, N]) { "
    "for i in [0, M) { for j in [0, N) { c[i, j] = 0.0 } } "
    "for k in [0, K) { for i in [0, M) { for j in [0, N) { c[i, j] += a[i, k] * b[k, j] } } } }";
const char kTiledMatmul[] =
    "program p(a: f32[M, K], b: f32[K, N]) -> (c: f32[M, N]) { for it in [0, M) step 8 { for jt in [0, N) step 8 { "
    "temp t: f32[8, 8]  for i in [0, 8) { for j in [0, 8) { t[i, j] = 0.0 } } "
    "for k in [0, K) { for i in [0, 8) { for j in [0, 8) { t[i, j] += a[it + i, k] * b[k, jt + j] } } } "
    "for i in [0, 8) { for j in [0, 8) { c[it + i, jt + j] = t[i, j] } } } } }";
const char kTranspose[] = "program p(x: f32[N, C]) -> (y: f32[C, N]) { temp t: f32[N, C] "
                          "for i in [0, N) { for j in [0, C) { t[i, j] = x[i, j] } } "
                          "for i in [0, C) { for j in [0, N) { y[i, j] = t[j, i] } } }";
const char kConv[] =
    "program p(x: f32[N, C, H, W], w: f32[O, C, 3, 3]) -> (y: f32[N, O, H, W]) { "
    "for n in [0, N) { for o in [0, O) { for h in [0, H) { for v in [0, W) { acc s: f32 = sum "
    "for c in [0, C) { for r in [0, 3) { for q in [0, 3) { s += x[n, c, h + r - 1, v + q - 1 | 0.0] * w[o, c, r, q] } } } "
    "y[n, o, h, v] = s } } } } }";
const char kAttention[] =
    "program p(q: f32[T, D], k: f32[S, D], v: f32[S, D]) -> (y: f32[T, D]) { for t in [0, T) { "
    "temp e: f32[S]  acc m: f32 = max  acc z: f32 = sum "
    "for s in [0, S) { acc d: f32 = sum  for c in [0, D) { d += q[t, c] * k[s, c] }  e[s] = d  m max= d } "
    "for s in [0, S) { e[s] = exp(e[s] - m)  z += e[s] } "
    "for c in [0, D) { acc o: f32 = sum  for s in [0, S) { o += e[s] * v[s, c] }  y[t, c] = o / z } } }";
const char kTriangle[] =
    "program p(x: f32[N, N]) -> (y: f32[N]) { "
    "for i in [0, N) { acc s: f32 = sum  for j in [0, i) { s += x[i, j] }  y[i] = s } }";
const char kStencil[] =
    "program p(x: f32[N, C]) -> (y: f32[N, C]) { for i in [0, N) { for j in [0, C) { "
    "y[i, j] = x[i - 1, j | 0.0] + x[i, j] + x[i + 1, j | 0.0] } } }";
const char kConcat[] =
    "program p(a: f32[N, C], b: f32[M, C]) -> (y: f32[N + M, C]) { for i in [0, N + M) { for j in [0, C) { "
    "y[i, j] = where(index(i) < index(N), a[i, j | 0.0], b[i - N, j | 0.0]) } } }";
const char kEmbedding[] = "program p(t: f32[V, D], ids: i64[N]) -> (y: f32[N, D]) { "
                          "for i in [0, N) { for d in [0, D) { y[i, d] = t[ids[i], d | 0.0] } } }";
const char kScatter[] =
    "program p(g: f32[N, D], ids: i64[N], t: shape f32[V, D]) -> (y: f32[V, D]) { "
    "for i in [0, V) { for d in [0, D) { y[i, d] = 0.0 } } "
    "for i in [0, N) { for d in [0, D) { drop y[ids[i], d] += g[i, d] } } }";
const char kHalves[] = "program p(x: f32[N], z: f32[M]) -> (y: f32[N]) { temp t: f32[N + M] "
                       "for i in [0, N) { t[i] = x[i] } for i in [0, M) { t[i + N] = z[i] } "
                       "for i in [0, N) { y[i] = t[i] + t[i + M | 0.0] } }";
const char kGlobalAccumulator[] =
    "program p(x: f32[N, C]) -> (y: f32[C], r: f32) { for j in [0, C) { y[j] = 0.0 } "
    "for i in [0, N) { for j in [0, C) { y[j] += x[i, j] } } r = 1.0 }";
const char kMixedTypes[] =
    "program p(x: f16[N]) -> (y: f64[N]) { for i in [0, N) { y[i] = f64(x[i]) } }";
const char kFlatten[] =
    "program p(x: f32[N, 4, 8]) -> (y: f32[N]) { "
    "for n in [0, N) { acc s: f32 = sum  for k in [0, 32) { s += x[n, k / 8, k % 8] }  y[n] = s } }";

const Case kCases[] = {
    {"one map", kOneMap, {{"N", 1000}}, {64, 4096, 1 << 20}, 1},
    {"two maps", kTwoMaps, {{"N", 1000}}, {64, 4096, 16384}, 1},
    {"two maps, one input", kSharedInput, {{"N", 1000}}, {64, 4096, 20000}, 1},
    {"two maps, one input, between", kSharedInput, {{"N", 1000}}, {9000, 12000, 15000}, 1.01},
    {"softmax unfused", kSoftmaxUnfused, {{"N", 16}, {"C", 50}}, {64, 1 << 16}, 1},
    {"softmax unfused, between", kSoftmaxUnfused, {{"N", 16}, {"C", 50}}, {2000, 5000, 8000}, 1.2},
    {"softmax fused", kSoftmaxFused, {{"N", 16}, {"C", 50}}, {32, 1000, 1 << 16}, 1},
    {"matmul", kMatmul, {{"M", 24}, {"N", 20}, {"K", 30}}, {64, 1 << 16}, 1},
    {"matmul, row fits", kMatmul, {{"M", 24}, {"N", 20}, {"K", 30}}, {400, 1500}, 1.02},
    {"matmul, outer product", kMatmulOuter, {{"M", 24}, {"N", 20}, {"K", 30}}, {64, 1 << 16}, 1},
    {"matmul, outer product, between",
     kMatmulOuter,
     {{"M", 24}, {"N", 20}, {"K", 30}},
     {500, 2500},
     1.1},
    {"matmul, tiled",
     kTiledMatmul,
     {{"M", 32}, {"N", 24}, {"K", 40}},
     {400, 2000, 4000, 1 << 16},
     1.2},
    {"transpose", kTranspose, {{"N", 30}, {"C", 20}}, {16, 7300, 1 << 16}, 1},
    {"transpose, between", kTranspose, {{"N", 30}, {"C", 20}}, {1000, 3000, 4000}, 1.3},
    {"conv", kConv, {{"N", 2}, {"C", 3}, {"H", 8}, {"W", 7}, {"O", 4}}, {1 << 16}, 1},
    {"conv, between",
     kConv,
     {{"N", 2}, {"C", 3}, {"H", 8}, {"W", 7}, {"O", 4}},
     {64, 250, 600, 1000},
     1.3},
    {"attention", kAttention, {{"T", 12}, {"S", 20}, {"D", 8}}, {1 << 16}, 1},
    {"attention, between", kAttention, {{"T", 12}, {"S", 20}, {"D", 8}}, {64, 200, 1000}, 1.2},
    {"triangle", kTriangle, {{"N", 40}}, {64, 1 << 16}, 1.05},
    {"stencil", kStencil, {{"N", 20}, {"C", 30}}, {1000, 1 << 16}, 1},
    {"stencil, rows do not fit", kStencil, {{"N", 20}, {"C", 30}}, {64}, 1.1},
    {"concat", kConcat, {{"N", 20}, {"M", 10}, {"C", 8}}, {64, 1 << 16}, 1.1},
    {"embedding", kEmbedding, {{"V", 50}, {"N", 30}, {"D", 8}}, {100, 1 << 16}, 1.4},
    {"scatter", kScatter, {{"V", 20}, {"N", 200}, {"D", 4}}, {100, 1 << 16}, 1.4},
    {"halves", kHalves, {{"N", 100}, {"M", 60}}, {64, 1 << 16}, 1.2},
    {"sum over rows", kGlobalAccumulator, {{"N", 20}, {"C", 30}}, {64, 1000, 1 << 16}, 1},
    {"mixed types", kMixedTypes, {{"N", 100}}, {64}, 1},
    {"flatten", kFlatten, {{"N", 10}}, {64, 1 << 16}, 1},
    {"nothing", kTwoMaps, {{"N", 0}}, {64}, 1},
};

double Ratio(double a, double b) {
  return a == b ? 1 : a == 0 || b == 0 ? INFINITY : std::max(a / b, b / a);
}

// Below `bound`, with repetitions (a step of splitmix64).
int64_t Draw(int64_t element, int64_t bound) {
  uint64_t z = (static_cast<uint64_t>(element) + 1) * 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  return static_cast<int64_t>((z >> 33) % static_cast<uint64_t>(bound));
}

TEST(BytesWalked, EstimateAgainstSimulation) {
  for (const Case& c : kCases) {
    const auto program = ParseProgram(c.program);
    ASSERT_TRUE(program.ok()) << c.name << program.status();
    ASSERT_TRUE(Verify(*program).ok()) << c.name << Verify(*program);
    const auto sized = SizedProgram::Create(*program, c.sizes);
    ASSERT_TRUE(sized.ok()) << c.name << sized.status();
    const auto gathered = [&](TensorId, int64_t element) { return Draw(element, c.sizes.at("V")); };
    for (int64_t cache : c.caches) {
      const BytesWalked estimate = EstimateBytesWalked(*sized, cache);
      const auto exact = SimulateBytesWalked(*sized, cache, gathered);
      ASSERT_TRUE(exact.ok()) << c.name << exact.status();
      const std::string figures =
          absl::StrCat(c.name, ", cache ", cache, ": loads ", estimate.loads, " for ", exact->loads,
                       ", stores ", estimate.stores, " for ", exact->stores);
      std::printf("%s\n", figures.c_str());
      EXPECT_LE(Ratio(estimate.loads, exact->loads), c.factor) << figures;
      EXPECT_LE(Ratio(estimate.stores, exact->stores), c.factor) << figures;
    }
  }
}

// Each of many blocks reads the one before and an input that all of them share: all
// in the cache, and nothing.
TEST(BytesWalked, ManyBlocks) {
  constexpr int kBlocks = 500;
  constexpr int64_t kN = 1000;
  std::string temps, blocks = "for i in [0, N) { t0[i] = x[i] } ";
  for (int b = 0; b < kBlocks; ++b) absl::StrAppend(&temps, "temp t", b, ": f32[N] ");
  for (int b = 1; b < kBlocks; ++b)
    absl::StrAppend(&blocks, "for i in [0, N) { t", b, "[i] = t", b - 1, "[i] + x[i] } ");
  const auto program =
      ParseProgram(absl::StrCat("program p(x: f32[N]) -> (y: f32[N]) { ", temps, blocks,
                                "for i in [0, N) { y[i] = t", kBlocks - 1, "[i] } }"));
  ASSERT_TRUE(program.ok()) << program.status();
  const auto sized = SizedProgram::Create(*program, {{"N", kN}});
  ASSERT_TRUE(sized.ok()) << sized.status();
  const auto begin = std::chrono::steady_clock::now();
  const BytesWalked cached = EstimateBytesWalked(*sized, int64_t{1} << 30);
  const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - begin;
  const BytesWalked uncached = EstimateBytesWalked(*sized, 64);
  std::printf("%d blocks: %.3f ms\n", kBlocks, time.count());
  EXPECT_EQ(cached.loads, 4 * kN);
  EXPECT_EQ(cached.stores, 4 * kN);
  EXPECT_EQ(uncached.loads, (2 * kBlocks) * 4 * kN);
  EXPECT_EQ(uncached.stores, (kBlocks + 1) * 4 * kN);
}

}  // namespace
}  // namespace nestor::loop
