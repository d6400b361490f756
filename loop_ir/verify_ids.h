// The first step of Verify: after it, ids can be followed and programs printed.
#ifndef NESTOR_LOOP_IR_VERIFY_IDS_H_
#define NESTOR_LOOP_IR_VERIFY_IDS_H_

#include "absl/status/status.h"
#include "loop_ir/program.h"

namespace nestor::loop {

// Invariant 1 of verify.h.
absl::Status VerifyIds(const Program& program);

}  // namespace nestor::loop

#endif  // NESTOR_LOOP_IR_VERIFY_IDS_H_
