// From the micro-op graph to the loop IR: one nest per micro-op, each into a
// tensor of its own. Nothing is fused; `fusion/` does that.
#ifndef NESTOR_LOOP_IR_LOWER_H_
#define NESTOR_LOOP_IR_LOWER_H_

#include "uops/cpp20.h"  // first, so that an older standard is named before all else

#include "loop_ir/program.h"
#include "uops/op.h"

namespace nestor {

// The program that computes op's results. Inputs, $params and checks keep their
// names and order; every result is an output tensor.
loop::Program Lower(const Op& op);

}  // namespace nestor

#endif  // NESTOR_LOOP_IR_LOWER_H_
