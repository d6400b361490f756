// Tensors as memory: strided views over the caller's elements, and an owning
// compact tensor. Nothing here computes; it addresses, copies, compares and
// prints.
//
// Extents and strides are int64 and count elements, never bytes. Row-major
// order: the last axis runs fastest. A rank-0 tensor has one element; an extent
// of 0 is legal and means none.
//
// Thread-safety: const access from several threads at once is safe, as for the
// standard containers. Views share what they point at.
#ifndef NESTOR_TENSOR_TENSOR_H_
#define NESTOR_TENSOR_TENSOR_H_

#include "uops/cpp20.h"  // first, so that an older standard is named before all else

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "uops/dtype.h"

namespace nestor {

// One number per axis: a shape, strides, or an index.
using Dims = absl::InlinedVector<int64_t, 6>;

// ---- Shapes ----

// The product of the extents. InvalidArgument where an extent is negative, or
// where the product of those that are not 0 exceeds int64 (so that row-major
// strides of a shape that passes always fit).
absl::StatusOr<int64_t> NumElements(absl::Span<const int64_t> shape);

// NumElements times the size of an element; the same errors.
absl::StatusOr<int64_t> NumBytes(DType type, absl::Span<const int64_t> shape);

// The strides of the compact row-major layout. REQUIRES: NumElements is ok.
Dims CompactStrides(absl::Span<const int64_t> shape);

// "[2, 3]", "[]".
std::string ShapeText(absl::Span<const int64_t> shape);

// Whether `index` is one index per axis, each in [0, extent).
bool InBounds(absl::Span<const int64_t> shape, absl::Span<const int64_t> index);

// Steps `index` to the next one in row-major order. After the last it returns
// false and leaves zeros: for a shape without a 0 extent,
//   Dims i(shape.size(), 0); do { ... } while (NextIndex(shape, absl::MakeSpan(i)));
// visits every element once. REQUIRES: equal ranks.
bool NextIndex(absl::Span<const int64_t> shape, absl::Span<int64_t> index);

// ---- Views ----

// A non-owning view: element i of the tensor lies at
//   data + ByteSize(type) * sum(i[axis] * strides[axis]).
// Strides may be 0 (broadcast) or negative; `data` is where index 0.. lies, and
// need not be aligned. The memory must outlive the view.
//   a compact [2, 3]:  strides [3, 1]        its transpose, [3, 2]:  strides [1, 3]
//
// A view does not say whether it may be written: as with a file name, a function that writes
// through one says so, and all others only read.
struct TensorView {
  DType type = DType::kF32;
  Dims shape;
  Dims strides;
  void* data = nullptr;

  int rank() const { return static_cast<int>(shape.size()); }
};

// A compact row-major view of the caller's elements; with T in place of the
// type, of a typed array. REQUIRES: NumElements(shape) is ok.
TensorView ViewOf(DType type, const void* data, absl::Span<const int64_t> shape);
template <class T>
TensorView ViewOf(const T* data, absl::Span<const int64_t> shape) {
  return ViewOf(DTypeOf<T>(), data, shape);
}

// The bytes [begin, end), counted from `data`, that hold the view's elements;
// begin is 0 or negative. Empty for an empty view.
struct ByteRange {
  int64_t begin = 0;
  int64_t end = 0;
};

// InvalidArgument where the view makes no sense: unequal ranks of shape and
// strides, a negative extent, a size or an offset beyond int64, or no memory
// under a view that has elements. Every other function on views REQUIRES that
// this is ok, unless it says otherwise.
absl::StatusOr<ByteRange> Footprint(const TensorView& view);
absl::Status CheckView(const TensorView& view);

// Whether the elements lie row-major without gaps; the strides of extents 1, and
// all strides of an empty view, do not matter.
bool IsContiguous(const TensorView& view);

// In elements from `data`. REQUIRES: one index per axis.
int64_t ElementOffset(const TensorView& view, absl::Span<const int64_t> index);

// One element in memory, of any alignment. A bool is any byte but 0; NaNs come
// back as the one NaN of their type. Store REQUIRES value.type == type.
Scalar Load(DType type, const void* element);
// Load for one type, for those who read many elements.
using ElementLoader = Bits (*)(const void* element);
ElementLoader LoaderOf(DType type);
void Store(const Scalar& value, void* element);

// REQUIRES: InBounds(view.shape, index); Set: value.type == view.type.
Scalar At(const TensorView& view, absl::Span<const int64_t> index);
void Set(const TensorView& view, absl::Span<const int64_t> index, const Scalar& value);

// The first difference: type, shape, or the first element in row-major order, as in "at [1, 2]: 0.5
// (0x3f000000) against 0.25 (0x3e800000)"; nullopt where the two are equal bit by bit, all NaNs
// counting as one.
absl::optional<std::string> FirstDifference(const TensorView& a, const TensorView& b);
bool BitEqual(const TensorView& a, const TensorView& b);

// As numpy prints: nested brackets, columns aligned, long rows wrapped. Floats
// are the shortest literals that read back to the same value. Above `threshold`
// elements only the first and last few along each axis are shown, with "..."
// between; at most `threshold` elements are ever printed.
//   [[1.0, 2.5],
//    [3.0, inf]]
struct ToStringOptions {
  int64_t threshold = 1000;
  int line_width = 100;
};
std::string ToString(const TensorView& view, const ToStringOptions& options = {});

// ---- Tensors ----

// Owns its elements: compact, row-major, at a 64-byte boundary. A default or
// moved-from Tensor is f32[0].
class Tensor {
 public:
  Tensor() = default;
  // Copies throw std::bad_alloc when there is no memory, as containers do.
  Tensor(const Tensor& other);
  Tensor& operator=(const Tensor& other);
  Tensor(Tensor&& other) noexcept { swap(other); }
  Tensor& operator=(Tensor&& other) noexcept;
  void swap(Tensor& other) noexcept;

  // All elements 0. InvalidArgument as NumBytes; ResourceExhausted where there
  // is no such memory. Large tensors take memory only as they are written.
  static absl::StatusOr<Tensor> Create(DType type, absl::Span<const int64_t> shape);

  // A compact copy. The errors of Create and CheckView.
  static absl::StatusOr<Tensor> FromView(const TensorView& view);

  // For tests, from values in row-major order. The second form casts each value as
  // Scalar::Of does.
  //   Tensor::Of<float>({2, 2}, {1, 2, 3, 4})
  //   Tensor::Of(DType::kBF16, {3}, {1, 2, 3})
  // REQUIRES: as many values as the shape has elements; else aborts, saying so.
  template <class T>
  static Tensor Of(absl::Span<const int64_t> shape, absl::Span<const T> values);
  static Tensor Of(DType type, absl::Span<const int64_t> shape, absl::Span<const double> values);

  DType type() const { return type_; }
  const Dims& shape() const { return shape_; }
  int rank() const { return static_cast<int>(shape_.size()); }
  int64_t num_elements() const { return num_elements_; }
  int64_t num_bytes() const { return num_elements_ * ByteSize(type_); }

  // Never null once created.
  void* data() { return data_; }
  const void* data() const { return data_; }

  // The elements as an array. REQUIRES: type() == DTypeOf<T>().
  template <class T>
  absl::Span<T> values() {
    return {static_cast<T*>(data_), static_cast<size_t>(num_elements_)};
  }
  template <class T>
  absl::Span<const T> values() const {
    return {static_cast<const T*>(data_), static_cast<size_t>(num_elements_)};
  }

  // Valid until the elements are freed: a move takes them, and their views, along.
  TensorView view() const { return ViewOf(type_, data_, shape_); }
  operator TensorView() const { return view(); }  // as string to string_view

 private:
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };

  static Tensor CreateFor(DType type, absl::Span<const int64_t> shape, size_t num_values);

  DType type_ = DType::kF32;
  Dims shape_ = {0};
  int64_t num_elements_ = 0;
  std::unique_ptr<void, Free> memory_;
  void* data_ = nullptr;  // the first 64-byte boundary in memory_
};

template <class T>
Tensor Tensor::Of(absl::Span<const int64_t> shape, absl::Span<const T> values) {
  Tensor tensor = CreateFor(DTypeOf<T>(), shape, values.size());
  for (size_t i = 0; i < values.size(); ++i) tensor.values<T>()[i] = values[i];
  return tensor;
}

}  // namespace nestor

#endif  // NESTOR_TENSOR_TENSOR_H_
