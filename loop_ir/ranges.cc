// Scopes are entered often, and most are left before anything is asked in them: so they are only
// noted, and learnt (scope_facts.h) when the first question comes that needs facts. A bare loop
// index in its own range (IsLoopIndex) needs none.
//
// This file also says which facts the head of a program contributes: equalities, extents, checks.
#include "loop_ir/ranges.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"

namespace nestor::loop {

Ranges::Ranges(Program& program) : ScopeFacts(program.pool), program_(program) {
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

void Ranges::Forget() {
  if (unasked_.empty()) return End();
  unasked_.pop_back();
}

void Ranges::LearnUnasked() {
  for (const absl::optional<Head>& loop : unasked_) {
    if (!loop) Begin();
    else if (loop->var < 0) LearnProgram();
    else BeginLoop(*loop);
  }
  unasked_.clear();
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

// ---- Queries

// Leaves, and comparisons of numbers, need no facts.
bool Ranges::Defined(IndexId e) {
  if (!pool_[e].args.empty()) Settle();
  return ScopeFacts::Defined(e);
}

bool Ranges::NonZero(IndexId e) {
  if (!pool_.ConstValue(e)) Settle();
  return ScopeFacts::NonZero(e);
}

bool Ranges::LessEqual(IndexId a, IndexId b) {
  SettleFor(a, b);
  return ScopeFacts::LessEqual(a, b);
}

bool Ranges::Less(IndexId a, IndexId b) {
  SettleFor(a, b);
  return ScopeFacts::Less(a, b);
}

bool Ranges::NonNegative(IndexId e) { return LessEqual(pool_.Const(0), e); }
bool Ranges::Positive(IndexId e) { return Less(pool_.Const(0), e); }
bool Ranges::Equal(IndexId a, IndexId b) { return LessEqual(a, b) && LessEqual(b, a); }

absl::optional<bool> Ranges::Decide(IndexId condition) {
  Settle();
  return ScopeFacts::Decide(condition);
}

int64_t Ranges::MultipleOf(int64_t var) {
  Settle();
  return ScopeFacts::MultipleOf(var);
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
  const IndexId length = pool_.Sub(loop.end, loop.begin);
  return NonNegative(length) ? length : pool_.Max(length, pool_.Const(0));
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
