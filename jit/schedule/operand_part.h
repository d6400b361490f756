// The part of a contraction that is computed from one of its operands alone.
#ifndef NESTOR_JIT_SCHEDULE_OPERAND_PART_H_
#define NESTOR_JIT_SCHEDULE_OPERAND_PART_H_

#include "loop_ir/program.h"

namespace nestor::loop {

// The largest part of `value` that reads only the element of `load`, and elements at a fixed
// distance from it, if there is a single such part, and it fills a lane:
// f32(x[i, k]) of f32(x[i, k]) * w[k, j]. Else `load`.
ValueId PartReading(const Program& program, ValueId value, ValueId load);

// Whether the part is computed from masked elements, rather than being one itself.
bool ComputesOfMasked(const Program& program, ValueId part);

}  // namespace nestor::loop

#endif  // NESTOR_JIT_SCHEDULE_OPERAND_PART_H_
