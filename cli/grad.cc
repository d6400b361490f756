// nestor grad: the gradient of an op, as an op.
#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "autodiff/gradient.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/given.h"
#include "cli/output.h"
#include "cli/program.h"
#include "uops/invariant.h"
#include "uops/notation/print.h"

namespace nestor::cli {
namespace {

constexpr absl::string_view kHelp = R"(nestor grad PROGRAM [x=f32[2,3] ...] [flags]

Prints the gradient of an op as one op in the notation, on stdout, and on stderr
the mask: the arguments and results of the original that it needs.

PROGRAM is a file in the notation, - for stdin, the text of ops ('op f(..) ..'), or
a macro op's name. x=f32[2,3] says the type and rank of an argument where the
program leaves them open (else T is f32, and ..N one dimension).

  --wrt=x,w         the arguments to differentiate by; by default all floats
  --of=y            the results whose adjoints are given, as g_y; by default all
                    floats
  --given=g_y,y     the gradient op takes exactly these; by default the least
                    that it can do with
  --op=NAME         which op of several; by default the last

Examples:
  $ nestor grad softmax --wrt=x
  $ nestor grad matmul --wrt=a,b 'a=f64[2,3]' --given=g_c,a,b
  $ nestor grad softmax --wrt=x | nestor run -

Exit codes: 0 done, 2 bad usage or input.
)";

constexpr Flag kFlags[] = {{"--op"}, {"--wrt"}, {"--of"}, {"--given"}};

absl::StatusOr<GradientRequest> ReadRequest(const Arguments& arguments) {
  GradientRequest request;
  NESTOR_ASSIGN_OR_RETURN(request.wrt, arguments.List("--wrt"));
  NESTOR_ASSIGN_OR_RETURN(request.of, arguments.List("--of"));
  NESTOR_ASSIGN_OR_RETURN(const std::vector<std::string> given, arguments.List("--given"));
  if (arguments.Has("--given")) request.given = given;
  return request;
}

// "mask: y, x (shape)".
std::string MaskText(const GradientResult& gradient) {
  std::vector<std::string> names;
  for (const std::string& name : gradient.mask) {
    const bool shape = absl::c_linear_search(gradient.shapes, name);
    names.push_back(absl::StrCat(name, shape ? " (shape)" : ""));
  }
  return absl::StrCat("mask: ", names.empty() ? "nothing" : absl::StrJoin(names, ", "));
}

std::vector<std::string> FloatArguments(const Op& op) {
  std::vector<std::string> names;
  for (const Argument& arg : op.args) {
    if (IsFloat(arg.type) && !arg.shape_only) names.push_back(arg.name);
  }
  return names;
}

std::vector<std::string> FloatResults(const Op& op) {
  std::vector<std::string> names;
  for (const Result& result : op.results) {
    if (IsFloat(op.graph.type(result.node))) names.push_back(result.name);
  }
  return names;
}

// Says which values of these names ("the gradient of x") are not named g_x, because that is taken.
void RemarkOtherNames(absl::string_view what, const std::vector<std::string>& of,
                      const std::vector<std::string>& names) {
  for (size_t i = 0; i < std::min(of.size(), names.size()); ++i) {
    if (names[i] == absl::StrCat("g_", of[i])) continue;
    Remark(absl::StrCat("the ", what, " of ", of[i], " is ", names[i]));
  }
}

// The gradient op takes the adjoints first.
std::vector<std::string> NamesOfArguments(const Op& gradient) {
  std::vector<std::string> names;
  for (const Argument& arg : gradient.args) names.push_back(arg.name);
  return names;
}

absl::Status Run(const Arguments& arguments) {
  NESTOR_ASSIGN_OR_RETURN(const GradientRequest request, ReadRequest(arguments));
  NESTOR_ASSIGN_OR_RETURN(const Program program, LoadProgram(arguments));
  NESTOR_ASSIGN_OR_RETURN(const Given given, ReadShapeWords(arguments, program));
  NESTOR_ASSIGN_OR_RETURN(const Op op, InstantiateFor(program, given));
  NESTOR_ASSIGN_OR_RETURN(const GradientResult gradient, Gradient(op, request));
  Remark(MaskText(gradient));
  RemarkOtherNames("adjoint", request.of.empty() ? FloatResults(op) : request.of,
                   NamesOfArguments(gradient.op));
  RemarkOtherNames("gradient", request.wrt.empty() ? FloatArguments(op) : request.wrt,
                   gradient.results);
  return WriteStdout(PrintOp(gradient.op));
}

}  // namespace

const Command kGradCommand = {
    "grad", "prints the gradient of an op as an op", kHelp, kFlags, true, false, Run};

}  // namespace nestor::cli
