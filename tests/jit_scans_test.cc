// Scans run in lanes: tested for every such operation, on every type, forward and backward, with
// terms of several parts and with stores beside it, at lengths around the blocks of steps that
// lanes take, and on rows of these. Bits are the interpreter's, those of exact scans are those of
// the program as written, and sums and products of floats lie within the proven bounds.
#include <random>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gtest/gtest.h"
#include "jit/compile.h"
#include "jit/runtime/executor.h"
#include "loop_ir/lower.h"
#include "loop_ir/text.h"
#include "nestor.h"
#include "tests/jit_runs.h"
#include "tests/random_programs.h"
#include "uops/dtype.h"

namespace nestor {
namespace {

struct Case {
  const char* name;
  const char* text;
  bool exact = false;  // in floats, too
  bool in_lanes = true;
};

constexpr Case kCases[] = {
    {"sum", "op f(x: T[C]) -> (y) { for t < C { y[t] = y[t - 1] + x[t] } }"},
    {"sum, backward", "op f(x: T[C]) -> (y) { for t < C { y[t] = x[t] + y[t + 1] } }"},
    {"product", "op f(x: T[C]) -> (y) { for t < C { y[t] = y[t - 1 | 1] * x[t] } }"},
    {"product, backward", "op f(x: T[C]) -> (y) { for t < C { y[t] = y[t + 1 | 2] * x[t] } }"},
    {"maximum", "op f(x: T[C]) -> (y) { for t < C { y[t] = max(y[t - 1 | 0], x[t]) } }", true},
    {"minimum, backward", "op f(x: T[C]) -> (y) { for t < C { y[t] = min(x[t], y[t + 1 | 0]) } }",
     true},
    {"rows", "op f(x: T[N, C]) -> (y) { for t < C { y[n, t] = y[n, t - 1] + x[n, t] } }"},
    {"terms",
     "op f(x: T[C], w: T[C]) -> (y) { for t < C { y[t] = x[t] * w[t] + y[t - 1 | 3] - w[t] } }"},
    {"results",
     "op f(x: T[C]) -> (y, z) { for t < C { y[t] = y[t - 1] + x[t]\n z[t] = y[t] * x[t] } }"},
    {"before",
     "op f(x: T[C]) -> (z) { for t < C { y[t] = y[t - 1] + x[t]\n z[t] = y[t - 1 | 2] - x[t] } }"},
    // A stored value is read again: fusion has z in a separate loop, or keeps it for y.
    {"before, backward",
     "op f(x: T[C]) -> (z) { for t < C { y[t] = max(y[t + 1 | 1], x[t])\n z[t] = y[t + 1 | 1] - x[t] } }",
     true, false},
    {"stored before",
     "op f(x: T[C]) -> (z) { for t < C { y[t] = y[t - 1] + x[t]\n z[t] = y[t - 1] } }", false,
     false},
    {"two scans",
     "op f(x: T[C]) -> (y, z) { for t < C { y[t] = y[t - 1] + x[t]\n z[t] = z[t - 1 | 1] * x[t] } }",
     false, false},
    {"scan of a scan",
     "op f(x: T[C]) -> (z) { for t < C { y[t] = y[t - 1] + x[t]\n z[t] = z[t - 1] + y[t] } }",
     false, false},
    // Linear scans: with a factor for each step, with one for all, in parts, and with values before
    // and after a step.
    {"linear", "op f(x: T[C], w: T[C]) -> (y) { for t < C { y[t] = w[t] * y[t - 1] + x[t] } }"},
    {"linear, backward",
     "op f(x: T[C], w: T[C]) -> (y) { for t < C { y[t] = x[t] + y[t + 1 | 3] * w[t] } }"},
    {"linear, rows",
     "op f(x: T[N, C], w: T[N, C]) -> (y) { for t < C { y[n, t] = x[n, t] - w[n, t] + w[n, t] * y[n, t - 1] } }"},
    {"same factor", "op f(x: T[C]) -> (y) { for t < C { y[t] = T(2) * (y[t - 1] + x[t]) } }"},
    {"same factor, backward, rows",
     "op f(x: T[N, C], w: T[C]) -> (y) { for t < C { y[n, t] = x[n, t] + w[0] * y[n, t + 1 | 1] } }"},
    {"linear in parts",
     "op f(x: T[C], w: T[C]) -> (y) { for t < C { y[t] = ((y[t - 1] - x[t]) * w[t] + x[t]) * x[t] * w[t] } }"},
    {"linear, before and behind",
     "op f(x: T[C], w: T[C]) -> (y, z) { for t < C { y[t] = w[t] * y[t - 1] + x[t]\n z[t] = y[t] * x[t] } }"},
    {"linear in two statements",
     "op f(x: T[C], w: T[C]) -> (y, z) { for t < C { y[t] = z[t + 1] + x[t]\n z[t] = y[t] * w[t] } }"},
    // A scan that reads another step than the previous one, and one that is not linear.
    {"two steps back", "op f(x: T[C]) -> (y) { for t < C { y[t] = y[t - 2] + x[t] } }", false,
     false},
    {"square", "op f(x: T[C]) -> (y) { for t < C { y[t] = y[t - 1] * y[t - 1] + x[t] } }", false,
     false},
};

constexpr int64_t kLengths[] = {0, 1, 2, 16, 17, 18, 33, 64, 65, 66, 130, 256, 257, 258, 600};
constexpr DType kTypes[] = {DType::kF32, DType::kF64, DType::kBF16, DType::kF16, DType::kI8,
                            DType::kU8,  DType::kI32, DType::kI64,  DType::kU64};

std::string TextOf(const Case& c, DType type) {
  return absl::StrReplaceAll(
      c.text, {{"T[", absl::StrCat(Name(type), "[")}, {"T(", absl::StrCat(Name(type), "(")}});
}

RunInputs Draw(const Op& op, DType type, int64_t length, bool small, std::vector<Tensor>& tensors) {
  std::mt19937_64 random(static_cast<uint64_t>(length));
  RunInputs inputs;
  const loop::Program program = Lower(op);
  for (loop::TensorId input : program.inputs) {
    const Dims shape = program[input].shape.size() == 2 ? Dims{3, length} : Dims{length};
    if (small) {
      std::vector<double> values;
      const int64_t count = *NumElements(shape);
      for (int64_t i = 0; i < count; ++i)
        values.push_back(static_cast<double>(random() % 2000) / 1000 - 0.97);
      tensors.push_back(Tensor::Of(type, shape, values));
    } else {
      tensors.push_back(DrawTensor(type, shape, random));
    }
    inputs.tensors[program[input].name] = tensors.back().view();
  }
  return inputs;
}

Finding Check(const Case& c, DType type, jit::Executor& executor) {
  const auto op = Parse(TextOf(c, type));
  if (!op.ok()) return op.status().ToString();
  jit::CompileOptions options;
  options.executor = &executor;
  options.least_parallel_bytes = 0;
  const auto compiled = CompiledVariants::Compile(Lower(*op), options);
  if (!compiled.ok()) return compiled.status().ToString();
  Counts counts;
  const JitRunOptions runs[] = {{GuardedMemory::Side::kEnd}, {GuardedMemory::Side::kBegin}};
  for (int64_t length : kLengths) {
    for (bool small : {true, false}) {
      if (small && !IsFloat(type)) continue;
      std::vector<Tensor> tensors;
      tensors.reserve(2);
      const RunInputs inputs = Draw(*op, type, length, small, tensors);
      if (Finding finding = compiled->Check(inputs, runs, /*bounded=*/IsFloat(type), counts)) {
        return absl::StrCat("length ", length, small ? ", small: " : ": ", *finding);
      }
    }
  }
  return absl::nullopt;
}

void TestScans(jit::Executor& executor) {
  for (const Case& c : kCases) {
    for (DType type : kTypes) {
      SetCurrentCase(absl::StrCat(c.name, " of ", Name(type)), 1);
      const Finding finding = Check(c, type, executor);
      EXPECT_FALSE(finding.has_value()) << c.name << " of " << Name(type) << ": " << *finding;
    }
  }
}

TEST(JitScans, OneThread) { TestScans(jit::InlineExecutor()); }
TEST(JitScans, TwoThreads) {
  const auto pool = jit::NewThreadPool(2);
  TestScans(*pool);
}

// Which scans run in lanes, and in which mode.
TEST(JitScans, AreInLanes) {
  for (const Case& c : kCases) {
    for (DType type : {DType::kF32, DType::kI32}) {
      for (jit::Mode mode : kModes) {
        jit::CompileOptions options;
        options.mode = mode;
        options.isa = jit::Isa::kAvx2;
        const auto scheduled = jit::Schedule(Lower(Parse(TextOf(c, type)).value()), options);
        ASSERT_TRUE(scheduled.ok()) << scheduled.status();
        const bool in_lanes = absl::StrContains(loop::ToText(*scheduled), "scans");
        const bool wanted = c.in_lanes && (mode == jit::Mode::kFast || c.exact || !IsFloat(type));
        EXPECT_EQ(in_lanes, wanted)
            << c.name << " of " << Name(type) << (mode == jit::Mode::kFast ? " fast" : " strict");
      }
    }
  }
}

}  // namespace
}  // namespace nestor
