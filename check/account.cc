// Makes the account of a failing case in the report.
#include "check/account.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "check/elements.h"
#include "check/pattern.h"
#include "check/shrink_case.h"

namespace nestor {
namespace {

// ---- The failing case

std::string MapKey(int64_t high, int64_t wide) {
  if (high * wide == 1) return "#";
  return absl::StrCat("of ", high, " x ", wide, " elements #: all, +: some");
}

// The result as rows of its last axis: "#" where all elements of a cell are wrong, "+" some.
// A 40 x 200 result whose last column is wrong has cells of 3 x 4 elements, and each of its 14 rows
// is 49 dots and a +. There is no map where the verdict does not hold all wrong elements: what is
// not listed would look right.
std::string MapText(const Subject& subject, const Case& given, const Verdict& verdict) {
  constexpr int64_t kMostRows = 16, kMostColumns = 64;
  if (verdict.wrong.empty() || verdict.wrong.size() >= Verdict::kMostKept) return "";
  const int32_t result = verdict.wrong.front().result;
  const Dims shape = ResultShape(subject.source.op, given.binding, static_cast<size_t>(result));
  if (shape.empty()) return "";
  const int64_t columns = shape.back(), rows = NumElements(shape).value() / columns;
  const int64_t high = (rows + kMostRows - 1) / kMostRows,
                wide = (columns + kMostColumns - 1) / kMostColumns;
  const int64_t map_rows = (rows + high - 1) / high, map_columns = (columns + wide - 1) / wide;
  std::vector<int64_t> wrong(static_cast<size_t>(map_rows * map_columns), 0);
  for (const WrongElement& element : verdict.wrong) {
    if (element.result != result) continue;
    ++wrong[static_cast<size_t>(element.element / columns / high * map_columns +
                                element.element % columns / wide)];
  }
  std::string map =
      absl::StrCat("where ", subject.source.op.results[static_cast<size_t>(result)].name,
                   ShapeText(shape), " of that case is wrong (", MapKey(high, wide), "):");
  for (int64_t r = 0; r < map_rows; ++r) {
    map += "\n  ";
    for (int64_t c = 0; c < map_columns; ++c) {
      const int64_t cell = std::min(high, rows - r * high) * std::min(wide, columns - c * wide);
      const int64_t count = wrong[static_cast<size_t>(r * map_columns + c)];
      map.push_back(count == 0 ? '.' : count == cell ? '#' : '+');
    }
  }
  return map;
}

// By element of the result, whether inf or nan among the inputs affects it; empty where none does.
// Found by experiment: the op is evaluated a second time with 0.75 in the place of each inf and
// NaN, and an element that then differs has read one.
std::vector<bool> ReadsSpecial(const Subject& subject, const Case& given, int32_t result) {
  if (subject.sample > 0) return {};  // sizes at which the op itself is slow
  Case finite = given;
  bool is_special = false;
  for (Tensor& tensor : finite.inputs) {
    if (!IsFloat(tensor.type())) continue;
    is_special |= ReplaceElements(tensor, 0, tensor.num_elements(), [](const Scalar& value) {
      return std::isfinite(value.ToDouble()) ? value : Scalar::Float(value.type, 0.75);
    });
  }
  if (!is_special) return {};
  const auto with = subject.judge.Expected(given.Inputs(subject.source.op));
  const auto without = subject.judge.Expected(finite.Inputs(subject.source.op));
  if (!with.ok() || !without.ok()) return {};
  const Tensor &a = (*with)[static_cast<size_t>(result)],
               &b = (*without)[static_cast<size_t>(result)];
  std::vector<bool> reads;
  for (int64_t i = 0; i < a.num_elements(); ++i)
    reads.push_back(!(ElementOf(a, i) == ElementOf(b, i)));
  return reads;
}

// The pattern of the cases around, and of the smallest one, which often lies at the limit.
std::string PatternOf(const FailedTrial& failed, const Outcome& outcome, const Case& smallest,
                      const Outcome& of_smallest, ExamineCase examine) {
  if (outcome.verdict.wrong.empty()) return "";
  constexpr int64_t kAround = 120;
  const int32_t result = outcome.verdict.wrong.front().result;
  PatternFinder finder(failed.subject.source, result);
  const auto add = [&](const Case& given, const Outcome& of_case) {
    // A case with no fault teaches as well: all its elements are right samples.
    finder.Add(given, of_case.verdict.wrong, ReadsSpecial(failed.subject, given, result));
  };
  const absl::Time end = absl::Now() + absl::Seconds(5);
  for (int64_t distance = -kAround; distance <= kAround && absl::Now() < end; ++distance) {
    const absl::optional<Case> drawn = failed.case_around(distance);
    if (!drawn) continue;
    const Outcome around = examine(*drawn);
    // Another fault may have another cause, whose elements would blur the pattern.
    if (around.fault == outcome.fault || around.fault == Fault::kNone) add(*drawn, around);
  }
  if (of_smallest.fault == outcome.fault) add(smallest, of_smallest);
  return finder.Describe();
}

// ---- The smallest case

// A smaller case counts only if it shows the same fault: a kernel may, say, crash at sizes of 0.
Case Smallest(const FailedTrial& failed, Fault fault, ExamineCase examine) {
  return ShrinkCase(failed.subject.source, failed.failing,
                    [&](const Case& given) { return examine(given).fault == fault; });
}

std::string InputsText(const Op& op, const Case& given) {
  std::vector<std::string> texts;
  ToStringOptions options;
  options.threshold = 64;
  for (size_t i = 0; i < given.inputs.size(); ++i) {
    if (op.args[i].shape_only) continue;
    const TensorView view = given.inputs[i];
    texts.push_back(absl::StrCat(op.args[i].name, ": ", Name(view.type), ShapeText(view.shape),
                                 " = ", nestor::ToString(view, options)));
  }
  return absl::StrJoin(texts, "\n");
}

// 0 where there is no such distance.
// The difference in units in the last place of `want`, in the type of `got`.
double UlpsBetween(const Scalar& got, const Scalar& want) {
  if (!IsFloat(got.type) || !std::isfinite(got.ToDouble()) || !std::isfinite(want.ToDouble()))
    return 0;
  const long double ulp = FormatOf(got.type).Ulp(ToLongDouble(want));
  return static_cast<double>(std::fabs(ToLongDouble(got) - ToLongDouble(want)) / ulp);
}

CheckReport::Element Describe(const Op& op, const Case& given, const WrongElement& wrong,
                              const absl::StatusOr<std::vector<Tensor>>& want) {
  CheckReport::Element element;
  const auto result = static_cast<size_t>(wrong.result);
  const Dims place = IndexOf(wrong.element, ResultShape(op, given.binding, result));
  element.place = absl::StrCat(op.results[result].name, place.empty() ? "" : ShapeText(place));
  element.got = LiteralText(wrong.got);
  if (wrong.want.HasNumber() || wrong.want.nan) element.bound = nestor::ToString(wrong.want);
  element.units = wrong.units;
  if (!want.ok()) return element;
  const Scalar expected = ElementOf((*want)[result], wrong.element);
  element.want = LiteralText(expected);
  element.ulps = UlpsBetween(wrong.got, expected);
  return element;
}

// The worst elements first, by how far outside of their bounds they are; five tell enough.
void DescribeSmallest(const Subject& subject, const Case& smallest, const Outcome& outcome,
                      CheckReport& report) {
  if (report.fault != Fault::kHang) report.message = outcome.message;  // which names a shorter time
  report.smallest_case = CaseText(subject.source, smallest);
  report.inputs = InputsText(subject.source.op, smallest);
  report.wrong_elements = outcome.verdict.wrong_count;
  report.elements = outcome.verdict.elements;
  std::vector<WrongElement> wrong = outcome.verdict.wrong;
  std::stable_sort(wrong.begin(), wrong.end(),
                   [](const WrongElement& a, const WrongElement& b) { return a.units > b.units; });
  const absl::StatusOr<std::vector<Tensor>> want =
      subject.judge.Expected(smallest.Inputs(subject.source.op));
  for (size_t i = 0; i < std::min<size_t>(wrong.size(), 5); ++i) {
    report.worst.push_back(Describe(subject.source.op, smallest, wrong[i], want));
  }
}

}  // namespace

// Runs the case once more first: a fault that does not come again cannot be made smaller, and is
// reported as it was.
void Account(const FailedTrial& failed, ExamineCase examine, CheckReport& report) {
  report.failing_case = CaseText(failed.subject.source, failed.failing);
  const Outcome outcome = examine(failed.failing);
  if (outcome.fault != report.fault) {
    absl::StrAppend(&report.message, " (once: run again on the same case, it is ",
                    Name(outcome.fault), ")");
    return;
  }
  report.map = MapText(failed.subject, failed.failing, outcome.verdict);
  Case smallest = Smallest(failed, report.fault, examine);
  Outcome of_smallest = examine(smallest);
  // A fault that comes and goes may be gone: then the case that was found stands for itself.
  if (of_smallest.fault != report.fault) {
    smallest = failed.failing;
    of_smallest = outcome;
  }
  report.pattern = PatternOf(failed, outcome, smallest, of_smallest, examine);
  DescribeSmallest(failed.subject, smallest, of_smallest, report);
}

}  // namespace nestor
