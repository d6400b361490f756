// The rows' programs at small sizes, where their results are known.
#include "bench/programs.h"

#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nestor.h"

namespace nestor::bench {
namespace {

using ::testing::FloatNear;
using ::testing::Pointwise;

Tensor Evaluate(const std::string& notation,
                const absl::flat_hash_map<std::string, TensorView>& inputs) {
  const absl::StatusOr<Op> op = Parse(notation);
  EXPECT_TRUE(op.ok()) << op.status() << "\n" << notation;
  RunInputs given;
  given.tensors = inputs;
  absl::StatusOr<std::vector<Tensor>> results = Run(*op, given);
  EXPECT_TRUE(results.ok()) << results.status() << "\n" << notation;
  return std::move((*results)[0]);
}

std::vector<float> Floats(const Tensor& tensor) {
  const absl::Span<const float> values = tensor.values<float>();
  return {values.begin(), values.end()};
}

TEST(ProgramsTest, OfFloats) {
  const Tensor x = Tensor::Of<float>({2, 2}, {1, 2, -1, 3}), row = Tensor::Of<float>({2}, {1, 0.5});
  const Tensor other = Tensor::Of<float>({2, 1}, {7, 8}), ids = Tensor::Of<int64_t>({3}, {1, 0, 1});
  const float small = 1 / (1 + std::exp(1.f)), smaller = 1 / (1 + std::exp(4.f));
  const Tensor image = Tensor::Of<float>({1, 2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  const Tensor image_last = Tensor::Of<float>({1, 2, 2, 2}, {1, 5, 2, 6, 3, 7, 4, 8});
  const Tensor window = Tensor::Of<float>({1, 2, 2, 2}, {1, 0, 0, 1, 0, 1, 0, 0});
  const Tensor windows = Tensor::Of<float>({2, 1, 2, 2}, {1, 0, 0, 1, 0, 1, 0, 0});
  // Scores of 0, so that attention is the mean of the values.
  const Tensor zero = Tensor::Of<float>({1, 2, 1}, {0, 0}),
               value = Tensor::Of<float>({1, 2, 1}, {1, 4});
  const auto gelu = [](float v) { return v / 2 * (1 + std::erf(v / std::sqrt(2.f))); };
  const struct {
    std::string notation;
    absl::flat_hash_map<std::string, TensorView> inputs;
    std::vector<float> want;
  } kCases[] = {
      {SigmoidChain(DType::kF32),
       {{"x", row}, {"y", row}},
       {1 / (1 + std::exp(-2.f)), 0.5f / (1 + std::exp(-0.75f))}},
      {Softmax(), {{"x", x}}, {small, 1 - small, smaller, 1 - smaller}},
      {Gelu(), {{"x", x}}, {gelu(1), gelu(2), gelu(-1), gelu(3)}},
      // Two values are a unit below and above their mean, whatever they are.
      {LayerNorm(), {{"x", x}, {"scale", row}, {"bias", row}}, {0, 1, 0, 1}},
      {GeluLayerNorm(), {{"x", x}, {"scale", row}, {"bias", row}}, {0, 1, 0, 1}},
      {Transpose(), {{"x", x}}, {1, -1, 2, 3}},
      {Concat(), {{"a", x}, {"b", other}}, {1, 2, 7, -1, 3, 8}},
      {GatherRows(), {{"x", x}, {"ids", ids}}, {-1, 3, 1, 2, -1, 3}},
      {MatrixProduct(), {{"a", x}, {"b", other}}, {23, 17}},
      {Convolution(1, 0), {{"x", image}, {"w", window}}, {1 + 4 + 6}},
      {Convolution(2, 1), {{"x", image}, {"w", window}}, {1, 0, 0 + 7, 4}},
      {ConvolutionChannelsLast(2, 1), {{"x", image_last}, {"w", window}}, {1, 0, 0 + 7, 4}},
      {DepthwiseConvolution(1, 0), {{"x", image}, {"w", windows}}, {1 + 4, 6}},
      {Attention(/*causal=*/false), {{"q", zero}, {"k", zero}, {"v", value}}, {2.5, 2.5}},
      {Attention(/*causal=*/true), {{"q", zero}, {"k", zero}, {"v", value}}, {1, 2.5}},
  };
  for (const auto& c : kCases) {
    EXPECT_THAT(Floats(Evaluate(c.notation, c.inputs)), Pointwise(FloatNear(1e-4f), c.want))
        << c.notation;
  }
}

// For x^2: the square, and 2 x times the incoming gradient.
TEST(ProgramsTest, TrainingStep) {
  const std::string step =
      TrainingStep("op f(x: f32[N], z: f32[N]) -> (y) { y[i] = x[i] * x[i] + z[i] }", {"x"});
  const absl::StatusOr<Op> op = Parse(step);
  ASSERT_TRUE(op.ok()) << op.status() << "\n" << step;
  const Tensor x = Tensor::Of<float>({2}, {3, -1}), z = Tensor::Of<float>({2}, {1, 2});
  RunInputs inputs;
  inputs.tensors = {{"x", x}, {"z", z}, {"g_y", z}};
  const absl::StatusOr<std::vector<Tensor>> results = nestor::Run(*op, inputs);
  ASSERT_TRUE(results.ok()) << results.status();
  ASSERT_EQ(results->size(), 2);
  EXPECT_EQ(Floats((*results)[0]), (std::vector<float>{10, 3}));
  EXPECT_EQ(Floats((*results)[1]), (std::vector<float>{6, -4}));
}

TEST(ProgramsTest, SumsOverEachAxis) {
  const Tensor x = Tensor::Of<float>({2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  const std::vector<float> want[] = {{6, 8, 10, 12}, {4, 6, 12, 14}, {3, 7, 11, 15}};
  for (const int axis : {0, 1, 2})
    EXPECT_EQ(Floats(Evaluate(SumOver(axis, DType::kF32), {{"x", x}})), want[axis]);
}

TEST(ProgramsTest, OfIntegers) {
  const Tensor x = Tensor::Of<uint8_t>({2}, {3, 15}),
               cube = Tensor::Of<uint8_t>({1, 1, 2}, {200, 100});
  EXPECT_TRUE(BitEqual(Evaluate(MultiplyAdd(DType::kU8), {{"x", x}, {"y", x}}),
                       Tensor::Of<uint8_t>({2}, {12, 240})));
  EXPECT_TRUE(BitEqual(Evaluate(SumOver(2, DType::kU8), {{"x", cube}}),
                       Tensor::Of<int32_t>({1, 1}, {300})));
}

}  // namespace
}  // namespace nestor::bench
