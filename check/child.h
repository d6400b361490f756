// Work in a child process, so that a fault, an abort or an endless loop in it is something to
// report.
#ifndef NESTOR_CHECK_CHILD_H_
#define NESTOR_CHECK_CHILD_H_

#include <cstddef>
#include <new>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace nestor {

// How a child ended. Empty: it returned.
//   "killed by signal 11 (Segmentation fault)", "gave no word for 20s"
struct ChildEnd {
  std::string death;
  std::string words;     // the beginning of what it wrote on stderr, where it died
  bool is_hung = false;  // its death is that it said nothing
};

// "is killed by signal 11 (..)": how a sentence about it goes on. REQUIRES: it died.
std::string DeathText(const ChildEnd& end);

// Sends one message, of any bytes, to the parent.
using Say = absl::FunctionRef<void(absl::string_view message)>;

// Runs `work` in a child, and calls `hear` with each message, in the parent. A
// child that says nothing for `patience` is killed; where `hear` returns false, it is
// killed as well, and its end is no death. When it ends, the processes that it forked end, too.
// When it has been silent for too long, the parent asks `is_excused`: if that returns true, it
// waits on. REQUIRES: this process has one thread.
ChildEnd RunInChild(
    absl::FunctionRef<void(Say)> work, absl::FunctionRef<bool(absl::string_view message)> hear,
    absl::Duration patience, absl::FunctionRef<bool()> is_excused = [] { return false; });

// A T in memory that this process shares with its later children. REQUIRES: T is trivially
// destructible, and means the same in each process.
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

}  // namespace nestor

#endif  // NESTOR_CHECK_CHILD_H_
