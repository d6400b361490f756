// Matrix products with operations that may follow them, convolutions, and their gradients: in the
// layouts of the tensors, and in those that oneDNN prefers.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "tests/onednn_kernels.h"
#include "tests/peer_kernels.h"

namespace nestor {
namespace {

using bench::OneDnnEngine;
using dnnl::algorithm;
using dnnl::memory;

// ---- Matrix products

// Replaces a missing axis by one of one element.
TensorView WithRowAxis(TensorView view) {
  view.shape.insert(view.shape.begin(), 1);
  view.strides.insert(view.strides.begin(), std::max<int64_t>(1, view.shape.back()));
  return view;
}

void Product(const TensorView& a, const TensorView& b, const TensorView& c,
             const dnnl::primitive_attr& attributes = {}) {
  const dnnl::matmul::primitive_desc description({DescOf(a), DescOf(b), DescOf(c)}, attributes,
                                                 OneDnnEngine());
  Execute<dnnl::matmul>(description, {InputOf(DNNL_ARG_SRC, a), InputOf(DNNL_ARG_WEIGHTS, b),
                                      ResultOf(DNNL_ARG_DST, c)});
}

void Matmul(const KernelCall& k) { Product(k.view("a"), k.view("b"), k.view("c")); }

void MatmulGradient(const KernelCall& k) {
  Product(k.view("g_c"), Transpose(k.view("b")), k.view("g_a"));
  Product(Transpose(k.view("a")), k.view("g_c"), k.view("g_b"));
}

// y += a b: y is filled with c before.
void MatmulSum(const KernelCall& k) {
  Copy(k.view("c"), k.view("y"));
  dnnl::post_ops after;
  after.append_sum(1.0f);
  dnnl::primitive_attr attributes;
  attributes.set_post_ops(after);
  Product(k.view("a"), k.view("b"), k.view("y"), attributes);
}

template <algorithm how>
void MatmulBias(const KernelCall& k) {
  const TensorView &a = k.view("a"), &b = k.view("b"), &y = k.view("y"),
                   bias = WithRowAxis(k.view("bias"));
  dnnl::post_ops after;
  if (how != algorithm::undef) after.append_eltwise(1.0f, how, 0.0f, 0.0f);
  dnnl::primitive_attr attributes;
  attributes.set_post_ops(after);
  const dnnl::matmul::primitive_desc description({DescOf(a), DescOf(b), DescOf(bias), DescOf(y)},
                                                 attributes, OneDnnEngine());
  Execute<dnnl::matmul>(description, {InputOf(DNNL_ARG_SRC, a), InputOf(DNNL_ARG_WEIGHTS, b),
                                      InputOf(DNNL_ARG_BIAS, bias), ResultOf(DNNL_ARG_DST, y)});
}

std::string BiasOp(const std::string& function) {
  return absl::StrCat(
      "op matmul_bias(a: f32[M, K], b: f32[K, N], bias: f32[N]) -> (y) {\n  y[i, j] = ", function,
      "(sum[k](a[i, k] * b[k, j]) + bias[j])\n}");
}

constexpr char kMatmulSum[] = "op matmul_sum(a: f32[M, K], b: f32[K, N], c: f32[M, N]) -> (y) {\n"
                              "  y[i, j] = sum[k](a[i, k] * b[k, j]) + c[i, j]\n}";
// c is the sum's first term.
constexpr char kOneSum[] =
    "op matmul_sum(a: f32[M, K], b: f32[K, N], c: f32[M, N]) -> (y) {\n"
    "  y[i, j] = sum[k](a[i, k - 1 | 1.0] * where(k < 1, c[i, j], b[k - 1, j])) where k < K + 1\n}";
constexpr char kBatched[] =
    "op batched(a: f32[B, M, K], b: f32[B, K, N]) -> (c) { c[n, i, j] = sum[k](a[n, i, k] * b[n, k, j]) }";

void AddMatmuls(std::vector<PeerKernel>& kernels) {
  const auto options = CheckOptions().Where("M > 0", "K > 0", "N > 0");
  const auto strided = CheckOptions(options).Layouts(Layouts::kTransposed);
  const auto add = [&](const std::string& name, const CheckedOp& op,
                       void (*kernel)(const KernelCall&), const CheckOptions& with,
                       const std::string& finding = "") {
    kernels.push_back({name, op, FromOneDnn(kernel), with, finding});
  };
  add("matmul, empty too", "matmul", Matmul, CheckOptions(), "dies of SIGFPE where M = 0");
  add("matmul", "matmul", Matmul, strided);
  add("matmul, infinities and NaN", "matmul", Matmul, CheckOptions(strided).Values({true}));
  add("matmul of bf16", "matmul", Matmul, CheckOptions(options).Types({DType::kBF16}),
      "subnormal operands count as 0");
  add("matmul of three axes", kBatched, Matmul, CheckOptions(options).Where("B > 0"));
  add("matmul, gradients", GradientOf("matmul", {"a", "b"}, {"g_c", "a", "b"}), MatmulGradient,
      strided);
  add("matmul with sum", kMatmulSum, MatmulSum, strided,
      "the sum begins with c, and is rounded once");
  add("matmul with sum, within the bounds of one sum", kOneSum, MatmulSum, strided);
  add("matmul with bias", BiasOp(""), MatmulBias<algorithm::undef>, options);
  add("matmul with bias and relu", BiasOp("relu"), MatmulBias<algorithm::eltwise_relu>, options);
  add("matmul with bias and tanh", BiasOp("tanh"), MatmulBias<algorithm::eltwise_tanh>, options,
      "the approximation of tanh");
  add("matmul with bias and gelu_erf", BiasOp("gelu"), MatmulBias<algorithm::eltwise_gelu_erf>,
      options, "the approximation of erf");
}

// ---- Convolutions

struct Way {
  algorithm how = algorithm::convolution_direct;
  bool own_layouts = false;
};

// With groups, the weights have an axis for them before the others.
memory::desc WeightsDesc(const TensorView& w, int64_t groups) {
  if (groups == 1) return DescOf(w);
  TensorView grouped = w;
  grouped.shape[0] /= groups;
  grouped.shape.insert(grouped.shape.begin(), groups);
  grouped.strides.insert(grouped.strides.begin(), grouped.strides[0] * grouped.shape[1]);
  return DescOf(grouped);
}

// The common part of the three directions. oneDNN does not take empty tensors.
struct Convolution {
  Convolution(const KernelCall& k, Way way, const TensorView& x, const TensorView& w,
              const TensorView& y)
      : how(way.how), x_given(DescOf(x)), w_given(WeightsDesc(w, k.param("groups"))),
        y_given(DescOf(y)), x_desc(x_given), w_desc(w_given), y_desc(y_given),
        stride(2, k.param("stride")), pad(2, k.param("pad")), dilation(2, k.param("dilation") - 1) {
    if (!way.own_layouts) return;
    for (memory::desc* layout : {&x_desc, &w_desc, &y_desc}) *layout = AnyLayoutOf(*layout);
  }

  // It is also the hint from which the gradients are made.
  dnnl::convolution_forward::primitive_desc Forward(dnnl::prop_kind kind) const {
    return {dnnl::convolution_forward::desc(kind, how, x_desc, w_desc, y_desc, stride, dilation,
                                            pad, pad),
            OneDnnEngine()};
  }
  template <class Backward>
  typename Backward::primitive_desc Gradient() const {
    return {typename Backward::desc(how, x_desc, w_desc, y_desc, stride, dilation, pad, pad),
            OneDnnEngine(), Forward(dnnl::prop_kind::forward_training)};
  }

  algorithm how;
  memory::desc x_given, w_given, y_given, x_desc, w_desc, y_desc;
  memory::dims stride, pad, dilation;
};

Kernel ForwardKernel(Way way) {
  return FromOneDnn([way](const KernelCall& k) {
    const TensorView &x = k.view("x"), &w = k.view("w"), &y = k.view("y");
    const Convolution c(k, way, x, w, y);
    Execute<dnnl::convolution_forward>(c.Forward(dnnl::prop_kind::forward_inference),
                                       {{DNNL_ARG_SRC, c.x_given, &x},
                                        {DNNL_ARG_WEIGHTS, c.w_given, &w},
                                        {DNNL_ARG_DST, c.y_given, &y, true}});
  });
}

Kernel DataKernel(Way way) {
  using Backward = dnnl::convolution_backward_data;
  return FromOneDnn([way](const KernelCall& k) {
    const TensorView &g_x = k.view("g_x"), &w = k.view("w"), &g_y = k.view("g_y");
    const Convolution c(k, way, g_x, w, g_y);
    Execute<Backward>(c.Gradient<Backward>(), {{DNNL_ARG_DIFF_SRC, c.x_given, &g_x, true},
                                               {DNNL_ARG_WEIGHTS, c.w_given, &w},
                                               {DNNL_ARG_DIFF_DST, c.y_given, &g_y}});
  });
}

Kernel WeightsKernel(Way way) {
  using Backward = dnnl::convolution_backward_weights;
  return FromOneDnn([way](const KernelCall& k) {
    const TensorView &x = k.view("x"), &g_w = k.view("g_w"), &g_y = k.view("g_y");
    const Convolution c(k, way, x, g_w, g_y);
    Execute<Backward>(c.Gradient<Backward>(), {{DNNL_ARG_SRC, c.x_given, &x},
                                               {DNNL_ARG_DIFF_WEIGHTS, c.w_given, &g_w, true},
                                               {DNNL_ARG_DIFF_DST, c.y_given, &g_y}});
  });
}

void AddConvolutions(std::vector<PeerKernel>& kernels) {
  const Op by_data = GradientOf("conv2d", {"x"}, {"g_y", "w"});
  const Op by_weights = GradientOf("conv2d", {"w"}, {"g_y", "x"});
  const auto options = CheckOptions().Where("O % $groups == 0");
  for (const bool own : {false, true}) {
    const Way way{algorithm::convolution_direct, own};
    const std::string suffix = own ? ", own layouts" : "";
    kernels.push_back(
        {absl::StrCat("convolution_direct", suffix), "conv2d", ForwardKernel(way), options});
    kernels.push_back(
        {absl::StrCat("convolution_direct by data", suffix), by_data, DataKernel(way), options});
    kernels.push_back({absl::StrCat("convolution_direct by weights", suffix), by_weights,
                       WeightsKernel(way), options});
  }
  const auto winograd =
      CheckOptions().Where("R == 3", "S == 3", "$stride == 1", "$dilation == 1", "$groups == 1");
  kernels.push_back({"convolution_winograd", "conv2d",
                     ForwardKernel({algorithm::convolution_winograd, true}), winograd,
                     "transformed inputs round: errors of what is far from an output"});
}

}  // namespace

std::vector<PeerKernel> OneDnnContractions() {
  std::vector<PeerKernel> kernels;
  AddMatmuls(kernels);
  AddConvolutions(kernels);
  return kernels;
}

}  // namespace nestor
