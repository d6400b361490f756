// Abstract interpretation of a value over {is +0 or -0 with the load, may differ}: the load is 0, a
// product is 0 if a factor is, a choice is if both branches are. For a float product the other
// factor must be finite, as 0 * inf is NaN: it is noted in `others`. Gated products (mulz) and
// integers need no note. Sums are not followed: 0 + x differs from 0 whatever the load is.
#include "jit/schedule/zero_factor.h"

#include "absl/types/variant.h"
#include "jit/schedule/access_moves.h"
#include "jit/target/products.h"
#include "loop_ir/rewrite.h"

namespace nestor::loop {

namespace {

// Whether the value is 0 where the load is; appends to zero.others what must be finite for that.
bool IsZeroWith(const Program& program, ValueId value, ZeroFactor& zero) {
  if (value == zero.load || jit::IsPlusZero(program, value)) return true;
  if (const ApplyValue* choice = jit::AsApply(program, value, ScalarOp::kSelect)) {
    return IsZeroWith(program, choice->args[1], zero) && IsZeroWith(program, choice->args[2], zero);
  }
  const ApplyValue* gated = jit::AsApply(program, value, ScalarOp::kMulz);
  const ApplyValue* product =
      gated != nullptr ? gated : jit::AsApply(program, value, ScalarOp::kMul);
  if (product == nullptr) return false;
  const bool first = IsZeroWith(program, product->args[0], zero),
             second = IsZeroWith(program, product->args[1], zero);
  if (first == second) return first;
  if (gated == nullptr && IsFloat(program[value].type))
    zero.others.push_back(product->args[first ? 1 : 0]);
  return true;
}

}  // namespace

absl::optional<ZeroFactor> ZeroFactorOf(const Program& program, ValueId value, ValueId load) {
  ZeroFactor zero{load, {}};
  return IsZeroWith(program, value, zero) ? absl::make_optional(zero) : absl::nullopt;
}

std::vector<ValueId> LoadsOf(const Program& program, ValueId value) {
  std::vector<ValueId> loads;
  VisitValues(program, value, [&](ValueId id, const Value& inner) {
    if (absl::holds_alternative<LoadValue>(inner.node)) loads.push_back(id);
  });
  return loads;
}

// Through places of loads and through index values: nothing else reads a loop's variable.
bool DependsOn(const Program& program, ValueId value, const Loop& loop) {
  bool depends = false;
  VisitValues(program, value, [&](ValueId, const Value& inner) {
    const auto* load = absl::get_if<LoadValue>(&inner.node);
    const auto* index = absl::get_if<IndexValue>(&inner.node);
    depends = depends || (load != nullptr && DependsOn(program, load->access, loop)) ||
              (index != nullptr && HoldsVar(program.pool, index->index, loop.var));
  });
  return depends;
}

bool LeavesOutPadding(jit::Isa isa) {
  constexpr int kLeastProducts = 16;  // in vectors, of a step of the largest tile
  const jit::IsaFacts& facts = jit::FactsOf(isa);
  return facts.tile_rows * facts.tile_vectors >= kLeastProducts;
}

}  // namespace nestor::loop
