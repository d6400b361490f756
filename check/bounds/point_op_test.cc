// Every element of every macro op, its gradient and of random programs, computed as a point,
// has the bits and the enclosure that it has in the whole.
#include "check/bounds/point_op.h"

#include <numeric>

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "autodiff/gradient.h"
#include "check/engines/program_generator.h"
#include "fusion/dead_code.h"
#include "interp/interpreter.h"
#include "interp/reference.h"
#include "loop_ir/lower.h"
#include "macro_ops/library.h"
#include "uops/print.h"

namespace nestor {
namespace {

loop::Program Stripped(const Op& op) {
  loop::Program program = Lower(op);
  EXPECT_TRUE(fusion::EliminateDeadCode(program).ok());
  return program;
}

bool SameEnclosure(const Enclosure& a, const Enclosure& b) {
  const bool same_finite = (!a.HasFinite() && !b.HasFinite()) || (a.low == b.low && a.high == b.high);
  return same_finite && a.nan == b.nan && a.plus_infinity == b.plus_infinity && a.minus_infinity == b.minus_infinity;
}

struct Counts {
  int compared = 0, refused = 0, elements = 0;
};

void Compare(const Op& op, const RunInputs& inputs, absl::string_view what, Counts& counts) {
  const auto whole = InterpretReference(Stripped(op), inputs);
  if (!whole.ok()) {
    ++counts.refused;
    return;
  }
  const absl::StatusOr<PointOp> made = MakePointOp(op);
  if (!made.ok()) {
    EXPECT_TRUE(absl::IsUnimplemented(made.status())) << made.status();
    ++counts.refused;
    return;
  }
  const PointOp& points = *made;
  std::vector<Dims> shapes;
  std::vector<std::vector<int64_t>> elements;
  for (const ReferenceTensor& result : *whole) {
    shapes.push_back(result.shape);
    elements.emplace_back(result.elements.size());
    std::iota(elements.back().begin(), elements.back().end(), 0);
    std::reverse(elements.back().begin(), elements.back().end());
  }
  const PointInputs given = AddPoints(points, inputs, shapes, elements);
  const loop::Program program = Stripped(points.op);
  const auto at_points = InterpretReference(program, given.inputs);
  ASSERT_TRUE(at_points.ok()) << what << ": " << at_points.status() << "\n" << PrintOp(op) << PrintOp(points.op);
  const auto whole_bits = Interpret(Stripped(op), inputs), point_bits = Interpret(program, given.inputs);
  ASSERT_TRUE(whole_bits.ok() && point_bits.ok()) << what << point_bits.status();
  ++counts.compared;
  for (size_t r = 0; r < whole->size(); ++r) {
    const DType type = (*whole)[r].type;
    for (size_t p = 0; p < elements[r].size(); ++p) {
      ++counts.elements;
      const int64_t i = elements[r][p];
      ASSERT_TRUE(SameEnclosure((*whole)[r].elements[static_cast<size_t>(i)], (*at_points)[r].elements[p]))
          << what << " element " << i << ": " << ToString((*whole)[r].elements[static_cast<size_t>(i)]) << " against "
          << ToString((*at_points)[r].elements[p]) << "\n" << PrintOp(op) << PrintOp(points.op);
      const auto at = [&](const Tensor& t, int64_t k) {
        return Load(type, static_cast<const char*>(t.data()) + k * ByteSize(type));
      };
      ASSERT_EQ(at((*whole_bits)[r], i), at((*point_bits)[r], static_cast<int64_t>(p))) << what << " element " << i;
    }
  }
}

TEST(PointOp, RandomProgramsAndTheirGradients) {
  const char* const count = std::getenv("NESTOR_RANDOM_COUNT");
  const uint64_t programs = count != nullptr ? std::strtoull(count, nullptr, 10) : 400;
  Counts counts;
  for (uint64_t seed = 1; seed <= programs && !testing::Test::HasFailure(); ++seed) {
    GeneratorOptions options;
    options.floats_only = seed % 3 == 0;
    InputOptions few;
    few.max_elements = 300;
    const Op op = RandomOp(seed, options);
    const RandomInputsResult inputs = RandomInputs(op, seed, few);
    Compare(op, inputs.inputs, absl::StrCat("program ", seed), counts);
    if (!options.floats_only) continue;
    const auto gradient = Gradient(op);
    if (!gradient.ok()) continue;
    const RandomInputsResult drawn = RandomInputs(gradient->op, seed, few);
    Compare(gradient->op, drawn.inputs, absl::StrCat("gradient of ", seed), counts);
  }
  std::cout << counts.compared << " compared, " << counts.refused << " refused, " << counts.elements << " elements\n";
  EXPECT_GT(counts.compared, static_cast<int>(programs / 2));
}

TEST(PointOp, MacroOpsAndTheirGradients) {
  Counts counts;
  for (const std::string& name : MacroLibrary().OpNames()) {
    const Op op = *MacroLibrary().Instantiate(name, {});
    const auto gradient = Gradient(op);
    for (uint64_t seed = 1; seed <= 6; ++seed) {
      InputOptions few;
      few.max_elements = 400;
      const RandomInputsResult inputs = RandomInputs(op, seed, few);
      Compare(op, inputs.inputs, name, counts);
      if (!gradient.ok()) continue;
      const RandomInputsResult drawn = RandomInputs(gradient->op, seed, few);
      Compare(gradient->op, drawn.inputs, absl::StrCat("gradient of ", name), counts);
    }
  }
  std::cout << counts.compared << " compared, " << counts.refused << " refused, " << counts.elements << " elements\n";
  EXPECT_GT(counts.compared, 60);
}

}  // namespace
}  // namespace nestor
