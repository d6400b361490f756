// A walk over the loop's body that looks for what differs from lane to lane in a way
// that vectors cannot follow.
#include "jit/codegen/lanes.h"

#include <algorithm>
#include <utility>

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

bool ProveInRange(Program& program, loop::Ranges& ranges, int32_t loop, const Access& access, Proofs& proofs) {
  const auto [known, is_new] = proofs.axes_in_range.try_emplace(Proofs::KeyOf(loop, access));
  if (is_new) {
    for (IndexId condition : access.conditions) ranges.Assume(condition);
    for (size_t axis = 0; axis < access.place.size(); ++axis) {
      known->second.push_back(ranges.InRange(access.place[axis], program[access.tensor].shape[axis]));
    }
    for (size_t i = 0; i < access.conditions.size(); ++i) ranges.Forget();
  }
  return Proofs::All(known->second);
}

// Whether CoefficientOf has a value.
bool IsLinearIn(const IndexPool& pool, IndexId e, int32_t var) {
  if (pool.VarValue(e) == var || !HoldsVar(pool, e, var)) return true;
  const IndexNode& node = pool[e];
  return pool.IsAffine(e) && (node.kind == IndexKind::kAdd || node.kind == IndexKind::kMul) &&
         IsLinearIn(pool, node.args[0], var) && IsLinearIn(pool, node.args[1], var);
}

class LaneCheck {
 public:
  // Remembers in `proofs`, if it is given, what was proven on the way.
  LaneCheck(Program& program, loop::Ranges& ranges, const loop::Loop& loop, Proofs* proofs = nullptr)
      : program_(program), ranges_(ranges), var_(loop.var), proofs_(proofs) {
    VisitItems(loop.body, [&](const Item& item) {
      const auto* declaration = item.As<loop::Declaration>();
      if (declaration != nullptr) own_.insert(declaration->tensor);
    });
  }

  bool Body(const loop::Loop& loop) {
    const int32_t around = std::exchange(innermost_, loop.var);
    ranges_.Enter(loop);
    const bool good = std::all_of(loop.body.begin(), loop.body.end(), [&](const Item& item) { return One(item); });
    ranges_.Leave();
    innermost_ = around;
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
    if (HoldsVar(program_.pool, e, var_)) return true;
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
    const bool proven = proofs_ != nullptr && ProveInRange(program_, ranges_, innermost_, access, *proofs_);
    if (proven && IsLinear(access)) return true;
    const Shape& shape = program_[access.tensor].shape;
    for (size_t axis = 0; axis < access.place.size(); ++axis) {
      const IndexId e = access.place[axis];
      if (!Differs(e)) continue;
      if (program_.pool.HasLoad(e) || !IsLinearIn(program_.pool, e, var_) || !InRange(access, e, shape[axis])) return false;
    }
    return true;
  }

  bool IsLinear(const Access& access) {
    return std::all_of(access.place.begin(), access.place.end(), [&](IndexId e) {
      return !Differs(e) || (!program_.pool.HasLoad(e) && IsLinearIn(program_.pool, e, var_));
    });
  }

  bool InRange(const Access& access, IndexId e, IndexId extent) {
    for (IndexId condition : access.conditions) ranges_.Assume(condition);
    const bool inside = ranges_.InRange(e, extent);
    for (size_t i = 0; i < access.conditions.size(); ++i) ranges_.Forget();
    return inside;
  }

  Program& program_;
  loop::Ranges& ranges_;
  const int32_t var_;
  int32_t innermost_ = -1;
  Proofs* const proofs_;
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
  if (pool.VarValue(e) == var) return pool.Const(1);
  if (!HoldsVar(pool, e, var)) return pool.Const(0);
  const IndexKind kind = pool[e].kind;
  if (!pool.IsAffine(e) || (kind != IndexKind::kAdd && kind != IndexKind::kMul)) return absl::nullopt;
  const IndexId a = pool[e].args[0], b = pool[e].args[1];
  const auto of_a = CoefficientOf(program, a, var), of_b = CoefficientOf(program, b, var);
  if (!of_a || !of_b) return absl::nullopt;
  if (kind == IndexKind::kAdd) return pool.Add(*of_a, *of_b);
  // Of an affine product one factor holds no loop index.
  return pool.HasVar(a) ? pool.Mul(*of_a, b) : pool.Mul(a, *of_b);
}

bool LoadsOnlyInputs(const Program& program, IndexId e) {
  bool inputs = true;
  VisitIndex(program.pool, e, [&](IndexId, const IndexNode& node) {
    if (node.kind != IndexKind::kLoad) return;
    inputs = inputs && program[loop::TensorId{static_cast<int32_t>(node.value)}].storage == loop::Storage::kInput;
  });
  return inputs;
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

class ProofWalk {
 public:
  ProofWalk(Program& program, Isa isa) : program_(program), isa_(isa), ranges_(program) {}

  Proofs Run() {
    for (const loop::Block& block : program_.blocks) Walk(block.body);
    return std::move(proofs_);
  }

 private:
  void Walk(const Scope& scope) {
    for (const Item& item : scope) {
      if (const auto* loop = item.As<loop::Loop>()) Enter(*loop);
      if (const auto* statement = item.As<Statement>()) Prove(*statement);
    }
  }

  void Enter(const loop::Loop& loop) {
    const bool in_lanes =
        loop.attributes.vector && loop.step == 1 && LaneCheck(program_, ranges_, loop, &proofs_).Body(loop);
    if (in_lanes) {
      proofs_.lane_loops.emplace(loop.var, LanesOf(program_, loop, isa_));
      return;
    }
    const int32_t around = std::exchange(innermost_, loop.var);
    ranges_.Enter(loop);
    Walk(loop.body);
    ranges_.Leave();
    innermost_ = around;
  }

  void Prove(const Statement& statement) {
    ProveInRange(program_, ranges_, innermost_, statement.target, proofs_);
    for (ValueId root : {statement.value, statement.position}) {
      if (!root.valid()) continue;
      VisitValues(program_, root, [&](ValueId, const Value& value) {
        const auto* load = absl::get_if<loop::LoadValue>(&value.node);
        if (load != nullptr) ProveInRange(program_, ranges_, innermost_, load->access, proofs_);
      });
    }
  }

  Program& program_;
  const Isa isa_;
  loop::Ranges ranges_;
  int32_t innermost_ = -1;
  Proofs proofs_;
};

}  // namespace

Proofs::Key Proofs::KeyOf(int32_t loop, const Access& access) {
  absl::InlinedVector<IndexId, 4> key(access.place.begin(), access.place.end());
  key.insert(key.end(), access.conditions.begin(), access.conditions.end());
  return {loop, access.tensor, std::move(key)};
}

Proofs::Axes Proofs::AxesInRange(int32_t loop, const Access& access) const {
  const auto known = axes_in_range.find(KeyOf(loop, access));
  return known == axes_in_range.end() ? Axes(access.place.size(), false) : known->second;
}

Proofs ProofsOf(Program& program, Isa isa) { return ProofWalk(program, isa).Run(); }

}  // namespace nestor::jit
