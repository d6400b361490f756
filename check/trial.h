// One run of a kernel on one case, and what can be noticed of it without an oracle.
#ifndef NESTOR_CHECK_TRIAL_H_
#define NESTOR_CHECK_TRIAL_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "check/case.h"
#include "check/kernel_call.h"
#include "tensor/tensor.h"

namespace nestor {

// What a trial finds, the first that applies.
enum class Fault : int32_t {
  kNone,
  kSkipped,        // the kernel does not do this case
  kUndecided,      // the oracle has no answer
  kMisuse,         // the kernel asks for what the op does not have
  kCrash,          // a signal, or the process ended
  kHang,
  kError,          // a Status
  kException,
  kFloatState,     // rounding, masks or flushing of MXCSR or of the x87 are changed
  kInputChanged,
  kWritesBeside,   // outside of the elements of a result
  kUnwritten,      // an element of a result keeps what was there before
  kDependsOnOutput,  // on what the outputs held before
  kNotRepeatable,    // two runs alike give different results
  kWrong,          // outside of the bounds
};
// "crash", "wrong result".
absl::string_view Name(Fault fault);
// Whether it says something against the kernel.
inline bool IsFinding(Fault fault) { return fault > Fault::kMisuse; }

struct RunOptions {
  // Of every buffer's first byte; a power of two.
  size_t alignment = 1;
  // Inputs lie in memory that faults when it is written.
  bool sealed = false;
};

struct KernelRun {
  Fault fault = Fault::kNone;
  std::string message;          // what is wrong
  std::vector<Tensor> outputs;  // compact; empty where the kernel did not get so far
  // Of kUnwritten, kDependsOnOutput and kNotRepeatable: by result, the elements in question.
  std::vector<std::vector<int64_t>> elements;
};

// Calls the kernel two or three times, on memory between guard pages: a stray access ends
// the process (check/fault_message.h says where it was).
KernelRun RunKernel(const Kernel& kernel, const Op& op, const Case& given, const RunOptions& options);

}  // namespace nestor

#endif  // NESTOR_CHECK_TRIAL_H_
