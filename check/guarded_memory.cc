// Reused pages may be more than are needed: then only a window of them, at either end, can be
// accessed, and the pages beside it fault as the guards do. So memory from a pool is guarded as
// fresh memory is.
#include "check/guarded_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
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

bool AllAre(int byte, const char* bytes, size_t count) {
  if (count == 0) return true;
  // The bytes equal themselves moved by one, so all are the first: memcmp compares whole vectors.
  return bytes[0] == static_cast<char>(byte) && std::memcmp(bytes, bytes + 1, count - 1) == 0;
}

// Room for a number of bytes between two pages that always fault.
//   guard | .. no access .. | window | guard        side kEnd, fewer bytes than there is room
class GuardedPages {
 public:
  explicit GuardedPages(size_t bytes) : room_(RoundUp(bytes, PageSize())) {
    mapped_ = static_cast<char*>(
        mmap(nullptr, room_ + 2 * PageSize(), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    NESTOR_CHECK(mapped_ != MAP_FAILED, "no memory");
  }
  ~GuardedPages() { munmap(mapped_, room_ + 2 * PageSize()); }
  GuardedPages(const GuardedPages&) = delete;
  GuardedPages& operator=(const GuardedPages&) = delete;

  size_t room() const { return room_; }
  char* begin() const { return window_; }
  char* end() const { return window_ + size_; }

  // Makes only the pages that hold `bytes` bytes accessible.
  void Open(size_t bytes, GuardedMemory::Side side) {
    const size_t size = RoundUp(bytes, PageSize());
    char* const window =
        mapped_ + PageSize() + (side == GuardedMemory::Side::kEnd ? room_ - size : 0);
    // Most trials need just the pages that the one before had: no call of the system then.
    if (window == window_ && size == size_ && access_ == (PROT_READ | PROT_WRITE)) return;
    if (window != window_ || size != size_) Protect(PROT_NONE);
    window_ = window;
    size_ = size;
    Protect(PROT_READ | PROT_WRITE);
  }
  void Seal() { Protect(PROT_READ); }

 private:
  void Protect(int access) {
    if (size_ > 0) NESTOR_CHECK(mprotect(window_, size_, access) == 0, "cannot protect pages");
    access_ = access;
  }

  const size_t room_;
  char* mapped_;
  char* window_ = nullptr;
  size_t size_ = 0;
  int access_ = PROT_NONE;
};

GuardedPool::GuardedPool() = default;
GuardedPool::~GuardedPool() = default;

// Best fit: the smallest free pages that are large enough; else the largest make room for new ones.
// Whatever is in the pages from their last use stays there; callers fill what they use.
std::unique_ptr<GuardedPages> GuardedPool::Take(size_t bytes) {
  if (free_.empty()) return std::make_unique<GuardedPages>(bytes);
  const auto by_room = [](const auto& a, const auto& b) { return a->room() < b->room(); };
  auto best = std::max_element(free_.begin(), free_.end(), by_room);
  for (auto it = free_.begin(); it != free_.end(); ++it) {
    if ((*it)->room() >= bytes && (*it)->room() < (*best)->room()) best = it;
  }
  std::unique_ptr<GuardedPages> pages = std::move(*best);
  free_.erase(best);
  if (pages->room() >= bytes) return pages;
  pages.reset();  // gives back its memory first
  return std::make_unique<GuardedPages>(bytes);
}

GuardedMemory::GuardedMemory(size_t bytes, Side side, size_t alignment, GuardedPool* pool)
    : pages_(pool != nullptr ? pool->Take(bytes) : std::make_unique<GuardedPages>(bytes)),
      pool_(pool), bytes_(bytes) {
  pages_->Open(bytes, side);
  // With an alignment, up to alignment - 1 bytes lie between the last element and the guard: writes
  // there do not fault, but change the poison that FillRest puts there.
  data_ = side == Side::kEnd ? pages_->end() - RoundUp(bytes, alignment) : pages_->begin();
}

GuardedMemory::GuardedMemory(GuardedMemory&& other) noexcept = default;

GuardedMemory::~GuardedMemory() {
  if (pages_ != nullptr && pool_ != nullptr) pool_->free_.push_back(std::move(pages_));
}

void GuardedMemory::Seal() { pages_->Seal(); }

void GuardedMemory::FillRest(int byte) {
  std::fill(pages_->begin(), data_, static_cast<char>(byte));
  std::fill(data_ + bytes_, pages_->end(), static_cast<char>(byte));
}

bool GuardedMemory::RestIs(int byte) const {
  const auto is_whole = [&](const char* begin, const char* end) {
    return AllAre(byte, begin, static_cast<size_t>(end - begin));
  };
  return is_whole(pages_->begin(), data_) && is_whole(data_ + bytes_, pages_->end());
}

}  // namespace nestor
