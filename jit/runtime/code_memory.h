// Memory of machine code: written, then sealed read+execute; never both.
#ifndef NESTOR_JIT_RUNTIME_CODE_MEMORY_H_
#define NESTOR_JIT_RUNTIME_CODE_MEMORY_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace nestor::jit {

// Owns sealed pages. Immutable; movable; unmapped when it goes.
class CodeMemory {
 public:
  CodeMemory() = default;
  CodeMemory(CodeMemory&& other) noexcept;
  CodeMemory& operator=(CodeMemory&& other) noexcept;
  ~CodeMemory();

  // Copies `code` to fresh pages and seals them. ResourceExhausted where the system
  // gives no memory; PermissionDenied where it lets nothing be executable.
  static absl::StatusOr<CodeMemory> Seal(absl::Span<const uint8_t> code);

  // At the first byte of the code; 64-byte aligned. Null for an empty one.
  const uint8_t* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  uint8_t* data_ = nullptr;
  size_t size_ = 0;
};

// Where a function lies, for `perf`: appends a line to /tmp/perf-PID.map. Does nothing
// unless the environment variable NESTOR_PERF_MAP is set and not "0". Thread-safe.
void ReportToPerf(const void* begin, size_t size, absl::string_view name);

}  // namespace nestor::jit

#endif  // NESTOR_JIT_RUNTIME_CODE_MEMORY_H_
