// Walks over index expressions. An expression is a graph, so that each shared node is visited once
// (a walk over paths would take exponential time on x = y + y, y = z + z, ..): the nodes that were
// seen are remembered, in a list while they are few.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "uops/index/index_expr.h"

namespace nestor {

// By kind (numbers last), then arguments, then value. Symbols go by name: their numbers differ from
// pool to pool.
int CompareStructure(const IndexPool& pool, IndexId a, IndexId b) {
  if (a == b) return 0;
  const IndexNode& x = pool[a];
  const IndexNode& y = pool[b];
  if (x.kind != y.kind)
    return x.kind == IndexKind::kConst   ? 1
           : y.kind == IndexKind::kConst ? -1
           : x.kind < y.kind             ? -1
                                         : 1;
  if (x.kind == IndexKind::kSymbol) return pool.SymbolName(a).compare(pool.SymbolName(b));
  if (x.args.size() != y.args.size()) return x.args.size() < y.args.size() ? -1 : 1;
  for (size_t i = 0; i < x.args.size(); ++i) {
    if (const int order = CompareStructure(pool, x.args[i], y.args[i])) return order;
  }
  return x.value < y.value ? -1 : x.value > y.value ? 1 : 0;
}

namespace {

// Nodes and their images. There mostly are few: searching a short list is faster than hashing.
class Images {
 public:
  // Invalid: there is none yet.
  IndexId Find(IndexId id) const {
    if (!many_.empty()) {
      const auto it = many_.find(id);
      return it == many_.end() ? IndexId() : it->second;
    }
    const auto it = std::find_if(few_.begin(), few_.end(),
                                 [&](const auto& entry) { return entry.first == id; });
    return it == few_.end() ? IndexId() : it->second;
  }
  // REQUIRES: there is none yet.
  void Add(IndexId id, IndexId image) {
    if (few_.size() < kFew) {
      few_.emplace_back(id, image);
      return;
    }
    if (many_.empty()) many_.insert(few_.begin(), few_.end());
    many_.emplace(id, image);
  }

 private:
  static constexpr size_t kFew = 32;
  absl::InlinedVector<std::pair<IndexId, IndexId>, kFew> few_;
  absl::flat_hash_map<IndexId, IndexId> many_;  // all of them, once they are many
};

// `keeps`: nodes of one pool that no leaf changes.
IndexId CopyMemo(const IndexPool& from, IndexId id, IndexPool& to, IndexLeaf leaf,
                 absl::FunctionRef<bool(IndexId)> keeps, Images& images) {
  if (keeps(id)) return id;
  if (const IndexId known = images.Find(id); known.value >= 0) return known;
  // A copy of the node: `to` may be `from`, whose storage moves as it grows.
  const IndexNode node = from[id];
  absl::InlinedVector<IndexId, 4> args;
  for (IndexId arg : node.args) args.push_back(CopyMemo(from, arg, to, leaf, keeps, images));
  IndexId result;
  const bool is_leaf = node.kind == IndexKind::kVar || node.kind == IndexKind::kSymbol ||
                       node.kind == IndexKind::kLoad;
  absl::optional<IndexId> mapped;
  if (is_leaf) mapped = leaf(node, args);
  // Constructors would return the same node again, so a node that did not change is not rebuilt.
  const bool same = &from == &to && absl::MakeConstSpan(args) == absl::MakeConstSpan(node.args);
  if (mapped) result = *mapped;
  else if (same) result = id;
  else if (node.kind == IndexKind::kSymbol) result = to.Symbol(std::string(from.SymbolName(id)));
  else result = to.Make(node.kind, node.value, args);
  images.Add(id, result);
  return result;
}

void VisitMemo(const IndexPool& pool, IndexId id,
               absl::FunctionRef<void(IndexId, const IndexNode&)> visit, Images& seen) {
  if (seen.Find(id).value >= 0) return;
  seen.Add(id, id);
  const IndexNode node = pool[id];  // a copy: `visit` may add to the pool
  for (IndexId arg : node.args) VisitMemo(pool, arg, visit, seen);
  visit(id, node);
}

}  // namespace

IndexId CopyIndex(const IndexPool& from, IndexId id, IndexPool& to, IndexLeaf leaf) {
  Images images;
  return CopyMemo(
      from, id, to, leaf,
      [&](IndexId e) { return &from == &to && from[e].kind == IndexKind::kConst; }, images);
}

IndexId CopyIndex(const IndexPool& from, IndexId id, IndexPool& to) {
  return CopyIndex(from, id, to,
                   [](const IndexNode&, absl::Span<const IndexId>) -> absl::optional<IndexId> {
                     return absl::nullopt;
                   });
}

IndexId ReplaceLeaves(IndexPool& pool, IndexId id, IndexKind kind,
                      absl::FunctionRef<absl::optional<IndexId>(int64_t)> by) {
  const auto leaf = [&](const IndexNode& node, absl::Span<const IndexId>) {
    return node.kind == kind ? by(node.value) : absl::nullopt;
  };
  const auto keeps = [&](IndexId e) {
    return kind == IndexKind::kVar ? !pool.HasVar(e) : pool[e].kind == IndexKind::kConst;
  };
  Images images;
  return CopyMemo(pool, id, pool, leaf, keeps, images);
}

// Most expressions load nothing, and are returned at once.
IndexId ReplaceLoads(IndexPool& pool, IndexId id, absl::FunctionRef<int64_t(int64_t)> tensor) {
  if (!pool.HasLoad(id)) return id;
  return CopyIndex(
      pool, id, pool,
      [&](const IndexNode& node, absl::Span<const IndexId> args) -> absl::optional<IndexId> {
        if (node.kind != IndexKind::kLoad) return absl::nullopt;
        return pool.Load(tensor(node.value), args);
      });
}

void VisitIndex(const IndexPool& pool, IndexId id,
                absl::FunctionRef<void(IndexId, const IndexNode&)> visit) {
  Images seen;
  VisitMemo(pool, id, visit, seen);
}

namespace {

// Calls `visit` on each variable, once for each path to it; false where more than `budget`
// nodes lie on the paths.
template <class Visit>
bool VisitPaths(const IndexPool& pool, IndexId id, int& budget, const Visit& visit) {
  if (!pool.HasVar(id)) return true;
  if (--budget < 0) return false;
  const IndexNode& node = pool[id];
  if (node.kind == IndexKind::kVar) visit(node.value);
  return std::all_of(node.args.begin(), node.args.end(),
                     [&](IndexId arg) { return VisitPaths(pool, arg, budget, visit); });
}

// Calls `visit` on each variable, at least once. Most expressions are small, and remembering which
// nodes were seen takes longer than seeing them again; but the number of paths may be huge.
template <class Visit>
void VisitVars(const IndexPool& pool, IndexId id, const Visit& visit) {
  constexpr int kFewNodes = 64;
  int budget = kFewNodes;
  if (VisitPaths(pool, id, budget, visit)) return;
  VisitIndex(pool, id, [&](IndexId, const IndexNode& node) {
    if (node.kind == IndexKind::kVar) visit(node.value);
  });
}

}  // namespace

void CollectVars(const IndexPool& pool, IndexId id, std::vector<int64_t>& vars) {
  VisitVars(pool, id, [&](int64_t var) { vars.push_back(var); });
  std::sort(vars.begin(), vars.end());
  vars.erase(std::unique(vars.begin(), vars.end()), vars.end());
}

bool HoldsVar(const IndexPool& pool, IndexId id, int64_t var) {
  if (!pool.MayHoldVar(id, var)) return false;
  bool found = false;
  VisitVars(pool, id, [&](int64_t held) { found = found || held == var; });
  return found;
}

IndexId SubstituteVars(IndexPool& pool, IndexId id, absl::Span<const IndexId> replacement) {
  if (!pool.HasVar(id)) return id;
  return ReplaceLeaves(pool, id, IndexKind::kVar,
                       [&](int64_t var) { return absl::make_optional(replacement[var]); });
}

// Every part is evaluated, even the right side of an && whose left side is false: an overflow
// anywhere gives no value.
absl::optional<int64_t> EvaluateIndex(const IndexPool& pool, IndexId id, IndexLeafValue leaf) {
  const IndexNode& node = pool[id];
  if (node.kind == IndexKind::kConst) return node.value;
  absl::InlinedVector<int64_t, 4> args;
  for (IndexId arg : node.args) {
    const auto value = EvaluateIndex(pool, arg, leaf);
    if (!value) return absl::nullopt;
    args.push_back(*value);
  }
  switch (node.kind) {
    case IndexKind::kVar:
    case IndexKind::kSymbol:
    case IndexKind::kLoad: return leaf(node, args);
    case IndexKind::kNot: return args[0] == 0;
    default: return CheckedApply(node.kind, args[0], args[1]);
  }
}

}  // namespace nestor
