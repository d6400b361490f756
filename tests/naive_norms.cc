// norm.nestor. Variances are the biased ones, divided by the length, except the running one.
#include <algorithm>
#include <cmath>

#include "tests/naive_loops.h"

namespace nestor {
namespace {

using namespace naive;

struct Moments {
  double mean = 0, squares = 0;  // the sum of squared distances from the mean
  double count = 0;
};
Moments MomentsOf(const Row& row) {
  Moments m;
  m.count = static_cast<double>(row.size());
  m.mean = Mean(row);
  for (double x : row) m.squares += (x - m.mean) * (x - m.mean);
  return m;
}

double Normalized(double x, const Moments& m, double eps) {
  return (x - m.mean) / std::sqrt(m.squares / m.count + eps);
}

NaiveTensors LayerNorm(const NaiveCall& call) {
  return Y(MapRows(call["x"], [&](const Row& row) {
    const Moments m = MomentsOf(row);
    Row result;
    for (size_t i = 0; i < row.size(); ++i) {
      result.push_back(Normalized(row[i], m, call.Number("eps")) * call["scale"].data[i] +
                       call["bias"].data[i]);
    }
    return result;
  }));
}

NaiveTensors RmsNorm(const NaiveCall& call) {
  return Y(MapRows(call["x"], [&](const Row& row) {
    double squares = 0;
    for (double x : row) squares += x * x;
    Row result;
    for (size_t i = 0; i < row.size(); ++i) {
      result.push_back(row[i] /
                       std::sqrt(squares / static_cast<double>(row.size()) + call.Number("eps")) *
                       call["scale"].data[i]);
    }
    return result;
  }));
}

// The elements of x (samples, channels, ..) at p's sample (at all samples if `whole_batch`) and in
// p's group of channels.
Row GroupOf(const NaiveTensor& x, const Place& p, int64_t channels_per_group, bool whole_batch) {
  Row group;
  ForEach(x.shape, [&](const Place& q) {
    const bool together =
        q[1] / channels_per_group == p[1] / channels_per_group && (whole_batch || q[0] == p[0]);
    if (together) group.push_back(At(x, q));
  });
  return group;
}

NaiveTensor NormalizedGroups(const NaiveCall& call, int64_t channels_per_group, bool whole_batch) {
  const NaiveTensor& x = call["x"];
  return Generate(x.shape, [&](const Place& p) {
    const Moments m = MomentsOf(GroupOf(x, p, channels_per_group, whole_batch));
    return Normalized(At(x, p), m, call.Number("eps")) * call["scale"].data[p[1]] +
           call["bias"].data[p[1]];
  });
}

NaiveTensors GroupNorm(const NaiveCall& call) {
  return Y(NormalizedGroups(call, call["x"].shape[1] / call.Integer("groups"), false));
}

NaiveTensors InstanceNorm(const NaiveCall& call) { return Y(NormalizedGroups(call, 1, false)); }

NaiveTensors BatchNorm(const NaiveCall& call) {
  const NaiveTensor& x = call["x"];
  return Y(Generate(x.shape, [&](const Place& p) {
    const int64_t c = p[1];
    const Moments m = {call["mean"].data[c], call["variance"].data[c], 1};
    return Normalized(At(x, p), m, call.Number("eps")) * call["scale"].data[c] +
           call["bias"].data[c];
  }));
}

NaiveTensors BatchNormTrain(const NaiveCall& call) {
  NaiveTensor mean = call["mean"], variance = call["variance"];
  const double momentum = call.Number("momentum");
  for (int64_t c = 0; c < call["x"].shape[1]; ++c) {
    const Moments m = MomentsOf(GroupOf(call["x"], {0, c}, 1, true));
    mean.data[c] += momentum * (m.mean - mean.data[c]);
    variance.data[c] += momentum * (m.squares / (m.count - 1) - variance.data[c]);
  }
  return {{"y", NormalizedGroups(call, 1, true)}, {"mean_new", mean}, {"variance_new", variance}};
}

// Channels c - size / 2 to c + (size - 1) / 2, those outside counting as zeros.
NaiveTensors LocalResponseNorm(const NaiveCall& call) {
  const NaiveTensor& x = call["x"];
  const int64_t size = call.Integer("window");
  return Y(Generate(x.shape, [&](const Place& p) {
    double squares = 0;
    for (int64_t c = p[1] - size / 2; c <= p[1] + (size - 1) / 2; ++c) {
      Place at = p;
      at[1] = c;
      squares += At(x, at) * At(x, at);
    }
    const double mean = squares / static_cast<double>(size);
    return At(x, p) / std::pow(call.Number("k") + call.Number("alpha") * mean, call.Number("beta"));
  }));
}

NaiveTensors WeightNorm(const NaiveCall& call) {
  const NaiveTensor& v = call["v"];
  return {{"w", Generate(v.shape, [&](const Place& p) {
             const Row filter = Generate(Behind(v.shape, 1), [&](const Place& i) {
                                  return At(v, Joined({p[0]}, i));
                                }).data;
             return call["g"].data[p[0]] * At(v, p) / NormOf(filter, 2);
           })}};
}

NaiveTensors L2Normalize(const NaiveCall& call) {
  return Y(MapRows(call["x"], [&](const Row& row) {
    Row result;
    for (double x : row) result.push_back(x / std::max(NormOf(row, 2), call.Number("eps")));
    return result;
  }));
}

}  // namespace

NaiveTable NaiveNorms() {
  return {
      {"layer_norm", LayerNorm},
      {"rms_norm", RmsNorm},
      {"group_norm", GroupNorm},
      {"instance_norm", InstanceNorm},
      {"batch_norm", BatchNorm},
      {"batch_norm_train", BatchNormTrain},
      {"local_response_norm", LocalResponseNorm},
      {"weight_norm", WeightNorm},
      {"l2_normalize", L2Normalize},
  };
}

}  // namespace nestor
