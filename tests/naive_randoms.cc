// random.nestor: Philox4x32-10 in unsigned 32-bit arithmetic (Salmon et al., SC 2011).
#include <array>
#include <cmath>

#include "tests/naive_loops.h"

namespace nestor {
namespace {

using namespace naive;

using Words = std::array<uint32_t, 4>;

Words Round(const Words& c, uint32_t key0, uint32_t key1) {
  const uint64_t p = uint64_t{0xD2511F53} * c[0], q = uint64_t{0xCD9E8D57} * c[2];
  const auto high = [](uint64_t x) { return static_cast<uint32_t>(x >> 32); };
  return {high(q) ^ c[1] ^ key0, static_cast<uint32_t>(q), high(p) ^ c[3] ^ key1,
          static_cast<uint32_t>(p)};
}

Words Philox(Words counter, uint32_t key0, uint32_t key1) {
  for (int round = 0; round < 10; ++round, key0 += 0x9E3779B9, key1 += 0xBB67AE85)
    counter = Round(counter, key0, key1);
  return counter;
}

uint32_t Word(double x) { return static_cast<uint32_t>(static_cast<int64_t>(x)); }

// `f` of the counters at each place, as results of these names.
NaiveOp OfCounters(const std::vector<std::string>& results, Words (*f)(Words, uint32_t, uint32_t)) {
  return [=](const NaiveCall& call) {
    NaiveTensors words;
    for (const std::string& name : results) words[name] = {call["a"].shape, {}};
    for (size_t i = 0; i < call["a"].data.size(); ++i) {
      Words counter;
      for (size_t k = 0; k < 4; ++k) counter[k] = Word(call[std::string(1, "abcd"[k])].data[i]);
      const Words made = f(counter, Word(call.Number("key0")), Word(call.Number("key1")));
      for (size_t k = 0; k < 4; ++k) words[results[k]].data.push_back(made[k]);
    }
    return words;
  };
}

double Uniform(int64_t element, const NaiveCall& call) {
  const Words words = Philox({static_cast<uint32_t>(element), 0, Word(call.Number("call")), 0},
                             Word(call.Number("seed")), 0);
  return std::ldexp(static_cast<double>(words[0] >> 8), -24);
}

NaiveTensors RandomUniform(const NaiveCall& call) {
  const int64_t columns = call.Integer("columns");
  return Y(Generate({call.Integer("rows"), columns},
                    [&](const Place& p) { return Uniform(p[0] * columns + p[1], call); }));
}

NaiveTensors Dropout(const NaiveCall& call) {
  const NaiveTensor& x = call["x"];
  const double p_drop = call.Number("p");
  NaiveTensor y{x.shape, {}}, kept{x.shape, {}};
  for (size_t i = 0; i < x.data.size(); ++i) {
    kept.data.push_back(Uniform(static_cast<int64_t>(i), call) >= p_drop);
    y.data.push_back(kept.data.back() != 0 ? x.data[i] / (1 - p_drop) : 0);
  }
  return {{"y", y}, {"kept", kept}};
}

}  // namespace

NaiveTable NaiveRandoms() {
  return {
      {"philox_round", OfCounters({"e", "f", "g", "h"},
                                  [](Words c, uint32_t a, uint32_t b) { return Round(c, a, b); })},
      {"philox", OfCounters({"w", "x", "y", "z"}, Philox)},
      {"random_uniform", RandomUniform},
      {"dropout", Dropout},
  };
}

}  // namespace nestor
