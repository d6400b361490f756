// Programs of which tensors are written, read, and written again.
#ifndef NESTOR_CHECK_ENGINES_SHARED_STORAGE_H_
#define NESTOR_CHECK_ENGINES_SHARED_STORAGE_H_

#include "check/random.h"
#include "loop_ir/program.h"

namespace nestor {

// The same computation in fewer tensors: temporaries of one type and shape that are not in use
// at the same time share one, as their memory may, or take an output's before it is written;
// and a block that reads a temporary for the last time may write its result in its place.
//
// What is lowered from the notation writes a tensor for the last time before anything reads it,
// but the loop IR has no such rule: this is where passes see that it has not. A temporary that
// index expressions gather from is left.
loop::Program WithSharedStorage(loop::Program program, Random& random);

}  // namespace nestor

#endif  // NESTOR_CHECK_ENGINES_SHARED_STORAGE_H_
