// Whole models in PyTorch, eager, as peers of rows of the benchmark: a forward pass as
// torch.nn's modules make it, the gradients by autograd.
#ifndef NESTOR_BENCH_TORCH_MODELS_H_
#define NESTOR_BENCH_TORCH_MODELS_H_

#include <string>
#include <vector>

#include "bench/residual_network.h"
#include "bench/row.h"

namespace nestor::bench {

// x, the parameters of TransformerBlock() (programs.h), g_y -> y, the gradients by x
// and the parameters.
PeerMaker TorchTransformerStep(std::vector<std::string> parameters);

// x, w0, b0, .. (residual_network.h) -> y.
PeerMaker TorchResidualNetwork(std::vector<ResidualLayer> layers);
// The same inputs and g_y -> y, the gradients by all but x.
PeerMaker TorchResidualNetworkStep(std::vector<ResidualLayer> layers);

// x, h0, c0, wx, wh, bx, bh (Lstm() in programs.h) -> y.
PeerMaker TorchLstm();
// The same inputs and g_y -> y, the gradients by all but h0 and c0.
PeerMaker TorchLstmStep();

struct SgdStep {
  float learning_rate, momentum;
};
// One step of SGD of the convolutional network of examples/digits: x, labels, the parameters
// w1, b1, w2, b2, w3, b3, each NAME with its momentum m_NAME, and g_loss -> the loss, NAME_new and
// m_NAME_new of each.
PeerMaker TorchDigitsStep(std::vector<std::string> parameters, SgdStep step);

}  // namespace nestor::bench

#endif  // NESTOR_BENCH_TORCH_MODELS_H_
