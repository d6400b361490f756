// Structural recursion: the coefficient of a sum is the sum of coefficients, that of a product by
// what does not move the product. Everything else that moves has none.
#include "loop_ir/affine.h"

#include <utility>

#include "absl/algorithm/container.h"

namespace nestor::loop {

absl::optional<AtomSum> CoefficientOf(const IndexPool& pool, IndexId e, int64_t var) {
  if (pool.VarValue(e) == var) return absl::make_optional<AtomSum>(1);
  if (!HoldsVar(pool, e, var)) return absl::make_optional<AtomSum>();
  const IndexKind kind = pool[e].kind;
  if (!pool.IsAffine(e) || (kind != IndexKind::kAdd && kind != IndexKind::kMul))
    return absl::nullopt;
  const IndexId a = pool[e].args[0], b = pool[e].args[1];
  auto of_a = CoefficientOf(pool, a, var), of_b = CoefficientOf(pool, b, var);
  if (!of_a || !of_b) return absl::nullopt;
  // One factor of an affine product holds no loop index.
  AtomSum sum = kind == IndexKind::kAdd ? *of_a + *of_b
                : pool.HasVar(a)        ? *of_a * AtomSum::Of(pool, b)
                                        : AtomSum::Of(pool, a) * *of_b;
  return sum.exact() ? absl::make_optional(std::move(sum)) : absl::nullopt;
}

absl::optional<int64_t> StrideIn(const IndexPool& pool, IndexId e, int64_t var) {
  const auto coefficient = CoefficientOf(pool, e, var);
  return coefficient ? coefficient->Constant() : absl::nullopt;
}

AtomSum FixedPart(const IndexPool& pool, IndexId e) {
  const AtomSum sum = AtomSum::Of(pool, e);
  AtomSum fixed = sum.exact() ? AtomSum() : AtomSum::Inexact();
  for (const AtomSum::Term& term : sum.terms()) {
    if (absl::c_none_of(term.atoms, [&](IndexId atom) { return pool.HasVar(atom); }))
      fixed = fixed + AtomSum::OfTerm(term);
  }
  return fixed;
}

absl::optional<int64_t> DifferenceOf(const IndexPool& pool, IndexId a, IndexId b) {
  return (AtomSum::Of(pool, a) - AtomSum::Of(pool, b)).Constant();
}

absl::optional<int64_t> KnownLength(const Program& program, const Loop& loop) {
  return DifferenceOf(program.pool, loop.end, loop.begin);
}

bool LengthIsMultiple(const Program& program, const Loop& loop, int64_t divisor) {
  const AtomSum length =
      AtomSum::Of(program.pool, loop.end) - AtomSum::Of(program.pool, loop.begin);
  return length.exact() && absl::c_all_of(length.terms(), [&](const AtomSum::Term& term) {
           return term.coefficient % divisor == 0;
         });
}

bool IsAtMostOne(const IndexPool& pool, IndexId e) {
  const IndexNode& node = pool[e];
  if (node.kind != IndexKind::kMin) return node.kind == IndexKind::kConst && node.value <= 1;
  return absl::c_any_of(node.args, [&](IndexId arg) { return IsAtMostOne(pool, arg); });
}

}  // namespace nestor::loop
