// What ranges.h knows, and the search for a proof from it.
#ifndef NESTOR_LOOP_IR_RANGES_PROOF_H_
#define NESTOR_LOOP_IR_RANGES_PROOF_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/node_hash_map.h"
#include "absl/types/optional.h"
#include "loop_ir/ranges_terms.h"
#include "uops/index_expr.h"

namespace nestor::loop {

struct Interval {
  absl::optional<int64_t> low, high;
};

// Facts that hold at one place of a program. All that they mention is defined
// there: no divisor in them is zero.
class Facts {
 public:
  // `pool` is added to, and must outlive this.
  explicit Facts(IndexPool& pool) : pool_(pool) {}

  // The value of an affine expression; an inexact sum of any other.
  const AtomSum& SumOf(IndexId e);
  // From now on `symbol` is written as `sum`. Before any other use.
  void Substitute(IndexId symbol, IndexId by);
  // `e` with those substitutions made.
  IndexId Substituted(IndexId e);

  // That a loop index lies in [first, last], and that the loop runs.
  void AddVar(int64_t var, const AtomSum& first, const AtomSum& last);
  // That `sum` >= 0.
  void AddNonNegative(const AtomSum& sum);

  // True where `sum` >= 0 is proven, given that its atoms are defined. `steps`: how
  // many sums are looked at.
  static constexpr int kSteps = 48, kFewSteps = 8;
  bool Proves(const AtomSum& sum, int steps = kSteps);
  // True where the expression is proven to be at least 1.
  bool ProvesPositive(IndexId e) { return Proves(SumOf(e) - AtomSum(1)); }

  // What Restore takes back to this state.
  struct State {
    size_t known, vars, intervals;
  };
  State state() const { return {known_.size(), vars_.size(), overwritten_.size()}; }
  void Restore(const State& state);

 private:
  friend class ProofSearch;
  struct Var {
    int64_t var;
    AtomSum first, last;
  };

  // Numbers the loops around from 1, outermost first; 0 without a loop index.
  int LevelOf(IndexId atom);
  const Var* FindVar(IndexId atom) const;
  Interval IntervalOf(IndexId atom);
  Interval IntervalOf(const AtomSum& sum);
  Interval ComputeInterval(IndexId atom);
  Interval KnownIntervalOf(const AtomSum& sum);
  void Tighten(IndexId atom, Interval by);
  void AddConsequences(const AtomSum& sum, int depth);
  void AddFactors(const AtomSum& sum);
  void Changed();

  IndexPool& pool_;
  std::vector<std::pair<IndexId, IndexId>> substitutions_;
  absl::node_hash_map<IndexId, AtomSum> sums_;  // memo of SumOf
  std::vector<AtomSum> known_;  // each >= 0
  std::vector<Var> vars_;       // outermost first
  absl::flat_hash_map<IndexId, Interval> intervals_;            // of atoms, as far as stated
  std::vector<std::pair<IndexId, Interval>> overwritten_;       // what Tighten replaced
  absl::flat_hash_map<IndexId, Interval> computed_;             // memo of IntervalOf
  absl::flat_hash_map<IndexId, std::vector<int64_t>> vars_in_;  // memo of LevelOf
};

}  // namespace nestor::loop

#endif  // NESTOR_LOOP_IR_RANGES_PROOF_H_
