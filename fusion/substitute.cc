// Forward substitution, with whole tensors for variables: the inverse of common-subexpression
// elimination, and the first step of fusion, as what is left as an expression needs no loop of its
// own. Whether it pays is a trade of recomputation against a store and a load (Pays).
//
// In each scope, for the tensors that it declares: `Definition` is the statement and the loops
// around it, `reads` the items after it that load the tensor. The definitions are taken in the
// order of the text, so that one that was substituted into another is passed on with it. The
// tensors that the definition reads must not change between it and the reader (IsUnchanged), or the
// expression would have another value there.
//
// A value that a gather uses as an index can be replaced only by a read of the same shape or an
// index expression, as index expressions hold nothing else.
//
//   t[i, j] = x[i, j] * s   y[j, i] = t[i, j] + 1   ->   y[j, i] = x[i, j] * s + 1
#include "fusion/substitute.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/btree_map.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/container/inlined_vector.h"
#include "fusion/assume_products.h"
#include "fusion/composition.h"
#include "fusion/gathered.h"
#include "fusion/recomputation.h"
#include "fusion/scopes.h"
#include "fusion/steps.h"
#include "loop_ir/dependence.h"
#include "loop_ir/rewrite.h"
#include "uops/mutant.h"

namespace nestor::loop {
namespace {

// Applications that recomputation may add to one statement.
constexpr int kMaxRecomputed = 128;
// How far a value is followed to a reduction.
constexpr int kMaxChain = 4;
// Size of the expression that substitution may make of a statement (see Measure): a
// chain of n statements becomes n / kMaxSize long ones, not one that is copied n times.
constexpr int64_t kMaxSize = 1024;
// How deep it may nest: text that nests deeper than 200 does not parse.
constexpr int kMaxHeight = 160;
// Levels that a choice adds to a masked read.
constexpr int kMaskedLevels = 4;
// How many times larger a masked read makes the expression that it reads.
constexpr int64_t kMaskedGrowth = 3;

// Reads and writes of the tensors of a program among the items of one scope.
struct Uses {
  absl::btree_map<size_t, int> reads;     // by item: accesses that read
  absl::InlinedVector<size_t, 1> writes;  // items, ascending
  int loads = 0;                          // accesses that read
  bool computes = false;                  // the written value is never a mere copy

  void SetReads(size_t item, int count) {
    const auto it = reads.try_emplace(item).first;
    loads += count - it->second;
    it->second = count;
    if (count == 0) reads.erase(it);
  }
};

// The size of an expression: the number of values and conditions written in it, and of its levels.
struct Measure {
  int64_t size = 0;
  int height = 0;
};

// The measure with each load of `tensor` replaced by an expression that measures `of_load`, a
// masked load by a choice whose loads have conditions of their own.
Measure MeasureOf(const Program& program, ValueId id, TensorId tensor = {}, Measure of_load = {}) {
  int64_t size = 0;
  absl::InlinedVector<int, 32> heights;  // of the operands, up to the one that takes them
  VisitValues(program, id, [&](ValueId, const Value& value) {
    CountSteps(1);
    ++size;
    int height = 1;
    if (const auto* apply = absl::get_if<ApplyValue>(&value.node)) {
      const auto args = heights.end() - static_cast<int64_t>(apply->args.size());
      for (auto arg = args; arg != heights.end(); ++arg) height = std::max(height, *arg + 1);
      heights.erase(args, heights.end());
    } else if (const auto* load = absl::get_if<LoadValue>(&value.node)) {
      const Access& access = load->access;
      size += static_cast<int64_t>(access.conditions.size());
      if (access.fill.valid()) heights.pop_back();
      if (access.tensor == tensor) {
        size += of_load.size * (access.masked ? kMaskedGrowth : 1);
        height = of_load.height + (access.masked ? kMaskedLevels : 0);
      }
    }
    heights.push_back(height);
  });
  return {size, heights.back()};
}

class ScopeSubstituter {
 public:
  ScopeSubstituter(Program& program, Gathered& gathered, Scope& scope,
                   std::vector<TensorId> declared)
      : program_(program), gathered_(gathered), scope_(scope), declared_(std::move(declared)),
        removed_(scope.size()), kept_values_(program.values.size()) {
    for (size_t i = 0; i < scope_.size(); ++i) Collect(i);
  }

  // Definitions in the order of the text, mere copies before those that compute.
  bool Run() {
    std::vector<std::pair<size_t, TensorId>> in_order;
    for (TensorId tensor : declared_) {
      const auto it = uses_.find(tensor);
      if (it != uses_.end() && it->second.writes.size() == 1)
        in_order.emplace_back(it->second.writes[0], tensor);
    }
    std::stable_sort(in_order.begin(), in_order.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    // Copies come first: they hide which reads of a value there are.
    for (bool copies : {true, false}) {
      for (const auto& [item, tensor] : in_order) {
        Substitute(tensor, item, copies);
        DropValues();
      }
    }
    RemoveItems();
    return changed_;
  }

 private:
  // Which items read and write each tensor, by number of the item.
  void Collect(size_t i) {
    VisitItems(scope_[i], [&](const Item& item) {
      VisitAccesses(program_, item,
                    [&](TensorId tensor, absl::Span<const IndexId>, AccessKind kind) {
                      Uses& uses = uses_[tensor];
                      if (kind == AccessKind::kRead) {
                        ++uses.reads[i];
                        ++uses.loads;
                      } else if (uses.writes.empty() || uses.writes.back() != i) {
                        uses.writes.push_back(i);
                      }
                    });
      const auto* statement = item.As<Statement>();
      if (statement != nullptr && Computes(*statement))
        uses_[statement->target.tensor].computes = true;
    });
  }

  bool Computes(const Statement& statement) const {
    const auto* apply = absl::get_if<ApplyValue>(&program_[statement.value].node);
    return apply != nullptr && apply->op != ScalarOp::kCast;
  }

  // Into the readers after the definition, in order, up to the first change of what it reads; the
  // definition is removed with its last read.
  void Substitute(TensorId tensor, size_t at, bool copies) {
    if (removed_[at] || (copies && uses_.at(tensor).computes)) return;
    const absl::optional<Definition> definition = DefinitionOf(program_, scope_[at], tensor);
    if (!definition || (definition->cost == 0) != copies) return;
    feeds_.clear();
    measure_ = MeasureOf(program_, definition->value);
    for (size_t item : ReadersBehind(tensor, at)) {
      if (!IsUnchanged(*definition, at, item)) break;
      SubstituteInto(*definition, item);
    }
    if (uses_[tensor].loads == 0 && definition->is_alone) Remove(tensor, at);
  }

  std::vector<size_t> ReadersBehind(TensorId tensor, size_t at) {
    const auto& reads = uses_[tensor].reads;
    std::vector<size_t> items;
    for (auto it = reads.upper_bound(at); it != reads.end(); ++it) items.push_back(it->first);
    return items;
  }

  // Nothing that the definition reads changes from its statement to `item`.
  bool IsUnchanged(const Definition& definition, size_t at, size_t item) const {
    for (TensorId tensor : definition.reads) {
      const auto it = uses_.find(tensor);
      if (it == uses_.end()) continue;
      const auto& writes = it->second.writes;
      const auto write = std::lower_bound(writes.begin(), writes.end(), at);
      if (write != writes.end() && *write <= item && !NESTOR_MUTANT("substitution_across_write"))
        return false;
    }
    return true;
  }

  // ---- One reading item

  void SubstituteInto(const Definition& definition, size_t i) {
    const int before = replaced_;
    VisitStatements(scope_[i], [&](Statement& statement, const LoopsAround& chain) {
      VisitStatement(definition, statement, chain);
    });
    if (replaced_ == before) return;
    changed_ = true;
    Recount(definition, i);
  }

  // Replaces loads in index expressions first, then those in values where it pays.
  void VisitStatement(const Definition& definition, Statement& statement,
                      const LoopsAround& chain) {
    const auto in_index = [&](IndexId e) { return ReplaceInIndex(definition, e, chain); };
    const bool gathered = gathered_.Contains(definition.tensor);
    if (gathered) statement.target = RewriteAccess(program_, std::move(statement.target), in_index);
    const auto rewrite = [&](ValueId value) {
      if (gathered) value = RewriteIndices(program_, value, in_index);
      if (!Fits(definition, value)) return value;
      return RewriteValues(program_, value, [&](ValueId id) -> absl::optional<ValueId> {
        const auto* load = absl::get_if<LoadValue>(&program_[id].node);
        if (load == nullptr || load->access.tensor != definition.tensor) return absl::nullopt;
        const Access access = load->access;
        if (!Pays(definition, access, statement, chain)) return absl::nullopt;
        const absl::optional<ValueId> value = Compose(program_, definition, access);
        replaced_ += value.has_value();
        return value;
      });
    };
    statement.value = rewrite(statement.value);
    if (statement.position.valid()) statement.position = rewrite(statement.position);
  }

  // Whether the value stays small and flat enough with all its reads of the tensor replaced.
  bool Fits(const Definition& definition, ValueId value) const {
    if (measure_.size == 1) return true;
    const Measure measure = MeasureOf(program_, value, definition.tensor, measure_);
    return measure.size <= kMaxSize && measure.height <= kMaxHeight;
  }

  // Arithmetic on a loaded number is checked when it runs. With an expression for the number it is
  // taken as exact, so its not overflowing becomes an assumption.
  IndexId ReplaceInIndex(const Definition& definition, IndexId e, const LoopsAround& chain) {
    if (!program_.pool.HasLoad(e)) return e;
    IndexReplacement replacement;
    const IndexId by = Replaced(definition, e, replacement);
    if (!AssumeNumbers(program_, replacement.numbers, chain)) return e;
    replaced_ += replacement.loads;
    return by;
  }

  struct IndexReplacement {
    int loads = 0;
    std::vector<IndexId> numbers;  // computed with them, without loads now
  };

  // `numbers` collects what holds no load any more: such arithmetic must be known not to overflow.
  IndexId Replaced(const Definition& definition, IndexId e, IndexReplacement& replacement) {
    IndexPool& pool = program_.pool;
    if (!pool.HasLoad(e)) return e;
    const IndexNode node = pool[e];
    IndexList args;
    for (IndexId arg : node.args) args.push_back(Replaced(definition, arg, replacement));
    if (node.kind == IndexKind::kLoad && node.value == definition.tensor.value) {
      if (const absl::optional<IndexId> by = ComposeIndex(program_, definition, args)) {
        ++replacement.loads;
        return *by;
      }
    }
    const IndexId rebuilt = pool.Make(node.kind, node.value, args);
    const bool is_number = node.kind != IndexKind::kLoad && !IsCondition(node.kind);
    if (is_number && !pool.HasLoad(rebuilt) && !pool.ConstValue(rebuilt))
      replacement.numbers.push_back(rebuilt);
    return rebuilt;
  }

  // The rules of substitute.h, cheapest first. Any other value is recomputed for each read, within
  // a bound, unless merging could serve the read or a reduction reads it over and over.
  bool Pays(const Definition& definition, const Access& access, const Statement& statement,
            const LoopsAround& chain) {
    if (CostsLessThanRead(program_, definition, access, statement)) return true;
    if (definition.cost == 0)
      return chain.empty() || !definition.vars.empty() || IsLeaf(definition);
    const int loads = uses_.at(definition.tensor).loads;
    if (ReadsEachOnce(access, chain)) {
      if (loads == 1 || IsCheap(program_, definition)) return true;
      return !IsInOrder(access, chain) && !statement.op &&
             HasInOrder(definition.tensor, statement, chain);
    }
    if (definition.cost * loads > kMaxRecomputed) return false;
    return !IsPrefix(access, chain) && !FeedsReduction(statement, 0);
  }

  // The statement reduces, or assigns what a reduction reads: there a value is
  // needed again and again, and better stored.
  bool FeedsReduction(const Statement& statement, int depth) {
    if (statement.op) return true;
    const TensorId target = statement.target.tensor;
    const auto it = uses_.find(target);
    if (it == uses_.end() || depth == kMaxChain) return false;
    const auto known = feeds_.find(target);
    if (known != feeds_.end()) return known->second;
    bool found = false;
    for (const auto& [item, loads] : it->second.reads) {
      VisitItems(scope_[item], [&](const Item& inner) {
        const auto* reader = inner.As<Statement>();
        found = found || (reader != nullptr && reader->target.tensor != target &&
                          Reads(*reader, target) && FeedsReduction(*reader, depth + 1));
      });
    }
    feeds_[target] = found;
    return found;
  }

  bool Reads(const Statement& statement, TensorId tensor) const {
    bool reads = false;
    VisitLoads(program_, statement.value,
               [&](ValueId, const Access& access) { reads |= access.tensor == tensor; });
    return reads;
  }

  bool IsLeaf(const Definition& definition) const {
    return !absl::holds_alternative<ApplyValue>(program_[definition.value].node);
  }

  bool IsInOrder(const Access& access, const LoopsAround& chain) const {
    for (size_t axis = 0; axis < access.place.size(); ++axis) {
      if (program_.pool.VarValue(access.place[axis]) != chain[axis]->var) return false;
    }
    return true;
  }

  // The statement also reads the tensor in the order of the loops: merging can
  // serve one order only.
  bool HasInOrder(TensorId tensor, const Statement& statement, const LoopsAround& chain) const {
    bool found = false;
    VisitLoads(program_, statement.value, [&](ValueId, const Access& access) {
      found = found ||
              (access.tensor == tensor && ReadsEachOnce(access, chain) && IsInOrder(access, chain));
    });
    return found;
  }

  // The place is a permutation of the loops around.
  bool ReadsEachOnce(const Access& access, const LoopsAround& chain) const {
    return access.place.size() == chain.size() && IsPrefix(access, chain);
  }

  // The place is a permutation of the outermost loops: merging can share those.
  bool IsPrefix(const Access& access, const LoopsAround& chain) const {
    const size_t rank = access.place.size();
    if (rank > chain.size()) return false;
    return std::all_of(
        chain.begin(), chain.begin() + static_cast<int64_t>(rank), [&](const Loop* loop) {
          return std::any_of(access.place.begin(), access.place.end(),
                             [&](IndexId e) { return program_.pool.VarValue(e) == loop->var; });
        });
  }

  // ---- Bookkeeping

  void Recount(const Definition& definition, size_t item) {
    absl::flat_hash_map<TensorId, int> loads;
    VisitReads(scope_[item], [&](TensorId tensor) { ++loads[tensor]; });
    for (TensorId tensor : definition.reads) uses_[tensor].SetReads(item, loads[tensor]);
    uses_[definition.tensor].SetReads(item, loads[definition.tensor]);
  }

  void VisitReads(const Item& item, absl::FunctionRef<void(TensorId)> visit) const {
    VisitItems(item, [&](const Item& inner) {
      VisitAccesses(program_, inner,
                    [&](TensorId tensor, absl::Span<const IndexId>, AccessKind kind) {
                      CountSteps(1);
                      if (kind == AccessKind::kRead) visit(tensor);
                    });
    });
  }

  void Remove(TensorId tensor, size_t item) {
    removed_[item] = true;
    changed_ = true;
    gone_.insert(tensor);
    VisitReads(scope_[item], [&](TensorId read) { uses_[read].SetReads(item, 0); });
    scope_[item] = DeclarationOf(tensor);
  }

  // A definition that was copied into its reader leaves its own values unused.
  void DropValues() {
    const bool is_program = &scope_ == &program_.body;
    if (!is_program || program_.values.size() < 2 * kept_values_ + kMaxSize) return;
    DropUnusedValues(program_);
    kept_values_ = program_.values.size();
  }

  // At the end, all at once, so that numbers of items stay valid before.
  void RemoveItems() {
    if (gone_.empty()) return;
    Scope kept;
    for (size_t i = 0; i < scope_.size(); ++i) {
      const auto* declaration = scope_[i].As<Declaration>();
      const bool gone = declaration != nullptr && IsGone(declaration->tensor);
      if (!removed_[i] && !gone) kept.push_back(std::move(scope_[i]));
    }
    scope_ = std::move(kept);
  }

  bool IsGone(TensorId tensor) const { return gone_.contains(tensor); }

  Program& program_;
  Gathered& gathered_;
  Scope& scope_;
  const std::vector<TensorId> declared_;
  std::vector<bool> removed_;  // by item
  absl::flat_hash_set<TensorId> gone_;
  absl::flat_hash_map<TensorId, Uses> uses_;
  absl::flat_hash_map<TensorId, bool> feeds_;  // FeedsReduction, while nothing changes
  Measure measure_;                            // of the definition at hand
  size_t kept_values_;  // values of the program when unused ones were last dropped
  int replaced_ = 0;
  bool changed_ = false;
};

// In every scope, the tensors that it declares.
bool SubstituteOnce(Program& program, Gathered& gathered) {
  bool changed = false;
  VisitScopes(program.body, [&](Scope& scope) {
    std::vector<TensorId> declared = DeclaredIn(scope);
    if (!declared.empty())
      changed |= ScopeSubstituter(program, gathered, scope, std::move(declared)).Run();
  });
  return changed;
}

}  // namespace

absl::StatusOr<bool> SubstituteTemporaries(Program& program) {
  bool changed = false;
  Gathered gathered(program.pool);
  // Each round leaves fewer reads of temporaries, or passes them on to later ones.
  while (SubstituteOnce(program, gathered)) changed = true;
  return changed;
}

}  // namespace nestor::loop
