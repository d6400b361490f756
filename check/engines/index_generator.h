// The index expressions of random programs: extents, subscripts and conditions, mostly as programs
// have them, and some that overflow, divide by zero or gather from anywhere.
#ifndef NESTOR_CHECK_ENGINES_INDEX_GENERATOR_H_
#define NESTOR_CHECK_ENGINES_INDEX_GENERATOR_H_

#include <vector>

#include "absl/types/optional.h"
#include "check/engines/program_generator.h"
#include "check/random.h"
#include "uops/graph.h"

namespace nestor {

class IndexGenerator {
 public:
  // The arguments outlive this. Gathers read their indices from those of `values`
  // that hold integers.
  IndexGenerator(const GeneratorOptions& options, Random& random, Graph& graph,
                 const std::vector<NodeId>& values)
      : options_(options), random_(random), graph_(graph), pool_(graph.pool()), values_(values) {}

  void AddDimension(IndexId dimension) { dims_.push_back(dimension); }
  void AddParam(IndexId param) { integer_params_.push_back(param); }
  const std::vector<IndexId>& dimensions() const { return dims_; }

  // Over dimensions and $params. REQUIRES: there is a dimension.
  IndexId Extent();

  // Over the axes of a shape: Var(i) runs over axis i.

  // coefficient * index + ... + offset
  IndexId Linear(const Shape& over);
  // An affine expression of any kind.
  IndexId Affine(const Shape& over);
  // Subscripts for axes of those extents, mostly inside of them.
  IndexList PlaceIn(const Shape& extents, const Shape& over);
  // A condition of comparisons that nest at most `depth` deep.
  IndexId Condition(const Shape& over, int depth = 2);

 private:
  IndexId Symbol();
  IndexId Var(const Shape& over);
  absl::optional<IndexId> Extreme(int percent);
  IndexId Coefficient();
  IndexId Offset();
  IndexId Divisor();
  IndexId Quotient(IndexId a, IndexId b);
  IndexId Irregular(const Shape& over, int depth);
  IndexId Spoil(IndexId load, const Shape& over);
  IndexId Gather(const Shape& over, int depth);
  IndexId Place(IndexId extent, const Shape& over, int depth = 2);
  IndexId ConditionOperand(const Shape& over);

  const GeneratorOptions& options_;
  Random& random_;
  Graph& graph_;
  IndexPool& pool_;
  const std::vector<NodeId>& values_;
  std::vector<IndexId> dims_, integer_params_;
};

}  // namespace nestor

#endif  // NESTOR_CHECK_ENGINES_INDEX_GENERATOR_H_
