// The faults of a kernel that Check can find.
#ifndef NESTOR_CHECK_FAULT_H_
#define NESTOR_CHECK_FAULT_H_

#include <cstdint>
#include <ostream>

#include "absl/strings/string_view.h"

namespace nestor {

// The finding of a trial: the first of these that applies.
enum class Fault : int32_t {
  kNone,
  kSkipped,    // the kernel does not do this case
  kUndecided,  // the oracle has no answer
  kMisuse,     // the kernel asks for what the op does not have
  kCrash,      // a signal, or the process ended
  kHang,
  kError,  // a Status
  kException,
  kFloatState,  // rounding, masks or flushing of MXCSR or of the x87 are changed
  kInputChanged,
  kWritesBeside,     // outside of the elements of a result
  kUnwritten,        // an element of a result keeps what was there before
  kDependsOnOutput,  // on what the outputs held before
  kNotRepeatable,    // two runs alike give different results
  kWrong,            // outside of the bounds
};
// "crash", "wrong result".
absl::string_view Name(Fault fault);
inline std::ostream& operator<<(std::ostream& out, Fault fault) { return out << Name(fault); }
// Whether it is a fault of the kernel.
inline bool IsFinding(Fault fault) { return fault > Fault::kMisuse; }

}  // namespace nestor

#endif  // NESTOR_CHECK_FAULT_H_
