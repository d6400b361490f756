// .npy: magic, version, header length, header, elements.
//
//   \x93NUMPY \1 \0 | 0x76 0x00 | {'descr': '<f4', 'fortran_order': False,
//   'shape': (2, 3), }   ...\n | 24 bytes
//
// npy_header.cc reads and writes the header.
//
// Reading goes through a Source, which is a string or a file descriptor and may know how many bytes
// are left. If it does, they must be exactly those of the shape, which is checked before memory is
// taken; if it does not (a pipe), they are gathered a chunk at a time, so that a header that claims
// terabytes ends as a truncated file. Elements are read straight into the tensor in file order, and
// differences are corrected afterwards: byte order, bools, and Fortran order, which is the reversed
// shape in C order, copied through the transposed view.
//
// Entry points: ReadNpy and WriteNpy.
#include "tensor/npy.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tensor/files.h"
#include "tensor/npy_header.h"
#include "uops/invariant.h"

namespace nestor {
namespace {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "elements are copied as they lie");

constexpr int64_t kChunk = int64_t{1} << 20;
constexpr int64_t kMaxHeader = int64_t{1} << 20;

absl::Status Named(absl::string_view name, const absl::Status& status) {
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat(name, ": ", status.message()));
}

// ---- Sources of bytes ----

class Source {
 public:
  virtual ~Source() = default;
  // How many bytes are still to come; nullopt if it is unknown.
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

// The next n bytes; memory grows with the bytes that are really there.
// A truncated pipe costs at most a chunk more than the bytes that came.
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

// Each length is checked before as much is read.
absl::StatusOr<NpyHeader> ReadHeader(Source& source) {
  std::string start(kNpyMagic.size() + 2, '\0');
  NESTOR_ASSIGN_OR_RETURN(const int64_t got, source.Read(start.data(), start.size()));
  start.resize(got);
  if (!absl::StartsWith(start, kNpyMagic.substr(0, start.size()))) {
    return Malformed("not a .npy file (no \\x93NUMPY at its start)");
  }
  if (start.size() < kNpyMagic.size() + 2)
    return Truncated("the magic and version", kNpyMagic.size() + 2, got);
  const int major = static_cast<uint8_t>(start[kNpyMagic.size()]);
  const int minor = static_cast<uint8_t>(start[kNpyMagic.size() + 1]);
  if (major < 1 || major > 3 || minor != 0) {
    return absl::UnimplementedError(
        absl::StrCat("version ", major, ".", minor, " of the format is not supported"));
  }
  NESTOR_ASSIGN_OR_RETURN(const std::string digits,
                          Next(source, major == 1 ? 2 : 4, "the header's length"));
  const int64_t length = Unsigned(digits);
  if (length > kMaxHeader) return Malformed("a header of ", length, " bytes is no header");
  NESTOR_ASSIGN_OR_RETURN(const std::string text, Next(source, length, "the header"));
  return ParseNpyHeader(text);
}

// Fills `tensor` from a source that knows that it holds as many bytes.
absl::Status ReadInto(Source& source, Tensor& tensor) {
  const int64_t bytes = tensor.num_bytes();
  NESTOR_ASSIGN_OR_RETURN(const int64_t got, source.Read(static_cast<char*>(tensor.data()), bytes));
  if (got < bytes) return Truncated("the data", bytes, got);  // cut short as we read
  return absl::OkStatus();
}

// Reads the rest as a compact tensor, with the bytes as they are in the file.
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

// Fortran order of [2, 3] is C order of [3, 2], read through a view with its axes swapped.
absl::StatusOr<Tensor> Transposed(const Tensor& tensor) {
  TensorView view = tensor.view();
  std::reverse(view.shape.begin(), view.shape.end());
  std::reverse(view.strides.begin(), view.strides.end());
  return Tensor::FromView(view);
}

absl::StatusOr<Tensor> Read(Source& source, absl::optional<DType> expected) {
  NESTOR_ASSIGN_OR_RETURN(NpyHeader header, ReadHeader(source));
  NESTOR_ASSIGN_OR_RETURN(const NpyElement element, NpyElementOf(header.descr, expected));
  if (header.fortran_order) std::reverse(header.shape.begin(), header.shape.end());
  NESTOR_ASSIGN_OR_RETURN(Tensor tensor, ReadElements(source, element.type, header.shape));
  if (element.swapped) SwapBytes(tensor);
  if (element.type == DType::kBool) NormaliseBools(tensor);
  if (header.fortran_order) return Transposed(tensor);
  return tensor;
}

// The number of bytes that are left is known for a regular file, and not for a pipe.
absl::StatusOr<Tensor> ReadFile(const std::string& path, absl::optional<DType> expected) {
  const File file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat info;
  if (!file.ok() || ::fstat(file.fd(), &info) != 0) {
    return absl::ErrnoToStatus(errno, "cannot open");
  }
  absl::optional<int64_t> left;
  if (S_ISREG(info.st_mode)) {
    // /dev/stdin may be a file that somebody has read a part of.
    left = std::max<int64_t>(0, info.st_size - ::lseek(file.fd(), 0, SEEK_CUR));
  } else if (!S_ISFIFO(info.st_mode) && !S_ISSOCK(info.st_mode)) {
    return Malformed("neither a file nor a pipe");
  }
  FileSource source(file.fd(), left);
  return Read(source, expected);
}

// ---- Writing ----

// The bytes of a file in two pieces, so that the elements of a compact view are written directly
// from its memory.
struct Contents {
  std::string header;
  Tensor copy;  // for a view that is not compact
  absl::string_view elements;
};

// The elements are written from where they are if they are contiguous, else from a copy.
absl::Status Fill(const TensorView& view, Contents* contents) {
  NESTOR_RETURN_IF_ERROR(CheckView(view));
  if (view.rank() > kMaxNpyRank) return Malformed("more than ", kMaxNpyRank, " axes");
  contents->header = NpyHeaderBytes(view);
  const void* data = view.data;
  if (!IsContiguous(view)) {
    NESTOR_ASSIGN_OR_RETURN(contents->copy, Tensor::FromView(view));
    data = contents->copy.data();
  }
  contents->elements =
      absl::string_view(static_cast<const char*>(data), *NumBytes(view.type, view.shape));
  return absl::OkStatus();
}

absl::Status WriteFile(const std::string& path, const TensorView& view) {
  Contents contents;
  NESTOR_RETURN_IF_ERROR(Fill(view, &contents));
  return WriteWholeFile(path, {contents.header, contents.elements});
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
