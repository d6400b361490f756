// Files: opened, and read and written whole.
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
  // False where the last of what was written did not arrive; sets errno.
  bool Close();

 private:
  int fd_;
};

// A text of pages, such as a program: of a file or pipe, or to the end of an open descriptor, which
// errors call `name`. The system's error, naming it; InvalidArgument where it is longer than 16
// MiB, and so no `kind` ("program").
absl::StatusOr<std::string> ReadTextFile(const std::string& path, absl::string_view kind);
absl::StatusOr<std::string> ReadTextToEnd(int fd, absl::string_view name, absl::string_view kind);

// Writes these pieces, one after the other. The file appears whole or not at all: it is written
// beside its target and then renamed over it; on failure, the target is as it was and nothing is
// left behind. An existing file's permissions, and a symbolic link, are kept. A target that exists
// and is no regular file (a pipe, /dev/stdout) is written directly. The system's error, which does
// not name the path. Of several writers of one path the last to finish wins.
absl::Status WriteWholeFile(const std::string& path, absl::Span<const absl::string_view> pieces);

}  // namespace nestor

#endif  // NESTOR_TENSOR_FILES_H_
