// Loops before and after each of the passes that mark them, and those that must stay unmarked.
#include "jit/schedule/attributes.h"

#include "fusion/pass_testing.h"
#include "gtest/gtest.h"

namespace nestor::loop {
namespace {

constexpr Frame kFrame = {
    "program p(x: f32[N, M], z: f32[M, N], v: f32[N], t: f32[A], u: f32[N, 1], ids: i64[N], n: i8[N]) -> "
    "(y: f32[N, M], o: f32[N, M, A], r: f32[N], q: i64[N, M]) {\n",
    "\n  drop y[0, 0] = 0.0  drop o[0, 0, 0] = 0.0  drop r[0] = 0.0  drop q[0, 0] = 0\n}\n"};

TEST(MarkParallel, TextInTextOut) {
  constexpr PassCase kCases[] = {
      // Each loop at the top.
      {"for i in [0, N) { for j in [0, M) { y[i, j] = x[i, j] } }",
       "for i in [0, N) parallel { for j in [0, M) { y[i, j] = x[i, j] } }"},
      {"for i in [0, N) { acc a: f32 = sum  for j in [0, M) { a += x[i, j] }  r[i] = a }",
       "for i in [0, N) parallel { acc a: f32 = sum  for j in [0, M) { a += x[i, j] }  r[i] = a }"},
      {"for i in [0, N) step 4 { r[i] = v[i] }", "for i in [0, N) step 4 parallel { r[i] = v[i] }"},
      {"for i in [0, N) { r[i] = v[i] }", "for i in [0, N) parallel { r[i] = v[i] }"},
      {"for i in [0, N) { r[i] += v[i] }", "for i in [0, N) parallel { r[i] += v[i] }"},
      {"for i in [0, N) { drop y[i, ids[i]] = v[i] }",
       "for i in [0, N) parallel { drop y[i, ids[i]] = v[i] }"},
      // Not loops that carry a dependence.
      {"for i in [0, N) { r[0] += v[i] }", ""},
      {"for i in [0, N) { r[i] = r[i - 1 | 0.0] + v[i] }", ""},
      {"for j in [0, M) { for i in [0, N) { r[i] += x[i, j] } }", ""},
      {"for i in [0, N) { drop r[ids[i]] = v[i] }", ""},
      {"for i in [0, N) { r[i] = v[i]  drop y[0, 0] = v[i] }", ""},
      {"r[0] = 1.0  for i in [0, N) { r[i] = v[i] }  for i in [0, N) { r[i] = v[i] }",
       "r[0] = 1.0  for i in [0, N) parallel { r[i] = v[i] }  for i in [0, N) parallel { r[i] = v[i] }"},
      // Not further in, nor statements.
      {"for j in [0, M) { r[0] = 1.0  for i in [0, N) { y[i, j] = x[i, j] } }", ""},
      {"r[0] = 1.0", ""},
  };
  ExpectPass(MarkParallel, kFrame, kCases);
}

TEST(MarkVector, TextInTextOut) {
  constexpr PassCase kCases[] = {
      // The loop along memory, wherever it is in the nest.
      {"for i in [0, N) { r[i] = v[i] }", "for i in [0, N) vector { r[i] = v[i] }"},
      {"for i in [0, N) { for j in [0, M) { y[i, j] = x[i, j] } }",
       "for i in [0, N) { for j in [0, M) vector { y[i, j] = x[i, j] } }"},
      {"for j in [0, M) { for i in [0, N) { y[i, j] = x[i, j] } }",
       "for j in [0, M) vector { for i in [0, N) { y[i, j] = x[i, j] } }"},
      {"for l in [0, A) { for i in [0, N) { drop o[i, 0, l] = 0.0 } }",
       "for l in [0, A) vector { for i in [0, N) { drop o[i, 0, l] = 0.0 } }"},
      {"for i in [0, N) parallel { for j in [0, M) { y[i, j] = x[i, j] * v[i] } }",
       "for i in [0, N) parallel { for j in [0, M) vector { y[i, j] = x[i, j] * v[i] } }"},
      // The loop across rows where each step is much work; not where jumps cost more than the work.
      {"for i in [0, N) { for j in [1, M) { y[i, j] = logaddexp(y[i, j - 1], x[i, j]) } }",
       "for i in [0, N) vector { for j in [1, M) { y[i, j] = logaddexp(y[i, j - 1], x[i, j]) } }"},
      {"for i in [0, N) { for j in [1, M) { y[i, j] = y[i, j - 1] + x[i, j] } }", ""},
      // The loop along the axis before one of a single element.
      {"for i in [0, N) { for j in [0, 1) { r[i] = u[i, j] } }",
       "for i in [0, N) vector { for j in [0, 1) { r[i] = u[i, j] } }"},
      // The outermost of equals.
      {"for i in [0, N) { for j in [0, M) { y[i, j] = v[i] * v[i] + v[i] * v[i] } }",
       "for i in [0, N) vector { for j in [0, M) { y[i, j] = v[i] * v[i] + v[i] * v[i] } }"},
      // Each of several nests by itself.
      {"for i in [0, N) { acc a: f32 = sum  for j in [0, M) { a += x[i, j] }  "
       "for j in [0, M) { y[i, j] = x[i, j] / a } }",
       R"(
         for i in [0, N) {
           acc a: f32 = sum
           for j in [0, M) { a += x[i, j] }
           for j_2 in [0, M) vector { y[i, j_2] = x[i, j_2] / a }
         })"},
      // A loop around a reduction that goes across rows.
      {"for j in [0, N) { acc a: f32 = sum  for i in [0, M) { a += z[i, j] }  r[j] = a }",
       "for j in [0, N) vector { acc a: f32 = sum  for i in [0, M) { a += z[i, j] }  r[j] = a }"},
      // Scalars of the body have lanes; masks and gathers that all lanes share do no harm.
      {"for i in [0, N) { for j in [0, M) { temp e: f32  e = x[i, j]  y[i, j] = e * e } }",
       "for i in [0, N) { for j in [0, M) vector { temp e: f32  e = x[i, j]  y[i, j] = e * e } }"},
      {"for i in [0, N) { for j in [0, M) { y[i, j] = x[i - 1, j | 0.0 if i < 5] } }",
       "for i in [0, N) { for j in [0, M) vector { y[i, j] = x[i - 1, j | 0.0 if i < 5] } }"},
      {"for i in [0, N) { for j in [0, M) { y[i, j] = x[ids[i], j | 0.0] } }",
       "for i in [0, N) { for j in [0, M) vector { y[i, j] = x[ids[i], j | 0.0] } }"},
      {"for i in [0, N) { for j in [0, M) { q[i, j] = index(3*j + i) } }",
       "for i in [0, N) { for j in [0, M) vector { q[i, j] = index(i + 3*j) } }"},
      // Loads of every second element of four bytes, or every second narrow integer, have shuffles.
      {"for i in [0, N/2) { r[i] = v[2*i] + v[2*i + 1] }",
       "for i in [0, N/2) vector { r[i] = v[2*i] + v[2*i + 1] }"},
      {"for i in [0, N/2) { r[i] = f32(n[2*i]) + f32(n[2*i + 1]) }",
       "for i in [0, N/2) vector { r[i] = f32(n[2*i]) + f32(n[2*i + 1]) }"},
      {"for i in [0, N/2) { drop r[2*i] = v[i]  drop r[2*i + 1] = v[i] }", ""},
      {"for i in [0, N/3) { r[i] = v[3*i] + v[3*i + 1] }", ""},
      {"for i in [0, N/2) { q[i, 0] = ids[2*i] + ids[2*i + 1] }", ""},
      // Not where all loops jump.
      {"for i in [0, N) { drop o[i, 0, 0] = 0.0 }", ""},
      {"for i in [0, N) { r[i] = v[N - 1 - i] }", ""},
      {"for i in [0, N) { for j in [0, M) { y[i, j] = z[j, i] } }", ""},
      // Not with dependences or larger steps.
      {"acc a: f32 = sum  for i in [0, N) { a += v[i] }  r[0] = a", ""},
      {"for i in [0, N) { r[i] = r[i - 1 | 0.0] + v[i] }", ""},
      {"for i in [0, N) step 2 { r[i] = v[i] }", ""},
      // Lanes have masks where they leave the range one by one; but not at short borders.
      {"for i in [0, N) { r[i] = v[i - 1 | 0.0] }",
       "for i in [0, N) vector { r[i] = v[i - 1 | 0.0] }"},
      {"for i in [0, min(N, 8)) { r[i] = v[i - 1 | 0.0] }", ""},
      {"temp e: f32[3] for i in [0, 3) { e[i] = v[i - 1 | 0.0] }", ""},
      {"temp e: f32[7] for i in [0, 7) { e[i] = v[i - 1 | 0.0] }",
       "temp e: f32[7] for i in [0, 7) vector { e[i] = v[i - 1 | 0.0] }"},
      {"for i in [0, N) { r[i] = v[2*i - 1 | 0.0] }", ""},
      {"for i in [0, N) { r[i] = x[i, i | 0.0] }", ""},
      {"for i in [0, N) { r[i] = f32(n[i - 1 | 0]) }",
       "for i in [0, N) vector { r[i] = f32(n[i - 1 | 0]) }"},
      {"for i in [0, N) { drop r[i - 1] = v[i] }", ""},
      // Not where they have conditions, gathers, bounds or memory of their own.
      {"for i in [0, N) { r[i] = v[i | 0.0 if i < 5] }", ""},
      {"for i in [0, N) { r[i] = v[ids[i] | 0.0] }", ""},
      {"for i in [0, N) { acc a: f32 = sum  for j in [0, i) { a += z[j, i | 0.0] }  r[i] = a }",
       ""},
      {"for i in [0, N) { r[i] = v[i] + f32(index(i * i)) }", ""},
      {"for i in [0, N) { temp e: f32[3]  e[1] = v[i]  r[i] = e[1] }", ""},
  };
  ExpectPass(MarkVector, kFrame, kCases);
}

TEST(MarkInnerParallel, TextInTextOut) {
  constexpr PassCase kCases[] = {
      {"for i in [0, N) parallel { for j in [0, M) { for k in [0, 4) { drop o[i, j, k] = 0.0 } } }",
       "for i in [0, N) parallel { for j in [0, M) parallel { for k in [0, 4) { drop o[i, j, k] = 0.0 } } }"},
      {"for i in [0, N) parallel { for j in [0, M) { for k in [0, 65) vector { drop o[i, j, k] = 0.0 } } }",
       "for i in [0, N) parallel { for j in [0, M) parallel { for k in [0, 65) vector { drop o[i, j, k] = 0.0 } } }"},
      // Not for a few vectors, where the outermost loop is not parallel, where something is beside
      // the loop, or in lanes.
      {"for i in [0, N) parallel { for j in [0, M) { for k in [0, 64) vector { drop o[i, j, k] = 0.0 } } }",
       ""},
      {"for i in [0, N) { for j in [0, M) { for k in [0, 4) { drop o[i, j, k] = 0.0 } } }", ""},
      {"for i in [0, N) parallel { r[i] = 0.0 for j in [0, M) { for k in [0, 4) { drop o[i, j, k] = 0.0 } } }",
       ""},
      {"for i in [0, N) parallel { for j in [0, M) vector { y[i, j] = 0.0 } }", ""},
      // Not with bounds that move, other begins, or a dependence.
      {"for i in [0, N) parallel { for j in [0, i) { for k in [0, 4) { drop o[i, j, k] = 0.0 } } }",
       ""},
      {"for i in [0, N) parallel { for j in [1, M) { for k in [0, 4) { drop o[i, j, k] = 0.0 } } }",
       ""},
      {"for i in [0, N) parallel { for j in [0, M) { for k in [0, 4) { drop o[i, 0, k] = f32(index(j)) } } }",
       ""},
  };
  ExpectPass(MarkInnerParallel, kFrame, kCases);
}

TEST(SetLanes, TextInTextOut) {
  constexpr PassCase kCases[] = {
      {"for i in [0, N) vector { r[i] = v[i] }", "for i in [0, N) vector(8) { r[i] = v[i] }"},
      // As many lanes as the widest value allows, even an intermediate one.
      {"for i in [0, N) vector { r[i] = f32(f64(v[i])) }",
       "for i in [0, N) vector(4) { r[i] = f32(f64(v[i])) }"},
      {"for i in [0, N) { for j in [0, M) vector { q[i, j] = index(j) } }",
       "for i in [0, N) { for j in [0, M) vector(4) { q[i, j] = index(j) } }"},
      // The outer of two loops; the inner one where each lane of the outer has a place of its own.
      {"for i in [0, N) vector { for j in [0, M) vector { y[i, j] = v[i] } }",
       "for i in [0, N) vector(8) { for j in [0, M) vector { y[i, j] = v[i] } }"},
      {"for i in [0, N) vector { for j in [0, M) vector { y[i, j] = x[ids[i], j] } }",
       "for i in [0, N) vector { for j in [0, M) vector(8) { y[i, j] = x[ids[i], j] } }"},
      // Not loops that have lanes already, are not marked, or may be out of range.
      {"for i in [0, N) vector(4) { r[i] = v[i] }", ""},
      {"for i in [0, N) { r[i] = v[i] }", ""},
      {"for i in [0, N) vector { r[i] = v[i + 1] }", ""},
  };
  ExpectPass([](Program& program) { return SetLanes(program, jit::Isa::kAvx2); }, kFrame, kCases);
}

TEST(DecideVectors, TextInTextOut) {
  constexpr PassCase kCases[] = {
      {"for i in [0, N) vector(8) { r[i] = v[i] }",
       "for i in [0, N) vector(8) interleave(2) tail { r[i] = v[i] }"},
      // Without a tail where the length is a multiple, whatever the symbols are.
      {"for i in [0, 16*(N/16)) vector(8) { r[i] = v[i] }",
       "for i in [0, 16*(N/16)) vector(8) interleave(2) { r[i] = v[i] }"},
      {"for i in [0, N) { temp e: f32[24] for j in [i, i + 24) vector(8) { e[j - i] = 1.0 } }",
       "for i in [0, N) { temp e: f32[24]"
       " for j in [i, i + 24) vector(8) interleave(2) { e[j - i] = 1.0 } }"},
      {"for i in [0, 4*(N/4)) vector(8) { r[i] = v[i] }",
       "for i in [0, 4*(N/4)) vector(8) interleave(2) tail { r[i] = v[i] }"},
      // At most two vectors, or register tiles.
      {"for i in [0, N) { temp e: f32[16] for j in [0, 16) vector(8) { e[j] = 1.0 } }",
       "for i in [0, N) { temp e: f32[16] for j in [0, 16) vector(8) unroll { e[j] = 1.0 } }"},
      {"for i in [0, N) { temp e: f32[16] for j in [0, 15) vector(8) { e[j] = 1.0 } }",
       "for i in [0, N) { temp e: f32[16] for j in [0, 15) vector(8) unroll tail { e[j] = 1.0 } }"},
      {"for i in [0, N) { temp e: f32[24] register"
       " for j in [0, 24) vector(8) { e[j] = 1.0 } for j in [0, N%24) vector(8) { e[j] = 2.0 } }",
       "for i in [0, N) { temp e: f32[24] register"
       " for j in [0, 24) vector(8) unroll { e[j] = 1.0 }"
       " for j in [0, N%24) vector(8) unroll tail { e[j] = 2.0 } }"},
      {"for i in [0, min(N, 15)) vector(8) { r[i] = v[i] }",
       "for i in [0, min(N, 15)) vector(8) unroll tail { r[i] = v[i] }"},
      // Not what is decided, or has no lanes.
      {"for i in [0, N) vector(8) interleave(1) tail { r[i] = v[i] }", ""},
      {"for i in [0, N) vector { r[i] = v[i] }", ""},
  };
  ExpectPass(DecideVectors, kFrame, kCases);
}

}  // namespace
}  // namespace nestor::loop
