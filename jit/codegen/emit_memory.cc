// Loads and stores of elements side by side: exactly the elements that an operation names are
// touched, so that the last one may lie at the end of a page. (At a stride: emit_strided.cc.)
//
// Elements narrower than their lanes go through the packed form (packed_elements.h). In this form,
// the first `count` elements are moved in pieces of 8, 4, 2 and 1 if they do not go by a mask
// (GoesByMask).
#include <algorithm>
#include <cstdint>

#include "absl/functional/function_ref.h"
#include "jit/codegen/emitters.h"
#include "jit/codegen/operand_constraints.h"
#include "jit/codegen/packed_elements.h"
#include "uops/mutant.h"

namespace nestor::jit {
namespace {

// ---- The first elements, by count.

bool ByMask(Generator& g, const Operation& op) { return GoesByMask(op, g.isa()); }

// Emits the move of a piece, which is made if the number of elements contains it. A known number
// needs no test; otherwise it is in edx.
void IfThereIs(Generator& g, const Operand& count, int piece, absl::FunctionRef<void()> move) {
  if (count.kind == Operand::kImmediate) {
    if ((count.value & piece) != 0) move();
    return;
  }
  Xbyak::Label skip;
  g.test(g.edx, static_cast<uint32_t>(piece));
  g.jz(skip);
  move();
  g.L(skip);
}

// Loads pieces from the last to the first; each pushes up those loaded before.
// 7 of 8 elements: element 6, then 4 and 5 below it, then 0 to 3 below these
void LoadPackedByCount(Generator& g, const Operation& op, const VectorRegister& x) {
  const int element = ByteSize(op.type);
  g.lea(g.rax, g.ptr[g.AddressOf(op.memory)]);
  g.LoadGeneral(g.rdx, op.operands[2]);
  g.Zero(x);
  for (int piece = 1; piece <= op.lanes; piece *= 2) {
    const int bytes = piece * element;
    Xbyak::Label skip;
    g.test(g.edx, static_cast<uint32_t>(piece));
    g.jz(skip);
    g.sub(g.rdx, static_cast<uint32_t>(piece));
    if (piece == op.lanes && bytes >= 16) {
      LoadPacked(g, x, g.rax, bytes);
    } else if (bytes == 16) {
      const VectorRegister both = g.Vector(x.getIdx(), 32);
      g.vinserti128(both, both, x, 1);
      g.vinserti128(both, both, g.ptr[g.rax], 0);
    } else {
      if (piece > 1 && piece < op.lanes) g.vpslldq(x, x, static_cast<uint8_t>(bytes));
      Insert(g, x, g.rax + g.rdx * element, bytes, 0);
    }
    g.L(skip);
  }
}

// Stores pieces from the first to the last. Destroys `x`.
void StorePackedByCount(Generator& g, const Operation& op, const VectorRegister& x) {
  const Operand& count = op.operands[2];
  const VectorRegister low = Xmm(g, x);
  g.lea(g.rax, g.ptr[g.AddressOf(op.memory)]);
  if (count.kind != Operand::kImmediate) g.LoadGeneral(g.rdx, count);
  for (int piece = op.lanes; piece >= 1; piece /= 2) {
    const int bytes = piece * ByteSize(op.type);
    IfThereIs(g, count, piece, [&] {
      StorePacked(g, g.rax, x, bytes);
      if (piece == 1 || piece == op.lanes) return;  // the last one
      g.add(g.rax, static_cast<uint32_t>(bytes));
      bytes == 16 ? g.vextracti128(low, g.Vector(x.getIdx(), 32), 1)
                  : g.vpsrldq(low, low, static_cast<uint8_t>(bytes));
    });
  }
}

// ---- The first elements, by mask.

// Masked elements are not touched, so they may lie on a page that is not there; lanes without one
// become 0.
void LoadByMask(Generator& g, const Operation& op, const VectorRegister& r) {
  const Xbyak::Address address = g.ptr[g.AddressOf(op.memory)];
  if (g.has_mask_registers()) {
    const VectorRegister masked = r | g.Mask(op.operands[1]) | g.T_z;
    if (IsNarrow(op)) return Widen(g, masked, address, op.type);
    return BY_LANE(vmovdqu8, vmovdqu16, vmovups, vmovupd, vmovups, vmovupd)(masked, address);
  }
  const VectorRegister mask = g.Loaded(op.operands[1], WideBytes(op));
  ByteSize(op.type) == 8 ? g.vmaskmovpd(r, mask, address) : g.vmaskmovps(r, mask, address);
}

// REQUIRES: masks are registers.
void StoreByMask(Generator& g, const Operation& op) {
  const Operand& from = op.operands[0];
  const Xbyak::Address masked = g.ptr[g.AddressOf(op.memory)] | g.Mask(op.operands[1]);
  if (IsNarrow(op)) return PackTo(g, masked, op, from);
  const VectorRegister value = g.Loaded(from, WideBytes(op));
  BY_LANE(vmovdqu8, vmovdqu16, vmovups, vmovupd, vmovups, vmovupd)(masked, value);
}

}  // namespace

// Narrow elements are widened on the way if their lanes fill a register, else after a load of just
// their bytes.
void EmitLoad(Generator& g, const Operation& op) {
  const Xbyak::RegExp address = g.AddressOf(op.memory);
  const VectorRegister r = g.Vector(op.result.value, WideBytes(op));
  if (op.lanes == 1) return LoadElement(g, r, op.type, address);
  if (!IsNarrow(op)) return LoadPacked(g, r, address, PackedBytes(op));
  if (FillsRegister(op)) return Widen(g, r, g.ptr[address], op.type);
  LoadPacked(g, r, address, PackedBytes(op));
  WidenInPlace(g, op);
}

void EmitLoadPartial(Generator& g, const Operation& op) {
  const VectorRegister r = g.Vector(op.result.value, WideBytes(op));
  if (ByMask(g, op)) return LoadByMask(g, op, r);
  LoadPackedByCount(g, op, Xmm(g, r));
  WidenInPlace(g, op);
}

// One instruction where memory holds what lanes hold; else one element is loaded, widened, and then
// broadcast.
void EmitLoadBroadcast(Generator& g, const Operation& op) {
  const Xbyak::RegExp address = g.AddressOf(op.memory);
  const VectorRegister r = g.Vector(op.result.value, WideBytes(op));
  if (op.lanes == 1) return LoadElement(g, r, op.type, address);
  if (!IsNarrow(op)) {
    switch (ByteSize(op.type)) {
      case 1: return g.vpbroadcastb(r, g.byte[address]);
      case 2: return g.vpbroadcastw(r, g.word[address]);
      case 4: return g.vbroadcastss(r, g.dword[address]);
      default:
        return r.isXMM() ? g.vmovddup(r, g.qword[address]) : g.vbroadcastsd(r, g.qword[address]);
    }
  }
  LoadElement(g, r, op.type, address);
  BY_LANE(NoInstruction, vpbroadcastw, vpbroadcastd, NoInstruction, vbroadcastss, NoInstruction)
  (r, Xmm(g, r));
}

void EmitLoadMasked(Generator& g, const Operation& op) {
  const bool side_by_side = op.operands[0] == Operand::Immediate(ByteSize(op.type));
  if (side_by_side && ByMask(g, op))
    return LoadByMask(g, op, g.Vector(op.result.value, WideBytes(op)));
  EmitGatherMasked(g, op);
  WidenInPlace(g, op);
}

void EmitStore(Generator& g, const Operation& op) {
  StorePacked(g, g.AddressOf(op.memory), Packed(g, op, op.operands[0]), PackedBytes(op));
}

// By its mask, or packed and then stored in pieces.
void EmitStorePartial(Generator& g, const Operation& op) {
  if (ByMask(g, op)) return StoreByMask(g, op);
  const VectorRegister packed = g.Scratch(std::max(16, PackedBytes(op)));
  if (IsNarrow(op)) {
    Pack(g, op, op.operands[0]);
  } else {
    g.LoadVector(packed, op.operands[0], packed.getBit() / 8);
  }
  StorePackedByCount(g, op, packed);
}

// A prefetch of an address that is not there does nothing.
void EmitPrefetch(Generator& g, const Operation& op) {
  if (NESTOR_MUTANT("prefetch_that_faults")) return g.mov(g.eax, g.dword[g.AddressOf(op.memory)]);
  g.prefetcht0(g.ptr[g.AddressOf(op.memory)]);
}

void EmitPrefetchSecond(Generator& g, const Operation& op) {
  g.prefetcht1(g.ptr[g.AddressOf(op.memory)]);
}

// Below 128 bits there is nothing to gain. The addresses of rows are known only when the code runs.
void EmitStoreStream(Generator& g, const Operation& op) {
  const int bytes = PackedBytes(op);
  if (bytes < 16) return EmitStore(g, op);
  const VectorRegister from = g.Vector(Packed(g, op, op.operands[0]).getIdx(), bytes);
  Xbyak::Label through_cache, done;
  g.lea(g.rax, g.ptr[g.AddressOf(op.memory)]);
  // A streaming store needs an address that is a multiple of its width; the others go through the
  // cache.
  g.test(g.al, static_cast<uint32_t>(bytes - 1));
  g.jnz(through_cache, g.T_NEAR);
  g.StoreStreaming(g.ptr[g.rax], from);
  g.L(done);
  g.OutOfLine(op, [&g, from, through_cache, done]() mutable {
    g.L(through_cache);
    g.vmovups(g.ptr[g.rax], from);
    g.jmp(done);
  });
}

}  // namespace nestor::jit
