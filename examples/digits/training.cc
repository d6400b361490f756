// The order is a Fisher-Yates shuffle (R. Durstenfeld's form, 1964); a batch is gathered into
// memory of its own, because a run takes its images in one piece.
#include "examples/digits/training.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "uops/invariant.h"

namespace nestor::digits {
namespace {

std::vector<int64_t> ShuffledOrder(int64_t size, Random& random) {
  std::vector<int64_t> order(size);
  std::iota(order.begin(), order.end(), 0);
  for (int64_t i = size - 1; i > 0; --i) std::swap(order[i], order[random.Below(i + 1)]);
  return order;
}

Examples Gather(const Examples& examples, absl::Span<const int64_t> rows) {
  Examples batch;
  for (int64_t row : rows) {
    batch.pixels.insert(batch.pixels.end(), examples.Image(row), examples.Image(row) + kPixels);
    batch.labels.push_back(examples.labels[row]);
  }
  return batch;
}

}  // namespace

StepSize StepSizeOf(int epoch, int epochs) {
  constexpr float kLearningRate = 0.1f, kMomentum = 0.9f;
  return {kLearningRate * static_cast<float>(epochs - epoch + 1) / static_cast<float>(epochs),
          kMomentum};
}

absl::StatusOr<double> TrainEpoch(const Examples& examples, int64_t batch_size,
                                  const StepSize& step_size, Random& random, Classifier& classifier,
                                  Progress progress) {
  const std::vector<int64_t> order = ShuffledOrder(examples.size(), random);
  double sum = 0;
  for (int64_t done = 0; done < examples.size();) {
    const Examples batch = Gather(examples, absl::MakeSpan(order).subspan(done, batch_size));
    NESTOR_ASSIGN_OR_RETURN(const float loss,
                            classifier.Step(batch.pixels, batch.labels, step_size));
    sum += static_cast<double>(loss) * batch.size();
    done += batch.size();
    progress(static_cast<double>(done) / examples.size(), sum / done);
  }
  return sum / examples.size();
}

}  // namespace nestor::digits
