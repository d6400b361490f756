// Output goes through write(2) in one piece at a time: there is no buffer that
// could be lost at exit, and every failure is seen where it happens.
#include "cli/output.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "uops/message.h"

namespace nestor::cli {
namespace {

constexpr char kLocated[] = "nestor/located";
constexpr size_t kLongestFileName = 255;

// 0, or the errno of the write that failed.
int WriteAll(int fd, absl::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    text.remove_prefix(written);
  }
  return 0;
}

std::string Printable(absl::string_view text) {
  std::string shown;
  for (const char c : ClipWords(ValidUtf8(text), kLongestFileName)) {
    if ((c >= 0 && c < ' ' && c != '\n') || c == '\x7f') absl::StrAppendFormat(&shown, "\\x%02x", c);
    else shown.push_back(c);
  }
  return shown;
}

}  // namespace

void PrepareStandardStreams() {
  signal(SIGPIPE, SIG_IGN);
  for (int fd = 0; fd <= 2; ++fd) {
    if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF) continue;
    // The lowest free number is `fd`. Opened the wrong way round on purpose.
    if (open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY) != fd) _exit(2);
  }
}

absl::Status WriteStdout(absl::string_view text) {
  const int error = WriteAll(STDOUT_FILENO, text);
  if (error == 0) return absl::OkStatus();
  if (error == EPIPE) return absl::CancelledError("the reader of stdout has gone");
  return absl::ErrnoToStatus(error, "cannot write to stdout");
}

void Remark(absl::string_view message) {
  WriteAll(STDERR_FILENO, absl::StrCat("nestor: ", Printable(message), "\n"));
}

void ReportError(const absl::Status& error) {
  if (!error.GetPayload(kLocated)) return Remark(error.message());
  WriteAll(STDERR_FILENO, absl::StrCat(Printable(error.message()), "\n"));
}

absl::Status MarkLocated(absl::Status error) {
  error.SetPayload(kLocated, absl::Cord());
  return error;
}

}  // namespace nestor::cli
