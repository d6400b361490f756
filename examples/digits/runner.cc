// One program serves all sizes: the last batch of an epoch, which is smaller than the
// others, runs on the same code.
#include "examples/digits/runner.h"

#include "uops/invariant.h"

namespace nestor::digits {

absl::StatusOr<Runner> Runner::Create(const Op& op, Engine engine) {
  Runner runner;
  for (const Result& result : op.results) runner.results_.push_back(result.name);
  if (engine == Engine::kJit) {
    NESTOR_ASSIGN_OR_RETURN(runner.executable_, Compile(op));
  } else {
    runner.program_ = Lower(op);
    NESTOR_RETURN_IF_ERROR(fusion::Pipeline::Default().Run(runner.program_));
  }
  return runner;
}

absl::StatusOr<std::vector<Tensor>> Runner::Run(const RunInputs& inputs) {
  if (executable_ == nullptr) return Interpret(program_, inputs);
  return nestor::Run(*executable_, inputs, &workspace_);
}

}  // namespace nestor::digits
