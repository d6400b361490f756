// The flags say which ops are drawn (one program, all macro ops, or random ones) and how long; the
// check itself is check/engines. A finding is printed with the command that reproduces it.
#include "cli/check_engines.h"

#include <unistd.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "check/engines/self_check.h"
#include "check/engines/trial_programs.h"
#include "cli/arguments.h"
#include "cli/figures.h"
#include "cli/flag_values.h"
#include "cli/output.h"
#include "cli/program.h"
#include "cli/sizes.h"
#include "macro_ops/library.h"
#include "tensor/binding.h"
#include "uops/invariant.h"
#include "uops/notation/ast.h"

namespace nestor::cli {
namespace {

constexpr int64_t kTrials = 200;

// ---- Flags

// With --time and no --trials, only the time ends the check.
absl::StatusOr<SelfCheckOptions> ReadOptions(const Arguments& arguments) {
  constexpr int64_t kNoLimit = int64_t{1} << 60;
  SelfCheckOptions options;
  NESTOR_ASSIGN_OR_RETURN(options.first_seed, arguments.Seed());
  NESTOR_ASSIGN_OR_RETURN(options.time,
                          ReadDuration(arguments, "--time", absl::InfiniteDuration()));
  const int64_t trials = arguments.Has("--time") ? kNoLimit : kTrials;
  NESTOR_ASSIGN_OR_RETURN(options.trials, ReadNumber(arguments, "--trials", trials, 0, kNoLimit));
  NESTOR_ASSIGN_OR_RETURN(const int64_t derivative,
                          ReadNumber(arguments, "--derivative", -1, 0, 2));
  NESTOR_ASSIGN_OR_RETURN(const int64_t findings, ReadNumber(arguments, "--findings", 1, 1, 1000));
  options.derivative = static_cast<int>(derivative);
  options.most_findings = static_cast<int>(findings);
  NESTOR_ASSIGN_OR_RETURN(options.shrinking,
                          ReadDuration(arguments, "--shrink", options.shrinking));
  return options;
}

absl::Status CheckForm(const Arguments& arguments) {
  const bool all = arguments.Has("--all"), random = arguments.Has("--random"),
             program = !arguments.program.empty();
  if (all + random + program == 1 && (program || arguments.words.empty())) return absl::OkStatus();
  if (all + random + program == 1)
    return absl::InvalidArgumentError("sizes are those of a PROGRAM");
  return absl::InvalidArgumentError("one of PROGRAM, --all and --random is expected");
}

// ---- Ops to check

using OpOf = std::function<Op(uint64_t seed)>;

OpOf AllMacroOps() {
  return [](uint64_t seed) {
    const std::vector<MacroOp>& all = MacroOps();
    for (uint64_t s = seed;; s += all.size()) {
      if (auto op = DrawInstance(MacroLibrary(), all[seed % all.size()].name, s))
        return *std::move(op);
    }
  };
}

// Whether the name is one like N2 of ..N: how many of them there are is known only for the op of
// a trial.
bool IsOfPack(const ast::Op& syntax, absl::string_view name) {
  return absl::c_any_of(syntax.args, [&](const ast::Argument& arg) {
    return absl::c_any_of(arg.dims, [&](const ast::Item& dim) {
      absl::string_view number = name;
      return dim.is_pack && absl::ConsumePrefix(&number, dim.pack) && !number.empty() &&
             absl::c_all_of(number, absl::ascii_isdigit);
    });
  });
}

// Adds N=64 or k=3, for `op` or for another instance of `syntax`.
absl::Status AddSize(const ast::Op& syntax, const Op& op, const NameValue& word, Sizes& sizes) {
  const ParamInfo* param = op.FindParam(absl::StrCat("$", word.name));
  if (param == nullptr) {
    const bool is_known = absl::c_linear_search(UnboundDimensions(SignatureOf(op), {}), word.name);
    if (!is_known && !IsOfPack(syntax, word.name)) return UnknownNumber(op, word.name);
    NESTOR_ASSIGN_OR_RETURN(sizes[word.name], ReadExtent(op, word.name, word.value));
    return absl::OkStatus();
  }
  if (!IsInteger(param->type)) {
    return absl::InvalidArgumentError(
        absl::StrCat(word.name, "=", word.value, ": ", param->name, " is ", Name(param->type),
                     "; only dimensions and integer $params are fixed here"));
  }
  NESTOR_ASSIGN_OR_RETURN(const Scalar value, ReadParam(op, *param, word.value));
  sizes[param->name] = value.ToInt();
  return absl::OkStatus();
}

// Gives the op for drawn types and ranks, if it leaves them open.
absl::StatusOr<OpOf> OneProgram(const Arguments& arguments, Sizes& sizes) {
  NESTOR_ASSIGN_OR_RETURN(Program program, LoadProgram(arguments));
  NESTOR_ASSIGN_OR_RETURN(const Op op, program.Instantiate({}));
  for (const NameValue& word : arguments.words) {
    NESTOR_RETURN_IF_ERROR(AddSize(program.Syntax(), op, word, sizes));
  }
  const auto shared = std::make_shared<const Program>(std::move(program));
  return OpOf([shared, op](uint64_t seed) {
    return DrawInstance(shared->module(), shared->op, seed).value_or(op);
  });
}

absl::StatusOr<OpOf> Subject(const Arguments& arguments, Sizes& sizes) {
  if (arguments.Has("--random")) return OpOf(DrawTrialOp);
  if (arguments.Has("--all")) return AllMacroOps();
  return OneProgram(arguments, sizes);
}

// ---- Output

std::string Quoted(absl::string_view text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "'\\''"}}), "'");
}

std::string SizesText(const Sizes& sizes) {
  std::vector<std::string> words;
  for (const auto& [name, size] : sizes) {
    words.push_back(absl::StrCat(" ", name[0] == '$' ? name.substr(1) : name, "=", size));
  }
  absl::c_sort(words);
  return absl::StrJoin(words, "");
}

// The command that reproduces the finding.
std::string CommandOf(const Arguments& arguments, const SelfCheckFinding& finding) {
  const std::string trial = absl::StrCat(" --seed=", finding.seed, " --trials=1");
  if (finding.shrunk) {
    return absl::StrCat("nestor check ", Quoted(finding.program), SizesText(finding.sizes), trial,
                        " --derivative=0");
  }
  const auto derivative = arguments.Find("--derivative");
  std::string subject = arguments.Has("--random") ? "--random" : "--all";
  if (!arguments.program.empty()) {
    subject = Quoted(arguments.program);
    for (const NameValue& word : arguments.words)
      absl::StrAppend(&subject, " ", word.name, "=", word.value);
  }
  return absl::StrCat("nestor check ", subject, trial,
                      derivative ? absl::StrCat(" --derivative=", *derivative) : "");
}

Figures CountsOf(const SelfCheckReport& report) {
  const TrialCounts& counts = report.counts;
  return {{"trials", absl::StrCat(counts.trials)},
          {"engine_pairs", absl::StrCat(counts.pairs)},
          {"bounds", absl::StrCat(counts.bounds)},
          {"difference_quotients", absl::StrCat(counts.quotients)},
          {"refused", absl::StrCat(counts.refused)},
          {"skipped", absl::StrCat(counts.skipped)},
          {"seconds", absl::StrCat(absl::ToDoubleSeconds(report.time))},
          {"next_seed", absl::StrCat(report.next_seed)}};
}

std::string Json(const Arguments& arguments, const SelfCheckReport& report) {
  std::vector<std::string> findings;
  for (const SelfCheckFinding& finding : report.findings) {
    findings.push_back(
        absl::StrCat("{\"seed\": ", finding.seed, ", \"what\": ", JsonString(finding.what),
                     ", \"program\": ", JsonString(finding.program),
                     ", \"command\": ", JsonString(CommandOf(arguments, finding)), "}"));
  }
  std::vector<std::string> members;
  for (const Figure& figure : CountsOf(report))
    members.push_back(absl::StrCat("\"", figure.key, "\": ", figure.value));
  members.push_back(absl::StrCat("\"findings\": [", absl::StrJoin(findings, ", "), "]"));
  return absl::StrCat("{", absl::StrJoin(members, ", "), "}\n");
}

std::string Text(const Arguments& arguments, const SelfCheckReport& report) {
  std::string text = FiguresText(CountsOf(report), /*is_json=*/false);
  absl::StrAppend(&text, "findings: ", report.findings.size(), "\n");
  for (const SelfCheckFinding& finding : report.findings) {
    absl::StrAppend(&text, "\nseed ", finding.seed, ": ", finding.what, "\n", finding.program,
                    "\nto see it again:\n  ", CommandOf(arguments, finding), "\n");
  }
  return text;
}

// Shows progress on a terminal, in one line that is overwritten.
void ShowProgress(const TrialCounts& counts, uint64_t seed) {
  if (counts.trials % 16 != 0) return;
  const std::string line = absl::StrCat("\rtrial ", counts.trials, ", seed ", seed, " \x1b[K");
  if (write(STDERR_FILENO, line.data(), line.size()) < 0) return;
}

absl::Status Verdict(const Arguments& arguments, const SelfCheckReport& report) {
  if (!report.findings.empty()) return absl::AbortedError("an engine is wrong");
  const TrialCounts& counts = report.counts;
  const bool is_idle =
      counts.trials > 0 && counts.pairs == 0 && counts.bounds == 0 && counts.quotients == 0;
  if (!is_idle || arguments.words.empty()) return absl::OkStatus();
  return absl::AbortedError(absl::StrCat("nothing was checked at these sizes: of ", counts.trials,
                                         " trials the op refuses ", counts.refused, ", and ",
                                         counts.skipped, " are too large"));
}

}  // namespace

// Progress goes to a terminal only, and is wiped before the report.
absl::Status CheckEngines(const Arguments& arguments) {
  NESTOR_RETURN_IF_ERROR(CheckForm(arguments));
  NESTOR_ASSIGN_OR_RETURN(SelfCheckOptions options, ReadOptions(arguments));
  NESTOR_ASSIGN_OR_RETURN(const OpOf op_of, Subject(arguments, options.sizes));
  const bool shows_progress = isatty(STDERR_FILENO) == 1;
  if (shows_progress) options.progress = ShowProgress;
  const SelfCheckReport report = SelfCheck(op_of, options);
  if (shows_progress && write(STDERR_FILENO, "\r\x1b[K", 4) < 0) return absl::OkStatus();
  NESTOR_RETURN_IF_ERROR(
      WriteStdout(arguments.Has("--json") ? Json(arguments, report) : Text(arguments, report)));
  return Verdict(arguments, report);
}

}  // namespace nestor::cli
