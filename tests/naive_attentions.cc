// attention.nestor: softmax(q k^T / sqrt(D) + bias) v over the places that a query sees; the others
// are left out of the softmax altogether, and a query that sees none gives zeros.
#include <cmath>

#include "tests/naive_loops.h"

namespace nestor {
namespace {

using namespace naive;

// Functions of the place (.., l) of a query, and a key's s.
struct Variant {
  std::function<bool(const NaiveCall&, const Place& query, int64_t s)> sees =
      [](const NaiveCall&, const Place&, int64_t) { return true; };
  std::function<double(const NaiveCall&, const Place& query, int64_t s)> bias =
      [](const NaiveCall&, const Place&, int64_t) { return 0.0; };
};

// Where the keys of a query's batch and head lie: the same, or its group's head.
Place KeyBatch(const NaiveCall& call, const Place& query) {
  Place batch = First(query, query.size() - 1);
  const NaiveTensor &q = call["q"], &k = call["k"];
  if (batch.size() == 2) batch[1] /= q.shape[1] / k.shape[1];
  return batch;
}

double Dot(const Row& a, const Row& b) {
  double total = 0;
  for (size_t i = 0; i < a.size(); ++i) total += a[i] * b[i];
  return total;
}

NaiveTensors Attend(const NaiveCall& call, const Variant& variant) {
  const NaiveTensor &q = call["q"], &k = call["k"], &v = call["v"];
  const int64_t keys = k.shape[k.shape.size() - 2];
  NaiveTensor y{WithLast(q.shape, v.shape.back()), {}};
  ForEach(First(q.shape, q.shape.size() - 1), [&](const Place& query) {
    const Place batch = KeyBatch(call, query);
    Row scores;
    std::vector<Row> values;
    for (int64_t s = 0; s < keys; ++s) {
      if (!variant.sees(call, query, s)) continue;
      const double dot = Dot(RowAt(q, query), RowAt(k, Joined(batch, {s})));
      scores.push_back(dot / std::sqrt(static_cast<double>(q.shape.back())) +
                       variant.bias(call, query, s));
      values.push_back(RowAt(v, Joined(batch, {s})));
    }
    const Row weights = Softmax(scores);
    for (int64_t e = 0; e < v.shape.back(); ++e) {
      y.data.push_back(0);
      for (size_t i = 0; i < weights.size(); ++i) y.data.back() += weights[i] * values[i][e];
    }
  });
  return Y(y);
}

NaiveOp Attention(const Variant& variant) {
  return [=](const NaiveCall& call) { return Attend(call, variant); };
}

bool Causal(const NaiveCall&, const Place& query, int64_t s) { return s <= query.back(); }

bool Masked(const NaiveCall& call, const Place& query, int64_t s) {
  return At(call["mask"], Joined(query, {s})) != 0;
}

bool Sliding(const NaiveCall& call, const Place& query, int64_t s) {
  return s <= query.back() && query.back() - s < call.Integer("window");
}

bool Cached(const NaiveCall& call, const Place& query, int64_t s) {
  const int64_t length = static_cast<int64_t>(call["length"].data[query[0]]),
                queries = call["q"].shape[2];
  return s <= length - queries + query.back();
}

double Bias(const NaiveCall& call, const Place& query, int64_t s) {
  return At(call["bias"], Joined(query, {s}));
}

double Alibi(const NaiveCall& call, const Place& query, int64_t s) {
  return -call["slope"].data[query[1]] * static_cast<double>(query.back() - s);
}

// Complex numbers multiplied by cosine + i sine; `partner` and `pair` say which places
// belong together.
NaiveTensor Turned(const NaiveCall& call, bool interleaved) {
  const NaiveTensor& x = call["x"];
  const int64_t half = x.shape.back() / 2;
  NaiveTensor y = x;
  ForEach(WithLast(x.shape, half), [&](const Place& p) {
    const int64_t i = p.back(), l = p[p.size() - 2];
    const Place real = WithLast(p, interleaved ? 2 * i : i),
                imaginary = WithLast(p, interleaved ? 2 * i + 1 : i + half);
    const double a = At(x, real), b = At(x, imaginary), c = At(call["cosine"], {l, i}),
                 s = At(call["sine"], {l, i});
    Element(y, real) = a * c - b * s;
    Element(y, imaginary) = b * c + a * s;
  });
  return y;
}

NaiveTensors RotaryAngles(const NaiveCall& call) {
  const double pairs = call.Number("pairs");
  const auto angle = [&](const Place& p) {
    return (call.Number("start") + static_cast<double>(p[0])) /
           std::pow(call.Number("base"), static_cast<double>(p[1]) / pairs);
  };
  const Place shape = {call.Integer("length"), call.Integer("pairs")};
  return {{"cosine", Generate(shape, [&](const Place& p) { return std::cos(angle(p)); })},
          {"sine", Generate(shape, [&](const Place& p) { return std::sin(angle(p)); })}};
}

}  // namespace

NaiveTable NaiveAttentions() {
  return {
      {"attention", Attention({})},
      {"causal_attention", Attention({.sees = Causal})},
      {"attention_masked", Attention({.sees = Masked})},
      {"attention_biased", Attention({.bias = Bias})},
      {"attention_grouped", Attention({})},
      {"attention_sliding", Attention({.sees = Sliding})},
      {"attention_alibi", Attention({.sees = Causal, .bias = Alibi})},
      {"attention_cached", Attention({.sees = Cached})},
      {"rotary", [](const NaiveCall& call) { return Y(Turned(call, false)); }},
      {"rotary_interleaved", [](const NaiveCall& call) { return Y(Turned(call, true)); }},
      {"rotary_angles", RotaryAngles},
  };
}

}  // namespace nestor
