// The programs of the rows, in the notation.
#ifndef NESTOR_BENCH_PROGRAMS_H_
#define NESTOR_BENCH_PROGRAMS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "uops/dtype.h"

namespace nestor::bench {

// x, y: TYPE[N] -> z = sigmoid(x * y + x) * y.
std::string SigmoidChain(DType type);
// x, y: TYPE[N] -> z = x * y + x.
std::string MultiplyAdd(DType type);
// x: TYPE[A, B, C] -> y, without axis 0, 1 or 2. A sum of integers is i32.
std::string SumOver(int axis, DType type);
// x: f32[N, C] (scale, bias: f32[C]) -> y.
std::string Softmax();
std::string Gelu();
std::string LayerNorm();
std::string GeluLayerNorm();
// x: f32[M, N] -> y: f32[N, M].
std::string Transpose();
// a: f32[M, A], b: f32[M, B] -> y: f32[M, A + B].
std::string Concat();
// x: f32[V, D], ids: i64[N] -> y: f32[N, D], y[n] = x[ids[n]].
std::string GatherRows();

// a: f32[M, K], b: f32[K, N] -> c: f32[M, N].
std::string MatrixProduct();
// The same with another type. A sum of integers is i32.
std::string MatrixProduct(DType type);
// a: f32[B, M, K], b: f32[B, K, N] -> c: f32[B, M, N].
std::string BatchedMatrixProduct();
// x: f32[N, C, H, W], w: f32[O, C, R, S] -> y: f32[N, O, ..].
std::string Convolution(int64_t stride, int64_t pad);
// The same, with channels last: x: f32[N, H, W, C] -> y: f32[N, .., O].
std::string ConvolutionChannelsLast(int64_t stride, int64_t pad);
// x: f32[N, C, H, W], w: f32[C, 1, R, S] -> y: f32[N, C, ..], each channel by itself.
std::string DepthwiseConvolution(int64_t stride, int64_t pad);
// q: f32[B, L, D], k: f32[B, S, D], v: f32[B, S, E] -> y: f32[B, L, E].
std::string Attention(bool causal);

// x: f32[N] -> y, the sum of the elements up to each place.
std::string RunningSum();
// x: f32[L, N, I], h0, c0: f32[N, H], wx: f32[4, H, I], wh: f32[4, H, H], bx, bh: f32[4, H] ->
// y: f32[L, N, H].
std::string Lstm();

// A block of a transformer, norms first: x: f32[B, L, D], and the parameters in the order of
// TransformerParameters() -> y. Weights have outputs first, as torch.nn.Linear has them, with an
// axis for H heads: wq, wk, wv: f32[H, E, D], bq, bv: f32[H, E], wo: f32[D, H, E]; between w1 and
// w2 there are F features. Keys have no bias: the softmax cancels it, so that its gradient is zero
// but for rounding, and there is nothing to compare.
std::string TransformerBlock();
// scale1, bias1, wq, bq, wk, wv, bv, wo, bo, scale2, bias2, w1, b1, w2, b2.
std::vector<std::string> TransformerParameters();

// The results of the last op of `notation`, then its gradients by `wrt` (empty: by every float
// argument), as one op: it takes g_<result> in addition. The results are computed once.
std::string TrainingStep(const std::string& notation, const std::vector<std::string>& wrt = {});

}  // namespace nestor::bench

#endif  // NESTOR_BENCH_PROGRAMS_H_
