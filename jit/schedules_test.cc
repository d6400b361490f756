// The file of schedules is read as it is written, its mistakes are named by line, and a call of a
// line's sizes runs by it.
#include "jit/schedules.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "gtest/gtest.h"
#include "jit/compile.h"
#include "jit/runtime/executor.h"
#include "loop_ir/text.h"
#include "tensor/tensor.h"

namespace nestor::jit {
namespace {

constexpr absl::string_view kLine =
    "op=f program=00ab cpu=c isa=avx2 mode=fast sizes=K:512 tile_rows=4,sum_block=96";

TEST(Schedules, ReadWhatTheyWrite) {
  const auto schedules =
      Schedules::Parse(absl::StrCat("# a comment\n\n  ", kLine, "  # another\r\n"));
  ASSERT_TRUE(schedules.ok()) << schedules.status();
  EXPECT_EQ(schedules->ToText(), absl::StrCat("# nestor schedules\n", kLine, "\n"));
  EXPECT_EQ(Schedules::Parse(schedules->ToText())->ToText(), schedules->ToText());
  const ChosenValues* values = schedules->Find({"00ab", "c", "avx2", "fast", "K:512"});
  ASSERT_NE(values, nullptr);
  EXPECT_EQ(*values, (ChosenValues{{"tile_rows", 4}, {"sum_block", 96}}));
  EXPECT_EQ(schedules->Find({"00ab", "c", "avx2", "strict", "K:512"}), nullptr);
}

TEST(Schedules, MalformedLinesAreNamed) {
  struct Case {
    std::string text, message;
  };
  const std::string key = "op=f program=1 cpu=c isa=avx2 mode=fast sizes=- ";
  const Case cases[] = {
      {"\n op=f program=1", "line 2: 7 words are expected, there are 2"},
      {"op=f cpu=c program=1 isa=avx2 mode=fast sizes=- panels=0",
       "line 1: `program=..` is expected where there is `cpu=c`"},
      {key + "tile_row=4",
       "line 1: a schedule has no choice 'tile_row', did you mean 'tile_rows'?"},
      {key + "tile_rows=100", "line 1: tile_rows=100: from 0 to 16 is expected"},
      {key + "tile_rows=four", "line 1: `NAME=NUMBER` is expected where there is `tile_rows=four`"},
      {key + "panels=0,", "line 1: `NAME=NUMBER` is expected where there is ``"},
      {key + "panels=0\n" + key + "panels=1", "line 2: an earlier line is for the same"},
  };
  for (const Case& c : cases) {
    const auto schedules = Schedules::Parse(c.text);
    EXPECT_EQ(schedules.status().code(), absl::StatusCode::kInvalidArgument) << c.text;
    EXPECT_EQ(schedules.status().message(), c.message) << c.text;
  }
}

loop::Program Product() {
  return loop::ParseProgram(R"(
program product(a: f32[M, K], b: f32[K, N]) -> (c: f32[M, N]) {
  for i in [0, M) {
    for j in [0, N) {
      acc s: f32 = sum
      for k in [0, K) { s += a[i, k] * b[k, j] }
      c[i, j] = s
    }
  }
})")
      .value();
}

// The sizes of a product, by name.
struct Sizes {
  int64_t m, n, k;
  absl::optional<int64_t> operator()(const std::string& name) const {
    return name == "M" ? m : name == "N" ? n : k;
  }
};

ProgramSchedules Of(std::shared_ptr<const Schedules> schedules, const loop::Program& program) {
  return ProgramSchedules(std::move(schedules), program, BestIsa().value(), /*strict=*/false);
}

TEST(ProgramSchedules, AreFoundByClassesOfSizes) {
  const ProgramSchedules schedules = Of(std::make_shared<const Schedules>(), Product());
  EXPECT_EQ(schedules.KeyAt(Sizes{1, 16, 17}, {}).sizes, "K:32,M:1,N:16");
  EXPECT_EQ(schedules.KeyAt(Sizes{512, 513, 0}, {}).sizes, "K:0,M:512,N:1024");
  EXPECT_EQ(schedules.KeyAt(Sizes{33, 64, INT64_MAX}, {}).sizes,
            absl::StrCat("K:", int64_t{1} << 62, ",M:64,N:64"));
  EXPECT_EQ(schedules.KeyAt(Sizes{1, 1, 1}, {false, true}).sizes, "K:1,M:1,N:1,b:bound");
}

TEST(ProgramSchedules, AProgramIsKnownByWhatItComputes) {
  const auto none = std::make_shared<const Schedules>();
  loop::Program renamed = Product();
  renamed.name = "other";
  const loop::Program other = loop::ParseProgram(R"(
program product(x: f32[N]) -> (y: f32[N]) {
  for i in [0, N) { y[i] = x[i] + 1.0 }
})")
                                  .value();
  const std::string product = Of(none, Product()).KeyAt(Sizes{}, {}).program;
  EXPECT_EQ(Of(none, renamed).KeyAt(Sizes{}, {}).program, product);
  EXPECT_NE(Of(none, other).KeyAt(Sizes{}, {}).program, product);
}

// The text of the program that runs for a product of these sizes.
std::string TextAt(const Executable& executable, const Sizes& sizes) {
  const auto kernel = executable.KernelAt(sizes);
  EXPECT_TRUE(kernel.ok()) << kernel.status();
  return kernel.ok() ? loop::ToText((*kernel)->program()) : "";
}

TEST(ProgramSchedules, ACallOfTheirSizesRunsByThem) {
  const loop::Program program = Product();
  const Sizes tuned{20, 20, 20}, other{40, 20, 20};
  Schedules lines;
  lines.Set(Of(std::make_shared<const Schedules>(), program).KeyAt(tuned, {}), "product",
            {{"tile_rows", 2}, {"tile_vectors", 1}});
  CompileOptions with, without;
  with.executor = without.executor = &InlineExecutor();
  with.schedules = std::make_shared<const Schedules>(lines);
  const auto plain = Compile(program, without), by_lines = Compile(program, with);
  ASSERT_TRUE(plain.ok() && by_lines.ok());
  EXPECT_EQ(TextAt(**by_lines, other), TextAt(**plain, other));
  EXPECT_NE(TextAt(**by_lines, tuned), TextAt(**plain, tuned));
  CompileOptions chosen = without;
  ASSERT_TRUE(Choose({{"tile_rows", 2}, {"tile_vectors", 1}}, chosen.schedule).ok());
  EXPECT_EQ(TextAt(**by_lines, tuned), TextAt(**Compile(program, chosen), tuned));
  // So does an executable for these sizes alone, and one for others does not.
  const auto special = [](const Executable& executable, const Sizes& sizes) {
    return TextAt(**executable.Specialize({{"M", sizes.m}, {"N", sizes.n}, {"K", sizes.k}}), sizes);
  };
  EXPECT_EQ(special(**by_lines, tuned), special(**Compile(program, chosen), tuned));
  EXPECT_NE(special(**by_lines, tuned), special(**plain, tuned));
  EXPECT_EQ(special(**by_lines, other), special(**plain, other));
}

TEST(ProgramSchedules, WhatRunsByThemGivesTheSameSums) {
  const loop::Program program = Product();
  Tensor a = Tensor::Create(DType::kF32, {21, 19}).value(),
         b = Tensor::Create(DType::kF32, {19, 18}).value();
  for (Tensor* tensor : {&a, &b}) {
    for (int64_t i = 0; i < tensor->num_elements(); ++i)
      static_cast<float*>(tensor->data())[i] = static_cast<float>(i % 7 - 3);
  }
  const Sizes sizes{21, 18, 19};
  std::vector<Tensor> results;
  for (const ScheduleChoice& choice : ScheduleChoices()) {
    for (const int64_t value : choice.values) {
      Schedules lines;
      lines.Set(Of(std::make_shared<const Schedules>(), program).KeyAt(sizes, {}), "product",
                {{std::string(choice.name), value}});
      CompileOptions options;
      options.executor = &InlineExecutor();
      options.schedules = std::make_shared<const Schedules>(lines);
      const auto executable = Compile(program, options);
      ASSERT_TRUE(executable.ok()) << executable.status();
      results.push_back(Tensor::Create(DType::kF32, {21, 18}).value());
      const TensorView inputs[] = {a.view(), b.view()}, outputs[] = {results.back().view()};
      Workspace workspace;
      ASSERT_TRUE((*executable)->Run({inputs, outputs}, &workspace).ok());
      // Sums of small integers are exact.
      EXPECT_EQ(absl::string_view(static_cast<const char*>(results.back().data()),
                                  static_cast<size_t>(results.back().num_bytes())),
                absl::string_view(static_cast<const char*>(results[0].data()),
                                  static_cast<size_t>(results[0].num_bytes())))
          << choice.name << "=" << value;
    }
  }
}

}  // namespace
}  // namespace nestor::jit
