// The oracle runs on the inputs, and each result is held against its enclosures: those of the op's
// own types, and if it is outside of these, those of wider types, which take longer.
#include "check/inside_bounds.h"

#include "absl/strings/str_cat.h"
#include "interp/reference.h"
#include "loop_ir/lower.h"
#include "uops/invariant.h"

namespace nestor {

namespace {

absl::Status CheckEach(const Op& op, absl::Span<const ReferenceTensor> want,
                       absl::Span<const TensorView> results) {
  for (size_t i = 0; i < want.size(); ++i) {
    const absl::Status status = CheckEnclosed(want[i], results[i]);
    if (!status.ok())
      return absl::Status(status.code(), absl::StrCat(op.results[i].name, ": ", status.message()));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckInsideBounds(const Op& op, const RunInputs& inputs,
                               absl::Span<const TensorView> results) {
  if (results.size() != op.results.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(op.name, " has ", op.results.size(), " results, not ", results.size()));
  }
  const loop::Program program = Lower(op);
  NESTOR_ASSIGN_OR_RETURN(const std::vector<ReferenceTensor> want,
                          InterpretReference(program, inputs));
  const absl::Status status = CheckEach(op, want, results);
  if (status.ok()) return status;
  // An index computed from floats may be decided only in the op's own types.
  const auto wider = InterpretReference(program, inputs, {}, Precision::kAsWrittenOrWider);
  // The message is then about the wider bounds: no allowed evaluation gives such an element.
  return wider.ok() ? CheckEach(op, *wider, results) : status;
}

bool InsideBounds::MatchAndExplain(const std::vector<Tensor>& results, std::ostream* out) const {
  const std::vector<TensorView> views(results.begin(), results.end());
  const absl::Status status = CheckInsideBounds(op_, inputs_, views);
  if (!status.ok() && out != nullptr) *out << status.message();
  return status.ok();
}

}  // namespace nestor
