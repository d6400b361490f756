// Every row compiles and is judged by its limits, and one that does not compile says why.
#include "bench/compile_rows.h"

#include "gtest/gtest.h"

namespace nestor::bench {
namespace {

TEST(CompileRowsTest, EveryRowCompiles) {
  for (const CompileRow& row : CompileRows()) {
    const std::vector<RowResult> results = MeasureCompiling(row, 1);
    ASSERT_EQ(results.size(), row.most_code_bytes ? 2 : 1);
    EXPECT_EQ(results[0].failure, "") << row.name;
    EXPECT_TRUE(results[0].CostOf(kNestor)) << row.name;
    EXPECT_EQ(Judge(results[0]).allowed, absl::optional<double>(row.most_ms)) << row.name;
    if (row.most_code_bytes) {
      EXPECT_EQ(results[1].unit, "bytes");
    }
  }
}

TEST(CompileRowsTest, WhatDoesNotCompileSaysWhy) {
  const std::vector<RowResult> results = MeasureCompiling({"nothing", {{"op f("}}, 1}, 1);
  EXPECT_NE(results[0].failure, "");
  EXPECT_FALSE(Judge(results[0]).met);
}

TEST(CompileRowsTest, ACallIsMeasured) {
  const RowResult result = MeasureCall(1);
  EXPECT_EQ(result.failure, "");
  EXPECT_GT(result.CostOf(kNestor).value_or(0), 0);
}

}  // namespace
}  // namespace nestor::bench
