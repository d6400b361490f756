// A program at given sizes: the values of its extents and loop bounds, and those that its index
// expressions take while loops run.
#ifndef NESTOR_LOOP_IR_SIZED_PROGRAM_H_
#define NESTOR_LOOP_IR_SIZED_PROGRAM_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "loop_ir/program.h"

namespace nestor::loop {

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
// (Those that the program declares pass from item to item, but are as few.)
bool LivesInMemory(const TensorInfo& tensor);

inline bool IsArgAccumulator(const TensorInfo& tensor) {
  return tensor.storage == Storage::kAccumulator && IsArg(tensor.op);
}

// The bytes of an element, with its position in an arg accumulator.
int64_t ElementBytes(const TensorInfo& tensor);

// The alignment of temporaries, and of the positions that an arg accumulator keeps after
// its values.
constexpr int64_t kArenaAlignment = 64;
constexpr int64_t AlignedForArena(int64_t bytes) {
  return (bytes + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment;
}
// From the address of an arg accumulator to its positions, for so many bytes of values.
constexpr int64_t PositionsOffset(int64_t value_bytes) { return AlignedForArena(value_bytes); }

// The bytes of `count` elements of a tensor, with the positions of an arg accumulator; nullopt
// beyond kLargestTensor. REQUIRES: count >= 0.
constexpr int64_t kLargestTensor = int64_t{1} << 62;
absl::optional<int64_t> BytesOf(const TensorInfo& tensor, int64_t count);

// Immutable. The program must outlive it and not change.
class SizedProgram {
 public:
  // InvalidArgument where a symbol has no value (integer $params have their
  // defaults), or where an index expression or a loop's length may overflow. REQUIRES: Verify
  // accepts the program.
  static absl::StatusOr<SizedProgram> Create(const Program& program, const Sizes& sizes);

  const Program& program() const { return *program_; }

  // The values of `e` for loop indices that run over `vars`; nullopt where it gathers, overflows or
  // divides by zero. This is sound: `e` takes no other value.
  absl::optional<Progression> Over(IndexId e, const VarValues& vars) const;

  // The values of a loop's index where the indices around it run over `vars`;
  // nullopt where it runs no iteration.
  absl::optional<Progression> IndexOf(const Loop& loop, const VarValues& vars) const;

  // The extent along each axis; for a tensor that a loop's body declares, the largest of any entry.
  // A negative or undefined one is InvalidArgument.
  absl::StatusOr<std::vector<int64_t>> Extents(TensorId tensor) const;
  // The bytes of all elements: see BytesOf. Overflow is InvalidArgument.
  absl::StatusOr<int64_t> Bytes(TensorId tensor) const;

 private:
  explicit SizedProgram(const Program& program) : program_(&program) {}
  // InvalidArgument for a symbol without a size.
  absl::Status BindSymbols(const Sizes& sizes);
  // The values that each loop's index takes, from the outside in.
  absl::Status BindVars(const Scope& scope);
  bool IsDead(IndexId e) const;  // holds the index of a loop that never runs

  const Program* program_;
  std::vector<absl::optional<int64_t>> symbols_;  // by IndexId
  VarValues vars_;                                // over the whole program
};

}  // namespace nestor::loop

#endif  // NESTOR_LOOP_IR_SIZED_PROGRAM_H_
