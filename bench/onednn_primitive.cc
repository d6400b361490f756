// A primitive is made once for its shapes, as oneDNN means it to be used, and bound
// to the buffers; what is timed is its execution. It takes the number of threads
// from OpenMP, both when it is made and when it runs.
#include "bench/onednn_primitive.h"

#include <memory>
#include <utility>

namespace nestor::bench {
namespace {

using dnnl::memory;

using Arguments = std::unordered_map<int, memory>;

void Reorder(const memory& from, const memory& to) {
  dnnl::stream stream(OneDnnEngine());
  memory source = from, destination = to;
  dnnl::reorder(source, destination).execute(stream, source, destination);
  stream.wait();
}

// A result's way from the primitive's layout to the row's.
struct Delivery {
  memory from, to;
};

}  // namespace

const dnnl::engine& OneDnnEngine() {
  static const dnnl::engine& engine = *new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

memory::desc CompactDescriptor(const memory::dims& shape) {
  memory::dims strides(shape.size(), 1);
  for (size_t axis = shape.size(); axis-- > 1;) strides[axis - 1] = strides[axis] * shape[axis];
  return memory::desc(shape, memory::data_type::f32, strides);
}

memory::desc DescriptorOf(const Tensor& tensor) {
  return CompactDescriptor(memory::dims(tensor.shape().begin(), tensor.shape().end()));
}

Peer PrimitivePeer(absl::string_view engine, const dnnl::primitive& primitive,
                   const dnnl::primitive_desc_base& description, const std::vector<OneDnnOperand>& operands,
                   Buffers& buffers) {
  Arguments arguments;
  std::vector<Delivery> deliveries;
  for (const OneDnnOperand& operand : operands) {
    const memory given(operand.layout, OneDnnEngine(), buffers[operand.buffer].data());
    const memory::desc wanted = description.query_md(dnnl::query::exec_arg_md, operand.argument);
    const memory used = wanted == operand.layout ? given : memory(wanted, OneDnnEngine());
    arguments.insert({operand.argument, used});
    if (wanted == operand.layout) continue;
    if (operand.result) deliveries.push_back({used, given});
    if (!operand.result) Reorder(given, used);
  }
  const auto stream = std::make_shared<dnnl::stream>(OneDnnEngine());
  const auto run = [stream, primitive, arguments] {
    primitive.execute(*stream, arguments);
    stream->wait();
  };
  const auto deliver = [deliveries] {
    for (const Delivery& delivery : deliveries) Reorder(delivery.from, delivery.to);
  };
  return Peer{std::string(engine), run, deliver};
}

}  // namespace nestor::bench
