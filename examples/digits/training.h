// Stochastic gradient descent over shuffled examples, epoch by epoch.
#ifndef NESTOR_EXAMPLES_DIGITS_TRAINING_H_
#define NESTOR_EXAMPLES_DIGITS_TRAINING_H_

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "examples/digits/data.h"
#include "examples/digits/model.h"
#include "examples/digits/random.h"

namespace nestor::digits {

constexpr int kEpochs = 12;  // enough for the convolutional network
constexpr int64_t kBatchSize = 32;

// `epoch` is 1..epochs: the steps become shorter, so that the last epochs settle.
StepSize StepSizeOf(int epoch, int epochs);

// Called after each batch: the share of the epoch done, in (0, 1], and the mean loss so far.
using Progress = absl::FunctionRef<void(double done, double loss)>;

// Makes one step for each batch of `batch_size` examples (the last may be smaller), in an order
// drawn from `random`. Returns the mean of the losses that the examples had when their turn came.
// REQUIRES: examples, and batch_size > 0.
absl::StatusOr<double> TrainEpoch(const Examples& examples, int64_t batch_size,
                                  const StepSize& step_size, Random& random, Classifier& classifier,
                                  Progress progress);

}  // namespace nestor::digits

#endif  // NESTOR_EXAMPLES_DIGITS_TRAINING_H_
