// The lanes of each type, of each scalar op and of small loops, against rules written out here.
#include "jit/target/lanes.h"

#include <algorithm>
#include <iterator>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "gtest/gtest.h"
#include "loop_ir/program.h"
#include "loop_ir/text.h"
#include "uops/dtype.h"
#include "uops/scalar_body.h"
#include "uops/scalar_op.h"

namespace nestor::jit {
namespace {

TEST(LaneOf, IsOfTheTypesKindAndNoNarrowerThanItMayBe) {
  const struct {
    DType type;
    Lane lane, of_16_bits, of_8_bits;
  } kCases[] = {
      {DType::kBool, Lane::kI32, Lane::kI16, Lane::kI8},
      {DType::kU8, Lane::kI32, Lane::kI16, Lane::kI8},
      {DType::kI8, Lane::kI32, Lane::kI16, Lane::kI8},
      {DType::kU16, Lane::kI32, Lane::kI16, Lane::kI8},
      {DType::kI16, Lane::kI32, Lane::kI16, Lane::kI8},
      {DType::kU32, Lane::kI32, Lane::kI16, Lane::kI8},
      {DType::kI32, Lane::kI32, Lane::kI16, Lane::kI8},
      {DType::kU64, Lane::kI64, Lane::kI64, Lane::kI64},
      {DType::kI64, Lane::kI64, Lane::kI64, Lane::kI64},
      {DType::kBF16, Lane::kF32, Lane::kF32, Lane::kF32},
      {DType::kF16, Lane::kF32, Lane::kF32, Lane::kF32},
      {DType::kF32, Lane::kF32, Lane::kF32, Lane::kF32},
      {DType::kF64, Lane::kF64, Lane::kF64, Lane::kF64},
  };
  EXPECT_EQ(std::size(kCases), kNumTypes);
  for (const auto& c : kCases) {
    EXPECT_EQ(LaneOf(c.type), c.lane) << Name(c.type);
    EXPECT_EQ(LaneOf(c.type, kLeastLaneBytes), c.lane) << Name(c.type);
    EXPECT_EQ(LaneOf(c.type, 2), c.of_16_bits) << Name(c.type);
    EXPECT_EQ(LaneOf(c.type, 1), c.of_8_bits) << Name(c.type);
    EXPECT_EQ(LanesOf(c.type, Isa::kAvx2), 32 / LaneBytes(c.lane)) << Name(c.type);
    EXPECT_EQ(LanesOf(c.type, Isa::kAvx512), 64 / LaneBytes(c.lane)) << Name(c.type);
  }
}

// The lanes that a value of the type fits in; half floats are computed as f32.
int OwnBytes(DType type) {
  return IsFloat(type) ? std::max(ByteSize(type), kLeastLaneBytes) : ByteSize(type);
}

// What a row needs on integers and booleans. They wrap, so that most need lanes of their own width
// and no more.
int IntegerBytes(ScalarOp op, DType operand, DType target) {
  const int own = std::max(OwnBytes(operand), OwnBytes(target));
  switch (op) {
    case ScalarOp::kShl:
    case ScalarOp::kShr:
    case ScalarOp::kPopcount:
    case ScalarOp::kClz: return std::max(own, 4);
    case ScalarOp::kFloorDiv:
    case ScalarOp::kMod: return own >= 4 ? 8 : 4;  // 32 bits: through f64
    default: return own;
  }
}

// What a row needs on floats: where it has a body, what the widest of its steps needs.
int FloatBytes(ScalarOp op, DType operand, DType target) {
  int bytes = std::max(OwnBytes(operand), OwnBytes(target));
  const ScalarFunction function = FunctionOf(op, operand, target);
  if (function.body == nullptr) return bytes;
  for (const ScalarBody::Step& step : function.body->steps)
    bytes = std::max(bytes, LaneBytesOf(step.op, step.operand, step.target));
  return bytes;
}

TEST(LaneBytesOf, EveryRow) {
  int uses = 0;
  for (const ScalarOpRow& row : AllScalarOps()) {
    for (DType operand : AllTypes()) {
      for (DType named : AllTypes()) {
        if (row.result != ResultType::kTarget && named != DType::kBool) continue;
        const absl::optional<DType> target = ResultTypeOf(row.op, operand, named);
        if (!target) continue;
        const int want = IsFloat(operand) ? FloatBytes(row.op, operand, *target)
                                          : IntegerBytes(row.op, operand, *target);
        EXPECT_EQ(LaneBytesOf(row.op, operand, *target), want)
            << row.name << " of " << Name(operand) << " to " << Name(*target);
        ++uses;
      }
    }
  }
  EXPECT_GT(uses, 500);
}

// Which bodies compute in f64 what they give in f32.
TEST(LaneBytesOf, SomeFloats) {
  const struct {
    ScalarOp op;
    int bytes;
  } kCases[] = {
      {ScalarOp::kAdd, 4},   {ScalarOp::kFma, 4},  {ScalarOp::kSqrt, 4}, {ScalarOp::kExp, 4},
      {ScalarOp::kLog, 4},   {ScalarOp::kTanh, 4}, {ScalarOp::kErf, 4},  {ScalarOp::kGelu, 4},
      {ScalarOp::kExpm1, 8}, {ScalarOp::kSin, 8},  {ScalarOp::kPow, 8},  {ScalarOp::kFmod, 8},
      {ScalarOp::kElu, 8},  // by its part expm1
  };
  for (const auto& c : kCases) {
    for (DType type : {DType::kF32, DType::kF16, DType::kBF16})
      EXPECT_EQ(LaneBytesOf(c.op, type, type), c.bytes) << Row(c.op).name << " of " << Name(type);
    EXPECT_EQ(LaneBytesOf(c.op, DType::kF64, DType::kF64), 8) << Row(c.op).name;
  }
}

// The first loop over k of a program with that text.
const loop::Loop* LoopOverK(const loop::Program& program) {
  const loop::Loop* found = nullptr;
  VisitItems(program, [&](const loop::Item& item) {
    const loop::Loop* loop = item.As<loop::Loop>();
    if (found == nullptr && loop != nullptr && program.vars[loop->var] == "k") found = loop;
  });
  return found;
}

// What lanes of a loop are: `narrow` is NarrowLaneBytes; a vector holds as many lanes as elements
// of `widest` bytes, or of `narrow` if that is less than 4.
struct LoopCase {
  const char* text;
  int narrow, widest;
};

constexpr char kSignature[] =
    "program p(a: u8[N], b: u8[N], m: u8[M, N], s: i16[N], i: i32[N], l: i64[N], h: f16[N],"
    " f: f32[N], d: f64[N], t: bool[N]) -> (ra: u8[N], rs: i16[N], ri: i32[N], rl: i64[N],"
    " rh: f16[N], rf: f32[N], rd: f64[N], rt: bool[N], one: u8, at: i64) {\n";

constexpr LoopCase kLoops[] = {
    // clang-format off
    // The width that all have.
    {"for k in [0, N) { ra[k] = a[k] * b[k] + u8(3) }", 1, 4},
    {"for k in [0, N) { rs[k] = max(s[k], -s[k]) }", 2, 4},
    {"for k in [0, N) { ri[k] = i[k] + i[0] }", 4, 4},
    {"for k in [0, N) { rl[k] = l[k] + l[0] }", 4, 8},
    {"for k in [0, N) { rh[k] = h[k] + h[0] }", 4, 4},
    {"for k in [0, N) { rf[k] = f[k] + f[0] }", 4, 4},
    {"for k in [0, N) { rd[k] = d[k] + d[0] }", 4, 8},
    // The widest of several.
    {"for k in [0, N) { rf[k] = f32(a[k]) }", 4, 4},
    {"for k in [0, N) { ra[k] = u8(d[k]) }", 4, 8},
    {"for k in [0, N) { rs[k] = i16(a[k]) }", 4, 4},
    {"for k in [0, N) { ra[k] = a[k]  rl[k] = l[k] }", 4, 8},
    {"for k in [0, N) { ra[k] = a[k]  for j in [0, M) { rd[j] = d[k] } }", 4, 8},
    // What values are computed by.
    {"for k in [0, N) { ra[k] = floordiv(a[k], b[k]) }", 4, 4},
    {"for k in [0, N) { ri[k] = floordiv(i[k], i[0]) }", 4, 8},
    {"for k in [0, N) { rf[k] = exp(f[k]) }", 4, 4},
    {"for k in [0, N) { rf[k] = sin(f[k]) }", 4, 8},
    {"for k in [0, N) { ra[k] = shl(a[k], b[k]) }", 4, 4},
    {"for k in [0, N) { ra[k] = shl(a[k], u8(3)) }", 1, 4},
    {"for k in [0, N) { rl[k] = index(k) }", 4, 8},
    {"for k in [0, N) { ra[k] = u8(index(k)) }", 4, 8},
    // Booleans have one byte in memory, and any lane's width as values.
    {"for k in [0, N) { rt[k] = t[k] && a[k] < b[k] }", 1, 4},
    {"for k in [0, N) { rt[k] = s[k] < s[0] }", 4, 4},
    {"for k in [0, N) { rs[k] = where(s[k] < s[0], s[k], s[0]) }", 2, 4},
    {"for k in [0, N) { rs[k] = where(t[0], s[k], s[0]) }", 2, 4},
    {"for k in [0, N) { rs[k] = where(t[k], s[k], s[0]) }", 4, 4},
    // Elements side by side, or the same for all lanes.
    {"for k in [0, N) { ra[k] = m[0, k] }", 1, 4},
    {"for k in [0, N) { ra[k] = m[k, 0] }", 4, 4},
    {"for k in [0, N) { ra[k] = m[k, k] }", 4, 4},
    {"for k in [0, N) { ra[k] = a[2*k | 0] }", 4, 4},
    {"for k in [0, N) { ra[N - 1 - k] = a[k] }", 4, 4},
    {"for k in [0, N) { ra[k] = a[k/2] }", 4, 4},
    {"for k in [0, N) { ra[k] = a[l[k] | 0] }", 4, 4},
    {"for j in [0, M) { for k in [0, N) { ra[k] = m[j, k] + a[j | 0] } }", 1, 4},
    // Accumulations: by their step, and 64 bits for a position.
    {"acc c: u8 = max  for k in [0, N) { c max= a[k] }  one = c", 1, 4},
    {"acc c: u8 = sum  for k in [0, N) { c += a[k] }  one = c", 1, 4},
    {"acc c: f32 = sum  for k in [0, N) { c += f32(h[k]) }  rf[0] = c", 4, 4},
    {"acc c: f64 = sum  for k in [0, N) { c += f64(h[k]) }  rd[0] = c", 4, 8},
    {"acc c: u8 = argmax  for k in [0, N) { c argmax= (a[k], index(k)) }  at = c", 4, 8},
    // clang-format on
};

TEST(Lanes, OfLoops) {
  for (const LoopCase& c : kLoops) {
    const testing::ScopedTrace trace(__FILE__, __LINE__, c.text);
    const absl::StatusOr<loop::Program> program =
        loop::ParseProgram(absl::StrCat(kSignature, c.text, "\n}"));
    ASSERT_TRUE(program.ok()) << program.status();
    const loop::Loop& loop = *LoopOverK(*program);
    EXPECT_EQ(NarrowLaneBytes(*program, loop), c.narrow);
    for (const Isa isa : {Isa::kAvx2, Isa::kAvx512}) {
      EXPECT_EQ(LanesOf(*program, loop, isa), VectorBytes(isa) / c.widest);
      EXPECT_EQ(MostLanesOf(*program, loop, isa),
                VectorBytes(isa) / (c.narrow < 4 ? c.narrow : c.widest));
    }
  }
}

}  // namespace
}  // namespace nestor::jit
