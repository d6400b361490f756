// Partial evaluation of a loop's body by what is proven about its index: a piece of a split loop
// knows more than the whole, so conditions become true or false, masks vanish, choices become one
// of their arms. A walk that decides in terms of the original's indices and writes in terms of the
// copy's, since `ranges` knows the former.
//
//   for v in [0, 1)  y[v] = x[v - 1 | 0.0]                ->   y[v] = 0.0
//   for v in [1, N)  y[v] = where(v == 0, a, b) + x[v - 1 | 0.0]   ->   y[v] = b + x[v - 1]
//
// Facts about inner loops are left to the time when those are looked at: their bounds may change
// first.
#include "fusion/decided_copy.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "uops/graph.h"
#include "uops/index/operators.h"
#include "uops/scalar_op.h"

namespace nestor::loop {
namespace {

class Copier {
 public:
  Copier(Program& program, Ranges& ranges, bool fresh)
      : program_(program), ranges_(ranges), fresh_(fresh) {}

  absl::optional<Loop> Copy(const Loop& loop) {
    const int32_t var = fresh_ ? program_.AddVar(std::string(program_.vars[loop.var])) : loop.var;
    Loop copy{var, Renamed(loop.begin), Renamed(loop.end), loop.step, loop.attributes, {}};
    vars_[loop.var] = var;
    copy.body = Copy(loop.body);
    if (copy.body.empty()) return absl::nullopt;
    return copy;
  }

 private:
  // ---- Scopes

  // Empty where no statement is left.
  Scope Copy(const Scope& scope) {
    Scope copy;
    bool works = false;
    for (const Item& item : scope) {
      absl::optional<Item> copied =
          absl::visit([&](const auto& node) { return CopyItem(node); }, item.node);
      if (!copied) continue;
      works |= copied->As<Declaration>() == nullptr;
      copy.push_back(*std::move(copied));
    }
    return works ? std::move(copy) : Scope();
  }

  absl::optional<Item> CopyItem(const Loop& loop) {
    inner_[loop.var] = &loop;
    absl::optional<Loop> copy = Copy(loop);
    if (!copy) return absl::nullopt;
    return Item{*std::move(copy)};
  }

  absl::optional<Item> CopyItem(const Declaration& declaration) {
    if (!fresh_) return Item{declaration};
    const TensorId tensor = program_.AddTensor(TensorInfo(program_[declaration.tensor]));
    tensors_[declaration.tensor] = tensor;
    return Item{Declaration{tensor}};
  }

  // nullopt: the copy would do nothing.
  absl::optional<Item> CopyItem(const Statement& statement) {
    const auto target = CopyAccess(statement.target);
    if (!target) return absl::nullopt;
    const ValueId value = CopyValue(statement.value);
    if (ChangesNothing(program_, {statement.target, statement.op, value, {}})) return absl::nullopt;
    const ValueId position = statement.position.valid() ? CopyValue(statement.position) : ValueId();
    Statement copy{*target, statement.op, value, position};
    for (IndexId condition : statement.needed_if) {
      const auto decided = Decide(condition);
      if (decided == false) return absl::nullopt;
      if (!decided) copy.needed_if.push_back(Renamed(condition));
    }
    return Item{std::move(copy)};
  }

  // nullopt where it is always masked out.
  absl::optional<Access> CopyAccess(const Access& access) {
    Access copy{Renamed(access.tensor), {}, access.masked, access.fill, {}};
    for (IndexId condition : access.conditions) {
      const auto decided = Decide(condition);
      if (decided == false) return absl::nullopt;
      if (!decided) copy.conditions.push_back(Renamed(condition));
    }
    for (IndexId e : access.place) copy.place.push_back(Renamed(e));
    if (!access.masked) return copy;
    const absl::optional<bool> inside = IsInside(access);
    if (inside == false) return absl::nullopt;
    copy.masked = !copy.conditions.empty() || !inside;
    if (!copy.masked) copy.fill = ValueId();
    return copy;
  }

  // Expressions that hold an inner index are left until the inner loop is looked at.
  bool HasInner(IndexId e) const {
    std::vector<int64_t> vars;
    CollectVars(program_.pool, e, vars);
    return std::any_of(vars.begin(), vars.end(), [&](int64_t v) { return inner_.contains(v); });
  }

  absl::optional<bool> Decide(IndexId condition) {
    return HasInner(condition) ? absl::nullopt : ranges_.Decide(condition);
  }

  // Whether the place is within the tensor's shape; nullopt: neither is proven for all iterations.
  // One axis out of range is enough, and is looked for only where the axis is not in range: what
  // holds is proven sooner than what does not is given up.
  absl::optional<bool> IsInside(const Access& access) {
    const Shape& shape = program_[access.tensor].shape;
    absl::optional<bool> inside = true;
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      if (IsInRange(access.place[axis], shape[axis])) continue;
      if (IsOutOfRange(access.place[axis], shape[axis])) return false;
      inside = absl::nullopt;
    }
    return inside;
  }

  // A place that moves with an inner loop counts only if it is that loop's whole range.
  bool IsInRange(IndexId e, IndexId extent) {
    return IsWholeLoop(e, extent) || (!HasInner(e) && ranges_.InRange(e, extent));
  }
  bool IsOutOfRange(IndexId e, IndexId extent) {
    return !HasInner(e) &&
           (ranges_.Less(e, program_.pool.Const(0)) || ranges_.LessEqual(extent, e));
  }

  // An inner index over just that extent.
  bool IsWholeLoop(IndexId e, IndexId extent) const {
    const auto it = inner_.find(program_.pool.VarValue(e));
    return it != inner_.end() && program_.pool.IsConst(it->second->begin, 0) &&
           it->second->end == extent;
  }

  // ---- Values

  ValueId CopyValue(ValueId id) {
    const auto node = program_[id].node;  // a copy: values move as they are added
    return absl::visit([&](const auto& n) { return CopyNode(id, n); }, node);
  }

  ValueId CopyNode(ValueId id, const ConstantValue&) { return id; }
  ValueId CopyNode(ValueId id, const ParamValue&) { return id; }
  ValueId CopyNode(ValueId, const IndexValue& v) {
    return program_.AddIndexValue(Renamed(v.index));
  }

  ValueId CopyNode(ValueId, const LoadValue& v) {
    const auto access = CopyAccess(v.access);
    return access ? program_.AddLoad(*access) : v.access.fill;
  }

  // A select whose condition is decided is the branch that it takes.
  ValueId CopyNode(ValueId id, const ApplyValue& v) {
    if (v.op == ScalarOp::kSelect) {
      const auto condition = ConditionOf(program_, v.args[0]);
      const auto decided = condition ? Decide(*condition) : absl::nullopt;
      if (decided) return CopyValue(v.args[*decided ? 1 : 2]);
    }
    std::vector<ValueId> args;
    for (ValueId arg : v.args) args.push_back(CopyValue(arg));
    return program_.AddApply(v.op, args, program_[id].type);
  }

  // ---- Names

  TensorId Renamed(TensorId tensor) const {
    const auto it = tensors_.find(tensor);
    return it == tensors_.end() ? tensor : it->second;
  }

  IndexId Renamed(IndexId e) {
    if (!fresh_) return e;
    return CopyIndex(
        program_.pool, e, program_.pool,
        [&](const IndexNode& node, absl::Span<const IndexId> args) -> absl::optional<IndexId> {
          const auto var = vars_.find(node.value);
          if (node.kind == IndexKind::kVar && var != vars_.end())
            return program_.pool.Var(var->second);
          if (node.kind != IndexKind::kLoad) return absl::nullopt;
          const TensorId tensor = Renamed(TensorId{static_cast<int32_t>(node.value)});
          return program_.pool.Load(tensor.value, args);
        });
  }

  Program& program_;
  Ranges& ranges_;
  const bool fresh_;
  absl::flat_hash_map<int64_t, const Loop*> inner_;  // by index
  absl::flat_hash_map<int64_t, int64_t> vars_;
  absl::flat_hash_map<TensorId, TensorId> tensors_;
};

// The index of an index value or an i64 number.
absl::optional<IndexId> IndexOf(Program& program, ValueId value) {
  const auto& node = program[value].node;
  if (const auto* index = absl::get_if<IndexValue>(&node)) return index->index;
  const auto* constant = absl::get_if<ConstantValue>(&node);
  if (constant == nullptr || program[value].type != DType::kI64) return absl::nullopt;
  return program.pool.Const(constant->value.ToInt());
}

}  // namespace

// (Elsewhere a sum may be -0, and -0 + 0 is 0.)
bool ChangesNothing(const Program& program, const Statement& statement) {
  const auto* constant = absl::get_if<ConstantValue>(&program[statement.value].node);
  const bool accumulates = program[statement.target.tensor].storage == Storage::kAccumulator;
  if (constant == nullptr || !accumulates || IsArg(*statement.op)) return false;
  return constant->value.bits == Identity(*statement.op, program[statement.value].type).bits;
}

// A bool value that compares indices, as a condition: where(index(i) < N, ..). It must not gather,
// since a condition that has no value counts as false, and a value does not.
absl::optional<IndexId> ConditionOf(Program& program, ValueId value) {
  const auto* apply = absl::get_if<ApplyValue>(&program[value].node);
  if (apply == nullptr) return absl::nullopt;
  const ApplyValue node = *apply;
  const DType operand_type = program[node.args.back()].type;
  const InfixOperator* const infix = InfixOf(node.op, operand_type);
  const bool negates = node.op == ScalarOp::kNot && operand_type == DType::kBool;
  if (!negates && (infix == nullptr || infix->IsArithmetic())) return absl::nullopt;
  const bool compares = !negates && infix->Compares();
  IndexList operands;
  for (ValueId arg : node.args) {
    const auto operand = compares ? IndexOf(program, arg) : ConditionOf(program, arg);
    if (!operand || program.pool.HasLoad(*operand)) return absl::nullopt;
    operands.push_back(*operand);
  }
  if (negates) return program.pool.Not(operands[0]);
  return CombineIndices(program.pool, *infix, operands[0], operands[1]);
}

absl::optional<Loop> DecidedCopy(Program& program, Ranges& ranges, const Loop& loop, bool fresh) {
  return Copier(program, ranges, fresh).Copy(loop);
}

absl::optional<Loop> FreshCopy(Program& program, Ranges& ranges, const Loop& loop) {
  ranges.Enter(loop);
  absl::optional<Loop> copy = DecidedCopy(program, ranges, loop, /*fresh=*/true);
  ranges.Leave();
  return copy;
}

}  // namespace nestor::loop
