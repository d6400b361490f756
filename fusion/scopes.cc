// Helpers of passes for scopes, besides the traversals of loop_ir: declarations right before the
// first item that uses them, sizes to stop growth by, and items taken apart.
#include "fusion/scopes.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "fusion/steps.h"
#include "loop_ir/dependence.h"

namespace nestor::loop {

Item AssignmentOf(TensorId scalar, ValueId value) {
  return Item{Statement{{scalar}, absl::nullopt, value, ValueId()}};
}

int64_t SizeOf(const Program& program, ValueId value) {
  int64_t size = 0;
  VisitValues(program, value, [&](ValueId, const Value& v) {
    CountSteps(1);
    const auto* load = absl::get_if<LoadValue>(&v.node);
    size += 1 + (load == nullptr ? 0 : static_cast<int64_t>(load->access.conditions.size()));
  });
  return size;
}

int64_t SizeOf(const Program& program, const Item& item) {
  int64_t size = 0;
  VisitItems(item, [&](const Item& inner) {
    const auto* statement = inner.As<Statement>();
    if (statement == nullptr) return;
    size += SizeOf(program, statement->value);
    if (statement->position.valid()) size += SizeOf(program, statement->position);
  });
  return size;
}

namespace {

// Moves those of `pending` (the place of each tensor in a list) that the item touches
// into `touched`.
void TakeTouched(const Program& program, const Item& item,
                 absl::flat_hash_map<TensorId, size_t>& pending, std::vector<size_t>& touched) {
  VisitItems(item, [&](const Item& inner) {
    VisitAccesses(program, inner, [&](TensorId tensor, absl::Span<const IndexId>, AccessKind) {
      const auto it = pending.find(tensor);
      if (it == pending.end()) return;
      touched.push_back(it->second);
      pending.erase(it);
    });
  });
}

}  // namespace

// Each tensor is declared just before the first item that touches it.
Scope WithDeclarations(const Program& program, Scope items, absl::Span<const TensorId> declared) {
  absl::flat_hash_map<TensorId, size_t> pending;
  for (size_t i = 0; i < declared.size(); ++i) pending.emplace(declared[i], i);
  Scope result;
  for (Item& item : items) {
    std::vector<size_t> touched;
    if (!pending.empty()) TakeTouched(program, item, pending, touched);
    std::sort(touched.begin(), touched.end());
    for (size_t i : touched) result.push_back(DeclarationOf(declared[i]));
    result.push_back(std::move(item));
  }
  for (TensorId tensor : declared) {
    if (pending.contains(tensor)) result.push_back(DeclarationOf(tensor));
  }
  return result;
}

std::vector<TensorId> TakeDeclarations(Scope& scope) {
  const std::vector<TensorId> declared = DeclaredIn(scope);
  const auto is_declaration = [](const Item& item) { return item.As<Declaration>() != nullptr; };
  scope.erase(std::remove_if(scope.begin(), scope.end(), is_declaration), scope.end());
  return declared;
}

void Declare(const Program& program, Scope& scope, absl::Span<const TensorId> more) {
  std::vector<TensorId> declared = TakeDeclarations(scope);
  declared.insert(declared.end(), more.begin(), more.end());
  scope = WithDeclarations(program, std::move(scope), declared);
}

// Loops that become empty go, too.
void RemoveStatements(Scope& scope, const absl::flat_hash_set<const Statement*>& removed) {
  const auto goes = [&](Item& item) {
    auto* loop = item.As<Loop>();
    if (loop == nullptr)
      return item.As<Statement>() != nullptr && removed.contains(item.As<Statement>());
    RemoveStatements(loop->body, removed);
    return loop->body.empty();
  };
  Scope kept;
  for (Item& item : scope) {
    if (!goes(item)) kept.push_back(std::move(item));
  }
  scope = std::move(kept);
}

void Insert(Scope& scope, size_t at, Scope items) {
  scope.insert(scope.begin() + static_cast<int64_t>(at), std::make_move_iterator(items.begin()),
               std::make_move_iterator(items.end()));
}

void ReplaceItem(Scope& scope, size_t at, Scope items) {
  scope.erase(scope.begin() + static_cast<int64_t>(at));
  Insert(scope, at, std::move(items));
}

std::vector<Scope> Apart(Scope scope) {
  std::vector<Scope> parts(scope.size());
  for (size_t i = 0; i < scope.size(); ++i) parts[i].push_back(std::move(scope[i]));
  return parts;
}

Scope Joined(std::vector<Scope> scopes) {
  Scope joined;
  for (Scope& scope : scopes) Append(joined, std::move(scope));
  return joined;
}

}  // namespace nestor::loop
