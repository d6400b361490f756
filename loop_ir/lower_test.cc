// What each kind of micro-op is in loops, as text. That the loops compute what the op means is the
// law's table (tests/semantics_cases.txt), on programs of any size.
#include "loop_ir/lower.h"

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "loop_ir/program.h"
#include "loop_ir/text.h"
#include "loop_ir/verify.h"
#include "uops/notation/module.h"
#include "uops/op.h"

namespace nestor {
namespace {

struct LowerCase {
  const char* op;
  const char* program;
};

// With temporaries by number: Lower names them for their nodes.
std::string LoweredText(const Op& op) {
  loop::Program program = Lower(op);
  EXPECT_EQ(Verify(program), absl::OkStatus());
  int number = 0;
  for (loop::TensorId temp : DeclaredIn(program.body)) {
    if (program[temp].storage == loop::Storage::kTemp)
      program[temp].name = absl::StrCat("t", number++);
  }
  return ToText(program);
}

// `program` is laid out as it reads best: it is parsed and printed as well.
void ExpectLowered(absl::Span<const LowerCase> cases) {
  for (const LowerCase& c : cases) {
    const testing::ScopedTrace trace(__FILE__, __LINE__, c.op);
    const absl::StatusOr<Op> op = ParseOp(c.op);
    ASSERT_TRUE(op.ok()) << op.status();
    const absl::StatusOr<loop::Program> want = loop::ParseProgram(c.program);
    EXPECT_TRUE(want.ok()) << want.status();
    EXPECT_EQ(LoweredText(*op), want.ok() ? ToText(*want) : "");
  }
}

TEST(Lower, Map) {
  ExpectLowered({
      // A block for each node: loops over its axes, the first outermost.
      {"op f(x: f32[M, N], z: f32[M, N]) -> (y) { y[i, j] = x[i, j] * z[i, j] }",
       R"(program f(x: f32[M, N], z: f32[M, N]) -> (y: f32[M, N]) {
         for i in [0, M) { for j in [0, N) { y[i, j] = x[i, j] * z[i, j] } }
       })"},
      // Constants and $params stand where they are used.
      {"op f(x: f32[]; $a: f32) -> (y) { y = fma(x, $a, 2.0) }",
       "program f(x: f32[]; $a: f32) -> (y: f32[]) { y = fma(x, $a, 2.0) }"},
      {"op f(c: bool[N], a: i32[N], b: i32[N]) -> (y) { y[i] = where(c[i], a[i], b[i]) }",
       R"(program f(c: bool[N], a: i32[N], b: i32[N]) -> (y: i32[N]) {
         for i in [0, N) { y[i] = where(c[i], a[i], b[i]) }
       })"},
      {"op f(x: f16[N]) -> (y) { y[i] = i8(x[i]) }",
       "program f(x: f16[N]) -> (y: i8[N]) { for i in [0, N) { y[i] = i8(x[i]) } }"},
      // Blocks are in topological order, and fill a tensor each.
      {"op f(x: f32[N]) -> (y) { y[i] = exp(-x[i]) }",
       R"(program f(x: f32[N]) -> (y: f32[N]) {
         temp t0: f32[N]
         for i in [0, N) { t0[i] = -x[i] }
         for i in [0, N) { y[i] = exp(t0[i]) }
       })"},
      // A result is computed into its output, and read from there; what nothing needs is left out.
      {"op f(x: f32[N]) -> (e, y) { e[i] = exp(x[i]);  unused[i] = sin(x[i]);  y[i] = -e[i] }",
       R"(program f(x: f32[N]) -> (e: f32[N], y: f32[N]) {
         for i in [0, N) { e[i] = exp(x[i]) }
         for i in [0, N) { y[i] = -e[i] }
       })"},
  });
}

TEST(Lower, Index) {
  ExpectLowered({
      {"op f(x: f32[N]; $k) -> (y) { y[i, j] = 2*i + j*$k where i < N, j < 3 }",
       R"(program f(x: f32[N]; $k: i64) -> (y: i64[N, 3]) {
         domain d < N, d_2 < 3; 2*d + d_2*$k
         for i in [0, N) { for j in [0, 3) { y[i, j] = index(2*i + j*$k) } }
       })"},
      // Beside values of tensors it is one itself.
      {"op f(x: i64[N]) -> (y) { y[i] = x[i] * i }",
       R"(program f(x: i64[N]) -> (y: i64[N]) {
         temp t0: i64[N]
         for i in [0, N) { t0[i] = index(i) }
         for i in [0, N) { y[i] = x[i] * t0[i] }
       })"},
  });
}

TEST(Lower, Reindex) {
  ExpectLowered({
      // Whole axes, permuted or repeated, cannot be left.
      {"op f(x: f32[M, N]) -> (y) { y[j, k, i] = x[i, j] where k < 3 }",
       R"(program f(x: f32[M, N]) -> (y: f32[N, 3, M]) {
         for i in [0, N) { for j in [0, 3) { for k in [0, M) { y[i, j, k] = x[k, i] } } }
       })"},
      {"op f(x: f32[N, N]) -> (y) { y[i] = x[i, i] }",
       "program f(x: f32[N, N]) -> (y: f32[N]) { for i in [0, N) { y[i] = x[i, i] } }"},
      // All other places are masked, with what an element outside is.
      {"op f(x: f32[N]; $s) -> (y) { y[i] = x[i*$s - 1 | -inf] where i < 3 }",
       R"(program f(x: f32[N]; $s: i64) -> (y: f32[3]) {
         domain d < 3: d*$s - 1
         for i in [0, 3) { y[i] = x[i*$s - 1 | -inf] }
       })"},
      {"op f(x: f32[N]) -> (y) { y[i] = x[i | 9 if i != 1] }",
       R"(program f(x: f32[N]) -> (y: f32[N]) {
         for i in [0, N) { y[i] = x[i | 9.0 if i != 1] }
       })"},
      {"op f(x: f32[N]; $a: f32) -> (y) { y[i] = x[i - 1 | $a] where i < N }",
       R"(program f(x: f32[N]; $a: f32) -> (y: f32[N]) {
         for i in [0, N) { y[i] = x[i - 1 | $a] }
       })"},
      // An integer $param is a symbol of index expressions.
      {"op f(x: i8[N]; $a: i8) -> (y) { y[i] = x[i - 1 | $a] where i < N }",
       R"(program f(x: i8[N]; $a: i8) -> (y: i8[N]) {
         for i in [0, N) { y[i] = x[i - 1 | i8(index($a))] }
       })"},
      // Gathers.
      {"op f(x: f32[V, D], ids: i64[N]) -> (y) { y[n, d] = x[ids[n], d] }",
       R"(program f(x: f32[V, D], ids: i64[N]) -> (y: f32[N, D]) {
         for i in [0, N) { for j in [0, D) { y[i, j] = x[ids[i], j | 0.0] } }
       })"},
      {"op f(x: f32[V], ids: i64[N]) -> (y) { y[n] = x[2*ids[ids[n] + 1] - n] }",
       R"(program f(x: f32[V], ids: i64[N]) -> (y: f32[N]) {
         for i in [0, N) { y[i] = x[2*ids[ids[i] + 1] - i | 0.0] }
       })"},
      // A constant that is there only on a condition is read from memory.
      {"op f() -> (y) { c = 2.0;  y[i] = c where i < 3 }",
       "program f() -> (y: f32[3]) { for i in [0, 3) { y[i] = 2.0 } }"},
      {"op f() -> (y) { c = 2.0;  y[i] = c[ if i < 2] where i < 3 }",
       R"(program f() -> (y: f32[3]) {
         temp t0: f32
         t0 = 2.0
         for i in [0, 3) { y[i] = t0[ | 0.0 if i < 2] }
       })"},
  });
}

TEST(Lower, Reduce) {
  ExpectLowered({
      {"op f(x: f64[M, N]) -> (y) { y[i] = sum[j](x[i, j]) }",
       R"(program f(x: f64[M, N]) -> (y: f64[M]) {
         for i in [0, M) {
           acc acc: f64 = sum
           for j in [0, N) { acc += x[i, j] }
           y[i] = acc
         }
       })"},
      // The axes of a reduction come last: those of a permuted copy, if need be.
      {"op f(x: i32[M, N]) -> (y) { y[j] = prod[i](x[i, j]) }",
       R"(program f(x: i32[M, N]) -> (y: i32[N]) {
         temp t0: i32[N, M]
         for i in [0, N) { for j in [0, M) { t0[i, j] = x[j, i] } }
         for i in [0, N) {
           acc acc: i32 = prod
           for j in [0, M) { acc *= t0[i, j] }
           y[i] = acc
         }
       })"},
      {"op f(x: bool[M, N]) -> (y) { y = any[i, j](x[i, j]) }",
       R"(program f(x: bool[M, N]) -> (y: bool[]) {
         acc acc: bool = any
         for i in [0, M) { for j in [0, N) { acc any= x[i, j] } }
         y = acc
       })"},
      // Narrow floats are summed in a wider type, and rounded once.
      {"op f(x: bf16[N]) -> (y) { y = sum[i](x[i]) }",
       R"(program f(x: bf16[N]) -> (y: bf16[]) {
         acc acc: f32 = sum
         for i in [0, N) { acc += f32(x[i]) }
         y = bf16(acc)
       })"},
      {"op f(x: f16[N]) -> (y) { y = max[i](x[i]) }",
       R"(program f(x: f16[N]) -> (y: f16[]) {
         acc acc: f32 = max
         for i in [0, N) { acc max= f32(x[i]) }
         y = f16(acc)
       })"},
      // Positions are row-major, and must not overflow.
      {"op f(x: f32[M, N, C]) -> (y) { y[i] = argmax[j, k](x[i, j, k]) }",
       R"(program f(x: f32[M, N, C]) -> (y: i64[M]) {
         domain d < M, d_2 < N, d_3 < C; d_2*C + d_3
         for i in [0, M) {
           acc best: f32 = argmax
           for j in [0, N) { for k in [0, C) { best argmax= (x[i, j, k], index(j*C + k)) } }
           y[i] = best
         }
       })"},
      {"op f(x: f32[N]) -> (y) { y = argmin[i](x[i]) }",
       R"(program f(x: f32[N]) -> (y: i64[]) {
         acc best: f32 = argmin
         for i in [0, N) { best argmin= (x[i], index(i)) }
         y = best
       })"},
  });
}

TEST(Lower, Scatter) {
  ExpectLowered({
      // Reset, then accumulate; what falls outside is dropped.
      {"op f(g: f32[N, D], ids: i64[N]; $V) -> (y) { y[ids[n], d]: f32[$V, D] += g[n, d] }",
       R"(program f(g: f32[N, D], ids: i64[N]; $V: i64) -> (y: f32[$V, D]) {
         domain d < $V, d_2 < D
         for i in [0, $V) { for j in [0, D) { y[i, j] = 0.0 } }
         for i in [0, N) { for j in [0, D) { drop y[ids[i], j] += g[i, j] } }
       })"},
      {"op f(x: f32[N]; $s) -> (y) { y[i*$s]: f32[7] max= x[i] }",
       R"(program f(x: f32[N]; $s: i64) -> (y: f32[7]) {
         domain d < N: d*$s
         for i in [0, 7) { y[i] = -inf }
         for i in [0, N) { drop y[i*$s] max= x[i] }
       })"},
      {"op f(x: u8[N], ids: i64[N]) -> (y) { y[ids[i]]: u8[3] min= x[i] }",
       R"(program f(x: u8[N], ids: i64[N]) -> (y: u8[3]) {
         for i in [0, 3) { y[i] = u8(255) }
         for i in [0, N) { drop y[ids[i]] min= x[i] }
       })"},
      // Narrow floats: a wider tensor, and a third block.
      {"op f(x: f16[N], ids: i64[N]) -> (y) { y[ids[i]]: f16[3] *= x[i] }",
       R"(program f(x: f16[N], ids: i64[N]) -> (y: f16[3]) {
         temp t0: f32[3]
         for i in [0, 3) { t0[i] = 1.0 }
         for i in [0, N) { drop t0[ids[i]] *= f32(x[i]) }
         for i in [0, 3) { y[i] = f16(t0[i]) }
       })"},
  });
}

TEST(Lower, Recurrence) {
  ExpectLowered({
      // One loop over the steps around all that a step computes, with no loop for that axis inside.
      {"op f(x: f32[T, C]) -> (y) { for t < T { y[t, c] = y[t - 1, c] + x[t, c] } }",
       R"(program f(x: f32[T, C]) -> (y: f32[T, C]) {
         temp t0: f32[T, C]
         for t in [0, T) {
           for j in [0, C) { t0[t, j] = y[t - 1, j | 0.0] }
           for j in [0, C) { y[t, j] = t0[t, j] + x[t, j] }
         }
       })"},
      // From the last step down: loops only count up.
      {"op f(x: f32[T]) -> (y) { for t < T { y[t] = y[t + 1 | 1] * x[t] } }",
       R"(program f(x: f32[T]) -> (y: f32[T]) {
         temp t0: f32[T]
         for u in [0, T) {
           for t in [T - u - 1, T - u) {
             t0[t] = y[t + 1 | 1.0]
             y[t] = t0[t] * x[t]
           }
         }
       })"},
      // What depends on no earlier step comes before the loop, and what no step needs after it.
      {"op f(x: f32[T, C]) -> (y) {\n"
       "  for t < T { s[t] = sum[c](s[t - 1] * x[t, c]) + exp(x[t, 0]) }\n"
       "  y[t] = -s[t]\n"
       "}",
       R"(program f(x: f32[T, C]) -> (y: f32[T]) {
         temp t0: f32[T]
         temp t1: f32[T]
         for i in [0, T) { t1[i] = x[i, 0 | 0.0] }
         temp t2: f32[T]
         for i in [0, T) { t2[i] = exp(t1[i]) }
         temp t3: f32[T, C]
         temp t4: f32[T, C]
         temp t5: f32[T]
         for t in [0, T) {
           for j in [0, C) { t3[t, j] = t0[t - 1 | 0.0] }
           for j in [0, C) { t4[t, j] = t3[t, j] * x[t, j] }
           acc acc: f32 = sum
           for j in [0, C) { acc += t4[t, j] }
           t5[t] = acc
           t0[t] = t5[t] + t2[t]
         }
         for i in [0, T) { y[i] = -t0[i] }
       })"},
      // Scatters, with the step as one of the places.
      {"op f(x: f16[T, N], ids: i64[N]) -> (y) {\n"
       "  for t < T { y[t, ids[n]]: f16[T, 3] += y[t - 1, 0] * x[t, n] }\n"
       "}",
       R"(program f(x: f16[T, N], ids: i64[N]) -> (y: f16[T, 3]) {
         temp t0: f16[T, N]
         temp t1: f16[T, N]
         temp t2: f32[T, 3]
         for t in [0, T) {
           for j in [0, N) { t0[t, j] = y[t - 1, 0 | 0.0] }
           for j in [0, N) { t1[t, j] = t0[t, j] * x[t, j] }
           for j in [0, 3) { t2[t, j] = 0.0 }
           for j in [0, N) { drop t2[t, ids[j]] += f32(t1[t, j]) }
           for j in [0, 3) { y[t, j] = f16(t2[t, j]) }
         }
       })"},
      // Several equations, of which one is a result.
      {"op f(x: f32[T]; $lag in [1, inf]) -> (y) {\n"
       "  for t < T { a[t] = b[t - $lag | 1];  b[t] = a[t] * x[t];  y[t] = b[t] - a[t - 1] }\n"
       "}",
       R"(program f(x: f32[T]; $lag: i64 in [1, inf]) -> (y: f32[T]) {
         domain d < T: d - $lag
         temp t0: f32[T]
         temp t1: f32[T]
         for t in [0, T) {
           t0[t] = t1[t - $lag | 1.0]
           t1[t] = t0[t] * x[t]
         }
         temp t2: f32[T]
         for i in [0, T) { t2[i] = t0[i - 1 | 0.0] }
         for i in [0, T) { y[i] = t1[i] - t2[i] }
       })"},
  });
}

TEST(Lower, Results) {
  ExpectLowered({
      // An argument, a constant, a $param.
      {"op f(x: f32[N]; $a: f32) -> (y, c, a) { y[i] = x[i];  c = 2.0;  a = $a }",
       R"(program f(x: f32[N]; $a: f32) -> (y: f32[N], c: f32[], a: f32[]) {
         for i in [0, N) { y[i] = x[i] }
         c = 2.0
         a = $a
       })"},
      // Two results that are one value: computed once.
      {"op f(x: f32[N]) -> (y, z) { y[i] = exp(x[i]);  z[i] = exp(x[i]) }",
       R"(program f(x: f32[N]) -> (y: f32[N], z: f32[N]) {
         for i in [0, N) { y[i] = exp(x[i]) }
         for i in [0, N) { z[i] = y[i] }
       })"},
  });
}

TEST(Lower, Checks) {
  ExpectLowered({
      // What binding checks.
      {"op f(a: f32[N], b: f32[M]) -> (y) { y[i] = a[i] + b[i] }",
       R"--(program f(a: f32[N], b: f32[M]) -> (y: f32[N]) {
         require N == M "index i runs over axis 0 of a (N) and over axis 0 of b (M)"
         temp t0: f32[N]
         for i in [0, N) { t0[i] = b[i | 0.0] }
         for i in [0, N) { y[i] = a[i] + t0[i] }
       })--"},
      {"op g(x: f32[N]; $k in [2, 4]) -> (y) { y[i] = x[i + $k] where i < N }\n"
       "op f(x: f32[N]; $m = 3 in [-inf, 9]) -> (y) { y = g(x; k = $m + 1) }",
       R"(program f(x: f32[N]; $m: i64 = 3 in [-inf, 9]) -> (y: f32[N]) {
         require 2 <= $m + 1 <= 4 "op g: $k"
         domain d < N: d + $m + 1
         for i in [0, N) { y[i] = x[i + $m + 1 | 0.0] }
       })"},
      // What some size could make negative or overflow.
      {"op f(x: f32[N]) -> (y) { y[i] = x[i] where i < N - 5 }",
       R"(program f(x: f32[N]) -> (y: f32[N - 5]) {
         domain d < N - 5
         for i in [0, N - 5) { y[i] = x[i | 0.0] }
       })"},
  });
}

}  // namespace
}  // namespace nestor
