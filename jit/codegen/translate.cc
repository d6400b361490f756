// Programs and steps; the function of a step is in translate_step.cc. A step is the code between
// two points at which threads wait for each other: each parallel loop is a step, and the items
// between two of them share one.
//
//   t = 0                      step 0, by one thread; t is a temp of the program, in memory
//   for i in [0, n) parallel   step 1, by all
//   y = sqrt(t)                step 2, by one
//
// The translation is one walk over the tree. What must be known before, it asks of analyses at the
// start (homes, gated sums, constant blocks).
#include "jit/codegen/translate.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "jit/codegen/homes.h"
#include "jit/codegen/translate_gated_sums.h"
#include "jit/codegen/translate_step.h"
#include "jit/codegen/translate_tensors.h"
#include "jit/codegen/translate_values.h"
#include "jit/target/lanes.h"
#include "loop_ir/constant_items.h"
#include "loop_ir/dependence.h"
#include "loop_ir/text.h"
#include "uops/invariant.h"

namespace nestor::jit {
namespace {

using loop::Program;
using loop::Storage;
using loop::TensorId;
using loop::TensorInfo;

constexpr int kNoStep = -1;

const loop::Loop* ParallelLoop(const loop::Item& item) {
  const auto* loop = item.As<loop::Loop>();
  return loop != nullptr && loop->attributes.parallel ? loop : nullptr;
}

// Each parallel loop has a step; the items between two share one, except constant ones.
// Declarations belong to none.
std::vector<int> StepsOfItems(const Program& program, const std::vector<bool>& is_constant) {
  std::vector<int> steps;
  int step = -1;
  bool was_parallel = false, was_constant = false;
  for (size_t i = 0; i < program.body.size(); ++i) {
    if (program.body[i].As<loop::Declaration>() != nullptr) {
      steps.push_back(kNoStep);
      continue;
    }
    const bool parallel = ParallelLoop(program.body[i]) != nullptr;
    if (step < 0 || parallel || was_parallel || is_constant[i] != was_constant) ++step;
    steps.push_back(step);
    was_parallel = parallel;
    was_constant = is_constant[i];
  }
  return steps;
}

absl::Status CheckLanes(const Program& program, Isa isa) {
  absl::Status status;
  VisitItems(program, [&](const loop::Item& item) {
    const auto* loop = item.As<loop::Loop>();
    const int lanes = loop == nullptr ? 0 : loop->attributes.lanes;
    if (lanes == 0 || lanes <= MostLanesOf(program, *loop, isa)) return;
    status = absl::UnimplementedError(
        absl::StrCat("program ", program.name, ": in `", loop::ToText(program, item),
                     "`: so many lanes do not fit in the vectors of ", Name(isa)));
  });
  return status;
}

// The tensors that need memory. Private memory is laid out once for each shape, before the code
// runs; hence its extents must not depend on loop indices.
absl::StatusOr<std::vector<TensorId>> TensorsInMemory(const Program& program,
                                                      const std::vector<Home>& homes) {
  std::vector<TensorId> memory;
  for (size_t i = 0; i < program.tensors.size(); ++i) {
    const TensorInfo& info = program.tensors[i];
    if (homes[i].step < 0) continue;  // unused: passes leave such tensors
    const bool is_private = homes[i].kind == HomeKind::kPrivate;
    if (is_private || homes[i].kind == HomeKind::kMemory)
      memory.push_back(TensorId{static_cast<int32_t>(i)});
    if (!is_private) continue;
    for (IndexId extent : info.shape) {
      if (!program.pool.HasVar(extent)) continue;
      return absl::UnimplementedError(absl::StrCat("program ", program.name, ": an extent of temp ",
                                                   info.name, " depends on a loop index"));
    }
  }
  return memory;
}

// Translates one program, once: opens the function of each step, and closes it where the next item
// belongs to another one.
class Translator {
 public:
  // REQUIRES: the arguments outlive this.
  Translator(Program& program, const TranslateOptions& options, const StepSink* sink,
             std::vector<Home> homes, Translation& out);

  // `steps`, `is_constant`: by item.
  absl::Status Run(const std::vector<int>& steps, const std::vector<bool>& is_constant);

 private:
  // A step's function is open between BeginStep and EndStep.
  void BeginStep(bool parallel, bool constant);
  absl::Status EndStep();
  absl::Status FillBefore(std::vector<TensorId>& touched, bool constant);
  std::vector<TensorId> TakeUndeclared(const loop::Item& item);

  Program& program_;
  const TranslateOptions& options_;
  const StepSink* const sink_;
  Translation& out_;
  Tensors tensors_;
  const GatedSums gated_sums_;
  RegisterNeeds needs_;
  // The program's tensors in registers, and accumulators in memory, before their first use.
  std::vector<TensorId> undeclared_;
  int item_ = 0;  // at the top of the program
  std::unique_ptr<StepTranslator> step_;
};

Translator::Translator(Program& program, const TranslateOptions& options, const StepSink* sink,
                       std::vector<Home> homes, Translation& out)
    : program_(program), options_(options), sink_(sink), out_(out),
      tensors_(program, std::move(homes), options.layouts), gated_sums_(program, tensors_),
      needs_(program) {
  for (TensorId tensor : DeclaredIn(program_.body)) {
    const bool in_memory = tensors_.KindOf(tensor) == HomeKind::kMemory;
    if (!in_memory || program_[tensor].storage == Storage::kAccumulator)
      undeclared_.push_back(tensor);
  }
}

absl::Status Translator::Run(const std::vector<int>& steps, const std::vector<bool>& is_constant) {
  int step = kNoStep;
  for (size_t i = 0; i < program_.body.size(); ++i) {
    if (steps[i] == kNoStep) continue;
    const loop::Item& item = program_.body[i];
    item_ = static_cast<int>(i);
    const loop::Loop* const parallel = ParallelLoop(item);
    std::vector<TensorId> touched = TakeUndeclared(item);
    if (steps[i] != step) {
      if (step != kNoStep) NESTOR_RETURN_IF_ERROR(EndStep());
      if (parallel != nullptr) NESTOR_RETURN_IF_ERROR(FillBefore(touched, is_constant[i]));
      BeginStep(parallel != nullptr, is_constant[i]);
      step = steps[i];
    }
    for (TensorId tensor : touched) step_->Declare(tensor);
    parallel == nullptr ? step_->Item(item) : step_->ParallelLoop(*parallel, out_.steps.back());
  }
  return step == kNoStep ? absl::OkStatus() : EndStep();
}

void Translator::BeginStep(bool parallel, bool constant) {
  Step step{absl::StrCat(program_.name, ".", out_.steps.size()),
            item_,
            parallel,
            constant,
            {},
            {},
            1,
            1,
            OperationList(options_.isa)};
  out_.steps.push_back(std::move(step));
  step_ =
      std::make_unique<StepTranslator>(program_, options_.isa, tensors_, gated_sums_, needs_, out_);
}

absl::Status Translator::EndStep() {
  Step& step = out_.steps.back();
  step.operations = step_->Finish();
  if (sink_ == nullptr) return absl::OkStatus();
  const absl::Status taken = (*sink_)(step);
  step.operations = OperationList(options_.isa);
  return taken;
}

// The program's tensors in registers, and accumulators in memory, that the item is the first to
// touch. Before it the memory may hold anything else: see loop_ir/memory_plan.h.
std::vector<TensorId> Translator::TakeUndeclared(const loop::Item& item) {
  if (undeclared_.empty()) return {};
  const loop::Footprint footprint = FootprintOf(program_, item);
  const auto taken =
      std::stable_partition(undeclared_.begin(), undeclared_.end(),
                            [&](TensorId tensor) { return !footprint.Touches(tensor); });
  const std::vector<TensorId> touched(taken, undeclared_.end());
  undeclared_.erase(taken, undeclared_.end());
  return touched;
}

// Takes the accumulators in memory out of those that a parallel loop touches first, and fills them
// in a step before it, since all threads add to them.
absl::Status Translator::FillBefore(std::vector<TensorId>& touched, bool constant) {
  const auto filled = std::stable_partition(touched.begin(), touched.end(), [&](TensorId tensor) {
    return tensors_.KindOf(tensor) != HomeKind::kMemory;
  });
  if (filled == touched.end()) return absl::OkStatus();
  BeginStep(/*parallel=*/false, constant);
  for (auto tensor = filled; tensor != touched.end(); ++tensor) step_->Declare(*tensor);
  touched.erase(filled, touched.end());
  return EndStep();
}

}  // namespace

absl::StatusOr<Translation> Translate(Program& program, const TranslateOptions& options,
                                      const StepSink* sink) {
  loop::ConstantItems constant{std::vector<bool>(program.body.size(), false), {}};
  if (!options.constant.empty()) constant = ConstantItemsOf(program, options.constant);
  const std::vector<int> steps = StepsOfItems(program, constant.is_constant);
  NESTOR_RETURN_IF_ERROR(CheckLanes(program, options.isa));
  std::vector<Home> homes = FindHomes(program, steps, options.isa);
  Translation out;
  NESTOR_ASSIGN_OR_RETURN(out.memory, TensorsInMemory(program, homes));
  out.kept = std::move(constant.kept);
  Translator translator(program, options, sink, std::move(homes), out);
  NESTOR_RETURN_IF_ERROR(translator.Run(steps, constant.is_constant));
  return out;
}

}  // namespace nestor::jit
