// The pipeline: from a lowered program to a fused one.
//
//   Pipeline pipeline = Pipeline::Default();
//   NESTOR_RETURN_IF_ERROR(pipeline.Run(program));
//
// A host may put a pass of its own before or after a named one, switch passes off by name, cut the
// list after the first n, and watch each pass.
#ifndef NESTOR_FUSION_PIPELINE_H_
#define NESTOR_FUSION_PIPELINE_H_

#include "uops/cpp20.h"  // first, so that an older standard is named before all else

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "loop_ir/program.h"

namespace nestor::fusion {

struct Pass {
  std::string name;  // unique in its pipeline; a pass that runs twice has a number at the end
  // Whether it changed anything; a program that it did not change is untouched.
  std::function<absl::StatusOr<bool>(loop::Program&)> run;
  // The pass changes the order of rounding: results may change within the proven bounds.
  bool reorders_rounding = false;
};

struct PassReport {
  const Pass& pass;
  int number;  // from 0
  bool changed;
  absl::Duration time;  // of the pass alone
};

struct RunOptions {
  // Leaves out the passes that reorder rounding.
  bool strict = false;
  // Runs Verify (loop_ir/verify.h) before the first pass and after each.
#ifdef NDEBUG
  bool verify = false;
#else
  bool verify = true;
#endif
  // Called after each pass.
  std::function<void(const PassReport&, const loop::Program&)> observer = {};
};

class Pipeline {
 public:
  // The passes of pipeline.cc, in its order.
  static Pipeline Default();
  // REQUIRES: names are unique.
  explicit Pipeline(std::vector<Pass> passes) : passes_(std::move(passes)) {}

  const std::vector<Pass>& passes() const { return passes_; }

  // For all of these: NotFound, listing the names that there are, where no pass is called `name`;
  // AlreadyExists where the new pass's name is taken.
  absl::Status InsertBefore(absl::string_view name, Pass pass);
  absl::Status InsertAfter(absl::string_view name, Pass pass);
  absl::Status Disable(absl::string_view name);
  // Keeps the first `count` passes.
  void Truncate(int count);

  // Runs the passes. ResourceExhausted, naming the number, where the program has more than 250,000
  // statements; it is then untouched. An Internal Status names the pass that failed or after which
  // the program does not verify, and holds the violation; the program is then in an unspecified
  // state. REQUIRES: Verify accepts the program.
  absl::Status Run(loop::Program& program, const RunOptions& options = {}) const;

 private:
  absl::StatusOr<size_t> Find(absl::string_view name) const;
  absl::Status Insert(size_t position, Pass pass);

  std::vector<Pass> passes_;
};

}  // namespace nestor::fusion

#endif  // NESTOR_FUSION_PIPELINE_H_
