// A primitive is made once for its shapes, as oneDNN is meant to be used, and bound to the buffers;
// only its execution is timed. It takes the number of threads from OpenMP, both when it is made and
// when it runs.
#include "bench/onednn_primitive.h"

#include <memory>

namespace nestor::bench {

using dnnl::memory;

memory::desc CompactDescriptor(const memory::dims& shape) {
  memory::dims strides(shape.size(), 1);
  for (size_t axis = shape.size(); axis-- > 1;) strides[axis - 1] = strides[axis] * shape[axis];
  return memory::desc(shape, memory::data_type::f32, strides);
}

memory::desc DescriptorOf(const Tensor& tensor) {
  return CompactDescriptor(memory::dims(tensor.shape().begin(), tensor.shape().end()));
}

Peer PrimitivePeer(absl::string_view engine, const dnnl::primitive& primitive,
                   const dnnl::primitive_desc_base& description,
                   const std::vector<OneDnnOperand>& operands, Buffers& buffers) {
  std::vector<OneDnnArgument> arguments;
  for (const OneDnnOperand& operand : operands) {
    const memory given(operand.layout, OneDnnEngine(), buffers[operand.buffer].data());
    arguments.push_back({operand.argument, given, operand.result});
  }
  const auto call = std::make_shared<const OneDnnCall>(primitive, description, arguments);
  return Peer{std::string(engine), [call] { call->Run(); }, [call] { call->Deliver(); }};
}

}  // namespace nestor::bench
