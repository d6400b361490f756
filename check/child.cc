// A child sends messages on a pipe, each after its size. Processes that it forked may hold the
// pipe's other end for longer than it lives, and it may close that end itself: so a child ends with
// its process, not with the pipe.
#include "check/child.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "uops/invariant.h"

namespace nestor {
namespace {

// That much of what a child writes on stderr is kept: the beginning, where a broken
// invariant is named.
constexpr size_t kMostWords = 3000;

void WriteAll(int fd, absl::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) std::_Exit(1);  // the parent has gone
    text.remove_prefix(static_cast<size_t>(written));
  }
}

struct Pipe {
  int read_end = -1, write_end = -1;
  Pipe() {
    int ends[2];
    NESTOR_CHECK(pipe2(ends, O_CLOEXEC) == 0, "no pipe");
    read_end = ends[0];
    write_end = ends[1];
  }
};

// It dies with its parent and leaves no core: a crash is an expected outcome here. _Exit runs no
// destructors and no atexit handlers, which belong to the parent.
[[noreturn]] void BeChild(absl::FunctionRef<void(Say)> work, int says, int errors) {
  dup2(errors, STDERR_FILENO);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const struct rlimit no_core = {0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  work([says](absl::string_view message) {
    const uint64_t size = message.size();
    WriteAll(says,
             absl::StrCat(absl::string_view(reinterpret_cast<const char*>(&size), sizeof(size)),
                          message));
  });
  std::fflush(nullptr);
  std::_Exit(0);
}

// Reads the available bytes; false at the end of the pipe.
bool ReadMore(int fd, std::string& text) {
  char buffer[1 << 16];
  const ssize_t count = read(fd, buffer, sizeof buffer);
  if (count < 0) return errno == EINTR;
  text.append(buffer, static_cast<size_t>(count));
  return count > 0;
}

// Leaves the child to waitpid.
// WNOWAIT keeps the process as a zombie, so that its id cannot be given to another one before the
// group is killed.
bool HasEnded(pid_t child) {
  siginfo_t info = {};
  return waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         info.si_pid == child;
}

// Both pipes of a child, read until it ends or is to be killed.
class Listener {
 public:
  Listener(int says, int errors) : fds_{{says, POLLIN, 0}, {errors, POLLIN, 0}} {}

  enum class Result { kEnded, kSilent, kEnough };
  // Waits for messages, the child's end, or a silence as long as `patience`, whichever comes first.
  Result Run(pid_t child, absl::FunctionRef<bool(absl::string_view)> hear, absl::Duration patience,
             absl::FunctionRef<bool()> is_excused) {
    // Nearly always a child ends right after its pipe does.
    constexpr absl::Duration kOpen = absl::Milliseconds(100), kClosed = absl::Microseconds(50);
    absl::Time silent_since = absl::Now();
    while (true) {
      const bool is_open = fds_[0].fd >= 0;
      const bool has_word =
          Read(std::min(is_open ? kOpen : kClosed, patience)) && fds_[0].revents != 0;
      if (has_word) silent_since = absl::Now();
      if (!HearMessages(hear)) return Result::kEnough;
      // Only once the pipe is quiet: what the child said last is heard before its end counts.
      if (!has_word && HasEnded(child)) return Result::kEnded;
      if (absl::Now() - silent_since >= patience && !is_excused()) return Result::kSilent;
    }
  }
  // Reads the rest of the pipes when the child has ended.
  void ReadRest() {
    while (Read(absl::ZeroDuration())) {
    }
  }
  // A message is its length and its bytes; one that has come in part stays in `said_`.
  bool HearMessages(absl::FunctionRef<bool(absl::string_view)> hear) {
    absl::string_view rest = said_;
    bool goes_on = true;
    for (uint64_t size; goes_on && rest.size() >= sizeof(size);) {
      std::memcpy(&size, rest.data(), sizeof(size));
      if (rest.size() - sizeof(size) < size) break;
      goes_on = hear(rest.substr(sizeof(size), size));
      rest.remove_prefix(sizeof(size) + size);
    }
    said_.erase(0, said_.size() - rest.size());
    return goes_on;
  }
  const std::string& errors() const { return errors_; }

 private:
  // Reads what arrives within `time`; false if nothing does.
  bool Read(absl::Duration time) {
    const struct timespec limit = absl::ToTimespec(time);
    if (ppoll(fds_, 2, &limit, nullptr) <= 0) return false;
    if (fds_[1].revents != 0 && !ReadMore(fds_[1].fd, errors_)) fds_[1].fd = -1;
    if (errors_.size() > kMostWords) errors_.resize(kMostWords);
    if (fds_[0].revents != 0 && !ReadMore(fds_[0].fd, said_)) fds_[0].fd = -1;
    return true;
  }

  pollfd fds_[2];
  std::string said_, errors_;
};

// "killed by signal 11 (Segmentation fault)", "exited with 3", or empty for a good end.
std::string DeathOf(int status) {
  if (WIFSIGNALED(status)) {
    return absl::StrCat("killed by signal ", WTERMSIG(status), " (", strsignal(WTERMSIG(status)),
                        ")");
  }
  const int code = WEXITSTATUS(status);
  return code == 0 ? "" : absl::StrCat("exited with ", code);
}

}  // namespace

std::string DeathText(const ChildEnd& end) {
  return absl::StrCat(absl::StartsWith(end.death, "killed") ? "is " : "", end.death);
}

// The child leads a process group, so that whatever it forks ends with it.
ChildEnd RunInChild(absl::FunctionRef<void(Say)> work,
                    absl::FunctionRef<bool(absl::string_view message)> hear,
                    absl::Duration patience, absl::FunctionRef<bool()> is_excused) {
  const Pipe says, errors;
  std::fflush(nullptr);
  const pid_t child = fork();
  NESTOR_CHECK(child >= 0, "no process");
  setpgid(child, child);  // in both processes, as either may be first
  if (child == 0) BeChild(work, says.write_end, errors.write_end);
  close(says.write_end);
  close(errors.write_end);
  Listener listener(says.read_end, errors.read_end);
  Listener::Result result = listener.Run(child, hear, patience, is_excused);
  kill(-child, SIGKILL);  // it, or processes that it forked and left
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  listener.ReadRest();
  // The last messages may have come with the rest, after the child had ended.
  if (result == Listener::Result::kEnded && !listener.HearMessages(hear))
    result = Listener::Result::kEnough;
  close(says.read_end);
  close(errors.read_end);
  if (result == Listener::Result::kEnough) return {};
  if (result == Listener::Result::kSilent) {
    return {absl::StrCat("gave no word for ", absl::FormatDuration(patience)), listener.errors(),
            /*is_hung=*/true};
  }
  return {DeathOf(status), listener.errors()};
}

void* MapShared(size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  NESTOR_CHECK(memory != MAP_FAILED, "no memory");
  return memory;
}

void UnmapShared(void* memory, size_t bytes) { munmap(memory, bytes); }

}  // namespace nestor
