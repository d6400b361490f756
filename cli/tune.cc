// Each candidate is compiled as a user of the file would have it: by a file of one line.
#include "cli/tune.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "bench/measure.h"
#include "bench/schedule_search.h"
#include "cli/measured_call.h"
#include "jit/executable.h"
#include "jit/schedules.h"
#include "loop_ir/lower.h"
#include "loop_ir/text.h"
#include "nestor.h"
#include "tensor/files.h"
#include "uops/invariant.h"

namespace nestor::cli {
namespace {

// Short turns: there are many candidates, and most are far from the best.
constexpr double kBatchSeconds = 0.004;
// A schedule is written only if it is so much faster when measured with care.
constexpr double kLeastGain = 0.02;

absl::StatusOr<jit::Schedules> ReadOrNone(const std::string& file) {
  const auto schedules = LoadSchedules(file);
  if (absl::IsNotFound(schedules.status())) return jit::Schedules();
  if (!schedules.ok()) return schedules.status();
  return **schedules;
}

// One way to compile the op, and calls of it.
class Candidate {
 public:
  // The first run compiles the kernel for these sizes; its text tells candidates apart, since
  // choices that lead to the same program need no measuring.
  static absl::StatusOr<std::unique_ptr<Candidate>> Create(const Op& op, const RunInputs& inputs,
                                                           const Binding& binding,
                                                           const jit::CompileOptions& options,
                                                           const std::vector<std::string>& bound) {
    auto candidate = std::make_unique<Candidate>();
    NESTOR_ASSIGN_OR_RETURN(candidate->executable_, CompileBound(op, inputs, options, bound));
    NESTOR_ASSIGN_OR_RETURN(candidate->call_, MakeCall(*candidate->executable_, inputs, binding));
    const auto note = [&](const jit::Kernel& kernel, int) {
      candidate->text_ = loop::ToText(kernel.program());
    };
    const jit::Executable::Watcher watcher(note);
    NESTOR_RETURN_IF_ERROR(candidate->executable_->RunWatched(
        candidate->call_.arguments(), &candidate->workspace_, {nullptr, false, &watcher}));
    return candidate;
  }

  // The text of the program that runs.
  const std::string& text() const { return text_; }
  // Cannot fail: the first call has succeeded.
  void Run() {
    const absl::Status status = executable_->Run(call_.arguments(), &workspace_);
    NESTOR_CHECK(status.ok(), std::string(status.message()));
  }

 private:
  std::unique_ptr<const jit::Executable> executable_;
  MeasuredCall call_;
  jit::Workspace workspace_;
  std::string text_;
};

class Tuner {
 public:
  Tuner(const Op& op, const RunInputs& inputs, const Binding& binding,
        const jit::CompileOptions& options, const TuneRequest& request)
      : op_(op), inputs_(inputs), binding_(binding), options_(options), request_(request) {}

  // The winner of the search is measured against the default once more, on compiled code of its
  // own: what has won by chance among many candidates does not win again.
  absl::StatusOr<Figures> Run() {
    NESTOR_ASSIGN_OR_RETURN(jit::Schedules schedules, ReadOrNone(request_.file));
    NESTOR_RETURN_IF_ERROR(Write(schedules));  // an unwritable file is reported first
    NESTOR_ASSIGN_OR_RETURN(key_, Key());
    NESTOR_ASSIGN_OR_RETURN(best_, Make({}));
    bench::SearchOptions search;
    search.seconds = absl::ToDoubleSeconds(request_.patience);
    const auto ratio = [&](const jit::ChosenValues& best, const jit::ChosenValues& candidate) {
      return TimeRatio(best, candidate);
    };
    NESTOR_ASSIGN_OR_RETURN(jit::ChosenValues found,
                            bench::SearchSchedule(jit::ScheduleChoices(), ratio, search));
    NESTOR_ASSIGN_OR_RETURN(const auto plain, Make({}));
    NESTOR_ASSIGN_OR_RETURN(const auto tuned, Make(found));
    const auto times = bench::MeasureAlternating(
        {{"plain", [&] { plain->Run(); }}, {"tuned", [&] { tuned->Run(); }}});
    if (times[1].cost > times[0].cost * (1 - kLeastGain)) found.clear();
    const double seconds = found.empty() ? times[0].cost : times[1].cost;
    schedules.Set(key_, op_.name, found);
    NESTOR_RETURN_IF_ERROR(Write(schedules));
    return Figures{{"tuned_time_ms", absl::StrFormat("%.6g", seconds * 1e3)},
                   {"tuned_speed_up", absl::StrFormat("%.6g", times[0].cost / seconds)},
                   {"schedule", found.empty() ? "default" : jit::TextOf(found), /*is_text=*/true}};
  }

 private:
  absl::Status Write(const jit::Schedules& schedules) const {
    const absl::Status written = WriteWholeFile(request_.file, {schedules.ToText()});
    return absl::Status(written.code(), absl::StrCat(request_.file, ": ", written.message()));
  }

  absl::StatusOr<jit::ScheduleKey> Key() const {
    NESTOR_ASSIGN_OR_RETURN(const jit::Isa isa, options_.isa ? *options_.isa : jit::BestIsa());
    const loop::Program program = Lower(op_);
    std::vector<bool> bound;
    for (const loop::TensorId input : program.inputs) {
      bound.push_back(absl::c_linear_search(request_.bound, program[input].name));
    }
    if (request_.bound.empty()) bound.clear();
    const jit::ProgramSchedules none(std::make_shared<const jit::Schedules>(), program, isa,
                                     options_.mode == jit::Mode::kStrict);
    return none.KeyAt([&](const std::string& name) { return binding_.Find(name); }, bound);
  }

  absl::StatusOr<std::unique_ptr<Candidate>> Make(const jit::ChosenValues& values) const {
    jit::Schedules line;
    line.Set(key_, op_.name, values);
    jit::CompileOptions options = options_;
    options.schedules = std::make_shared<const jit::Schedules>(std::move(line));
    return Candidate::Create(op_, inputs_, binding_, options, request_.bound);
  }

  absl::StatusOr<double> TimeRatio(const jit::ChosenValues& best, const jit::ChosenValues& values) {
    if (best != best_values_) {
      NESTOR_ASSIGN_OR_RETURN(best_, Make(best));
      best_values_ = best;
    }
    NESTOR_ASSIGN_OR_RETURN(const auto candidate, Make(values));
    if (candidate->text() == best_->text()) return 1.0;
    bench::MeasureOptions measure;
    measure.batch_seconds = kBatchSeconds;
    const auto times = bench::MeasureAlternating(
        {{"best", [&] { best_->Run(); }}, {"candidate", [&] { candidate->Run(); }}}, measure);
    return times[1].cost / times[0].cost;
  }

  const Op& op_;
  const RunInputs& inputs_;
  const Binding& binding_;
  const jit::CompileOptions& options_;
  const TuneRequest& request_;
  jit::ScheduleKey key_;
  jit::ChosenValues best_values_;
  std::unique_ptr<Candidate> best_;
};

}  // namespace

absl::StatusOr<Figures> Tune(const Op& op, const RunInputs& inputs, const Binding& binding,
                             const jit::CompileOptions& options, const TuneRequest& request) {
  return Tuner(op, inputs, binding, options, request).Run();
}

}  // namespace nestor::cli
