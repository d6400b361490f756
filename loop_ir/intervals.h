// The proof that index arithmetic does not overflow, for known sizes: intervals of every
// expression, from the indices around it.
#ifndef NESTOR_LOOP_IR_INTERVALS_H_
#define NESTOR_LOOP_IR_INTERVALS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/optional.h"
#include "loop_ir/program.h"

namespace nestor::loop {

// The value of a dimension or integer $param, by name.
using SymbolValue = absl::FunctionRef<absl::optional<int64_t>(const std::string&)>;

// The law for sizes and $params (SEMANTICS 1), which every engine asks before it runs any
// stage of a program. InvalidArgument, naming the expression, where an extent of a domain
// has no value, is negative or exceeds kMaxExtent; or where no extent is 0 and an
// expression of the domain might leave int64, or a value divides by zero.
absl::Status CheckDomains(const Program& program, SymbolValue symbol);

// Whether the loops of `program`, as they are now, can be run in int64. InvalidArgument,
// naming the expression, where a bound or extent has no value or exceeds what loop
// counters hold (2^62), or some affine expression in a loop that runs at least once might
// leave int64, or an assumption of the program may not hold, or the loops are a version for other
// sizes; ResourceExhausted where a nest would have more than 2^45 iterations. Gathered values,
// products of indices and divisions by indices are not affine: they may overflow, and put an access
// out of bounds. A program that passes CheckDomains overflows here only if passes rewrote it.
absl::Status ProveNoOverflow(const Program& program, SymbolValue symbol);

// The values that the flags of Program::version have for these sizes, in order; where one has no
// value, the program's own.
std::vector<bool> VersionAt(const Program& program, SymbolValue symbol);

// Whether `e`, over domain indices and symbols, is known to lie far inside of int64 for
// all extents up to kMaxExtent: a short sum of indices and dimensions with small factors.
bool IsAlwaysSmall(const IndexPool& pool, IndexId e);
// Whether `e` is an extent that CheckDomains cannot refuse: a dimension, which binding
// bounds, or a number in [0, kMaxExtent].
bool IsPlainExtent(const IndexPool& pool, IndexId e);

}  // namespace nestor::loop

#endif  // NESTOR_LOOP_IR_INTERVALS_H_
