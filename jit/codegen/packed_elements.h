// Elements as they lie in memory, side by side in the low bytes of a vector register, and
// their way from there to lanes and back. For the emitters of loads and stores.
#ifndef NESTOR_JIT_CODEGEN_PACKED_ELEMENTS_H_
#define NESTOR_JIT_CODEGEN_PACKED_ELEMENTS_H_

#include "jit/codegen/emitters.h"
#include "jit/codegen/operations.h"
#include "uops/dtype.h"

namespace nestor::jit {

// For an operation on memory: bytes of its elements, and of the register for its lanes.
inline int PackedBytes(const Operation& op) { return op.lanes * ByteSize(op.type); }
inline int WideBytes(const Operation& op) { return RegisterBytes(op.lanes, op.lane); }

inline VectorRegister Xmm(Generator& g, const VectorRegister& of) {
  return g.Vector(of.getIdx(), 16);
}

// ---- `bytes` bytes of them: a power of two from 1 to the register's. A load of 1 or 2
// uses eax.
void LoadPacked(Generator& g, const VectorRegister& to, const Xbyak::RegExp& address, int bytes);
void StorePacked(Generator& g, const Xbyak::RegExp& address, const VectorRegister& from, int bytes);

// ---- One element of `bytes` bytes, at `position` of 128 bits.
void Insert(Generator& g, const VectorRegister& x, const Xbyak::RegExp& address, int bytes,
            int position);
void Extract(Generator& g, const Xbyak::RegExp& address, const VectorRegister& x, int bytes,
             int position);

// ---- To lanes.
// To 32-bit lanes, from a register or from memory; `r` may carry a mask. REQUIRES: elements
// of 8 or 16 bits.
void Widen(Generator& g, const VectorRegister& r, const Xbyak::Operand& packed, DType type);
// Loads one element to the low lane; uses eax.
void LoadElement(Generator& g, const VectorRegister& r, DType type, const Xbyak::RegExp& address);
// Widens the elements that `op` has packed in the low bytes of its result, if it is narrow.
void WidenInPlace(Generator& g, const Operation& op);

// ---- From lanes, as Store wants them.
// Packs the elements into a register or memory; `to` may carry a mask. REQUIRES: IsNarrow(op); the
// set has EVEX.
void PackTo(Generator& g, const Xbyak::Operand& to, const Operation& op, const Operand& from);
// The same into the scratch vector, on any set.
VectorRegister Pack(Generator& g, const Operation& op, const Operand& from);
// The elements as they lie in memory, in whatever register is convenient.
VectorRegister Packed(Generator& g, const Operation& op, const Operand& from);

}  // namespace nestor::jit

#endif  // NESTOR_JIT_CODEGEN_PACKED_ELEMENTS_H_
