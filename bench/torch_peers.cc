// Each peer is a function of tensors (bench/torch_peer.h), mostly one of PyTorch's.
#include "bench/torch_peers.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <functional>
#include <utility>

#include "bench/torch_peer.h"

namespace nestor::bench {
namespace {

using Inputs = TorchTensors;

// A peer with one result.
PeerMaker Maker(std::vector<std::string> names,
                std::function<at::Tensor(const Inputs&)> operation) {
  return TorchPeer(std::move(names), [operation = std::move(operation)](const Inputs& in) {
    return Inputs{operation(in)};
  });
}

PeerMaker GradientMaker(std::vector<std::string> names,
                        std::function<at::Tensor(const Inputs&)> operation) {
  return TorchGradientPeer({}, std::move(names), std::move(operation));
}

at::Tensor Attention(const Inputs& in, bool causal) {
  return TorchAttentionOf(in[0], in[1], in[2], causal);
}

}  // namespace

void SetTorchThreads(int threads) { at::set_num_threads(threads); }

PeerMaker TorchSigmoidChain() {
  return Maker({"x", "y"},
               [](const Inputs& in) { return at::sigmoid(in[0] * in[1] + in[0]) * in[1]; });
}
PeerMaker TorchMultiplyAdd() {
  return Maker({"x", "y"}, [](const Inputs& in) { return in[0] * in[1] + in[0]; });
}
PeerMaker TorchSoftmax() {
  return Maker({"x"}, [](const Inputs& in) { return at::softmax(in[0], -1); });
}
PeerMaker TorchGelu() {
  return Maker({"x"}, [](const Inputs& in) { return at::gelu(in[0]); });
}
PeerMaker TorchLayerNorm() {
  return Maker({"x", "scale", "bias"},
               [](const Inputs& in) { return TorchLayerNormOf(in[0], in[1], in[2]); });
}
PeerMaker TorchSum(int axis) {
  return Maker({"x"}, [axis](const Inputs& in) {
    const at::ScalarType type =
        at::isIntegralType(in[0].scalar_type(), false) ? at::kInt : in[0].scalar_type();
    return at::sum(in[0], {axis}, /*keepdim=*/false, type);
  });
}
PeerMaker TorchRunningSum() {
  return Maker({"x"}, [](const Inputs& in) { return at::cumsum(in[0], -1); });
}
PeerMaker TorchMatrixProduct() {
  return Maker({"a", "b"}, [](const Inputs& in) {
    const bool is_integer = at::isIntegralType(in[0].scalar_type(), false);
    return is_integer ? at::matmul(in[0].to(at::kInt), in[1].to(at::kInt))
                      : at::matmul(in[0], in[1]);
  });
}
PeerMaker TorchTranspose() {
  return Maker({"x"}, [](const Inputs& in) { return in[0].t().contiguous(); });
}
PeerMaker TorchConcat() {
  return Maker({"a", "b"}, [](const Inputs& in) { return at::cat({in[0], in[1]}, -1); });
}
PeerMaker TorchGatherRows() {
  return Maker({"x", "ids"}, [](const Inputs& in) { return at::index_select(in[0], 0, in[1]); });
}

PeerMaker TorchGeluLayerNormGradient() {
  return GradientMaker({"x", "scale", "bias"}, [](const Inputs& in) {
    return TorchLayerNormOf(at::gelu(in[0]), in[1], in[2]);
  });
}
PeerMaker TorchAttention(bool causal) {
  return Maker({"q", "k", "v"}, [causal](const Inputs& in) { return Attention(in, causal); });
}
PeerMaker TorchAttentionGradient(bool causal) {
  return GradientMaker({"q", "k", "v"},
                       [causal](const Inputs& in) { return Attention(in, causal); });
}

}  // namespace nestor::bench
