// Two parts: the subjects that are checked (one for each type), and the trials up to the first
// finding, which account.h describes.
#include "check/check.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "check/account.h"
#include "check/case.h"
#include "check/child.h"
#include "check/examine.h"
#include "check/fault_message.h"
#include "macro_ops/library.h"
#include "uops/invariant.h"

namespace nestor {
namespace {

// ---- Subjects

// Each promise of the kernel includes those before it.
std::vector<Arrangement> ArrangementsOf(Layouts layouts) {
  switch (layouts) {
    case Layouts::kContiguous: return {Arrangement::kCompact};
    case Layouts::kRowsStrided: return {Arrangement::kCompact, Arrangement::kRowsApart};
    case Layouts::kTransposed:
      return {Arrangement::kCompact, Arrangement::kRowsApart, Arrangement::kTransposed};
    case Layouts::kAny:
      return {Arrangement::kCompact,     Arrangement::kRowsApart,  Arrangement::kTransposed,
              Arrangement::kEverySecond, Arrangement::kEveryThird, Arrangement::kReversed};
  }
  return {};
}

// The bounds below which a macro op's samples keep its values.
// "# sample x=[3,4] ids=[5]<4" gives {ids: 4}.
absl::flat_hash_map<std::string, int64_t> SampleBounds(const std::string& name) {
  absl::flat_hash_map<std::string, int64_t> bounds;
  const MacroOp* const macro = FindMacroOp(name);
  if (macro == nullptr || macro->samples.empty()) return bounds;
  for (const SampleArgument& arg : macro->samples.front().args) {
    if (arg.bound) bounds[arg.name] = *arg.bound;
  }
  return bounds;
}

absl::Status CheckInPlace(const Op& op, const Argument* argument, const Result* result,
                          const std::string& argument_name, const std::string& result_name) {
  if (argument == nullptr || result == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat(op.name, " has no ", argument == nullptr ? "argument " : "result ",
                     argument == nullptr ? argument_name : result_name,
                     ": InPlace names an argument and a result"));
  }
  if (argument->type == op.graph.type(result->node)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      op.name, ": ", result_name, " cannot take the memory of ", argument_name,
      ": their types are ", Name(op.graph.type(result->node)), " and ", Name(argument->type)));
}

absl::StatusOr<std::vector<std::pair<int, int>>> InPlaceOf(const Op& op,
                                                           const CheckOptions& options) {
  std::vector<std::pair<int, int>> pairs;
  for (const auto& [argument_name, result_name] : options.in_place) {
    const Argument* argument = op.FindArgument(argument_name);
    const Result* result = op.FindResult(result_name);
    NESTOR_RETURN_IF_ERROR(CheckInPlace(op, argument, result, argument_name, result_name));
    pairs.emplace_back(argument - op.args.data(), result - op.results.data());
  }
  return pairs;
}

// The $params that the options give.
absl::StatusOr<absl::flat_hash_map<std::string, Scalar>> FixedParams(const Op& op,
                                                                     const CheckOptions& options) {
  absl::flat_hash_map<std::string, Scalar> fixed;
  const auto error = [&](absl::string_view name, absl::string_view what) {
    return absl::InvalidArgumentError(absl::StrCat(op.name, ": Param(\"", name, "\"): ", what));
  };
  for (const auto& [given, number] : options.params) {
    const std::string name = absl::StartsWith(given, "$") ? given : absl::StrCat("$", given);
    const ParamInfo* const param = op.FindParam(name);
    if (param == nullptr) return error(given, "there is no such $param");
    if (IsInteger(param->type))
      return error(given, absl::StrCat("an integer: Where(\"", name, " == ..\") fixes it"));
    const Scalar value = Scalar::Of(param->type, number);
    if ((param->low && !(value.ToDouble() >= param->low->ToDouble())) ||
        (param->high && !(value.ToDouble() <= param->high->ToDouble()))) {
      return error(given, absl::StrCat(LiteralText(value), " is outside of its range [",
                                       param->low ? LiteralText(*param->low) : "-inf", ", ",
                                       param->high ? LiteralText(*param->high) : "inf", "]"));
    }
    fixed[name] = value;
  }
  return fixed;
}

// That of the widest element by default, which every allocator gives.
size_t AlignmentOf(const Op& op, const CheckOptions& options) {
  int alignment = options.alignment;
  if (alignment > 0) return static_cast<size_t>(alignment);
  for (const Argument& arg : op.args) alignment = std::max(alignment, ByteSize(arg.type));
  for (const Result& result : op.results)
    alignment = std::max(alignment, ByteSize(op.graph.type(result.node)));
  return static_cast<size_t>(std::max(alignment, 1));
}

absl::StatusOr<Subject> MakeSubject(const CheckedOp& checked, const Kernel& kernel,
                                    const CheckOptions& options, const ArgumentSpecs& specs) {
  NESTOR_ASSIGN_OR_RETURN(const Op op, checked.Instantiate(specs));
  NESTOR_ASSIGN_OR_RETURN(SizeSolver solver, SizeSolver::Create(op, options.conditions));
  NESTOR_ASSIGN_OR_RETURN(auto in_place, InPlaceOf(op, options));
  NESTOR_ASSIGN_OR_RETURN(auto fixed, FixedParams(op, options));
  CaseSource source{op,
                    std::move(solver),
                    ValueDrawer(op, options.values, SampleBounds(checked.MacroName())),
                    options.sizes,
                    ArrangementsOf(options.layouts),
                    std::move(in_place),
                    std::move(fixed)};
  return Subject{std::move(source), Judge(op, options.allowance), kernel,
                 RunOptions{AlignmentOf(op, options), options.isolated}, options.sample};
}

// One per type; an op without type variables is one subject whatever the types.
// The first op, of default types and ranks, is there to check the names that Rank gives.
absl::StatusOr<std::vector<Subject>> MakeSubjects(const CheckedOp& checked, const Kernel& kernel,
                                                  const CheckOptions& options) {
  NESTOR_ASSIGN_OR_RETURN(const Op first, checked.Instantiate({}));
  NESTOR_ASSIGN_OR_RETURN(const std::vector<std::string> variable, checked.TypeVariableArguments());
  ArgumentSpecs specs;
  for (const auto& [name, rank] : options.ranks) {
    if (first.FindArgument(name) == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat(first.name, " has no argument ", name, ": Rank names one"));
    }
    specs[name].rank = rank;
  }
  std::vector<Subject> subjects;
  for (DType type : options.types) {
    for (const std::string& name : variable) specs[name].type = type;
    NESTOR_ASSIGN_OR_RETURN(Subject subject, MakeSubject(checked, kernel, options, specs));
    subjects.push_back(std::move(subject));
    if (variable.empty()) break;
  }
  return subjects;
}

// Before anything is drawn: a wrong setting is the caller's mistake, not a finding.
absl::Status CheckSettings(const CheckOptions& options) {
  const int alignment = options.alignment;
  if (alignment < 0 || alignment > 4096 || (alignment & (alignment - 1)) != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("Alignment(", alignment, "): not a power of two up to 4096"));
  }
  if (options.types.empty()) return absl::InvalidArgumentError("Types({}): no type to check");
  if (!(options.values.low <= options.values.high)) {
    return absl::InvalidArgumentError(
        absl::StrCat("Values: low ", options.values.low, " is above high ", options.values.high));
  }
  const auto below = [](const char* name, auto value, const char* least) {
    return absl::InvalidArgumentError(absl::StrCat(name, "(", value, "): not ", least));
  };
  if (options.sample < 0) return below("Sample", options.sample, "at least 0");
  if (options.trials.value_or(0) < 0) return below("Trials", *options.trials, "at least 0");
  const absl::Duration duration = options.duration.value_or(absl::ZeroDuration());
  if (duration < absl::ZeroDuration())
    return below("For", absl::FormatDuration(duration), "at least 0");
  if (options.patience <= absl::ZeroDuration()) {
    return below("Patience", absl::FormatDuration(options.patience), "above 0");
  }
  if (!(options.allowance.ulps >= 0)) return below("Ulps", options.allowance.ulps, "at least 0");
  if (!(options.allowance.times > 0)) return below("Bound", options.allowance.times, "above 0");
  return absl::OkStatus();
}

// ---- The environment

// Leaves `value` where the variable is not set.
template <class Number>
absl::Status ReadNumber(const char* name, absl::optional<Number>& value) {
  const char* const text = std::getenv(name);
  if (text == nullptr || *text == 0) return absl::OkStatus();
  if (Number number; absl::SimpleAtoi(text, &number) && number >= 0) {
    value = number;
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(name, "=", text, ": not a number from 0"));
}

// The variables override the options: a failed test is run again, longer or from another seed,
// without being built again.
absl::Status ApplyEnvironment(CheckOptions& options) {
  absl::optional<uint64_t> seed;
  NESTOR_RETURN_IF_ERROR(ReadNumber("NESTOR_CHECK_SEED", seed));
  NESTOR_RETURN_IF_ERROR(ReadNumber("NESTOR_CHECK_TRIALS", options.trials));
  options.seed = seed.value_or(options.seed);
  const char* const text = std::getenv("NESTOR_CHECK_FOR");
  if (text == nullptr || *text == 0) return absl::OkStatus();
  absl::Duration duration;
  if (!absl::ParseDuration(text, &duration) || duration <= absl::ZeroDuration()) {
    return absl::InvalidArgumentError(
        absl::StrCat("NESTOR_CHECK_FOR=", text, ": not a time such as 10s or 5m"));
  }
  options.duration = duration;
  return absl::OkStatus();
}

// ---- Trials

// The progress of the trials; plain data, as a child and its parent share it.
// Lives in shared memory when trials are isolated (Shared), so it must hold no pointers: a
// std::string's characters would be the child's.
struct Progress {
  KernelNotes notes;
  int64_t trials = 0;  // the number of the one that runs, or of those that have run
  int64_t skipped = 0, undecided = 0, without_sizes = 0, by_bounds = 0, by_wider = 0;
  ErrorHistogram histogram;
  Fault fault = Fault::kNone;  // of the trial with number `trials`
  char message[400] = "";

  void SetMessage(absl::string_view text) {
    const size_t size = std::min(text.size(), sizeof(message) - 1);
    std::memcpy(message, text.data(), size);
    message[size] = 0;
  }
};

class Checker {
 public:
  Checker(std::vector<Subject> subjects, const CheckOptions& options)
      : subjects_(std::move(subjects)), options_(options), start_(absl::Now()) {}

  // Trials until one has a finding, then the account of that one.
  absl::StatusOr<CheckReport> Run() {
    if (options_.isolated) RunIsolated();
    else RunTrials([this] { ReportProgress(); });
    if (progress_->fault == Fault::kMisuse) return absl::InvalidArgumentError(progress_->message);
    if (progress_->without_sizes > 0 && progress_->without_sizes == progress_->trials)
      return NoSizes();
    CheckReport report = Summary();
    if (progress_->fault != Fault::kNone) AccountFor(report);
    return report;
  }

 private:
  static constexpr int64_t kUsualTrials = 1000;
  static constexpr int64_t kMostWithoutSizes = 10;

  uint64_t SeedOf(int64_t trial) const { return options_.seed + static_cast<uint64_t>(trial); }
  // Types take turns by the seed, not by the trial's number: with NESTOR_CHECK_SEED a trial runs
  // alone, as number 0, and must have the type that it had in the search.
  const Subject& SubjectOf(int64_t trial) const {
    return subjects_[SeedOf(trial) % subjects_.size()];
  }
  absl::optional<Case> CaseOf(int64_t trial, absl::optional<Case> spent = absl::nullopt) const {
    return DrawCase(SubjectOf(trial).source, SeedOf(trial), std::move(spent));
  }

  // Limits that are not given do not count, except that without any there are the usual ones.
  bool IsOver() const {
    const bool is_usual = !options_.trials && !options_.duration;
    const int64_t most =
        is_usual ? kUsualTrials : options_.trials.value_or(std::numeric_limits<int64_t>::max());
    const absl::Duration longest =
        is_usual ? absl::Seconds(10) : options_.duration.value_or(absl::InfiniteDuration());
    const Progress& progress = *progress_;
    return progress.trials >= most || (progress.trials > 0 && absl::Now() - start_ >= longest) ||
           (progress.without_sizes == progress.trials && progress.trials >= kMostWithoutSizes);
  }

  std::string ReproduceText(uint64_t seed) const {
    return absl::StrReplaceAll(options_.reproduce, {{"$SEED", absl::StrCat(seed)}});
  }

  // Counts a trial; false where it has a finding.
  // Misuse ends the search, too: the kernel asked for a name that the op does not have, so all
  // trials would end so. It is the caller's mistake (InvalidArgument), not a finding.
  bool Count(const Outcome& outcome) {
    Progress& progress = *progress_;
    progress.histogram.Add(outcome.verdict.histogram);
    progress.by_bounds += outcome.verdict.by_bounds;
    progress.by_wider += outcome.verdict.by_wider;
    if (outcome.fault == Fault::kSkipped) ++progress.skipped;
    if (outcome.fault == Fault::kUndecided) ++progress.undecided;
    if (!IsFinding(outcome.fault) && outcome.fault != Fault::kMisuse) return true;
    progress.fault = outcome.fault;
    progress.SetMessage(outcome.message);
    return false;
  }

  // Calls `after_trial` after each trial without a finding.
  void RunTrials(absl::FunctionRef<void()> after_trial) {
    absl::optional<Case> drawn;
    for (; !IsOver(); ++progress_->trials) {
      const int64_t trial = progress_->trials;
      drawn = CaseOf(trial, std::move(drawn));
      if (!drawn) {
        ++progress_->without_sizes;
        continue;
      }
      SetFaultContext(absl::StrCat("\nto see it again: ", ReproduceText(SeedOf(trial))).c_str());
      if (!Count(Examine(SubjectOf(trial), *drawn, pool_, &progress_->notes.clock))) return;
      after_trial();
    }
  }

  // At most five times a second: trials take microseconds.
  // Runs in the parent, also when trials are isolated: the callback belongs to the caller.
  void ReportProgress() {
    if (!options_.on_progress || absl::Now() - last_progress_ < absl::Milliseconds(200)) return;
    last_progress_ = absl::Now();
    options_.on_progress(progress_->trials);
  }

  // The trials run in a child; what is known when it dies is in memory that both share.
  // The child says "trial" after each one, which shows that it is alive; silence for longer than
  // the patience is a hang, unless the clock shows that the judge is at work.
  void RunIsolated() {
    bool is_done = false;
    ChildEnd end = RunInChild(
        [&](Say say) {
          KeepFaultMessages(progress_->notes.fault_message, sizeof(progress_->notes.fault_message));
          RunTrials([&] { say("trial"); });
          say("done");
        },
        [&](absl::string_view message) {
          is_done = message == "done";
          ReportProgress();
          return true;
        },
        options_.patience, [&] { return progress_->notes.clock.IsInTime(options_.patience); });
    if (end.death.empty() && is_done) return;
    if (end.death.empty()) end.death = "exited with 0";
    const Outcome outcome = OutcomeOfDeath(end, options_.patience, progress_->notes);
    progress_->fault = outcome.fault;
    progress_->SetMessage(outcome.message);
  }

  absl::Status NoSizes() const {
    return absl::InvalidArgumentError(absl::StrCat(
        subjects_[0].source.op.name, ": no sizes within the limits (", options_.sizes.max_elements,
        " elements, extents of ", options_.sizes.max_extent, ", ", options_.sizes.max_work,
        " points computed: SizeLimits) were found that meet ",
        options_.conditions.empty() ? "what the op asks"
                                    : absl::StrJoin(options_.conditions, ", ")));
  }

  CheckReport Summary() const {
    CheckReport report;
    report.op = subjects_[0].source.op.name;
    report.fault = progress_->fault;
    report.message = progress_->message;
    // The counter stands at the failing trial, which was run, too.
    report.trials = progress_->trials + (progress_->fault == Fault::kNone ? 0 : 1);
    report.skipped = progress_->skipped;
    report.undecided = progress_->undecided + progress_->without_sizes;
    report.histogram = progress_->histogram;
    report.by_bounds = progress_->by_bounds;
    report.by_wider = progress_->by_wider;
    report.seed = options_.seed;
    report.time = absl::Now() - start_;
    return report;
  }

  // ---- A finding

  // Makes the failing case again from its seed. Its neighbours are cases of the same subject, by
  // which Account tells what the fault depends on.
  void AccountFor(CheckReport& report) {
    const int64_t failing_trial = progress_->trials;
    const Subject& subject = SubjectOf(failing_trial);
    const absl::optional<Case> failing = CaseOf(failing_trial);
    report.failing_seed = SeedOf(failing_trial);
    report.reproduce = ReproduceText(report.failing_seed);
    const auto case_around = [&](int64_t distance) -> absl::optional<Case> {
      const int64_t trial = failing_trial + distance;
      if (trial < 0 || &SubjectOf(trial) != &subject) return absl::nullopt;
      return CaseOf(trial);
    };
    // A kernel that hung is known to hang; for smaller cases a part of the time is enough.
    const absl::Duration patience = options_.patience / (report.fault == Fault::kHang ? 10 : 1);
    const auto examine = [&](const Case& given) {
      return options_.isolated ? ExamineInChild(subject, given, patience)
                               : Examine(subject, given, pool_);
    };
    Account({subject, *failing, case_around}, examine, report);
  }

  const std::vector<Subject> subjects_;
  const CheckOptions& options_;
  const absl::Time start_;
  absl::Time last_progress_ = absl::InfinitePast();
  const Shared<Progress> progress_;
  GuardedPool pool_;
};

}  // namespace

// A macro op's own conditions on sizes hold for its kernels as well.
absl::StatusOr<CheckReport> CheckKernel(const CheckedOp& op, const Kernel& kernel,
                                        const CheckOptions& given) {
  CheckOptions options = given;
  NESTOR_RETURN_IF_ERROR(ApplyEnvironment(options));
  NESTOR_RETURN_IF_ERROR(CheckSettings(options));
  if (const MacroOp* macro = FindMacroOp(op.MacroName())) {
    for (const std::string& condition : macro->conditions) options.conditions.push_back(condition);
  }
  NESTOR_ASSIGN_OR_RETURN(std::vector<Subject> subjects, MakeSubjects(op, kernel, options));
  return Checker(std::move(subjects), options).Run();
}

}  // namespace nestor
