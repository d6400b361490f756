// Ops before and after scalar ops are written out for the parts that they share, and ops that stay.
#include "uops/shared_parts.h"

#include <string>

#include "absl/types/optional.h"
#include "gtest/gtest.h"
#include "uops/notation/module.h"
#include "uops/notation/print.h"

namespace nestor {
namespace {

// The op with its shared parts written out; empty if nothing is.
std::string WrittenOut(const std::string& text) {
  const absl::optional<Op> op =
      WriteOutSharedParts(Module::Parse(text).value().Instantiate("", {}).value());
  return op ? PrintOp(*op) : "";
}

std::string AsWritten(const std::string& text) {
  return PrintOp(Module::Parse(text).value().Instantiate("", {}).value());
}

void ExpectSame(const std::string& text, const std::string& written_out) {
  EXPECT_EQ(WrittenOut(text), AsWritten(written_out));
}

TEST(SharedParts, AreWrittenOut) {
  // In any order, in each of several ops, and in operands of other ops.
  ExpectSame(
      "op f(x: f32[N]) -> (y, z) { y[i] = gelu(x[i])\n z[i] = erf(x[i] * 0.7071067811865476) }",
      "op f(x: f32[N]) -> (y, z) { z[i] = erf(x[i] * 0.7071067811865476)\n y[i] = 0.5 * x[i] * (1.0 + z[i]) }");
  ExpectSame(
      "op f(x: f64[N]) -> (y, z) { z[i] = sigmoid(exp(x[i]))\n y = sum[i](square(silu(exp(x[i])))) }",
      "op f(x: f64[N]) -> (y, z) { z[i] = sigmoid(exp(x[i]))\n y = sum[i](square(exp(x[i]) * z[i])) }");
  ExpectSame(
      "op f(x: f32[N]) -> (y, z) { y[i] = silu(gelu(x[i])) + erf(x[i] * 0.7071067811865476)\n z[i] = sigmoid(gelu(x[i])) }",
      "op f(x: f32[N]) -> (y, z) { e[i] = erf(x[i] * 0.7071067811865476)\n g[i] = 0.5 * x[i] * (1.0 + e[i])\n"
      " y[i] = g[i] * sigmoid(g[i]) + e[i]\n z[i] = sigmoid(g[i]) }");
  // In an index.
  ExpectSame(
      "op f(x: f32[N], v: f32[M]) -> (y, z) { k[i] = i64(silu(x[i]))\n y[i] = v[k[i]]\n z[i] = sigmoid(x[i]) }",
      "op f(x: f32[N], v: f32[M]) -> (y, z) { z[i] = sigmoid(x[i])\n k[i] = i64(x[i] * z[i])\n y[i] = v[k[i]] }");
}

TEST(SharedParts, StayAsTheyAre) {
  for (const char* text : {
           // No other has the part.
           "op f(x: f32[N]) -> (y, z) { y[i] = gelu(x[i])\n z[i] = erf(x[i]) }",
           "op f(x: f32[N]) -> (y, z) { y[i] = gelu(x[i])\n z[i] = gelu(x[i]) }",
           // One that costs little; an operand is no part.
           "op f(x: f32[N]) -> (y, z) { y[i] = square(x[i])\n z[i] = x[i] * x[i] + 1.0 }",
           "op f(x: f32[N]) -> (y, z) { z[i] = exp(x[i])\n y[i] = mulz(z[i], x[i]) }",
           // A scalar op that is no composed one.
           "op f(x: bf16[N]) -> (y, z) { y[i] = sigmoid(x[i])\n z[i] = exp(-x[i]) }",
       }) {
    EXPECT_EQ(WrittenOut(text), "") << text;
  }
}

}  // namespace
}  // namespace nestor
