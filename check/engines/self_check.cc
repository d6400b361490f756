// The parent draws nothing and runs nothing: a child runs trial after trial and tells each seed
// before it begins, so that the seed of a trial that ends the child is known. Candidates of the
// shrinker run in children as well.
#include "check/engines/self_check.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "check/child.h"
#include "check/engines/trial_programs.h"
#include "loop_ir/lower.h"
#include "macro_ops/library.h"
#include "uops/notation/module.h"
#include "uops/notation/print.h"

namespace nestor {
namespace {

// The most trials of one child, as its memory may grow.
constexpr int64_t kTrialsOfChild = 5000;

// All checks of one trial of an op.
Finding CheckOp(const Op& op, uint64_t seed, const Sizes& sizes, TrialCounts& counts,
                absl::FunctionRef<void(absl::string_view)> tell) {
  TrialInputOptions options;
  options.sizes = sizes;
  // Some trials are large, so that loops have several blocks and pieces.
  options.most_work = seed % 8 == 0 ? 200'000 : 20'000;
  if (Finding finding = CheckTrial(op, seed, options, counts, tell)) return finding;
  return CheckGradientQuotients(op, seed, options, counts);
}

std::vector<int64_t> Numbers(const TrialCounts& counts) {
  return {counts.trials, counts.refused, counts.skipped,
          counts.pairs,  counts.bounds,  counts.quotients};
}
TrialCounts CountsOf(const std::vector<int64_t>& n) { return {n[0], n[1], n[2], n[3], n[4], n[5]}; }

TrialCounts Sum(const TrialCounts& a, const TrialCounts& b) {
  std::vector<int64_t> sum = Numbers(a);
  for (size_t i = 0; i < sum.size(); ++i) sum[i] += Numbers(b)[i];
  return CountsOf(sum);
}

// Tells the parent which engine is next.
auto Teller(Say say) {
  return [say](absl::string_view engine) { say(absl::StrCat("engine ", engine)); };
}

std::string DeathText(const std::string& engine, const ChildEnd& end) {
  return absl::StrCat(engine.empty() ? "" : absl::StrCat(engine, ": "), end.death, "\n", end.words);
}

class Checker {
 public:
  Checker(const std::function<Op(uint64_t)>& op_of, const SelfCheckOptions& options)
      : op_of_(op_of), options_(options), end_(absl::Now() + options.time) {}

  // Many trials in each child: a crash costs one of them, and the next child goes on after it.
  // Ends at the first of: all trials, the time, as many findings as are asked for.
  SelfCheckReport Run() {
    const absl::Time start = absl::Now();
    uint64_t seed = options_.first_seed;
    const uint64_t last = seed + static_cast<uint64_t>(std::max<int64_t>(options_.trials, 0));
    while (seed < last && absl::Now() < end_ &&
           static_cast<int>(report_.findings.size()) < options_.most_findings) {
      seed = RunChild(seed, std::min(last, seed + kTrialsOfChild));
    }
    report_.time = absl::Now() - start;
    report_.next_seed = seed;
    return std::move(report_);
  }

 private:
  Op Subject(uint64_t seed) const { return Derived(op_of_(seed), options_.derivative, seed); }

  // Trials from `first` on, to the first finding; returns the seed to go on with.
  uint64_t RunChild(uint64_t first, uint64_t last) {
    uint64_t seed = first;
    TrialCounts counts;
    std::string what, engine;
    const auto work = [&](Say say) {
      TrialCounts own;
      for (uint64_t s = first; s < last; ++s) {
        say(absl::StrCat("begins ", s, " ", absl::StrJoin(Numbers(own), " ")));
        const Finding finding = CheckOp(Subject(s), s, options_.sizes, own, Teller(say));
        if (finding) return say(absl::StrCat("finds ", *finding));
      }
      say(absl::StrCat("begins ", last, " ", absl::StrJoin(Numbers(own), " ")));
    };
    const auto hear = [&](absl::string_view message) {
      if (absl::ConsumePrefix(&message, "finds ")) what = std::string(message);
      else if (absl::ConsumePrefix(&message, "engine ")) engine = std::string(message);
      else if (absl::ConsumePrefix(&message, "begins ")) HearProgress(message, seed, counts);
      return absl::Now() < end_;
    };
    const ChildEnd end = RunInChild(work, hear, options_.patience);
    report_.counts = Sum(report_.counts, counts);
    if (!end.death.empty()) what = DeathText(engine, end);
    // Without a finding it ended at `last` or at the time limit; the + 1 keeps a child that said
    // nothing from being started for ever.
    if (what.empty()) return std::max(seed, first + 1);
    report_.findings.push_back(Shrunk(seed, what));
    return seed + 1;
  }

  void HearProgress(absl::string_view message, uint64_t& seed, TrialCounts& counts) const {
    const std::vector<absl::string_view> words = absl::StrSplit(message, ' ');
    std::vector<int64_t> numbers;
    for (size_t i = 1; i < words.size(); ++i) {
      numbers.emplace_back();
      (void)absl::SimpleAtoi(words[i], &numbers.back());
    }
    (void)absl::SimpleAtoi(words[0], &seed);
    counts = CountsOf(numbers);
    if (options_.progress) options_.progress(Sum(report_.counts, counts), seed);
  }

  // ---- Shrinking

  // The finding of a child on one trial of `op`; empty: nothing is wrong.
  std::string FindingOf(const Op& op, uint64_t seed, const Sizes& sizes,
                        absl::Duration patience) const {
    std::string what, engine;
    const auto work = [&](Say say) {
      TrialCounts counts;
      const Finding finding = CheckOp(op, seed, sizes, counts, Teller(say));
      if (finding) say(absl::StrCat("finds ", *finding));
    };
    const auto hear = [&](absl::string_view message) {
      if (absl::ConsumePrefix(&message, "finds ")) what = std::string(message);
      else if (absl::ConsumePrefix(&message, "engine ")) engine = std::string(message);
      return true;
    };
    const ChildEnd end = RunInChild(work, hear, patience);
    return end.death.empty() ? what : DeathText(engine, end);
  }

  // Prints the program in a child, too, as making it may be what fails.
  SelfCheckFinding Shrunk(uint64_t seed, const std::string& what) const {
    std::string text;
    // If making the program fails, there is no text.
    const auto print = [&](Say say) { say(PrintOp(Subject(seed))); };
    const auto hear = [&](absl::string_view message) { return text = std::string(message), true; };
    RunInChild(print, hear, options_.patience);
    SelfCheckFinding finding{seed, what, text, false, {}};
    if (text.empty() || options_.shrinking <= absl::ZeroDuration()) return finding;
    const absl::Time end = absl::Now() + options_.shrinking;
    const absl::Duration patience = std::min(options_.patience, absl::Seconds(10));
    const auto fails = [&](const Op& op, const Sizes& sizes) {
      return absl::Now() < end && !FindingOf(op, seed, sizes, patience).empty();
    };
    ShrinkInto(finding, fails);
    return finding;
  }

  // The program first, then its sizes, as fewer statements leave fewer sizes.
  void ShrinkInto(SelfCheckFinding& finding,
                  absl::FunctionRef<bool(const Op&, const Sizes&)> fails) const {
    absl::StatusOr<Op> op = ParsedOf(finding.program);
    if (!op.ok() || !fails(*op, options_.sizes)) return;
    finding.shrunk = true;
    finding.program = ShrinkProgram(
        finding.program, [&](const Op& smaller) { return fails(smaller, options_.sizes); });
    op = ParsedOf(finding.program);
    const Sizes drawn = SizesOf(*op, finding.seed);
    const auto smaller = ShrinkSizes(drawn, [&](const Sizes& sizes) { return fails(*op, sizes); });
    finding.sizes = smaller ? *smaller : GivenOf(drawn);
    finding.program = PrintOp(*op);
    const std::string what = FindingOf(*op, finding.seed, finding.sizes, options_.patience);
    if (!what.empty()) finding.what = what;
  }

  static absl::StatusOr<Op> ParsedOf(const std::string& text) {
    const auto module = Module::Parse(text, &MacroLibrary());
    if (!module.ok()) return module.status();
    return module->Instantiate("", {});
  }

  // The sizes that are not drawn.
  Sizes GivenOf(Sizes sizes) const {
    absl::erase_if(sizes, [&](const auto& size) { return !options_.sizes.contains(size.first); });
    return sizes;
  }

  Sizes SizesOf(const Op& op, uint64_t seed) const {
    TrialInputOptions options;
    options.sizes = options_.sizes;
    const auto inputs = DrawTrialInputs(op, Lower(op), seed, options);
    return inputs ? inputs->sizes : Sizes();
  }

  const std::function<Op(uint64_t)>& op_of_;
  const SelfCheckOptions& options_;
  const absl::Time end_;
  SelfCheckReport report_;
};

}  // namespace

SelfCheckReport SelfCheck(const std::function<Op(uint64_t seed)>& op_of,
                          const SelfCheckOptions& options) {
  return Checker(op_of, options).Run();
}

}  // namespace nestor
