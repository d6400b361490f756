// At no time is a page both writable and executable, so that a stray write can never turn into an
// instruction. The rest of the last page is filled with breakpoints: a jump past the end stops
// there. There are two ways:
//  - The code is written to a file that lies in memory alone, whose pages are mapped executable:
//    they are never writable, and the system has to change no page that it has mapped.
//  - Where the system forbids that, code is copied to writable pages, which then become executable.
//    That takes several times as long: pages are mapped one by one as they are written, and each
//    processor on which the process runs has to forget them when they change.
//
// Each kernel has its own pages. Sharing one page between kernels would need it to be
// writable again while another thread runs in it.
#include "uops/cpp20.h"

#include "jit/runtime/code_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace nestor::jit {
namespace {

constexpr uint8_t kBreakpoint = 0xcc;  // int3

size_t RoundUpToPages(size_t size) {
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return (size + page - 1) / page * page;
}

// A hardened system may forbid executable memory: PermissionDenied. Else there is no memory.
absl::Status Refused(absl::string_view what, size_t bytes, int error) {
  const std::string text =
      absl::StrCat(what, " of ", bytes, " bytes for machine code: ", std::strerror(error));
  if (error == EACCES || error == EPERM) return absl::PermissionDeniedError(text);
  return absl::ResourceExhaustedError(text);
}

// perf reads such a map to name functions that no file on disk holds.
bool PerfMapWanted() {
  const char* value = std::getenv("NESTOR_PERF_MAP");
  return value != nullptr && absl::string_view(value) != "0";
}

// The file holds the code and, up to the end of the page, breakpoints.
bool WriteCode(int file, absl::Span<const uint8_t> code) {
  const size_t rest = RoundUpToPages(code.size()) - code.size();
  std::vector<uint8_t> breakpoints(rest, kBreakpoint);
  const std::array<iovec, 2> pieces = {iovec{const_cast<uint8_t*>(code.data()), code.size()},
                                       iovec{breakpoints.data(), rest}};
  return writev(file, pieces.data(), pieces.size()) == static_cast<ssize_t>(code.size() + rest);
}

// A process that writes a larger file than its limit allows is killed.
bool MayWrite(size_t bytes) {
  rlimit limit;
  return getrlimit(RLIMIT_FSIZE, &limit) == 0 && bytes <= limit.rlim_cur;
}

// Null where the system does not allow such files, or not as code.
void* MappedFile(absl::Span<const uint8_t> code) {
  if (!MayWrite(RoundUpToPages(code.size()))) return nullptr;
  const int file = memfd_create("nestor", MFD_CLOEXEC);
  if (file < 0) return nullptr;
  void* pages = MAP_FAILED;
  if (WriteCode(file, code)) {
    pages = mmap(nullptr, RoundUpToPages(code.size()), PROT_READ | PROT_EXEC,
                 MAP_PRIVATE | MAP_POPULATE, file, 0);
  }
  close(file);
  return pages == MAP_FAILED ? nullptr : pages;
}

}  // namespace

CodeMemory::CodeMemory(CodeMemory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

CodeMemory& CodeMemory::operator=(CodeMemory&& other) noexcept {
  CodeMemory moved(std::move(other));
  std::swap(data_, moved.data_);
  std::swap(size_, moved.size_);
  return *this;
}

CodeMemory::~CodeMemory() {
  if (data_ != nullptr) munmap(data_, RoundUpToPages(size_));
}

absl::StatusOr<CodeMemory> CodeMemory::Seal(absl::Span<const uint8_t> code) {
  CodeMemory memory;
  if (code.empty()) return memory;
  // perf reads its map for pages that belong to no file.
  void* pages = PerfMapWanted() ? nullptr : MappedFile(code);
  if (pages == nullptr) return Copied(code);
  memory.data_ = static_cast<uint8_t*>(pages);
  memory.size_ = code.size();
  return memory;
}

// Pages are writable first, then executable, never both.
absl::StatusOr<CodeMemory> CodeMemory::Copied(absl::Span<const uint8_t> code) {
  CodeMemory memory;
  const size_t bytes = RoundUpToPages(code.size());
  void* const pages =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) return Refused("allocation", bytes, errno);
  memory.data_ = static_cast<uint8_t*>(pages);
  memory.size_ = code.size();
  std::memcpy(memory.data_, code.data(), code.size());
  std::memset(memory.data_ + code.size(), kBreakpoint, bytes - code.size());
  if (mprotect(pages, bytes, PROT_READ | PROT_EXEC) != 0) return Refused("sealing", bytes, errno);
  return memory;
}

// The format of perf's map files: BEGIN SIZE NAME in hexadecimal, a line for each function.
void ReportToPerf(const void* begin, size_t size, absl::string_view name) {
  if (!PerfMapWanted()) return;
  const std::string path = absl::StrCat("/tmp/perf-", getpid(), ".map");
  // A line is appended by one write, so that those of two threads do not mix. Others may write to
  // /tmp: a link that they have put there is not followed.
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (file < 0) return;
  const std::string line =
      absl::StrCat(absl::Hex(reinterpret_cast<uintptr_t>(begin)), " ", absl::Hex(size), " ",
                   absl::StrReplaceAll(name, {{"\n", " "}}), "\n");
  // A line that did not arrive costs the profile a name; it is no reason to fail.
  [[maybe_unused]] const ssize_t written = write(file, line.data(), line.size());
  close(file);
}

}  // namespace nestor::jit
