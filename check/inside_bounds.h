// A matcher for results that somebody has: whether they lie inside the proven bounds.
//
//   EXPECT_THAT(results, nestor::InsideBounds(op, inputs));
//
// For results that are there already, of fixed inputs; Check (check/check.h) draws inputs and runs
// the kernel itself.
#ifndef NESTOR_CHECK_INSIDE_BOUNDS_H_
#define NESTOR_CHECK_INSIDE_BOUNDS_H_

#include "uops/cpp20.h"  // first, so that an older standard is named before all else

#include <ostream>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "tensor/binding.h"
#include "tensor/tensor.h"
#include "uops/op.h"

namespace nestor {

// OK where each element of `results`, which are in the order of the op's, lies inside its enclosure
// (interp/reference.h); as in Check, the enclosure allows a kernel to compute in wider types than
// the op's (Precision::kAsWrittenOrWider). InvalidArgument names the worst element of the first
// result with an element outside, or says what is wrong with the inputs. Thread-safe.
// Runs the interpreter on the whole op: a microsecond or two for each multiply-add. For a kernel
// with many inputs to try, Check is faster by far and draws them as well.
absl::Status CheckInsideBounds(const Op& op, const RunInputs& inputs,
                               absl::Span<const TensorView> results);

// For GoogleTest's EXPECT_THAT, of a std::vector<Tensor>. The tensors that `inputs` views
// must stay valid.
class InsideBounds {
 public:
  using is_gtest_matcher = void;

  InsideBounds(const Op& op, const RunInputs& inputs) : op_(op), inputs_(inputs) {}

  // `out` may be null.
  bool MatchAndExplain(const std::vector<Tensor>& results, std::ostream* out) const;
  void DescribeTo(std::ostream* out) const { *out << "lies inside the bounds of " << op_.name; }
  void DescribeNegationTo(std::ostream* out) const {
    *out << "does not lie inside the bounds of " << op_.name;
  }

 private:
  Op op_;
  RunInputs inputs_;
};

}  // namespace nestor

#endif  // NESTOR_CHECK_INSIDE_BOUNDS_H_
