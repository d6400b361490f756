// A signal handler may neither lock nor allocate, so the registered ranges lie in a table
// of fixed size, and each line that it may write is composed at registration.
//
// A handler reads the table while other threads write it. Each slot carries a version, odd while it
// is written (a sequence lock): the data read is trusted only if the version was even and has not
// moved. A slot that moves is not the one sought, for the code that faults stays registered as long
// as it runs; so the handler never waits, and the slot that it finds stays valid. Writers claim a
// slot by making its version odd, also without a lock.
#include "uops/cpp20.h"

#include "jit/runtime/crash_report.h"

#include <signal.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "uops/invariant.h"

namespace nestor::jit {
namespace {

using Parts = std::vector<CodeRegistration::Part>;

struct Slot {
  std::atomic<uint64_t> version{0};
  std::atomic<uintptr_t> begin{0}, end{0};
  std::atomic<const Parts*> parts{nullptr};  // null: free
};

constexpr int kSlots = 4096;
// Static, so that it is there before main and after it; zeros mean that a slot is free.
Slot table[kSlots];

// Returns -1 if all slots are taken.
// Without a slot the code runs as well; a fault in it is then reported without a statement.
int Register(uintptr_t begin, uintptr_t end, const Parts* parts) {
  for (int i = 0; i < kSlots; ++i) {
    Slot& slot = table[i];
    uint64_t version = slot.version;
    if (version % 2 != 0 || slot.parts != nullptr) continue;
    if (!slot.version.compare_exchange_strong(version, version + 1)) continue;
    slot.begin = begin;
    slot.end = end;
    slot.parts = parts;
    slot.version = version + 2;
    return i;
  }
  return -1;
}

void Unregister(int i) {
  Slot& slot = table[i];
  ++slot.version;
  slot.begin = slot.end = 0;
  slot.parts = nullptr;
  ++slot.version;
}

// Everything from here to Handle runs in the signal handler.

// The line to write for the code at `address`; null if it is not registered.
const std::string* LineOf(uintptr_t address) {
  for (const Slot& slot : table) {
    const uint64_t version = slot.version;
    const uintptr_t begin = slot.begin, end = slot.end;
    const Parts* const parts = slot.parts;
    if (version % 2 != 0 || slot.version != version || address < begin || address >= end) continue;
    const CodeRegistration::Part* found = &parts->front();
    // The last part that begins at or before the address. Linear, as a fault ends the process
    // anyway.
    for (const CodeRegistration::Part& part : *parts) {
      if (part.offset <= address - begin) found = &part;
    }
    return &found->place;
  }
  return nullptr;
}

// write alone, as it may be called in a signal handler.
void WriteToStderr(absl::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(STDERR_FILENO, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    text.remove_prefix(static_cast<size_t>(written));
  }
}

constexpr int kSignals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE};
struct sigaction previous[NSIG];

void SetDefaultAction(int signal) {
  struct sigaction action = {};
  action.sa_handler = SIG_DFL;
  sigaction(signal, &action, nullptr);
}

// Acts as if the system had called the previous handler directly.
void PassOn(int signal, siginfo_t* info, void* context) {
  const struct sigaction& before = previous[signal];
  const bool sent = info->si_code <= 0;  // by a process, rather than raised by an instruction
  if ((before.sa_flags & SA_RESETHAND) != 0) SetDefaultAction(signal);
  if ((before.sa_flags & SA_SIGINFO) != 0) return before.sa_sigaction(signal, info, context);
  if (before.sa_handler == SIG_IGN && sent) return;
  if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN)
    return before.sa_handler(signal);
  // The system does not let a fault be ignored. After the return the instruction faults again, and
  // a core file shows it.
  SetDefaultAction(signal);
  if (sent) raise(signal);
}

// Says the statement if the fault was in registered code, then does what would have been done
// without it.
void Handle(int signal, siginfo_t* info, void* context) {
  const int saved_errno = errno;
  if (info->si_code > 0) {
    const auto* machine = static_cast<const ucontext_t*>(context);
    const std::string* line = LineOf(static_cast<uintptr_t>(machine->uc_mcontext.gregs[REG_RIP]));
    if (line != nullptr) WriteToStderr(*line);
  }
  errno = saved_errno;
  PassOn(signal, info, context);
}

void InstallHandlers() {
  for (const int signal : kSignals) {
    // This precedes the change, because the handler may run right after it.
    sigaction(signal, nullptr, &previous[signal]);
    struct sigaction action = previous[signal];
    action.sa_sigaction = &Handle;
    action.sa_flags = (action.sa_flags & ~SA_RESETHAND) | SA_SIGINFO | SA_ONSTACK;
    sigaction(signal, &action, nullptr);
  }
}

std::atomic<bool> installed{false};

bool WantedByEnvironment() {
  const char* value = std::getenv("NESTOR_CRASH_REPORT");
  return value != nullptr && absl::string_view(value) != "0";
}

void CheckParts(const Parts& parts, size_t size) {
  NESTOR_CHECK(!parts.empty() && parts.front().offset == 0, "the first part begins the code");
  for (size_t i = 0; i < parts.size(); ++i) {
    const bool ascends = i == 0 || parts[i - 1].offset < parts[i].offset;
    NESTOR_CHECK(ascends && parts[i].offset < size, absl::StrCat("part ", i, ": ", parts[i].place));
  }
}

}  // namespace

void InstallCrashReport() {
  static std::once_flag once;
  std::call_once(once, InstallHandlers);
  installed = true;
}

bool CrashReportIsOn() {
  static const bool wanted = WantedByEnvironment();
  return wanted || installed;
}

CodeRegistration::CodeRegistration(const void* begin, size_t size, std::vector<Part> parts) {
  CheckParts(parts, size);
  if (CrashReportIsOn()) InstallCrashReport();
  for (Part& part : parts) part.place = absl::StrCat("nestor: fault in ", part.place, "\n");
  parts_ = std::make_unique<const Parts>(std::move(parts));
  const uintptr_t address = reinterpret_cast<uintptr_t>(begin);
  slot_ = Register(address, address + size, parts_.get());
}

CodeRegistration::CodeRegistration(CodeRegistration&& other) noexcept
    : parts_(std::move(other.parts_)), slot_(std::exchange(other.slot_, -1)) {}

CodeRegistration& CodeRegistration::operator=(CodeRegistration&& other) noexcept {
  CodeRegistration moved(std::move(other));
  std::swap(parts_, moved.parts_);
  std::swap(slot_, moved.slot_);
  return *this;
}

CodeRegistration::~CodeRegistration() {
  if (slot_ >= 0) Unregister(slot_);
}

}  // namespace nestor::jit
