// Programs get as small as the property leaves them.
#include "check/engines/shrink_program.h"

#include "gtest/gtest.h"
#include "uops/graph.h"
#include "uops/notation/module.h"
#include "uops/notation/print.h"

namespace nestor {
namespace {

template <class Kind>
bool Holds(const Op& op, absl::FunctionRef<bool(const Kind&)> wanted) {
  const std::vector<bool> live = Reachable(op.graph, op.ResultNodes());
  for (int i = 0; i < op.graph.size(); ++i) {
    const Kind* node = op.graph.As<Kind>(NodeId{i});
    if (live[static_cast<size_t>(i)] && node != nullptr && wanted(*node)) return true;
  }
  return false;
}

bool HasProduct(const Op& op) {
  return Holds<Reduce>(op, [](const Reduce& reduce) { return reduce.op == ReduceOp::kProd; });
}
bool HasExp(const Op& op) {
  return Holds<Map>(op, [](const Map& map) { return map.op == ScalarOp::kExp; });
}
bool HasScatter(const Op& op) {
  return Holds<Scatter>(op, [](const Scatter&) { return true; });
}
bool HasCondition(const Op& op) {
  return Holds<Reindex>(op, [](const Reindex& reindex) { return !reindex.conditions.empty(); });
}

constexpr char kProgram[] =
    R"(op f(x: bf16[M, N], ids: i32[M], z: bf16[]; $k = 3 in [0, 4], $a: bf16 = 0.5) -> (y, s, t) {
  p[i] = prod[j](exp(x[i, j]) * (x[i, j + 2 | 1.0] - $a))
  y[i, j] = where(p[i] < z, p[i], x[i, j if j <= i]) + 2.0
  s[ids[i] + $k, j]: bf16[17, N] += y[i, j] * p[i]
  t = sum[i](p[i]) / 3.0
}
)";

struct Case {
  const char* name;
  bool (*fails)(const Op&);
  const char* smallest;
};

TEST(ShrinkProgram, EndsWithTheLeastThatFails) {
  const Case kCases[] = {
      {"product", HasProduct, "op f(x: f32[M, N]) -> (t0) { t0[i] = prod[j](x[i, j]) }"},
      {"exp", HasExp, "op f(x: f32[M, N]) -> (t0) { t0[i] = prod[j](exp(x[i, j])) }"},
      {"scatter", HasScatter, "op f() -> (s) { s: f32[] += 1.0 }"},
      {"condition", HasCondition, "op f(x: f32[M, N]) -> (y) { y[i, j] = x[i, j if j <= i] }"},
  };
  const std::string text = PrintOp(ParseOp(kProgram).value());
  for (const Case& c : kCases) {
    const std::string shrunk = ShrinkProgram(text, c.fails);
    const auto op = ParseOp(shrunk);
    ASSERT_TRUE(op.ok()) << c.name << ": " << op.status() << "\n" << shrunk;
    EXPECT_TRUE(c.fails(*op)) << c.name << ": " << shrunk;
    EXPECT_LE(PrintOp(*op).size(), PrintOp(ParseOp(c.smallest).value()).size())
        << c.name << ": " << shrunk;
  }
}

TEST(ShrinkProgram, LeavesWhatCannotGo) {
  const std::string text = PrintOp(ParseOp(kProgram).value());
  const std::string shrunk = ShrinkProgram(text, [](const Op&) { return false; });
  EXPECT_TRUE(SameOp(ParseOp(shrunk).value(), ParseOp(text).value()));
}

TEST(ShrinkSizes, TakesEachDown) {
  const Sizes sizes = {{"M", 70}, {"N", 3}, {"K", 17}};
  const Sizes shrunk = ShrinkSizes(sizes, [](const Sizes& s) {
                         return s.at("M") >= 9 && s.at("K") + s.at("N") >= 3;
                       }).value();
  EXPECT_EQ(shrunk.at("M"), 9);
  EXPECT_EQ(shrunk.at("K") + shrunk.at("N"), 3);
}

TEST(ShrinkSizes, HasNoneWhereNothingFails) {
  EXPECT_EQ(ShrinkSizes({{"M", 1}}, [](const Sizes&) { return false; }), absl::nullopt);
}

}  // namespace
}  // namespace nestor
