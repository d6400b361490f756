// window.nestor.
#include "tests/naive_windows_of.h"

namespace nestor {
namespace {

using namespace naive;

NaiveTensors Windows(const NaiveCall& call) {
  const NaiveTensor& x = call["x"];
  const Sliding sliding = {{call.Integer("length")}, call.Integer("step")};
  const Place leading = First(x.shape, x.shape.size() - 1);
  return Y(Generate(Joined(Joined(leading, sliding.Places({x.shape.back()})), sliding.window),
                    [&](const Place& p) {
                      return At(x, Joined(First(p, leading.size()),
                                          sliding.Source({p[leading.size()]}, {p.back()})));
                    }));
}

Sliding SlidingOf(const NaiveCall& call) {
  return {{call.Integer("rows"), call.Integer("columns")},
          call.Integer("stride"),
          call.Integer("pad"),
          call.Integer("dilation")};
}

// Visits each element of each window of planes of `extents`: its column, its place in y, and
// where it lies.
void ForEachColumn(const Sliding& sliding, int64_t batch, int64_t channels, const Place& extents,
                   const std::function<void(const Place& column, const Place& source)>& visit) {
  const Place places = sliding.Places(extents);
  ForEach({batch, channels, sliding.window[0], sliding.window[1], places[0], places[1]},
          [&](const Place& p) {
            const Place column = {p[0],
                                  (p[1] * sliding.window[0] + p[2]) * sliding.window[1] + p[3],
                                  p[4] * places[1] + p[5]};
            visit(column, Joined(First(p, 2), sliding.Source({p[4], p[5]}, {p[2], p[3]})));
          });
}

NaiveTensors Unfold(const NaiveCall& call) {
  const NaiveTensor& x = call["x"];
  const Sliding sliding = SlidingOf(call);
  const Place extents = Behind(x.shape, 2);
  NaiveTensor y = Filled(
      {x.shape[0], x.shape[1] * Elements(sliding.window), Elements(sliding.Places(extents))}, 0);
  ForEachColumn(
      sliding, x.shape[0], x.shape[1], extents,
      [&](const Place& column, const Place& source) { Element(y, column) = At(x, source); });
  return Y(y);
}

NaiveTensors Fold(const NaiveCall& call) {
  const NaiveTensor& x = call["x"];
  const Sliding sliding = SlidingOf(call);
  const int64_t channels = x.shape[1] / Elements(sliding.window);
  NaiveTensor y = Filled({x.shape[0], channels, call.Integer("height"), call.Integer("width")}, 0);
  ForEachColumn(sliding, x.shape[0], channels, Behind(y.shape, 2),
                [&](const Place& column, const Place& source) {
                  if (Inside(y.shape, source)) Element(y, source) += At(x, column);
                });
  return Y(y);
}

// The elements of x in the order of a view: x reshaped to `view`, its axes permuted, then reshaped
// to `shape`, as PyTorch and ONNX define these.
NaiveTensors Permuted(const NaiveTensor& x, const Place& view, const std::vector<int>& axes,
                      const Place& shape) {
  const NaiveTensor viewed = {view, x.data};
  Place extents;
  for (int axis : axes) extents.push_back(view[axis]);
  const NaiveTensor moved = Generate(extents, [&](const Place& p) {
    Place source(p.size());
    for (size_t i = 0; i < axes.size(); ++i) source[axes[i]] = p[i];
    return At(viewed, source);
  });
  return Y({shape, moved.data});
}

NaiveTensors DepthToSpace(const NaiveCall& call) {
  const Place& d = call["x"].shape;
  const int64_t b = call.Integer("block"), c = d[1] / (b * b);
  return Permuted(call["x"], {d[0], b, b, c, d[2], d[3]}, {0, 3, 4, 1, 5, 2},
                  {d[0], c, d[2] * b, d[3] * b});
}

NaiveTensors SpaceToDepth(const NaiveCall& call) {
  const Place& d = call["x"].shape;
  const int64_t b = call.Integer("block"), h = d[2] / b, w = d[3] / b;
  return Permuted(call["x"], {d[0], d[1], h, b, w, b}, {0, 3, 5, 1, 2, 4},
                  {d[0], d[1] * b * b, h, w});
}

NaiveTensors PixelShuffle(const NaiveCall& call) {
  const Place& d = call["x"].shape;
  const int64_t b = call.Integer("block"), c = d[1] / (b * b);
  return Permuted(call["x"], {d[0], c, b, b, d[2], d[3]}, {0, 1, 4, 2, 5, 3},
                  {d[0], c, d[2] * b, d[3] * b});
}

NaiveTensors PixelUnshuffle(const NaiveCall& call) {
  const Place& d = call["x"].shape;
  const int64_t b = call.Integer("block"), h = d[2] / b, w = d[3] / b;
  return Permuted(call["x"], {d[0], d[1], h, b, w, b}, {0, 1, 3, 5, 2, 4},
                  {d[0], d[1] * b * b, h, w});
}

NaiveTensors ChannelShuffle(const NaiveCall& call) {
  const Place& d = call["x"].shape;
  const int64_t groups = call.Integer("groups"), rest = Elements(Behind(d, 2));
  return Permuted(call["x"], {d[0], groups, d[1] / groups, rest}, {0, 2, 1, 3}, d);
}

}  // namespace

NaiveTable NaiveWindows() {
  return {
      {"windows", Windows},
      {"unfold", Unfold},
      {"fold", Fold},
      {"depth_to_space", DepthToSpace},
      {"space_to_depth", SpaceToDepth},
      {"pixel_shuffle", PixelShuffle},
      {"pixel_unshuffle", PixelUnshuffle},
      {"channel_shuffle", ChannelShuffle},
  };
}

}  // namespace nestor
