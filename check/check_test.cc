#include "check/check.h"

#include <cmath>
#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace nestor {
namespace {

void Matmul(const KernelCall& k) {
  const float *a = k.input<float>("a"), *b = k.input<float>("b");
  float* c = k.output<float>("c");
  const int64_t m = k.dim("M"), n = k.dim("N"), depth = k.dim("K");
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      float sum = 0;
      for (int64_t p = 0; p < depth; ++p) sum += a[i * depth + p] * b[p * n + j];
      c[i * n + j] = sum;
    }
  }
}

TEST(Check, AcceptsARightMatmul) {
  const auto report = Check("matmul", Matmul);
  EXPECT_THAT(report, IsRight());
  if (report.ok()) std::cout << *report;
}

struct SoftmaxFaults {
  bool skips_last = false, forgets_maximum = false, reads_beyond = false;
};

void Softmax(const KernelCall& k, SoftmaxFaults faults) {
  const float* x = k.input<float>("x");
  float* y = k.output<float>("y");
  const int64_t rows = k.dim("N0"), c = k.dim("C");
  for (int64_t r = 0; r < rows; ++r, x += c, y += c) {
    const int64_t end = faults.skips_last && c % 16 == 1 ? c - 1 : c;
    float most = -INFINITY, sum = 0;
    for (int64_t i = 0; i < c; ++i) most = std::fmax(most, x[i]);
    if (faults.forgets_maximum) most = 0;
    for (int64_t i = 0; i < c; ++i) sum += std::exp(x[i] - most);
    for (int64_t i = 0; i < end; ++i) y[i] = std::exp(x[i] - most) / sum;
    if (end < c) y[end] = 0;
    if (faults.reads_beyond && c > 0) asm volatile("" : : "r"(*static_cast<const volatile float*>(x + c)));
  }
}

TEST(Check, AcceptsARightSoftmax) {
  const auto report = Check("softmax", [](const KernelCall& k) { Softmax(k, {}); });
  EXPECT_THAT(report, IsRight());
  if (report.ok()) std::cout << *report;
}

TEST(Check, FindsTheMissingTail) {
  const auto report = Check("softmax", [](const KernelCall& k) { Softmax(k, {true, false, false}); });
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->fault, Fault::kWrong);
  std::cout << *report << report->ToJson();
}

TEST(Check, FindsTheMissingMaximum) {
  const auto report = Check("softmax", [](const KernelCall& k) { Softmax(k, {false, true, false}); });
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->fault, Fault::kWrong);
  std::cout << *report;
}

TEST(Check, FindsTheReadBeyond) {
  const auto report =
      Check("softmax", [](const KernelCall& k) { Softmax(k, {false, false, true}); }, CheckOptions().Isolated());
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->fault, Fault::kCrash);
  std::cout << *report;
}

}  // namespace
}  // namespace nestor
