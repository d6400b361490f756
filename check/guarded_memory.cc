#include "check/guarded_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <utility>

#include "uops/invariant.h"

namespace nestor {
namespace {

size_t PageSize() {
  static const size_t size = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return size;
}
size_t RoundUp(size_t bytes, size_t to) { return (bytes + to - 1) / to * to; }

}  // namespace

GuardedMemory::GuardedMemory(size_t bytes, Side side, size_t alignment) {
  const size_t page = PageSize();
  const size_t inner = RoundUp(bytes, page);
  mapped_ = inner + 2 * page;
  pages_ = static_cast<char*>(mmap(nullptr, mapped_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  NESTOR_CHECK(pages_ != MAP_FAILED, "no memory");
  if (inner > 0) NESTOR_CHECK(mprotect(pages_ + page, inner, PROT_READ | PROT_WRITE) == 0, "no pages");
  data_ = pages_ + page + (side == Side::kEnd ? inner - RoundUp(bytes, alignment) : 0);
}

GuardedMemory::GuardedMemory(GuardedMemory&& other) noexcept
    : pages_(std::exchange(other.pages_, nullptr)), mapped_(other.mapped_), data_(other.data_) {}

GuardedMemory::~GuardedMemory() {
  if (pages_ != nullptr) munmap(pages_, mapped_);
}

void GuardedMemory::Seal() {
  const size_t page = PageSize();
  if (mapped_ == 2 * page) return;
  NESTOR_CHECK(mprotect(pages_ + page, mapped_ - 2 * page, PROT_READ) == 0, "cannot protect pages");
}

}  // namespace nestor
