#include "check/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "check/fault_message.h"
#include "uops/invariant.h"

namespace nestor {
namespace {

// Behind a result, so that a child that exits by itself is told from one that is done.
constexpr char kEndMark[] = "nestor-child-is-done";

void WriteAll(int file, const std::string& bytes) {
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t written = write(file, bytes.data() + done, bytes.size() - done);
    if (written < 0 && errno != EINTR) return;
    if (written > 0) done += static_cast<size_t>(written);
  }
}

[[noreturn]] void BeChild(absl::FunctionRef<std::string()> work, int file, Heartbeat& heartbeat) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const struct rlimit no_core = {0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  KeepFaultMessages(heartbeat.fault_message, sizeof(heartbeat.fault_message));
  WriteAll(file, absl::StrCat(work(), kEndMark));
  std::fflush(stdout);
  _exit(0);
}

// False where the child gave no sign of life for `patience`.
bool ReadAll(int file, absl::Duration patience, Heartbeat& heartbeat, std::string& bytes) {
  uint64_t beats = heartbeat.beats;
  absl::Time last = absl::Now();
  char buffer[1 << 16];
  for (;;) {
    struct pollfd waited = {file, POLLIN, 0};
    const int ready = poll(&waited, 1, 50);
    if (ready > 0) {
      const ssize_t count = read(file, buffer, sizeof(buffer));
      if (count == 0) return true;
      if (count > 0) bytes.append(buffer, static_cast<size_t>(count));
      last = absl::Now();
      continue;
    }
    if (heartbeat.beats != beats) {
      beats = heartbeat.beats;
      last = absl::Now();
    } else if (absl::Now() - last > patience) {
      return false;
    }
  }
}

std::string SignalText(int signal, const Heartbeat& heartbeat) {
  const char* name = sigabbrev_np(signal);
  std::string text = name != nullptr ? absl::StrCat("dies of SIG", name) : absl::StrCat("dies of signal ", signal);
  if (heartbeat.fault_message[0] != 0) absl::StrAppend(&text, ": ", heartbeat.fault_message);
  return text;
}

bool TakeEndMark(std::string& bytes) {
  const size_t size = sizeof(kEndMark) - 1;
  if (bytes.size() < size || bytes.compare(bytes.size() - size, size, kEndMark) != 0) return false;
  bytes.resize(bytes.size() - size);
  return true;
}

}  // namespace

void* MapShared(size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  NESTOR_CHECK(memory != MAP_FAILED, "no memory");
  return memory;
}

void UnmapShared(void* memory, size_t bytes) { munmap(memory, bytes); }

ChildEnd RunInChild(absl::FunctionRef<std::string()> work, absl::Duration patience, Heartbeat& heartbeat) {
  ChildEnd end;
  heartbeat.fault_message[0] = 0;
  int files[2];
  NESTOR_CHECK(pipe2(files, O_CLOEXEC) == 0, "no pipe");
  std::fflush(nullptr);
  const pid_t child = fork();
  NESTOR_CHECK(child >= 0, "cannot fork");
  if (child == 0) {
    close(files[0]);
    BeChild(work, files[1], heartbeat);
  }
  close(files[1]);
  const bool is_alive = ReadAll(files[0], patience, heartbeat, end.result);
  close(files[0]);
  if (!is_alive) kill(child, SIGKILL);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!is_alive) {
    end.kind = ChildEnd::Kind::kHung;
    end.message = absl::StrCat("does not end within ", absl::FormatDuration(patience));
  } else if (WIFSIGNALED(status)) {
    end.kind = ChildEnd::Kind::kCrashed;
    end.message = SignalText(WTERMSIG(status), heartbeat);
  } else if (!TakeEndMark(end.result)) {
    end.kind = ChildEnd::Kind::kCrashed;
    end.message = absl::StrCat("exits with ", WEXITSTATUS(status));
  }
  return end;
}

}  // namespace nestor
