// Names as `nestor check` prints them.
#include "check/fault.h"

namespace nestor {

absl::string_view Name(Fault fault) {
  switch (fault) {
    case Fault::kNone: return "right";
    case Fault::kSkipped: return "skipped";
    case Fault::kUndecided: return "undecided";
    case Fault::kMisuse: return "misuse";
    case Fault::kCrash: return "crash";
    case Fault::kHang: return "hang";
    case Fault::kError: return "error";
    case Fault::kException: return "exception";
    case Fault::kFloatState: return "changed float state";
    case Fault::kInputChanged: return "changed input";
    case Fault::kWritesBeside: return "write outside of the result";
    case Fault::kUnwritten: return "element not written";
    case Fault::kDependsOnOutput: return "result depends on the output's old values";
    case Fault::kNotRepeatable: return "result not repeatable";
    case Fault::kWrong: return "wrong result";
  }
  return "";
}

}  // namespace nestor
