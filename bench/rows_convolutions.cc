// Convolutions of images, channels first or last: the result, the gradient by the data and by the
// weights. All three need the same products, without those of the padding's zeros.
#include "absl/strings/str_cat.h"
#include "bench/convolution_work.h"
#include "bench/onednn_contractions.h"
#include "bench/onednn_peers.h"
#include "bench/programs.h"
#include "bench/rows.h"

namespace nestor::bench {
namespace {

// Square images and windows.
struct Layer {
  int64_t images, channels, size, kernels, window;
  ConvolutionStep step;
  // The best peer: for the result, and the gradients by the data and by the weights.
  double times, times_by_data, times_by_weights;
};
constexpr Layer kLayers[] = {
    {1, 64, 56, 64, 3, {.stride = 1, .pad = 1}, 0.95, 0.95, 0.95},
    {1, 256, 14, 256, 3, {.stride = 1, .pad = 1}, 0.95, 0.95, 0.95},
    {1, 64, 56, 64, 3, {.stride = 1, .pad = 1, .channels_last = true}, 0.95, 0.95, 0.95},
    {1, 256, 14, 256, 3, {.stride = 1, .pad = 1, .channels_last = true}, 0.95, 0.95, 0.95},
    {1, 3, 224, 64, 7, {.stride = 2, .pad = 3}, 0.9, 1.5, 1.0},
    {1, 256, 56, 64, 1, {.stride = 1, .pad = 0}, 0.95, 0.95, 0.95},
    {8, 64, 56, 128, 3, {.stride = 2, .pad = 1}, 1.0, 1.0, 1.0},
};
constexpr Layer kDepthwise = {1, 128, 28, 128, 3, {.stride = 1, .pad = 1}, 15, 0, 0};

// `channels` that each kernel reads.
ConvolutionWork WorkOf(const Layer& layer, int64_t channels) {
  return {layer.images, channels,          layer.size,    layer.kernels,
          layer.window, layer.step.stride, layer.step.pad};
}

std::string Text(const Layer& layer) {
  return absl::StrCat(layer.window, "x", layer.window, layer.step.stride == 1 ? "" : " s2", " n",
                      layer.images, " c", layer.channels, " ", layer.size, "^2 k", layer.kernels,
                      layer.step.channels_last ? " channels last" : "");
}

Dims ImagesOf(const Layer& layer, int64_t channels, int64_t size) {
  if (layer.step.channels_last) return {layer.images, size, size, channels};
  return {layer.images, channels, size, size};
}

struct Shapes {
  Dims x, w, y;
};
Shapes ShapesOf(const Layer& layer, int64_t channels) {
  return {ImagesOf(layer, layer.channels, layer.size),
          {layer.kernels, channels, layer.window, layer.window},
          ImagesOf(layer, layer.kernels, ResultSize(WorkOf(layer, channels)))};
}

Row ForwardRow(const Layer& layer) {
  const auto& [x, w, y] = ShapesOf(layer, layer.channels);
  Row row;
  row.name = absl::StrCat("conv f32 ", Text(layer));
  row.buffers = {
      {"x", DType::kF32, x}, {"w", DType::kF32, w}, {"y", DType::kF32, y, Fill::kOutput}};
  const auto notation = layer.step.channels_last ? ConvolutionChannelsLast : Convolution;
  row.steps = {{.notation = notation(layer.step.stride, layer.step.pad), .bound = {"w"}}};
  row.multiply_adds = MultiplyAdds(WorkOf(layer, layer.channels));
  row.peers = OneDnnConvolutions(ConvolutionResult::kForward, layer.step);
  row.goal = {TimesPeer(kBestPeer, layer.times)};
  return row;
}

// The gradient by x or w. The program reads the values of the other one, and only the shape
// of this one.
Row GradientRow(const Layer& layer, std::string wrt, ConvolutionResult result) {
  Row row = ForwardRow(layer);
  absl::StrAppend(&row.name, ", g_", wrt);
  const auto& [x, w, y] = ShapesOf(layer, layer.channels);
  row.buffers = {{"x", DType::kF32, x},
                 {"w", DType::kF32, w},
                 {"g_y", DType::kF32, y},
                 {absl::StrCat("g_", wrt), DType::kF32, wrt == "x" ? x : w, Fill::kOutput}};
  row.steps[0].gradient = true;
  row.steps[0].wrt = {wrt};
  if (wrt == "w") row.steps[0].bound.clear();
  row.peers = OneDnnConvolutions(result, layer.step);
  row.goal = {TimesPeer(kBestPeer, wrt == "x" ? layer.times_by_data : layer.times_by_weights)};
  return row;
}

// The goal refers to the peer on the same arrays: with innermost channels, which oneDNN prefers,
// lanes are channels, and the work is of another kind.
Row DepthwiseRow(const Layer& layer) {
  Row row = ForwardRow(layer);
  row.name = absl::StrCat("depthwise conv f32 ", Text(layer));
  row.buffers[1].shape = ShapesOf(layer, 1).w;
  row.steps = {{DepthwiseConvolution(layer.step.stride, layer.step.pad)}};
  row.multiply_adds = MultiplyAdds(WorkOf(layer, 1));
  row.goal = {TimesPeer(kOneDnn, layer.times)};
  return row;
}

}  // namespace

std::vector<Row> ConvolutionRows() {
  std::vector<Row> rows;
  for (const Layer& layer : kLayers) {
    rows.push_back(ForwardRow(layer));
    rows.push_back(GradientRow(layer, "x", ConvolutionResult::kByData));
    rows.push_back(GradientRow(layer, "w", ConvolutionResult::kByWeights));
  }
  rows.push_back(DepthwiseRow(kDepthwise));
  return rows;
}

}  // namespace nestor::bench
