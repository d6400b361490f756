// Adds nodes to the graph of a random program and records each request. A graph may answer
// a request with a simpler node; the record lets a test check that this node means what
// was asked for.
#ifndef NESTOR_CHECK_ENGINES_RECORDING_BUILDER_H_
#define NESTOR_CHECK_ENGINES_RECORDING_BUILDER_H_

#include <vector>

#include "check/engines/program_generator.h"
#include "uops/graph.h"

namespace nestor {

class RecordingBuilder {
 public:
  // The arguments outlive this. Where `calls` is null, nothing is recorded.
  RecordingBuilder(Graph& graph, std::vector<ConstructorCall>* calls)
      : graph_(graph), calls_(calls) {}

  // Between these two, nodes are added but not recorded.
  void Pause() { paused_ = true; }
  void Resume() { paused_ = false; }

  // Add nodes as the graph's functions of these names do.
  NodeId AddIndex(IndexId expr, const Shape& shape);
  NodeId AddReindex(NodeId x, const Shape& shape, const IndexList& place, NodeId fill,
                    const IndexList& conditions);
  NodeId AddMap(ScalarOp op, const NodeList& args, DType target = DType::kF32);
  NodeId AddCast(NodeId x, DType type) { return AddMap(ScalarOp::kCast, {x}, type); }
  NodeId AddReduce(ReduceOp op, NodeId x, const std::vector<int>& axes);
  NodeId AddScatter(ReduceOp op, NodeId x, const Shape& shape, const IndexList& place);

 private:
  // Records the request and returns `given`.
  NodeId Record(MicroOp asked, const Shape& shape, NodeId given, std::vector<int> axes = {});

  Graph& graph_;
  std::vector<ConstructorCall>* const calls_;
  bool paused_ = false;
};

}  // namespace nestor

#endif  // NESTOR_CHECK_ENGINES_RECORDING_BUILDER_H_
