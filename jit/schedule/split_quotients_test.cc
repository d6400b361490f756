// Loops over i/M and i%M before and after they became two loops.
#include "jit/schedule/split_quotients.h"

#include "fusion/pass_testing.h"
#include "gtest/gtest.h"

namespace nestor::loop {
namespace {

constexpr Frame kFrame = {"program p(x: f32[N, M], s: f32[N]) -> (y: f32[N*M], one: f32[1]) {\n",
                          "\n  drop one[0] = 0.0\n}\n"};

TEST(SplitQuotients, TextInTextOut) {
  constexpr PassCase kCases[] = {
      {"for i in [0, N*M) { y[i] = x[i/M, i%M] }",
       "for i_3 in [0, min(562949953421312*min(M, 1), N*M/max(M, 1))) { for i_4 in [0, max(M, 1)) { y[i_3*max(M, 1) + i_4] = x[i_3, i_4] } }"
       " for i_2 in [min(562949953421312*min(M, 1), N*M/max(M, 1))*max(M, 1), N*M) { y[i_2] = x[i_2/M, i_2%M] }"},
      // Only a quotient, in a nest.
      {"for i in [0, N) { for j in [0, M) { drop y[i*M + j] = s[j/N | 0.0] } }",
       "for i in [0, N) { for j_3 in [0, min(562949953421312*min(N, 1), M/max(N, 1))) { for j_4 in [0, max(N, 1)) {"
       " drop y[i*M + j_3*max(N, 1) + j_4] = s[j_3 | 0.0] } } }"
       " for i_2 in [0, N) { for j_2 in [min(562949953421312*min(N, 1), M/max(N, 1))*max(N, 1), M) { drop y[i_2*M + j_2] = s[j_2/N | 0.0] } }"},
      // Two indices of a nest.
      {"for i in [0, N) { for j in [0, M) { drop y[i*M + j] = x[i/M, j/N | 0.0] } }",
       "for i_3 in [0, min(562949953421312*min(M, 1), N/max(M, 1))) { for i_4 in [0, max(M, 1)) {"
       " for j_4 in [0, min(562949953421312*min(N, 1), M/max(N, 1))) { for j_5 in [0, max(N, 1)) {"
       " drop y[i_3*M*max(M, 1) + i_4*M + j_4*max(N, 1) + j_5] = x[i_3, j_4 | 0.0] } } } }"
       " for i_3_2 in [0, min(562949953421312*min(M, 1), N/max(M, 1))) { for i_4_2 in [0, max(M, 1)) {"
       " for j_3 in [min(562949953421312*min(N, 1), M/max(N, 1))*max(N, 1), M) {"
       " drop y[i_3_2*M*max(M, 1) + i_4_2*M + j_3] = x[i_3_2, j_3/N | 0.0] } } }"
       " for i_2 in [min(562949953421312*min(M, 1), N/max(M, 1))*max(M, 1), N) { for j_2_3 in [0, min(562949953421312*min(N, 1), M/max(N, 1))) {"
       " for j_2_4 in [0, max(N, 1)) { drop y[i_2*M + j_2_3*max(N, 1) + j_2_4] = x[i_2/M, j_2_3 | 0.0] } } }"
       " for i_2_2 in [min(562949953421312*min(M, 1), N/max(M, 1))*max(M, 1), N) { for j_2_2 in [min(562949953421312*min(N, 1), M/max(N, 1))*max(N, 1), M) {"
       " drop y[i_2_2*M + j_2_2] = x[i_2_2/M, j_2_2/N | 0.0] } }"},
      // A shifted index, inside of a loop over its quotients, in order; a remainder and a quotient
      // of one sum.
      {"for i in [0, N*M) { y[i] = s[(i - 5)%N | 0.0] }",
       "for i_3 in [0, min((M*N - 6)/max(N, 1) - -5/max(N, 1) + 1, 562949953421312*min(N, 1))) { for i in [max(i_3*max(N, 1) + -5/max(N, 1)*max(N, 1) + 5, 0), min(i_3*max(N, 1) + -5/max(N, 1)*max(N, 1) + max(N, 1) + 5, M*N)) { y[i] = s[-i_3*max(N, 1) + i - (-5/max(N, 1))*max(N, 1) - 5 | 0.0] } } for i_2 in [M*N*min(N, 1), M*N) { y[i_2] = s[(i_2 - 5)%N | 0.0] }"},
      {"for i in [0, N*M) { y[i] = x[(i + M)/M - 1, (i + M)%M | 0.0] }",
       "for i_3 in [0, min(-(M/max(M, 1)) + (M*N + M - 1)/max(M, 1) + 1, 562949953421312*min(M, 1))) { for i in [max(i_3*max(M, 1) - M + M/max(M, 1)*max(M, 1), 0), min(i_3*max(M, 1) - M + M/max(M, 1)*max(M, 1) + max(M, 1), M*N)) { y[i] = x[i_3 + M/max(M, 1) - 1, -i_3*max(M, 1) + i + M - (M/max(M, 1))*max(M, 1) | 0.0] } } for i_2 in [M*N*min(M, 1), M*N) { y[i_2] = x[(i_2 + M)/M - 1, (i_2 + M)%M | 0.0] }"},
      {"for i in [0, N) { for j in [0, 100) { drop y[i*M + j] = s[(j - M)%64 | 0.0] } }",
       "for i in [0, N) { for j_2 in [0, (-M + 35)/64 - -M/64 + 2) { for j in [max(64*j_2 + M + 64*(-M/64), 0), min(64*j_2 + M + 64*(-M/64) + 64, 100)) { drop y[i*M + j] = s[-64*j_2 + j - M - 64*(-M/64) | 0.0] } } }"},
      // Not where the nest sums.
      {"for i in [0, N*M) { drop y[i] += s[(i - 5)%N | 0.0] }", ""},
      // Not loops shorter than the divisor: all of each would be left over, again and again.
      {"for i in [0, 20) { drop y[i] = s[i/32 + i%32 | 0.0] }", ""},
      // Not for small divisors, sums of indices, or looked-up indices; not where the order matters.
      {"for i in [0, N*M) { y[i] = s[i/4 | 0.0] }", ""},
      {"for i in [0, N) { for j in [0, M) { drop y[i*M + j] = s[(i + j)/M | 0.0] } }", ""},
      {"for i in [1, N*M) { y[i] = x[i/M, i%M] }  for q in [0, N*M) { y[q] = 0.0 }", ""},
      {"for q in [0, N*M) { y[q] = 0.0 }  for i in [0, N*M) { drop y[0] = x[i/M, i%M] }", ""},
  };
  ExpectPass(SplitQuotients, kFrame, kCases);
}

}  // namespace
}  // namespace nestor::loop
