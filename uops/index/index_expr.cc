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
// Expressions are small; the constructors go through Polynomial each time rather than patch a sum
// in place. A memo of sums and products by the ids of their operands makes repeated ones cheap.
#include "uops/cpp20.h"

#include "uops/index/index_expr.h"

#include <algorithm>

namespace nestor {
namespace {

int64_t FloorDiv(int64_t a, int64_t b) {
  const int64_t q = a / b;
  return (a % b != 0 && (a < 0) != (b < 0)) ? q - 1 : q;
}

// Loop indices sort before symbols, those before compound atoms.
int CompareAtoms(const IndexPool& pool, IndexId a, IndexId b) {
  if (pool.HasVar(a) != pool.HasVar(b)) return pool.HasVar(a) ? -1 : 1;
  return CompareStructure(pool, a, b);
}

int CompareProducts(const IndexPool& pool, const Polynomial::Atoms& a, const Polynomial::Atoms& b) {
  for (size_t i = 0; i < a.size() && i < b.size(); ++i) {
    if (a[i] == b[i]) continue;
    return CompareAtoms(pool, a[i], b[i]);
  }
  // The longer product first, so that the constant term comes last.
  return a.size() == b.size() ? 0 : (a.size() > b.size() ? -1 : 1);
}

}  // namespace

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

// ---- Polynomial

namespace {

// `id` as a term, where it is a product of numbers and atoms, none of them 0.
absl::optional<Polynomial::Term> TermOf(const IndexPool& pool, IndexId id) {
  Polynomial::Term term{{}, 1};
  const auto add = [&](IndexId factor) {
    const IndexNode& node = pool[factor];
    if (node.kind == IndexKind::kAdd || node.kind == IndexKind::kMul) return false;
    if (node.kind != IndexKind::kConst) return term.atoms.push_back(factor), true;
    term.coefficient = CheckedApply(IndexKind::kMul, term.coefficient, node.value).value_or(0);
    return term.coefficient != 0;
  };
  for (; pool[id].kind == IndexKind::kMul; id = pool[id].args[0]) {
    if (!add(pool[id].args[1])) return absl::nullopt;
  }
  if (!add(id)) return absl::nullopt;
  const auto is_before = [&](IndexId p, IndexId q) { return CompareAtoms(pool, p, q) < 0; };
  std::reverse(term.atoms.begin(), term.atoms.end());
  if (!std::is_sorted(term.atoms.begin(), term.atoms.end(), is_before)) {
    std::sort(term.atoms.begin(), term.atoms.end(), is_before);
  }
  return term;
}

}  // namespace

// The terms of canonical sums are products in order: they only need to be collected.
absl::optional<Polynomial> Polynomial::Of(const IndexPool& pool, IndexId id) {
  Polynomial result;
  if (auto term = TermOf(pool, id)) {
    result.terms_.push_back(*std::move(term));
    return result;
  }
  const IndexNode& node = pool[id];
  if (node.kind == IndexKind::kConst) return result;  // 0
  if (node.kind == IndexKind::kMul) {
    const auto a = Of(pool, node.args[0]), b = Of(pool, node.args[1]);
    return a && b ? Product(pool, *a, *b) : absl::nullopt;
  }
  absl::InlinedVector<IndexId, 8> summands;  // the last first
  for (; pool[id].kind == IndexKind::kAdd; id = pool[id].args[0])
    summands.push_back(pool[id].args[1]);
  summands.push_back(id);
  result.terms_.reserve(summands.size());
  for (size_t i = summands.size(); i-- > 0;) {
    auto term = TermOf(pool, summands[i]);
    const bool follows =
        term && (result.terms_.empty() ||
                 CompareProducts(pool, result.terms_.back().atoms, term->atoms) < 0);
    if (follows) {
      result.terms_.push_back(*std::move(term));
      continue;
    }
    const auto summand = Of(pool, summands[i]);
    if (!summand) return absl::nullopt;
    if (result.IsBefore(pool, *summand)) {
      result.terms_.insert(result.terms_.end(), summand->terms_.begin(), summand->terms_.end());
      continue;
    }
    auto sum = Sum(pool, result, *summand);
    if (!sum) return absl::nullopt;
    result = *std::move(sum);
  }
  return result;
}

bool Polynomial::IsBefore(const IndexPool& pool, const Polynomial& other) const {
  return terms_.empty() || other.terms_.empty() ||
         CompareProducts(pool, terms_.back().atoms, other.terms_.front().atoms) < 0;
}

// A merge of two sorted lists; equal products add their coefficients and vanish at 0.
absl::optional<Polynomial> Polynomial::Sum(const IndexPool& pool, const Polynomial& a,
                                           const Polynomial& b) {
  Polynomial result;
  result.terms_.reserve(a.terms_.size() + b.terms_.size());
  size_t i = 0, j = 0;
  while (i < a.terms_.size() || j < b.terms_.size()) {
    int order = 0;
    if (i == a.terms_.size()) order = 1;
    else if (j == b.terms_.size()) order = -1;
    else order = CompareProducts(pool, a.terms_[i].atoms, b.terms_[j].atoms);
    if (order < 0) {
      result.terms_.push_back(a.terms_[i++]);
    } else if (order > 0) {
      result.terms_.push_back(b.terms_[j++]);
    } else {
      const auto c =
          CheckedApply(IndexKind::kAdd, a.terms_[i].coefficient, b.terms_[j].coefficient);
      if (!c) return absl::nullopt;
      if (*c != 0) result.terms_.push_back({a.terms_[i].atoms, *c});
      ++i, ++j;
    }
  }
  return result;
}

// Row by row, each sorted and merged: the product of a term with a sorted sum need not be sorted.
absl::optional<Polynomial> Polynomial::Product(const IndexPool& pool, const Polynomial& a,
                                               const Polynomial& b) {
  const auto is_number = [](const Polynomial& p) {
    return p.terms_.size() == 1 && p.terms_[0].atoms.empty();
  };
  if (is_number(a) || is_number(b)) {  // which keeps the order of terms
    Polynomial scaled = is_number(a) ? b : a;
    for (Term& term : scaled.terms_) {
      const auto c = CheckedApply(IndexKind::kMul, term.coefficient,
                                  (is_number(a) ? a : b).terms_[0].coefficient);
      if (!c) return absl::nullopt;
      term.coefficient = *c;
    }
    return scaled;
  }
  Polynomial result;
  for (const Term& x : a.terms_) {
    Polynomial row;
    for (const Term& y : b.terms_) {
      const auto c = CheckedApply(IndexKind::kMul, x.coefficient, y.coefficient);
      if (!c) return absl::nullopt;
      Term product{x.atoms, *c};
      product.atoms.insert(product.atoms.end(), y.atoms.begin(), y.atoms.end());
      std::sort(product.atoms.begin(), product.atoms.end(),
                [&](IndexId p, IndexId q) { return CompareAtoms(pool, p, q) < 0; });
      row.terms_.push_back(std::move(product));
    }
    std::sort(row.terms_.begin(), row.terms_.end(), [&](const Term& p, const Term& q) {
      return CompareProducts(pool, p.atoms, q.atoms) < 0;
    });
    const auto sum = Sum(pool, result, row);
    if (!sum) return absl::nullopt;
    result = *sum;
  }
  return result;
}

bool Polynomial::MultipliesVars(const IndexPool& pool) const {
  for (const Term& term : terms_) {
    // Atoms with loop indices come first.
    if (term.atoms.size() >= 2 && pool.HasVar(term.atoms[1])) return true;
  }
  return false;
}

// Left-associated sums of left-associated products, the coefficient first: the only shape in which
// a canonical expression occurs.
IndexId Polynomial::Build(IndexPool& pool) const {
  IndexId sum;
  for (const Term& term : terms_) {
    IndexId product;
    if (term.coefficient != 1 || term.atoms.empty()) product = pool.Const(term.coefficient);
    for (IndexId atom : term.atoms) {
      product = product.value < 0 ? atom : pool.Intern({IndexKind::kMul, 0, {product, atom}});
    }
    sum = sum.value < 0 ? product : pool.Intern({IndexKind::kAdd, 0, {sum, product}});
  }
  return sum.value < 0 ? pool.Const(0) : sum;
}

// ---- IndexPool

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

// A sum or product: through the polynomials where both sides are affine and the
// result is, else as written.
IndexId IndexPool::ComputeBinary(IndexKind kind, IndexId a, IndexId b) {
  if (IsAffine(a) && IsAffine(b) && CombinedTerms(kind, a, b) <= kMaxTerms) {
    const auto p = Polynomial::Of(*this, a);
    const auto q = Polynomial::Of(*this, b);
    if (p && q) {
      const auto r = kind == IndexKind::kAdd ? Polynomial::Sum(*this, *p, *q)
                                             : Polynomial::Product(*this, *p, *q);
      if (r && !r->MultipliesVars(*this)) return r->Build(*this);
    }
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
  const bool small = facts_[a.value].terms <= kMaxTerms;
  const auto p = IsAffine(a) && small ? Polynomial::Of(*this, a) : absl::nullopt;
  if (!d || *d == 0 || *d == -1 || !p) {
    if (d == -1 && p) return kind == IndexKind::kDiv ? Neg(a) : Const(0);
    return Intern({kind, 0, {a, b}});
  }
  Polynomial quotient, rest;
  for (const Polynomial::Term& term : p->terms()) {
    const int64_t q = FloorDiv(term.coefficient, *d);
    const int64_t r = *CheckedApply(IndexKind::kMod, term.coefficient, *d);
    const bool split = term.atoms.empty() || r == 0;
    if (split && q != 0) quotient.terms_.push_back({term.atoms, q});
    if (split && r != 0) rest.terms_.push_back({term.atoms, r});
    if (!split) rest.terms_.push_back(term);
  }
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
