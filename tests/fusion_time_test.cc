// How long fusion takes on programs of the size of ResNet-50, and how that grows with
// their size: processor time, medians of several runs. The bounds are for an optimised
// build. NESTOR_CHART=<file> in the environment writes the growth as an SVG chart
// (docs/fusion_time.svg), which takes longer.
#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "fusion/pipeline.h"
#include "gtest/gtest.h"
#include "nestor.h"
#include "tests/resnet.h"

namespace nestor {
namespace {

struct Timing {
  size_t unfused = 0, fused = 0;  // items at the top
  double milliseconds = 0;        // the least, to which others on the machine add nothing
};

Timing Measure(const std::string& what, const Op& op) {
  constexpr int kRepeats = 9;
  const loop::Program lowered = Lower(op);
  Timing timing{lowered.body.size()};
  std::vector<double> times;
  for (int i = 0; i < kRepeats; ++i) {
    loop::Program program = lowered;
    const std::clock_t start = std::clock();
    EXPECT_EQ(fusion::Pipeline::Default().Run(program), absl::OkStatus());
    times.push_back(1e3 * static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
    timing.fused = program.body.size();
  }
  timing.milliseconds = *std::min_element(times.begin(), times.end());
  std::cout << absl::StrFormat("%s: %d items to %d in %.1f ms\n", what, timing.unfused,
                               timing.fused, timing.milliseconds);
  return timing;
}

std::vector<int> Stages(int bottlenecks) { return std::vector<int>(4, bottlenecks); }

TEST(FusionTime, OfResNet50) {
  EXPECT_LT(Measure("forward", ResNet50()).milliseconds, 100);
  EXPECT_LT(Measure("gradient", ResNetGradient({3, 4, 6, 3})).milliseconds, 400);
}

std::string Series(const std::vector<Timing>& timings, const std::string& color, double scale_x,
                   double scale_y) {
  std::string points, marks;
  for (const Timing& t : timings) {
    const double x = 60 + scale_x * static_cast<double>(t.unfused),
                 y = 330 - scale_y * t.milliseconds;
    absl::StrAppendFormat(&points, "%.1f,%.1f ", x, y);
    absl::StrAppendFormat(&marks, "<circle cx='%.1f' cy='%.1f' r='3' fill='%s'/>\n", x, y, color);
  }
  return absl::StrCat("<polyline fill='none' stroke='", color, "' points='", points, "'/>\n",
                      marks);
}

void WriteChart(const std::string& path, const std::vector<Timing>& forward,
                const std::vector<Timing>& gradient) {
  double blocks = 0, milliseconds = 0;
  for (const auto* timings : {&forward, &gradient}) {
    for (const Timing& t : *timings) {
      blocks = std::max(blocks, static_cast<double>(t.unfused));
      milliseconds = std::max(milliseconds, t.milliseconds);
    }
  }
  const double scale_x = 500 / blocks, scale_y = 300 / milliseconds;
  std::ofstream file(path);
  file
      << "<svg xmlns='http://www.w3.org/2000/svg' width='600' height='380' font-family='sans-serif' font-size='12'>\n"
      << "<rect width='600' height='380' fill='white'/>\n"
      << "<path d='M60,30 V330 H560' fill='none' stroke='black'/>\n"
      << absl::StrFormat(
             "<text x='560' y='350' text-anchor='end'>%.0f blocks before fusion</text>\n", blocks)
      << absl::StrFormat("<text x='66' y='34'>%.0f ms</text>\n", milliseconds)
      << "<text x='80' y='60' fill='steelblue'>forward</text><text x='80' y='78' fill='firebrick'>gradient</text>\n"
      << Series(forward, "steelblue", scale_x, scale_y)
      << Series(gradient, "firebrick", scale_x, scale_y) << "</svg>\n";
  EXPECT_TRUE(file.good()) << path;
}

// From the smallest program to the largest, time grows at most with the square of the size.
void ExpectAtMostQuadratic(const std::vector<Timing>& timings) {
  const double size =
      static_cast<double>(timings.back().unfused) / static_cast<double>(timings.front().unfused);
  EXPECT_LT(timings.back().milliseconds / timings.front().milliseconds, size * size);
}

TEST(FusionTime, GrowsAtMostQuadratically) {
  const char* chart = std::getenv("NESTOR_CHART");
  std::vector<Timing> forward, gradient;
  for (int n = 1; n <= (chart != nullptr ? 16 : 4); n *= 2) {
    forward.push_back(
        Measure(absl::StrCat(4 * n, " bottlenecks, forward"), ResNet(Stages(n), false)));
  }
  for (int n = 1; n <= (chart != nullptr ? 8 : 2); n *= 2) {
    gradient.push_back(
        Measure(absl::StrCat(4 * n, " bottlenecks, gradient"), ResNetGradient(Stages(n))));
  }
  ExpectAtMostQuadratic(forward);
  ExpectAtMostQuadratic(gradient);
  if (chart != nullptr) WriteChart(chart, forward, gradient);
}

}  // namespace
}  // namespace nestor
