// A kernel from a text computes results and gradients at every size, and names what is wrong.
#include "bench/nestor_kernel.h"

#include "gtest/gtest.h"

namespace nestor::bench {
namespace {

TEST(NestorKernelTest, RunsAnOpAtEverySize) {
  const auto kernel =
      NestorKernel::Compile("op f(x: f32[N], y: f32[N]) -> (z) { z[i] = x[i] * y[i] }", {});
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  EXPECT_EQ((*kernel)->arguments(), (std::vector<std::string>{"x", "y"}));
  EXPECT_EQ((*kernel)->results(), std::vector<std::string>{"z"});
  EXPECT_GT((*kernel)->compile_ms(), 0);
  for (const int64_t n : {0, 1, 100}) {
    const std::vector<float> x(n, 3), y(n, 0.5);
    std::vector<float> z(n, -1);
    const absl::Status status =
        (*kernel)->Run({ViewOf(x.data(), {n}), ViewOf(y.data(), {n})}, {ViewOf(z.data(), {n})});
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(z, std::vector<float>(n, 1.5));
  }
}

TEST(NestorKernelTest, RunsAGradient) {
  const auto kernel =
      NestorKernel::Compile("op f(x: f32[N]) -> (y) { y[i] = x[i] * x[i] }", {.gradient = true});
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  EXPECT_EQ((*kernel)->arguments(), (std::vector<std::string>{"g_y", "x"}));
  EXPECT_EQ((*kernel)->results(), std::vector<std::string>{"g_x"});
  const float g_y[] = {1, 10}, x[] = {3, 4};
  float g_x[2];
  const absl::Status status =
      (*kernel)->Run({ViewOf(g_y, {2}), ViewOf(x, {2})}, {ViewOf(g_x, {2})});
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(g_x[0], 6);
  EXPECT_EQ(g_x[1], 80);
}

TEST(NestorKernelTest, RunsAGradientBySomeArguments) {
  const auto kernel = NestorKernel::Compile(
      "op f(x: f32[N], y: f32[N]) -> (z) { z[i] = x[i] * y[i] }", {.gradient = true, .wrt = {"y"}});
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  EXPECT_EQ((*kernel)->arguments(), (std::vector<std::string>{"g_z", "x"}));
  EXPECT_EQ((*kernel)->results(), std::vector<std::string>{"g_y"});
}

TEST(NestorKernelTest, SaysWhatIsWrong) {
  EXPECT_FALSE(NestorKernel::Compile("op f(x: f32[N]) -> (y) { y[i] = nothing(x[i]) }", {}).ok());
  EXPECT_FALSE(NestorKernel::Compile("op f(x: f32[N]) -> (y) { y[i] = x[i] }",
                                     {.gradient = true, .wrt = {"z"}})
                   .ok());
  const auto kernel = NestorKernel::Compile("op f(x: f32[N]) -> (y) { y[i] = x[i] }", {});
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  const float x[2] = {};
  float y[2];
  EXPECT_FALSE((*kernel)->Run({}, {ViewOf(y, {2})}).ok());
  EXPECT_FALSE((*kernel)->Run({ViewOf(x, {2})}, {ViewOf(y, {1})}).ok());
  EXPECT_FALSE((*kernel)->Run({ViewOf(DType::kF64, x, {1})}, {ViewOf(y, {1})}).ok());
}

}  // namespace
}  // namespace nestor::bench
