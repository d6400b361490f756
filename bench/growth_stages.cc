// The stages share their outputs through one object, which lives as long as any of them.
#include "bench/growth_stages.h"

#include <memory>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/types/optional.h"
#include "jit/compile.h"
#include "jit/disassemble.h"
#include "jit/runtime/executor.h"
#include "nestor.h"
#include "uops/invariant.h"

namespace nestor::bench {
namespace {

constexpr int64_t kExtent = 8;

class Way {
 public:
  Way(std::string text, const GrowthOptions& options) : text_(std::move(text)), options_(options) {
    compile_.executor = &jit::InlineExecutor();
  }

  absl::Status ParseText() {
    NESTOR_ASSIGN_OR_RETURN(op_, Parse(text_));
    return absl::OkStatus();
  }
  absl::Status LowerOp() {
    program_ = Lower(*op_);
    return absl::OkStatus();
  }
  absl::Status Fuse() { return RunPasses(fusion::Pipeline::Default()); }
  absl::Status Schedule() {
    NESTOR_ASSIGN_OR_RETURN(const jit::Isa isa, jit::BestIsa());
    return RunPasses(jit::SchedulePipeline(compile_, isa));
  }
  absl::Status GenerateCode() {
    NESTOR_ASSIGN_OR_RETURN(executable_, jit::CompileScheduled(std::move(program_), compile_));
    return absl::OkStatus();
  }
  absl::Status RunCode() {
    NESTOR_ASSIGN_OR_RETURN(const std::vector<Tensor> tensors, MakeInputs());
    RunInputs inputs;
    for (size_t i = 0; i < tensors.size(); ++i)
      inputs.tensors.emplace(op_->args[i].name, tensors[i].view());
    return Run(*executable_, inputs).status();
  }
  absl::Status List() {
    const std::string listing = jit::Disassemble(executable_->kernel());
    return listing.empty() ? absl::InternalError("an empty listing") : absl::OkStatus();
  }
  absl::Status Differentiate() { return Gradient(*op_).status(); }

 private:
  absl::Status RunPasses(fusion::Pipeline pipeline) {
    for (const fusion::Pass& pass : std::vector<fusion::Pass>(pipeline.passes())) {
      if (!absl::c_linear_search(options_.without, pass.name)) continue;
      NESTOR_RETURN_IF_ERROR(pipeline.Disable(pass.name));
    }
    return pipeline.Run(program_);
  }

  absl::StatusOr<std::vector<Tensor>> MakeInputs() const {
    std::vector<Tensor> tensors;
    for (const Argument& argument : op_->args) {
      NESTOR_ASSIGN_OR_RETURN(Tensor tensor,
                              Tensor::Create(argument.type, Dims(argument.shape.size(), kExtent)));
      tensors.push_back(std::move(tensor));
    }
    return tensors;
  }

  const std::string text_;
  const GrowthOptions options_;
  jit::CompileOptions compile_;
  absl::optional<Op> op_;
  loop::Program program_;
  std::unique_ptr<const jit::Executable> executable_;
};

GrowthStage StageOf(const std::shared_ptr<Way>& way, std::string name, absl::Status (Way::*run)()) {
  return {std::move(name), [way, run] { return ((*way).*run)(); }};
}

}  // namespace

std::vector<GrowthStage> StagesToResults(const std::string& text, const GrowthOptions& options) {
  const auto way = std::make_shared<Way>(text, options);
  return {
      StageOf(way, "parse", &Way::ParseText),
      StageOf(way, "lower", &Way::LowerOp),
      StageOf(way, "fusion", &Way::Fuse),
      StageOf(way, "schedule", &Way::Schedule),
      StageOf(way, "codegen", &Way::GenerateCode),
      StageOf(way, "run", &Way::RunCode),
      StageOf(way, "asm", &Way::List),
  };
}

std::vector<GrowthStage> StagesToGradient(const std::string& text) {
  const auto way = std::make_shared<Way>(text, GrowthOptions());
  return {StageOf(way, "parse", &Way::ParseText), StageOf(way, "gradient", &Way::Differentiate)};
}

}  // namespace nestor::bench
