// Which results of small ops have the same bits wherever they are computed.
#include "autodiff/repeatable.h"

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "uops/notation/module.h"
#include "uops/op.h"

namespace nestor {
namespace {

TEST(RepeatableValues, OneRoundingOnEachWay) {
  const struct {
    const char* body;  // of y, over x: f32[N, M], s: f32[N], n: i64[N]
    bool want;
  } kCases[] = {
      {"y[i, j] = x[i, j]", true},
      {"y[i, j] = -relu(x[i, j + 1]) where j < M", true},
      {"y[i, j] = x[i, j] * s[i]", true},
      {"y[i, j] = clamp(x[i, j] + s[i], -1.0, 1.0)", true},
      {"y[i, j] = where(x[i, j] > 0.0, x[i, j] * s[i], x[i, j] - s[i])", true},
      {"y[i] = max[j](abs(x[i, j] * s[i]))", true},
      {"y[n[i], j]: f32[N, M] max= x[i, j] * s[i]", true},
      {"y[i] = sum[j](n[j] * 3 + n[i])", true},
      {"y[i, j] = x[i, j] / s[i]", false},
      {"y[i, j] = x[i, j] * s[i] + s[j]", false},
      {"y[i, j] = x[i, j] + s[i] + s[j]", false},
      {"y[i, j] = exp(x[i, j])", false},
      {"y[i] = sum[j](x[i, j])", false},
      {"y[n[i], j]: f32[N, M] += x[i, j]", false},
      {"y[i] = max[j](x[i, j] / s[i])", false},
      {"y[i, j] = f32(x[i, j] / s[i] < 1.0)", false},
      {"for i < N { y[i] = y[i - 1] + s[i] }", false},
  };
  for (const auto& c : kCases) {
    const absl::StatusOr<Op> op =
        ParseOp(absl::StrCat("op f(x: f32[N, M], s: f32[N], n: i64[N]) -> (y) { ", c.body, " }"));
    ASSERT_TRUE(op.ok()) << op.status() << "\n" << c.body;
    RepeatableValues repeatable(op->graph);
    EXPECT_EQ(repeatable.Contains(op->results[0].node), c.want) << c.body;
  }
}

}  // namespace
}  // namespace nestor
