// Memory that shows every stray access: pages of its own between pages that fault.
#ifndef NESTOR_CHECK_GUARDED_MEMORY_H_
#define NESTOR_CHECK_GUARDED_MEMORY_H_

#include <cstddef>

namespace nestor {

// `bytes` bytes that end where their pages end, or begin where these begin. Not
// thread-safe but for access to the bytes.
class GuardedMemory {
 public:
  enum class Side { kEnd, kBegin };
  // At the end of pages, `alignment` (a power of two up to a page) may leave a few bytes
  // between the last one and the page that faults.
  GuardedMemory(size_t bytes, Side side, size_t alignment = 1);
  GuardedMemory(GuardedMemory&& other) noexcept;
  ~GuardedMemory();

  char* data() const { return data_; }
  // From now on, a write faults.
  void Seal();

 private:
  char* pages_ = nullptr;
  size_t mapped_ = 0;
  char* data_ = nullptr;
};

}  // namespace nestor

#endif  // NESTOR_CHECK_GUARDED_MEMORY_H_
