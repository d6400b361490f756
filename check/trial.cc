#include "check/trial.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "check/engines.h"
#include "check/random.h"
#include "interp/reference.h"
#include "loop_ir/lower.h"

namespace nestor {
namespace {

// The reference takes microseconds for each operation.
constexpr double kMostBoundedWork = 4'000;
// Of a program that is shown.
constexpr size_t kMostLines = 60;

// What a trial draws, and what the unfused program gives.
class Trial {
 public:
  Trial(const Op& op, uint64_t seed, const TrialInputOptions& options, TrialCounts& counts,
        absl::FunctionRef<void(absl::string_view)> tell)
      : unfused_(Lower(op)), random_(seed ^ 0x5bf03635f0935ad1u), counts_(counts), tell_(tell) {
    inputs_ = DrawTrialInputs(op, unfused_, seed, options);
    // The workspace was used for other sizes before.
    TrialInputOptions small;
    small.most_work = 5'000;
    if (random_.Chance(40)) before_ = DrawTrialInputs(op, unfused_, seed + 0x100000001u, small);
  }

  Finding Run() {
    ++counts_.trials;
    if (!inputs_) return Skip();
    want_ = nestor::Run(unfused_, inputs_->inputs);
    if (IsLimit(want_)) return Skip();
    if (!want_.ok()) return CheckRefusal();
    if (Finding finding = CheckStrictPair()) return finding;
    return CheckFast();
  }

 private:
  Finding Skip() {
    ++counts_.skipped;
    return absl::nullopt;
  }

  Engine Draw(jit::Mode mode, std::initializer_list<Engine::Backend> backends) {
    const Engine::Backend backend = random_.Pick(backends);
    Engine engine = DrawEngine(random_, mode, backend);
    tell_(Describe(engine));
    return engine;
  }

  static Finding Told(const Engine& engine, absl::string_view what, const std::string& program) {
    return absl::StrCat(Describe(engine), ": ", what, program.empty() ? "" : "\n", FirstLines(program));
  }

  // Of a scheduled program, which may have hundreds.
  static std::string FirstLines(const std::string& text) {
    const std::vector<absl::string_view> lines = absl::StrSplit(text, '\n');
    if (lines.size() <= kMostLines) return text;
    return absl::StrCat(absl::StrJoin(lines.begin(), lines.begin() + kMostLines, "\n"), "\n  ... and ",
                        lines.size() - kMostLines, " lines more\n");
  }

  // What the law refuses, an executable refuses.
  Finding CheckRefusal() {
    ++counts_.refused;
    const Engine engine = Draw(jit::Mode::kFast, {Engine::Backend::kExecutable});
    const auto built = BuiltEngine::Build(unfused_, engine);
    if (!built.ok()) return Told(engine, built.status().ToString(), "");
    if (!built->Run(inputs_->inputs).ok()) return absl::nullopt;
    return Told(engine, absl::StrCat("runs, but: ", want_.status().ToString()), "");
  }

  // Two strict engines give the same as the unfused program, and so as each other.
  Finding CheckStrictPair() {
    using Backend = Engine::Backend;
    ++counts_.pairs;
    if (Finding finding = CheckEngine(Draw(jit::Mode::kStrict, {Backend::kExecutable, Backend::kCode}))) return finding;
    return CheckEngine(Draw(jit::Mode::kStrict, {Backend::kInterpreter, Backend::kCode}));
  }

  // A fast machine code, the interpreter on its program, and the bounds.
  Finding CheckFast() {
    using Backend = Engine::Backend;
    ++counts_.pairs;
    return CheckEngine(Draw(jit::Mode::kFast, {Backend::kExecutable, Backend::kExecutable, Backend::kCode}));
  }

  Finding CheckEngine(const Engine& engine) {
    const auto built = BuiltEngine::Build(unfused_, engine);
    if (!built.ok()) return Told(engine, built.status().ToString(), "");
    if (!built->Fits(inputs_->inputs)) return absl::nullopt;
    const Results got = built->Run(inputs_->inputs, before_ ? &before_->inputs : nullptr);
    if (IsLimit(got)) return absl::nullopt;
    if (Finding finding = CheckResults(*built, got)) {
      return Told(engine, *finding, built->ProgramText(inputs_->inputs));
    }
    return absl::nullopt;
  }

  Finding CheckResults(const BuiltEngine& built, const Results& got) {
    Counts counts;
    if (!got.ok()) return absl::StrCat("refuses: ", got.status().ToString());
    if (built.keeps_bits()) return Compare(want_, got, "against the unfused program", counts);
    const Results own = built.Interpreted(inputs_->inputs);
    if (IsLimit(own)) return absl::nullopt;
    if (Finding finding = Compare(own, got, "against the interpreter on the same program", counts)) return finding;
    return CheckBounds(got);
  }

  Finding CheckBounds(const Results& got) {
    if (inputs_->work > kMostBoundedWork) return absl::nullopt;
    if (!bounds_) bounds_ = InterpretReference(unfused_, inputs_->inputs);
    // A place or a condition that the bounds do not decide has no reference.
    if (!bounds_->ok()) return absl::nullopt;
    ++counts_.bounds;
    return CompareWithBounds(**bounds_, got);
  }

  const loop::Program unfused_;
  Random random_;
  TrialCounts& counts_;
  const absl::FunctionRef<void(absl::string_view)> tell_;
  absl::optional<TrialInputs> inputs_, before_;
  Results want_;
  absl::optional<absl::StatusOr<std::vector<ReferenceTensor>>> bounds_;
};

}  // namespace

Finding CheckTrial(const Op& op, uint64_t seed, const TrialInputOptions& options, TrialCounts& counts,
                   absl::FunctionRef<void(absl::string_view)> tell) {
  return Trial(op, seed, options, counts, tell).Run();
}

}  // namespace nestor
