// Index expressions: the integers that a program computes with to find its way:
// shapes, bounds, places in tensors, and the conditions of masked accesses.
//
// An IndexPool owns expressions, hash-consed, so that equal ids mean equal
// expressions. Constructors simplify as they build:
//  - an *affine* expression (a polynomial in symbols whose every term holds at most one loop index,
//    with floor divisions, remainders, min and max of such polynomials as further atoms) is kept in
//    one canonical form, an ordered sum of products; this is sound because affine arithmetic is
//    proven free of overflow before a program runs (SEMANTICS 1);
//  - any other (gathered values, products of two indices, a division by an index) is kept exactly
//    as written, since there each step may overflow and thereby put an access out of bounds.
// Conditions are the nodes kLt..kNot; they have no canonical order.
//
// Not thread-safe while building; const use from many threads is fine.
#ifndef NESTOR_UOPS_INDEX_INDEX_EXPR_H_
#define NESTOR_UOPS_INDEX_INDEX_EXPR_H_

#include <cstdint>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"

namespace nestor {

// No extent is larger: no memory holds so many elements, and no loop over them ends.
constexpr int64_t kMaxExtent = int64_t{1} << 48;

// Which members of a node are set.
enum class IndexKind : uint8_t {
  kConst,   // value
  kVar,     // value: the loop index, numbered by its owner
  kSymbol,  // value: the pool's number of a dimension or integer $param
  // clang-format off
  kAdd, kMul, kDiv, kMod, kMin, kMax,  // two arguments
  kLoad,    // value: an integer tensor of the owner; arguments: the place in it
  kLt, kLe, kEq, kNe, kAnd, kOr,       // two arguments
  kNot,                                // one
  // clang-format on
};

// An expression in its pool.
struct IndexId {
  int32_t value = -1;
  friend bool operator==(IndexId a, IndexId b) { return a.value == b.value; }
  friend bool operator!=(IndexId a, IndexId b) { return a.value != b.value; }
  friend bool operator<(IndexId a, IndexId b) { return a.value < b.value; }
  template <class H>
  friend H AbslHashValue(H h, IndexId id) {
    return H::combine(std::move(h), id.value);
  }
};

using IndexList = std::vector<IndexId>;

// Immutable, and shared by all expressions that it is in.
struct IndexNode {
  IndexKind kind;
  int64_t value = 0;
  absl::InlinedVector<IndexId, 2> args;

  friend bool operator==(const IndexNode& a, const IndexNode& b) {
    return a.kind == b.kind && a.value == b.value && a.args == b.args;
  }
};

inline bool IsCondition(IndexKind kind) { return kind >= IndexKind::kLt; }

// Checked int64 arithmetic; nullopt on overflow or division by zero. `/` and `%`
// are floor division and its remainder.
absl::optional<int64_t> CheckedApply(IndexKind kind, int64_t a, int64_t b);

// Ids are those of this pool; none is ever removed. A reference to a node is valid until the next
// one is made.
class IndexPool {
 public:
  // In the source, so that not each file that copies or ends one compiles them anew.
  IndexPool();
  IndexPool(const IndexPool&);
  IndexPool(IndexPool&&) noexcept;
  IndexPool& operator=(const IndexPool&);
  IndexPool& operator=(IndexPool&&) noexcept;
  ~IndexPool();

  // Leaves. Var: a loop index, by a number of the caller's choice, at least 0.
  IndexId Const(int64_t value);
  IndexId Var(int64_t index);
  // A dimension ("N") or an integer parameter ("$k").
  IndexId Symbol(absl::string_view name);
  // The element of an integer tensor, numbered by the owner, at `place`, one expression per axis.
  IndexId Load(int64_t tensor, absl::Span<const IndexId> place);

  // Arithmetic on int64. Div rounds down, and Mod is its remainder.
  IndexId Add(IndexId a, IndexId b);
  IndexId Sub(IndexId a, IndexId b);
  IndexId Neg(IndexId a);
  IndexId Mul(IndexId a, IndexId b);
  IndexId Div(IndexId a, IndexId b);
  IndexId Mod(IndexId a, IndexId b);
  IndexId Min(IndexId a, IndexId b);
  IndexId Max(IndexId a, IndexId b);
  // kLt, kLe, kEq, kNe, kAnd, kOr.
  IndexId Condition(IndexKind kind, IndexId a, IndexId b);
  IndexId Not(IndexId a);

  // The node of `kind` over rebuilt arguments: dispatches to the constructors above.
  IndexId Make(IndexKind kind, int64_t value, absl::Span<const IndexId> args);

  const IndexNode& operator[](IndexId id) const { return nodes_[id.value]; }
  const std::string& SymbolName(IndexId id) const { return symbols_[nodes_[id.value].value]; }
  const std::string& SymbolNameAt(int64_t number) const { return symbols_[number]; }
  size_t size() const { return nodes_.size(); }

  absl::optional<int64_t> ConstValue(IndexId id) const;
  bool IsConst(IndexId id, int64_t value) const { return ConstValue(id) == value; }
  // The number of the loop index, if `id` is just a loop index, else -1.
  int64_t VarValue(IndexId id) const;

  // True for expressions in the canonical form; see the top of this file.
  bool IsAffine(IndexId id) const { return facts_[id.value].affine; }
  bool HasVar(IndexId id) const { return facts_[id.value].vars != 0; }
  // False: the loop index is not in `id`. True may be due to another index whose number has the
  // same last digits.
  bool MayHoldVar(IndexId id, int64_t var) const {
    return (facts_[id.value].vars & VarBit(var)) != 0;
  }
  bool HasLoad(IndexId id) const { return facts_[id.value].has_load; }
  // Whether any expression of the pool does.
  bool HasLoads() const { return has_loads_; }
  // The longest path below: walks recurse this deep.
  int Depth(IndexId id) const { return facts_[id.value].depth; }

 private:
  friend class AtomSum;
  static uint64_t VarBit(int64_t var) { return uint64_t{1} << (static_cast<uint64_t>(var) % 64); }
  struct Facts {
    bool affine = true;
    uint64_t vars = 0;  // bits of the loop indices in it
    bool has_load = false;
    int depth = 0;
    int terms = 1;  // of the sum of products, at most; capped
  };
  // Sums beyond this keep the order in which they are written, and nothing is proven of them: a
  // canonical form built term by term would take time and memory quadratic in their length.
  static constexpr int kMaxTerms = 128;
  int CombinedTerms(IndexKind kind, IndexId a, IndexId b) const;
  IndexId Intern(IndexNode node);
  size_t SlotOf(const IndexNode& node) const;  // where it is, or belongs
  void GrowSlots();
  IndexId Binary(IndexKind kind, IndexId a, IndexId b);
  IndexId ComputeBinary(IndexKind kind, IndexId a, IndexId b);
  IndexId DivOrMod(IndexKind kind, IndexId a, IndexId b);
  bool ComputeAffine(const IndexNode& node) const;

  std::vector<IndexNode> nodes_;
  std::vector<Facts> facts_;
  // Numbers of the nodes by their hash, in a table with open addressing, or -1: a map would keep
  // each node twice.
  std::vector<int32_t> slots_;
  // Memo of Binary.
  absl::flat_hash_map<std::tuple<IndexKind, IndexId, IndexId>, IndexId> combined_;
  IndexList vars_;  // by number of the loop index: its node, or invalid; asked for most
  bool has_loads_ = false;
  std::vector<std::string> symbols_;
  absl::flat_hash_map<std::string, int64_t> symbol_numbers_;
};

// A total order on expressions by structure (names, not numbers, of symbols), the
// same in every pool.
int CompareStructure(const IndexPool& pool, IndexId a, IndexId b);

// Copies `id` from one pool into another (or the same), rebuilding, and so
// simplifying, bottom up. `leaf` maps kVar, kSymbol and kLoad nodes (a load's
// arguments are given rebuilt); where it returns nullopt the node is kept.
using IndexLeaf = absl::FunctionRef<absl::optional<IndexId>(const IndexNode& node,
                                                            absl::Span<const IndexId> args)>;
IndexId CopyIndex(const IndexPool& from, IndexId id, IndexPool& to, IndexLeaf leaf);

// The same, with every leaf kept as it is.
IndexId CopyIndex(const IndexPool& from, IndexId id, IndexPool& to);

// `id` with each leaf of `kind`, kVar or kSymbol, replaced by what `by` gives for the leaf's
// number; nullopt keeps the leaf.
IndexId ReplaceLeaves(IndexPool& pool, IndexId id, IndexKind kind,
                      absl::FunctionRef<absl::optional<IndexId>(int64_t)> by);

// `id` with each load's tensor replaced by the one that `tensor` gives for it.
IndexId ReplaceLoads(IndexPool& pool, IndexId id, absl::FunctionRef<int64_t(int64_t)> tensor);

// Calls `visit` on every node of `id`, arguments first, shared ones once. It may add to
// the pool.
void VisitIndex(const IndexPool& pool, IndexId id,
                absl::FunctionRef<void(IndexId, const IndexNode&)> visit);

// The loop indices in `id`, ascending, appended to `vars` without repetition.
void CollectVars(const IndexPool& pool, IndexId id, std::vector<int64_t>& vars);

// Whether the loop index `var` is in `id`.
bool HoldsVar(const IndexPool& pool, IndexId id, int64_t var);

// `id` with each loop index v replaced by replacement[v].
IndexId SubstituteVars(IndexPool& pool, IndexId id, absl::Span<const IndexId> replacement);

// Evaluates with checked arithmetic: nullopt where anything overflows, divides
// by zero, or a leaf (kVar, kSymbol, kLoad with evaluated arguments) has no
// value. Conditions give 0 or 1.
using IndexLeafValue = absl::FunctionRef<absl::optional<int64_t>(const IndexNode& node,
                                                                 absl::Span<const int64_t> args)>;
absl::optional<int64_t> EvaluateIndex(const IndexPool& pool, IndexId id, IndexLeafValue leaf);

// The text in the notation; `var` names loop indices and `tensor` the tensors
// that are loaded from.
struct IndexNames {
  absl::FunctionRef<std::string(int64_t)> var;
  absl::FunctionRef<std::string(int64_t)> tensor;
  // Writes floordiv(a, b), as is needed in value position, not a/b.
  bool in_value = false;
};
// `tightness`: the precedence of the surrounding operator, so that parentheses
// appear only where needed; 0 outside.
std::string IndexText(const IndexPool& pool, IndexId id, const IndexNames& names,
                      int tightness = 0);

// The text of an expression over symbols alone, such as an extent.
std::string SymbolicText(const IndexPool& pool, IndexId id);

}  // namespace nestor

#endif  // NESTOR_UOPS_INDEX_INDEX_EXPR_H_
