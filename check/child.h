// Work in a process of its own, which may crash, exit or hang.
#ifndef NESTOR_CHECK_CHILD_H_
#define NESTOR_CHECK_CHILD_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"

namespace nestor {

// What parent and child see both; in shared memory.
struct Heartbeat {
  // The child counts it up while it gets on; the parent ends a child that does not.
  std::atomic<uint64_t> beats{0};
  // What FaultMessage says of a stray access; "" of none.
  char fault_message[512] = "";
};

// T in memory that later children share. REQUIRES: T is trivially destructible.
void* MapShared(size_t bytes);
void UnmapShared(void* memory, size_t bytes);
template <class T>
class Shared {
 public:
  Shared() : value_(new (MapShared(sizeof(T))) T) {}
  ~Shared() { UnmapShared(value_, sizeof(T)); }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;
  T* operator->() const { return value_; }
  T& operator*() const { return *value_; }

 private:
  T* value_;
};

struct ChildEnd {
  enum class Kind { kDone, kCrashed, kHung };
  Kind kind = Kind::kDone;
  std::string message;  // "dies of SIGSEGV: reads the byte 1 behind the last of x", "exits with 3"
  std::string result;   // what `work` returned
};

// Runs `work` in a forked copy of this process. The copy ends without running destructors or
// handlers of exit. `patience`: how long a child may live without a beat.
ChildEnd RunInChild(absl::FunctionRef<std::string()> work, absl::Duration patience, Heartbeat& heartbeat);

}  // namespace nestor

#endif  // NESTOR_CHECK_CHILD_H_
