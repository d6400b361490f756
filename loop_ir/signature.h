// What a caller must know of a program to call it.
#ifndef NESTOR_LOOP_IR_SIGNATURE_H_
#define NESTOR_LOOP_IR_SIGNATURE_H_

#include "loop_ir/program.h"
#include "uops/signature.h"

namespace nestor::loop {

// As for an op, so that calls are checked by the same rules on every engine. The views point into
// `program`.
Signature SignatureOf(const Program& program);

}  // namespace nestor::loop

#endif  // NESTOR_LOOP_IR_SIGNATURE_H_
