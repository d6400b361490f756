// Memory that shows every stray access: pages of its own between pages that fault.
#ifndef NESTOR_CHECK_GUARDED_MEMORY_H_
#define NESTOR_CHECK_GUARDED_MEMORY_H_

#include <cstddef>
#include <memory>
#include <vector>

namespace nestor {

class GuardedPages;

// Reuses the pages of GuardedMemory for callers who need such memory often: faulting in fresh pages
// costs more than filling them. Holds as many as were in use at once. Must outlive the memory that
// is taken from it. Not thread-safe.
class GuardedPool {
 public:
  GuardedPool();
  ~GuardedPool();
  GuardedPool(const GuardedPool&) = delete;
  GuardedPool& operator=(const GuardedPool&) = delete;

 private:
  friend class GuardedMemory;
  // Takes the smallest pages that suffice.
  std::unique_ptr<GuardedPages> Take(size_t bytes);

  std::vector<std::unique_ptr<GuardedPages>> free_;
};

// `bytes` bytes that end where their pages end, or begin where these begin. Any access around
// them faults, except in the rest of their first or last page. Not thread-safe but for access
// to the bytes.
class GuardedMemory {
 public:
  enum class Side { kEnd, kBegin };
  // At the end of pages, `alignment` (a power of two up to a page) may leave a few bytes
  // between the last one and the page that faults. Fresh bytes are 0, those from a pool anything.
  GuardedMemory(size_t bytes, Side side, size_t alignment = 1, GuardedPool* pool = nullptr);
  GuardedMemory(GuardedMemory&& other) noexcept;
  ~GuardedMemory();

  char* data() const { return data_; }
  // From now on, a write faults.
  void Seal();

  // The bytes beside those that were asked for, which do not fault.
  void FillRest(int byte);
  bool RestIs(int byte) const;

 private:
  std::unique_ptr<GuardedPages> pages_;
  GuardedPool* pool_;  // that gets the pages back; or null
  size_t bytes_ = 0;
  char* data_ = nullptr;
};

// Whether each of `count` bytes is `byte`.
bool AllAre(int byte, const char* bytes, size_t count);

}  // namespace nestor

#endif  // NESTOR_CHECK_GUARDED_MEMORY_H_
