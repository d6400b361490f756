// A residual network as a chain of oneDNN's primitives, in the layouts that these prefer, as
// peers of rows of the benchmark.
#ifndef NESTOR_BENCH_ONEDNN_NETWORK_H_
#define NESTOR_BENCH_ONEDNN_NETWORK_H_

#include <vector>

#include "bench/residual_network.h"
#include "bench/row.h"

namespace nestor::bench {

// x, w0, b0, .. (residual_network.h) -> y. Weights are in the primitives' layouts before
// anything is timed; bias, addition and relu are part of a convolution.
PeerMaker OneDnnResidualNetwork(std::vector<ResidualLayer> layers);

// The same inputs and g_y -> y, the gradients by all but x. Weights are in the layouts of the
// forward pass before anything is timed, and their gradients are left in the layouts in which they
// are computed: copying the latter to the row's arrays is not timed. Where the gradient by the
// data takes the weights in yet another layout, each run copies them there, as weights change from
// step to step.
PeerMaker OneDnnResidualNetworkStep(std::vector<ResidualLayer> layers);

}  // namespace nestor::bench

#endif  // NESTOR_BENCH_ONEDNN_NETWORK_H_
