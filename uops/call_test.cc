// Calls and combinations of ops: what the caller gets, what it must check, and what is refused.
#include "uops/call.h"

#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"
#include "uops/notation/module.h"
#include "uops/notation/print.h"

namespace nestor {
namespace {

Op Parsed(absl::string_view text) {
  const absl::StatusOr<Op> op = ParseOp(text);
  EXPECT_TRUE(op.ok()) << op.status() << "\n" << text;
  return op.value_or(Op());
}

// An op f to call others from: x is f32[P, Q], u is f32[P], ids is i64[P].
struct Caller {
  Op op;
  IndexPool& pool = op.graph.pool();
  IndexId P = pool.Symbol("P"), Q = pool.Symbol("Q");
  NodeId x = Input("x", DType::kF32, {P, Q}), u = Input("u", DType::kF32, {P});
  NodeId ids = Input("ids", DType::kI64, {P});

  Caller() { op.name = "f"; }
  NodeId Input(const std::string& name, DType type, const Shape& shape) {
    const NodeId node = op.graph.AddInput(name, type, shape);
    op.args.push_back({name, type, shape, false, node});
    return node;
  }
  NodeId Number(double value) { return op.graph.AddConstant(Scalar::Float(DType::kF32, value)); }
  // All that a call may change, but for nodes.
  std::string Rest() const {
    return absl::StrCat(op.args.size(), " args ", op.params.size(), " params ", op.results.size(),
                        " results ", op.custom_calls.size(), " calls\n", Checks());
  }
  std::string Checks() const {
    const auto end = [](const absl::optional<int64_t>& value) {
      return value ? absl::StrCat(*value) : "any";
    };
    std::string text;
    for (const Equality& e : op.equalities) {
      absl::StrAppend(&text, SymbolicText(pool, e.left), " == ", SymbolicText(pool, e.right), ": ",
                      e.message, "\n");
    }
    for (const RangeCheck& check : op.range_checks) {
      absl::StrAppend(&text, SymbolicText(pool, check.value), " in [", end(check.low), ", ",
                      end(check.high), "]: ", check.message, "\n");
    }
    return text;
  }
};

using Give = std::vector<NodeId> (*)(Caller& f, CallBindings& bindings);

struct CallCase {
  const char* callee;
  Give give;           // the arguments, and what is bound
  const char* result;  // the statements that f has then
  const char* checks;
};

TEST(Call, InlinesTheCallee) {
  using F = Caller&;
  using B = CallBindings&;
  // clang-format off
  constexpr CallCase kCases[] = {
      // Dimensions are the caller's. Where they differ from the callee's, the argument is read over
      // the callee's, and the caller checks that they are equal.
      {"op g(a: f32[N]) -> (y) { y[i] = a[i] * i where i < N }",
       [](F f, B) { return std::vector<NodeId>{f.u}; }, "  y[i] = u[i] * f32(i)\n", ""},
      {"op g(a: f32[N], b: f32[N, N]) -> (y) { y[i] = a[i] + b[i, 0] }",
       [](F f, B) { return std::vector<NodeId>{f.u, f.x}; }, "  t0[i, j] = x[i, j] where j < P\n  y[i] = u[i] + t0[i, 0]\n",
       "Q == P: op g: axis 1 of b (N)\n"},
      {"op g(a: f32[3], b: f32[N, 2*N]) -> (y) { y[i] = b[i, 2*i] }",
       [](F f, B) { return std::vector<NodeId>{f.u, f.x}; }, "  t0[i, j] = x[i, j] where j < 2*P\n  y[i] = t0[i, 2*i]\n",
       "P == 3: op g: axis 0 of a (3)\nQ == 2*P: op g: axis 1 of b (2*N)\n"},
      // A dimension that no axis has alone, and one that an axis has: that is taken.
      {"op g(a: f32[N + 1]) -> (y) { y[i] = a[i + 1] where i < N }",
       [](F f, B b) { b.indices["N"] = f.pool.Sub(f.P, f.pool.Const(1)); return std::vector<NodeId>{f.u}; },
       "  y[i] = u[i + 1] where i < P - 1\n", ""},
      {"op g(a: f32[N]) -> (y) { y[i] = i where i < N }",
       [](F f, B b) { b.indices["N"] = f.Q; return std::vector<NodeId>{f.u}; }, "  y[i] = i where i < P\n", ""},
      // The callee's own checks.
      {"op g(a: f32[N], b: f32[M]) -> (y) { y[i] = a[i] * b[i] }",
       [](F f, B) { return std::vector<NodeId>{f.u, f.op.graph.AddReindex(f.x, {f.Q}, {f.pool.Const(0), f.pool.Var(0)})}; },
       "  t0[i] = x[0, i]\n  y[i] = u[i] * t0[i]\n", "P == Q: op g: index i runs over axis 0 of a (N) and over axis 0 of b (M)\n"},
      // Only the shape of an argument that is one, of any type.
      {"op g(a: shape f32[N]) -> (y) { y[i] = i where i < N }",
       [](F f, B) { return std::vector<NodeId>{f.ids}; }, "  y[i] = i where i < P\n", ""},
      // Integer $params: a default, an expression, a range that must be checked when it runs.
      {"op g(a: f32[N]; $k = 2 in [0, 5]) -> (y) { y[i] = a[i + $k] where i < N }",
       [](F f, B) { return std::vector<NodeId>{f.u}; }, "  y[i] = u[i + 2] where i < P\n", ""},
      {"op g(a: f32[N]; $k = 2 in [0, 5]) -> (y) { y[i] = a[i + $k] where i < N }",
       [](F f, B b) { b.indices["$k"] = f.pool.Const(5); return std::vector<NodeId>{f.u}; }, "  y[i] = u[i + 5] where i < P\n", ""},
      {"op g(a: f32[N]; $k in [1, inf], $j in [-inf, 7]) -> (y) { y[i] = a[i + $k - $j] where i < N }",
       [](F f, B b) { b.indices["$k"] = f.Q; b.indices["$j"] = f.pool.Add(f.Q, f.P); return std::vector<NodeId>{f.u}; },
       "  y[i] = u[i - P] where i < P\n", "Q in [1, any]: op g: $k\nP + Q in [any, 7]: op g: $j\n"},
      {"op g(a: i64[N]; $k = 2) -> (y) { y[i] = a[i + 1 | $k] where i < N }",
       [](F f, B) { return std::vector<NodeId>{f.ids}; }, "  y[i] = ids[i + 1 | 2] where i < P\n", ""},
      // What its type can hold is a range, too.
      {"op g(a: f32[N]; $k: u8, $j: i8 in [-3, inf]) -> (y) { y[i] = a[i + $k - $j] where i < N }",
       [](F f, B b) { b.indices["$k"] = f.Q; b.indices["$j"] = f.pool.Add(f.Q, f.P); return std::vector<NodeId>{f.u}; },
       "  y[i] = u[i - P] where i < P\n", "Q in [0, 255]: op g: $k\nP + Q in [-3, 127]: op g: $j\n"},
      // Others are values.
      {"op g(a: f32[N]; $s: f32 = 0.5 in [0, 1], $b: bool = true) -> (y) { y[i] = where($b, a[i] * $s, a[i]) }",
       [](F f, B) { return std::vector<NodeId>{f.u}; }, "  y[i] = where(true, u[i] * 0.5, u[i])\n", ""},
      {"op g(a: f32[N]; $s: f32 in [0, 1]) -> (y) { y[i] = a[i] * $s }",
       [](F f, B b) { b.values["$s"] = f.Number(1); return std::vector<NodeId>{f.u}; }, "  y[i] = u[i] * 1.0\n", ""},
      {"op g(a: f32[N]; $s: f32) -> (y) { y[i] = a[i] * $s }",
       [](F f, B b) { b.values["$s"] = f.op.graph.AddReduce(ReduceOp::kSum, f.u, {0}); return std::vector<NodeId>{f.u}; },
       "  y[i] = u[i] * sum[j](u[j])\n", ""},
  };
  // clang-format on
  for (const CallCase& c : kCases) {
    const Op callee = Parsed(c.callee);
    Caller f;
    CallBindings bindings;
    const std::vector<NodeId> args = c.give(f, bindings);
    const absl::StatusOr<std::vector<NodeId>> made = CallOp(callee, args, bindings, f.op);
    ASSERT_TRUE(made.ok()) << c.callee << ": " << made.status();
    ASSERT_EQ(made->size(), 1u);
    EXPECT_EQ(f.Checks(), c.checks) << c.callee;
    f.op.results.push_back({"y", made->front()});
    EXPECT_EQ(PrintOp(f.op), absl::StrCat("op f(x: f32[P, Q], u: f32[P], ids: i64[P]) -> (y) {\n",
                                          c.result, "}\n"))
        << c.callee;
  }
}

// A $param of the caller that is given for one of the callee gets the callee's range, too.
TEST(Call, NarrowsTheCallersParams) {
  const Op callee = Parsed(
      "op g(a: f32[N]; $s: f32 in [0, 1], $t: f32 in [-inf, 3]) -> (y) { y[i] = a[i] * $s + $t }");
  const auto called_by = [&](const char* given) {
    Op caller =
        Parsed(absl::StrCat("op f(u: f32[P]; $q: f32", given, ") -> (y) { y[i] = u[i] * $q }"));
    const NodeId q = caller.graph.AddParam("$q", DType::kF32);
    CallBindings bindings;
    bindings.values = {{"$s", q}, {"$t", q}};
    EXPECT_TRUE(CallOp(callee, {caller.args[0].node}, bindings, caller).ok()) << given;
    const std::string text = PrintOp(caller);
    return text.substr(0, text.find(')'));
  };
  EXPECT_EQ(called_by(""), "op f(u: f32[P]; $q: f32 in [0.0, 1.0]");
  EXPECT_EQ(called_by(" in [0.5, 8]"), "op f(u: f32[P]; $q: f32 in [0.5, 1.0]");
  EXPECT_EQ(called_by(" in [-2, 0.25]"), "op f(u: f32[P]; $q: f32 in [0.0, 0.25]");
}

struct RefusedCall {
  const char* callee;
  Give give;
  const char* message;
};

// The message, after "op g: ". The caller stays as it was.
TEST(Call, Refuses) {
  using F = Caller&;
  using B = CallBindings&;
  // clang-format off
  constexpr RefusedCall kCases[] = {
      {"op g(a: f32[N], b: f32[N]) -> (y) { y[i] = a[i] + b[i] }",
       [](F f, B) { return std::vector<NodeId>{f.u}; }, "takes 2 tensors, is given 1"},
      {"op g(a: f32[N]) -> (y) { y[i] = a[i] }",
       [](F f, B) { return std::vector<NodeId>{f.ids}; }, "argument a is f32, is given i64"},
      {"op g(a: f32[N]) -> (y) { y[i] = a[i] }",
       [](F f, B) { return std::vector<NodeId>{f.x}; }, "argument a has 1 dimensions, is given 2"},
      {"op g(a: shape f32[N]) -> (y) { y[i] = i where i < N }",
       [](F f, B) { return std::vector<NodeId>{f.x}; }, "argument a has 1 dimensions, is given 2"},
      {"op g(a: f32[N]; $k) -> (y) { y[i] = a[i + $k] where i < N }",
       [](F f, B b) { b.indices["k"] = f.P; return std::vector<NodeId>{f.u}; }, "$k has no default and must be given"},
      {"op g(a: f32[N]; $s: f32) -> (y) { y[i] = a[i] * $s }",
       [](F f, B b) { b.indices["$s"] = f.P; return std::vector<NodeId>{f.u}; }, "$s has no default and must be given"},
      {"op g(a: f32[N]; $k = 2 in [0, 5]) -> (y) { y[i] = a[i + $k] where i < N }",
       [](F f, B b) { b.indices["$k"] = f.pool.Const(6); return std::vector<NodeId>{f.u}; }, "$k = 6 is out of its range"},
      {"op g(a: f32[N]; $k in [1, inf]) -> (y) { y[i] = a[i + $k] where i < N }",
       [](F f, B b) { b.indices["$k"] = f.pool.Sub(f.P, f.P); return std::vector<NodeId>{f.u}; }, "$k = 0 is out of its range"},
      {"op g(a: f32[N]; $s: f32 in [0, 1]) -> (y) { y[i] = a[i] * $s }",
       [](F f, B b) { b.values["$s"] = f.Number(1.5); return std::vector<NodeId>{f.u}; }, "$s = 1.5 is out of its range"},
      {"op g(a: f32[N]; $s: f32 in [-inf, 1]) -> (y) { y[i] = a[i] * $s }",
       [](F f, B b) { b.values["$s"] = f.Number(-std::numeric_limits<double>::quiet_NaN()); return std::vector<NodeId>{f.u}; }, "$s = nan is out of its range"},
      {"op g(a: f32[N]; $k: u8) -> (y) { y[i] = a[i + $k] where i < N }",
       [](F f, B b) { b.indices["$k"] = f.pool.Const(300); return std::vector<NodeId>{f.u}; }, "$k = 300 is out of its range"},
      {"op g(a: f32[N]; $k: u64) -> (y) { y[i] = a[i + $k] where i < N }",
       [](F f, B b) { b.indices["$k"] = f.pool.Const(-1); return std::vector<NodeId>{f.u}; }, "$k = -1 is out of its range"},
      {"op g(a: f32[N]; $s: f32) -> (y) { y[i] = a[i] * $s }",
       [](F f, B b) { b.values["$s"] = f.u; return std::vector<NodeId>{f.u}; }, "$s is f32 of rank 0, is given f32 of rank 1"},
      {"op g(a: f32[N]; $s: f64) -> (y) { y[i] = f64(a[i]) * $s }",
       [](F f, B b) { b.values["$s"] = f.Number(1); return std::vector<NodeId>{f.u}; }, "$s is f64 of rank 0, is given f32 of rank 0"},
      {"op g(a: u8[N]; $k: u8 = 1) -> (y) { y[i] = a[i + 1 | $k] where i < N }",
       [](F f, B b) {
         f.op.params.push_back({"$b", DType::kI64, {}, {}, {}});
         b.indices["$k"] = f.pool.Symbol("$b");
         return std::vector<NodeId>{f.op.graph.AddCast(f.ids, DType::kU8)};
       }, "$k is the fill of an access and must be u8, is given $b, which is i64"},
      // What is checked before the error would need a check of the caller, which is not added.
      {"op g(a: f32[N]; $k in [1, inf], $j) -> (y) { y[i] = a[i + $k + $j] where i < N }",
       [](F f, B b) { b.indices["$k"] = f.Q; return std::vector<NodeId>{f.u}; }, "$j has no default and must be given"},
      {"op g(a: f32[N, N], b: f32[M + K]) -> (y) { y[i] = a[i, i] where i < N }",
       [](F f, B b) { b.indices["K"] = f.P; return std::vector<NodeId>{f.x, f.u}; }, "dimension M cannot be had from the arguments"},
      {"op g(a: i64[N], b: f32[N, N]; $k = 2) -> (y) { y[i] = a[i + 1 | $k] where i < N }",
       [](F f, B b) { b.indices["$k"] = f.P; return std::vector<NodeId>{f.ids, f.x}; }, "$k is the fill of an access and must be a literal or a $param"},
  };
  // clang-format on
  for (const RefusedCall& c : kCases) {
    const Op callee = Parsed(c.callee);
    Caller f;
    CallBindings bindings;
    const std::vector<NodeId> args = c.give(f, bindings);
    const std::string before = f.Rest();
    const absl::Status status = CallOp(callee, args, bindings, f.op).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << c.callee;
    EXPECT_EQ(status.message(), absl::StrCat("op g: ", c.message));
    EXPECT_EQ(f.Rest(), before) << c.callee;
  }
}

// A call of an op with a gradient is noted; where its caller is called, the note moves along.
TEST(Call, NotesOpsWithTheirOwnGradient) {
  Op square =
      Parsed("op square_it(a: f32[N]; $k = 1, $s: f32 = 2.0) -> (y, z) { y[i] = a[i + $k] * "
             "$s where i < N; z[i] = a[i] }");
  square.gradient = std::make_shared<const Op>(
      Parsed("op square_grad(g_y: f32[N], g_z: f32[N]) -> (g_a) { g_a[i] = g_y[i] + g_z[i] }"));
  Caller f;
  CallBindings bindings;
  bindings.indices["$k"] = f.Q;
  const std::vector<NodeId> results = CallOp(square, {f.u}, bindings, f.op).value();
  ASSERT_EQ(f.op.custom_calls.size(), 1u);
  const Op::CustomCall& call = f.op.custom_calls[0];
  EXPECT_EQ(call.op->name, "square_it");
  EXPECT_EQ(call.args, std::vector<NodeId>{f.u});
  EXPECT_EQ(call.results, results);
  ASSERT_EQ(call.index_params.size(), 1u);
  EXPECT_EQ(call.index_params[0], (std::pair<std::string, IndexId>("$k", f.Q)));
  ASSERT_EQ(call.value_params.size(), 1u);
  EXPECT_EQ(call.value_params[0], (std::pair<std::string, NodeId>("$s", f.Number(2))));
  for (NodeId result : results) EXPECT_EQ(f.op.graph.As<Map>(result)->tag, 1);
  for (const char* name : {"y", "z"}) f.op.results.push_back({name, results[f.op.results.size()]});

  // Called twice from another op: tags go on, and dimensions are that op's.
  Caller outer;
  const IndexId R = outer.pool.Symbol("R"), S = outer.pool.Symbol("S");
  const NodeId b = outer.Input("b", DType::kF32, {R, S}), a = outer.Input("a", DType::kF32, {R});
  const std::vector<NodeId> first =
      CallOp(f.op, {outer.x, outer.u, outer.ids}, {}, outer.op).value();
  const std::vector<NodeId> second = CallOp(f.op, {b, a, outer.ids}, {}, outer.op).value();
  ASSERT_EQ(outer.op.custom_calls.size(), 2u);
  EXPECT_EQ(outer.op.custom_calls[0].args, std::vector<NodeId>{outer.u});
  EXPECT_EQ(outer.op.custom_calls[0].results, first);
  EXPECT_EQ(outer.op.custom_calls[0].index_params[0].second, outer.Q);
  EXPECT_EQ(outer.op.custom_calls[1].args, std::vector<NodeId>{a});
  EXPECT_EQ(outer.op.custom_calls[1].results, second);
  EXPECT_EQ(outer.op.custom_calls[1].index_params[0].second, S);
  EXPECT_EQ(outer.op.graph.As<Constant>(outer.op.custom_calls[1].value_params[0].second)->value,
            Scalar::Float(DType::kF32, 2));
  EXPECT_EQ(outer.op.graph.As<Map>(first[0])->tag, 1);
  EXPECT_EQ(outer.op.graph.As<Map>(second[1])->tag, 2);
}

// ---- Combine

// The result is a copy, where the gradient has its place, and has the name of the argument.
TEST(Combine, TakesAnArgumentThatAnOpWithItsOwnGradientHandsOn) {
  Op reversed = Parsed("op reversed(x: f32[N]) -> (y, x) { y[i] = exp(x[i]) }");
  reversed.gradient =
      std::make_shared<const Op>(Parsed("op back(g_y: f32[N]) -> (g_x) { g_x[i] = -g_y[i] }"));
  absl::StatusOr<Op> whole = Combine("whole", {reversed});
  ASSERT_TRUE(whole.ok()) << whole.status();
  for (int level = 0; level < 2; ++level) {
    EXPECT_EQ(whole->graph.As<Map>(whole->results[1].node)->tag, level + 1);
    const std::string text = PrintOp(*whole);
    EXPECT_EQ(text,
              absl::StrCat("op whole(x: f32[N]) -> (y, x) {\n  y[i] = ",
                           level == 0 ? "copy(exp(x[i]))" : "copy(copy(exp(x[i])))", "\n}\n"));
    EXPECT_TRUE(ParseOp(text).ok()) << ParseOp(text).status();
    whole->gradient = reversed.gradient;
    whole = Combine("whole", {*whole});
    ASSERT_TRUE(whole.ok()) << whole.status();
  }
}

struct CombineCase {
  std::vector<const char*> ops;
  std::vector<std::string> results;
  const char* text;  // of the whole, or the message
};

constexpr char kLinear[] =
    "op linear(x: f32[N, K], w: f32[K, M]) -> (h) { h[i, j] = sum[k](x[i, k] * w[k, j]) }";
constexpr char kExp[] = "op e(h: f32[N, M]) -> (y) { y[i, j] = exp(h[i, j]) }";

std::vector<Op> AllParsed(const std::vector<const char*>& texts) {
  std::vector<Op> ops;
  for (const char* text : texts) ops.push_back(Parsed(text));
  return ops;
}

TEST(Combine, ConnectsByNames) {
  const CombineCase kCases[] = {
      {{kLinear, kExp},
       {"y"},
       "op whole(x: f32[N, K], w: f32[K, M]) -> (y) {\n"
       "  y[i, j] = exp(sum[k](x[i, k] * w[k, j]))\n}\n"},
      // All results, in order.
      {{kLinear, kExp},
       {},
       "op whole(x: f32[N, K], w: f32[K, M]) -> (h, y) {\n"
       "  h[i, j] = sum[k](x[i, k] * w[k, j])\n  y[i, j] = exp(h[i, j])\n}\n"},
      {{kLinear, kExp},
       {"y", "h"},
       "op whole(x: f32[N, K], w: f32[K, M]) -> (y, h) {\n"
       "  h[i, j] = sum[k](x[i, k] * w[k, j])\n  y[i, j] = exp(h[i, j])\n}\n"},
      // An argument before the op that has a result of its name, and after it.
      {{kExp, "op g(x: f32[N]) -> (h) { h[i, j] = x[i] * x[j] }",
        "op k(h: f32[N, M]) -> (z) { z[i] = h[i, 0] }"},
       {"y", "z"},
       "op whole(h: f32[N, M], x: f32[N]) -> (y, z) {\n"
       "  y[i, j] = exp(h[i, j])\n  t0[i, j] = x[i] * x[j]\n  z[i] = t0[i, 0]\n}\n"},
      // One argument of two ops, of which one reads more than the shape.
      {{"op a(x: shape f32[N]) -> (p) { p[i] = i where i < N }",
        "op b(x: f32[N]) -> (q) { q[i] = x[i] }"},
       {},
       "op whole(x: f32[N]) -> (p, q) {\n  p[i] = i where i < N\n  q[i] = x[i]\n}\n"},
      {{"op a(x: shape f32[N]) -> (p) { p[i] = i where i < N }"},
       {},
       "op whole(x: shape f32[N]) -> (p) {\n  p[i] = i where i < N\n}\n"},
      // A $param of two ops, by its first default; others in order.
      {{"op a(x: f32[N]; $k = 1, $s: f32 in [0, 1]) -> (p) { p[i] = x[i + $k] * $s where i < N }",
        "op b(x: f32[N]; $b: bool, $k = 2) -> (q) { q[i] = x[i - $k] where i < N }"},
       {},
       "op whole(x: f32[N]; $k = 1, $s: f32 in [0.0, 1.0], $b: bool) -> (p, q) {\n"
       "  p[i] = x[i + $k] * $s where i < N\n  q[i] = x[i - $k] where i < N\n}\n"},
      // A dimension is the extent of what an earlier op gives, also where other ops have another
      // dimension of its name; dimensions that no earlier op gives are one.
      {{kLinear, "op bias(b: f32[N], h: f32[B, N], d: f32[K]) -> (y) { y[i, j] = h[i, j] + b[j] * "
                 "d[0] }"},
       {"y"},
       "op whole(x: f32[N, K], w: f32[K, M], b: f32[M], d: f32[K]) -> (y) {\n"
       "  y[i, j] = sum[k](x[i, k] * w[k, j]) + b[j] * d[0]\n}\n"},
      {{"op a(x: f32[N]; $k) -> (h) { h[i] = x[0] where i < 2*N + $k }",
        "op b(h: f32[K], z: f32[K + 1]) -> (y) { y[i] = h[i] + z[i + 1] }"},
       {"y"},
       "op whole(x: f32[N], z: f32[$k + 2*N + 1]; $k) -> (y) {\n"
       "  y[i] = x[0] + z[i + 1] where i < $k + 2*N\n}\n"},
      // An argument as a result, by its own name.
      {{"op a(x: f32[N]) -> (x, y) { y[i] = exp(x[i]) }"},
       {},
       "op whole(x: f32[N]) -> (x, y) {\n  y[i] = exp(x[i])\n}\n"},
      // Inside, a name may be both.
      {{"op a(x: f32[N]) -> (x) { }", "op b(x: f32[N]) -> (h) { h[i] = x[i] + 1.0 }",
        "op c(h: f32[Q]) -> (N) { N[i] = 2.0 * h[i] }",
        "op d(N: f32[K]) -> (x) { x[i] = exp(N[i]) }",
        "op e(x: f32[N]) -> (y) { y[i] = sin(x[i]) }"},
       {"y"},
       "op whole(x: f32[N]) -> (y) {\n  y[i] = sin(exp(2.0 * (x[i] + 1.0)))\n}\n"},
      // The last result of a name.
      {{"op a(x: f32[N]) -> (y) { y[i] = exp(x[i]) }",
        "op b(x: f32[N]) -> (y) { y[i] = sin(x[i]) }"},
       {"y"},
       "op whole(x: f32[N]) -> (y) {\n  y[i] = sin(x[i])\n}\n"},
  };
  for (const CombineCase& c : kCases) {
    const absl::StatusOr<Op> whole = Combine("whole", AllParsed(c.ops), c.results);
    ASSERT_TRUE(whole.ok()) << whole.status() << c.text;
    EXPECT_EQ(PrintOp(*whole), c.text);
    const absl::StatusOr<Op> read = ParseOp(PrintOp(*whole));
    ASSERT_TRUE(read.ok()) << read.status() << c.text;
    EXPECT_TRUE(SameOp(*read, *whole)) << c.text;
  }
}

TEST(Combine, Refuses) {
  const CombineCase kCases[] = {
      {{kLinear, kExp}, {"z"}, "Combine: no op has a result named z"},
      {{kLinear, kLinear}, {}, "Combine: two ops have a result named h"},
      {{"op a(x: f32[N]; $k = 1) -> (p) { p[i] = x[i + $k] where i < N }",
        "op b(x: f32[N]; $k: f32) -> (q) { q[i] = x[i] * $k }"},
       {},
       "$k is i64 in one op and f32 in another"},
      {{"op a(x: f32[N]) -> (h) { h[i] = x[i] }", kExp},
       {},
       "op e: argument h has 2 dimensions, is given 1"},
      {{"op a(x: f32[N]) -> (p) { p[i] = x[i] }", "op b(x: i64[N]) -> (q) { q[i] = x[i] }"},
       {},
       "op b: argument x is i64, is given f32"},
      // What could not be read back.
      {{kLinear, kExp}, {"y", "h", "y"}, "Combine: the result y is named twice"},
      {{kLinear}, {"x"}, "Combine: no op has a result named x"},
      {{kExp, "op g(y: f32[N, M]) -> (h) { h[i, j] = y[i, j] }"},
       {},
       "Combine: the result h has the name of an argument"},
      {{kExp, "op g(y: f32[P, Q]) -> (M) { M[i, j] = y[i, j] }"},
       {"M"},
       "Combine: the result M has the name of a dimension of h"},
      {{"op a(x: f32[2*N, N]) -> (y) { y[i, j] = x[i, j] }",
        "op b(N: f32[K]) -> (z) { z[i] = N[i] }"},
       {"z"},
       "Combine: the argument N has the name of a dimension of x"},
  };
  for (const CombineCase& c : kCases) {
    const absl::Status status = Combine("whole", AllParsed(c.ops), c.results).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(status.message(), c.text);
  }
  for (const char* name : {"", "sum", "f32", "exp", "2nd", "one-step", "$k"}) {
    const absl::Status status = Combine(name, AllParsed({kExp})).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(status.message(), absl::StrCat("Combine: '", name, "' cannot be the name of an op"));
  }
}

}  // namespace
}  // namespace nestor
