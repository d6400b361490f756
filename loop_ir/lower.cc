// From dataflow to loops, without any choice: each live node, in topological order, becomes a nest
// that fills one tensor: loops over the node's axes around one statement; a reduction has its
// accumulator and inner loops in there; a scatter is a nest that resets and one that accumulates.
// Constants, $params and nodes that merely repeat them are written into the expressions that use
// them. That the result is slow does not matter, as fusion starts from the dependences alone; that
// it is obvious does, as the interpreter's result for it is the definition of the op.
//
//   map      for i { for j { t[i, j] = exp(x[i, j]) } }
//   reduce   for i { acc a = sum  for k { a += t[i, k] }  s[i] = a }
//   scatter  for v { y[v] = 0 }  for n { drop y[ids[n]] += g[n] }
//
// A recurrence is one nest: a loop over the steps around the computation of each of its nodes at
// one step, in topological order. Its tensors hold all steps; a later pass removes what is not
// needed.
//
// A load is masked unless the node itself shows that it cannot leave its tensor (each index the
// whole range of its axis); passes prove more.
#include "loop_ir/lower.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "loop_ir/domain_collector.h"
#include "uops/invariant.h"
#include "uops/recurrence.h"
#include "uops/shared_parts.h"

namespace nestor {
namespace {

using loop::Access;
using loop::Item;
using loop::Program;
using loop::Scope;
using loop::Statement;
using loop::Storage;
using loop::TensorId;
using loop::TensorInfo;
using loop::ValueId;

constexpr const char* kLoopNames[] = {"i", "j", "k", "l", "m", "n", "p", "q"};

class Lowering {
 public:
  explicit Lowering(const Op& op)
      : op_(op), graph_(op.graph), live_(Reachable(op.graph, op.ResultNodes())),
        steps_(op.graph, live_) {}

  // Live nodes in topological order, one nest each. Steps of a recurrence are lowered with it, in
  // its loop.
  Program Run() {
    program_.name = op_.name;
    program_.params = op_.params;
    AddInputs();
    AddOutputs();
    for (const Equality& e : op_.equalities) {
      program_.equalities.push_back({Import(e.left), Import(e.right), e.message});
    }
    for (RangeCheck check : op_.range_checks) {
      check.value = Import(check.value);
      program_.range_checks.push_back(std::move(check));
    }
    ShareTensorsOfSteps();
    for (int i = 0; i < graph_.size(); ++i) {
      if (live_[i] && steps_.AxisOf(NodeId{i}) < 0) LowerNode(NodeId{i});
    }
    CopyRemainingOutputs();
    return std::move(program_);
  }

 private:
  // ---- Signature

  void AddInputs() {
    for (const Argument& arg : op_.args) {
      TensorInfo info{arg.name, arg.type, ImportList(arg.shape), Storage::kInput};
      info.shape_only = arg.shape_only;
      const TensorId tensor = program_.AddTensor(std::move(info));
      program_.inputs.push_back(tensor);
      tensors_[arg.node] = tensor;
    }
  }

  // A result's node is computed into its output; the first of several results
  // that share a node gets it.
  void AddOutputs() {
    for (const Result& result : op_.results) {
      // A result may bear the name of an argument; the program's names differ.
      const TensorId tensor =
          program_.AddTensor({result.name, graph_.type(result.node),
                              ImportList(graph_.shape(result.node)), Storage::kOutput});
      program_.outputs.push_back(tensor);
      if (!IsInline(result.node)) tensors_.emplace(result.node, tensor);
    }
  }

  // Results that are arguments or constants, or that share a node with another result, are copies.
  void CopyRemainingOutputs() {
    for (size_t i = 0; i < op_.results.size(); ++i) {
      const NodeId node = op_.results[i].node;
      const auto it = tensors_.find(node);
      if (it != tensors_.end() && it->second == program_.outputs[i]) continue;
      FillFrom(program_.outputs[i], node);
    }
  }

  // ---- Recurrences

  // A step, its carry and its Recurrence are one tensor.
  void ShareTensorsOfSteps() {
    const auto visit = [&](absl::FunctionRef<void(NodeId, const Recurrence&)> share) {
      for (int i = 0; i < graph_.size(); ++i) {
        const Recurrence* recurrence = live_[i] ? graph_.As<Recurrence>(NodeId{i}) : nullptr;
        if (recurrence != nullptr) share(NodeId{i}, *recurrence);
      }
    };
    visit([&](NodeId view, const Recurrence& n) { ShareTensor(view, n.x); });
    visit([&](NodeId, const Recurrence& n) {
      for (size_t k = 0; k < n.carries.size(); ++k) tensors_[n.carries[k]] = Target(n.bodies[k]);
    });
  }

  // The step's tensor is that of the view, an output where it is a result.
  void ShareTensor(NodeId view, NodeId step) {
    const auto output = tensors_.find(view);
    // A copy: the map grows.
    if (output != tensors_.end()) tensors_.emplace(step, TensorId(output->second));
    tensors_[view] = Target(step);
  }

  // Lowers all steps at the oldest view of the recurrence, and nothing at the others.
  void LowerRecurrence(const Recurrence& recurrence) {
    const NodeId carry = recurrence.carries[0];
    if (!lowered_.insert(carry).second) return;
    const int axis = graph_.As<Carry>(carry)->axis;
    const IndexId extent = Import(graph_.shape(carry)[axis]);
    const int32_t var = program_.AddVar("t");
    Scope body;
    step_scope_ = &body;
    step_ = program_.pool.Var(var);
    for (NodeId node : steps_.Of(recurrence)) LowerNode(node);
    step_scope_ = nullptr;
    program_.body.push_back(
        Item{StepLoop(var, extent, graph_.As<Carry>(carry)->backward, std::move(body))});
  }

  // Loops count up, so a recurrence that runs from the last step down counts the steps that are
  // done, around a loop of the one step there; index arithmetic uses the step, as it is written.
  loop::Loop StepLoop(int32_t var, IndexId extent, bool backward, Scope body) {
    IndexPool& pool = program_.pool;
    if (!backward) return {var, pool.Const(0), extent, 1, {}, std::move(body)};
    const int32_t done = program_.AddVar("u");
    const IndexId end = pool.Sub(extent, pool.Var(done));
    Scope step;
    step.push_back(
        Item{loop::Loop{var, pool.Sub(end, pool.Const(1)), end, 1, {}, std::move(body)}});
    return {done, pool.Const(0), extent, 1, {}, std::move(step)};
  }

  // ---- Index expressions

  // The expression in the program's pool, with at[i] for the index along axis i. A tensor that it
  // gathers from must have memory.
  IndexId ImportOver(IndexId e, absl::Span<const IndexId> at) {
    return CopyIndex(
        graph_.pool(), e, program_.pool,
        [&](const IndexNode& node, absl::Span<const IndexId> args) -> absl::optional<IndexId> {
          if (node.kind == IndexKind::kVar) return at[node.value];
          if (node.kind != IndexKind::kLoad) return absl::nullopt;
          const TensorId tensor = Materialised(NodeId{static_cast<int32_t>(node.value)});
          return program_.pool.Load(tensor.value, args);
        });
  }
  IndexId Import(IndexId e) { return ImportOver(e, {}); }
  IndexList ImportList(const IndexList& list, absl::Span<const IndexId> at = {}) {
    IndexList result;
    for (IndexId e : list) result.push_back(ImportOver(e, at));
    return result;
  }

  // ---- Pieces of nests

  bool IsInline(NodeId node) const {
    return graph_.As<Constant>(node) != nullptr || graph_.As<Param>(node) != nullptr;
  }

  // The value of `node` at a place within its shape.
  ValueId ValueAt(NodeId node, IndexList place) {
    if (const Constant* constant = graph_.As<Constant>(node))
      return program_.AddConstant(constant->value);
    if (const Param* param = graph_.As<Param>(node))
      return program_.AddParam(param->name, graph_.type(node));
    return program_.AddLoad({tensors_.at(node), std::move(place)});
  }

  // An integer $param is a symbol to the loop IR, everywhere.
  ValueId FillValue(NodeId node) {
    const Param* param = graph_.As<Param>(node);
    if (param == nullptr || !IsInteger(graph_.type(node))) return ValueAt(node, {});
    return CastTo(program_.AddIndexValue(program_.pool.Symbol(param->name)), graph_.type(node));
  }

  // A place in each axis: new loop indices, and the step along `step_axis`, if not -1.
  IndexList NewPlace(size_t rank, int step_axis) {
    IndexList place;
    for (size_t i = 0; i < rank; ++i) {
      if (static_cast<int>(i) == step_axis) place.push_back(step_);
      else
        place.push_back(
            program_.pool.Var(program_.AddVar(kLoopNames[std::min(i, std::size(kLoopNames) - 1)])));
    }
    return place;
  }

  // `inner` inside loops over the extents, the first outermost, with no loop for the step.
  Scope Nest(absl::Span<const IndexId> place, const Shape& extents, Scope inner) {
    for (size_t i = place.size(); i-- > 0;) {
      if (step_scope_ != nullptr && place[i] == step_) continue;
      const int32_t var = static_cast<int32_t>(program_.pool.VarValue(place[i]));
      loop::Loop outer{var, program_.pool.Const(0), extents[i], 1, {}, std::move(inner)};
      inner.clear();
      inner.push_back(Item{std::move(outer)});
    }
    return inner;
  }

  static Item Assign(Access target, ValueId value) {
    return Item{Statement{std::move(target), absl::nullopt, value, ValueId()}};
  }

  void Emit(Scope body) {
    Append(step_scope_ == nullptr ? program_.body : *step_scope_, std::move(body));
  }

  // Each node has a tensor of its own; the passes decide which of them exist.
  TensorId Target(NodeId node) {
    const auto it = tensors_.find(node);
    if (it != tensors_.end()) return it->second;
    return tensors_[node] = AddTemp(absl::StrCat("t", node.value), graph_.type(node),
                                    ImportList(graph_.shape(node)));
  }

  TensorId AddTemp(absl::string_view name, DType type, Shape shape) {
    const TensorId tensor =
        program_.AddTensor({std::string(name), type, std::move(shape), Storage::kTemp});
    program_.body.push_back(loop::DeclarationOf(tensor));
    return tensor;
  }

  // Emits loops that set every element of `target`, or of one step of it if it has a step axis, to
  // the value of its place.
  void Fill(TensorId target, int step_axis, absl::FunctionRef<ValueId(const IndexList&)> value_at) {
    const Shape extents = program_[target].shape;
    const IndexList place = NewPlace(extents.size(), step_axis);
    Scope body;
    body.push_back(Assign({target, place}, value_at(place)));
    Emit(Nest(place, extents, std::move(body)));
  }

  void FillFrom(TensorId target, NodeId node) {
    Fill(target, -1, [&](const IndexList& place) { return ValueAt(node, place); });
  }

  // ---- Domains: what the node asks of sizes and $params

  void AddDomain(const Shape& extents, const IndexList& places, const IndexList& values) {
    const Shape imported_extents = ImportList(extents);
    const IndexList vars = domains_.Vars(extents.size());
    const IndexList imported_places = ImportList(places, vars);
    domains_.Add(imported_extents, imported_places, ImportList(values, vars));
  }

  // The row-major position among the last `count` axes is a value, too.
  void AddPositionDomain(const Shape& extents, int count) {
    const IndexList vars = domains_.LastVars(extents.size(), count);
    const Shape all = ImportList(extents);
    domains_.Add(all, {}, {RowMajor(vars, Shape(all.end() - count, all.end()))});
  }

  // ---- One case per micro-op

  void LowerNode(NodeId id) {
    struct Visitor {
      Lowering& self;
      NodeId id;
      void operator()(const Input&) const {}
      void operator()(const Param&) const {}
      void operator()(const Constant&) const {}
      void operator()(const Index& n) const { self.LowerIndex(id, n); }
      void operator()(const Reindex& n) const { self.LowerReindex(id, n); }
      void operator()(const Map& n) const { self.LowerMap(id, n); }
      void operator()(const Reduce& n) const { self.LowerReduce(id, n); }
      void operator()(const Scatter& n) const { self.LowerScatter(id, n); }
      void operator()(const Carry&) const {}
      void operator()(const Recurrence& n) const { self.LowerRecurrence(n); }
    };
    absl::visit(Visitor{*this, id}, graph_[id].op);
  }

  void LowerIndex(NodeId id, const Index& node) {
    AddDomain(graph_.shape(id), {}, {node.expr});
    Fill(Target(id), steps_.AxisOf(id),
         [&](const IndexList& at) { return program_.AddIndexValue(ImportOver(node.expr, at)); });
  }

  // y[i] = x[place(i) | fill if conditions(i)], over the node's shape.
  void LowerReindex(NodeId id, const Reindex& node) {
    IndexList places = node.place;
    places.insert(places.end(), node.conditions.begin(), node.conditions.end());
    AddDomain(graph_.shape(id), places, {});
    Fill(Target(id), steps_.AxisOf(id), [&](const IndexList& at) {
      IndexList place = ImportList(node.place, at);
      if (IsInline(node.x) && node.conditions.empty()) return ValueAt(node.x, {});
      if (NeverMasked(id, node)) return ValueAt(node.x, std::move(place));
      return program_.AddLoad({Materialised(node.x), std::move(place), true, FillValue(node.fill),
                               ImportList(node.conditions, at)});
    });
  }

  // A permutation or repetition of whole axes reads no element outside.
  bool NeverMasked(NodeId id, const Reindex& node) const {
    if (!node.conditions.empty()) return false;
    for (size_t j = 0; j < node.place.size(); ++j) {
      const int64_t var = graph_.pool().VarValue(node.place[j]);
      if (var < 0 || graph_.shape(id)[var] != graph_.shape(node.x)[j]) return false;
    }
    return true;
  }

  // The tensor of a node that is loaded from; a constant or $param gets one.
  TensorId Materialised(NodeId node) {
    const auto it = tensors_.find(node);
    if (it != tensors_.end()) return it->second;
    const TensorId tensor = Target(node);
    tensors_.erase(node);
    // This comes before the loop over steps, if one is being made.
    program_.body.push_back(Assign({tensor, {}}, ValueAt(node, {})));
    tensors_[node] = tensor;
    return tensor;
  }

  void LowerMap(NodeId id, const Map& node) {
    Fill(Target(id), steps_.AxisOf(id), [&](const IndexList& at) {
      std::vector<ValueId> args;
      for (NodeId arg : node.args) args.push_back(ValueAt(arg, at));
      return program_.AddApply(node.op, args, graph_.type(id));
    });
  }

  ValueId CastTo(ValueId value, DType type) {
    if (program_[value].type == type) return value;
    return program_.AddApply(ScalarOp::kCast, {value}, type);
  }

  // The reduced axes are the last ones. Narrow floats accumulate in a wider type (AccumulatorType)
  // and are cast once, when the sum is stored.
  void LowerReduce(NodeId id, const Reduce& node) {
    if (IsArg(node.op)) AddPositionDomain(graph_.shape(node.x), node.count);
    const TensorId target = Target(id);
    const Shape extents = ImportList(graph_.shape(node.x));
    const size_t kept = extents.size() - node.count;
    const IndexList at = NewPlace(extents.size(), steps_.AxisOf(id));
    const Shape outer(extents.begin(), extents.begin() + kept),
        inner(extents.begin() + kept, extents.end());
    const IndexList outer_at(at.begin(), at.begin() + kept), inner_at(at.begin() + kept, at.end());

    const DType type = AccumulatorType(graph_.type(node.x));
    TensorInfo info{IsArg(node.op) ? "best" : "acc", type, {}, Storage::kAccumulator};
    info.op = node.op;
    const TensorId accumulator = program_.AddTensor(std::move(info));
    const ValueId value = CastTo(ValueAt(node.x, at), type);
    const ValueId position =
        IsArg(node.op) ? program_.AddIndexValue(RowMajor(inner_at, inner)) : ValueId();
    Scope step;
    step.push_back(Item{Statement{{accumulator, {}}, node.op, value, position}});
    Scope body;
    body.push_back(loop::DeclarationOf(accumulator));
    for (Item& item : Nest(inner_at, inner, std::move(step))) body.push_back(std::move(item));
    const ValueId sum = CastTo(program_.AddLoad({accumulator, {}}), graph_.type(id));
    body.push_back(Assign({target, outer_at}, sum));
    Emit(Nest(outer_at, outer, std::move(body)));
  }

  // The position that argmax gives: the number of the element among the reduced ones.
  IndexId RowMajor(const IndexList& place, const Shape& extents) {
    IndexId position = program_.pool.Const(0);
    for (size_t i = 0; i < place.size(); ++i) {
      position = program_.pool.Add(program_.pool.Mul(position, extents[i]), place[i]);
    }
    return position;
  }

  // Stores are dropped outside of the result. Sums that need a wider type are kept in a tensor of
  // their own, which a third nest casts.
  void LowerScatter(NodeId id, const Scatter& node) {
    AddDomain(graph_.shape(id), {}, {});
    AddDomain(graph_.shape(node.x), node.place, {});
    const TensorId target = Target(id);
    const DType type = AccumulatorType(graph_.type(id));
    const bool widened = type != graph_.type(id);
    const TensorId sums = widened ? AddTemp("wide", type, program_[target].shape) : target;
    const int axis = steps_.AxisOf(id);
    Fill(sums, axis,
         [&](const IndexList&) { return program_.AddConstant(Identity(node.op, type)); });
    const Shape extents = ImportList(graph_.shape(node.x));
    const IndexList at = NewPlace(
        extents.size(), axis < 0 ? -1 : static_cast<int>(graph_.pool().VarValue(node.place[axis])));
    Access place{sums, ImportList(node.place, at), true};
    Scope step;
    const ValueId value = CastTo(ValueAt(node.x, at), type);
    step.push_back(Item{Statement{std::move(place), node.op, value, ValueId()}});
    Emit(Nest(at, extents, std::move(step)));
    if (!widened) return;
    Fill(target, axis, [&](const IndexList& place) {
      return CastTo(program_.AddLoad({sums, place}), graph_.type(id));
    });
  }

  const Op& op_;
  const Graph& graph_;
  const std::vector<bool> live_;
  const SteppedNodes steps_;
  Program program_;
  loop::DomainCollector domains_{program_};
  absl::flat_hash_map<NodeId, TensorId> tensors_;
  absl::flat_hash_set<NodeId> lowered_;  // recurrences, by their first carries
  Scope* step_scope_ = nullptr;  // the body of one step of the recurrence that is being lowered
  IndexId step_;                 // its index
};

}  // namespace

loop::Program Lower(const Op& op) {
  const absl::optional<Op> written_out = WriteOutSharedParts(op);
  return Lowering(written_out ? *written_out : op).Run();
}

}  // namespace nestor
