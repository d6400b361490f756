// A judge of results that is fast because it is compiled: it computes inner bounds of an op
// (inner_bounds.h) in machine code. It never accepts an element that the oracle rejects.
// InterpretReference decides the elements that it does not accept.
//
//   NESTOR_ASSIGN_OR_RETURN(FastJudge judge, FastJudge::Create(op));
//   NESTOR_ASSIGN_OR_RETURN(const FastVerdict verdict, judge.Judge(inputs, {y}));
//   if (!verdict.AllAccepted()) .. InterpretReference(Lower(op), inputs) ..
#ifndef NESTOR_CHECK_BOUNDS_FAST_JUDGE_H_
#define NESTOR_CHECK_BOUNDS_FAST_JUDGE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "jit/executable.h"
#include "tensor/binding.h"
#include "tensor/tensor.h"
#include "uops/op.h"

namespace nestor {

struct FastVerdict {
  struct OfResult {
    int64_t accepted = 0;       // elements
    std::vector<int64_t> open;  // the others, row-major, ascending: the oracle decides
  };
  std::vector<OfResult> results;  // in the op's order

  bool AllAccepted() const;
};

// Whether `got` is a number inside the inner bounds.
bool HoldsInner(double low, double high, double got);

// Serves all sizes. Keeps memory from call to call, so one thread at a time may use it;
// movable.
class FastJudge {
 public:
  // Compiles the bounds. Unimplemented where the op has none (see InnerBounds); the Statuses of
  // jit::Compile.
  static absl::StatusOr<FastJudge> Create(const Op& op);

  // Which elements of `got`, one tensor for each of the op's results, are certainly right at
  // these inputs. InvalidArgument where the inputs do not fit the op (see Bind) or `got` does
  // not fit its results, each by name; the Statuses of Executable::Run.
  absl::StatusOr<FastVerdict> Judge(const RunInputs& inputs, absl::Span<const TensorView> got);

  // The inner bounds at these inputs: low and high of each result in turn. Valid until the next
  // call.
  absl::StatusOr<absl::Span<const Tensor>> Bounds(const RunInputs& inputs);

 private:
  FastJudge(const Op& op, Op bounds, std::unique_ptr<const jit::Executable> executable);
  absl::Status CheckResult(size_t result, const TensorView& got) const;

  struct ResultInfo {
    std::string name;
    DType type;
  };
  std::string name_;                 // the op's
  std::vector<ResultInfo> results_;  // of the op
  std::unique_ptr<const Op> op_;     // that computes the bounds
  std::unique_ptr<const jit::Executable> executable_;
  jit::Workspace workspace_;
  std::vector<Tensor> bounds_;
};

}  // namespace nestor

#endif  // NESTOR_CHECK_BOUNDS_FAST_JUDGE_H_
