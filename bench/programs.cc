// Ops of the macro library are called by name. A training step is composed of ops and printed as
// text that denotes the same op.
#include "bench/programs.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/substitute.h"
#include "nestor.h"
#include "uops/invariant.h"

namespace nestor::bench {

std::string SigmoidChain(DType type) {
  return absl::Substitute(
      "op chain(x: $0[N], y: $0[N]) -> (z) { z[i] = sigmoid(x[i] * y[i] + x[i]) * y[i] }",
      Name(type));
}

std::string MultiplyAdd(DType type) {
  return absl::Substitute("op chain(x: $0[N], y: $0[N]) -> (z) { z[i] = x[i] * y[i] + x[i] }",
                          Name(type));
}

std::string SumOver(int axis, DType type) {
  constexpr const char* kAxes[] = {"i", "j", "k"};
  constexpr const char* kKept[] = {"j, k", "i, k", "i, j"};
  const std::string element = IsInteger(type) ? "i32(x[i, j, k])" : "x[i, j, k]";
  return absl::Substitute("op sum_over(x: $0[A, B, C]) -> (y) { y[$1] = sum[$2]($3) }", Name(type),
                          kKept[axis], kAxes[axis], element);
}

std::string Softmax() { return "op f(x: f32[N, C]) -> (y) { y = softmax(x) }"; }
std::string Gelu() { return "op f(x: f32[N, C]) -> (y) { y[n, c] = gelu(x[n, c]) }"; }
std::string LayerNorm() {
  return "op f(x: f32[N, C], scale: f32[C], bias: f32[C]) -> (y) { y = layer_norm(x, scale, bias) }";
}
std::string GeluLayerNorm() {
  return "op f(x: f32[N, C], scale: f32[C], bias: f32[C]) -> (y) {\n"
         "  g[n, c] = gelu(x[n, c])\n"
         "  y = layer_norm(g, scale, bias)\n"
         "}";
}

std::string Transpose() { return "op transpose(x: f32[M, N]) -> (y) { y[j, i] = x[i, j] }"; }
std::string Concat() {
  return "op concat(a: f32[M, A], b: f32[M, B]) -> (y) {\n"
         "  y[i, j] = where(j < A, a[i, j], b[i, j - A]) where i < M, j < A + B\n"
         "}";
}
std::string GatherRows() {
  return "op gather(x: f32[V, D], ids: i64[N]) -> (y) { y[n, d] = x[ids[n], d] }";
}

std::string MatrixProduct(DType type) {
  const std::string product = IsInteger(type) ? "i32(a[i, k]) * i32(b[k, j])" : "a[i, k] * b[k, j]";
  return absl::Substitute("op f(a: $0[M, K], b: $0[K, N]) -> (c) { c[i, j] = sum[k]($1) }",
                          Name(type), product);
}
std::string MatrixProduct() {
  return "op f(a: f32[M, K], b: f32[K, N]) -> (c) { c = matmul(a, b) }";
}
std::string BatchedMatrixProduct() {
  return "op f(a: f32[B, M, K], b: f32[B, K, N]) -> (c) { c = batch_matmul(a, b) }";
}
std::string Convolution(int64_t stride, int64_t pad) {
  return absl::Substitute(
      "op f(x: f32[N, C, H, W], w: f32[O, C, R, S]) -> (y) { y = conv2d(x, w; stride=$0, pad=$1) }",
      stride, pad);
}
std::string ConvolutionChannelsLast(int64_t stride, int64_t pad) {
  return absl::Substitute(
      "op f(x: f32[N, H, W, C], w: f32[O, C, R, S]) -> (y) "
      "{ u[n, c, h, v] = x[n, h, v, c]; t = conv2d(u, w; stride=$0, pad=$1); y[n, h, v, o] = t[n, o, h, v] }",
      stride, pad);
}
std::string DepthwiseConvolution(int64_t stride, int64_t pad) {
  return absl::Substitute(
      "op f(x: f32[N, C, H, W], w: f32[C, 1, R, S]) -> (y) { y = conv2d(x, w; stride=$0, pad=$1, groups=C) }",
      stride, pad);
}
std::string Attention(bool causal) {
  return absl::Substitute(
      "op f(q: f32[B, L, D], k: f32[B, S, D], v: f32[B, S, E]) -> (y) { y = $0(q, k, v) }",
      causal ? "causal_attention" : "attention");
}

std::string RunningSum() { return "op f(x: f32[N]) -> (y) { y = cumsum(x) }"; }
std::string Lstm() {
  return "op f(x: f32[L, N, I], h0: f32[N, H], c0: f32[N, H], wx: f32[4, H, I], wh: f32[4, H, H], bx: f32[4, H],\n"
         "     bh: f32[4, H]) -> (y) {\n"
         "  (y, c) = lstm(x, h0, c0, wx, wh, bx, bh)\n"
         "}";
}

std::string TransformerBlock() {
  return R"(
op block(x: f32[B, L, D], scale1: f32[D], bias1: f32[D], wq: f32[H, E, D], bq: f32[H, E], wk: f32[H, E, D],
         wv: f32[H, E, D], bv: f32[H, E], wo: f32[D, H, E], bo: f32[D], scale2: f32[D], bias2: f32[D],
         w1: f32[F, D], b1: f32[F], w2: f32[D, F], b2: f32[D]) -> (y) {
  n1 = layer_norm(x, scale1, bias1)
  q[b, h, l, e] = sum[i](n1[b, l, i] * wq[h, e, i]) + bq[h, e]
  k[b, h, l, e] = sum[i](n1[b, l, i] * wk[h, e, i])
  v[b, h, l, e] = sum[i](n1[b, l, i] * wv[h, e, i]) + bv[h, e]
  a = attention(q, k, v)
  r[b, l, i] = x[b, l, i] + sum[h, e](a[b, h, l, e] * wo[i, h, e]) + bo[i]
  n2 = layer_norm(r, scale2, bias2)
  u = linear(n2, w1, b1)
  g[b, l, f] = gelu(u[b, l, f])
  d = linear(g, w2, b2)
  y[b, l, i] = r[b, l, i] + d[b, l, i]
}
)";
}

std::vector<std::string> TransformerParameters() {
  return {"scale1", "bias1",  "wq",    "bq", "wk", "wv", "bv", "wo",
          "bo",     "scale2", "bias2", "w1", "b1", "w2", "b2"};
}

std::string TrainingStep(const std::string& notation, const std::vector<std::string>& wrt) {
  const absl::StatusOr<Op> forward = Parse(notation);
  NESTOR_CHECK(forward.ok(), forward.status().ToString());
  const absl::StatusOr<GradientResult> gradient =
      Gradient(*forward, {.of = {}, .wrt = wrt, .given = {}});
  NESTOR_CHECK(gradient.ok(), gradient.status().ToString());
  const absl::StatusOr<Op> step = Combine("training_step", {*forward, gradient->op});
  NESTOR_CHECK(step.ok(), step.status().ToString());
  return PrintOp(*step);
}

}  // namespace nestor::bench
