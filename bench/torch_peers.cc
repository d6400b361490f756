// Every peer is a function from the row's buffers, seen as tensors without a copy,
// to new tensors. The last ones are kept until the next run, which is also how long
// a program that uses them would hold their memory, and copied into the outputs when
// the results are compared.
#include "bench/torch_peers.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <torch/csrc/autograd/autograd.h>

#include <cstring>
#include <memory>
#include <tuple>

#include "uops/invariant.h"

namespace nestor::bench {
namespace {

at::ScalarType TypeOf(DType type) {
  switch (type) {
    case DType::kBool: return at::kBool;
    case DType::kU8: return at::kByte;
    case DType::kI8: return at::kChar;
    case DType::kI16: return at::kShort;
    case DType::kI32: return at::kInt;
    case DType::kI64: return at::kLong;
    case DType::kBF16: return at::kBFloat16;
    case DType::kF16: return at::kHalf;
    case DType::kF32: return at::kFloat;
    case DType::kF64: return at::kDouble;
    default: NESTOR_CHECK(false, std::string(Name(type)));
  }
  __builtin_unreachable();
}

at::Tensor View(Tensor& tensor) {
  const std::vector<int64_t> shape(tensor.shape().begin(), tensor.shape().end());
  return at::from_blob(tensor.data(), shape, at::TensorOptions().dtype(TypeOf(tensor.type())));
}

// In the order of the row's outputs.
using Results = std::vector<at::Tensor>;

void Deliver(const Results& results, Buffers& buffers) {
  NESTOR_CHECK(results.size() == buffers.outputs().size(), "a peer must give every output");
  for (size_t i = 0; i < results.size(); ++i) {
    Tensor& output = buffers[buffers.outputs()[i]];
    NESTOR_CHECK(results[i].scalar_type() == TypeOf(output.type()), "PyTorch gave another type");
    const at::Tensor compact = results[i].detach().contiguous();
    NESTOR_CHECK(static_cast<int64_t>(compact.nbytes()) == output.num_bytes(), "PyTorch gave another size");
    std::memcpy(output.data(), compact.data_ptr(), output.num_bytes());
  }
}

template <class Compute>
Peer PeerOf(Buffers& buffers, const Compute& compute) {
  const auto results = std::make_shared<Results>();
  return Peer{std::string(kTorch), [results, compute] { *results = compute(); },
              [results, &buffers] { Deliver(*results, buffers); }};
}

// `operation` maps tensors, one for each of `names`, to a tensor; it is run without
// recording for a gradient.
template <class Operation>
PeerMaker Maker(std::vector<std::string> names, const Operation& operation) {
  return [=](Buffers& buffers, int) -> absl::StatusOr<Peer> {
    std::vector<at::Tensor> inputs;
    for (const std::string& name : names) inputs.push_back(View(buffers[name]));
    return PeerOf(buffers, [inputs, operation] {
      const at::NoGradGuard no_gradient;
      return Results{operation(inputs)};
    });
  };
}

using Inputs = std::vector<at::Tensor>;

at::Tensor LayerNorm(const at::Tensor& x, const at::Tensor& scale, const at::Tensor& bias) {
  return at::layer_norm(x, {x.size(-1)}, scale, bias, 1e-5);
}

at::Tensor Attention(const Inputs& in, bool causal) {
  return std::get<0>(at::_scaled_dot_product_attention(in[0], in[1], in[2], /*attn_mask=*/{}, /*dropout_p=*/0,
                                                       /*need_attn_weights=*/false, causal));
}

// As Maker; then the gradients by all inputs, from the buffer g_y.
template <class Operation>
PeerMaker GradientMaker(std::vector<std::string> names, const Operation& operation) {
  return [=](Buffers& buffers, int) -> absl::StatusOr<Peer> {
    Inputs inputs;
    for (const std::string& name : names) inputs.push_back(View(buffers[name]).set_requires_grad(true));
    return PeerOf(buffers, [inputs, operation, g_y = View(buffers["g_y"])] {
      const at::AutoGradMode record(true);
      const at::Tensor y = operation(inputs);
      Results results = torch::autograd::grad({y}, inputs, {g_y});
      results.insert(results.begin(), y.detach());
      return results;
    });
  };
}

}  // namespace

void SetTorchThreads(int threads) { at::set_num_threads(threads); }

PeerMaker TorchSigmoidChain() {
  return Maker({"x", "y"}, [](const Inputs& in) { return at::sigmoid(in[0] * in[1] + in[0]) * in[1]; });
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
  return Maker({"x", "scale", "bias"}, [](const Inputs& in) { return LayerNorm(in[0], in[1], in[2]); });
}
PeerMaker TorchSum(int axis) {
  return Maker({"x"}, [axis](const Inputs& in) {
    const at::ScalarType type = at::isIntegralType(in[0].scalar_type(), false) ? at::kInt : in[0].scalar_type();
    return at::sum(in[0], {axis}, /*keepdim=*/false, type);
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
  return GradientMaker({"x", "scale", "bias"},
                       [](const Inputs& in) { return LayerNorm(at::gelu(in[0]), in[1], in[2]); });
}
PeerMaker TorchAttention(bool causal) {
  return Maker({"q", "k", "v"}, [causal](const Inputs& in) { return Attention(in, causal); });
}
PeerMaker TorchAttentionGradient(bool causal) {
  return GradientMaker({"q", "k", "v"}, [causal](const Inputs& in) { return Attention(in, causal); });
}

}  // namespace nestor::bench
