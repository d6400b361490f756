// Networks of the shape of ResNet (K. He et al., "Deep residual learning for image
// recognition", 2016), with bottlenecks and without batch norm, which folds into the
// convolutions and their biases.
#ifndef NESTOR_BENCH_RESIDUAL_NETWORK_H_
#define NESTOR_BENCH_RESIDUAL_NETWORK_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "tensor/tensor.h"

namespace nestor::bench {

// A convolution of square windows, padded by half a window, with a bias; then perhaps an addend,
// and perhaps relu. Its result is the activation with the layer's number; the first layer's is
// followed by a 3x3 maximum of stride 2, padded by 1.
struct ResidualLayer {
  int64_t channels, kernels, window, stride;
  int input = -1;   // an activation; -1: the image
  int addend = -1;  // another; -1: none
  bool relu = true;

  int64_t pad() const { return window / 2; }
};

// The layers of a network whose stage s has blocks[s] bottlenecks, for images of 3 channels.
// ResNet-50: 3, 4, 6, 3.
std::vector<ResidualLayer> ResidualLayers(absl::Span<const int> blocks);

// The network in the notation: the layers, the mean of each channel of the last, and a linear
// layer on these.
// x: f32[N, C, H, W], w0, b0, .., w_last, b_last -> y: f32[N, Z].
std::string ResidualNetwork(absl::Span<const ResidualLayer> layers);
// w0, b0, .., w_last, b_last.
std::vector<std::string> ResidualParameters(absl::Span<const ResidualLayer> layers);

// Extents of the result of each layer (of the first, before the maximum), for square images.
std::vector<int64_t> ResidualSizes(absl::Span<const ResidualLayer> layers, int64_t image);

}  // namespace nestor::bench

#endif  // NESTOR_BENCH_RESIDUAL_NETWORK_H_
