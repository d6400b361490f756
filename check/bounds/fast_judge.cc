// The executable has code for compact inputs; any other layout would be compiled when it first
// occurs, which takes longer than a copy. For the same reason no size has code of its own.
//
// An element is compared with its bounds as an integer that orders as the f64 does, -0 below
// +0: the bits of an f64, with those below the sign flipped where it is negative.
#include "check/bounds/fast_judge.h"

#include <cmath>
#include <utility>

#include "absl/base/casts.h"
#include "absl/strings/str_cat.h"
#include "check/bounds/inner_bounds.h"
#include "check/elements.h"
#include "jit/compile.h"
#include "jit/runtime/executor.h"
#include "loop_ir/lower.h"
#include "uops/invariant.h"

namespace nestor {
namespace {

// REQUIRES: not NaN.
// A negative number's bits grow with its magnitude; flipped, they fall.
int64_t Rank(double x) {
  const int64_t bits = absl::bit_cast<int64_t>(x);
  return bits < 0 ? bits ^ INT64_MAX : bits;
}

bool Holds(double low, double high, double x) {
  return std::isfinite(low) && std::isfinite(high) && std::isfinite(x) && Rank(low) <= Rank(x) &&
         Rank(x) <= Rank(high);
}

// Whatever lies outside of these inner bounds is open, not wrong: the oracle's own bounds are
// wider.
template <class T>
FastVerdict::OfResult Compare(const TensorView& got, absl::Span<const double> low,
                              absl::Span<const double> high) {
  FastVerdict::OfResult verdict;
  Dims index(got.shape.size(), 0);
  const T* const elements = static_cast<const T*>(got.data);
  const bool contiguous = IsContiguous(got);
  for (size_t i = 0; i < low.size(); ++i) {
    const int64_t offset = contiguous ? static_cast<int64_t>(i) : ElementOffset(got, index);
    if (Holds(low[i], high[i], AsDouble(elements[offset]))) ++verdict.accepted;
    else verdict.open.push_back(static_cast<int64_t>(i));
    if (!contiguous) NextIndex(got.shape, absl::MakeSpan(index));
  }
  return verdict;
}

// The inputs in the op's order; those that are not compact are copied into `copies`.
absl::StatusOr<std::vector<TensorView>> CompactInputs(const Op& op, const RunInputs& inputs,
                                                      std::vector<Tensor>& copies) {
  std::vector<TensorView> compact;
  for (const Argument& arg : op.args) {
    compact.push_back(inputs.tensors.at(arg.name));
    if (arg.shape_only || IsContiguous(compact.back())) continue;
    NESTOR_ASSIGN_OR_RETURN(Tensor copy, Tensor::FromView(compact.back()));
    compact.back() = copy.view();
    copies.push_back(std::move(copy));
  }
  return compact;
}

}  // namespace

bool HoldsInner(double low, double high, double got) { return Holds(low, high, got); }

bool FastVerdict::AllAccepted() const {
  for (const OfResult& result : results) {
    if (!result.open.empty()) return false;
  }
  return true;
}

// Two f64 tensors for each result, kept from call to call.
FastJudge::FastJudge(const Op& op, Op bounds, std::unique_ptr<const jit::Executable> executable)
    : name_(op.name), op_(std::make_unique<const Op>(std::move(bounds))),
      executable_(std::move(executable)), bounds_(2 * op.results.size()) {
  for (const Result& result : op.results)
    results_.push_back({result.name, op.graph.type(result.node)});
}

absl::StatusOr<FastJudge> FastJudge::Create(const Op& op) {
  NESTOR_ASSIGN_OR_RETURN(Op bounds, InnerBounds(op));
  jit::CompileOptions options;
  options.executor = &jit::InlineExecutor();
  // One general code: no trial waits for the compiler.
  options.size_classes.variants = 0;
  NESTOR_ASSIGN_OR_RETURN(auto executable, jit::Compile(Lower(bounds), options));
  return FastJudge(op, std::move(bounds), std::move(executable));
}

// Runs the bounds' op as compiled code; the tensors that it writes are kept from call to call.
absl::StatusOr<absl::Span<const Tensor>> FastJudge::Bounds(const RunInputs& inputs) {
  NESTOR_ASSIGN_OR_RETURN(const Binding binding, Bind(SignatureOf(*op_), inputs));
  std::vector<Tensor> copies;
  NESTOR_ASSIGN_OR_RETURN(const std::vector<TensorView> arguments,
                          CompactInputs(*op_, inputs, copies));
  std::vector<TensorView> outputs;
  std::vector<Scalar> params;
  for (const ParamInfo& param : op_->params) params.push_back(binding.params.at(param.name));
  NESTOR_ASSIGN_OR_RETURN(const std::vector<Dims> shapes,
                          executable_->OutputShapes(arguments, params, &inputs.dims));
  for (size_t i = 0; i < shapes.size(); ++i) {
    if (bounds_[i].type() != DType::kF64 || bounds_[i].shape() != shapes[i]) {
      NESTOR_ASSIGN_OR_RETURN(bounds_[i], Tensor::Create(DType::kF64, shapes[i]));
    }
    outputs.push_back(bounds_[i].view());
  }
  NESTOR_RETURN_IF_ERROR(executable_->Run({arguments, outputs, params, &inputs.dims}, &workspace_));
  return absl::MakeConstSpan(bounds_);
}

absl::Status FastJudge::CheckResult(size_t result, const TensorView& got) const {
  const auto& [name, type] = results_[result];
  const Dims& shape = bounds_[2 * result].shape();
  if (got.type != type || got.shape != shape) {
    return absl::InvalidArgumentError(absl::StrCat("op ", name_, ": result ", name, " is ",
                                                   Name(got.type), ShapeText(got.shape), ", want ",
                                                   Name(type), ShapeText(shape)));
  }
  const absl::Status view = CheckView(got);
  if (view.ok()) return view;
  return absl::InvalidArgumentError(
      absl::StrCat("op ", name_, ": result ", name, ": ", view.message()));
}

absl::StatusOr<FastVerdict> FastJudge::Judge(const RunInputs& inputs,
                                             absl::Span<const TensorView> got) {
  if (got.size() != results_.size()) {
    const char* const noun = results_.size() == 1 ? " result" : " results";
    return absl::InvalidArgumentError(
        absl::StrCat("op ", name_, " has ", results_.size(), noun, ", not ", got.size()));
  }
  NESTOR_RETURN_IF_ERROR(Bounds(inputs).status());
  FastVerdict verdict;
  for (size_t i = 0; i < got.size(); ++i) {
    NESTOR_RETURN_IF_ERROR(CheckResult(i, got[i]));
    verdict.results.push_back(VisitType(got[i].type, [&](auto zero) {
      return Compare<decltype(zero)>(got[i], bounds_[2 * i].values<double>(),
                                     bounds_[2 * i + 1].values<double>());
    }));
  }
  return verdict;
}

}  // namespace nestor
