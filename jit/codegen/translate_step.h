// Internal to the translation: the function of one step.
#ifndef NESTOR_JIT_CODEGEN_TRANSLATE_STEP_H_
#define NESTOR_JIT_CODEGEN_TRANSLATE_STEP_H_

#include "jit/codegen/lane_builder.h"
#include "jit/codegen/operations.h"
#include "jit/codegen/translate.h"
#include "jit/codegen/translate_accesses.h"
#include "jit/codegen/translate_declarations.h"
#include "jit/codegen/translate_gated_sums.h"
#include "jit/codegen/translate_loops.h"
#include "jit/codegen/translate_statements.h"
#include "jit/codegen/translate_tensors.h"
#include "jit/codegen/translate_values.h"
#include "loop_ir/program.h"

namespace nestor::jit {

class StepTranslator {
 public:
  // Adds slots to `out.table` and statements to `out.statements`. REQUIRES: the arguments outlive
  // this.
  StepTranslator(loop::Program& program, Isa isa, Tensors& tensors, const GatedSums& gated_sums,
                 RegisterNeeds& needs, Translation& out);
  StepTranslator(const StepTranslator&) = delete;  // its parts refer to each other

  // Each appends its operations to the function.
  void Declare(loop::TensorId tensor) { declarations_.Declare(tensor); }
  void Item(const loop::Item& item);
  // REQUIRES: nothing but declarations was translated before.
  void ParallelLoop(const loop::Loop& loop, Step& step) { loops_.ParallelLoop(loop, step); }

  // The whole function, which returns 0. To be called once, at the end.
  OperationList Finish();

 private:
  void Scope(const loop::Scope& scope);

  const GatedSums& gated_sums_;
  LaneBuilder f_;
  AccessTranslator accesses_;
  ValueTranslator values_;
  DeclarationTranslator declarations_;
  StatementTranslator statements_;
  GatedSumTranslator sums_;
  LoopTranslator loops_;
};

}  // namespace nestor::jit

#endif  // NESTOR_JIT_CODEGEN_TRANSLATE_STEP_H_
