// Nests that run once more, as they were written, where a quicker form of them was wrong.
#ifndef NESTOR_JIT_SCHEDULE_SECOND_RUN_H_
#define NESTOR_JIT_SCHEDULE_SECOND_RUN_H_

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "loop_ir/program.h"
#include "loop_ir/ranges.h"

namespace nestor::loop {

//   acc not_finite: i64 = max
//   for i in [0, N) { not_finite max= i64(w[i] * 0 != 0) }
//   .. the quicker form ..
//   for i in [0, N) { drop y[i] if not_finite[] == 1 = .. }
//
// The code tests a condition that is the same throughout a loop before the loop.
class SecondRun {
 public:
  SecondRun(Program& program, Ranges& ranges)
      : program_(program), pool_(program.pool), ranges_(ranges) {}

  // Declares, in `scope`, a number that is 1 or less, and returns it as an index.
  IndexId Flag(absl::string_view name, Scope& scope);
  // The condition that the flag is 1.
  IndexId IsSet(IndexId flag);
  // Sets the flag if `value`, a bool, is true at some step of the loops; only where `condition`
  // holds, if there is one.
  Scope FlagIf(ValueId value, IndexId flag, IndexId condition, const LoopsAround& loops);
  // Likewise, if one of the values, floats, is inf or NaN at some step of those loops that
  // it depends on.
  Scope FlagIfNotFinite(absl::Span<const ValueId> values, IndexId flag, IndexId condition,
                        const LoopsAround& loops);

  // Makes all statements of `body` run only where the condition holds.
  void OnlyWhere(IndexId condition, Scope& body) const;
  // `body` in the loops, with indices and tensors of its own. REQUIRES: `ranges` is at the place of
  // the first one.
  Scope Copied(const LoopsAround& loops, Scope body);

 private:
  ValueId IsNotFinite(ValueId value);

  Program& program_;
  IndexPool& pool_;
  Ranges& ranges_;
};

}  // namespace nestor::loop

#endif  // NESTOR_JIT_SCHEDULE_SECOND_RUN_H_
