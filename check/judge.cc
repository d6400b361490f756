// Three judges, the fastest first: compiled bounds (check/bounds), which know nothing about some
// elements; the oracle on an op that computes only those elements; and the oracle on the whole op,
// where most elements are left, or where they share much.
#include "check/judge.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "absl/algorithm/container.h"
#include "check/accept.h"
#include "check/bounds/fast_judge.h"
#include "check/bounds/point_op.h"
#include "check/random.h"
#include "check/sample.h"
#include "fusion/dead_code.h"
#include "interp/interpreter.h"
#include "loop_ir/lower.h"
#include "uops/invariant.h"

namespace nestor {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

// The distance from the middle in half widths; 0 for an allowed element that is not finite.
double UnitsOf(const Enclosure& want, const Scalar& got, bool is_inside) {
  const bool is_number = !got.IsNaN() && std::isfinite(IsFloat(got.type) ? got.ToDouble() : 0);
  if (!is_number || !want.HasFinite()) return is_inside ? 0 : kInfinite;
  const long double half = (want.high - want.low) / 2, middle = want.low + half;
  const long double distance = std::fabs(ToLongDouble(got) - middle);
  if (half == 0) return is_inside ? 0 : kInfinite;
  return static_cast<double>(distance / half);
}

// [1, 3] times 2 is [0, 4]. A factor below 1 narrows nothing: the proven bound is always allowed.
// What reaches beyond the largest number may be rounded to infinity.
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

// None of so few values of the type is nearer to the exact result than another.
bool IsNarrow(const Enclosure& want, DType type) {
  if (!want.HasFinite() || !IsFloat(type)) return true;
  const long double largest = std::max(std::fabs(want.low), std::fabs(want.high));
  return want.high - want.low <= FormatOf(type).Ulp(largest);
}

// An element at the very end of its bound (units of 1) is in the last tenth, not outside.
void Count(double units, bool is_exact, ErrorHistogram& histogram) {
  if (is_exact) {
    ++histogram.exact;
    return;
  }
  const int tenth = units >= 1 ? static_cast<int>(units > 1 ? ErrorHistogram::kTenths
                                                            : ErrorHistogram::kTenths - 1)
                               : static_cast<int>(units * ErrorHistogram::kTenths);
  ++histogram.counts[static_cast<size_t>(tenth)];
  if (std::isfinite(units)) histogram.largest = std::max(histogram.largest, units);
}

std::vector<int64_t> AllElements(const TensorView& tensor) {
  std::vector<int64_t> elements(static_cast<size_t>(NumElements(tensor.shape).value()));
  std::iota(elements.begin(), elements.end(), int64_t{0});
  return elements;
}

ElementLists AllElements(absl::Span<const TensorView> tensors) {
  ElementLists lists;
  for (const TensorView& tensor : tensors) lists.push_back(AllElements(tensor));
  return lists;
}

int64_t CountOf(absl::Span<const TensorView> tensors) {
  int64_t count = 0;
  for (const TensorView& tensor : tensors) count += NumElements(tensor.shape).value();
  return count;
}

int64_t CountOf(const ElementLists& lists) {
  int64_t count = 0;
  for (const std::vector<int64_t>& list : lists) count += static_cast<int64_t>(list.size());
  return count;
}

bool IsZero(const Scalar& value) { return IsFloat(value.type) && value.ToDouble() == 0; }

// Holds one element against its enclosure, counts it in one of the verdicts, and says
// whether it is right.
bool DecideOne(size_t result, int64_t element, const Enclosure& want, const TensorView& tensor,
               const Allowance& allowance, Verdict& if_right, Verdict& if_wrong) {
  const Scalar got = ElementOf(tensor, element);
  const bool is_within =
      Encloses(want, got) || (!allowance.signed_zeros && IsZero(got) && want.HasZero());
  // The distance is counted in half widths of the proven bound, also where the kernel promises
  // less: the report says how much of the bound was needed.
  const bool promises_all = allowance.times == 1 && allowance.ulps == 0;
  const bool is_right =
      is_within || (!promises_all && Encloses(Widened(want, got.type, allowance), got));
  const double units = UnitsOf(want, got, is_within);
  Count(units, is_within && IsNarrow(want, got.type), (is_right ? if_right : if_wrong).histogram);
  if (is_right) return true;
  ++if_wrong.wrong_count;
  if (if_wrong.wrong.size() < Verdict::kMostKept) {
    if_wrong.wrong.push_back({static_cast<int32_t>(result), element, got, want, units});
  }
  return false;
}

// Unfused, as the law has it. Dead code is gone, or the oracle would interpret what no result
// needs.
loop::Program OracleOf(const Op& op) {
  loop::Program program = Lower(op);
  const absl::Status status = loop::EliminateDeadCode(program).status();
  NESTOR_CHECK(status.ok(), status.ToString());
  return program;
}

std::vector<Dims> ShapesOf(absl::Span<const TensorView> tensors) {
  std::vector<Dims> shapes;
  for (const TensorView& tensor : tensors) shapes.push_back(tensor.shape);
  return shapes;
}

}  // namespace

Scalar ElementOf(const TensorView& tensor, int64_t element) {
  return Load(tensor.type, static_cast<const char*>(tensor.data) + element * ByteSize(tensor.type));
}

Dims IndexOf(int64_t element, const Dims& shape) {
  Dims index(shape.size(), 0);
  for (size_t axis = shape.size(); axis-- > 0; element /= shape[axis])
    index[axis] = element % shape[axis];
  return index;
}

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

// ---- Compiled bounds

// The compiled bounds of an op; there may be none.
class Judge::Bounds {
 public:
  explicit Bounds(const Op& op) {
    absl::StatusOr<FastJudge> judge = FastJudge::Create(op);
    if (judge.ok()) judge_ = std::make_unique<FastJudge>(*std::move(judge));
  }

  // Low and high ends of each result in turn; empty where there are none for these inputs.
  absl::Span<const Tensor> At(const RunInputs& inputs) const {
    if (judge_ == nullptr) return {};
    const absl::StatusOr<absl::Span<const Tensor>> bounds = judge_->Bounds(inputs);
    return bounds.ok() ? *bounds : absl::Span<const Tensor>();
  }

 private:
  std::unique_ptr<FastJudge> judge_;
};

// The op for some elements, made when it is needed.
struct Judge::Points {
  explicit Points(PointOp made) : op(std::move(made)), program(OracleOf(op.op)) {}

  const Bounds& bounds() {
    if (compiled == nullptr) compiled = std::make_unique<Bounds>(op.op);
    return *compiled;
  }

  const PointOp op;
  const loop::Program program;
  std::unique_ptr<Bounds> compiled;
};

Judge::Judge(const Op& op, const Allowance& allowance)
    : op_(op), separable_(SeparableDimensions(op)), program_(OracleOf(op)), allowance_(allowance),
      bounds_(std::make_unique<Bounds>(op)) {
  absl::StatusOr<PointOp> points = MakePointOp(op);
  if (points.ok()) points_ = std::make_unique<Points>(*std::move(points));
}
Judge::Judge(Judge&&) noexcept = default;
Judge::~Judge() = default;

// Counts the elements that lie in their bounds, and returns the others.
ElementLists Judge::AcceptAll(const RunInputs& inputs, absl::Span<const TensorView> got,
                              Verdict& verdict) const {
  // Two f64 tensors for each result: its low ends, then its high ends.
  const absl::Span<const Tensor> ends = bounds_->At(inputs);
  if (ends.empty()) return AllElements(got);
  ElementLists open;
  for (size_t r = 0; r < got.size(); ++r) {
    const ElementBounds bounds{ends[2 * r].values<double>(), ends[2 * r + 1].values<double>()};
    open.push_back(AcceptElements(got[r], bounds, allowance_.signed_zeros, verdict));
  }
  return open;
}

// ---- The oracle

absl::Status Judge::EncloseAll(Precision precision, const RunInputs& inputs,
                               absl::Span<const TensorView> got, const ElementLists& open,
                               Decision decide) const {
  NESTOR_ASSIGN_OR_RETURN(const std::vector<ReferenceTensor> want,
                          InterpretReference(program_, inputs, {}, precision));
  for (size_t r = 0; r < got.size(); ++r) {
    NESTOR_CHECK(want[r].shape == got[r].shape && want[r].type == got[r].type,
                 "a result has another shape");
    for (int64_t i : open[r]) decide(r, i, want[r].elements[static_cast<size_t>(i)]);
  }
  return absl::OkStatus();
}

absl::Status Judge::EnclosePoints(Precision precision, const RunInputs& inputs,
                                  absl::Span<const TensorView> got, const ElementLists& open,
                                  Decision decide) const {
  // The enclosures of all terms of a sum are in memory at once.
  constexpr size_t kAtOnce = 128;
  size_t longest = 0;
  for (const std::vector<int64_t>& list : open) longest = std::max(longest, list.size());
  for (size_t begin = 0; begin < longest; begin += kAtOnce) {
    // The next 128 open elements of each result; results that have fewer give an empty part.
    std::vector<absl::Span<const int64_t>> part;
    std::vector<PointGroups> groups;
    for (size_t r = 0; r < got.size(); ++r) {
      part.push_back(
          absl::MakeConstSpan(open[r]).subspan(std::min(begin, open[r].size()), kAtOnce));
      groups.push_back(GroupsOfOne(got[r].shape, part.back()));
    }
    const PointInputs at = AddPoints(points_->op, inputs, groups);
    NESTOR_ASSIGN_OR_RETURN(const std::vector<ReferenceTensor> want,
                            InterpretReference(points_->program, at.inputs, {}, precision));
    for (size_t r = 0; r < got.size(); ++r) {
      for (size_t p = 0; p < part[r].size(); ++p) decide(r, part[r][p], want[r].elements[p]);
    }
  }
  return absl::OkStatus();
}

absl::Status Judge::EncloseIn(Precision precision, const RunInputs& inputs,
                              absl::Span<const TensorView> got, const ElementLists& open,
                              Method method, Decision decide) const {
  return method == Method::kPoints ? EnclosePoints(precision, inputs, got, open, decide)
                                   : EncloseAll(precision, inputs, got, open, decide);
}

// Starts with the op's own types: a value that is decided there, such as an index computed from
// floats, may be undecided in wider types.
// Elements that these reject are asked about again in wider types, those alone. Where the wider
// oracle has no answer the first verdict stands, which `outside` keeps until then.
absl::Status Judge::Enclose(const RunInputs& inputs, absl::Span<const TensorView> got,
                            const ElementLists& open, Method method, Verdict& verdict) const {
  if (CountOf(open) == 0) return absl::OkStatus();
  Verdict outside, wider;
  ElementLists doubted(got.size());
  NESTOR_RETURN_IF_ERROR(
      EncloseIn(Precision::kAsWritten, inputs, got, open, method,
                [&](size_t r, int64_t i, const Enclosure& want) {
                  if (DecideOne(r, i, want, got[r], allowance_, verdict, outside)) return;
                  doubted[r].push_back(i);
                }));
  if (CountOf(doubted) == 0) return absl::OkStatus();
  const absl::Status status =
      EncloseIn(Precision::kAsWrittenOrWider, inputs, got, doubted, method,
                [&](size_t r, int64_t i, const Enclosure& want) {
                  wider.by_wider += DecideOne(r, i, want, got[r], allowance_, wider, wider);
                });
  const Verdict& decided = status.ok() ? wider : outside;
  verdict.histogram.Add(decided.histogram);
  verdict.by_wider += decided.by_wider;
  verdict.wrong_count += decided.wrong_count;
  verdict.wrong = decided.wrong;
  return absl::OkStatus();
}

// Cheap bounds accept most elements; the oracle decides those that are left, at their points alone
// if these are few.
absl::StatusOr<Verdict> Judge::Decide(const RunInputs& inputs,
                                      absl::Span<const TensorView> got) const {
  Verdict verdict;
  verdict.elements = CountOf(got);
  const ElementLists open = AcceptAll(inputs, got, verdict);
  // Points cost more each, as they share nothing.
  constexpr int64_t kPointCost = 16;
  const bool are_few = CountOf(open) * kPointCost < CountOf(got);
  // One element in 16 or more: then the whole op costs no more than its points.
  const Method method = points_ != nullptr && are_few ? Method::kPoints : Method::kAll;
  NESTOR_RETURN_IF_ERROR(Enclose(inputs, got, open, method, verdict));
  return verdict;
}

absl::StatusOr<Verdict> Judge::DecideSample(const RunInputs& inputs,
                                            absl::Span<const TensorView> got, int64_t sample,
                                            uint64_t seed) const {
  const auto is_small = [&](const TensorView& view) {
    return NumElements(view.shape).value() <= sample;
  };
  if (points_ == nullptr || absl::c_all_of(got, is_small)) return Decide(inputs, got);
  Random random(seed);
  const Slices slices = DrawSlices(op_, separable_, ShapesOf(got), sample, random);
  return slices.empty() ? DecideGroups(inputs, got, sample, random)
                        : DecideSlices(inputs, got, slices, sample, random);
}

// The op's own compiled bounds run on smaller tensors, of the drawn indices alone: for a matmul of
// 2000 x 2000 x 2000 and a sample of 4096, about 64 rows of a and 64 columns of b.
absl::StatusOr<Verdict> Judge::DecideSlices(const RunInputs& inputs,
                                            absl::Span<const TensorView> got, const Slices& slices,
                                            int64_t sample, Random& random) const {
  const SlicedInputs at = SliceInputs(op_, inputs, slices);
  const absl::Span<const Tensor> ends = bounds_->At(at.inputs);
  Verdict verdict;
  ElementLists open;
  for (size_t r = 0; r < got.size(); ++r) {
    const auto axes = SlicedAxes(op_, op_.graph.shape(op_.results[r].node), slices);
    const PointGroups slice = GroupOf(axes, got[r].shape);
    std::vector<int64_t> numbers = NumbersOf(slice, got[r].shape);
    KeepOnly(NumbersOf(DrawGroups(slice.along, sample, random), slice.along), numbers);
    open.push_back(AcceptSome(got[r], r, ends, std::move(numbers), verdict));
  }
  NESTOR_RETURN_IF_ERROR(Enclose(inputs, got, open, Method::kPoints, verdict));
  return verdict;
}

// For ops that no dimension splits: the bounds of the op for some elements, with their indices as
// arguments, so that one compiled program serves all samples.
absl::StatusOr<Verdict> Judge::DecideGroups(const RunInputs& inputs,
                                            absl::Span<const TensorView> got, int64_t sample,
                                            Random& random) const {
  std::vector<PointGroups> groups;
  for (const TensorView& view : got) groups.push_back(DrawGroups(view.shape, sample, random));
  const PointInputs at = AddPoints(points_->op, inputs, groups);
  const absl::Span<const Tensor> ends = points_->bounds().At(at.inputs);
  Verdict verdict;
  ElementLists open;
  for (size_t r = 0; r < got.size(); ++r) {
    std::vector<int64_t> numbers = NumbersOf(groups[r], got[r].shape);
    RemoveRepeated(numbers);
    open.push_back(AcceptSome(got[r], r, ends, std::move(numbers), verdict));
  }
  NESTOR_RETURN_IF_ERROR(Enclose(inputs, got, open, Method::kPoints, verdict));
  return verdict;
}

// Counts those of the elements `numbers` (-1: no element) that lie in their bounds, and
// returns the others.
std::vector<int64_t> Judge::AcceptSome(const TensorView& got, size_t result,
                                       absl::Span<const Tensor> ends, std::vector<int64_t> numbers,
                                       Verdict& verdict) const {
  verdict.elements += static_cast<int64_t>(numbers.size()) - absl::c_count(numbers, -1);
  if (!ends.empty()) {
    const ElementBounds bounds{ends[2 * result].values<double>(),
                               ends[2 * result + 1].values<double>(), numbers.data()};
    numbers = AcceptElements(got, bounds, allowance_.signed_zeros, verdict);
  }
  numbers.erase(std::remove(numbers.begin(), numbers.end(), -1), numbers.end());
  absl::c_sort(numbers);
  return numbers;
}

absl::StatusOr<std::vector<Tensor>> Judge::Expected(const RunInputs& inputs) const {
  return Interpret(program_, inputs);
}

}  // namespace nestor
