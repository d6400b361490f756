// The text form of programs: what a pass test reads and writes, what dumps show.
//
//   program softmax(x: f32[N, C], s: shape f32[A]; $k: i64 = 1 in [1, inf]) -> (y: f32[N, C]) {
//     require K == P "both are index k"           # Program::equalities
//     require 1 <= $k <= inf "op conv: $k"        # Program::range_checks
//     domain d < H - $k, d_2 < C: d*$s; d*C + d_2 # Program::domains: places; values
//     assume d < H, d_2 < C: d*d_2                # Program::assumptions
//     version min(1, C/N) == 0                    # Program::version
//     proven                                      # Program::proven
//     temp t: f32[N, C]                           # the items of Program::body
//     for n in [0, N) step 4 parallel {
//       acc m: f32 = max
//       for k in [0, C) vector(8) unroll prefetch x[n + 1, k] { m max= x[n, k] }
//       for k in [0, C) vector(8) interleave(2) tail { .. }   # LoopAttributes
//       for k in [0, C) prefetch(2) x[n + 9, k] { .. }        # into the second cache; else the first
//       temp r: f32[4, 16] register
//       ...
//     }
//     ...
//   }
//
// Statements: `y[e] = v`, and the accumulations `+=` (sum), `*=` (prod), `max=`,
// `min=`, `any=`, `all=`, `argmax=`, `argmin=` (the last two of a pair `(v, place)`).
// A masked store is `drop y[e] if c, c = v`, a masked load `y[e | fill if c, c]`,
// its fill a literal of the tensor's type, a $param or `index(e)`. A rank-0 access
// is the bare name, masked `y[ | fill]`. `x[ids[n] checked, c]` marks an axis,
// `x[ids[ids[n]] checked loads checked]` loads in subscripts as well (Access::checked), `stream
// y[e] = v` a statement that streams, `y[e] += v needed if c, c` one that may be left out elsewhere
// (Statement::needed_if).
//
// Values are the notation's expressions, typed from the leaves up: a literal is f32 (with a point,
// an exponent, inf, nan), i64 or bool; a type applied to a literal is a constant of that type, to
// anything else a cast; `index(e)` is the i64 value of an index expression. `&& || !` are and, or,
// not on bool; on integers these are functions, as are all ops without a sign.
//
// Newlines and indentation mean nothing; comments run from # to the end of the
// line; names declared in sibling scopes may be reused (the Program's are unique).
//
// Guarantee: for a program that Verify accepts, ParseProgram(ToText(p)) is
// equivalent to p, up to the numbering of tensors, indices and values, and
// ToText of it is ToText(p). The order of an affine sum's terms follows the order
// of declaration, so the text does not depend on numbering.
#ifndef NESTOR_LOOP_IR_TEXT_H_
#define NESTOR_LOOP_IR_TEXT_H_

#include "uops/cpp20.h"  // first, so that an older standard is named before all else

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "loop_ir/program.h"

namespace nestor::loop {

// REQUIRES, for all of these: ids are valid (the first invariant of verify.h); a program that
// violates other invariants still prints.
std::string ToText(const Program& program);
// One piece on one line, for messages; for a loop, its head: "for n in [0, N)".
std::string ToText(const Program& program, const Item& item);
std::string ToText(const Program& program, const Access& access);
std::string ToText(const Program& program, ValueId value);
std::string ToText(const Program& program, IndexId index);
// The texts of many statements of the program, each as for a single one, in linear time. (Each call
// for a single piece walks the whole program, to number its tensors and loops.)
std::vector<std::string> ToTexts(const Program& program, absl::Span<const Statement> statements);

// Bad text gives an InvalidArgument Status "LINE:COLUMN: ...". Rules beyond the grammar and the
// types of operands are left to Verify.
absl::StatusOr<Program> ParseProgram(absl::string_view text);

}  // namespace nestor::loop

#endif  // NESTOR_LOOP_IR_TEXT_H_
