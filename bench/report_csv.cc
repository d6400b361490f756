// The long form, a line for each reading, as spreadsheets and data frames need it: a new engine
// adds lines, never a column.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "bench/report.h"

namespace nestor::bench {
namespace {

std::string Field(absl::string_view text) {
  if (text.find_first_of(",\"\n") == absl::string_view::npos) return std::string(text);
  return absl::StrCat("\"", absl::StrReplaceAll(text, {{"\"", "\"\""}}), "\"");
}

std::string Line(absl::Span<const std::string> fields) {
  return absl::StrCat(
      absl::StrJoin(fields, ",", [](std::string* out, const std::string& f) { *out += Field(f); }),
      "\n");
}

// The fields that only Nestor's reading has.
std::vector<std::string> VerdictFields(const RowResult& result) {
  const Verdict verdict = Judge(result);
  return {verdict.allowed ? absl::StrFormat("%.6g", *verdict.allowed) : "",
          result.goal.empty() && verdict.met ? ""
          : verdict.met                      ? "yes"
                                             : "no",
          result.max_difference ? absl::StrFormat("%.3g", *result.max_difference) : "",
          result.failure};
}

}  // namespace

// A line for each engine of each row; the verdict is in Nestor's.
std::string Csv(absl::Span<const RowResult> results) {
  std::string text =
      Line({"row", "threads", "engine", "cost", "unit", "allowed", "met", "difference", "failure"});
  for (const RowResult& result : results) {
    // A row that Nestor could not run gets a line, too.
    std::vector<Reading> readings = result.readings;
    const bool ran = result.CostOf(kNestor).has_value();
    if (!ran) readings.insert(readings.begin(), {std::string(kNestor), 0});
    for (const Reading& reading : readings) {
      const bool own = reading.engine == kNestor;
      std::vector<std::string> fields = {result.row, absl::StrCat(result.threads), reading.engine,
                                         own && !ran ? "" : absl::StrFormat("%.6g", reading.cost),
                                         result.unit};
      const std::vector<std::string> verdict =
          own ? VerdictFields(result) : std::vector<std::string>(4);
      fields.insert(fields.end(), verdict.begin(), verdict.end());
      text += Line(fields);
    }
  }
  return text;
}

}  // namespace nestor::bench
