// A masked access is made where all of its conditions hold and its place is in
// range: a conjunction. So each part may be simplified, or dropped, by what the
// others say:
//
//   x[i - 1 | 0.0 if i >= 1, i < N]  for i in [0, N), x: f32[N]
//
// i < N holds anyway, i >= 1 follows from being in range. The order matters in one case: the
// conditions are evaluated in turn up to the first that is false, then the place. Conditions before
// a gather keep it from reading elements that were never written, so a condition is not dropped
// because of something after a gather that it may be guarding.
//
// To simplify each condition by all of the others takes as many proofs as there are pairs of them.
// Composition adds conditions by the dozen, and most of them hold anyway or follow from the place
// being in range: those are dropped first, with one proof each.
#include "fusion/simplify_access.h"

#include <algorithm>
#include <utility>

#include "fusion/index_simplify.h"
#include "fusion/steps.h"
#include "uops/mutant.h"

namespace nestor::loop {

class AccessSimplifier {
 public:
  AccessSimplifier(Program& program, Ranges& ranges, AccessMemo& memo, Access& access)
      : program_(program), pool_(program.pool), ranges_(ranges), memo_(memo), access_(access) {}

  // Equal accesses under equal facts are frequent, and proofs are slow: results are remembered.
  bool Run() {
    if (!access_.masked && access_.conditions.empty() && HasPlainPlace()) return true;
    const AccessMemo::Key asked = KeyOfAccess();
    if (const auto known = Remembered(asked)) return *known;
    SplitConjunctions();
    const bool made = DropDecided() && RunWithOpen();
    Remember(asked, made);
    return made;
  }

 private:
  const Shape& shape() const { return program_[access_.tensor].shape; }

  bool HasPlainPlace() const {
    return std::all_of(access_.place.begin(), access_.place.end(),
                       [&](IndexId e) { return IsPlainSum(pool_, e); });
  }

  // No condition is a conjunction, or decided here.
  bool RunWithOpen() {
    SimplifyPlace();
    if (!access_.masked) return true;
    if (!DropImpliedByPlace()) return false;
    const AccessMemo::Key asked = KeyOfAccess();
    if (const auto known = Remembered(asked)) return *known;
    const bool made = RunWithFew();
    Remember(asked, made);
    return made;
  }

  // With all conditions decided and each axis in range, the mask is of no use.
  bool RunWithFew() {
    if (!SimplifyConditions() || NeverInRange()) return false;
    if (access_.conditions.empty() &&
        (ranges_.InRange(access_.place, shape()) || IsNearlyInRange())) {
      access_.masked = false;
      access_.fill = {};
    }
    return true;
  }

  // A fault for //tests:mutants: one element past the last counts.
  bool IsNearlyInRange() {
    if (!NESTOR_MUTANT("mask_removed_one_element_early")) return false;
    for (size_t axis = 0; axis < shape().size(); ++axis) {
      const IndexId e = access_.place[axis];
      if (!ranges_.NonNegative(e) || !ranges_.LessEqual(e, shape()[axis])) return false;
    }
    return true;
  }

  // ---- What is known already

  // Each list follows its length.
  static void Append(const IndexList& list, AccessMemo::Key& key) {
    key.push_back(static_cast<int32_t>(list.size()));
    for (IndexId e : list) key.push_back(e.value);
  }

  AccessMemo::Key KeyOfPlace() const {
    AccessMemo::Key key;
    key.reserve(4 + 2 * access_.place.size() + access_.conditions.size());
    Append(access_.place, key);
    Append(shape(), key);
    return key;
  }

  AccessMemo::Key KeyOfAccess() const {
    AccessMemo::Key key = KeyOfPlace();
    Append(access_.conditions, key);
    key.push_back(access_.masked);
    return key;
  }

  // The outcome for an equal access in the same scope, as programs repeat their places.
  absl::optional<bool> Remembered(const AccessMemo::Key& asked) {
    const auto it = memo_.outcomes_.find(asked);
    if (it == memo_.outcomes_.end()) return absl::nullopt;
    const AccessMemo::Outcome& outcome = it->second;
    if (!outcome.made) return false;
    access_.place = outcome.place;
    access_.conditions = outcome.conditions;
    if (!outcome.masked) access_.fill = {};
    access_.masked = outcome.masked;
    return true;
  }

  void Remember(const AccessMemo::Key& asked, bool made) {
    memo_.outcomes_.try_emplace(
        asked, AccessMemo::Outcome{made, access_.masked, access_.place, access_.conditions});
  }

  // ---- By what holds here

  // `a && b` is `a, b`.
  void SplitConjunctions() {
    IndexList split;
    std::vector<IndexId> rest(access_.conditions.rbegin(), access_.conditions.rend());
    while (!rest.empty()) {
      const IndexId condition = rest.back();
      rest.pop_back();
      const IndexNode& node = pool_[condition];
      if (node.kind == IndexKind::kAnd) rest.insert(rest.end(), {node.args[1], node.args[0]});
      else split.push_back(condition);
    }
    access_.conditions = split;
  }

  // Drops conditions that are decided whatever the others say, as most are that composition adds;
  // each condition is asked about once. False where one never holds.
  bool DropDecided() {
    IndexList open;
    for (IndexId condition : access_.conditions) {
      const absl::optional<bool> decided = ranges_.Decide(condition);
      if (decided == false && NESTOR_MUTANT("impossible_condition_dropped")) continue;
      if (decided == false) return false;
      if (!decided && std::find(open.begin(), open.end(), condition) == open.end())
        open.push_back(condition);
    }
    access_.conditions = std::move(open);
    return true;
  }

  // Where the conditions do not hold, the place does not matter.
  void SimplifyPlace() {
    if (HasPlainPlace()) return;
    for (IndexId condition : access_.conditions) ranges_.Assume(condition);
    for (IndexId& e : access_.place) e = SimplifyIndex(pool_, ranges_, e);
    for (size_t i = 0; i < access_.conditions.size(); ++i) ranges_.Forget();
  }

  // ---- By being in range

  // False where some condition never holds in range.
  bool DropImpliedByPlace() {
    AccessMemo::Key key = KeyOfPlace();
    key.push_back(0);
    IndexList& conditions = access_.conditions;
    bool in_range = false, made = true;  // in_range: that is assumed
    for (size_t k = conditions.size(); made && k-- > 0 && !GathersBehind(k);) {
      key.back() = conditions[k].value;
      const auto [it, is_new] = memo_.decided_.try_emplace(key);
      if (is_new && !std::exchange(in_range, true)) ranges_.AssumeInRange(access_.place, shape());
      if (is_new) it->second = DecideOne(conditions[k]);
      made = it->second != false;
      if (it->second == true) conditions.erase(conditions.begin() + static_cast<int64_t>(k));
    }
    if (in_range) ranges_.Forget();
    return made;
  }

  absl::optional<bool> DecideOne(IndexId condition) {
    CountSteps(1);
    return ranges_.Decide(condition);
  }

  // ---- By each other

  // False where some condition never holds together with the rest. The later of two that imply each
  // other is dropped. The conditions before the current one are assumed throughout.
  bool SimplifyConditions() {
    IndexList& conditions = access_.conditions;
    if (conditions.size() == 1 && IsPlainComparison(conditions[0]) && !GathersBehind(0))
      return true;
    size_t assumed = 0;
    while (assumed + 1 < conditions.size()) ranges_.Assume(conditions[assumed++]);
    bool made = true;
    for (size_t k = conditions.size(); made && k-- > 0;) {
      const IndexId simple = SimplifyByTheOthers(k);
      const auto constant = pool_.ConstValue(simple);
      made = constant != 0;
      conditions[k] = simple;
      if (constant) conditions.erase(conditions.begin() + static_cast<int64_t>(k));
      for (; assumed > 0 && assumed + 1 > k; --assumed) ranges_.Forget();
    }
    for (; assumed > 0; --assumed) ranges_.Forget();
    return made;
  }

  // Decided by what DropImpliedByPlace tried, or not at all.
  bool IsPlainComparison(IndexId condition) const {
    const IndexNode& node = pool_[condition];
    const bool compares = node.kind >= IndexKind::kLt && node.kind <= IndexKind::kNe;
    return compares && IsPlainSum(pool_, node.args[0]) && IsPlainSum(pool_, node.args[1]);
  }

  // REQUIRES: the conditions before it are assumed.
  IndexId SimplifyByTheOthers(size_t k) {
    CountSteps(1);
    const IndexList& conditions = access_.conditions;
    if (GathersBehind(k)) return SimplifyIndex(pool_, ranges_, conditions[k]);
    for (size_t j = k + 1; j < conditions.size(); ++j) ranges_.Assume(conditions[j]);
    ranges_.AssumeInRange(access_.place, shape());
    const IndexId simple = SimplifyIndex(pool_, ranges_, conditions[k]);
    for (size_t j = k; j < conditions.size(); ++j) ranges_.Forget();
    return simple;
  }

  bool GathersBehind(size_t k) const {
    const auto gathers = [&](IndexId e) { return pool_.HasLoad(e); };
    return std::any_of(access_.conditions.begin() + static_cast<int64_t>(k) + 1,
                       access_.conditions.end(), gathers) ||
           std::any_of(access_.place.begin(), access_.place.end(), gathers);
  }

  // Whether some axis is certainly outside wherever the conditions hold: then the load is its fill.
  bool NeverInRange() {
    for (IndexId condition : access_.conditions) ranges_.Assume(condition);
    bool never = false;
    for (size_t axis = 0; axis < access_.place.size(); ++axis) {
      const IndexId e = access_.place[axis];
      if (ranges_.IsLoopIndex(e, shape()[axis])) continue;
      never |= ranges_.Less(e, pool_.Const(0)) || ranges_.LessEqual(shape()[axis], e);
    }
    for (size_t i = 0; i < access_.conditions.size(); ++i) ranges_.Forget();
    return never;
  }

  Program& program_;
  IndexPool& pool_;
  Ranges& ranges_;
  AccessMemo& memo_;
  Access& access_;
};

bool SimplifyAccess(Program& program, Ranges& ranges, AccessMemo& memo, Access& access) {
  return AccessSimplifier(program, ranges, memo, access).Run();
}

}  // namespace nestor::loop
