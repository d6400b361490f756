// Running compiled programs on memory that shows every stray access: outputs are
// poisoned, and all buffers end (or begin) at a page that may not be touched.
#ifndef NESTOR_TESTS_JIT_RUNS_H_
#define NESTOR_TESTS_JIT_RUNS_H_

#include <cstddef>
#include <vector>

#include "absl/status/statusor.h"
#include "jit/executable.h"
#include "tensor/binding.h"
#include "tensor/tensor.h"
#include "tests/random_programs.h"

namespace nestor {

// Pages of its own around `bytes` bytes, which end where the memory ends, or begin where
// it begins.
class GuardedMemory {
 public:
  enum class Side { kEnd, kBegin };
  GuardedMemory(size_t bytes, Side side);
  GuardedMemory(GuardedMemory&& other) noexcept;
  ~GuardedMemory();
  char* data() const { return data_; }

 private:
  char* pages_ = nullptr;
  size_t mapped_ = 0;
  char* data_ = nullptr;
};

// The results on copies of the inputs in guarded memory.
Results RunJit(const jit::Executable& executable, const RunInputs& inputs,
               GuardedMemory::Side side = GuardedMemory::Side::kEnd);

}  // namespace nestor

#endif  // NESTOR_TESTS_JIT_RUNS_H_
