// How few blocks fusion leaves of each program: the table of docs/fusion.md. A block
// is a top-level scope that holds a loop. Sizes are symbols throughout.
//
// NESTOR_SHOW=<part of a name> prints the fused programs.
#include <algorithm>
#include <cstdlib>
#include <iostream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "fusion/pipeline.h"
#include "gtest/gtest.h"
#include "loop_ir/dependence.h"
#include "loop_ir/text.h"
#include "loop_ir/verify.h"
#include "nestor.h"

namespace nestor {
namespace {

// The program that is made from the last op of the text.
enum class Make {
  kForward,
  kGradient,  // by `wrt`, given the values that it needs
  kBoth,      // forward and gradient in one program
};

struct Case {
  const char* name;
  Make make;
  const char* wrt;  // for gradients: names with commas; "": all
  int blocks;
  std::string text;
  int rank = 1;   // of packs
  int walks = 1;  // blocks that read inputs
};

std::string Adam(int count) {
  std::string args, results, calls;
  for (int i = 0; i < count; ++i) {
    const std::string comma = i > 0 ? ", " : "";
    for (const char* name : {"p", "g", "m", "v"}) {
      absl::StrAppend(&args, args.empty() ? "" : ", ", name, i, ": f32[N, M]");
    }
    const std::string triple = absl::StrCat("p_new", i, ", m_new", i, ", v_new", i);
    absl::StrAppend(&results, comma, triple);
    absl::StrAppend(&calls, "  (", triple, ") = adam(p", i, ", g", i, ", m", i, ", v", i,
                    "; step=$step)\n");
  }
  return absl::StrCat("op step(", args, "; $step in [1, inf]) -> (", results, ") {\n", calls, "}");
}

const char kBatchNorm[] = R"(
  op batch_norm(x: f32[N, C, H, W], scale: f32[C], bias: f32[C]; $eps: f32 = 1e-5) -> (y) {
    mean[c] = sum[n, h, w](x[n, c, h, w]) / f32(N * H * W)
    variance[c] = sum[n, h, w](square(x[n, c, h, w] - mean[c])) / f32(N * H * W)
    y[n, c, h, w] = (x[n, c, h, w] - mean[c]) * rsqrt(variance[c] + $eps) * scale[c] + bias[c]
  })";
const char kRmsNorm[] = R"(
  op rms_norm(x: f32[N, C], scale: f32[C]; $eps: f32 = 1e-6) -> (y) {
    y[n, c] = x[n, c] * rsqrt(sum[k](square(x[n, k])) / f32(C) + $eps) * scale[c]
  })";
const char kConvBlock[] = R"(
  op conv_bn_relu_add(x: f32[N, C, H, W], w: f32[O, C, R, S], mean: f32[O], variance: f32[O], scale: f32[O],
                      bias: f32[O], skip: f32[N, O, P, Q]; $eps: f32 = 1e-5) -> (y) {
    t = conv2d(x, w; stride=1, pad=1, dilation=1, groups=1)
    y[n, o, h, v] = relu((t[n, o, h, v] - mean[o]) * rsqrt(variance[o] + $eps) * scale[o] + bias[o]) + skip[n, o, h, v]
  })";

std::vector<Case> Cases() {
  return {
      // ---- Elementwise: one extent of outputs, one block
      {"chain", Make::kForward, "", 1,
       "op f(x: f32[N], y: f32[N]) -> (z) { a[i] = sigmoid(x[i] * y[i] + x[i])  ; z[i] = a[i] * y[i] }"},
      {"diamond", Make::kForward, "", 1,
       "op f(x: f32[N]) -> (z) { a[i] = exp(x[i]); b[i] = a[i] + 1; c[i] = a[i] * 2; z[i] = b[i] / c[i] }"},
      {"two outputs", Make::kForward, "", 1,
       "op f(x: f32[N, M]) -> (y, z) { a[i, j] = exp(x[i, j]); y[i, j] = a[i, j] + 1; z[i, j] = a[i, j] * 2 }"},
      {"shifted diamond", Make::kForward, "", 1,
       "op f(x: f32[N]) -> (z) { a[i] = exp(x[i]); z[i] = a[i] + a[i - 1] where i < N }"},
      {"reversed diamond", Make::kForward, "", 1,
       "op f(x: f32[N]) -> (z) { a[i] = exp(x[i]); z[i] = a[i] + a[N - 1 - i] }"},
      {"broadcast of rows", Make::kForward, "", 1,
       "op f(x: f32[N, M], s: f32[M]) -> (y) { t[j] = exp(s[j]); y[i, j] = x[i, j] * t[j] }"},
      {"broadcast of columns", Make::kForward, "", 1,
       "op f(x: f32[N, M], s: f32[N]) -> (y) { t[i] = exp(s[i]); y[i, j] = x[i, j] * t[i] }"},
      {"pad", Make::kForward, "", 1,
       "op f(x: f32[N, M]; $p in [0, inf]) -> (y) { a[i, j] = exp(x[i, j]); y[i, j] = a[i - $p, j - $p | 1] + 2 where i < N + 2 * $p, j < M + 2 * $p }"},
      {"slice", Make::kForward, "", 1,
       "op f(x: f32[N]) -> (y) { a[i] = exp(x[i]); y[i] = a[2 * i + 1] * 3 where i < N / 2 }"},
      {"transpose", Make::kForward, "", 1,
       "op f(x: f32[N, M]) -> (y) { a[i, j] = exp(x[i, j]); y[j, i] = a[i, j] * 3 }"},
      {"transpose and not", Make::kForward, "", 1,
       "op f(x: f32[N, N]) -> (y) { a[i, j] = exp(x[i, j]); y[i, j] = a[i, j] + a[j, i] }"},
      {"concat", Make::kForward, "", 1,
       "op f(x: f32[N], y: f32[M]) -> (z) { a[i] = exp(x[i]); b[i] = sin(y[i]); z[i] = where(i < N, a[i], b[i - N]) where i < N + M }"},
      {"gelu", Make::kForward, "", 1, "op f(x: f32[N, M]) -> (y) { y[i, j] = gelu(x[i, j]) }"},
      {"gelu, gradient", Make::kGradient, "", 1,
       "op f(x: f32[N, M]) -> (y) { y[i, j] = gelu(x[i, j]) }"},
      // ---- Reductions and norms over the last axis
      {"softmax", Make::kForward, "", 1, "softmax"},
      {"log_softmax", Make::kForward, "", 1, "log_softmax"},
      {"logsumexp", Make::kForward, "", 1,
       "op f(x: f32[N, C]) -> (y) { m[n] = max[k](x[n, k]); y[n] = m[n] + log(sum[k](exp(x[n, k] - m[n]))) }"},
      {"layer_norm", Make::kForward, "", 1, "layer_norm"},
      {"layer_norm of rank 4", Make::kForward, "", 1, "layer_norm", 3},
      {"rms_norm", Make::kForward, "", 1, kRmsNorm},
      {"instance_norm", Make::kForward, "", 1,
       "op f(x: f32[N, C, H, W]; $eps: f32 = 1e-5) -> (y) { m[n, c] = sum[h, w](x[n, c, h, w]) / f32(H * W); v[n, c] = sum[h, w](square(x[n, c, h, w] - m[n, c])) / f32(H * W); y[n, c, h, w] = (x[n, c, h, w] - m[n, c]) * rsqrt(v[n, c] + $eps) }"},
      {"std", Make::kForward, "", 1,
       "op f(x: f32[N, C]) -> (y) { m[n] = sum[k](x[n, k]) / f32(C); y[n] = sqrt(sum[k](square(x[n, k] - m[n])) / f32(C - 1)) }"},
      {"argmax", Make::kForward, "", 1, "op f(x: f32[N, C]) -> (y) { y[n] = argmax[k](x[n, k]) }"},
      {"hardmax", Make::kForward, "", 1,
       "op f(x: f32[N, C]) -> (y) { y[n, c] = where(argmax[k](x[n, k]) == c, 1.0, 0.0) where c < C }"},
      {"softmax, gradient", Make::kGradient, "", 1, "softmax"},
      {"log_softmax, gradient", Make::kGradient, "", 1, "log_softmax"},
      {"rms_norm, gradient by x", Make::kGradient, "x", 1, kRmsNorm},
      {"layer_norm, gradient by x", Make::kGradient, "x", 1, "layer_norm"},
      {"layer_norm, gradient by all", Make::kGradient, "", 2, "layer_norm"},
      {"reduction of a reduction", Make::kForward, "", 1,
       "op f(x: f32[I, J, K]) -> (y) { y[i] = sum[j](relu(sum[k](x[i, j, k]))) }"},
      {"rows, columns and maximum", Make::kForward, "", 2,
       "op f(x: f32[N, M]) -> (r, c, m) { r[i] = sum[j](x[i, j]); c[j] = sum[i](x[i, j]); m = max[i, j](x[i, j]) }"},
      {"columns, then elements", Make::kForward, "", 2,
       "op f(x: f32[N, M]) -> (c, y) { c[j] = sum[i](x[i, j]); y[i, j] = x[i, j] * 2 }"},
      // ---- Contractions with what follows
      {"matmul, bias, gelu", Make::kForward, "", 1,
       "op f(a: f32[M, K], b: f32[K, N], bias: f32[N]) -> (y) { c = matmul(a, b); y[i, j] = gelu(c[i, j] + bias[j]) }"},
      {"conv, bias, relu", Make::kForward, "", 1,
       "op f(x: f32[N, C, H, W], w: f32[O, C, R, S], b: f32[O]) -> (y) { t = conv2d(x, w; stride=1, pad=1, dilation=1, groups=1); y[n, o, h, v] = relu(t[n, o, h, v] + b[o]) }"},
      {"conv, batch_norm, relu, residual", Make::kForward, "", 1, kConvBlock},
      {"conv, relu, conv, relu", Make::kForward, "", 2,
       "op f(x: f32[N, C, H, W], w: f32[O, C, R, S], u: f32[P, O, R, S]) -> (y) { a = conv2d(x, w; stride=1, pad=1, dilation=1, groups=1); b[n, o, h, v] = relu(a[n, o, h, v]); c = conv2d(b, u; stride=1, pad=1, dilation=1, groups=1); y[n, o, h, v] = relu(c[n, o, h, v]) }",
       1, 2},
      {"attention with mask", Make::kForward, "", 1,
       "op f(q: f32[B, L, D], k: f32[B, S, D], v: f32[B, S, E], mask: bool[L, S]) -> (y) { t[b, l, s] = where(mask[l, s], sum[d](q[b, l, d] * k[b, s, d]) * rsqrt(f32(D)), -inf); e[b, l, s] = exp(t[b, l, s] - max[z](t[b, l, z])); p[b, l, s] = e[b, l, s] / sum[z](e[b, l, z]); y[b, l, f] = sum[s](p[b, l, s] * v[b, s, f]) }"},
      {"attention", Make::kForward, "", 1, "attention"},
      {"causal attention", Make::kForward, "", 1, "causal_attention"},
      {"conv2d, gradients by x and w", Make::kGradient, "x,w", 2, "conv2d", 1, 2},
      // ---- Training
      {"cross_entropy, forward and gradient", Make::kBoth, "logits", 1, "cross_entropy"},
      {"Adam, one parameter", Make::kForward, "", 1, Adam(1)},
      {"Adam, ten parameters", Make::kForward, "", 1, Adam(10)},
      {"embedding, gradient", Make::kGradient, "table", 2, "embedding"},
      {"batch_norm", Make::kForward, "", 1, kBatchNorm},
      {"batch_norm, forward and gradient", Make::kBoth, "", 1, kBatchNorm},
  };
}

absl::StatusOr<Op> Build(const Case& c) {
  ArgumentSpecs specs;
  for (const char* name : {"x", "q", "k", "v", "ids", "p", "g", "m"}) specs[name].rank = c.rank + 1;
  const bool in_library = !absl::StrContains(c.text, "op ");
  if (c.rank == 1) specs.clear();
  absl::StatusOr<Op> op = in_library ? LibraryOp(c.text, specs) : Parse(c.text, specs);
  if (!op.ok() || c.make == Make::kForward) return op;
  GradientRequest request;
  if (*c.wrt != '\0') request.wrt = absl::StrSplit(c.wrt, ',');
  const absl::StatusOr<GradientResult> gradient = Gradient(*op, request);
  if (!gradient.ok()) return gradient.status();
  if (c.make == Make::kGradient) return gradient->op;
  std::vector<std::string> results;
  for (const Result& result : op->results) results.push_back(result.name);
  for (const std::string& name : gradient->results) results.push_back(name);
  const Op ops[] = {*op, gradient->op};
  return Combine("both", ops, results);
}

int CountBlocks(const loop::Program& program) {
  return static_cast<int>(
      std::count_if(program.body.begin(), program.body.end(),
                    [](const loop::Item& item) { return item.As<loop::Loop>() != nullptr; }));
}

// The number of loops at the top that read elements of an input of rank above 0: a reset does not.
int CountWalks(const loop::Program& program) {
  int count = 0;
  for (const loop::Item& item : program.body) {
    const loop::Footprint footprint = FootprintOf(program, item);
    count += std::any_of(program.inputs.begin(), program.inputs.end(), [&](loop::TensorId input) {
      return footprint.reads.contains(input) && !program[input].shape.empty();
    });
  }
  return count;
}

void Check(const Case& c, loop::Program program, int unfused) {
  fusion::RunOptions options;
  options.verify = true;
  // Pieces of one loop are no loops that could be one.
  fusion::Pipeline pipeline = fusion::Pipeline::Default();
  ASSERT_EQ(pipeline.Disable("split_loops"), absl::OkStatus());
  const absl::Status status = pipeline.Run(program, options);
  ASSERT_TRUE(status.ok()) << status;
  const int blocks = CountBlocks(program);
  std::cout << c.name << ": " << unfused << " -> " << blocks << "\n";
  EXPECT_EQ(blocks, c.blocks) << c.name << "\n" << ToText(program);
  EXPECT_EQ(CountWalks(program), c.walks) << c.name << "\n" << ToText(program);
  const char* show = std::getenv("NESTOR_SHOW");
  if (show != nullptr && absl::StrContains(c.name, show)) std::cout << ToText(program);
}

TEST(FusionBlocks, OfTheTable) {
  for (const Case& c : Cases()) {
    const absl::StatusOr<Op> op = Build(c);
    ASSERT_TRUE(op.ok()) << c.name << ": " << op.status();
    const loop::Program program = Lower(*op);
    Check(c, program, CountBlocks(program));
  }
}

// Loops that pivots keep apart.
TEST(FusionBlocks, OfLoopPrograms) {
  const struct {
    const char* name;
    int blocks;
    const char* text;
    const char* fused;  // "": not compared
  } kCases[] = {
      {"accumulators over j and over k", 1,
       "program p(x: f32[I, J, K]) -> (y: f32[I, J], z: f32[I, K]) {\n"
       "  for i in [0, I) { for j in [0, J) { acc a: f32 = sum  for k in [0, K) { a += x[i, j, k] }  y[i, j] = a } }\n"
       "  for i2 in [0, I) { for k2 in [0, K) { acc b: f32 = sum  for j2 in [0, J) { b += x[i2, j2, k2] }  z[i2, k2] = b } }\n"
       "}\n",
       "program p(x: f32[I, J, K]) -> (y: f32[I, J], z: f32[I, K]) {\n"
       "  for i in [0, I) {\n"
       "    for j in [0, J) {\n"
       "      acc a: f32 = sum\n"
       "      for k in [0, K) {\n"
       "        a += x[i, j, k]\n"
       "      }\n"
       "      y[i, j] = a\n"
       "    }\n"
       "    for k2 in [0, K) {\n"
       "      acc b: f32 = sum\n"
       "      for j2 in [0, J) {\n"
       "        b += x[i, j2, k2]\n"
       "      }\n"
       "      z[i, k2] = b\n"
       "    }\n"
       "  }\n"
       "}\n"},
      {"accumulation into the outputs", 1,
       "program p(x: f32[I, J, K]) -> (y: f32[I, J], z: f32[I, K]) {\n"
       "  for i3 in [0, I) { for j3 in [0, J) { y[i3, j3] = 0.0 } }\n"
       "  for i in [0, I) { for j in [0, J) { for k in [0, K) { y[i, j] += x[i, j, k] } } }\n"
       "  for i4 in [0, I) { for k4 in [0, K) { z[i4, k4] = 0.0 } }\n"
       "  for i2 in [0, I) { for k2 in [0, K) { for j2 in [0, J) { z[i2, k2] += x[i2, j2, k2] } } }\n"
       "}\n",
       ""},
  };
  for (const auto& c : kCases) {
    absl::StatusOr<loop::Program> program = loop::ParseProgram(c.text);
    ASSERT_TRUE(program.ok()) << c.name << program.status();
    ASSERT_TRUE(Verify(*program).ok()) << Verify(*program);
    const int unfused = CountBlocks(*program);
    Check({c.name, Make::kForward, "", c.blocks, ""}, *program, unfused);
    if (*c.fused == '\0') continue;
    ASSERT_TRUE(fusion::Pipeline::Default().Run(*program).ok());
    EXPECT_EQ(ToText(*program), c.fused) << c.name;
  }
}

}  // namespace
}  // namespace nestor
