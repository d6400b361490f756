// One row of the file is one image: 64 pixels and the label, integers with commas
// between. zlib's gzgets reads it a line at a time, so nothing is unpacked first.
// A malformed row is an error and never skipped.
#include "examples/digits/data.h"

#include <unistd.h>
#include <zlib.h>

#include <memory>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tools/cpp/runfiles/runfiles.h"
#include "uops/invariant.h"

namespace nestor::digits {
namespace {

using bazel::tools::cpp::runfiles::Runfiles;

constexpr int64_t kTrain = 1437;
constexpr int64_t kRows = 1797;
constexpr int kInk = 16;  // the darkest pixel

std::string ExecutablePath() {
  char path[4096];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof(path));
  return length < 0 ? "" : std::string(path, length);
}

absl::StatusOr<int> ParseInteger(absl::string_view field, int maximum) {
  int value;
  if (absl::SimpleAtoi(field, &value) && 0 <= value && value <= maximum) return value;
  return absl::InvalidArgumentError(absl::StrCat("'", field, "' is no integer in 0..", maximum));
}

absl::Status ParseRow(absl::string_view line, Examples& examples) {
  const std::vector<absl::string_view> fields = absl::StrSplit(line, ',');
  if (fields.size() != kPixels + 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("has ", fields.size(), " fields, not ", kPixels + 1));
  }
  for (int i = 0; i < kPixels; ++i) {
    NESTOR_ASSIGN_OR_RETURN(const int pixel, ParseInteger(fields[i], kInk));
    examples.pixels.push_back(static_cast<float>(pixel) / kInk);
  }
  NESTOR_ASSIGN_OR_RETURN(const int label, ParseInteger(fields[kPixels], kClasses - 1));
  examples.labels.push_back(label);
  return absl::OkStatus();
}

absl::Status RowError(const std::string& path, int64_t row, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(path, ": row ", row, ": ", what));
}

}  // namespace

absl::StatusOr<std::string> FindDigits() {
  std::string error;
  const std::unique_ptr<Runfiles> runfiles(Runfiles::Create(ExecutablePath(), &error));
  const std::string path =
      runfiles == nullptr ? "" : runfiles->Rlocation("nestor/examples/digits/digits.csv.gz");
  if (!path.empty() && access(path.c_str(), R_OK) == 0) return path;
  return absl::NotFoundError(absl::StrCat("digits.csv.gz is not among the program's runfiles (",
                                          path.empty() ? error : path,
                                          "); start it by ./bazelw run //examples/digits"));
}

absl::StatusOr<Digits> LoadDigits(const std::string& path) {
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(gzopen(path.c_str(), "rb"), gzclose);
  if (file == nullptr) return absl::NotFoundError(absl::StrCat(path, ": cannot be opened"));
  Digits digits;
  int64_t row = 0;
  char line[1024];  // a row takes at most 194 bytes
  for (; gzgets(file.get(), line, sizeof(line)) != nullptr; ++row) {
    const absl::Status parsed = ParseRow(line, row < kTrain ? digits.train : digits.test);
    if (!parsed.ok()) return RowError(path, row, parsed.message());
  }
  int code;
  const char* const message = gzerror(file.get(), &code);
  if (code != Z_OK && code != Z_STREAM_END) return RowError(path, row, message);
  if (row != kRows)
    return RowError(path, row,
                    absl::StrCat("the file ends, where there should be ", kRows, " rows"));
  return digits;
}

}  // namespace nestor::digits
