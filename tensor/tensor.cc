// Addressing, copying, comparing and printing of strided memory.
//
// Sizes come from files and callers, so every product and sum of them is checked once, in
// NumElements and Footprint; later code (offsets, copies) adds and multiplies plainly, because each
// partial sum lies inside the checked range. Elements move by memcpy of their size: views need not
// be aligned, and a copy must keep a NaN's payload.
//
// Memory comes from calloc, moved up to the next 64-byte boundary, and not from
// aligned_alloc and memset: the system then hands out zero pages that cost
// nothing until they are written.
#include "tensor/tensor.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <limits>
#include <new>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "uops/invariant.h"

namespace nestor {
namespace {

// A cache line, and the widest vector.
constexpr int64_t kAlignment = 64;

// User space of x86-64; asking the allocator for more is never right.
constexpr int64_t kMaxBytes = int64_t{1} << 47;

bool IsEmpty(absl::Span<const int64_t> shape) {
  return std::find(shape.begin(), shape.end(), 0) != shape.end();
}

absl::Status TooLarge(absl::Span<const int64_t> shape) {
  return absl::InvalidArgumentError(
      absl::StrCat("the size of shape ", ShapeText(shape), " overflows 64 bits"));
}

// Copies `count` elements that lie `step` bytes apart to a compact row.
template <int kBytes>
void CopyRow(const char* from, int64_t step, int64_t count, char* to) {
  for (int64_t i = 0; i < count; ++i) std::memcpy(to + i * kBytes, from + i * step, kBytes);
}

// The size is a constant in each loop, so that a copy of an element is one move.
void CopyRow(int bytes, const char* from, int64_t step, int64_t count, char* to) {
  if (step == bytes) {
    std::memcpy(to, from, count * bytes);
    return;
  }
  switch (bytes) {
    case 1: return CopyRow<1>(from, step, count, to);
    case 2: return CopyRow<2>(from, step, count, to);
    case 4: return CopyRow<4>(from, step, count, to);
    default: return CopyRow<8>(from, step, count, to);
  }
}

// REQUIRES: the view has elements, and `to` has room for all of them.
void CopyCompact(const TensorView& view, char* to) {
  const int bytes = ByteSize(view.type);
  const char* from = static_cast<const char*>(view.data);
  if (IsContiguous(view)) {
    std::memcpy(to, from, *NumElements(view.shape) * bytes);
    return;
  }
  // Not contiguous, so there is a last axis: a row is one run along it.
  const int64_t length = view.shape.back();
  const absl::Span<const int64_t> outer = absl::MakeSpan(view.shape).first(view.rank() - 1);
  Dims index(view.rank(), 0);
  do {
    CopyRow(bytes, from + ElementOffset(view, index) * bytes, view.strides.back() * bytes, length,
            to);
    to += length * bytes;
  } while (NextIndex(outer, absl::MakeSpan(index).first(outer.size())));
}

std::string LiteralAndBits(const Scalar& value) {
  const int digits = 2 * ByteSize(value.type);
  const uint64_t bits = value.bits & (~uint64_t{0} >> (64 - 4 * digits));
  return absl::StrFormat("%s (0x%0*x)", LiteralText(value), digits, bits);
}

// How many positions are shown at the two ends of each axis.
struct Edges {
  int64_t head;
  int64_t tail;
};

// The widest edges that show at most `threshold` elements.
// [1000, 1000] with a threshold of 1000: 3 at each end of each axis, 36 elements in all
Edges ChooseEdges(absl::Span<const int64_t> shape, int64_t threshold) {
  const Edges whole = {std::numeric_limits<int64_t>::max() / 2, 0};
  for (const Edges edges : {whole, Edges{3, 3}, Edges{2, 2}, Edges{1, 1}}) {
    int64_t shown = 1;
    for (int64_t extent : shape) {
      // Saturates, so that no product of extents overflows.
      const int64_t along = std::min(extent, edges.head + edges.tail);
      shown = shown > threshold / along ? threshold + 1 : shown * along;
    }
    if (shown <= threshold) return edges;
  }
  return {1, 0};
}

// Writes one view as nested brackets: Measure finds the widest element, Write
// then pads each to that width. Both recurse once per axis.
class Printer {
 public:
  Printer(const TensorView& view, const ToStringOptions& options)
      : view_(view), options_(options), edges_(ChooseEdges(view.shape, options.threshold)) {}

  std::string Print() {
    Measure(0, 0);
    Write(0, 0);
    return std::move(out_);
  }

 private:
  static constexpr int64_t kEllipsis = -1;

  std::string Element(int64_t offset) const {
    const char* data = static_cast<const char*>(view_.data);
    return LiteralText(Load(view_.type, data + offset * ByteSize(view_.type)));
  }

  // The positions of an axis that are shown; kEllipsis stands for a gap.
  std::vector<int64_t> Shown(int axis) const {
    const int64_t extent = view_.shape[axis];
    const bool whole = extent <= edges_.head + edges_.tail;
    const int64_t head = whole ? extent : edges_.head;
    std::vector<int64_t> positions;
    for (int64_t i = 0; i < head; ++i) positions.push_back(i);
    if (whole) return positions;
    positions.push_back(kEllipsis);
    for (int64_t i = extent - edges_.tail; i < extent; ++i) positions.push_back(i);
    return positions;
  }

  void Measure(int axis, int64_t offset) {
    if (axis == view_.rank()) {
      width_ = std::max(width_, Element(offset).size());
      return;
    }
    for (int64_t i : Shown(axis)) {
      if (i != kEllipsis) Measure(axis + 1, offset + i * view_.strides[axis]);
    }
  }

  void Write(int axis, int64_t offset) {
    if (axis == view_.rank()) {
      absl::StrAppendFormat(&out_, "%*s", static_cast<int>(width_), Element(offset));
      return;
    }
    out_ += '[';
    bool first = true;
    for (int64_t i : Shown(axis)) {
      if (!first) Separate(axis);
      first = false;
      if (i == kEllipsis) {
        out_ += "...";
      } else {
        Write(axis + 1, offset + i * view_.strides[axis]);
      }
    }
    out_ += ']';
  }

  // Elements of the last axis fill a line; rows begin a new one, and each axis further out leaves
  // one more line empty.
  void Separate(int axis) {
    out_ += ',';
    const int axes_below = view_.rank() - 1 - axis;
    const size_t column = out_.size() - line_start_;
    if (axes_below == 0 && column + 1 + width_ < static_cast<size_t>(options_.line_width)) {
      out_ += ' ';
      return;
    }
    out_.append(std::max(axes_below, 1), '\n');
    line_start_ = out_.size();
    out_.append(axis + 1, ' ');
  }

  const TensorView& view_;
  const ToStringOptions& options_;
  const Edges edges_;
  size_t width_ = 0;
  size_t line_start_ = 0;
  std::string out_;
};

}  // namespace

// ---- Shapes ----

// Extents of 0 are left out of the product, which is checked even if the tensor is empty: its
// strides are products of the others.
absl::StatusOr<int64_t> NumElements(absl::Span<const int64_t> shape) {
  int64_t product = 1;
  bool empty = false;
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    if (shape[axis] < 0) {
      return absl::InvalidArgumentError(absl::StrCat("axis ", axis, " of shape ", ShapeText(shape),
                                                     " has the negative extent ", shape[axis]));
    }
    if (shape[axis] == 0) {
      empty = true;
    } else if (__builtin_mul_overflow(product, shape[axis], &product)) {
      return TooLarge(shape);
    }
  }
  return empty ? 0 : product;
}

absl::StatusOr<int64_t> NumBytes(DType type, absl::Span<const int64_t> shape) {
  NESTOR_ASSIGN_OR_RETURN(const int64_t elements, NumElements(shape));
  int64_t bytes;
  if (__builtin_mul_overflow(elements, int64_t{ByteSize(type)}, &bytes)) return TooLarge(shape);
  return bytes;
}

Dims CompactStrides(absl::Span<const int64_t> shape) {
  Dims strides(shape.size());
  int64_t stride = 1;
  for (size_t axis = shape.size(); axis-- > 0;) {
    strides[axis] = stride;
    stride *= std::max<int64_t>(shape[axis], 1);
  }
  return strides;
}

std::string ShapeText(absl::Span<const int64_t> shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ", "), "]");
}

bool InBounds(absl::Span<const int64_t> shape, absl::Span<const int64_t> index) {
  if (shape.size() != index.size()) return false;
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    if (index[axis] < 0 || index[axis] >= shape[axis]) return false;
  }
  return true;
}

bool NextIndex(absl::Span<const int64_t> shape, absl::Span<int64_t> index) {
  assert(shape.size() == index.size());
  for (size_t axis = shape.size(); axis-- > 0;) {
    if (++index[axis] < shape[axis]) return true;
    index[axis] = 0;
  }
  return false;
}

// ---- Views ----

TensorView ViewOf(DType type, const void* data, absl::Span<const int64_t> shape) {
  return {type, Dims(shape.begin(), shape.end()), CompactStrides(shape), const_cast<void*>(data)};
}

// Each axis reaches (extent - 1) * stride to one side; the range is the sum of the reaches on
// either.
absl::StatusOr<ByteRange> Footprint(const TensorView& view) {
  if (view.shape.size() != view.strides.size()) {
    return absl::InvalidArgumentError(absl::StrCat("a view of shape ", ShapeText(view.shape),
                                                   " has ", view.strides.size(), " strides"));
  }
  NESTOR_ASSIGN_OR_RETURN(const int64_t bytes, NumBytes(view.type, view.shape));
  if (bytes == 0) return ByteRange{};
  if (view.data == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("a view of shape ", ShapeText(view.shape), " has no memory"));
  }
  const int64_t element = ByteSize(view.type);
  ByteRange range = {0, element};
  for (int axis = 0; axis < view.rank(); ++axis) {
    int64_t reach;
    int64_t& side = view.strides[axis] < 0 ? range.begin : range.end;
    if (__builtin_mul_overflow(view.shape[axis] - 1, view.strides[axis], &reach) ||
        __builtin_mul_overflow(reach, element, &reach) ||
        __builtin_add_overflow(side, reach, &side)) {
      return absl::InvalidArgumentError(absl::StrCat("the offsets of a view of shape ",
                                                     ShapeText(view.shape), " with strides ",
                                                     ShapeText(view.strides), " overflow 64 bits"));
    }
  }
  return range;
}

absl::Status CheckView(const TensorView& view) { return Footprint(view).status(); }

bool IsContiguous(const TensorView& view) {
  if (IsEmpty(view.shape)) return true;
  const Dims compact = CompactStrides(view.shape);
  for (int axis = 0; axis < view.rank(); ++axis) {
    if (view.shape[axis] != 1 && view.strides[axis] != compact[axis]) return false;
  }
  return true;
}

int64_t ElementOffset(const TensorView& view, absl::Span<const int64_t> index) {
  assert(view.shape.size() == index.size());
  int64_t offset = 0;
  for (int axis = 0; axis < view.rank(); ++axis) offset += index[axis] * view.strides[axis];
  return offset;
}

namespace {

template <class T>
Bits LoadAs(const void* element) {
  // A byte other than 0 and 1 must not be read as a C++ bool.
  if constexpr (std::is_same_v<T, bool>) {
    return *static_cast<const uint8_t*>(element) != 0;
  } else {
    T value;
    std::memcpy(&value, element, sizeof value);
    // For a NaN, the one of its type; most values are not NaN.
    if constexpr (std::is_floating_point_v<T>) {
      if (value != value) return ToBits(std::numeric_limits<T>::quiet_NaN());
      return ToBits(value);
    } else if constexpr (Half<T>) {
      return Scalar::Of(DTypeOf<T>(), value).bits;
    } else {
      return ToBits(value);
    }
  }
}

}  // namespace

ElementLoader LoaderOf(DType type) {
  return VisitType(type, [](auto zero) -> ElementLoader { return &LoadAs<decltype(zero)>; });
}

Scalar Load(DType type, const void* element) { return {type, LoaderOf(type)(element)}; }

void Store(const Scalar& value, void* element) {
  VisitType(value.type, [&](auto zero) {
    const auto typed = FromBits<decltype(zero)>(value.bits);
    std::memcpy(element, &typed, sizeof typed);
  });
}

Scalar At(const TensorView& view, absl::Span<const int64_t> index) {
  assert(InBounds(view.shape, index));
  const char* data = static_cast<const char*>(view.data);
  return Load(view.type, data + ElementOffset(view, index) * ByteSize(view.type));
}

void Set(const TensorView& view, absl::Span<const int64_t> index, const Scalar& value) {
  assert(InBounds(view.shape, index) && value.type == view.type);
  char* data = static_cast<char*>(view.data);
  Store(value, data + ElementOffset(view, index) * ByteSize(view.type));
}

// By Scalars, whose NaNs are one: bits in memory may differ where values do not.
absl::optional<std::string> FirstDifference(const TensorView& a, const TensorView& b) {
  if (a.type != b.type) return absl::StrCat("type ", Name(a.type), " against ", Name(b.type));
  if (a.shape != b.shape) {
    return absl::StrCat("shape ", ShapeText(a.shape), " against ", ShapeText(b.shape));
  }
  if (IsEmpty(a.shape)) return absl::nullopt;
  Dims index(a.rank(), 0);
  do {
    const Scalar left = At(a, index);
    const Scalar right = At(b, index);
    if (left == right) continue;
    return absl::StrCat("at ", ShapeText(index), ": ", LiteralAndBits(left), " against ",
                        LiteralAndBits(right));
  } while (NextIndex(a.shape, absl::MakeSpan(index)));
  return absl::nullopt;
}

bool BitEqual(const TensorView& a, const TensorView& b) {
  return !FirstDifference(a, b).has_value();
}

std::string ToString(const TensorView& view, const ToStringOptions& options) {
  if (IsEmpty(view.shape)) return "[]";
  return Printer(view, options).Print();
}

// ---- Tensors ----

Tensor::Tensor(const Tensor& other) {
  absl::StatusOr<Tensor> copy = Create(other.type_, other.shape_);
  if (!copy.ok()) throw std::bad_alloc();
  if (other.num_elements_ > 0) std::memcpy(copy->data_, other.data_, other.num_bytes());
  swap(*copy);
}

Tensor& Tensor::operator=(const Tensor& other) {
  if (this != &other) *this = Tensor(other);
  return *this;
}

Tensor& Tensor::operator=(Tensor&& other) noexcept {
  Tensor taken(std::move(other));
  swap(taken);
  return *this;
}

void Tensor::swap(Tensor& other) noexcept {
  std::swap(type_, other.type_);
  std::swap(shape_, other.shape_);
  std::swap(num_elements_, other.num_elements_);
  std::swap(memory_, other.memory_);
  std::swap(data_, other.data_);
}

// calloc gives zeros, mostly without touching the pages; its memory is aligned by hand, with room
// added for that.
absl::StatusOr<Tensor> Tensor::Create(DType type, absl::Span<const int64_t> shape) {
  NESTOR_ASSIGN_OR_RETURN(const int64_t bytes, NumBytes(type, shape));
  void* memory = bytes > kMaxBytes ? nullptr : std::calloc(bytes + kAlignment, 1);
  if (memory == nullptr) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no memory for the ", bytes, " bytes of ", Name(type), ShapeText(shape)));
  }
  Tensor tensor;
  tensor.type_ = type;
  tensor.shape_.assign(shape.begin(), shape.end());
  tensor.num_elements_ = bytes / ByteSize(type);
  tensor.memory_.reset(memory);
  size_t room = bytes + kAlignment;
  tensor.data_ = std::align(kAlignment, bytes, memory, room);
  return tensor;
}

absl::StatusOr<Tensor> Tensor::FromView(const TensorView& view) {
  NESTOR_RETURN_IF_ERROR(CheckView(view));
  NESTOR_ASSIGN_OR_RETURN(Tensor tensor, Create(view.type, view.shape));
  if (tensor.num_elements_ > 0) CopyCompact(view, static_cast<char*>(tensor.data_));
  return tensor;
}

Tensor Tensor::CreateFor(DType type, absl::Span<const int64_t> shape, size_t num_values) {
  absl::StatusOr<Tensor> tensor = Create(type, shape);
  NESTOR_CHECK(tensor.ok() && static_cast<size_t>(tensor->num_elements_) == num_values,
               absl::StrCat("Tensor::Of: ", num_values, " values for shape ", ShapeText(shape)));
  return *std::move(tensor);
}

Tensor Tensor::Of(DType type, absl::Span<const int64_t> shape, absl::Span<const double> values) {
  Tensor tensor = CreateFor(type, shape, values.size());
  char* element = static_cast<char*>(tensor.data_);
  for (double v : values) {
    Store(Scalar::Of(type, v), element);
    element += ByteSize(type);
  }
  return tensor;
}

}  // namespace nestor
