// One walk over the scopes with Ranges, from the outside in: at each item everything around it is
// known, and simplified already. A walk makes new facts (a loop that ran once is removed, a bound
// is shorter), so it is repeated until nothing changes.
//
//   for i in [0, N) { for j in [0, 1) { y[i] = where(i >= 0, x[i + j | 0.0 if i < N], 0.0) } }
//
// becomes `for i in [0, N) { y[i] = x[i] }`.
//
// The conditions of a statement's store may be assumed in its value: the store's conditions and
// place come first, and where it is dropped the value is not evaluated.
//
// Findings about an access are kept as long as the item at the top is walked, for each context:
// the loops around with their bounds, and what the store requires. A walk that repeats another
// finds most answers there.
#include "fusion/simplify.h"
#include "fusion/multiples.h"

#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/node_hash_map.h"
#include "absl/types/variant.h"
#include "fusion/decided_copy.h"
#include "fusion/index_simplify.h"
#include "fusion/scopes.h"
#include "fusion/simplify_access.h"
#include "fusion/simplify_values.h"
#include "loop_ir/dependence.h"
#include "loop_ir/ranges.h"
#include "loop_ir/rewrite.h"
#include "loop_ir/verify.h"

namespace nestor::loop {
namespace {

constexpr int kMaxWalks = 8;  // of an item at the top; two or three are usual

bool Same(const Access& a, const Access& b) {
  return a.place == b.place && a.masked == b.masked && a.fill == b.fill &&
         a.conditions == b.conditions;
}

class ProgramSimplifier {
 public:
  explicit ProgramSimplifier(Program& program)
      : program_(program), ranges_(program), at_top_(program), writes_(program.tensors.size(), 0) {
    VisitItems(program, [&](const Item& item) { CountWrite(item, 1); });
  }

  // Walks of an item are repeated until one changes nothing.
  bool Run() {
    bool changed = false;
    for (size_t i = 0, walks = 1; i < program_.body.size(); ++walks) {
      changed_ = false;
      const size_t next = SimplifyItem(program_.body, i);
      changed |= changed_;
      if (next > i && changed_ && walks < kMaxWalks) continue;
      i = next;
      walks = 0;
      memos_.clear();
    }
    return changed;
  }

 private:
  // ---- Removal: some statement must go on writing each output that may have elements

  void CountWrite(const Item& item, int by) {
    if (const auto* statement = item.As<Statement>()) writes_[statement->target.tensor.value] += by;
  }

  void CountAllWrites(const Item& item, int by) {
    VisitItems(item, [&](const Item& each) { CountWrite(each, by); });
  }

  // Removes the item if it may go.
  bool Remove(Scope& scope, size_t i) {
    CountAllWrites(scope[i], -1);
    for (TensorId output : program_.outputs) {
      if (writes_[output.value] > 0 || !MayHaveElements(program_, output)) continue;
      CountAllWrites(scope[i], 1);
      return false;
    }
    scope.erase(scope.begin() + static_cast<int64_t>(i));
    changed_ = true;
    return true;
  }

  // ---- Scopes

  void SimplifyScope(Scope& scope) {
    for (size_t i = 0; i < scope.size();) i = SimplifyItem(scope, i);
  }

  // These return the position of the next item to look at.

  size_t SimplifyItem(Scope& scope, size_t i) {
    if (scope[i].As<Loop>() != nullptr) return SimplifyLoop(scope, i);
    if (scope[i].As<Statement>() != nullptr) return SimplifyStatement(scope, i);
    SimplifyShape(scope[i].As<Declaration>()->tensor);
    return i + 1;
  }

  // Bounds, then the number of iterations, then the body; a loop that is left empty is removed.
  size_t SimplifyLoop(Scope& scope, size_t i) {
    Loop& loop = *scope[i].As<Loop>();
    Set(loop.begin, SimplifySize(loop.begin));
    Set(loop.end, SimplifySize(loop.end));
    const Trips trips = TripsOf(loop);
    if (trips == Trips::kNone) return Remove(scope, i) ? i : i + 1;
    if (trips == Trips::kOne && !MovesLargeProduct(program_, scope[i], loop.var, loop.begin))
      return Inline(scope, i);
    const bool was_empty = loop.body.empty(), had_changed = std::exchange(changed_, false);
    const size_t around = context_.size();
    context_.insert(context_.end(), {loop.var, loop.begin.value, loop.end.value, loop.step});
    ranges_.Enter(loop);
    SimplifyScope(loop.body);
    ranges_.Leave();
    context_.resize(around);
    if (changed_) KeepAttributesProven(loop);
    changed_ |= had_changed;
    if (!loop.body.empty() || was_empty) return i + 1;
    return Remove(scope, i) ? i : i + 1;
  }

  enum class Trips { kNone, kOne, kAny };

  // Bounds without loop indices recur in every nest: they are looked up once, at the top.
  Trips TripsOf(const Loop& loop) {
    if (program_.pool.HasVar(loop.begin) || program_.pool.HasVar(loop.end))
      return ProvenTrips(ranges_, loop);
    const auto [it, is_new] =
        trips_.try_emplace(std::make_tuple(loop.begin, loop.end, loop.step), Trips::kAny);
    if (is_new) it->second = ProvenTrips(at_top_, loop);
    return it->second;
  }

  static Trips ProvenTrips(Ranges& ranges, const Loop& loop) {
    return ranges.IsEmpty(loop) ? Trips::kNone : ranges.RunsOnce(loop) ? Trips::kOne : Trips::kAny;
  }

  // The verifier must go on seeing why iterations are independent. They are,
  // whatever becomes of its proof.
  void KeepAttributesProven(Loop& loop) {
    LoopAttributes& attributes = loop.attributes;
    if (!attributes.parallel && !attributes.vector) return;
    if (CarriedTensor(program_, loop)) attributes = {.unroll = attributes.unroll};
  }

  // The loop's body in its place, its index replaced by its beginning.
  size_t Inline(Scope& scope, size_t i) {
    Loop loop = std::move(*scope[i].As<Loop>());
    VarReplacement replacement(program_);
    replacement.Set(loop.var, loop.begin);
    RewriteIndices(program_, loop.body, [&](IndexId e) { return replacement(e); });
    ReplaceItem(scope, i, std::move(loop.body));
    changed_ = true;
    return i;
  }

  void SimplifyShape(TensorId tensor) {
    for (size_t axis = 0; axis < program_[tensor].shape.size(); ++axis) {
      IndexId& extent = program_[tensor].shape[axis];
      Set(extent, SimplifySize(extent));
    }
  }

  // ---- Statements

  // The target first: what it implies is assumed while the value is simplified.
  size_t SimplifyStatement(Scope& scope, size_t i) {
    Statement& statement = *scope[i].As<Statement>();
    Access target = statement.target;
    memo_ = &memos_[context_];
    if (!SimplifyAccess(program_, ranges_, *memo_, target)) return Remove(scope, i) ? i : i + 1;
    if (!Same(target, statement.target)) {
      statement.target = target;
      changed_ = true;
    }
    const size_t around = context_.size();
    AppendFacts(target);
    memo_ = &memos_[context_];
    for (IndexId condition : target.conditions) ranges_.Assume(condition);
    ranges_.AssumeInRange(target.place, program_[target.tensor].shape);
    Set(statement.value, SimplifyValue(statement.value));
    if (statement.position.valid()) Set(statement.position, SimplifyValue(statement.position));
    for (size_t k = 0; k <= target.conditions.size(); ++k) ranges_.Forget();
    context_.resize(around);
    if (ChangesNothing(program_, statement)) return Remove(scope, i) ? i : i + 1;
    return i + 1;
  }

  // Adds to the context what a store implies: its place is within the shape, its conditions hold.
  // The -1 is no loop's index.
  void AppendFacts(const Access& target) {
    context_.insert(context_.end(), {-1, static_cast<int64_t>(target.place.size())});
    const auto append = [&](const IndexList& list) {
      for (IndexId e : list) context_.push_back(e.value);
    };
    append(target.place);
    append(program_[target.tensor].shape);
    append(target.conditions);
  }

  ValueId SimplifyValue(ValueId id) {
    return RewriteValues(program_, id, [&](ValueId value) { return Simpler(value); });
  }

  // An application is simplified until no rule applies; nullopt: nothing changed.
  absl::optional<ValueId> Simpler(ValueId id) {
    if (const auto* index = absl::get_if<IndexValue>(&program_[id].node))
      return SimplerIndex(index->index);
    if (const auto* load = absl::get_if<LoadValue>(&program_[id].node))
      return SimplerLoad(load->access);
    absl::optional<ValueId> simple = SimplifyApplication(program_, ranges_, id);
    while (simple) {
      const auto next = SimplifyApplication(program_, ranges_, *simple);
      if (!next) break;
      simple = next;
    }
    return simple;
  }

  // A number, the low bits of another value, or a shorter expression, in this order.
  absl::optional<ValueId> SimplerIndex(IndexId index) {
    const IndexId simple = SimplifyIndex(program_.pool, ranges_, index);
    if (const auto constant = program_.pool.ConstValue(simple))
      return program_.AddConstant(Scalar::I64(*constant));
    if (const auto bits = LowBits(simple)) return bits;
    if (simple == index) return absl::nullopt;
    return program_.AddIndexValue(simple);
  }

  // e % 2^k as a scalar op on e, which runs in lanes: these are the low bits, for negative
  // numbers, too. A small divisor expresses a pattern, as of even and odd places, by which loops
  // may be split.
  absl::optional<ValueId> LowBits(IndexId index) {
    IndexPool& pool = program_.pool;
    const IndexNode node = pool[index];
    const auto divisor =
        node.kind == IndexKind::kMod ? pool.ConstValue(node.args[1]) : absl::nullopt;
    constexpr int64_t kLeast = 256;
    const bool is_power = divisor && *divisor >= kLeast && (*divisor & (*divisor - 1)) == 0;
    if (!is_power || !pool.HasVar(index) || !IsPlainSum(pool, node.args[0])) return absl::nullopt;
    const ValueId mask = program_.AddConstant(Scalar::I64(*divisor - 1));
    return program_.AddApply(ScalarOp::kAnd, {program_.AddIndexValue(node.args[0]), mask},
                             DType::kI64);
  }

  absl::optional<ValueId> SimplerLoad(Access access) {
    const Access before = access;
    if (!SimplifyAccess(program_, ranges_, *memo_, access)) return access.fill;
    if (Same(access, before)) return absl::nullopt;
    return program_.AddLoad(std::move(access));
  }

  // ---- Indices

  // Simplifies a bound or extent; one without loop indices by the facts at the top.
  IndexId SimplifySize(IndexId e) {
    if (program_.pool.HasVar(e)) return SimplifySize(ranges_, e);
    const auto it = sizes_.find(e);
    if (it != sizes_.end()) return it->second;
    const IndexId simple = SimplifySize(at_top_, e);
    sizes_.emplace(e, simple);
    return simple;
  }

  IndexId SimplifySize(Ranges& ranges, IndexId e) const {
    const IndexId same = ranges.Representative(e);
    return SimplifyIndex(program_.pool, ranges, SizeOf(same) <= SizeOf(e) ? same : e);
  }

  int SizeOf(IndexId e) const {
    int size = 0;
    VisitIndex(program_.pool, e, [&](IndexId, const IndexNode&) { ++size; });
    return size;
  }

  template <class Id>
  void Set(Id& held, Id by) {
    changed_ |= held != by;
    held = by;
  }

  Program& program_;
  Ranges ranges_;
  Ranges at_top_;  // never enters a loop
  absl::flat_hash_map<IndexId, IndexId> sizes_;
  absl::flat_hash_map<std::tuple<IndexId, IndexId, int64_t>, Trips> trips_;
  std::vector<int> writes_;              // statements that write each tensor
  using Context = std::vector<int64_t>;  // what `ranges_` was told since it was at the top
  Context context_;
  absl::node_hash_map<Context, AccessMemo> memos_;
  AccessMemo* memo_ = nullptr;  // of the context
  bool changed_ = false;
};

}  // namespace

absl::StatusOr<bool> Simplify(Program& program) { return ProgramSimplifier(program).Run(); }

}  // namespace nestor::loop
