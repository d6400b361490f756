// bench:growth: the cost of compiling, in seconds and memory, as programs grow.
//
// Each program has a process of its own: peak memory is then the program's, and a cap on
// time or memory ends it without ending the table. The process writes a line for each completed
// stage; the first missing one is the stage in which it died.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "bench/growth_programs.h"
#include "bench/growth_stages.h"
#include "nestor.h"

ABSL_FLAG(std::vector<std::string>, kinds, std::vector<std::string>(),
          "kinds of programs; empty: all");
ABSL_FLAG(std::vector<std::string>, sizes,
          std::vector<std::string>({"300", "1000", "3000", "10000"}), "numbers of statements");
ABSL_FLAG(std::vector<std::string>, without, std::vector<std::string>(),
          "passes that are left out, by name");
ABSL_FLAG(bool, peaks, false,
          "the most megabytes until the end of each stage instead of its seconds");
ABSL_FLAG(int, seconds, 60, "processor time that one program may take");
ABSL_FLAG(int, megabytes, 4000, "address space that one program may take");

namespace nestor::bench {
namespace {

constexpr char kUsage[] = R"(prints what compiling costs as programs grow.

A line a program: the seconds of processor time of each stage, their sum from the text to
the first results ("total"), and the most megabytes that were in use; then the seconds of
the listing of the code, which the total leaves out, and those of the gradient with its
megabytes. "> 60" stands where the cap ended the program. After the lines of a kind come
the exponents that fit its totals and its megabytes: cost ~ n^exponent.)";

constexpr char kTotalEnd[] = "run";  // the last stage of the total

struct Reading {
  double seconds = 0;
  double megabytes = 0;  // the most so far
};

// A way through its stages: a reading for each that was completed, and why it ended early.
struct Outcome {
  std::vector<std::string> stages;
  std::vector<Reading> readings;
  std::string failure;

  const Reading* Find(const std::string& stage) const {
    const size_t i = static_cast<size_t>(absl::c_find(stages, stage) - stages.begin());
    return i < readings.size() ? &readings[i] : nullptr;
  }
};

rusage Usage() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return usage;
}

double ProcessorSeconds() {
  const rusage usage = Usage();
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

void SetLimit(int resource, rlim_t value) {
  const rlimit limit = {value, value};
  setrlimit(resource, &limit);
}

// Runs in the child process: writes a line for each stage, or the message of the Status.
void RunStages(const std::vector<GrowthStage>& stages, std::FILE* out) {
  for (const GrowthStage& stage : stages) {
    const double start = ProcessorSeconds();
    const absl::Status status = stage.run();
    if (!status.ok()) {
      absl::FPrintF(out, "failed %s\n", status.message().substr(0, 200));
      break;
    }
    absl::FPrintF(out, "%.6f %d\n", ProcessorSeconds() - start, Usage().ru_maxrss);
    std::fflush(out);
  }
  std::fclose(out);
}

std::string ReadAll(int file) {
  std::string text;
  char buffer[4096];
  for (ssize_t count; (count = read(file, buffer, sizeof(buffer))) > 0;)
    text.append(buffer, static_cast<size_t>(count));
  return text;
}

std::string FailureOf(int wait_status) {
  if (!WIFSIGNALED(wait_status)) return "";
  const int signal = WTERMSIG(wait_status);
  if (signal == SIGXCPU || signal == SIGKILL)
    return absl::StrCat("> ", absl::GetFlag(FLAGS_seconds));
  if (signal == SIGABRT) return absl::StrCat("> ", absl::GetFlag(FLAGS_megabytes), " MB");
  return absl::StrCat("signal ", signal);
}

// A line for each stage that a child has finished, "SECONDS KIB"; the last may be cut off.
void Read(const std::string& text, Outcome& outcome) {
  for (absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    if (absl::ConsumePrefix(&line, "failed ")) {
      outcome.failure = std::string(line);
      continue;
    }
    const std::vector<absl::string_view> words = absl::StrSplit(line, ' ');
    Reading reading;
    if (words.size() != 2 || !absl::SimpleAtod(words[0], &reading.seconds)) continue;
    if (absl::SimpleAtod(words[1], &reading.megabytes)) reading.megabytes /= 1024;
    outcome.readings.push_back(reading);
  }
}

// The limits are the system's: of processor time and address space, without a dump of memory when
// they are hit.
Outcome RunInProcess(const std::vector<GrowthStage>& stages) {
  Outcome outcome;
  for (const GrowthStage& stage : stages) outcome.stages.push_back(stage.name);
  int ends[2];
  if (pipe(ends) != 0) return {outcome.stages, {}, "no pipe"};
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    SetLimit(RLIMIT_CPU, static_cast<rlim_t>(absl::GetFlag(FLAGS_seconds)));
    SetLimit(RLIMIT_AS, static_cast<rlim_t>(absl::GetFlag(FLAGS_megabytes)) << 20);
    SetLimit(RLIMIT_CORE, 0);
    RunStages(stages, fdopen(ends[1], "w"));
    _exit(0);
  }
  close(ends[1]);
  Read(ReadAll(ends[0]), outcome);
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (outcome.failure.empty()) outcome.failure = FailureOf(status);
  return outcome;
}

// The total time up to the first results, and the memory at that point.
absl::optional<Reading> Total(const Outcome& outcome) {
  const Reading* last = outcome.Find(kTotalEnd);
  if (last == nullptr) return absl::nullopt;
  Reading total{0, last->megabytes};
  for (const Reading* r = outcome.readings.data(); r <= last; ++r) total.seconds += r->seconds;
  return total;
}

std::string StageText(const Outcome& outcome, const std::string& stage) {
  if (const Reading* reading = outcome.Find(stage)) {
    return absl::GetFlag(FLAGS_peaks) ? absl::StrFormat("%.0f", reading->megabytes)
                                      : absl::StrFormat("%.3f", reading->seconds);
  }
  const size_t died = outcome.readings.size();
  return died < outcome.stages.size() && outcome.stages[died] == stage ? outcome.failure : "-";
}

std::string MegabytesText(const absl::optional<Reading>& reading) {
  return reading ? absl::StrFormat("%.0f", reading->megabytes) : "-";
}

void PrintCells(const std::vector<std::string>& cells) {
  for (const std::string& cell : cells) std::printf("%9s ", cell.c_str());
  std::printf("\n");
  std::fflush(stdout);
}

void PrintHead() {
  PrintCells({"kind", "n", "parse", "lower", "fusion", "schedule", "codegen", "run", "total", "MB",
              "asm", "gradient", "MB"});
}

absl::optional<Reading> LastReading(const Outcome& outcome, const std::string& stage) {
  const Reading* reading = outcome.Find(stage);
  return reading == nullptr ? absl::nullopt : absl::make_optional(*reading);
}

void PrintLine(const std::string& kind, int n, const Outcome& results, const Outcome& gradient) {
  std::vector<std::string> cells = {kind, absl::StrCat(n)};
  for (const char* stage : {"parse", "lower", "fusion", "schedule", "codegen", "run"}) {
    cells.push_back(StageText(results, stage));
  }
  const absl::optional<Reading> total = Total(results);
  cells.push_back(total ? absl::StrFormat("%.3f", total->seconds) : "-");
  cells.push_back(MegabytesText(total));
  cells.push_back(StageText(results, "asm"));
  cells.push_back(StageText(gradient, "gradient"));
  cells.push_back(MegabytesText(LastReading(gradient, "gradient")));
  PrintCells(cells);
}

// The slope of the line that fits best, by least squares. REQUIRES: two points or more.
double Slope(absl::Span<const std::pair<double, double>> points) {
  const double count = static_cast<double>(points.size());
  double x = 0, y = 0, xx = 0, xy = 0;
  for (const auto& [px, py] : points) {
    x += px;
    y += py;
    xx += px * px;
    xy += px * py;
  }
  return (count * xy - x * y) / (count * xx - x * x);
}

void PrintExponents(const std::string& kind, const std::vector<std::pair<int, Reading>>& totals) {
  if (totals.size() < 2) return;
  std::vector<std::pair<double, double>> seconds, megabytes;
  for (const auto& [n, total] : totals) {
    seconds.emplace_back(std::log(n), std::log(total.seconds));
    megabytes.emplace_back(std::log(n), std::log(total.megabytes));
  }
  std::printf("%9s time ~ n^%.2f, memory ~ n^%.2f\n\n", kind.c_str(), Slope(seconds),
              Slope(megabytes));
}

void MeasureKind(const GrowthKind& kind, const std::vector<int>& sizes) {
  std::vector<std::pair<int, Reading>> totals;
  for (const int n : sizes) {
    const std::string text = kind.text(n);
    const Outcome results = RunInProcess(StagesToResults(text, {absl::GetFlag(FLAGS_without)}));
    const Outcome gradient = RunInProcess(StagesToGradient(text));
    PrintLine(kind.name, n, results, gradient);
    if (const auto total = Total(results)) totals.emplace_back(n, *total);
  }
  PrintExponents(kind.name, totals);
}

absl::optional<std::vector<int>> Sizes() {
  std::vector<int> sizes;
  for (const std::string& text : absl::GetFlag(FLAGS_sizes)) {
    int size;
    if (!absl::SimpleAtoi(text, &size) || size < 1) return absl::nullopt;
    sizes.push_back(size);
  }
  return sizes;
}

int Main() {
  const absl::optional<std::vector<int>> sizes = Sizes();
  if (!sizes) {
    std::fprintf(stderr, "growth: --sizes takes numbers from 1, as in --sizes=300,1000\n");
    return 2;
  }
  MacroLibrary();  // read once, and not by each process
  PrintHead();
  const std::vector<std::string> wanted = absl::GetFlag(FLAGS_kinds);
  for (const GrowthKind& kind : GrowthKinds()) {
    if (wanted.empty() || absl::c_linear_search(wanted, kind.name)) MeasureKind(kind, *sizes);
  }
  return 0;
}

}  // namespace
}  // namespace nestor::bench

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage(nestor::bench::kUsage);
  absl::ParseCommandLine(argc, argv);
  return nestor::bench::Main();
}
