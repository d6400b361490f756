// A function of a kernel under construction whose code runs in lanes: on top of index expressions,
// operations on as many elements at once as the loop around them says, for one statement after the
// other.
#ifndef NESTOR_JIT_CODEGEN_LANE_BUILDER_H_
#define NESTOR_JIT_CODEGEN_LANE_BUILDER_H_

#include <cstddef>
#include <cstdint>

#include "jit/codegen/function_builder.h"
#include "jit/codegen/operations.h"
#include "jit/codegen/scalar_rows.h"
#include "loop_ir/program.h"

namespace nestor::jit {

// The lanes in which statements run.
struct Lanes {
  int count = 1;
  int narrow_bytes = kLeastLaneBytes;  // of each lane, if the loop is of narrow integers
  int32_t var = -1;                    // of the loop whose iterations lie side by side
  // The frame around the loop: subscripts that all lanes share are computed there.
  int region = 0;
  Operand active;  // in a tail: how many lanes take part; kNone: all
  // For a loop over a register tile: its end, if that is a number.
  int64_t end = -1;
  const loop::Loop* loop = nullptr;
};

class LaneBuilder : public FunctionBuilder {
 public:
  using FunctionBuilder::FunctionBuilder;

  // ---- Lanes

  // Who changes them for the code inside restores them.
  Lanes& lanes() { return lanes_; }
  bool IsPartial() const { return lanes_.active.kind != Operand::kNone; }
  // The kind of lanes that values of the type have in the surrounding loop.
  Lane LaneOf(DType type) const { return jit::LaneOf(type, lanes_.narrow_bytes); }
  ValueBuilder Builder() { return ValueBuilder(list(), lanes_.count, lanes_.narrow_bytes); }
  // A mask of the lanes that take part. REQUIRES: IsPartial().
  Operand ActiveMask(int lane_bytes);
  // A mask of the lanes that take part and in which 0 <= e < extent. REQUIRES: the code runs in
  // lanes, from each of which to the next `e` grows by one.
  Operand LanesInRange(IndexId e, IndexId extent, int lane_bytes);
  // Broadcasts a scalar from before the loop in lanes to all of them.
  TypedValue Spread(const TypedValue& scalar);

  // ---- Operations at the end of the innermost frame's body

  // The result is a new register.
  Operand Emit(Operation operation);
  Operand EmitTo(Operand result, Operation operation);
  Operation MakeMemory(Opcode opcode, DType type, int lanes, const Memory& memory) const;
  Operand InRegister(Operand operand);

  // ---- Statements

  // All operations from here on to EndStatement get the statement's number, from which a fault is
  // explained.
  void BeginStatement(int32_t number);
  void EndStatement();
  // Whether the statement itself has made the register: not if its value is just another tensor's
  // register, or that reinterpreted.
  bool IsOwn(Operand operand) const;
  // Leaves the function, with the statement's number, unless `valid`.
  void Trap(Operand valid);

 private:
  Lanes lanes_;
  int32_t statement_ = -1;
  size_t first_operation_ = 0;      // of the statement
  int64_t first_own_register_ = 0;  // earlier ones belong to other statements
};

}  // namespace nestor::jit

#endif  // NESTOR_JIT_CODEGEN_LANE_BUILDER_H_
