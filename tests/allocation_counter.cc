// All forms of operator new and delete are replaced, as the standard allows, by ones that count.
#include "tests/allocation_counter.h"

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace {

std::atomic<int64_t> allocations{0}, allocated_bytes{0};

// Returns null where there is no memory.
void* CountedOrNull(size_t bytes, size_t alignment) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  allocated_bytes.fetch_add(static_cast<int64_t>(bytes), std::memory_order_relaxed);
  const size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  return alignment <= alignof(std::max_align_t) ? std::malloc(bytes == 0 ? 1 : bytes)
                                                : std::aligned_alloc(alignment, rounded);
}

void* Counted(size_t bytes, size_t alignment) {
  void* const memory = CountedOrNull(bytes, alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

void* operator new(size_t bytes) { return Counted(bytes, 1); }
void* operator new[](size_t bytes) { return Counted(bytes, 1); }
void* operator new(size_t bytes, std::align_val_t alignment) {
  return Counted(bytes, static_cast<size_t>(alignment));
}
void* operator new[](size_t bytes, std::align_val_t alignment) {
  return Counted(bytes, static_cast<size_t>(alignment));
}
void* operator new(size_t bytes, const std::nothrow_t&) noexcept { return CountedOrNull(bytes, 1); }
void* operator new[](size_t bytes, const std::nothrow_t&) noexcept {
  return CountedOrNull(bytes, 1);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t, std::align_val_t) noexcept { std::free(memory); }

namespace nestor {

Allocations AllocationsSoFar() { return {allocations, allocated_bytes}; }

}  // namespace nestor
