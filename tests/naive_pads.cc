// pad.nestor. Each mode says which element of an axis of `length` is at `place`, counted from its
// first element; reflection walks there step by step.
#include <algorithm>

#include "tests/naive_loops.h"

namespace nestor {
namespace {

using namespace naive;

using Mode = int64_t (*)(int64_t place, int64_t length);

int64_t Constant(int64_t place, int64_t) { return place; }

int64_t Reflect(int64_t place, int64_t length) {
  if (place < 0) return -place;
  return place < length ? place : length - 1 - (place - (length - 1));
}

int64_t Edge(int64_t place, int64_t length) { return std::clamp<int64_t>(place, 0, length - 1); }

int64_t Wrap(int64_t place, int64_t length) {
  while (place < 0) place += length;
  while (place >= length) place -= length;
  return place;
}

// $params before and after the last axes, in their order.
using Names = std::vector<std::pair<std::string, std::string>>;

NaiveOp Pad(Mode mode, const Names& names) {
  return [=](const NaiveCall& call) {
    const NaiveTensor& x = call["x"];
    const size_t leading = x.shape.size() - names.size();
    const double fill = call.params.count("value") ? call.Number("value") : 0;
    Place shape = x.shape;
    for (size_t i = 0; i < names.size(); ++i)
      shape[leading + i] += call.Integer(names[i].first) + call.Integer(names[i].second);
    return Y(Generate(shape, [&](const Place& p) {
      Place source = p;
      for (size_t i = 0; i < names.size(); ++i) {
        source[leading + i] =
            mode(p[leading + i] - call.Integer(names[i].first), x.shape[leading + i]);
      }
      return At(x, source, fill);
    }));
  };
}

}  // namespace

NaiveTable NaivePads() {
  const Names one = {{"before", "after"}}, two = {{"top", "bottom"}, {"left", "right"}};
  return {
      {"pad", Pad(Constant, one)},    {"pad_reflect", Pad(Reflect, one)},
      {"pad_edge", Pad(Edge, one)},   {"pad_wrap", Pad(Wrap, one)},
      {"pad2d", Pad(Constant, two)},  {"pad2d_reflect", Pad(Reflect, two)},
      {"pad2d_edge", Pad(Edge, two)}, {"pad2d_wrap", Pad(Wrap, two)},
  };
}

}  // namespace nestor
