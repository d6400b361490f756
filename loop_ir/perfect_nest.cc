// Questions about const nests are answered once; those about others are the same, and their answers
// parts of what the caller may change.
#include "loop_ir/perfect_nest.h"

#include <cstddef>
#include <utility>

namespace nestor::loop {

const Loop* OnlyLoopIn(const Scope& scope) {
  return scope.size() == 1 ? scope[0].As<Loop>() : nullptr;
}

Loop* OnlyLoopIn(Scope& scope) { return scope.size() == 1 ? scope[0].As<Loop>() : nullptr; }

const Loop* OneLoopAmong(const Scope& scope) {
  const Loop* found = nullptr;
  for (const Item& item : scope) {
    const auto* loop = item.As<Loop>();
    if (loop == nullptr) continue;
    if (found != nullptr) return nullptr;
    found = loop;
  }
  return found;
}

LoopsAround BandOf(const Loop& outermost) {
  LoopsAround band;
  for (const Loop* loop = &outermost; loop != nullptr; loop = OnlyLoopIn(loop->body))
    band.push_back(loop);
  return band;
}

std::vector<Loop*> BandOf(Loop& outermost) {
  std::vector<Loop*> band;
  for (Loop* loop = &outermost; loop != nullptr; loop = OnlyLoopIn(loop->body))
    band.push_back(loop);
  return band;
}

const Scope& CoreOf(const Loop& outermost) {
  const Loop* innermost = &outermost;
  while (const Loop* inner = OnlyLoopIn(innermost->body)) innermost = inner;
  return innermost->body;
}

Scope& CoreOf(Loop& outermost) {
  return const_cast<Scope&>(CoreOf(static_cast<const Loop&>(outermost)));
}

const Statement* OnlyStatementIn(const Loop& outermost) {
  const Scope& core = CoreOf(outermost);
  return core.size() == 1 ? core[0].As<Statement>() : nullptr;
}

Statement* OnlyStatementIn(Loop& outermost) {
  return const_cast<Statement*>(OnlyStatementIn(static_cast<const Loop&>(outermost)));
}

Scope ScopeOf(Loop loop) {
  Scope scope;
  scope.push_back(Item{std::move(loop)});
  return scope;
}

Scope Around(const Loop& loop, Scope body) {
  return ScopeOf({loop.var, loop.begin, loop.end, loop.step, {}, std::move(body)});
}

Scope Around(absl::Span<const Loop* const> loops, Scope body) {
  for (size_t i = loops.size(); i-- > 0;) body = Around(*loops[i], std::move(body));
  return body;
}

}  // namespace nestor::loop
