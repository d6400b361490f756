// Which tensors and quotients of a program reach a discrete step.
#include "loop_ir/discrete_steps.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/types/variant.h"
#include "gtest/gtest.h"
#include "loop_ir/text.h"
#include "loop_ir/verify.h"

namespace nestor::loop {
namespace {

// The names of the tensors that reach a step, in order.
std::string Reached(const Program& program, DiscreteSteps::Kind kind = DiscreteSteps::Kind::kAll) {
  const DiscreteSteps steps(program, kind);
  std::string names;
  for (size_t i = 0; i < program.tensors.size(); ++i) {
    if (steps.Reach(TensorId{static_cast<int32_t>(i)}))
      absl::StrAppend(&names, names.empty() ? "" : " ", program.tensors[i].name);
  }
  return names;
}

Program Of(absl::string_view body) {
  const std::string text = absl::StrCat(
      "program p(x: f32[N], v: f32, ids: i64[N]) -> (y: f32[N], z: f32[N], k: i64[N], q: f32) {\n"
      "  temp t: f32  temp u: f32  temp w: f32\n  \n",
      body, "\n }\n");
  const auto program = ParseProgram(text);
  EXPECT_TRUE(program.ok()) << program.status() << text;
  return program.ok() ? *program : Program();
}

TEST(DiscreteSteps, Tensors) {
  const struct {
    const char* body;
    const char* reached;
  } kCases[] = {
      {"y[0] = x[0]  q = exp(v)", ""},
      {"y[0] = floor(x[0])", "x"},
      {"y[0] = where(x[0] < v, z[0], 1.0)", "x v"},
      // Backwards along a chain, in whatever order it is written.
      {"t = x[0]  u = t  w = u  k[0] = i64(w)", "x t u w"},
      {"k[0] = i64(w)  w = u  u = t  t = x[0]", "x t u w"},
      {"t = x[0] + u  u = t * v  y[0] = sign(t)", "x v t u"},
      // Through accumulators; an argmax is a step itself, its position another value.
      {"acc a: f32 = sum  a += x[0]  y[0] = ceil(a)", "x a"},
      {"acc a: f32 = argmax  a argmax= (x[0], i64(v))  k[0] = a", "x v"},
      {"acc a: f32 = argmax  a argmax= (x[0], ids[0])  y[0] = f32(a) + v", "x"},
      // Integers come from steps and reach none.
      {"k[0] = ids[0] + 1  y[0] = floor(f32(ids[0]))  z[0] = x[ids[0] | 0.0]", ""},
      {"y[0] = x[0 | 0.0 if ids[0] < 3]", ""},
      // A masked load as any other, and a dropped store.
      {"drop t if ids[0] < 3 = x[0]  y[0] = round(t)", "x t"},
      {"y[0] = round(x[ids[0] | 0.0])", "x"},
  };
  for (const auto& c : kCases) {
    EXPECT_EQ(Reached(Of(c.body)), c.reached) << c.body;
  }
}

// Through maxima, but not through what is added up, to an accumulator or to an element.
TEST(DiscreteSteps, Equalities) {
  const struct {
    const char* body;
    const char* reached;
  } kCases[] = {
      {"y[0] = floor(x[0])  z[0] = f32(x[0] < v)", ""},
      {"acc a: i64 = argmax  a argmax= (x[0], ids[0])  k[0] = a", ""},
      {"z[0] = f32(x[0] == v)", "x v"},
      {"t = x[0] * v  z[0] = f32(t != u)", "x v t u"},
      {"acc a: f32 = max  a max= x[0] * v  t = x[0]  z[0] = f32(t == a)", "x v t a"},
      {"acc a: f32 = sum  a += x[0] * v  z[0] = f32(a == u)", "u a"},
      {"acc a: f32 = prod  a *= x[0]  z[0] = f32(a == u)", "u a"},
      {"t = 0.0  t = t + x[0]  z[0] = f32(t == u)", "t u"},
      {"z[0] = f32(x[0] == 0.0)", ""},
      {"k[0] = i64(ids[0] == 3)", ""},
  };
  for (const auto& c : kCases)
    EXPECT_EQ(Reached(Of(c.body), DiscreteSteps::Kind::kEqualities), c.reached) << c.body;
}

}  // namespace
}  // namespace nestor::loop
