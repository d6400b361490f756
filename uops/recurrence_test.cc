// Recurrences in the graph: which nodes belong to a system, systems that are the same, the two
// front ends, and printing.
#include "uops/recurrence.h"

#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "uops/builder.h"
#include "uops/notation/module.h"
#include "uops/notation/print.h"

namespace nestor {
namespace {

using ::testing::HasSubstr;

Op Parsed(const std::string& text) {
  const absl::StatusOr<Op> op = ParseOp(text);
  EXPECT_TRUE(op.ok()) << op.status() << "\n" << text;
  return op.value_or(Op());
}

// How many systems of equations the results need.
size_t CountSystems(const Op& op) {
  const std::vector<bool> live = Reachable(op.graph, op.ResultNodes());
  absl::flat_hash_set<NodeId> first_carries;
  for (int i = 0; i < op.graph.size(); ++i) {
    const Recurrence* recurrence = op.graph.As<Recurrence>(NodeId{i});
    if (live[i] && recurrence != nullptr) first_carries.insert(recurrence->carries[0]);
  }
  return first_carries.size();
}

// Texts that print as they are written: a block holds only the statements that must be in it.
TEST(Recurrence, PrintsAsWritten) {
  for (
      const char* body : {
          "  for t < N {\n    y[t] = y[t - 1] + x[t]\n  }\n",
          "  for t < N {\n    y[t] = y[t + 2 | 1.5] * x[t]\n  }\n",
          "  for t < N {\n    y[t] = y[t - $k] + x[t]\n  }\n",
          "  for t < N {\n    y[t, i] = sum[j](y[t - 1, j] * w[j, i]) + x[t] where j < M\n  }\n",
          "  for t < N {\n    t0[t] = y[t - 1 | 1.0] + x[t]\n    y[t] = t0[t] * t0[t]\n  }\n",
          "  for t < N {\n    t0[t] = t0[t - 1] * 0.5 + sum[i](w[t, i])\n  }\n  y[i] = exp(t0[i])\n",
      }) {
    const std::string text =
        absl::StrCat("op f(x: f32[N], w: f32[N, M]; $k in [1, inf]) -> (y) {\n", body, "}\n");
    EXPECT_EQ(PrintOp(Parsed(text)), text);
  }
}

// A statement in a block that needs no earlier step is outside of the system.
TEST(Recurrence, HoldsWhatAnEarlierStepLeadsTo) {
  const Op inside = Parsed(R"(op f(x: f32[N, M], w: f32[M, H]) -> (y, o) {
    for t < N {
      u[t, j] = sum[i](x[t, i] * w[i, j])
      y[t, j] = y[t - 1, j] * 0.5 + u[t, j]
      o[t] = max[j](y[t, j])
    }
  })");
  const Op outside = Parsed(R"(op f(x: f32[N, M], w: f32[M, H]) -> (y, o) {
    u[t, j] = sum[i](x[t, i] * w[i, j])
    for t < N { y[t, j] = y[t - 1, j] * 0.5 + u[t, j] }
    o[t] = max[j](y[t, j])
  })");
  EXPECT_TRUE(SameOp(inside, outside)) << PrintOp(inside) << PrintOp(outside);
}

// Two recurrences in a block that need each other are one system, and two if one needs the other.
TEST(Recurrence, IsASystemOfWhatNeedsEachOther) {
  EXPECT_EQ(CountSystems(Parsed(R"(op f(x: f32[N]) -> (y, z) {
    for t < N { y[t] = z[t - 1] + x[t];  z[t] = y[t - 1] * x[t] } })")),
            1u);
  EXPECT_EQ(CountSystems(Parsed(R"(op f(x: f32[N]) -> (y, z) {
    for t < N { y[t] = y[t - 1] + x[t];  z[t] = z[t - 1] + y[t - 1] } })")),
            2u);
  EXPECT_EQ(CountSystems(Parsed(R"(op f(x: f32[N]) -> (z) {
    for t < N { z[t] = y[t - 1];  y[t] = u[t - 1];  u[t] = u[t - 1] + x[t] } })")),
            1u);
  EXPECT_EQ(CountSystems(Parsed(R"(op f(x: f32[N]) -> (z) {
    for t < N { y[t] = x[t];  z[t] = y[t - 1] + y[t - 2] } })")),
            0u);
}

// The same equations, whatever their carries are called and in which order they come.
TEST(Recurrence, IsOneIfWrittenTwice) {
  const Op op = Parsed(R"(op f(x: f32[N]) -> (y, b) {
    for t < N { y[t] = z[t - 1] + x[t];  z[t] = y[t - 1] * x[t] }
    for t < N { a[t] = b[t - 1] * x[t];  b[t] = a[t - 1] + x[t] }
  })");
  EXPECT_EQ(CountSystems(op), 1u) << PrintOp(op);
  EXPECT_EQ(op.results[0].node, op.results[1].node);
  const Op other = Parsed(R"(op f(x: f32[N]) -> (y, b) {
    for t < N { y[t] = y[t - 1] + x[t] }
    for t < N { b[t] = b[t + 1] + x[t] }
  })");
  EXPECT_EQ(CountSystems(other), 2u);
}

// The differences between systems are found without building anything: the number of systems in an
// op is bounded by its micro-ops alone.
TEST(Recurrence, MayBeOneOfMany) {
  std::string text = "op f(x: f32[N]) -> (y) {\n  y0[i] = x[i]\n";
  constexpr int kMany = 3000;
  for (int k = 1; k <= kMany; ++k) {
    absl::StrAppend(&text, "  for t < N { y", k, "[t] = y", k, "[t - 1] + y", k - 1, "[t] * ", k,
                    ".0 }\n");
  }
  EXPECT_EQ(CountSystems(Parsed(absl::StrCat(text, "  y[i] = y", kMany, "[i]\n}\n"))),
            size_t{kMany});
}

// One that reads a carry twice is not one that reads two.
TEST(Recurrence, DiffersWhereOneCarryStandsForTwo) {
  const Op op = Parsed(R"(op f(x: f32[N]) -> (y, b) {
    for t < N { y[t] = z[t - 1] + y[t - 1];  z[t] = z[t - 1] * y[t - 1] + x[t] }
    for t < N { a[t] = b[t - 1] + b[t - 1];  b[t] = b[t - 1] * a[t - 1] + x[t] }
  })");
  EXPECT_EQ(CountSystems(op), 2u) << PrintOp(op);
}

// Two carries that are the same tensor are one.
TEST(Recurrence, MergesEqualCarries) {
  const Op twice = Parsed(R"(op f(x: f32[N]) -> (y, z) {
    for t < N { y[t] = y[t - 1] * z[t - 1] + x[t];  z[t] = y[t - 1] * z[t - 1] + x[t] } })");
  const Op once = Parsed(R"(op f(x: f32[N]) -> (y, z) {
    for t < N { y[t] = y[t - 1] * y[t - 1] + x[t] }
    z[i] = y[i]
  })");
  EXPECT_EQ(twice.results[0].node, twice.results[1].node);
  EXPECT_TRUE(SameOp(once, twice)) << PrintOp(twice);
}

TEST(Recurrence, IsTheSameInACaller) {
  const absl::StatusOr<Module> module = Module::Parse(R"(
    op scan(a: T[..N, C]) -> (s) { for t < C { s[..n, t] = s[..n, t - 1] + a[..n, t] } }
    op f(x: f32[M, N]) -> (y, z) {
      y = scan(x)
      z = scan(x)
    }
    op g(x: f32[M, N]) -> (y, z) {
      for t < N { y[i, t] = y[i, t - 1] + x[i, t] }
      z[i, j] = y[i, j]
    })");
  ASSERT_TRUE(module.ok()) << module.status();
  absl::StatusOr<Op> f = module->Instantiate("f", {}), g = module->Instantiate("g", {});
  ASSERT_TRUE(f.ok() && g.ok()) << f.status() << g.status();
  f->name = "g";
  EXPECT_TRUE(SameOp(*f, *g)) << PrintOp(*f);
}

// ---- The C++ builder

TEST(Recurrence, OfTheBuilderIsThatOfTheNotation) {
  OpBuilder b("f");
  const IndexExpr N = b.Dimension("N"), M = b.Dimension("M");
  const TensorRef x = b.Input("x", DType::kF32, {N, M}), w = b.Input("w", DType::kF32, {M, M});
  const IndexExpr lag = b.IndexParam("$k", {{}, 1, {}});
  const IndexExpr t = b.NewIndex("t", N), i = b.NewIndex("i"), j = b.NewIndex("j");
  const TensorRef before = b.Carry(DType::kF32, {N, M}, 0, true);
  const TensorRef z = b.Define({t, i}, Sum({j}, before(t + lag, j) * w(j, i)) + x(t, i));
  const TensorRef h = b.Define({t, i}, Tanh(z(t, i)));
  const std::vector<TensorRef> settled = b.Settle({{before, h}}, {h, z});
  b.Result("h", settled[0]);
  b.Result("z", settled[1]);
  const absl::StatusOr<Op> built = b.Build();
  ASSERT_TRUE(built.ok()) << built.status();
  const Op parsed = Parsed(R"(op f(x: f32[N, M], w: f32[M, M]; $k in [1, inf]) -> (h, z) {
    for t < N {
      z[t, i] = sum[j](h[t + $k, j] * w[j, i]) + x[t, i]
      h[t, i] = tanh(z[t, i])
    }
  })");
  EXPECT_TRUE(SameOp(*built, parsed)) << PrintOp(*built);
}

// Each misuse, with a part of its message.
TEST(Recurrence, MisusesOfTheBuilder) {
  const struct {
    const char* message;
    void (*build)(OpBuilder& b, const TensorRef& x, const IndexExpr& N, const IndexExpr& t);
  } kCases[] = {
      {"no axis 1", [](OpBuilder& b, const TensorRef&, const IndexExpr& N,
                       const IndexExpr&) { b.Carry(DType::kF32, {N}, 1); }},
      {"no earlier step",
       [](OpBuilder& b, const TensorRef& x, const IndexExpr& N, const IndexExpr& t) {
         const TensorRef c = b.Carry(DType::kF32, {N}, 0), y = b.Define({t}, c(t) + x(t));
         b.Result("y", b.Settle({{c, y}}, {y})[0]);
       }},
      {"no earlier step",
       [](OpBuilder& b, const TensorRef& x, const IndexExpr& N, const IndexExpr& t) {
         const TensorRef c = b.Carry(DType::kF32, {N}, 0), y = b.Define({t}, c(t + 1) + x(t));
         b.Result("y", b.Settle({{c, y}}, {y})[0]);
       }},
      {"no earlier step",
       [](OpBuilder& b, const TensorRef& x, const IndexExpr& N, const IndexExpr& t) {
         const TensorRef c = b.Carry(DType::kF32, {N}, 0),
                         y = b.Define({t}, c(t - b.IndexParam("$k")) + x(t));
         b.Result("y", b.Settle({{c, y}}, {y})[0]);
       }},
      {"more than one axis, or along none",
       [](OpBuilder& b, const TensorRef& x, const IndexExpr& N, const IndexExpr& t) {
         const IndexExpr s = b.NewIndex("s", N);
         const TensorRef c = b.Carry(DType::kF32, {N}, 0),
                         y = b.Define({t}, Sum({s}, c(s - 1)) + x(t));
         b.Result("y", b.Settle({{c, y}}, {y})[0]);
       }},
      {"is i64",
       [](OpBuilder& b, const TensorRef& x, const IndexExpr& N, const IndexExpr& t) {
         const TensorRef c = b.Carry(DType::kF32, {N}, 0),
                         y = b.Define({t}, Cast(DType::kI64, c(t - 1) + x(t)));
         b.Result("y", b.Settle({{c, y}}, {y})[0]);
       }},
      {"of another shape",
       [](OpBuilder& b, const TensorRef& x, const IndexExpr& N, const IndexExpr& t) {
         const TensorRef c = b.Carry(DType::kF32, {N + 1}, 0), y = b.Define({t}, c(t - 1) + x(t));
         b.Result("y", b.Settle({{c, y}}, {y})[0]);
       }},
      {"two equations",
       [](OpBuilder& b, const TensorRef& x, const IndexExpr& N, const IndexExpr& t) {
         const TensorRef c = b.Carry(DType::kF32, {N}, 0), y = b.Define({t}, c(t - 1) + x(t));
         b.Result("y", b.Settle({{c, y}, {c, y}}, {y})[0]);
       }},
      {"without an equation",
       [](OpBuilder& b, const TensorRef& x, const IndexExpr& N, const IndexExpr& t) {
         const TensorRef c = b.Carry(DType::kF32, {N}, 0), y = b.Define({t}, c(t - 1) + x(t));
         b.Result("y", b.Settle({}, {y})[0]);
       }},
      {"what is no carry",
       [](OpBuilder& b, const TensorRef& x, const IndexExpr&, const IndexExpr& t) {
         const TensorRef y = b.Define({t}, x(t - 1));
         b.Result("y", b.Settle({{x, y}}, {y})[0]);
       }},
      {"what Settle returns",
       [](OpBuilder& b, const TensorRef& x, const IndexExpr& N, const IndexExpr& t) {
         const TensorRef c = b.Carry(DType::kF32, {N}, 0), y = b.Define({t}, c(t - 1) + x(t));
         b.Settle({{c, y}}, {y});
         b.Result("y", y);
       }},
  };
  for (const auto& c : kCases) {
    OpBuilder b("f");
    const IndexExpr N = b.Dimension("N");
    const TensorRef x = b.Input("x", DType::kF32, {N});
    c.build(b, x, N, b.NewIndex("t", N));
    const absl::StatusOr<Op> op = b.Build();
    ASSERT_FALSE(op.ok()) << c.message;
    EXPECT_THAT(op.status().message(), HasSubstr(c.message));
  }
}

}  // namespace
}  // namespace nestor
