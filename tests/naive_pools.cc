// pool.nestor, adaptive_pool.nestor.
#include <cmath>

#include "tests/naive_windows_of.h"

namespace nestor {
namespace {

using namespace naive;

// An element of a window, where it lies, and its value (`outside` in the padding).
struct Member {
  Place source;
  bool inside;
  double value;
};
using Members = std::vector<Member>;

Sliding SlidingOf(const NaiveCall& call) {
  const Place window(call["x"].shape.size() - 2, call.Integer("k"));
  return {window, call.Integer("stride"), call.Integer("pad")};
}

Members WindowAt(const NaiveTensor& x, const Sliding& sliding, const Place& p, double outside) {
  Members members;
  ForEach(sliding.window, [&](const Place& inner) {
    const Place source = Joined(First(p, 2), sliding.Source(Behind(p, 2), inner));
    members.push_back({Behind(source, 2), Inside(x.shape, source), At(x, source, outside)});
  });
  return members;
}

// reduce() of each window's members.
NaiveTensor Pool(const NaiveCall& call, double outside,
                 const std::function<double(const Members&)>& reduce) {
  const NaiveTensor& x = call["x"];
  const Sliding sliding = SlidingOf(call);
  return Generate(Joined(First(x.shape, 2), sliding.Places(Behind(x.shape, 2))),
                  [&](const Place& p) { return reduce(WindowAt(x, sliding, p, outside)); });
}

Row Values(const Members& members, bool inside_only) {
  Row values;
  for (const Member& member : members) {
    if (member.inside || !inside_only) values.push_back(member.value);
  }
  return values;
}

NaiveTensors MaxPool(const NaiveCall& call) {
  return Y(Pool(call, -kInfinity,
                [](const Members& members) { return Largest(Values(members, false)); }));
}

NaiveTensors MaxPoolIndices(const NaiveCall& call) {
  const Place extents = Behind(call["x"].shape, 2);
  const NaiveTensor indices = Pool(call, -kInfinity, [&](const Members& members) {
    const Member* best = &members[0];
    for (const Member& member : members) best = member.value > best->value ? &member : best;
    int64_t number = 0;
    for (size_t axis = 0; axis < extents.size(); ++axis)
      number = number * extents[axis] + best->source[axis];
    return static_cast<double>(number);
  });
  return {{"y", MaxPool(call).at("y")}, {"indices", indices}};
}

NaiveTensors AvgPool(const NaiveCall& call) {
  return Y(Pool(call, 0, [](const Members& members) { return Mean(Values(members, false)); }));
}

NaiveTensors AvgPoolInside(const NaiveCall& call) {
  return Y(Pool(call, 0, [](const Members& members) { return Mean(Values(members, true)); }));
}

NaiveTensors LpPool(const NaiveCall& call) {
  return Y(Pool(call, 0, [&](const Members& members) {
    return NormOf(Values(members, false), call.Number("p"));
  }));
}

// The windows [floor(i H / out), ceil((i + 1) H / out)) of each axis, `out` from the $params named.
NaiveOp Adaptive(const std::vector<std::string>& names, double (*reduce)(const Row&)) {
  return [=](const NaiveCall& call) {
    const NaiveTensor& x = call["x"];
    Place out;
    for (const std::string& name : names) out.push_back(call.Integer(name));
    return Y(Generate(Joined(First(x.shape, 2), out), [&](const Place& p) {
      Row window;
      ForEach(Behind(x.shape, 2), [&](const Place& source) {
        bool inside = true;
        for (size_t axis = 0; axis < out.size(); ++axis) {
          const double length =
              static_cast<double>(x.shape[axis + 2]) / static_cast<double>(out[axis]);
          const double place = static_cast<double>(p[axis + 2]),
                       at = static_cast<double>(source[axis]);
          inside = inside && at >= std::floor(place * length + 1e-9) &&
                   at < std::ceil((place + 1) * length - 1e-9);
        }
        if (inside) window.push_back(At(x, Joined(First(p, 2), source)));
      });
      return reduce(window);
    }));
  };
}

NaiveOp Global(const std::function<double(const NaiveCall&, const Row&)>& reduce) {
  return [=](const NaiveCall& call) {
    const NaiveTensor& x = call["x"];
    return Y(Generate(First(x.shape, 2), [&](const Place& p) {
      return reduce(call, Generate(Behind(x.shape, 2), [&](const Place& s) {
                            return At(x, Joined(p, s));
                          }).data);
    }));
  };
}

}  // namespace

NaiveTable NaivePools() {
  return {
      {"max_pool1d", MaxPool},
      {"max_pool2d", MaxPool},
      {"max_pool3d", MaxPool},
      {"max_pool1d_indices", MaxPoolIndices},
      {"max_pool2d_indices", MaxPoolIndices},
      {"max_pool3d_indices", MaxPoolIndices},
      {"avg_pool1d", AvgPool},
      {"avg_pool2d", AvgPool},
      {"avg_pool3d", AvgPool},
      {"avg_pool1d_inside", AvgPoolInside},
      {"avg_pool2d_inside", AvgPoolInside},
      {"avg_pool3d_inside", AvgPoolInside},
      {"lp_pool1d", LpPool},
      {"lp_pool2d", LpPool},
      {"lp_pool3d", LpPool},
      {"adaptive_avg_pool1d", Adaptive({"out"}, Mean)},
      {"adaptive_avg_pool2d", Adaptive({"out_h", "out_w"}, Mean)},
      {"adaptive_avg_pool3d", Adaptive({"out_d", "out_h", "out_w"}, Mean)},
      {"adaptive_max_pool1d", Adaptive({"out"}, Largest)},
      {"adaptive_max_pool2d", Adaptive({"out_h", "out_w"}, Largest)},
      {"adaptive_max_pool3d", Adaptive({"out_d", "out_h", "out_w"}, Largest)},
      {"global_avg_pool", Global([](const NaiveCall&, const Row& row) { return Mean(row); })},
      {"global_max_pool", Global([](const NaiveCall&, const Row& row) { return Largest(row); })},
      {"global_lp_pool",
       Global([](const NaiveCall& call, const Row& row) { return NormOf(row, call.Number("p")); })},
  };
}

}  // namespace nestor
