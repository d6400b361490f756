// Says, when a kernel touches memory that it may not touch, which buffer it missed and by
// how much.
#ifndef NESTOR_CHECK_FAULT_MESSAGE_H_
#define NESTOR_CHECK_FAULT_MESSAGE_H_

#include <cstddef>

#include "absl/types/span.h"

namespace nestor {

// The bytes [begin, end) of an argument or result.
struct NamedBuffer {
  const char* name;
  const char* begin;
  const char* end;
  bool may_be_written;
};

// While it lives, a SIGSEGV or SIGBUS of any thread leaves a message: in the memory given to
// KeepFaultMessages, or else on stderr; then the signal takes its course. One at a
// time in a process.
class FaultMessage {
 public:
  // `buffers` must outlive this.
  explicit FaultMessage(absl::Span<const NamedBuffer> buffers);
  ~FaultMessage();
  FaultMessage(const FaultMessage&) = delete;
  FaultMessage& operator=(const FaultMessage&) = delete;
};

// Where messages go, ended by a 0; null: to stderr. The memory must stay valid.
void KeepFaultMessages(char* memory, size_t size);

// A text that follows on stderr: how to reproduce the trial. Copied, at most 300 bytes.
void SetFaultContext(const char* text);

}  // namespace nestor

#endif  // NESTOR_CHECK_FAULT_MESSAGE_H_
