// Three rewrites of one shape, a product that is added right away, so that one instruction does
// both. They walk each statement's value bottom-up. A square is a product, too, but is left alone:
// it is one operation already.
//
//   f32(a * b) + c, a and b in bf16   ->  f32(a) * f32(b) + c     # WidenProducts
//   dot_halves(a, b, 0) + c           ->  dot_halves(a, b, c)     # AddOntoDotProducts
//   a * b + c                         ->  fma(a, b, c)            # FuseMultiplyAdd
//
// The first is exact in the product, as the wider type holds all products of the narrower one; the
// second is exact, as integers wrap; the third rounds once instead of twice (fusedMultiplyAdd of
// IEEE 754-2019).
#include "jit/schedule/multiply_add.h"

#include <algorithm>
#include <utility>

#include "absl/types/optional.h"
#include "jit/target/products.h"
#include "loop_ir/discrete_steps.h"
#include "loop_ir/elements.h"
#include "loop_ir/rewrite.h"

namespace nestor::loop {
namespace {

// An fma of 16-bit floats rounds to f32 first. Where that makes a tie, the product rounded by
// itself makes the same one, so that the result is that of the two roundings that the fma replaces,
// or that of the exact sum.
absl::optional<ValueId> Fused(Program& program, ValueId id) {
  const DType type = program[id].type;
  const ApplyValue* sum = jit::AsApply(program, id, ScalarOp::kAdd);
  if (sum == nullptr || !IsFloat(type)) return absl::nullopt;
  for (int product : {1, 0}) {
    const ApplyValue* mul = jit::AsApply(program, sum->args[product], ScalarOp::kMul);
    if (mul == nullptr) continue;
    const ValueId args[] = {mul->args[0], mul->args[1], sum->args[1 - product]};
    return program.AddApply(ScalarOp::kFma, args, type);
  }
  return absl::nullopt;
}

// The step of a sum of gated products in a register tile, as an operation that rounds once.
absl::optional<ValueId> FusedGatedStep(Program& program, const Statement& statement) {
  const DType type = program[statement.value].type;
  const ApplyValue* sum = jit::AsApply(program, statement.value, ScalarOp::kAdd);
  if (sum == nullptr || statement.op || !program[statement.target.tensor].is_register)
    return absl::nullopt;
  if (type != DType::kF32 && type != DType::kF64) return absl::nullopt;
  for (int product : {1, 0}) {
    const ApplyValue* mulz = jit::AsApply(program, sum->args[product], ScalarOp::kMulz);
    if (mulz == nullptr || !IsElement(program, sum->args[1 - product], statement.target)) continue;
    // Adding values invalidates pointers to others.
    const ValueId a = mulz->args[0], b = mulz->args[1], t = sum->args[1 - product];
    return jit::AddGatedStep(program, a, b, t);
  }
  return absl::nullopt;
}

// The first operand that a negation or a choice passes on; none for other operations.
absl::optional<size_t> FirstPassedOn(const ApplyValue& apply) {
  if (apply.op == ScalarOp::kNeg) return 0;
  if (apply.op == ScalarOp::kSelect) return 1;
  return absl::nullopt;
}

// A product, or one inside of operations that pass it on, as -(a * b) or where(c, a * b, 0).
bool LeadsToProduct(const Program& program, ValueId id) {
  const auto* apply = absl::get_if<ApplyValue>(&program[id].node);
  if (apply == nullptr) return false;
  const auto first = FirstPassedOn(*apply);
  if (!first) return apply->op == ScalarOp::kMul;
  return std::any_of(apply->args.begin() + *first, apply->args.end(),
                     [&](ValueId arg) { return LeadsToProduct(program, arg); });
}

// The value in another type, with the products that it leads to.
ValueId Widened(Program& program, ValueId id, DType type) {
  if (!LeadsToProduct(program, id)) return program.AddApply(ScalarOp::kCast, {id}, type);
  const auto apply = absl::get<ApplyValue>(program[id].node);
  auto args = apply.args;
  for (size_t i = FirstPassedOn(apply).value_or(0); i < args.size(); ++i) {
    const bool is_factor = apply.op == ScalarOp::kMul;
    args[i] = is_factor ? program.AddApply(ScalarOp::kCast, {args[i]}, type)
                        : Widened(program, args[i], type);
  }
  return program.AddApply(apply.op, args, type);
}

// f32(a * b) as f32(a) * f32(b); none if this is no cast of a product.
absl::optional<ValueId> WideProduct(Program& program, ValueId id) {
  const DType type = program[id].type;
  const ApplyValue* cast = jit::AsApply(program, id, ScalarOp::kCast);
  if (cast == nullptr || !HoldsProducts(type, program[cast->args[0]].type)) return absl::nullopt;
  if (!LeadsToProduct(program, cast->args[0])) return absl::nullopt;
  return Widened(program, cast->args[0], type);
}

// f32(a * b) + c as f32(a) * f32(b) + c, on either side: then the two can become one instruction.
absl::optional<ValueId> WithWideProducts(Program& program, ValueId id) {
  const auto* sum = absl::get_if<ApplyValue>(&program[id].node);
  if (sum == nullptr || (sum->op != ScalarOp::kAdd && sum->op != ScalarOp::kSub))
    return absl::nullopt;
  const ScalarOp op = sum->op;
  const DType type = program[id].type;
  const ValueId args[] = {sum->args[0], sum->args[1]};
  const auto left = WideProduct(program, args[0]), right = WideProduct(program, args[1]);
  if (!left && !right) return absl::nullopt;
  return program.AddApply(op, {left.value_or(args[0]), right.value_or(args[1])}, type);
}

template <class Replace>  // absl::optional<ValueId>(ValueId): what replaces it
bool RewriteIn(Program& program, Statement& statement, Replace replace) {
  const ValueId by = RewriteValues(program, statement.value, replace);
  const bool changed = by != statement.value;
  statement.value = by;
  return changed;
}

// Values that are compared for equality are left alone: another loop may compute them again, to
// compare them with their maximum, and find another way to round them.
template <class Replace>
bool RewriteRoundings(Program& program, Replace replace) {
  const DiscreteSteps equalities(program, DiscreteSteps::Kind::kEqualities);
  bool changed = false;
  VisitStatements(program, [&](Statement& statement) {
    if (!equalities.ReachFrom(statement.value)) changed |= RewriteIn(program, statement, replace);
  });
  return changed;
}

}  // namespace

// Also the step of a sum, which adds its value without an addition being written.
absl::StatusOr<bool> WidenProducts(Program& program) {
  bool changed =
      RewriteRoundings(program, [&](ValueId id) { return WithWideProducts(program, id); });
  VisitStatements(program, [&](Statement& statement) {
    if (statement.op != ReduceOp::kSum) return;
    const auto by = WideProduct(program, statement.value);
    changed |= by.has_value();
    statement.value = by.value_or(statement.value);
  });
  return changed;
}

// dot_halves(a, b, 0) + c becomes dot_halves(a, b, c): the instruction adds for nothing.
absl::StatusOr<bool> AddOntoDotProducts(Program& program) {
  const auto joined = [&](ValueId id) -> absl::optional<ValueId> {
    const ApplyValue* sum = jit::AsApply(program, id, ScalarOp::kAdd);
    if (sum == nullptr) return absl::nullopt;
    for (int product : {1, 0}) {
      const ApplyValue* dot = jit::AsApply(program, sum->args[product], ScalarOp::kDotHalves);
      if (dot == nullptr || !jit::IsPlusZero(program, dot->args[2])) continue;
      const ValueId args[] = {dot->args[0], dot->args[1], sum->args[1 - product]};
      return program.AddApply(ScalarOp::kDotHalves, args, program[id].type);
    }
    return absl::nullopt;
  };
  bool changed = false;
  VisitStatements(program,
                  [&](Statement& statement) { changed |= RewriteIn(program, statement, joined); });
  return changed;
}

absl::StatusOr<bool> FuseMultiplyAdd(Program& program) {
  bool changed = false;
  VisitStatements(program, [&](Statement& statement) {
    const auto by = FusedGatedStep(program, statement);
    changed |= by.has_value();
    statement.value = by.value_or(statement.value);
  });
  return RewriteRoundings(program, [&](ValueId id) { return Fused(program, id); }) || changed;
}

}  // namespace nestor::loop
