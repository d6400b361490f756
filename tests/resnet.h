// Residual networks as programs, to measure passes on.
#ifndef NESTOR_TESTS_RESNET_H_
#define NESTOR_TESTS_RESNET_H_

#include <string>
#include <vector>

#include "uops/op.h"

namespace nestor {

// A network of the shape of ResNet-50 (He et al., "Deep Residual Learning for Image
// Recognition", 2015) with a stage of `blocks[i]` bottleneck blocks at its i-th
// resolution: a convolution by 7 with stride 2, a maximum pool, the stages, a global
// mean, a linear layer; each convolution followed by batch normalisation as it is
// evaluated (scale and shift) and relu. Every size is a symbol.
//
// Arguments: x[N, C, H, W], the weights; result: y[N, classes]; with `loss` also
// labels and the result loss instead of y.
Op ResNet(const std::vector<int>& blocks, bool loss);

inline Op ResNet50() { return ResNet({3, 4, 6, 3}, false); }

// The gradient of its loss by every weight.
Op ResNetGradient(const std::vector<int>& blocks);

}  // namespace nestor

#endif  // NESTOR_TESTS_RESNET_H_
