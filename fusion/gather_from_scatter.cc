// A gradient of a convolution scatters: each place of the output adds to several places of the
// input, so that no loop may run in parallel and each element is loaded and stored many times.
// Asked the other way round, which places add to this element, it is a reduction like the forward
// program.
//
// Finds each pair of a reset and the accumulation that follows it, has the accumulation's places
// inverted (preimage.cc, where the idea is), weighs the result, and builds the nest that replaces
// both.
//
// The new nest keeps the reset's loops and uses the accumulation's indices for its inner loops, so
// only the accumulator's name is new.
//
// These stay scatters: an embedding's t[ids[n], d] += g[n, d] (asking every row n for every element
// would cost the table times the rows), places that a min or max bends, coefficients that may be 0.
// If one adds its op's identity where a condition fails, it stores there no more.
#include "fusion/gather_from_scatter.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "fusion/multiples.h"
#include "fusion/preimage.h"
#include "fusion/scopes.h"
#include "loop_ir/dependence.h"
#include "loop_ir/perfect_nest.h"
#include "loop_ir/ranges.h"
#include "uops/graph.h"
#include "uops/index/atom_sum.h"
#include "uops/mutant.h"

namespace nestor::loop {
namespace {

// ---- Perfect nests around one statement

struct PerfectNest {
  LoopsAround loops;  // of step 1
  Statement* statement;
};

// A statement may stand alone.
absl::optional<PerfectNest> PerfectNestOf(Scope& top) {
  if (top.size() != 1) return absl::nullopt;
  Loop* outermost = top[0].As<Loop>();
  PerfectNest nest{{}, outermost == nullptr ? top[0].As<Statement>() : OnlyStatementIn(*outermost)};
  if (outermost != nullptr) nest.loops = BandOf(std::as_const(*outermost));
  const auto is_plain = [](const Loop* loop) { return loop->step == 1; };
  return nest.statement != nullptr && absl::c_all_of(nest.loops, is_plain)
             ? absl::make_optional(std::move(nest))
             : absl::nullopt;
}

bool IsScatter(const Program& program, const PerfectNest& nest) {
  const Statement& statement = *nest.statement;
  const Storage storage = program[statement.target.tensor].storage;
  return statement.op && !statement.position.valid() &&
         (storage == Storage::kTemp || storage == Storage::kOutput);
}

// True where the nest sets each element of `tensor` to `op`'s identity.
bool IsReset(const Program& program, const PerfectNest& nest, TensorId tensor, ReduceOp op) {
  const Statement& statement = *nest.statement;
  const auto* constant = absl::get_if<ConstantValue>(&program[statement.value].node);
  const Shape& shape = program[tensor].shape;
  if (statement.op || statement.target.masked || statement.target.tensor != tensor) return false;
  if (constant == nullptr || constant->value.bits != Identity(op, program[tensor].type).bits)
    return false;
  const IndexList& place = statement.target.place;
  size_t axes_of_one = 0;  // which no loop runs along
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    axes_of_one += program.pool.IsConst(shape[axis], 1) && program.pool.IsConst(place[axis], 0);
  }
  if (nest.loops.size() + axes_of_one != shape.size()) return false;
  for (const Loop* loop : nest.loops) {
    const auto axis = std::find_if(place.begin(), place.end(), [&](IndexId e) {
      return program.pool.VarValue(e) == loop->var;
    });
    if (axis == place.end() || !program.pool.IsConst(loop->begin, 0)) return false;
    if (loop->end != shape[axis - place.begin()]) return false;
  }
  return true;
}

// ---- What loops cost

// Iterations, to compare: n to the power of `degree` times `factor`, for large n.
struct Cost {
  int degree = 0;
  double factor = 1;
  friend Cost operator*(Cost a, Cost b) { return {a.degree + b.degree, a.factor * b.factor}; }
};

// How a number grows with the dimensions of tensors, as the degree of a polynomial; $params are
// small.
int DegreeOf(const IndexPool& pool, IndexId e) {
  const IndexNode& node = pool[e];
  const auto of = [&](int arg) { return DegreeOf(pool, node.args[arg]); };
  switch (node.kind) {
    case IndexKind::kSymbol: return pool.SymbolName(e)[0] == '$' ? 0 : 1;
    case IndexKind::kAdd:
    case IndexKind::kMax: return std::max(of(0), of(1));
    case IndexKind::kMul: return of(0) + of(1);
    case IndexKind::kDiv: return std::max(of(0) - of(1), 0);
    case IndexKind::kMod: return of(1);
    case IndexKind::kMin: return std::min(of(0), of(1));
    default: return 0;
  }
}

// The cost of a loop with that extent; an extent without dimensions counts with its value for
// $params of 1.
Cost CostOf(const IndexPool& pool, IndexId extent) {
  Cost cost{DegreeOf(pool, extent)};
  if (cost.degree > 0) return cost;
  const auto value =
      EvaluateIndex(pool, extent, [](const IndexNode& node, absl::Span<const int64_t>) {
        return absl::optional<int64_t>(node.kind == IndexKind::kSymbol ? 1 : 0);
      });
  cost.factor = value ? std::max(1.0, static_cast<double>(*value)) : 1.0;
  return cost;
}

Cost CostOf(IndexPool& pool, absl::Span<const Loop* const> loops) {
  Cost cost;
  for (const Loop* loop : loops) cost = cost * CostOf(pool, pool.Sub(loop->end, loop->begin));
  return cost;
}

// The constant factor that strides may cost.
constexpr double kMostTimes = 16;

bool NoMore(Cost a, Cost b) {
  return a.degree != b.degree ? a.degree < b.degree : a.factor <= kMostTimes * b.factor;
}

// ---- The new nest

ValueId Substituted(Program& program, ValueId id, absl::Span<const IndexId> replacement);

IndexList Substituted(Program& program, const IndexList& list,
                      absl::Span<const IndexId> replacement) {
  IndexList result;
  for (IndexId e : list) result.push_back(SubstituteVars(program.pool, e, replacement));
  return result;
}

struct ValueSubstitution {
  Program& program;
  ValueId id;
  absl::Span<const IndexId> replacement;

  ValueId operator()(const ConstantValue&) const { return id; }
  ValueId operator()(const ParamValue&) const { return id; }
  ValueId operator()(const IndexValue& v) const {
    return program.AddIndexValue(SubstituteVars(program.pool, v.index, replacement));
  }
  ValueId operator()(const LoadValue& v) const {
    Access access = v.access;
    access.place = Substituted(program, access.place, replacement);
    access.conditions = Substituted(program, access.conditions, replacement);
    return program.AddLoad(std::move(access));
  }
  ValueId operator()(const ApplyValue& v) const {
    std::vector<ValueId> args;
    for (ValueId arg : v.args) args.push_back(Substituted(program, arg, replacement));
    return program.AddApply(v.op, args, program[id].type);
  }
};

ValueId Substituted(Program& program, ValueId id, absl::Span<const IndexId> replacement) {
  const auto node = program[id].node;  // a copy: values move as they are added
  return absl::visit(ValueSubstitution{program, id, replacement}, node);
}

// All conditions, with gathers last.
IndexList Together(const IndexPool& pool, IndexList conditions, const IndexList& others) {
  conditions.insert(conditions.end(), others.begin(), others.end());
  std::stable_partition(conditions.begin(), conditions.end(),
                        [&](IndexId c) { return !pool.HasLoad(c); });
  return conditions;
}

TensorId AddAccumulator(Program& program, ReduceOp op, DType type) {
  TensorInfo info{"acc", type, {}, Storage::kAccumulator};
  info.op = op;
  return program.AddTensor(std::move(info));
}

// `reset` and `scatter` as one, the latter inverted.
Scope Gather(Program& program, const PerfectNest& reset, const PerfectNest& scatter,
             const Preimage& preimage) {
  const Statement& old = *scatter.statement;
  IndexList replacement(program.vars.size(), program.pool.Const(0));
  for (size_t i = 0; i < scatter.loops.size(); ++i)
    replacement[scatter.loops[i]->var] = preimage.solution[i];
  // Those of the scatter's store and of its inversion.
  IndexList conditions = Together(program.pool, preimage.conditions,
                                  Substituted(program, old.target.conditions, replacement));
  const TensorId sum = AddAccumulator(program, *old.op, program[old.target.tensor].type);
  const bool masked = !conditions.empty();
  const Statement step{{sum, {}, masked, ValueId(), std::move(conditions)},
                       old.op,
                       Substituted(program, old.value, replacement),
                       ValueId()};
  const Statement result{reset.statement->target, absl::nullopt, program.AddLoad({sum, {}}),
                         ValueId()};
  Scope body{Item{Declaration{sum}}};
  LoopsAround steps;
  for (const Loop& loop : preimage.loops) steps.push_back(&loop);
  Append(body, Around(steps, {Item{step}}));
  body.push_back(Item{result});
  return Around(reset.loops, std::move(body));
}

// ---- A scatter that stays one

// Moves the conditions of the load that the scatter consists of to its store, if the load gives
// the identity where one fails. (A sum that begins with 0.0 is never -0.0, so that no bit changes.)
// Loops can be cut where the outcome for a store changes, and the iterations without one left out.
bool MaskStore(Program& program, Statement& scatter) {
  const auto* load = absl::get_if<LoadValue>(&program[scatter.value].node);
  if (load == nullptr || load->access.conditions.empty()) return false;
  const DType type = program[scatter.target.tensor].type;
  const auto* fill = absl::get_if<ConstantValue>(&program[load->access.fill].node);
  if (fill == nullptr || fill->value.bits != Identity(*scatter.op, type).bits) return false;
  Access access = load->access;
  scatter.target.masked = true;
  scatter.target.conditions =
      Together(program.pool, std::move(scatter.target.conditions), access.conditions);
  access.conditions.clear();
  scatter.value = program.AddLoad(std::move(access));
  return true;
}

// ---- The walk over the items at the top

class Gatherer {
 public:
  explicit Gatherer(Program& program) : program_(program), ranges_(program) {}

  // `last_`: the last item that touched each tensor, to find the reset that belongs to a scatter.
  bool Run() {
    tops_ = Apart(std::move(program_.body));
    for (size_t i = 0; i < tops_.size(); ++i) {
      const Footprint footprint = FootprintOf(program_, tops_[i]);
      TryTop(i, footprint);
      for (const auto* set : {&footprint.reads, &footprint.writes, &footprint.accumulates}) {
        for (TensorId tensor : *set) last_[tensor] = i;
      }
    }
    program_.body = Joined(std::move(tops_));
    return changed_;
  }

 private:
  // Replaces the item, and the one that resets its target last, if nothing touched the target
  // between; or else masks the item's store.
  void TryTop(size_t position, const Footprint& footprint) {
    const auto scatter = PerfectNestOf(tops_[position]);
    if (!scatter || !IsScatter(program_, *scatter)) return;
    const TensorId target = scatter->statement->target.tensor;
    const auto last = last_.find(target);
    if (last == last_.end() || footprint.reads.contains(target)) return;
    const auto reset = PerfectNestOf(tops_[last->second]);
    if (!reset || !IsReset(program_, *reset, target, *scatter->statement->op)) return;
    const auto preimage = PreimageOf(*reset, *scatter);
    if (!preimage && NESTOR_MUTANT("reset_block_dropped")) tops_[last->second].clear();
    if (!preimage || !Pays(*reset, *scatter, *preimage) || MovesLargeProduct(*scatter, *preimage)) {
      changed_ |= MaskStore(program_, *scatter->statement);
      return;
    }
    tops_[position] = Gather(program_, *reset, *scatter, *preimage);
    tops_[last->second].clear();
    changed_ = true;
  }

  // An op whose order matters needs the preimage in the order of the scatter's loops.
  absl::optional<Preimage> PreimageOf(const PerfectNest& reset, const PerfectNest& scatter) {
    const Access& target = scatter.statement->target;
    const bool ordered = IsOrdered(*scatter.statement->op, program_[target.tensor].type);
    int facts = 0;
    for (const Loop* loop : reset.loops) facts += EnterElements(*loop);
    auto preimage =
        SolvePreimage(program_, scatter.loops, target.place, reset.statement->target.place,
                      program_[target.tensor].shape, ordered, ranges_);
    while (facts-- > 0) ranges_.Forget();
    return preimage;
  }

  // Whether an index that the value multiplies by much would become another expression.
  bool MovesLargeProduct(const PerfectNest& scatter, const Preimage& preimage) {
    const Item statement{*scatter.statement};
    for (size_t k = 0; k < scatter.loops.size(); ++k) {
      if (loop::MovesLargeProduct(program_, statement, scatter.loops[k]->var, preimage.solution[k]))
        return true;
    }
    return false;
  }

  // Where a loop over M*C elements runs, M and C are positive.
  int EnterElements(const Loop& loop) {
    ranges_.Enter(loop);
    const AtomSum extent = AtomSum::Of(program_.pool, loop.end);
    if (extent.size() != 1) return 1;
    const auto [factors, coefficient] = extent.terms().front();
    if (coefficient < 0) return 1;
    const bool counts = std::all_of(factors.begin(), factors.end(),
                                    [&](IndexId e) { return ranges_.NonNegative(e); });
    if (!counts) return 1;
    for (IndexId e : factors)
      ranges_.Assume(program_.pool.Condition(IndexKind::kLt, program_.pool.Const(0), e));
    return 1 + static_cast<int>(factors.size());
  }

  // Sums and products of floats round; all other reductions give the same result in any order.
  static bool IsOrdered(ReduceOp op, DType type) {
    return IsFloat(type) && (op == ReduceOp::kSum || op == ReduceOp::kProd);
  }

  bool Pays(const PerfectNest& reset, const PerfectNest& scatter, const Preimage& preimage) {
    const Cost elements = CostOf(program_.pool, reset.loops),
               before = CostOf(program_.pool, scatter.loops);
    Cost after = elements;
    for (IndexId trips : preimage.trips) after = after * CostOf(program_.pool, trips);
    return NoMore(after, elements) || NoMore(after, before);
  }

  Program& program_;
  Ranges ranges_;
  std::vector<Scope> tops_;                     // the items at the top, each by itself
  absl::flat_hash_map<TensorId, size_t> last_;  // the one that touched a tensor last
  bool changed_ = false;
};

}  // namespace

absl::StatusOr<bool> GatherFromScatter(Program& program) { return Gatherer(program).Run(); }

}  // namespace nestor::loop
