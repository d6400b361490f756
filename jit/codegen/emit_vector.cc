// Vectors. Xbyak chooses between the VEX and the EVEX encoding by width and
// registers, so that most operations are one line for all instruction sets: the
// mnemonic for each kind of lane. Where EVEX has another mnemonic (bits, rounding,
// lane shifts), sets that have EVEX take it for all widths, since VEX does not
// reach registers 16 to 31.
//
// An x86 instruction takes its last operand from memory; any other operand in memory passes through
// the scratch vector. A result may be the register of any operand, so that nothing is written
// before the last read.
#include <cstdint>
#include <utility>

#include "absl/functional/function_ref.h"
#include "jit/codegen/emitters.h"
#include "uops/invariant.h"
#include "uops/mutant.h"

namespace nestor::jit {
namespace {

using UnaryInstruction = absl::FunctionRef<void(const VectorRegister& r, const Xbyak::Operand& a)>;
using BinaryInstruction = absl::FunctionRef<void(const VectorRegister& r, const VectorRegister& a,
                                                 const Xbyak::Operand& b)>;

void Unary(Generator& g, const Operation& op, UnaryInstruction instruction) {
  instruction(g.Result(op), g.VectorPlace(op.operands[0], RegisterBytes(op)));
}

// For an instruction that takes no memory operand.
void UnaryOfRegister(Generator& g, const Operation& op, UnaryInstruction instruction) {
  instruction(g.Result(op), g.Loaded(op.operands[0], RegisterBytes(op)));
}

void Binary(Generator& g, const Operation& op, BinaryInstruction instruction) {
  Operand a = op.operands[0], b = op.operands[1];
  // So that an operand in memory is the last one, and needs no move.
  if (!a.is_register() && Commutes(op)) std::swap(a, b);
  const int bytes = RegisterBytes(op);
  const VectorRegister first = g.Loaded(a, bytes);
  instruction(g.Result(op), first, g.VectorPlace(b, bytes));
}

// r = r * b + c in one of two forms; one of the operands may be in memory.
void FmaOntoFactor(Generator& g, const Operation& op, const Operand& b, const Operand& c) {
  const int bytes = RegisterBytes(op);
  const VectorRegister r = g.Result(op);
  if (IsMemory(b) && c.is_register()) {
    const VectorRegister summand = g.Vector(c.value, bytes);
    BY_FLOAT_LANE(vfmadd132ps, vfmadd132pd)(r, summand, g.VectorPlace(b, bytes));
  } else {
    BY_FLOAT_LANE(vfmadd213ps, vfmadd213pd)(r, g.Loaded(b, bytes), g.VectorPlace(c, bytes));
  }
}

}  // namespace

void EmitMove(Generator& g, const Operation& op) {
  const int bytes = RegisterBytes(op);
  if (op.result.is_register()) return g.LoadVector(g.Result(op), op.operands[0], bytes);
  g.vmovups(g.VectorPlace(op.result, bytes).address(), g.Loaded(op.operands[0], bytes));
}

// ---- Arithmetic.

void EmitAdd(Generator& g, const Operation& op) {
  Binary(g, op, BY_LANE(vpaddb, vpaddw, vpaddd, vpaddq, vaddps, vaddpd));
}

void EmitSub(Generator& g, const Operation& op) {
  Binary(g, op, BY_LANE(vpsubb, vpsubw, vpsubd, vpsubq, vsubps, vsubpd));
}

void EmitMul(Generator& g, const Operation& op) {
  Binary(g, op, BY_LANE(NoInstruction, vpmullw, vpmulld, vpmullq, vmulps, vmulpd));
}

// The low halves of lanes of 64 bits, as unsigned numbers; the product has 64 bits.
void EmitMulU32(Generator& g, const Operation& op) {
  Binary(g, op, BY_INTEGER_LANE(NoInstruction, NoInstruction, NoInstruction, vpmuludq));
}

void EmitDiv(Generator& g, const Operation& op) { Binary(g, op, BY_FLOAT_LANE(vdivps, vdivpd)); }

// Of floats: b where either is NaN or both are zeros. Rows that promise more are composed of these
// (scalar_rows_arithmetic.cc).
void EmitMinX86(Generator& g, const Operation& op) {
  Binary(g, op, BY_LANE(vpminsb, vpminsw, vpminsd, vpminsq, vminps, vminpd));
}

void EmitMaxX86(Generator& g, const Operation& op) {
  Binary(g, op, BY_LANE(vpmaxsb, vpmaxsw, vpmaxsd, vpmaxsq, vmaxps, vmaxpd));
}

void EmitMinUnsigned(Generator& g, const Operation& op) {
  Binary(g, op, BY_INTEGER_LANE(vpminub, vpminuw, vpminud, vpminuq));
}

void EmitMaxUnsigned(Generator& g, const Operation& op) {
  Binary(g, op, BY_INTEGER_LANE(vpmaxub, vpmaxuw, vpmaxud, vpmaxuq));
}

// VRANGE orders -0 below +0, and passes over a NaN. EVEX only.
void EmitMaxNumber(Generator& g, const Operation& op) {
  constexpr uint8_t kMax = 1, kSignOfResult = 4;
  Binary(g, op, [&](const VectorRegister& r, const VectorRegister& a, const Xbyak::Operand& b) {
    BY_FLOAT_LANE(vrangeps, vrangepd)(r, a, b, static_cast<uint8_t>(kMax | kSignOfResult));
  });
}

void EmitScale(Generator& g, const Operation& op) {
  Binary(g, op, BY_FLOAT_LANE(vscalefps, vscalefpd));
}

void EmitSqrt(Generator& g, const Operation& op) { Unary(g, op, BY_FLOAT_LANE(vsqrtps, vsqrtpd)); }

// Picks the form whose overwritten operand is the result: 231 overwrites the summand, 213 and 132
// a factor.
//   vfmadd231 r, a, b: r = a*b + r
//   vfmadd213 r, b, c: r = r*b + c
//   vfmadd132 r, c, b: r = r*b + c
void EmitFma(Generator& g, const Operation& op) {
  const int bytes = RegisterBytes(op);
  const VectorRegister r = g.Result(op);
  Operand a = op.operands[0], b = op.operands[1];
  const Operand& c = op.operands[2];
  if (c == op.result) {
    if (!a.is_register()) std::swap(a, b);
    if (NESTOR_MUTANT("fma_subtracts")) {
      BY_FLOAT_LANE(vfnmadd231ps, vfnmadd231pd)(r, g.Loaded(a, bytes), g.VectorPlace(b, bytes));
      return;
    }
    BY_FLOAT_LANE(vfmadd231ps, vfmadd231pd)(r, g.Loaded(a, bytes), g.VectorPlace(b, bytes));
    return;
  }
  if (b == op.result) std::swap(a, b);
  g.LoadVector(r, a, bytes);
  FmaOntoFactor(g, op, b, c);
}

// One instruction if the machine has dot products; it overwrites the summand.
void EmitDotHalves(Generator& g, const Operation& op) {
  const int bytes = RegisterBytes(op);
  const VectorRegister r = g.Result(op), scratch = g.Scratch(bytes);
  Operand a = op.operands[0], b = op.operands[1];
  const Operand& c = op.operands[2];
  if (!a.is_register()) std::swap(a, b);
  if (g.has_dot_products()) {
    if (c == op.result) return g.vpdpwssd(r, g.Loaded(a, bytes), g.VectorPlace(b, bytes));
    // The result may be in b's register, but in no factor's if both are in memory.
    g.LoadVector(scratch, c, bytes);
    if (!a.is_register()) g.LoadVector(r, a, bytes);
    g.vpdpwssd(scratch, a.is_register() ? g.Vector(a.value, bytes) : r, g.VectorPlace(b, bytes));
    return g.vmovaps(r, scratch);
  }
  g.vpmaddwd(scratch, g.Loaded(a, bytes), g.VectorPlace(b, bytes));
  g.vpaddd(r, scratch, g.VectorPlace(c, bytes));
}

void EmitRound(Generator& g, const Operation& op) {
  constexpr int kNoInexact = 8;
  constexpr uint8_t kModes[] = {0, 1, 2, 3};  // by RoundingMode
  const uint8_t mode = kModes[op.immediate] | kNoInexact;
  const auto vex = BY_FLOAT_LANE(vroundps, vroundpd);
  const auto evex = BY_FLOAT_LANE(vrndscaleps, vrndscalepd);
  Unary(g, op, [&](const VectorRegister& r, const Xbyak::Operand& a) {
    g.has_evex() ? evex(r, a, mode) : vex(r, a, mode);
  });
}

// ---- Bits.

void EmitAnd(Generator& g, const Operation& op) {
  if (g.has_evex()) return Binary(g, op, BY_LANE(vpandd, vpandd, vpandd, vpandq, vandps, vandpd));
  Binary(g, op, BY_LANE(vpand, vpand, vpand, vpand, vandps, vandpd));
}

void EmitOr(Generator& g, const Operation& op) {
  if (g.has_evex()) return Binary(g, op, BY_LANE(vpord, vpord, vpord, vporq, vorps, vorpd));
  Binary(g, op, BY_LANE(vpor, vpor, vpor, vpor, vorps, vorpd));
}

void EmitXor(Generator& g, const Operation& op) {
  if (g.has_evex()) return Binary(g, op, BY_LANE(vpxord, vpxord, vpxord, vpxorq, vxorps, vxorpd));
  Binary(g, op, BY_LANE(vpxor, vpxor, vpxor, vpxor, vxorps, vxorpd));
}

void EmitAndNot(Generator& g, const Operation& op) {
  if (g.has_evex())
    return Binary(g, op, BY_LANE(vpandnd, vpandnd, vpandnd, vpandnq, vandnps, vandnpd));
  Binary(g, op, BY_LANE(vpandn, vpandn, vpandn, vpandn, vandnps, vandnpd));
}

// VEX forms take no operand from memory with an immediate count.
void EmitShiftLeft(Generator& g, const Operation& op) {
  const uint8_t count = static_cast<uint8_t>(op.immediate);
  const auto by_lane = BY_LANE(NoInstruction, vpsllw, vpslld, vpsllq, vpslld, vpsllq);
  UnaryOfRegister(g, op,
                  [&](const VectorRegister& r, const Xbyak::Operand& a) { by_lane(r, a, count); });
}

void EmitShiftRight(Generator& g, const Operation& op) {
  const uint8_t count = static_cast<uint8_t>(op.immediate);
  const auto by_lane = BY_LANE(NoInstruction, vpsrlw, vpsrld, vpsrlq, vpsrld, vpsrlq);
  UnaryOfRegister(g, op,
                  [&](const VectorRegister& r, const Xbyak::Operand& a) { by_lane(r, a, count); });
}

void EmitShiftRightSigned(Generator& g, const Operation& op) {
  const uint8_t count = static_cast<uint8_t>(op.immediate);
  const auto by_lane = BY_LANE(NoInstruction, vpsraw, vpsrad, vpsraq, vpsrad, vpsraq);
  UnaryOfRegister(g, op,
                  [&](const VectorRegister& r, const Xbyak::Operand& a) { by_lane(r, a, count); });
}

void EmitShiftLeftBy(Generator& g, const Operation& op) {
  Binary(g, op, BY_WIDE_LANE(vpsllvd, vpsllvq, vpsllvd, vpsllvq));
}

void EmitShiftRightBy(Generator& g, const Operation& op) {
  Binary(g, op, BY_WIDE_LANE(vpsrlvd, vpsrlvq, vpsrlvd, vpsrlvq));
}

void EmitShiftRightSignedBy(Generator& g, const Operation& op) {
  Binary(g, op, BY_WIDE_LANE(vpsravd, vpsravq, vpsravd, vpsravq));
}

// ---- Conversions.

// The low halves of 64-bit lanes, side by side.
void EmitNarrowLanes(Generator& g, const Operand& result, const Operand& from, int lanes) {
  constexpr uint8_t kEvenLanes = 0x88;
  const int bytes = RegisterBytes(lanes, Lane::kI64);
  const VectorRegister r = g.Vector(result.value, RegisterBytes(lanes, Lane::kI32));
  const VectorRegister a = g.Vector((from.is_register() ? from : result).value, bytes);
  g.LoadVector(a, from, bytes);
  if (g.has_evex()) return g.vpmovqd(r, a);
  const VectorRegister low = g.Vector(a.getIdx(), 16);
  if (bytes == 16) return g.vpshufd(r, low, kEvenLanes);
  const VectorRegister high = g.Scratch(16);
  g.vextracti128(high, a, 1);
  g.vshufps(r, low, high, kEvenLanes);
}

namespace {

constexpr int Conversion(Lane from, Lane to) {
  return static_cast<int>(from) * kNumLanes + static_cast<int>(to);
}

// `a` has the width of its own lanes.
void ConvertLanes(Generator& g, int conversion, const VectorRegister& r, const Xbyak::Operand& a) {
  switch (conversion) {
    case Conversion(Lane::kI32, Lane::kF32): return g.vcvtdq2ps(r, a);
    case Conversion(Lane::kI32, Lane::kF64): return g.vcvtdq2pd(r, a);
    case Conversion(Lane::kI32, Lane::kI64): return g.vpmovsxdq(r, a);
    case Conversion(Lane::kF32, Lane::kF64): return g.vcvtps2pd(r, a);
    case Conversion(Lane::kF64, Lane::kF32): return g.vcvtpd2ps(r, a);
    case Conversion(Lane::kF32, Lane::kI32): return g.vcvttps2dq(r, a);
    case Conversion(Lane::kF64, Lane::kI32): return g.vcvttpd2dq(r, a);
    case Conversion(Lane::kI64, Lane::kF32): return g.vcvtqq2ps(r, a);
    case Conversion(Lane::kI64, Lane::kF64): return g.vcvtqq2pd(r, a);
    case Conversion(Lane::kF32, Lane::kI64): return g.vcvttps2qq(r, a);
    case Conversion(Lane::kF64, Lane::kI64): return g.vcvttpd2qq(r, a);
    default: NESTOR_CHECK(false, "no such conversion");
  }
}

}  // namespace

void EmitConvert(Generator& g, const Operation& op) {
  const Lane from = OperandLane(op, 0);
  if (from == op.lane) return EmitMove(g, op);
  if (from == Lane::kI64 && op.lane == Lane::kI32)
    return EmitNarrowLanes(g, op.result, op.operands[0], op.lanes);
  ConvertLanes(g, Conversion(from, op.lane), g.Result(op),
               g.Loaded(op.operands[0], OperandBytes(op, 0)));
}

// There and back: the result is an f32 with the value of the f16, which is how f16 is held.
void EmitRoundToF16(Generator& g, const Operation& op) {
  const int bytes = RegisterBytes(op);
  const VectorRegister r = g.Result(op), half = g.Vector(r.getIdx(), bytes <= 32 ? 16 : 32);
  g.vcvtps2ph(half, g.Loaded(op.operands[0], bytes), 0);
  g.vcvtph2ps(r, half);
}

// ---- Lanes.

void EmitBroadcast(Generator& g, const Operation& op) {
  const VectorRegister r = g.Result(op);
  const Place a = g.VectorPlace(op.operands[0], OperandBytes(op, 0));
  switch (op.lane) {
    case Lane::kI8: return g.vpbroadcastb(r, a);
    case Lane::kI16: return g.vpbroadcastw(r, a);
    case Lane::kI32: return g.vpbroadcastd(r, a);
    case Lane::kF32: return g.vbroadcastss(r, a);
    case Lane::kF64:
      // vbroadcastsd has no form for 128 bits.
      if (r.isXMM()) return g.vmovddup(r, a);
      return g.vbroadcastsd(r, a);
    case Lane::kI64: return g.vpbroadcastq(r, a);
  }
}

namespace {

// Broadcasts lane 0 of integers of `bytes`, in a register or in memory.
void SpreadInteger(Generator& g, const VectorRegister& r, const Xbyak::Operand& from, int bytes) {
  switch (bytes) {
    case 1: return g.vpbroadcastb(r, from);
    case 2: return g.vpbroadcastw(r, from);
    case 4: return g.vpbroadcastd(r, from);
    default: return g.vpbroadcastq(r, from);
  }
}

}  // namespace

// EVEX broadcasts from a general register; VEX only from a vector register or memory.
void EmitBroadcastGeneral(Generator& g, const Operation& op) {
  const VectorRegister r = g.Result(op), low = g.Vector(r.getIdx(), 16);
  const int bytes = LaneBytes(op.lane);
  const Operand& a = op.operands[0];
  if (IsMemory(a)) return SpreadInteger(g, r, g.GeneralPlace(a), bytes);
  const Xbyak::Reg64 value = g.LoadedGeneral(a, g.rax);
  if (g.has_evex()) {
    switch (bytes) {
      case 1: return g.vpbroadcastb(r, value.cvt8());
      case 2: return g.vpbroadcastw(r, value.cvt16());
      case 4: return g.vpbroadcastd(r, value.cvt32());
      default: return g.vpbroadcastq(r, value);
    }
  }
  bytes == 8 ? g.vmovq(low, value) : g.vmovd(low, value.cvt32());
  if (op.lanes > 1) SpreadInteger(g, r, low, bytes);
}

namespace {

// Shifts lanes below 32 bits, with EVEX: by whole 32-bit lanes, and then by bytes, from each next
// 128 bits into those before.
void ShiftBytesByWords(Generator& g, const VectorRegister& r, const VectorRegister& a, int bytes) {
  constexpr uint8_t kNextQuarter = 4;
  const int rest = bytes % 4;
  if (bytes >= 4 || rest == 0) g.valignd(r, a, a, static_cast<uint8_t>(bytes / 4));
  if (rest == 0) return;
  const VectorRegister& words = bytes >= 4 ? r : a;
  const VectorRegister next = g.Scratch(r.getBit() / 8);
  g.valignd(next, words, words, kNextQuarter);
  g.vpalignr(r, next, words, static_cast<uint8_t>(rest));
}

// Shifts 256 bits; within 128 bits there are instructions for it.
void ShiftBytesAcross(Generator& g, const VectorRegister& r, const VectorRegister& a, int bytes) {
  if (bytes >= 16) {
    const VectorRegister low = g.Vector(r.getIdx(), 16);
    g.vextracti128(low, a, 1);
    if (bytes > 16) g.vpsrldq(low, low, static_cast<uint8_t>(bytes - 16));
    return;
  }
  constexpr uint8_t kUpperQuarters = 0xF9, kUpperHalfAndZero = 0x81;
  if (bytes == 8) return g.vpermq(r, a, kUpperQuarters);
  const VectorRegister above = g.Scratch(32);
  NESTOR_CHECK(a.getIdx() != above.getIdx(), "a lane shift of a value in the scratch vector");
  g.vperm2i128(above, a, a, kUpperHalfAndZero);
  g.vpalignr(r, above, a, static_cast<uint8_t>(bytes));
}

}  // namespace

// Lane i of the result is lane i + immediate. Only EVEX shifts across 128 bits, and by words of
// 32 or 64 bits; other shifts are put together in the scratch vector.
void EmitLaneShift(Generator& g, const Operation& op) {
  const int bytes = RegisterBytes(op), shift = static_cast<int>(op.immediate) * LaneBytes(op.lane);
  const VectorRegister r = g.Result(op);
  const uint8_t lanes = static_cast<uint8_t>(op.immediate);
  const bool takes_scratch = bytes > 16 && (!g.has_evex() || LaneBytes(op.lane) < 4);
  const bool passes_result = takes_scratch && !op.operands[0].is_register();
  if (passes_result) g.LoadVector(r, op.operands[0], bytes);
  const VectorRegister a = passes_result ? r : g.Loaded(op.operands[0], bytes);
  if (bytes == 16) return g.vpsrldq(r, a, static_cast<uint8_t>(shift));
  if (g.has_evex() && LaneBytes(op.lane) == 4) return g.valignd(r, a, a, lanes);
  if (g.has_evex() && LaneBytes(op.lane) == 8) return g.valignq(r, a, a, lanes);
  if (g.has_evex()) return ShiftBytesByWords(g, r, a, shift);
  ShiftBytesAcross(g, r, a, shift);
}

void EmitUnpackLow(Generator& g, const Operation& op) {
  Binary(g, op, BY_WIDE_LANE(vpunpckldq, vpunpcklqdq, vunpcklps, vunpcklpd));
}

void EmitUnpackHigh(Generator& g, const Operation& op) {
  Binary(g, op, BY_WIDE_LANE(vpunpckhdq, vpunpckhqdq, vunpckhps, vunpckhpd));
}

namespace {

// Each half of the result comes from a half of one of two registers, the low half from the first.
// Bit 3 of a half's selector asks for zeros.
void PermuteHalves(Generator& g, const Operation& op) {
  const auto source = [&](int64_t selector) -> const Operand& {
    return op.operands[(selector >> 1) & 1];
  };
  const int64_t low = op.immediate & 15, high = (op.immediate >> 4) & 15;
  const uint8_t halves = static_cast<uint8_t>((low & 1) | (high & 1) << 1);
  const VectorRegister r = g.Result(op);
  if ((low & 8) != 0) {
    const VectorRegister zero = g.Scratch(32);
    g.Zero(zero);
    g.vshuff64x2(r, zero, g.VectorPlace(source(high), 32), halves);
  } else {
    const VectorRegister first = g.Loaded(source(low), 32);
    g.vshuff64x2(r, first, g.VectorPlace(source(high), 32), halves);
  }
  if ((high & 8) != 0) g.vmovaps(g.Vector(r.getIdx(), 16), g.Vector(r.getIdx(), 16));
}

}  // namespace

// vperm2f128 has no EVEX form, which could reach registers 16 to 31.
void EmitPermute128(Generator& g, const Operation& op) {
  NESTOR_CHECK(RegisterBytes(op) == 32, "permute_128 is of 256 bits");
  if (g.has_evex()) return PermuteHalves(g, op);
  const uint8_t halves = static_cast<uint8_t>(op.immediate);
  Binary(g, op, [&](const VectorRegister& r, const VectorRegister& a, const Xbyak::Operand& b) {
    g.vperm2f128(r, a, b, halves);
  });
}

void EmitShuffle128(Generator& g, const Operation& op) {
  NESTOR_CHECK(RegisterBytes(op) == 64, "shuffle_128 is of 512 bits");
  const uint8_t quarters = static_cast<uint8_t>(op.immediate);
  Binary(g, op, [&](const VectorRegister& r, const VectorRegister& a, const Xbyak::Operand& b) {
    g.vshufi32x4(r, a, b, quarters);
  });
}

}  // namespace nestor::jit
