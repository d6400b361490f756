// For tests of Ranges: verdicts on the accesses of a program, and their check by
// enumeration.
#ifndef NESTOR_LOOP_IR_RANGES_TESTING_H_
#define NESTOR_LOOP_IR_RANGES_TESTING_H_

#include <cstdint>
#include <map>
#include <random>
#include <string>

#include "loop_ir/program.h"

namespace nestor::loop {

// The answers of Ranges about each statement: for each condition of the target 't' (always), 'f'
// (never) or '?'; then, with its conditions assumed, for the target 'y' (in range) or 'n'; then,
// with that assumed too, the same for each load.
struct Verdicts {
  std::map<const Statement*, std::string> by_statement;
  std::string text;  // of all, in the order of the program
};
Verdicts Judge(Program& program);

// Runs the program's scopes with small numbers for its symbols, all of them or a sample, and fails
// the test where a verdict is wrong. Returns how many verdicts were compared.
int64_t CheckVerdicts(const Program& program, const Verdicts& verdicts, std::mt19937& random);

}  // namespace nestor::loop

#endif  // NESTOR_LOOP_IR_RANGES_TESTING_H_
