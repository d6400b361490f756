// The way of a program from text to results, a stage at a time, so that each can be timed or
// its work counted.
#ifndef NESTOR_BENCH_GROWTH_STAGES_H_
#define NESTOR_BENCH_GROWTH_STAGES_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace nestor::bench {

struct GrowthStage {
  std::string name;
  // Works on the output of the stage before it. Call once.
  std::function<absl::Status()> run;
};

struct GrowthOptions {
  std::vector<std::string> without;  // passes of fusion or schedule that are left out, by name
};

// parse, lower, fusion, schedule, codegen, run (all dimensions are 8), asm (the listing of
// the code).
std::vector<GrowthStage> StagesToResults(const std::string& text,
                                         const GrowthOptions& options = {});
// parse, gradient.
std::vector<GrowthStage> StagesToGradient(const std::string& text);

}  // namespace nestor::bench

#endif  // NESTOR_BENCH_GROWTH_STAGES_H_
