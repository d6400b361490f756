// The common part of all peers of PyTorch: the row's buffers as tensors, and the way from a
// function of tensors to a peer.
#ifndef NESTOR_BENCH_TORCH_PEER_H_
#define NESTOR_BENCH_TORCH_PEER_H_

#include <ATen/ATen.h>

#include <functional>
#include <string>
#include <vector>

#include "bench/row.h"

namespace nestor::bench {

using TorchTensors = std::vector<at::Tensor>;

// `compute` gets the buffers `names` and gives the row's outputs, in order; it is run without
// recording for a gradient, unless it asks for that itself.
PeerMaker TorchPeer(std::vector<std::string> names,
                    std::function<TorchTensors(const TorchTensors&)> compute);

// `compute` gets the buffers `given`, then `wrt`, and gives y. The peer gives y and its gradients
// by `wrt`, from the buffer g_y.
PeerMaker TorchGradientPeer(std::vector<std::string> given, std::vector<std::string> wrt,
                            std::function<at::Tensor(const TorchTensors&)> compute);

// PyTorch's functions with the defaults of the macro library's ops.
at::Tensor TorchLayerNormOf(const at::Tensor& x, const at::Tensor& scale, const at::Tensor& bias);
at::Tensor TorchAttentionOf(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                            bool causal);

}  // namespace nestor::bench

#endif  // NESTOR_BENCH_TORCH_PEER_H_
