// A descriptor of "any" layout lets oneDNN choose one, with blocks of channels innermost
// for a convolution; the primitive tells which one it chose (bench/onednn_primitive.h).
#include "bench/onednn_contractions.h"

#include <dnnl.hpp>
#include <utility>

#include "bench/onednn_peers.h"
#include "bench/onednn_primitive.h"

namespace nestor::bench {
namespace {

using dnnl::memory;

memory::desc AnyLayout(const memory::desc& layout) {
  return memory::desc(layout.dims(), layout.data_type(), memory::format_tag::any);
}

// ---- Matrix products ----

struct Product {
  memory::desc a, b, c;
};

Product ProductOf(Buffers& buffers) {
  return {DescriptorOf(buffers["a"]), DescriptorOf(buffers["b"]), DescriptorOf(buffers["c"])};
}

std::vector<OneDnnOperand> OperandsOf(const Product& product) {
  return {{DNNL_ARG_SRC, "a", product.a},
          {DNNL_ARG_WEIGHTS, "b", product.b},
          {DNNL_ARG_DST, "c", product.c, /*result=*/true}};
}

Peer MatmulPeer(absl::string_view engine, const Product& product, const memory::desc& weights,
                Buffers& buffers) {
  const dnnl::matmul::primitive_desc description({product.a, weights, product.c}, OneDnnEngine());
  return PrimitivePeer(engine, dnnl::matmul(description), description, OperandsOf(product),
                       buffers);
}

absl::StatusOr<Peer> PlainMatmul(Buffers& buffers, int) {
  return GuardedFromOneDnn([&] {
    const Product product = ProductOf(buffers);
    return MatmulPeer(kOneDnn, product, product.b, buffers);
  });
}

absl::StatusOr<Peer> OwnMatmul(Buffers& buffers, int) {
  return GuardedFromOneDnn([&] {
    const Product product = ProductOf(buffers);
    return MatmulPeer(kOneDnnOwn, product, AnyLayout(product.b), buffers);
  });
}

// Its weights are b transposed, which is a matter of strides.
absl::StatusOr<Peer> OwnInnerProduct(Buffers& buffers, int) {
  return GuardedFromOneDnn([&] {
    Product product = ProductOf(buffers);
    product.b = product.b.permute_axes({1, 0});
    const dnnl::inner_product_forward::desc operation(dnnl::prop_kind::forward_inference, product.a,
                                                      AnyLayout(product.b), product.c);
    const dnnl::inner_product_forward::primitive_desc description(operation, OneDnnEngine());
    return PrimitivePeer(kOneDnnOwn, dnnl::inner_product_forward(description), description,
                         OperandsOf(product), buffers);
  });
}

// ---- Convolutions ----

// The layouts of data, weights and result, and also of their gradients.
struct Convolution {
  memory::desc x, w, y;
  memory::dims strides, pads;
};

// With groups, the weights have an axis for them before the others.
memory::desc WeightsDescriptor(const Tensor& w, int64_t groups) {
  memory::dims shape(w.shape().begin(), w.shape().end());
  if (groups == 1) return CompactDescriptor(shape);
  shape[0] /= groups;
  shape.insert(shape.begin(), groups);
  return CompactDescriptor(shape);
}

constexpr auto kDirect = dnnl::algorithm::convolution_direct;

using Forward = dnnl::convolution_forward;

// It is also the hint from which the gradients are made.
Forward::primitive_desc ForwardDescription(const Convolution& c, dnnl::prop_kind kind) {
  return Forward::primitive_desc(
      Forward::desc(kind, kDirect, c.x, c.w, c.y, c.strides, c.pads, c.pads), OneDnnEngine());
}

Peer ForwardPeer(absl::string_view engine, const Convolution& asked,
                 const std::vector<OneDnnOperand>& operands, Buffers& buffers) {
  const auto description = ForwardDescription(asked, dnnl::prop_kind::forward_inference);
  return PrimitivePeer(engine, Forward(description), description, operands, buffers);
}

template <class Gradient>
Peer GradientPeer(absl::string_view engine, const Convolution& asked,
                  const std::vector<OneDnnOperand>& operands, Buffers& buffers) {
  const typename Gradient::desc operation(kDirect, asked.x, asked.w, asked.y, asked.strides,
                                          asked.pads, asked.pads);
  const typename Gradient::primitive_desc description(
      operation, OneDnnEngine(), ForwardDescription(asked, dnnl::prop_kind::forward_training));
  return PrimitivePeer(engine, Gradient(description), description, operands, buffers);
}

// A kind of convolution, with oneDNN's and the rows' names of its operands and result.
struct Kind {
  OneDnnOperand x, w, y;
  Peer (*make)(absl::string_view engine, const Convolution& asked,
               const std::vector<OneDnnOperand>& operands, Buffers& buffers);
};

Kind KindOf(ConvolutionResult result) {
  switch (result) {
    case ConvolutionResult::kForward:
      return {{DNNL_ARG_SRC, "x"},
              {DNNL_ARG_WEIGHTS, "w"},
              {DNNL_ARG_DST, "y", {}, /*result=*/true},
              ForwardPeer};
    case ConvolutionResult::kByData:
      return {{DNNL_ARG_DIFF_SRC, "g_x", {}, /*result=*/true},
              {DNNL_ARG_WEIGHTS, "w"},
              {DNNL_ARG_DIFF_DST, "g_y"},
              GradientPeer<dnnl::convolution_backward_data>};
    case ConvolutionResult::kByWeights:
      return {{DNNL_ARG_SRC, "x"},
              {DNNL_ARG_DIFF_WEIGHTS, "g_w", {}, /*result=*/true},
              {DNNL_ARG_DIFF_DST, "g_y"},
              GradientPeer<dnnl::convolution_backward_weights>};
  }
  __builtin_unreachable();
}

// The descriptor of images, with axes in oneDNN's order, whatever their strides.
memory::desc ImagesDescriptor(const Tensor& images, bool channels_last) {
  const memory::desc layout = DescriptorOf(images);
  return channels_last ? layout.permute_axes({0, 2, 3, 1}) : layout;
}

// Gives the operands the layouts of their buffers.
Convolution ConvolutionOf(ConvolutionStep step, Kind& kind, Buffers& buffers) {
  const Tensor& w = buffers[kind.w.buffer];
  kind.x.layout = ImagesDescriptor(buffers[kind.x.buffer], step.channels_last);
  kind.w.layout = WeightsDescriptor(w, /*groups=*/kind.x.layout.dims()[1] / w.shape()[1]);
  kind.y.layout = ImagesDescriptor(buffers[kind.y.buffer], step.channels_last);
  return {kind.x.layout,
          kind.w.layout,
          kind.y.layout,
          {step.stride, step.stride},
          {step.pad, step.pad}};
}

// With layouts of its own, oneDNN need not reorder in each call: it is the harder peer.
PeerMaker ConvolutionMaker(ConvolutionResult result, ConvolutionStep step, bool own_layouts) {
  return [=](Buffers& buffers, int) {
    return GuardedFromOneDnn([&] {
      Kind kind = KindOf(result);
      Convolution asked = ConvolutionOf(step, kind, buffers);
      if (own_layouts) {
        for (memory::desc* layout : {&asked.x, &asked.w, &asked.y}) *layout = AnyLayout(*layout);
      }
      return kind.make(own_layouts ? kOneDnnOwn : kOneDnn, asked, {kind.x, kind.w, kind.y},
                       buffers);
    });
  };
}

}  // namespace

std::vector<PeerMaker> OneDnnProducts() { return {PlainMatmul, OwnMatmul, OwnInnerProduct}; }

std::vector<PeerMaker> OneDnnConvolutions(ConvolutionResult result, ConvolutionStep step) {
  return {ConvolutionMaker(result, step, /*own_layouts=*/false),
          ConvolutionMaker(result, step, /*own_layouts=*/true)};
}

}  // namespace nestor::bench
