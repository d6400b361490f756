// Every drawn size is allowed, and useful sizes are drawn often.
#include "check/sizes.h"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "macro_ops/library.h"
#include "tensor/binding.h"
#include "uops/notation/module.h"

namespace nestor {
namespace {

SizeSolver SolverOf(const Op& op, const std::vector<std::string>& conditions) {
  absl::StatusOr<SizeSolver> solver = SizeSolver::Create(op, conditions);
  EXPECT_TRUE(solver.ok()) << solver.status();
  return *std::move(solver);
}

// Counts the draws, and checks each as a run would.
int DrawMany(const Op& op, const std::vector<std::string>& conditions,
             const std::function<void(const SymbolValues&)>& look) {
  const SizeSolver solver = SolverOf(op, conditions);
  const SizeLimits limits;
  int drawn = 0;
  for (uint64_t seed = 0; seed < 500; ++seed) {
    Random random(seed);
    const absl::optional<SymbolValues> sizes = solver.Draw(random, limits);
    if (!sizes) continue;
    ++drawn;
    EXPECT_TRUE(solver.Allows(*sizes));
    EXPECT_LE(solver.Elements(*sizes), limits.max_elements);
    EXPECT_LE(solver.Work(*sizes), limits.max_work);
    Binding binding;
    for (const auto& [name, value] : *sizes) binding.symbols[name] = value;
    for (const Argument& arg : op.args)
      EXPECT_TRUE(EvaluateShape(op.graph.pool(), arg.shape, binding, "").ok());
    look(*sizes);
  }
  return drawn;
}

TEST(Sizes, OfEveryMacroOp) {
  for (const std::string& name : MacroLibrary().OpNames()) {
    const Op op = *MacroLibrary().Instantiate(name, {});
    std::set<SymbolValues::value_type::second_type> values;
    EXPECT_GE(DrawMany(op, {},
                       [&](const SymbolValues& sizes) {
                         for (const auto& [symbol, value] : sizes) values.insert(value);
                       }),
              480)
        << name;
    EXPECT_GE(values.size(), 25u) << name;
    EXPECT_TRUE(values.count(0) && values.count(1)) << name;
  }
}

TEST(Sizes, MeetEqualitiesAndConditions) {
  const Op conv = *MacroLibrary().Instantiate("conv2d", {});
  std::set<int64_t> groups, strides;
  const auto look = [&](const SymbolValues& s) {
    groups.insert(s.at("$groups"));
    strides.insert(s.at("$stride"));
    EXPECT_EQ(s.at("O") % s.at("$groups"), 0);
    EXPECT_LE(s.at("$pad"), s.at("R") / 2);
    EXPECT_GE(s.at("H") + 2 * s.at("$pad"), s.at("R"));
    EXPECT_EQ(s.at("C") % 8, 0);
  };
  EXPECT_GE(DrawMany(conv,
                     {"O % $groups == 0", "$pad <= R/2", "H + 2*$pad >= R && W + 2*$pad >= S",
                      "C % 8 == 0"},
                     look),
            450);
  EXPECT_GE(groups.size(), 3u);
  EXPECT_GE(strides.size(), 3u);
  const Op tied = *ParseOp("op f(x: f32[N], y: f32[2*M + 1]) -> (z) { z[i] = x[i] + y[i] }");
  EXPECT_GE(
      DrawMany(tied, {}, [](const SymbolValues& s) { EXPECT_EQ(s.at("N"), 2 * s.at("M") + 1); }),
      450);
}

TEST(Sizes, EdgesAreFrequent) {
  const Op op = *ParseOp("op f(x: f32[N]) -> (y) { y[i] = x[i] }");
  int zero = 0, one = 0, beside_vectors = 0;
  DrawMany(op, {}, [&](const SymbolValues& s) {
    const int64_t n = s.at("N");
    zero += n == 0;
    one += n == 1;
    beside_vectors += n > 8 && (n % 8 == 1 || n % 8 == 7);
  });
  EXPECT_GE(zero, 5);
  EXPECT_GE(one, 20);
  EXPECT_GE(beside_vectors, 50);
}

// Loops over whole pages, and over the elements after them.
TEST(Sizes, OneAxisIsLongOften) {
  const Op op = *MacroLibrary().Instantiate("layer_norm", {});
  int rows = 0, long_rows = 0, beyond_pages = 0;
  DrawMany(op, {}, [&](const SymbolValues& s) {
    if (s.at("N0") == 0) return;
    rows += s.at("N0") > 300;
    long_rows += s.at("C") > 300;
    beyond_pages += s.at("C") > 1023;
  });
  EXPECT_GE(rows, 10);
  EXPECT_GE(long_rows, 10);
  EXPECT_GE(beyond_pages, 1);
}

// A window larger than the axis it slides over shows nothing.
TEST(Sizes, WindowsMostlyFit) {
  const Op op = *MacroLibrary().Instantiate("depthwise_conv2d", {});
  int vain = 0, all = 0;
  DrawMany(op, {}, [&](const SymbolValues& s) {
    ++all;
    const auto fits = [&](const char* extent, const char* window) {
      return s.at(extent) + 2 * s.at("$pad") > s.at("$dilation") * (s.at(window) - 1);
    };
    vain += s.at("H") > 0 && s.at("W") > 0 && !(fits("H", "R") && fits("W", "S"));
  });
  EXPECT_LE(5 * vain, 2 * all);
  EXPECT_GE(vain, 5);
}

}  // namespace
}  // namespace nestor
