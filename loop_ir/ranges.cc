// Symbolic range analysis (compare Blume and Eigenmann, "Symbolic range propagation", 1995), for
// structured loops: facts are sums that are not negative (ranges_proof.h), collected and forgotten
// scope by scope. This file says which facts the nodes of a program contribute, and what must hold
// for an expression to have a value at all:
//
//   for h in [0, H/$s) { y[h] = x[h*$s] }
//
// Inside the body H/$s was evaluated, so $s is not zero; it is at least 1 only if a check says so,
// and only then 0 <= h*$s < H.
//
// The search itself is in ranges_search.cc. Most queries never reach it: comparisons of numbers, a
// bare loop index in its own range (IsLoopIndex), and questions that were asked before in this
// scope. A new fact forgets the latter, as it may make a proof possible.
#include "loop_ir/ranges.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"

namespace nestor::loop {

Ranges::Ranges(Program& program) : program_(program), pool_(program.pool), facts_(program.pool) {
  unasked_.push_back(Head{-1, {}, {}, 1});
}

// ---- What a program says

// Substitutions come before anything else, and facts from divisions last, when the signs of their
// divisors are known.
void Ranges::LearnProgram() {
  Begin();
  for (const Equality& equality : program_.equalities)
    SubstituteEqual(equality.left, equality.right);
  AddSymbols();
  AddChecks();
  for (const Equality& equality : program_.equalities) {
    AddLessEqual(equality.left, equality.right);
    AddLessEqual(equality.right, equality.left);
  }
}

// Binding checks these before anything runs.
void Ranges::AddSymbols() {
  Shape extents;
  for (const auto* tensors : {&program_.inputs, &program_.outputs}) {
    for (TensorId tensor : *tensors) {
      extents.insert(extents.end(), program_[tensor].shape.begin(), program_[tensor].shape.end());
    }
  }
  // Dimensions that have no other name and are known not to be negative: nothing new can be learnt
  // about them.
  absl::flat_hash_set<IndexId> learnt;
  const auto is_learnt = [&](IndexId e) {
    return learnt.contains(e) && facts_.Substituted(e) == e;
  };
  IndexList dimensions;
  for (IndexId extent : extents) {
    VisitIndex(pool_, extent, [&](IndexId e, const IndexNode& node) {
      if (node.kind == IndexKind::kSymbol && pool_.SymbolName(e)[0] != '$') dimensions.push_back(e);
    });
  }
  for (IndexId dimension : dimensions) {
    if (!is_learnt(dimension)) AddLessEqual(pool_.Const(0), dimension);
    learnt.insert(dimension);
  }
  for (IndexId extent : extents) {
    if (is_learnt(extent)) continue;
    AddDefined(extent);
    AddLessEqual(pool_.Const(0), extent);
  }
}

// The range of each $param, and what the op's statements require: a run does not begin without.
void Ranges::AddChecks() {
  for (const ParamInfo& param : program_.params) {
    if (!IsInteger(param.type)) continue;
    const IndexId symbol = pool_.Symbol(param.name);
    if (param.low) AddLessEqual(pool_.Const(param.low->ToInt()), symbol);
    if (param.high) AddLessEqual(symbol, pool_.Const(param.high->ToInt()));
  }
  for (const RangeCheck& check : program_.range_checks) {
    AddDefined(check.value);
    if (check.low) AddLessEqual(pool_.Const(*check.low), check.value);
    if (check.high) AddLessEqual(check.value, pool_.Const(*check.high));
  }
}

// A symbol that is alone on one side is written as the other side, where that is a sum of products
// of symbols. If both sides are symbols, the right one is replaced: a message names the earlier
// place first, so that a size is named after that.
void Ranges::SubstituteEqual(IndexId left, IndexId right) {
  AddDefined(left);
  AddDefined(right);
  const IndexId a = facts_.Substituted(left), b = facts_.Substituted(right);
  if (a != b && !SubstituteSymbol(b, a)) SubstituteSymbol(a, b);
}

// Only by an expression of other symbols: one that held an atom of its own would have to be
// substituted again and again.
bool Ranges::SubstituteSymbol(IndexId symbol, IndexId by) {
  if (pool_[symbol].kind != IndexKind::kSymbol) return false;
  const AtomProduct atoms = facts_.SumOf(by).Atoms();
  const bool plain =
      facts_.SumOf(by).exact() && std::all_of(atoms.begin(), atoms.end(), [&](IndexId e) {
        return e != symbol && pool_[e].kind == IndexKind::kSymbol;
      });
  if (plain) facts_.Substitute(symbol, by);
  return plain;
}

// ---- Scopes

Ranges::Frame& Ranges::Begin() {
  frames_.push_back({facts_.state(), nonzero_.size(), held_.size(), multiples_.size(), {}, {}, {}});
  return frames_.back();
}

void Ranges::Forget() {
  if (!unasked_.empty()) return unasked_.pop_back();
  const Frame& frame = frames_.back();
  facts_.Restore(frame.facts);
  nonzero_.resize(frame.nonzero);
  held_.resize(frame.held);
  multiples_.resize(frame.multiples);
  frames_.pop_back();
}

// Queries made while learning use the frames that are there already.
void Ranges::LearnUnasked() {
  is_settling_ = true;
  for (const absl::optional<Head>& loop : unasked_) {
    if (!loop) Begin();
    else if (loop->var < 0) LearnProgram();
    else LearnLoop(*loop);
  }
  unasked_.clear();
  is_settling_ = false;
}

// Inside the body begin <= v < end, and the loop runs, so begin < end. With a step s that divides
// end - begin, the last v is end - s.
void Ranges::LearnLoop(const Head& loop) {
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

int64_t Ranges::MultipleOf(int64_t var) {
  Settle();
  for (const auto& [v, step] : multiples_) {
    if (v == var) return step;
  }
  return 1;
}

void Ranges::Assume(IndexId condition) {
  Settle();
  Begin();
  AddCondition(condition);
}

// Axes that a loop's bounds keep in range say nothing new, and are mostly all of them.
void Ranges::AssumeInRange(absl::Span<const IndexId> place, const Shape& shape) {
  size_t axis = 0;
  while (axis < place.size() && IsLoopIndex(place[axis], shape[axis])) ++axis;
  if (axis == place.size()) return unasked_.push_back(absl::nullopt);
  Settle();
  Begin();
  for (; axis < place.size(); ++axis) {
    AddDefined(place[axis]);
    AddLessEqual(pool_.Const(0), place[axis]);
    AddLess(place[axis], shape[axis]);
  }
}

// ---- Facts

// Learns that `sum` >= 0. Questions that could not be proven without this may be provable now.
void Ranges::Learn(const AtomSum& sum) {
  facts_.AddNonNegative(sum);
  frames_.back().proven.clear();
  frames_.back().defined.clear();
}

void Ranges::AddLessEqual(IndexId a, IndexId b) { Learn(facts_.SumOf(b) - facts_.SumOf(a)); }
void Ranges::AddLess(IndexId a, IndexId b) {
  Learn(facts_.SumOf(b) - facts_.SumOf(a) - AtomSum(1));
}

// Something is learnt only where the order of the two is known.
void Ranges::AddDifferent(IndexId a, IndexId b) {
  const AtomSum difference = facts_.SumOf(a) - facts_.SumOf(b);
  if (facts_.Proves(difference)) Learn(difference - AtomSum(1));
  if (facts_.Proves(-difference)) Learn(-difference - AtomSum(1));
}

// An expression that was evaluated divides by nothing that is zero. Nothing is learnt from an
// expression that holds a gathered value.
void Ranges::AddDefined(IndexId e) {
  if (pool_[e].args.empty()) return;
  std::vector<IndexId> divisors;
  VisitIndex(pool_, e, [&](IndexId, const IndexNode& node) {
    if (node.kind == IndexKind::kDiv || node.kind == IndexKind::kMod)
      divisors.push_back(node.args[1]);
  });
  for (IndexId divisor : divisors) AddNonZero(divisor);
}

// A divisor that is used is not zero where its quotient has a value.
void Ranges::AddNonZero(IndexId e) {
  if (pool_.ConstValue(e) || !pool_.IsAffine(e) || NonZero(e)) return;
  nonzero_.push_back(e);
  frames_.back().defined.clear();
  AddDifferent(e, pool_.Const(0));
}

// Learns what follows from a condition that holds; of an `or` something follows only if one side is
// false.
void Ranges::AddCondition(IndexId condition) {
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
void Ranges::AddFalse(IndexId condition) {
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

// ---- Queries

// A leaf but a load always has a value; anything else needs divisors that are not zero.
bool Ranges::Defined(IndexId e) {
  if (pool_[e].args.empty()) return pool_[e].kind != IndexKind::kLoad;
  Settle();
  auto& memo = frames_.back().defined;
  const auto it = memo.find(e);
  if (it != memo.end()) return it->second;
  const bool defined = ComputeDefined(e);
  frames_.back().defined.emplace(e, defined);
  return defined;
}

// Conditions are not affine themselves, but their operands may be.
bool Ranges::ComputeDefined(IndexId e) {
  const IndexNode node = pool_[e];
  if (!IsCondition(node.kind) && !pool_.IsAffine(e)) return false;
  for (IndexId arg : node.args) {
    if (!Defined(arg)) return false;
  }
  return (node.kind != IndexKind::kDiv && node.kind != IndexKind::kMod) || NonZero(node.args[1]);
}

bool Ranges::NonZero(IndexId e) {
  if (const auto constant = pool_.ConstValue(e)) return *constant != 0;
  Settle();
  if (std::find(nonzero_.begin(), nonzero_.end(), e) != nonzero_.end()) return true;
  return Positive(e) || Less(e, pool_.Const(0));
}

bool Ranges::NonNegative(IndexId e) { return LessEqual(pool_.Const(0), e); }
bool Ranges::Positive(IndexId e) { return Less(pool_.Const(0), e); }
bool Ranges::LessEqual(IndexId a, IndexId b) { return Holds(a, b, 0); }
bool Ranges::Less(IndexId a, IndexId b) { return Holds(a, b, 1); }
bool Ranges::Equal(IndexId a, IndexId b) { return LessEqual(a, b) && LessEqual(b, a); }

// a + slack <= b.
bool Ranges::Holds(IndexId a, IndexId b, int64_t slack) {
  const auto x = pool_.ConstValue(a), y = pool_.ConstValue(b);
  if (x && y) return slack == 0 ? *x <= *y : *x < *y;
  Settle();
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
absl::optional<bool> Ranges::Decide(IndexId condition) {
  Settle();
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
absl::optional<bool> Ranges::DecideComparison(IndexKind kind, IndexId a, IndexId b) {
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
  if (Equal(a, b)) return kind == IndexKind::kEq;
  if (Less(a, b) || Less(b, a)) return kind == IndexKind::kNe;
  return absl::nullopt;
}

// and, or: decided by one operand alone only if the other has a value.
absl::optional<bool> Ranges::DecideBoth(IndexId a, IndexId b, bool decisive) {
  const auto x = Decide(a), y = Decide(b);
  if (x && y) return decisive ? *x || *y : *x && *y;
  if (x == decisive && Defined(b)) return decisive;
  if (y == decisive && Defined(a)) return decisive;
  return absl::nullopt;
}

// The frequent case, answered without proofs: x[i] or x[i + 1] in a loop over just these elements.
bool Ranges::IsLoopIndex(IndexId e, IndexId extent) const {
  const IndexNode& node = pool_[e];
  const bool is_shifted = node.kind == IndexKind::kAdd && pool_.ConstValue(node.args[1]);
  const int64_t var = pool_.VarValue(is_shifted ? node.args[0] : e);
  if (var < 0 || !pool_.IsAffine(extent)) return false;
  const auto shifted = [&, by = is_shifted ? *pool_.ConstValue(node.args[1]) : 0](IndexId bound) {
    const auto constant = pool_.ConstValue(bound);
    return constant ? CheckedApply(IndexKind::kAdd, *constant, by) : absl::nullopt;
  };
  const auto covers = [&](const absl::optional<Head>& loop) {
    if (!loop || loop->var != var || shifted(loop->begin).value_or(-1) < 0) return false;
    if (!is_shifted && loop->end == extent) return true;
    const auto end = shifted(loop->end), size = pool_.ConstValue(extent);
    return end && size && *end <= *size;
  };
  return std::any_of(unasked_.begin(), unasked_.end(), covers) ||
         std::any_of(frames_.begin(), frames_.end(),
                     [&](const Frame& frame) { return covers(frame.loop); });
}

bool Ranges::InRange(IndexId e, IndexId extent) {
  return IsLoopIndex(e, extent) || (NonNegative(e) && Less(e, extent));
}

bool Ranges::InRange(absl::Span<const IndexId> place, const Shape& shape) {
  for (size_t axis = 0; axis < place.size(); ++axis) {
    if (!InRange(place[axis], shape[axis])) return false;
  }
  return true;
}

// end - begin, or 0 where that may be negative.
IndexId Ranges::LengthOf(const Loop& loop) {
  IndexPool& pool = program_.pool;
  const IndexId length = pool.Sub(loop.end, loop.begin);
  return NonNegative(length) ? length : pool.Max(length, pool.Const(0));
}

bool Ranges::IsEmpty(const Loop& loop) {
  Settle();
  return Defined(loop.begin) && Defined(loop.end) &&
         facts_.Proves(facts_.SumOf(loop.begin) - facts_.SumOf(loop.end), Facts::kFewSteps);
}

// 0 < end - begin <= step.
bool Ranges::RunsOnce(const Loop& loop) {
  Settle();
  if (!Defined(loop.begin) || !Defined(loop.end)) return false;
  const AtomSum count = facts_.SumOf(loop.end) - facts_.SumOf(loop.begin);
  return facts_.Proves(AtomSum(loop.step) - count, Facts::kFewSteps) &&
         facts_.Proves(count - AtomSum(1));
}

}  // namespace nestor::loop
