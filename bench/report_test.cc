// Lines, CSV and pictures of results that are made up: met, missed, failed and without a goal.
#include "bench/report.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace nestor::bench {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

RowResult Softmax() {
  RowResult result;
  result.row = "softmax f32 4096x1024";
  result.readings = {{"Nestor", 3.214}, {"oneDNN", 8.71}, {"limit", 2.6}};
  result.goal = {TimesPeer("oneDNN", 2.5)};
  result.max_difference = 1e-6;
  return result;
}

// Runs of blanks count as one.
std::string Squeezed(std::string text) {
  text.erase(
      std::unique(text.begin(), text.end(), [](char a, char b) { return a == ' ' && b == ' '; }),
      text.end());
  return text;
}

TEST(ReportTest, TableLine) {
  EXPECT_EQ(Squeezed(TableLine(Softmax())),
            "softmax f32 4096x1024 1 3.214 ms oneDNN 8.71 ms 2.71 2.50 0.81 1e-06 met\n");
  RowResult slow = Softmax();
  slow.readings[0].cost = 5;
  EXPECT_THAT(Squeezed(TableLine(slow)), HasSubstr("1.74 2.50 0.52 1e-06 MISSED"));
}

TEST(ReportTest, TableLineWhereTheLimitCapsTheGoal) {
  RowResult result = Softmax();
  result.readings = {{"Nestor", 4.2}, {"oneDNN", 8.4}, {"limit", 4}};
  EXPECT_THAT(Squeezed(TableLine(result)), HasSubstr("oneDNN 8.4 ms 2.00 2.50* 0.95 1e-06 met"));
}

TEST(ReportTest, TableLineOfAFailure) {
  RowResult result = Softmax();
  result.readings.erase(result.readings.begin());
  result.failure = "Nestor: cannot";
  result.max_difference.reset();
  EXPECT_EQ(Squeezed(TableLine(result)),
            "softmax f32 4096x1024 1 - oneDNN 8.71 ms - 2.50 - - MISSED\n Nestor: cannot\n");
}

TEST(ReportTest, TableLineWithoutAGoal) {
  RowResult result;
  result.row = "call";
  result.unit = "ns";
  result.readings = {{"Nestor", 93}};
  EXPECT_EQ(Squeezed(TableLine(result)), "call 1 93 ns - - - - \n");
}

TEST(ReportTest, Csv) {
  RowResult failed = Softmax();
  failed.row = "a \"row\", quoted";
  failed.threads = 2;
  failed.readings = {{"oneDNN", 8.71}};
  failed.max_difference.reset();
  failed.failure = "Nestor: cannot";
  EXPECT_EQ(Csv({Softmax(), failed}),
            "row,threads,engine,cost,unit,allowed,met,difference,failure\n"
            "softmax f32 4096x1024,1,Nestor,3.214,ms,3.484,yes,1e-06,\n"
            "softmax f32 4096x1024,1,oneDNN,8.71,ms,,,,\n"
            "softmax f32 4096x1024,1,limit,2.6,ms,,,,\n"
            "\"a \"\"row\"\", quoted\",2,Nestor,,ms,8.71,no,,Nestor: cannot\n"
            "\"a \"\"row\"\", quoted\",2,oneDNN,8.71,ms,,,,\n");
}

TEST(ReportTest, Svg) {
  RowResult missed = Softmax(), report_only = Softmax(), failed = Softmax();
  missed.row = "a < b";
  missed.readings[0].cost = 100;
  report_only.goal.clear();
  report_only.row = "no goal";
  failed.readings.clear();
  const std::string svg = Svg({Softmax(), missed, report_only, failed});
  EXPECT_THAT(svg, HasSubstr("softmax f32 4096x1024, 1 thread<"));
  EXPECT_THAT(svg, HasSubstr("#2e7d32"));       // one met
  EXPECT_THAT(svg, HasSubstr(">1.08<"));        // 3.484 / 3.214
  EXPECT_THAT(svg, HasSubstr("a &lt; b"));      // one missed
  EXPECT_THAT(svg, HasSubstr("not measured"));  // one failed
  EXPECT_THAT(svg, Not(HasSubstr("no goal")));
  EXPECT_THAT(svg, HasSubstr("<title>oneDNN: 8.71 ms</title>"));
}

}  // namespace
}  // namespace nestor::bench
