// Bottom-up rebuilding. Values are trees of any depth; a value met twice is rebuilt twice. A part
// that did not change keeps its id, down to the whole tree, so that a pass that changed nothing
// leaves the program untouched. References into the program's arenas do not survive an addition:
// callers copy what they still need.
#include "loop_ir/rewrite.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"

namespace nestor::loop {
namespace {

void RewriteList(IndexList& list, IndexMap index) {
  for (IndexId& e : list) e = index(e);
}

// Operands first, without recursion: `map` is given each value with its operands mapped, and
// returns its replacement.
ValueId Rebuild(Program& program, ValueId root, absl::FunctionRef<ValueId(ValueId)> map) {
  // Whether the operands are in `rebuilt`.
  absl::InlinedVector<std::pair<ValueId, bool>, 32> stack = {{root, false}};
  absl::InlinedVector<ValueId, 32> rebuilt;
  while (!stack.empty()) {
    const auto [id, ready] = stack.back();
    stack.pop_back();
    const auto* apply = absl::get_if<ApplyValue>(&program[id].node);
    if (apply == nullptr) {
      rebuilt.push_back(map(id));
    } else if (!ready) {
      stack.emplace_back(id, true);
      for (size_t i = apply->args.size(); i-- > 0;) stack.emplace_back(apply->args[i], false);
    } else {
      const auto first = rebuilt.end() - static_cast<int64_t>(apply->args.size());
      const bool same = std::equal(first, rebuilt.end(), apply->args.begin());
      const absl::InlinedVector<ValueId, 3> args(first, same ? first : rebuilt.end());
      const ScalarOp op = apply->op;
      rebuilt.erase(first, rebuilt.end());
      rebuilt.push_back(map(same ? id : program.AddApply(op, args, program[id].type)));
    }
  }
  return rebuilt[0];
}

}  // namespace

Access RewriteAccess(Program& program, Access access, IndexMap index) {
  RewriteList(access.place, index);
  RewriteList(access.conditions, index);
  if (access.fill.valid()) access.fill = RewriteIndices(program, access.fill, index);
  return access;
}

namespace {

// An access is copied only where something in it changes: most do not change.
ValueId RewriteIndicesOfLoad(Program& program, ValueId id, IndexMap index) {
  const auto access = [&]() -> const Access& {
    return absl::get<LoadValue>(program[id].node).access;
  };
  absl::InlinedVector<IndexId, 8> by;
  bool changed = false;
  const auto map = [&](IndexId e) {
    by.push_back(index(e));
    changed |= by.back() != e;
  };
  for (size_t i = 0; i < access().place.size(); ++i) map(access().place[i]);
  for (size_t i = 0; i < access().conditions.size(); ++i) map(access().conditions[i]);
  // A fill holds no loop index, but a symbol may be replaced, too.
  const ValueId old_fill = access().fill;
  const ValueId fill = old_fill.valid() ? RewriteIndices(program, old_fill, index) : old_fill;
  if (!changed && fill == old_fill) return id;
  Access rewritten = access();
  const auto conditions = by.begin() + static_cast<int64_t>(rewritten.place.size());
  rewritten.place.assign(by.begin(), conditions);
  rewritten.conditions.assign(conditions, by.end());
  rewritten.fill = fill;
  return program.AddLoad(std::move(rewritten));
}

ValueId RewriteIndicesOfLeaf(Program& program, ValueId id, IndexMap index) {
  if (const auto* node = absl::get_if<IndexValue>(&program[id].node)) {
    const IndexId old = node->index, by = index(old);
    return by == old ? id : program.AddIndexValue(by);
  }
  return absl::holds_alternative<LoadValue>(program[id].node)
             ? RewriteIndicesOfLoad(program, id, index)
             : id;
}

}  // namespace

ValueId RewriteIndices(Program& program, ValueId id, IndexMap index) {
  return Rebuild(program, id,
                 [&](ValueId rebuilt) { return RewriteIndicesOfLeaf(program, rebuilt, index); });
}

ValueId RewriteValues(Program& program, ValueId id, ValueMap map) {
  return Rebuild(program, id, [&](ValueId rebuilt) { return map(rebuilt).value_or(rebuilt); });
}

// Only loads of `tensor`; all other values are kept or rebuilt around them.
ValueId RewriteLoads(Program& program, ValueId value, TensorId tensor,
                     absl::FunctionRef<void(Access&)> change) {
  return RewriteValues(program, value, [&](ValueId id) -> absl::optional<ValueId> {
    const auto* load = absl::get_if<LoadValue>(&program[id].node);
    if (load == nullptr || load->access.tensor != tensor) return absl::nullopt;
    Access access = load->access;
    change(access);
    return program.AddLoad(std::move(access));
  });
}

void RewriteLoads(Program& program, Statement& statement, TensorId tensor,
                  absl::FunctionRef<void(Access&)> change) {
  statement.value = RewriteLoads(program, statement.value, tensor, change);
  if (statement.position.valid())
    statement.position = RewriteLoads(program, statement.position, tensor, change);
}

// Everything in the scope that holds an index expression; a new kind of item must be added here.
void RewriteIndices(Program& program, Scope& scope, IndexMap index) {
  for (Item& item : scope) {
    if (Loop* loop = item.As<Loop>()) {
      loop->begin = index(loop->begin);
      loop->end = index(loop->end);
      for (Prefetch& prefetch : loop->prefetches) {
        prefetch.access = RewriteAccess(program, std::move(prefetch.access), index);
      }
      RewriteIndices(program, loop->body, index);
    } else if (Statement* statement = item.As<Statement>()) {
      statement->target = RewriteAccess(program, std::move(statement->target), index);
      statement->value = RewriteIndices(program, statement->value, index);
      if (statement->position.valid())
        statement->position = RewriteIndices(program, statement->position, index);
      RewriteList(statement->needed_if, index);
    } else {
      RewriteList(program[item.As<Declaration>()->tensor].shape, index);
    }
  }
}

namespace {

using PlaceChange = absl::FunctionRef<bool(TensorId, IndexList& place)>;

// Loads in loads, too: arguments come rebuilt.
IndexId RewritePlacesIn(Program& program, IndexId e, PlaceChange change) {
  if (!program.pool.HasLoad(e)) return e;
  return CopyIndex(
      program.pool, e, program.pool,
      [&](const IndexNode& node, absl::Span<const IndexId> args) -> absl::optional<IndexId> {
        if (node.kind != IndexKind::kLoad) return absl::nullopt;
        IndexList place(args.begin(), args.end());
        if (!change(TensorId{static_cast<int32_t>(node.value)}, place)) return absl::nullopt;
        return program.pool.Load(node.value, place);
      });
}

// Values are immutable: a changed load is a new one, and what holds it is rebuilt.
ValueId RewritePlacesIn(Program& program, ValueId value, PlaceChange change) {
  return RewriteValues(program, value, [&](ValueId id) -> absl::optional<ValueId> {
    const auto* load = absl::get_if<LoadValue>(&program[id].node);
    if (load == nullptr) return absl::nullopt;
    Access access = load->access;
    if (!change(access.tensor, access.place)) return absl::nullopt;
    return program.AddLoad(std::move(access));
  });
}

}  // namespace

void RewritePlaces(Program& program, Scope& scope, PlaceChange change) {
  RewriteIndices(program, scope, [&](IndexId e) { return RewritePlacesIn(program, e, change); });
  VisitScopes(scope, [&](Scope& inside) {
    for (Item& item : inside) {
      auto* loop = item.As<Loop>();
      if (loop == nullptr) continue;
      for (Prefetch& prefetch : loop->prefetches)
        change(prefetch.access.tensor, prefetch.access.place);
    }
  });
  VisitStatements(scope, [&](Statement& statement) {
    change(statement.target.tensor, statement.target.place);
    statement.value = RewritePlacesIn(program, statement.value, change);
    if (statement.position.valid())
      statement.position = RewritePlacesIn(program, statement.position, change);
  });
}

namespace {

// Values come after their operands in the arena: one sweep back finds those that are used, one
// sweep forward moves them.
class ValueSweep {
 public:
  explicit ValueSweep(Program& program)
      : program_(program), number_(program.values.size(), kUnused) {}

  // Mark from the roots, then compact (mark and compact, as a garbage collector does). Operands
  // have smaller ids than what holds them, so one pass from the end marks all.
  void Run() {
    VisitRoots([&](ValueId& id) { Use(id); });
    for (size_t i = number_.size(); i-- > 0;) {
      if (number_[i] != kUnused) VisitOperands(program_.values[i], [&](ValueId& id) { Use(id); });
    }
    Compact();
    VisitRoots([&](ValueId& id) { Renumber(id); });
  }

 private:
  static constexpr int32_t kUnused = -1;
  using Visitor = absl::FunctionRef<void(ValueId&)>;

  void Use(ValueId id) {
    if (id.valid()) number_[id.value] = 0;
  }
  void Renumber(ValueId& id) const {
    if (id.valid()) id.value = number_[id.value];
  }

  // Moves the values that are used down, in order, so that operands still come first.
  void Compact() {
    std::vector<Value> kept;
    kept.reserve(number_.size() -
                 static_cast<size_t>(std::count(number_.begin(), number_.end(), kUnused)));
    for (size_t i = 0; i < number_.size(); ++i) {
      if (number_[i] == kUnused) continue;
      number_[i] = static_cast<int32_t>(kept.size());
      kept.push_back(std::move(program_.values[i]));
      VisitOperands(kept.back(), [&](ValueId& id) { Renumber(id); });
    }
    program_.values = std::move(kept);
  }

  static void VisitOperands(Value& value, Visitor visit) {
    if (auto* apply = absl::get_if<ApplyValue>(&value.node)) {
      for (ValueId& arg : apply->args) visit(arg);
    }
    if (auto* load = absl::get_if<LoadValue>(&value.node)) visit(load->access.fill);
  }

  void VisitRoots(Visitor visit) const {
    const auto visit_statement = [&](Statement& statement) {
      visit(statement.target.fill);
      visit(statement.value);
      visit(statement.position);
    };
    VisitStatements(program_, visit_statement);
  }

  Program& program_;
  std::vector<int32_t> number_;  // by value, new; kUnused
};

}  // namespace

void DropUnusedValues(Program& program) { ValueSweep(program).Run(); }

namespace {

void VisitInLoops(Item& item, LoopsAround& around,
                  absl::FunctionRef<void(Statement&, const LoopsAround&)> visit) {
  if (Statement* statement = item.As<Statement>()) return visit(*statement, around);
  Loop* loop = item.As<Loop>();
  if (loop == nullptr) return;
  around.push_back(loop);
  for (Item& inner : loop->body) VisitInLoops(inner, around, visit);
  around.pop_back();
}

}  // namespace

void VisitStatements(Item& item, absl::FunctionRef<void(Statement&, const LoopsAround&)> visit) {
  LoopsAround around;
  VisitInLoops(item, around, visit);
}

void VisitStatements(Scope& scope, absl::FunctionRef<void(Statement&)> visit) {
  LoopsAround around;
  for (Item& item : scope)
    VisitInLoops(item, around, [&](Statement& s, const LoopsAround&) { visit(s); });
}

void VisitStatements(Program& program, absl::FunctionRef<void(Statement&)> visit) {
  VisitStatements(program.body, visit);
}

void VisitScopes(Scope& scope, absl::FunctionRef<void(Scope&)> visit) {
  visit(scope);
  for (Item& item : scope) {
    if (Loop* loop = item.As<Loop>()) VisitScopes(loop->body, visit);
  }
}

VarReplacement::~VarReplacement() = default;

void VarReplacement::Set(int32_t var, IndexId by) { by_[var] = by; }

// The case of a lone index is taken before the memo: it is by far the most frequent one.
IndexId VarReplacement::operator()(IndexId e) {
  if (by_.empty() || !program_.pool.HasVar(e)) return e;
  if (const int64_t var = program_.pool.VarValue(e); var >= 0) {
    const auto by = by_.find(static_cast<int32_t>(var));
    return by == by_.end() ? e : by->second;
  }
  const auto it = memo_.find(e);
  if (it != memo_.end()) return it->second;
  const IndexId result =
      ReplaceLeaves(program_.pool, e, IndexKind::kVar, [&](int64_t var) -> absl::optional<IndexId> {
        const auto by = by_.find(static_cast<int32_t>(var));
        return by == by_.end() ? absl::nullopt : absl::make_optional(by->second);
      });
  memo_.emplace(e, result);
  return result;
}

}  // namespace nestor::loop
