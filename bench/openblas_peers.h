// OpenBLAS as a peer of rows of the benchmark.
#ifndef NESTOR_BENCH_OPENBLAS_PEERS_H_
#define NESTOR_BENCH_OPENBLAS_PEERS_H_

#include "absl/strings/string_view.h"
#include "bench/row.h"

namespace nestor::bench {

inline constexpr absl::string_view kOpenBlas = "OpenBLAS";

// The number of threads of every product from now on.
void SetOpenBlasThreads(int threads);

// a [M, K] times b [K, N] -> c [M, N].
absl::StatusOr<Peer> OpenBlasProduct(Buffers& buffers, int threads);

}  // namespace nestor::bench

#endif  // NESTOR_BENCH_OPENBLAS_PEERS_H_
