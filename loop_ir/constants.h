// A program for known sizes: numbers replace symbols.
#ifndef NESTOR_LOOP_IR_CONSTANTS_H_
#define NESTOR_LOOP_IR_CONSTANTS_H_

#include "loop_ir/intervals.h"
#include "loop_ir/program.h"

namespace nestor::loop {

// Replaces each dimension and integer $param for which `value(name)` has a number by that number,
// in the whole program: shapes, loops, values, checks, domains. Where the symbols have these
// values, the program computes the same results as before, bit for bit. Its arguments stay, in
// their order, and so do its $params. REQUIRES: Verify accepts the program; then it accepts the
// result, too.
void PutConstants(Program& program, SymbolValue value);

}  // namespace nestor::loop

#endif  // NESTOR_LOOP_IR_CONSTANTS_H_
