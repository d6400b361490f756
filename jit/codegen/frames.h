// A function of a kernel under construction: a tree of frames, each with a place for addresses and
// indices, which are computed once on entry. The order of operations is that of the calls, but for
// these.
#ifndef NESTOR_JIT_CODEGEN_FRAMES_H_
#define NESTOR_JIT_CODEGEN_FRAMES_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "jit/codegen/operations.h"
#include "jit/codegen/value_table.h"

namespace nestor::jit {

inline Operand Immediate(int64_t value) { return Operand::Immediate(value); }

class Frames {
 public:
  explicit Frames(Isa isa) : list_(isa), frames_(1) {}

  OperationList& list() { return list_; }
  // The whole function. REQUIRES: every frame but the first is closed.
  OperationList Finish();

  // ---- Frames. Emitted operations are appended to the body of the innermost.

  // Opens a region, which is entered once at this position: a preheader and a body.
  void OpenRegion();
  // Opens the body of a loop over `var`, whose index is `value` + `offset` there. Each iteration
  // moves `value` by `step`; 0: it does not move. The frame around it is the loop's preheader.
  void OpenIteration(int32_t var, Operand value, int64_t offset, int64_t step, Operand begin);
  // Appends the frame's operations to the one around. A frame that moves gets a loop
  // around them, which goes on while value < end.
  void CloseRegion();
  void CloseIteration(Operand end);
  int Depth() const { return depth_; }

  // ---- Operations at the end of the innermost frame's body.
  Operand General(Opcode opcode, Operand a, Operand b = {}, int64_t immediate = 0);
  void Label(int label);
  void Jump(int label);
  void Branch(Condition condition, Operand a, Operand b, int label, bool likely = false);

  // The result of `operation`, a general register, computed once on entry to frame `depth`. An
  // equal operation gets the same register.
  Operand OnEntry(int depth, Operation operation);
  // The same for all that `emit` emits. It may use only what is known there.
  void EmitOnEntry(int depth, absl::FunctionRef<void()> emit);

 protected:
  struct Frame {
    std::vector<Operation> entry, latch;
    // Where the frame's body begins; it lies at the end of the list, before those of the
    // frames inside.
    size_t begin_of_body = 0;
    int32_t var = -1;
    Operand value, begin;
    int64_t offset = 0, step = 0;
    absl::flat_hash_map<IndexId, Operand> indices;
    ValueTable computed;  // on entry
    // Running pointers: (pointer around, step slot or constant) -> pointer
    absl::flat_hash_map<std::pair<Operand, Operand>, Operand> running;

    void Clear();  // back to an empty frame that keeps its memory
  };
  // An operation on general registers, without a result.
  static Operation Make(Opcode opcode, Operand a, Operand b = {}, int64_t immediate = 0);

  OperationList list_;
  // The open frames, outermost first, and behind them empty ones: frames come by the thousand.
  std::vector<Frame> frames_;
  int depth_ = 0;  // of the innermost open frame

 private:
  void PutEntryBeforeBody(const Frame& frame);
};

}  // namespace nestor::jit

#endif  // NESTOR_JIT_CODEGEN_FRAMES_H_
