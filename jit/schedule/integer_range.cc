// Interval arithmetic on integer values of a statement (Moore, "Interval Analysis", 1966), just
// enough to prove that an operand fits 16 bits, so that two steps of a sum of products fit one
// dot_halves (paired_steps.h): i32(x) - i32($zero) of an i8 and a u8 lies in [-383, 127], say. A
// value counts only if its range lies within its own type: then no operation on the way wrapped,
// and the range is that of exact arithmetic.
#include "jit/schedule/integer_range.h"

namespace nestor::loop {
namespace {

constexpr int kNarrowBits = 16;

// The range of the narrowest type that is proven to hold it.
absl::optional<Interval> RangeOfIndex(IndexPool& pool, Ranges& ranges, IndexId e) {
  for (const DType type : {DType::kU8, DType::kI8, DType::kI16}) {
    const Interval range = RangeOf(type);
    if (ranges.LessEqual(pool.Const(range.low), e) && ranges.LessEqual(e, pool.Const(range.high)))
      return range;
  }
  return absl::nullopt;
}

// The exact range of a cast, sum or difference, without regard to the width of its type; nullopt
// where it leaves int64.
absl::optional<Interval> RangeOfApply(Program& program, Ranges& ranges, ValueId id) {
  const ApplyValue apply = absl::get<ApplyValue>(program[id].node);
  const auto of = [&](size_t i) { return RangeOf(program, ranges, apply.args[i]); };
  if (apply.op == ScalarOp::kCast) return of(0);
  if (apply.op != ScalarOp::kAdd && apply.op != ScalarOp::kSub) return absl::nullopt;
  const auto a = of(0), b = of(1);
  if (!a || !b) return absl::nullopt;
  if (apply.op == ScalarOp::kAdd) return AtCorners(IndexKind::kAdd, *a, *b);
  const auto negated = AtCorners(IndexKind::kMul, *b, {-1, -1});
  return negated ? AtCorners(IndexKind::kAdd, *a, *negated) : absl::nullopt;
}

}  // namespace

Interval RangeOf(DType type) { return {Lowest(type).ToInt(), Highest(type).ToInt()}; }

// From the leaves up: a constant is known, an index has its loops' bounds, and a load of a narrow
// type its type's. A result that might leave its own type wraps around, so nothing is known of it.
absl::optional<Interval> RangeOf(Program& program, Ranges& ranges, ValueId id) {
  const DType type = program[id].type;
  if (!IsInteger(type) || type == DType::kU64) return absl::nullopt;
  const auto& node = program[id].node;
  if (const auto* constant = absl::get_if<ConstantValue>(&node)) {
    return Interval{constant->value.ToInt(), constant->value.ToInt()};
  }
  if (const auto* index = absl::get_if<IndexValue>(&node)) {
    return RangeOfIndex(program.pool, ranges, index->index);
  }
  if (absl::holds_alternative<LoadValue>(node) && BitWidth(type) <= kNarrowBits)
    return RangeOf(type);
  if (!absl::holds_alternative<ApplyValue>(node)) return absl::nullopt;
  const auto range = RangeOfApply(program, ranges, id);
  return range && range->IsWithin(RangeOf(type)) ? range : absl::nullopt;
}

}  // namespace nestor::loop
