// The table of operations, the pool of constants, and the text of a list.
//
// A register's letter follows from its place in the operation (v, m or g), not from
// the list's classes, so that the text is right before and after allocation:
//
//   c0 = f32 0x3f800000
//   loop_begin L0
//     v1 = load.f32x8 bf16 [g0 + g2 * 2 + 64]
//     m3 = compare.f32x8 less v1, c0
//     g2 = add_g g2, 8
//   loop_end less g2, table[3], L0
#include "jit/codegen/operations.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace nestor::jit {
namespace {

constexpr RegisterClass N = RegisterClass::kNone;
constexpr RegisterClass V = RegisterClass::kVector;
constexpr RegisterClass M = RegisterClass::kMask;
constexpr RegisterClass G = RegisterClass::kGeneral;

constexpr LaneSet kI16 = SetOf(Lane::kI16), kI32 = SetOf(Lane::kI32), kI64 = SetOf(Lane::kI64),
                  kF32 = SetOf(Lane::kF32), kFloats = kF32 | SetOf(Lane::kF64),
                  kIntegers = kAllLanes & ~kFloats, kNotI8 = kAllLanes & ~SetOf(Lane::kI8),
                  kWide = kNotI8 & ~kI16;

using enum ImmediateKind;

constexpr OpcodeInfo kOpcodes[] = {
#define OPERATION(Enumerator, text, to, a, b, c, ...) \
  {.opcode = Opcode::k##Enumerator, .name = text, .result = to, .operands = {a, b, c}, __VA_ARGS__},
#include "jit/codegen/operations.inc"
#undef OPERATION
};
static_assert(sizeof(kOpcodes) / sizeof(kOpcodes[0]) == kNumOpcodes, "kReturn is the last row");

constexpr const char* kLaneNames[] = {"i8", "i16", "i32", "i64", "f32", "f64"};
constexpr const char* kRoundingNames[] = {"nearest", "floor", "ceil", "truncate"};
constexpr const char* kPredicateNames[] = {"equal", "less", "less_equal", "unordered", "not_equal"};
constexpr const char* kConditionNames[] = {"equal",   "not_equal",     "less", "less_equal",
                                           "greater", "greater_equal", "below"};

template <class Value, size_t n>
absl::string_view NameIn(const char* const (&names)[n], Value value) {
  const auto i = static_cast<size_t>(value);
  return i < n ? names[i] : "?";
}

bool HasLanes(const OpcodeInfo& info) {
  const auto in_lanes = [](RegisterClass c) { return c == V || c == M; };
  return in_lanes(info.result) ||
         std::any_of(std::begin(info.operands), std::end(info.operands), in_lanes);
}

// Where masks live in vector registers (AVX2), they are written as those: v3, not m3.
std::string TextOf(const Operand& operand, RegisterClass place, Isa isa) {
  if (place == M) place = ClassOfMasks(isa);
  switch (operand.kind) {
    case Operand::kNone: return "none";
    case Operand::kRegister:
      return absl::StrCat(place == V ? "v" : place == M ? "m" : "g", operand.value);
    case Operand::kConstant: return absl::StrCat("c", operand.value);
    case Operand::kImmediate: return absl::StrCat(operand.value);
    case Operand::kTable: return absl::StrCat("table[", operand.value, "]");
    case Operand::kStack: return absl::StrCat("stack[", operand.value, "]");
  }
  return "?";
}

std::string TextOf(const Memory& memory, Isa isa) {
  std::string text = absl::StrCat("[", TextOf(memory.base, G, isa));
  if (memory.index.kind != Operand::kNone) {
    absl::StrAppend(&text, " + ", TextOf(memory.index, G, isa), " * ",
                    static_cast<int>(memory.scale));
  }
  if (memory.displacement > 0) absl::StrAppend(&text, " + ", memory.displacement);
  if (memory.displacement < 0)
    absl::StrAppend(&text, " - ", -static_cast<int64_t>(memory.displacement));
  return text + "]";
}

// The text before the operands: the rule that the operation follows, or the type of the elements
// in memory.
std::string TextOfVariant(const Operation& op) {
  if (Info(op.opcode).Is(kConditional))
    return absl::StrCat(" ", NameIn(kConditionNames, op.condition));
  switch (Info(op.opcode).immediate) {
    case kRounding: return absl::StrCat(" ", NameIn(kRoundingNames, op.immediate));
    case kLaneKind: return absl::StrCat(" from ", NameIn(kLaneNames, op.immediate));
    case kPredicate: return absl::StrCat(" ", NameIn(kPredicateNames, op.immediate));
    case kCondition: return absl::StrCat(" ", NameIn(kConditionNames, op.immediate));
    default: break;
  }
  if (!HasMemory(op) || op.opcode == Opcode::kAddressG) return "";
  return absl::StrCat(" ", Name(op.type), op.invariant ? " invariant" : "");
}

// The immediate, if it is a number.
std::string TextOfImmediate(const Operation& op) {
  switch (Info(op.opcode).immediate) {
    case kNumber: return absl::StrCat(op.immediate);
    case kLabel: return absl::StrCat("L", op.immediate);
    default: return "";
  }
}

std::string TextOf(const PoolConstant& constant) {
  std::string text =
      absl::StrCat(NameIn(kLaneNames, constant.lane), " 0x", absl::Hex(constant.bits));
  if (constant.step != 0) absl::StrAppend(&text, " + lane * 0x", absl::Hex(constant.step));
  return text;
}

}  // namespace

const OpcodeInfo& Info(Opcode opcode) { return kOpcodes[static_cast<int>(opcode)]; }

bool HasOperation(Isa isa, Opcode opcode, Lane lane) {
  const OpcodeInfo& info = Info(opcode);
  const LaneSet lacking = FactsOf(isa).evex ? LaneSet{0} : info.only_evex;
  return (info.lanes & ~lacking & SetOf(lane)) != 0;
}

// Only EVEX has vector instructions from 64-bit integers to floats and back.
bool HasConversion(Isa isa, Lane from, Lane to) {
  if (from == to || LaneBytes(from) < 4 || LaneBytes(to) < 4) return false;
  const bool of_i64_and_float =
      (from == Lane::kI64 && IsFloat(to)) || (IsFloat(from) && to == Lane::kI64);
  return !of_i64_and_float || FactsOf(isa).evex;
}

namespace {

// A mask of f64 lanes has lanes of i64: ones or zeros, of the same width.
Lane LaneAt(RegisterClass place, Lane lane) {
  return place == M ? IntegerLane(LaneBytes(lane)) : lane;
}

bool ReadsLaneZeroOnly(Opcode opcode) {
  return opcode == Opcode::kBroadcast || opcode == Opcode::kLaneG;
}

}  // namespace

Lane OperandLane(const Operation& op, int number) {
  if (op.opcode == Opcode::kConvert) return static_cast<Lane>(op.immediate);
  return LaneAt(Info(op.opcode).operands[number], op.lane);
}

Lane ResultLane(const Operation& op) {
  if (op.opcode == Opcode::kMaskWiden) return Lane::kI64;
  if (op.opcode == Opcode::kMaskNarrow) return Lane::kI32;
  return LaneAt(Info(op.opcode).result, op.lane);
}

bool Commutes(const Operation& op) {
  const OpcodeInfo& info = Info(op.opcode);
  return info.Is(kCommutes) || (info.Is(kIntegersCommute) && !IsFloat(op.lane));
}

bool IsInSet(Isa isa, const Operation& op) {
  if (op.opcode == Opcode::kConvert) {
    const Lane from = OperandLane(op, 0);
    return from == op.lane || HasConversion(isa, from, op.lane);
  }
  return !HasLanes(Info(op.opcode)) || HasOperation(isa, op.opcode, op.lane);
}

int OperandBytes(const Operation& op, int number) {
  return RegisterBytes(ReadsLaneZeroOnly(op.opcode) ? 1 : op.lanes, OperandLane(op, number));
}

int ResultBytes(const Operation& op) { return RegisterBytes(op.lanes, ResultLane(op)); }

bool SameComputation(const Operation& x, const Operation& y) {
  return x.opcode == y.opcode && x.lane == y.lane && x.lanes == y.lanes &&
         x.immediate == y.immediate && x.condition == y.condition &&
         std::equal(x.operands, x.operands + 3, y.operands) && x.type == y.type &&
         x.memory == y.memory;
}

// Constants that were put into the list without this function are numbered first.
Operand OperationList::AddConstant(const PoolConstant& constant) {
  PoolConstant wanted = constant;
  if (const int bits = 8 * LaneBytes(wanted.lane); bits < 64) {
    // A negative number comes sign-extended; only the lane's own bits count.
    const uint64_t own = (uint64_t{1} << bits) - 1;
    wanted.bits &= own;
    wanted.step &= own;
  }
  for (; numbered_ < constants.size(); ++numbered_) {
    numbers_.try_emplace(constants[numbered_], static_cast<int64_t>(numbered_));
  }
  const auto [known, is_new] = numbers_.try_emplace(wanted, static_cast<int64_t>(numbered_));
  if (is_new) {
    constants.push_back(wanted);
    ++numbered_;
  }
  return Operand::Constant(known->second);
}

std::string ToString(const OperationList& list, const Operation& op) {
  const OpcodeInfo& info = Info(op.opcode);
  std::string text;
  if (op.result.kind != Operand::kNone)
    absl::StrAppend(&text, TextOf(op.result, info.result, list.isa), " = ");
  absl::StrAppend(&text, info.name);
  if (HasLanes(info))
    absl::StrAppend(&text, ".", NameIn(kLaneNames, op.lane), "x", static_cast<int>(op.lanes));
  absl::StrAppend(&text, TextOfVariant(op));

  const char* separator = " ";
  const auto add = [&](absl::string_view part) {
    absl::StrAppend(&text, separator, part);
    separator = ", ";
  };
  if (HasMemory(op)) add(TextOf(op.memory, list.isa));
  for (int i = 0; i < 3; ++i) {
    if (info.operands[i] != N) add(TextOf(op.operands[i], info.operands[i], list.isa));
  }
  const std::string immediate = TextOfImmediate(op);
  if (!immediate.empty()) add(immediate);
  return text;
}

// Loops are indented; labels and jumps are not, since they need not nest.
std::string ToString(const OperationList& list) {
  std::string text;
  for (size_t i = 0; i < list.constants.size(); ++i) {
    absl::StrAppend(&text, "c", i, " = ", TextOf(list.constants[i]), "\n");
  }
  size_t depth = 0;
  for (const Operation& op : list.operations) {
    if (op.opcode == Opcode::kLoopEnd && depth > 0) --depth;
    absl::StrAppend(&text, std::string(2 * depth, ' '), ToString(list, op), "\n");
    if (op.opcode == Opcode::kLoopBegin) ++depth;
  }
  return text;
}

}  // namespace nestor::jit
