// A bottleneck narrows to a quarter of its channels by a 1x1 convolution, has a 3x3 one there,
// which takes the stride, widens by a third one and adds its input: as it is or, at the beginning
// of a stage, through a separate 1x1 convolution.
#include "bench/residual_network.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/substitute.h"

namespace nestor::bench {
namespace {

constexpr int64_t kFirstWidth = 64, kWidening = 4;

class LayerList {
 public:
  // Adds a layer and returns the number of its activation.
  int Add(const ResidualLayer& layer) {
    layers_.push_back(layer);
    return static_cast<int>(layers_.size()) - 1;
  }

  // Adds layers from the activation `input` to the one that it returns.
  int AddBottleneck(int input, int64_t width, int64_t stride, bool projects) {
    const int64_t channels = layers_[input].kernels;
    const int narrow = Add({channels, width, 1, 1, input});
    const int middle = Add({width, width, 3, stride, narrow});
    const int kept =
        projects ? Add({channels, width * kWidening, 1, stride, input, -1, /*relu=*/false}) : input;
    return Add({width, width * kWidening, 1, 1, middle, kept});
  }

  std::vector<ResidualLayer> Take() { return std::move(layers_); }

 private:
  std::vector<ResidualLayer> layers_;
};

// The name of a layer's number of kernels, which is also that of the channels of the layers
// that read it.
std::string Kernels(int layer) { return layer < 0 ? "C" : absl::StrCat("K", layer); }
std::string Activation(int layer) { return layer < 0 ? "x" : absl::StrCat("a", layer); }

std::string Arguments(const ResidualLayer& layer, int number) {
  return absl::Substitute("w$0: f32[$1, $2, $3, $3], b$0: f32[$1]", number, Kernels(number),
                          Kernels(layer.input), layer.window);
}

std::string Statements(const ResidualLayer& layer, int number) {
  std::string value = absl::Substitute("c$0[n, k, h, v] + b$0[k]", number);
  if (layer.addend >= 0) absl::StrAppend(&value, " + ", Activation(layer.addend), "[n, k, h, v]");
  if (layer.relu) value = absl::StrCat("relu(", value, ")");
  const bool pooled = number == 0;
  return absl::Substitute("  c$0 = conv2d($1, w$0; stride=$2, pad=$3)\n  $4[n, k, h, v] = $5\n$6",
                          number, Activation(layer.input), layer.stride, layer.pad(),
                          pooled ? "wide" : Activation(number), value,
                          pooled ? "  a0 = max_pool2d(wide; k=3, stride=2, pad=1)\n" : "");
}

}  // namespace

// Each stage but the first halves the image and has twice the width of the one before.
std::vector<ResidualLayer> ResidualLayers(absl::Span<const int> blocks) {
  LayerList layers;
  int activation = layers.Add({3, kFirstWidth, 7, 2});
  int64_t width = kFirstWidth;
  for (size_t stage = 0; stage < blocks.size(); ++stage, width *= 2) {
    for (int block = 0; block < blocks[stage]; ++block) {
      const bool first = block == 0;
      activation = layers.AddBottleneck(activation, width, /*stride=*/first && stage > 0 ? 2 : 1,
                                        /*projects=*/first);
    }
  }
  return layers.Take();
}

std::string ResidualNetwork(absl::Span<const ResidualLayer> layers) {
  const int last = static_cast<int>(layers.size()) - 1;
  std::vector<std::string> arguments = {"x: f32[N, C, H, W]"};
  std::string body;
  for (int i = 0; i <= last; ++i) {
    arguments.push_back(Arguments(layers[i], i));
    body += Statements(layers[i], i);
  }
  arguments.push_back(absl::Substitute("w_last: f32[Z, $0], b_last: f32[Z]", Kernels(last)));
  absl::StrAppend(&body, "  means = global_avg_pool(", Activation(last),
                  ")\n  y = linear(means, w_last, b_last)\n");
  return absl::Substitute("op resnet($0) -> (y) {\n$1}", absl::StrJoin(arguments, ",\n  "), body);
}

std::vector<std::string> ResidualParameters(absl::Span<const ResidualLayer> layers) {
  std::vector<std::string> names;
  for (size_t i = 0; i < layers.size(); ++i) {
    names.push_back(absl::StrCat("w", i));
    names.push_back(absl::StrCat("b", i));
  }
  names.push_back("w_last");
  names.push_back("b_last");
  return names;
}

std::vector<int64_t> ResidualSizes(absl::Span<const ResidualLayer> layers, int64_t image) {
  std::vector<int64_t> sizes;
  for (const ResidualLayer& layer : layers) {
    int64_t size = layer.input < 0 ? image : sizes[layer.input];
    if (layer.input == 0) size = (size - 1) / 2 + 1;  // after the maximum
    sizes.push_back((size - 1) / layer.stride + 1);
  }
  return sizes;
}

}  // namespace nestor::bench
