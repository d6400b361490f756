// Independent references for the macro ops: plain loops in double, written from the textbook (or
// PyTorch) definition and not from the notation. Test-only, and deliberately without any Nestor
// header, so that they share no mistake with it.

#ifndef NESTOR_TESTS_NAIVE_OPS_H_
#define NESTOR_TESTS_NAIVE_OPS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace nestor {

// Dense, row major. A scalar has an empty shape and one element. Integers (labels, ids) are held as
// doubles.
struct NaiveTensor {
  std::vector<int64_t> shape;
  std::vector<double> data;
};

using NaiveTensors = std::map<std::string, NaiveTensor>;
using NaiveParams = std::map<std::string, double>;

// `inputs` are the op's arguments by name, `params` its $params by name without the `$`; one that
// is left out has the op's default, exact in double (a caller that compares with f32 passes each
// value as rounded to f32). The result is by output name. REQUIRES: every argument is there, its
// shape is right, and params without a default are given.
using NaiveOp = NaiveTensors (*)(const NaiveTensors& inputs, const NaiveParams& params);

// Macro op name -> its reference. Every macro op has one.
const std::map<std::string, NaiveOp>& NaiveOps();

}  // namespace nestor

#endif  // NESTOR_TESTS_NAIVE_OPS_H_
