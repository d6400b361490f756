// Contractions run in register tiles: tested for every remainder of rows, columns and sums by tiny
// tiles and blocks, for operands in every layout, every type, and reductions and values that are no
// products. Each run is held, bit for bit, against the interpreter on the scheduled program, and a
// strict one against the unfused program (tests/jit_runs.h).
#include <algorithm>
#include <cstring>
#include <iterator>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/substitute.h"
#include "gtest/gtest.h"
#include "interp/reference.h"
#include "jit/compile.h"
#include "jit/executable.h"
#include "jit/kernel.h"
#include "jit/runtime/executor.h"
#include "loop_ir/memory_plan.h"
#include "loop_ir/sized_program.h"
#include "nestor.h"
#include "tests/jit_runs.h"
#include "tests/random_programs.h"
#include "uops/dtype.h"

namespace nestor {
namespace {

struct Sizes {
  int64_t m, n, k;
};

// The extent of a letter: M, N, K; D is twice K; E is 17; W is a row over which windows of K slide
// to N places; S are columns of whole tiles, for either set; digits are themselves.
int64_t Extent(char letter, const Sizes& sizes) {
  switch (letter) {
    case 'M': return sizes.m;
    case 'N': return sizes.n;
    case 'K': return sizes.k;
    case 'W': return sizes.n + std::max<int64_t>(sizes.k - 1, 0);
    case 'S': return 48;
    case 'D': return 2 * sizes.k;
    case 'E': return 17;
    default: return letter - '0';
  }
}

struct Case {
  const char* name;
  std::string text;                                         // T stands for the type
  std::vector<std::pair<const char*, const char*>> inputs;  // names, and letters for extents
};

const std::vector<Case>& Cases() {
  static const auto& cases = *new std::vector<Case>{
      {"product",
       "op f(a: T[M, K], b: T[K, N]) -> (c) { c[i, j] = sum[k](a[i, k] * b[k, j]) }",
       {{"a", "MK"}, {"b", "KN"}}},
      {"columns of whole tiles",
       "op f(a: T[M, K], b: T[K, 48]) -> (c) { c[i, j] = sum[k](a[i, k] * b[k, j]) }",
       {{"a", "MK"}, {"b", "KS"}}},
      {"rows across",
       "op f(a: T[K, M], b: T[K, N]) -> (c) { c[i, j] = sum[k](a[k, i] * b[k, j]) }",
       {{"a", "KM"}, {"b", "KN"}}},
      {"columns along the sum",
       "op f(a: T[M, K], b: T[N, K]) -> (c) { c[i, j] = sum[k](a[i, k] * b[j, k]) }",
       {{"a", "MK"}, {"b", "NK"}}},
      {"transposed result",
       "op f(a: T[M, K], b: T[K, N]) -> (c) { c[j, i] = sum[k](a[i, k] * b[k, j]) }",
       {{"a", "MK"}, {"b", "KN"}}},
      {"batches",
       "op f(a: T[2, M, K], b: T[2, K, N]) -> (c) { c[g, i, j] = sum[k](a[g, i, k] * b[g, k, j]) }",
       {{"a", "2MK"}, {"b", "2KN"}}},
      {"batches of one operand",
       "op f(a: T[2, 3, M, K], b: T[3, K, N]) -> (c) { c[g, h, i, j] = sum[k](a[g, h, i, k] * b[h, k, j]) }",
       {{"a", "23MK"}, {"b", "3KN"}}},
      {"gated product",
       "op f(a: T[M, K], b: T[K, N]) -> (c) { c[i, j] = sum[k](mulz(a[i, k], b[k, j])) }",
       {{"a", "MK"}, {"b", "KN"}}},
      {"two sums",
       "op f(a: T[M, K, 3], b: T[K, 3, N]) -> (c) { c[i, j] = sum[k, l](a[i, k, l] * b[k, l, j]) }",
       {{"a", "MK3"}, {"b", "K3N"}}},
      {"windows",
       "op f(x: T[2, W], w: T[M, 2, K]) -> (y) { y[o, i] = sum[c, r](x[c, i + r] * w[o, c, r]) where o < M, i < W - K + 1 }",
       {{"x", "2W"}, {"w", "M2K"}}},
      {"padded windows",
       "op f(x: T[N], w: T[M, K]) -> (y) { y[o, i] = sum[r](x[i + r - 1 | 0] * w[o, r]) where o < M, i < N }",
       {{"x", "N"}, {"w", "MK"}}},
      {"windows of three",
       "op f(x: T[2, N], w: T[M, 2, 3]) -> (y) { y[o, i] = sum[c, r](x[c, i + r - 1 | 0] * w[o, c, r]) where o < M, i < N }",
       {{"x", "2N"}, {"w", "M23"}}},
      {"short rows",
       "op f(x: T[2, M, 8], w: T[N, 2, 3, K]) -> (y) "
       "{ y[o, h, i] = sum[c, q, r](x[c, h + q - 1, i + r - 1 | 0] * w[o, c, q, r]) where o < N, h < M, i < 8 }",
       {{"x", "2M8"}, {"w", "N23K"}}},
      {"strips of an image",
       "op f(x: T[2, M, K], w: T[N, 2, 3, 3]) -> (y) "
       "{ y[o, h, i] = sum[c, q, r](x[c, h + q - 1, i + r - 1 | 0] * w[o, c, q, r]) where o < N, h < M, i < K }",
       {{"x", "2MK"}, {"w", "N233"}}},
      {"windows of an image, channels last",
       "op f(x: T[M, 4, K], w: T[N, K, 3, 2]) -> (y) "
       "{ y[h, i, o] = sum[c, q, r](x[h + q - 1, i + r - 1, c | 0] * w[o, c, q, r]) where o < N, h < M, i < 4 }",
       {{"x", "M4K"}, {"w", "NK32"}}},
      {"strips of an image, a row and a column left out",
       "op f(x: T[3, 2, M, 9], w: T[N, 2, 3, 2]) -> (y) "
       "{ y[n, o, h, i] = sum[c, q, r](x[n, c, 2 * h + q - 1, 2 * i + r | 0] * w[o, c, q, r]) where o < N, h < (M + 1) / 2, i < 4 }",
       {{"x", "32M9"}, {"w", "N232"}}},
      {"elements of a window",
       "op f(g: T[2, M, 3, K], x: T[2, N, 3, K]) -> (y) "
       "{ y[o, c, q, r] = sum[b, h, i](g[b, o, h, i] * x[b, c, h + q - 1, i + r - 1 | 0]) where q < 3, r < 2 }",
       {{"g", "2M3K"}, {"x", "2N3K"}}},
      {"bounds that move",
       "op f(g: T[M, 3, 6], w: T[3, N, K]) -> (y) { y[i, c, j + r]: T[M, N, K + 5] += g[i, o, j] * w[o, c, r] }",
       {{"g", "M36"}, {"w", "3NK"}}},
      {"bounds that move twice",
       "op f(g: T[3, M, 6], w: T[3, N, 3, K]) -> (y) { y[c, h + q, j + r]: T[N, M + 2, K + 5] += g[o, h, j] * w[o, c, q, r] }",
       {{"g", "3M6"}, {"w", "3N3K"}}},
      {"every second, scattered",
       "op f(g: T[3, 2, N], w: T[3, M, 3, K]) -> (y) { y[c, 2*h + q, 2*j + r]: T[M, 6, 2*N + K] += g[o, h, j] * w[o, c, q, r] }",
       {{"g", "32N"}, {"w", "3M3K"}}},
      {"every second row and column, of a temporary",
       "op f(a: T[3, K], x: T[K, 2, N], w: T[M, 3]) -> (y) "
       "{ u[c, h, i] = sum[k](a[c, k] * x[k, h, i]); y[o, 2*h, 2*i]: T[M, 4, 2*N] += w[o, c] * u[c, h, i] }",
       {{"a", "3K"}, {"x", "K2N"}, {"w", "M3"}}},
      {"every second",
       "op f(x: T[N], w: T[M, K]) -> (y) { y[o, i] = sum[r](x[2 * i + r | 0] * w[o, r]) where o < M, i < N / 2 }",
       {{"x", "N"}, {"w", "MK"}}},
      {"distances",
       "op f(a: T[M, K], b: T[K, N]) -> (c) { c[i, j] = sum[k]((a[i, k] - b[k, j]) * (a[i, k] - b[k, j])) }",
       {{"a", "MK"}, {"b", "KN"}}},
      {"longest path",
       "op f(a: T[M, K], b: T[K, N]) -> (c) { c[i, j] = max[k](min(a[i, k], b[k, j])) }",
       {{"a", "MK"}, {"b", "KN"}}},
      {"three operands",
       "op f(a: T[M, K], b: T[K, N], d: T[K]) -> (c) { c[i, j] = sum[k](a[i, k] * d[k] * b[k, j]) }",
       {{"a", "MK"}, {"b", "KN"}, {"d", "K"}}},
      {"what follows the sum",
       "op f(a: T[M, K], b: T[K, N], d: T[N], e: T[M, N]) -> (c, r) "
       "{ s[i, j] = sum[k](a[i, k] * b[k, j]) + d[j]; c[i, j] = max(s[i, j], T(0)); r[i, j] = s[i, j] * e[i, j] }",
       {{"a", "MK"}, {"b", "KN"}, {"d", "N"}, {"e", "MN"}}},
      // So few columns or rows that long sums run in lanes.
      {"three columns",
       "op f(a: T[M, K], b: T[K, 3]) -> (c) { c[i, j] = sum[k](a[i, k] * b[k, j]) }",
       {{"a", "MK"}, {"b", "K3"}}},
      {"five rows, batches, and what follows",
       "op f(a: T[2, 5, K], b: T[2, N, K], d: T[N]) -> (c) { c[g, i, j] = max(sum[k](a[g, i, k] * b[g, j, k]) + d[j], T(0)) }",
       {{"a", "25K"}, {"b", "2NK"}, {"d", "N"}}},
      {"two columns, rows across",
       "op f(a: T[K, M], b: T[2, K]) -> (c) { c[i, j] = sum[k](a[k, i] * b[j, k]) }",
       {{"a", "KM"}, {"b", "2K"}}},
      // Sums whose bounds depend on the row.
      {"lower triangle of rows",
       "op f(a: T[M, K], b: T[K, N]) -> (c) { c[i, j] = sum[k](a[i, k if k <= i] * b[k, j if k <= i]) }",
       {{"a", "MK"}, {"b", "KN"}}},
      {"upper triangle of rows",
       "op f(a: T[M, K], b: T[K, N]) -> (c) { c[i, j] = sum[k](a[i, k if k + 1 >= i] * b[k, j if k + 1 >= i]) }",
       {{"a", "MK"}, {"b", "KN"}}},
      {"band of rows across",
       "op f(a: T[K, M], b: T[N, K]) -> (c) { c[i, j] = sum[k](a[k, i if k < i + 3, i < k + 6] * b[j, k if k < i + 3, i < k + 6]) }",
       {{"a", "KM"}, {"b", "NK"}}},
      {"lower triangle of batches across",
       "op f(a: T[2, K, M], b: T[2, K, N]) -> (c) { c[g, i, j] = sum[k](a[g, k, i if k >= i] * b[g, k, j if k >= i]) }",
       {{"a", "2KM"}, {"b", "2KN"}}},
      // Chains, which run in strips of rows.
      {"rows less their greatest",
       "op f(a: T[M, K], b: T[K, N]) -> (y) { c[i, j] = sum[k](a[i, k] * b[k, j]); y[i, j] = c[i, j] - max[l](c[i, l]) }",
       {{"a", "MK"}, {"b", "KN"}}},
      {"greatest of a row",
       "op f(a: T[M, K], b: T[N, K]) -> (m) { m[i] = max[j](sum[k](a[i, k] * b[j, k])) }",
       {{"a", "MK"}, {"b", "NK"}}},
      {"place of the least",
       "op f(a: T[M, K], b: T[N, K]) -> (m) { m[i] = argmin[j](sum[k](a[i, k] * b[j, k]) + a[i, 0 | 0]) }",
       {{"a", "MK"}, {"b", "NK"}}},
      {"rows at first",
       "op f(a: T[M, K], b: T[K, N]) -> (y) { h[i, k] = a[i, k] - max[l](a[i, l]); y[i, j] = sum[k](h[i, k] * b[k, j]) }",
       {{"a", "MK"}, {"b", "KN"}}},
      {"lower triangle",
       "op f(a: T[M, K], b: T[N, K], d: T[N, 3]) -> (y) { s[i, j] = sum[k](a[i, k] * b[j, k]); "
       "h[i, j] = where(j <= i, s[i, j] - max[l](where(l <= i, s[i, l], T(0))), T(0)); y[i, e] = sum[j](h[i, j] * d[j, e]) }",
       {{"a", "MK"}, {"b", "NK"}, {"d", "N3"}}},
      {"lower triangle of computed columns",
       "op f(a: T[M, K], b: T[N, K], w: T[K, K]) -> (y) { u[j, k] = sum[l](b[j, l] * w[l, k]); s[i, j] = sum[k](a[i, k] * u[j, k]); "
       "h[i, j] = where(j <= i, s[i, j] - max[l](where(l <= i, s[i, l], T(0))), T(0)); y[i, e] = sum[j](h[i, j] * u[j, e]) }",
       {{"a", "MK"}, {"b", "NK"}, {"w", "KK"}}},
      {"two triangles",
       "op f(a: T[M, K], b: T[N, K], d: T[N, K]) -> (y) { s[i, j] = where(j <= i, sum[k](a[i, k] * b[j, k]), T(0)); "
       "h[i, j] = s[i, j] - max[l](s[i, l]); y[i, e] = sum[j](h[i, j if j <= i] * d[j, e if j <= i]) }",
       {{"a", "MK"}, {"b", "NK"}, {"d", "NK"}}},
      {"upper triangle",
       "op f(a: T[M, K], b: T[K, N]) -> (m) { s[i, j] = sum[k](a[i, k] * b[k, j]); m[i] = max[j](where(i < j + 2, s[i, j], T(0))) }",
       {{"a", "MK"}, {"b", "KN"}}},
      {"two products",
       "op f(a: T[M, K], b: T[K, N], d: T[N, K]) -> (y) { h[i, j] = max(sum[k](a[i, k] * b[k, j]), T(0)); y[i, l] = sum[j](h[i, j] * d[j, l]) }",
       {{"a", "MK"}, {"b", "KN"}, {"d", "NK"}}},
      {"two products of batches, with rows between",
       "op f(a: T[2, M, K], b: T[2, N, K], d: T[2, N, K]) -> (y) { h[g, i, j] = sum[k](a[g, i, k] * b[g, j, k]); "
       "p[g, i, j] = h[g, i, j] - max[l](h[g, i, l]); y[g, i, l] = sum[j](p[g, i, j] * d[g, j, l]) }",
       {{"a", "2MK"}, {"b", "2NK"}, {"d", "2NK"}}},
      {"rows of heads",
       "op f(a: T[M, K], b: T[2, N, K], d: T[2, N, K]) -> (y) { h[i, k] = a[i, k] - max[l](a[i, l]); "
       "s[i, g, j] = sum[k](h[i, k] * b[g, j, k]); p[i, g, j] = s[i, g, j] - max[l](s[i, g, l]); "
       "y[i, g, e] = sum[j](p[i, g, j] * d[g, j, e]) + h[i, e] }",
       {{"a", "MK"}, {"b", "2NK"}, {"d", "2NK"}}},
      {"triangles of heads",
       "op f(a: T[M, K], b: T[2, N, K], d: T[2, N, K]) -> (y) { h[i, k] = a[i, k] - max[l](a[i, l]); "
       "s[i, g, j] = where(j <= i, sum[k](h[i, k] * b[g, j, k]), T(0)); p[i, g, j] = s[i, g, j] - max[l](s[i, g, l]); "
       "y[i, g, e] = sum[j](p[i, g, j if j <= i] * d[g, j, e if j <= i]) }",
       {{"a", "MK"}, {"b", "2NK"}, {"d", "2NK"}}},
      // Functions of a product, beside it.
      {"sums over rows",
       "op f(a: T[M, K], b: T[K, N]) -> (y, g, h) { y[i, j] = max(sum[k](a[i, k] * b[k, j]), T(0)); "
       "g[j] = sum[i](y[i, j]); h[i] = sum[j](y[i, j]) }",
       {{"a", "MK"}, {"b", "KN"}}},
      {"many operations on a sum",
       "op f(a: T[M, K], b: T[K, N], d: T[N], e: T[N]) -> (y) { s[i, j] = sum[k](a[i, k] * b[k, j]); "
       "p[i, j] = max(min(max(min(max(min(s[i, j], d[j]), e[j]) + d[j], e[j]), d[j]) + e[j], d[j]), e[j]); "
       "y[i, j] = max(min(max(min(max(min(p[i, j], e[j]), d[j]) + e[j], d[j]), e[j]) + d[j], e[j]), d[j]) }",
       {{"a", "MK"}, {"b", "KN"}, {"d", "N"}, {"e", "N"}}},
  };
  return cases;
}

// Sums q[i, j], made in some ways, of which some elements, or their signs alone, are used. Passes that
// keep sums in memory, or take a copy for a sum, must keep the masks.
std::vector<Case> PartlyUsedCases() {
  const std::vector<Case> sums = {
      {"product",
       "a: T[M, K], b: T[K, N]) -> ($0) { q[i, j] = sum[k](a[i, k] * b[k, j])",
       {{"a", "MK"}, {"b", "KN"}}},
      {"columns along the sum",
       "a: T[M, K], b: T[N, K]) -> ($0) { q[i, j] = sum[k](a[i, k] * b[j, k])",
       {{"a", "MK"}, {"b", "NK"}}},
      {"three columns",
       "a: T[M, K], b: T[K, 3]) -> ($0) { q[i, j] = sum[k](a[i, k] * b[k, j])",
       {{"a", "MK"}, {"b", "K3"}}},
      {"triangle",
       "a: T[M, M], b: T[M, N]) -> ($0) { q[i, j] = sum[k](a[i, k if k <= i] * b[k, j])",
       {{"a", "MM"}, {"b", "MN"}}},
      {"windows of three",
       "x: T[2, N], w: T[M, 2, 3]) -> ($0) "
       "{ q[i, j] = sum[c, r](x[c, j + r - 1 | 0] * w[i, c, r]) where i < M, j < N",
       {{"x", "2N"}, {"w", "M23"}}},
  };
  constexpr std::pair<const char*, const char*> kUses[] = {
      {"y", "y[i, j] = q[i, j if (i + j) % 2 == 1]"},
      {"y", "y[j, i] = q[i, j if j % 2 == 1]"},
      {"y", "y[i, j] = where(q[i, j] > T(0), T(1), T(0))"},
      {"y, z", "y[i, j] = q[i, j if j % 2 == 1]; z[j] = sum[i](q[i, j])"},
      {"y, z", "y[i, j] = q[i, j if j % 2 == 1]; z[i] = max[j](q[i, j])"},
      {"q, z", "z[j] = sum[i](q[i, j if j % 2 == 1])"},
      {"q, z", "z[i] = sum[j](q[i, j if j > 2])"},
  };
  std::vector<Case> cases = {
      {"bounds that move, and signs",
       "op f(g: T[M, 3, 6], w: T[3, N, K]) -> (y) {"
       " s[i, c, j + r]: T[M, N, K + 5] += g[i, o, j] * w[o, c, r];"
       " y[i, c, j] = where(s[i, c, j] > T(0), T(1), T(0)) }",
       {{"g", "M36"}, {"w", "3NK"}}},
  };
  for (const Case& sum : sums) {
    for (const auto& [results, use] : kUses) {
      const std::string op = absl::StrCat("op f(", sum.text, "; ", use, " }");
      cases.push_back({sum.name, absl::Substitute(op, results), sum.inputs});
    }
  }
  return cases;
}

// Layers whose weights are bound: the axes of the tensors between them are laid out for that.
const std::vector<Case>& LayerCases() {
  static const auto& cases = *new std::vector<Case>{
      {"points, windows, and what was before",
       "op f(x: T[2, 3, M, K], w: T[N, 3], v: T[17, N, 3, 3], u: T[N, 17], d: T[N]) -> (y) { "
       "a[b, o, h, i] = max(sum[c](x[b, c, h, i] * w[o, c]), T(0)); "
       "e[b, o, h, i] = sum[c, q, r](a[b, c, h + q - 1, i + r - 1 | 0] * v[o, c, q, r]) where h < M, i < K; "
       "y[b, o, h, i] = max(sum[c](e[b, c, h, i] * u[o, c]) + d[o] + a[b, o, h, i], T(0)) }",
       {{"x", "23MK"}, {"w", "N3"}, {"v", "EN33"}, {"u", "NE"}, {"d", "N"}}},
      {"every second point, and means",
       "op f(x: T[2, 3, M, K], w: T[N, 3], v: T[17, N], u: T[N, 17]) -> (y, m) { "
       "a[b, o, h, i] = sum[c](x[b, c, h, i] * w[o, c]); "
       "e[b, o, h, i] = max(sum[c](a[b, c, 2*h, 2*i] * v[o, c]), T(0)) where h < (M + 1)/2, i < (K + 1)/2; "
       "s[b, o, h, i] = sum[c](e[b, c, h, i] * u[o, c]); "
       "y[b, o, h, i] = s[b, o, h, i] * max(s[b, o, h, i], T(1)); m[b, o] = sum[h, i](y[b, o, h, i]) }",
       {{"x", "23MK"}, {"w", "N3"}, {"v", "EN"}, {"u", "NE"}}},
      {"points, greatest of windows",
       "op f(x: T[2, 3, M, K], w: T[N, 3], v: T[17, N], u: T[N, 17]) -> (y) { "
       "a[b, o, h, i] = sum[c](x[b, c, h, i] * w[o, c]); e[b, o, h, i] = sum[c](a[b, c, h, i] * v[o, c]); "
       "p[b, o, h, i] = max[q, r](e[b, o, h + q - 1, i + r - 1 | 0]) where h < M, i < K, q < 3, r < 3; "
       "y[b, o, h, i] = sum[c](p[b, c, h, i] * u[o, c]) }",
       {{"x", "23MK"}, {"w", "N3"}, {"v", "EN"}, {"u", "NE"}}},
  };
  return cases;
}

// Elements that are converted as they are read: S is a wider type, in which sums are computed. For
// integers, two steps of a sum lie in a word.
const std::vector<Case>& WideCases() {
  static const auto& cases = *new std::vector<Case>{
      {"product",
       "op f(a: T[M, K], b: T[K, N]) -> (c) { c[i, j] = sum[k](S(a[i, k]) * S(b[k, j])) }",
       {{"a", "MK"}, {"b", "KN"}}},
      {"rows across",
       "op f(a: T[K, M], b: T[K, N]) -> (c) { c[i, j] = sum[k](S(a[k, i]) * S(b[k, j])) }",
       {{"a", "KM"}, {"b", "KN"}}},
      {"columns along the sum",
       "op f(a: T[M, K], b: T[N, K]) -> (c) { c[i, j] = sum[k](S(a[i, k]) * S(b[j, k])) }",
       {{"a", "MK"}, {"b", "NK"}}},
      {"batches, a part of the sum",
       "op f(a: T[2, M, K], b: T[2, K, N]) -> (c) "
       "{ c[g, i, j] = sum[k](S(a[g, i, k + 1]) * S(b[g, k + 1, j])) where k < max(K - 2, 0) }",
       {{"a", "2MK"}, {"b", "2KN"}}},
      {"less zero points",
       "op f(a: T[M, K], b: T[K, N]; $p = 3 in [0, 255], $q = -2 in [-128, 127]) -> (c) "
       "{ c[i, j] = sum[k]((S(a[i, k]) - S($p)) * (S(b[k, j]) - S($q))) }",
       {{"a", "MK"}, {"b", "KN"}}},
      {"two sums, one step over",
       "op f(a: T[M, K, 3], b: T[K, 3, N]) -> (c) { c[i, j] = sum[k, l](S(a[i, k, l]) * S(b[k, l, j])) }",
       {{"a", "MK3"}, {"b", "K3N"}}},
      {"padded windows",
       "op f(x: T[K, 4, N], w: T[M, K, 3, 3]) -> (y) "
       "{ y[o, h, i] = sum[c, q, r](S(x[c, h + q - 1, i + r - 1 | 0]) * S(w[o, c, q, r])) where o < M, h < 4, i < N }",
       {{"x", "K4N"}, {"w", "MK33"}}},
      {"padded windows, less zero points",
       "op f(x: T[K, 4, N], w: T[M, K, 3, 3]; $p = 3 in [0, 255], $q = -2 in [-128, 127]) -> (y) "
       "{ y[o, h, i] = sum[c, q, r]((S(x[c, h + q - 1, i + r - 1 | 0]) - S($p)) * (S(w[o, c, q, r]) - S($q))) where o < M, h < 4, i < N }",
       {{"x", "K4N"}, {"w", "MK33"}}},
      {"elements at a distance, the last column's at the end",
       "op f(a: T[M, K], b: T[K, 17]) -> (c) "
       "{ c[i, j] = sum[k](S(a[i, k]) * (S(b[k, j]) + S(b[k, j + 2]))) where i < M, j < 15 }",
       {{"a", "MK"}, {"b", "KE"}}},
      {"windows of groups",
       "op f(x: T[2*K, N], w: T[M, K, 3]) -> (y) "
       "{ y[o, i] = sum[c, r](S(x[o / ((M + 1) / 2) * K + c, i + r - 1 | 0]) * S(w[o, c, r])) where o < M, i < N }",
       {{"x", "DN"}, {"w", "MK3"}}},
  };
  return cases;
}

// Tiles of four rows and two vectors, blocks of two tiles and two steps, strips of five rows.
jit::CompileOptions TinyTiles() {
  jit::CompileOptions options;
  options.executor = &jit::InlineExecutor();
  options.schedule.contractions.rows = 4;
  options.schedule.contractions.vectors = 2;
  options.schedule.contractions.sum_block = 2;
  options.schedule.contractions.row_block = 2;
  options.schedule.contractions.column_block = 2;
  options.schedule.contractions.many_elements = 150;
  options.schedule.strips.rows = 5;
  // Of variants, only versions of the loops.
  options.size_classes = {/*largest_constant=*/0, /*short_row=*/0, /*least_work=*/0,
                          /*variants=*/1000};
  return options;
}

// Some elements become values whose products show in every sum, or that sums lose.
void MixSpecial(std::mt19937_64& random, Tensor& tensor) {
  constexpr float kInf = std::numeric_limits<float>::infinity(),
                  kTiny = std::numeric_limits<float>::denorm_min();
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kSpecial[] = {0, -0.0f, kInf, -kInf, kNan, kTiny, -kTiny, -1e-30f};
  for (float& value : tensor.values<float>()) {
    if (random() % 4 == 0) value = kSpecial[random() % std::size(kSpecial)];
  }
}

enum class Values { kPlain, kSpecial };  // special: only for f32

absl::StatusOr<Op> OpOf(const Case& c, DType type) {
  const std::string name(Name(type)), wide = IsFloat(type) ? "f32" : "i32";
  return Parse(absl::StrReplaceAll(c.text, {{"T[", absl::StrCat(name, "[")},
                                            {"T(", absl::StrCat(name, "(")},
                                            {"S(", absl::StrCat(wide, "(")}}));
}

// The inputs in the order of the case's.
std::vector<Tensor> Draw(const Case& c, DType type, const Sizes& sizes, Values values,
                         std::mt19937_64& random) {
  std::vector<Tensor> drawn;
  for (const auto& [name, letters] : c.inputs) {
    Dims shape;
    for (const char letter : std::string(letters)) shape.push_back(Extent(letter, sizes));
    drawn.push_back(DrawTensor(type, shape, random));
    if (values == Values::kSpecial) MixSpecial(random, drawn.back());
  }
  return drawn;
}

// The inputs are views of `drawn`.
RunInputs Named(const Case& c, const std::vector<Tensor>& drawn) {
  RunInputs inputs;
  for (size_t i = 0; i < drawn.size(); ++i) inputs.tensors[c.inputs[i].first] = drawn[i];
  return inputs;
}

std::string At(const Sizes& sizes, absl::string_view finding) {
  return absl::StrCat("m ", sizes.m, ", n ", sizes.n, ", k ", sizes.k, ": ", finding);
}

Finding CheckCase(const Case& c, DType type, const jit::CompileOptions& options,
                  const std::vector<Sizes>& all, bool bounded, Values values = Values::kPlain) {
  const auto op = OpOf(c, type);
  if (!op.ok()) return op.status().ToString();
  const auto compiled = CompiledVariants::Compile(Lower(*op), options);
  if (!compiled.ok()) return compiled.status().ToString();
  std::mt19937_64 random(static_cast<uint64_t>(type));
  Counts counts;
  const JitRunOptions runs[] = {{GuardedMemory::Side::kEnd}, {GuardedMemory::Side::kBegin}};
  for (const Sizes& sizes : all) {
    const std::vector<Tensor> drawn = Draw(c, type, sizes, values, random);
    const Finding finding =
        compiled->Check(Named(c, drawn), runs, bounded && IsFloat(type), counts);
    if (finding) return At(sizes, *finding);
  }
  return absl::nullopt;
}

// The executable with all inputs but the first bound, called twice in one workspace: values
// computed from bound inputs alone are kept for the second call.
Finding CheckBound(const CompiledVariants::Variant& variant, const Case& c,
                   const std::vector<Tensor>& drawn, const std::vector<Tensor>& unfused,
                   const std::vector<ReferenceTensor>& bounds, Counts& counts) {
  std::shared_ptr<const jit::Executable> bound = variant.executable;
  for (size_t i = 1; i < drawn.size(); ++i) {
    auto next = bound->Bind(c.inputs[i].first, drawn[i]);
    if (!next.ok()) return next.status().ToString();
    bound = *std::move(next);
  }
  jit::Workspace workspace;
  for (const char* call : {" first call", " second call"}) {
    std::vector<Tensor> results = unfused;
    for (Tensor& result : results)
      std::memset(result.data(), 0x55, static_cast<size_t>(result.num_bytes()));
    const TensorView inputs[] = {drawn[0]};
    const std::vector<TensorView> outputs(results.begin(), results.end());
    const absl::Status status = bound->Run({inputs, outputs}, &workspace);
    const Results got = status.ok() ? Results(std::move(results)) : Results(status);
    const std::string what = absl::StrCat(Describe(variant.options, {}), call);
    Finding finding = variant.options.mode == jit::Mode::kStrict
                          ? Compare(unfused, got, what, counts)
                          : CompareWithBounds(bounds, got);
    if (finding) return absl::StrCat(what, ": ", *finding);
  }
  return absl::nullopt;
}

Finding CheckBoundCase(const Case& c, const jit::CompileOptions& options,
                       const std::vector<Sizes>& all, Values values) {
  const auto op = OpOf(c, DType::kF32);
  if (!op.ok()) return op.status().ToString();
  const auto compiled = CompiledVariants::Compile(Lower(*op), options);
  if (!compiled.ok()) return compiled.status().ToString();
  std::mt19937_64 random(1);
  Counts counts;
  for (const Sizes& sizes : all) {
    const std::vector<Tensor> drawn = Draw(c, DType::kF32, sizes, values, random);
    const RunInputs inputs = Named(c, drawn);
    const Results unfused = Run(compiled->unfused(), inputs);
    const auto bounds = InterpretReference(compiled->unfused(), inputs);
    if (!unfused.ok() || !bounds.ok()) continue;  // the inputs are refused
    for (const CompiledVariants::Variant& variant : compiled->variants()) {
      if (Finding finding = CheckBound(variant, c, drawn, *unfused, *bounds, counts))
        return At(sizes, *finding);
    }
  }
  return absl::nullopt;
}

// Up to two blocks of rows and one more, columns around vectors of both sets, sums around
// blocks.
std::vector<Sizes> AllRemainders() {
  std::vector<Sizes> all;
  for (int64_t m = 0; m <= 17; ++m) {
    for (const int64_t n : {0, 1, 7, 8, 9, 15, 16, 17, 31, 32, 33, 47, 48, 49, 63, 64, 65, 130})
      all.push_back({m, n, 3});
  }
  for (int64_t k = 0; k <= 9; ++k) all.push_back({7, 33, k});
  for (const int64_t k : {17, 40, 90}) all.push_back({83, 20, k});  // triangles
  // Few rows, many columns and long sums: other operands are packed where both lie along the sum.
  for (const Sizes& sizes : {Sizes{1, 16, 7}, {2, 17, 12}, {3, 33, 40}, {5, 64, 30}, {6, 130, 33}})
    all.push_back(sizes);
  return all;
}

TEST(JitContractions, EveryRemainder) {
  for (const Case& c : Cases()) {
    const Finding finding =
        CheckCase(c, DType::kF32, TinyTiles(), AllRemainders(), /*bounded=*/false);
    EXPECT_FALSE(finding.has_value()) << c.name << ": " << *finding;
  }
}

TEST(JitContractions, EveryType) {
  for (const DType type : AllTypes()) {
    if (type == DType::kBool) continue;
    for (const Case& c : Cases()) {
      const Finding finding =
          CheckCase(c, type, TinyTiles(), {{0, 5, 2}, {4, 18, 3}, {11, 70, 5}}, /*bounded=*/true);
      EXPECT_FALSE(finding.has_value()) << c.name << " of " << Name(type) << ": " << *finding;
    }
  }
}

TEST(JitContractions, ConvertedElements) {
  std::vector<Sizes> all = {{0, 5, 2},   {4, 18, 0},  {4, 18, 1},   {3, 20, 5},
                            {11, 70, 4}, {11, 70, 5}, {21, 33, 32}, {9, 100, 31}};
  for (const DType type :
       {DType::kI8, DType::kU8, DType::kI16, DType::kU16, DType::kBF16, DType::kF16}) {
    for (const Case& c : WideCases()) {
      const Finding finding = CheckCase(c, type, TinyTiles(), all, /*bounded=*/true);
      EXPECT_FALSE(finding.has_value()) << c.name << " of " << Name(type) << ": " << *finding;
    }
  }
}

// The tiles and blocks that programs get.
TEST(JitContractions, DefaultTiles) {
  jit::CompileOptions options;
  options.executor = &jit::InlineExecutor();
  for (const Case& c : Cases()) {
    const Finding finding = CheckCase(
        c, DType::kF32, options, {{3, 20, 4}, {4, 20, 4}, {45, 70, 9}, {70, 300, 2}, {9, 50, 800}},
        /*bounded=*/false);
    EXPECT_FALSE(finding.has_value()) << c.name << ": " << *finding;
  }
}

TEST(JitContractions, PartlyUsedResults) {
  jit::CompileOptions options;
  options.executor = &jit::InlineExecutor();
  const std::vector<Sizes> all = {{3, 20, 4}, {17, 33, 3}};
  for (const Case& c : PartlyUsedCases()) {
    Finding finding = CheckCase(c, DType::kF32, options, all, /*bounded=*/false);
    EXPECT_FALSE(finding.has_value()) << c.text << ": " << *finding;
    finding = CheckBoundCase(c, options, all, Values::kSpecial);
    EXPECT_FALSE(finding.has_value()) << c.text << ", bound: " << *finding;
  }
}

// Around whole tiles of rows and whole vectors of steps, and where sums are too short.
TEST(JitContractions, FewColumnsSumInLanes) {
  constexpr absl::string_view kNames[] = {"three columns", "five rows, batches, and what follows",
                                          "two columns, rows across"};
  std::vector<Sizes> all;
  for (const int64_t rows : {0, 1, 4, 5, 7, 8, 9, 17}) {
    for (int64_t k = 63; k <= 80; ++k) all.push_back({rows, rows, k});
    for (const int64_t k : {0, 1, 15, 16, 31}) all.push_back({rows, rows, k});
  }
  jit::CompileOptions options;
  options.executor = &jit::InlineExecutor();
  for (const DType type : {DType::kF32, DType::kF64, DType::kBF16, DType::kI32}) {
    for (const Case& c : Cases()) {
      if (!absl::c_linear_search(kNames, c.name)) continue;
      const Finding finding = CheckCase(c, type, options, all, /*bounded=*/true);
      EXPECT_FALSE(finding.has_value()) << c.name << " of " << Name(type) << ": " << *finding;
    }
  }
}

// Gated products are 0 where a factor is, whatever the other one, and places outside of an operand
// have no product: few special elements, so that some sums have no NaN, and zeros, infinities and
// values that underflow in any order.
TEST(JitContractions, SpecialValues) {
  constexpr absl::string_view kNames[] = {
      "product",          "gated product",          "windows of three",
      "bounds that move", "bounds that move twice", "every second, scattered"};
  for (const Case& c : Cases()) {
    if (!absl::c_linear_search(kNames, c.name)) continue;
    const Finding finding =
        CheckCase(c, DType::kF32, TinyTiles(), AllRemainders(), /*bounded=*/true, Values::kSpecial);
    EXPECT_FALSE(finding.has_value()) << c.name << ": " << *finding;
  }
}

// Separate schedules for inputs that are bound, for all sizes and for each class of them.
TEST(JitContractions, BoundInputs) {
  jit::CompileOptions options = TinyTiles();
  options.size_classes = {};
  options.size_classes.least_work = 0;
  const std::vector<Sizes> all = {{4, 18, 3}, {5, 9, 4}, {11, 33, 5}, {1, 1, 1},
                                  {2, 20, 2}, {6, 7, 3}, {9, 40, 10}, {0, 5, 2}};
  std::vector<Case> cases = Cases();
  absl::c_copy(LayerCases(), std::back_inserter(cases));
  for (const Case& c : cases) {
    for (const Values values : {Values::kPlain, Values::kSpecial}) {
      const Finding finding = CheckBoundCase(c, options, all, values);
      EXPECT_FALSE(finding.has_value()) << c.name << ": " << *finding;
    }
  }
}

// Blocks of rows and of columns are cut into pieces together.
TEST(JitContractions, Threads) {
  const std::unique_ptr<jit::Executor> pool = jit::NewThreadPool(3);
  jit::CompileOptions options = TinyTiles();
  options.executor = pool.get();
  options.least_parallel_bytes = 0;
  for (const Case& c : Cases()) {
    const Finding finding = CheckCase(
        c, DType::kF32, options, {{3, 20, 4}, {8, 40, 4}, {25, 150, 5}, {70, 33, 3}, {6, 300, 2}},
        /*bounded=*/false);
    EXPECT_FALSE(finding.has_value()) << c.name << ": " << *finding;
  }
}

// Copies of operands take about as much memory as the operands, whatever loops run over them.
TEST(JitContractions, CopiesStaySmall) {
  const struct {
    const char* text;
    absl::flat_hash_map<std::string, int64_t> sizes;
  } kCases[] = {
      {"op f(x: f32[W], w: f32[M, K]) -> (y) { y[o, i] = sum[r](x[i + r] * w[o, r]) where i < W - K + 1 }",
       {{"W", 40000}, {"M", 8}, {"K", 20000}}},
      {"op f(x: f32[N], w: f32[M, K]) -> (y) { y[o, i] = sum[r](x[i] * w[o, r]) }",
       {{"N", 40000}, {"M", 8}, {"K", 20000}}},
      {"op f(x: f32[W], w: f32[M, K]) -> (y) { y[o, i] = sum[r](x[4294967296*i + r] * w[o, r]) where i < 8 }",
       {{"W", 40000}, {"M", 8}, {"K", 20000}}},
      {"op f(a: f32[M, K], b: f32[K, N]) -> (c) { c[i, j] = sum[k](a[i, k] * b[k, j]) }",
       {{"M", 2000}, {"K", 2000}, {"N", 2000}}},
  };
  for (const auto& c : kCases) {
    const auto op = Parse(c.text);
    ASSERT_TRUE(op.ok()) << op.status();
    const auto executable = jit::Compile(Lower(*op));
    ASSERT_TRUE(executable.ok()) << executable.status();
    const auto kernel =
        (*executable)->KernelAt([&](const std::string& name) -> absl::optional<int64_t> {
          return c.sizes.at(name);
        });
    ASSERT_TRUE(kernel.ok()) << kernel.status();
    const auto sized = loop::SizedProgram::Create((*kernel)->program(), c.sizes);
    ASSERT_TRUE(sized.ok()) << sized.status();
    const auto arena = EvaluatePlan(*sized, (*kernel)->plan());
    ASSERT_TRUE(arena.ok()) << arena.status();
    EXPECT_LT(arena->total + arena->private_total, 20 << 20) << c.text;
  }
}

}  // namespace
}  // namespace nestor
