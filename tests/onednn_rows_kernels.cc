// Softmax and layer normalisation along the last axis, and their gradients.
#include "tests/onednn_kernels.h"
#include "tests/peer_kernels.h"

namespace nestor {
namespace {

using bench::OneDnnEngine;
using dnnl::memory;
using dnnl::prop_kind;

template <class Forward>
void Softmax(const KernelCall& k) {
  const TensorView &x = k.view("x"), &y = k.view("y");
  const typename Forward::primitive_desc description(
      typename Forward::desc(prop_kind::forward_inference, DescOf(x), x.rank() - 1),
      OneDnnEngine());
  Execute<Forward>(description, {InputOf(DNNL_ARG_SRC, x), ResultOf(DNNL_ARG_DST, y)});
}

template <class Forward, class Backward>
void SoftmaxGradient(const KernelCall& k) {
  const TensorView &y = k.view("y"), &g_y = k.view("g_y"), &g_x = k.view("g_x");
  const int axis = y.rank() - 1;
  const typename Forward::primitive_desc forward(
      typename Forward::desc(prop_kind::forward_training, DescOf(y), axis), OneDnnEngine());
  const typename Backward::primitive_desc description(
      typename Backward::desc(DescOf(g_y), DescOf(y), axis), OneDnnEngine(), forward);
  Execute<Backward>(description, {InputOf(DNNL_ARG_DST, y), InputOf(DNNL_ARG_DIFF_DST, g_y),
                                  ResultOf(DNNL_ARG_DIFF_SRC, g_x)});
}

const auto kScaleAndShift =
    dnnl::normalization_flags::use_scale | dnnl::normalization_flags::use_shift;

using Norm = dnnl::layer_normalization_forward;

Norm::primitive_desc NormDescription(prop_kind kind, const TensorView& x, float eps) {
  return Norm::primitive_desc(Norm::desc(kind, DescOf(x), eps, kScaleAndShift), OneDnnEngine());
}

void LayerNorm(const KernelCall& k) {
  const auto description =
      NormDescription(prop_kind::forward_inference, k.view("x"), k.param<float>("eps"));
  Execute<Norm>(description,
                {InputOf(DNNL_ARG_SRC, k.view("x")), InputOf(DNNL_ARG_SCALE, k.view("scale")),
                 InputOf(DNNL_ARG_SHIFT, k.view("bias")), ResultOf(DNNL_ARG_DST, k.view("y"))});
}

// The mean and the variance come from a forward run, whose result nobody reads.
void LayerNormGradient(const KernelCall& k) {
  using Backward = dnnl::layer_normalization_backward;
  const TensorView &x = k.view("x"), &scale = k.view("scale"), &g_y = k.view("g_y");
  const float eps = k.param<float>("eps");
  const auto forward = NormDescription(prop_kind::forward_training, x, eps);
  const bench::OneDnnArgument mean{DNNL_ARG_MEAN, memory(forward.mean_desc(), OneDnnEngine())};
  const bench::OneDnnArgument variance{DNNL_ARG_VARIANCE,
                                       memory(forward.variance_desc(), OneDnnEngine())};
  const Tensor result = *Tensor::FromView(x);
  const TensorView unread = result.view();
  Execute<Norm>(forward,
                {InputOf(DNNL_ARG_SRC, x), InputOf(DNNL_ARG_SCALE, scale),
                 InputOf(DNNL_ARG_SHIFT, scale), ResultOf(DNNL_ARG_DST, unread)},
                {{mean.argument, mean.given, true}, {variance.argument, variance.given, true}});
  const Backward::primitive_desc description(
      Backward::desc(prop_kind::backward, DescOf(g_y), DescOf(x), eps, kScaleAndShift),
      OneDnnEngine(), forward);
  Execute<Backward>(
      description,
      {InputOf(DNNL_ARG_SRC, x), InputOf(DNNL_ARG_SCALE, scale), InputOf(DNNL_ARG_SHIFT, scale),
       InputOf(DNNL_ARG_DIFF_DST, g_y), ResultOf(DNNL_ARG_DIFF_SRC, k.view("g_x")),
       ResultOf(DNNL_ARG_DIFF_SCALE, k.view("g_scale")),
       ResultOf(DNNL_ARG_DIFF_SHIFT, k.view("g_bias"))},
      {mean, variance});
}

}  // namespace

std::vector<PeerKernel> OneDnnRows() {
  const Op softmax_gradient = GradientOf("softmax", {"x"}, {"g_y", "y"});
  const Op log_softmax_gradient = GradientOf("log_softmax", {"x"}, {"g_y", "y"});
  const Op norm_gradient = GradientOf("layer_norm", {"x", "scale", "bias"}, {"g_y", "x", "scale"});
  return {{"softmax, normal results", "softmax", FromOneDnn(Softmax<dnnl::softmax_forward>),
           CheckOptions().Values({false, false, -20, 20})},
          {"softmax",
           "softmax",
           FromOneDnn(Softmax<dnnl::softmax_forward>),
           {},
           "what is less than the least normal number is 0"},
          {"softmax, backward",
           softmax_gradient,
           FromOneDnn(SoftmaxGradient<dnnl::softmax_forward, dnnl::softmax_backward>),
           {}},
          {"logsoftmax",
           "log_softmax",
           FromOneDnn(Softmax<dnnl::logsoftmax_forward>),
           {},
           "the approximation of log"},
          {"logsoftmax, backward",
           log_softmax_gradient,
           FromOneDnn(SoftmaxGradient<dnnl::logsoftmax_forward, dnnl::logsoftmax_backward>),
           {},
           "the approximation of exp"},
          {"layer_normalization", "layer_norm", FromOneDnn(LayerNorm), {}},
          {"layer_normalization, backward",
           norm_gradient,
           FromOneDnn(LayerNormGradient),
           {},
           "another formula: signs of zeros, overflow and underflow on the way"}};
}

}  // namespace nestor
