// An op made ready to run many times, by one of Nestor's engines.
#ifndef NESTOR_EXAMPLES_DIGITS_RUNNER_H_
#define NESTOR_EXAMPLES_DIGITS_RUNNER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "nestor.h"

namespace nestor::digits {

enum class Engine {
  kJit,     // machine code
  kInterp,  // the interpreter, on the fused program: a hundred times slower
};

// Movable. Not for several threads at once.
class Runner {
 public:
  static absl::StatusOr<Runner> Create(const Op& op, Engine engine);

  // The results, in the order of their names.
  absl::StatusOr<std::vector<Tensor>> Run(const RunInputs& inputs);
  absl::Span<const std::string> results() const { return results_; }

 private:
  Runner() = default;

  std::vector<std::string> results_;
  std::unique_ptr<const jit::Executable> executable_;  // null: `program_` is interpreted
  jit::Workspace workspace_;
  loop::Program program_;
};

}  // namespace nestor::digits

#endif  // NESTOR_EXAMPLES_DIGITS_RUNNER_H_
