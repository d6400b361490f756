#include "check/judge.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "fusion/dead_code.h"
#include "interp/interpreter.h"
#include "loop_ir/lower.h"
#include "uops/invariant.h"

namespace nestor {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

// Half widths from the middle; 0 of what is not finite and allowed.
double UnitsOf(const Enclosure& want, const Scalar& got, bool is_inside) {
  const bool is_number = !got.IsNaN() && std::isfinite(IsFloat(got.type) ? got.ToDouble() : 0);
  if (!is_number || !want.HasFinite()) return is_inside ? 0 : kInfinite;
  const long double half = (want.high - want.low) / 2, middle = want.low + half;
  const long double distance = std::fabs(ToLongDouble(got) - middle);
  if (half == 0) return is_inside ? 0 : kInfinite;
  return static_cast<double>(distance / half);
}

Enclosure Widened(Enclosure want, DType type, const Allowance& allowance) {
  if (!want.HasFinite() || !IsFloat(type)) return want;
  const FloatFormat& format = FormatOf(type);
  const long double half = (want.high - want.low) / 2, middle = want.low + half;
  const long double reach = half * allowance.times;
  want.low = std::min(want.low, middle - reach - allowance.ulps * format.Ulp(want.low));
  want.high = std::max(want.high, middle + reach + allowance.ulps * format.Ulp(want.high));
  if (want.high >= format.Largest()) want.plus_infinity = true;
  if (want.low <= -format.Largest()) want.minus_infinity = true;
  return want;
}

// Of so few values of the type none is nearer to the exact result than another.
bool IsNarrow(const Enclosure& want, DType type) {
  if (!want.HasFinite() || !IsFloat(type)) return true;
  const long double largest = std::max(std::fabs(want.low), std::fabs(want.high));
  return want.high - want.low <= FormatOf(type).Ulp(largest);
}

void Count(double units, bool is_exact, ErrorHistogram& histogram) {
  if (is_exact) {
    ++histogram.exact;
    return;
  }
  const int tenth = units >= 1 ? static_cast<int>(units > 1 ? ErrorHistogram::kTenths : ErrorHistogram::kTenths - 1)
                               : static_cast<int>(units * ErrorHistogram::kTenths);
  ++histogram.counts[static_cast<size_t>(tenth)];
  if (std::isfinite(units)) histogram.largest = std::max(histogram.largest, units);
}

void DecideOne(int result, const ReferenceTensor& want, const Tensor& got, const Allowance& allowance, Verdict& verdict) {
  const bool is_exact = allowance.times == 1 && allowance.ulps == 0;
  const char* element = static_cast<const char*>(got.data());
  const ElementLoader load = LoaderOf(got.type());
  for (int64_t i = 0; i < got.num_elements(); ++i, element += ByteSize(got.type())) {
    const Scalar value{got.type(), load(element)};
    const Enclosure& bound = want.elements[static_cast<size_t>(i)];
    const bool is_within = Encloses(bound, value);
    const double units = UnitsOf(bound, value, is_within);
    Count(units, is_within && IsNarrow(bound, got.type()), verdict.histogram);
    if (is_within || (!is_exact && Encloses(Widened(bound, got.type(), allowance), value))) continue;
    ++verdict.wrong_count;
    if (verdict.wrong.size() < Verdict::kMostKept) verdict.wrong.push_back({result, i, value, bound, units});
  }
  verdict.elements += got.num_elements();
}

}  // namespace

void ErrorHistogram::Add(const ErrorHistogram& other) {
  for (size_t i = 0; i < counts.size(); ++i) counts[i] += other.counts[i];
  exact += other.exact;
  largest = std::max(largest, other.largest);
}

int64_t ErrorHistogram::Total() const {
  int64_t total = exact;
  for (int64_t count : counts) total += count;
  return total;
}

Judge::Judge(const Op& op, const Allowance& allowance) : program_(Lower(op)), allowance_(allowance) {
  const absl::Status status = fusion::EliminateDeadCode(program_).status();
  NESTOR_CHECK(status.ok(), status.ToString());
}

absl::StatusOr<Verdict> Judge::Decide(const RunInputs& inputs, absl::Span<const Tensor> got) const {
  NESTOR_ASSIGN_OR_RETURN(const std::vector<ReferenceTensor> want, InterpretReference(program_, inputs));
  NESTOR_CHECK(want.size() == got.size(), "results are missing");
  Verdict verdict;
  for (size_t i = 0; i < got.size(); ++i) {
    NESTOR_CHECK(want[i].shape == got[i].shape() && want[i].type == got[i].type(), "a result has another shape");
    DecideOne(static_cast<int>(i), want[i], got[i], allowance_, verdict);
  }
  return verdict;
}

absl::StatusOr<std::vector<Tensor>> Judge::Expected(const RunInputs& inputs) const {
  return Interpret(program_, inputs);
}

}  // namespace nestor
