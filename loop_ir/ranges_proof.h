// The facts that ranges.h has learnt, and the search for a proof from them.
#ifndef NESTOR_LOOP_IR_RANGES_PROOF_H_
#define NESTOR_LOOP_IR_RANGES_PROOF_H_

#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "absl/types/optional.h"
#include "uops/index/atom_sum.h"
#include "uops/index/index_expr.h"

namespace nestor::loop {

// Bounds of an integer, both included; a bound that is not known is absent.
struct Limits {
  absl::optional<int64_t> low, high;
};

// Facts that hold at one place of a program. Every expression in them is defined there: no divisor
// is zero.
class Facts {
 public:
  static constexpr size_t kMaxKnown = 64;  // more facts are not recorded

  // `pool` is added to, and must outlive this.
  explicit Facts(IndexPool& pool) : pool_(pool) {}

  // The value of an affine expression; an inexact sum for any other. The reference stays valid.
  const AtomSum& SumOf(IndexId e);
  // From now on `symbol` is written as `by`. To be called before any other use.
  void Substitute(IndexId symbol, IndexId by);
  // `e` with those substitutions made.
  IndexId Substituted(IndexId e);

  // Adds that a loop index lies in [first, last], and that the loop runs.
  void AddVar(int64_t var, const AtomSum& first, const AtomSum& last);
  // Adds that `sum` >= 0.
  void AddNonNegative(const AtomSum& sum);

  // True where `sum` >= 0 is proven, given that its atoms are defined. `steps`: how many sums are
  // looked at. A search of kSteps is made after one of kOwnSteps without known facts, which is
  // enough for most.
  static constexpr int kSteps = 96, kFewSteps = 8, kOwnSteps = 192;
  bool Proves(const AtomSum& sum, int steps = kSteps);
  // True where the expression is proven to be at least 1.
  bool ProvesPositive(IndexId e) { return Proves(SumOf(e) - AtomSum(1)); }

  // The state that Restore returns to.
  struct State {
    size_t known, vars, limits;
    int64_t version;
  };
  State state() const { return {known_.size(), vars_.size(), overwritten_.size(), version_}; }
  void Restore(const State& state);

 private:
  friend class ProofSearch;
  // A loop index and its bounds.
  struct Var {
    int64_t var;
    AtomSum first, last;
  };

  // The memory of an expression that occurs in sums.
  struct Atom {
    Limits stated;  // what facts say directly
    Limits limits;  // memo of LimitsOf, if `version` is that of the facts
    int64_t version = -1;
    std::vector<int64_t> vars;  // the loop indices in it, once they were wanted
    int level = 0;              // memo of LevelOf, likewise
    int64_t level_version = -1;
  };
  // By IndexId: numbers of what is remembered, or -1.
  struct Numbers {
    int32_t atom = -1, sum = -1;
  };

  Numbers& NumbersOf(IndexId e);
  int32_t NumberOf(IndexId atom);
  // Numbers the loops around from 1, outermost first; 0 without a loop index.
  int LevelOf(IndexId atom);
  const Var* FindVar(IndexId atom) const;
  // By interval arithmetic over what is known of each atom.
  Limits LimitsOf(IndexId atom);
  Limits LimitsOf(const AtomSum& sum);
  Limits ComputeLimits(IndexId atom);
  Limits KnownLimitsOf(const AtomSum& sum);
  // The greatest number that a known sum says `sum` is not below.
  absl::optional<int64_t> KnownLeast(const AtomSum& sum) const;
  // Whether a known sum says that `sum` is negative.
  bool IsKnownNegative(const AtomSum& sum) const;
  // Narrows an atom's interval; Restore widens it again.
  void Tighten(IndexId atom, Limits by);
  void AddConsequences(const AtomSum& sum, int depth);
  void AddFactors(const AtomSum& sum);
  void Changed() { version_ = ++last_version_; }

  IndexPool& pool_;
  std::vector<std::pair<IndexId, IndexId>> substitutions_;
  std::vector<Numbers> numbers_;
  std::deque<AtomSum> sums_;    // memo of SumOf
  std::vector<AtomSum> known_;  // each >= 0
  std::vector<Var> vars_;       // outermost first
  std::vector<Atom> atoms_;
  int64_t version_ = 0;  // of all facts; only Restore brings an old one back
  int64_t last_version_ = 0;
  // The limits that Tighten replaced, with the number of the atom.
  std::vector<std::pair<int32_t, Limits>> overwritten_;
};

}  // namespace nestor::loop

#endif  // NESTOR_LOOP_IR_RANGES_PROOF_H_
