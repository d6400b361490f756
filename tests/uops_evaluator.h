// A second evaluation of an op, straight from its micro-op graph, with which lowering and the
// interpreter are compared. Test-only. It shares the graph, the binding of symbols and the bodies
// of transcendentals with the rest, and no arithmetic: the arithmetic is written
// once more, differently.
#ifndef NESTOR_TESTS_UOPS_EVALUATOR_H_
#define NESTOR_TESTS_UOPS_EVALUATOR_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "check/engines/program_generator.h"
#include "tensor/binding.h"
#include "tensor/tensor.h"
#include "uops/op.h"

namespace nestor {

// The results of `op`, in order, with the bits that SEMANTICS 1 and 3 define. Wrong inputs
// (see Bind), a shape without a value, and an affine index expression that overflows at some
// point are InvalidArgument.
absl::StatusOr<std::vector<Tensor>> EvaluateGraph(const Op& op, const RunInputs& inputs);

// The first constructor call that gave a node of another value than it was asked for; nullopt where
// there is none, or where these inputs give some shape or index no value. Left out: scatters of
// float sums and products, since a constructor may put the axes of the operand in another order,
// and float reductions over no axes.
absl::optional<std::string> FirstUnsoundCall(const Op& op, absl::Span<const ConstructorCall> calls,
                                             const RunInputs& inputs);

// One scalar op on values of type `operand` (of a select: the branches'); the
// result is of type `target`. REQUIRES: the row takes them.
Bits ApplyScalarOp(ScalarOp op, DType operand, DType target, const Bits* operands);

}  // namespace nestor

#endif  // NESTOR_TESTS_UOPS_EVALUATOR_H_
