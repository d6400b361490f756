// Writes an op in the notation. The text parses back to the same op: names,
// types, shapes, and graph (SameOp), gradients included.
#ifndef NESTOR_UOPS_PRINT_H_
#define NESTOR_UOPS_PRINT_H_

#include <string>

#include "uops/op.h"

namespace nestor {

std::string PrintOp(const Op& op);

}  // namespace nestor

#endif  // NESTOR_UOPS_PRINT_H_
