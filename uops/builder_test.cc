// Ops built in C++ against the same ops in the notation.
#include "uops/builder.h"

#include <functional>
#include <limits>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "autodiff/gradient.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "macro_ops/library.h"
#include "uops/notation/module.h"
#include "uops/notation/print.h"

namespace nestor {
namespace {

constexpr DType kF32 = DType::kF32;
constexpr DType kI64 = DType::kI64;
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

void Matmul(OpBuilder& b) {
  IndexExpr M = b.Dimension("M"), K = b.Dimension("K"), N = b.Dimension("N");
  TensorRef a = b.Input("a", kF32, {M, K}), w = b.Input("b", kF32, {K, N});
  IndexExpr i = b.NewIndex("i"), j = b.NewIndex("j"), k = b.NewIndex("k");
  b.Result("c", b.Define({i, j}, Sum({k}, a(i, k) * w(k, j))));
}

void Linear(OpBuilder& b) {
  IndexExpr N = b.Dimension("N0"), K = b.Dimension("K"), O = b.Dimension("O");
  TensorRef x = b.Input("x", kF32, {N, K}), w = b.Input("w", kF32, {O, K}),
            bias = b.Input("b", kF32, {O});
  IndexExpr n = b.NewIndex("n"), o = b.NewIndex("o"), k = b.NewIndex("k");
  b.Result("y", b.Define({n, o}, Sum({k}, x(n, k) * w(o, k)) + bias(o)));
}

void Softmax(OpBuilder& b) {
  TensorRef x = b.Input("x", kF32, {b.Dimension("N0"), b.Dimension("C")});
  IndexExpr n = b.NewIndex("n"), c = b.NewIndex("c"), k = b.NewIndex("k");
  TensorRef e = b.Define({n, c}, Exp(x(n, c) - Max({k}, x(n, k))));
  b.Result("y", b.Define({n, c}, e(n, c) / Sum({k}, e(n, k))));
}

void LogSoftmax(OpBuilder& b) {
  TensorRef x = b.Input("x", kF32, {b.Dimension("N0"), b.Dimension("C")});
  IndexExpr n = b.NewIndex("n"), c = b.NewIndex("c"), k = b.NewIndex("k");
  TensorRef z = b.Define({n, c}, x(n, c) - Max({k}, x(n, k)));
  b.Result("y", b.Define({n, c}, z(n, c) - Log(Sum({k}, Exp(z(n, k))))));
}

void LayerNorm(OpBuilder& b) {
  IndexExpr N = b.Dimension("N0"), C = b.Dimension("C");
  TensorRef x = b.Input("x", kF32, {N, C}), scale = b.Input("scale", kF32, {C}),
            bias = b.Input("bias", kF32, {C});
  Expr eps = b.Param("$eps", kF32, {.value = 1e-5});
  IndexExpr n = b.NewIndex("n"), c = b.NewIndex("c");
  TensorRef m = b.Define({n}, Sum({c}, x(n, c)) / C);
  TensorRef v = b.Define({n}, Sum({c}, Square(x(n, c) - m(n))) / C);
  b.Result("y", b.Define({n, c}, (x(n, c) - m(n)) * Rsqrt(v(n) + eps) * scale(c) + bias(c)));
}

void Conv2d(OpBuilder& b) {
  IndexExpr N = b.Dimension("N"), C = b.Dimension("C"), H = b.Dimension("H"), W = b.Dimension("W");
  IndexExpr O = b.Dimension("O"), R = b.Dimension("R"), S = b.Dimension("S");
  IndexExpr stride = b.IndexParam("$stride", {.value = 1, .low = 1});
  IndexExpr pad = b.IndexParam("$pad", {.value = 0, .low = 0});
  IndexExpr dilation = b.IndexParam("$dilation", {.value = 1, .low = 1});
  IndexExpr groups = b.IndexParam("$groups", {.value = 1, .low = 1});
  TensorRef x = b.Input("x", kF32, {N, C * groups, H, W}), w = b.Input("w", kF32, {O, C, R, S});
  IndexExpr n = b.NewIndex("n"), o = b.NewIndex("o"), c = b.NewIndex("c"), r = b.NewIndex("r"),
            s = b.NewIndex("s");
  IndexExpr h = b.NewIndex("h", (H + 2 * pad - dilation * (R - 1) - 1) / stride + 1);
  IndexExpr v = b.NewIndex("v", (W + 2 * pad - dilation * (S - 1) - 1) / stride + 1);
  b.Result("y", b.Define({n, o, h, v},
                         Sum({c, r, s}, w(o, c, r, s) * x(n, o / (O / groups) * C + c,
                                                          h * stride + r * dilation - pad,
                                                          v * stride + s * dilation - pad))));
}

void MaxPool2d(OpBuilder& b) {
  IndexExpr H = b.Dimension("H"), W = b.Dimension("W");
  TensorRef x = b.Input("x", kF32, {b.Dimension("N"), b.Dimension("C"), H, W});
  IndexExpr k = b.IndexParam("$k", {.low = 1}), stride = b.IndexParam("$stride", {.low = 1});
  IndexExpr pad = b.IndexParam("$pad", {.value = 0, .low = 0});
  IndexExpr n = b.NewIndex("n"), c = b.NewIndex("c"), r = b.NewIndex("r", k),
            s = b.NewIndex("s", k);
  IndexExpr h = b.NewIndex("h", (H + 2 * pad - k) / stride + 1),
            v = b.NewIndex("v", (W + 2 * pad - k) / stride + 1);
  b.Result("y",
           b.Define({n, c, h, v},
                    Max({r, s}, x(n, c, h * stride + r - pad, v * stride + s - pad).Or(-kInf))));
}

void Embedding(OpBuilder& b) {
  TensorRef table = b.Input("table", kF32, {b.Dimension("V"), b.Dimension("D")});
  TensorRef ids = b.Input("ids", kI64, {b.Dimension("N0")});
  IndexExpr n = b.NewIndex("n"), d = b.NewIndex("d");
  b.Result("y", b.Define({n, d}, table(ids(n), d)));
}

void CrossEntropy(OpBuilder& b) {
  IndexExpr N = b.Dimension("N"), C = b.Dimension("C");
  TensorRef logits = b.Input("logits", kF32, {N, C}), labels = b.Input("labels", kI64, {N});
  IndexExpr n = b.NewIndex("n"), c = b.NewIndex("c"), k = b.NewIndex("k");
  TensorRef z = b.Define({n, c}, logits(n, c) - Max({k}, logits(n, k)));
  TensorRef nll = b.Define({n}, Log(Sum({c}, Exp(z(n, c)))) - z(n, labels(n)).Or(kNaN));
  b.Result("loss", b.Define({}, Sum({n}, nll(n)) / N));
}

void Attention(OpBuilder& b) {
  IndexExpr B = b.Dimension("B0"), L = b.Dimension("L"), D = b.Dimension("D"), S = b.Dimension("S"),
            E = b.Dimension("E");
  TensorRef q = b.Input("q", kF32, {B, L, D}), k = b.Input("k", kF32, {B, S, D}),
            v = b.Input("v", kF32, {B, S, E});
  IndexExpr i = b.NewIndex("b"), l = b.NewIndex("l"), s = b.NewIndex("s"), t = b.NewIndex("t"),
            d = b.NewIndex("d"), f = b.NewIndex("f");
  TensorRef score = b.Define({i, l, s}, Sum({d}, q(i, l, d) * k(i, s, d)) * Rsqrt(Cast(kF32, D)));
  TensorRef e = b.Define({i, l, s}, Exp(score(i, l, s) - Max({t}, score(i, l, t))));
  TensorRef p = b.Define({i, l, s}, e(i, l, s) / Sum({t}, e(i, l, t)));
  b.Result("y", b.Define({i, l, f}, Sum({s}, p(i, l, s) * v(i, s, f))));
}

void Sgd(OpBuilder& b) {
  IndexExpr N = b.Dimension("N0");
  TensorRef p = b.Input("p", kF32, {N}), g = b.Input("g", kF32, {N}), m = b.Input("m", kF32, {N});
  Expr lr = b.Param("$lr", kF32), momentum = b.Param("$momentum", kF32, {.value = 0}),
       decay = b.Param("$weight_decay", kF32, {.value = 0});
  IndexExpr n = b.NewIndex("n");
  TensorRef m_new = b.Define({n}, momentum * m(n) + (g(n) + decay * p(n)));
  b.Result("p_new", b.Define({n}, p(n) - lr * m_new(n)));
  b.Result("m_new", m_new);
}

struct LibraryCase {
  const char* name;
  void (*build)(OpBuilder&);
  ArgumentSpecs specs;
};

TEST(Builder, EqualsTheMacroLibrary) {
  const ArgumentSpec three{kF32, 3};
  const LibraryCase cases[] = {
      {"matmul", Matmul, {}},
      {"linear", Linear, {{"x", {kF32, 2}}}},
      {"softmax", Softmax, {{"x", {kF32, 2}}}},
      {"log_softmax", LogSoftmax, {{"x", {kF32, 2}}}},
      {"layer_norm", LayerNorm, {{"x", {kF32, 2}}}},
      {"conv2d", Conv2d, {}},
      {"max_pool2d", MaxPool2d, {}},
      {"embedding", Embedding, {{"ids", {kI64, 1}}}},
      {"cross_entropy", CrossEntropy, {}},
      {"attention", Attention, {{"q", three}, {"k", three}, {"v", three}}},
      {"sgd", Sgd, {{"p", {kF32, 1}}}},
  };
  for (const LibraryCase& c : cases) {
    OpBuilder b(c.name);
    c.build(b);
    const absl::StatusOr<Op> built = b.Build();
    const absl::StatusOr<Op> expected = MacroLibrary().Instantiate(c.name, c.specs);
    ASSERT_TRUE(built.ok()) << built.status();
    ASSERT_TRUE(expected.ok()) << expected.status();
    EXPECT_TRUE(SameOp(*built, *expected)) << PrintOp(*built) << PrintOp(*expected);
    EXPECT_EQ(built->equalities.size(), expected->equalities.size()) << c.name;
    const absl::StatusOr<Op> again = ParseOp(PrintOp(*built));
    ASSERT_TRUE(again.ok()) << again.status() << PrintOp(*built);
    EXPECT_TRUE(SameOp(*built, *again)) << PrintOp(*built);
  }
}

struct TextCase {
  const char* text;
  std::function<void(OpBuilder&, TensorRef x, TensorRef ids, IndexExpr i, IndexExpr j, IndexExpr k)>
      build;
};

// Each with x: f32[M, N] and ids: i32[M].
TEST(Builder, EqualsTheNotation) {
  using B = OpBuilder&;
  using T = TensorRef;
  using I = IndexExpr;
  const TextCase cases[] = {
      {"r[i] = argmax[k](x[i, k])",
       [](B b, T x, T, I i, I, I k) { b.Result("r", b.Define({i}, Argmax({k}, x(i, k)))); }},
      {"r[ids[i], j]: f32[9, N] += x[i, j]",
       [](B b, T x, T ids, I i, I j, I) {
         IndexExpr extent = AsIndex(9);
         b.Result("r", b.Scatter(ReduceOp::kSum, kF32, {extent, AsIndex(b.Param("$n", kI64))},
                                 {ids(i), j}, x(i, j)));
       }},
      {"r[i - 1]: f32[M] max= x[i, j] * 2",
       [](B b, T x, T, I i, I j, I) {
         b.Result("r", b.Scatter(ReduceOp::kMax, kF32, {5}, {i - 1}, x(i, j) * 2));
       }},
      {"r[i, j] = x[i, j + 1 | 2.5 if i < j, !(i == 3)]",
       [](B b, T x, T, I i, I j, I) {
         IndexExpr bound = b.NewIndex("j", 7);
         b.Result("r", b.Define({i, bound}, x(i, bound + 1).Or(2.5).If(i < bound).If(!(i == 3))));
         (void)j;
       }},
      // An index in arithmetic takes no range, whatever the arithmetic comes to.
      {"r[i] = x[i + 0, 2*i - i] + f32(ids[i]*0)",
       [](B b, T x, T ids, I i, I, I) {
         b.Result("r", b.Define({i}, x(i + 0, 2 * i - i) + Cast(kF32, ids(i) * 0)));
       }},
      {"r[i, j] = x[i, j if ids[0] < 3] + sum[k](x[k, ids[j]])",
       [](B b, T x, T ids, I i, I j, I k) {
         b.Result("r", b.Define({i, j}, x(i, j).If(AsIndex(ids(0)) < 3) + Sum({k}, x(k, ids(j)))));
       }},
      // An expression that two reductions share: its index runs over each one's range.
      {"r = sum[k](k * 2. * x[k, 0]) + sum[q](q * 2. * x[0, q])",
       [](B b, T x, T, I, I, I k) {
         const Expr shared = Expr(k) * 2.0;
         b.Result("r", b.Define({}, Sum({k}, shared * x(k, 0)) + Sum({k}, shared * x(0, k))));
       }},
      {"r[i] = sum[k](x[k, k] * x[i, k]) + sum[q](x[q, q])",
       [](B b, T x, T, I i, I, I k) {
         const Expr shared = x(k, k);
         b.Result("r", b.Define({i}, Sum({k}, shared * x(i, k)) + Sum({k}, shared)));
       }},
      {"r[i] = ids[i] / 2 + i",
       [](B b, T, T ids, I i, I, I) { b.Result("r", b.Define({i}, ids(i) / 2 + i)); }},
      {"r[i, j] = where(i <= j && x[i, j] > 0, x[i, j], -inf)",
       [](B b, T x, T, I i, I j, I) {
         b.Result("r", b.Define({i, j}, Where(Expr(i <= j) && x(i, j) > 0, x(i, j), -kInf)));
       }},
      {"r[j, i] = x[i, j] / sum[k](x[i, k] * sum[j2](x[k, j2]))",
       [](B b, T x, T, I i, I j, I k) {
         IndexExpr inner = b.NewIndex("k");
         b.Result("r", b.Define({j, i}, x(i, j) / Sum({k}, x(i, k) * Sum({inner}, x(k, inner)))));
       }},
      {"r[i, j] = any[k](x[i, k] == x[j, k]) && floordiv(i, 2) != mod(j, 3)",
       [](B b, T x, T, I i, I j, I k) {
         b.Result("r", b.Define({i, j}, Any({k}, x(i, k) == x(j, k)) && Expr(i / 2 != j % 3)));
       }},
  };
  for (const TextCase& c : cases) {
    std::string text = c.text, signature = "x: f32[M, N], ids: i32[M]", where;
    OpBuilder b("f");
    IndexExpr M = b.Dimension("M"), N = b.Dimension("N");
    TensorRef x = b.Input("x", kF32, {M, N}), ids = b.Input("ids", DType::kI32, {M});
    c.build(b, x, ids, b.NewIndex("i"), b.NewIndex("j"), b.NewIndex("k"));
    if (absl::StrContains(text, "f32[9, N]")) {
      signature += "; $n";
      text.replace(text.find("9, N"), 4, "9, $n");
    }
    if (absl::StrContains(text, "f32[M]")) text.replace(text.find("f32[M]"), 6, "f32[5]");
    if (absl::StrContains(text, "2.5")) where = " where j < 7";
    const absl::StatusOr<Op> expected =
        ParseOp("op f(" + signature + ") -> (r) { " + text + where + " }");
    const absl::StatusOr<Op> built = b.Build();
    ASSERT_TRUE(expected.ok()) << expected.status() << text;
    ASSERT_TRUE(built.ok()) << built.status() << text;
    EXPECT_TRUE(SameOp(*built, *expected)) << text << "\n" << PrintOp(*built) << PrintOp(*expected);
    EXPECT_EQ(built->equalities.size(), expected->equalities.size()) << text;
    const absl::StatusOr<Op> again = ParseOp(PrintOp(*built));
    EXPECT_TRUE(again.ok() && SameOp(*built, *again)) << PrintOp(*built);
  }
}

struct MisuseCase {
  const char* message;  // a part of it
  std::function<TensorRef(OpBuilder&, TensorRef x, TensorRef ids, IndexExpr i, IndexExpr j)> build;
};

TEST(Builder, MisuseIsAStatus) {
  using B = OpBuilder&;
  using T = TensorRef;
  using I = IndexExpr;
  const MisuseCase cases[] = {
      {"op f: definition 1: types f32 and i32 do not mix", [](B b, T x, T ids, I i, I j) { return b.Define({i, j}, x(i, j) + ids(i)); }},
      {"the index 'j' is neither on the left nor reduced", [](B b, T x, T, I i, I j) { return b.Define({i}, x(i, j)); }},
      {"the index 'j' has no range", [](B b, T x, T, I i, I j) { return b.Define({i, j}, x(i, j + 1)); }},
      {"the index 'j' has no range", [](B b, T x, T, I i, I j) { return b.Define({i, j}, x(i, j + 0)); }},
      {"the index 'j' has no range", [](B b, T x, T, I i, I j) { return b.Define({i, j}, x(i, -(-j))); }},
      {"an index value cannot hold a tensor's element", [](B b, T, T ids, I i, I) { return b.Define({i}, AsIndex(ids(i)) + i); }},
      {"types i64 and i32 do not mix: cast one, as in i64(..)", [](B b, T, T ids, I i, I) { return b.Define({i}, ids(i) + i + ids(i) * ids(i) * i * ids(i)); }},
      {"the fill $p is f32, the tensor i32", [](B b, T, T ids, I i, I) { return b.Define({i}, ids(i).Or(b.Param("$p", kF32))); }},
      {"an access inside an index takes no fill", [](B b, T x, T ids, I i, I) { return b.Define({i}, x(ids(i).Or(1), 0)); }},
      {"'ids' has 1 dimensions and is given 2 indices", [](B b, T x, T ids, I i, I) { return b.Define({i}, x(ids(i, i), i)); }},
      {"a scatter by '+=' does not take bool", [](B b, T, T, I i, I) { return b.Scatter(ReduceOp::kSum, DType::kBool, {3}, {i}, true); }},
      {"'o' is a tensor of another builder",
       [](B b, T, T, I i, I) { return b.Define({i}, OpBuilder("g").Input("o", kF32, {3})(i)); }},
      {"an index of another builder", [](B b, T x, T, I i, I) { return b.Define({i}, x(i, OpBuilder("g").NewIndex("o"))); }},
      {"overflows i64", [](B b, T x, T, I i, I) { return b.Define({i}, x(i, IndexExpr(int64_t{1} << 62) * 2)); }},
      {"'x' has 2 dimensions and is given 1 indices", [](B b, T x, T, I i, I) { return b.Define({i}, x(i)); }},
      {"'x' has 2 dimensions and is given 0 indices", [](B b, T x, T, I, I) { return b.Define({}, x); }},
      {"'x' is not an integer tensor", [](B b, T x, T, I i, I j) { return b.Define({i}, x(x(i, j), i)); }},
      {"the index 'i' is already in use", [](B b, T x, T, I i, I) { return b.Define({i}, Sum({i}, x(i, i))); }},
      {"the index 'j' is already in use", [](B b, T x, T, I i, I j) { return b.Define({i}, Sum({j, j}, x(i, j))); }},
      {"standing alone", [](B b, T x, T, I i, I j) { return b.Define({i + 1}, x(i, j)); }},
      {"the literal '2.5' does not fit i32", [](B b, T, T ids, I i, I) { return b.Define({i}, ids(i) * 2.5); }},
      {"the literal '300' does not fit u8", [](B b, T, T, I, I) { return b.Define({}, Cast(DType::kU8, 300)); }},
      {"a fill is a literal", [](B b, T x, T, I i, I j) { return b.Define({i, j}, x(i, j).Or(x(j, i))); }},
      {"'exp' takes a float, is given i32", [](B b, T, T ids, I i, I) { return b.Define({i}, Exp(ids(i))); }},
      {"'any' does not take f32", [](B b, T x, T, I i, I j) { return b.Define({i}, Any({j}, x(i, j))); }},
      {"'pow' takes 2 operands", [](B b, T x, T, I i, I j) { return b.Define({i, j}, Apply(ScalarOp::kPow, {x(i, j)})); }},
      {"types bool and f32 do not mix", [](B b, T x, T, I i, I j) { return b.Define({i, j}, Where(x(i, j), 1, 2)); }},
      {"an index handle that was never set", [](B b, T x, T, I i, I) { return b.Define({i}, x(i, IndexExpr())); }},
      {"a tensor handle that was never set", [](B b, T, T, I i, I) { return b.Define({i}, TensorRef()(i)); }},
      {"a scatter cannot be by 'argmax'", [](B b, T, T, I i, I) { return b.Scatter(ReduceOp::kArgmax, kF32, {3}, {i}, 1); }},
      {"scatter 1: it has 1 dimensions", [](B b, T x, T, I i, I j) { return b.Scatter(ReduceOp::kSum, kF32, {3}, {i, j}, x(i, j)); }},
      {"index k: an extent cannot hold an index", [](B b, T x, T, I i, I) { return b.Define({i}, x(i, b.NewIndex("k", i))); }},
      {"argument x: 'x' is already defined", [](B b, T, T, I, I) { return b.Input("x", kF32, {}); }},
      {"argument sum: 'sum' cannot be", [](B b, T, T, I, I) { return b.Input("sum", kF32, {}); }},
      {"argument y: axis 1: an extent cannot", [](B b, T, T, I i, I) { return b.Input("y", kF32, {2, i}); }},
      {"parameter $p: its default", [](B b, T x, T, I, I) { return b.Param("$p", kI64, {.value = 0.5}), x; }},
      {"parameter $p: a limit must be a number", [](B b, T x, T, I, I) { return b.Param("$p", kF32, {.low = NAN}), x; }},
      {"parameter $p: a limit must be a number", [](B b, T x, T, I, I) { return b.Param("$p", kF32, {.low = kInf}), x; }},
      {"parameter $p: a limit must be a number", [](B b, T x, T, I, I) { return b.Param("$p", kF32, {.high = -kInf}), x; }},
      {"dimension Q is in no argument", [](B b, T x, T, I, I) { return b.Dimension("Q"), x; }},
      {"nested deeper", [](B b, T x, T, I i, I j) {
         Expr e = x(i, j);
         for (int n = 0; n < 2000; ++n) e = e + 1;
         return b.Define({i, j}, e);
       }},
      {"call of matmul: op matmul: argument b is f32", [](B b, T x, T ids, I, I) {
         return b.Call(*MacroLibrary().Instantiate("matmul", {}), {x, ids})[0];
       }},
      {"call of sgd: it has no parameter or dimension '$rate'", [](B b, T x, T, I, I) {
         return b.Call(*MacroLibrary().Instantiate("sgd", {}), {x, x, x}, {{"$rate", 1}})[0];
       }},
  };
  for (const MisuseCase& c : cases) {
    OpBuilder b("f");
    IndexExpr M = b.Dimension("M"), N = b.Dimension("N");
    TensorRef x = b.Input("x", kF32, {M, N}), ids = b.Input("ids", DType::kI32, {M});
    b.Result("r", c.build(b, x, ids, b.NewIndex("i"), b.NewIndex("j")));
    const absl::Status status = b.Build().status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << c.message;
    EXPECT_TRUE(absl::StrContains(status.message(), c.message))
        << status << "\nexpected: " << c.message;
  }
  EXPECT_TRUE(absl::StrContains(OpBuilder("exp").Build().status().message(), "cannot be the name"));
  EXPECT_EQ(OpBuilder("f").Build().status().message(), "op f: it has no result");
}

// Infinities are no limits, as in the notation.
TEST(Builder, InfiniteLimitsAreNone) {
  OpBuilder b("f");
  const TensorRef x = b.Input("x", kF32, {3});
  const Expr p = b.Param("$p", kF32, {.value = kInf, .low = -kInf, .high = 2});
  const IndexExpr k = b.IndexParam("$k", {.low = 0, .high = kInf}), i = b.NewIndex("i", 2);
  b.Result("r", b.Define({i}, x(i + k) * p));
  const absl::StatusOr<Op> op = b.Build();
  ASSERT_TRUE(op.ok()) << op.status();
  const absl::StatusOr<Op> expected =
      ParseOp("op f(x: f32[3]; $p: f32 = inf in [-inf, 2], $k in [0, inf]) -> (r) { r[i] = x[i + "
              "$k] * $p where i < 2 }");
  ASSERT_TRUE(expected.ok()) << expected.status();
  EXPECT_TRUE(SameOp(*op, *expected)) << PrintOp(*op);
}

// A shared subtree is built once, not once per path.
TEST(Builder, SharedExpressionsAreCheap) {
  OpBuilder b("f");
  TensorRef x = b.Input("x", kF32, {b.Dimension("N")});
  IndexExpr i = b.NewIndex("i");
  Expr e = x(i);
  for (int n = 0; n < 200; ++n) e = e * e + 1;
  b.Result("y", b.Define({i}, e));
  const absl::StatusOr<Op> op = b.Build();
  ASSERT_TRUE(op.ok()) << op.status();
  EXPECT_LT(op->graph.size(), 500);
}

TEST(Builder, AGradientOfItsOwnIsUsed) {
  OpBuilder g("clip_grad");
  {
    IndexExpr n = g.NewIndex("n");
    TensorRef adjoint = g.Input("g_y", kF32, {g.Dimension("N")});
    g.Result("g_x", g.Define({n}, adjoint(n) * 42));
  }
  OpBuilder f("clip");
  {
    IndexExpr n = f.NewIndex("n");
    TensorRef x = f.Input("x", kF32, {f.Dimension("N")});
    f.Result("y", f.Define({n}, Max(x(n), 0)));
    f.SetGradient(*g.Build());
  }
  const absl::StatusOr<Op> clip = f.Build();
  ASSERT_TRUE(clip.ok()) << clip.status();
  OpBuilder b("whole");
  IndexExpr i = b.NewIndex("i");
  TensorRef x = b.Input("x", kF32, {b.Dimension("M")});
  TensorRef y = b.Call(*clip, {x})[0];
  b.Result("z", b.Define({i}, y(i) + 1));
  const absl::StatusOr<Op> whole = b.Build();
  ASSERT_TRUE(whole.ok()) << whole.status();
  const absl::StatusOr<GradientResult> gradient = Gradient(*whole);
  ASSERT_TRUE(gradient.ok()) << gradient.status();
  EXPECT_TRUE(absl::StrContains(PrintOp(gradient->op), "42")) << PrintOp(gradient->op);
}

// Every row with defaults for its last operands is called with each number of operands: the
// notation and C++ give the same op as with all operands; one operand fewer than allowed is
// an error.
TEST(Builder, TrailingConstantsMayBeLeftOut) {
  int shorter = 0;
  for (const ScalarOpRow& row : AllScalarOps()) {
    std::string full = "x[i]";
    for (int i = 1; i < row.arity; ++i) {
      const char* const literal = row.defaults[static_cast<size_t>(i)];
      absl::StrAppend(&full, ", ", literal == nullptr ? "x[i]" : literal);
    }
    const auto text = [&](const std::string& operands) {
      return absl::StrCat("op f(x: f32[N]) -> (y) {\n  y[i] = ", row.name, "(", operands, ")\n}\n");
    };
    std::string given;
    for (int count = 1; count < row.arity; ++count) {
      absl::StrAppend(&given, count == 1 ? "" : ", ", "x[i]");
      const bool enough = row.defaults[static_cast<size_t>(count)] != nullptr;
      const absl::StatusOr<Op> parsed = ParseOp(text(given));
      ASSERT_EQ(parsed.ok(), enough) << row.name << " " << parsed.status();
      if (!enough) {
        EXPECT_THAT(std::string(parsed.status().message()), testing::HasSubstr(DescribeArity(row)));
        continue;
      }
      ++shorter;
      const absl::StatusOr<Op> whole = ParseOp(text(full));
      ASSERT_TRUE(whole.ok()) << whole.status();
      EXPECT_EQ(PrintOp(*parsed), PrintOp(*whole));
      OpBuilder b("f");
      const TensorRef x = b.Input("x", kF32, {b.Dimension("N")});
      const IndexExpr i = b.NewIndex("i");
      b.Result("y",
               b.Define({i}, Apply(row.op, std::vector<Expr>(static_cast<size_t>(count), x(i)))));
      const absl::StatusOr<Op> built = b.Build();
      ASSERT_TRUE(built.ok()) << built.status();
      EXPECT_EQ(PrintOp(*built), PrintOp(*whole));
    }
  }
  EXPECT_EQ(shorter, 3);  // leaky_relu, elu, celu
}

}  // namespace
}  // namespace nestor
