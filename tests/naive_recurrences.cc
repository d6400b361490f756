// recurrence.nestor.
#include <algorithm>
#include <cmath>
#include <map>

#include "tests/naive_loops.h"

namespace nestor {
namespace {

using namespace naive;

NaiveOp OnRows(const std::function<Row(const Row&)>& map) {
  return [=](const NaiveCall& call) { return Y(MapRows(call["x"], map)); };
}

// Each prefix of a row as one number.
NaiveOp OnPrefixes(const std::function<double(const Row&)>& reduce) {
  return OnRows([=](const Row& row) {
    Row result;
    for (size_t i = 0; i < row.size(); ++i)
      result.push_back(reduce(Row(row.begin(), row.begin() + static_cast<int64_t>(i) + 1)));
    return result;
  });
}

double Product(const Row& row) {
  double product = 1;
  for (double x : row) product *= x;
  return product;
}

double LogSumExp(const Row& row) {
  const double largest = Largest(row);
  double sum = 0;
  for (double x : row) sum += std::exp(x - largest);
  return largest + std::log(sum);
}

Row SumsFrom(const Row& row) {
  Row result;
  for (size_t i = 0; i < row.size(); ++i)
    result.push_back(Total(Row(row.begin() + static_cast<int64_t>(i), row.end())));
  return result;
}

// The largest sign * x so far, the last of equal ones; NaN wins.
NaiveOp RunningExtremum(double sign) {
  return [=](const NaiveCall& call) {
    NaiveTensor values = call["x"], places = call["x"];
    const int64_t length = values.shape.back();
    for (size_t i = 0; i < values.data.size(); ++i) {
      const int64_t begin = static_cast<int64_t>(i) / length * length;
      int64_t best = begin;
      for (int64_t k = begin; k <= static_cast<int64_t>(i); ++k) {
        const double x = call["x"].data[k], most = call["x"].data[best];
        if (std::isnan(x) || sign * x >= sign * most) best = k;
      }
      values.data[i] = call["x"].data[best];
      places.data[i] = static_cast<double>(best - begin);
    }
    return NaiveTensors{{"y", values}, {"indices", places}};
  };
}

// The sum over s <= t of x[s] times all a after s, up to t.
NaiveTensors LinearScan(const NaiveCall& call) {
  const NaiveTensor& a = call["a"];
  return {{"h", Generate(a.shape, [&](const Place& at) {
             double sum = 0;
             for (int64_t s = 0; s <= at.back(); ++s) {
               double factor = 1;
               for (int64_t k = s + 1; k <= at.back(); ++k) factor *= At(a, WithLast(at, k));
               sum += factor * At(call["x"], WithLast(at, s));
             }
             return sum;
           })}};
}

NaiveTensors DiscountedSum(const NaiveCall& call) {
  const double gamma = call.Number("gamma");
  return Y(MapRows(call["x"], [=](const Row& row) {
    Row result(row.size(), 0);
    for (size_t i = 0; i < row.size(); ++i) {
      for (size_t k = i; k < row.size(); ++k)
        result[i] += std::pow(gamma, static_cast<double>(k - i)) * row[k];
    }
    return result;
  }));
}

// y[t] = sum b[k] x[t - k] - sum a[k] y[t - k], k from 1: the direct form.
NaiveTensors Lfilter(const NaiveCall& call) {
  const Row &a = call["a"].data, &b = call["b"].data;
  return Y(MapRows(call["x"], [&](const Row& x) {
    Row y;
    for (size_t t = 0; t < x.size(); ++t) {
      double sum = 0;
      for (size_t k = 0; k < b.size() && k <= t; ++k) sum += b[k] * x[t - k];
      for (size_t k = 1; k < a.size() && k <= t; ++k) sum -= a[k] * y[t - k];
      y.push_back(sum);
    }
    return y;
  }));
}

double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// The affine function of a vector, with bias, for the gate of unit j (-1: there is only one gate).
double Affine(const NaiveTensor& w, const NaiveTensor& bias, int64_t gate, int64_t j,
              const Row& x) {
  const Place at = gate < 0 ? Place{j} : Place{gate, j};
  double sum = At(bias, at);
  for (size_t i = 0; i < x.size(); ++i) sum += At(w, Joined(at, {static_cast<int64_t>(i)})) * x[i];
  return sum;
}

// A network's step: the state of one sequence (of several rows, the first is the output)
// and its input.
using State = std::vector<Row>;
using NetworkStep = std::function<State(const NaiveCall& call, const Row& x, const State& state)>;

NaiveOp Network(const std::vector<std::string>& starts, const std::vector<std::string>& results,
                const NetworkStep& step) {
  return [=](const NaiveCall& call) {
    const Place shape = call["x"].shape;
    const int64_t units = call["h0"].shape[1];
    NaiveTensors all;
    for (const std::string& name : results) all[name] = Filled({shape[0], shape[1], units}, 0);
    for (int64_t n = 0; n < shape[1]; ++n) {
      State state;
      for (const std::string& name : starts) state.push_back(RowAt(call[name], {n}));
      for (int64_t t = 0; t < shape[0]; ++t) {
        state = step(call, RowAt(call["x"], {t, n}), state);
        for (size_t r = 0; r < results.size(); ++r) {
          for (int64_t j = 0; j < units; ++j)
            Element(all[results[r]], {t, n, j}) = state[r][static_cast<size_t>(j)];
        }
      }
    }
    return all;
  };
}

double Gate(const NaiveCall& call, int64_t gate, size_t j, const Row& x, const Row& h) {
  const int64_t unit = static_cast<int64_t>(j);
  return Affine(call["wx"], call["bx"], gate, unit, x) +
         Affine(call["wh"], call["bh"], gate, unit, h);
}

State RnnStep(const NaiveCall& call, const Row& x, const State& state) {
  Row h;
  for (size_t j = 0; j < state[0].size(); ++j)
    h.push_back(std::tanh(Gate(call, -1, j, x, state[0])));
  return {h};
}

State LstmStep(const NaiveCall& call, const Row& x, const State& state) {
  Row h, c;
  for (size_t j = 0; j < state[0].size(); ++j) {
    const double in = Sigmoid(Gate(call, 0, j, x, state[0])),
                 forget = Sigmoid(Gate(call, 1, j, x, state[0]));
    const double cell = std::tanh(Gate(call, 2, j, x, state[0])),
                 out = Sigmoid(Gate(call, 3, j, x, state[0]));
    c.push_back(forget * state[1][j] + in * cell);
    h.push_back(out * std::tanh(c.back()));
  }
  return {h, c};
}

State GruStep(const NaiveCall& call, const Row& x, const State& state) {
  Row h;
  for (size_t j = 0; j < state[0].size(); ++j) {
    const double reset = Sigmoid(Gate(call, 0, j, x, state[0])),
                 update = Sigmoid(Gate(call, 1, j, x, state[0]));
    const int64_t unit = static_cast<int64_t>(j);
    const double fresh = std::tanh(Affine(call["wx"], call["bx"], 2, unit, x) +
                                   reset * Affine(call["wh"], call["bh"], 2, unit, state[0]));
    h.push_back((1 - update) * fresh + update * state[0][j]);
  }
  return {h};
}

// Each state as the sum of what all inputs so far left in it.
NaiveTensors SelectiveScan(const NaiveCall& call) {
  const NaiveTensor &x = call["x"], &delta = call["delta"], &a = call["a"];
  return Y(Generate(x.shape, [&](const Place& at) {
    const int64_t t = at[0], d = at[1];
    double sum = At(call["d"], {d}) * At(x, at);
    for (int64_t s = 0; s < a.shape[1]; ++s) {
      for (int64_t from = 0; from <= t; ++from) {
        double time = 0;
        for (int64_t k = from + 1; k <= t; ++k) time += At(delta, {k, d});
        const double left = At(delta, {from, d}) * At(call["b"], {from, s}) * At(x, {from, d});
        sum += At(call["c"], {t, s}) * std::exp(time * At(a, {d, s})) * left;
      }
    }
    return sum;
  }));
}

// The forward variables of Graves, as probabilities: of the labels with blanks around each, state s
// follows itself, s - 1, and s - 2 unless that is a blank or the same label.
NaiveTensors CtcLoss(const NaiveCall& call) {
  const double blank = call.Number("blank");
  Row said = {blank};
  for (double label : call["labels"].data) said.insert(said.end(), {label, blank});
  Row before(said.size(), 0);
  for (int64_t t = 0; t < call["x"].shape[0]; ++t) {
    Row now(said.size(), 0);
    for (size_t s = 0; s < said.size(); ++s) {
      if (t == 0) now[s] = s < 2 ? 1 : 0;
      else now[s] = before[s] + (s > 0 ? before[s - 1] : 0);
      if (t > 0 && s > 1 && said[s] != blank && said[s] != said[s - 2]) now[s] += before[s - 2];
      now[s] *= std::exp(At(call["x"], {t, static_cast<int64_t>(said[s])}));
    }
    before = now;
  }
  return {{"loss",
           Scalar(-std::log(before.back() + (before.size() > 1 ? before[before.size() - 2] : 0)))}};
}

// Searches all paths, in the order in which the op prefers equal ones.
NaiveTensors Viterbi(const NaiveCall& call) {
  const int64_t length = call["x"].shape[0], states = call["x"].shape[1];
  Row path(static_cast<size_t>(length), 0), best;
  double most = -kInfinity;
  for (;;) {
    double score = 0;
    for (int64_t t = 0; t < length; ++t) {
      const int64_t state = static_cast<int64_t>(path[static_cast<size_t>(t)]);
      score += At(call["x"], {t, state});
      if (t > 0)
        score +=
            At(call["transition"], {static_cast<int64_t>(path[static_cast<size_t>(t - 1)]), state});
    }
    if (score > most) most = score, best = path;
    size_t t = 0;
    while (t < path.size() && ++path[t] == static_cast<double>(states)) path[t++] = 0;
    if (t == path.size()) break;
  }
  return {{"path", {{length}, best}}, {"score", Scalar(most)}};
}

// By the definition, starting at the ends of both.
double EditDistance(const Row& a, const Row& b) {
  if (a.empty() || b.empty()) return static_cast<double>(a.size() + b.size());
  const Row shorter_a(a.begin(), a.end() - 1), shorter_b(b.begin(), b.end() - 1);
  const double changed = a.back() == b.back() ? 0 : 1;
  return std::min({EditDistance(shorter_a, b) + 1, EditDistance(a, shorter_b) + 1,
                   EditDistance(shorter_a, shorter_b) + changed});
}

}  // namespace

NaiveTable NaiveRecurrences() {
  return {
      {"cumsum", OnPrefixes(Total)},
      {"cumsum_reverse", OnRows(SumsFrom)},
      {"cumprod", OnPrefixes(Product)},
      {"cummax", RunningExtremum(1)},
      {"cummin", RunningExtremum(-1)},
      {"logcumsumexp", OnPrefixes(LogSumExp)},
      {"linear_scan", LinearScan},
      {"discounted_sum", DiscountedSum},
      {"lfilter", Lfilter},
      {"rnn", Network({"h0"}, {"h"}, RnnStep)},
      {"lstm", Network({"h0", "c0"}, {"h", "c"}, LstmStep)},
      {"gru", Network({"h0"}, {"h"}, GruStep)},
      {"selective_scan", SelectiveScan},
      {"ctc_loss", CtcLoss},
      {"viterbi", Viterbi},
      {"edit_distance",
       [](const NaiveCall& call) {
         return NaiveTensors{{"d", Scalar(EditDistance(call["a"].data, call["b"].data))}};
       }},
  };
}

}  // namespace nestor
