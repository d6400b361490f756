// What it costs to compute the value of a temporary again where it is read.
#ifndef NESTOR_FUSION_RECOMPUTATION_H_
#define NESTOR_FUSION_RECOMPUTATION_H_

#include "fusion/composition.h"
#include "loop_ir/program.h"

namespace nestor::loop {

// Whether it is a few ops on one tensor of the temporary's rank and others of lower rank: the read
// of that tensor takes the place of the read of the temporary.
bool IsCheap(const Program& program, const Definition& definition);

// Whether the value costs less to compute than to store and to read, however often it is read:
//  - ops on tensors of fewer dimensions, or on none, such as a comparison of indices;
//  - a few ops on elements that are narrower than the result: to read those takes less memory;
//  - one op on elements that the statement, which reads the temporary by `access`, reads anyway.
bool CostsLessThanRead(const Program& program, const Definition& definition, const Access& access,
                       const Statement& statement);

}  // namespace nestor::loop

#endif  // NESTOR_FUSION_RECOMPUTATION_H_
