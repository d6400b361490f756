// Parameters are a list, in the order of the program's arguments, and are taken from it one after
// the other. relu works in place, as in the models that PyTorch ships.
#include "bench/torch_models.h"

#include <torch/csrc/autograd/autograd.h>

#include <utility>

#include "bench/torch_peer.h"

namespace nestor::bench {
namespace {

// ---- Transformer ----

// x [B, L, D] through a layer of heads, w [H, E, D], b [H, E] or none: [B, H, L, E].
at::Tensor Project(const at::Tensor& x, const at::Tensor& w, const at::Tensor& b) {
  const at::Tensor y = at::linear(x, w.flatten(0, 1), b.defined() ? b.flatten() : b);
  return y.view({x.size(0), x.size(1), w.size(0), w.size(1)}).transpose(1, 2);
}
at::Tensor JoinHeads(const at::Tensor& x) { return x.transpose(1, 2).flatten(2); }

// x, then the parameters.
at::Tensor TransformerBlockOf(const TorchTensors& in) {
  const at::Tensor& x = in[0];
  const at::Tensor n1 = TorchLayerNormOf(x, in[1], in[2]);
  const at::Tensor q = Project(n1, in[3], in[4]), k = Project(n1, in[5], {}),
                   v = Project(n1, in[6], in[7]);
  const at::Tensor attended = JoinHeads(TorchAttentionOf(q, k, v, /*causal=*/false));
  const at::Tensor r = x + at::linear(attended, in[8].flatten(1), in[9]);
  const at::Tensor n2 = TorchLayerNormOf(r, in[10], in[11]);
  return r + at::linear(at::gelu(at::linear(n2, in[12], in[13])), in[14], in[15]);
}

// ---- Residual networks ----

// x, then the parameters.
at::Tensor ResidualNetworkOf(const std::vector<ResidualLayer>& layers, const TorchTensors& in) {
  TorchTensors activations;
  for (size_t i = 0; i < layers.size(); ++i) {
    const ResidualLayer& layer = layers[i];
    const at::Tensor& input = layer.input < 0 ? in[0] : activations[layer.input];
    at::Tensor value = at::conv2d(input, in[1 + 2 * i], in[2 + 2 * i], {layer.stride, layer.stride},
                                  {layer.pad(), layer.pad()});
    if (layer.addend >= 0) value += activations[layer.addend];
    if (layer.relu) value.relu_();
    if (i == 0) value = at::max_pool2d(value, {3, 3}, {2, 2}, {1, 1});
    activations.push_back(value);
  }
  const at::Tensor means = at::flatten(at::adaptive_avg_pool2d(activations.back(), {1, 1}), 1);
  return at::linear(means, in[in.size() - 2], in[in.size() - 1]);
}

// ---- Digits ----

at::Tensor DigitsLoss(const at::Tensor& x, const at::Tensor& labels, const TorchTensors& p) {
  at::Tensor a = at::max_pool2d(at::conv2d(x, p[0], p[1], {1, 1}, {1, 1}).relu_(), {2, 2}, {2, 2});
  a = at::max_pool2d(at::conv2d(a, p[2], p[3], {1, 1}, {1, 1}).relu_(), {2, 2}, {2, 2});
  return at::cross_entropy_loss(at::linear(at::flatten(a, 1), p[4], p[5]), labels);
}

// ---- LSTM ----

// h0, c0, x, then the parameters.
at::Tensor LstmOf(const TorchTensors& in) {
  const TorchTensors state = {in[0].unsqueeze(0), in[1].unsqueeze(0)};
  const TorchTensors parameters = {in[3].flatten(0, 1), in[4].flatten(0, 1), in[5].flatten(),
                                   in[6].flatten()};
  return std::get<0>(at::lstm(in[2], state, parameters, /*has_biases=*/true, /*num_layers=*/1,
                              /*dropout=*/0,
                              /*train=*/false, /*bidirectional=*/false, /*batch_first=*/false));
}
const std::vector<std::string>& LstmParameters() {
  static const auto& names = *new std::vector<std::string>{"x", "wx", "wh", "bx", "bh"};
  return names;
}

}  // namespace

PeerMaker TorchLstm() {
  std::vector<std::string> names = {"h0", "c0"};
  names.insert(names.end(), LstmParameters().begin(), LstmParameters().end());
  return TorchPeer(std::move(names),
                   [](const TorchTensors& in) { return TorchTensors{LstmOf(in)}; });
}

PeerMaker TorchLstmStep() { return TorchGradientPeer({"h0", "c0"}, LstmParameters(), LstmOf); }

PeerMaker TorchTransformerStep(std::vector<std::string> parameters) {
  parameters.insert(parameters.begin(), "x");
  return TorchGradientPeer({}, std::move(parameters), TransformerBlockOf);
}

PeerMaker TorchResidualNetwork(std::vector<ResidualLayer> layers) {
  std::vector<std::string> names = ResidualParameters(layers);
  names.insert(names.begin(), "x");
  return TorchPeer(std::move(names), [layers](const TorchTensors& in) {
    return TorchTensors{ResidualNetworkOf(layers, in)};
  });
}

PeerMaker TorchResidualNetworkStep(std::vector<ResidualLayer> layers) {
  return TorchGradientPeer({"x"}, ResidualParameters(layers), [layers](const TorchTensors& in) {
    return ResidualNetworkOf(layers, in);
  });
}

// Only the loss and its gradients are recorded; the step itself is plain arithmetic.
PeerMaker TorchDigitsStep(std::vector<std::string> parameters, SgdStep step) {
  std::vector<std::string> names = {"x", "labels", "g_loss"};
  names.insert(names.end(), parameters.begin(), parameters.end());
  for (const std::string& name : parameters) names.push_back("m_" + name);
  return TorchPeer(names, [step, count = static_cast<std::ptrdiff_t>(parameters.size())](
                              const TorchTensors& in) {
    TorchTensors leaves;
    for (auto p = in.begin() + 3; p != in.begin() + 3 + count; ++p) {
      leaves.push_back(p->detach().set_requires_grad(true));
    }
    at::Tensor loss;
    TorchTensors gradients;
    {
      const at::AutoGradMode record(true);
      loss = DigitsLoss(in[0], in[1], leaves);
      gradients = torch::autograd::grad({loss}, leaves, {in[2]});
    }
    TorchTensors results = {loss.detach()};
    for (std::ptrdiff_t i = 0; i < count; ++i) {
      const at::Tensor momentum = at::add(gradients[i], in[3 + count + i], step.momentum);
      results.push_back(at::sub(in[3 + i], momentum, step.learning_rate));
      results.push_back(momentum);
    }
    return results;
  });
}

}  // namespace nestor::bench
