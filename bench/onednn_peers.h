// oneDNN's forward primitives on f32 rows, as peers of a row of the benchmark: from
// the buffer x, a matrix, to y.
#ifndef NESTOR_BENCH_ONEDNN_PEERS_H_
#define NESTOR_BENCH_ONEDNN_PEERS_H_

#include "absl/strings/string_view.h"
#include "bench/row.h"

namespace nestor::bench {

inline constexpr absl::string_view kOneDnn = "oneDNN";

// Along the last axis.
absl::StatusOr<Peer> OneDnnSoftmax(Buffers& buffers, int threads);
absl::StatusOr<Peer> OneDnnGelu(Buffers& buffers, int threads);
// With scale and bias, epsilon 1e-5.
absl::StatusOr<Peer> OneDnnLayerNorm(Buffers& buffers, int threads);

}  // namespace nestor::bench

#endif  // NESTOR_BENCH_ONEDNN_PEERS_H_
