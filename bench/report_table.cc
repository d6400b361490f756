// One line for each row: Nestor's time, the engine that the goal refers to, its time, how many
// times as fast Nestor was and should have been, the part of the machine's limit, the difference of
// the results, the verdict.
//
//   row                 threads    Nestor  against         ratio   goal  of limit  differs
//   softmax 4096x1024         1  3.214 ms  oneDNN 8.7 ms    2.71   2.50      0.81    1e-06  met
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "bench/report.h"

namespace nestor::bench {
namespace {

constexpr char kLayout[] = "%-44s %7s %12s  %-23s %6s %6s %8s %8s  %s\n";

std::string Number(const absl::FormatSpec<double>& format, absl::optional<double> value) {
  return value ? absl::StrFormat(format, *value) : "-";
}

std::string CostText(absl::optional<double> cost, absl::string_view unit) {
  return cost ? absl::StrFormat("%.5g %s", *cost, unit) : "-";
}

absl::string_view VerdictText(const RowResult& result, const Verdict& verdict) {
  if (!verdict.met) return "MISSED";
  return result.goal.empty() ? "" : "met";
}

}  // namespace

std::string TableHead() {
  return absl::StrFormat(kLayout, "row", "threads", "Nestor", "against", "ratio", "goal",
                         "of limit", "differs", "");
}

// "*" marks a ratio that the machine's limit makes easier than asked.
std::string TableLine(const RowResult& result) {
  const Verdict verdict = Judge(result);
  // Where the cap decides, the engine of the row's own goal tells the reader more.
  const bool capped =
      !result.goal.empty() && verdict.engine == kLimit && result.goal[0].engine != kLimit;
  const GoalTerm* first = result.goal.empty() ? nullptr : &result.goal[0];
  const std::string against =
      capped || verdict.engine.empty() ? (first ? first->engine : "") : verdict.engine;
  const double asked = capped
                           ? (result.threads == 1 ? first->on_one_thread : first->on_more_threads)
                           : verdict.ratio;
  std::string text = absl::StrFormat(
      kLayout, result.row, absl::StrCat(result.threads),
      CostText(result.CostOf(kNestor), result.unit),
      against.empty() ? ""
                      : absl::StrCat(against, " ", CostText(result.CostOf(against), result.unit)),
      Number("%.2f", SpeedAgainst(result, against)),
      verdict.allowed ? absl::StrFormat("%.2f%s", asked, capped ? "*" : "") : "-",
      Number("%.2f", SpeedAgainst(result, kLimit)), Number("%.1g", result.max_difference),
      VerdictText(result, verdict));
  if (!result.failure.empty()) absl::StrAppend(&text, "    ", result.failure, "\n");
  return text;
}

}  // namespace nestor::bench
