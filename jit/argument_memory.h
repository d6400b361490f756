// Where the elements of a call's arguments lie, and whether they may lie there.
#ifndef NESTOR_JIT_ARGUMENT_MEMORY_H_
#define NESTOR_JIT_ARGUMENT_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "jit/call_arguments.h"
#include "tensor/tensor.h"

namespace nestor::jit {

// Measured once for calls of the same shapes and strides; then each of them is checked with its
// addresses, which allocates nothing. Not thread-safe.
class ArgumentMemory {
 public:
  // The Statuses of nestor::Footprint.
  absl::Status Measure(const CallArguments& arguments);

  // Bytes, from an argument's first element on, that its elements are in. Empty where nobody reads
  // them.
  const ByteRange& footprint(size_t number) const { return footprints_[number]; }
  int64_t bytes() const { return bytes_; }           // of all arguments
  bool has_results() const { return has_results_; }  // some output has elements

  // (output, input), each by its number among its kind, where one may lie just on the other.
  // Sorted.
  using Aliases = absl::Span<const std::pair<int, int>>;
  // InvalidArgument where an argument has no memory, its elements lie at odd addresses, or an
  // output overlaps another argument. REQUIRES: the arguments have the shapes and strides of those
  // measured.
  absl::Status Check(const CallArguments& arguments, Aliases aliases);

 private:
  bool OutputsAreApart(const CallArguments& arguments, Aliases aliases);
  absl::Status CheckOverlap(const CallArguments& arguments, Aliases aliases, size_t output,
                            size_t other) const;

  std::vector<ByteRange> footprints_;
  std::vector<size_t> sorted_outputs_;  // numbers of arguments, by address at the last call
  int64_t bytes_ = 0;
  bool has_results_ = false;
};

}  // namespace nestor::jit

#endif  // NESTOR_JIT_ARGUMENT_MEMORY_H_
