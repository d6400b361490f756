// A record holds the node as it was asked for, with the shape that the caller expects and the type
// of the node that the graph returned.
#include "check/engines/recording_builder.h"

#include <algorithm>
#include <utility>

namespace nestor {

NodeId RecordingBuilder::Record(MicroOp asked, const Shape& shape, NodeId given,
                                std::vector<int> axes) {
  if (calls_ != nullptr && !paused_) {
    calls_->push_back({Node{std::move(asked), graph_.type(given), shape}, std::move(axes), given});
  }
  return given;
}

NodeId RecordingBuilder::AddIndex(IndexId expr, const Shape& shape) {
  return Record(Index{expr}, shape, graph_.AddIndex(expr, shape));
}

NodeId RecordingBuilder::AddReindex(NodeId x, const Shape& shape, const IndexList& place,
                                    NodeId fill, const IndexList& conditions) {
  const NodeId given = graph_.AddReindex(x, shape, place, fill, conditions);
  if (!fill.valid()) fill = graph_.AddConstant(Scalar::Zero(graph_.type(x)));
  return Record(Reindex{x, place, fill, conditions}, shape, given);
}

NodeId RecordingBuilder::AddMap(ScalarOp op, const NodeList& args, DType target) {
  const Shape shape = graph_.shape(args[0]);
  return Record(Map{op, args}, shape, graph_.AddMap(op, args, target));
}

NodeId RecordingBuilder::AddReduce(ReduceOp op, NodeId x, const std::vector<int>& axes) {
  Shape kept;
  for (int axis = 0; axis < graph_.rank(x); ++axis) {
    if (std::find(axes.begin(), axes.end(), axis) == axes.end())
      kept.push_back(graph_.shape(x)[axis]);
  }
  return Record(Reduce{op, x, static_cast<int>(axes.size())}, kept, graph_.AddReduce(op, x, axes),
                axes);
}

NodeId RecordingBuilder::AddScatter(ReduceOp op, NodeId x, const Shape& shape,
                                    const IndexList& place) {
  return Record(Scatter{op, x, place}, shape, graph_.AddScatter(op, x, shape, place));
}

}  // namespace nestor
