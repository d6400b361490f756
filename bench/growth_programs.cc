// Each statement reads the one before it, except in the outputs, which have no order, and the sum,
// which is one statement.
#include "bench/growth_programs.h"

#include "absl/strings/str_cat.h"

namespace nestor::bench {
namespace {

std::string Chain(int n) {
  std::string text = "op chain(x: f32[N]) -> (y) {\n  t0[i] = x[i]\n";
  for (int k = 1; k <= n; ++k)
    absl::StrAppend(&text, "  t", k, "[i] = t", k - 1, "[i] * 0.5 + x[i]\n");
  return absl::StrCat(text, "  y[i] = t", n, "[i]\n}\n");
}

std::string Stencil(int n) {
  std::string text = "op stencil(x: f32[N]) -> (y) {\n  t0[i] = x[i]\n";
  for (int k = 1; k <= n; ++k) {
    const std::string from = absl::StrCat("t", k - 1);
    absl::StrAppend(&text, "  t", k, "[i] = ", from, "[i - 1] + ", from, "[i] + ", from,
                    "[i + 1]\n");
  }
  return absl::StrCat(text, "  y[i] = t", n, "[i]\n}\n");
}

std::string Softmax(int n) {
  std::string text = "op layers(t0: f32[N0, C]) -> (y) {\n";
  for (int k = 1; k <= n; ++k) absl::StrAppend(&text, "  t", k, " = softmax(t", k - 1, ")\n");
  return absl::StrCat(text, "  y[i, c] = t", n, "[i, c]\n}\n");
}

std::string Matmul(int n) {
  std::string text = "op layers(t0: f32[M, N]";
  for (int k = 1; k <= n; ++k) absl::StrAppend(&text, ", w", k, ": f32[N, N]");
  absl::StrAppend(&text, ") -> (y) {\n");
  for (int k = 1; k <= n; ++k)
    absl::StrAppend(&text, "  t", k, " = matmul(t", k - 1, ", w", k, ")\n");
  return absl::StrCat(text, "  y[i, j] = t", n, "[i, j]\n}\n");
}

std::string Outputs(int n) {
  std::string results, statements;
  for (int k = 1; k <= n; ++k) {
    absl::StrAppend(&results, k > 1 ? ", " : "", "y", k);
    absl::StrAppend(&statements, "  y", k, "[i] = x[i] * ", k, "\n");
  }
  return absl::StrCat("op outputs(x: f32[N]) -> (", results, ") {\n", statements, "}\n");
}

std::string Sum(int n) {
  std::string terms = "x[i] * 1";
  for (int k = 2; k <= n; ++k) absl::StrAppend(&terms, " + x[i] * ", k);
  return absl::StrCat("op one_sum(x: f32[N]) -> (y) {\n  y[i] = ", terms, "\n}\n");
}

}  // namespace

const std::vector<GrowthKind>& GrowthKinds() {
  static const auto* const kinds = new std::vector<GrowthKind>{
      {"chain", Chain},   {"stencil", Stencil}, {"softmax", Softmax},
      {"matmul", Matmul}, {"outputs", Outputs}, {"sum", Sum},
  };
  return *kinds;
}

}  // namespace nestor::bench
