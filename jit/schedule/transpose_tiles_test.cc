// Nests before and after the pass for each instruction set, and nests that are left alone.
#include "jit/schedule/transpose_tiles.h"

#include "fusion/pass_testing.h"
#include "gtest/gtest.h"

namespace nestor::loop {
namespace {

constexpr Frame kFrame = {
    "program p(x: f32[M, N], x2: f32[M, N], x3: f32[M, N], o: f32[N, M], b: f32[N], h: f16[M, N], c: i64[M, N], "
    "f: bool[M, N], s: f32[40, 15], z: f32[A, M, N], k: f32[M, N, 1, 1], d: f32[M, 2*N], ids: i64[N], "
    "z3: f32[3, M, N], z5: f32[A, A, M, A, N]) -> (y: f32[N, M], y2: f32[N, M], v: f32[A, N, M], "
    "e: f64[N, M], q: i64[N, M], g: bool[N, M], w: f32[M, N], u: f32[15, 40], n: f32[N], three: f32[3, N, M], "
    "deep: f32[A, A, N, A, M]) {\n",
    "\n  drop y[0, 0] = 0.0  drop y2[0, 0] = 0.0  drop v[0, 0, 0] = 0.0  drop e[0, 0] = f64(0.0)  "
    "drop q[0, 0] = 0  drop g[0, 0] = false  drop w[0, 0] = 0.0  drop u[0, 0] = 0.0  drop n[0] = 0.0  "
    "drop three[0, 0, 0] = 0.0  drop deep[0, 0, 0, 0, 0] = 0.0\n}\n"};

TEST(TransposeTiles, Avx512) {
  const auto pass = [](Program& program) { return TransposeInTiles(program, jit::Isa::kAvx512); };
  constexpr PassCase kCases[] = {
      // Elements are read along their own rows into a tile, which is read by columns.
      {"for i in [0, N) { for j in [0, M) { y[i, j] = x[j, i] } }",
       R"(
         for p in [0, (N/16 + 15)/16) {
           for q_2 in [0, (M/16 + 15)/16) {
             for i_2 in [16*p, min(16*p + 16, N/16)) {
               for j_2 in [16*q_2, min(16*q_2 + 16, M/16)) {
                 temp tile: f32[16, 16] register
                 for r in [0, 16) unroll {
                   for l in [0, 16) vector { tile[r, l] = x[16*j_2 + r, 16*i_2 + l] }
                 }
                 for r_2 in [0, 16) unroll {
                   for l_2 in [0, 16) vector { y[16*i_2 + r_2, 16*j_2 + l_2] = tile[l_2, r_2] }
                 }
               }
             }
           }
         }
         for i_3 in [0, 16*(N/16)) { for j_3 in [16*(M/16), M) { y[i_3, j_3] = x[j_3, i_3] } }
         for i_4 in [16*(N/16), N) { for j_4 in [0, M) { y[i_4, j_4] = x[j_4, i_4] } })"},
      // Axes of one element at the end do not matter.
      {"for i in [0, N) { for j in [0, M) { y[i, j] = k[j, i, 0, 0] } }",
       R"(
         for p in [0, (N/16 + 15)/16) {
           for q_2 in [0, (M/16 + 15)/16) {
             for i_2 in [16*p, min(16*p + 16, N/16)) {
               for j_2 in [16*q_2, min(16*q_2 + 16, M/16)) {
                 temp tile: f32[16, 16] register
                 for r in [0, 16) unroll {
                   for l in [0, 16) vector { tile[r, l] = k[16*j_2 + r, 16*i_2 + l, 0, 0] }
                 }
                 for r_2 in [0, 16) unroll {
                   for l_2 in [0, 16) vector { y[16*i_2 + r_2, 16*j_2 + l_2] = tile[l_2, r_2] }
                 }
               }
             }
           }
         }
         for i_3 in [0, 16*(N/16)) { for j_3 in [16*(M/16), M) { y[i_3, j_3] = k[j_3, i_3, 0, 0] } }
         for i_4 in [16*(N/16), N) { for j_4 in [0, M) { y[i_4, j_4] = k[j_4, i_4, 0, 0] } })"},
      // In the other order of the loops, too.
      {"for j in [0, M) { for i in [0, N) { y[i, j] = x[j, i] } }",
       R"(
         for p in [0, (N/16 + 15)/16) {
           for q_2 in [0, (M/16 + 15)/16) {
             for i_2 in [16*p, min(16*p + 16, N/16)) {
               for j_2 in [16*q_2, min(16*q_2 + 16, M/16)) {
                 temp tile: f32[16, 16] register
                 for r in [0, 16) unroll {
                   for l in [0, 16) vector { tile[r, l] = x[16*j_2 + r, 16*i_2 + l] }
                 }
                 for r_2 in [0, 16) unroll {
                   for l_2 in [0, 16) vector { y[16*i_2 + r_2, 16*j_2 + l_2] = tile[l_2, r_2] }
                 }
               }
             }
           }
         }
         for j_3 in [16*(M/16), M) { for i_3 in [0, 16*(N/16)) { y[i_3, j_3] = x[j_3, i_3] } }
         for j_4 in [0, M) { for i_4 in [16*(N/16), N) { y[i_4, j_4] = x[j_4, i_4] } })"},
      // Loops of any length; a negative one counts as 0.
      {"for i in [2, N) { for j in [3, M - 1) { y[i, j] = x[j, i] } }",
       R"(
         for p in [0, (max(N - 2, 0)/16 + 15)/16) {
           for q_2 in [0, (max(M - 4, 0)/16 + 15)/16) {
             for i_2 in [16*p, min(16*p + 16, max(N - 2, 0)/16)) {
               for j_2 in [16*q_2, min(16*q_2 + 16, max(M - 4, 0)/16)) {
                 temp tile: f32[16, 16] register
                 for r in [0, 16) unroll {
                   for l in [0, 16) vector { tile[r, l] = x[16*j_2 + r + 3, 16*i_2 + l + 2] }
                 }
                 for r_2 in [0, 16) unroll {
                   for l_2 in [0, 16) vector { y[16*i_2 + r_2 + 2, 16*j_2 + l_2 + 3] = tile[l_2, r_2] }
                 }
               }
             }
           }
         }
         for i_3 in [2, 16*(max(N - 2, 0)/16) + 2) {
           for j_3 in [16*(max(M - 4, 0)/16) + 3, M - 1) { y[i_3, j_3] = x[j_3, i_3] }
         }
         for i_4 in [16*(max(N - 2, 0)/16) + 2, N) { for j_4 in [3, M - 1) { y[i_4, j_4] = x[j_4, i_4] } })"},
      {"for i in [0, N) { for j in [0, M) { y[i, j] = x[M - 1 - j, i] } }",
       R"(
         for p in [0, (N/16 + 15)/16) {
           for q_2 in [0, (M/16 + 15)/16) {
             for i_2 in [16*p, min(16*p + 16, N/16)) {
               for j_2 in [16*q_2, min(16*q_2 + 16, M/16)) {
                 temp tile: f32[16, 16] register
                 for r in [0, 16) unroll {
                   for l in [0, 16) vector { tile[r, l] = x[-16*j_2 - r + M - 1, 16*i_2 + l] }
                 }
                 for r_2 in [0, 16) unroll {
                   for l_2 in [0, 16) vector { y[16*i_2 + r_2, 16*j_2 + l_2] = tile[l_2, r_2] }
                 }
               }
             }
           }
         }
         for i_3 in [0, 16*(N/16)) { for j_3 in [16*(M/16), M) { y[i_3, j_3] = x[-j_3 + M - 1, i_3] } }
         for i_4 in [16*(N/16), N) { for j_4 in [0, M) { y[i_4, j_4] = x[-j_4 + M - 1, i_4] } })"},
      // Other loads stay as they are; two may go through tiles.
      {"for i in [0, N) { for j in [0, M) { y[i, j] = x[j, i] * b[i] + o[i, j] } }",
       R"(
         for p in [0, (N/16 + 15)/16) {
           for q_2 in [0, (M/16 + 15)/16) {
             for i_2 in [16*p, min(16*p + 16, N/16)) {
               for j_2 in [16*q_2, min(16*q_2 + 16, M/16)) {
                 temp tile: f32[16, 16] register
                 for r in [0, 16) unroll {
                   for l in [0, 16) vector { tile[r, l] = x[16*j_2 + r, 16*i_2 + l] }
                 }
                 for r_2 in [0, 16) unroll {
                   for l_2 in [0, 16) vector {
                     y[16*i_2 + r_2, 16*j_2 + l_2] = tile[l_2, r_2] * b[16*i_2 + r_2] + o[16*i_2 + r_2, 16*j_2 + l_2]
                   }
                 }
               }
             }
           }
         }
         for i_3 in [0, 16*(N/16)) {
           for j_3 in [16*(M/16), M) { y[i_3, j_3] = x[j_3, i_3] * b[i_3] + o[i_3, j_3] }
         }
         for i_4 in [16*(N/16), N) {
           for j_4 in [0, M) { y[i_4, j_4] = x[j_4, i_4] * b[i_4] + o[i_4, j_4] }
         })"},
      {"for i in [0, N) { for j in [0, M) { y[i, j] = x[j, i] + f32(h[j, i]) } }",
       R"(
         for p in [0, (N/16 + 15)/16) {
           for q_2 in [0, (M/16 + 15)/16) {
             for i_2 in [16*p, min(16*p + 16, N/16)) {
               for j_2 in [16*q_2, min(16*q_2 + 16, M/16)) {
                 temp tile: f32[16, 16] register
                 for r in [0, 16) unroll {
                   for l in [0, 16) vector { tile[r, l] = x[16*j_2 + r, 16*i_2 + l] }
                 }
                 temp tile_2: f16[16, 16] register
                 for r_2 in [0, 16) unroll {
                   for l_2 in [0, 16) vector { tile_2[r_2, l_2] = h[16*j_2 + r_2, 16*i_2 + l_2] }
                 }
                 for r_3 in [0, 16) unroll {
                   for l_3 in [0, 16) vector {
                     y[16*i_2 + r_3, 16*j_2 + l_3] = tile[l_3, r_3] + f32(tile_2[l_3, r_3])
                   }
                 }
               }
             }
           }
         }
         for i_3 in [0, 16*(N/16)) {
           for j_3 in [16*(M/16), M) { y[i_3, j_3] = x[j_3, i_3] + f32(h[j_3, i_3]) }
         }
         for i_4 in [16*(N/16), N) { for j_4 in [0, M) { y[i_4, j_4] = x[j_4, i_4] + f32(h[j_4, i_4]) } })"},
      // Every second element that is read.
      {"for i in [0, N) { for j in [0, M) { y[i, j] = d[j, 2*i + 1] } }",
       R"(
         for p in [0, (N/16 + 15)/16) {
           for q_2 in [0, (M/16 + 15)/16) {
             for i_2 in [16*p, min(16*p + 16, N/16)) {
               for j_2 in [16*q_2, min(16*q_2 + 16, M/16)) {
                 temp tile: f32[16, 16] register
                 for r in [0, 16) unroll {
                   for l in [0, 16) vector { tile[r, l] = d[16*j_2 + r, 32*i_2 + 2*l + 1] }
                 }
                 for r_2 in [0, 16) unroll {
                   for l_2 in [0, 16) vector { y[16*i_2 + r_2, 16*j_2 + l_2] = tile[l_2, r_2] }
                 }
               }
             }
           }
         }
         for i_3 in [0, 16*(N/16)) { for j_3 in [16*(M/16), M) { y[i_3, j_3] = d[j_3, 2*i_3 + 1] } }
         for i_4 in [16*(N/16), N) { for j_4 in [0, M) { y[i_4, j_4] = d[j_4, 2*i_4 + 1] } })"},
      // Further in, with squares that overlap where one is left over; and with several results.
      {"for l in [0, A) { for i in [0, N) { for j in [0, M) { v[l, i, j] = z[l, j, i] } } }",
       R"(
         for l in [0, A) {
           for z_2_2 in [0, min(M/16, 1)) {
             for z_2 in [0, min(N/16, 1)) {
               for p in [0, ((N + 15)/16 + 15)/16) {
                 for q_2 in [0, ((M + 15)/16 + 15)/16) {
                   for i_2 in [16*p, min(16*p + 16, (N + 15)/16)) {
                     for j_2 in [16*q_2, min(16*q_2 + 16, (M + 15)/16)) {
                       temp tile: f32[16, 16] register
                       for r in [0, 16) unroll {
                         for l_2 in [0, 16) vector {
                           tile[r, l_2] = z[l, r + min(M - 16, 16*j_2), l_2 + min(N - 16, 16*i_2)]
                         }
                       }
                       for r_2 in [0, 16) unroll {
                         for l_3 in [0, 16) vector {
                           v[l, r_2 + min(N - 16, 16*i_2), l_3 + min(M - 16, 16*j_2)] = tile[l_3, r_2]
                         }
                       }
                     }
                   }
                 }
               }
             }
           }
           for i_3 in [0, N) {
             for j_3 in [0, min(-15*min(M/16, 1) + 15, min(M, 15))) { v[l, i_3, j_3] = z[l, j_3, i_3] }
           }
           for i_4 in [0, min(-15*min(N/16, 1) + 15, min(N, 15))) {
             for j_4 in [0, M) { v[l, i_4, j_4] = z[l, j_4, i_4] }
           }
         })"},
      {"for i in [0, N) { for j in [0, M) { y[i, j] = x[j, i]  y2[i, j] = o[i, j] } }",
       R"(
         for p in [0, (N/16 + 15)/16) {
           for q_2 in [0, (M/16 + 15)/16) {
             for i_2 in [16*p, min(16*p + 16, N/16)) {
               for j_2 in [16*q_2, min(16*q_2 + 16, M/16)) {
                 temp tile: f32[16, 16] register
                 for r in [0, 16) unroll {
                   for l in [0, 16) vector { tile[r, l] = x[16*j_2 + r, 16*i_2 + l] }
                 }
                 for r_2 in [0, 16) unroll {
                   for l_2 in [0, 16) vector {
                     y[16*i_2 + r_2, 16*j_2 + l_2] = tile[l_2, r_2]
                     y2[16*i_2 + r_2, 16*j_2 + l_2] = o[16*i_2 + r_2, 16*j_2 + l_2]
                   }
                 }
               }
             }
           }
         }
         for i_3 in [0, 16*(N/16)) {
           for j_3 in [16*(M/16), M) {
             y[i_3, j_3] = x[j_3, i_3]
             y2[i_3, j_3] = o[i_3, j_3]
           }
         }
         for i_4 in [16*(N/16), N) {
           for j_4 in [0, M) {
             y[i_4, j_4] = x[j_4, i_4]
             y2[i_4, j_4] = o[i_4, j_4]
           }
         })"},
      // Loops between: one that is not short runs in strips, with some iterations one after the
      // other in each square.
      {"for i in [0, N) { for a in [0, A) { for j in [0, M) { v[a, i, j] = z[a, j, i] } } }",
       R"(
         for a_2 in [0, (A + 7)/8) {
           for p in [0, (N/16 + 15)/16) {
             for q_2 in [0, (M/16 + 15)/16) {
               for i_2 in [16*p, min(16*p + 16, N/16)) {
                 for a_3 in [8*a_2, min(A, 8*a_2 + 8)) {
                   for j_2 in [16*q_2, min(16*q_2 + 16, M/16)) {
                     temp tile: f32[16, 16] register
                     for r in [0, 16) unroll {
                       for l in [0, 16) vector { tile[r, l] = z[a_3, 16*j_2 + r, 16*i_2 + l] }
                     }
                     for r_2 in [0, 16) unroll {
                       for l_2 in [0, 16) vector { v[a_3, 16*i_2 + r_2, 16*j_2 + l_2] = tile[l_2, r_2] }
                     }
                   }
                 }
               }
             }
           }
         }
         for i_3 in [0, 16*(N/16)) {
           for a_4 in [0, A) { for j_3 in [16*(M/16), M) { v[a_4, i_3, j_3] = z[a_4, j_3, i_3] } }
         }
         for i_4 in [16*(N/16), N) {
           for a_5 in [0, A) { for j_4 in [0, M) { v[a_5, i_4, j_4] = z[a_5, j_4, i_4] } }
         })"},
      {"for i in [0, N) { for a in [0, 3) { for j in [0, M) { three[a, i, j] = z3[a, j, i] } } }",
       R"(
         for p in [0, (N/16 + 15)/16) {
           for q_2 in [0, (M/16 + 15)/16) {
             for i_2 in [16*p, min(16*p + 16, N/16)) {
               for a_2 in [0, 3) {
                 for j_2 in [16*q_2, min(16*q_2 + 16, M/16)) {
                   temp tile: f32[16, 16] register
                   for r in [0, 16) unroll {
                     for l in [0, 16) vector { tile[r, l] = z3[a_2, 16*j_2 + r, 16*i_2 + l] }
                   }
                   for r_2 in [0, 16) unroll {
                     for l_2 in [0, 16) vector { three[a_2, 16*i_2 + r_2, 16*j_2 + l_2] = tile[l_2, r_2] }
                   }
                 }
               }
             }
           }
         }
         for i_3 in [0, 16*(N/16)) {
           for a_3 in [0, 3) { for j_3 in [16*(M/16), M) { three[a_3, i_3, j_3] = z3[a_3, j_3, i_3] } }
         }
         for i_4 in [16*(N/16), N) {
           for a_4 in [0, 3) { for j_4 in [0, M) { three[a_4, i_4, j_4] = z3[a_4, j_4, i_4] } }
         })"},
      {"for a in [0, A) { for i in [0, N) { for a2 in [0, A) { for a3 in [0, A) { for j in [0, M) {"
       " deep[a, a2, i, a3, j] = z5[a, a2, j, a3, i] } } } } }",
       R"(
         for a in [0, A) {
           for a2_2 in [0, A) {
             for a3_2 in [0, (A + 7)/8) {
               for z_2_2 in [0, min(M/16, 1)) {
                 for z_2 in [0, min(N/16, 1)) {
                   for p in [0, ((N + 15)/16 + 15)/16) {
                     for q_2 in [0, ((M + 15)/16 + 15)/16) {
                       for i_2 in [16*p, min(16*p + 16, (N + 15)/16)) {
                         for a3_3 in [8*a3_2, min(A, 8*a3_2 + 8)) {
                           for j_2 in [16*q_2, min(16*q_2 + 16, (M + 15)/16)) {
                             temp tile: f32[16, 16] register
                             for r in [0, 16) unroll {
                               for l in [0, 16) vector {
                                 tile[r, l] = z5[a, a2_2, r + min(M - 16, 16*j_2), a3_3, l + min(N - 16, 16*i_2)]
                               }
                             }
                             for r_2 in [0, 16) unroll {
                               for l_2 in [0, 16) vector {
                                 deep[a, a2_2, r_2 + min(N - 16, 16*i_2), a3_3, l_2 + min(M - 16, 16*j_2)] = tile[l_2, r_2]
                               }
                             }
                           }
                         }
                       }
                     }
                   }
                 }
               }
             }
           }
           for i_3 in [0, N) {
             for a2_3 in [0, A) {
               for a3_4 in [0, A) {
                 for j_3 in [0, min(-15*min(M/16, 1) + 15, min(M, 15))) {
                   deep[a, a2_3, i_3, a3_4, j_3] = z5[a, a2_3, j_3, a3_4, i_3]
                 }
               }
             }
           }
           for i_4 in [0, min(-15*min(N/16, 1) + 15, min(N, 15))) {
             for a2_4 in [0, A) {
               for a3_5 in [0, A) {
                 for j_4 in [0, M) { deep[a, a2_4, i_4, a3_5, j_4] = z5[a, a2_4, j_4, a3_5, i_4] }
               }
             }
           }
         })"},
      // 64-bit lanes: tiles of eight rows.
      {"for i in [0, N) { for j in [0, M) { q[i, j] = c[j, i] } }",
       R"(
         for p in [0, (N/8 + 15)/16) {
           for q_2 in [0, (M/8 + 15)/16) {
             for i_2 in [16*p, min(16*p + 16, N/8)) {
               for j_2 in [16*q_2, min(16*q_2 + 16, M/8)) {
                 temp tile: i64[8, 8] register
                 for r in [0, 8) unroll { for l in [0, 8) vector { tile[r, l] = c[8*j_2 + r, 8*i_2 + l] } }
                 for r_2 in [0, 8) unroll {
                   for l_2 in [0, 8) vector { q[8*i_2 + r_2, 8*j_2 + l_2] = tile[l_2, r_2] }
                 }
               }
             }
           }
         }
         for i_3 in [0, 8*(N/8)) { for j_3 in [8*(M/8), M) { q[i_3, j_3] = c[j_3, i_3] } }
         for i_4 in [8*(N/8), N) { for j_4 in [0, M) { q[i_4, j_4] = c[j_4, i_4] } })"},
      // Not where no square fits.
      {"for i in [0, 15) { for j in [0, 40) { u[i, j] = s[j, i] } }", ""},
      {"for i in [0, N%16) { for j in [0, M) { y[i, j] = x[j, i] } }", ""},
      // Not where lanes of several widths meet, nor for bools.
      {"for i in [0, N) { for j in [0, M) { e[i, j] = f64(x[j, i]) } }", ""},
      {"for i in [0, N) { for j in [0, M) { g[i, j] = f[j, i] } }", ""},
      // Nor where the body keeps scalars.
      {"for i in [0, N) { for j in [0, M) { temp t: f32  t = x[j, i]  y[i, j] = t  y2[i, j] = 2.0 * t } }",
       ""},
      // Not for more tiles than there are registers for.
      {"for i in [0, N) { for j in [0, M) { y[i, j] = x[j, i] + x2[j, i] + x3[j, i] } }", ""},
      // Not where the stores, or the loads, walk the same way or not at all.
      {"for i in [0, M) { for j in [0, N) { w[i, j] = x[i, j] } }", ""},
      {"for i in [0, N) { for j in [0, M) { y[i, j] = b[i] } }", ""},
      {"for i in [0, N) { for j in [0, M) { y[i, j] = x[j, i]  w[j, i] = 0.0 } }", ""},
      // Not with masks, unproven bounds, gathers or strides.
      {"for i in [0, N) { for j in [0, M) { y[i, j] = x[j, i + 1 | 0.0] } }", ""},
      {"for i in [0, N) { for j in [0, M) { y[i, j] = x[j, i | 0.0 if j < 5] } }", ""},
      {"for i in [0, N) { for j in [0, M) { drop y[i, j] if i < 5 = x[j, i] } }", ""},
      {"for a in [0, A) { for i in [0, N) { for j in [0, M) { drop v[a, i, j] if a < 5 = z[a, j, i] "
       "} } }",
       ""},
      {"for i in [0, N) { for j in [0, M) { y[i, j] = x[j, ids[i] | 0.0] } }", ""},
      {"for i in [0, N) { for j in [0, M) { y[i, j] = x[j, 2*i | 0.0] } }", ""},
      {"for j in [0, N) { for i in [0, M/N) { drop y[j, i] = x[i, j | 0.0] } }", ""},
      // Not with dependences, reductions, or bounds that depend on the other loop.
      {"for i in [0, N) { for j in [0, M) { y[i, 0] = x[j, i] } }", ""},
      {"for i in [0, N) { for j in [0, M) { y[i, j] += x[j, i] } }", ""},
      {"for i in [0, N) { for j in [0, i) { drop y[i, j] = x[j, i | 0.0] } }", ""},
      {"for i in [0, N) { n[i] = 0.0  for j in [0, M) { y[i, j] = x[j, i] } }", ""},
      {"for i in [0, N) { for a in [0, i) { for j in [0, M) { drop v[a, i, j] = z[a, j, i | 0.0] } } }",
       ""},
      {"for i in [0, N) { for a in [0, A) { for j in [0, a) { drop v[a, i, j] = z[a, j, i | 0.0] } } }",
       ""},
      {"for i in [0, N) { for a in [0, A) { for j in [0, M) { y[i, j] = z[a, j, i] } } }", ""},
      // Nor loops that are scheduled already, or make larger steps.
      {"for i in [0, N) { for j in [0, M) vector { y[i, j] = x[j, i] } }", ""},
      {"for i in [0, N) { for j in [0, M) step 2 { y[i, j] = x[j, i] } }", ""},
  };
  ExpectPass(pass, kFrame, kCases);
}

TEST(TransposeTiles, Avx2) {
  const auto pass = [](Program& program) { return TransposeInTiles(program, jit::Isa::kAvx2); };
  constexpr PassCase kCases[] = {
      // Two 256-bit vectors fill a cache line, so four tiles make a square.
      {"for i in [0, N) { for j in [0, M) { q[i, j] = c[j, i] } }",
       R"(
         for p in [0, (N/8 + 15)/16) {
           for q_2 in [0, (M/8 + 15)/16) {
             for i_2 in [16*p, min(16*p + 16, N/8)) {
               for j_2 in [16*q_2, min(16*q_2 + 16, M/8)) {
                 temp tile: i64[4, 4] register
                 for r in [0, 4) unroll { for l in [0, 4) vector { tile[r, l] = c[8*j_2 + r, 8*i_2 + l] } }
                 temp columns: i64[4, 4] register
                 for r_2 in [0, 4) unroll {
                   for l_2 in [0, 4) vector { columns[r_2, l_2] = tile[l_2, r_2] }
                 }
                 temp tile_2: i64[4, 4] register
                 for r_3 in [0, 4) unroll {
                   for l_3 in [0, 4) vector { tile_2[r_3, l_3] = c[8*j_2 + r_3 + 4, 8*i_2 + l_3] }
                 }
                 temp columns_2: i64[4, 4] register
                 for r_4 in [0, 4) unroll {
                   for l_4 in [0, 4) vector { columns_2[r_4, l_4] = tile_2[l_4, r_4] }
                 }
                 for r_5 in [0, 4) unroll {
                   for l_5 in [0, 4) vector { q[8*i_2 + r_5, 8*j_2 + l_5] = columns[r_5, l_5] }
                   for l_6 in [0, 4) vector { q[8*i_2 + r_5, 8*j_2 + l_6 + 4] = columns_2[r_5, l_6] }
                 }
                 temp tile_3: i64[4, 4] register
                 for r_6 in [0, 4) unroll {
                   for l_7 in [0, 4) vector { tile_3[r_6, l_7] = c[8*j_2 + r_6, 8*i_2 + l_7 + 4] }
                 }
                 temp columns_3: i64[4, 4] register
                 for r_7 in [0, 4) unroll {
                   for l_8 in [0, 4) vector { columns_3[r_7, l_8] = tile_3[l_8, r_7] }
                 }
                 temp tile_4: i64[4, 4] register
                 for r_8 in [0, 4) unroll {
                   for l_9 in [0, 4) vector { tile_4[r_8, l_9] = c[8*j_2 + r_8 + 4, 8*i_2 + l_9 + 4] }
                 }
                 temp columns_4: i64[4, 4] register
                 for r_9 in [0, 4) unroll {
                   for l_10 in [0, 4) vector { columns_4[r_9, l_10] = tile_4[l_10, r_9] }
                 }
                 for r_10 in [0, 4) unroll {
                   for l_11 in [0, 4) vector { q[8*i_2 + r_10 + 4, 8*j_2 + l_11] = columns_3[r_10, l_11] }
                   for l_12 in [0, 4) vector {
                     q[8*i_2 + r_10 + 4, 8*j_2 + l_12 + 4] = columns_4[r_10, l_12]
                   }
                 }
               }
             }
           }
         }
         for i_3 in [0, 8*(N/8)) { for j_3 in [8*(M/8), M) { q[i_3, j_3] = c[j_3, i_3] } }
         for i_4 in [8*(N/8), N) { for j_4 in [0, M) { q[i_4, j_4] = c[j_4, i_4] } })"},
      // A square has no more tiles along a loop than there is room for.
      {"for i in [0, 15) { for j in [0, 40) { u[i, j] = s[j, i] } }",
       R"(
         for p in [0, 1) {
           for q_2 in [0, 1) {
             for i_2 in [16*p, min(16*p + 16, 1)) {
               for j_2 in [16*q_2, min(16*q_2 + 16, 5)) {
                 temp tile: f32[8, 8] register
                 for r in [0, 8) unroll { for l in [0, 8) vector { tile[r, l] = s[8*j_2 + r, 8*i_2 + l] } }
                 for r_2 in [0, 8) unroll {
                   for l_2 in [0, 8) vector { u[8*i_2 + r_2, 8*j_2 + l_2] = tile[l_2, r_2] }
                 }
               }
             }
           }
         }
         for i_3 in [8, 15) { for j_3 in [0, 40) { u[i_3, j_3] = s[j_3, i_3] } })"},
      {"for i in [0, 7) { for j in [0, 40) { u[i, j] = s[j, i] } }", ""},
  };
  ExpectPass(pass, kFrame, kCases);
}

}  // namespace
}  // namespace nestor::loop
