// Independent references for the macro ops: plain loops in double, written from the textbook (or
// PyTorch) definition and not from the notation. Test-only, and deliberately without any Nestor
// header, so that they share no mistake with it.

#ifndef NESTOR_TESTS_NAIVE_OPS_H_
#define NESTOR_TESTS_NAIVE_OPS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace nestor {

// Dense, row major. A scalar has an empty shape and one element. Integers (labels, ids) are held as
// doubles, and so are bools.
struct NaiveTensor {
  std::vector<int64_t> shape;
  std::vector<double> data;
};

using NaiveTensors = std::map<std::string, NaiveTensor>;
using NaiveParams = std::map<std::string, double>;

// The op's arguments by name, and all its $params by name without the `$`, defaults included (a
// caller that compares with f32 passes each value as rounded to f32).
struct NaiveCall {
  const NaiveTensors& inputs;
  const NaiveParams& params;

  const NaiveTensor& operator[](const std::string& name) const { return inputs.at(name); }
  double Number(const std::string& name) const { return params.at(name); }
  int64_t Integer(const std::string& name) const { return static_cast<int64_t>(params.at(name)); }
};

// The results by name. REQUIRES: every argument and $param is there, and shapes fit.
using NaiveOp = std::function<NaiveTensors(const NaiveCall& call)>;
using NaiveTable = std::map<std::string, NaiveOp>;

// Macro op name -> its reference. Every macro op has one.
const NaiveTable& NaiveOps();

// The families that it joins, one for each file.
NaiveTable NaiveMatmuls();
NaiveTable NaiveConvolutions();
NaiveTable NaivePools();
NaiveTable NaiveSoftmaxes();
NaiveTable NaiveLosses();
NaiveTable NaiveNorms();
NaiveTable NaiveAttentions();
NaiveTable NaiveEmbeddings();
NaiveTable NaiveReductions();
NaiveTable NaiveSorts();
NaiveTable NaiveMoves();
NaiveTable NaivePads();
NaiveTable NaiveGathers();
NaiveTable NaiveWindows();
NaiveTable NaiveResizes();
NaiveTable NaiveSamples();
NaiveTable NaiveQuantizations();
NaiveTable NaiveRandoms();
NaiveTable NaiveOptimizers();
NaiveTable NaiveRecurrences();

}  // namespace nestor

#endif  // NESTOR_TESTS_NAIVE_OPS_H_
