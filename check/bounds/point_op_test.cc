// Every element of every macro op, its gradient and of random programs, computed as a point
// or in a group, has the same bits and enclosure as in the whole result.
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
#include "uops/notation/print.h"

namespace nestor {
namespace {

loop::Program Stripped(const Op& op) {
  loop::Program program = Lower(op);
  EXPECT_TRUE(loop::EliminateDeadCode(program).ok());
  return program;
}

bool SameEnclosure(const Enclosure& a, const Enclosure& b) {
  const bool same_finite =
      (!a.HasFinite() && !b.HasFinite()) || (a.low == b.low && a.high == b.high);
  return same_finite && a.nan == b.nan && a.plus_infinity == b.plus_infinity &&
         a.minus_infinity == b.minus_infinity;
}

struct Counts {
  int compared = 0, refused = 0, elements = 0;
};

// All elements in one group.
PointGroups Reversed(const Dims& shape) {
  PointGroups groups{1, shape, {}};
  for (int64_t extent : shape) {
    groups.indices.emplace_back(static_cast<size_t>(extent));
    std::iota(groups.indices.back().rbegin(), groups.indices.back().rend(), 0);
  }
  return groups;
}

// Some elements more than once: by axis 2, 3, 4 .. indices in each of 3 groups.
PointGroups Scattered(const Dims& shape) {
  PointGroups groups{3, {}, {}};
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    groups.along.push_back(shape[axis] == 0 ? 0 : static_cast<int64_t>(axis) + 2);
    groups.indices.emplace_back();
    for (int64_t i = 0; i < 3 * groups.along[axis]; ++i)
      groups.indices[axis].push_back(5 * i % shape[axis]);
  }
  return groups;
}

struct Whole {
  const std::vector<ReferenceTensor>& enclosures;
  const std::vector<Tensor>& bits;
};

Scalar ElementOf(const Tensor& tensor, int64_t i) {
  return Load(tensor.type(), static_cast<const char*>(tensor.data()) + i * ByteSize(tensor.type()));
}

void CompareAt(const PointOp& points, const std::vector<PointGroups>& groups,
               const RunInputs& inputs, const Whole& whole, absl::string_view what,
               Counts& counts) {
  const PointInputs given = AddPoints(points, inputs, groups);
  const loop::Program program = Stripped(points.op);
  const auto enclosures = InterpretReference(program, given.inputs);
  const auto bits = Interpret(program, given.inputs);
  ASSERT_TRUE(enclosures.ok() && bits.ok()) << what << ": " << enclosures.status() << "\n"
                                            << PrintOp(points.op);
  for (size_t r = 0; r < groups.size(); ++r) {
    const std::vector<int64_t> numbers = NumbersOf(groups[r], whole.bits[r].shape());
    ASSERT_EQ((*enclosures)[r].elements.size(), numbers.size()) << what;
    for (size_t p = 0; p < numbers.size(); ++p) {
      ++counts.elements;
      const Enclosure& want = whole.enclosures[r].elements[static_cast<size_t>(numbers[p])];
      ASSERT_TRUE(SameEnclosure(want, (*enclosures)[r].elements[p]))
          << what << " element " << numbers[p] << ": " << ToString(want) << " against "
          << ToString((*enclosures)[r].elements[p]) << "\n"
          << PrintOp(points.op);
      ASSERT_EQ(ElementOf(whole.bits[r], numbers[p]),
                ElementOf((*bits)[r], static_cast<int64_t>(p)))
          << what << " element " << numbers[p];
    }
  }
}

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
  std::vector<std::vector<PointGroups>> ways(3);
  for (const ReferenceTensor& result : *whole) {
    std::vector<int64_t> elements(result.elements.size());
    std::iota(elements.rbegin(), elements.rend(), 0);
    ways[0].push_back(GroupsOfOne(result.shape, elements));
    ways[1].push_back(Reversed(result.shape));
    ways[2].push_back(Scattered(result.shape));
  }
  const auto whole_bits = Interpret(Stripped(op), inputs);
  ASSERT_TRUE(whole_bits.ok());
  ++counts.compared;
  for (const auto& groups : ways)
    CompareAt(*made, groups, inputs, {*whole, *whole_bits}, what, counts);
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
  std::cout << counts.compared << " compared, " << counts.refused << " refused, " << counts.elements
            << " elements\n";
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
  std::cout << counts.compared << " compared, " << counts.refused << " refused, " << counts.elements
            << " elements\n";
  EXPECT_GT(counts.compared, 60);
}

}  // namespace
}  // namespace nestor
