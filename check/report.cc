// A report has two forms: lines for people, the first of which is a summary, and JSON.
#include "check/report.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "uops/message.h"

namespace nestor {
namespace {

std::string Counted(int64_t count, absl::string_view thing) {
  return absl::StrCat(count, " ", thing, count == 1 ? "" : "s");
}

// "1000 trials (3 that the kernel does not do) in 2.5 s".
std::string TrialsText(const CheckReport& report) {
  std::string text = Counted(report.trials, "trial");
  std::vector<std::string> apart;
  if (report.skipped > 0)
    apart.push_back(absl::StrCat(report.skipped, " that the kernel does not do"));
  if (report.undecided > 0)
    apart.push_back(absl::StrCat(report.undecided, " that the oracle does not decide"));
  if (!apart.empty()) absl::StrAppend(&text, " (", absl::StrJoin(apart, ", "), ")");
  const double seconds = absl::ToDoubleSeconds(report.time);
  return absl::StrCat(text, absl::StrFormat(" in %.3g s", seconds));
}

std::string Indented(absl::string_view text, absl::string_view indent) {
  return absl::StrCat(indent, absl::StrReplaceAll(text, {{"\n", absl::StrCat("\n", indent)}}));
}

std::string UnitsText(double units) {
  return std::isfinite(units) ? absl::StrFormat("%.3g", units) : "infinitely many";
}

// "f: right in ..", "f: WRONG (crash), found after ..", or "f: NOT CHECKED", which is no success.
std::string Headline(const CheckReport& report) {
  if (report.fault != Fault::kNone) {
    return absl::StrCat(report.op, ": WRONG (", Name(report.fault), "), found after ",
                        TrialsText(report), ": the kernel ", report.message);
  }
  if (!report.IsRight())
    return absl::StrCat(report.op, ": NOT CHECKED: nothing was judged in ", TrialsText(report));
  return absl::StrCat(report.op, ": right in ", TrialsText(report));
}

// "y[3] = 0.5, but must be in [1, 2] (3 half-widths from its middle)".
std::string ElementText(const CheckReport::Element& element) {
  std::string text = absl::StrCat(element.place, " = ", element.got);
  if (!element.bound.empty()) {
    absl::StrAppend(&text, ", but must be ", element.bound[0] == '[' ? "in " : "", element.bound);
    // Infinite where the bound is a single value, or the element no number.
    if (std::isfinite(element.units)) {
      absl::StrAppend(&text, absl::StrFormat(" (%.3g half-widths from its middle)", element.units));
    }
  }
  if (!element.want.empty()) absl::StrAppend(&text, "; in order it is ", element.want);
  // Beyond this the unit says nothing: one of the two is about 0, or they have different
  // magnitudes.
  constexpr double kMostUlps = 1e6;
  if (element.ulps > 0 && element.ulps < kMostUlps) {
    absl::StrAppend(&text, absl::StrFormat(", %.3g ulps away", element.ulps));
  }
  return text;
}

// From the general to the particular: the case, the smallest case, its elements, its inputs.
void AppendFinding(const CheckReport& report, std::string& text) {
  absl::StrAppend(&text, "  case: ", report.failing_case, "\n");
  if (!report.smallest_case.empty()) {
    absl::StrAppend(&text, "  smallest case that still fails: ", report.smallest_case);
    if (report.wrong_elements > 0) {
      absl::StrAppend(&text, " (", report.wrong_elements, " of ",
                      Counted(report.elements, "element"), ")");
    }
    absl::StrAppend(&text, "\n");
  }
  for (const CheckReport::Element& element : report.worst)
    absl::StrAppend(&text, "    ", ElementText(element), "\n");
  if (!report.inputs.empty()) absl::StrAppend(&text, Indented(report.inputs, "    "), "\n");
  if (!report.pattern.empty()) absl::StrAppend(&text, "  ", report.pattern, "\n");
  if (!report.map.empty()) absl::StrAppend(&text, Indented(report.map, "  "), "\n");
}

// "exact: 70%, 0.0-0.1: 20%, 0.1-0.2: 10%"
std::string HistogramText(const ErrorHistogram& histogram) {
  const double total = static_cast<double>(histogram.Total());
  std::vector<std::string> parts;
  const auto add = [&](absl::string_view name, int64_t count) {
    if (count > 0)
      parts.push_back(
          absl::StrFormat("%s: %.3g%%", name, 100 * static_cast<double>(count) / total));
  };
  add("exact", histogram.exact);
  for (int i = 0; i < ErrorHistogram::kTenths; ++i) {
    add(absl::StrFormat("%.1f-%.1f", i / 10.0, (i + 1) / 10.0),
        histogram.counts[static_cast<size_t>(i)]);
  }
  add("beyond", histogram.counts.back());
  return absl::StrJoin(parts, ", ");
}

// ---- JSON

// JSON has no infinity: it is a string.
//   0.5 -> 0.5      inf -> "inf"
std::string JsonNumber(double value) {
  return std::isfinite(value) ? absl::StrCat(value) : JsonString(absl::StrCat(value));
}

std::string JsonElement(const CheckReport::Element& element) {
  return absl::StrCat(
      "{\"place\": ", JsonString(element.place), ", \"got\": ", JsonString(element.got),
      ", \"want\": ", JsonString(element.want), ", \"bound\": ", JsonString(element.bound),
      ", \"units\": ", JsonNumber(element.units), ", \"ulps\": ", JsonNumber(element.ulps), "}");
}

}  // namespace

std::string CheckReport::ToString() const {
  std::string text = absl::StrCat(Headline(*this), "\n");
  if (fault != Fault::kNone) AppendFinding(*this, text);
  if (histogram.Total() > 0) {
    absl::StrAppend(
        &text, "  ", Counted(histogram.Total(), "element"), " judged, ", by_bounds,
        " by compiled bounds, the others by the oracle",
        by_wider > 0
            ? absl::StrCat("; ", by_wider, " right only as computed in wider types than the op's")
            : "",
        "\n  distance from the middle of the bound, in half-widths: ", HistogramText(histogram),
        "; the largest ", UnitsText(histogram.largest), "\n");
  }
  if (!reproduce.empty()) absl::StrAppend(&text, "  to see it again: ", reproduce, "\n");
  return text;
}

// Keys of a finding are there only where there is one. Numbers of elements are integers, times
// seconds.
std::string CheckReport::ToJson() const {
  std::string json = absl::StrCat(
      "{\"op\": ", JsonString(op), ", \"right\": ", IsRight() ? "true" : "false",
      ", \"fault\": ", JsonString(Name(fault)), ", \"message\": ", JsonString(message),
      ", \"trials\": ", trials, ", \"skipped\": ", skipped, ", \"undecided\": ", undecided,
      ", \"seconds\": ", absl::ToDoubleSeconds(time), ", \"seed\": ", seed,
      ",\n \"histogram\": {\"exact\": ", histogram.exact, ", \"tenths\": [",
      absl::StrJoin(histogram.counts.begin(), histogram.counts.end() - 1, ", "),
      "], \"by_bounds\": ", by_bounds, ", \"by_wider\": ", by_wider,
      ", \"beyond\": ", histogram.counts.back(), ", \"largest\": ", JsonNumber(histogram.largest),
      "}");
  if (fault != Fault::kNone) {
    absl::StrAppend(
        &json, ",\n \"failing_seed\": ", failing_seed, ", \"case\": ", JsonString(failing_case),
        ", \"smallest_case\": ", JsonString(smallest_case),
        ", \"wrong_elements\": ", wrong_elements, ", \"elements\": ", elements, ", \"worst\": [",
        absl::StrJoin(worst, ", ",
                      [](std::string* out, const Element& e) { *out += JsonElement(e); }),
        "],\n \"inputs\": ", JsonString(inputs), ", \"pattern\": ", JsonString(pattern),
        ", \"map\": ", JsonString(map), ", \"reproduce\": ", JsonString(reproduce));
  }
  return absl::StrCat(json, "}\n");
}

std::ostream& operator<<(std::ostream& out, const CheckReport& report) {
  return out << report.ToString();
}

}  // namespace nestor
