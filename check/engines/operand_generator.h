// Draws what the nodes of a random program are made from: shapes, operands and fills.
#ifndef NESTOR_CHECK_ENGINES_OPERAND_GENERATOR_H_
#define NESTOR_CHECK_ENGINES_OPERAND_GENERATOR_H_

#include <vector>

#include "check/engines/index_generator.h"
#include "check/engines/program_generator.h"
#include "check/engines/recording_builder.h"
#include "check/engines/scalar_generator.h"
#include "check/random.h"
#include "uops/op.h"

namespace nestor {

class OperandGenerator {
 public:
  // The arguments outlive this. Operands come from `values`, nodes of the op's graph. New nodes
  // are added by `builder`, but constants and $params, which need no record.
  OperandGenerator(const GeneratorOptions& options, Random& random, Op& op,
                   const std::vector<NodeId>& values, IndexGenerator& indices,
                   ScalarGenerator& scalars, RecordingBuilder& builder)
      : options_(options), random_(random), op_(op), graph_(op.graph), values_(values),
        indices_(indices), scalars_(scalars), builder_(builder) {}

  // Often like the shape of an existing value. REQUIRES: there is a dimension.
  Shape RandomShape();

  // REQUIRES, of all below: there is a value.
  // A node that may be computed with: with floats_only, a float.
  NodeId Source();
  // A node of this type and shape.
  NodeId Operand(DType type, const Shape& shape);
  // `x` with this shape, read at random places.
  NodeId RandomReindex(NodeId x, const Shape& shape);
  // What a reindex gives out of range; an invalid id stands for the default, 0.
  NodeId RandomFill(DType type);

 private:
  NodeId Conform(NodeId x, DType type, const Shape& shape);
  NodeId FloatNode();

  const GeneratorOptions& options_;
  Random& random_;
  const Op& op_;
  Graph& graph_;
  const std::vector<NodeId>& values_;
  IndexGenerator& indices_;
  ScalarGenerator& scalars_;
  RecordingBuilder& builder_;
};

}  // namespace nestor

#endif  // NESTOR_CHECK_ENGINES_OPERAND_GENERATOR_H_
