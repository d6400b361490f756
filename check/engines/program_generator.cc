// The signature is drawn first, then node by node, each with operands drawn among the existing
// nodes (operand_generator.h).
//
// Every draw is a statement of its own: the order in which C++ evaluates operands
// and arguments is not fixed, and the programs must not depend on the compiler.
#include "check/engines/program_generator.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "check/engines/index_generator.h"
#include "check/engines/operand_generator.h"
#include "check/engines/recording_builder.h"
#include "check/engines/scalar_generator.h"
#include "check/random.h"
#include "uops/invariant.h"
#include "uops/recurrence.h"

namespace nestor {
namespace {

class Generator {
 public:
  Generator(uint64_t seed, const GeneratorOptions& options, std::vector<ConstructorCall>* calls)
      : options_(options), random_(seed), recurrences_(seed ^ 0x5ca1ab1e), graph_(op_.graph),
        pool_(op_.graph.pool()), indices_(options_, random_, graph_, values_),
        scalars_(options_, random_), builder_(graph_, calls),
        operands_(options_, random_, op_, values_, indices_, scalars_, builder_) {
    options_.floats_only |= options_.smooth;
  }

  // Each new node takes earlier ones as operands, so a program is a graph with shared values. The
  // last node is a result, so that much of it is live.
  Op Run() {
    op_.name = "random";
    DeclareDimensions();
    DeclareParams();
    DeclareArguments();
    for (int i = 0; i < options_.nodes; ++i) {
      Keep(RandomNode());
      if (recurrences_.Below(1000) < options_.recurrences) KeepRecurrence();
    }
    ChooseResults();
    return std::move(op_);
  }

 private:
  // ---- Signature

  void DeclareDimensions() {
    const int count = static_cast<int>(random_.Between(1, 3));
    for (int i = 0; i < count; ++i) indices_.AddDimension(pool_.Symbol(kDims[i]));
  }

  // Integers ($k0, ..) stand in index expressions, all others ($a0, ..) are values.
  void DeclareParams() {
    const int integers = static_cast<int>(random_.Below(3));
    for (int i = 0; i < integers; ++i) {
      const std::string name = absl::StrCat("$k", i);
      const DType type = random_.Chance(60) ? DType::kI64 : DrawIntegerType(random_);
      op_.params.push_back(IntegerParam(name, type));
      indices_.AddParam(pool_.Symbol(name));
    }
    const int values = static_cast<int>(random_.Below(3));
    for (int i = 0; i < values; ++i) {
      const DType type =
          options_.floats_only || random_.Chance(75) ? scalars_.FloatType() : DType::kBool;
      ParamInfo info{absl::StrCat("$a", i), type, {}, {}, {}};
      if (random_.Chance(60)) info.value = scalars_.Literal(type);
      op_.params.push_back(info);
    }
  }

  // Small, as extents and places are computed from it. A default lies in the range, whichever of
  // its ends are given.
  ParamInfo IntegerParam(const std::string& name, DType type) {
    ParamInfo info{name, type, {}, {}, {}};
    const int64_t low = random_.Chance(40) ? 1 : 0;
    if (random_.Chance(50)) info.low = Scalar::Integer(type, low);
    if (random_.Chance(30)) info.high = Scalar::Integer(type, 4);
    if (random_.Chance(60)) info.value = Scalar::Integer(type, random_.Between(low, 3));
    return info;
  }

  // The first has values; later ones may be integers, which serve as places.
  void DeclareArguments() {
    const int count = static_cast<int>(random_.Between(1, 4));
    for (int i = 0; i < count; ++i) {
      const DType type = i > 0 && random_.Chance(35) ? scalars_.IndexType() : scalars_.ValueType();
      const bool shape_only = random_.Chance(6);
      AddArgument(kArguments[i], type, operands_.RandomShape(), shape_only);
    }
    // Every dimension must be one of some argument.
    for (IndexId dim : indices_.dimensions()) {
      if (Mentioned(dim)) continue;
      const bool shape_only = random_.Chance(50);
      AddArgument(absl::StrCat("u", op_.args.size()), scalars_.ValueType(), {dim}, shape_only);
    }
    if (values_.empty()) Keep(RandomConstant());
  }

  void AddArgument(const std::string& name, DType type, Shape shape, bool shape_only) {
    const NodeId node = graph_.AddInput(name, type, shape);
    op_.args.push_back({name, type, std::move(shape), shape_only, node});
    if (!shape_only) values_.push_back(node);
  }

  bool Mentioned(IndexId dim) const {
    bool found = false;
    for (const Argument& arg : op_.args) {
      for (IndexId extent : arg.shape) {
        VisitIndex(pool_, extent, [&](IndexId id, const IndexNode&) { found |= id == dim; });
      }
    }
    return found;
  }

  void ChooseResults() {
    const int count = static_cast<int>(random_.Between(1, 3));
    for (int i = 0; i < count; ++i) {
      const NodeId node = i == 0 ? values_.back() : random_.Pick(values_);
      if (options_.floats_only && !IsFloat(graph_.type(node))) continue;
      std::string name = kResults[i];
      // An op may return an argument as it is, under the argument's name.
      const Input* input = graph_.As<Input>(node);
      if (input != nullptr && random_.Chance(50) && op_.FindResult(input->name) == nullptr)
        name = input->name;
      op_.results.push_back({name, node});
    }
    if (!op_.results.empty()) return;
    const NodeId zero = graph_.AddConstant(Scalar::Zero(DType::kF32));
    op_.results.push_back({kResults[0], zero});
  }

  // ---- Nodes

  void Keep(NodeId id) { values_.push_back(id); }

  NodeId RandomNode() {
    const int kind = static_cast<int>(random_.Below(100));
    if (kind < 45) return RandomMap();
    if (kind < 65) {
      const NodeId x = random_.Pick(values_);
      return operands_.RandomReindex(x, operands_.RandomShape());
    }
    if (kind < 80) return RandomReduce();
    if (kind < 90) return RandomScatter();
    if (kind < 96) return RandomIndex();
    return random_.Chance(50) ? RandomConstant() : RandomParam();
  }

  NodeId RandomConstant() {
    const Scalar value = scalars_.Literal(scalars_.ValueType());
    const Shape shape = operands_.RandomShape();
    return graph_.AddSplat(graph_.AddConstant(value), shape);
  }

  NodeId RandomParam() {
    std::vector<const ParamInfo*> values;
    for (const ParamInfo& param : op_.params) {
      if (!IsInteger(param.type)) values.push_back(&param);
    }
    if (values.empty()) return RandomConstant();
    const ParamInfo& param = *random_.Pick(values);
    const Shape shape = random_.Chance(50) ? Shape() : operands_.RandomShape();
    return graph_.AddSplat(graph_.AddParam(param.name, param.type), shape);
  }

  NodeId RandomIndex() {
    const Shape shape = operands_.RandomShape();
    const IndexId a = indices_.Affine(shape);
    const IndexId b = indices_.Linear(shape);
    const IndexId e = random_.Chance(20) ? pool_.Mul(a, b) : a;
    const NodeId index = builder_.AddIndex(e, shape);
    if (!options_.floats_only && random_.Chance(60)) return index;
    return builder_.AddCast(index, scalars_.ValueType());
  }

  // A row of the table first, then operands that it takes, with a cast if none is there: each row
  // is tested, not only those of frequent types.
  NodeId RandomMap() {
    ScalarOp op = random_.Pick(AllScalarOps()).op;
    while (!scalars_.Allowed(op)) op = random_.Pick(AllScalarOps()).op;
    NodeId x = operands_.Source();
    if (op == ScalarOp::kCast) return builder_.AddCast(x, scalars_.ValueType());
    // Six draws for an operand that fits as it is, before a cast makes one fit.
    for (int i = 0; i < 6 && !ResultTypeOf(op, graph_.type(x), DType::kF32); ++i)
      x = operands_.Source();
    while (!ResultTypeOf(op, graph_.type(x), DType::kF32)) {
      const DType type = random_.Pick(AllTypes());
      if (ResultTypeOf(op, type, DType::kF32)) x = builder_.AddCast(x, type);
    }
    const ScalarOpRow& row = Row(op);
    const Shape shape = graph_.shape(x);
    const DType type = graph_.type(x);
    NodeList args;
    if (row.result == ResultType::kChoice) args.push_back(RandomCondition(shape));
    args.push_back(x);
    while (static_cast<int>(args.size()) < row.arity)
      args.push_back(random_.Chance(12) ? x : operands_.Operand(type, shape));
    if (random_.Chance(30))
      std::swap(args[args.size() - 1], args[args.size() - std::min(row.arity, 2)]);
    return builder_.AddMap(op, args);
  }

  // The condition of a select.
  NodeId RandomCondition(const Shape& shape) {
    if (!options_.floats_only && random_.Chance(50)) return operands_.Operand(DType::kBool, shape);
    const DType type = scalars_.FloatType();
    const NodeId a = operands_.Operand(type, shape);
    const NodeId b = operands_.Operand(type, shape);
    const ScalarOp compare = random_.Pick(
        {ScalarOp::kEq, ScalarOp::kNe, ScalarOp::kLt, ScalarOp::kLe, ScalarOp::kGt, ScalarOp::kGe});
    return builder_.AddMap(compare, {a, b});
  }

  NodeId RandomReduce() {
    const NodeId x = operands_.Source();
    const DType type = graph_.type(x);
    std::vector<ReduceOp> ops;
    for (ReduceOp op : {ReduceOp::kSum, ReduceOp::kProd, ReduceOp::kMax, ReduceOp::kMin,
                        ReduceOp::kArgmax, ReduceOp::kArgmin, ReduceOp::kAny, ReduceOp::kAll}) {
      if (!ReduceResultType(op, type)) continue;
      if (options_.floats_only && IsArg(op)) continue;
      if (options_.smooth && op != ReduceOp::kSum && op != ReduceOp::kProd) continue;
      ops.push_back(op);
    }
    const ReduceOp op = random_.Pick(ops);
    std::vector<int> axes;
    for (int axis = 0; axis < graph_.rank(x); ++axis) {
      if (random_.Chance(60)) axes.push_back(axis);
    }
    if (axes.empty() && graph_.rank(x) > 0 && random_.Chance(85)) axes.push_back(0);
    random_.Shuffle(axes);
    return builder_.AddReduce(op, x, axes);
  }

  // Bools are not scattered, so they become integers.
  NodeId RandomScatter() {
    NodeId x = operands_.Source();
    if (graph_.type(x) == DType::kBool) x = builder_.AddCast(x, scalars_.IndexType());
    const Shape shape = operands_.RandomShape();
    const Shape over = graph_.shape(x);
    const IndexList place = indices_.PlaceIn(shape, over);
    const ReduceOp op = options_.smooth
                            ? ReduceOp::kSum
                            : random_.Pick({ReduceOp::kSum, ReduceOp::kSum, ReduceOp::kProd,
                                            ReduceOp::kMax, ReduceOp::kMin});
    return builder_.AddScatter(op, x, shape, place);
  }

  // ---- Recurrences: one or two carries, each of which the other may read

  struct Stepped {
    NodeId carry, body;
    int axis;
  };

  // One or two equations over an axis of some shape, each of which may read earlier steps of both.
  void KeepRecurrence() {
    const NodeId like = operands_.Source();
    const Shape shape = graph_.shape(like);
    if (shape.empty()) return;
    builder_.Pause();  // a step has no value of its own
    std::vector<Stepped> system;
    const int count = random_.Chance(30) ? 2 : 1;
    const bool backward = random_.Chance(35);
    const int axis = static_cast<int>(random_.Below(static_cast<int64_t>(shape.size())));
    for (int k = 0; k < count; ++k) {
      const DType type = k == 0 || random_.Chance(70) ? graph_.type(like) : scalars_.ValueType();
      system.push_back({graph_.AddCarry(type, shape, axis, backward), NodeId(), axis});
    }
    std::vector<NodeId> steps;
    for (Stepped& stepped : system) {
      stepped.body = StepBody(stepped, system, backward, steps);
      steps.push_back(stepped.body);
    }
    std::vector<Equation> equations;
    for (const Stepped& stepped : system) equations.push_back({stepped.carry, stepped.body});
    Settler settler(graph_, std::move(equations));
    // Values inside a step may be read from outside as well.
    random_.Shuffle(steps);
    const size_t kept = random_.Chance(70) ? 1 : steps.size();
    for (size_t i = 0; i < kept; ++i) Keep(settler.Settle(steps[i]));
    builder_.Resume();
  }

  // A node of the carry's type and shape; the nodes that it is made from are added to `steps`.
  NodeId StepBody(const Stepped& stepped, const std::vector<Stepped>& system, bool backward,
                  std::vector<NodeId>& steps) {
    const DType type = graph_.type(stepped.carry);
    const Shape shape = graph_.shape(stepped.carry);
    NodeId value = EarlierStep(stepped, backward, shape);
    if (random_.Chance(20)) value = ReducedStep(stepped, backward);
    const int length = static_cast<int>(random_.Between(1, 3));
    for (int i = 0; i < length; ++i) {
      NodeId other = operands_.Operand(type, shape);
      if (random_.Chance(25))
        other = builder_.AddCast(EarlierStep(random_.Pick(system), backward, shape), type);
      if (!steps.empty() && random_.Chance(20)) other = builder_.AddCast(random_.Pick(steps), type);
      value = StepMap(value, other);
      if (random_.Chance(30)) steps.push_back(value);
    }
    return value;
  }

  // A scalar op of one type, on both operands or on one.
  // Rows whose result has the operands' type, so that a step's value has the type of its carry.
  NodeId StepMap(NodeId a, NodeId b) {
    const DType type = graph_.type(a);
    for (;;) {
      const ScalarOpRow& row = random_.Pick(AllScalarOps());
      if (row.result != ResultType::kSame || row.arity > 2) continue;
      if (!scalars_.Allowed(row.op) || !Accepts(row.operands, type)) continue;
      if (row.arity == 1 && random_.Chance(70)) continue;
      if (row.arity == 1) return builder_.AddMap(row.op, {a});
      return random_.Chance(50) ? builder_.AddMap(row.op, {a, b}) : builder_.AddMap(row.op, {b, a});
    }
  }

  // The value of a carry at an earlier step, over `over`, whose first axes are the carry's.
  NodeId EarlierStep(const Stepped& stepped, bool backward, const Shape& over) {
    const Shape extents = graph_.shape(stepped.carry);
    IndexList place = indices_.PlaceIn(extents, over);
    // At least one step back, or the equation would define a value by itself.
    const IndexId lag = pool_.Const(random_.Pick({1, 1, 1, 2, 3}));
    const IndexId step = pool_.Var(stepped.axis);
    place[stepped.axis] = backward ? pool_.Add(step, lag) : pool_.Sub(step, lag);
    for (size_t axis = 0; axis < place.size(); ++axis) {
      if (static_cast<int>(axis) != stepped.axis && random_.Chance(60))
        place[axis] = pool_.Var(static_cast<int64_t>(axis));
    }
    IndexList conditions;
    if (random_.Chance(15)) conditions.push_back(indices_.Condition(over));
    return builder_.AddReindex(stepped.carry, over, place,
                               operands_.RandomFill(graph_.type(stepped.carry)), conditions);
  }

  // A reduction of earlier steps over an axis of their own.
  NodeId ReducedStep(const Stepped& stepped, bool backward) {
    const DType type = graph_.type(stepped.carry);
    Shape over = graph_.shape(stepped.carry);
    over.push_back(indices_.Extent());
    const NodeId read = EarlierStep(stepped, backward, over);
    const bool is_bool = type == DType::kBool;
    const ReduceOp op =
        is_bool ? random_.Pick({ReduceOp::kAny, ReduceOp::kAll})
        : options_.smooth
            ? ReduceOp::kSum
            : random_.Pick({ReduceOp::kSum, ReduceOp::kSum, ReduceOp::kMax, ReduceOp::kMin});
    const NodeId terms =
        is_bool ? read : builder_.AddMap(ScalarOp::kMul, {read, operands_.Operand(type, over)});
    return builder_.AddReduce(op, terms, {static_cast<int>(over.size()) - 1});
  }

  // Names that other code might use itself.
  static constexpr const char* kDims[] = {"N", "M", "k"};
  static constexpr const char* kArguments[] = {"x", "i", "t0", "acc"};
  static constexpr const char* kResults[] = {"y", "j", "t1"};

  GeneratorOptions options_;
  Random random_;
  Random recurrences_;  // separate, so that programs without recurrences do not depend on it
  Op op_;
  Graph& graph_;
  IndexPool& pool_;
  std::vector<NodeId> values_;  // that a step may use
  IndexGenerator indices_;
  ScalarGenerator scalars_;
  RecordingBuilder builder_;
  OperandGenerator operands_;
};

}  // namespace

DType DrawIntegerType(Random& random) {
  for (;;) {
    const DType type = random.Pick(AllTypes());
    if (IsInteger(type)) return type;
  }
}

DType DrawFloatType(Random& random, std::vector<DType> usual) {
  absl::c_copy_if(AllTypes(), std::back_inserter(usual), IsNarrowFloat);
  return random.Pick(usual);
}

Op RandomOp(uint64_t seed, const GeneratorOptions& options, std::vector<ConstructorCall>* calls) {
  return Generator(seed, options, calls).Run();
}

}  // namespace nestor
