// The models are notation; everything else about them is derived: parameters are
// the forward op's arguments, shapes their declared extents, and the update is written, also in the
// notation, with one call of the macro op sgd for each parameter.
//
// The gradient op recomputes the forward pass in theory only: in the combined graph equal nodes are
// one node.
#include "examples/digits/model.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/substitute.h"
#include "autodiff/gradient.h"
#include "examples/digits/random.h"
#include "macro_ops/library.h"
#include "tensor/binding.h"
#include "uops/call.h"
#include "uops/invariant.h"
#include "uops/notation/module.h"

namespace nestor::digits {
namespace {

constexpr absl::string_view kMlp = R"(
op forward(x: f32[N, 64], w1: f32[64, 64], b1: f32[64], w2: f32[10, 64], b2: f32[10]) -> (logits) {
  z1 = linear(x, w1, b1)
  a1[n, k] = relu(z1[n, k])
  logits = linear(a1, w2, b2)
}
)";

constexpr absl::string_view kCnn = R"(
op forward(x: f32[N, 1, 8, 8], w1: f32[16, 1, 3, 3], b1: f32[16], w2: f32[32, 16, 3, 3], b2: f32[32],
           w3: f32[10, 128], b3: f32[10]) -> (logits) {
  z1 = conv2d(x, w1; pad=1)
  a1[n, c, h, v] = relu(z1[n, c, h, v] + b1[c])
  p1 = max_pool2d(a1; k=2, stride=2)
  z2 = conv2d(p1, w2; pad=1)
  a2[n, c, h, v] = relu(z2[n, c, h, v] + b2[c])
  p2 = max_pool2d(a2; k=2, stride=2)
  flat[n, k] = p2[n, k / 4, k / 2 % 2, k % 2] where k < 128
  logits = linear(flat, w3, b3)
}
)";

constexpr absl::string_view kLoss = R"(
op loss(logits: f32[N, C], labels: i64[N]) -> (loss) { loss = cross_entropy(logits, labels) }
)";

constexpr absl::string_view kChoice = R"(
op choice(logits: f32[N, C]) -> (digit) { digit[n] = argmax[c](logits[n, c]) }
)";

// The one op of `text`, which may call the macro library.
absl::StatusOr<Op> OpOf(absl::string_view text) {
  NESTOR_ASSIGN_OR_RETURN(const Module module, Module::Parse(text, &MacroLibrary()));
  return module.Instantiate("", {});
}

std::vector<std::string> NamesOf(const std::vector<Parameter>& parameters) {
  std::vector<std::string> names;
  for (const Parameter& parameter : parameters) names.push_back(parameter.name);
  return names;
}

// The extents after the first `skipped`. REQUIRES: they are literals.
Dims Extents(const Op& op, const Argument& arg, size_t skipped) {
  Dims extents;
  for (size_t axis = skipped; axis < arg.shape.size(); ++axis) {
    const absl::optional<int64_t> extent = op.graph.pool().ConstValue(arg.shape[axis]);
    NESTOR_CHECK(extent.has_value(), arg.name);
    extents.push_back(*extent);
  }
  return extents;
}

// SGD with momentum of every parameter:
//   op update(b1: f32[64], g_b1: f32[64], m_b1: f32[64]; $lr: f32, $momentum: f32) -> (b1_new, m_b1_new) {
//     (b1_new, m_b1_new) = sgd(b1, g_b1, m_b1; lr=$lr, momentum=$momentum)
//   }
std::string UpdateText(const std::vector<Parameter>& parameters) {
  std::vector<std::string> args, results, calls;
  for (const Parameter& p : parameters) {
    args.push_back(
        absl::Substitute("$0: f32$1, g_$0: f32$1, m_$0: f32$1", p.name, ShapeText(p.shape)));
    results.push_back(absl::Substitute("$0_new, m_$0_new", p.name));
    calls.push_back(absl::Substitute(
        "($0_new, m_$0_new) = sgd($0, g_$0, m_$0; lr=$$lr, momentum=$$momentum)", p.name));
  }
  return absl::Substitute("op update($0; $$lr: f32, $$momentum: f32) -> ($1) {\n$2\n}",
                          absl::StrJoin(args, ", "), absl::StrJoin(results, ", "),
                          absl::StrJoin(calls, "\n"));
}

std::vector<std::string> StepResults(const std::vector<Parameter>& parameters) {
  std::vector<std::string> results = {"loss"};
  for (const Parameter& p : parameters) {
    results.push_back(absl::StrCat(p.name, "_new"));
    results.push_back(absl::StrCat("m_", p.name, "_new"));
  }
  return results;
}

}  // namespace

absl::StatusOr<Op> ForwardOp(absl::string_view model) {
  if (model == "mlp") return OpOf(kMlp);
  if (model == "cnn") return OpOf(kCnn);
  return absl::InvalidArgumentError(
      absl::StrCat("unknown model '", model, "' (there are mlp and cnn)"));
}

std::vector<Parameter> ParametersOf(const Op& forward) {
  std::vector<Parameter> parameters;
  for (const Argument& arg : forward.args) {
    if (arg.name != "x") parameters.push_back({arg.name, Extents(forward, arg, 0)});
  }
  return parameters;
}

absl::StatusOr<Op> LossAndGradientsOp(const Op& forward, const std::vector<std::string>& wrt) {
  NESTOR_ASSIGN_OR_RETURN(const Op cross_entropy, OpOf(kLoss));
  NESTOR_ASSIGN_OR_RETURN(const Op loss, Combine("loss", {forward, cross_entropy}));
  NESTOR_ASSIGN_OR_RETURN(const GradientResult gradient,
                          Gradient(loss, {{"loss"}, wrt, absl::nullopt}));
  std::vector<std::string> results = {"loss"};
  results.insert(results.end(), gradient.results.begin(), gradient.results.end());
  return Combine("loss_and_gradients", {loss, gradient.op}, results);
}

absl::StatusOr<Op> TrainingStepOp(const Op& forward) {
  const std::vector<Parameter> parameters = ParametersOf(forward);
  NESTOR_ASSIGN_OR_RETURN(const Op gradients, LossAndGradientsOp(forward, NamesOf(parameters)));
  NESTOR_ASSIGN_OR_RETURN(const Op update, OpOf(UpdateText(parameters)));
  return Combine("step", {gradients, update}, StepResults(parameters));
}

absl::StatusOr<Op> PredictionOp(const Op& forward) {
  NESTOR_ASSIGN_OR_RETURN(const Op choice, OpOf(kChoice));
  return Combine("predict", {forward, choice});
}

absl::StatusOr<Classifier> Classifier::Create(absl::string_view model, uint64_t seed,
                                              Engine engine) {
  NESTOR_ASSIGN_OR_RETURN(const Op forward, ForwardOp(model));
  NESTOR_ASSIGN_OR_RETURN(const Op step, TrainingStepOp(forward));
  NESTOR_ASSIGN_OR_RETURN(const Op prediction, PredictionOp(forward));
  NESTOR_ASSIGN_OR_RETURN(Runner step_runner, Runner::Create(step, engine));
  NESTOR_ASSIGN_OR_RETURN(Runner prediction_runner, Runner::Create(prediction, engine));
  Classifier classifier(std::move(step_runner), std::move(prediction_runner));
  classifier.image_shape_ = Extents(forward, *forward.FindArgument("x"), 1);
  Random random(seed);
  for (const Parameter& p : ParametersOf(forward)) {
    NESTOR_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Create(DType::kF32, p.shape));
    classifier.state_["m_" + p.name] = tensor;
    if (p.shape.size() > 1) {
      const float fan_in = static_cast<float>(tensor.num_elements() / p.shape[0]);
      for (float& weight : tensor.values<float>()) weight = random.Uniform(std::sqrt(6 / fan_in));
    }
    classifier.state_[p.name] = std::move(tensor);
  }
  return classifier;
}

TensorView Classifier::Images(absl::Span<const float> pixels) const {
  int64_t image_size = 1;
  for (int64_t extent : image_shape_) image_size *= extent;
  Dims shape = {static_cast<int64_t>(pixels.size()) / image_size};
  shape.insert(shape.end(), image_shape_.begin(), image_shape_.end());
  return ViewOf(pixels.data(), shape);
}

absl::StatusOr<float> Classifier::Step(absl::Span<const float> pixels,
                                       absl::Span<const int64_t> labels, const StepSize& size) {
  const float one = 1;
  RunInputs inputs;
  inputs.tensors["x"] = Images(pixels);
  inputs.tensors["labels"] = ViewOf(labels.data(), {static_cast<int64_t>(labels.size())});
  inputs.tensors["g_loss"] = ViewOf(&one, {});
  for (const auto& [name, tensor] : state_) inputs.tensors[name] = tensor;
  inputs.params["$lr"] = Scalar::Of(DType::kF32, size.learning_rate);
  inputs.params["$momentum"] = Scalar::Of(DType::kF32, size.momentum);
  NESTOR_ASSIGN_OR_RETURN(std::vector<Tensor> results, step_.Run(inputs));
  for (size_t i = 1; i < results.size(); ++i) {
    const std::string& name = step_.results()[i];
    state_[name.substr(0, name.size() - 4)] = std::move(results[i]);  // without its "_new"
  }
  return results[0].values<float>()[0];
}

absl::StatusOr<std::vector<int64_t>> Classifier::Predict(absl::Span<const float> pixels) {
  RunInputs inputs;
  inputs.tensors["x"] = Images(pixels);
  for (const auto& [name, tensor] : state_) {
    if (name[0] != 'm') inputs.tensors[name] = tensor;
  }
  NESTOR_ASSIGN_OR_RETURN(const std::vector<Tensor> results, prediction_.Run(inputs));
  const absl::Span<const int64_t> digits = results[1].values<int64_t>();
  return std::vector<int64_t>(digits.begin(), digits.end());
}

}  // namespace nestor::digits
