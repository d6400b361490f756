// Bytes walked and memory of fused programs: chains, norms and their gradients walk
// their inputs and outputs once and nothing more while a row fits the cache; nothing
// of higher rank than a contraction's operands is stored. The table is printed.
#include <algorithm>
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "fusion/cost/statistics.h"
#include "fusion/pipeline.h"
#include "gtest/gtest.h"
#include "jit/compile.h"
#include "loop_ir/sized_program.h"
#include "nestor.h"
#include "tests/resnet.h"

namespace nestor {
namespace {

using loop::Sizes;
using loop::Statistics;

constexpr double kMiB = 1 << 20;

loop::Program Fused(const Op& op) {
  loop::Program program = Lower(op);
  EXPECT_EQ(fusion::Pipeline::Default().Run(program), absl::OkStatus());
  return program;
}

Statistics StatisticsAt(const loop::Program& program, const Sizes& sizes) {
  const auto statistics = loop::StatisticsOf(program, sizes);
  EXPECT_TRUE(statistics.ok()) << program.name << ": " << statistics.status();
  return statistics.value_or(Statistics());
}

struct Case {
  const char* name;
  bool gradient;
  std::string text;
  Sizes sizes;
};

absl::StatusOr<Op> Build(const Case& c) {
  const bool in_library = c.text.find("op ") == std::string::npos;
  absl::StatusOr<Op> op = in_library ? LibraryOp(c.text) : Parse(c.text);
  if (!op.ok() || !c.gradient) return op;
  const auto gradient = Gradient(*op);
  if (!gradient.ok()) return gradient.status();
  return gradient->op;
}

const char kGeluTanh[] =
    "op gelu_by_tanh(x: f32[N, M]) -> (y) {\n"
    "  y[i, j] = 0.5 * x[i, j] * (1.0 + tanh(0.7978845608 * (x[i, j] + 0.044715 * x[i, j] * x[i, j] * x[i, j])))\n"
    "}";

TEST(FusionBytes, InputsAndOutputsOnce) {
  const Sizes matrix = {{"N", 4096}, {"M", 1024}};
  const Sizes rows = {{"N0", 4096}, {"C", 1024}};
  const std::vector<Case> cases = {
      {"chain", false,
       "op f(x: f32[N, M], y: f32[N, M]) -> (z) { a[i, j] = sigmoid(x[i, j] * y[i, j] + x[i, j]); z[i, j] = a[i, j] * y[i, j] }",
       matrix},
      {"chain, gradient", true,
       "op f(x: f32[N, M], y: f32[N, M]) -> (z) { a[i, j] = sigmoid(x[i, j] * y[i, j] + x[i, j]); z[i, j] = a[i, j] * y[i, j] }",
       matrix},
      {"gelu", false, "op f(x: f32[N, M]) -> (y) { y[i, j] = gelu(x[i, j]) }", matrix},
      {"gelu, gradient", true, "op f(x: f32[N, M]) -> (y) { y[i, j] = gelu(x[i, j]) }", matrix},
      {"gelu_by_tanh", false, kGeluTanh, matrix},
      {"gelu_by_tanh, gradient", true, kGeluTanh, matrix},
      {"softmax", false, "softmax", rows},
      {"softmax, gradient", true, "softmax", rows},
      {"log_softmax", false, "log_softmax", rows},
      {"layer_norm", false, "layer_norm", rows},
      {"layer_norm, gradient", true, "layer_norm", rows},
  };
  for (const Case& c : cases) {
    const auto op = Build(c);
    ASSERT_TRUE(op.ok()) << c.name << op.status();
    const Statistics unfused = StatisticsAt(Lower(*op), c.sizes),
                     fused = StatisticsAt(Fused(*op), c.sizes);
    const double once = static_cast<double>(fused.input_bytes + fused.output_bytes);
    std::cout << absl::StrFormat("%-22s %7.1f MiB unfused, %6.1f fused, inputs and outputs %6.1f\n",
                                 c.name, unfused.walked.Total() / kMiB, fused.walked.Total() / kMiB,
                                 once / kMiB);
    // Walking the rows' totals (a scale, a sum of columns) again takes less than a thousandth.
    EXPECT_LE(fused.walked.Total(), once * 1.001) << c.name;
    const bool is_gelu = c.text == kGeluTanh && !c.gradient;
    EXPECT_GE(unfused.walked.Total() / fused.walked.Total(), is_gelu ? 5 : 1) << c.name;
  }
}

// n*d, and no n*n: scores live a row at a time.
TEST(FusionBytes, OfAttention) {
  double last = 0;
  for (int64_t n : {256, 512, 1024}) {
    const Sizes sizes = {{"B0", 1}, {"L", n}, {"S", n}, {"D", 64}, {"E", 64}};
    const Statistics fused = StatisticsAt(Fused(*LibraryOp("attention")), sizes);
    const double matrices = 4.0 * 4 * static_cast<double>(n) * 64;
    std::cout << absl::StrFormat("attention n=%d, d=64: %.2f MiB, its four matrices %.2f\n", n,
                                 fused.walked.Total() / kMiB, matrices / kMiB);
    EXPECT_LE(fused.walked.Total(), matrices * 1.01) << n;
    EXPECT_LE(static_cast<double>(fused.temp_bytes), 64.0 * static_cast<double>(n)) << n;
    EXPECT_TRUE(last == 0 || fused.walked.Total() <= 2.1 * last);
    last = fused.walked.Total();
  }
}

// The greatest ranks of stored and of given tensors.
TEST(FusionBytes, ContractionsStoreNothingOfHigherRank) {
  for (const char* name : {"matmul", "linear", "conv2d"}) {
    for (bool gradient : {false, true}) {
      const auto op = Build({"", gradient, name, {}});
      ASSERT_TRUE(op.ok()) << name << op.status();
      const loop::Program program = Fused(*op);
      size_t given = 0;
      for (loop::TensorId input : program.inputs)
        given = std::max(given, program[input].shape.size());
      const std::vector<loop::TensorId> temps = DeclaredIn(program.body);
      for (loop::TensorId temp : temps) EXPECT_LE(program[temp].shape.size(), given) << name;
      EXPECT_TRUE(temps.empty()) << name << ": " << ToText(program);
    }
  }
}

// The memory that the compiled code of the op takes.
Statistics MemoryOfCode(const Op& op, const Sizes& sizes) {
  Statistics statistics;
  const auto executable = jit::Compile(Lower(op));
  EXPECT_TRUE(executable.ok()) << executable.status();
  if (!executable.ok()) return statistics;
  const auto sized = loop::SizedProgram::Create((*executable)->program(), sizes);
  EXPECT_TRUE(sized.ok()) << sized.status();
  if (!sized.ok()) return statistics;
  EXPECT_EQ(loop::MeasureMemory(*sized, (*executable)->kernel().plan(), statistics),
            absl::OkStatus());
  return statistics;
}

TEST(FusionBytes, ArenaOfResNet50) {
  Sizes sizes = {{"N", 8}, {"H", 224}, {"W", 224}, {"C0", 3}, {"C1", 64}, {"K", 1000}};
  for (int stage = 0; stage < 4; ++stage) {
    sizes[absl::StrCat("B", stage)] = 64 << stage;
    sizes[absl::StrCat("D", stage)] = 256 << stage;
  }
  const struct {
    const char* name;
    Op op;
  } kPrograms[] = {{"forward", ResNet50()}, {"gradient", ResNetGradient({3, 4, 6, 3})}};
  for (const auto& [name, op] : kPrograms) {
    const Statistics code = MemoryOfCode(op, sizes);
    std::cout << absl::StrFormat(
        "ResNet-50 %s, N = 8: arena %.1f MiB, lower bound %.1f MiB, %.1f KiB for each thread, temporaries side by side %.1f MiB\n",
        name, code.arena_bytes / kMiB, code.arena_lower_bound / kMiB, code.private_bytes / 1024.0,
        code.temp_bytes / kMiB);
    EXPECT_LE(static_cast<double>(code.arena_bytes),
              1.1 * static_cast<double>(code.arena_lower_bound))
        << name;
  }
}

}  // namespace
}  // namespace nestor
