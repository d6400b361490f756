// An operand is drawn among the values that exist. One that does not fit is made to fit by a cast
// and a random reindex, from which most of the odd accesses come.
//
// Every draw is a statement of its own, as in program_generator.cc.
#include "check/engines/operand_generator.h"

#include <utility>

namespace nestor {
namespace {

constexpr size_t kMaxRank = 3;

}  // namespace

// The shape of a value has its axes permuted, and one axis fewer or more.
Shape OperandGenerator::RandomShape() {
  if (!values_.empty() && random_.Chance(40)) {
    Shape shape = graph_.shape(random_.Pick(values_));
    random_.Shuffle(shape);
    if (!shape.empty() && random_.Chance(30)) shape.pop_back();
    if (shape.size() < kMaxRank && random_.Chance(30)) shape.push_back(indices_.Extent());
    return shape;
  }
  Shape shape;
  const int rank = static_cast<int>(random_.Pick({0, 1, 1, 1, 2, 2, 2, 3}));
  for (int i = 0; i < rank; ++i) shape.push_back(indices_.Extent());
  return shape;
}

NodeId OperandGenerator::RandomFill(DType type) {
  if (random_.Chance(35)) return NodeId();
  if (random_.Chance(40)) {
    for (const ParamInfo& param : op_.params) {
      if (param.type == type && random_.Chance(80)) return graph_.AddParam(param.name, type);
    }
  }
  return graph_.AddConstant(scalars_.Literal(type));
}

NodeId OperandGenerator::RandomReindex(NodeId x, const Shape& shape) {
  const Shape extents = graph_.shape(x);
  const IndexList place = indices_.PlaceIn(extents, shape);
  const NodeId fill = RandomFill(graph_.type(x));
  IndexList conditions;
  while (random_.Chance(20)) conditions.push_back(indices_.Condition(shape));
  return builder_.AddReindex(x, shape, place, fill, conditions);
}

// The reindex draws any place: this is where reads out of range, gathers and masks come from.
NodeId OperandGenerator::Conform(NodeId x, DType type, const Shape& shape) {
  x = builder_.AddCast(x, type);
  return graph_.shape(x) == shape ? x : RandomReindex(x, shape);
}

NodeId OperandGenerator::Operand(DType type, const Shape& shape) {
  if (random_.Chance(20)) return graph_.AddSplat(graph_.AddConstant(scalars_.Literal(type)), shape);
  std::vector<NodeId> fitting;
  for (NodeId id : values_) {
    if (graph_.type(id) == type) fitting.push_back(id);
  }
  const bool fits = !fitting.empty() && random_.Chance(75);
  NodeId x = fits ? random_.Pick(fitting) : random_.Pick(values_);
  if (options_.floats_only && IsFloat(type) && !IsFloat(graph_.type(x))) x = FloatNode();
  return Conform(x, type, shape);
}

NodeId OperandGenerator::FloatNode() {
  std::vector<NodeId> floats;
  for (NodeId id : values_) {
    if (IsFloat(graph_.type(id))) floats.push_back(id);
  }
  if (!floats.empty()) return random_.Pick(floats);
  return graph_.AddConstant(scalars_.Literal(scalars_.FloatType()));
}

NodeId OperandGenerator::Source() {
  return options_.floats_only ? FloatNode() : random_.Pick(values_);
}

}  // namespace nestor
