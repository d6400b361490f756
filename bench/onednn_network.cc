// Each primitive says which layouts it takes; where the one before it left another layout, a
// reorder between them is timed, too. In training, activations are kept, so that the addition of a
// bottleneck has memory of its own, and relu's gradient reads relu's result. An activation's
// adjoint is the first contribution to it, to which others are added.
#include "bench/onednn_network.h"

#include <dnnl.hpp>
#include <memory>
#include <unordered_map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "bench/onednn_contractions.h"
#include "bench/onednn_primitive.h"

namespace nestor::bench {
namespace {

using dnnl::memory;
using Arguments = std::unordered_map<int, memory>;

memory::desc Any(const memory::dims& shape) {
  return memory::desc(shape, memory::data_type::f32, memory::format_tag::any);
}
memory::desc Any(const memory& like) { return Any(like.get_desc().dims()); }
memory Make(const memory::desc& layout) { return memory(layout, OneDnnEngine()); }

// Primitives on memory, in order.
class Chain {
 public:
  void Add(const dnnl::primitive& primitive, Arguments arguments) {
    calls_.emplace_back(primitive, std::move(arguments));
  }
  // `given` in that layout: each run copies it, if it is in another one.
  memory In(const memory::desc& layout, const memory& given) {
    if (given.get_desc() == layout) return given;
    const memory other = Make(layout);
    Add(dnnl::reorder(given, other), {{DNNL_ARG_FROM, given}, {DNNL_ARG_TO, other}});
    return other;
  }
  void Run() const {
    dnnl::stream stream(OneDnnEngine());
    for (const auto& [primitive, arguments] : calls_) primitive.execute(stream, arguments);
    stream.wait();
  }

 private:
  std::vector<std::pair<dnnl::primitive, Arguments>> calls_;
};

using Forward = dnnl::convolution_forward;

// One layer of the forward pass, as the backward pass needs it.
struct Convolved {
  Forward::primitive_desc description;
  memory input, weights;  // as the convolution takes them
  memory result;          // after relu
};

memory::dims ResultShape(const memory::dims& x, const memory::dims& w, int64_t stride,
                         int64_t pad) {
  const auto extent = [&](int axis) { return (x[axis] + 2 * pad - w[axis]) / stride + 1; };
  return {x[0], w[0], extent(2), extent(3)};
}

// A network on a row's buffers.
class Network {
 public:
  Network(std::vector<ResidualLayer> layers, bool training, Buffers& buffers)
      : layers_(std::move(layers)), training_(training), buffers_(buffers) {
    for (size_t i = 0; i < layers_.size(); ++i) AddLayer(static_cast<int>(i));
    AddHead();
    if (training_) AddGradients();
  }

  void Run() const { chain_.Run(); }
  void Deliver() const { deliveries_.Run(); }

 private:
  dnnl::prop_kind Kind() const {
    return training_ ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference;
  }

  // ---- Memory ----

  memory Buffer(const std::string& name) {
    Tensor& tensor = buffers_[name];
    return memory(DescriptorOf(tensor), OneDnnEngine(), tensor.data());
  }
  // A parameter, copied to the layout now.
  memory Packed(const std::string& name, const memory::desc& layout) {
    Chain packing;
    const memory packed = packing.In(layout, Buffer(name));
    packing.Run();
    return packed;
  }
  // Memory of that layout whose values are copied to a result.
  memory Result(const std::string& name, const memory::desc& layout) {
    const memory buffer = Buffer(name);
    if (buffer.get_desc() == layout) return buffer;
    const memory result = Make(layout);
    deliveries_.Add(dnnl::reorder(result, buffer),
                    {{DNNL_ARG_FROM, result}, {DNNL_ARG_TO, buffer}});
    return result;
  }
  static std::string Name(absl::string_view prefix, int number) {
    return absl::StrCat(prefix, number);
  }

  // ---- Forward ----

  // Sum and relu are fused into the convolution where training does not need the value between.
  Forward::primitive_desc Describe(const ResidualLayer& layer, const memory& x,
                                   const memory::dims& w, const memory::desc& y) {
    const memory::dims strides = {layer.stride, layer.stride}, pads = {layer.pad(), layer.pad()};
    const memory::desc bias = Any(memory::dims{w[0]});
    const Forward::desc operation(Kind(), dnnl::algorithm::convolution_direct, Any(x), Any(w), bias,
                                  y, strides, pads, pads);
    dnnl::post_ops after;
    if (layer.addend >= 0 && !training_) after.append_sum();
    if (layer.relu && (layer.addend < 0 || !training_)) {
      after.append_eltwise(1, dnnl::algorithm::eltwise_relu, 0, 0);
    }
    dnnl::primitive_attr attributes;
    attributes.set_post_ops(after);
    return Forward::primitive_desc(operation, attributes, OneDnnEngine());
  }

  // In inference the addend's memory takes the sum, as post-ops add in place.
  void AddLayer(int number) {
    const ResidualLayer& layer = layers_[number];
    const memory x = layer.input < 0 ? Buffer("x") : activations_[layer.input];
    const memory::dims w = Buffer(Name("w", number)).get_desc().dims();
    const memory::dims shape = ResultShape(x.get_desc().dims(), w, layer.stride, layer.pad());
    const bool in_place = layer.addend >= 0 && !training_;
    const auto description =
        Describe(layer, x, w, in_place ? activations_[layer.addend].get_desc() : Any(shape));

    Convolved done{description,
                   chain_.In(description.src_desc(), x),
                   Packed(Name("w", number), description.weights_desc()),
                   {}};
    const memory bias = Packed(Name("b", number), description.bias_desc());
    done.result = in_place ? activations_[layer.addend] : Make(description.dst_desc());
    chain_.Add(Forward(description), {{DNNL_ARG_SRC, done.input},
                                      {DNNL_ARG_WEIGHTS, done.weights},
                                      {DNNL_ARG_BIAS, bias},
                                      {DNNL_ARG_DST, done.result}});
    if (layer.addend >= 0 && training_) AddAddend(layer, done.result);
    convolved_.push_back(done);
    activations_.push_back(number == 0 ? Pool(done.result) : done.result);
  }

  // value = relu(value + addend), one primitive.
  void AddAddend(const ResidualLayer& layer, const memory& value) {
    const memory addend = chain_.In(value.get_desc(), activations_[layer.addend]);
    const memory::desc layout = value.get_desc();
    dnnl::post_ops after;
    if (layer.relu) after.append_eltwise(1, dnnl::algorithm::eltwise_relu, 0, 0);
    dnnl::primitive_attr attributes;
    attributes.set_post_ops(after);
    const dnnl::binary::primitive_desc description(
        {dnnl::algorithm::binary_add, layout, layout, layout}, attributes, OneDnnEngine());
    chain_.Add(dnnl::binary(description),
               {{DNNL_ARG_SRC_0, value}, {DNNL_ARG_SRC_1, addend}, {DNNL_ARG_DST, value}});
  }

  memory Pool(const memory& x) {
    const memory::dims in = x.get_desc().dims();
    const memory::dims shape = {in[0], in[1], (in[2] - 1) / 2 + 1, (in[3] - 1) / 2 + 1};
    const memory::dims window = {3, 3}, strides = {2, 2}, pads = {1, 1};
    pool_ =
        dnnl::pooling_forward::primitive_desc({Kind(), dnnl::algorithm::pooling_max, x.get_desc(),
                                               Any(shape), strides, window, pads, pads},
                                              OneDnnEngine());
    const memory y = Make(pool_.dst_desc());
    Arguments arguments = {{DNNL_ARG_SRC, x}, {DNNL_ARG_DST, y}};
    if (training_) {
      places_ = Make(pool_.workspace_desc());
      arguments.insert({DNNL_ARG_WORKSPACE, places_});
    }
    chain_.Add(dnnl::pooling_forward(pool_), arguments);
    return y;
  }

  // The mean of each channel and the last layer, whose weights have additional axes of one element.
  void AddHead() {
    const memory x = activations_.back();
    const memory::dims in = x.get_desc().dims(), window = {in[2], in[3]}, ones = {1, 1},
                       zeros = {0, 0};
    mean_ = dnnl::pooling_forward::primitive_desc(
        {Kind(), dnnl::algorithm::pooling_avg_exclude_padding, x.get_desc(),
         Any(memory::dims{in[0], in[1], 1, 1}), ones, window, zeros, zeros},
        OneDnnEngine());
    const memory means = Make(mean_.dst_desc());
    chain_.Add(dnnl::pooling_forward(mean_), {{DNNL_ARG_SRC, x}, {DNNL_ARG_DST, means}});

    const memory y = Buffer("y");
    const memory::dims w = {y.get_desc().dims()[1], in[1], 1, 1};
    const memory::desc bias = Any(memory::dims{w[0]});
    last_ = dnnl::inner_product_forward::primitive_desc(
        {Kind(), Any(means), Any(w), bias, y.get_desc()}, OneDnnEngine());
    means_ = chain_.In(last_.src_desc(), means);
    last_weights_ = PackedLast(last_.weights_desc());
    chain_.Add(dnnl::inner_product_forward(last_),
               {{DNNL_ARG_SRC, means_},
                {DNNL_ARG_WEIGHTS, last_weights_},
                {DNNL_ARG_BIAS, Packed("b_last", last_.bias_desc())},
                {DNNL_ARG_DST, y}});
  }

  memory PackedLast(const memory::desc& layout) {
    Chain packing;
    const memory packed = packing.In(layout, BufferOfLast("w_last", layout.dims()));
    packing.Run();
    return packed;
  }
  memory BufferOfLast(const std::string& name, const memory::dims& shape) {
    return memory(CompactDescriptor(shape), OneDnnEngine(), buffers_[name].data());
  }

  // ---- Backward ----

  void AddGradients() {
    adjoints_.resize(layers_.size());
    shared_.resize(layers_.size());
    adjoints_.back() = HeadGradient();
    for (int number = static_cast<int>(layers_.size()) - 1; number >= 0; --number)
      AddLayerGradient(number);
  }

  memory HeadGradient() {
    const memory g_y = Buffer("g_y");
    using ByData = dnnl::inner_product_backward_data;
    using ByWeights = dnnl::inner_product_backward_weights;
    const ByWeights::primitive_desc weights(
        {Any(means_), Any(last_weights_), Any(last_.bias_desc().dims()), g_y.get_desc()},
        OneDnnEngine(), last_);
    const memory::dims shape = last_weights_.get_desc().dims();
    const memory g_w = Make(weights.diff_weights_desc()), buffer = BufferOfLast("g_w_last", shape);
    deliveries_.Add(dnnl::reorder(g_w, buffer), {{DNNL_ARG_FROM, g_w}, {DNNL_ARG_TO, buffer}});
    chain_.Add(ByWeights(weights),
               {{DNNL_ARG_SRC, chain_.In(weights.src_desc(), means_)},
                {DNNL_ARG_DIFF_DST, g_y},
                {DNNL_ARG_DIFF_WEIGHTS, g_w},
                {DNNL_ARG_DIFF_BIAS, Result("g_b_last", weights.diff_bias_desc())}});

    const ByData::primitive_desc data({Any(means_), Any(last_weights_), g_y.get_desc()},
                                      OneDnnEngine(), last_);
    const memory g_means = Make(data.diff_src_desc());
    chain_.Add(ByData(data), {{DNNL_ARG_WEIGHTS, chain_.In(data.weights_desc(), last_weights_)},
                              {DNNL_ARG_DIFF_DST, g_y},
                              {DNNL_ARG_DIFF_SRC, g_means}});
    return PoolGradient(mean_, dnnl::algorithm::pooling_avg_exclude_padding, g_means, nullptr);
  }

  // `places` says where the maxima were; the average needs none.
  memory PoolGradient(const dnnl::pooling_forward::primitive_desc& forward,
                      dnnl::algorithm algorithm, const memory& g_y, const memory* places) {
    const bool maximum = algorithm == dnnl::algorithm::pooling_max;
    const memory::dims in = forward.src_desc().dims();
    const memory::dims window = maximum ? memory::dims{3, 3} : memory::dims{in[2], in[3]};
    const memory::dims strides = maximum ? memory::dims{2, 2} : memory::dims{1, 1};
    const memory::dims pads = maximum ? memory::dims{1, 1} : memory::dims{0, 0};
    const dnnl::pooling_backward::primitive_desc description(
        {algorithm, forward.src_desc(), forward.dst_desc(), strides, window, pads, pads},
        OneDnnEngine(), forward);
    const memory g_x = Make(description.diff_src_desc());
    Arguments arguments = {{DNNL_ARG_DIFF_DST, chain_.In(description.diff_dst_desc(), g_y)},
                           {DNNL_ARG_DIFF_SRC, g_x}};
    if (places != nullptr) arguments.insert({DNNL_ARG_WORKSPACE, *places});
    chain_.Add(dnnl::pooling_backward(description), arguments);
    return g_x;
  }

  // From the adjoint of the layer's activation to the adjoints of its inputs and to the gradients.
  void AddLayerGradient(int number) {
    const ResidualLayer& layer = layers_[number];
    const Convolved& done = convolved_[number];
    memory g = adjoints_[number];
    if (number == 0) g = PoolGradient(pool_, dnnl::algorithm::pooling_max, g, &places_);
    if (layer.relu) g = ReluGradient(done.result, g, /*in_place=*/!shared_[number]);
    AddWeightsGradient(number, g);
    if (layer.input >= 0) Contribute(layer.input, DataGradient(layer, done, g), /*shared=*/false);
    if (layer.addend >= 0) Contribute(layer.addend, g, /*shared=*/true);
  }

  memory ReluGradient(const memory& y, const memory& g_y, bool in_place) {
    const memory::desc layout = y.get_desc();
    const auto algorithm = dnnl::algorithm::eltwise_relu_use_dst_for_bwd;
    const dnnl::eltwise_forward::primitive_desc hint(
        {dnnl::prop_kind::forward_training, algorithm, layout, 0}, OneDnnEngine());
    const dnnl::eltwise_backward::primitive_desc description({algorithm, layout, layout, 0},
                                                             OneDnnEngine(), hint);
    const memory g = chain_.In(layout, g_y), result = in_place ? g : Make(layout);
    chain_.Add(dnnl::eltwise_backward(description),
               {{DNNL_ARG_DST, y}, {DNNL_ARG_DIFF_DST, g}, {DNNL_ARG_DIFF_SRC, result}});
    return result;
  }

  void AddWeightsGradient(int number, const memory& g) {
    const ResidualLayer& layer = layers_[number];
    const Convolved& done = convolved_[number];
    const memory::dims strides = {layer.stride, layer.stride}, pads = {layer.pad(), layer.pad()};
    using ByWeights = dnnl::convolution_backward_weights;
    const ByWeights::primitive_desc description(
        {dnnl::algorithm::convolution_direct, Any(done.input), Any(done.weights),
         Any(done.description.bias_desc().dims()), Any(g), strides, pads, pads},
        OneDnnEngine(), done.description);
    chain_.Add(
        ByWeights(description),
        {{DNNL_ARG_SRC, chain_.In(description.src_desc(), done.input)},
         {DNNL_ARG_DIFF_DST, chain_.In(description.diff_dst_desc(), g)},
         {DNNL_ARG_DIFF_WEIGHTS, Result(Name("g_w", number), description.diff_weights_desc())},
         {DNNL_ARG_DIFF_BIAS, Result(Name("g_b", number), description.diff_bias_desc())}});
  }

  memory DataGradient(const ResidualLayer& layer, const Convolved& done, const memory& g) {
    const memory::dims strides = {layer.stride, layer.stride}, pads = {layer.pad(), layer.pad()};
    using ByData = dnnl::convolution_backward_data;
    const ByData::primitive_desc description({dnnl::algorithm::convolution_direct, Any(done.input),
                                              Any(done.weights), Any(g), strides, pads, pads},
                                             OneDnnEngine(), done.description);
    const memory g_x = Make(description.diff_src_desc());
    chain_.Add(ByData(description),
               {{DNNL_ARG_WEIGHTS, chain_.In(description.weights_desc(), done.weights)},
                {DNNL_ARG_DIFF_DST, chain_.In(description.diff_dst_desc(), g)},
                {DNNL_ARG_DIFF_SRC, g_x}});
    return g_x;
  }

  // `shared`: others read the contribution's memory later, so nothing may be added to it.
  void Contribute(int activation, const memory& contribution, bool shared) {
    memory& adjoint = adjoints_[activation];
    if (!adjoint) {
      adjoint = contribution;
      shared_[activation] = shared;
      return;
    }
    const memory::desc layout = adjoint.get_desc();
    const memory other = chain_.In(layout, contribution);
    const memory sum = shared_[activation] ? Make(layout) : adjoint;
    const dnnl::binary::primitive_desc description(
        {dnnl::algorithm::binary_add, layout, layout, layout}, OneDnnEngine());
    chain_.Add(dnnl::binary(description),
               {{DNNL_ARG_SRC_0, adjoint}, {DNNL_ARG_SRC_1, other}, {DNNL_ARG_DST, sum}});
    adjoint = sum;
    shared_[activation] = false;
  }

  const std::vector<ResidualLayer> layers_;
  const bool training_;
  Buffers& buffers_;
  Chain chain_, deliveries_;
  std::vector<Convolved> convolved_;
  std::vector<memory> activations_, adjoints_;
  std::vector<bool> shared_;
  dnnl::pooling_forward::primitive_desc pool_, mean_;
  dnnl::inner_product_forward::primitive_desc last_;
  memory places_, means_, last_weights_;
};

PeerMaker Maker(std::vector<ResidualLayer> layers, bool training) {
  return [=](Buffers& buffers, int) {
    return GuardedFromOneDnn([&] {
      const auto network = std::make_shared<const Network>(layers, training, buffers);
      return Peer{std::string(kOneDnnOwn), [network] { network->Run(); },
                  [network] { network->Deliver(); }};
    });
  };
}

}  // namespace

PeerMaker OneDnnResidualNetwork(std::vector<ResidualLayer> layers) {
  return Maker(std::move(layers), false);
}
PeerMaker OneDnnResidualNetworkStep(std::vector<ResidualLayer> layers) {
  return Maker(std::move(layers), true);
}

}  // namespace nestor::bench
