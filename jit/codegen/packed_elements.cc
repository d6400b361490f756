// Narrowing is where the instruction sets differ: EVEX has moves for it, VEX picks bytes by a
// shuffle within each 128 bits and then brings the two parts together. Only the low bytes
// of an integer lane, and the upper half of an f32 that is a bf16, are of interest; but
// the upper half of a NaN may be that of an infinity, so NaNs come first.
#include "jit/codegen/packed_elements.h"

#include <algorithm>
#include <cstdint>

#include "uops/invariant.h"

namespace nestor::jit {

// Exactly `bytes` bytes: there is no load of one or two of them into a vector register.
void LoadPacked(Generator& g, const VectorRegister& to, const Xbyak::RegExp& address, int bytes) {
  const VectorRegister x = Xmm(g, to);
  switch (bytes) {
    case 1: g.movzx(g.eax, g.byte[address]); return g.vmovd(x, g.eax);
    case 2: g.movzx(g.eax, g.word[address]); return g.vmovd(x, g.eax);
    case 4: return g.vmovd(x, g.dword[address]);
    case 8: return g.vmovq(x, g.qword[address]);
    default: return g.vmovups(g.Vector(to.getIdx(), bytes), g.ptr[address]);
  }
}

void StorePacked(Generator& g, const Xbyak::RegExp& address, const VectorRegister& from,
                 int bytes) {
  const VectorRegister x = Xmm(g, from);
  switch (bytes) {
    case 1: return g.vpextrb(g.byte[address], x, 0);
    case 2: return g.vpextrw(g.word[address], x, 0);
    case 4: return g.vmovd(g.dword[address], x);
    case 8: return g.vmovq(g.qword[address], x);
    default: return g.vmovups(g.ptr[address], g.Vector(from.getIdx(), bytes));
  }
}

void Insert(Generator& g, const VectorRegister& x, const Xbyak::RegExp& address, int bytes,
            int position) {
  const uint8_t at = static_cast<uint8_t>(position);
  switch (bytes) {
    case 1: return g.vpinsrb(x, x, g.byte[address], at);
    case 2: return g.vpinsrw(x, x, g.word[address], at);
    case 4: return g.vpinsrd(x, x, g.dword[address], at);
    default: return g.vpinsrq(x, x, g.qword[address], at);
  }
}

void Extract(Generator& g, const Xbyak::RegExp& address, const VectorRegister& x, int bytes,
             int position) {
  const uint8_t at = static_cast<uint8_t>(position);
  switch (bytes) {
    case 1: return g.vpextrb(g.byte[address], x, at);
    case 2: return g.vpextrw(g.word[address], x, at);
    case 4: return g.vpextrd(g.dword[address], x, at);
    default: return g.vpextrq(g.qword[address], x, at);
  }
}

namespace {

void WidenIntegers(Generator& g, const VectorRegister& r, const Xbyak::Operand& packed,
                   DType type) {
  const bool is_signed = IsSigned(type);
  switch (ByteSize(type)) {
    case 1: return is_signed ? g.vpmovsxbd(r, packed) : g.vpmovzxbd(r, packed);
    case 2: return is_signed ? g.vpmovsxwd(r, packed) : g.vpmovzxwd(r, packed);
    default: NESTOR_CHECK(false, "elements as wide as their lanes");
  }
}

}  // namespace

// A bf16 is the upper half of its f32.
void Widen(Generator& g, const VectorRegister& r, const Xbyak::Operand& packed, DType type) {
  switch (type) {
    case DType::kF16: return g.vcvtph2ps(r, packed);
    case DType::kBF16: {
      g.vpmovzxwd(r, packed);
      const VectorRegister whole = g.Vector(r.getIdx(), r.getBit() / 8);
      return g.vpslld(whole, whole, 16);
    }
    default: return WidenIntegers(g, r, packed, type);
  }
}

void LoadElement(Generator& g, const VectorRegister& r, DType type, const Xbyak::RegExp& address) {
  const VectorRegister x = Xmm(g, r);
  switch (type) {
    case DType::kBF16:
      g.movzx(g.eax, g.word[address]);
      g.shl(g.eax, 16);
      return g.vmovd(x, g.eax);
    case DType::kF16: LoadPacked(g, x, address, 2); return g.vcvtph2ps(x, x);
    default: break;
  }
  // A type without a sign to extend gets zeros.
  if (!IsSigned(type) || ByteSize(type) >= 4) return LoadPacked(g, x, address, ByteSize(type));
  ByteSize(type) == 1 ? g.movsx(g.eax, g.byte[address]) : g.movsx(g.eax, g.word[address]);
  g.vmovd(x, g.eax);
}

void WidenInPlace(Generator& g, const Operation& op) {
  if (!IsNarrow(op)) return;
  const VectorRegister r = g.Vector(op.result.value, WideBytes(op));
  Widen(g, r, g.Vector(r.getIdx(), std::max(16, PackedBytes(op))), op.type);
}

namespace {

// Makes every NaN in f32 lanes the one NaN, in the scratch vector. A spilled value has no second
// copy to blend with: its NaNs become quiet, but keep their sign.
// EVEX has an instruction that replaces by class of number; else lanes that compare unordered
// with themselves are replaced.
VectorRegister OneNaN(Generator& g, const Operand& from, int bytes) {
  constexpr uint8_t kUnordered = 3, kChooseByA = 0xAC;
  constexpr uint32_t kNaN = 0x7fc00000;  // that of bf16 in its upper half
  const VectorRegister scratch = g.Scratch(bytes);
  const Xbyak::Address nan = g.Constant(PoolConstant{Lane::kF32, kNaN, 0}, bytes);
  if (g.has_evex() && from.is_register()) {
    // The result for each class of numbers: nothing for the two of NaNs, so that `nan` stays; the
    // number itself for the others.
    constexpr uint32_t kOthers = 0x11111100;
    g.vmovups(scratch, nan);
    g.vfixupimmps(scratch, g.Vector(from.value, bytes),
                  g.Constant(PoolConstant{Lane::kI32, kOthers, 0}, bytes), 0);
    return scratch;
  }
  const VectorRegister a = g.Loaded(from, bytes);
  const Place again = g.VectorPlace(from, bytes);
  if (g.has_mask_registers()) {
    g.vcmpps(g.ScratchMask(), a, again, kUnordered);
    g.vpmovm2d(scratch, g.ScratchMask());
  } else {
    g.vcmpps(scratch, a, again, kUnordered);
  }
  if (again.is_memory()) {
    g.vandps(scratch, scratch, nan);
    g.vorps(scratch, scratch, again);
  } else if (g.has_evex()) {
    g.vpternlogd(scratch, a, nan, kChooseByA);
  } else {
    g.vblendvps(scratch, a, nan, scratch);
  }
  return scratch;
}

// Moves the bytes or 16-bit words of 32-bit lanes that `shuffle` picks in each 128 bits to the low
// bytes of `r`.
void PackByShuffle(Generator& g, const VectorRegister& r, const VectorRegister& from,
                   uint64_t shuffle, int element) {
  constexpr uint8_t kEvenQuarters = 0x08;
  const int bytes = from.getBit() / 8;
  g.vpshufb(r, from, g.Constant(PoolConstant{Lane::kI64, shuffle, 0}, bytes));
  if (bytes == 16) return;
  g.vpermq(r, r, kEvenQuarters);
  if (element == 1) g.vpshufd(Xmm(g, r), Xmm(g, r), kEvenQuarters);
}

}  // namespace

// On EVEX, and for an f16 on any set.
void PackTo(Generator& g, const Xbyak::Operand& to, const Operation& op, const Operand& from) {
  const int wide = WideBytes(op);
  if (op.type == DType::kF16) return g.vcvtps2ph(to, g.Loaded(from, wide), 0);
  if (op.type == DType::kBF16) {
    const VectorRegister value = OneNaN(g, from, wide);
    g.vpsrld(value, value, 16);
    return g.vpmovdw(to, value);
  }
  const VectorRegister lanes = g.Loaded(from, wide);
  ByteSize(op.type) == 1 ? g.vpmovdb(to, lanes) : g.vpmovdw(to, lanes);
}

// The constants are the bytes that a shuffle picks from each 128 bits; 0x80 gives 0.
VectorRegister Pack(Generator& g, const Operation& op, const Operand& from) {
  constexpr uint64_t kLowBytes = 0x808080800C080400, kLowWords = 0x0D0C090805040100,
                     kUpperWords = 0x0F0E0B0A07060302;
  const int wide = WideBytes(op), element = ByteSize(op.type);
  const VectorRegister r = g.Scratch(wide);
  if (g.has_evex() || op.type == DType::kF16) {
    PackTo(g, g.Scratch(std::max(16, PackedBytes(op))), op, from);
  } else if (op.type == DType::kBF16) {
    PackByShuffle(g, r, OneNaN(g, from, wide), kUpperWords, element);
  } else {
    PackByShuffle(g, r, g.Loaded(from, wide), element == 1 ? kLowBytes : kLowWords, element);
  }
  return r;
}

VectorRegister Packed(Generator& g, const Operation& op, const Operand& from) {
  return IsNarrow(op) ? Pack(g, op, from) : g.Loaded(from, WideBytes(op));
}

}  // namespace nestor::jit
