// The handler calls only functions that are allowed in signal handlers: it compares addresses
// and writes bytes.
#include "check/fault_message.h"

#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace nestor {
namespace {

constexpr int kSignals[] = {SIGSEGV, SIGBUS};
constexpr size_t kContextSize = 300;
// A stray access farther away from every buffer belongs to none.
constexpr int64_t kNear = int64_t{1} << 20;

// Globals, as a signal handler is given no context. So one FaultMessage at a time, on one thread.
absl::Span<const NamedBuffer> g_buffers;
char* g_memory = nullptr;
size_t g_memory_size = 0;
char g_context[kContextSize] = "";
// The handlers of sanitizers or of the host, which get the signal next.
struct sigaction g_before[2];

// Text of bounded length, made without allocating memory.
class Line {
 public:
  void Add(const char* text) {
    while (*text != 0 && size_ + 1 < sizeof(text_)) text_[size_++] = *text++;
    text_[size_] = 0;
  }
  void Add(int64_t number) {
    char digits[24];
    int count = 0;
    // From the last digit on; distances are never negative.
    do digits[count++] = static_cast<char>('0' + number % 10);
    while ((number /= 10) > 0);
    std::reverse(digits, digits + count);
    digits[count] = 0;
    Add(digits);
  }
  const char* text() const { return text_; }
  size_t size() const { return size_; }

 private:
  char text_[480] = "";
  size_t size_ = 0;
};

// The buffer that `address` missed by the least, and by how much; 0 inside.
const NamedBuffer* Nearest(const char* address, int64_t* distance) {
  const NamedBuffer* nearest = nullptr;
  *distance = kNear;
  for (const NamedBuffer& buffer : g_buffers) {
    const auto at = reinterpret_cast<intptr_t>(address),
               begin = reinterpret_cast<intptr_t>(buffer.begin),
               end = reinterpret_cast<intptr_t>(buffer.end);
    const int64_t missed = at < begin ? begin - at : at >= end ? at - end + 1 : 0;
    if (missed < *distance) {
      nearest = &buffer;
      *distance = missed;
    }
  }
  return nearest;
}

void Describe(const char* address, bool is_write, Line& line) {
  int64_t distance = 0;
  const NamedBuffer* buffer = Nearest(address, &distance);
  line.Add(is_write ? "writes " : "reads ");
  if (buffer == nullptr) {
    line.Add("at an address that is near no argument and no result");
  } else if (distance == 0) {
    line.Add(buffer->may_be_written ? "the result " : "the argument ");
    line.Add(buffer->name);
  } else {
    line.Add("the byte ");
    line.Add(distance);
    line.Add(address < buffer->begin ? " before the first of " : " after the last of ");
    line.Add(buffer->name);
  }
}

bool IsWrite(void* context) {
  constexpr long kWriteBit = 2;  // of the page fault's error code
  return (static_cast<const ucontext_t*>(context)->uc_mcontext.gregs[REG_ERR] & kWriteBit) != 0;
}

// Only calls that are allowed in a signal handler: no memory is allocated, nothing is formatted by
// the library.
void HandleFault(int signal, siginfo_t* info, void* context) {
  Line line;
  Describe(static_cast<const char*>(info->si_addr), IsWrite(context), line);
  if (g_memory != nullptr) {
    const size_t size = std::min(line.size(), g_memory_size - 1);
    // The parent prints it with the death of this process.
    std::memcpy(g_memory, line.text(), size);
    g_memory[size] = 0;
  } else {
    Line whole;
    whole.Add("nestor::Check: the kernel ");
    whole.Add(line.text());
    whole.Add(g_context);
    whole.Add("\n");
    const ssize_t written = write(STDERR_FILENO, whole.text(), whole.size());
    static_cast<void>(written);
  }
  // The instruction runs again, and ends the process as it would have without this.
  for (int i = 0; i < 2; ++i) sigaction(kSignals[i], &g_before[i], nullptr);
  static_cast<void>(signal);
}

// A kernel that overflows its stack leaves no stack for the handler.
void UseSignalStack() {
  alignas(16) static char memory[1 << 16];
  static const bool is_used = [] {
    stack_t stack = {};
    stack.ss_size = sizeof(memory);
    stack.ss_sp = memory;
    return sigaltstack(&stack, nullptr) == 0;
  }();
  static_cast<void>(is_used);
}

}  // namespace

FaultMessage::FaultMessage(absl::Span<const NamedBuffer> buffers) {
  g_buffers = buffers;
  UseSignalStack();
  struct sigaction action = {};
  action.sa_sigaction = HandleFault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  // SA_ONSTACK: the handler has a stack of its own.
  sigemptyset(&action.sa_mask);
  for (int i = 0; i < 2; ++i) sigaction(kSignals[i], &action, &g_before[i]);
}

FaultMessage::~FaultMessage() {
  for (int i = 0; i < 2; ++i) sigaction(kSignals[i], &g_before[i], nullptr);
  g_buffers = {};
}

void KeepFaultMessages(char* memory, size_t size) {
  g_memory = memory;
  g_memory_size = size;
}

void SetFaultContext(const char* text) {
  std::strncpy(g_context, text, kContextSize - 1);
  g_context[kContextSize - 1] = 0;
}

}  // namespace nestor
