// The table of ResNet-50 is right, and its program is valid.
#include "bench/residual_network.h"

#include "gtest/gtest.h"
#include "nestor.h"

namespace nestor::bench {
namespace {

TEST(ResidualNetworkTest, HasTheShapeOfResNet50) {
  const std::vector<ResidualLayer> layers = ResidualLayers({3, 4, 6, 3});
  EXPECT_EQ(layers.size(), 53);
  int64_t weights = 1000 * 2048 + 1000;
  for (const ResidualLayer& layer : layers) {
    EXPECT_EQ(layer.channels, layer.input < 0 ? 3 : layers[layer.input].kernels);
    EXPECT_EQ(layer.kernels, layer.addend < 0 ? layer.kernels : layers[layer.addend].kernels);
    weights += (layer.channels * layer.window * layer.window + 1) * layer.kernels;
  }
  // The number of the published model, less one scale per kernel, which folds into the weights.
  EXPECT_EQ(weights, 25'530'472);
  const std::vector<int64_t> sizes = ResidualSizes(layers, 224);
  EXPECT_EQ(sizes.front(), 112);
  EXPECT_EQ(sizes[1], 56);
  EXPECT_EQ(sizes.back(), 7);
}

TEST(ResidualNetworkTest, IsAProgram) {
  const std::vector<ResidualLayer> layers = ResidualLayers({1, 2});
  const std::string text = ResidualNetwork(layers);
  const absl::StatusOr<Op> op = Parse(text);
  ASSERT_TRUE(op.ok()) << op.status() << "\n" << text;
  std::vector<std::string> names;
  for (size_t i = 1; i < op->args.size(); ++i) names.push_back(op->args[i].name);
  EXPECT_EQ(names, ResidualParameters(layers));
}

}  // namespace
}  // namespace nestor::bench
