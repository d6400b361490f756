// A program for known sizes: numbers in the place of symbols.
#ifndef NESTOR_LOOP_IR_CONSTANTS_H_
#define NESTOR_LOOP_IR_CONSTANTS_H_

#include "loop_ir/intervals.h"
#include "loop_ir/program.h"

namespace nestor::loop {

// Puts `value(name)` in the place of each dimension and integer $param that it has a number
// for, in the whole program: shapes, loops, values, checks, domains. Where the symbols have
// these values, the program computes what it did, bit for bit. Its arguments stay, in their
// order, and so do its $params. REQUIRES: Verify accepts the program; then it accepts the
// result, too.
void PutConstants(Program& program, SymbolValue value);

}  // namespace nestor::loop

#endif  // NESTOR_LOOP_IR_CONSTANTS_H_
