// Memory of machine code: readable and executable, at no time writable and executable.
#ifndef NESTOR_JIT_RUNTIME_CODE_MEMORY_H_
#define NESTOR_JIT_RUNTIME_CODE_MEMORY_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace nestor::jit {

// Owns sealed pages. Immutable; movable; unmapped on destruction.
class CodeMemory {
 public:
  CodeMemory() = default;
  CodeMemory(CodeMemory&& other) noexcept;
  CodeMemory& operator=(CodeMemory&& other) noexcept;
  ~CodeMemory();

  // Copies `code` to fresh pages and seals them. ResourceExhausted if the system gives no memory;
  // PermissionDenied if it allows no executable memory.
  // The code must not depend on where it lies.
  static absl::StatusOr<CodeMemory> Seal(absl::Span<const uint8_t> code);

  // Points to the first byte of the code; 64-byte aligned. Null if the code is empty.
  const uint8_t* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  static absl::StatusOr<CodeMemory> Copied(absl::Span<const uint8_t> code);

  uint8_t* data_ = nullptr;
  size_t size_ = 0;
};

// Reports the address of a function to `perf`: appends a line to /tmp/perf-PID.map. Does nothing
// unless the environment variable NESTOR_PERF_MAP is set and not "0". Thread-safe.
void ReportToPerf(const void* begin, size_t size, absl::string_view name);

}  // namespace nestor::jit

#endif  // NESTOR_JIT_RUNTIME_CODE_MEMORY_H_
