// oneDNN describes memory by type, sizes and strides, as a view does, so views are wrapped
// and not copied.
#include "tests/onednn_kernels.h"

#include <stdexcept>

#include "tests/peer_kernels.h"

namespace nestor {
namespace {

dnnl::memory::data_type TypeOf(DType type) {
  switch (type) {
    case DType::kF32: return dnnl::memory::data_type::f32;
    case DType::kBF16: return dnnl::memory::data_type::bf16;
    default: throw std::invalid_argument("no type of these kernels");
  }
}

}  // namespace

dnnl::memory::desc DescOf(const TensorView& view) {
  const dnnl::memory::dims shape(view.shape.begin(), view.shape.end());
  return {shape, TypeOf(view.type), dnnl::memory::dims(view.strides.begin(), view.strides.end())};
}

dnnl::memory::desc AnyLayoutOf(const dnnl::memory::desc& layout) {
  return {layout.dims(), layout.data_type(), dnnl::memory::format_tag::any};
}

std::vector<PeerKernel> OneDnnKernels() {
  std::vector<PeerKernel> all;
  for (const auto& kernels :
       {OneDnnContractions(), OneDnnRows(), OneDnnPoolings(), OneDnnElementwise()}) {
    all.insert(all.end(), kernels.begin(), kernels.end());
  }
  return all;
}

}  // namespace nestor
