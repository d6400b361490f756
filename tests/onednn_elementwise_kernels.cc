// Elementwise functions, and their gradients.
#include "absl/strings/str_cat.h"
#include "tests/onednn_kernels.h"
#include "tests/peer_kernels.h"

namespace nestor {
namespace {

using bench::OneDnnEngine;
using dnnl::algorithm;
using Forward = dnnl::eltwise_forward;
using Backward = dnnl::eltwise_backward;

struct Function {
  const char* name;
  algorithm how;
  const char* expression;  // of x[i]
  const char *finding, *backward_finding;
  // For a function that is found to be wrong: it is right within `ulps` on an interval.
  double ulps = 0, low = 0, high = 0;
  float alpha = 0;
};

Forward::primitive_desc ForwardOf(const Function& f, dnnl::prop_kind kind, const TensorView& x) {
  return {Forward::desc(kind, f.how, DescOf(x), f.alpha, 0), OneDnnEngine()};
}

Kernel ForwardKernel(const Function& f) {
  return FromOneDnn([f](const KernelCall& k) {
    Execute<Forward>(ForwardOf(f, dnnl::prop_kind::forward_inference, k.view("x")),
                     {InputOf(DNNL_ARG_SRC, k.view("x")), ResultOf(DNNL_ARG_DST, k.view("y"))});
  });
}

Kernel BackwardKernel(const Function& f) {
  return FromOneDnn([f](const KernelCall& k) {
    const TensorView &x = k.view("x"), &g_y = k.view("g_y"), &g_x = k.view("g_x");
    const auto forward = ForwardOf(f, dnnl::prop_kind::forward_training, x);
    const Backward::primitive_desc description(
        Backward::desc(f.how, DescOf(g_y), DescOf(x), f.alpha, 0), OneDnnEngine(), forward);
    Execute<Backward>(description, {InputOf(DNNL_ARG_SRC, x), InputOf(DNNL_ARG_DIFF_DST, g_y),
                                    ResultOf(DNNL_ARG_DIFF_SRC, g_x)});
  });
}

std::string NarrowName(const Function& f) {
  return absl::StrCat("eltwise_", f.name, ", in [", f.low, ", ", f.high, "] within ", f.ulps,
                      " ulps");
}

CheckOptions Narrow(const Function& f) {
  ValueOptions values;
  values.low = f.low;
  values.high = f.high;
  return CheckOptions().Values(values).Ulps(f.ulps);
}

}  // namespace

std::vector<PeerKernel> OneDnnElementwise() {
  constexpr char kExp[] = "the approximation of exp, and 0 for subnormal results";
  constexpr char kExpLog[] = "the approximations of exp and log",
                 kErf[] = "the approximation of erf";
  const Function functions[] = {
      {"relu", algorithm::eltwise_relu, "relu(x[i])", "", ""},
      {"tanh", algorithm::eltwise_tanh, "tanh(x[i])", "the approximation of tanh, seldom",
       "the approximation of tanh"},
      {"logistic", algorithm::eltwise_logistic, "sigmoid(x[i])", kExp, kExp, 8, -80, 80},
      {"exp", algorithm::eltwise_exp, "exp(x[i])", kExp, kExp, 8, -80, 80},
      {"log", algorithm::eltwise_log, "log(x[i])", "the approximation of log", "", 32, 4, 1e6},
      {"sqrt", algorithm::eltwise_sqrt, "sqrt(x[i])", "",
       "another order of rounding of subnormals"},
      {"soft_relu", algorithm::eltwise_soft_relu, "softplus(x[i])", kExpLog, kExp, 64, -3, 80},
      {"swish", algorithm::eltwise_swish, "silu(x[i])", kExp, kExp, 16, -80, 80, /*alpha=*/1},
      {"gelu_erf", algorithm::eltwise_gelu_erf, "gelu(x[i])", kErf, kErf, 16, -1, 8},
  };
  std::vector<PeerKernel> kernels;
  for (const Function& f : functions) {
    const std::string op =
        absl::StrCat("op apply_", f.name, "(x: f32[N]) -> (y) { y[i] = ", f.expression, " }");
    kernels.push_back({absl::StrCat("eltwise_", f.name), op, ForwardKernel(f), {}, f.finding});
    if (f.ulps > 0) kernels.push_back({NarrowName(f), op, ForwardKernel(f), Narrow(f)});
    kernels.push_back({absl::StrCat("eltwise_", f.name, ", backward"),
                       GradientOf(op, {"x"}, {"g_y", "x"}),
                       BackwardKernel(f),
                       {},
                       f.backward_finding});
  }
  return kernels;
}

}  // namespace nestor
