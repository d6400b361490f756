#include "jit/schedule/loop_maker.h"

#include <iterator>
#include <utility>

namespace nestor::jit {

using loop::Loop;
using loop::LoopAttributes;
using loop::Scope;

Scope LoopMaker::Counted(absl::string_view name, IndexId end, LoopAttributes attributes, Body body) {
  return Between(name, program_.pool.Const(0), end, attributes, body);
}

Scope LoopMaker::Between(absl::string_view name, IndexId begin, IndexId end, LoopAttributes attributes, Body body) {
  IndexPool& pool = program_.pool;
  if (const auto count = pool.ConstValue(pool.Sub(end, begin)); count && *count <= 0) return {};
  Loop loop{program_.AddVar(name), begin, end, 1, attributes, {}};
  loop.body = body(pool.Var(loop.var));
  return loop.body.empty() ? Scope() : ScopeOf(std::move(loop));
}

Scope ScopeOf(Loop loop) {
  loop::Item item;
  item.node = std::move(loop);
  Scope scope;
  scope.push_back(std::move(item));
  return scope;
}

Scope Around(const Loop& loop, Scope body) {
  return ScopeOf({loop.var, loop.begin, loop.end, loop.step, {}, std::move(body)});
}

Scope Assignment(loop::TensorId tensor, IndexList place, loop::ValueId value) {
  Scope scope;
  scope.push_back({loop::Statement{{tensor, std::move(place)}, absl::nullopt, value, {}}});
  return scope;
}

void Append(Scope& scope, Scope more) {
  scope.insert(scope.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

IndexId OnlyIf(IndexPool& pool, IndexId flag, IndexId count) {
  constexpr int64_t kMany = int64_t{1} << 49;  // more than any extent
  return pool.Min(count, pool.Mul(flag, pool.Const(kMany)));
}

}  // namespace nestor::jit
