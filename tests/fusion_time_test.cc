// How long fusion takes on programs of the size of ResNet-50, and how that grows. The
// bounds are for an optimised build on an idle core; the medians of five are printed.
#include <algorithm>
#include <iostream>
#include <map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "fusion/pipeline.h"
#include "gtest/gtest.h"
#include "nestor.h"
#include "tests/resnet.h"

namespace nestor {
namespace {

struct Timing {
  size_t unfused, fused;  // blocks
  double milliseconds;    // the median
};

Timing Measure(const Op& op, int repeats = 5) {
  const loop::Program lowered = Lower(op);
  Timing timing{lowered.blocks.size(), 0, 0};
  std::vector<double> times;
  std::map<std::string, double> by_pass;
  for (int i = 0; i < repeats; ++i) {
    loop::Program program = lowered;
    fusion::RunOptions options;
    options.observer = [&](const fusion::PassReport& report, const loop::Program&) {
      by_pass[report.pass.name] += absl::ToDoubleMilliseconds(report.time) / repeats;
    };
    const absl::Time start = absl::Now();
    EXPECT_TRUE(fusion::Pipeline::Default().Run(program, options).ok());
    times.push_back(absl::ToDoubleMilliseconds(absl::Now() - start));
    timing.fused = program.blocks.size();
  }
  std::sort(times.begin(), times.end());
  timing.milliseconds = times[times.size() / 2];
  for (const auto& [name, time] : by_pass) std::cout << "    " << name << ": " << time << " ms\n";
  return timing;
}

void Print(const std::string& what, const Timing& timing) {
  std::cout << what << ": " << timing.unfused << " blocks to " << timing.fused << " in " << timing.milliseconds << " ms\n";
}

TEST(FusionTime, OfResNet50) {
  const Timing forward = Measure(ResNet50());
  Print("forward", forward);
  EXPECT_LT(forward.milliseconds, 100);
  const Timing gradient = Measure(ResNetGradient({3, 4, 6, 3}));
  Print("gradient", gradient);
  EXPECT_LT(gradient.milliseconds, 400);
}

// From a quarter of the size to the whole at most the square of the growth.
TEST(FusionTime, GrowsAtMostQuadratically) {
  std::vector<Timing> timings;
  for (int blocks = 1; blocks <= 4; blocks *= 2) {
    timings.push_back(Measure(ResNet({blocks, blocks, blocks, blocks}, false)));
    Print(absl::StrCat(4 * blocks, " bottlenecks"), timings.back());
  }
  const double size = static_cast<double>(timings.back().unfused) / static_cast<double>(timings.front().unfused);
  EXPECT_LT(timings.back().milliseconds / timings.front().milliseconds, size * size);
}

}  // namespace
}  // namespace nestor
