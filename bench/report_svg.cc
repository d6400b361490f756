// Rows differ by a factor of a million in time, so times on one axis would show
// nothing. Every bar is therefore Nestor's speed relative to the speed of the row's goal: all goals
// are one vertical line, a bar that reaches it meets its goal, and the ticks of the other engines
// have the same scale.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "bench/report.h"

namespace nestor::bench {
namespace {

constexpr int kLabelWidth = 380, kPlotWidth = 600, kLineHeight = 22, kTop = 60, kMargin = 20;
constexpr double kMostShown = 2;  // a bar that is longer is cut, its number says how long

std::string Escape(absl::string_view text) {
  return absl::StrReplaceAll(text,
                             {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}});
}

double X(double relative_speed) {
  return kLabelWidth + std::clamp(relative_speed / kMostShown, 0.0, 1.0) * kPlotWidth;
}

std::string Text(double x, double y, absl::string_view attributes, absl::string_view text) {
  return absl::StrFormat("<text x=\"%.1f\" y=\"%.1f\" %s>%s</text>\n", x, y, attributes,
                         Escape(text));
}

std::string VerticalLine(double x, double top, double bottom, absl::string_view attributes) {
  return absl::StrFormat("<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" %s/>\n", x, top, x,
                         bottom, attributes);
}

std::string Tick(const Reading& reading, double allowed, const RowResult& result, double y) {
  const bool limit = reading.engine == kLimit || reading.engine == kLimitInParts;
  const char* color = limit ? "#555555" : "#1f5fa8";
  return absl::StrFormat("<g><title>%s: %.4g %s</title>%s</g>\n", Escape(reading.engine),
                         reading.cost, Escape(result.unit),
                         VerticalLine(X(allowed / reading.cost), y + 2, y + kLineHeight - 6,
                                      absl::StrFormat("stroke=\"%s\" stroke-width=\"3\"", color)));
}

// Speed as a part of what the goal allows, so that 1 is the goal in every row.
std::string Bar(const RowResult& result, const Verdict& verdict, double y) {
  const char* threads = result.threads == 1 ? " thread" : " threads";
  std::string svg = Text(kLabelWidth - 8, y + 14, "text-anchor=\"end\"",
                         absl::StrCat(result.row, ", ", result.threads, threads));
  const absl::optional<double> own = result.CostOf(kNestor);
  if (!own || !verdict.allowed) {
    return svg + Text(kLabelWidth + 4, y + 14, "fill=\"#b3261e\"", "not measured");
  }
  const double speed = *verdict.allowed / *own;
  absl::StrAppendFormat(
      &svg, "<rect x=\"%d\" y=\"%.1f\" width=\"%.1f\" height=\"%d\" fill=\"%s\"/>\n", kLabelWidth,
      y + 4, X(speed) - kLabelWidth, kLineHeight - 10, verdict.met ? "#2e7d32" : "#b3261e");
  for (const Reading& reading : result.readings) {
    if (reading.engine != kNestor) svg += Tick(reading, *verdict.allowed, result, y);
  }
  return svg + Text(kLabelWidth + kPlotWidth + 8, y + 14, "", absl::StrFormat("%.2f", speed));
}

std::string Axis(double bottom) {
  std::string svg;
  for (const double at : {0.0, 0.5, 1.0, 1.5, 2.0}) {
    svg += VerticalLine(X(at), kTop - 4, bottom,
                        at == 1 ? "stroke=\"#000000\"" : "stroke=\"#dddddd\"");
    svg += Text(X(at), kTop - 10, "text-anchor=\"middle\"", absl::StrFormat("%.1f", at));
  }
  return svg;
}

}  // namespace

std::string Svg(absl::Span<const RowResult> results) {
  std::string bars;
  double y = kTop;
  for (const RowResult& result : results) {
    if (result.goal.empty()) continue;
    bars += Bar(result, Judge(result), y);
    y += kLineHeight;
  }
  const int width = kLabelWidth + kPlotWidth + 60;
  return absl::StrCat(
      absl::StrFormat("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%.0f\" "
                      "font-family=\"sans-serif\" font-size=\"12\">\n"
                      "<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n",
                      width, y + kMargin),
      Text(kMargin, 24, "font-size=\"16\"", "Nestor's speed in parts of the goal"),
      Text(kLabelWidth, 24, "", "bar: Nestor; blue tick: a peer; grey ticks: the machine's limits"),
      Axis(y), bars, "</svg>\n");
}

}  // namespace nestor::bench
