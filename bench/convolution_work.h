// How much a convolution of images computes.
#ifndef NESTOR_BENCH_CONVOLUTION_WORK_H_
#define NESTOR_BENCH_CONVOLUTION_WORK_H_

#include <cstdint>

namespace nestor::bench {

// Square images and windows; `channels` that each kernel reads.
struct ConvolutionWork {
  int64_t images, channels, size, kernels, window, stride, pad;
};

int64_t ResultSize(const ConvolutionWork& work);
// The multiply-adds without those on the padding's zeros.
double MultiplyAdds(const ConvolutionWork& work);

}  // namespace nestor::bench

#endif  // NESTOR_BENCH_CONVOLUTION_WORK_H_
