// Programs whose tensors are written, read, and written again.
#ifndef NESTOR_CHECK_ENGINES_SHARED_STORAGE_H_
#define NESTOR_CHECK_ENGINES_SHARED_STORAGE_H_

#include "check/random.h"
#include "loop_ir/program.h"

namespace nestor {

// The same computation in fewer tensors: temporaries of one type and shape with disjoint live
// ranges share one tensor, as they may share memory, or use an output before it is written; and a
// block that reads a temporary for the last time may write its result in its place.
//
// Programs lowered from the notation finish writing a tensor before anything reads it, but the loop
// IR has no such rule: these programs test passes without it. A temporary that index expressions
// gather from is left.
loop::Program WithSharedStorage(loop::Program program, Random& random);

}  // namespace nestor

#endif  // NESTOR_CHECK_ENGINES_SHARED_STORAGE_H_
