// The results for a reader, for a spreadsheet and for a page.
#ifndef NESTOR_BENCH_REPORT_H_
#define NESTOR_BENCH_REPORT_H_

#include <string>

#include "absl/types/span.h"
#include "bench/goal.h"

namespace nestor::bench {

// A table that can be printed while it grows: its head, and a line (or two, where
// there is a failure to name) for each result.
std::string TableHead();
std::string TableLine(const RowResult& result);

// One line for each reading, with a heading; fields are quoted where they must be
// (RFC 4180).
std::string Csv(absl::Span<const RowResult> results);

// A bar for each result that has a goal: Nestor's speed in parts of the speed that
// the goal asks for, with a tick for each other engine.
std::string Svg(absl::Span<const RowResult> results);

}  // namespace nestor::bench

#endif  // NESTOR_BENCH_REPORT_H_
