// A walk over the loop's body that looks for what differs from lane to lane in a way
// that vectors cannot follow.
#include "jit/codegen/lanes.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "jit/codegen/operations.h"
#include "jit/codegen/scalar_rows.h"

namespace nestor::jit {
namespace {

using loop::Access;
using loop::Item;
using loop::Program;
using loop::Scope;
using loop::Statement;
using loop::Value;
using loop::ValueId;

bool DependsOn(const Program& program, IndexId e, int32_t var) {
  if (!program.pool.HasVar(e)) return false;
  std::vector<int64_t> vars;
  CollectVars(program.pool, e, vars);
  return std::binary_search(vars.begin(), vars.end(), int64_t{var});
}

class LaneCheck {
 public:
  LaneCheck(Program& program, loop::Ranges& ranges, const loop::Loop& loop)
      : program_(program), ranges_(ranges), var_(loop.var) {
    VisitItems(loop.body, [&](const Item& item) {
      const auto* declaration = item.As<loop::Declaration>();
      if (declaration != nullptr) own_.insert(declaration->tensor);
    });
  }

  bool Body(const loop::Loop& loop) {
    ranges_.Enter(loop);
    const bool good = std::all_of(loop.body.begin(), loop.body.end(), [&](const Item& item) { return One(item); });
    ranges_.Leave();
    return good;
  }

 private:
  bool One(const Item& item) {
    if (const auto* loop = item.As<loop::Loop>()) {
      return !Differs(loop->begin) && !Differs(loop->end) && !loop->attributes.parallel && Body(*loop);
    }
    if (const auto* statement = item.As<Statement>()) return Stores(*statement);
    return program_[item.As<loop::Declaration>()->tensor].shape.empty();
  }

  bool Stores(const Statement& statement) {
    if (!Place(statement.target)) return false;
    return Values(statement.value) && (!statement.position.valid() || Values(statement.position));
  }

  bool Values(ValueId root) {
    bool good = true;
    VisitValues(program_, root, [&](ValueId, const Value& value) {
      if (const auto* load = absl::get_if<loop::LoadValue>(&value.node)) good = good && Place(load->access);
      if (const auto* index = absl::get_if<loop::IndexValue>(&value.node)) good = good && Linear(index->index);
    });
    return good;
  }

  // Whether e may differ from lane to lane: it holds the loop's index, or loads what
  // each lane has of its own.
  bool Differs(IndexId e) const {
    if (DependsOn(program_, e, var_)) return true;
    if (!program_.pool.HasLoad(e)) return false;
    bool differs = false;
    VisitIndex(program_.pool, e, [&](IndexId, const IndexNode& node) {
      differs |= node.kind == IndexKind::kLoad && own_.contains(loop::TensorId{static_cast<int32_t>(node.value)});
    });
    return differs;
  }

  bool Linear(IndexId e) {
    if (!Differs(e)) return true;
    const auto coefficient = CoefficientOf(program_, e, var_);
    return coefficient && !program_.pool.HasLoad(e) && program_.pool.ConstValue(*coefficient).has_value();
  }

  bool Place(const Access& access) {
    for (IndexId condition : access.conditions) {
      if (Differs(condition)) return false;
    }
    const Shape& shape = program_[access.tensor].shape;
    for (size_t axis = 0; axis < access.place.size(); ++axis) {
      const IndexId e = access.place[axis];
      if (!Differs(e)) continue;
      if (program_.pool.HasLoad(e) || !CoefficientOf(program_, e, var_) || !InRange(access, e, shape[axis])) return false;
    }
    return true;
  }

  bool InRange(const Access& access, IndexId e, IndexId extent) {
    for (IndexId condition : access.conditions) ranges_.Assume(condition);
    const bool inside = ranges_.NonNegative(e) && ranges_.Less(e, extent);
    for (size_t i = 0; i < access.conditions.size(); ++i) ranges_.Forget();
    return inside;
  }

  Program& program_;
  loop::Ranges& ranges_;
  const int32_t var_;
  absl::flat_hash_set<loop::TensorId> own_;  // declared in the loop
};

// The widest lanes that computing the value needs.
int WidestLane(const Program& program, ValueId root) {
  int bytes = 4;
  VisitValues(program, root, [&](ValueId, const Value& value) {
    bytes = std::max(bytes, LaneBytes(LaneOf(value.type)));
    const auto* apply = absl::get_if<loop::ApplyValue>(&value.node);
    if (apply == nullptr) return;
    bytes = std::max(bytes, LaneBytesOf(apply->op, program[apply->args.back()].type, value.type));
  });
  return bytes;
}

}  // namespace

absl::optional<IndexId> CoefficientOf(Program& program, IndexId e, int32_t var) {
  IndexPool& pool = program.pool;
  if (!DependsOn(program, e, var)) return pool.Const(0);
  if (!pool.IsAffine(e) || pool.HasLoad(e) || IsCondition(pool[e].kind)) return absl::nullopt;
  const auto polynomial = Polynomial::Of(pool, e);
  if (!polynomial) return absl::nullopt;
  IndexId sum = pool.Const(0);
  for (const Polynomial::Term& term : polynomial->terms()) {
    IndexId factor = pool.Const(term.coefficient);
    bool moves = false;
    for (IndexId atom : term.atoms) {
      if (pool.VarValue(atom) == var) moves = true;
      else if (DependsOn(program, atom, var)) return absl::nullopt;
      else factor = pool.Mul(factor, atom);
    }
    if (moves) sum = pool.Add(sum, factor);
  }
  return sum;
}

bool RunsInLanes(Program& program, loop::Ranges& ranges, const loop::Loop& loop) {
  return loop.step == 1 && LaneCheck(program, ranges, loop).Body(loop);
}

int LanesOf(const Program& program, const loop::Loop& loop, Isa isa) {
  int bytes = 4;
  const auto look = [&](const Item& item) {
    const auto* statement = item.As<Statement>();
    if (statement == nullptr) return;
    bytes = std::max(bytes, WidestLane(program, statement->value));
    if (statement->op) {
      const DType type = program[statement->target.tensor].type;
      if (!IsArg(*statement->op)) bytes = std::max(bytes, LaneBytesOf(StepOp(*statement->op), type, type));
    }
    if (statement->position.valid()) bytes = 8;
  };
  VisitItems(loop.body, look);
  return VectorBytes(isa) / bytes;
}

namespace {

void FindIn(Program& program, loop::Ranges& ranges, Isa isa, const Scope& scope, LaneLoops& found) {
  for (const Item& item : scope) {
    const auto* loop = item.As<loop::Loop>();
    if (loop == nullptr) continue;
    if (loop->attributes.vector && RunsInLanes(program, ranges, *loop)) {
      found.emplace(loop->var, LanesOf(program, *loop, isa));
      continue;
    }
    ranges.Enter(*loop);
    FindIn(program, ranges, isa, loop->body, found);
    ranges.Leave();
  }
}

}  // namespace

LaneLoops FindLaneLoops(Program& program, loop::Ranges& ranges, Isa isa) {
  LaneLoops found;
  for (const loop::Block& block : program.blocks) FindIn(program, ranges, isa, block.body, found);
  return found;
}

}  // namespace nestor::jit
