// The oracle: runs a loop_ir program at any stage of the pipeline and gives the
// bits that SEMANTICS defines (`native` mode).
//
// Written to be obviously right, not fast: every access is checked, a read of an
// element that was not written is an error, and nothing is cached between
// elements.
#ifndef NESTOR_INTERP_INTERPRETER_H_
#define NESTOR_INTERP_INTERPRETER_H_

#include "uops/cpp20.h"  // first, so that an older standard is named before all else

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "loop_ir/program.h"
#include "tensor/binding.h"
#include "tensor/tensor.h"

namespace nestor {

// Limits of one run. A limit is checked before the memory is taken or the step made.
struct InterpreterOptions {
  // Statements and loop iterations; 0: no limit. Beyond: ResourceExhausted.
  int64_t max_steps = 0;
  // Bytes of outputs and temporaries alive at once; 0: no limit.
  int64_t max_bytes = int64_t{16} << 30;
  // Runs loops marked parallel or vector in a shuffled order drawn from this
  // seed: results must be the same, as such loops carry no dependence.
  absl::optional<uint64_t> shuffle_seed;
};

// Runs `program`; the results are in the order of its signature. Wrong inputs are InvalidArgument
// (see Bind); an exceeded limit is ResourceExhausted; an access out of range, a read of an
// unwritten element or an overflow is an Internal or OutOfRange Status that names the statement.
// Inputs are only read. Thread-safe.
absl::StatusOr<std::vector<Tensor>> Interpret(const loop::Program& program, const RunInputs& inputs,
                                              const InterpreterOptions& options = {});

}  // namespace nestor

#endif  // NESTOR_INTERP_INTERPRETER_H_
