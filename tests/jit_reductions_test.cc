// Every reduction on every type, along the last, the first and a middle axis, and along
// all of them, of lengths around vectors and groups of them, with one to eight
// accumulators.
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

constexpr int64_t kLengths[] = {0, 1, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 129};

struct Axis {
  const char* name;
  const char* text;  // OP stands for the reduction
  // The extents for a length along the reduced axis.
  Dims (*extents)(int64_t length);
};
const Axis kAxes[] = {
    {"last", "op f(x: T[M, N]) -> (y) { y[i] = OP[k](x[i, k]) }",
     [](int64_t n) {
       return Dims{3, n};
     }},
    {"first", "op f(x: T[M, N]) -> (y) { y[j] = OP[k](x[k, j]) }",
     [](int64_t n) {
       return Dims{n, 3};
     }},
    {"first, wide", "op f(x: T[M, N]) -> (y) { y[j] = OP[k](x[k, j]) }",
     [](int64_t n) {
       return Dims{3, n};
     }},
    {"middle", "op f(x: T[L, M, N]) -> (y) { y[i, j] = OP[k](x[i, k, j]) }",
     [](int64_t n) {
       return Dims{2, n, 9};
     }},
    {"all", "op f(x: T[M, N]) -> (y) { y = OP[i, j](x[i, j]) }",
     [](int64_t n) {
       return Dims{2, n};
     }},
    {"only", "op f(x: T[N]) -> (y) { y = OP[i](x[i]) }", [](int64_t n) { return Dims{n}; }},
};

struct Reduction {
  const char* name;
  bool of_bools, of_numbers, along_one;
};
constexpr Reduction kReductions[] = {
    {"sum", false, true, false},   {"prod", false, true, false},  {"max", false, true, false},
    {"min", false, true, false},   {"any", true, false, false},   {"all", true, false, false},
    {"argmax", false, true, true}, {"argmin", false, true, true},
};

std::string TextOf(const Axis& axis, const Reduction& reduction, DType type) {
  std::string text = axis.text;
  text.replace(text.find("OP"), 2, reduction.name);
  const size_t type_at = text.find(": T[") + 2;
  return text.replace(type_at, 1, std::string(Name(type)));
}

bool Applies(const Axis& axis, const Reduction& reduction, DType type) {
  if (reduction.along_one && std::string(axis.name) == "all") return false;
  return type == DType::kBool ? reduction.of_bools : reduction.of_numbers;
}

Finding CheckReduction(const Axis& axis, const Reduction& reduction, DType type, int accumulators) {
  const auto op = Parse(TextOf(axis, reduction, type));
  if (!op.ok()) return op.status().ToString();
  jit::CompileOptions options;
  options.executor = &jit::InlineExecutor();
  options.schedule.accumulators = accumulators;
  options.schedule.memory_order.columns = 16;
  options.schedule.memory_order.rows = 4;
  options.schedule.parallel_sums.least_steps = 12;
  const auto compiled = CompiledVariants::Compile(Lower(*op), options);
  if (!compiled.ok()) return compiled.status().ToString();
  std::mt19937_64 random(static_cast<uint64_t>(type));
  Counts counts;
  const JitRunOptions runs[] = {{GuardedMemory::Side::kEnd}, {GuardedMemory::Side::kBegin}};
  for (int64_t length : kLengths) {
    const Tensor x = DrawTensor(type, axis.extents(length), random);
    RunInputs inputs;
    inputs.tensors["x"] = x;
    const bool bounded = IsFloat(type) && length <= 33 && accumulators == 4;
    if (Finding finding = compiled->Check(inputs, runs, bounded, counts)) {
      return absl::StrCat("length ", length, ": ", *finding);
    }
  }
  return absl::nullopt;
}

void TestReductions(int accumulators) {
  int uses = 0;
  for (const Axis& axis : kAxes) {
    for (const Reduction& reduction : kReductions) {
      for (DType type : AllTypes()) {
        if (!Applies(axis, reduction, type)) continue;
        ++uses;
        const Finding finding = CheckReduction(axis, reduction, type, accumulators);
        EXPECT_FALSE(finding.has_value()) << reduction.name << " along the " << axis.name
                                          << " axis of " << Name(type) << ": " << *finding;
      }
    }
  }
  EXPECT_GT(uses, 150);
}

TEST(JitReductions, OneAccumulator) { TestReductions(1); }
TEST(JitReductions, TwoAccumulators) { TestReductions(2); }
TEST(JitReductions, FourAccumulators) { TestReductions(4); }
TEST(JitReductions, EightAccumulators) { TestReductions(8); }

// Pieces of a sum, for threads, run in lanes to their ends: all that they read is proven to be in
// range, so that the lanes' partial results stay in registers.
TEST(JitReductions, PiecesRunInLanes) {
  for (const char* reduction : {"sum", "max"}) {
    for (const char* text : {"op f(x: f32[M, N]) -> (y) { y[i] = OP[k](x[i, k]) }",
                             "op f(x: f32[N]) -> (y) { y = OP[k](x[k]) }"}) {
      const Op op = Parse(absl::StrReplaceAll(text, {{"OP", reduction}})).value();
      const auto scheduled = jit::Schedule(Lower(op), {});
      ASSERT_TRUE(scheduled.ok()) << scheduled.status();
      const std::string scheduled_text = loop::ToText(*scheduled);
      EXPECT_TRUE(absl::StrContains(scheduled_text, "_parts"));
      EXPECT_FALSE(absl::StrContains(scheduled_text, "checked")) << scheduled_text;
      EXPECT_FALSE(absl::StrContains(scheduled_text, "vector {")) << scheduled_text;
    }
  }
}

}  // namespace
}  // namespace nestor
