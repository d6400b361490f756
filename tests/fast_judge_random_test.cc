// The fast judge's bounds lie in the oracle's enclosures, on random programs of all types, of
// floats of one type, on values of every kind, and on gradients.
//
// NESTOR_RANDOM_SEED and NESTOR_RANDOM_COUNT in the environment choose other programs.
#include <iostream>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/types/optional.h"
#include "autodiff/gradient.h"
#include "check/bounds/fast_judge.h"
#include "check/bounds/fast_judge_testing.h"
#include "gtest/gtest.h"
#include "tests/random_programs.h"
#include "uops/notation/module.h"
#include "uops/notation/print.h"

namespace nestor {
namespace {

// The op to test for a drawn op; nullopt for none.
using Derived = absl::optional<Op> (*)(const Op&);

absl::optional<Op> Itself(const Op& op) { return op; }

// The op with other float types: f64 has no bounds.
absl::optional<Op> WithTypes(const Op& op, const char* f64, const char* f32) {
  const absl::StatusOr<Op> parsed =
      ParseOp(absl::StrReplaceAll(PrintOp(op), {{"f64", f64}, {"f32", f32}}));
  if (!parsed.ok()) return absl::nullopt;
  return *parsed;
}

absl::optional<Op> InF32(const Op& op) { return WithTypes(op, "f32", "f32"); }
absl::optional<Op> In16Bits(const Op& op) { return WithTypes(op, "f16", "bf16"); }

absl::optional<Op> GradientOf(const Op& op) {
  const auto gradient = Gradient(op);
  if (!gradient.ok()) return absl::nullopt;
  return gradient->op;
}

absl::optional<Op> GradientInF32(const Op& op) {
  const absl::optional<Op> gradient = GradientOf(op);
  return gradient ? InF32(*gradient) : absl::nullopt;
}

Finding BoundsFinding(const Op& op, uint64_t seed, const InputOptions& options, Counts& counts,
                      BoundCounts& bounds) {
  ++counts.programs;
  absl::StatusOr<FastJudge> judge = FastJudge::Create(op);
  if (absl::IsUnimplemented(judge.status())) return absl::nullopt;
  if (!judge.ok()) return judge.status().ToString();
  for (uint64_t draw = 0; draw < 4; ++draw) {
    const RandomInputsResult made = RandomInputs(op, 4 * seed + draw, options);
    const std::string violation = BoundsViolation(op, made.inputs, *judge, bounds);
    if (!violation.empty())
      return absl::StrCat(violation, "\n", PrintOp(op), "\n", InputsText(made.inputs));
  }
  return absl::nullopt;
}

void TestBounds(absl::string_view what, int64_t count, const GeneratorOptions& base,
                Derived derived) {
  BoundCounts bounds;
  InputOptions inputs;
  inputs.moderate = base.smooth;
  TestPrograms(what, count, base, [&](const Op& op, uint64_t seed, Counts& counts) -> Finding {
    const absl::optional<Op> tested = derived(op);
    return tested ? BoundsFinding(*tested, seed, inputs, counts, bounds) : absl::nullopt;
  });
  std::cerr << what << ": " << bounds << "\n";
  EXPECT_GT(bounds.known, bounds.elements / 2);
}

TEST(FastJudgeRandom, Programs) {
  GeneratorOptions options;
  options.nodes = 12;
  TestBounds("programs", 300, options, Itself);
}

TEST(FastJudgeRandom, FloatPrograms) {
  GeneratorOptions options;
  options.nodes = 10;
  options.floats_only = true;
  TestBounds("in f32", 300, options, InF32);
  TestBounds("in 16 bits", 150, options, In16Bits);
}

// Values of size 1, where sets are narrow and most sums are inexact.
TEST(FastJudgeRandom, SmoothPrograms) {
  GeneratorOptions options;
  options.nodes = 10;
  options.smooth = true;
  TestBounds("smooth, in f32", 300, options, InF32);
  TestBounds("smooth, in 16 bits", 150, options, In16Bits);
}

TEST(FastJudgeRandom, Gradients) {
  GeneratorOptions options;
  options.nodes = 6;
  options.floats_only = true;
  TestBounds("gradients", 100, options, GradientOf);
  TestBounds("gradients, in f32", 100, options, GradientInF32);
  options.smooth = true;
  TestBounds("smooth gradients, in f32", 100, options, GradientInF32);
}

}  // namespace
}  // namespace nestor
