// Values that are an element, as it is.
#ifndef NESTOR_LOOP_IR_ELEMENTS_H_
#define NESTOR_LOOP_IR_ELEMENTS_H_

#include "loop_ir/program.h"

namespace nestor::loop {

// Whether the value is the element of the access, loaded without a mask: under a mask it may be
// another value.
bool IsElement(const Program& program, ValueId id, const Access& access);

}  // namespace nestor::loop

#endif  // NESTOR_LOOP_IR_ELEMENTS_H_
