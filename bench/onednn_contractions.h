// oneDNN's matrix products and convolutions of f32 as peers of rows of the benchmark, in
// the row's layouts and in those that oneDNN prefers.
#ifndef NESTOR_BENCH_ONEDNN_CONTRACTIONS_H_
#define NESTOR_BENCH_ONEDNN_CONTRACTIONS_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "bench/row.h"

namespace nestor::bench {

// The engine where oneDNN chooses layouts. Inputs are brought into these before anything
// is timed, results back after it.
inline constexpr absl::string_view kOneDnnOwn = "oneDNN own";

// a [M, K] times b [K, N] -> c [M, N]: in the row's layouts, and with the layout of b left to
// oneDNN, as its matmul and as its inner_product.
std::vector<PeerMaker> OneDnnProducts();

// x [N, G * C, H, W], w [O, C, R, S] -> y [N, O, ..], with as many zeros on each side; G
// follows from the shapes. Or x [N, H, W, G * C] -> y [N, .., O].
struct ConvolutionStep {
  int64_t stride = 1, pad = 0;
  bool channels_last = false;
};
enum class ConvolutionResult {
  kForward,   // x, w -> y
  kByData,    // g_y, w -> g_x
  kByWeights  // g_y, x -> g_w
};

// In the row's layouts, and with all layouts left to oneDNN. They sum directly, not
// by Winograd's algorithm.
std::vector<PeerMaker> OneDnnConvolutions(ConvolutionResult result, ConvolutionStep step);

}  // namespace nestor::bench

#endif  // NESTOR_BENCH_ONEDNN_CONTRACTIONS_H_
