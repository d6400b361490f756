// What holds in the scopes around a place of a program, and the questions that this answers.
// ranges.h says which scopes there are, and has this learn from them when something is asked.
#ifndef NESTOR_LOOP_IR_SCOPE_FACTS_H_
#define NESTOR_LOOP_IR_SCOPE_FACTS_H_

#include <cstddef>
#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/optional.h"
#include "loop_ir/ranges_proof.h"
#include "uops/index/atom_sum.h"
#include "uops/index/index_expr.h"

namespace nestor::loop {

// Not thread-safe.
class ScopeFacts {
 protected:
  struct Head {  // of a loop
    int32_t var;
    IndexId begin, end;
    int64_t step;
  };
  // The state that End returns to, and the proofs since.
  struct Frame {
    Facts::State facts;
    size_t nonzero, held, multiples;
    absl::optional<Head> loop;
    absl::flat_hash_map<std::tuple<IndexId, IndexId, int64_t>, bool> proven;  // a + slack <= b
    absl::flat_hash_map<IndexId, bool> defined;
  };

  // `pool` is added to, and must outlive this.
  explicit ScopeFacts(IndexPool& pool) : pool_(pool), facts_(pool) {}

  // ---- Scopes. All below needs one that has begun.

  Frame& Begin();
  // The body of a loop.
  void BeginLoop(const Head& loop);
  // Forgets what was learnt since the last Begin.
  void End();

  // ---- Facts. Each Add.. derives the linear facts that follow, and leaves out what cannot be
  // written as one.

  void AddLessEqual(IndexId a, IndexId b);
  void AddLess(IndexId a, IndexId b);
  // The expression is evaluated.
  void AddDefined(IndexId e);
  // The condition holds.
  void AddCondition(IndexId condition);

  // ---- Questions: as those of Ranges that have the same name.

  bool Defined(IndexId e);
  bool NonZero(IndexId e);
  bool LessEqual(IndexId a, IndexId b) { return Holds(a, b, 0); }
  bool Less(IndexId a, IndexId b) { return Holds(a, b, 1); }
  absl::optional<bool> Decide(IndexId condition);
  int64_t MultipleOf(int64_t var) const;

  IndexPool& pool_;
  Facts facts_;
  std::vector<Frame> frames_;

 private:
  void Learn(const AtomSum& sum);
  void AddDifferent(IndexId a, IndexId b);
  void AddNonZero(IndexId e);
  // The facts of a condition that does not hold.
  void AddFalse(IndexId condition);
  bool ComputeDefined(IndexId e);
  // Whether a + slack <= b.
  bool Holds(IndexId a, IndexId b, int64_t slack);
  absl::optional<bool> DecideComparison(IndexKind kind, IndexId a, IndexId b);
  absl::optional<bool> DecideBoth(IndexId a, IndexId b, bool decisive);

  std::vector<IndexId> nonzero_;                        // divisors that are not zero here
  std::vector<IndexId> held_;                           // conditions that hold here
  std::vector<std::pair<int64_t, int64_t>> multiples_;  // loop index, step
};

}  // namespace nestor::loop

#endif  // NESTOR_LOOP_IR_SCOPE_FACTS_H_
