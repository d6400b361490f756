// Programs of any number of statements, one family for each way in which statements can depend on
// each other. //bench:growth times them, and //tests:growth_test counts their work.
#ifndef NESTOR_BENCH_GROWTH_PROGRAMS_H_
#define NESTOR_BENCH_GROWTH_PROGRAMS_H_

#include <string>
#include <vector>

namespace nestor::bench {

struct GrowthKind {
  std::string name;
  // An op of `n` statements (of `n` terms, for the sum), in the notation.
  std::string (*text)(int n);
};

// chain         t_k[i] = t_{k-1}[i] * c + x[i]
// stencil       t_k[i] = t_{k-1}[i-1] + t_{k-1}[i] + t_{k-1}[i+1]
// softmax       t_k = softmax(t_{k-1}), rows of a matrix
// matmul        t_k = matmul(t_{k-1}, w_k)
// outputs       y_k[i] = x[i] * k, each of them a result
// sum           y[i] = x[i]*1 + x[i]*2 + ..
const std::vector<GrowthKind>& GrowthKinds();

}  // namespace nestor::bench

#endif  // NESTOR_BENCH_GROWTH_PROGRAMS_H_
