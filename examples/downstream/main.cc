// Softmax over the rows of a matrix, from its one-line definition: parse it,
// compile it, run it on the caller's own memory.

#include <cstdio>
#include <iostream>
#include <vector>

#include "absl/status/statusor.h"
#include "nestor.h"

namespace {

constexpr char kSoftmax[] = R"(
op softmax(x: f32[N, C]) -> (y) {
  e[n, c] = exp(x[n, c] - max[k](x[n, k]))
  y[n, c] = e[n, c] / sum[k](e[n, k])
})";

absl::Status Run() {
  absl::StatusOr<nestor::Graph> softmax = nestor::Parse(kSoftmax);
  if (!softmax.ok()) return softmax.status();
  absl::StatusOr<nestor::Executable> kernel = nestor::Compile(*softmax);
  if (!kernel.ok()) return kernel.status();

  const std::vector<float> x = {0, 1, 2, 3, 3, 3};
  std::vector<float> y(x.size());
  absl::Status ran = kernel->Run({
      {"x", nestor::TensorView(x.data(), {2, 3})},
      {"y", nestor::TensorView(y.data(), {2, 3})},
  });
  if (!ran.ok()) return ran;

  for (int n = 0; n < 2; ++n) {
    std::printf("%.4f %.4f %.4f\n", y[3 * n], y[3 * n + 1], y[3 * n + 2]);
  }
  return absl::OkStatus();
}

}  // namespace

int main() {
  absl::Status status = Run();
  if (status.ok()) return 0;
  std::cerr << status << "\n";
  return 1;
}
