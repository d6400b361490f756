// Whole models as a user runs them: a step of training a block of a transformer and the network
// of examples/digits, ResNet-50. A step is one program, which computes the results once.
#include <cmath>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "bench/convolution_work.h"
#include "bench/onednn_network.h"
#include "bench/programs.h"
#include "bench/residual_network.h"
#include "bench/rows.h"
#include "bench/torch_models.h"
#include "bench/torch_peers.h"
#include "examples/digits/model.h"
#include "nestor.h"
#include "uops/invariant.h"

namespace nestor::bench {
namespace {

int64_t Product(const Dims& shape) {
  int64_t product = 1;
  for (const int64_t extent : shape) product *= extent;
  return product;
}

BufferSpec Input(const std::string& name, const Dims& shape) { return {name, DType::kF32, shape}; }
BufferSpec Output(const std::string& name, const Dims& shape) {
  return {name, DType::kF32, shape, Fill::kOutput};
}

// A layer's weights keep the magnitude of the activations (K. He et al., "Delving deep
// into rectifiers", 2015).
BufferSpec Weights(const std::string& name, const Dims& shape, int64_t fan_in) {
  BufferSpec spec = Input(name, shape);
  spec.scale = std::sqrt(6 / static_cast<double>(fan_in));
  return spec;
}
BufferSpec Bias(const std::string& name, const Dims& shape) {
  BufferSpec spec = Input(name, shape);
  spec.scale = 0.1;
  return spec;
}
// Weights of one output in each element of the first axis, or a bias.
BufferSpec Parameter(const std::string& name, const Dims& shape) {
  return shape.size() > 1 ? Weights(name, shape, Product(shape) / shape[0]) : Bias(name, shape);
}

// ---- Transformer ----

constexpr int64_t kBatch = 4, kPlaces = 128, kFeatures = 256, kInner = 4 * kFeatures;
constexpr int64_t kHeads = 4, kHeadFeatures = kFeatures / kHeads;

Dims TransformerShape(absl::string_view parameter) {
  if (parameter == "w1") return {kInner, kFeatures};
  if (parameter == "w2") return {kFeatures, kInner};
  if (parameter == "b1") return {kInner};
  if (parameter == "wo") return {kFeatures, kHeads, kHeadFeatures};
  const bool of_heads = parameter.size() == 2 && absl::StrContains("qkv", parameter.substr(1));
  if (!of_heads) return {kFeatures};
  return parameter[0] == 'w' ? Dims{kHeads, kHeadFeatures, kFeatures} : Dims{kHeads, kHeadFeatures};
}

// The number of inputs of each output of the layer.
int64_t FanIn(absl::string_view parameter) { return parameter == "w2" ? kInner : kFeatures; }

// Forward: four projections, two layers, the scores and the weighted values. Twice
// as much backward.
double TransformerMultiplyAdds() {
  constexpr int64_t kTokens = kBatch * kPlaces;
  return 3.0 * kTokens *
         (4 * kFeatures * kFeatures + 2 * kFeatures * kInner + 2 * kPlaces * kFeatures);
}

Row TransformerRow() {
  const Dims shape = {kBatch, kPlaces, kFeatures};
  Row row;
  row.name =
      absl::StrCat("transformer training step f32 ", kBatch, "x", kPlaces, ", D = ", kFeatures);
  row.buffers = {Input("x", shape), Input("g_y", shape), Output("y", shape), Output("g_x", shape)};
  for (const std::string& name : TransformerParameters()) {
    const Dims parameter = TransformerShape(name);
    if (name[0] == 'w') row.buffers.push_back(Weights(name, parameter, FanIn(name)));
    else if (name[0] == 's')
      row.buffers.push_back(Input(name, parameter));  // scales are of the order of 1
    else row.buffers.push_back(Bias(name, parameter));
    row.buffers.push_back(Output(absl::StrCat("g_", name), parameter));
  }
  row.steps = {{TrainingStep(TransformerBlock())}};
  row.multiply_adds = TransformerMultiplyAdds();
  row.peers = {TorchTransformerStep(TransformerParameters())};
  row.goal = {TimesPeer(kTorch, 1.3)};
  return row;
}

// ---- ResNet-50 ----

constexpr int64_t kImage = 224, kClasses = 1000;

struct Residual {
  int64_t images;
  std::vector<ResidualLayer> layers = ResidualLayers({3, 4, 6, 3});

  std::vector<BufferSpec> Parameters() const {
    std::vector<BufferSpec> specs;
    for (size_t i = 0; i < layers.size(); ++i) {
      const ResidualLayer& layer = layers[i];
      specs.push_back(Parameter(absl::StrCat("w", i),
                                {layer.kernels, layer.channels, layer.window, layer.window}));
      specs.push_back(Parameter(absl::StrCat("b", i), {layer.kernels}));
    }
    specs.push_back(Parameter("w_last", {kClasses, layers.back().kernels}));
    specs.push_back(Parameter("b_last", {kClasses}));
    return specs;
  }

  // The multiply-adds of the convolutions whose index is at least `first`, and of the last layer.
  double MultiplyAddsFrom(size_t first) const {
    const std::vector<int64_t> sizes = ResidualSizes(layers, kImage);
    double sum = static_cast<double>(images * layers.back().kernels * kClasses);
    for (size_t i = first; i < layers.size(); ++i) {
      const ResidualLayer& layer = layers[i];
      sum += MultiplyAdds({images, layer.channels, sizes[i] * layer.stride, layer.kernels,
                           layer.window, layer.stride, layer.pad()});
    }
    return sum;
  }
};

Row ResidualRow(const Residual& network) {
  Row row;
  row.name = absl::StrCat("ResNet-50 f32 n ", network.images);
  row.buffers = network.Parameters();
  row.buffers.push_back(Input("x", {network.images, 3, kImage, kImage}));
  row.buffers.push_back(Output("y", {network.images, kClasses}));
  row.steps = {
      {.notation = ResidualNetwork(network.layers), .bound = ResidualParameters(network.layers)}};
  row.multiply_adds = network.MultiplyAddsFrom(0);
  row.peers = {OneDnnResidualNetwork(network.layers), TorchResidualNetwork(network.layers)};
  row.goal = {TimesPeer(kBestPeer, 1.0)};
  return row;
}

// The gradients by all parameters, not by the image, whose multiply-adds are not needed. Some of
// the 77 million inputs of relu are so near zero that rounding decides their sign, and so whether
// one of the terms of a gradient, 392 in the last stages, is there. Even a single engine's results
// differ by 0.05 when the image is changed by a millionth.
Row ResidualStepRow(const Residual& network) {
  Row row = ResidualRow(network);
  row.name += ", fwd + bwd";
  for (const BufferSpec& parameter : network.Parameters()) {
    row.buffers.push_back(Output(absl::StrCat("g_", parameter.name), parameter.shape));
  }
  row.buffers.push_back(Input("g_y", {network.images, kClasses}));
  row.steps = {{TrainingStep(ResidualNetwork(network.layers), ResidualParameters(network.layers))}};
  row.multiply_adds = 2 * network.MultiplyAddsFrom(0) + network.MultiplyAddsFrom(1);
  row.tolerance = 0.2;
  row.peers = {OneDnnResidualNetworkStep(network.layers), TorchResidualNetworkStep(network.layers)};
  return row;
}

// ---- Digits ----

// One step with the batch size of examples/digits (training.h) and its learning rate and momentum.
constexpr int64_t kDigitsBatch = 32;
constexpr SgdStep kDigitsStep = {.learning_rate = 0.1f, .momentum = 0.9f};

// The program of the example; its $params are numbers here.
std::string DigitsStep(const Op& forward) {
  absl::StatusOr<Op> step = digits::TrainingStepOp(forward);
  NESTOR_CHECK(step.ok(), step.status().ToString());
  for (ParamInfo& param : step->params) {
    if (param.name == "$lr") param.value = Scalar::Of(DType::kF32, kDigitsStep.learning_rate);
    if (param.name == "$momentum") param.value = Scalar::Of(DType::kF32, kDigitsStep.momentum);
  }
  return PrintOp(*step);
}

Row DigitsRow() {
  const absl::StatusOr<Op> forward = digits::ForwardOp("cnn");
  NESTOR_CHECK(forward.ok(), forward.status().ToString());
  Row row;
  row.name = absl::StrCat("digits CNN training step f32 n ", kDigitsBatch);
  const Dims images = {kDigitsBatch, 1, 8, 8}, labels = {kDigitsBatch}, number;
  row.buffers.push_back(Input("x", images));
  row.buffers.push_back({.name = "labels", .type = DType::kI64, .shape = labels, .below = 10});
  row.buffers.push_back(Input("g_loss", number));
  row.buffers.push_back(Output("loss", number));
  std::vector<std::string> names;
  for (const auto& [name, shape] : digits::ParametersOf(*forward)) {
    names.push_back(name);
    row.buffers.push_back(Parameter(name, shape));
    row.buffers.push_back(Parameter("m_" + name, shape));
    row.buffers.push_back(Output(name + "_new", shape));
    row.buffers.push_back(Output("m_" + name + "_new", shape));
  }
  row.steps = {{DigitsStep(*forward)}};
  row.peers = {TorchDigitsStep(names, kDigitsStep)};
  row.goal = {TimesPeer(kTorch, 1.5)};
  row.fixed_sizes = true;
  return row;
}

}  // namespace

std::vector<Row> ModelRows() {
  return {TransformerRow(), ResidualRow({.images = 1}), ResidualStepRow({.images = 8}),
          DigitsRow()};
}

}  // namespace nestor::bench
