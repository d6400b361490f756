// Schedules that a search has found to be faster than the default one, as a text file lists them:
//
//   # nestor schedules
//   op=matmul program=8c1f07a2b3d4e5f6 cpu=AMD_EPYC_9R45 isa=avx2 mode=fast
//       sizes=K:512,M:512,N:64 tile_rows=6,sum_block=768
//
// There is a line, broken here before `sizes`, for each program, processor and class of sizes.
// `program` is a hash of the lowered program, so that a line is of no use to any other; `op` is for
// the reader. A class of sizes has a name for each symbol and the largest number in the class:
// sizes up to 16 are classes of one, the others reach from one power of two to the next (512: from
// 257). Bound inputs are listed there, too (w:bound). Lines are in no order; # begins a comment.
#ifndef NESTOR_JIT_SCHEDULES_H_
#define NESTOR_JIT_SCHEDULES_H_

#include "uops/cpp20.h"  // first, so that an older standard is named before all else

#include <compare>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "jit/runtime/cpu_features.h"
#include "jit/schedule_options.h"
#include "loop_ir/intervals.h"
#include "loop_ir/program.h"

namespace nestor::jit {

// The values as a line has them: "tile_rows=6,sum_block=768". ScheduleChoices()
// (schedule_options.h) lists the names and the legal values.
std::string TextOf(const ChosenValues& values);

// The key of a line: all that a schedule was found for. Texts as the line has them, such as
// "avx2", "fast" and "K:512,M:64".
struct ScheduleKey {
  std::string program, cpu, isa, mode, sizes;

  friend auto operator<=>(const ScheduleKey& a, const ScheduleKey& b) = default;
};

// The lines of a file. A value; const use from many threads is fine.
//
//   NESTOR_ASSIGN_OR_RETURN(options.schedules, nestor::LoadSchedules("tuned.txt"));
//   NESTOR_ASSIGN_OR_RETURN(auto matmul, nestor::Compile(op, options));
class Schedules {
 public:
  // InvalidArgument, with the number of the line, if a line is malformed, names an unknown choice
  // or one that is not legal, or has the key of an earlier one.
  static absl::StatusOr<Schedules> Parse(absl::string_view text);
  // Parse gives the same again; comments are not kept.
  std::string ToText() const;

  // Replaces the values of the key; no values: removes the key. REQUIRES: Choose accepts
  // the values.
  void Set(const ScheduleKey& key, std::string op, ChosenValues values);
  // Null where there is none. Valid until the next Set.
  const ChosenValues* Find(const ScheduleKey& key) const;

 private:
  struct Line {
    std::string op;
    ChosenValues values;
  };
  absl::Status ParseLine(absl::string_view line);

  std::map<ScheduleKey, Line> lines_;
};

// The schedules of one program, whose symbols are collected once: a call of new sizes then costs a
// look-up. Thread-safe.
class ProgramSchedules {
 public:
  ProgramSchedules() = default;  // none
  // `unfused` is the lowered program, of which `program=` is the hash; it is not kept.
  ProgramSchedules(std::shared_ptr<const Schedules> schedules, const loop::Program& unfused,
                   Isa isa, bool strict);

  // The values for a call of these sizes, by their classes; empty: the default. `bound`: by input,
  // whether it is frozen; empty: none is. The result lives as long as this.
  const ChosenValues& At(loop::SymbolValue symbol, const std::vector<bool>& bound) const;
  // The key of a line for such a call. REQUIRES: this is not default-constructed.
  ScheduleKey KeyAt(loop::SymbolValue symbol, const std::vector<bool>& bound) const;

 private:
  std::shared_ptr<const Schedules> schedules_;
  ScheduleKey key_;                            // but for the sizes
  std::vector<std::string> symbols_, inputs_;  // names, those of symbols sorted
};

}  // namespace nestor::jit

#endif  // NESTOR_JIT_SCHEDULES_H_
