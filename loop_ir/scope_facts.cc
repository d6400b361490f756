// Symbolic range analysis (compare Blume and Eigenmann, "Symbolic range propagation", 1995), for
// structured loops: facts are sums that are not negative (ranges_proof.h), collected and forgotten
// scope by scope. This file says which facts loops and conditions contribute, and what must hold
// for an expression to have a value at all:
//
//   for h in [0, H/$s) { y[h] = x[h*$s] }
//
// Inside the body H/$s was evaluated, so $s is not zero; it is at least 1 only if a check says so,
// and only then 0 <= h*$s < H.
//
// The search itself is in ranges_search.cc. Most questions never reach it: comparisons of numbers,
// and questions that were asked before in this scope. A new fact forgets the latter, as it may make
// a proof possible.
#include "loop_ir/scope_facts.h"

#include <algorithm>

#include "absl/algorithm/container.h"

namespace nestor::loop {

// ---- Scopes

ScopeFacts::Frame& ScopeFacts::Begin() {
  frames_.push_back({facts_.state(), nonzero_.size(), held_.size(), multiples_.size(), {}, {}, {}});
  return frames_.back();
}

// Inside the body begin <= v < end, and the loop runs, so begin < end. With a step s that divides
// end - begin, the last v is end - s.
void ScopeFacts::BeginLoop(const Head& loop) {
  Begin().loop = loop;
  AddDefined(loop.begin);
  AddDefined(loop.end);
  AddLess(loop.begin, loop.end);
  const AtomSum first = facts_.SumOf(loop.begin), end = facts_.SumOf(loop.end);
  const auto is_whole = [&](const AtomSum& sum) {
    return sum.exact() && absl::c_all_of(sum.terms(), [&](const AtomSum::Term& t) {
             return t.coefficient % loop.step == 0;
           });
  };
  facts_.AddVar(loop.var, first, end - AtomSum(is_whole(end - first) ? loop.step : 1));
  frames_.back().proven.clear();
  if (is_whole(first)) multiples_.push_back({loop.var, loop.step});
}

void ScopeFacts::End() {
  const Frame& frame = frames_.back();
  facts_.Restore(frame.facts);
  nonzero_.resize(frame.nonzero);
  held_.resize(frame.held);
  multiples_.resize(frame.multiples);
  frames_.pop_back();
}

// ---- Facts

// Learns that `sum` >= 0. Questions that could not be proven without this may be provable now.
void ScopeFacts::Learn(const AtomSum& sum) {
  facts_.AddNonNegative(sum);
  frames_.back().proven.clear();
  frames_.back().defined.clear();
}

void ScopeFacts::AddLessEqual(IndexId a, IndexId b) { Learn(facts_.SumOf(b) - facts_.SumOf(a)); }
void ScopeFacts::AddLess(IndexId a, IndexId b) {
  Learn(facts_.SumOf(b) - facts_.SumOf(a) - AtomSum(1));
}

// Something is learnt only where the order of the two is known.
void ScopeFacts::AddDifferent(IndexId a, IndexId b) {
  const AtomSum difference = facts_.SumOf(a) - facts_.SumOf(b);
  if (facts_.Proves(difference)) Learn(difference - AtomSum(1));
  if (facts_.Proves(-difference)) Learn(-difference - AtomSum(1));
}

// An expression that was evaluated divides by nothing that is zero. Nothing is learnt from an
// expression that holds a gathered value.
void ScopeFacts::AddDefined(IndexId e) {
  if (pool_[e].args.empty()) return;
  std::vector<IndexId> divisors;
  VisitIndex(pool_, e, [&](IndexId, const IndexNode& node) {
    if (node.kind == IndexKind::kDiv || node.kind == IndexKind::kMod)
      divisors.push_back(node.args[1]);
  });
  for (IndexId divisor : divisors) AddNonZero(divisor);
}

// A divisor that is used is not zero where its quotient has a value.
void ScopeFacts::AddNonZero(IndexId e) {
  if (pool_.ConstValue(e) || !pool_.IsAffine(e) || NonZero(e)) return;
  nonzero_.push_back(e);
  frames_.back().defined.clear();
  AddDifferent(e, pool_.Const(0));
}

// Learns what follows from a condition that holds; of an `or` something follows only if one side is
// false.
void ScopeFacts::AddCondition(IndexId condition) {
  const IndexNode node = pool_[condition];
  held_.push_back(condition);
  if (!pool_.HasLoad(condition)) AddDefined(condition);
  switch (node.kind) {
    case IndexKind::kLt: return AddLess(node.args[0], node.args[1]);
    case IndexKind::kLe: return AddLessEqual(node.args[0], node.args[1]);
    case IndexKind::kEq:
      AddLessEqual(node.args[0], node.args[1]);
      return AddLessEqual(node.args[1], node.args[0]);
    case IndexKind::kNe: return AddDifferent(node.args[0], node.args[1]);
    case IndexKind::kAnd:
      for (IndexId arg : node.args) AddCondition(arg);
      return;
    case IndexKind::kOr:
      if (Decide(node.args[0]) == false) AddCondition(node.args[1]);
      if (Decide(node.args[1]) == false) AddCondition(node.args[0]);
      return;
    case IndexKind::kNot: return AddFalse(node.args[0]);
    default: return;
  }
}

// The same for a condition that does not hold, by De Morgan's laws.
void ScopeFacts::AddFalse(IndexId condition) {
  const IndexNode node = pool_[condition];
  switch (node.kind) {
    case IndexKind::kLt: return AddLessEqual(node.args[1], node.args[0]);
    case IndexKind::kLe: return AddLess(node.args[1], node.args[0]);
    case IndexKind::kNe:
      AddLessEqual(node.args[0], node.args[1]);
      return AddLessEqual(node.args[1], node.args[0]);
    case IndexKind::kEq: return AddDifferent(node.args[0], node.args[1]);
    case IndexKind::kOr:
      for (IndexId arg : node.args) AddFalse(arg);
      return;
    case IndexKind::kNot: return AddCondition(node.args[0]);
    default: return;
  }
}

// ---- Questions

// A leaf but a load always has a value; anything else needs divisors that are not zero.
bool ScopeFacts::Defined(IndexId e) {
  if (pool_[e].args.empty()) return pool_[e].kind != IndexKind::kLoad;
  auto& memo = frames_.back().defined;
  const auto it = memo.find(e);
  if (it != memo.end()) return it->second;
  const bool defined = ComputeDefined(e);
  frames_.back().defined.emplace(e, defined);
  return defined;
}

// Conditions are not affine themselves, but their operands may be.
bool ScopeFacts::ComputeDefined(IndexId e) {
  const IndexNode node = pool_[e];
  if (!IsCondition(node.kind) && !pool_.IsAffine(e)) return false;
  for (IndexId arg : node.args) {
    if (!Defined(arg)) return false;
  }
  return (node.kind != IndexKind::kDiv && node.kind != IndexKind::kMod) || NonZero(node.args[1]);
}

bool ScopeFacts::NonZero(IndexId e) {
  if (const auto constant = pool_.ConstValue(e)) return *constant != 0;
  if (std::find(nonzero_.begin(), nonzero_.end(), e) != nonzero_.end()) return true;
  return Less(pool_.Const(0), e) || Less(e, pool_.Const(0));
}

// a + slack <= b.
bool ScopeFacts::Holds(IndexId a, IndexId b, int64_t slack) {
  const auto x = pool_.ConstValue(a), y = pool_.ConstValue(b);
  if (x && y) return slack == 0 ? *x <= *y : *x < *y;
  const auto key = std::make_tuple(a, b, slack);
  auto& memo = frames_.back().proven;
  const auto it = memo.find(key);
  if (it != memo.end()) return it->second;
  const bool usable = pool_.IsAffine(a) && pool_.IsAffine(b) && Defined(a) && Defined(b);
  const bool proven = usable && facts_.Proves(facts_.SumOf(b) - facts_.SumOf(a) - AtomSum(slack));
  frames_.back().proven.emplace(key, proven);
  return proven;
}

// A condition that was assumed as it is written holds, whatever it is about, gathered values
// included.
absl::optional<bool> ScopeFacts::Decide(IndexId condition) {
  const IndexNode node = pool_[condition];
  if (std::find(held_.begin(), held_.end(), condition) != held_.end()) return true;
  switch (node.kind) {
    case IndexKind::kConst: return node.value != 0;
    case IndexKind::kAnd: return DecideBoth(node.args[0], node.args[1], false);
    case IndexKind::kOr: return DecideBoth(node.args[0], node.args[1], true);
    case IndexKind::kNot: {
      const auto decided = Decide(node.args[0]);
      if (!decided) return absl::nullopt;
      return !*decided;
    }
    case IndexKind::kLt:
    case IndexKind::kLe:
    case IndexKind::kEq:
    case IndexKind::kNe: return DecideComparison(node.kind, node.args[0], node.args[1]);
    default: return absl::nullopt;
  }
}

// Tries to prove the condition, then its negation.
absl::optional<bool> ScopeFacts::DecideComparison(IndexKind kind, IndexId a, IndexId b) {
  switch (kind) {
    case IndexKind::kLt:
      if (Less(a, b)) return true;
      if (LessEqual(b, a)) return false;
      return absl::nullopt;
    case IndexKind::kLe:
      if (LessEqual(a, b)) return true;
      if (Less(b, a)) return false;
      return absl::nullopt;
    default: break;
  }
  if (LessEqual(a, b) && LessEqual(b, a)) return kind == IndexKind::kEq;
  if (Less(a, b) || Less(b, a)) return kind == IndexKind::kNe;
  return absl::nullopt;
}

// and, or: decided by one operand alone only if the other has a value.
absl::optional<bool> ScopeFacts::DecideBoth(IndexId a, IndexId b, bool decisive) {
  const auto x = Decide(a), y = Decide(b);
  if (x && y) return decisive ? *x || *y : *x && *y;
  if (x == decisive && Defined(b)) return decisive;
  if (y == decisive && Defined(a)) return decisive;
  return absl::nullopt;
}

int64_t ScopeFacts::MultipleOf(int64_t var) const {
  for (const auto& [v, step] : multiples_) {
    if (v == var) return step;
  }
  return 1;
}

}  // namespace nestor::loop
