// Results are compared bit by bit, and the first difference is described with its place.
#include "check/engines/finding.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "interp/interpreter.h"

namespace nestor {

std::string InputsText(const RunInputs& inputs) {
  std::string text;
  for (const auto& [name, extent] : inputs.dims) absl::StrAppend(&text, name, " = ", extent, "\n");
  for (const auto& [name, value] : inputs.params)
    absl::StrAppend(&text, name, " = ", LiteralText(value), "\n");
  for (const auto& [name, view] : inputs.tensors) {
    absl::StrAppend(&text, name, ": ", Name(view.type), ShapeText(view.shape), " = ",
                    ToString(view), "\n");
  }
  return text;
}

bool IsFeared(const absl::Status& status) {
  return absl::StrContains(status.message(), "overflows or divides by zero for these sizes");
}

// Two refusals agree. A refusal where the interpreter runs is a finding unless it is one that
// proofs may make out of caution, which is counted.
Finding Compare(const Results& want, const Results& got, absl::string_view what, Counts& counts) {
  if (!want.ok() && !got.ok()) return absl::nullopt;
  if (!got.ok()) {
    if (!IsFeared(got.status())) return absl::StrCat(what, " refuses: ", got.status().ToString());
    ++counts.conservative;
    return absl::nullopt;
  }
  if (!want.ok()) return absl::StrCat(what, " runs, but: ", want.status().ToString());
  if (want->size() != got->size()) return absl::StrCat(what, ": ", got->size(), " results");
  for (size_t i = 0; i < want->size(); ++i) {
    const auto difference = FirstDifference((*got)[i], (*want)[i]);
    if (difference) return absl::StrCat(what, ": result ", i, " ", *difference);
  }
  return absl::nullopt;
}

Results Run(const loop::Program& program, const RunInputs& inputs) {
  InterpreterOptions options;
  options.max_steps = 10000000;
  return Interpret(program, inputs, options);
}

Finding CompareWithBounds(const std::vector<ReferenceTensor>& bounds, const Results& got) {
  if (!got.ok()) return absl::nullopt;
  for (size_t i = 0; i < got->size(); ++i) {
    const absl::Status status = CheckEnclosed(bounds[i], (*got)[i].view());
    if (!status.ok()) return absl::StrCat("result ", i, " leaves its bounds: ", status.message());
  }
  return absl::nullopt;
}

bool IsLimit(const Results& results) {
  return results.status().code() == absl::StatusCode::kResourceExhausted;
}

}  // namespace nestor
