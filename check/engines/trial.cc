// The unfused program in the interpreter is the law. Each strict engine must give its bits; fast
// machine code must give those of the interpreter on the same scheduled program, which must lie in
// the reference's bounds. Compiling takes longer than running, so each engine runs several inputs.
#include "check/engines/trial.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "check/engines/engines.h"
#include "check/engines/shared_storage.h"
#include "check/random.h"
#include "interp/reference.h"
#include "loop_ir/lower.h"

namespace nestor {
namespace {

// The reference takes microseconds for each operation.
constexpr double kMostBoundedWork = 4'000;
constexpr uint64_t kCases = 3;
// The percentage of trials whose engines get a program whose tensors share storage.
constexpr int kPercentShared = 25;
// The most lines of a program that are shown.
constexpr size_t kMostLines = 60;

// Inputs, and the results of the unfused program for them.
struct Case {
  TrialInputs drawn;
  Results want;
  absl::optional<absl::StatusOr<std::vector<ReferenceTensor>>> bounds;
};

class Trial {
 public:
  Trial(const Op& op, uint64_t seed, const TrialInputOptions& options, TrialCounts& counts,
        absl::FunctionRef<void(absl::string_view)> tell)
      : unfused_(Lower(op)), random_(seed ^ 0x5bf03635f0935ad1u),
        compiled_(random_.Chance(kPercentShared) ? WithSharedStorage(unfused_, random_) : unfused_),
        counts_(counts), tell_(tell) {
    DrawCases(op, seed, options);
  }

  Finding Run() {
    ++counts_.trials;
    if (cases_.empty() && refused_.empty()) ++counts_.skipped;
    if (!refused_.empty()) {
      if (Finding finding = CheckRefusals()) return finding;
    }
    if (cases_.empty()) return absl::nullopt;
    if (Finding finding = CheckStrictPair()) return finding;
    return CheckFast();
  }

 private:
  // Compiling takes longer than running, so each engine runs several cases, with one
  // workspace for all.
  void DrawCases(const Op& op, uint64_t seed, TrialInputOptions options) {
    for (uint64_t i = 0; i < kCases; ++i) {
      auto drawn = DrawTrialInputs(op, unfused_, seed + i * 0x100000001u, options);
      // The first inputs may be large; two small ones after them see a workspace that is used
      // already.
      options.most_work = std::min(options.most_work, 5'000.0);
      if (!drawn) continue;
      Results want = nestor::Run(unfused_, drawn->inputs);
      Case one{*std::move(drawn), std::move(want), absl::nullopt};
      if (IsLimit(one.want)) continue;
      // Index arithmetic that overflows, sizes that disagree: a refusal must be one on every
      // engine.
      (one.want.ok() ? cases_ : refused_).push_back(std::move(one));
    }
  }

  Engine Draw(jit::Mode mode, std::initializer_list<Engine::Backend> backends) {
    const Engine::Backend backend = random_.Pick(backends);
    Engine engine = DrawEngine(random_, mode, backend);
    tell_(Describe(engine));
    return engine;
  }

  static Finding Told(const Engine& engine, absl::string_view what, const std::string& program) {
    return absl::StrCat(Describe(engine), ": ", what, program.empty() ? "" : "\n",
                        FirstLines(program));
  }

  // The first lines of a scheduled program, which may have hundreds.
  static std::string FirstLines(const std::string& text) {
    const std::vector<absl::string_view> lines = absl::StrSplit(text, '\n');
    if (lines.size() <= kMostLines) return text;
    return absl::StrCat(absl::StrJoin(lines.begin(), lines.begin() + kMostLines, "\n"),
                        "\n  ... and ", lines.size() - kMostLines, " lines more\n");
  }

  // An executable refuses the inputs that the unfused program refuses.
  Finding CheckRefusals() {
    ++counts_.refused;
    const Engine engine = Draw(jit::Mode::kFast, {Engine::Backend::kExecutable});
    const auto built = BuiltEngine::Build(compiled_, engine);
    if (!built.ok()) return Told(engine, built.status().ToString(), "");
    jit::Workspace workspace;
    for (const Case& one : refused_) {
      const RunInputs& inputs = one.drawn.inputs;
      const auto fitted = built->For(inputs);
      if (!fitted.ok() || !fitted->Run(inputs, workspace).ok()) continue;
      return Told(engine, absl::StrCat("runs, but: ", one.want.status().ToString()), "");
    }
    return absl::nullopt;
  }

  // Two strict engines must give the results of the unfused program, and so the same.
  Finding CheckStrictPair() {
    using Backend = Engine::Backend;
    ++counts_.pairs;
    if (Finding finding =
            CheckEngine(Draw(jit::Mode::kStrict, {Backend::kExecutable, Backend::kCode})))
      return finding;
    return CheckEngine(Draw(jit::Mode::kStrict, {Backend::kInterpreter, Backend::kCode}));
  }

  // Fast machine code against the interpreter on its program, and against the bounds.
  Finding CheckFast() {
    using Backend = Engine::Backend;
    ++counts_.pairs;
    return CheckEngine(
        Draw(jit::Mode::kFast, {Backend::kExecutable, Backend::kExecutable, Backend::kCode}));
  }

  // One compilation serves all cases, in one workspace, so that what a call leaves there is met by
  // the next one.
  Finding CheckEngine(const Engine& engine) {
    const auto built = BuiltEngine::Build(compiled_, engine);
    if (!built.ok()) return Told(engine, built.status().ToString(), "");
    jit::Workspace workspace;
    for (Case& one : cases_) {
      const RunInputs& inputs = one.drawn.inputs;
      if (!built->Fits(inputs)) continue;
      const auto fitted = built->For(inputs);
      if (!fitted.ok()) return Told(engine, fitted.status().ToString(), "");
      const Results got = fitted->Run(inputs, workspace);
      if (IsLimit(got)) continue;
      if (Finding finding = CheckResults(*fitted, one, got))
        return Told(engine, *finding, fitted->ProgramText(inputs));
    }
    return absl::nullopt;
  }

  Finding CheckResults(const BuiltEngine& built, Case& one, const Results& got) {
    Counts counts;
    if (!got.ok()) return absl::StrCat("refuses: ", got.status().ToString());
    // No pass has reordered rounding: then fast code has the bits of the law, too.
    if (built.keeps_bits()) return Compare(one.want, got, "against the unfused program", counts);
    const Results own = built.Interpreted(one.drawn.inputs);
    if (IsLimit(own)) return absl::nullopt;
    if (Finding finding = Compare(own, got, "against the interpreter on the same program", counts))
      return finding;
    return CheckBounds(one, got);
  }

  Finding CheckBounds(Case& one, const Results& got) {
    if (one.drawn.work > kMostBoundedWork) return absl::nullopt;
    if (!one.bounds) one.bounds = InterpretReference(unfused_, one.drawn.inputs);
    // A place or a condition that the bounds do not decide has no reference.
    if (!one.bounds->ok()) return absl::nullopt;
    ++counts_.bounds;
    return CompareWithBounds(**one.bounds, got);
  }

  const loop::Program unfused_;  // the law
  Random random_;
  const loop::Program compiled_;  // the same, for the engines
  TrialCounts& counts_;
  const absl::FunctionRef<void(absl::string_view)> tell_;
  std::vector<Case> cases_, refused_;
};

}  // namespace

Finding CheckTrial(const Op& op, uint64_t seed, const TrialInputOptions& options,
                   TrialCounts& counts, absl::FunctionRef<void(absl::string_view)> tell) {
  return Trial(op, seed, options, counts, tell).Run();
}

}  // namespace nestor
