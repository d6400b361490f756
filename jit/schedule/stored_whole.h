// Temporaries that hold a value at every place before they are read.
#ifndef NESTOR_JIT_SCHEDULE_STORED_WHOLE_H_
#define NESTOR_JIT_SCHEDULE_STORED_WHOLE_H_

#include "absl/container/flat_hash_set.h"
#include "loop_ir/program.h"

namespace nestor::loop {

// The temporaries of which one nest, in the scope that declares them, stores each element once. Code
// may read more of them than the program does, as it may of inputs; what other temporaries hold
// where nothing was stored has no value.
absl::flat_hash_set<TensorId> StoredWhole(const Program& program);

// Whether each element of the tensor has a value: it is an input, or one of these.
bool HasAllValues(const Program& program, const absl::flat_hash_set<TensorId>& stored_whole,
                  TensorId tensor);

}  // namespace nestor::loop

#endif  // NESTOR_JIT_SCHEDULE_STORED_WHOLE_H_
