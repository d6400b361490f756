// How far indices run: which axis says it, which others must agree, and what is refused. Seen
// through the notation, as infer_ranges.h is no header of the library.
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
  const char* expected;
};

std::string Extents(const IndexPool& pool, absl::Span<const IndexId> shape) {
  return absl::StrJoin(shape, " ", [&](std::string* out, IndexId e) {
    absl::StrAppend(out, SymbolicText(pool, e));
  });
}

// "EXTENTS OF y; sum EXTENTS; ..: EQUALITIES", or the error. A scatter runs over its operand.
std::string RangesOf(const char* statement) {
  const absl::StatusOr<Op> op = ParseOp(absl::StrCat(
      "op f(x: f32[N, M], v: f32[N], u: f32[M], w: f32[N + M], ids: i64[K]; $k = 1) -> (y) {\n",
      statement, "\n}"));
  if (!op.ok()) return std::string(op.status().message());
  const Graph& graph = op->graph;
  const std::vector<NodeId> results = op->ResultNodes();
  const Scatter* scatter = graph.As<Scatter>(results[0]);
  std::string text =
      Extents(graph.pool(), graph.shape(scatter == nullptr ? results[0] : scatter->x));
  const std::vector<bool> live = Reachable(graph, results);
  for (int id = 0; id < graph.size(); ++id) {
    const struct Reduce* reduce = graph.As<struct Reduce>(NodeId{id});
    if (!live[id] || reduce == nullptr) continue;
    const Shape& shape = graph.shape(reduce->x);
    absl::StrAppend(&text, "; ", Name(reduce->op), " ",
                    Extents(graph.pool(), absl::MakeConstSpan(shape).last(reduce->count)));
  }
  for (const Equality& e : op->equalities) absl::StrAppend(&text, "\n", e.message);
  return text;
}

void ExpectRanges(absl::Span<const Case> cases) {
  for (const Case& c : cases) EXPECT_EQ(RangesOf(c.statement), c.expected) << c.statement;
}

TEST(InferRanges, TakeTheFirstAxisOfAnIndexAlone) {
  constexpr Case kCases[] = {
      {"y[i] = v[i]", "N"},
      {"y[j, i] = x[i, j]", "M N"},
      {"y[i] = v[i + 1] + v[i]", "N"},
      {"y[i] = v[ids[i]]", "K"},
      {"y[i] = v[ids[i] + 1] * 2", "K"},
      {"y[i] = x[i, ids[i]]", "N\nindex i runs over axis 0 of x (N) and over axis 0 of ids (K)"},
      {"y[i] = v[0 if ids[i] < 3]", "K"},
      {"y[i] = exp(w[i])", "M + N"},
      {"y = sum[i, j](x[i, j])", "; sum N M"},
      {"y[i] = sum[j](x[i, j])", "N; sum M"},
      {"y[i] = v[i] * sum[j](u[j])", "N; sum M"},
      // Two reductions over one name are over two indices.
      {"y = sum[i](v[i]) * sum[i](u[i])", "; sum N; sum M"},
      // An expression of indices, however simple, says nothing.
      {"y[i] = v[i + 0] + u[i]", "M"},
      {"y[i] = v[-i] + u[i]", "M"},
  };
  ExpectRanges(kCases);
}

// An equality for each, in the order of the text.
TEST(InferRanges, FurtherAxesMustAgree) {
  constexpr Case kCases[] = {
      {"y[i] = v[i] + v[i] + x[i, 0]", "N"},
      {"y[i] = v[i] + u[i]", "N\nindex i runs over axis 0 of v (N) and over axis 0 of u (M)"},
      {"y[i] = u[i] + v[i]", "M\nindex i runs over axis 0 of u (M) and over axis 0 of v (N)"},
      {"y[i] = x[i, i]", "N\nindex i runs over axis 0 of x (N) and over axis 1 of x (M)"},
      {"y[i] = v[i] + u[i] + w[i]",
       "N\nindex i runs over axis 0 of v (N) and over axis 0 of u (M)\n"
       "index i runs over axis 0 of v (N) and over axis 0 of w (M + N)"},
      {"y = sum[k](v[k] * u[k])",
       "; sum N\nindex k runs over axis 0 of v (N) and over axis 0 of u (M)"},
      {"y[i] = v[i] * sum[j](u[j] * w[i])",
       "N; sum M\nindex i runs over axis 0 of v (N) and over axis 0 of w (M + N)"},
      {"y[i] = u[ids[i]] + v[i]",
       "K\nindex i runs over axis 0 of ids (K) and over axis 0 of v (N)"},
  };
  ExpectRanges(kCases);
}

// A stated range is the range, and no axis must agree with it.
TEST(InferRanges, AreAsStated) {
  constexpr Case kCases[] = {
      {"y[i] = v[i] where i < 3", "3"},
      {"y[i] = v[i] + u[i] where i < N", "N"},
      {"y[i, j] = v[i] where j < N - $k", "N -$k + N"},
      {"y[i] = sum[j](x[i, j]) where j < 2*K", "N; sum 2*K"},
      {"y = sum[i](v[i]) * sum[i](u[i]) where i < 5", "; sum 5; sum 5"},
      {"y[i] = 1.0 where i < min(N, M)", "min(M, N)"},
  };
  ExpectRanges(kCases);
}

// A scatter runs over the left side's indices, then over others as the text mentions them.
TEST(InferRanges, OfScatters) {
  constexpr Case kCases[] = {
      {"y[ids[i]]: f32[N] += u[i]",
       "K\nindex i runs over axis 0 of ids (K) and over axis 0 of u (M)"},
      {"y[i]: f32[N] += v[i]", "N"},
      {"y[i]: f32[M] += v[i]", "M\nindex i runs over axis 0 of y (M) and over axis 0 of v (N)"},
      {"y[0]: f32[3] += x[i, j]", "N M"},
      {"y[j]: f32[M] += x[i, j]", "M N"},
      {"y[]: f32[] += u[j] * v[i]", "M N"},
      {"y[i + j]: f32[K] += x[j, i]", "M N"},
      {"y[0]: f32[3] += v[i] where i < 7", "7"},
      {"y[0]: f32[3] += sum[j](x[i, j])", "N; sum M"},
  };
  ExpectRanges(kCases);
}

// The notation lists the indices of a scatter; in C++ they are found on the way.
TEST(InferRanges, OfScattersOfTheBuilder) {
  OpBuilder b("f");
  const IndexExpr n = b.Dimension("N"), m = b.Dimension("M");
  const IndexExpr i = b.NewIndex("i"), j = b.NewIndex("j"), k = b.NewIndex("k", 7);
  const TensorRef x = b.Input("x", DType::kF32, {n, m}), v = b.Input("v", DType::kF32, {n});
  b.Result("y", b.Scatter(ReduceOp::kSum, DType::kF32, {3}, {0}, x(i, j) * x(i, k) + v(j)));
  const absl::StatusOr<Op> op = b.Build();
  ASSERT_TRUE(op.ok()) << op.status();
  const Scatter* scatter = op->graph.As<Scatter>(op->results[0].node);
  ASSERT_NE(scatter, nullptr);
  EXPECT_EQ(Extents(op->graph.pool(), op->graph.shape(scatter->x)), "N M 7");
  ASSERT_EQ(op->equalities.size(), 1u);
  EXPECT_EQ(op->equalities[0].message,
            "index j runs over axis 1 of x (M) and over axis 0 of v (N)");
}

// In a block a tensor of its own says nothing until its shape is found.
TEST(InferRanges, OfBlocks) {
  constexpr Case kCases[] = {
      {"for t < N { y[t, i] = y[t - 1, i] * u[i] }", "N M"},
      {"for t < N { a[t, i] = y[t - 1, i] * 2; y[t, i] = a[t, i] + u[i] }", "N M"},
      {"for t < N { y[t] = sum[i](a[t - 1, i]); a[t, i] = u[i] * y[t] }", "N; sum M"},
      {"for t < N { y[t, i] = y[t - 1, i] + v[t] where i < 3 }", "N 3"},
      {"for t < N { y[t, i] = y[t - 1, i] + v[t] }",
       "2:18: the index 'i' has no range: add 'where i < ..'"},
      {"for t < N { a[t, i] = y[t - 1, i] + u[i]; y[t, i] = a[t - 1, i] + v[i] }",
       "N M\nindex i runs over axis 1 of y (M) and over axis 0 of v (N)"},
  };
  ExpectRanges(kCases);
}

TEST(InferRanges, Errors) {
  constexpr Case kCases[] = {
      {"y[i, i] = v[i]", "2:6: the index 'i' is already in use here"},
      {"y[i] = sum[i](v[i])", "2:12: the index 'i' is already in use here"},
      {"y = sum[i](sum[i](v[i]))", "2:16: the index 'i' is already in use here"},
      {"y[i] = v[j]", "2:10: unknown name 'j'"},
      {"y[i] = sum[j](u[j]) * u[j] + v[i]", "2:25: unknown name 'j': it is an index elsewhere"},
      {"y[i] = v[i + 1]", "2:3: the index 'i' has no range: add 'where i < ..'"},
      {"y[i] = v[i] * sum[j](v[i + j])", "2:19: the index 'j' has no range: add 'where j < ..'"},
      {"y[2*i]: f32[N] += 1", "2:5: the index 'i' has no range: add 'where i < ..'"},
      {"y[i] = x[i]", "2:8: 'x' has 2 dimensions and is given 1 indices"},
      {"y[i] = v[ids[i, i]]", "2:10: 'ids' has 1 dimensions and is given 2 indices"},
      {"y[i]: f32[N, M] += v[i]", "2:1: 'y' has 2 dimensions and is given 1 indices"},
  };
  ExpectRanges(kCases);
}

}  // namespace
}  // namespace nestor
