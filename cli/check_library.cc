// The kernel is loaded and runs in processes of its own, by Check; this file reads its requirements
// from the command line. While it runs, its stdout is redirected to our stderr, so that its output
// does not get into the report.
#include "cli/check_library.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "check/c_kernel.h"
#include "check/check.h"
#include "cli/flag_values.h"
#include "cli/given.h"
#include "cli/library_kernel.h"
#include "cli/output.h"
#include "cli/program.h"
#include "uops/invariant.h"

namespace nestor::cli {
namespace {

// Quotes a word for a shell.
std::string Quoted(absl::string_view text) {
  const auto is_plain = [](char c) {
    return absl::ascii_isalnum(c) || absl::StrContains("_-+=./,:%", c);
  };
  if (!text.empty() && absl::c_all_of(text, is_plain)) return std::string(text);
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "'\\''"}}), "'");
}

// ---- Requirements of the kernel

// A given dimension may be as large as the real sizes of a kernel.
void AllowLarge(int64_t extent, CheckOptions& options) {
  constexpr int64_t kMostElements = int64_t{1} << 28, kMostWork = int64_t{1} << 45;
  options.sizes.max_extent = std::max(options.sizes.max_extent, extent);
  options.sizes.max_elements = kMostElements;
  options.sizes.max_work = kMostWork;
}

// Adds a word such as eps=1e-5.
absl::Status AddParam(const ParamInfo& param, const std::string& text, CheckOptions& options) {
  const absl::optional<Scalar> value = ParseLiteral(text, param.type);
  if (!value) {
    return absl::InvalidArgumentError(
        absl::StrCat(param.name, " is ", Name(param.type), ", '", text, "' does not fit"));
  }
  options.Param(param.name, value->ToDouble());
  return absl::OkStatus();
}

// Adds words such as N=64 and k=3 as conditions.
absl::Status AddSizes(const Op& op, const Given& given, CheckOptions& options) {
  const auto add = [&](const std::string& name, const std::string& value) {
    int64_t number;
    if (!absl::SimpleAtoi(value, &number)) {
      return absl::InvalidArgumentError(
          absl::StrCat(name, "=", value, ": a number of 64 bits is expected"));
    }
    options.Where(absl::StrCat(name, " == ", number));
    if (name[0] != '$') AllowLarge(number, options);
    return absl::OkStatus();
  };
  for (const auto& [name, value] : given.params) {
    const ParamInfo& param = *op.FindParam(name);
    NESTOR_RETURN_IF_ERROR(IsInteger(param.type) ? add(name, value)
                                                 : AddParam(param, value, options));
  }
  for (const auto& [name, value] : given.dims) NESTOR_RETURN_IF_ERROR(add(name, value));
  return absl::OkStatus();
}

absl::Status AddLimits(const Arguments& arguments, CheckOptions& options) {
  constexpr int64_t kMost = int64_t{1} << 60;
  if (arguments.Has("--trials")) {
    NESTOR_ASSIGN_OR_RETURN(options.trials, ReadNumber(arguments, "--trials", 0, 1, kMost));
  }
  if (arguments.Has("--time")) {
    NESTOR_ASSIGN_OR_RETURN(options.duration,
                            ReadDuration(arguments, "--time", absl::ZeroDuration()));
  }
  if (arguments.Has("--seed")) {
    NESTOR_ASSIGN_OR_RETURN(options.seed, arguments.Seed());
  }
  NESTOR_ASSIGN_OR_RETURN(options.patience,
                          ReadDuration(arguments, "--patience", options.patience));
  return absl::OkStatus();
}

absl::Status AddInPlace(const std::string& text, CheckOptions& options) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos) {
    return absl::InvalidArgumentError(
        absl::StrCat("--in-place=", text, ": ARGUMENT=RESULT is expected"));
  }
  options.InPlace(text.substr(0, equals), text.substr(equals + 1));
  return absl::OkStatus();
}

absl::Status ReadDecimal(absl::string_view flag, absl::string_view text, double& value) {
  if (absl::SimpleAtod(text, &value) && !std::isnan(value)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(flag, ": '", text, "' is not a number"));
}

// Adds --ulps, --bound and --range.
absl::Status AddPromises(const Arguments& arguments, CheckOptions& options) {
  if (const auto ulps = arguments.Find("--ulps")) {
    NESTOR_RETURN_IF_ERROR(ReadDecimal("--ulps", *ulps, options.allowance.ulps));
  }
  if (const auto times = arguments.Find("--bound")) {
    NESTOR_RETURN_IF_ERROR(ReadDecimal("--bound", *times, options.allowance.times));
  }
  const auto range = arguments.Find("--range");
  if (!range) return absl::OkStatus();
  const std::vector<std::string> ends = absl::StrSplit(*range, ',');
  if (ends.size() != 2)
    return absl::InvalidArgumentError(absl::StrCat("--range=", *range, ": LOW,HIGH is expected"));
  NESTOR_RETURN_IF_ERROR(ReadDecimal("--range", ends[0], options.values.low));
  return ReadDecimal("--range", ends[1], options.values.high);
}

absl::Status AddDemands(const Arguments& arguments, CheckOptions& options) {
  for (const std::string& condition : arguments.All("--where")) options.Where(condition);
  for (const std::string& pair : arguments.All("--in-place"))
    NESTOR_RETURN_IF_ERROR(AddInPlace(pair, options));
  NESTOR_ASSIGN_OR_RETURN(const int64_t alignment,
                          ReadNumber(arguments, "--alignment", 0, 0, 4096));
  options.Alignment(static_cast<int>(alignment));
  options.values.special = arguments.Has("--special");
  options.values.indices_outside = arguments.Has("--outside");
  options.SignedZeros(arguments.Has("--signed-zeros"));
  if (arguments.Has("--strided")) options.Layouts(Layouts::kAny);
  return AddPromises(arguments, options);
}

// The command with the seed of one trial.
std::string ReproduceText(const Arguments& arguments, absl::string_view program) {
  std::vector<std::string> words = {"nestor", "check", Quoted(program)};
  const auto add = [&](const std::string& name, const std::string& value) {
    words.push_back(Quoted(absl::StrCat(name, "=", value)));
  };
  for (const NameValue& word : arguments.words) add(word.name, word.value);
  for (const char* flag : {"--op", "--type", "--library", "--symbol", "--alignment", "--sample",
                           "--ulps", "--bound", "--range", "--patience"}) {
    if (const auto value = arguments.Find(flag)) add(flag, *value);
  }
  for (const char* flag : {"--strided", "--special", "--outside", "--signed-zeros"}) {
    if (arguments.Has(flag)) words.push_back(flag);
  }
  for (const char* flag : {"--where", "--in-place"}) {
    for (const std::string& value : arguments.All(flag)) add(flag, value);
  }
  return absl::StrCat(absl::StrJoin(words, " "), " --seed=$SEED --trials=1");
}

// ---- The op

// A macro op is passed by its name, because its samples restrict values.
CheckedOp CheckedOpFor(const Program& program, const Op& op, const Given& given,
                       CheckOptions& options) {
  if (program.macro == nullptr) return op;
  for (const ast::Argument& arg : program.Syntax().args) {
    if (!TypeByName(arg.type.text)) options.Types({op.FindArgument(arg.name)->type});
  }
  for (const auto& [name, shape] : given.shapes)
    options.Rank(name, static_cast<int>(shape.shape.size()));
  return program.macro->name;
}

// ---- The run

// While it lives, output to stdout goes to stderr.
class StdoutOnStderr {
 public:
  StdoutOnStderr() : kept_(dup(STDOUT_FILENO)) { dup2(STDERR_FILENO, STDOUT_FILENO); }
  ~StdoutOnStderr() {
    dup2(kept_, STDOUT_FILENO);
    close(kept_);
  }
  StdoutOnStderr(const StdoutOnStderr&) = delete;
  StdoutOnStderr& operator=(const StdoutOnStderr&) = delete;

 private:
  int kept_;
};

// The library may write to stdout, which the report alone should have: it gets stderr for it.
absl::StatusOr<CheckReport> RunCheck(const CheckedOp& op, const NamedKernel& kernel,
                                     CheckOptions& options) {
  const bool is_terminal = isatty(STDERR_FILENO) == 1;
  if (is_terminal) {
    options.OnProgress(
        [](int64_t trials) { WriteStderr(absl::StrCat("\r", trials, " trials\x1b[K")); });
  }
  const StdoutOnStderr moved;
  NESTOR_RETURN_IF_ERROR(TryLoadCKernel(kernel.file, kernel.prototype, options.patience));
  auto report = CheckKernel(op, LateCKernel(kernel.file, kernel.prototype), options);
  if (is_terminal) WriteStderr("\r\x1b[K");
  return report;
}

absl::Status Verdict(const CheckReport& report) {
  if (report.IsRight()) return absl::OkStatus();
  if (report.fault == Fault::kCrash) return absl::UnavailableError("the kernel crashed");
  if (report.fault == Fault::kHang) return absl::UnavailableError("the kernel hung");
  return absl::AbortedError(report.fault == Fault::kNone ? "nothing of the kernel was judged"
                                                         : "the kernel is wrong");
}

}  // namespace

// All words are read and checked before the library is loaded.
absl::Status CheckLibrary(const Arguments& arguments) {
  CheckOptions options;
  options.Isolated();
  NESTOR_RETURN_IF_ERROR(AddLimits(arguments, options));
  NESTOR_RETURN_IF_ERROR(AddDemands(arguments, options));
  NESTOR_ASSIGN_OR_RETURN(const Program program, LoadProgram(arguments));
  NESTOR_ASSIGN_OR_RETURN(const Given given, ReadWords(arguments, program));
  if (!given.tensors.empty())
    return absl::InvalidArgumentError("tensors are drawn: only types and sizes can be given");
  NESTOR_ASSIGN_OR_RETURN(const auto type, ReadType(arguments, program));
  NESTOR_ASSIGN_OR_RETURN(const Op op, InstantiateFor(program, given, type));
  NESTOR_RETURN_IF_ERROR(AddSizes(op, given, options));
  const int64_t usual_sample = given.dims.empty() ? 0 : 4096;
  NESTOR_ASSIGN_OR_RETURN(options.sample,
                          ReadNumber(arguments, "--sample", usual_sample, 0, int64_t{1} << 40));
  NESTOR_ASSIGN_OR_RETURN(const auto kernel, ReadLibraryKernel(arguments, op));
  const CheckedOp checked = CheckedOpFor(program, op, given, options);
  // The text of stdin cannot be read again.
  const absl::string_view source = arguments.program == "-" ? program.text : arguments.program;
  options.reproduce = ReproduceText(arguments, absl::StripAsciiWhitespace(source));
  NESTOR_ASSIGN_OR_RETURN(const CheckReport report, RunCheck(checked, *kernel, options));
  NESTOR_RETURN_IF_ERROR(
      WriteStdout(arguments.Has("--json") ? report.ToJson() : report.ToString()));
  return Verdict(report);
}

}  // namespace nestor::cli
