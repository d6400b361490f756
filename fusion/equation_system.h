// The equations between a nest's place and an element's, and which indices of the nest are
// determined so far. With that, the system separates the known part of an equation from what the
// solver (preimage.h) has yet to find.
#ifndef NESTOR_FUSION_EQUATION_SYSTEM_H_
#define NESTOR_FUSION_EQUATION_SYSTEM_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "loop_ir/program.h"
#include "uops/index/index_expr.h"

namespace nestor::loop {

class EquationSystem {
 public:
  struct Equation {
    IndexId left;   // in terms of the nest
    IndexId right;  // in terms of the result
  };
  struct Term {
    IndexId atom, coefficient;
  };
  // The parts of an equation: the sum of the terms, each with an undetermined index, equals
  // `known`, which is in terms of the result.
  struct Sides {
    std::vector<Term> terms;
    IndexId known;
  };

  // No equations yet, and no index of `nest` is determined. REQUIRES: `program` outlives this.
  EquationSystem(Program& program, absl::Span<const Loop* const> nest);

  const std::vector<Equation>& equations() const { return equations_; }
  void Add(Equation equation) { equations_.push_back(equation); }
  void Replace(size_t number, Equation equation) { equations_[number] = equation; }
  void Drop(size_t number) { equations_.erase(equations_.begin() + static_cast<int64_t>(number)); }

  // The loop index `var` is `value`, which is in terms of the result.
  void Determine(int64_t var, IndexId value);
  bool IsDetermined(int64_t var) const { return !unknown_[var]; }
  // REQUIRES: it is determined.
  IndexId ValueOf(int64_t var) const { return values_[var]; }

  // Whether all indices in `e` are determined.
  bool IsKnown(IndexId e) const;
  // `e` with each determined index replaced by its value.
  IndexId InResult(IndexId e) { return SubstituteVars(pool_, e, values_); }

  // nullopt if the equation is not affine.
  absl::optional<Sides> SidesOf(const Equation& equation);
  // The only term, if it is a node of that kind with a symbolic divisor.
  absl::optional<IndexNode> Alone(const Sides& sides, IndexKind kind) const;

 private:
  void AddTerm(std::vector<Term>& terms, Term term);

  IndexPool& pool_;
  std::vector<Equation> equations_;
  // By loop index: its value in terms of the result; itself, if it is not determined.
  IndexList values_;
  std::vector<bool> unknown_;  // by loop index
};

}  // namespace nestor::loop

#endif  // NESTOR_FUSION_EQUATION_SYSTEM_H_
