// Every row on every type against the interpreter's functions, bit for bit: run as
// machine code where the CPU can, and on a model of the operations for every
// instruction set.
#include "jit/codegen/scalar_rows.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "jit/codegen/allocate_registers.h"
#include "jit/codegen/emit.h"
#include "jit/codegen/operation_model_testing.h"
#include "jit/codegen/registers.h"
#include "jit/runtime/code_memory.h"
#include "jit/runtime/cpu_features.h"
#include "uops/invariant.h"
#include "uops/scalar_body.h"

namespace nestor::jit {
namespace {

enum class Means { kModel, kMachine };
struct Engine {
  Isa isa;
  Means means;
};

// A use of a row: which operands are constants, and the number and width of lanes.
struct Use {
  ScalarOp op;
  DType operand, target;
  int lanes;
  int narrow_bytes = kLeastLaneBytes;
  int constant_operand = -1;
  Bits constant = 0;

  int arity() const { return Row(op).arity; }
  DType TypeOf(int i) const { return op == ScalarOp::kSelect && i == 0 ? DType::kBool : operand; }
};

std::string ToString(const Use& use) {
  std::string text = absl::StrCat(Row(use.op).name, " ", Name(use.operand), " -> ",
                                  Name(use.target), " x", use.lanes);
  if (use.constant_operand >= 0) {
    const Scalar value{use.TypeOf(use.constant_operand), use.constant};
    absl::StrAppend(&text, ", operand ", use.constant_operand, " is ", LiteralText(value));
  }
  return text;
}

// ---- A function that applies the row to vectors at table[0], table[1], ..; its result
// goes to table[arity].

Operation AccessOf(ValueBuilder& builder, Opcode opcode, DType type, int slot) {
  Operation access = {};
  access.opcode = opcode;
  access.lane = builder.LaneOf(type);
  access.lanes = static_cast<uint8_t>(builder.lanes());
  access.type = type;
  access.memory.base = builder.General(Opcode::kMoveG, {Operand::Table(slot)});
  return access;
}

TypedValue LoadOperand(ValueBuilder& builder, const Use& use, int i) {
  const DType type = use.TypeOf(i);
  if (i == use.constant_operand) return builder.Constant({type, use.constant});
  Operation load = AccessOf(builder, Opcode::kLoad, type, i);
  load.result = builder.list().NewVector();
  builder.list().operations.push_back(load);
  return FromLoaded(builder, type, load.result);
}

void StoreAndReturn(ValueBuilder& builder, const TypedValue& result, int slot) {
  const Operand stored = ToStored(builder, result);
  Operation store = AccessOf(builder, Opcode::kStore, result.type, slot);
  store.operands[0] = stored;
  builder.list().operations.push_back(store);
  Operation leave = {};
  leave.opcode = Opcode::kReturn;
  leave.operands[0] = Operand::Immediate(0);
  builder.list().operations.push_back(leave);
}

OperationList ListOf(Isa isa, const Use& use) {
  OperationList list(isa);
  ValueBuilder builder(list, use.lanes, use.narrow_bytes);
  std::vector<TypedValue> args;
  for (int i = 0; i < use.arity(); ++i) args.push_back(LoadOperand(builder, use, i));
  const TypedValue result = ApplyScalarOp(builder, use.op, args, use.target);
  EXPECT_EQ(result.type, use.target);
  StoreAndReturn(builder, result, use.arity());
  return list;
}

class Function {
 public:
  Function(const Engine& engine, const Use& use) : Function(engine, ListOf(engine.isa, use)) {}
  Function(const Engine& engine, OperationList list) : list_(std::move(list)) {
    if (engine.means == Means::kModel) return;
    const auto code = Emit(list_, AllocateRegisters(list_, RegistersOf(engine.isa)), CodeBuffer());
    NESTOR_CHECK(code.ok(), code.status().ToString());
    auto sealed = CodeMemory::Seal(code->bytes);
    NESTOR_CHECK(sealed.ok(), sealed.status().ToString());
    memory_ = std::move(*sealed);
  }
  void operator()(const int64_t* table) const {
    if (memory_.size() == 0) return RunModel(list_, table);
    const auto begin = reinterpret_cast<uintptr_t>(memory_.data());
    reinterpret_cast<int64_t (*)(const int64_t*, int64_t, int64_t, int64_t)>(begin)(table, 0, 0, 0);
  }
  const OperationList& list() const { return list_; }

 private:
  OperationList list_;
  CodeMemory memory_;
};

// ---- Values

// The bits in memory as the interpreter reads them.
Bits Stored(DType type, const uint8_t* at) {
  return VisitType(type, [&](auto zero) -> Bits {
    if constexpr (std::is_same_v<decltype(zero), bool>) return *at;
    std::memcpy(&zero, at, sizeof(zero));
    return ToBits(zero);
  });
}
Bits Interpreted(DType type, Bits bits) {
  return type == DType::kBool ? bits != 0 : Scalar{type, bits}.Canonical().bits;
}

Bits RandomBits(DType type, std::mt19937_64& random) {
  const Bits bits = random();
  if (type == DType::kBool) return bits % 3;
  return VisitType(type, [&](auto zero) { return ToBits(FromBits<decltype(zero)>(bits)); });
}

void AddFloats(DType type, std::vector<Bits>& values) {
  std::vector<double> magnitudes = {0, 0.25, 0.5, 0.75, 1,     1.5,     2.5,
                                    3, 5,    100, 1e30, 1e300, INFINITY};
  for (int e :
       {-1074, -1022, -150, -149, -140, -134, -133, -126, -26, -25, -24, -15, -14, 7,   8,
        11,    15,    16,   23,   24,   31,   32,   52,   53,  62,  63,  64,  127, 128, 1023}) {
    const double p = std::ldexp(1.0, e);
    for (double above :
         {0.0, 0.5, 0x1p-8, 3 * 0x1p-8, 0x1p-11, 3 * 0x1p-11, 0x1p-24, 1 - 0x1p-11}) {
      magnitudes.push_back(p * (1 + above));
    }
    for (double next : {0.0, double{INFINITY}}) {
      magnitudes.push_back(std::nextafter(p, next));
      magnitudes.push_back(std::nextafter(p * (1 + 0x1p-8), next));
      magnitudes.push_back(std::nextafter(p * (1 + 0x1p-11), next));
      magnitudes.push_back(std::nextafter(static_cast<float>(p), static_cast<float>(next)));
    }
  }
  for (double v : {127, 128, 129, 254, 255, 256, 65504, 65519, 65520, 65521})
    magnitudes.push_back(v);
  for (double m : magnitudes) {
    for (double v : {m, -m, m - 0.5}) values.push_back(Scalar::Float(type, v).bits);
  }
  // NaNs: quiet, signalling, of each sign.
  const int fraction = FactsOf(type).significand - 1;
  const Bits infinity = Highest(type).bits, minus_infinity = Lowest(type).bits;
  for (Bits payload : {Bits{1}, Bits{1} << (fraction - 1), (Bits{1} << fraction) - 1}) {
    values.push_back(infinity | payload);
    values.push_back(minus_infinity | payload);
  }
}

void AddIntegers(DType type, std::vector<Bits>& values) {
  for (int shift = 0; shift < 64; ++shift) {
    for (int64_t offset : {-1, 0, 1}) {
      // Includes numbers next to the middle between two floats of 8, 11 and 24 bits.
      const uint64_t p = uint64_t{1} << shift;
      for (uint64_t v :
           {p + offset, p + (p >> 8) + offset, p + (p >> 11) + offset, p + (p >> 24) + offset,
            -p + offset, -p - (p >> 8) + offset, uint64_t(shift)}) {
        values.push_back(Scalar::Of(type, v).bits);
      }
    }
  }
}

// Values without repetition; all values of a type of 8 bits.
std::vector<Bits> EdgeValues(DType type, int random_ones = 24) {
  std::vector<Bits> values;
  std::mt19937_64 random(7);
  if (type == DType::kBool) return {0, 1, 2, 255};
  if (ByteSize(type) == 1) {
    for (int i = 0; i < 256; ++i)
      values.push_back(
          VisitType(type, [&](auto zero) { return ToBits(FromBits<decltype(zero)>(i)); }));
    return values;
  }
  if (IsFloat(type)) AddFloats(type, values);
  else AddIntegers(type, values);
  for (int i = 0; i < random_ones; ++i) values.push_back(RandomBits(type, random));
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values;
}

// About `count` of them, spread, and with all NaNs and zeros.
std::vector<Bits> Sample(DType type, size_t count) {
  const std::vector<Bits> all = EdgeValues(type);
  std::vector<Bits> some;
  const size_t step = all.size() / count + 1;
  for (size_t i = 0; i < all.size(); ++i) {
    const Scalar value{type, all[i]};
    if (i % step == 0 || value.IsNaN() || value.ToDouble() == 0) some.push_back(all[i]);
  }
  return some;
}

// ---- Comparison

// Compares the function with the interpreter on rows of operands.
class Comparison {
 public:
  Comparison(const Engine& engine, const Use& use)
      : use_(use), function_(engine, use), reference_(FunctionOf(use.op, use.operand, use.target)),
        operands_(3) {
    for (auto& column : operands_) column.resize(use.lanes * 8);
    result_.resize(use.lanes * 8 + 8);
  }
  ~Comparison() {
    if (filled_ > 0) Flush();
    if (failures_ > 0)
      ADD_FAILURE() << failures_ << " wrong: " << ToString(use_) << "\n"
                    << ToString(function_.list());
  }

  void Add(const Bits* values) {
    for (int i = 0; i < use_.arity(); ++i) {
      const int size = ByteSize(use_.TypeOf(i));
      std::memcpy(operands_[i].data() + filled_ * size, &values[i], size);
    }
    if (++filled_ == use_.lanes) Flush();
  }

 private:
  void Flush() {
    int64_t table[4];
    for (int i = 0; i < use_.arity(); ++i)
      table[i] = reinterpret_cast<int64_t>(operands_[i].data());
    table[use_.arity()] = reinterpret_cast<int64_t>(result_.data());
    function_(table);
    for (int lane = 0; lane < filled_; ++lane) Compare(lane);
    filled_ = 0;
  }

  void Compare(int lane) {
    Bits values[3];
    for (int i = 0; i < use_.arity(); ++i) {
      const DType type = use_.TypeOf(i);
      const Bits given = Stored(type, operands_[i].data() + lane * ByteSize(type));
      values[i] = Interpreted(type, i == use_.constant_operand ? use_.constant : given);
    }
    const Bits wanted = reference_(values);
    const Bits raw = Stored(use_.target, result_.data() + lane * ByteSize(use_.target));
    const Bits got = use_.target == DType::kBool ? raw : Interpreted(use_.target, raw);
    if (got == wanted || ++failures_ > 4) return;
    std::string text = absl::StrCat(ToString(use_), ": ");
    for (int i = 0; i < use_.arity(); ++i) {
      absl::StrAppend(&text, "0x", absl::Hex(values[i]), " (",
                      LiteralText({use_.TypeOf(i), values[i]}), ") ");
    }
    ADD_FAILURE() << absl::StrCat(text, "gives 0x", absl::Hex(got), ", not 0x", absl::Hex(wanted));
  }

  Use use_;
  Function function_;
  ScalarFunction reference_;
  std::vector<std::vector<uint8_t>> operands_;
  std::vector<uint8_t> result_;
  int filled_ = 0;
  int failures_ = 0;
};

void CompareOnAll(const Engine& engine, const Use& use,
                  const std::vector<std::vector<Bits>>& columns) {
  Comparison comparison(engine, use);
  std::vector<size_t> at(columns.size());
  for (;;) {
    Bits values[3];
    for (size_t i = 0; i < columns.size(); ++i) values[i] = columns[i][at[i]];
    comparison.Add(values);
    size_t i = 0;
    while (i < at.size() && ++at[i] == columns[i].size()) at[i++] = 0;
    if (i == at.size()) return;
  }
}

// The width of narrow lanes if all elements in memory have it.
int NarrowBytesOf(Use use) {
  const int bytes = LaneBytesOf(use.op, use.operand, use.target);
  bool same = ByteSize(use.target) == bytes;
  for (int i = 0; i < use.arity(); ++i) same = same && ByteSize(use.TypeOf(i)) == bytes;
  return same && bytes < kLeastLaneBytes ? bytes : kLeastLaneBytes;
}

// Calls f(use) for every row, operand type and target that exists, on one lane, on a vector, and on
// a vector of narrow lanes.
template <class F>
void ForEachUse(Isa isa, F f) {
  for (const ScalarOpRow& row : AllScalarOps()) {
    for (DType operand : AllTypes()) {
      for (DType named : AllTypes()) {
        if (row.result != ResultType::kTarget && named != DType::kBool) continue;
        const absl::optional<DType> target = ResultTypeOf(row.op, operand, named);
        if (!target) continue;
        const int bytes = std::max(LaneBytesOf(row.op, operand, *target), kLeastLaneBytes);
        for (int lanes : {1, VectorBytes(isa) / bytes}) f(Use{row.op, operand, *target, lanes});
        const int narrow = NarrowBytesOf({row.op, operand, *target, 1});
        if (narrow < kLeastLaneBytes)
          f(Use{row.op, operand, *target, VectorBytes(isa) / narrow, narrow});
      }
    }
  }
}

class ScalarRowsTest : public testing::TestWithParam<Engine> {
 protected:
  // Code that the CPU cannot run is encoded nevertheless.
  void SetUp() override {
    const absl::Status can_run = CheckIsa(GetParam().isa);
    if (GetParam().means == Means::kModel || can_run.ok()) return;
    ForEachUse(GetParam().isa, [&](const Use& use) { Function(GetParam(), use); });
    GTEST_SKIP() << "encoded, not run: " << can_run;
  }
};

TEST_P(ScalarRowsTest, EdgeValues) {
  ForEachUse(GetParam().isa, [&](const Use& use) {
    const int sizes[] = {1000, 90, 20};
    std::vector<std::vector<Bits>> columns;
    for (int i = 0; i < use.arity(); ++i)
      columns.push_back(Sample(use.TypeOf(i), sizes[use.arity() - 1]));
    CompareOnAll(GetParam(), use, columns);
  });
}

TEST_P(ScalarRowsTest, ConstantOperands) {
  ForEachUse(GetParam().isa, [&](Use use) {
    if (use.lanes == 1) return;
    for (int constant = 0; constant < use.arity(); ++constant) {
      for (Bits value : Sample(use.TypeOf(constant), 12)) {
        use.constant_operand = constant;
        use.constant = Interpreted(use.TypeOf(constant), value);
        std::vector<std::vector<Bits>> columns;
        for (int i = 0; i < use.arity(); ++i) {
          columns.push_back(i == constant ? std::vector<Bits>{0}
                                          : Sample(use.TypeOf(i), use.arity() == 3 ? 12 : 40));
        }
        CompareOnAll(GetParam(), use, columns);
      }
    }
  });
}

// Lanes of the elements' own width are shifted by known counts.
TEST_P(ScalarRowsTest, ShiftsInNarrowLanes) {
  for (ScalarOp op : {ScalarOp::kShl, ScalarOp::kShr}) {
    for (DType type : AllTypes()) {
      if (!IsInteger(type) || ByteSize(type) >= kLeastLaneBytes) continue;
      for (int64_t count : {-1, 0, 1, 3, 7, 8, 9, 15, 16, 100}) {
        const Bits bits = Scalar::Of(type, count).bits;
        const int lanes = VectorBytes(GetParam().isa) / ByteSize(type);
        CompareOnAll(GetParam(), Use{op, type, type, lanes, ByteSize(type), 1, bits},
                     {EdgeValues(type), {0}});
      }
    }
  }
}

TEST_P(ScalarRowsTest, UnaryOfSixteenBitsExhaustively) {
  std::vector<Bits> all(65536);
  for (size_t i = 0; i < all.size(); ++i) all[i] = i;
  ForEachUse(GetParam().isa, [&](const Use& use) {
    if (use.arity() == 1 && use.lanes > 1 && ByteSize(use.operand) == 2)
      CompareOnAll(GetParam(), use, {all});
  });
}

TEST_P(ScalarRowsTest, RandomValues) {
  ForEachUse(GetParam().isa, [&](const Use& use) {
    if (use.lanes == 1) return;
    std::mt19937_64 random(11);
    Comparison comparison(GetParam(), use);
    for (int i = 0; i < 5000; ++i) {
      Bits values[3];
      for (int j = 0; j < use.arity(); ++j) values[j] = RandomBits(use.TypeOf(j), random);
      comparison.Add(values);
    }
  });
}

// op(d < 0, s < 0) for the f64 at table[0] and the f32 at table[1], or the reverse, as
// it is or through a choice between two numbers of type `chosen`.
OperationList ListOfMasks(Isa isa, ScalarOp op, bool wide_first, DType chosen, int lanes) {
  OperationList list(isa);
  ValueBuilder builder(list, lanes);
  const auto negative = [&](int slot, DType type) {
    const TypedValue value = LoadOperand(builder, {ScalarOp::kAdd, type, type, lanes}, slot);
    return ApplyScalarOp(builder, ScalarOp::kLt, {value, builder.Constant(Scalar::Zero(type))},
                         DType::kBool);
  };
  TypedValue first = negative(0, DType::kF64), second = negative(1, DType::kF32);
  if (!wide_first) std::swap(first, second);
  TypedValue result = ApplyScalarOp(builder, op, {first, second}, DType::kBool);
  if (chosen != DType::kBool) {
    const TypedValue one = builder.Constant(Scalar::Float(chosen, 1)),
                     two = builder.Constant(Scalar::Float(chosen, 2));
    result = ApplyScalarOp(builder, ScalarOp::kSelect, {result, one, two}, chosen);
    result = ApplyScalarOp(builder, ScalarOp::kEq, {result, one}, DType::kBool);
  }
  StoreAndReturn(builder, result, 2);
  return list;
}

// bf16(x) + bf16(x), or max(bf16(x), bf16(x)) + bf16(x), of values of `from` at table[0].
OperationList ListOfSum(Isa isa, DType from, bool through_max, int lanes) {
  OperationList list(isa);
  ValueBuilder builder(list, lanes);
  const TypedValue x = LoadOperand(builder, {ScalarOp::kAdd, from, from, lanes}, 0);
  const TypedValue narrow = ApplyScalarOp(builder, ScalarOp::kCast, {x}, DType::kBF16);
  TypedValue term = narrow;
  if (through_max) term = ApplyScalarOp(builder, ScalarOp::kMax, {narrow, narrow}, DType::kBF16);
  StoreAndReturn(builder, ApplyScalarOp(builder, ScalarOp::kAdd, {term, narrow}, DType::kBF16), 1);
  return list;
}

// A NaN with any bits passes through arithmetic of bf16, which rounds without testing for it.
TEST_P(ScalarRowsTest, NaNsOfBF16StayNaN) {
  for (DType from : {DType::kF16, DType::kBF16, DType::kF32, DType::kF64}) {
    const int lanes = VectorBytes(GetParam().isa) / LaneBytes(LaneOf(from));
    for (bool through_max : {false, true}) {
      const Function function(GetParam(), ListOfSum(GetParam().isa, from, through_max, lanes));
      for (Bits bits : EdgeValues(from)) {
        if (!Scalar{from, bits}.IsNaN()) continue;
        std::vector<uint8_t> x(VectorBytes(GetParam().isa));
        for (int i = 0; i < lanes; ++i)
          std::memcpy(x.data() + i * ByteSize(from), &bits, ByteSize(from));
        std::vector<uint16_t> got(lanes);
        const int64_t table[] = {reinterpret_cast<int64_t>(x.data()),
                                 reinterpret_cast<int64_t>(got.data())};
        function(table);
        for (uint16_t y : got) {
          EXPECT_TRUE((Scalar{DType::kBF16, y}.IsNaN()))
              << Name(from) << absl::StrCat(" 0x", absl::Hex(bits), ": ", y);
        }
      }
    }
  }
}

TEST_P(ScalarRowsTest, MasksOfTwoWidths) {
  const double d[] = {1, -1, -1, 1};
  const float s[] = {-2, 2, -2, 2};
  uint8_t got[4];
  const int64_t table[] = {reinterpret_cast<int64_t>(d), reinterpret_cast<int64_t>(s),
                           reinterpret_cast<int64_t>(got)};
  const auto compare = [&](ScalarOp op, bool wide_first, DType chosen, int lanes) {
    Function(GetParam(), ListOfMasks(GetParam().isa, op, wide_first, chosen, lanes))(table);
    for (int i = 0; i < lanes; ++i) {
      const Bits operands[] = {d[i] < 0, s[i] < 0};
      EXPECT_EQ(got[i], FunctionOf(op, DType::kBool, DType::kBool)(operands))
          << Row(op).name << " lane " << i;
    }
  };
  for (ScalarOp op :
       {ScalarOp::kAnd, ScalarOp::kOr, ScalarOp::kXor, ScalarOp::kEq, ScalarOp::kNe}) {
    for (bool wide_first : {false, true}) {
      for (DType chosen : {DType::kF32, DType::kF64, DType::kBool}) {
        for (int lanes : {1, 2, 4}) compare(op, wide_first, chosen, lanes);
      }
    }
  }
}

// A stride through all f32, and numbers of moderate size.
// A number whose first few bits are a tie except for its last bit, above or below: rounding it
// twice gives a wrong result.
Bits NearTie(DType type, std::mt19937_64& random) {
  const int fraction = FactsOf(type).significand - 1;
  const Bits tie = Bits{1} << random() % fraction, last = random() % 2 == 0 ? 1 : -Bits{1};
  const Bits above_tie = ~(2 * tie - 1);
  return ((RandomBits(type, random) & above_tie) | tie) + last;
}

// Every power that does not give 0 or infinity for all numbers, and some that do: results are
// subnormal in every way.
TEST_P(ScalarRowsTest, Powers) {
  for (DType type : {DType::kF32, DType::kF64, DType::kBF16, DType::kF16}) {
    std::mt19937_64 random(5);
    const int most = type == DType::kF64 ? 2300 : 320;
    Comparison comparison(GetParam(), {ScalarOp::kLdexp, type, type,
                                       VectorBytes(GetParam().isa) / LaneBytes(LaneOf(type))});
    for (int power = -most; power <= most; ++power) {
      for (int i = 0; i < 64; ++i) {
        const double fraction = i % 4 == 0 ? 0.5 : 0;
        const Bits values[] = {NearTie(type, random), Scalar::Float(type, power + fraction).bits,
                               0};
        comparison.Add(values);
        // A subnormal, or a small one.
        const Bits small[] = {values[0] & ((Bits{1} << (8 * ByteSize(type) - 5)) - 1), values[1],
                              0};
        comparison.Add(small);
      }
    }
  }
}

TEST_P(ScalarRowsTest, Transcendentals) {
  constexpr uint64_t kStride = 16411;
  for (const ScalarOpRow& row : AllScalarOps()) {
    if (!row.transcendental || row.arity > 1) continue;
    for (DType type : {DType::kF32, DType::kF64}) {
      const int lanes =
          VectorBytes(GetParam().isa) / std::max(LaneBytesOf(row.op, type, type), kLeastLaneBytes);
      Comparison comparison(GetParam(), Use{row.op, type, type, lanes});
      for (uint64_t i = 0; i < uint64_t{1} << 32 && type == DType::kF32; i += kStride)
        comparison.Add(&i);
      std::mt19937_64 random(13);
      for (int i = 0; i < 30000; ++i) {
        const Bits bits = Scalar::Float(type, std::normal_distribution<double>(0, 20)(random)).bits;
        comparison.Add(&bits);
      }
    }
  }
}

std::vector<Engine> Engines() {
  std::vector<Engine> engines;
  for (const Means means : {Means::kMachine, Means::kModel}) {
    for (const IsaFacts& set : kIsas) engines.push_back({set.isa, means});
  }
  return engines;
}
INSTANTIATE_TEST_SUITE_P(Engines, ScalarRowsTest, testing::ValuesIn(Engines()),
                         [](const auto& info) {
                           return absl::StrCat(
                               Name(info.param.isa),
                               info.param.means == Means::kModel ? "_model" : "_machine");
                         });

}  // namespace
}  // namespace nestor::jit
