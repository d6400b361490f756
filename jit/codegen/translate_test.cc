// Tiny programs and all of their operations: where values are computed, which accesses are masked,
// and how addresses run.
#include "jit/codegen/translate.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "fusion/pass_testing.h"
#include "gtest/gtest.h"
#include "jit/codegen/operations.h"
#include "loop_ir/program.h"
#include "loop_ir/proofs.h"

namespace nestor::jit {
namespace {

std::string TranslationOf(const char* text) {
  loop::Program program = loop::ParseVerified(text);
  EXPECT_TRUE(MarkChecked(program).ok());
  const auto translation = Translate(program, {});
  if (!translation.ok()) return translation.status().ToString();
  std::string operations;
  for (const Step& step : translation->steps) {
    absl::StrAppend(&operations, step.name, step.parallel ? " parallel" : "", "\n",
                    ToString(step.operations));
  }
  return operations;
}

TEST(Translate, TinyPrograms) {
  const struct {
    const char* program;
    const char* operations;
  } kCases[] = {
      // A loop of scalars. Table: the extent, then the addresses of results and arguments.
      {"program scale(x: f32[N]) -> (y: f32[N])"
       " { for i in [0, N) { y[i] = x[i] * 2.0 } }",
       R"(
scale.0
c0 = f32 0x40000000
g1 = move_g table[1]
g2 = move_g table[2]
g0 = move_g 0
branch greater_equal g0, table[0], L0
loop_begin L1
  v3 = load.f32x1 f32 invariant [g2 + g0 * 4]
  v4 = mul.f32x1 v3, c0
  store.f32x1 f32 [g1 + g0 * 4], v4
  g0 = add_g g0, 1
loop_end less g0, table[0], L1
label L0
return 0)"},
      // One iteration or none: no jump back.
      {"program choice(x: f32[N]) -> (y: f32[N])"
       " { for z in [0, min(1, N)) { y[z] = x[z] * 2.0 } }",
       R"(
choice.0
c0 = f32 0x40000000
g0 = move_g table[1]
g1 = move_g table[2]
branch less_equal table[0], 0, L0
v2 = load.f32x1 f32 invariant [g1]
v3 = mul.f32x1 v2, c0
store.f32x1 f32 [g0], v3
label L0
return 0)"},
      // The prefetched element is at a place that no pointer follows.
      {"program ahead(x: f32[N]) -> (y: f32[N])"
       " { for i in [0, N) prefetch x[i*i] { y[i] = 2.0 } }",
       R"(
ahead.0
c0 = f32 0x40000000
g1 = move_g table[1]
g6 = move_g table[2]
g0 = move_g 0
branch greater_equal g0, table[0], L0
loop_begin L1
  v2 = move.f32x1 c0
  store.f32x1 f32 [g1 + g0 * 4], v2
  g3 = mul_overflows_g g0, g0
  g4 = compare_g equal g3, 0
  g5 = mul_g g0, g0
  g7 = mul_g g5, 4
  g8 = add_g g6, g7
  prefetch f32 [g8]
  g0 = add_g g0, 1
loop_end less g0, table[0], L1
label L0
return 0)"},
      // What is written out prefetches, too.
      {"program ahead(x: f32[N]) -> (y: f32[2])"
       " { for i in [0, 2) unroll prefetch x[i + 16] { y[i] = 2.0 } }",
       R"(
ahead.0
c0 = f32 0x40000000
g0 = move_g table[0]
g2 = move_g table[1]
v1 = move.f32x1 c0
store.f32x1 f32 [g0], v1
prefetch f32 [g2 + 64]
v3 = move.f32x1 c0
store.f32x1 f32 [g0 + 4], v3
prefetch f32 [g2 + 68]
return 0)"},
      // Runs the iterations that it is given.
      {"program scale(x: f32[N]) -> (y: f32[N])"
       " { for i in [0, N) parallel { y[i] = x[i] * 2.0 } }",
       R"(
scale.0 parallel
c0 = f32 0x40000000
g3 = move_g table[1]
g4 = move_g table[2]
g0 = parameter_g 0
g1 = parameter_g 1
g2 = move_g g0
branch greater_equal g2, g1, L0
loop_begin L1
  v5 = load.f32x1 f32 invariant [g4 + g2 * 4]
  v6 = mul.f32x1 v5, c0
  store.f32x1 f32 [g3 + g2 * 4], v6
  g2 = add_g g2, 1
loop_end less g2, g1, L1
label L0
return 0)"},
      // Two vectors at a time, then one, and then the remaining elements, whose number is in the
      // table.
      {"program scale(x: f32[N]) -> (y: f32[N])"
       " { for i in [0, N) vector(8) interleave(2) tail { y[i] = x[i] * 2.0 } }",
       R"(
scale.0
c0 = f32 0x40000000
g2 = move_g table[1]
g3 = move_g table[2]
g0 = move_g 0
g1 = sub_g table[0], 15
branch greater_equal g0, g1, L0
loop_begin L1
  v4 = load.f32x8 f32 invariant [g3 + g0 * 4]
  v6 = load.f32x8 f32 invariant [g3 + g0 * 4 + 32]
  v5 = mul.f32x8 v4, c0
  v7 = mul.f32x8 v6, c0
  store.f32x8 f32 [g2 + g0 * 4], v5
  store.f32x8 f32 [g2 + g0 * 4 + 32], v7
  g0 = add_g g0, 16
loop_end less g0, g1, L1
label L0
g8 = sub_g table[0], 7
branch greater_equal g0, g8, L2
loop_begin L3
  v9 = load.f32x8 f32 invariant [g3 + g0 * 4]
  v10 = mul.f32x8 v9, c0
  store.f32x8 f32 [g2 + g0 * 4], v10
  g0 = add_g g0, 8
loop_end less g0, g8, L3
label L2
branch greater_equal g0, table[0], L4
v11 = mask_of_count.i32x8 table[3]
v12 = load_partial.f32x8 f32 invariant [g3 + g0 * 4], v11, table[3]
v13 = mul.f32x8 v12, c0
store_partial.f32x8 f32 [g2 + g0 * 4], v13, none, table[3]
label L4
return 0)"},
      // One vector at a time, of a length that leaves nothing.
      {"program scale(x: f32[N]) -> (y: f32[N])"
       " { for i in [0, 8*(N/8)) vector(8) interleave(1) { y[i] = x[i] * 2.0 } }",
       R"(
scale.0
c0 = f32 0x40000000
g2 = move_g table[1]
g3 = move_g table[2]
g0 = move_g 0
g1 = sub_g table[0], 7
branch greater_equal g0, g1, L0
loop_begin L1
  v4 = load.f32x8 f32 invariant [g3 + g0 * 4]
  v5 = mul.f32x8 v4, c0
  store.f32x8 f32 [g2 + g0 * 4], v5
  g0 = add_g g0, 8
loop_end less g0, g1, L1
label L0
return 0)"},
      // Two at a time leave none.
      {"program scale(x: f32[N]) -> (y: f32[N])"
       " { for i in [0, 16*(N/16)) vector(8) interleave(2) { y[i] = x[i] * 2.0 } }",
       R"(
scale.0
c0 = f32 0x40000000
g2 = move_g table[1]
g3 = move_g table[2]
g0 = move_g 0
g1 = sub_g table[0], 15
branch greater_equal g0, g1, L0
loop_begin L1
  v4 = load.f32x8 f32 invariant [g3 + g0 * 4]
  v6 = load.f32x8 f32 invariant [g3 + g0 * 4 + 32]
  v5 = mul.f32x8 v4, c0
  v7 = mul.f32x8 v6, c0
  store.f32x8 f32 [g2 + g0 * 4], v5
  store.f32x8 f32 [g2 + g0 * 4 + 32], v7
  g0 = add_g g0, 16
loop_end less g0, g1, L1
label L0
return 0)"},
      // A copy for each vector; the last one is masked.
      {"program scale(x: f32[N]) -> (y: f32[N])"
       " { for n in [0, N/12) { for i in [12*n, 12*n + 12) vector(8) unroll tail { y[i] = x[i] * 2.0 } } }",
       R"(
scale.0
c0 = f32 0x40000000
g3 = move_g table[1]
g4 = move_g table[2]
g0 = move_g 0
branch greater_equal g0, table[0], L0
loop_begin L2
  g1 = mul_g 12, g0
  g2 = add_g g1, 12
  v5 = load.f32x8 f32 invariant [g4 + g1 * 4]
  v7 = mask_of_count.i32x8 4
  v6 = mul.f32x8 v5, c0
  v8 = load_partial.f32x8 f32 invariant [g4 + g1 * 4 + 32], v7, 4
  store.f32x8 f32 [g3 + g1 * 4], v6
  v9 = mul.f32x8 v8, c0
  store_partial.f32x8 f32 [g3 + g1 * 4 + 32], v9, none, 4
  g0 = add_g g0, 1
loop_end less g0, table[0], L2
label L0
return 0)"},
      // A row's address runs with its loop; the accumulator is a register.
      {"program rows(x: f32[N, M]) -> (y: f32[N])"
       " { for i in [0, N) { acc a: f32 = sum for j in [0, M) { a += x[i, j] } y[i] = a } }",
       R"(
rows.0
c0 = f32 0x0
g3 = move_g table[2]
g7 = move_g table[4]
g4 = move_g g3
g0 = move_g 0
branch greater_equal g0, table[0], L0
loop_begin L3
  v1 = move.f32x1 c0
  g2 = move_g 0
  branch greater_equal g2, table[1], L1
  loop_begin L2
    v5 = load.f32x1 f32 invariant [g4 + g2 * 4]
    v1 = add.f32x1 v1, v5
    g2 = add_g g2, 1
  loop_end less g2, table[1], L2
  label L1
  store.f32x1 f32 [g7 + g0 * 4], v1
  g4 = add_g g4, table[3]
  g0 = add_g g0, 1
loop_end less g0, table[0], L3
label L0
return 0)"},
      // A mask that is a branch; the offset is added to the address once.
      {"program shift(x: f32[N]; $k: i64) -> (y: f32[N])"
       " { for i in [0, N) { y[i] = x[i - $k | 0.0] } }",
       R"(
shift.0
c0 = f32 0x0
g1 = move_g table[1]
g4 = move_g table[3]
g5 = add_g g4, table[4]
g0 = move_g 0
branch greater_equal g0, table[0], L0
loop_begin L2
  g2 = add_g g0, table[2]
  g3 = compare_g below g2, table[0]
  v6 = move.f32x1 c0
  branch equal g3, 0, L1
  v6 = load.f32x1 f32 invariant [g5 + g0 * 4]
  label L1
  store.f32x1 f32 [g1 + g0 * 4], v6
  g0 = add_g g0, 1
loop_end less g0, table[0], L2
label L0
return 0)"},
      // A window: its places in a row are displacements of one pointer, and the sum so far, which
      // needs one more register, is computed before the added product.
      {"program window(x: f32[N, 4], w: f32[2, 2]) -> (y: f32[N]) { for i in [0, N - 1) {"
       " y[i] = fma(w[1, 1], x[i + 1, 1], fma(w[0, 1], x[i, 1], w[0, 0] * x[i, 0])) } }",
       R"(
window.0
g1 = move_g table[1]
g2 = move_g table[2]
g4 = move_g table[3]
g5 = move_g g4
g0 = move_g 0
branch greater_equal g0, table[0], L0
loop_begin L1
  v3 = load.f32x1 f32 invariant [g2]
  v6 = load.f32x1 f32 invariant [g5]
  v7 = mul.f32x1 v3, v6
  v8 = load.f32x1 f32 invariant [g2 + 4]
  v9 = load.f32x1 f32 invariant [g5 + 4]
  v10 = fma.f32x1 v8, v9, v7
  v11 = load.f32x1 f32 invariant [g2 + 12]
  v12 = load.f32x1 f32 invariant [g5 + 20]
  v13 = fma.f32x1 v11, v12, v10
  store.f32x1 f32 [g1 + g0 * 4], v13
  g5 = add_g g5, 16
  g0 = add_g g0, 1
loop_end less g0, table[0], L1
label L0
return 0)"},
  };
  for (const auto& c : kCases) {
    EXPECT_EQ(absl::StrCat("\n", TranslationOf(c.program)), absl::StrCat(c.operations, "\n"))
        << c.program;
  }
}

// A pass that loses a declaration is found before memory is written that nobody reserved.
TEST(TranslateDeathTest, TempIsDeclared) {
  loop::Program program = loop::ParseVerified(
      "program p(x: f32[N]) -> (y: f32[N]) { for i in [0, N) { temp t: f32[4] t[0] = x[i] y[i] = t[0] } }");
  loop::Scope& body = program.body[0].As<loop::Loop>()->body;
  body.erase(body.begin());
  EXPECT_DEATH(Translate(program, {}).status().IgnoreError(), "t is declared nowhere in");
}

}  // namespace
}  // namespace nestor::jit
