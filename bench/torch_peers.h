// PyTorch, eager: one library call per operation, each with a new tensor for its result, as a
// PyTorch program runs. Peers of rows of the benchmark; they read and deliver the buffers
// that are named.
#ifndef NESTOR_BENCH_TORCH_PEERS_H_
#define NESTOR_BENCH_TORCH_PEERS_H_

#include "absl/strings/string_view.h"
#include "bench/row.h"

namespace nestor::bench {

inline constexpr absl::string_view kTorch = "PyTorch";

// The number of threads of each operation from now on.
void SetTorchThreads(int threads);

PeerMaker TorchSigmoidChain();   // x, y -> z = sigmoid(x * y + x) * y
PeerMaker TorchMultiplyAdd();    // x, y -> z = x * y + x
PeerMaker TorchSoftmax();        // x -> y, last axis
PeerMaker TorchGelu();           // x -> y, with erf
PeerMaker TorchLayerNorm();      // x, scale, bias -> y, last axis
PeerMaker TorchSum(int axis);    // x -> y, integers to i32
PeerMaker TorchRunningSum();     // x -> y, last axis
PeerMaker TorchMatrixProduct();  // a, b -> c, integers to i32
PeerMaker TorchTranspose();      // x -> y
PeerMaker TorchConcat();         // a, b -> y, last axis
PeerMaker TorchGatherRows();     // x, ids -> y
// q, k, v [B, L, D] -> y, each place of q attending to all of k, or (causal) to those up to it.
PeerMaker TorchAttention(bool causal);
PeerMaker TorchAttentionGradient(bool causal);  // q, k, v, g_y -> y, g_q, g_k, g_v
// layer_norm(gelu(x), scale, bias) and its gradients: x, scale, bias, g_y -> y, g_x,
// g_scale, g_bias.
PeerMaker TorchGeluLayerNormGradient();

}  // namespace nestor::bench

#endif  // NESTOR_BENCH_TORCH_PEERS_H_
