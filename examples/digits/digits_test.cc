// Compares the convolutional network with PyTorch on one batch; checks that a step learns.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "examples/digits/data.h"
#include "examples/digits/model.h"
#include "examples/digits/runner.h"
#include "examples/digits/training.h"
#include "gtest/gtest.h"
#include "tensor/binding.h"
#include "tensor/npy.h"
#include "tensor/tensor.h"

namespace nestor::digits {
namespace {

Tensor Fixture(const std::string& name) {
  const auto tensor = ReadNpy(absl::StrCat("examples/digits/testdata/cnn_", name, ".npy"));
  EXPECT_TRUE(tensor.ok()) << tensor.status();
  return tensor.value_or(Tensor());
}

// Both sides sum in f32, in orders of their own. The longest path to a gradient
// (g_w1) is through sums of 9, 144, 128, 10, 320 (32 channels, 9 places, halved by
// pooling and relu) and 512 terms. An error of half an ulp (6e-8) a term grows by
// the root of their number if of random sign: sqrt(1123) * 6e-8 = 2e-6 of the terms'
// size; 1e-5 of the largest element leaves room for cancellation in it. A wrong
// term or a lost tie is wrong by 1e-3 and more.
constexpr float kTolerance = 1e-5f;

void ExpectNear(const std::string& name, const Tensor& actual) {
  const Tensor expected = Fixture(name);
  ASSERT_EQ(actual.shape(), expected.shape()) << name;
  const auto a = actual.values<float>(), e = expected.values<float>();
  float largest = 0, difference = 0;
  for (size_t i = 0; i < e.size(); ++i) {
    largest = std::max(largest, std::abs(e[i]));
    // A NaN fails too: it is not <= 0.
    if (!(std::abs(a[i] - e[i]) <= difference)) difference = std::abs(a[i] - e[i]);
  }
  EXPECT_GT(largest, 0) << name;
  EXPECT_LE(difference, kTolerance * largest) << name;
}

TEST(Cnn, LossAndGradientsAreThoseOfPyTorch) {
  const auto forward = ForwardOp("cnn");
  ASSERT_TRUE(forward.ok()) << forward.status();
  const std::vector<std::string> names = {"x", "w1", "b1", "w2", "b2", "w3", "b3"};
  const auto op = LossAndGradientsOp(*forward, names);
  ASSERT_TRUE(op.ok()) << op.status();

  std::vector<std::string> given = names;
  given.push_back("labels");
  std::vector<Tensor> tensors;
  for (const std::string& name : given) tensors.push_back(Fixture(name));
  tensors.push_back(Tensor::Of<float>({}, {1}));
  given.push_back("g_loss");
  RunInputs inputs;
  for (size_t i = 0; i < given.size(); ++i) inputs.tensors[given[i]] = tensors[i];

  for (const Engine engine : {Engine::kInterp, Engine::kJit}) {
    SCOPED_TRACE(engine == Engine::kJit ? "jit" : "interp");
    auto runner = Runner::Create(*op, engine);
    ASSERT_TRUE(runner.ok()) << runner.status();
    const auto results = runner->Run(inputs);
    ASSERT_TRUE(results.ok()) << results.status();
    ASSERT_EQ(results->size(), names.size() + 1);
    ExpectNear("loss", results->front());
    for (size_t i = 0; i < names.size(); ++i) ExpectNear("g_" + names[i], (*results)[i + 1]);
  }
}

TEST(Mlp, LossFallsWithEachEpoch) {
  auto digits = LoadDigits("examples/digits/digits.csv.gz");
  ASSERT_TRUE(digits.ok()) << digits.status();
  Examples few = digits->train;
  few.labels.resize(200);  // the last batch is smaller: 200 = 6 * 32 + 8
  for (const Engine engine : {Engine::kInterp, Engine::kJit}) {
    auto classifier = Classifier::Create("mlp", 1, engine);
    ASSERT_TRUE(classifier.ok()) << classifier.status();
    Random random(2);
    double before = std::log(2.0 * kClasses);  // a guess at random has about log(10)
    for (int epoch = 0; epoch < 2; ++epoch) {
      double reported = 0;
      const auto loss = TrainEpoch(few, 32, {0.05f, 0.9f}, random, *classifier,
                                   [&](double, double mean) { reported = mean; });
      ASSERT_TRUE(loss.ok()) << loss.status();
      EXPECT_EQ(*loss, reported);
      EXPECT_LT(*loss, before);
      before = *loss;
    }
  }
}

// PyTorch's network of the same layers reads 0.947 of them; the seed, and the order in
// which a machine adds, move that by 0.01.
TEST(Cnn, ReadsDigitsThatItHasNotSeen) {
  const auto digits = LoadDigits("examples/digits/digits.csv.gz");
  ASSERT_TRUE(digits.ok()) << digits.status();
  auto classifier = Classifier::Create("cnn", 0);
  ASSERT_TRUE(classifier.ok()) << classifier.status();
  Random random(1);
  for (int epoch = 1; epoch <= kEpochs; ++epoch) {
    const auto loss = TrainEpoch(digits->train, kBatchSize, StepSizeOf(epoch, kEpochs), random,
                                 *classifier, [](double, double) {});
    ASSERT_TRUE(loss.ok()) << loss.status();
  }
  const auto guesses = classifier->Predict(digits->test.pixels);
  ASSERT_TRUE(guesses.ok()) << guesses.status();
  int right = 0;
  for (size_t i = 0; i < guesses->size(); ++i) right += (*guesses)[i] == digits->test.labels[i];
  EXPECT_GE(right, 0.93 * static_cast<double>(digits->test.size()));
}

TEST(Data, IsWhatItsDescriptionSays) {
  const auto digits = LoadDigits("examples/digits/digits.csv.gz");
  ASSERT_TRUE(digits.ok()) << digits.status();
  EXPECT_EQ(digits->train.size(), 1437);
  EXPECT_EQ(digits->test.size(), 360);
  const Tensor first = Fixture("x");
  for (int i = 0; i < kPixels; ++i) EXPECT_EQ(digits->train.Image(0)[i], first.values<float>()[i]);
  EXPECT_FALSE(LoadDigits("nowhere.csv.gz").ok());
}

TEST(Models, UnknownIsAnError) { EXPECT_FALSE(ForwardOp("rnn").ok()); }

}  // namespace
}  // namespace nestor::digits
