// A primitive is made once for its shapes, as oneDNN means it to be used, and bound
// to the buffers; what is timed is its execution. It takes the number of threads
// from OpenMP, both when it is made and when it runs.
#include "bench/onednn_peers.h"

#include <dnnl.hpp>
#include <memory>
#include <unordered_map>

#include "absl/strings/str_cat.h"

namespace nestor::bench {
namespace {

using dnnl::memory;

const dnnl::engine& Engine() {
  static const dnnl::engine& engine = *new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

memory::desc DescriptorOf(const Tensor& tensor) {
  const memory::dims shape(tensor.shape().begin(), tensor.shape().end());
  const memory::format_tag rows = tensor.rank() == 1 ? memory::format_tag::a : memory::format_tag::ab;
  return memory::desc(shape, memory::data_type::f32, rows);
}

memory MemoryOf(Tensor& tensor) { return memory(DescriptorOf(tensor), Engine(), tensor.data()); }

using Arguments = std::unordered_map<int, memory>;

Peer PeerOf(const dnnl::primitive& primitive, Arguments arguments) {
  const auto stream = std::make_shared<dnnl::stream>(Engine());
  const auto run = [stream, primitive, arguments = std::move(arguments)] {
    primitive.execute(*stream, arguments);
    stream->wait();
  };
  return Peer{std::string(kOneDnn), run, nullptr};
}

// oneDNN reports by exceptions, which end here.
template <class Make>
absl::StatusOr<Peer> Guarded(const Make& make) {
  try {
    return make();
  } catch (const dnnl::error& error) {
    return absl::InternalError(absl::StrCat("oneDNN: ", error.what()));
  }
}

Arguments FromXToY(Buffers& buffers) {
  return {{DNNL_ARG_SRC, MemoryOf(buffers["x"])}, {DNNL_ARG_DST, MemoryOf(buffers["y"])}};
}

}  // namespace

absl::StatusOr<Peer> OneDnnSoftmax(Buffers& buffers, int) {
  return Guarded([&] {
    const dnnl::softmax_forward::desc description(dnnl::prop_kind::forward_inference, DescriptorOf(buffers["x"]), 1);
    return PeerOf(dnnl::softmax_forward({description, Engine()}), FromXToY(buffers));
  });
}

absl::StatusOr<Peer> OneDnnGelu(Buffers& buffers, int) {
  return Guarded([&] {
    const dnnl::eltwise_forward::desc description(dnnl::prop_kind::forward_inference,
                                                  dnnl::algorithm::eltwise_gelu_erf, DescriptorOf(buffers["x"]));
    return PeerOf(dnnl::eltwise_forward({description, Engine()}), FromXToY(buffers));
  });
}

absl::StatusOr<Peer> OneDnnLayerNorm(Buffers& buffers, int) {
  return Guarded([&] {
    const auto flags = dnnl::normalization_flags::use_scale | dnnl::normalization_flags::use_shift;
    const dnnl::layer_normalization_forward::desc description(dnnl::prop_kind::forward_inference,
                                                              DescriptorOf(buffers["x"]), 1e-5f, flags);
    Arguments arguments = FromXToY(buffers);
    arguments.insert({DNNL_ARG_SCALE, MemoryOf(buffers["scale"])});
    arguments.insert({DNNL_ARG_SHIFT, MemoryOf(buffers["bias"])});
    return PeerOf(dnnl::layer_normalization_forward({description, Engine()}), std::move(arguments));
  });
}

}  // namespace nestor::bench
