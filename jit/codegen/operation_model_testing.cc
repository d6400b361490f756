// A vector register is 64 bytes. A mask is a vector of zeros and ones, or a word with a bit per lane
// where the set has mask registers; both are read and written through the same two functions, so that
// the rest need not distinguish them.
#include "jit/codegen/operation_model_testing.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <vector>

#include "absl/base/casts.h"
#include "absl/strings/str_cat.h"
#include "uops/invariant.h"

namespace nestor::jit {
namespace {

using Bytes = std::array<uint8_t, 64>;

Bytes Junk() {
  Bytes bytes;
  bytes.fill(0xcb);
  return bytes;
}

struct Register {
  Bytes vector = Junk();
  uint64_t word = 0xcbcbcbcbcbcbcbcb;
};

template <class T>
T LaneAt(const Bytes& bytes, int lane) {
  T value;
  std::memcpy(&value, bytes.data() + lane * sizeof(T), sizeof(T));
  return value;
}
template <class T>
void SetLane(Bytes& bytes, int lane, T value) {
  std::memcpy(bytes.data() + lane * sizeof(T), &value, sizeof(T));
}

// Calls f with a zero of the C++ type of the lane.
template <class F>
auto VisitLane(Lane lane, F f) {
  switch (lane) {
    case Lane::kI8: return f(int8_t{});
    case Lane::kI16: return f(int16_t{});
    case Lane::kI32: return f(int32_t{});
    case Lane::kI64: return f(int64_t{});
    case Lane::kF32: return f(float{});
    case Lane::kF64: return f(double{});
  }
  __builtin_unreachable();
}

template <class T>
using Word =
    std::conditional_t<sizeof(T) == 1, uint8_t,
                       std::conditional_t<sizeof(T) == 2, uint16_t,
                                          std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>>;
template <class T>
constexpr int kBits = 8 * sizeof(T);
template <class T>
Word<T> BitsOf(T v) {
  return absl::bit_cast<Word<T>>(v);
}
template <class T>
T OfBits(uint64_t bits) {
  return absl::bit_cast<T>(static_cast<Word<T>>(bits));
}

template <class T>
T SignedShift(T v, uint64_t count) {
  const int64_t wide = static_cast<int64_t>(static_cast<std::make_signed_t<Word<T>>>(BitsOf(v)));
  return OfBits<T>(static_cast<uint64_t>(wide >> std::min<uint64_t>(count, kBits<T> - 1)));
}

template <class T>
T RoundTo(T v, RoundingMode mode) {
  switch (mode) {
    case RoundingMode::kNearest: return std::nearbyint(v);
    case RoundingMode::kFloor: return std::floor(v);
    case RoundingMode::kCeil: return std::ceil(v);
    case RoundingMode::kTruncate: return std::trunc(v);
  }
  __builtin_unreachable();
}

template <class T>
bool Holds(Predicate predicate, T a, T b) {
  switch (predicate) {
    case Predicate::kEqual: return a == b;
    case Predicate::kLess: return a < b;
    case Predicate::kLessEqual: return a <= b;
    case Predicate::kUnordered: return a != a || b != b;
    case Predicate::kNotEqual: return a != b;
  }
  __builtin_unreachable();
}

// As cvt does: gives the least integer for all values that do not fit.
template <class To, class From>
To Converted(From v) {
  if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    const From end = std::ldexp(From{1}, std::numeric_limits<To>::digits);
    return v >= -end && v < end ? static_cast<To>(v) : std::numeric_limits<To>::min();
  } else {
    return static_cast<To>(v);
  }
}

template <class T>
bool IsSignaling(T v) {
  const Word<T> quiet_bit = Word<T>{1} << (std::numeric_limits<T>::digits - 2);
  return std::isnan(v) && (BitsOf(v) & quiet_bit) == 0;
}

// As vrange does.
template <class T>
T MaxNumber(T a, T b) {
  if (IsSignaling(a) || IsSignaling(b)) return std::numeric_limits<T>::quiet_NaN();
  if (std::isnan(a)) return b;
  if (std::isnan(b)) return a;
  if (a == b) return std::signbit(a) ? b : a;
  return a > b ? a : b;
}

// As vscalef does.
template <class T>
T Scaled(T a, T b) {
  const T nan = std::numeric_limits<T>::quiet_NaN(), inf = std::numeric_limits<T>::infinity();
  if (std::isnan(b) || IsSignaling(a)) return nan;
  if (std::isnan(a)) return b == inf ? inf : b == -inf ? T{0} : nan;
  if (b == inf) return a == 0 ? nan : std::copysign(inf, a);
  if (b == -inf) return std::isinf(a) ? nan : std::copysign(T{0}, a);
  constexpr T kBeyondAll = 5000;
  return std::ldexp(a, static_cast<int>(std::floor(std::clamp(b, -kBeyondAll, kBeyondAll))));
}

// By C++ arithmetic of the same precision; min and max as x86 has them: b for a NaN and for two
// zeros.
template <class T>
T FloatOperation(Opcode opcode, T a, T b, T c, int64_t immediate) {
  switch (opcode) {
    case Opcode::kAdd: return a + b;
    case Opcode::kSub: return a - b;
    case Opcode::kMul: return a * b;
    case Opcode::kDiv: return a / b;
    case Opcode::kMinX86: return a < b ? a : b;
    case Opcode::kMaxX86: return a > b ? a : b;
    case Opcode::kMaxNumber: return MaxNumber(a, b);
    case Opcode::kScale: return Scaled(a, b);
    case Opcode::kSqrt: return std::sqrt(a);
    case Opcode::kFma: return std::fma(a, b, c);
    case Opcode::kRound: return RoundTo(a, static_cast<RoundingMode>(immediate));
    default: NESTOR_CHECK(false, absl::StrCat(Info(opcode).name, " of floats"));
  }
  return a;
}

// Unsigned inside, since C++ leaves the overflow of signed numbers undefined.
template <class T>
T IntegerOperation(Opcode opcode, T a, T b) {
  using U = Word<T>;
  switch (opcode) {
    case Opcode::kAdd: return static_cast<T>(U(a) + U(b));
    case Opcode::kSub: return static_cast<T>(U(a) - U(b));
    case Opcode::kMul: return static_cast<T>(U(a) * U(b));
    case Opcode::kMulU32:
      return static_cast<T>((uint64_t(a) & 0xffffffff) * (uint64_t(b) & 0xffffffff));
    case Opcode::kMinX86: return a < b ? a : b;
    case Opcode::kMaxX86: return a > b ? a : b;
    case Opcode::kMinUnsigned: return U(a) < U(b) ? a : b;
    case Opcode::kMaxUnsigned: return U(a) > U(b) ? a : b;
    default: NESTOR_CHECK(false, absl::StrCat(Info(opcode).name, " of integers"));
  }
  return a;
}

int32_t DotHalves(int32_t a, int32_t b, int32_t c) {
  const auto half = [](int32_t v, int shift) { return int64_t{static_cast<int16_t>(v >> shift)}; };
  return static_cast<int32_t>(c + half(a, 0) * half(b, 0) + half(a, 16) * half(b, 16));
}

// On the lane's bits; counts beyond the width shift everything out.
template <class T>
T BitOperation(Opcode opcode, T x, T y, int64_t immediate) {
  const Word<T> a = BitsOf(x), b = BitsOf(y);
  switch (opcode) {
    case Opcode::kMove: return x;
    case Opcode::kAnd: return OfBits<T>(a & b);
    case Opcode::kOr: return OfBits<T>(a | b);
    case Opcode::kXor: return OfBits<T>(a ^ b);
    case Opcode::kAndNot: return OfBits<T>(~a & b);
    case Opcode::kShiftLeft: return OfBits<T>(a << immediate);
    case Opcode::kShiftRight: return OfBits<T>(a >> immediate);
    case Opcode::kShiftRightSigned: return SignedShift(x, immediate);
    case Opcode::kShiftLeftBy: return OfBits<T>(b < kBits<T> ? a << b : 0);
    case Opcode::kShiftRightBy: return OfBits<T>(b < kBits<T> ? a >> b : 0);
    default: return SignedShift(x, b);
  }
}

bool IsBitOperation(Opcode opcode) {
  return opcode == Opcode::kMove ||
         (opcode >= Opcode::kAnd && opcode <= Opcode::kShiftRightSignedBy);
}

bool MovesLanes(Opcode opcode) {
  return opcode == Opcode::kUnpackLow || opcode == Opcode::kUnpackHigh ||
         opcode == Opcode::kPermute128 || opcode == Opcode::kShuffle128;
}

// Interleaves lanes of both operands, from lane `first` of each 128 bits on.
Bytes Unpacked(const Operation& op, int first, const Bytes& a, const Bytes& b) {
  const int bytes = LaneBytes(op.lane), in_block = 16 / bytes;
  Bytes result = Junk();
  for (int k = 0; k < op.lanes; ++k) {
    const int from = k / in_block * in_block + first + k % in_block / 2;
    std::memcpy(result.data() + bytes * k, (k % 2 == 0 ? a : b).data() + bytes * from, bytes);
  }
  return result;
}

// Each 4 bits of the immediate pick 128 bits of the result; the highest of them asks for zeros.
Bytes PermutedHalves(int64_t immediate, const Bytes& a, const Bytes& b) {
  Bytes result = Junk();
  for (int half = 0; half < 2; ++half) {
    const int64_t selector = immediate >> (4 * half);
    const Bytes zeros{};
    const Bytes& from = (selector & 8) != 0 ? zeros : (selector & 2) != 0 ? b : a;
    std::memcpy(result.data() + 16 * half, from.data() + 16 * (selector & 1), 16);
  }
  return result;
}

// Each 2 bits of the immediate pick 128 bits of the result.
Bytes ShuffledQuarters(int64_t immediate, const Bytes& a, const Bytes& b) {
  Bytes result;
  for (int quarter = 0; quarter < 4; ++quarter) {
    const int64_t from = immediate >> (2 * quarter) & 3;
    std::memcpy(result.data() + 16 * quarter, (quarter < 2 ? a : b).data() + 16 * from, 16);
  }
  return result;
}

Bytes Moved(const Operation& op, const Bytes& a, const Bytes& b) {
  switch (op.opcode) {
    case Opcode::kUnpackLow: return Unpacked(op, 0, a, b);
    case Opcode::kUnpackHigh: return Unpacked(op, 8 / LaneBytes(op.lane), a, b);
    case Opcode::kPermute128: return PermutedHalves(op.immediate, a, b);
    default: return ShuffledQuarters(op.immediate, a, b);
  }
}

class Model {
 public:
  Model(const OperationList& list, const int64_t* table)
      : list_(list), table_(table), registers_(list.classes.size()) {}

  void Run(const Operation& op) {
    Check(op);
    const OpcodeInfo& info = Info(op.opcode);
    if (info.result == RegisterClass::kGeneral) {
      registers_[op.result.value].word = static_cast<uint64_t>(GeneralResult(op));
    } else if (info.result == RegisterClass::kMask) {
      RunMask(op);
    } else if (op.opcode == Opcode::kStore) {
      RunStore(op);
    } else if (MovesLanes(op.opcode)) {
      registers_[op.result.value].vector =
          Moved(op, VectorOperand(op.operands[0]), VectorOperand(op.operands[1]));
    } else if (info.result == RegisterClass::kVector) {
      registers_[op.result.value].vector =
          VisitLane(op.lane, [&](auto zero) { return VectorOf<decltype(zero)>(op); });
    }
  }

 private:
  // An instruction takes one operand from memory, the last; a blend, and an fma without a constant
  // summand, the middle one, too.
  void Check(const Operation& op) const {
    NESTOR_CHECK(IsInSet(list_.isa, op),
                 absl::StrCat("not in ", Name(list_.isa), ": ", ToString(list_, op)));
    const Operand* const o = op.operands;
    const auto is_constant = [&](int i) { return o[i].kind == Operand::kConstant; };
    const int last = o[2].kind != Operand::kNone ? 2 : o[1].kind != Operand::kNone ? 1 : 0;
    const bool middle =
        op.opcode == Opcode::kBlend || (op.opcode == Opcode::kFma && !is_constant(2));
    for (int i = 0; i < last; ++i)
      NESTOR_CHECK(!is_constant(i) || (i == 1 && middle), ToString(list_, op));
  }

  // ---- Operands
  Bytes VectorOperand(const Operand& operand) const {
    if (operand.kind == Operand::kRegister) return registers_[operand.value].vector;
    Bytes bytes = Junk();
    if (operand.kind != Operand::kConstant) return bytes;
    const PoolConstant& constant = list_.constants[operand.value];
    const int width = LaneBytes(constant.lane);
    for (int i = 0; i < 64 / width; ++i) {
      const uint64_t bits = constant.bits + i * constant.step;
      std::memcpy(bytes.data() + i * width, &bits, width);
    }
    return bytes;
  }
  int64_t GeneralOperand(const Operand& operand) const {
    if (operand.kind == Operand::kImmediate) return operand.value;
    if (operand.kind == Operand::kTable) return table_[operand.value];
    return operand.kind == Operand::kRegister ? static_cast<int64_t>(registers_[operand.value].word)
                                              : 0;
  }
  bool MaskBit(const Operand& operand, int lane, int lane_bytes) const {
    const Register& r = registers_[operand.value];
    // The sign, as a blend reads it.
    if (MasksAreVectors(list_.isa)) return r.vector[(lane + 1) * lane_bytes - 1] >> 7;
    return r.word >> lane & 1;
  }
  void SetMaskBit(Register& r, int lane, int lane_bytes, bool value) const {
    if (MasksAreVectors(list_.isa)) {
      std::memset(r.vector.data() + lane * lane_bytes, value ? 0xff : 0, lane_bytes);
    } else {
      r.word = (r.word & ~(uint64_t{1} << lane)) | uint64_t{value} << lane;
    }
  }
  uint8_t* AddressOf(const Memory& memory) const {
    return reinterpret_cast<uint8_t*>(GeneralOperand(memory.base) +
                                      GeneralOperand(memory.index) * memory.scale +
                                      memory.displacement);
  }

  // ---- Results
  template <class T>
  Bytes VectorOf(const Operation& op) const {
    const Bytes a = VectorOperand(op.operands[0]), b = VectorOperand(op.operands[1]),
                c = VectorOperand(op.operands[2]);
    Bytes result = Junk();
    for (int i = 0; i < op.lanes; ++i) {
      const T x = LaneAt<T>(a, i), y = LaneAt<T>(b, i), z = LaneAt<T>(c, i);
      SetLane(result, i, LaneOfResult<T>(op, a, i, x, y, z));
    }
    return result;
  }

  // Lane i of a result; x, y, z are lane i of the operands.
  template <class T>
  T LaneOfResult(const Operation& op, const Bytes& a, int i, T x, T y, T z) const {
    if (IsBitOperation(op.opcode)) return BitOperation(op.opcode, x, y, op.immediate);
    switch (op.opcode) {
      case Opcode::kConvert:
        return VisitLane(static_cast<Lane>(op.immediate),
                         [&](auto from) { return Converted<T>(LaneAt<decltype(from)>(a, i)); });
      case Opcode::kRoundToF16: return static_cast<T>(F16::Round(static_cast<float>(x)).Widen());
      case Opcode::kBroadcast: return LaneAt<T>(a, 0);
      case Opcode::kBroadcastGeneral: return OfBits<T>(GeneralOperand(op.operands[0]));
      case Opcode::kLaneShift:
        return i + op.immediate < op.lanes ? LaneAt<T>(a, i + op.immediate) : OfBits<T>(0xcbcb);
      case Opcode::kLanesOfMask: return OfBits<T>(-uint64_t{MaskBit(op.operands[0], i, sizeof(T))});
      case Opcode::kBlend: return MaskBit(op.operands[0], i, sizeof(T)) ? y : z;
      case Opcode::kLoad: return Loaded<T>(op, i);
      default: break;
    }
    if constexpr (std::is_same_v<T, int32_t>) {
      if (op.opcode == Opcode::kDotHalves) return DotHalves(x, y, z);
    }
    if constexpr (std::is_floating_point_v<T>)
      return FloatOperation(op.opcode, x, y, z, op.immediate);
    else return IntegerOperation(op.opcode, x, y);
  }

  // Element i, widened to its lane.
  template <class T>
  T Loaded(const Operation& op, int i) const {
    return VisitType(op.type, [&](auto zero) {
      decltype(zero) element;
      if constexpr (std::is_same_v<decltype(zero), bool>) {
        return static_cast<T>(AddressOf(op.memory)[i]);
      } else {
        std::memcpy(&element, AddressOf(op.memory) + i * sizeof(element), sizeof(element));
        if constexpr (requires { element.Widen(); }) return static_cast<T>(element.Widen());
        else return static_cast<T>(element);
      }
    });
  }

  // Lanes of 16-bit floats hold f32: bf16 is its upper half, f16 is rounded.
  void RunStore(const Operation& op) {
    const Bytes a = VectorOperand(op.operands[0]);
    uint8_t* const to = AddressOf(op.memory);
    const int size = ByteSize(op.type);
    for (int i = 0; i < op.lanes; ++i) {
      uint64_t bits = 0;
      std::memcpy(&bits, a.data() + i * LaneBytes(op.lane), LaneBytes(op.lane));
      if (op.type == DType::kBF16) bits >>= 16;
      if (op.type == DType::kF16) bits = F16::Round(LaneAt<float>(a, i)).bits;
      std::memcpy(to + i * size, &bits, size);
    }
  }

  void RunMask(const Operation& op) {
    Register result;
    for (int i = 0; i < op.lanes; ++i)
      SetMaskBit(result, i, ResultMaskBytes(op), MaskResult(op, i));
    registers_[op.result.value] = result;
  }

  int ResultMaskBytes(const Operation& op) const {
    if (op.opcode == Opcode::kMaskWiden) return 8;
    if (op.opcode == Opcode::kMaskNarrow) return 4;
    return LaneBytes(op.lane);
  }

  // Bit i of a mask.
  bool MaskResult(const Operation& op, int i) const {
    const int bytes = LaneBytes(op.lane);
    const auto bit = [&](int operand) { return MaskBit(op.operands[operand], i, bytes); };
    switch (op.opcode) {
      case Opcode::kMaskMove:
      case Opcode::kMaskWiden:
      case Opcode::kMaskNarrow: return bit(0);
      case Opcode::kMaskAnd: return bit(0) && bit(1);
      case Opcode::kMaskOr: return bit(0) || bit(1);
      case Opcode::kMaskXor: return bit(0) != bit(1);
      case Opcode::kMaskAndNot: return !bit(0) && bit(1);
      case Opcode::kMaskOfCount: return i < GeneralOperand(op.operands[0]);
      case Opcode::kMaskOfLanes: return VectorOperand(op.operands[0])[(i + 1) * bytes - 1] >> 7;
      default: break;
    }
    const auto predicate = static_cast<Predicate>(op.immediate);
    NESTOR_CHECK(IsFloat(op.lane) || predicate <= Predicate::kLess, ToString(list_, op));
    return VisitLane(op.lane, [&](auto zero) {
      using T = decltype(zero);
      return Holds(predicate, LaneAt<T>(VectorOperand(op.operands[0]), i),
                   LaneAt<T>(VectorOperand(op.operands[1]), i));
    });
  }

  // Only what expansions use; REQUIRES of divisions: the divisor is not 0.
  int64_t GeneralResult(const Operation& op) const {
    const int64_t a = GeneralOperand(op.operands[0]), b = GeneralOperand(op.operands[1]);
    switch (op.opcode) {
      case Opcode::kMoveG: return a;
      case Opcode::kOrG: return a | b;
      case Opcode::kCompareG: {
        NESTOR_CHECK(op.immediate == static_cast<int64_t>(Condition::kEqual), "condition");
        return a == b;
      }
      case Opcode::kFloorDivG: {
        const auto negated = static_cast<int64_t>(-static_cast<uint64_t>(a));
        return b == -1 ? negated : a / b - (a % b != 0 && (a < 0) != (b < 0));
      }
      case Opcode::kFloorModG: {
        const int64_t r = b == -1 ? 0 : a % b;
        return r != 0 && (r < 0) != (b < 0) ? r + b : r;
      }
      case Opcode::kLaneG: {
        const Bytes v = VectorOperand(op.operands[0]);
        if (op.lane == Lane::kI64) return LaneAt<int64_t>(v, 0);
        return IsSigned(op.type) ? LaneAt<int32_t>(v, 0) : LaneAt<uint32_t>(v, 0);
      }
      default: NESTOR_CHECK(false, absl::StrCat("not modelled: ", Info(op.opcode).name));
    }
    return 0;
  }

  const OperationList& list_;
  const int64_t* table_;
  std::vector<Register> registers_;
};

}  // namespace

void RunModel(const OperationList& list, const int64_t* table) {
  Model model(list, table);
  for (const Operation& op : list.operations) model.Run(op);
}

}  // namespace nestor::jit
