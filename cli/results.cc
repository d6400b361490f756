// Paths are checked before a run, so that hours of work do not end in a typing error.
#include "cli/results.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <compare>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/output.h"
#include "tensor/npy.h"
#include "uops/invariant.h"
#include "uops/message.h"
#include "uops/notation/module.h"

namespace nestor::cli {
namespace {

std::string DirectoryOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash + 1);
}

// As far as can be told without creating the file.
absl::Status CheckWritable(const NameValue& output) {
  const std::string what = absl::StrCat("-o ", output.name, "=", output.value);
  struct stat info;
  if (stat(output.value.c_str(), &info) == 0) {
    if (S_ISDIR(info.st_mode))
      return absl::InvalidArgumentError(absl::StrCat(what, " is a directory"));
    if (access(output.value.c_str(), W_OK) != 0) return absl::ErrnoToStatus(errno, what);
    return absl::OkStatus();
  }
  if (errno != ENOENT) return absl::ErrnoToStatus(errno, what);
  const std::string directory = DirectoryOf(output.value);
  if (access(directory.c_str(), W_OK | X_OK) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat(what, ": cannot write in ", directory));
  }
  if (output.value.back() == '/')
    return absl::InvalidArgumentError(absl::StrCat(what, " names no file"));
  return absl::OkStatus();
}

// The identity of a file, whatever its path: the file itself, or, if it does not exist, its
// directory and its name there.
struct FileIdentity {
  dev_t device = 0;
  ino_t number = 0;
  std::string name;
  auto operator<=>(const FileIdentity&) const = default;
};

FileIdentity IdentityOf(const std::string& path) {
  struct stat info = {};
  if (stat(path.c_str(), &info) == 0) return {info.st_dev, info.st_ino, ""};
  const std::string directory = DirectoryOf(path);
  if (stat(directory.c_str(), &info) != 0) return {0, 0, path};
  return {info.st_dev, info.st_ino, path.substr(path.rfind('/') + 1)};
}

absl::Status CheckDistinct(const std::vector<NameValue>& outputs) {
  std::map<FileIdentity, std::string> names;
  for (const NameValue& output : outputs) {
    const auto [other, is_first] = names.emplace(IdentityOf(output.value), output.name);
    if (is_first) continue;
    return absl::InvalidArgumentError(absl::StrCat("-o: ", other->second, " and ", output.name,
                                                   " would both be written to ", output.value));
  }
  return absl::OkStatus();
}

}  // namespace

// Before anything is computed: a long run should not end with a file that cannot be written.
absl::Status CheckOutputs(const Arguments& arguments, const Op& op) {
  std::vector<std::string> known;
  for (const Result& result : op.results) known.push_back(result.name);
  for (const NameValue& output : arguments.outputs) {
    if (op.FindResult(output.name) == nullptr) {
      return absl::InvalidArgumentError(absl::StrCat(
          "-o ", output.name, ": op ", op.name, " has no result '", output.name, "'",
          DidYouMean(output.name, known), " (there are ", absl::StrJoin(known, ", "), ")"));
    }
    NESTOR_RETURN_IF_ERROR(CheckWritable(output));
  }
  return CheckDistinct(arguments.outputs);
}

namespace {

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
    absl::StrAppend(&text, name, ": ", Name(tensor->type()), ShapeText(tensor->shape()), " =\n",
                    ToString(*tensor), "\n");
  }
  return text;
}

}  // namespace

// Files are written first, so that none is lost if the reader of stdout goes away.
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

}  // namespace nestor::cli
