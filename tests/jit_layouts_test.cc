// Arguments of every layout: transposed, strided, reversed, broadcast and padded inputs,
// strided outputs, memory that no vector is aligned to; results in place of inputs; and
// stores that bypass the caches.
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "jit/compile.h"
#include "jit/runtime/executor.h"
#include "nestor.h"
#include "tensor/tensor.h"
#include "tests/jit_runs.h"
#include "tests/random_programs.h"

namespace nestor {
namespace {

using Side = GuardedMemory::Side;

// Each op takes those of x[M, N], w[M, N], v[N, M] and b[N] that it names.
const char* const kOps[] = {
    "op map(x: f32[M, N], w: f32[M, N]) -> (y) { y[i, j] = x[i, j] * w[i, j] + w[i, j] }",
    "op wide(x: f64[M, N], b: f32[N]) -> (y, z) { y[i, j] = x[i, j] + f64(b[j])\n z[i, j] = u8(x[i, j] > 0.0) }",
    "op narrow(x: bf16[M, N], b: f16[N]) -> (y) { y[i, j] = bf16(f32(x[i, j]) * f32(b[j])) }",
    "op bytes(x: u8[M, N], w: i8[M, N]) -> (y) { y[i, j] = i32(x[i, j]) * i32(w[i, j]) }",
    "op bools(x: bool[M, N], w: f32[M, N]) -> (y) { y[i, j] = where(x[i, j], w[i, j], 0.0) }",
    "op transpose(x: f32[M, N]) -> (y) { y[j, i] = x[i, j] }",
    "op transpose_bytes(x: u8[M, N], v: u8[N, M]) -> (y) { y[j, i] = x[i, j] + v[j, i] }",
    "op reverse(x: f32[M, N]) -> (y) { y[i, j] = x[i, N - 1 - j] where j < N }",
    "op columns(x: f32[M, N]) -> (y) { y[j] = sum[i](x[i, j]) }",
    "op rows(x: f32[M, N]) -> (y) { y[i] = sum[j](x[i, j]) }",
    "op softmax(x: f32[M, N]) -> (y) { m[i] = max[k](x[i, k])\n e[i, k] = exp(x[i, k] - m[i])\n"
    " s[i] = sum[k](e[i, k])\n y[i, k] = e[i, k] / s[i] }",
    "op matmul(x: f32[M, N], v: f32[N, M]) -> (y) { y[i, j] = sum[k](x[i, k] * v[k, j]) }",
    // Lanes with a mask each, before the begin of a row and past its end.
    "op taps(x: f32[M, N], w: i32[M, N]) -> (y) { y[i, j] = sum[r](x[i, j + r - 1 | 0.0] * f32(w[i, j - r | 3]))"
    " where j < N, r < 3 }",
    "op windows(x: f64[M, N], w: f32[M, N]) -> (y) { y[i, j] = max[r](x[i, j + r - 9 | 2.5] * f64(w[i, j + r - 2 | 1.5]))"
    " where j < N, r < 4 }",
};
const Dims kShapes[] = {{1, 1},   {2, 7},  {8, 8},  {9, 17}, {3, 33},
                        {16, 16}, {4, 64}, {33, 3}, {1, 50}};

// Input i has the layout number first + i * step.
RunInputs LaidOut(const Op& op, const Dims& shape, size_t first, size_t step, uint64_t seed,
                  std::vector<GuardedMemory>& memory) {
  std::mt19937_64 random(seed);
  RunInputs inputs;
  const Signature signature = SignatureOf(op);
  for (const SignatureArgument& arg : signature.args) {
    const Dims extents = arg.name == "b"   ? Dims{shape[1]}
                         : arg.name == "v" ? Dims{shape[1], shape[0]}
                                           : shape;
    const Tensor drawn = DrawTensor(arg.type, extents, random);
    inputs.tensors[arg.name] =
        Arranged(drawn, kArrangements[first % std::size(kArrangements)], memory);
    first += step;
  }
  return inputs;
}

jit::CompileOptions Inline() {
  jit::CompileOptions options;
  options.executor = &jit::InlineExecutor();
  return options;
}

Finding CheckLayouts(const CompiledVariants& compiled, const Op& op, const JitRunOptions& run,
                     const Dims& shape) {
  Counts counts;
  for (size_t first = 0; first < std::size(kArrangements); ++first) {
    for (size_t step : {0, 1, 3}) {
      if (step > 0 && SignatureOf(op).args.size() == 1) continue;
      std::vector<GuardedMemory> memory;
      const RunInputs inputs = LaidOut(op, shape, first, step, first + step, memory);
      const Finding finding = compiled.Check(inputs, {&run, 1}, /*bounded=*/false, counts);
      if (!finding) continue;
      return absl::StrCat("x ", Name(kArrangements[first]), ", others ", step, " further, of ",
                          ShapeText(shape), ": ", *finding);
    }
  }
  return absl::nullopt;
}

void TestLayouts(const JitRunOptions& run) {
  for (const char* text : kOps) {
    const Op op = Parse(text).value();
    const auto compiled = CompiledVariants::Compile(Lower(op), Inline());
    ASSERT_TRUE(compiled.ok()) << text << compiled.status();
    for (const Dims& shape : kShapes) {
      const Finding finding = CheckLayouts(*compiled, op, run, shape);
      EXPECT_FALSE(finding.has_value()) << text << ": " << *finding;
      if (finding) break;
    }
  }
}

TEST(JitLayouts, Inputs) { TestLayouts({Side::kEnd, Arrangement::kCompact}); }
TEST(JitLayouts, TransposedOutputs) { TestLayouts({Side::kBegin, Arrangement::kTransposed}); }
TEST(JitLayouts, OutputsOfEverySecondElement) {
  TestLayouts({Side::kEnd, Arrangement::kEverySecond});
}
TEST(JitLayouts, OutputsOfEveryThirdElement) {
  TestLayouts({Side::kBegin, Arrangement::kEveryThird});
}
TEST(JitLayouts, ReversedOutputs) { TestLayouts({Side::kEnd, Arrangement::kReversed}); }
TEST(JitLayouts, PaddedOutputs) { TestLayouts({Side::kBegin, Arrangement::kRowsApart}); }

// The places of inputs that may be overwritten.
TEST(JitLayouts, InPlace) {
  int aliases = 0;
  for (const char* text : kOps) {
    const Op op = Parse(text).value();
    const auto compiled = CompiledVariants::Compile(Lower(op), Inline());
    ASSERT_TRUE(compiled.ok()) << compiled.status();
    aliases += static_cast<int>(compiled->variants()[0].executable->aliases().size());
    for (const Dims& shape : kShapes) {
      for (Side side : {Side::kEnd, Side::kBegin}) {
        std::vector<GuardedMemory> memory;
        Counts counts;
        const RunInputs inputs = LaidOut(op, shape, 0, 0, 1, memory);
        const JitRunOptions run = {side, Arrangement::kCompact, /*in_place=*/true};
        const Finding finding = compiled->Check(inputs, {&run, 1}, /*bounded=*/false, counts);
        EXPECT_FALSE(finding.has_value()) << text << ShapeText(shape) << ": " << *finding;
      }
    }
  }
  EXPECT_GT(aliases, 4);
}

// Only inside a loop over the same tensor is an element known to exist.
TEST(JitLayouts, EmptyInputsAreNotRead) {
  for (
      const char* text :
      {"op f(x: f32[M, N]) -> (y, z) { y[i, j] = x[0, 0] + x[i, j]\n z[k] = x[0, 0] + 1.0 where k < 3 }",
       "op g(x: f32[M, N]) -> (y, z) { z[k] = x[0, 0] + 1.0 where k < 3\n y[i, j] = x[0, 0] + x[i, j] }"}) {
    const Op op = Parse(text).value();
    const auto compiled = CompiledVariants::Compile(Lower(op), Inline());
    ASSERT_TRUE(compiled.ok()) << compiled.status();
    for (const Dims& shape : {Dims{0, 4}, Dims{4, 0}, Dims{0, 0}, Dims{2, 3}}) {
      std::vector<GuardedMemory> memory;
      Counts counts;
      const RunInputs inputs = LaidOut(op, shape, 0, 0, 1, memory);
      const JitRunOptions run = {Side::kEnd, Arrangement::kCompact};
      const Finding finding = compiled->Check(inputs, {&run, 1}, /*bounded=*/false, counts);
      EXPECT_FALSE(finding.has_value()) << text << ShapeText(shape) << ": " << *finding;
    }
  }
}

// Outputs of any size bypass the caches, if their rows are aligned.
TEST(JitLayouts, StreamingStores) {
  jit::CompileOptions options = Inline();
  options.streaming_bytes = 1;
  for (const char* text : kOps) {
    const Op op = Parse(text).value();
    const auto compiled = CompiledVariants::Compile(Lower(op), options);
    ASSERT_TRUE(compiled.ok()) << compiled.status();
    for (const Dims& shape :
         {Dims{1, 1}, Dims{8, 64}, Dims{64, 8}, Dims{64, 128}, Dims{9, 65}, Dims{33, 100}}) {
      for (Side side : {Side::kEnd, Side::kBegin}) {
        std::vector<GuardedMemory> memory;
        Counts counts;
        const RunInputs inputs = LaidOut(op, shape, 0, 0, 1, memory);
        const JitRunOptions run = {side, Arrangement::kCompact};
        const Finding finding = compiled->Check(inputs, {&run, 1}, /*bounded=*/false, counts);
        EXPECT_FALSE(finding.has_value()) << text << ShapeText(shape) << ": " << *finding;
      }
    }
    // A separate variant has run.
    for (const CompiledVariants::Variant& variant : compiled->variants()) {
      EXPECT_GT(variant.executable->code_bytes(), variant.executable->kernel().code_bytes())
          << text;
    }
  }
}

}  // namespace
}  // namespace nestor
