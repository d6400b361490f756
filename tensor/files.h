// Opens files, and reads and writes them as a whole.
#ifndef NESTOR_TENSOR_FILES_H_
#define NESTOR_TENSOR_FILES_H_

#include "uops/cpp20.h"  // first, so that an older standard is named before all else

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace nestor {

// Owns a file descriptor.
class File {
 public:
  explicit File(int fd) : fd_(fd) {}
  ~File() { Close(); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  int fd() const { return fd_; }
  bool ok() const { return fd_ >= 0; }
  // False if the last bytes written did not arrive; sets errno.
  bool Close();

 private:
  int fd_;
};

// Reads a text of some pages, such as a program, from a file or pipe, or from an open descriptor,
// which errors call `name`. Errors are those of the system, naming it; InvalidArgument if it is
// longer than 16 MiB, and thus no `kind` ("program").
absl::StatusOr<std::string> ReadTextFile(const std::string& path, absl::string_view kind);
absl::StatusOr<std::string> ReadTextToEnd(int fd, absl::string_view name, absl::string_view kind);

// Writes these pieces, one after the other. The file appears whole or not at all: it is written
// beside its target and then renamed over it; on failure, the target is as it was and nothing is
// left. An existing file's permissions, and a symbolic link, are kept. A target that exists and is
// no regular file (a pipe, /dev/stdout) is written directly. Errors are those of the system and do
// not name the path. If several writers write one path, the last to finish wins.
absl::Status WriteWholeFile(const std::string& path, absl::Span<const absl::string_view> pieces);

}  // namespace nestor

#endif  // NESTOR_TENSOR_FILES_H_
