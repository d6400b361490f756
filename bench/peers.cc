// bench:peers: compares Nestor with oneDNN, PyTorch and the limits of this machine, in one process
// and in turns; exits with 1 where a row falls short of its goal.
#include <omp.h>

#include <cstdio>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "bench/compile_rows.h"
#include "bench/machine.h"
#include "bench/openblas_peers.h"
#include "bench/report.h"
#include "bench/rows.h"
#include "bench/scaling_row.h"
#include "bench/torch_peers.h"

ABSL_FLAG(std::string, filter, "", "only rows whose name contains this");
ABSL_FLAG(std::vector<std::string>, threads, std::vector<std::string>({"1", "2"}),
          "numbers of threads to measure with");
ABSL_FLAG(std::string, csv, "", "a file for all readings");
ABSL_FLAG(std::string, svg, "", "a file for a chart");

namespace nestor::bench {
namespace {

constexpr char kUsage[] =
    R"(measures Nestor beside oneDNN, OpenBLAS, PyTorch and the limits of this machine.

A line a row: Nestor's time, the engine that the row's goal refers to and its time,
how many times as fast Nestor was (ratio) and is to be (goal), its part of the
measured limit. No goal goes beyond 0.92 of the limit: a star marks where that, being
easier, is what counts. "differs" is the largest relative difference of the results.

Exit codes: 0 all goals met, 1 one is missed, 2 bad usage.)";

void SetThreads(int threads) {
  omp_set_num_threads(threads);  // oneDNN's
  SetTorchThreads(threads);
  SetOpenBlasThreads(threads);
}

bool Wanted(absl::string_view name) { return absl::StrContains(name, absl::GetFlag(FLAGS_filter)); }

// Prints every result as it comes, since all of them take minutes.
class Report {
 public:
  // Further results, if any, form a new table.
  void BeginTable() { head_ = absl::StrCat("\n", TableHead()); }
  void Add(RowResult result) {
    std::fputs(std::exchange(head_, "").c_str(), stdout);
    std::fputs(TableLine(result).c_str(), stdout);
    std::fflush(stdout);
    results_.push_back(std::move(result));
  }
  const std::vector<RowResult>& results() const { return results_; }

 private:
  std::string head_;
  std::vector<RowResult> results_;
};

void MeasureRows(int threads, Report& report) {
  SetThreads(threads);
  ThreadTeam team(threads);
  std::printf("\n%s", MachineText(team).c_str());
  report.BeginTable();
  for (const Row& row : AllRows()) {
    if (Wanted(row.name)) report.Add(RunRow(row, team));
  }
  if (Wanted(kCallRow)) report.Add(MeasureCall(threads));
}

// Rows of Nestor alone. Compiling uses one thread, for any number of threads that the code runs on.
void MeasureOwnRows(Report& report) {
  report.BeginTable();
  if (Wanted(kScalingRow)) report.Add(MeasureScaling(ScalingSizes()));
  for (const CompileRow& row : CompileRows()) {
    for (RowResult& result : MeasureCompiling(row, /*threads=*/1)) {
      if (Wanted(result.row)) report.Add(std::move(result));
    }
  }
}

bool WriteFile(const std::string& path, const std::string& text) {
  if (path.empty()) return true;
  std::ofstream file(path);
  file << text;
  if (file.flush()) return true;
  std::fprintf(stderr, "peers: cannot write %s\n", path.c_str());
  return false;
}

// Prints the summary; returns the exit code.
int Conclude(const std::vector<RowResult>& results) {
  size_t goals = 0, met = 0, failures = 0;
  for (const RowResult& result : results) {
    const bool good = Judge(result).met;
    failures += !good;
    if (result.goal.empty()) continue;
    ++goals;
    met += good;
  }
  std::printf("\n%zu of %zu goals met\n", met, goals);
  return failures == 0 ? 0 : 1;
}

absl::optional<std::vector<int>> ThreadCounts() {
  std::vector<int> counts;
  for (const std::string& text : absl::GetFlag(FLAGS_threads)) {
    int count;
    if (!absl::SimpleAtoi(text, &count) || count < 1) return absl::nullopt;
    counts.push_back(count);
  }
  return counts;
}

int Main() {
  const absl::optional<std::vector<int>> counts = ThreadCounts();
  if (!counts) {
    std::fprintf(stderr, "peers: --threads takes numbers from 1, as in --threads=1,2\n");
    return 2;
  }
  Report report;
  for (const int threads : *counts) MeasureRows(threads, report);
  MeasureOwnRows(report);
  if (report.results().empty()) {
    std::fprintf(stderr, "peers: no row's name contains '%s'\n",
                 absl::GetFlag(FLAGS_filter).c_str());
    return 2;
  }
  const bool written = WriteFile(absl::GetFlag(FLAGS_csv), Csv(report.results())) &&
                       WriteFile(absl::GetFlag(FLAGS_svg), Svg(report.results()));
  const int code = Conclude(report.results());
  return written ? code : 2;
}

}  // namespace
}  // namespace nestor::bench

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage(nestor::bench::kUsage);
  absl::ParseCommandLine(argc, argv);
  return nestor::bench::Main();
}
