// The numbers that steer the passes of a schedule, and a table of those that a search may change.
#ifndef NESTOR_JIT_SCHEDULE_OPTIONS_H_
#define NESTOR_JIT_SCHEDULE_OPTIONS_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "jit/schedule/contraction_tiles.h"
#include "jit/schedule/memory_order.h"
#include "jit/schedule/parallel_sums.h"
#include "jit/schedule/strips.h"

namespace nestor::jit {

// The defaults are good on all machines.
// Each is described beside the pass that reads it (jit/schedule/*.h).
struct ScheduleOptions {
  // How many vectors of partial results a sum has, rounded down to a power of two.
  int64_t accumulators = 4;
  loop::MemoryOrderOptions memory_order;
  loop::ContractionTileOptions contractions;  // but for `isa`, `bound` and `version`
  loop::StripOptions strips;                  // but for `version`
  loop::ParallelSumsOptions parallel_sums;    // but for `reorders_rounding`
};

// One of these numbers, as a search and files of schedules know it.
struct ScheduleChoice {
  absl::string_view name;
  std::vector<int64_t> values;  // that a search tries beside the default
  int64_t least, most;          // that are legal
  void (*set)(ScheduleOptions& options, int64_t value);
};
// In the order in which a search takes them.
absl::Span<const ScheduleChoice> ScheduleChoices();

// Values by name, in no order; numbers that are not named keep their values.
using ChosenValues = std::vector<std::pair<std::string, int64_t>>;
// InvalidArgument if no choice has the name, or its value is not legal; the options are
// then unchanged.
absl::Status Choose(const ChosenValues& values, ScheduleOptions& options);

}  // namespace nestor::jit

#endif  // NESTOR_JIT_SCHEDULE_OPTIONS_H_
