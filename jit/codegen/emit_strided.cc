// Loads and stores of elements at a stride: exactly the elements that an operation names are
// touched. Elements are gathered and scattered one by one in the packed form (packed_elements.h);
// every second element of whole vectors is picked from, or stored into, two vectors side by side.
#include <algorithm>
#include <cstdint>

#include "jit/codegen/emitters.h"
#include "jit/codegen/packed_elements.h"

namespace nestor::jit {
namespace {

// Gives addresses in turn. With a known stride they have displacements; else rax moves on after
// every other one.
class StridedAddresses {
 public:
  StridedAddresses(Generator& g, const Operation& op, const Operand& stride)
      : g_(g), memory_(op.memory) {
    known_ = stride.kind == Operand::kImmediate && IsSmall(stride.value) &&
             IsSmall(op.memory.displacement);
    if (known_) {
      bytes_ = stride.value;
    } else {
      g.lea(g.rax, g.ptr[g.AddressOf(op.memory)]);
      stride_ = g.LoadedGeneral(stride, g.rdx);
    }
  }

  // REQUIRES: called with 0, 1, 2, ...; the code for each runs before that for the next.
  Xbyak::RegExp Of(int i) {
    if (known_) return g_.AddressOf(memory_, i * bytes_);
    if (i % 2 == 1) return g_.rax + stride_;
    if (i > 0) g_.lea(g_.rax, g_.ptr[g_.rax + stride_ * 2]);
    return g_.rax;
  }

 private:
  // Whether displacements up to the stride times the lanes stay in 32 bits.
  static bool IsSmall(int64_t bytes) { return bytes >= -(1 << 26) && bytes < (1 << 26); }

  Generator& g_;
  const Memory& memory_;
  bool known_;
  int64_t bytes_ = 0;
  Xbyak::Reg64 stride_;
};

// The number of elements, if it is known only when the code runs.
class Countdown {
 public:
  // `count` may be kNone: all elements.
  Countdown(Generator& g, const Operand& count, int lanes) : g_(g), count_(count), limit_(lanes) {
    if (count.kind == Operand::kImmediate)
      limit_ = static_cast<int>(std::min<int64_t>(count.value, lanes));
  }
  int limit() const { return limit_; }
  // Jumps to `end` if there is no element i.
  void Check(int i, Xbyak::Label& end) {
    if (count_.kind == Operand::kNone || count_.kind == Operand::kImmediate) return;
    g_.cmp(g_.GeneralPlace(count_), static_cast<uint32_t>(i));
    g_.jle(end, Xbyak::CodeGenerator::T_NEAR);
  }

 private:
  Generator& g_;
  const Operand count_;
  int limit_;
};

void AddTo(Generator& g, const Xbyak::Reg64& to, const Operand& number) {
  if (number.kind != Operand::kImmediate) {
    g.add(to, g.GeneralPlace(number));
  } else if (number.value == static_cast<int32_t>(number.value)) {
    g.add(to, static_cast<uint32_t>(number.value));
  } else {
    g.add(to, g.Constant(PoolConstant{Lane::kI64, static_cast<uint64_t>(number.value), 0}, 16));
  }
}

void InsertQuarter(Generator& g, const VectorRegister& r, const VectorRegister& quarter,
                   int position) {
  const uint8_t at = static_cast<uint8_t>(position);
  g.has_evex() ? g.vinserti32x4(r, r, quarter, at) : g.vinserti128(r, r, quarter, at);
}

// Gathers 128 bits at a time, all but the first through the scratch vector.
void GatherPacked(Generator& g, const Operation& op, const Operand& count) {
  const int element = ByteSize(op.type), per_quarter = 16 / element;
  const VectorRegister r = g.Vector(op.result.value, std::max(16, PackedBytes(op)));
  StridedAddresses addresses(g, op, op.operands[0]);
  Countdown countdown(g, count, op.lanes);
  for (int begin = 0; begin < op.lanes; begin += per_quarter) {
    const VectorRegister quarter = begin == 0 ? Xmm(g, r) : g.Scratch(16);
    Xbyak::Label end;
    g.Zero(quarter);
    for (int i = begin; i < std::min(countdown.limit(), begin + per_quarter); ++i) {
      countdown.Check(i, end);
      Insert(g, quarter, addresses.Of(i), element, i - begin);
    }
    g.L(end);
    if (begin > 0) InsertQuarter(g, r, quarter, begin / per_quarter);
  }
}

}  // namespace

// Gathers the elements at a stride that the mask has: its bits, or one bit for each byte of a mask
// that is a vector, are tested one by one.
void EmitGatherMasked(Generator& g, const Operation& op) {
  const int element = ByteSize(op.type), per_quarter = 16 / element;
  const int bits_per_lane = g.has_mask_registers() ? 1 : LaneBytes(op.lane);
  if (g.has_mask_registers()) g.kmovq(g.rdx, g.Mask(op.operands[1]));
  else g.vpmovmskb(g.edx, g.Loaded(op.operands[1], WideBytes(op)));
  g.lea(g.rax, g.ptr[g.AddressOf(op.memory)]);
  const VectorRegister r = g.Vector(op.result.value, std::max(16, PackedBytes(op)));
  for (int begin = 0; begin < op.lanes; begin += per_quarter) {
    const VectorRegister quarter = begin == 0 ? Xmm(g, r) : g.Scratch(16);
    g.Zero(quarter);
    for (int i = begin; i < std::min<int>(op.lanes, begin + per_quarter); ++i) {
      Xbyak::Label skip;
      g.bt(g.rdx, static_cast<uint8_t>(i * bits_per_lane));
      g.jnc(skip);
      Insert(g, quarter, g.rax, element, i - begin);
      g.L(skip);
      if (i + 1 < op.lanes) AddTo(g, g.rax, op.operands[0]);
    }
    if (begin > 0) InsertQuarter(g, r, quarter, begin / per_quarter);
  }
}

namespace {

// Whether every second element of 32 bits is loaded: these are taken from two vectors that overlap
// by one element, so that nothing past the last element is read.
bool IsEverySecond(const Operation& op) {
  return op.operands[0] == Operand::Immediate(8) && ByteSize(op.type) == 4 && op.lanes >= 8;
}

// `r` has the first vector. Takes two elements of each in turn; then orders these pairs within
// halves of 256 bits; and then the halves.
void TakeEverySecond(Generator& g, const VectorRegister& r, const VectorRegister& last, int bytes) {
  constexpr uint8_t kFromOddLane = 0xD8, kMiddleTwoSwapped = 0xD8;
  g.vshufps(r, r, last, kFromOddLane);
  g.vpermpd(r, r, kMiddleTwoSwapped);
  if (bytes == 64) g.vshuff64x2(r, r, r, kMiddleTwoSwapped);
}

void LoadEverySecond(Generator& g, const Operation& op) {
  const int bytes = 4 * op.lanes;
  const VectorRegister r = g.Vector(op.result.value, bytes), last = g.Scratch(bytes);
  g.vmovups(last, g.ptr[g.AddressOf(op.memory, bytes - 4)]);
  g.vmovups(r, g.ptr[g.AddressOf(op.memory)]);
  TakeEverySecond(g, r, last, bytes);
}

// For `count` elements, 2 * count - 1 are read: those of the first vector whose numbers are below
// that, and those of the last one. The scratch vector holds that number, until it is the last one's
// turn. A mask register, if there are any, is borrowed.
void LoadEverySecondOf(Generator& g, const Operation& op, const Operand& count) {
  const int bytes = 4 * op.lanes;
  const VectorRegister r = g.Vector(op.result.value, bytes), last = g.Scratch(bytes);
  const Xbyak::Address first_elements = g.ptr[g.AddressOf(op.memory)];
  const Xbyak::Address last_elements = g.ptr[g.AddressOf(op.memory, bytes - 4)];
  const auto numbers_from = [&](int number) {
    return g.Constant(PoolConstant{Lane::kI32, static_cast<uint64_t>(number), 1}, bytes);
  };
  g.LoadGeneral(g.rdx, count);
  g.lea(g.edx, g.ptr[g.rdx * 2 - 1]);
  g.vmovd(Xmm(g, last), g.edx);
  g.vpbroadcastd(last, Xmm(g, last));
  if (g.has_mask_registers()) {
    const Xbyak::Opmask mask = g.BorrowedMask();
    g.kmovq(g.rax, mask);
    g.vpcmpgtd(mask, last, numbers_from(0));
    g.vmovups(r | mask | g.T_z, first_elements);
    g.vpcmpgtd(mask, last, numbers_from(op.lanes - 1));
    g.vmovups(last | mask | g.T_z, last_elements);
    g.kmovq(mask, g.rax);
  } else {
    g.vpcmpgtd(r, last, numbers_from(0));
    g.vmaskmovps(r, r, first_elements);
    g.vpcmpgtd(last, last, numbers_from(op.lanes - 1));
    g.vmaskmovps(last, last, last_elements);
  }
  TakeEverySecond(g, r, last, bytes);
}

// Whether every second integer of 8 or 16 bits is loaded to 32-bit lanes, from the same two
// vectors: in the first they are the lower halves of lanes of twice the width, in the last one the
// upper halves.
bool IsEverySecondNarrow(const Operation& op) {
  const int element = ByteSize(op.type);
  return IsInteger(op.type) && IsNarrow(op) && op.operands[0] == Operand::Immediate(2 * element) &&
         op.lanes >= 8;
}

// The upper halves of lanes of 16 or 32 bits, extended by their sign or by zeros.
void ShiftDown(Generator& g, const VectorRegister& x, DType type) {
  if (ByteSize(type) == 1) return IsSigned(type) ? g.vpsraw(x, x, 8) : g.vpsrlw(x, x, 8);
  IsSigned(type) ? g.vpsrad(x, x, 16) : g.vpsrld(x, x, 16);
}

void LoadEverySecondNarrow(Generator& g, const Operation& op) {
  const int element = ByteSize(op.type), bytes = element * op.lanes;  // of each vector
  const VectorRegister r = g.Vector(op.result.value, std::max(bytes, 16)),
                       last = g.Scratch(std::max(bytes, 16));
  LoadPacked(g, last, g.AddressOf(op.memory, bytes - element), bytes);
  LoadPacked(g, r, g.AddressOf(op.memory), bytes);
  element == 1 ? g.vpsllw(r, r, 8) : g.vpslld(r, r, 16);
  ShiftDown(g, r, op.type);
  ShiftDown(g, last, op.type);
  const VectorRegister both = g.Vector(op.result.value, 2 * bytes);
  constexpr uint8_t kLowerHalves = 0x44;
  switch (bytes) {
    case 8: g.vpunpcklqdq(r, r, last); break;
    case 16: InsertQuarter(g, both, last, 1); break;
    default: g.vshuff64x2(both, both, g.Scratch(64), kLowerHalves); break;
  }
  if (element > 1) return;
  const DType words = IsSigned(op.type) ? DType::kI16 : DType::kU16;
  Widen(g, g.Vector(op.result.value, WideBytes(op)), g.Vector(op.result.value, 2 * bytes), words);
}

// 128 bits of `from` in a register of that width.
VectorRegister Quarter(Generator& g, const Operand& from, int position) {
  const uint8_t at = static_cast<uint8_t>(position);
  const VectorRegister scratch = g.Scratch(16);
  if (!from.is_register()) {
    const Xbyak::RegExp offset(static_cast<size_t>(16 * position));
    if (from.kind == Operand::kStack) {
      g.vmovups(scratch, g.ptr[g.rsp + static_cast<size_t>(from.value) + offset]);
    } else {
      g.vmovups(scratch, g.ConstantQuarter(from.value, position));
    }
    return scratch;
  }
  if (position == 0) return g.Vector(from.value, 16);
  const VectorRegister whole = g.Vector(from.value, VectorBytes(g.isa()));
  g.has_evex() ? g.vextracti32x4(scratch, whole, at) : g.vextracti128(scratch, whole, at);
  return scratch;
}

void ScatterPacked(Generator& g, const Operation& op, const Operand& count) {
  const int element = ByteSize(op.type), per_quarter = 16 / element;
  Operand from = op.operands[0];
  if (IsNarrow(op)) from = Operand::Register(Pack(g, op, from).getIdx());
  StridedAddresses addresses(g, op, op.operands[1]);
  Countdown countdown(g, count, op.lanes);
  Xbyak::Label end;
  for (int begin = 0; begin < countdown.limit(); begin += per_quarter) {
    const VectorRegister quarter = Quarter(g, from, begin / per_quarter);
    for (int i = begin; i < std::min(countdown.limit(), begin + per_quarter); ++i) {
      countdown.Check(i, end);
      Extract(g, addresses.Of(i), quarter, element, i - begin);
    }
  }
  g.L(end);
}

// Whether elements of 32 bits are stored to every second place, 8 of them by a masked store of 64
// bytes. Stores by a mask that is a vector are no faster than one store per element.
bool GoesToEverySecond(const Generator& g, const Operation& op) {
  return g.has_mask_registers() && VectorBytes(g.isa()) >= 64 &&
         op.operands[1] == Operand::Immediate(8) && ByteSize(op.type) == 4 && op.lanes >= 8 &&
         op.operands[0].is_register();
}

// Lanes of twice the width have an element in their lower halves, and a mask leaves the upper ones
// of memory alone. A mask register is borrowed.
void StoreEverySecond(Generator& g, const Operation& op, const Operand& count) {
  constexpr uint32_t kLowerHalves = 0x55555555;
  const auto from = static_cast<int>(op.operands[0].value);
  const VectorRegister wide = g.Scratch(64), half = g.Scratch(32);
  const Xbyak::Opmask mask = g.BorrowedMask();
  if (count.kind == Operand::kNone) {
    g.mov(g.edx, kLowerHalves);
  } else {
    g.LoadGeneral(g.rdx, count);
    g.add(g.edx, g.edx);
    g.mov(g.eax, kLowerHalves);
    g.bzhi(g.edx, g.eax, g.edx);
  }
  g.kmovq(g.rax, mask);
  g.kmovd(mask, g.edx);
  g.vpmovzxdq(wide, g.Vector(from, 32));
  g.vmovdqu32(g.ptr[g.AddressOf(op.memory)] | mask, wide);
  if (op.lanes == 16) {
    g.vextracti64x4(half, Xbyak::Zmm(g.Vector(from, 64).getIdx()), 1);
    g.vpmovzxdq(wide, half);
    g.kshiftrd(mask, mask, 16);
    g.vmovdqu32(g.ptr[g.AddressOf(op.memory, 64)] | mask, wide);
  }
  g.kmovq(mask, g.rax);
}

}  // namespace

void EmitLoadStrided(Generator& g, const Operation& op) {
  if (IsEverySecond(op)) return LoadEverySecond(g, op);
  if (IsEverySecondNarrow(op)) return LoadEverySecondNarrow(g, op);
  GatherPacked(g, op, Operand());
  WidenInPlace(g, op);
}

void EmitLoadStridedPartial(Generator& g, const Operation& op) {
  if (IsEverySecond(op)) return LoadEverySecondOf(g, op, op.operands[2]);
  GatherPacked(g, op, op.operands[2]);
  WidenInPlace(g, op);
}

void EmitStoreStrided(Generator& g, const Operation& op) {
  GoesToEverySecond(g, op) ? StoreEverySecond(g, op, Operand()) : ScatterPacked(g, op, Operand());
}
void EmitStoreStridedPartial(Generator& g, const Operation& op) {
  GoesToEverySecond(g, op) ? StoreEverySecond(g, op, op.operands[2])
                           : ScatterPacked(g, op, op.operands[2]);
}

}  // namespace nestor::jit
