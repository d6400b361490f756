// matmul.nestor.
#include "tests/naive_loops.h"

namespace nestor {
namespace {

using namespace naive;

// A letter for each axis that two matrices of a batch share.
std::string Batch(const NaiveTensor& x, size_t own) {
  return std::string("uvwxyz").substr(0, x.shape.size() - own);
}

NaiveOp BatchMatmul(const std::string& a, const std::string& b) {
  return [=](const NaiveCall& call) {
    const std::string batch = Batch(call["a"], 2);
    return NaiveTensors{
        {"c", Einsum(batch + a + "," + batch + b + "->" + batch + "ij", {call["a"], call["b"]})}};
  };
}

NaiveTensors Linear(const NaiveCall& call) {
  const std::string batch = Batch(call["x"], 1);
  NaiveTensor y = Einsum(batch + "k,ok->" + batch + "o", {call["x"], call["w"]});
  return Y(Generate(y.shape, [&](const Place& p) { return At(y, p) + call["b"].data[p.back()]; }));
}

NaiveTensors MatmulShared(const NaiveCall& call) {
  const std::string batch = Batch(call["a"], 1);
  return {{"c", Einsum(batch + "k,kj->" + batch + "j", {call["a"], call["b"]})}};
}

NaiveTensors Gemm(const NaiveCall& call) {
  const NaiveTensor product = Einsum("ik,kj->ij", {call["a"], call["b"]});
  return Y(Generate(product.shape, [&](const Place& p) {
    return call.Number("alpha") * At(product, p) + call.Number("beta") * At(call["c"], p);
  }));
}

NaiveTensors Dot(const NaiveCall& call) {
  const std::string batch = Batch(call["a"], 1);
  return Y(Einsum(batch + "k," + batch + "k->" + batch, {call["a"], call["b"]}));
}

NaiveTensors Bilinear(const NaiveCall& call) {
  const std::string batch = Batch(call["a"], 1);
  const NaiveTensor y =
      Einsum(batch + "i,oij," + batch + "j->" + batch + "o", {call["a"], call["w"], call["b"]});
  return Y(
      Generate(y.shape, [&](const Place& p) { return At(y, p) + call["bias"].data[p.back()]; }));
}

}  // namespace

NaiveTable NaiveMatmuls() {
  return {
      {"matmul", BatchMatmul("ik", "kj")},
      {"linear", Linear},
      {"batch_matmul", BatchMatmul("ik", "kj")},
      {"matmul_shared", MatmulShared},
      {"matmul_nt", BatchMatmul("ik", "jk")},
      {"matmul_tn", BatchMatmul("ki", "kj")},
      {"matmul_tt", BatchMatmul("ki", "jk")},
      {"gemm", Gemm},
      {"matvec",
       [](const NaiveCall& call) {
         return Y(Einsum("ik,k->i", {call["a"], call["x"]}));
       }},
      {"dot", Dot},
      {"outer",
       [](const NaiveCall& call) {
         return Y(Einsum("i,j->ij", {call["a"], call["b"]}));
       }},
      {"bilinear", Bilinear},
  };
}

}  // namespace nestor
