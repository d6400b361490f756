// The low-level operation list: what a function of a kernel does, on an unlimited number of
// registers. It is the input of register allocation and of the emission of machine code.
//
// A vector holds `lanes` lanes of one kind: a power of two. Element types of less than 32
// bits are widened when loaded and narrowed when stored:
//   f64 -> kF64    other floats -> kF32    integers of 64 bits -> kI64    of fewer, bool -> kI32
// Integers and bool can have lanes of their own width instead, kI8 or kI16, on request. These have
// no conversions, and those of 8 bits no products and shifts; elements are as wide as they are, but
// for a bool that is broadcast.
// A scalar is a vector of one lane. An operation on up to 16 bytes uses a 128-bit
// register; its lanes beyond `lanes` hold anything.
//
// Registers are not SSA: an operation may write one that was written before. Control
// is structured: loops nest (LoopBegin..LoopEnd), other jumps go forward and leave no
// more loops than they enter. Every register is written before it is read on each
// path, and one that a loop carries around is written before the loop.
//
// A list is a value; not thread-safe while built.
#ifndef NESTOR_JIT_CODEGEN_OPERATIONS_H_
#define NESTOR_JIT_CODEGEN_OPERATIONS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "jit/target/isa.h"
#include "jit/target/lanes.h"
#include "uops/dtype.h"

namespace nestor::jit {

enum class Opcode : uint8_t {
#define OPERATION(Enumerator, ...) k##Enumerator,
#include "jit/codegen/operations.inc"
#undef OPERATION
};
constexpr int kNumOpcodes = static_cast<int>(Opcode::kReturn) + 1;

enum class RegisterClass : uint8_t { kNone, kVector, kMask, kGeneral };

// Where masks live: in vector registers if the set has no others (lanes of all ones or zeros).
constexpr bool MasksAreVectors(Isa isa) { return FactsOf(isa).masks == 0; }
constexpr RegisterClass ClassOfMasks(Isa isa) {
  return MasksAreVectors(isa) ? RegisterClass::kVector : RegisterClass::kMask;
}

// Kinds of lanes: bit i stands for Lane i.
using LaneSet = uint8_t;
constexpr LaneSet SetOf(Lane lane) { return static_cast<LaneSet>(1 << static_cast<int>(lane)); }
constexpr LaneSet kAllLanes = (1 << kNumLanes) - 1;

enum class ImmediateKind : uint8_t {
  kNone,
  kNumber,
  kRounding,   // a RoundingMode
  kLaneKind,   // a Lane
  kPredicate,  // a Predicate
  kCondition,  // a Condition
  kLabel
};

enum Trait : uint8_t {
  kIsMove = 1,           // a mere copy, whose result may be kStack where its operand is a register
  kCommutes = 2,         // a and b may be swapped
  kIntegersCommute = 4,  // ... if their lanes are integers
  kTakesMemory = 8,      // an operand may be in memory: see StackOperandOf
  // The emitter may write the result before it has read all operands, so that the two need
  // different registers. (An operation that redefines one of its own operands has the same register
  // for both all the same.)
  kWritesEarly = 16,
  kHoists = 32,       // worth a register all through a loop that does not change its operands
  kConditional = 64,  // jumps if its condition holds
};

// One row of operations.inc.
struct OpcodeInfo {
  Opcode opcode;
  absl::string_view name;
  RegisterClass result, operands[3];  // kMask as the table says, whatever the instruction set
  LaneSet lanes = kAllLanes;
  LaneSet only_evex = 0;  // those of `lanes` for which there are instructions in EVEX alone
  ImmediateKind immediate = ImmediateKind::kNone;
  uint8_t traits = 0;

  bool Is(Trait trait) const { return (traits & trait) != 0; }
  // The number of the last operand; -1: there is none.
  int LastOperand() const {
    int last = 2;
    while (last >= 0 && operands[last] == RegisterClass::kNone) --last;
    return last;
  }
};
const OpcodeInfo& Info(Opcode opcode);

// Whether the set has instructions for the operation on such lanes. (Convert: HasConversion.)
bool HasOperation(Isa isa, Opcode opcode, Lane lane);
// i32 -> f32, i32 -> f64, i32 -> i64 (signed), i64 -> i32 (truncated), f32 -> f64, f64 -> f32,
// f32 -> i32, f64 -> i32 (towards zero; INT32_MIN outside). With EVEX alone: i64 <-> floats
// (f64 -> i64 towards zero; INT64_MIN outside; i64 -> f32 rounds once).
bool HasConversion(Isa isa, Lane from, Lane to);

enum class RoundingMode : uint8_t { kNearest, kFloor, kCeil, kTruncate };

// For floats all of them, for integers kEqual and kLess (signed).
enum class Predicate : uint8_t { kEqual, kLess, kLessEqual, kUnordered, kNotEqual };

// Signed.
// kBelow compares numbers without a sign.
enum class Condition : uint8_t {
  kEqual,
  kNotEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kBelow
};

// Nine bytes, not sixteen: what a compilation reads and writes most are lists of operations.
struct [[gnu::packed]] Operand {
  enum Kind : uint8_t {
    kNone,
    kRegister,   // number of a virtual register; after allocation of a physical one
    kConstant,   // of the pool; vectors only
    kImmediate,  // general only
    // The 64-bit slot of that number of the table that the function is given; general only.
    kTable,
    kStack,  // after allocation: the spill slot of that number
  };
  Kind kind = kNone;
  int64_t value = 0;

  static Operand Register(int64_t v) { return {kRegister, v}; }
  static Operand Constant(int64_t v) { return {kConstant, v}; }
  static Operand Immediate(int64_t v) { return {kImmediate, v}; }
  static Operand Table(int64_t v) { return {kTable, v}; }
  bool is_register() const { return kind == kRegister; }
  friend bool operator==(const Operand& x, const Operand& y) {
    return x.kind == y.kind && x.value == y.value;
  }
  template <class H>
  friend H AbslHashValue(H h, const Operand& x) {
    return H::combine(std::move(h), Kind{x.kind}, int64_t{x.value});
  }
};

// base + index * scale + displacement, in bytes. Base and index are general
// registers; index may be none. Element types may lie at any alignment.
struct Memory {
  Operand base, index;
  int8_t scale = 1;  // 1, 2, 4, 8
  int32_t displacement = 0;
  friend bool operator==(const Memory& x, const Memory& y) = default;
};

struct Operation {
  Opcode opcode;
  Lane lane = Lane::kI32;  // of the result; of operand a if there is no result, or it is a mask
  uint8_t lanes = 1;
  DType type = DType::kI32;  // of memory
  Condition condition = Condition::kEqual;
  Operand result = {};  // kRegister or kNone
  Operand operands[3] = {};
  bool invariant = false;  // of a load: the memory does not change while the function runs
  bool likely = false;     // of a branch: mostly taken, skipping the code that it jumps over
  Memory memory = {};
  int32_t immediate = 0;
  // The statement of the program that this comes from, or -1; for fault reports.
  int32_t statement = -1;
};

// The widths of the vectors and masks of an operation follow from its lanes. They are defined here
// alone: emitters, passes and tests ask these functions.
//
// The lanes of operand `number`, which is a vector or a mask; a mask's are integers. They are
// op.lane except for conversions, masks that change their width, and memory.
Lane OperandLane(const Operation& op, int number);
Lane ResultLane(const Operation& op);
// Bytes of the register that holds so many lanes.
inline int RegisterBytes(int lanes, Lane lane) {
  return lanes * LaneBytes(lane) <= 16 ? 16 : lanes * LaneBytes(lane);
}
// For an operation on memory: whether elements are narrower than their lanes, and whether the lanes
// fill a register.
inline bool IsNarrow(const Operation& op) { return ByteSize(op.type) < LaneBytes(op.lane); }
inline bool FillsRegister(const Operation& op) { return op.lanes * LaneBytes(op.lane) >= 16; }
// Whether its operands a and b may be swapped.
bool Commutes(const Operation& op);
// Whether the set has the operation, on lanes or on none.
bool IsInSet(Isa isa, const Operation& op);
// Bytes of operand `number` that are read; bytes of the register that the result is in.
int OperandBytes(const Operation& op, int number);
int ResultBytes(const Operation& op);

inline bool HasMemory(const Operation& op) { return op.memory.base.kind != Operand::kNone; }
// Labels, jumps and loops.
inline bool IsControl(const Operation& operation) { return operation.opcode >= Opcode::kLabel; }
// Whether both compute the same value, into whatever register, if memory has not changed.
bool SameComputation(const Operation& x, const Operation& y);

// The bits of a vector constant: `bits` in every lane, or lane i holds
// bits + i * step (integer lanes).
struct PoolConstant {
  Lane lane;
  uint64_t bits = 0;
  uint64_t step = 0;
  friend bool operator==(const PoolConstant& x, const PoolConstant& y) {
    return LaneBytes(x.lane) == LaneBytes(y.lane) && x.bits == y.bits && x.step == y.step;
  }
  template <class H>
  friend H AbslHashValue(H h, const PoolConstant& x) {
    return H::combine(std::move(h), LaneBytes(x.lane), x.bits, x.step);
  }
};

struct OperationList {
  explicit OperationList(Isa isa_) : isa(isa_) {}

  Isa isa;
  std::vector<Operation> operations;
  // By virtual register: kVector, kMask (unless masks are vectors) or kGeneral.
  std::vector<RegisterClass> classes;
  std::vector<PoolConstant> constants;
  int labels = 0;

  Operand NewRegister(RegisterClass register_class) {
    classes.push_back(register_class);
    return Operand::Register(static_cast<int64_t>(classes.size()) - 1);
  }
  Operand NewVector() { return NewRegister(RegisterClass::kVector); }
  Operand NewMask() { return NewRegister(ClassOfMasks(isa)); }
  Operand NewGeneral() { return NewRegister(RegisterClass::kGeneral); }
  Operand AddConstant(const PoolConstant& constant);  // an equal one is shared
  int NewLabel() { return labels++; }

 private:
  absl::flat_hash_map<PoolConstant, int64_t> numbers_;  // of the first `numbered_` constants
  size_t numbered_ = 0;
};

// One line an operation: "v3 = fma.f32x8 v1, v2, c0". For tests and `print`.
std::string ToString(const OperationList& list);
std::string ToString(const OperationList& list, const Operation& operation);

}  // namespace nestor::jit

#endif  // NESTOR_JIT_CODEGEN_OPERATIONS_H_
