// nestor run: loads PROGRAM, makes up what is missing, runs the oracle, prints
// or writes the results. All that can be checked is checked before it runs.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/given.h"
#include "cli/inputs.h"
#include "cli/output.h"
#include "cli/program.h"
#include "interp/interpreter.h"
#include "loop_ir/lower.h"
#include "tensor/npy.h"
#include "uops/invariant.h"

namespace nestor::cli {
namespace {

constexpr absl::string_view kHelp = R"(nestor run PROGRAM [NAME=value ...] [flags]

Runs an op and prints its results.

PROGRAM is a file in the notation, - for stdin, or a macro op's name.

  x=x.npy           a tensor for the argument x (a uint16 file is taken as bf16
                    where the program says bf16)
  x=f32[2,3]        an input of this type and shape, made up; x=[2,3] of the type
                    that the program says
  k=3               the $param k
  N=64              the dimension N
  -o y=y.npy        writes the result y to a file instead of printing it

What is missing is made up, and each such input is named on stderr. Dimensions
are 4, 5, 6, ... or, of a macro op given no sizes, those of its first sample;
floats are drawn from [-1, 1), integers from 0..3.

  --op=NAME         which op of several; by default the last
  --seed=S          of what is drawn; 0 by default
  --json            prints one object, {"y": {"type": "f32", "shape": [2, 3],
                    "data": [...]}}, elements in row-major order, those that are
                    inf or NaN as the strings "inf", "-inf", "nan"
  --backend=interp  what runs it: the interpreter, the only one yet

Examples:
  $ nestor run softmax
  $ nestor run matmul 'a=f32[2,3]' N=4 --seed=7
  $ nestor run max_pool2d 'x=[1,1,4,4]' k=2 stride=2 --json
  $ nestor run softmax N0=2 C=3 -o y=y.npy && nestor run log_softmax x=y.npy
  $ echo 'op scale(x: f32[N]; $k) -> (y) { y[i] = x[i] * f32($k) }' | nestor run - k=3

Exit codes: 0 done, 2 bad usage or input.
)";

constexpr Flag kFlags[] = {{"--op"}, {"--seed"}, {"--json", false}, {"--backend"}};

// ---- Limits

// Half of the memory that this process may use: a byte beside each element says
// whether it was written.
int64_t MaxBytes() {
  int64_t bytes = static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGE_SIZE);
  std::ifstream group("/sys/fs/cgroup/memory.max");
  int64_t limit;
  if (group >> limit) bytes = std::min(bytes, limit);
  return bytes / 2;
}

absl::Status CheckBackend(const Arguments& arguments) {
  const std::string backend = arguments.Find("--backend").value_or("interp");
  if (backend == "interp") return absl::OkStatus();
  if (backend == "jit") {
    return absl::UnimplementedError("--backend=jit: there is no JIT yet; --backend=interp runs the interpreter");
  }
  return absl::InvalidArgumentError(absl::StrCat("--backend=", backend, ": unknown backend (there is interp)"));
}

// ---- Output files

std::string DirectoryOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash + 1);
}

absl::Status CheckWritable(const NameValue& output) {
  const std::string what = absl::StrCat("-o ", output.name, "=", output.value);
  struct stat info;
  if (stat(output.value.c_str(), &info) == 0) {
    if (S_ISDIR(info.st_mode)) return absl::InvalidArgumentError(absl::StrCat(what, " is a directory"));
    if (access(output.value.c_str(), W_OK) != 0) return absl::ErrnoToStatus(errno, what);
    return absl::OkStatus();
  }
  const std::string directory = DirectoryOf(output.value);
  if (access(directory.c_str(), W_OK | X_OK) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat(what, ": cannot write in ", directory));
  }
  if (output.value.back() == '/') return absl::InvalidArgumentError(absl::StrCat(what, " names no file"));
  return absl::OkStatus();
}

absl::Status CheckOutputs(const Arguments& arguments, const Op& op) {
  std::vector<std::string> known;
  for (const Result& result : op.results) known.push_back(result.name);
  for (const NameValue& output : arguments.outputs) {
    if (op.FindResult(output.name) == nullptr) {
      return absl::InvalidArgumentError(absl::StrCat("-o ", output.name, ": op ", op.name, " has no result '",
                                                     output.name, "'", DidYouMean(output.name, known), " (there are ",
                                                     absl::StrJoin(known, ", "), ")"));
    }
    NESTOR_RETURN_IF_ERROR(CheckWritable(output));
  }
  return absl::OkStatus();
}

// ---- Results

using NamedResults = std::vector<std::pair<std::string, const Tensor*>>;

std::string JsonElement(const Scalar& value) {
  const std::string text = LiteralText(value);
  return std::isfinite(value.ToDouble()) ? text : JsonString(text);
}

std::string JsonTensor(const Tensor& tensor) {
  std::string json = absl::StrCat("{\"type\": ", JsonString(Name(tensor.type())),
                                  ", \"shape\": ", ShapeText(tensor.shape()), ", \"data\": [");
  const char* element = static_cast<const char*>(tensor.data());
  for (int64_t i = 0; i < tensor.num_elements(); ++i, element += ByteSize(tensor.type())) {
    absl::StrAppend(&json, i == 0 ? "" : ", ", JsonElement(Load(tensor.type(), element)));
  }
  return json + "]}";
}

std::string JsonText(const NamedResults& results) {
  const auto member = [](std::string* out, const auto& result) {
    absl::StrAppend(out, JsonString(result.first), ": ", JsonTensor(*result.second));
  };
  return absl::StrCat("{", absl::StrJoin(results, ", ", member), "}\n");
}

std::string PlainText(const NamedResults& results) {
  std::string text;
  for (const auto& [name, tensor] : results) {
    absl::StrAppend(&text, name, ": ", Name(tensor->type()), ShapeText(tensor->shape()), " =\n", ToString(*tensor),
                    "\n");
  }
  return text;
}

// Files first: a reader of stdout that goes away costs none of them.
absl::Status Deliver(const Arguments& arguments, const Op& op, const std::vector<Tensor>& results) {
  NamedResults printed;
  for (size_t i = 0; i < results.size(); ++i) {
    const std::string& name = op.results[i].name;
    const auto output = std::find_if(arguments.outputs.begin(), arguments.outputs.end(),
                                     [&](const NameValue& o) { return o.name == name; });
    if (output == arguments.outputs.end()) printed.emplace_back(name, &results[i]);
    else NESTOR_RETURN_IF_ERROR(WriteNpy(output->value, results[i].view()));
  }
  return WriteStdout(arguments.Has("--json") ? JsonText(printed) : PlainText(printed));
}

absl::Status Run(const Arguments& arguments) {
  NESTOR_RETURN_IF_ERROR(CheckBackend(arguments));
  NESTOR_ASSIGN_OR_RETURN(const uint64_t seed, arguments.Seed());
  NESTOR_ASSIGN_OR_RETURN(const Program program, LoadProgram(arguments));
  NESTOR_ASSIGN_OR_RETURN(Given given, ReadWords(arguments, program));
  std::vector<std::string> remarks;
  if (program.macro != nullptr) FillFromSample(*program.macro, program, given, remarks);
  NESTOR_ASSIGN_OR_RETURN(const Op op, InstantiateFor(program, given));
  NESTOR_RETURN_IF_ERROR(CheckOutputs(arguments, op));
  InterpreterOptions options;
  options.max_bytes = MaxBytes();
  NESTOR_ASSIGN_OR_RETURN(const Inputs inputs, MakeInputs(op, given, program.macro, seed, &options.max_bytes));
  for (const std::string& remark : remarks) Remark(remark);
  for (const std::string& remark : inputs.remarks) Remark(remark);
  NESTOR_ASSIGN_OR_RETURN(const std::vector<Tensor> results, Interpret(Lower(op), inputs.run, options));
  return Deliver(arguments, op, results);
}

}  // namespace

const Command kRunCommand = {"run", "runs an op and prints its results", kHelp, kFlags, true, true, Run};

}  // namespace nestor::cli
