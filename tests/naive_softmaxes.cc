// softmax.nestor.
#include <cmath>

#include "tests/naive_loops.h"

namespace nestor {
namespace {

using namespace naive;

NaiveOp OnRows(const std::function<Row(const Row&)>& map) {
  return [=](const NaiveCall& call) { return Y(MapRows(call["x"], map)); };
}

Row Softmin(const Row& row) {
  Row negative;
  for (double x : row) negative.push_back(-x);
  return Softmax(negative);
}

NaiveTensors SoftmaxChannels(const NaiveCall& call) {
  const NaiveTensor& x = call["x"];
  return Y(Generate(x.shape, [&](const Place& p) {
    Row row;
    Place at = p;
    for (at[1] = 0; at[1] < x.shape[1]; ++at[1]) row.push_back(At(x, at));
    return Softmax(row)[p[1]];
  }));
}

// Masked elements are left out altogether.
NaiveTensors MaskedSoftmax(const NaiveCall& call) {
  const NaiveTensor &x = call["x"], &mask = call["mask"];
  return Y(Generate(x.shape, [&](const Place& p) {
    if (At(mask, p) == 0) return 0.0;
    double total = 0;
    for (Place at = WithLast(p, 0); at.back() < x.shape.back(); ++at.back()) {
      if (At(mask, at) != 0) total += std::exp(At(x, at) - At(x, p));
    }
    return 1 / total;
  }));
}

double LogSumExp(const Row& row) {
  double total = 0;
  for (double x : row) total += std::exp(x);
  return std::log(total);
}

}  // namespace

NaiveTable NaiveSoftmaxes() {
  return {
      {"softmax", OnRows(Softmax)},
      {"log_softmax", OnRows(LogSoftmax)},
      {"softmin", OnRows(Softmin)},
      {"softmax_channels", SoftmaxChannels},
      {"masked_softmax", MaskedSoftmax},
      {"logsumexp", [](const NaiveCall& call) { return Y(ReduceRows(call["x"], LogSumExp)); }},
  };
}

}  // namespace nestor
