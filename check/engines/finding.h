// The finding of a check, and the comparison of results that it begins with.
#ifndef NESTOR_CHECK_ENGINES_FINDING_H_
#define NESTOR_CHECK_ENGINES_FINDING_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "interp/reference.h"
#include "loop_ir/program.h"
#include "tensor/binding.h"
#include "tensor/tensor.h"

namespace nestor {

using Results = absl::StatusOr<std::vector<Tensor>>;
// The text of the fault, if there is one.
using Finding = absl::optional<std::string>;

struct Counts {
  int programs = 0;
  int refused = 0;       // by both: a shape or an index value without a value
  int conservative = 0;  // overflow that only the proof by intervals fears
  int no_gradient = 0;   // refused by name
};

std::string InputsText(const RunInputs& inputs);

// The first difference in bits, all NaNs being equal; if both fail, there is no difference.
Finding Compare(const Results& want, const Results& got, absl::string_view what, Counts& counts);

// Whether a program was refused because something might overflow at some size: the proof is by
// intervals, while the evaluation looks at each point. Such a refusal is no difference.
bool IsFeared(const absl::Status& status);

// Interprets with a limit of steps.
Results Run(const loop::Program& program, const RunInputs& inputs);

// The first result that leaves its proven bounds (interp/reference.h).
Finding CompareWithBounds(const std::vector<ReferenceTensor>& bounds, const Results& got);

// Whether a limit of the engine was exceeded, which says nothing about the program.
bool IsLimit(const Results& results);

}  // namespace nestor

#endif  // NESTOR_CHECK_ENGINES_FINDING_H_
