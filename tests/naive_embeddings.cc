// embedding.nestor. An id outside of the table stands for a row of zeros, or of -inf.
#include "tests/naive_loops.h"

namespace nestor {
namespace {

using namespace naive;

int64_t IdAt(const NaiveTensor& ids, const Place& p) { return static_cast<int64_t>(At(ids, p)); }

NaiveTensors Embedding(const NaiveCall& call) {
  const NaiveTensor &table = call["table"], &ids = call["ids"];
  return Y(Generate(Joined(ids.shape, {table.shape[1]}), [&](const Place& p) {
    return At(table, {IdAt(ids, First(p, p.size() - 1)), p.back()});
  }));
}

// reduce() of the column of each bag, whose l-th element is scaled by scale(place).
NaiveOp Bag(double outside, double (*reduce)(const Row&), bool weighted = false) {
  return [=](const NaiveCall& call) {
    const NaiveTensor &table = call["table"], &ids = call["ids"];
    return Y(Generate(WithLast(ids.shape, table.shape[1]), [&](const Place& p) {
      Row column;
      for (int64_t l = 0; l < ids.shape.back(); ++l) {
        const Place at = WithLast(p, l);
        column.push_back(At(table, {IdAt(ids, at), p.back()}, outside) *
                         (weighted ? At(call["weight"], at) : 1));
      }
      return reduce(column);
    }));
  };
}

NaiveTensors BagOffsets(const NaiveCall& call) {
  const NaiveTensor &table = call["table"], &ids = call["ids"], &offsets = call["offsets"];
  NaiveTensor y = Filled({offsets.shape[0], table.shape[1]}, 0);
  ForEach(y.shape, [&](const Place& p) {
    const bool last = p[0] + 1 == offsets.shape[0];
    const double begin = offsets.data[p[0]],
                 end = last ? static_cast<double>(ids.shape[0]) : offsets.data[p[0] + 1];
    for (int64_t n = 0; n < ids.shape[0]; ++n) {
      const double at = static_cast<double>(n);
      if (begin <= at && at < end) Element(y, p) += At(table, {IdAt(ids, {n}), p[1]});
    }
  });
  return Y(y);
}

NaiveTensors OneHot(const NaiveCall& call) {
  const NaiveTensor& ids = call["ids"];
  return Y(Generate(Joined(ids.shape, {call.Integer("classes")}), [&](const Place& p) {
    return IdAt(ids, First(p, p.size() - 1)) == p.back() ? 1.0 : 0.0;
  }));
}

}  // namespace

NaiveTable NaiveEmbeddings() {
  return {
      {"embedding", Embedding},
      {"embedding_bag_sum", Bag(0, Total)},
      {"embedding_bag_weighted", Bag(0, Total, true)},
      {"embedding_bag_mean", Bag(0, Mean)},
      {"embedding_bag_max", Bag(-kInfinity, Largest)},
      {"embedding_bag_offsets", BagOffsets},
      {"one_hot", OneHot},
  };
}

}  // namespace nestor
