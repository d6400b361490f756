// Scalar rewrites that keep every bit.
#ifndef NESTOR_FUSION_SIMPLIFY_VALUES_H_
#define NESTOR_FUSION_SIMPLIFY_VALUES_H_

#include "absl/types/optional.h"
#include "loop_ir/program.h"
#include "loop_ir/ranges.h"

namespace nestor::loop {

// A simpler value than `id`, the application of an op, with the same bits at the place where
// `ranges` is; nullopt where no rule applies. Operands are assumed to be simplified. It may read
// less than `id` does.
absl::optional<ValueId> SimplifyApplication(Program& program, Ranges& ranges, ValueId id);

}  // namespace nestor::loop

#endif  // NESTOR_FUSION_SIMPLIFY_VALUES_H_
