// How many registers a list needs at once.
#ifndef NESTOR_JIT_CODEGEN_PRESSURE_H_
#define NESTOR_JIT_CODEGEN_PRESSURE_H_

#include <cstddef>
#include <vector>

#include "absl/types/span.h"
#include "jit/codegen/allocate_registers.h"
#include "jit/codegen/operations.h"

namespace nestor::jit {

// By class and operation: how many registers hold a value that is needed there or later.
class Pressure {
 public:
  // `ranges`: LiveRangesOf(list).
  Pressure(const OperationList& list, absl::Span<const LiveRange> ranges);

  // The most at operations [first, last).
  int Most(RegisterClass c, size_t first, size_t last) const;
  // Records that so many more registers are needed at operations [first, last).
  void Add(RegisterClass c, size_t first, size_t last, int registers);

 private:
  std::vector<int> live_[4];  // by class, by operation
};

}  // namespace nestor::jit

#endif  // NESTOR_JIT_CODEGEN_PRESSURE_H_
