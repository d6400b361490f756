// Whether results are right: inside the proven bounds of docs/bounds.md.
#ifndef NESTOR_CHECK_JUDGE_H_
#define NESTOR_CHECK_JUDGE_H_

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "check/bounds/slices.h"
#include "check/elements.h"
#include "check/random.h"
#include "interp/enclosure.h"
#include "interp/reference.h"
#include "loop_ir/program.h"
#include "tensor/binding.h"
#include "tensor/tensor.h"
#include "uops/op.h"

namespace nestor {

// The bound that a kernel promises instead of the proven one: `times` times the proven bound,
// widened by `ulps` units in the last place of the result's type on either side. Where a zero of
// one sign is right, the other one is, too, unless `signed_zeros`.
struct Allowance {
  double times = 1;
  double ulps = 0;
  bool signed_zeros = false;
};

// How far results lie from the middle of their bounds, in units of the half width: how many in each
// tenth, and how many outside. Elements that compiled bounds accept are counted in units of these,
// which are no wider. An element in a bound of at most two values counts as exact.
struct ErrorHistogram {
  static constexpr int kTenths = 10;
  std::array<int64_t, kTenths + 1> counts{};  // the last: beyond the bound
  int64_t exact = 0;
  double largest = 0;  // in the same units

  void Add(const ErrorHistogram& other);
  int64_t Total() const;
};

struct WrongElement {
  int32_t result = 0;
  int64_t element = 0;  // in row-major order
  Scalar got;
  Enclosure want;
  double units = 0;  // half widths from the middle; infinite where the bound is one value
};

// An element of a compact tensor by its row-major number, and the index of one.
Scalar ElementOf(const TensorView& tensor, int64_t element);
Dims IndexOf(int64_t element, const Dims& shape);

struct Verdict {
  int64_t elements = 0;   // that were judged
  int64_t by_bounds = 0;  // of these, by compiled bounds; the oracle judged the others
  int64_t by_wider = 0;   // right only as computed in types wider than the op's own
  int64_t wrong_count = 0;
  std::vector<WrongElement> wrong;  // the first kMostKept of them
  ErrorHistogram histogram;

  static constexpr size_t kMostKept = 4096;
};

// Accepts the elements that lie in the compiled bounds (fast_judge.h). The oracle decides the rest;
// if these are few, by an op for those elements alone (point_op.h). Results without compiled bounds
// are decided by the oracle as a whole. A kernel may compute in wider types than its op: elements
// outside of the bounds are also held against the bounds for wider types. Not thread-safe; movable.
class Judge {
 public:
  explicit Judge(const Op& op, const Allowance& allowance = {});
  Judge(Judge&&) noexcept;
  ~Judge();

  // `got`: compact, in the order of the op's results. A Status where the oracle has no answer: it
  // does not decide which element is read or written, or the sizes exceed what it runs.
  absl::StatusOr<Verdict> Decide(const RunInputs& inputs, absl::Span<const TensorView> got) const;

  // The same for at most `sample` elements of each result: its corners, elements on its
  // borders, and others drawn by `seed`. They share indices along the axes, so that a value
  // that several of them need is enclosed once. Decides all elements where no op for some of
  // them can be made.
  absl::StatusOr<Verdict> DecideSample(const RunInputs& inputs, absl::Span<const TensorView> got,
                                       int64_t sample, uint64_t seed) const;

  // The op's results, evaluated in order in its own types.
  absl::StatusOr<std::vector<Tensor>> Expected(const RunInputs& inputs) const;

 private:
  class Bounds;
  struct Points;

  ElementLists AcceptAll(const RunInputs& inputs, absl::Span<const TensorView> got,
                         Verdict& verdict) const;
  absl::StatusOr<Verdict> DecideSlices(const RunInputs& inputs, absl::Span<const TensorView> got,
                                       const Slices& slices, int64_t sample, Random& random) const;
  absl::StatusOr<Verdict> DecideGroups(const RunInputs& inputs, absl::Span<const TensorView> got,
                                       int64_t sample, Random& random) const;
  std::vector<int64_t> AcceptSome(const TensorView& got, size_t result,
                                  absl::Span<const Tensor> ends, std::vector<int64_t> numbers,
                                  Verdict& verdict) const;
  // Called with a result, an element of it, and the enclosure that the element must lie in.
  using Decision = absl::FunctionRef<void(size_t, int64_t, const Enclosure&)>;
  enum class Method { kAll, kPoints };  // the op as a whole, or for some elements

  absl::Status Enclose(const RunInputs& inputs, absl::Span<const TensorView> got,
                       const ElementLists& open, Method method, Verdict& verdict) const;
  absl::Status EncloseIn(Precision precision, const RunInputs& inputs,
                         absl::Span<const TensorView> got, const ElementLists& open, Method method,
                         Decision decide) const;
  absl::Status EncloseAll(Precision precision, const RunInputs& inputs,
                          absl::Span<const TensorView> got, const ElementLists& open,
                          Decision decide) const;
  absl::Status EnclosePoints(Precision precision, const RunInputs& inputs,
                             absl::Span<const TensorView> got, const ElementLists& open,
                             Decision decide) const;

  Op op_;
  std::vector<std::string> separable_;  // dimensions (slices.h)
  loop::Program program_;
  Allowance allowance_;
  std::unique_ptr<Bounds> bounds_;
  std::unique_ptr<Points> points_;  // null: there is no op for some elements
};

}  // namespace nestor

#endif  // NESTOR_CHECK_JUDGE_H_
