// Internal to the translation: how elements are read and written, in memory and in registers.
#ifndef NESTOR_JIT_CODEGEN_TRANSLATE_ACCESSES_H_
#define NESTOR_JIT_CODEGEN_TRANSLATE_ACCESSES_H_

#include <cstdint>

#include "jit/codegen/lane_builder.h"
#include "jit/codegen/operations.h"
#include "jit/codegen/scalar_rows.h"
#include "jit/codegen/table.h"
#include "jit/codegen/translate_tensors.h"
#include "loop_ir/program.h"

namespace nestor::jit {

// An access in memory, after Locate.
struct Location {
  Memory memory;
  Operand valid;   // 1 where the access is made; kNone: always
  Operand stride;  // bytes from lane to lane: immediate or slot
  Operand lanes;   // a mask of the lanes that read it; kNone: all that take part
};

// Knows elements, but not the values that statements compute: what a masked access gives where it
// is not made is up to the caller.
class AccessTranslator {
 public:
  // REQUIRES: the arguments outlive this.
  AccessTranslator(loop::Program& program, Table& table, Tensors& tensors, LaneBuilder& f)
      : program_(program), table_(table), tensors_(tensors), f_(f) {}

  // The address of the access, and whether it is made. Leaves the function if it is checked and
  // out of range. For a tensor in registers it has no address.
  Location Locate(const loop::Access& access);

  // REQUIRES: the access is not masked.
  TypedValue LoadUnmasked(const loop::Access& access);
  // REQUIRES: `location` is that of the access, if it is in memory; it is made.
  TypedValue LoadAt(const loop::Access& access, const Location& location);
  TypedValue LoadElements(DType type, const Location& location, bool invariant = false);
  void StoreElements(DType type, const Location& location, const TypedValue& value, bool streams);
  void Prefetch(const loop::Prefetch& prefetch);
  // The place of an arg accumulator's position, whose value is at `location`.
  Location PositionsOf(loop::TensorId tensor, const Location& location);

  // `lane`: receives the lane of the register at which the access begins.
  Operand& TileRegister(const loop::Access& access, int64_t& lane);
  // A builder for the tile's registers.
  ValueBuilder TileBuilder(loop::TensorId tile);

 private:
  bool IsSharedGather(IndexId e) const;
  TypedValue LoadMemory(loop::TensorId tensor, const Location& location);
  TypedValue LoadScalar(loop::TensorId tensor);
  TypedValue LoadTile(const loop::Access& access);

  loop::Program& program_;
  Table& table_;
  Tensors& tensors_;
  LaneBuilder& f_;
};

}  // namespace nestor::jit

#endif  // NESTOR_JIT_CODEGEN_TRANSLATE_ACCESSES_H_
