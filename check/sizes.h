// Sizes to check a kernel at: values for the dimensions and integer $params of an op that satisfy
// its equalities and ranges and the kernel's conditions.
#ifndef NESTOR_CHECK_SIZES_H_
#define NESTOR_CHECK_SIZES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "check/random.h"
#include "uops/op.h"

namespace nestor {

// By name: dimensions and integer $params.
using SymbolValues = absl::flat_hash_map<std::string, int64_t>;

// How large sizes may be.
struct SizeLimits {
  // The elements of all arguments and results together.
  int64_t max_elements = 8192;
  // The extent of one dimension.
  int64_t max_extent = 1030;
  // Points at which the op computes something: a matmul has M * K * N products.
  int64_t max_work = 50000;
};

// Immutable, so thread-safe.
class SizeSolver {
 public:
  // `conditions` as in uops/notation/condition_text.h; a Status names the one that is wrong.
  static absl::StatusOr<SizeSolver> Create(const Op& op, absl::Span<const std::string> conditions);

  // Sizes within the limits, near those that find faults: 0, 1, few, one more or less than powers
  // of two and multiples of vectors, one axis long, all axes equal. Each size is wished for by
  // itself, and then moved to the nearest number that meets the conditions on it and on the sizes
  // before it. nullopt where none of many attempts meets all conditions.
  absl::optional<SymbolValues> Draw(Random& random, const SizeLimits& limits) const;

  // Whether the op can be run at these sizes and the kernel's conditions hold.
  bool Allows(const SymbolValues& sizes) const;
  // Elements and work as in SizeLimits, capped far above all limits.
  // REQUIRES: Allows(sizes).
  int64_t Elements(const SymbolValues& sizes) const;
  int64_t Work(const SymbolValues& sizes) const;

  // In the order of the signature: dimensions, then integer $params.
  const std::vector<std::string>& names() const { return names_; }

 private:
  struct Variable {
    int64_t low = 0, high = 0;
    absl::optional<int64_t> preferred;  // a $param's default
    bool is_dimension = true;
  };
  // Holds where it is not 0; with `is_extent`, where it is in [0, kMaxExtent].
  struct Constraint {
    IndexId expr;
    bool is_extent = false;
    bool is_equality = false;
    std::vector<int> variables;
  };
  class Assignment;
  // The style of the extents that are wished for.
  enum class Style { kTiny, kEdge, kOneLong, kEqual, kUniform };

  bool IsExtentOfResult(const std::string& param);
  static void LimitParam(const ParamInfo& param, Variable& variable);
  static int64_t ParamWish(const Variable& variable, Random& random);
  void AddVariables();
  void AddConstraint(IndexId expr, bool is_extent);
  void AddLaw();
  void AddExtents();
  void NarrowVariables();
  bool Holds(const Constraint& constraint, absl::Span<const absl::optional<int64_t>> values) const;
  absl::optional<int64_t> Evaluate(IndexId e,
                                   absl::Span<const absl::optional<int64_t>> values) const;
  int64_t Count(const Shape& shape, absl::Span<const absl::optional<int64_t>> values) const;
  std::vector<absl::optional<int64_t>> Values(const SymbolValues& sizes) const;
  bool IsVain(absl::Span<const absl::optional<int64_t>> values) const;
  std::vector<int64_t> DrawWishes(Random& random, Style style, int64_t largest) const;
  absl::optional<std::vector<absl::optional<int64_t>>> Solve(Random& random,
                                                             absl::Span<const int64_t> wishes,
                                                             int64_t max_extent) const;

  Op op_;  // its pool holds the conditions, too
  std::vector<std::string> names_;
  std::vector<Variable> variables_;  // by the number of the name
  std::vector<int> by_symbol_;       // by the pool's number of a symbol: the variable, or -1
  std::vector<Constraint> constraints_;
  bool is_fixed_ = false;                // each variable has one value
  std::vector<Shape> tensors_, points_;  // of arguments and results; of all that is computed
};

}  // namespace nestor

#endif  // NESTOR_CHECK_SIZES_H_
