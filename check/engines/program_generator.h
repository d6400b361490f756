// Random programs: small ops of every micro-op, scalar op and type, and inputs to
// run them on. Properties of all programs (parity of engines, round trips) are tested with these.
//
// Deterministic: the same seed and options give the same op and inputs on every
// platform and compiler. A program of fewer nodes is a prefix of the larger one of
// the same seed, up to its choice of results, so a failure shrinks by `nodes`.
#ifndef NESTOR_CHECK_ENGINES_PROGRAM_GENERATOR_H_
#define NESTOR_CHECK_ENGINES_PROGRAM_GENERATOR_H_

#include <cstdint>
#include <vector>

#include "tensor/binding.h"
#include "tensor/tensor.h"
#include "uops/op.h"

namespace nestor {

class Random;

// Any integer type.
DType DrawIntegerType(Random& random);
// One of `usual` or of the floats that are computed in a wider type, each with the same chance.
DType DrawFloatType(Random& random, std::vector<DType> usual);

struct GeneratorOptions {
  // Random steps; each adds one node, and the nodes that fit its operands to it.
  int nodes = 8;
  // Every value is a float, except for indices of gathers and conditions of selects: for gradients.
  bool floats_only = false;
  // Some constants of index expressions lie near the ends of int64 or at powers of two.
  bool extremes = false;
  // Differentiable everywhere, and of moderate size: for difference quotients.
  // Implies floats_only.
  bool smooth = false;
  // A recurrence is added in so many of 1000 steps.
  int recurrences = 60;
};

// One call of a constructor of the graph: the node that was asked for, not in canonical form, and
// the node that the constructor gave.
struct ConstructorCall {
  Node asked;
  std::vector<int> axes;  // of a reduction, in order; `count` is not used
  NodeId given;
};

// An op with one to three results. Its text can be written in the notation.
// `calls`: filled with the calls that built it, where it is not null.
Op RandomOp(uint64_t seed, const GeneratorOptions& options = {},
            std::vector<ConstructorCall>* calls = nullptr);

struct InputOptions {
  // The tensors of a run together hold about that many elements at most.
  int64_t max_elements = 2000;
  // Values are drawn without NaN, infinities and extremes.
  bool moderate = false;
  // Some integer $params lie near the ends of int64 or at powers of two, and so do some
  // dimensions of tensors without elements.
  bool extremes = false;
};

// Owns what `inputs` points to.
struct RandomInputsResult {
  std::vector<Tensor> tensors;
  RunInputs inputs;
};

// Draws extents 0 to 4 for each dimension, $params within their ranges, some left to their
// defaults; values with NaN, inf, -0, subnormals, ties and extremes; strided and reversed views.
// The op's shapes allow most, not all, of these inputs.
RandomInputsResult RandomInputs(const Op& op, uint64_t seed, const InputOptions& options = {});

}  // namespace nestor

#endif  // NESTOR_CHECK_ENGINES_PROGRAM_GENERATOR_H_
