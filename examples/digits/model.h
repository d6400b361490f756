// Two classifiers of 8x8 digits in Nestor's notation, and the programs made of
// them: the training step and the prediction.
//
// A classifier is the text of its forward op alone. Its loss is the cross entropy
// of its logits, its gradients come from Gradient, and one step of SGD is
//
//   Combine(forward, cross entropy, gradient, update of every parameter)
//
// a single op, wired by names:
//
//   x, labels, g_loss = 1, w1, b1, .., m_w1, m_b1, .., $lr, $momentum
//     -> loss, w1_new, b1_new, .., m_w1_new, m_b1_new, ..
#ifndef NESTOR_EXAMPLES_DIGITS_MODEL_H_
#define NESTOR_EXAMPLES_DIGITS_MODEL_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "examples/digits/runner.h"
#include "tensor/tensor.h"
#include "uops/op.h"

namespace nestor::digits {

struct Parameter {
  std::string name;
  Dims shape;
};

// `forward(x, parameters..) -> (logits)` of a model: "mlp" takes x [N, 64], "cnn"
// x [N, 1, 8, 8]; logits are [N, 10], all f32. InvalidArgument: no such model.
absl::StatusOr<Op> ForwardOp(absl::string_view model);

// The arguments of `forward` besides x.
std::vector<Parameter> ParametersOf(const Op& forward);

// (x, labels: i64[N], parameters.., g_loss: f32[]) -> loss and the gradients g_NAME
// by the arguments `wrt`.
absl::StatusOr<Op> LossAndGradientsOp(const Op& forward, const std::vector<std::string>& wrt);

// The op described at the top of this file.
absl::StatusOr<Op> TrainingStepOp(const Op& forward);

// (x, parameters..) -> logits and digit: i64[N], the first of the likeliest.
absl::StatusOr<Op> PredictionOp(const Op& forward);

struct StepSize {
  float learning_rate;
  float momentum;
};

// A model with its parameters. Not for several threads at once.
class Classifier {
 public:
  // Weights uniform in +-sqrt(6 / fan-in), whose variance is 2 / fan-in (K. He et
  // al., "Delving deep into rectifiers", 2015), drawn from `seed`; biases 0.
  static absl::StatusOr<Classifier> Create(absl::string_view model, uint64_t seed,
                                           Engine engine = Engine::kJit);

  // Makes one step of SGD on n = labels.size() images of 64 pixels each; n > 0. Returns the loss
  // before the step.
  absl::StatusOr<float> Step(absl::Span<const float> pixels, absl::Span<const int64_t> labels,
                             const StepSize& size);

  // The digits that it reads in images of 64 pixels each.
  absl::StatusOr<std::vector<int64_t>> Predict(absl::Span<const float> pixels);

 private:
  Classifier(Runner step, Runner prediction)
      : step_(std::move(step)), prediction_(std::move(prediction)) {}
  TensorView Images(absl::Span<const float> pixels) const;

  Runner step_, prediction_;
  Dims image_shape_;                     // x's but for N
  std::map<std::string, Tensor> state_;  // parameters by name and, as m_NAME, their momenta
};

}  // namespace nestor::digits

#endif  // NESTOR_EXAMPLES_DIGITS_MODEL_H_
