// From a scheduled program to low-level operations. The program says which loops run in lanes, in
// how many, which accesses must be checked, what streams and what is prefetched. This translation
// decides how: which tensors live in registers, how many vectors of a loop run side by side, and
// how addresses run.
#ifndef NESTOR_JIT_CODEGEN_TRANSLATE_H_
#define NESTOR_JIT_CODEGEN_TRANSLATE_H_

#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "jit/codegen/operations.h"
#include "jit/codegen/table.h"
#include "loop_ir/program.h"

namespace nestor::jit {

// A function of the kernel. Functions run in order. A parallel one runs the iterations
// of one loop: ParameterG 0 and 1 are the first and the end of some of them.
// ParameterG 2 is the private memory of the worker. Returns 0, or 1 + the number of
// the statement whose access was out of range.
struct Step {
  std::string name;    // "softmax.1"
  int first_item = 0;  // the first top-level item of the program that it runs or fills memory for
  bool parallel = false;
  // Its results depend on constant inputs (TranslateOptions::constant) alone.
  bool constant = false;
  Operand begin, end;  // of a parallel loop: immediates or table slots
  int64_t stride = 1;  // its step
  // Iterations may be cut only at multiples of this (an unrolled vector), counted from
  // the first.
  int64_t granularity = 1;
  OperationList operations;
};

struct Translation {
  Table table;
  std::vector<Step> steps;
  std::vector<loop::Statement> statements;  // by number, for messages
  // Temps that need memory: of the program, and of the worker that runs their scope.
  std::vector<loop::TensorId> memory;
  // Temps that constant steps write for other steps.
  std::vector<loop::TensorId> kept;
};

struct TranslateOptions {
  Isa isa = kLeastIsa;
  // By argument: inputs, then outputs. Empty: all compact.
  std::vector<Layout> layouts;
  // By input: whether runs after the first one find the same elements there, so that results that
  // depend on these inputs alone are kept from run to run. Empty: none.
  std::vector<bool> constant;
};

// Takes a step as soon as it is complete; its operations are freed afterwards, so that those of a
// long program are never in memory all at once.
using StepSink = absl::FunctionRef<absl::Status(Step& step)>;

// Unimplemented, naming it, for what cannot be translated (more lanes than the vectors of the
// instruction set have, say), or the Status that `sink` returns for a step.
// Adds expressions to the program's pool and changes nothing else. REQUIRES: Verify accepts
// the program.
absl::StatusOr<Translation> Translate(loop::Program& program, const TranslateOptions& options,
                                      const StepSink* sink = nullptr);

}  // namespace nestor::jit

#endif  // NESTOR_JIT_CODEGEN_TRANSLATE_H_
