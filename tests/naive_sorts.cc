// sort.nestor: by std::stable_sort, NaN above all.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/naive_loops.h"

namespace nestor {
namespace {

using namespace naive;

bool Less(double a, double b) { return std::isnan(b) ? !std::isnan(a) : a < b; }

// The places of the row's elements in ascending or descending order; equal ones keep their order.
Row Order(const Row& row, bool down) {
  std::vector<int64_t> places(row.size());
  std::iota(places.begin(), places.end(), 0);
  std::stable_sort(places.begin(), places.end(), [&](int64_t a, int64_t b) {
    return down ? Less(row[b], row[a]) : Less(row[a], row[b]);
  });
  return {places.begin(), places.end()};
}

Row Ranks(const Row& row, bool down) {
  const Row order = Order(row, down);
  Row ranks(row.size());
  for (size_t i = 0; i < order.size(); ++i)
    ranks[static_cast<size_t>(order[i])] = static_cast<double>(i);
  return ranks;
}

NaiveTensor Indices(const NaiveTensor& x, bool down) {
  return MapRows(x, [=](const Row& row) { return Order(row, down); });
}

NaiveTensor Taken(const NaiveTensor& x, const NaiveTensor& indices) {
  return Generate(indices.shape, [&](const Place& p) {
    return At(x, WithLast(p, static_cast<int64_t>(At(indices, p))));
  });
}

// Elements begin .. end - 1 of the last axis of the indices, and the values there.
NaiveTensors Part(const NaiveCall& call, bool down, int64_t begin, int64_t end) {
  const NaiveTensor indices = MapRows(Indices(call["x"], down), [&](const Row& row) {
    return Row(row.begin() + begin, row.begin() + end);
  });
  return {{"y", Taken(call["x"], indices)}, {"indices", indices}};
}

NaiveTensors One(const NaiveCall& call, int64_t place) {
  NaiveTensors part = Part(call, false, place, place + 1);
  for (auto& [name, tensor] : part) tensor.shape.pop_back();
  return {{"y", part.at("y")}, {"index", part.at("indices")}};
}

double ArgMax(const Row& row) { return Order(row, true).at(0); }

double ArgMin(const Row& row) {
  for (size_t i = 0; i < row.size(); ++i) {
    if (std::isnan(row[i])) return static_cast<double>(i);
  }
  return Order(row, false).at(0);
}

}  // namespace

NaiveTable NaiveSorts() {
  return {
      {"arg_max", [](const NaiveCall& call) { return Y(ReduceRows(call["x"], ArgMax)); }},
      {"arg_min", [](const NaiveCall& call) { return Y(ReduceRows(call["x"], ArgMin)); }},
      {"rank",
       [](const NaiveCall& call) {
         return Y(MapRows(call["x"], [](const Row& row) { return Ranks(row, false); }));
       }},
      {"rank_descending",
       [](const NaiveCall& call) {
         return Y(MapRows(call["x"], [](const Row& row) { return Ranks(row, true); }));
       }},
      {"sort", [](const NaiveCall& call) { return Part(call, false, 0, call["x"].shape.back()); }},
      {"sort_descending",
       [](const NaiveCall& call) { return Part(call, true, 0, call["x"].shape.back()); }},
      {"argsort",
       [](const NaiveCall& call) {
         return NaiveTensors{{"indices", Indices(call["x"], false)}};
       }},
      {"topk", [](const NaiveCall& call) { return Part(call, true, 0, call.Integer("k")); }},
      {"bottomk", [](const NaiveCall& call) { return Part(call, false, 0, call.Integer("k")); }},
      {"kth_value", [](const NaiveCall& call) { return One(call, call.Integer("k") - 1); }},
      {"median", [](const NaiveCall& call) { return One(call, (call["x"].shape.back() - 1) / 2); }},
  };
}

}  // namespace nestor
