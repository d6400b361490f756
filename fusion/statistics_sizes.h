// A program at given sizes: what its extents and loop bounds are, and which
// values its index expressions take while loops run.
#ifndef NESTOR_FUSION_STATISTICS_SIZES_H_
#define NESTOR_FUSION_STATISTICS_SIZES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "loop_ir/program.h"

namespace nestor::fusion {

// Dimensions and integer $params ("$k") by name.
using Sizes = absl::flat_hash_map<std::string, int64_t>;

// Values that all lie among low, low + step, .., high; about `count` of these are
// taken (exactly so for one affine term, at most so otherwise). count >= 1.
struct Progression {
  int64_t low, high;
  int64_t step = 1;
  int64_t count = 1;

  static Progression Single(int64_t value) { return {value, value}; }
};

// By number of the loop index; nullopt: no loop around holds it, or none runs.
using VarValues = std::vector<absl::optional<Progression>>;

// Whether loads and stores of the tensor reach memory: not those of register
// tiles, nor of temps and accumulators of rank 0 that are declared in a scope.
// (Those that the program declares pass from block to block, but are as few.)
bool LivesInMemory(const loop::TensorInfo& tensor);

// Immutable. The program must outlive it and not change.
class SizedProgram {
 public:
  // InvalidArgument where a symbol has no value (integer $params have their
  // defaults), or where an index expression or a loop's length may overflow. REQUIRES: Verify
  // accepts the program.
  static absl::StatusOr<SizedProgram> Create(const loop::Program& program, const Sizes& sizes);

  const loop::Program& program() const { return *program_; }

  // What `e` is for loop indices that run over `vars`; nullopt where it gathers,
  // overflows or divides by zero. Sound: no other value is taken.
  absl::optional<Progression> Over(IndexId e, const VarValues& vars) const;

  // The values of a loop's index where the indices around it run over `vars`;
  // nullopt where it runs no iteration.
  absl::optional<Progression> IndexOf(const loop::Loop& loop, const VarValues& vars) const;

  // The extent along each axis; of a tensor that a loop's body declares, the
  // largest of any entry. A negative or undefined one is InvalidArgument.
  absl::StatusOr<std::vector<int64_t>> Extents(loop::TensorId tensor) const;
  // Of all elements; an arg accumulator keeps a place beside each. Overflow is
  // InvalidArgument.
  absl::StatusOr<int64_t> Bytes(loop::TensorId tensor) const;

 private:
  explicit SizedProgram(const loop::Program& program) : program_(&program) {}
  absl::Status BindSymbols(const Sizes& sizes);
  absl::Status BindVars(const loop::Scope& scope);
  bool IsDead(IndexId e) const;  // holds the index of a loop that never runs

  const loop::Program* program_;
  std::vector<absl::optional<int64_t>> symbols_;  // by IndexId
  VarValues vars_;                                // over the whole program
};

}  // namespace nestor::fusion

#endif  // NESTOR_FUSION_STATISTICS_SIZES_H_
