// All engines of a row read the same inputs and write the same outputs, in turns:
// then none has the better placed pages, and the caches meet each in the same state.
// Values are drawn from a counter through a mixing function (Steele, Lea, Flood,
// "Fast splittable pseudorandom number generators"), so that every run of a row has
// the same ones.
#include "bench/buffers.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "uops/invariant.h"

namespace nestor::bench {
namespace {

uint64_t Mix(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

class Stream {
 public:
  explicit Stream(absl::string_view name) {
    for (const char c : name) state_ = Mix(state_ + static_cast<unsigned char>(c));
  }
  uint64_t Next() { return Mix(state_ += 0x9e3779b97f4a7c15); }

 private:
  uint64_t state_ = 1;
};

template <class T>
T Uniform(uint64_t random, const BufferSpec& spec) {
  if constexpr (Half<T>) {
    return T::Round(Uniform<float>(random, spec));
  } else if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(static_cast<int32_t>(random >> 40) - (1 << 23)) / (1 << 23) *
           static_cast<T>(spec.scale);
  } else {
    return static_cast<T>(random % static_cast<uint64_t>(spec.below));
  }
}

void FillUniform(const BufferSpec& spec, Tensor& tensor) {
  Stream stream(spec.name);
  VisitType(tensor.type(), [&](auto zero) {
    for (auto& value : tensor.values<decltype(zero)>())
      value = Uniform<decltype(zero)>(stream.Next(), spec);
  });
}

void FillPermutation(Stream stream, Tensor& tensor) {
  const absl::Span<int64_t> values = tensor.values<int64_t>();
  std::iota(values.begin(), values.end(), 0);
  for (size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[stream.Next() % i]);
}

template <class T>
absl::Span<const T> Elements(const Tensor& tensor) {
  return absl::MakeConstSpan(static_cast<const T*>(tensor.data()), tensor.num_elements());
}

double Difference(double want, double got, double scale) {
  if (want == got || (std::isnan(want) && std::isnan(got))) return 0;
  const double difference = std::abs(got - want) / std::max(std::abs(want), scale);
  return std::isnan(difference) ? std::numeric_limits<double>::infinity() : difference;
}

template <class T>
double MaxDifference(absl::Span<const T> want, absl::Span<const T> got) {
  double squares = 0;
  for (const T value : want) {
    const double number = static_cast<double>(Widened(value));
    squares += number * number;
  }
  const double scale = std::sqrt(squares / std::max<double>(1, want.size()));
  double max = 0;
  for (size_t i = 0; i < want.size(); ++i)
    max = std::max(max, Difference(static_cast<double>(Widened(want[i])),
                                   static_cast<double>(Widened(got[i])), scale));
  return max;
}

}  // namespace

// The elements follow from a buffer's name, so that all engines get the same ones.
absl::StatusOr<Buffers> Buffers::Create(absl::Span<const BufferSpec> specs) {
  Buffers buffers;
  for (const BufferSpec& spec : specs) {
    NESTOR_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Create(spec.type, spec.shape));
    if (spec.fill == Fill::kUniform) FillUniform(spec, tensor);
    if (spec.fill == Fill::kPermutation) FillPermutation(Stream(spec.name), tensor);
    if (spec.fill == Fill::kOutput) buffers.outputs_.push_back(spec.name);
    buffers.tensors_[spec.name] = std::move(tensor);
  }
  buffers.PoisonOutputs();
  return buffers;
}

Tensor& Buffers::operator[](absl::string_view name) {
  const auto it = tensors_.find(name);
  NESTOR_CHECK(it != tensors_.end(), absl::StrCat("no buffer ", name));
  return it->second;
}

absl::StatusOr<std::vector<Tensor>> Buffers::CopyOutputs() {
  std::vector<Tensor> copies;
  for (const std::string& name : outputs_) {
    NESTOR_ASSIGN_OR_RETURN(Tensor copy, Tensor::FromView((*this)[name]));
    copies.push_back(std::move(copy));
  }
  return copies;
}

void Buffers::PoisonOutputs() {
  for (const std::string& name : outputs_) {
    Tensor& tensor = (*this)[name];
    std::memset(tensor.data(), 0xff, tensor.num_bytes());
  }
}

absl::StatusOr<double> MaxRelativeDifference(const Tensor& want, const Tensor& got) {
  if (want.type() != got.type() || want.shape() != got.shape()) {
    return absl::InvalidArgumentError(absl::StrCat("expected ", Name(want.type()),
                                                   ShapeText(want.shape()), ", got ",
                                                   Name(got.type()), ShapeText(got.shape())));
  }
  return VisitType(want.type(), [&](auto zero) {
    using T = decltype(zero);
    return MaxDifference<T>(Elements<T>(want), Elements<T>(got));
  });
}

}  // namespace nestor::bench
