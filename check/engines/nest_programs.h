// Programs of the kinds that passes were written for: products of matrices, windows, rows,
// triangles, transposes, shifts, gathers, scatters, scans and the statements before and after
// them, in the notation. RandomOp draws programs that nobody would write; this one draws programs
// that somebody would.
#ifndef NESTOR_CHECK_ENGINES_NEST_PROGRAMS_H_
#define NESTOR_CHECK_ENGINES_NEST_PROGRAMS_H_

#include <string>

#include "check/random.h"
#include "uops/dtype.h"

namespace nestor {

// The text of one op of one to four statements, whose values are of `type` (a float, or an
// integer of at least 32 bits) and which may have a leading pack, "..B". About one in six is
// refused: no access gives some index a range, or no argument has some dimension.
std::string DrawNestProgram(Random& random, DType type);

}  // namespace nestor

#endif  // NESTOR_CHECK_ENGINES_NEST_PROGRAMS_H_
