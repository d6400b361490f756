// Accesses that are out of bounds at all sizes: each is named with its place, and nothing
// else is.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"
#include "uops/builder.h"
#include "uops/notation/module.h"

namespace nestor {
namespace {

struct Case {
  const char* statement;
  std::vector<const char*> warnings;
};

TEST(OpWarnings, NamePlaceAndAxis) {
  const Case cases[] = {
      {"y[i] = x[3, i]", {"1:70: the index 3 is always out of bounds on axis 0 of x (3)"}},
      {"y[i] = x[2, i]", {}},
      {"y[i] = x[-1, i | 5]", {"1:70: the index -1 is always out of bounds on axis 0 of x (3)"}},
      {"y[i] = x[0, i] + x[1, N]",
       {"1:83: the index N is always out of bounds on axis 1 of x (N)"}},
      {"y = x[1, N + 1]", {"the index N + 1 is always out of bounds on axis 1 of x (N)"}},
      {"y = x[1, N - 1]", {}},
      {"y = x[1, M]", {}},
      {"y = x[1, $k]", {}},
      {"y[i] = x[i/0, i] where i < N",
       {"the index divides by zero and is always out of bounds on axis 0 of x (3)"}},
      {"y[i] = x[i % 0, 0] where i < N",
       {"the index divides by zero and is always out of bounds on axis 0 of x (3)"}},
      {"y[i] = x[floordiv(i, 0), mod(i, 0)] where i < N",
       {"on axis 0 of x (3)", "on axis 1 of x (N)"}},
      {"y[i] = x[i/2, i] where i < N", {}},
      {"y[i] = x[3, i] + x[4, i]", {"the index 3", "the index 4"}},
      {"y[i] = x[0, ids[i]]", {}},
      {"y[i] = x[0, ids[M]] where i < N",
       {"the index M is always out of bounds on axis 0 of ids (M)"}},
      {"y[3, i]: f32[3, N] += x[0, i]",
       {"1:63: the index 3 is always out of bounds on axis 0 of y (3)"}},
      {"y[ids[i], 0]: f32[3, N] += z[i]", {}},
  };
  for (const Case& c : cases) {
    const absl::StatusOr<Op> op = ParseOp(absl::StrCat(
        "op f(x: f32[3, N], z: f32[M], ids: i64[M]; $k = 1) -> (y) { ", c.statement, " }"));
    ASSERT_TRUE(op.ok()) << c.statement << "\n" << op.status();
    const std::string all = absl::StrJoin(op->warnings(), "\n");
    ASSERT_EQ(op->warnings().size(), c.warnings.size()) << c.statement << "\n" << all;
    for (size_t i = 0; i < c.warnings.size(); ++i) {
      EXPECT_NE(op->warnings()[i].find(c.warnings[i]), std::string::npos) << c.statement << "\n"
                                                                          << all;
    }
  }
}

TEST(OpWarnings, OfACalleeNameTheCallToo) {
  const absl::StatusOr<Op> op = ParseOp("op g(x: f32[3]) -> (y) { y = x[3] }\n"
                                        "op f(x: f32[3]) -> (a, b) {\n  a = g(x)\n  b = g(x)\n}");
  ASSERT_TRUE(op.ok()) << op.status();
  EXPECT_EQ(absl::StrJoin(op->warnings(), "\n"),
            "3:7: in op g: 1:32: the index 3 is always out of bounds on axis 0 of x (3)\n"
            "4:7: in op g: 1:32: the index 3 is always out of bounds on axis 0 of x (3)");
}

TEST(OpWarnings, OfTheBuilderNameTheStatement) {
  OpBuilder b("f");
  const IndexExpr n = b.Dimension("N"), i = b.NewIndex("i"), j = b.NewIndex("j");
  const TensorRef x = b.Input("x", DType::kF32, {3, n}), ids = b.Input("ids", DType::kI64, {n});
  b.Result("y", b.Define({i}, x(3, i) + x(0, i)));
  b.Result("z", b.Scatter(ReduceOp::kSum, DType::kF32, {n}, {n}, x(0, ids(j))));
  const absl::StatusOr<Op> op = b.Build();
  ASSERT_TRUE(op.ok()) << op.status();
  EXPECT_EQ(absl::StrJoin(op->warnings(), "\n"),
            "op f: definition 1: the index 3 is always out of bounds on axis 0 of x (3)\n"
            "op f: scatter 2: the index N is always out of bounds on axis 0 of scatter 2 (N)");
}

}  // namespace
}  // namespace nestor
