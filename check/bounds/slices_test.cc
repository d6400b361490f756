// The results of an op on slices of its arguments are the slices of its whole results, with the
// same bits and enclosures: for every macro op, its gradient and random programs.
#include "check/bounds/slices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "autodiff/gradient.h"
#include "check/engines/program_generator.h"
#include "interp/interpreter.h"
#include "interp/reference.h"
#include "loop_ir/lower.h"
#include "macro_ops/library.h"
#include "uops/notation/print.h"

namespace nestor {
namespace {

using ::testing::UnorderedElementsAre;

// The last index of each dimension, followed by the first one.
Slices Some(const std::vector<std::string>& names, const Binding& binding) {
  Slices slices;
  for (const std::string& name : names) {
    std::vector<int64_t>& indices = slices[name];
    const int64_t extent = binding.symbols.at(name);
    if (extent > 0) indices.push_back(extent - 1);
    if (extent > 2) indices.push_back(0);
  }
  return slices;
}

// The row-major number, in the whole tensor, of the p-th element of a slice.
int64_t NumberInWhole(int64_t p, const Dims& whole,
                      const std::vector<const std::vector<int64_t>*>& axes) {
  Dims shape = whole;
  for (size_t axis = 0; axis < axes.size(); ++axis) {
    if (axes[axis] != nullptr) shape[axis] = static_cast<int64_t>(axes[axis]->size());
  }
  int64_t number = 0, below = 1;
  for (size_t axis = shape.size(); axis-- > 0; below *= whole[axis], p /= shape[axis]) {
    const int64_t index = p % shape[axis];
    number += below * (axes[axis] == nullptr ? index : (*axes[axis])[static_cast<size_t>(index)]);
  }
  return number;
}

bool SameEnclosure(const Enclosure& a, const Enclosure& b) {
  const bool same_finite =
      (!a.HasFinite() && !b.HasFinite()) || (a.low == b.low && a.high == b.high);
  return same_finite && a.nan == b.nan && a.plus_infinity == b.plus_infinity &&
         a.minus_infinity == b.minus_infinity;
}

// Returns how many elements were compared.
int Compare(const Op& op, const RunInputs& inputs, absl::string_view what) {
  const std::vector<std::string> names = SeparableDimensions(op);
  const auto binding = Bind(SignatureOf(op), inputs);
  const auto whole = InterpretReference(Lower(op), inputs);
  if (names.empty() || !binding.ok() || !whole.ok()) return 0;
  const Slices slices = Some(names, *binding);
  const SlicedInputs sliced = SliceInputs(op, inputs, slices);
  const auto part = InterpretReference(Lower(op), sliced.inputs);
  EXPECT_TRUE(part.ok()) << what << ": " << part.status() << "\n"
                         << absl::StrJoin(names, ", ") << PrintOp(op);
  int compared = 0;
  for (size_t r = 0; part.ok() && r < op.results.size(); ++r) {
    const auto axes = SlicedAxes(op, op.graph.shape(op.results[r].node), slices);
    for (size_t p = 0; p < (*part)[r].elements.size(); ++p, ++compared) {
      const int64_t number = NumberInWhole(static_cast<int64_t>(p), (*whole)[r].shape, axes);
      EXPECT_TRUE(
          SameEnclosure((*whole)[r].elements[static_cast<size_t>(number)], (*part)[r].elements[p]))
          << what << " element " << number << "\n"
          << absl::StrJoin(names, ", ") << PrintOp(op);
      if (testing::Test::HasFailure()) return compared;
    }
  }
  return compared;
}

TEST(Slices, OfRandomProgramsAndTheirGradients) {
  int compared = 0;
  for (uint64_t seed = 1; seed <= 1500 && !HasFailure(); ++seed) {
    GeneratorOptions options;
    options.floats_only = seed % 3 == 0;
    InputOptions few;
    few.max_elements = 300;
    const Op op = RandomOp(seed, options);
    const RandomInputsResult inputs = RandomInputs(op, seed, few);
    compared += Compare(op, inputs.inputs, absl::StrCat("program ", seed)) > 0;
    const auto gradient = options.floats_only ? Gradient(op) : absl::UnimplementedError("");
    if (!gradient.ok()) continue;
    const RandomInputsResult drawn = RandomInputs(gradient->op, seed, few);
    compared += Compare(gradient->op, drawn.inputs, absl::StrCat("gradient of ", seed)) > 0;
  }
  std::cout << compared << " programs compared\n";
  EXPECT_GT(compared, 50);
}

TEST(Slices, OfMacroOpsAndTheirGradients) {
  int compared = 0;
  for (const std::string& name : MacroLibrary().OpNames()) {
    const Op op = *MacroLibrary().Instantiate(name, {});
    const auto gradient = Gradient(op);
    for (uint64_t seed = 1; seed <= 6; ++seed) {
      InputOptions few;
      few.max_elements = 400;
      const RandomInputsResult inputs = RandomInputs(op, seed, few);
      compared += Compare(op, inputs.inputs, name) > 0;
      if (!gradient.ok()) continue;
      const RandomInputsResult drawn = RandomInputs(gradient->op, seed, few);
      compared += Compare(gradient->op, drawn.inputs, absl::StrCat("gradient of ", name)) > 0;
    }
  }
  std::cout << compared << " compared\n";
  EXPECT_GT(compared, 60);
}

std::vector<std::string> Separable(absl::string_view text) {
  return SeparableDimensions(*ParseOp(text));
}

TEST(Slices, AreOfDimensionsThatNothingElseDependsOn) {
  EXPECT_THAT(
      Separable("op f(a: f32[M, K], b: f32[K, N]) -> (c) { c[i, j] = sum[k](a[i, k]*b[k, j]) }"),
      UnorderedElementsAre("M", "N"));
  EXPECT_THAT(Separable("op f(x: f32[N, C]) -> (y) { y[i, j] = x[i, j] - max[k](x[i, k]) }"),
              UnorderedElementsAre("N"));
  EXPECT_THAT(Separable("op f(x: f32[M, N]) -> (y) { y[j, i] = x[i, j] }"),
              UnorderedElementsAre("M", "N"));
  EXPECT_THAT(Separable("op f(x: f32[V, D], i: i64[N]) -> (y) { y[n, d] = x[i[n], d] }"),
              UnorderedElementsAre("N", "D"));
  // The index itself, a neighbour, one element for all, the extent.
  for (const char* value :
       {"x[i] * f32(i)", "x[i + 1]", "x[0] + x[i]", "x[i] * f32(N)", "x[N - 1 - i]"}) {
    EXPECT_THAT(
        Separable(absl::StrCat("op f(x: f32[N]) -> (y) { y[i] = ", value, " where i < N }")),
        UnorderedElementsAre())
        << value;
  }
  EXPECT_THAT(Separable("op f(x: f32[N, N]) -> (y) { y[i, j] = x[i, j] * f32(i < j) }"),
              UnorderedElementsAre());
  // The place that a scatter stores to.
  EXPECT_THAT(
      Separable(
          "op f(x: f32[N], a: f32[M]) -> (y, b) { y[min(i, M)]: f32[4] += x[i]; b[j] = a[j] }"),
      UnorderedElementsAre());
}

}  // namespace
}  // namespace nestor
