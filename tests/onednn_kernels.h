// The common part of the kernels of oneDNN: views as its memory, and its errors as Statuses.
#ifndef NESTOR_TESTS_ONEDNN_KERNELS_H_
#define NESTOR_TESTS_ONEDNN_KERNELS_H_

#include <dnnl.hpp>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "bench/onednn_call.h"
#include "check/kernel_call.h"

namespace nestor {

// An argument of a primitive, and the op's tensor that it is.
struct OneDnnTensor {
  int argument;  // DNNL_ARG_..
  dnnl::memory::desc layout;
  const TensorView* view;
  bool result = false;
};

// A descriptor of the view's type, shape and strides.
dnnl::memory::desc DescOf(const TensorView& view);
// The same shape, in whatever layout oneDNN prefers.
dnnl::memory::desc AnyLayoutOf(const dnnl::memory::desc& layout);

inline OneDnnTensor InputOf(int argument, const TensorView& view) {
  return {argument, DescOf(view), &view};
}
inline OneDnnTensor ResultOf(int argument, const TensorView& view) {
  return {argument, DescOf(view), &view, true};
}

// Runs the primitive of `description` on the tensors; `others` is memory of its own, such as a
// workspace. Throws dnnl::error.
template <class Primitive>
void Execute(const typename Primitive::primitive_desc& description,
             const std::vector<OneDnnTensor>& tensors,
             const std::vector<bench::OneDnnArgument>& others = {}) {
  std::vector<bench::OneDnnArgument> arguments = others;
  for (const OneDnnTensor& tensor : tensors) {
    arguments.push_back({tensor.argument,
                         dnnl::memory(tensor.layout, bench::OneDnnEngine(), tensor.view->data),
                         tensor.result});
  }
  const bench::OneDnnCall call(Primitive(description), description, arguments);
  call.Run();
  call.Deliver();
}

// `body` as a kernel: Unimplemented where oneDNN says so, or says that the sizes are invalid.
template <class Body>
Kernel FromOneDnn(Body body) {
  return [body](const KernelCall& call) {
    try {
      body(call);
      return absl::OkStatus();
    } catch (const dnnl::error& error) {
      const bool declines =
          error.status == dnnl_unimplemented || error.status == dnnl_invalid_arguments;
      return absl::Status(declines ? absl::StatusCode::kUnimplemented : absl::StatusCode::kInternal,
                          error.what());
    }
  };
}

}  // namespace nestor

#endif  // NESTOR_TESTS_ONEDNN_KERNELS_H_
