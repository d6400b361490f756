// Every peer is a function from the row's buffers, seen as tensors without a copy,
// to new tensors. The last ones are kept until the next run, which is also how long
// a program that uses them would hold their memory, and copied into the outputs when
// the results are compared.
#include "bench/torch_peer.h"

#include <torch/csrc/autograd/autograd.h>

#include <cstring>
#include <memory>
#include <tuple>
#include <utility>

#include "bench/torch_peers.h"
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

TorchTensors Views(const std::vector<std::string>& names, Buffers& buffers) {
  TorchTensors views;
  for (const std::string& name : names) views.push_back(View(buffers[name]));
  return views;
}

// `results` are in the order of the row's outputs.
void Deliver(const TorchTensors& results, Buffers& buffers) {
  NESTOR_CHECK(results.size() == buffers.outputs().size(), "a peer must give every output");
  for (size_t i = 0; i < results.size(); ++i) {
    Tensor& output = buffers[buffers.outputs()[i]];
    NESTOR_CHECK(results[i].scalar_type() == TypeOf(output.type()), "PyTorch gave another type");
    const at::Tensor compact = results[i].detach().contiguous();
    NESTOR_CHECK(static_cast<int64_t>(compact.nbytes()) == output.num_bytes(),
                 "PyTorch gave another size");
    std::memcpy(output.data(), compact.data_ptr(), output.num_bytes());
  }
}

Peer PeerOf(Buffers& buffers, const std::function<TorchTensors()>& compute) {
  const auto results = std::make_shared<TorchTensors>();
  return Peer{std::string(kTorch), [results, compute] { *results = compute(); },
              [results, &buffers] { Deliver(*results, buffers); }};
}

}  // namespace

PeerMaker TorchPeer(std::vector<std::string> names,
                    std::function<TorchTensors(const TorchTensors&)> compute) {
  return [=](Buffers& buffers, int) -> absl::StatusOr<Peer> {
    return PeerOf(buffers, [inputs = Views(names, buffers), compute] {
      const at::NoGradGuard no_gradient;
      return compute(inputs);
    });
  };
}

PeerMaker TorchGradientPeer(std::vector<std::string> given, std::vector<std::string> wrt,
                            std::function<at::Tensor(const TorchTensors&)> compute) {
  return [=](Buffers& buffers, int) -> absl::StatusOr<Peer> {
    TorchTensors leaves = Views(wrt, buffers);
    for (at::Tensor& leaf : leaves) leaf.set_requires_grad(true);
    TorchTensors inputs = Views(given, buffers);
    inputs.insert(inputs.end(), leaves.begin(), leaves.end());
    return PeerOf(buffers, [inputs, leaves, compute, g_y = View(buffers["g_y"])] {
      const at::AutoGradMode record(true);
      const at::Tensor y = compute(inputs);
      TorchTensors results = torch::autograd::grad({y}, leaves, {g_y});
      results.insert(results.begin(), y.detach());
      return results;
    });
  };
}

at::Tensor TorchLayerNormOf(const at::Tensor& x, const at::Tensor& scale, const at::Tensor& bias) {
  return at::layer_norm(x, {x.size(-1)}, scale, bias, 1e-5);
}

at::Tensor TorchAttentionOf(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                            bool causal) {
  return std::get<0>(at::_scaled_dot_product_attention(q, k, v, /*attn_mask=*/{}, /*dropout_p=*/0,
                                                       /*need_attn_weights=*/false, causal));
}

}  // namespace nestor::bench
