// Text in, text out: every place where a symbol may occur.
#include "loop_ir/constants.h"

#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/types/optional.h"
#include "gtest/gtest.h"
#include "loop_ir/text.h"
#include "loop_ir/verify.h"

namespace nestor::loop {
namespace {

constexpr char kEverywhere[] =
    R"(program p(x: i64[N, K*C], i: i64[C], s: shape f32[M]; $k: i64 = 3 in [-9, 9], $f: f32 = 1.0)
    -> (y: f32[N, M + $k]) {
  require N*$k == M "both"
  require 1 <= M - $k <= inf "width"
  domain d < N - $k: d*$k; C + $k
  assume d < C: d*M
  version min(N/C, 1) == 0
  temp t: f32[C, N]
  for n in [$k, N) step 2 {
    temp r: f32[C + 1]
    for c in [0, C) {
      r[c] = f32(x[n*$k, c + i[c*C] | index($k*M) if c < $k])
      drop y[n, C/$k + c] if n == C = r[c] + f32(index(n*$k + C)) * $f
    }
  }
})";

Program Put(const char* text, const absl::flat_hash_map<std::string, int64_t>& sizes) {
  Program program = ParseProgram(text).value();
  PutConstants(program, [&](const std::string& name) -> absl::optional<int64_t> {
    const auto size = sizes.find(name);
    if (size == sizes.end()) return absl::nullopt;
    return size->second;
  });
  return program;
}

std::string Reprinted(const char* text) { return ToText(ParseProgram(text).value()); }

TEST(PutConstants, ReachesEveryExpression) {
  const Program program = Put(kEverywhere, {{"C", 4}, {"$k", -2}});
  EXPECT_EQ(
      ToText(program),
      Reprinted(
          R"(program p(x: i64[N, 4*K], i: i64[4], s: shape f32[M]; $k: i64 = 3 in [-9, 9], $f: f32 = 1.0)
    -> (y: f32[N, M - 2]) {
  require -2*N == M "both"
  require 1 <= M + 2 <= inf "width"
  domain d < N + 2: -2*d; 2
  assume d < 4: d*M
  version min(N/4, 1) == 0
  temp t: f32[4, N]
  for n in [-2, N) step 2 {
    temp r: f32[5]
    for c in [0, 4) {
      r[c] = f32(x[-2*n, c + i[4*c] | index(-2*M) if c < -2])
      drop y[n, c - 2] if n == 4 = r[c] + f32(index(-2*n + 4)) * $f
    }
  }
})"));
}

TEST(PutConstants, LeavesNoSymbolBehind) {
  const Program program = Put(kEverywhere, {{"C", 4}, {"$k", 2}, {"N", 10}, {"M", 20}, {"K", 1}});
  EXPECT_EQ(Verify(program), absl::OkStatus());
  VisitItems(program.body, [&](const Item& item) {
    VisitIndices(program, item, [&](IndexId e) {
      VisitIndex(program.pool, e,
                 [&](IndexId, const IndexNode& node) { EXPECT_NE(node.kind, IndexKind::kSymbol); });
    });
  });
}

TEST(PutConstants, WithoutValuesChangesNothing) {
  EXPECT_EQ(ToText(Put(kEverywhere, {})), Reprinted(kEverywhere));
}

}  // namespace
}  // namespace nestor::loop
