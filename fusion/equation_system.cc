// Bookkeeping for the solver of preimage.cc. Two kinds of indices occur: those of the nest, unknown
// at first, on the left of equations, and those of the result, on the right. Determine moves an
// index from one kind to the other; an equation is then read as a sum of terms with one unknown
// each, and everything else goes to the other side:
//
//   l*$s + r - $p == y,  r determined   ->   terms {($s, l)},  known y - r + $p
//
// An atom is whatever a sum of products does not look into: an index, a quotient or a remainder. A term
// has at most one unknown atom, as the left side is affine.
#include "fusion/equation_system.h"

#include <algorithm>

#include "uops/index/atom_sum.h"

namespace nestor::loop {

EquationSystem::EquationSystem(Program& program, absl::Span<const Loop* const> nest)
    : pool_(program.pool) {
  for (size_t v = 0; v < program.vars.size(); ++v)
    values_.push_back(pool_.Var(static_cast<int64_t>(v)));
  unknown_.resize(program.vars.size());
  for (const Loop* loop : nest) unknown_[loop->var] = true;
}

void EquationSystem::Determine(int64_t var, IndexId value) {
  values_[var] = value;
  unknown_[var] = false;
}

bool EquationSystem::IsKnown(IndexId e) const {
  std::vector<int64_t> vars;
  CollectVars(pool_, e, vars);
  return std::none_of(vars.begin(), vars.end(), [&](int64_t v) { return unknown_[v]; });
}

// Splits each term of the left side into its unknown atom, if any, and a known factor.
absl::optional<EquationSystem::Sides> EquationSystem::SidesOf(const Equation& equation) {
  const AtomSum left = AtomSum::Of(pool_, equation.left);
  if (!left.exact()) return absl::nullopt;
  Sides sides{{}, equation.right};
  for (const AtomSum::Term& term : left.InOrder(pool_)) {
    IndexId factor = pool_.Const(term.coefficient), unknown;
    for (IndexId atom : term.atoms) {
      if (IsKnown(atom)) factor = pool_.Mul(factor, InResult(atom));
      else unknown = atom;
    }
    if (unknown.value < 0) sides.known = pool_.Sub(sides.known, factor);
    else AddTerm(sides.terms, {unknown, factor});
  }
  if (!pool_.IsAffine(sides.known)) return absl::nullopt;
  return sides;
}

void EquationSystem::AddTerm(std::vector<Term>& terms, Term term) {
  const auto same =
      std::find_if(terms.begin(), terms.end(), [&](const Term& t) { return t.atom == term.atom; });
  if (same == terms.end()) terms.push_back(term);
  else same->coefficient = pool_.Add(same->coefficient, term.coefficient);
}

absl::optional<IndexNode> EquationSystem::Alone(const Sides& sides, IndexKind kind) const {
  if (sides.terms.size() != 1 || !pool_.IsConst(sides.terms[0].coefficient, 1))
    return absl::nullopt;
  const IndexNode& node = pool_[sides.terms[0].atom];
  if (node.kind != kind || pool_.HasVar(node.args[1])) return absl::nullopt;
  return node;
}

}  // namespace nestor::loop
