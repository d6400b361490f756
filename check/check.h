// Check: is this kernel right? Runs somebody's kernel for an op on many drawn cases, and
// holds each result against the op's proven bounds (docs/bounds.md).
//
//   const auto report = nestor::Check("matmul", [](const nestor::KernelCall& k) {
//     cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, k.dim("M"), k.dim("N"), k.dim("K"), 1,
//                 k.input<float>("a"), k.dim("K"), k.input<float>("b"), k.dim("N"), 0, k.output<float>("c"),
//                 k.dim("N"));
//   });
//   EXPECT_THAT(report, nestor::IsRight());  // prints the whole report when it is not
//
// Besides wrong elements it notices elements that are not written, a write or read outside of a
// tensor, a changed input, a result that depends on what the output held before or differs from run
// to run, a changed MXCSR or x87 control word; with Isolated() also a crash and a hang.
// docs/check.md tells more.
#ifndef NESTOR_CHECK_CHECK_H_
#define NESTOR_CHECK_CHECK_H_

#include "uops/cpp20.h"  // first, so that an older standard is named before all else

#include <cstdint>
#include <functional>
#include <ostream>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "check/checked_op.h"
#include "check/judge.h"
#include "check/kernel_call.h"
#include "check/report.h"
#include "check/sizes.h"
#include "check/values.h"
#include "uops/dtype.h"

namespace nestor {

// How the tensors that a kernel is given may lie in memory. Each allows what those before it allow;
// the kernel learns of it by KernelCall::stride.
enum class Layouts {
  kContiguous,   // row-major, without gaps
  kRowsStrided,  // or with gaps between rows
  kTransposed,   // or the first axis fastest
  kAny,          // or any strides: every second element, negative ones
};

// The kernel's conditions, and how long to search. Each setter returns the options, so that they
// can be chained: CheckOptions().Where("K % 8 == 0", "$stride <= 2").Isolated(). Setters check
// nothing: CheckKernel returns an InvalidArgument that names the one that is wrong.
struct CheckOptions {
  // Conditions on dimensions and integer $params, in the notation's words; all must hold. "N == 64"
  // fixes a size. They add up over several calls.
  template <class... Text>
  CheckOptions& Where(const Text&... text) {
    (conditions.emplace_back(text), ...);
    return *this;
  }
  // A $param that is no integer has this value in all trials; without it, values are drawn. The
  // name may lack its "$"; the value must lie in the $param's range.
  CheckOptions& Param(const std::string& name, double value) {
    params.emplace_back(name, value);
    return *this;
  }
  // The types of arguments that take any type. By default f32. Several take turns from trial to
  // trial; an op without type variables has its own types whatever is given here.
  CheckOptions& Types(std::vector<DType> value) { return Set(types, std::move(value)); }
  // How many axes an argument has whose shape holds a pack; by default a pack is one. Rank("x", 4)
  // of x: f32[..N, C] makes ..N three dimensions: N0, N1 and N2.
  CheckOptions& Rank(const std::string& argument, int rank) {
    ranks.emplace_back(argument, rank);
    return *this;
  }
  // What the kernel can read and write; by default compact tensors. Some trials have them compact
  // all the same, as kernels often treat those apart.
  CheckOptions& Layouts(nestor::Layouts value) { return Set(layouts, value); }
  // Bytes that each buffer's first element is aligned to: a power of two up to 4096. The default is
  // the alignment of the element type.
  CheckOptions& Alignment(int bytes) { return Set(alignment, bytes); }
  // How large the cases may be (check/sizes.h). Nine of ten are far smaller.
  CheckOptions& Sizes(const SizeLimits& value) { return Set(sizes, value); }
  // Which values are drawn (check/values.h): a range for floats, and whether there are infinities,
  // NaN and indices out of range.
  CheckOptions& Values(const ValueOptions& value) { return Set(values, value); }
  // At most this many elements of each result are judged: corners, borders, and others drawn. For
  // large sizes, where the kernel is fast and the oracle is not. 0: all.
  CheckOptions& Sample(int64_t elements) { return Set(sample, elements); }
  // The result may reuse the argument's memory, and does in some trials where their shapes are the
  // same. Their types must be.
  CheckOptions& InPlace(const std::string& argument, const std::string& result) {
    in_place.emplace_back(argument, result);
    return *this;
  }
  // The search ends at whichever limit is reached first; without limits, after 1000 trials
  // or 10 seconds.
  CheckOptions& Trials(int64_t value) { return Set(trials, value); }
  CheckOptions& For(absl::Duration value) { return Set(duration, value); }
  // Trial i follows from seed + i alone: the same seed gives the same search.
  CheckOptions& Seed(uint64_t value) { return Set(seed, value); }
  // The kernel promises less than the proven bound: that many units in the last place, or
  // times the bound. The report says how much of the bound was needed.
  CheckOptions& Ulps(double value) { return Set(allowance.ulps, value); }
  CheckOptions& Bound(double times) { return Set(allowance.times, times); }
  // 0 is wrong where -0 is right, and the other way round; by default both are right.
  CheckOptions& SignedZeros(bool value = true) { return Set(allowance.signed_zeros, value); }
  // Trials run in processes of their own, so that a crash or a hang is a finding. A kernel that was
  // run before by this process may not run in a copy of it, if it has threads.
  CheckOptions& Isolated(bool value = true) { return Set(isolated, value); }
  // How long the kernel may take in one trial, when isolated; judging its results does not count.
  CheckOptions& Patience(absl::Duration value) { return Set(patience, value); }
  // Called a few times a second, on the caller's thread, with the number of trials so far.
  CheckOptions& OnProgress(std::function<void(int64_t)> value) {
    return Set(on_progress, std::move(value));
  }

  // What the setters above set, under the same names.
  std::vector<std::string> conditions;
  std::vector<std::pair<std::string, double>> params;
  std::vector<DType> types = {DType::kF32};
  std::vector<std::pair<std::string, int>> ranks;
  nestor::Layouts layouts = nestor::Layouts::kContiguous;
  int alignment = 0;
  SizeLimits sizes;
  ValueOptions values;
  int64_t sample = 0;
  std::vector<std::pair<std::string, std::string>> in_place;
  absl::optional<int64_t> trials;
  absl::optional<absl::Duration> duration;
  uint64_t seed = 1;
  Allowance allowance;
  bool isolated = false;
  absl::Duration patience = absl::Seconds(10);
  std::function<void(int64_t)> on_progress;
  // A report's instruction for reproducing a trial; "$SEED" is its seed.
  std::string reproduce = "NESTOR_CHECK_SEED=$SEED NESTOR_CHECK_TRIALS=1 and the same program";

 private:
  template <class T, class Value>
  CheckOptions& Set(T& member, Value value) {
    member = std::move(value);
    return *this;
  }
};

// Runs trials until one finds a fault of the kernel, or the limits are reached. A finding is shrunk
// to the smallest case that shows it. The environment's NESTOR_CHECK_SEED, NESTOR_CHECK_TRIALS and
// NESTOR_CHECK_FOR ("10s") override the options. InvalidArgument: the op, a name, a condition or an
// option is wrong, no sizes meet the conditions, or the kernel asked its KernelCall for something
// that the op does not have. A wrong kernel is no error: the Status is OK, and the report says what
// is wrong. Not thread-safe. `op` is made from the name of a macro op, the text of an op, or an Op.
absl::StatusOr<CheckReport> CheckKernel(const CheckedOp& op, const Kernel& kernel,
                                        const CheckOptions& options = {});

// The same for a callable that takes a KernelCall and returns an absl::Status or nothing. One that
// returns nothing does all sizes; it may throw to say that it failed.
template <class Callable>
absl::StatusOr<CheckReport> Check(const CheckedOp& op, Callable kernel,
                                  const CheckOptions& options = {}) {
  if constexpr (std::is_void_v<std::invoke_result_t<Callable&, const KernelCall&>>) {
    return CheckKernel(
        op,
        [kernel = std::move(kernel)](const KernelCall& call) mutable {
          kernel(call);
          return absl::OkStatus();
        },
        options);
  } else {
    return CheckKernel(op, std::move(kernel), options);
  }
}

// A matcher for GoogleTest's EXPECT_THAT; the report is its explanation. It matches no error, and
// no report of which no trial was judged. This header needs no GoogleTest: is_gtest_matcher is all
// that it asks of a matcher.
class IsRightMatcher {
 public:
  using is_gtest_matcher = void;

  // `out` may be null.
  bool MatchAndExplain(const absl::StatusOr<CheckReport>& report, std::ostream* out) const {
    if (report.ok() && report->IsRight()) return true;
    if (out != nullptr)
      *out << "\n" << (report.ok() ? report->ToString() : report.status().ToString());
    return false;
  }
  void DescribeTo(std::ostream* out) const { *out << "is a right kernel's report"; }
  void DescribeNegationTo(std::ostream* out) const { *out << "is not a right kernel's report"; }
};
inline IsRightMatcher IsRight() { return {}; }
// For GoogleTest's "Actual:", which precedes the matcher's explanation.
inline void PrintTo(const absl::StatusOr<CheckReport>& report, std::ostream* out) {
  *out << (report.ok() ? "a report" : "an error");
}

}  // namespace nestor

#endif  // NESTOR_CHECK_CHECK_H_
