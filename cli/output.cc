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
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
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

// A long line without its middle: the ends tell most about it.
std::string ClipLine(absl::string_view line) {
  constexpr size_t kLongestLine = 2000, kKept = 900;
  if (line.size() <= kLongestLine) return std::string(line);
  const auto continues = [](char c) { return (c & 0xc0) == 0x80; };  // inside a UTF-8 character
  absl::string_view head = line.substr(0, kKept), tail = line.substr(line.size() - kKept);
  while (!head.empty() && continues(line[head.size()])) head.remove_suffix(1);
  while (continues(tail.front())) tail.remove_prefix(1);
  return absl::StrCat(head, " ... ", tail);
}

std::string PrintableLine(absl::string_view line) {
  std::string shown;
  for (const char c : ClipLine(line)) {
    if ((c >= 0 && c < ' ') || c == '\x7f') absl::StrAppendFormat(&shown, "\\x%02x", c);
    else shown.push_back(c);
  }
  return shown;
}

// Whether the line continues a message: it shows a part of a program, or says where to read more.
// Any other newline comes from a word of the user.
bool GoesOn(absl::string_view line) {
  return absl::StartsWith(line, "    ") || absl::StartsWith(line, "(`nestor ");
}

enum class Lines { kOwn, kAny };

std::string Printable(absl::string_view text, Lines lines) {
  std::string shown;
  bool is_first = true;
  for (absl::string_view line :
       absl::StrSplit(ClipWords(ValidUtf8(text), kLongestFileName), '\n')) {
    const bool keeps_newline = lines == Lines::kAny || GoesOn(line);
    absl::StrAppend(&shown, is_first ? "" : keeps_newline ? "\n" : "\\x0a", PrintableLine(line));
    is_first = false;
  }
  return shown;
}

// A message of ours may be a program, and that of a kernel has lines of its own.
Lines LinesOf(const absl::Status& error) {
  return absl::IsInternal(error) || absl::IsUnavailable(error) ? Lines::kAny : Lines::kOwn;
}

}  // namespace

void PrepareStandardStreams() {
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);
  for (int fd = 0; fd <= 2; ++fd) {
    if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF) continue;
    // The lowest free number is `fd`. It is opened for the wrong direction on purpose.
    if (open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY) != fd) _exit(2);
  }
}

absl::Status WriteStdout(absl::string_view text) {
  const int error = WriteAll(STDOUT_FILENO, text);
  if (error == 0) return absl::OkStatus();
  if (error == EPIPE) return absl::CancelledError("the reader of stdout has gone");
  return absl::ErrnoToStatus(error, "cannot write to stdout");
}

void WriteStderr(absl::string_view text) { WriteAll(STDERR_FILENO, text); }

void Remark(absl::string_view message) {
  WriteStderr(absl::StrCat("nestor: ", Printable(message, Lines::kOwn), "\n"));
}

void ReportError(const absl::Status& error) {
  const char* prefix = error.GetPayload(kLocated) ? "" : "nestor: ";
  WriteStderr(absl::StrCat(prefix, Printable(error.message(), LinesOf(error)), "\n"));
}

absl::Status MarkLocated(absl::Status error) {
  error.SetPayload(kLocated, absl::Cord());
  return error;
}

}  // namespace nestor::cli
