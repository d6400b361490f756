// Every access that running a program makes, in order, without computing values: tests of
// statistics and plans replay these. Takes the time of an interpreter.
#ifndef NESTOR_LOOP_IR_ACCESS_WALK_TESTING_H_
#define NESTOR_LOOP_IR_ACCESS_WALK_TESTING_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "loop_ir/sized_program.h"

namespace nestor::loop {

struct WalkedAccess {
  TensorId tensor;
  int64_t element;  // its number, in row-major order of SizedProgram::Extents
  bool reads, writes;
};

// The value that the integer tensor holds at the element.
using GatheredValue = absl::FunctionRef<int64_t(TensorId tensor, int64_t element)>;

// Calls `access` for all accesses as the interpreter makes them (none for a masked one that is
// closed), and `declare` where a scope declares a tensor, or, for a tensor that the program
// declares, before the first item at the top that touches it.
// InvalidArgument where an unmasked access is out of range.
absl::Status WalkAccesses(const SizedProgram& program, GatheredValue gathered,
                          absl::FunctionRef<void(const WalkedAccess&)> access,
                          absl::FunctionRef<void(TensorId)> declare);

}  // namespace nestor::loop

#endif  // NESTOR_LOOP_IR_ACCESS_WALK_TESTING_H_
