// .npy: magic, version, header length, header, elements.
//
//   \x93NUMPY \1 \0 | 0x76 0x00 | {'descr': '<f4', 'fortran_order': False,
//   'shape': (2, 3), }   ...\n | 24 bytes
//
// The header is a Python dictionary. numpy evaluates it; here a cursor walks the
// small part of that language which the format allows, so that what is refused
// is refused with the place. The keys come in any order.
//
// Reading goes through a Source, which is a string or a file descriptor and may
// know how many bytes are left. Where it does, they must be exactly those of the
// shape, which is checked before memory is taken; where it does not (a pipe),
// they are gathered a chunk at a time, so that a header that claims terabytes
// ends as a truncated file. Elements are read straight into the tensor in file
// order, and what differs there is put right after: byte order, bools, and
// Fortran order, which is the reversed shape in C order, copied through the
// transposed view.
//
// Entry points: ReadNpy and WriteNpy.
#include "tensor/npy.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "uops/invariant.h"

namespace nestor {
namespace {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "elements are copied as they lie");

constexpr absl::string_view kMagic("\x93NUMPY", 6);
constexpr int64_t kChunk = int64_t{1} << 20;
constexpr int kMaxRank = 64;  // numpy's own limit
constexpr int64_t kMaxHeader = int64_t{1} << 20;

template <class... Pieces>
absl::Status Malformed(const Pieces&... pieces) {
  return absl::InvalidArgumentError(absl::StrCat(pieces...));
}

absl::Status Named(absl::string_view name, const absl::Status& status) {
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat(name, ": ", status.message()));
}

// The start of a piece of the file, fit to be printed in a message.
std::string Excerpt(absl::string_view text) {
  std::string printable(text.substr(0, 24));
  for (char& c : printable) c = absl::ascii_isprint(c) ? c : '?';
  return printable;
}

// ---- Element types ----

// The code of numpy without its byte order: a letter for the kind, and the bytes. bf16, which
// numpy has not, lies in files as uint16; its other code is that of two bytes of no type.
constexpr absl::string_view kTwoBytes = "V2";

std::string CodeOf(DType type) {
  const char* const kind = type == DType::kBool                        ? "b"
                           : type == DType::kBF16 || IsUnsigned(type) ? "u"
                           : IsSigned(type)                           ? "i"
                                                                      : "f";
  return absl::StrCat(kind, ByteSize(type));
}

bool MayStore(absl::string_view code, DType type) {
  return code == CodeOf(type) || (type == DType::kBF16 && code == kTwoBytes);
}

// How the elements of a file are stored.
struct Element {
  DType type;
  bool swapped;  // big endian
};

std::string KnownCodes() {
  return absl::StrJoin(AllTypes(), " ", [](std::string* out, DType type) {
    absl::StrAppend(out, type == DType::kBF16 ? std::string(kTwoBytes) : CodeOf(type));
  });
}

// The type of the elements where they are of the type that they have in numpy.
absl::StatusOr<DType> OwnType(absl::string_view code, absl::string_view descr, absl::optional<DType> expected) {
  for (DType type : AllTypes()) {
    if (type == DType::kBF16 || code != CodeOf(type)) continue;
    if (!expected) return type;
    return Malformed("holds ", Name(type), " where ", Name(*expected), " is expected");
  }
  if (code != kTwoBytes) {
    return absl::UnimplementedError(absl::StrCat("elements of type '", Excerpt(descr), "' are not supported, only ",
                                                 KnownCodes()));
  }
  return Malformed("elements of type '", descr, "' are read only where bf16 is expected",
                   expected ? absl::StrCat(", here ", Name(*expected), " is") : "");
}

absl::StatusOr<Element> ElementOf(absl::string_view descr, absl::optional<DType> expected) {
  absl::string_view code = descr;
  const char order = descr.empty() ? '\0' : descr[0];
  if (absl::StrContains("<>=|", order)) code.remove_prefix(1);
  if (!expected || !MayStore(code, *expected)) {
    NESTOR_ASSIGN_OR_RETURN(expected, OwnType(code, descr, expected));
  }
  return Element{*expected, order == '>' && ByteSize(*expected) > 1};
}

std::string DescrOf(DType type) { return absl::StrCat(ByteSize(type) == 1 ? "|" : "<", CodeOf(type)); }

// ---- Header ----

struct Header {
  std::string descr;
  bool fortran_order = false;
  Dims shape;
};

// header = "{" { string ":" value [ "," ] } "}", a value being a string, True or
// False, or a tuple of integers, as its key demands.
class HeaderParser {
 public:
  explicit HeaderParser(absl::string_view text) : text_(text) {}

  absl::StatusOr<Header> Parse() {
    if (!Take('{')) return Expected("'{'");
    while (!Take('}')) {
      NESTOR_RETURN_IF_ERROR(Field());
      if (!Take(',') && Peek() != '}') return Expected("',' or '}'");
    }
    if (Peek() != '\0' || at_ != text_.size()) return Expected("the end");
    if (seen_ != (kDescr | kFortranOrder | kShape)) {
      return Malformed("the header lacks one of 'descr', 'fortran_order', 'shape'");
    }
    return std::move(header_);
  }

 private:
  enum Key { kDescr = 1, kFortranOrder = 2, kShape = 4 };

  // The next character after white space; '\0' at the end.
  char Peek() {
    while (at_ < text_.size() && absl::ascii_isspace(text_[at_])) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  bool Take(char c) {
    if (Peek() != c || at_ == text_.size()) return false;
    ++at_;
    return true;
  }

  bool TakeWord(absl::string_view word) {
    Peek();
    if (!absl::StartsWith(text_.substr(at_), word)) return false;
    at_ += word.size();
    return true;
  }

  absl::Status Expected(absl::string_view what) {
    Peek();
    const std::string found = at_ == text_.size() ? "its end" : Excerpt(text_.substr(at_));
    return Malformed("the header has ", found, " at byte ", at_, " where ", what, " is expected");
  }

  absl::Status Field() {
    std::string key;
    if (!String(&key)) return Expected("a key");
    if (!Take(':')) return Expected("':'");
    if (key == "descr") return Descr();
    if (key == "fortran_order") return FortranOrder();
    if (key == "shape") return Shape();
    return Malformed("the header has the unknown key '", Excerpt(key), "'");
  }

  absl::Status First(Key key, absl::string_view name) {
    if (seen_ & key) return Malformed("the header gives '", name, "' twice");
    seen_ |= key;
    return absl::OkStatus();
  }

  absl::Status Descr() {
    if (Peek() == '[') return absl::UnimplementedError("structured elements are not supported");
    if (!String(&header_.descr)) return Expected("a type in quotes");
    return First(kDescr, "descr");
  }

  absl::Status FortranOrder() {
    header_.fortran_order = TakeWord("True");
    if (!header_.fortran_order && !TakeWord("False")) return Expected("True or False");
    return First(kFortranOrder, "fortran_order");
  }

  // A tuple of one has a comma: "(3,)"; "(3)" is a number.
  absl::Status Shape() {
    if (!Take('(')) return Expected("a shape in parentheses");
    bool comma = true;
    while (!Take(')')) {
      if (!comma) return Expected("',' or ')'");
      int64_t extent;
      if (!Integer(&extent)) return Expected("an extent");
      if (header_.shape.size() == kMaxRank) return Malformed("more than ", kMaxRank, " axes");
      header_.shape.push_back(extent);
      comma = Take(',');
    }
    if (header_.shape.size() == 1 && !comma) return Malformed("the shape is a number, not a tuple");
    return First(kShape, "shape");
  }

  // In either quote, without escapes, which nothing in this format needs.
  bool String(std::string* value) {
    const char quote = Peek();
    if (quote != '\'' && quote != '"') return false;
    const size_t end = text_.find(quote, at_ + 1);
    if (end == absl::string_view::npos) return false;
    *value = std::string(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    return true;
  }

  // Decimal digits that fit, and the L that Python 2 put behind a long.
  bool Integer(int64_t* value) {
    Peek();
    size_t end = at_;
    while (end < text_.size() && absl::ascii_isdigit(text_[end])) ++end;
    if (!absl::SimpleAtoi(text_.substr(at_, end - at_), value)) return false;
    at_ = end;
    TakeWord("L");
    return true;
  }

  absl::string_view text_;
  size_t at_ = 0;
  int seen_ = 0;
  Header header_;
};

std::string ShapeTuple(absl::Span<const int64_t> shape) {
  return absl::StrCat("(", absl::StrJoin(shape, ", "), shape.size() == 1 ? ",)" : ")");
}

// Everything before the elements, which start at a multiple of 64 bytes. With
// kMaxRank axes the header is far below the 64 KiB of version 1.0.
std::string HeaderBytes(const TensorView& view) {
  std::string header = absl::StrCat("{'descr': '", DescrOf(view.type),
                                    "', 'fortran_order': False, 'shape': ", ShapeTuple(view.shape),
                                    ", }");
  const size_t before = kMagic.size() + 4;
  header.append(63 - (before + header.size()) % 64, ' ');
  header += '\n';
  std::string bytes(kMagic);
  bytes += '\1';
  bytes += '\0';
  bytes += static_cast<char>(header.size() & 0xff);
  bytes += static_cast<char>(header.size() >> 8);
  return bytes + header;
}

// ---- Sources of bytes ----

class Source {
 public:
  virtual ~Source() = default;
  // How many bytes are still to come; nullopt where nobody knows.
  virtual absl::optional<int64_t> Left() const = 0;
  // Reads up to n bytes and returns how many; fewer only at the end.
  virtual absl::StatusOr<int64_t> Read(char* to, int64_t n) = 0;
};

class StringSource : public Source {
 public:
  explicit StringSource(absl::string_view bytes) : bytes_(bytes) {}
  absl::optional<int64_t> Left() const override { return bytes_.size(); }
  absl::StatusOr<int64_t> Read(char* to, int64_t n) override {
    n = std::min<int64_t>(n, bytes_.size());
    std::copy_n(bytes_.data(), n, to);
    bytes_.remove_prefix(n);
    return n;
  }

 private:
  absl::string_view bytes_;
};

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
  bool Close() {
    if (fd_ < 0) return true;
    return ::close(std::exchange(fd_, -1)) == 0;
  }

 private:
  int fd_;
};

class FileSource : public Source {
 public:
  // `left`: the bytes from the current position on, if known.
  FileSource(int fd, absl::optional<int64_t> left) : fd_(fd), left_(left) {}
  absl::optional<int64_t> Left() const override { return left_; }
  absl::StatusOr<int64_t> Read(char* to, int64_t n) override {
    int64_t done = 0;
    while (done < n) {
      const ssize_t got = ::read(fd_, to + done, std::min(n - done, int64_t{1} << 30));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return absl::ErrnoToStatus(errno, "cannot read");
      if (got == 0) break;
      done += got;
    }
    if (left_) *left_ -= done;
    return done;
  }

 private:
  int fd_;
  absl::optional<int64_t> left_;
};

absl::Status Truncated(absl::string_view what, int64_t needed, int64_t got) {
  return Malformed("truncated: ", what, " needs ", needed, " bytes, there are ", got);
}

// The next n bytes; memory grows with what is really there.
absl::StatusOr<std::string> Next(Source& source, int64_t n, absl::string_view what) {
  if (source.Left() && n > *source.Left()) return Truncated(what, n, *source.Left());
  std::string bytes;
  while (static_cast<int64_t>(bytes.size()) < n) {
    const int64_t before = bytes.size();
    const int64_t wanted = std::min(n - before, kChunk);
    bytes.resize(before + wanted);
    NESTOR_ASSIGN_OR_RETURN(const int64_t got, source.Read(&bytes[before], wanted));
    if (got < wanted) return Truncated(what, n, before + got);
  }
  return bytes;
}

// ---- Reading ----

// Little endian.
int64_t Unsigned(absl::string_view bytes) {
  int64_t value = 0;
  for (size_t i = bytes.size(); i-- > 0;) value = value << 8 | static_cast<uint8_t>(bytes[i]);
  return value;
}

absl::StatusOr<Header> ReadHeader(Source& source) {
  std::string start(kMagic.size() + 2, '\0');
  NESTOR_ASSIGN_OR_RETURN(const int64_t got, source.Read(start.data(), start.size()));
  start.resize(got);
  if (!absl::StartsWith(start, kMagic.substr(0, start.size()))) {
    return Malformed("not a .npy file (no \\x93NUMPY at its start)");
  }
  if (start.size() < kMagic.size() + 2) return Truncated("the magic and version", kMagic.size() + 2, got);
  const int major = static_cast<uint8_t>(start[kMagic.size()]);
  const int minor = static_cast<uint8_t>(start[kMagic.size() + 1]);
  if (major < 1 || major > 3 || minor != 0) {
    return absl::UnimplementedError(
        absl::StrCat("version ", major, ".", minor, " of the format is not supported"));
  }
  NESTOR_ASSIGN_OR_RETURN(const std::string digits,
                          Next(source, major == 1 ? 2 : 4, "the header's length"));
  const int64_t length = Unsigned(digits);
  if (length > kMaxHeader) return Malformed("a header of ", length, " bytes is no header");
  NESTOR_ASSIGN_OR_RETURN(const std::string text, Next(source, length, "the header"));
  return HeaderParser(text).Parse();
}

// Fills `tensor` from a source that knows that it holds as many bytes.
absl::Status ReadInto(Source& source, Tensor& tensor) {
  const int64_t bytes = tensor.num_bytes();
  NESTOR_ASSIGN_OR_RETURN(const int64_t got, source.Read(static_cast<char*>(tensor.data()), bytes));
  if (got < bytes) return Truncated("the data", bytes, got);  // cut short as we read
  return absl::OkStatus();
}

// Reads all that is left as a compact tensor, bytes as they are in the file.
absl::StatusOr<Tensor> ReadElements(Source& source, DType type, absl::Span<const int64_t> shape) {
  NESTOR_ASSIGN_OR_RETURN(const int64_t bytes, NumBytes(type, shape));
  const std::string what = absl::StrCat("the data of ", Name(type), ShapeText(shape));
  const absl::Status too_long = Malformed(what, " is ", bytes, " bytes, but more follow");
  if (source.Left()) {
    if (*source.Left() < bytes) return Truncated(what, bytes, *source.Left());
    if (*source.Left() > bytes) return too_long;
    NESTOR_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Create(type, shape));
    NESTOR_RETURN_IF_ERROR(ReadInto(source, tensor));
    return tensor;
  }
  NESTOR_ASSIGN_OR_RETURN(const std::string data, Next(source, bytes, what));
  if (Next(source, 1, "").ok()) return too_long;
  return Tensor::FromView(ViewOf(type, data.data(), shape));
}

void SwapBytes(Tensor& tensor) {
  const int size = ByteSize(tensor.type());
  char* element = static_cast<char*>(tensor.data());
  for (int64_t i = 0; i < tensor.num_elements(); ++i, element += size) {
    std::reverse(element, element + size);
  }
}

// Any byte but 0 is true; engines may count on 1.
void NormaliseBools(Tensor& tensor) {
  uint8_t* element = static_cast<uint8_t*>(tensor.data());
  for (int64_t i = 0; i < tensor.num_elements(); ++i) element[i] = element[i] != 0;
}

absl::StatusOr<Tensor> Transposed(const Tensor& tensor) {
  TensorView view = tensor.view();
  std::reverse(view.shape.begin(), view.shape.end());
  std::reverse(view.strides.begin(), view.strides.end());
  return Tensor::FromView(view);
}

absl::StatusOr<Tensor> Read(Source& source, absl::optional<DType> expected) {
  NESTOR_ASSIGN_OR_RETURN(Header header, ReadHeader(source));
  NESTOR_ASSIGN_OR_RETURN(const Element element, ElementOf(header.descr, expected));
  if (header.fortran_order) std::reverse(header.shape.begin(), header.shape.end());
  NESTOR_ASSIGN_OR_RETURN(Tensor tensor, ReadElements(source, element.type, header.shape));
  if (element.swapped) SwapBytes(tensor);
  if (element.type == DType::kBool) NormaliseBools(tensor);
  if (header.fortran_order) return Transposed(tensor);
  return tensor;
}

absl::StatusOr<Tensor> ReadFile(const std::string& path, absl::optional<DType> expected) {
  const File file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat info;
  if (!file.ok() || ::fstat(file.fd(), &info) != 0) {
    return absl::ErrnoToStatus(errno, "cannot open");
  }
  absl::optional<int64_t> left;
  if (S_ISREG(info.st_mode)) {
    left = std::max<int64_t>(0, info.st_size - ::lseek(file.fd(), 0, SEEK_CUR));
  } else if (!S_ISFIFO(info.st_mode) && !S_ISSOCK(info.st_mode)) {
    return Malformed("neither a file nor a pipe");
  }
  FileSource source(file.fd(), left);
  return Read(source, expected);
}

// ---- Writing ----

// The bytes of a file in two pieces, so that the elements of a compact view are
// written from where they lie.
struct Contents {
  std::string header;
  Tensor copy;  // of a view that is not compact
  absl::string_view elements;
};

absl::Status Fill(const TensorView& view, Contents* contents) {
  NESTOR_RETURN_IF_ERROR(CheckView(view));
  if (view.rank() > kMaxRank) return Malformed("more than ", kMaxRank, " axes");
  contents->header = HeaderBytes(view);
  const void* data = view.data;
  if (!IsContiguous(view)) {
    NESTOR_ASSIGN_OR_RETURN(contents->copy, Tensor::FromView(view));
    data = contents->copy.data();
  }
  contents->elements =
      absl::string_view(static_cast<const char*>(data), *NumBytes(view.type, view.shape));
  return absl::OkStatus();
}

bool WriteAll(int fd, absl::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t done = ::write(fd, bytes.data(), std::min<size_t>(bytes.size(), 1 << 30));
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) return false;
    bytes.remove_prefix(done);
  }
  return true;
}

absl::Status WriteContents(File& file, const Contents& contents) {
  if (WriteAll(file.fd(), contents.header) && WriteAll(file.fd(), contents.elements) &&
      file.Close()) {
    return absl::OkStatus();
  }
  return absl::ErrnoToStatus(errno, "cannot write");
}

absl::Status WriteInPlace(const std::string& path, const Contents& contents) {
  File file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!file.ok()) return absl::ErrnoToStatus(errno, "cannot open for writing");
  return WriteContents(file, contents);
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
                     const Contents& contents) {
  std::string temporary;
  File file(OpenTemporaryBeside(path, mode.value_or(0666), &temporary));
  if (!file.ok()) return absl::ErrnoToStatus(errno, "cannot create a file beside it");
  // Gives back what the umask took. Where that fails, the file is readable by
  // fewer than before, never by more.
  if (mode) static_cast<void>(::fchmod(file.fd(), *mode));
  absl::Status status = WriteContents(file, contents);
  if (status.ok() && ::rename(temporary.c_str(), path.c_str()) != 0) {
    status = absl::ErrnoToStatus(errno, "cannot replace it");
  }
  if (!status.ok()) ::unlink(temporary.c_str());
  return status;
}

absl::Status WriteFile(const std::string& path, const TensorView& view) {
  Contents contents;
  NESTOR_RETURN_IF_ERROR(Fill(view, &contents));
  struct stat info;
  if (::stat(path.c_str(), &info) != 0) return Replace(path, absl::nullopt, contents);
  if (!S_ISREG(info.st_mode)) return WriteInPlace(path, contents);
  // Through symbolic links: the file is replaced, not the link to it.
  const std::unique_ptr<char, decltype(&std::free)> real(::realpath(path.c_str(), nullptr),
                                                         &std::free);
  return Replace(real ? real.get() : path, info.st_mode & 0777, contents);
}

}  // namespace

absl::StatusOr<Tensor> ReadNpy(const std::string& path, absl::optional<DType> expected) {
  absl::StatusOr<Tensor> tensor = ReadFile(path, expected);
  if (!tensor.ok()) return Named(path, tensor.status());
  return tensor;
}

absl::StatusOr<Tensor> ReadNpyFromString(absl::string_view bytes, absl::optional<DType> expected) {
  StringSource source(bytes);
  absl::StatusOr<Tensor> tensor = Read(source, expected);
  if (!tensor.ok()) return Named(".npy data", tensor.status());
  return tensor;
}

absl::Status WriteNpy(const std::string& path, const TensorView& view) {
  return Named(path, WriteFile(path, view));
}

absl::StatusOr<std::string> WriteNpyToString(const TensorView& view) {
  Contents contents;
  if (absl::Status status = Fill(view, &contents); !status.ok()) return Named(".npy data", status);
  return absl::StrCat(contents.header, contents.elements);
}

}  // namespace nestor
