// The machine's peaks, and next to them the rate that OpenBLAS reaches.
#include "bench/machine.h"

#include <cblas.h>
#include <vector>

#include "absl/strings/str_format.h"
#include "bench/measure.h"
#include "bench/peaks.h"

namespace nestor::bench {
namespace {

double GigaflopsOfMatrixProduct() {
  constexpr int kSize = 1024;
  const std::vector<float> a(kSize * kSize, 0.5f), b(kSize * kSize, 0.25f);
  std::vector<float> c(kSize * kSize);
  const Contender contender{"product", [&] {
                              cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, kSize, kSize,
                                          kSize, 1, a.data(), kSize, b.data(), kSize, 0, c.data(),
                                          kSize);
                            }};
  return 2.0 * kSize * kSize * kSize / MeasureAlternating({contender})[0].cost * 1e-9;
}

}  // namespace

std::string MachineText(ThreadTeam& team) {
  const Peaks peaks = MeasurePeaks(team);
  return absl::StrFormat("%d thread%s: multiply-adds %.1f GFLOP/s (OpenBLAS product 1024^3 %.1f), "
                         "read %.1f GB/s, read and write %.1f GB/s\n",
                         team.size(), team.size() == 1 ? "" : "s", peaks.gigaflops,
                         GigaflopsOfMatrixProduct(), peaks.read_gigabytes, peaks.copy_gigabytes);
}

}  // namespace nestor::bench
