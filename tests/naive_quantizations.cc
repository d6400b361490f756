// quantize.nestor.
#include <algorithm>
#include <cmath>

#include "tests/naive_loops.h"

namespace nestor {
namespace {

using namespace naive;

double Quantized(double x, double scale, double zero, double low, double high) {
  return std::clamp(std::nearbyint(x / scale) + zero, low, high);
}

NaiveOp Quantize(double low, double high) {
  return [=](const NaiveCall& call) {
    return Y(Mapped(call["x"], [&](double x) {
      return Quantized(x, call.Number("scale"), call.Number("zero"), low, high);
    }));
  };
}

NaiveTensors Dequantize(const NaiveCall& call) {
  return Y(Mapped(call["x"],
                  [&](double x) { return (x - call.Number("zero")) * call.Number("scale"); }));
}

NaiveTensors QuantizeChannels(const NaiveCall& call) {
  const NaiveTensor& x = call["x"];
  return Y(Generate(x.shape, [&](const Place& p) {
    return Quantized(At(x, p), call["scale"].data[p.back()], call["zero"].data[p.back()], -128,
                     127);
  }));
}

NaiveTensors DequantizeChannels(const NaiveCall& call) {
  const NaiveTensor& x = call["x"];
  return Y(Generate(x.shape, [&](const Place& p) {
    return (At(x, p) - call["zero"].data[p.back()]) * call["scale"].data[p.back()];
  }));
}

NaiveTensors FakeQuantize(const NaiveCall& call) {
  const double scale = call.Number("scale"), zero = call.Number("zero");
  return Y(Mapped(call["x"], [&](double x) {
    return (Quantized(x, scale, zero, call.Number("low"), call.Number("high")) - zero) * scale;
  }));
}

NaiveTensors MatmulIntegers(const NaiveCall& call) {
  const NaiveTensor a = Mapped(call["a"], [&](double x) { return x - call.Number("zero_a"); });
  const NaiveTensor b = Mapped(call["b"], [&](double x) { return x - call.Number("zero_b"); });
  return {{"c", Einsum("ik,kj->ij", {a, b})}};
}

}  // namespace

NaiveTable NaiveQuantizations() {
  return {
      {"quantize_u8", Quantize(0, 255)},
      {"quantize_i8", Quantize(-128, 127)},
      {"quantize_i8_channels", QuantizeChannels},
      {"dequantize_u8", Dequantize},
      {"dequantize_i8", Dequantize},
      {"dequantize_i8_channels", DequantizeChannels},
      {"fake_quantize", FakeQuantize},
      {"matmul_u8_i8", MatmulIntegers},
  };
}

}  // namespace nestor
