// Composes the value of a temporary with the place of a load: with t[i, j] = E(i, j), the load t[e,
// f] is E(e, f), forward substitution of an array element. Index variables are replaced at once, so
// that no capture can occur. Masks make it harder:
//
// A masked load t[e | fill if c] holds E(e) where c holds and e lies in t, else the fill. Where E
// is itself one load with no mask or the same fill, that is one load with all the conditions; else
// where(c and e in t, E(e), fill), in which E's loads take the conditions too, as `where` evaluates
// both branches.
//
// That e lies in t needs no condition along an axis whose index E passes on, whole, to an axis of
// the same extent of a tensor that it reads.
//
//   t[i] = x[i - 1 | 0]   y[j] = t[2*j]          ->   y[j] = x[2*j - 1 | 0]
//   t[i] = exp(x[i])      y[j] = t[j - 1 | 0]    ->   where(0 <= j - 1 < N, exp(x[j - 1 | 0]), 0)
#include "fusion/composition.h"

#include <algorithm>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "fusion/multiples.h"
#include "loop_ir/dependence.h"
#include "loop_ir/rewrite.h"
#include "uops/index/operators.h"

namespace nestor::loop {
namespace {

// ---- Finding a definition

// In operations, where a division or a transcendental counts as several; casts of constants and
// indices are free.
int CostOf(const Program& program, ValueId value) {
  int cost = 0;
  VisitValues(program, value, [&](ValueId, const Value& v) {
    const auto* apply = absl::get_if<ApplyValue>(&v.node);
    if (apply == nullptr) return;
    const auto& operand = program[apply->args[0]].node;
    const bool computes = apply->op != ScalarOp::kCast ||
                          absl::holds_alternative<LoadValue>(operand) ||
                          absl::holds_alternative<ApplyValue>(operand);
    const ScalarOpRow& row = Row(apply->op);
    const bool slow = row.body != nullptr || (row.traits & kUnbounded) != 0;
    cost += computes * (slow ? kSlowOp : 1);
  });
  return cost;
}

// The path of loops to the only statement that writes `tensor`.
struct Path {
  absl::InlinedVector<const Loop*, 4> loops;
  const Item* write = nullptr;
  bool is_alone = true;

  const Statement& statement() const { return *write->As<Statement>(); }
};

// Depth first; the path is alone if each of its loops holds nothing else.
bool FindWrite(const Item& item, TensorId tensor, Path& path) {
  if (const auto* statement = item.As<Statement>()) {
    if (statement->target.tensor != tensor) return false;
    path.write = &item;
    return true;
  }
  const Loop* loop = item.As<Loop>();
  if (loop == nullptr) return false;
  path.loops.push_back(loop);
  for (const Item& inner : loop->body) {
    if (!FindWrite(inner, tensor, path)) continue;
    path.is_alone = path.is_alone && loop->body.size() == 1;
    return true;
  }
  path.loops.pop_back();
  return false;
}

// The axes are indexed by the path's loops, each over the whole axis.
bool CoversTensor(const Program& program, const Path& path, Definition& definition) {
  const Access& target = path.statement().target;
  if (target.masked || path.statement().op || target.place.size() != path.loops.size())
    return false;
  const auto& shape = program[target.tensor].shape;
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    const int64_t var = program.pool.VarValue(target.place[axis]);
    const auto loop = std::find_if(path.loops.begin(), path.loops.end(),
                                   [&](const Loop* l) { return l->var == var; });
    if (loop == path.loops.end() || !program.pool.IsConst((*loop)->begin, 0) ||
        (*loop)->end != shape[axis] || (*loop)->step != 1) {
      return false;
    }
    if (std::find(definition.vars.begin(), definition.vars.end(), var) != definition.vars.end())
      return false;
    definition.vars.push_back(static_cast<int32_t>(var));
  }
  return true;
}

std::vector<TensorId> ReadsOf(const Program& program, const Item& write) {
  std::vector<TensorId> reads;
  VisitAccesses(program, write, [&](TensorId tensor, absl::Span<const IndexId>, AccessKind kind) {
    const bool known = std::find(reads.begin(), reads.end(), tensor) != reads.end();
    if (kind == AccessKind::kRead && !known) reads.push_back(tensor);
  });
  return reads;
}

int CountWrites(const Item& item, TensorId tensor) {
  int count = 0;
  VisitItems(item, [&](const Item& inner) {
    const auto* statement = inner.As<Statement>();
    count += statement != nullptr && statement->target.tensor == tensor;
  });
  return count;
}

// Whether one of `tensors` is declared or changed by the item: after the item it does not exist, or
// has another value.
bool IsLocal(const Item& item, absl::Span<const TensorId> tensors) {
  bool local = false;
  VisitItems(item, [&](const Item& inner) {
    const auto among = [&](TensorId t) {
      return std::find(tensors.begin(), tensors.end(), t) != tensors.end();
    };
    const auto* declaration = inner.As<Declaration>();
    const auto* statement = inner.As<Statement>();
    local = local || (declaration != nullptr && among(declaration->tensor)) ||
            (statement != nullptr && among(statement->target.tensor));
  });
  return local;
}

// ---- Composing

class Composer {
 public:
  Composer(Program& program, const Definition& definition, absl::Span<const IndexId> place)
      : program_(program), definition_(definition), place_(place), replace_(program) {
    for (size_t axis = 0; axis < place.size(); ++axis)
      replace_.Set(definition.vars[axis], place[axis]);
  }

  // A masked read of a plain load is a load with both masks; of anything else, a select.
  absl::optional<ValueId> Run(const Access& access) {
    const ValueId value =
        RewriteIndices(program_, definition_.value, [&](IndexId e) { return replace_(e); });
    if (!access.masked) return value;
    if (const auto* load = absl::get_if<LoadValue>(&program_[value].node)) {
      const Access inner = load->access;
      if (!inner.masked || SameFill(inner.fill, access.fill)) return MaskedLoad(inner, access);
    }
    return Guarded(value, access);
  }

 private:
  IndexPool& pool() { return program_.pool; }

  // By bits: 0.0 and -0.0 are different fills.
  bool SameFill(ValueId a, ValueId b) const {
    if (a == b) return true;
    const auto* x = absl::get_if<ConstantValue>(&program_[a].node);
    const auto* y = absl::get_if<ConstantValue>(&program_[b].node);
    if (x != nullptr && y != nullptr)
      return x->value.bits == y->value.bits && x->value.type == y->value.type;
    const auto* p = absl::get_if<ParamValue>(&program_[a].node);
    const auto* q = absl::get_if<ParamValue>(&program_[b].node);
    return p != nullptr && q != nullptr && p->name == q->name;
  }

  // The load has the fill of the outer one, and holds where both do. The outer conditions come
  // first, as the inner ones were only asked where these hold.
  ValueId MaskedLoad(Access inner, const Access& outer) {
    IndexList conditions = outer.conditions;
    AddRange(conditions, &inner);
    inner.masked = true;
    inner.fill = outer.fill;
    inner.conditions.insert(inner.conditions.begin(), conditions.begin(), conditions.end());
    return program_.AddLoad(std::move(inner));
  }

  // Adds conditions that the place is in the tensor, except along axes that `inner`, a load of the
  // definition's value, masks as well.
  void AddRange(IndexList& conditions, const Access* inner) {
    const auto& shape = program_[definition_.tensor].shape;
    for (size_t axis = 0; axis < place_.size(); ++axis) {
      if (inner != nullptr && MasksAlike(*inner, axis)) continue;
      const IndexId e = place_[axis], extent = shape[axis];
      conditions.push_back(pool().Condition(IndexKind::kLe, pool().Const(0), e));
      conditions.push_back(pool().Condition(IndexKind::kLt, e, extent));
    }
  }

  bool MasksAlike(const Access& inner, size_t axis) const {
    const auto* original = absl::get_if<LoadValue>(&program_[definition_.value].node);
    if (original == nullptr) return false;
    const auto& shape = program_[inner.tensor].shape;
    for (size_t j = 0; j < shape.size(); ++j) {
      const bool whole =
          program_.pool.VarValue(original->access.place[j]) == definition_.vars[axis];
      if (whole && shape[j] == program_[definition_.tensor].shape[axis]) return true;
    }
    return false;
  }

  // where(the access is in range, value, fill).
  absl::optional<ValueId> Guarded(ValueId value, const Access& access) {
    IndexList conditions = access.conditions;
    AddRange(conditions, nullptr);
    absl::optional<ValueId> guard;
    for (IndexId condition : conditions) {
      const absl::optional<ValueId> term = AsValue(condition);
      if (!term) return absl::nullopt;
      guard = guard ? program_.AddApply(ScalarOp::kAnd, {*guard, *term}) : *term;
    }
    if (!guard) return value;
    if (!HasValueEverywhere(value)) return absl::nullopt;
    const ValueId safe = RewriteValues(program_, value, [&](ValueId id) -> absl::optional<ValueId> {
      const auto* load = absl::get_if<LoadValue>(&program_[id].node);
      if (load == nullptr || (load->access.place.empty() && IsInput(load->access.tensor)))
        return absl::nullopt;
      Access masked = load->access;
      if (!masked.masked) masked.fill = program_.AddConstant(Scalar::Zero(program_[id].type));
      masked.masked = true;
      masked.conditions.insert(masked.conditions.begin(), conditions.begin(), conditions.end());
      return program_.AddLoad(std::move(masked));
    });
    return program_.AddApply(ScalarOp::kSelect, {*guard, safe, access.fill});
  }

  bool IsInput(TensorId tensor) const { return program_[tensor].storage == Storage::kInput; }

  // Loads can be masked; an index value is computed whether it is chosen or not.
  bool HasValueEverywhere(ValueId value) {
    bool total = true;
    VisitValues(program_, value, [&](ValueId, const Value& v) {
      const auto* index = absl::get_if<IndexValue>(&v.node);
      total = total && (index == nullptr || IsTotal(index->index));
    });
    return total;
  }

  // A condition as a bool. Its numbers must have a value everywhere, as an
  // IndexValue's must: no gathered values, no division by what might be zero.
  absl::optional<ValueId> AsValue(IndexId condition) {
    const IndexNode node = pool()[condition];
    if (node.kind == IndexKind::kConst)
      return program_.AddConstant(Scalar::Of(DType::kBool, node.value != 0));
    absl::InlinedVector<ValueId, 2> args;
    for (IndexId arg : node.args) {
      if (IsCondition(node.kind) && node.kind < IndexKind::kAnd) {
        if (!IsTotal(arg)) return absl::nullopt;
        args.push_back(program_.AddIndexValue(arg));
      } else {
        const auto value = AsValue(arg);
        if (!value) return absl::nullopt;
        args.push_back(*value);
      }
    }
    const absl::optional<ScalarOp> op = ScalarOpOf(node.kind);
    if (!op) return absl::nullopt;
    return program_.AddApply(*op, args);
  }

  bool IsTotal(IndexId e) {
    if (!pool().IsAffine(e)) return false;
    bool total = true;
    VisitIndex(pool(), e, [&](IndexId, const IndexNode& node) {
      const bool divides = node.kind == IndexKind::kDiv || node.kind == IndexKind::kMod;
      if (!divides) return;
      const auto divisor = pool().ConstValue(node.args[1]);
      total = total && divisor && *divisor > 0;
    });
    return total;
  }

  Program& program_;
  const Definition& definition_;
  absl::Span<const IndexId> place_;
  VarReplacement replace_;
};

}  // namespace

// There is one if a single statement writes every element of the tensor, from what is known outside
// of the item.
absl::optional<Definition> DefinitionOf(const Program& program, const Item& item, TensorId tensor) {
  Path path;
  if (CountWrites(item, tensor) != 1 || !FindWrite(item, tensor, path)) return absl::nullopt;
  Definition definition;
  definition.tensor = tensor;
  definition.value = path.statement().value;
  definition.is_alone = path.is_alone;
  if (!CoversTensor(program, path, definition)) return absl::nullopt;
  definition.reads = ReadsOf(program, *path.write);
  if (IsLocal(item, definition.reads)) return absl::nullopt;
  definition.cost = CostOf(program, definition.value);
  return definition;
}

namespace {

// Whether an index that the definition multiplies by much would become another expression.
bool MovesLargeProduct(const Program& program, const Definition& definition,
                       absl::Span<const IndexId> place) {
  const Item value{Statement{{definition.tensor}, absl::nullopt, definition.value, ValueId()}};
  for (size_t axis = 0; axis < place.size(); ++axis) {
    if (loop::MovesLargeProduct(program, value, definition.vars[axis], place[axis])) return true;
  }
  return false;
}

}  // namespace

// Fails late: the range of what is read, and so whether it fits, is known only when it is built.
absl::optional<ValueId> Compose(Program& program, const Definition& definition,
                                const Access& access) {
  if (MovesLargeProduct(program, definition, access.place)) return absl::nullopt;
  const auto size = static_cast<int64_t>(program.values.size());
  const absl::optional<ValueId> value = Composer(program, definition, access.place).Run(access);
  // The values that were built before it turned out that there is no expression are unused.
  if (!value) program.values.erase(program.values.begin() + size, program.values.end());
  return value;
}

// An index must keep failing where it failed, so only plain copies of equal shape are put in.
absl::optional<IndexId> ComposeIndex(Program& program, const Definition& definition,
                                     absl::Span<const IndexId> place) {
  VarReplacement replace(program);
  for (size_t axis = 0; axis < place.size(); ++axis)
    replace.Set(definition.vars[axis], place[axis]);
  const Value& value = program[definition.value];
  // A place outside the temporary has no value; that must stay so.
  const auto& shape = program[definition.tensor].shape;
  if (const auto* load = absl::get_if<LoadValue>(&value.node)) {
    const Access& inner = load->access;
    if (inner.masked || inner.place.size() != place.size()) return absl::nullopt;
    for (size_t axis = 0; axis < place.size(); ++axis) {
      if (program.pool.VarValue(inner.place[axis]) != definition.vars[axis]) return absl::nullopt;
      if (program[inner.tensor].shape[axis] != shape[axis]) return absl::nullopt;
    }
    return program.pool.Load(inner.tensor.value, place);
  }
  if (const auto* index = absl::get_if<IndexValue>(&value.node)) {
    if (!place.empty()) return absl::nullopt;
    return index->index;
  }
  return absl::nullopt;
}

}  // namespace nestor::loop
