// Masks: which conditions an access needs, and whether it is ever made.
#ifndef NESTOR_FUSION_SIMPLIFY_ACCESS_H_
#define NESTOR_FUSION_SIMPLIFY_ACCESS_H_

#include "loop_ir/program.h"
#include "loop_ir/ranges.h"

namespace nestor::fusion {

// Simplifies the place and the conditions of an access made where `ranges` stands;
// unmasks it where it is always in range. False where the access, a masked one, is
// never made: a load always gives its fill, a store is always dropped.
bool SimplifyAccess(loop::Program& program, loop::Ranges& ranges, loop::Access& access);

}  // namespace nestor::fusion

#endif  // NESTOR_FUSION_SIMPLIFY_ACCESS_H_
