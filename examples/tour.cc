// The README's C++ snippet: an op, its machine code, its result and its gradient.
#include <cstdio>

#include "nestor.h"

// README begins
absl::Status Tour() {
  const absl::StatusOr<nestor::Op> op =
      nestor::Parse("op f(x: f32[N]) -> (y) { y[i] = x[i] * x[i] }");
  if (!op.ok()) return op.status();

  const nestor::Tensor x = nestor::Tensor::Of<float>({3}, {1, 2, 3});
  const auto code = nestor::Compile(*op);  // Run(*op, ..) would interpret it
  if (!code.ok()) return code.status();
  const absl::StatusOr<std::vector<nestor::Tensor>> y =
      nestor::Run(**code, {{{"x", x.view()}}, {}, {}});
  if (!y.ok()) return y.status();
  std::printf("%s\n", nestor::ToString((*y)[0]).c_str());

  const absl::StatusOr<nestor::GradientResult> gradient = nestor::Gradient(*op);
  if (!gradient.ok()) return gradient.status();
  std::printf("%s", nestor::PrintOp(gradient->op).c_str());
  return absl::OkStatus();
}
// README ends

int main() {
  const absl::Status status = Tour();
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
