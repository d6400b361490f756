// Compiled code is run from inputs by name as the interpreter is: with the same results and
// the same refusals.
#include "nestor.h"

#include <memory>
#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace nestor {
namespace {

constexpr char kOp[] =
    R"(op f(x: f32[N, 2*M], w: f32[N]; $k: i64 = 1 in [1, 9], $s: f32 = 0.5) -> (y, z) {
  y[i, j] = x[i, j + $k] * w[i] + $s where j < M
  z[i] = sum[j](exp(x[i, j]))
})";

const Tensor& X() {
  static const Tensor x = Tensor::Of<float>({2, 6}, {1, 2, 3, 4, 5, 6, -1, -2, -3, -4, -5, -6});
  return x;
}
const Tensor& W() {
  static const Tensor w = Tensor::Of<float>({2}, {0.25f, 3});
  return w;
}

Op TestOp() {
  const absl::StatusOr<Op> op = Parse(kOp);
  EXPECT_TRUE(op.ok()) << op.status();
  return *op;
}

std::unique_ptr<const jit::Executable> Strict(const Op& op) {
  jit::CompileOptions options;
  options.mode = jit::Mode::kStrict;
  auto executable = Compile(op, options);
  EXPECT_TRUE(executable.ok()) << executable.status();
  return *std::move(executable);
}

class CompiledOp : public testing::Test {
 protected:
  void SetUp() override {
    if (!jit::BestIsa().ok()) GTEST_SKIP() << jit::BestIsa().status();
  }
};

TEST_F(CompiledOp, GivesTheBitsOfTheReference) {
  const Op op = TestOp();
  const auto executable = Strict(op);
  TensorView row = X().view(), weight = W().view();
  row.shape[0] = weight.shape[0] = 1;
  const RunInputs cases[] = {
      {{{"x", X()}, {"w", W()}}, {}, {{"M", 3}}},
      {{{"x", row}, {"w", weight}}, {}, {{"M", 3}}},
      {{{"x", X()}, {"w", W()}},
       {{"$k", Scalar::Integer(DType::kI32, 3)}, {"$s", Scalar::Integer(DType::kI64, 2)}},
       {{"N", 2}, {"M", 3}}},
  };
  for (const RunInputs& inputs : cases) {
    const auto expected = nestor::Run(op, inputs);
    ASSERT_TRUE(expected.ok()) << expected.status();
    const auto actual = nestor::Run(*executable, inputs);
    ASSERT_TRUE(actual.ok()) << actual.status();
    ASSERT_EQ(actual->size(), expected->size());
    for (size_t i = 0; i < actual->size(); ++i)
      EXPECT_EQ(FirstDifference((*expected)[i], (*actual)[i]), absl::nullopt);
  }
}

TEST_F(CompiledOp, BoundInputsAreNotGiven) {
  const Op test = TestOp();
  const auto executable = Strict(test);
  const auto bound = executable->Bind("w", W().view());
  ASSERT_TRUE(bound.ok()) << bound.status();
  const RunInputs all = {{{"x", X()}, {"w", W()}}, {}, {{"M", 3}}};
  const RunInputs given = {{{"x", X()}}, {}, {{"M", 3}}};
  const auto expected = nestor::Run(test, all), actual = nestor::Run(**bound, given);
  ASSERT_TRUE(expected.ok() && actual.ok()) << actual.status();
  for (size_t i = 0; i < actual->size(); ++i)
    EXPECT_EQ(FirstDifference((*expected)[i], (*actual)[i]), absl::nullopt);
  EXPECT_THAT(nestor::Run(**bound, all).status().message(),
              testing::HasSubstr("argument w is bound, and calls do not give it"));
}

// A workspace serves calls that it knows, and others in between.
TEST_F(CompiledOp, WorkspaceServesAllSizes) {
  const auto op = LibraryOp("softmax");
  ASSERT_TRUE(op.ok()) << op.status();
  const auto executable = Strict(*op);
  jit::Workspace workspace;
  TensorView row = X().view();
  row.shape[0] = 1;
  for (const TensorView& x : {X().view(), X().view(), row, X().view()}) {
    const RunInputs inputs = {{{"x", x}}, {}, {}};
    const auto expected = nestor::Run(*op, inputs),
               actual = nestor::Run(*executable, inputs, &workspace);
    ASSERT_TRUE(expected.ok() && actual.ok()) << actual.status();
    EXPECT_EQ(FirstDifference((*expected)[0], (*actual)[0]), absl::nullopt);
  }
}

TEST_F(CompiledOp, RefusesWhatTheReferenceRefuses) {
  const Op op = TestOp();
  const auto executable = Strict(op);
  const Tensor i32 = Tensor::Of<int32_t>({2}, {1, 2}), three = Tensor::Of<float>({3}, {1, 2, 3});
  const absl::flat_hash_map<std::string, int64_t> m3 = {{"M", 3}};
  const RunInputs cases[] = {
      {{{"x", X()}, {"w", W()}}, {}, {}},
      {{{"x", X()}}, {}, m3},
      {{{"x", X()}, {"w", W()}, {"v", W()}}, {}, m3},
      {{{"x", X()}, {"w", i32}}, {}, m3},
      {{{"x", X()}, {"w", three}}, {}, m3},
      {{{"x", X()}, {"w", W()}}, {{"$k", Scalar::Integer(DType::kI64, 10)}}, m3},
      {{{"x", X()}, {"w", W()}}, {}, {{"M", 4}}},
      {{{"x", X()}, {"w", W()}}, {}, {{"M", 3}, {"Q", 4}}},
  };
  for (const RunInputs& inputs : cases) {
    const auto expected = nestor::Run(op, inputs), actual = nestor::Run(*executable, inputs);
    ASSERT_FALSE(expected.ok());
    EXPECT_EQ(actual.status(), expected.status());
  }
}

// The result has its shape at all sizes: only the sum's extent is refused.
TEST_F(CompiledOp, RefusesSizesThatAnIndexCannotHave) {
  const auto op =
      Parse("op f(x: f32[N]; $k: i64 = 1) -> (y) { y = sum[i](x[i]) where i < N - $k }");
  ASSERT_TRUE(op.ok()) << op.status();
  const auto executable = Strict(*op);
  jit::Workspace workspace;
  for (const int64_t k : {1, 3, 1}) {
    const RunInputs inputs = {{{"x", W()}}, {{"$k", Scalar::Integer(DType::kI64, k)}}, {{"N", 2}}};
    const auto expected = nestor::Run(*op, inputs),
               actual = nestor::Run(*executable, inputs, &workspace);
    ASSERT_EQ(expected.ok(), k == 1) << expected.status();
    ASSERT_EQ(actual.status(), expected.status());
    if (k != 1) continue;
    EXPECT_EQ(FirstDifference((*expected)[0], (*actual)[0]), absl::nullopt);
  }
}

// The check that docs/bounds.md shows.
absl::Status CheckFirst(const Op& op, const RunInputs& inputs, const TensorView& kernel_result) {
  const absl::StatusOr<std::vector<ReferenceTensor>> want = InterpretReference(Lower(op), inputs);
  if (!want.ok()) return want.status();
  return CheckEnclosed((*want)[0], kernel_result);
}

TEST(Bounds, AreThereForResultsAtHand) {
  const absl::StatusOr<Op> op = Parse("op f(x: f32[N]) -> (y) { y = sum[i](x[i]) }");
  ASSERT_TRUE(op.ok()) << op.status();
  const Tensor x = Tensor::Of<float>({3}, {1, 2, 3});
  const RunInputs inputs = {{{"x", x}}, {}, {}};
  std::vector<Tensor> results;
  results.push_back(Tensor::Of<float>({}, {6}));
  EXPECT_TRUE(CheckFirst(*op, inputs, results[0]).ok());
  EXPECT_THAT(results, InsideBounds(*op, inputs));
  results[0] = Tensor::Of<float>({}, {7});
  EXPECT_FALSE(CheckFirst(*op, inputs, results[0]).ok());
  EXPECT_THAT(results, testing::Not(InsideBounds(*op, inputs)));
}

}  // namespace
}  // namespace nestor
