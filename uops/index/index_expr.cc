// Construction and canonical form of index expressions. Walks over them are in index_walks.cc.
//
// Later stages must see that (i + 1) - i is 1, and that a*b and b*a are equal extents; so equal
// affine expressions must be one node. The canonical form of an affine expression is its expanded
// polynomial, with terms and atoms ordered by structure. Ordering by structure, not by id, makes
// the form independent of the order in which a program was built, so that printing and parsing give
// the same node.
//
//   2*(i + N) - i   ->   i + 2*N        (4*i + 6) / 4   ->   i + 1
//
// Expressions are small; the constructors go through AtomSum each time rather than patch a sum in
// place. A memo of sums and products by the ids of their operands makes repeated ones cheap.
#include "uops/cpp20.h"

#include "uops/index/index_expr.h"

#include <algorithm>
#include <limits>

#include "uops/index/atom_sum.h"

namespace nestor {
namespace {

int64_t FloorDiv(int64_t a, int64_t b) {
  const int64_t q = a / b;
  return (a % b != 0 && (a < 0) != (b < 0)) ? q - 1 : q;
}

}  // namespace

IndexPool::IndexPool() = default;
IndexPool::IndexPool(const IndexPool&) = default;
IndexPool::IndexPool(IndexPool&&) noexcept = default;
IndexPool& IndexPool::operator=(const IndexPool&) = default;
IndexPool& IndexPool::operator=(IndexPool&&) noexcept = default;
IndexPool::~IndexPool() = default;

// The meaning of every binary node on numbers, for evaluation and for the folding of constants
// alike.
absl::optional<int64_t> CheckedApply(IndexKind kind, int64_t a, int64_t b) {
  int64_t result;
  switch (kind) {
    case IndexKind::kAdd:
      if (__builtin_add_overflow(a, b, &result)) return absl::nullopt;
      return result;
    case IndexKind::kMul:
      if (__builtin_mul_overflow(a, b, &result)) return absl::nullopt;
      return result;
    case IndexKind::kDiv:
      if (b == 0 || (b == -1 && a == std::numeric_limits<int64_t>::min())) return absl::nullopt;
      return FloorDiv(a, b);
    case IndexKind::kMod:
      if (b == 0) return absl::nullopt;
      if (b == -1) return 0;
      // The remainder has b's sign; b * FloorDiv(a, b) might overflow.
      result = a % b;
      return result != 0 && (result < 0) != (b < 0) ? result + b : result;
    case IndexKind::kMin: return std::min(a, b);
    case IndexKind::kMax: return std::max(a, b);
    case IndexKind::kLt: return a < b;
    case IndexKind::kLe: return a <= b;
    case IndexKind::kEq: return a == b;
    case IndexKind::kNe: return a != b;
    case IndexKind::kAnd: return (a != 0) && (b != 0);
    case IndexKind::kOr: return (a != 0) || (b != 0);
    case IndexKind::kConst:
    case IndexKind::kVar:
    case IndexKind::kSymbol:
    case IndexKind::kLoad:
    case IndexKind::kNot: break;
  }
  return absl::nullopt;
}

namespace {

// A node has few words, which are mostly small numbers.
size_t HashOf(const IndexNode& node) {
  constexpr uint64_t kOdd = 0x9e3779b97f4a7c15;  // 2^64 over the golden ratio
  uint64_t hash = static_cast<uint64_t>(node.value) * kOdd + static_cast<uint64_t>(node.kind);
  for (IndexId arg : node.args)
    hash = (hash ^ (hash >> 29) ^ static_cast<uint64_t>(arg.value)) * kOdd;
  return static_cast<size_t>(hash ^ (hash >> 32));
}

}  // namespace

// See the head of index_expr.h: at most one factor holds loop indices, and no divisor does.
bool IndexPool::ComputeAffine(const IndexNode& node) const {
  if (node.kind == IndexKind::kLoad) return false;
  int with_vars = 0;
  for (IndexId arg : node.args) {
    if (!IsAffine(arg)) return false;
    with_vars += HasVar(arg);
  }
  if (node.kind == IndexKind::kMul) return with_vars < 2;
  if (node.kind == IndexKind::kDiv || node.kind == IndexKind::kMod) return !HasVar(node.args[1]);
  return true;
}

int IndexPool::CombinedTerms(IndexKind kind, IndexId a, IndexId b) const {
  const int x = facts_[a.value].terms, y = facts_[b.value].terms;
  return std::min(kind == IndexKind::kAdd ? x + y : x * y, kMaxTerms + 1);
}

size_t IndexPool::SlotOf(const IndexNode& node) const {
  const size_t mask = slots_.size() - 1;
  size_t slot = HashOf(node) & mask;
  while (slots_[slot] >= 0 && !(nodes_[static_cast<size_t>(slots_[slot])] == node))
    slot = (slot + 1) & mask;
  return slot;
}

void IndexPool::GrowSlots() {
  slots_.assign(std::max<size_t>(64, 2 * slots_.size()), -1);
  for (size_t i = 0; i < nodes_.size(); ++i) slots_[SlotOf(nodes_[i])] = static_cast<int32_t>(i);
}

// Facts are computed once, from those of the arguments.
IndexId IndexPool::Intern(IndexNode node) {
  if (2 * nodes_.size() >= slots_.size()) GrowSlots();
  const size_t slot = SlotOf(node);
  if (slots_[slot] >= 0) return IndexId{slots_[slot]};
  Facts facts;
  facts.affine = ComputeAffine(node);
  facts.vars = node.kind == IndexKind::kVar ? VarBit(node.value) : 0;
  facts.has_load = node.kind == IndexKind::kLoad;
  for (IndexId arg : node.args) {
    facts.vars |= facts_[arg.value].vars;
    facts.has_load |= HasLoad(arg);
    facts.depth = std::max(facts.depth, Depth(arg) + 1);
  }
  if (node.kind == IndexKind::kAdd || node.kind == IndexKind::kMul) {
    facts.terms = CombinedTerms(node.kind, node.args[0], node.args[1]);
  }
  const int32_t id = static_cast<int32_t>(nodes_.size());
  slots_[slot] = id;
  has_loads_ |= facts.has_load;
  nodes_.push_back(std::move(node));
  facts_.push_back(facts);
  return IndexId{id};
}

IndexId IndexPool::Const(int64_t value) { return Intern({IndexKind::kConst, value, {}}); }

// The table is no longer than the pool: a pool of few nodes may hold a loop index with a high
// number, which is found like other nodes.
IndexId IndexPool::Var(int64_t index) {
  const size_t number = static_cast<size_t>(index);
  if (number > 2 * nodes_.size()) return Intern({IndexKind::kVar, index, {}});
  if (number >= vars_.size()) vars_.resize(number + 1);
  if (vars_[number].value < 0) vars_[number] = Intern({IndexKind::kVar, index, {}});
  return vars_[number];
}

IndexId IndexPool::Symbol(absl::string_view name) {
  const auto [it, inserted] = symbol_numbers_.try_emplace(name, symbols_.size());
  if (inserted) symbols_.emplace_back(name);
  return Intern({IndexKind::kSymbol, it->second, {}});
}

IndexId IndexPool::Load(int64_t tensor, absl::Span<const IndexId> place) {
  return Intern({IndexKind::kLoad, tensor, {place.begin(), place.end()}});
}

// A sum or product: through the sums of terms where both sides are affine and the result is, else
// as written.
IndexId IndexPool::ComputeBinary(IndexKind kind, IndexId a, IndexId b) {
  const bool multiplies_vars = kind == IndexKind::kMul && HasVar(a) && HasVar(b);
  if (IsAffine(a) && IsAffine(b) && !multiplies_vars && CombinedTerms(kind, a, b) <= kMaxTerms) {
    const AtomSum p = AtomSum::Of(*this, a), q = AtomSum::Of(*this, b);
    const AtomSum r = kind == IndexKind::kAdd ? p + q : p * q;
    if (r.exact()) return r.Build(*this);
  }
  return Intern({kind, 0, {a, b}});
}

// Remembers results: normal forms are costly, and passes ask for the same ones again.
IndexId IndexPool::Binary(IndexKind kind, IndexId a, IndexId b) {
  const auto key = std::make_tuple(kind, a, b);
  const auto it = combined_.find(key);
  if (it != combined_.end()) return it->second;
  const IndexId result = ComputeBinary(kind, a, b);
  combined_.emplace(key, result);
  return result;
}

IndexId IndexPool::Add(IndexId a, IndexId b) { return Binary(IndexKind::kAdd, a, b); }
IndexId IndexPool::Mul(IndexId a, IndexId b) { return Binary(IndexKind::kMul, a, b); }
IndexId IndexPool::Neg(IndexId a) { return Mul(Const(-1), a); }
IndexId IndexPool::Sub(IndexId a, IndexId b) { return Add(a, Neg(b)); }

// For a constant divisor d, floor((d*q + r) / d) = q + floor(r / d), and the remainder is that of
// r, for every sign of d. Nothing is done for a symbol, which may be zero.
IndexId IndexPool::DivOrMod(IndexKind kind, IndexId a, IndexId b) {
  const auto d = ConstValue(b);
  const AtomSum sum =
      facts_[a.value].terms <= kMaxTerms ? AtomSum::Of(*this, a) : AtomSum::Inexact();
  if (!d || *d == 0 || *d == -1 || !sum.exact()) {
    if (d == -1 && sum.exact()) return kind == IndexKind::kDiv ? Neg(a) : Const(0);
    return Intern({kind, 0, {a, b}});
  }
  const auto [quotient, rest] = sum.FloorDividedBy(*d);
  const IndexId remainder = rest.Build(*this);
  const auto constant = ConstValue(remainder);
  if (kind == IndexKind::kMod) {
    return constant ? remainder : Intern({kind, 0, {remainder, b}});
  }
  const IndexId whole = quotient.Build(*this);
  return constant ? whole : Add(whole, Intern({kind, 0, {remainder, b}}));
}

IndexId IndexPool::Div(IndexId a, IndexId b) { return DivOrMod(IndexKind::kDiv, a, b); }
IndexId IndexPool::Mod(IndexId a, IndexId b) { return DivOrMod(IndexKind::kMod, a, b); }

IndexId IndexPool::Min(IndexId a, IndexId b) { return Make(IndexKind::kMin, 0, {a, b}); }
IndexId IndexPool::Max(IndexId a, IndexId b) { return Make(IndexKind::kMax, 0, {a, b}); }

IndexId IndexPool::Condition(IndexKind kind, IndexId a, IndexId b) {
  const auto x = ConstValue(a), y = ConstValue(b);
  if (x && y) return Const(*CheckedApply(kind, *x, *y));
  return Intern({kind, 0, {a, b}});
}

IndexId IndexPool::Not(IndexId a) {
  if (const auto x = ConstValue(a)) return Const(*x == 0);
  return Intern({IndexKind::kNot, 0, {a}});
}

// min and max of affine expressions have their arguments in the order of structure, too.
IndexId IndexPool::Make(IndexKind kind, int64_t value, absl::Span<const IndexId> args) {
  switch (kind) {
    case IndexKind::kVar: return Var(value);
    case IndexKind::kConst:
    case IndexKind::kSymbol:
    case IndexKind::kLoad: return Intern({kind, value, {args.begin(), args.end()}});
    case IndexKind::kAdd: return Add(args[0], args[1]);
    case IndexKind::kMul: return Mul(args[0], args[1]);
    case IndexKind::kDiv:
    case IndexKind::kMod: return DivOrMod(kind, args[0], args[1]);
    case IndexKind::kMin:
    case IndexKind::kMax: {
      IndexId a = args[0], b = args[1];
      if (a == b && IsAffine(a)) return a;
      const auto x = ConstValue(a), y = ConstValue(b);
      if (x && y) return Const(*CheckedApply(kind, *x, *y));
      if (IsAffine(a) && IsAffine(b) && CompareStructure(*this, b, a) < 0) std::swap(a, b);
      return Intern({kind, 0, {a, b}});
    }
    case IndexKind::kNot: return Not(args[0]);
    case IndexKind::kLt:
    case IndexKind::kLe:
    case IndexKind::kEq:
    case IndexKind::kNe:
    case IndexKind::kAnd:
    case IndexKind::kOr: return Condition(kind, args[0], args[1]);
  }
  __builtin_unreachable();
}

absl::optional<int64_t> IndexPool::ConstValue(IndexId id) const {
  const IndexNode& node = nodes_[id.value];
  if (node.kind != IndexKind::kConst) return absl::nullopt;
  return node.value;
}

int64_t IndexPool::VarValue(IndexId id) const {
  const IndexNode& node = nodes_[id.value];
  return node.kind == IndexKind::kVar ? node.value : -1;
}

}  // namespace nestor
