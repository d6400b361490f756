// A multiply of 16-bit integers that adds two adjacent products into 32 bits (the dot product of
// halves, pmaddwd on x86) does the work of two steps of a sum. To use it, two steps of each operand
// are put into one 32-bit word, in the packed copy, so that the words are made once for each
// element and not for each product.
//
// The longest of several sums that no window slides over is halved. The halves after its last step
// multiply to 0 if one of them is 0: so is an element beyond its tensor, if the operand is just a
// cast of it; else a choice by the index makes it 0, which disappears when copies of words are cut
// before their last one.
//
// The product of words is exact only if both factors fit a signed half, 16 bits: that is proven by
// intervals (integer_range.h). Sums may wrap, in any order, as integers wrap (docs/semantics.md).
#include "jit/schedule/paired_steps.h"

#include <limits>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/types/optional.h"
#include "jit/schedule/access_moves.h"
#include "jit/schedule/contraction.h"
#include "jit/schedule/integer_range.h"
#include "jit/schedule/replace_loops.h"
#include "jit/target/products.h"
#include "loop_ir/affine.h"
#include "loop_ir/perfect_nest.h"
#include "loop_ir/ranges.h"
#include "loop_ir/rewrite.h"

namespace nestor::loop {
namespace {

constexpr int64_t kStepsInWord = 2;

class Pairer {
 public:
  Pairer(Program& program, Ranges& ranges)
      : program_(program), pool_(program.pool), ranges_(ranges) {}

  // The nest with half as many steps of one sum, and a dot product for its value.
  absl::optional<Scope> Paired(Loop& loop) {
    const absl::optional<Contraction> nest = ContractionOf(program_, loop);
    if (!nest || nest->is_ragged || !IsSumOfNarrowProducts(*nest)) return absl::nullopt;
    const Loop* const sum = SumToHalve(*nest);
    if (sum == nullptr) return absl::nullopt;
    const ValueId value = DotProduct(*nest, *sum);
    const IndexId more = pool_.Add(ranges_.LengthOf(*sum), pool_.Const(kStepsInWord - 1));
    Halve(loop, sum->var, pool_.Div(more, pool_.Const(kStepsInWord)));
    VisitStatements(loop.body, [&](Statement& statement) {
      if (statement.op && statement.target.tensor == nest->accumulator) statement.value = value;
    });
    return ScopeOf(std::move(loop));
  }

 private:
  // ---- What is found

  // Whether the value is the product of one row operand and one column operand, in i32.
  bool IsSumOfNarrowProducts(const Contraction& nest) {
    if (nest.step->op != ReduceOp::kSum || nest.rows.size() != 1 || nest.columns.size() != 1)
      return false;
    const auto* product = jit::AsApply(program_, nest.step->value, ScalarOp::kMul);
    if (product == nullptr || program_[nest.step->value].type != DType::kI32) return false;
    const auto args = product->args;
    const auto are = [&](ValueId a, ValueId b) { return args[0] == a && args[1] == b; };
    const ValueId row = nest.rows[0].read, column = nest.columns[0].read;
    return (are(row, column) || are(column, row)) && IsNarrow(row) && IsNarrow(column);
  }

  bool IsNarrow(ValueId operand) {
    const auto range = RangeOf(program_, ranges_, operand);
    return range && range->IsWithin(RangeOf(DType::kI16));
  }

  // Null: there is none.
  // Sums whose bounds move are left alone: the number of their words would move as well.
  const Loop* SumToHalve(const Contraction& nest) {
    const Loop* best = nullptr;
    int64_t best_length = 0;
    for (size_t i = 0; i < nest.sums.size(); ++i) {
      const Loop& sum = *nest.sums[i];
      if (sum.begin != nest.hulls[i].begin || sum.end != nest.hulls[i].end) continue;
      if (!MovesAlone(nest.rows[0], sum, nest) || !MovesAlone(nest.columns[0], sum, nest)) continue;
      const int64_t length =
          KnownLength(program_, sum).value_or(std::numeric_limits<int64_t>::max());
      if (length < kStepsInWord || length < best_length) continue;
      best = &sum;
      best_length = length;
    }
    return best;
  }

  // Whether the sum moves the operand along one axis, element by element, and no other loop of
  // a window does.
  bool MovesAlone(const Contraction::Operand& operand, const Loop& sum, const Contraction& nest) {
    const Access access = AccessOf(program_, operand);
    if (!access.conditions.empty()) return false;
    const auto axis = OnlyAxisAlong(program_, access.place, sum);
    if (!axis) return false;
    const IndexId e = access.place[*axis];
    const auto moves = [&](const Loop* loop) {
      return loop->var != sum.var && HoldsVar(pool_, e, loop->var);
    };
    return StrideIn(pool_, e, sum.var) == 1 && absl::c_none_of(nest.sums, moves) &&
           !moves(nest.row) && !moves(nest.column);
  }

  // Whether the operand is 0 after the last step: a cast of an element that is read
  // beyond its tensor.
  bool IsZeroBehind(const Contraction::Operand& operand, const Loop& sum) {
    ValueId id = operand.read;
    while (const auto* cast = jit::AsApply(program_, id, ScalarOp::kCast)) id = cast->args[0];
    if (id != operand.load) return false;
    const Access access = AccessOf(program_, operand);
    if (access.masked && !jit::IsPlusZero(program_, access.fill)) return false;
    const size_t axis = *OnlyAxisAlong(program_, access.place, sum);
    VarReplacement behind(program_);
    behind.Set(sum.var, sum.end);
    const IndexId e = behind(access.place[axis]);
    return !pool_.HasVar(e) && ranges_.LessEqual(program_[access.tensor].shape[axis], e);
  }

  // ---- What takes its place

  // If the number of steps may be odd, one operand must be 0 in the last half. If neither is by
  // itself, a choice makes the row's 0.
  ValueId DotProduct(const Contraction& nest, const Loop& sum) {
    const auto known = KnownLength(program_, sum);
    const bool is_even = known && *known % kStepsInWord == 0;
    const bool is_zero =
        is_even || IsZeroBehind(nest.rows[0], sum) || IsZeroBehind(nest.columns[0], sum);
    const ValueId row = Word(nest.rows[0].read, sum, is_even, !is_zero);
    const ValueId column = Word(nest.columns[0].read, sum, is_even, false);
    return program_.AddApply(ScalarOp::kDotHalves, {row, column, Constant(0)}, DType::kI32);
  }

  ValueId Constant(int64_t value) {
    return program_.AddConstant(Scalar::Integer(DType::kI32, value));
  }

  // The operand at two steps. `is_even`: each first step has a second one; `chosen`: a choice makes
  // the second 0 where there is none.
  ValueId Word(ValueId operand, const Loop& sum, bool is_even, bool chosen) {
    ValueId second = AtStep(operand, sum, 1);
    if (!is_even) second = Masked(second);
    if (chosen) {
      const IndexId at = StepOf(sum, 1);
      const ValueId is_there = program_.AddApply(
          ScalarOp::kLt, {program_.AddIndexValue(at), program_.AddIndexValue(sum.end)},
          DType::kBool);
      second = program_.AddApply(ScalarOp::kSelect, {is_there, second, Constant(0)}, DType::kI32);
    }
    const ValueId low =
        program_.AddApply(ScalarOp::kAnd, {AtStep(operand, sum, 0), Constant(0xffff)}, DType::kI32);
    const ValueId high = program_.AddApply(ScalarOp::kShl, {second, Constant(16)}, DType::kI32);
    return program_.AddApply(ScalarOp::kOr, {low, high}, DType::kI32);
  }

  // Word k holds steps 2*k and 2*k + 1, counted from the sum's begin.
  IndexId StepOf(const Loop& sum, int64_t half) {
    const IndexId first = pool_.Mul(pool_.Const(kStepsInWord), pool_.Var(sum.var));
    return pool_.Add(sum.begin, pool_.Add(first, pool_.Const(half)));
  }

  ValueId AtStep(ValueId value, const Loop& sum, int64_t half) {
    VarReplacement replace(program_);
    replace.Set(sum.var, StepOf(sum, half));
    return RewriteIndices(program_, value, [&](IndexId e) { return replace(e); });
  }

  // Loads that may be read beyond their tensor, at the step after the last.
  ValueId Masked(ValueId value) {
    return RewriteValues(program_, value, [&](ValueId id) -> absl::optional<ValueId> {
      const auto* load = absl::get_if<LoadValue>(&program_[id].node);
      if (load == nullptr || load->access.masked) return absl::nullopt;
      Access access = load->access;
      access.masked = true;
      access.fill = program_.AddConstant(Scalar::Zero(program_[id].type));
      return program_.AddLoad(std::move(access));
    });
  }

  // Sets the range of the sum's loop, wherever it is in the nest; bodies are replaced separately.
  void Halve(Loop& loop, int32_t sum, IndexId pairs) {
    if (loop.var == sum) {
      loop.begin = pool_.Const(0);
      loop.end = pairs;
      return;
    }
    for (Item& item : loop.body) {
      if (auto* inside = item.As<Loop>()) Halve(*inside, sum, pairs);
    }
  }

  Program& program_;
  IndexPool& pool_;
  Ranges& ranges_;
};

}  // namespace

absl::StatusOr<bool> PairSteps(Program& program) {
  Ranges ranges(program);
  Pairer pairer(program, ranges);
  return ReplaceLoops(program, ranges, [&](Loop& loop) { return pairer.Paired(loop); });
}

}  // namespace nestor::loop
