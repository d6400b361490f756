// Files as a whole, on plain system calls: streams would hide which write failed and why. errno has
// the error of a descriptor, so nothing may change it before the Status is made.
#include "tensor/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"

namespace nestor {
namespace {

// Texts are pages long; a longer file is of some other kind, or endless.
constexpr size_t kMostTextBytes = size_t{16} << 20;

bool WriteAll(int fd, absl::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t done = ::write(fd, bytes.data(), std::min<size_t>(bytes.size(), 1 << 30));
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) return false;
    bytes.remove_prefix(done);
  }
  return true;
}

absl::Status WriteAndClose(File& file, absl::Span<const absl::string_view> pieces) {
  const auto written = [&](absl::string_view piece) { return WriteAll(file.fd(), piece); };
  if (std::all_of(pieces.begin(), pieces.end(), written) && file.Close()) return absl::OkStatus();
  return absl::ErrnoToStatus(errno, "cannot write");
}

absl::Status WriteInPlace(const std::string& path, absl::Span<const absl::string_view> pieces) {
  File file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!file.ok()) return absl::ErrnoToStatus(errno, "cannot open for writing");
  return WriteAndClose(file, pieces);
}

// Opens a new file in the directory of `path` and sets `temporary` to its name;
// not mkstemp, whose permissions ignore the umask. -1 and errno on failure.
int OpenTemporaryBeside(const std::string& path, mode_t mode, std::string* temporary) {
  static std::atomic<int> counter{0};
  const std::string directory = path.substr(0, path.rfind('/') + 1);  // "" without a '/'
  int fd;
  do {
    *temporary = absl::StrCat(directory, ".nestor-", ::getpid(), "-", counter++, ".tmp");
    fd = ::open(temporary->c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
  } while (fd < 0 && errno == EEXIST);
  return fd;
}

// `mode`: the permissions of the file that is replaced, if there is one.
absl::Status Replace(const std::string& path, absl::optional<mode_t> mode,
                     absl::Span<const absl::string_view> pieces) {
  std::string temporary;
  File file(OpenTemporaryBeside(path, mode.value_or(0666), &temporary));
  if (!file.ok()) return absl::ErrnoToStatus(errno, "cannot create a file beside it");
  // Restores the permissions that the umask removed. If that fails, the file is readable by fewer
  // users than before, never by more.
  if (mode) static_cast<void>(::fchmod(file.fd(), *mode));
  absl::Status status = WriteAndClose(file, pieces);
  if (status.ok() && ::rename(temporary.c_str(), path.c_str()) != 0) {
    status = absl::ErrnoToStatus(errno, "cannot replace it");
  }
  if (!status.ok()) ::unlink(temporary.c_str());
  return status;
}

}  // namespace

bool File::Close() {
  if (fd_ < 0) return true;
  return ::close(std::exchange(fd_, -1)) == 0;
}

// Stops at the limit, so that a device that never ends is an error, too.
absl::StatusOr<std::string> ReadTextToEnd(int fd, absl::string_view name, absl::string_view kind) {
  std::string text;
  char buffer[1 << 16];
  while (true) {
    const ssize_t got = ::read(fd, buffer, sizeof(buffer));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot read ", name));
    if (got == 0) return text;
    text.append(buffer, got);
    if (text.size() > kMostTextBytes) {
      return absl::InvalidArgumentError(
          absl::StrCat(name, " is longer than 16 MiB: it is no ", kind));
    }
  }
}

absl::StatusOr<std::string> ReadTextFile(const std::string& path, absl::string_view kind) {
  const File file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.ok()) return absl::ErrnoToStatus(errno, absl::StrCat("cannot open ", path));
  return ReadTextToEnd(file.fd(), path, kind);
}

absl::Status WriteWholeFile(const std::string& path, absl::Span<const absl::string_view> pieces) {
  struct stat info;
  if (::stat(path.c_str(), &info) != 0) return Replace(path, absl::nullopt, pieces);
  if (!S_ISREG(info.st_mode)) return WriteInPlace(path, pieces);
  // Through symbolic links: the file is replaced, not the link to it.
  const std::unique_ptr<char, decltype(&std::free)> real(::realpath(path.c_str(), nullptr),
                                                         &std::free);
  return Replace(real ? real.get() : path, info.st_mode & 0777, pieces);
}

}  // namespace nestor
