// The named arrays of one row, on which Nestor, its peers and the limit all work.
#ifndef NESTOR_BENCH_BUFFERS_H_
#define NESTOR_BENCH_BUFFERS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "tensor/tensor.h"

namespace nestor::bench {

enum class Fill {
  kUniform,      // floats in [-scale, scale), integers in [0, below): drawn from the name
  kPermutation,  // 0 .. n-1, shuffled: places to gather from
  kOutput,       // written by the engines
};

struct BufferSpec {
  std::string name;
  DType type = DType::kF32;
  Dims shape;
  Fill fill = Fill::kUniform;
  double scale = 1;
  int64_t below = 16;
};

class Buffers {
 public:
  static absl::StatusOr<Buffers> Create(absl::Span<const BufferSpec> specs);

  bool Has(absl::string_view name) const { return tensors_.contains(name); }
  // REQUIRES: there is a buffer of that name. The memory does not move as long as the Buffers
  // exist, even if these are moved.
  Tensor& operator[](absl::string_view name);

  const std::vector<std::string>& outputs() const { return outputs_; }
  // CopyOutputs copies the outputs, in the order of the specs; PoisonOutputs fills them with a
  // pattern that is NaN in every float type, so that unwritten elements show.
  absl::StatusOr<std::vector<Tensor>> CopyOutputs();
  void PoisonOutputs();

 private:
  absl::flat_hash_map<std::string, Tensor> tensors_;
  std::vector<std::string> outputs_;
};

// The largest |got - want|, relative to the larger of |want| and the root mean
// square of all of `want` (elements that are 0 but for rounding have no relative
// error of their own). Infinity where one is NaN and the other is not.
// InvalidArgument where type or shape differ.
absl::StatusOr<double> MaxRelativeDifference(const Tensor& want, const Tensor& got);

}  // namespace nestor::bench

#endif  // NESTOR_BENCH_BUFFERS_H_
