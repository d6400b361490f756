// Poolings over square windows with as much padding on each side, and their gradients.
#include "tests/onednn_kernels.h"
#include "tests/peer_kernels.h"

namespace nestor {
namespace {

using bench::OneDnnEngine;
using dnnl::algorithm;
using dnnl::memory;
using Forward = dnnl::pooling_forward;
using Backward = dnnl::pooling_backward;

struct Window {
  memory::dims stride, kernel, pad;
};

Window WindowOf(const KernelCall& k) {
  const int64_t stride = k.param("stride"), kernel = k.param("k"), pad = k.param("pad");
  return {{stride, stride}, {kernel, kernel}, {pad, pad}};
}

Forward::primitive_desc ForwardOf(dnnl::prop_kind kind, algorithm how, const TensorView& x,
                                  const TensorView& y, const Window& w) {
  return {Forward::desc(kind, how, DescOf(x), DescOf(y), w.stride, w.kernel, w.pad, w.pad),
          OneDnnEngine()};
}

template <algorithm how>
void Pool(const KernelCall& k) {
  const TensorView &x = k.view("x"), &y = k.view("y");
  Execute<Forward>(ForwardOf(dnnl::prop_kind::forward_inference, how, x, y, WindowOf(k)),
                   {InputOf(DNNL_ARG_SRC, x), ResultOf(DNNL_ARG_DST, y)});
}

Backward::primitive_desc BackwardOf(algorithm how, const TensorView& g_x, const TensorView& g_y,
                                    const Window& w, const Forward::primitive_desc& forward) {
  return {Backward::desc(how, DescOf(g_x), DescOf(g_y), w.stride, w.kernel, w.pad, w.pad),
          OneDnnEngine(), forward};
}

void AveragePoolGradient(const KernelCall& k) {
  constexpr algorithm kHow = algorithm::pooling_avg_include_padding;
  const TensorView &g_x = k.view("g_x"), &g_y = k.view("g_y");
  const auto forward = ForwardOf(dnnl::prop_kind::forward_training, kHow, g_x, g_y, WindowOf(k));
  Execute<Backward>(BackwardOf(kHow, g_x, g_y, WindowOf(k), forward),
                    {InputOf(DNNL_ARG_DIFF_DST, g_y), ResultOf(DNNL_ARG_DIFF_SRC, g_x)});
}

// A forward run leaves in the workspace the place of each window's greatest element.
void MaxPoolGradient(const KernelCall& k) {
  constexpr algorithm kHow = algorithm::pooling_max;
  const TensorView &x = k.view("x"), &g_x = k.view("g_x"), &g_y = k.view("g_y");
  const auto forward = ForwardOf(dnnl::prop_kind::forward_training, kHow, x, g_y, WindowOf(k));
  const memory workspace(forward.workspace_desc(), OneDnnEngine());
  const Tensor result = *Tensor::FromView(g_y);
  const TensorView unread = result.view();
  Execute<Forward>(forward, {InputOf(DNNL_ARG_SRC, x), ResultOf(DNNL_ARG_DST, unread)},
                   {{DNNL_ARG_WORKSPACE, workspace, true}});
  Execute<Backward>(BackwardOf(kHow, g_x, g_y, WindowOf(k), forward),
                    {InputOf(DNNL_ARG_DIFF_DST, g_y), ResultOf(DNNL_ARG_DIFF_SRC, g_x)},
                    {{DNNL_ARG_WORKSPACE, workspace}});
}

}  // namespace

std::vector<PeerKernel> OneDnnPoolings() {
  const Op max_gradient = GradientOf("max_pool2d", {"x"}, {"g_y", "x"});
  const Op average_gradient = GradientOf("avg_pool2d", {"x"}, {"g_y"});
  // There is a window; no window lies in the padding alone.
  const auto window = CheckOptions().Where("H + 2*$pad >= $k", "W + 2*$pad >= $k");
  const auto inside =
      CheckOptions(window).Where("$pad < $k", "H > 0", "W > 0", "H + $pad >= $k", "W + $pad >= $k");
  constexpr auto kAverage = algorithm::pooling_avg_include_padding;
  return {
      {"pooling_max, any padding", "max_pool2d", FromOneDnn(Pool<algorithm::pooling_max>), window,
       "a window of padding alone gives the least finite number"},
      {"pooling_max", "max_pool2d", FromOneDnn(Pool<algorithm::pooling_max>), inside},
      {"pooling_max, infinities and NaN", "max_pool2d", FromOneDnn(Pool<algorithm::pooling_max>),
       CheckOptions(inside).Values({true}), "a NaN is no greatest"},
      {"pooling_max, backward", max_gradient, FromOneDnn(MaxPoolGradient), inside,
       "among equals the first gets all"},
      {"pooling_avg_include_padding, no window too",
       "avg_pool2d",
       FromOneDnn(Pool<kAverage>),
       {},
       "dies of SIGFPE where the result is empty"},
      {"pooling_avg_include_padding", "avg_pool2d", FromOneDnn(Pool<kAverage>), window},
      {"pooling_avg_include_padding, backward", average_gradient, FromOneDnn(AveragePoolGradient),
       window}};
}

}  // namespace nestor
