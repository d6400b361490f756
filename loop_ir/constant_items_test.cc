// Programs with the items that are constant, and the tensors that are kept, if some inputs are.
#include "loop_ir/constant_items.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "loop_ir/text.h"

namespace nestor::loop {
namespace {

// One letter for each nest, c where it is constant, and the names of kept tensors.
std::string Found(const char* nests, bool x, bool w) {
  constexpr char kHead[] =
      "program p(x: f32[N], w: f32[N], at: i64[N]) -> (y: f32[N]) {\n temp t: f32[N] temp u: f32[N]\n"
      " acc s: f32 = sum\n";
  const Program program = ParseProgram(absl::StrCat(kHead, nests, "\n}")).value();
  const ConstantItems found = ConstantItemsOf(program, {x, w, false});
  std::string text;
  for (size_t i = 0; i < program.body.size(); ++i) {
    if (program.body[i].As<Declaration>() == nullptr) text += found.is_constant[i] ? 'c' : '-';
  }
  for (TensorId tensor : found.kept) absl::StrAppend(&text, " ", program[tensor].name);
  return text;
}

constexpr char kChain[] =
    "for i in [0, N) { t[i] = w[i] } for i in [0, N) { u[i] = t[i] + 1.0 } for i in [0, N) { y[i] = u[i] * x[i] }";

TEST(ConstantItems, Cases) {
  EXPECT_EQ(Found(kChain, false, false), "---");
  EXPECT_EQ(Found(kChain, true, false), "---");
  EXPECT_EQ(Found(kChain, false, true), "cc- u");
  // Outputs are written by each run.
  EXPECT_EQ(Found(kChain, true, true), "cc- u");
  // A tensor that several nests write is constant if all of them are.
  EXPECT_EQ(
      Found(
          "for i in [0, N) { t[i] = 0.0 } for i in [1, N) { t[i] = w[i] } for i in [0, N) { y[i] = t[i] }",
          false, true),
      "cc- t");
  EXPECT_EQ(
      Found(
          "for i in [0, N) { t[i] = w[i] } for i in [1, N) { t[i] = x[i] } for i in [0, N) { y[i] = t[i] }",
          false, true),
      "---");
  // A later nest makes earlier ones not constant.
  EXPECT_EQ(
      Found(
          "for i in [0, N) { t[i] = w[i] } for i in [0, N) { u[i] = t[i] } for i in [1, N) { t[i] = x[i] }"
          " for i in [0, N) { y[i] = t[i] + u[i] }",
          false, true),
      "----");
  // A nest that overwrites what another one must read in each run.
  constexpr char kOverwritten[] =
      "for i in [0, N) { t[i] = w[i] } for i in [0, N) { y[i] = t[i] * x[i] }"
      " for i in [0, N) { t[i] = w[i] + 1.0 } for i in [0, N) { y[i] += t[i] }";
  EXPECT_EQ(Found(kOverwritten, false, true), "----");
  EXPECT_EQ(Found(kOverwritten, true, true), "----");
  // Indices are read, too.
  EXPECT_EQ(Found("for i in [0, N) { t[i] = w[at[i] | 0.0] } for i in [0, N) { y[i] = t[i] }",
                  false, true),
            "--");
  // Accumulators are kept likewise.
  EXPECT_EQ(Found("for i in [0, N) { s += w[i] } for i in [0, N) { y[i] = s }", false, true),
            "c- s");
  EXPECT_EQ(
      Found(
          "for i in [0, N) { s += w[i] } for i in [0, N) { s += x[i] } for i in [0, N) { y[i] = s }",
          false, true),
      "---");
}

}  // namespace
}  // namespace nestor::loop
