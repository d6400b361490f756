// conv.nestor. Each group of filters sees its own consecutive group of channels, as in Caffe.
#include "tests/naive_windows_of.h"

namespace nestor {
namespace {

using namespace naive;

Sliding SlidingOf(const NaiveCall& call, const Place& window) {
  return {window, call.Integer("stride"), call.Integer("pad"), call.Integer("dilation")};
}

NaiveTensors Conv(const NaiveCall& call) {
  const NaiveTensor &x = call["x"], &w = call["w"];
  const Sliding sliding = SlidingOf(call, Behind(w.shape, 2));
  const int64_t filters_per_group = w.shape[0] / call.Integer("groups");
  const Place shape = Joined({x.shape[0], w.shape[0]}, sliding.Places(Behind(x.shape, 2)));
  return Y(Generate(shape, [&](const Place& p) {
    return Sum(Behind(w.shape, 1), [&](const Place& inner) {
      const int64_t channel = p[1] / filters_per_group * w.shape[1] + inner[0];
      return At(w, Joined({p[1]}, inner)) *
             At(x, Joined({p[0], channel}, sliding.Source(Behind(p, 2), Behind(inner, 1))));
    });
  }));
}

NaiveTensors Depthwise(const NaiveCall& call) {
  const NaiveTensor &x = call["x"], &w = call["w"];
  const Sliding sliding = SlidingOf(call, Behind(w.shape, 1));
  return Y(
      Generate(Joined(First(x.shape, 2), sliding.Places(Behind(x.shape, 2))), [&](const Place& p) {
        return Sum(sliding.window, [&](const Place& inner) {
          return At(w, Joined({p[1]}, inner)) *
                 At(x, Joined(First(p, 2), sliding.Source(Behind(p, 2), inner)));
        });
      }));
}

// Each element of x stamps its filter into y.
NaiveTensors ConvTranspose(const NaiveCall& call) {
  const NaiveTensor &x = call["x"], &w = call["w"];
  const Sliding sliding = SlidingOf(call, Behind(w.shape, 2));
  const int64_t groups = call.Integer("groups"), per_group = x.shape[1] / groups;
  Place shape = {x.shape[0], w.shape[1] * groups};
  for (size_t axis = 0; axis < sliding.window.size(); ++axis) {
    shape.push_back((x.shape[axis + 2] - 1) * sliding.stride - 2 * sliding.pad +
                    sliding.dilation * (sliding.window[axis] - 1) + call.Integer("output_pad") + 1);
  }
  NaiveTensor y = Filled(shape, 0);
  ForEach(x.shape, [&](const Place& from) {
    ForEach(Behind(w.shape, 1), [&](const Place& inner) {
      const int64_t filter = from[1] / per_group * w.shape[1] + inner[0];
      const Place to = Joined({from[0], filter}, sliding.Source(Behind(from, 2), Behind(inner, 1)));
      if (Inside(shape, to)) Element(y, to) += At(x, from) * At(w, Joined({from[1]}, inner));
    });
  });
  return Y(y);
}

}  // namespace

NaiveTable NaiveConvolutions() {
  return {
      {"conv1d", Conv},
      {"conv2d", Conv},
      {"conv3d", Conv},
      {"depthwise_conv2d", Depthwise},
      {"conv_transpose1d", ConvTranspose},
      {"conv_transpose2d", ConvTranspose},
      {"conv_transpose3d", ConvTranspose},
  };
}

}  // namespace nestor
