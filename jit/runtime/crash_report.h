// Which kernel, and which statement of it, a fault in generated code comes from.
#ifndef NESTOR_JIT_RUNTIME_CRASH_REPORT_H_
#define NESTOR_JIT_RUNTIME_CRASH_REPORT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace nestor::jit {

// From now on a SIGSEGV, SIGBUS, SIGILL or SIGFPE that an instruction of registered code
// raises writes one line to stderr,
//   nestor: fault in PLACE
// and then goes to the handler that was there before, which sees the signal as if this one did not
// exist; every other signal goes there directly. A fault in a function that a kernel calls is not
// one in the kernel. Runs on the host's alternate signal stack, if any. Never undone; a second call
// does nothing; thread-safe.
void InstallCrashReport();

// Whether it is installed, or NESTOR_CRASH_REPORT asks for it (see below), so that the messages of
// a registration are worth composing. Thread-safe.
bool CrashReportIsOn();

// Machine code is known to the report for as long as its registration lives. The first
// registration installs the report where the environment variable NESTOR_CRASH_REPORT
// is set and not "0".
//
// Beyond 4096 at a time, registrations have no effect. Movable; thread-safe.
class CodeRegistration {
 public:
  // The code from `offset` on, up to the next one, comes from `place`, for example
  // "kernel softmax, block 2, statement 5: y[i] = exp(x[i])".
  struct Part {
    size_t offset;
    std::string place;
  };

  CodeRegistration() = default;  // of nothing
  // REQUIRES: the offsets ascend from 0 and are less than `size`; the code outlives this.
  CodeRegistration(const void* begin, size_t size, std::vector<Part> parts);
  CodeRegistration(CodeRegistration&& other) noexcept;
  CodeRegistration& operator=(CodeRegistration&& other) noexcept;
  // REQUIRES: no thread runs the code.
  ~CodeRegistration();

 private:
  std::unique_ptr<const std::vector<Part>> parts_;  // where the table points to
  int slot_ = -1;
};

}  // namespace nestor::jit

#endif  // NESTOR_JIT_RUNTIME_CRASH_REPORT_H_
