// OpenBLAS is called as its users call it, by the C interface, on the buffers that Nestor gets.
#include "bench/openblas_peers.h"

#include <cblas.h>

#include <string>

namespace nestor::bench {

void SetOpenBlasThreads(int threads) { openblas_set_num_threads(threads); }

absl::StatusOr<Peer> OpenBlasProduct(Buffers& buffers, int) {
  const int m = buffers["a"].shape()[0], k = buffers["a"].shape()[1], n = buffers["b"].shape()[1];
  const float *a = buffers["a"].values<float>().data(), *b = buffers["b"].values<float>().data();
  float* c = buffers["c"].values<float>().data();
  const auto run = [=] {
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, m, n, k, 1, a, k, b, n, 0, c, n);
  };
  return Peer{std::string(kOpenBlas), run, nullptr};
}

}  // namespace nestor::bench
