// Both axes are alike, so it is enough to count pairs along one of them.
#include "bench/convolution_work.h"

namespace nestor::bench {
namespace {

// Pairs of an output and a window element, along one axis, that meet within the image.
int64_t PairsWithin(const ConvolutionWork& work) {
  int64_t pairs = 0;
  for (int64_t output = 0; output < ResultSize(work); ++output) {
    for (int64_t element = 0; element < work.window; ++element) {
      const int64_t input = output * work.stride + element - work.pad;
      pairs += input >= 0 && input < work.size;
    }
  }
  return pairs;
}

}  // namespace

int64_t ResultSize(const ConvolutionWork& work) {
  return (work.size + 2 * work.pad - work.window) / work.stride + 1;
}

double MultiplyAdds(const ConvolutionWork& work) {
  const int64_t pairs = PairsWithin(work);
  return static_cast<double>(work.images * work.kernels * work.channels * pairs * pairs);
}

}  // namespace nestor::bench
