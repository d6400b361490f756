// A descriptor of "any" layout lets oneDNN choose one, with blocks of channels innermost
// for a convolution; what it chose is asked of the primitive (bench/onednn_primitive.h).
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

Peer MatmulPeer(absl::string_view engine, const Product& product, const memory::desc& weights, Buffers& buffers) {
  const dnnl::matmul::primitive_desc description({product.a, weights, product.c}, OneDnnEngine());
  return PrimitivePeer(engine, dnnl::matmul(description), description, OperandsOf(product), buffers);
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
    return PrimitivePeer(kOneDnnOwn, dnnl::inner_product_forward(description), description, OperandsOf(product),
                         buffers);
  });
}

// ---- Convolutions ----

// The layouts of data, weights and result, of their gradients alike.
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

// The buffers that a convolution of this kind reads and writes.
struct Names {
  const char *x, *w, *y;
};
Names NamesFor(ConvolutionResult result) {
  switch (result) {
    case ConvolutionResult::kForward: return {"x", "w", "y"};
    case ConvolutionResult::kByData: return {"g_x", "w", "g_y"};
    case ConvolutionResult::kByWeights: return {"x", "g_w", "g_y"};
  }
  __builtin_unreachable();
}

Convolution ConvolutionOf(const Names& names, ConvolutionStep step, Buffers& buffers) {
  const int64_t groups = buffers[names.x].shape()[1] / buffers[names.w].shape()[1];
  return {DescriptorOf(buffers[names.x]), WeightsDescriptor(buffers[names.w], groups), DescriptorOf(buffers[names.y]),
          {step.stride, step.stride}, {step.pad, step.pad}};
}

constexpr auto kDirect = dnnl::algorithm::convolution_direct;

using Forward = dnnl::convolution_forward;
using ByData = dnnl::convolution_backward_data;
using ByWeights = dnnl::convolution_backward_weights;

// Also the hint from which the gradients are made.
Forward::primitive_desc ForwardDescription(const Convolution& c, dnnl::prop_kind kind) {
  return Forward::primitive_desc(Forward::desc(kind, kDirect, c.x, c.w, c.y, c.strides, c.pads, c.pads),
                                 OneDnnEngine());
}

Peer ForwardPeer(absl::string_view engine, const Convolution& asked, const Convolution& layouts, const Names& names,
                 Buffers& buffers) {
  const auto description = ForwardDescription(asked, dnnl::prop_kind::forward_inference);
  return PrimitivePeer(engine, Forward(description), description,
                       {{DNNL_ARG_SRC, names.x, layouts.x},
                        {DNNL_ARG_WEIGHTS, names.w, layouts.w},
                        {DNNL_ARG_DST, names.y, layouts.y, /*result=*/true}},
                       buffers);
}

Peer ByDataPeer(absl::string_view engine, const Convolution& asked, const Convolution& layouts, const Names& names,
                Buffers& buffers) {
  const ByData::desc operation(kDirect, asked.x, asked.w, asked.y, asked.strides, asked.pads, asked.pads);
  const ByData::primitive_desc description(operation, OneDnnEngine(),
                                           ForwardDescription(asked, dnnl::prop_kind::forward_training));
  return PrimitivePeer(engine, ByData(description), description,
                       {{DNNL_ARG_DIFF_SRC, names.x, layouts.x, /*result=*/true},
                        {DNNL_ARG_WEIGHTS, names.w, layouts.w},
                        {DNNL_ARG_DIFF_DST, names.y, layouts.y}},
                       buffers);
}

Peer ByWeightsPeer(absl::string_view engine, const Convolution& asked, const Convolution& layouts, const Names& names,
                   Buffers& buffers) {
  const ByWeights::desc operation(kDirect, asked.x, asked.w, asked.y, asked.strides, asked.pads, asked.pads);
  const ByWeights::primitive_desc description(operation, OneDnnEngine(),
                                              ForwardDescription(asked, dnnl::prop_kind::forward_training));
  return PrimitivePeer(engine, ByWeights(description), description,
                       {{DNNL_ARG_SRC, names.x, layouts.x},
                        {DNNL_ARG_DIFF_WEIGHTS, names.w, layouts.w, /*result=*/true},
                        {DNNL_ARG_DIFF_DST, names.y, layouts.y}},
                       buffers);
}

PeerMaker ConvolutionMaker(ConvolutionResult result, ConvolutionStep step, bool own_layouts) {
  return [=](Buffers& buffers, int) {
    return GuardedFromOneDnn([&] {
      const Names names = NamesFor(result);
      const Convolution layouts = ConvolutionOf(names, step, buffers);
      Convolution asked = layouts;
      if (own_layouts) {
        for (memory::desc* layout : {&asked.x, &asked.w, &asked.y}) *layout = AnyLayout(*layout);
      }
      const auto make = result == ConvolutionResult::kForward  ? ForwardPeer
                        : result == ConvolutionResult::kByData ? ByDataPeer
                                                               : ByWeightsPeer;
      return make(own_layouts ? kOneDnnOwn : kOneDnn, asked, layouts, names, buffers);
    });
  };
}

}  // namespace

std::vector<PeerMaker> OneDnnProducts() { return {PlainMatmul, OwnMatmul, OwnInnerProduct}; }

std::vector<PeerMaker> OneDnnConvolutions(ConvolutionResult result, ConvolutionStep step) {
  return {ConvolutionMaker(result, step, /*own_layouts=*/false), ConvolutionMaker(result, step, /*own_layouts=*/true)};
}

}  // namespace nestor::bench
