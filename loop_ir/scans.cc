// Those tensors that a loop assigns and that can be reached from each other by reads are one
// recurrence: a strongly connected component of the graph of reads. Where each assignment among
// them reads one element of them, they are one cycle, and the value comes back to itself along one
// path of operations:
//
//   h[t] = c[t] + 1   c[t] = h[t - 1] * a[t]      cycle c -> h -> c, path *, +: linear
//
// If the path only adds, or only multiplies, the recurrence is a sum (a product) of its terms,
// whose order may change; if it does both, steps are affine maps, which compose (Blelloch, "Prefix
// sums and their applications", 1990, sec. 1.4).
#include "loop_ir/scans.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "loop_ir/dependence.h"
#include "loop_ir/steps.h"

namespace nestor::loop {
namespace {

// The operation by which a value goes on from step to step; a difference is a sum of a negative.
absl::optional<ScalarOp> PathOp(ScalarOp op) {
  switch (op) {
    case ScalarOp::kSub: return ScalarOp::kAdd;
    case ScalarOp::kAdd:
    case ScalarOp::kMul:
    case ScalarOp::kMax:
    case ScalarOp::kMin: return op;
    default: return absl::nullopt;
  }
}

// Whether a path may continue with the operation: with the same one as its terms, or with sums and
// products mixed.
bool MayStandTogether(const ScanPath& path, ScalarOp op) {
  const auto is_linear = [](ScalarOp one) {
    return one == ScalarOp::kAdd || one == ScalarOp::kMul;
  };
  return absl::c_all_of(path.terms, [&](const ScanPath::Term& term) {
    return term.op == op || (is_linear(term.op) && is_linear(op));
  });
}

// The tensors that the body of a loop assigns, and which tensors each assignment reads.
class Assignments {
 public:
  using Tensors = absl::flat_hash_set<TensorId>;

  Assignments(const Program& program, const Loop& loop) {
    const Footprint footprint = FootprintOf(program, loop.body);
    VisitItems(loop.body, [&](const Item& item) {
      const auto* statement = item.As<Statement>();
      if (statement == nullptr) return;
      const TensorId target = statement->target.tensor;
      const bool is_first = statements_.emplace(target, statement).second;
      if (!is_first || statement->op) others_.insert(target);
      Tensors& reads = reads_[target];
      VisitAccesses(program, item,
                    [&](TensorId tensor, absl::Span<const IndexId>, AccessKind kind) {
                      if (kind == AccessKind::kRead) reads.insert(tensor);
                    });
    });
  }

  // The statements of the cycle that the tensor is on; none if it is on no cycle in which each
  // tensor is assigned once.
  std::vector<const Statement*> CycleOf(TensorId tensor) const {
    const Tensors reached = Reached(tensor);
    std::vector<const Statement*> cycle;
    if (!reached.contains(tensor)) return cycle;
    for (TensorId other : reached) {
      if (!Reached(other).contains(tensor)) continue;
      if (others_.contains(other)) return {};
      cycle.push_back(statements_.at(other));
    }
    return cycle;
  }

  const absl::flat_hash_map<TensorId, const Statement*>& statements() const { return statements_; }

 private:
  // The tensors that the loop assigns and that can be reached from the tensor by reads.
  Tensors Reached(TensorId tensor) const {
    Tensors reached;
    std::vector<TensorId> open = {tensor};
    while (!open.empty()) {
      const TensorId from = open.back();
      open.pop_back();
      for (TensorId to : reads_.at(from)) {
        if (reads_.contains(to) && reached.insert(to).second) open.push_back(to);
      }
    }
    return reached;
  }

  absl::flat_hash_map<TensorId, const Statement*> statements_;  // one for each
  absl::flat_hash_map<TensorId, Tensors> reads_;
  Tensors others_;  // assigned more than once, or accumulated into
};

// Whether the statement reads one element of `tensors`, at a place without gathered indices, and a
// path leads from there to its value.
bool IsLink(const Program& program, const Statement& statement, const Assignments::Tensors& tensors,
            ScanPath& path) {
  int reads = 0;
  Item item;
  item.node = statement;
  VisitAccesses(program, item, [&](TensorId tensor, absl::Span<const IndexId>, AccessKind kind) {
    reads += kind == AccessKind::kRead && tensors.contains(tensor);
  });
  DependentValues dependent(program);
  if (reads != 1 || !dependent.Add(statement.value, tensors)) return false;
  if (!FollowPath(program, statement.value, dependent, path)) return false;
  const Access& access = absl::get<LoadValue>(program[path.end].node).access;
  const auto gathers = [&](IndexId e) { return program.pool.HasLoad(e); };
  return absl::c_none_of(access.place, gathers) && absl::c_none_of(access.conditions, gathers);
}

}  // namespace

// Operands come before the values that use them, so one walk is enough.
bool DependentValues::Add(ValueId value, const absl::flat_hash_set<TensorId>& tensors) {
  VisitValues(program_, value, [&](ValueId id, const Value& node) {
    bool depends = false;
    if (const auto* load = absl::get_if<LoadValue>(&node.node))
      depends = tensors.contains(load->access.tensor);
    if (const auto* apply = absl::get_if<ApplyValue>(&node.node)) {
      depends = absl::c_any_of(apply->args, [&](ValueId arg) { return Contains(arg); });
    }
    if (depends) values_.insert(id.value);
  });
  return Contains(value);
}

bool ScanPath::IsLinear() const {
  const auto has = [&](ScalarOp op) {
    return absl::c_any_of(terms, [&](const Term& term) { return term.op == op; });
  };
  return has(ScalarOp::kAdd) && has(ScalarOp::kMul);
}

// At each operation exactly one operand is dependent; the other one is a term. a - x may be
// followed through a, not through x.
bool FollowPath(const Program& program, ValueId value, const DependentValues& dependent,
                ScanPath& path) {
  const DType type = program[value].type;
  while (program[value].type == type) {
    if (absl::get_if<LoadValue>(&program[value].node) != nullptr) {
      path.end = value;
      return true;
    }
    const auto* apply = absl::get_if<ApplyValue>(&program[value].node);
    const auto op = apply == nullptr ? absl::nullopt : PathOp(apply->op);
    if (!op || !MayStandTogether(path, *op)) return false;
    const bool right = dependent.Contains(apply->args[1]), negated = apply->op == ScalarOp::kSub;
    if (dependent.Contains(apply->args[0]) == right || (right && negated)) return false;
    path.terms.push_back({*op, apply->args[right ? 0 : 1], negated});
    value = apply->args[right ? 1 : 0];
  }
  return false;
}

Scans::Scans(const Program& program) : program_(program) { Visit(program.body); }

// Only loops whose iterations depend on each other may hold a recurrence.
void Scans::Visit(const Scope& scope) {
  for (const Item& item : scope) {
    const auto* loop = item.As<Loop>();
    if (loop == nullptr) continue;
    if (RunsInSteps(program_, *loop)) FindIn(*loop);
    Visit(loop->body);
  }
}

// Each cycle is looked at once for each of its statements that is not linked yet; all its links
// must be of one kind.
void Scans::FindIn(const Loop& steps) {
  const Assignments assignments(program_, steps);
  for (const auto& [tensor, statement] : assignments.statements()) {
    if (links_.contains(statement) || !IsFloat(program_[tensor].type)) continue;
    const std::vector<const Statement*> cycle = assignments.CycleOf(tensor);
    Assignments::Tensors tensors;
    for (const Statement* one : cycle) tensors.insert(one->target.tensor);
    absl::flat_hash_map<const Statement*, Link> links;
    absl::flat_hash_set<ScalarOp> ops;
    bool good = true;
    for (const Statement* one : cycle) {
      Link& link = links[one];
      good = good && IsLink(program_, *one, tensors, link.path);
      for (const ScanPath::Term& term : link.path.terms) ops.insert(term.op);
    }
    const bool adds = ops.erase(ScalarOp::kAdd) > 0, multiplies = ops.erase(ScalarOp::kMul) > 0;
    if (!good || !ops.empty() || !(adds || multiplies)) continue;
    for (auto& [one, link] : links) {
      if (!adds) link.op = ReduceOp::kProd;
      if (!multiplies) link.op = ReduceOp::kSum;
      links_.emplace(one, std::move(link));
    }
  }
}

}  // namespace nestor::loop
