// Softmax over the rows of a matrix, from its one-line definition: parse it, run
// it on the caller's own memory, and print its gradient.

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
  const absl::StatusOr<nestor::Op> softmax = nestor::Parse(kSoftmax);
  if (!softmax.ok()) return softmax.status();

  const std::vector<float> x = {0, 1, 2, 3, 3, 3};
  nestor::RunInputs inputs;
  inputs.tensors["x"] = nestor::ViewOf(x.data(), {2, 3});
  const absl::StatusOr<std::vector<nestor::Tensor>> results = nestor::Run(*softmax, inputs);
  if (!results.ok()) return results.status();
  std::printf("y = %s\n", nestor::ToString((*results)[0]).c_str());

  const absl::StatusOr<nestor::GradientResult> gradient = nestor::Gradient(*softmax);
  if (!gradient.ok()) return gradient.status();
  std::printf("%s", nestor::PrintOp(gradient->op).c_str());
  return absl::OkStatus();
}

}  // namespace

int main() {
  const absl::Status status = Run();
  if (status.ok()) return 0;
  std::cerr << status << "\n";
  return 1;
}
