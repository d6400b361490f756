// Each peer is one primitive on the buffers as they are.
#include "bench/onednn_peers.h"

#include <dnnl.hpp>

#include "bench/onednn_primitive.h"

namespace nestor::bench {
namespace {

std::vector<OneDnnOperand> FromXToY(Buffers& buffers) {
  return {{DNNL_ARG_SRC, "x", DescriptorOf(buffers["x"])},
          {DNNL_ARG_DST, "y", DescriptorOf(buffers["y"]), /*result=*/true}};
}

// Makes a peer from the operation's description.
template <class Primitive>
Peer PeerOf(const typename Primitive::desc& operation, const std::vector<OneDnnOperand>& operands,
            Buffers& buffers) {
  const typename Primitive::primitive_desc description(operation, OneDnnEngine());
  return PrimitivePeer(kOneDnn, Primitive(description), description, operands, buffers);
}

}  // namespace

absl::StatusOr<Peer> OneDnnSoftmax(Buffers& buffers, int) {
  return GuardedFromOneDnn([&] {
    const dnnl::softmax_forward::desc operation(dnnl::prop_kind::forward_inference,
                                                DescriptorOf(buffers["x"]), 1);
    return PeerOf<dnnl::softmax_forward>(operation, FromXToY(buffers), buffers);
  });
}

absl::StatusOr<Peer> OneDnnGelu(Buffers& buffers, int) {
  return GuardedFromOneDnn([&] {
    const dnnl::eltwise_forward::desc operation(dnnl::prop_kind::forward_inference,
                                                dnnl::algorithm::eltwise_gelu_erf,
                                                DescriptorOf(buffers["x"]));
    return PeerOf<dnnl::eltwise_forward>(operation, FromXToY(buffers), buffers);
  });
}

absl::StatusOr<Peer> OneDnnLayerNorm(Buffers& buffers, int) {
  return GuardedFromOneDnn([&] {
    const auto flags = dnnl::normalization_flags::use_scale | dnnl::normalization_flags::use_shift;
    const dnnl::layer_normalization_forward::desc operation(
        dnnl::prop_kind::forward_inference, DescriptorOf(buffers["x"]), 1e-5f, flags);
    std::vector<OneDnnOperand> operands = FromXToY(buffers);
    operands.push_back({DNNL_ARG_SCALE, "scale", DescriptorOf(buffers["scale"])});
    operands.push_back({DNNL_ARG_SHIFT, "bias", DescriptorOf(buffers["bias"])});
    return PeerOf<dnnl::layer_normalization_forward>(operation, operands, buffers);
  });
}

}  // namespace nestor::bench
