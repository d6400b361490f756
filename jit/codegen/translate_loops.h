// Internal to the translation: loops, one iteration after the other or in lanes.
#ifndef NESTOR_JIT_CODEGEN_TRANSLATE_LOOPS_H_
#define NESTOR_JIT_CODEGEN_TRANSLATE_LOOPS_H_

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "jit/codegen/lane_builder.h"
#include "jit/codegen/operations.h"
#include "jit/codegen/translate.h"
#include "jit/codegen/translate_accesses.h"
#include "loop_ir/program.h"

namespace nestor::jit {

class LoopTranslator {
 public:
  // Translates a loop's body at the place where it runs; it may call Loop for the loops inside.
  using Body = std::function<void(const loop::Scope& body)>;

  // REQUIRES: the arguments, and what `body` refers to, outlive this.
  LoopTranslator(loop::Program& program, LaneBuilder& f, AccessTranslator& accesses, Body body)
      : program_(program), f_(f), accesses_(accesses), body_(std::move(body)) {}

  void Loop(const loop::Loop& loop);
  // A loop whose iterations threads share: the function runs some of them. Sets the bounds of
  // `step`, and how it may be cut.
  void ParallelLoop(const loop::Loop& loop, Step& step);

 private:
  std::vector<const loop::Loop*> CollapsedChain(const loop::Loop& outermost) const;
  void CollapsedLoops(const std::vector<const loop::Loop*>& chain, Operand begin, Operand end);
  Operand CountOf(const loop::Loop& loop);
  void LoopItself(const loop::Loop& loop);
  void Guarded(const loop::Loop& loop, absl::FunctionRef<void()> run);
  // Loops from `begin` to `end`, which are their bounds or those of a piece.
  void ScalarLoop(const loop::Loop& loop, Operand begin, Operand end);
  void Choice(const loop::Loop& loop, Operand runs);
  void UnrolledLoop(const loop::Loop& loop);
  void VectorLoop(const loop::Loop& loop, Operand begin, Operand end);
  void InterleavedVectors(const loop::Loop& loop, Operand begin, Operand end);
  void VectorGroups(const loop::Loop& loop, Operand index, Operand end, int interleave);
  bool RunsAlike(const loop::Loop& loop, Operand begin, Operand end);
  void VectorTail(const loop::Loop& loop, Operand index, Operand end, Operand left);
  void UnrolledVectors(const loop::Loop& loop, Operand begin, Operand end);
  Operand LanesLeft(const loop::Loop& loop, Operand begin, Operand end, int64_t offset);
  // The loop's body for the lanes from index + offset on.
  void Group(const loop::Loop& loop, Operand index, int64_t offset);
  void BodyAndPrefetches(const loop::Loop& loop);

  loop::Program& program_;
  LaneBuilder& f_;
  AccessTranslator& accesses_;
  Body body_;
  IndexId guard_;  // the condition that a surrounding loop has tested
};

}  // namespace nestor::jit

#endif  // NESTOR_JIT_CODEGEN_TRANSLATE_LOOPS_H_
