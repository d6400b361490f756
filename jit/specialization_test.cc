// Specialize: the same results as before for the given sizes, and an error that names the
// symbol for all others.
#include "jit/specialization.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "jit/compile.h"
#include "jit/executable.h"
#include "jit/runtime/executor.h"
#include "loop_ir/text.h"
#include "loop_ir/verify.h"
#include "tensor/tensor.h"

namespace nestor::jit {
namespace {

using Sizes = absl::flat_hash_map<std::string, int64_t>;

constexpr char kWindows[] =
    R"(program windows(x: f32[N], w: f32[K], c: f32[2*K]; $s: i64 = 1 in [1, 100], $t: i32 = 0)
    -> (y: f32[(N - K)/$s + 1]) {
  domain d < (N - K)/$s + 1, d_2 < K: d*$s + d_2
  for i in [0, (N - K)/$s + 1) {
    acc a: f32 = sum
    for k in [0, K) { a += x[i*$s + k] * w[k] }
    y[i] = a + c[K] + f32(index($t))
  }
})";

std::unique_ptr<const Executable> Windows(Mode mode = Mode::kStrict) {
  CompileOptions options;
  options.executor = &InlineExecutor();
  options.mode = mode;
  return Compile(loop::ParseProgram(kWindows).value(), options).value();
}

Tensor Drawn(int64_t n) {
  Tensor tensor = *Tensor::Create(DType::kF32, {n});
  for (int64_t i = 0; i < n; ++i)
    static_cast<float*>(tensor.data())[i] = static_cast<float>(i * i % 17) / 7.0f - 1.0f;
  return tensor;
}

// Without $s, its default is used.
absl::StatusOr<Tensor> RunWindows(const Executable& executable, int64_t n, int64_t k, int64_t s,
                                  bool give_params = true) {
  const Tensor x = Drawn(n), w = Drawn(k), c = Drawn(2 * k);
  Tensor y = *Tensor::Create(DType::kF32, {std::max<int64_t>((n - k) / s + 1, 0)});
  std::vector<Scalar> params = {Scalar::I64(s), Scalar::Integer(DType::kI32, 0)};
  if (!give_params) params.clear();
  Workspace workspace;
  const absl::Status status = executable.Run({{x, w, c}, {y}, params}, &workspace);
  if (!status.ok()) return status;
  return y;
}

void ExpectSame(const absl::StatusOr<Tensor>& got, const absl::StatusOr<Tensor>& want) {
  ASSERT_TRUE(got.ok()) << got.status();
  ASSERT_TRUE(want.ok()) << want.status();
  EXPECT_EQ(FirstDifference(*got, *want).value_or(""), "");
}

void ExpectInvalid(const absl::Status& status, const std::vector<const char*>& words) {
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  for (const char* word : words) {
    EXPECT_TRUE(absl::StrContains(status.message(), word)) << "lacks " << word << ": " << status;
  }
}

TEST(Specialize, ComputesTheSame) {
  const auto windows = Windows();
  for (const Sizes& sizes : std::vector<Sizes>{{},
                                               {{"K", 3}},
                                               {{"$s", 2}},
                                               {{"N", 60}},
                                               {{"K", 3}, {"$s", 2}},
                                               {{"N", 60}, {"K", 3}, {"$s", 2}, {"$t", 0}}}) {
    const auto specialized = windows->Specialize(sizes);
    ASSERT_TRUE(specialized.ok()) << specialized.status();
    ExpectSame(RunWindows(**specialized, 60, 3, 2), RunWindows(*windows, 60, 3, 2));
    EXPECT_EQ(loop::Verify((*specialized)->program()), absl::OkStatus());
    EXPECT_EQ((*specialized)->aliases(), windows->aliases());
  }
}

TEST(Specialize, MakesNumbersOfSizes) {
  const auto specialized =
      Windows()->Specialize({{"N", 60}, {"K", 3}, {"$s", 2}, {"$t", 0}}).value();
  const std::string text = loop::ToText(specialized->kernel().program());
  EXPECT_TRUE(absl::StrContains(text, "(x: f32[60], w: f32[3], c: f32[6]; ")) << text;
  EXPECT_TRUE(absl::StrContains(text, "y: f32[29]")) << text;
  // The signature is unchanged.
  const std::string program = loop::ToText(specialized->program());
  EXPECT_TRUE(absl::StrContains(
      program, "(x: f32[N], w: f32[K], c: f32[2*K]; $s: i64 = 2 in [1, 100], $t: i32 = 0)"))
      << program;
}

TEST(Specialize, RefusesOtherSizes) {
  const auto one = Windows()->Specialize({{"K", 3}, {"$s", 2}}).value();
  ExpectSame(RunWindows(*one, 60, 3, 2), RunWindows(*Windows(), 60, 3, 2));
  ExpectSame(RunWindows(*one, 61, 3, 2), RunWindows(*Windows(), 61, 3, 2));
  ExpectInvalid(RunWindows(*one, 60, 4, 2).status(),
                {"K, which the program was specialized to", "4 against 3"});
  ExpectInvalid(RunWindows(*one, 60, 3, 1).status(),
                {"$s, which the program was specialized to", "1 against 2"});
  ExpectInvalid(one->OutputShapes({Drawn(9), Drawn(4), Drawn(8)}).status(), {"K, which"});
  // A $param that is left out has the specialized value.
  ExpectSame(RunWindows(*one, 60, 3, 2, /*give_params=*/false), RunWindows(*Windows(), 60, 3, 2));
  // All other checks are unchanged.
  ExpectInvalid(RunWindows(*one, 0, 3, 2).status(), {"extent", "is negative"});
}

TEST(Specialize, GoesOnFromWhatIsSpecializedOrBound) {
  const auto windows = Windows();
  const auto twice = windows->Specialize({{"K", 3}}).value()->Specialize({{"$s", 2}}).value();
  ExpectSame(RunWindows(*twice, 60, 3, 2), RunWindows(*windows, 60, 3, 2));
  ExpectInvalid(RunWindows(*twice, 60, 4, 2).status(), {"K, which"});
  ExpectInvalid(RunWindows(*twice, 60, 3, 1).status(), {"$s, which"});
  const auto bound = windows->Bind("w", Drawn(3)).value()->Specialize({{"K", 3}}).value();
  EXPECT_EQ(bound->inputs().size(), 2u);
  const Tensor x = Drawn(60), c = Drawn(6);
  Tensor y = *Tensor::Create(DType::kF32, {58});
  Workspace workspace;
  ASSERT_EQ(bound->Run({{x, c}, {y}}, &workspace), absl::OkStatus());
  ExpectSame(y, RunWindows(*windows, 60, 3, 1));
  const auto specialized = windows->Specialize({{"K", 3}}).value()->Bind("w", Drawn(3)).value();
  ASSERT_EQ(specialized->Run({{x, c}, {y}}, &workspace), absl::OkStatus());
  ExpectSame(y, RunWindows(*windows, 60, 3, 1));
}

TEST(Specialize, RefusesWhatNoCallCouldHave) {
  const auto windows = Windows();
  ExpectInvalid(windows->Specialize({{"Q", 3}}).status(), {"windows", "'Q'", "N, K, $s, $t"});
  ExpectInvalid(windows->Specialize({{"s", 3}}).status(), {"'s'"});
  ExpectInvalid(windows->Specialize({{"K", -1}}).status(), {"K = -1", "negative"});
  ExpectInvalid(windows->Specialize({{"K", int64_t{1} << 50}}).status(), {"K", "exceeds"});
  ExpectInvalid(windows->Specialize({{"$s", 0}}).status(), {"$s = 0"});
  ExpectInvalid(windows->Specialize({{"$s", 101}}).status(), {"$s = 101"});
  ExpectInvalid(windows->Specialize({{"$t", int64_t{1} << 40}}).status(), {"$t"});
  // Each is legal, but not both at once: calls report it.
  const auto never = windows->Specialize({{"N", 2}, {"K", 5}});
  ASSERT_TRUE(never.ok()) << never.status();
  EXPECT_FALSE(RunWindows(**never, 2, 5, 1).ok());
  const auto contradicting =
      windows->Specialize({{"K", 3}}).value()->Specialize({{"K", 4}}).value();
  ExpectInvalid(RunWindows(*contradicting, 60, 3, 1).status(), {"K, which"});
  ExpectInvalid(RunWindows(*contradicting, 60, 4, 1).status(), {"K, which"});
}

TEST(Specialize, NeedsWhatWasScheduled) {
  const auto scheduled = CompileScheduled(loop::ParseProgram(kWindows).value()).value();
  EXPECT_EQ(scheduled->Specialize({{"K", 3}}).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

// (d + 3*2^61*d_2)/3 is d/3 + 2^61*d_2, which stays in int64 where the sum does not: a call is
// checked against the program as it is written.
TEST(Specialize, KeepsWhatIsCheckedOfIndices) {
  CompileOptions options;
  options.executor = &InlineExecutor();
  const auto general = Compile(loop::ParseProgram(R"(program p(x: f32[N]) -> (y: f32[N]) {
    domain d < N, d_2 < N: (d + 6917529027641081856*d_2)/N
    for i in [0, N) { y[i] = x[i] }
  })")
                                   .value(),
                               options)
                           .value();
  const auto specialized = general->Specialize({{"N", 3}}).value();
  const Tensor x = Drawn(3);
  Tensor y = Drawn(3);
  for (const Executable* executable : {general.get(), specialized.get()}) {
    Workspace workspace;
    ExpectInvalid(executable->Run({{x}, {y}, {}}, &workspace), {"overflows"});
  }
}

}  // namespace
}  // namespace nestor::jit
