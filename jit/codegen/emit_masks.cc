// Masks, and conversions between them and vectors. Where a set has no registers for masks, they are
// vectors of lanes of all ones or zeros, so that operations on masks are those on bits. Elsewhere
// they are k registers with a bit per lane, whatever the lanes' width. Bits and lanes beyond those
// of the operation hold anything.
#include <algorithm>
#include <cstdint>
#include <utility>

#include "jit/codegen/emitters.h"
#include "uops/invariant.h"
#include "uops/mutant.h"

namespace nestor::jit {

// Comparisons to a vector are == and signed > only, if of integers: a < b is b > a.
void EmitCompare(Generator& g, const Operation& op) {
  const uint8_t kFloat[] = {
      // Of vcmpps: EQ_OQ, LT_OQ, LE_OQ, UNORD_Q and NEQ_UQ (Intel SDM, vol. 2, VCMPPS). Quiet: a
      // NaN raises no exception. NEQ_UQ is true where an operand is NaN, as != in C.
      0x00, static_cast<uint8_t>(NESTOR_MUTANT("less_where_unordered") ? 0x19 : 0x11), 0x12, 0x03,
      0x04};  // by Predicate; quiet
  constexpr uint8_t kInteger[] = {0, 1, 2, 3, 4};
  const Predicate predicate = static_cast<Predicate>(op.immediate);
  NESTOR_CHECK(IsFloat(op.lane) || predicate == Predicate::kEqual || predicate == Predicate::kLess,
               "integers are compared for == and < only");
  const int bytes = RegisterBytes(op);
  const uint8_t code = (IsFloat(op.lane) ? kFloat : kInteger)[op.immediate];
  Operand a = op.operands[0], b = op.operands[1];
  if (g.has_mask_registers()) {
    const VectorRegister first = g.Loaded(a, bytes);
    const Place second = g.VectorPlace(b, bytes);
    return BY_LANE(vpcmpb, vpcmpw, vpcmpd, vpcmpq, vcmpps, vcmppd)(g.Mask(op.result), first, second,
                                                                   code);
  }
  const VectorRegister r = g.Vector(op.result.value, bytes);
  if (!IsFloat(op.lane) && predicate == Predicate::kLess) std::swap(a, b);  // there is only >
  const VectorRegister first = g.Loaded(a, bytes);
  const Place second = g.VectorPlace(b, bytes);
  if (IsFloat(op.lane)) return BY_FLOAT_LANE(vcmpps, vcmppd)(r, first, second, code);
  if (predicate == Predicate::kLess)
    return BY_INTEGER_LANE(vpcmpgtb, vpcmpgtw, vpcmpgtd, vpcmpgtq)(r, first, second);
  BY_INTEGER_LANE(vpcmpeqb, vpcmpeqw, vpcmpeqd, vpcmpeqq)(r, first, second);
}

// All 64 bits, whatever the number of lanes: a mask on the stack takes 8 bytes.
void EmitMaskMove(Generator& g, const Operation& op) {
  if (!g.has_mask_registers()) return EmitMove(g, op);
  const Operand& a = op.operands[0];
  if (!op.result.is_register()) return g.kmovq(g.StackSlot(op.result.value), g.Mask(a));
  if (a.kind == Operand::kStack) return g.kmovq(g.Mask(op.result), g.StackSlot(a.value));
  if (!(a == op.result)) g.kmovq(g.Mask(op.result), g.Mask(a));
}

namespace {

using MaskInstruction = void (Xbyak::CodeGenerator::*)(const Xbyak::Opmask&, const Xbyak::Opmask&,
                                                       const Xbyak::Opmask&);

void MaskBinary(Generator& g, const Operation& op, MaskInstruction instruction) {
  (g.*instruction)(g.Mask(op.result), g.Mask(op.operands[0]), g.Mask(op.operands[1]));
}

}  // namespace

void EmitMaskAnd(Generator& g, const Operation& op) {
  g.has_mask_registers() ? MaskBinary(g, op, &Xbyak::CodeGenerator::kandq) : EmitAnd(g, op);
}

void EmitMaskOr(Generator& g, const Operation& op) {
  g.has_mask_registers() ? MaskBinary(g, op, &Xbyak::CodeGenerator::korq) : EmitOr(g, op);
}

void EmitMaskXor(Generator& g, const Operation& op) {
  g.has_mask_registers() ? MaskBinary(g, op, &Xbyak::CodeGenerator::kxorq) : EmitXor(g, op);
}

void EmitMaskAndNot(Generator& g, const Operation& op) {
  g.has_mask_registers() ? MaskBinary(g, op, &Xbyak::CodeGenerator::kandnq) : EmitAndNot(g, op);
}

// From lanes of 32 bits to lanes of 64, sign-extended: all ones stay all ones.
void EmitMaskWiden(Generator& g, const Operation& op) {
  if (g.has_mask_registers()) return EmitMaskMove(g, op);
  g.vpmovsxdq(g.Result(op), g.Loaded(op.operands[0], OperandBytes(op, 0)));
}

void EmitMaskNarrow(Generator& g, const Operation& op) {
  if (g.has_mask_registers()) return EmitMaskMove(g, op);
  EmitNarrowLanes(g, op.result, op.operands[0], op.lanes);
}

namespace {

void EmitMaskOfKnownCount(Generator& g, const Operation& op) {
  const int64_t count = std::clamp<int64_t>(op.operands[0].value, 0, op.lanes);
  const uint64_t mask = count == 64 ? ~uint64_t{0} : (uint64_t{1} << count) - 1;
  g.mov(g.rdx, NESTOR_MUTANT("tail_mask_inverted") ? ~mask : mask);
  g.kmovq(g.Mask(op.result), g.rdx);
}

}  // namespace

// The count may have any size; beyond `lanes` it makes no difference.
void EmitMaskOfCount(Generator& g, const Operation& op) {
  if (op.operands[0].kind == Operand::kImmediate && g.has_mask_registers())
    return EmitMaskOfKnownCount(g, op);
  const Xbyak::Reg64 count = g.LoadedGeneral(op.operands[0], g.rdx);
  // min(count, lanes), signed: the rest of an axis is often longer than a vector.
  g.mov(g.eax, op.lanes);
  g.cmp(count, g.rax);
  g.cmovl(g.rax, count);
  if (g.has_mask_registers()) {
    g.mov(g.rdx, -1);
    g.bzhi(g.rdx, g.rdx, g.rax);
    if (NESTOR_MUTANT("tail_mask_inverted")) g.not_(g.rdx);
    return g.kmovq(g.Mask(op.result), g.rdx);
  }
  const int bytes = RegisterBytes(op);
  const VectorRegister r = g.Vector(op.result.value, bytes), low = g.Vector(op.result.value, 16);
  // 0, 1, 2, ..: lane i takes part where count > i.
  const Xbyak::Address numbers = g.Constant(PoolConstant{op.lane, 0, 1}, bytes);
  g.vmovd(low, g.eax);
  BY_INTEGER_LANE(vpbroadcastb, vpbroadcastw, vpbroadcastd, vpbroadcastq)(r, low);
  BY_INTEGER_LANE(vpcmpgtb, vpcmpgtw, vpcmpgtd, vpcmpgtq)(r, r, numbers);
  if (NESTOR_MUTANT("tail_mask_inverted"))
    g.vpxor(r, r, g.Constant(PoolConstant{Lane::kI64, ~uint64_t{0}, 0}, bytes));
}

// By the sign bit of each lane. Where masks are vectors, the lanes are the mask.
void EmitMaskOfLanes(Generator& g, const Operation& op) {
  if (!g.has_mask_registers()) return EmitMove(g, op);
  const VectorRegister a = g.Loaded(op.operands[0], RegisterBytes(op));
  BY_LANE(vpmovb2m, vpmovw2m, vpmovd2m, vpmovq2m, vpmovd2m, vpmovq2m)(g.Mask(op.result), a);
}

void EmitLanesOfMask(Generator& g, const Operation& op) {
  if (!g.has_mask_registers()) return EmitMove(g, op);
  const Xbyak::Opmask a = g.Mask(op.operands[0]);
  BY_LANE(vpmovm2b, vpmovm2w, vpmovm2d, vpmovm2q, vpmovm2d, vpmovm2q)(g.Result(op), a);
}

namespace {

// mask ? b : c as (mask & b) | (~mask & c), if the mask and c are in memory and the result is b:
// one scratch vector is enough.
void BlendByBits(Generator& g, const Operation& op) {
  const int bytes = RegisterBytes(op);
  const VectorRegister r = g.Result(op), mask = g.Loaded(op.operands[0], bytes);
  g.vandps(r, r, mask);
  g.vandnps(mask, mask, g.VectorPlace(op.operands[2], bytes));
  g.vorps(r, r, mask);
}

}  // namespace

// A mask that is a vector is an operand of its own, in a register, and only the value that is taken
// where the mask is set can be in memory; others are brought to the result or the scratch register,
// as long as the result holds none of them.
void EmitBlend(Generator& g, const Operation& op) {
  const int bytes = RegisterBytes(op);
  const Operand &mask = op.operands[0], &b = op.operands[1], &c = op.operands[2];
  const VectorRegister r = g.Result(op);
  if (g.has_mask_registers()) {
    const VectorRegister otherwise = g.Loaded(c, bytes);
    const auto blend = BY_LANE(vpblendmb, vpblendmw, vpblendmd, vpblendmq, vblendmps, vblendmpd);
    return blend(r | g.Mask(mask), otherwise, g.VectorPlace(b, bytes));
  }
  const auto blend = BY_LANE(vpblendvb, vpblendvb, vpblendvb, vpblendvb, vblendvps, vblendvpd);
  if (mask.is_register()) {
    const VectorRegister otherwise = g.Loaded(c, bytes);
    return blend(r, otherwise, g.VectorPlace(b, bytes), g.Vector(mask.value, bytes));
  }
  if (IsMemory(c) && b == op.result) return BlendByBits(g, op);
  if (IsMemory(c)) g.LoadVector(r, c, bytes);
  const VectorRegister otherwise = IsMemory(c) ? r : g.Vector(c.value, bytes);
  const VectorRegister m = g.Loaded(mask, bytes);
  blend(r, otherwise, g.VectorPlace(b, bytes), m);
}

}  // namespace nestor::jit
