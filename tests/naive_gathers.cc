// gather.nestor. Reads outside give 0, writes outside are dropped.
#include <algorithm>

#include "tests/naive_loops.h"

namespace nestor {
namespace {

using namespace naive;

int64_t IdAt(const NaiveTensor& ids, const Place& p) { return static_cast<int64_t>(At(ids, p)); }

NaiveTensors Take(const NaiveCall& call) {
  const NaiveTensor& x = call["x"];
  const NaiveTensor flat = {{Elements(x.shape)}, x.data};
  return Y(Mapped(call["ids"], [&](double id) { return At(flat, {static_cast<int64_t>(id)}); }));
}

NaiveTensors IndexSelect(const NaiveCall& call) {
  const NaiveTensor &x = call["x"], &ids = call["ids"];
  return Y(Generate(WithLast(x.shape, ids.shape[0]),
                    [&](const Place& p) { return At(x, WithLast(p, IdAt(ids, {p.back()}))); }));
}

NaiveTensors Gather(const NaiveCall& call) {
  const NaiveTensor &x = call["x"], &ids = call["ids"];
  return Y(Generate(ids.shape, [&](const Place& p) { return At(x, WithLast(p, IdAt(ids, p))); }));
}

NaiveTensors GatherNd(const NaiveCall& call) {
  const NaiveTensor &x = call["x"], &ids = call["ids"];
  return Y(Generate({ids.shape[0], x.shape[2]}, [&](const Place& p) {
    return At(x, {IdAt(ids, {p[0], 0}), IdAt(ids, {p[0], 1}), p[1]});
  }));
}

// Puts each value, in order, into the element that its id names.
NaiveOp Scatter(const std::function<double(double, double)>& put) {
  return [=](const NaiveCall& call) {
    const NaiveTensor &ids = call["ids"], &values = call["values"];
    NaiveTensor y = call["x"];
    ForEach(ids.shape, [&](const Place& p) {
      const Place to = WithLast(p, IdAt(ids, p));
      if (Inside(y.shape, to)) Element(y, to) = put(Element(y, to), At(values, p));
    });
    return Y(y);
  };
}

NaiveTensors ScatterMean(const NaiveCall& call) {
  const NaiveTensor &x = call["x"], &ids = call["ids"], &values = call["values"];
  return Y(Generate(x.shape, [&](const Place& p) {
    Row all = {At(x, p)};
    for (int64_t i = 0; i < ids.shape.back(); ++i) {
      if (IdAt(ids, WithLast(p, i)) == p.back()) all.push_back(At(values, WithLast(p, i)));
    }
    return Mean(all);
  }));
}

// Puts the rows of `x`, one by one, into the rows of `y` that the ids name.
NaiveTensor PutRows(NaiveTensor y, const NaiveTensor& ids, const NaiveTensor& x,
                    const std::function<double(double, double)>& put) {
  ForEach(x.shape, [&](const Place& p) {
    const Place to = {IdAt(ids, {p[0]}), p[1]};
    if (Inside(y.shape, to)) Element(y, to) = put(Element(y, to), At(x, p));
  });
  return y;
}

double Add(double a, double b) { return a + b; }
double Multiply(double a, double b) { return a * b; }
double Larger(double a, double b) { return std::max(a, b); }
double Smaller(double a, double b) { return std::min(a, b); }

NaiveTensors Segments(const NaiveCall& call, double empty, double (*put)(double, double)) {
  const NaiveTensor& x = call["x"];
  return Y(PutRows(Filled({call.Integer("segments"), x.shape[1]}, empty), call["ids"], x, put));
}

NaiveTensors Bincount(const NaiveCall& call) {
  const NaiveTensor& ids = call["ids"];
  return Y(Generate({call.Integer("bins")}, [&](const Place& p) {
    return static_cast<double>(
        std::count(ids.data.begin(), ids.data.end(), static_cast<double>(p[0])));
  }));
}

}  // namespace

NaiveTable NaiveGathers() {
  return {
      {"take", Take},
      {"index_select", IndexSelect},
      {"gather", Gather},
      {"gather_nd", GatherNd},
      {"scatter", Scatter([](double, double b) { return b; })},
      {"scatter_add", Scatter(Add)},
      {"scatter_prod", Scatter(Multiply)},
      {"scatter_max", Scatter(Larger)},
      {"scatter_min", Scatter(Smaller)},
      {"scatter_mean", ScatterMean},
      {"index_add",
       [](const NaiveCall& call) {
         return Y(PutRows(call["x"], call["ids"], call["values"], Add));
       }},
      {"segment_sum", [](const NaiveCall& call) { return Segments(call, 0, Add); }},
      {"segment_max", [](const NaiveCall& call) { return Segments(call, -kInfinity, Larger); }},
      {"bincount", Bincount},
  };
}

}  // namespace nestor
