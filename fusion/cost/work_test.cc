// Counts of primitives in small programs, and that a body counts by what it is made of.
#include "fusion/cost/work.h"

#include "fusion/pass_testing.h"
#include "gtest/gtest.h"

namespace nestor::loop {
namespace {

TEST(WorkTest, CountsPrimitivesOfTheHeaviestStatement) {
  const auto most = [](const char* statements) {
    return MostOperations(
        ParseVerified({"program p(x: f32[N]) -> (y: f32[N]) {\n", "\n}\n"}, statements));
  };
  EXPECT_EQ(most("for i in [0, N) { y[i] = x[i] }"), 0);
  EXPECT_EQ(most("for i in [0, N) { y[i] = x[i] * 2.0 + 1.0 }"), 2);
  EXPECT_EQ(most("for i in [0, N) { y[i] = 0.0 } for j in [0, N) { y[j] += x[j] * 2.0 }"), 2);
  const int exp = most("for i in [0, N) { y[i] = exp(x[i]) }");
  EXPECT_GE(exp, 15);
  EXPECT_EQ(most("for i in [0, N) { y[i] = 0.0 } for j in [0, N) { y[j] += exp(x[j] * 2.0) }"),
            exp + 2);
  // Composed of composed ones.
  EXPECT_GT(most("for i in [0, N) { y[i] = gelu(x[i]) }"),
            most("for i in [0, N) { y[i] = erf(x[i]) }"));
}

}  // namespace
}  // namespace nestor::loop
