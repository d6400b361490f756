// Which reads become the stored value, and which may meet another one.
#include "fusion/forward_stores.h"

#include "fusion/pass_testing.h"
#include "gtest/gtest.h"

namespace nestor::loop {
namespace {

constexpr Frame kFrame = {
    "program p(x: f32[N], i: i64[N]) -> (y: f32[N], z: f32) { for j in [0, N) { temp t: f32[N] temp h: f32 h = exp(x[j]) acc s: f32 = sum ",
    " z = s y[j] = t[0] } }"};

TEST(ForwardStores, ScalarsAndConstants) {
  ExpectPass(ForwardStores, kFrame,
             {
                 {"for k in [0, N) { t[k] = h s += t[k] }", "for k in [0, N) { t[k] = h s += h }"},
                 {"for k in [0, N) { t[k] = 2.0 s += exp(t[k]) * t[k] }",
                  "for k in [0, N) { t[k] = 2.0 s += exp(2.0) * 2.0 }"},
                 {"t[3] = h s += t[3] s += t[2]", "t[3] = h s += h s += t[2]"},
                 {"t[3] = h t[4] = t[3] s += t[4]", "t[3] = h t[4] = h s += h"},
                 // Values of expressions, arguments and other sums are still read where they
                 // were stored.
                 {"for k in [0, N) { t[k] = exp(x[k]) s += t[k] }", ""},
                 {"for k in [0, N) { t[k] = x[j] s += t[k] }", ""},
                 {"for k in [0, N) { acc r: f32 = sum r += x[k] t[k] = r s += t[k] }", ""},
             });
}

TEST(ForwardStores, WhatMayHaveChanged) {
  ExpectPass(ForwardStores, kFrame,
             {
                 {"t[3] = h h = 1.0 s += t[3]", ""},
                 {"t[3] = h t[j] = 1.0 s += t[3]", ""},
                 {"t[3] = h for k in [0, N) { t[k] = 1.0 } s += t[3]", ""},
                 {"t[3] = h for k in [0, N) { h = x[k] } s += t[3]", ""},
                 {"for k in [0, N) { s += t[k] t[k] = h }", ""},
                 {"for k in [0, N) { t[k] = h } for l in [0, N) { s += t[l] }", ""},
                 {"t[3] += h s += t[3]", ""},
                 {"drop t[j] if j < 4 = h s += t[j]", ""},
                 {"t[i[j]] = h s += t[i[j]]", ""},
             });
}

TEST(ForwardStores, SumsOfNothing) {
  ExpectPass(ForwardStores, kFrame,
             {
                 {"acc r: f32 = sum s += r", "acc r: f32 = sum s += 0.0"},
                 {"s += x[j] acc r: f32[2] = max t[1] = r[0]",
                  "s += x[j] acc r: f32[2] = max t[1] = -inf"},
                 {"acc r: f32 = sum s += r for k in [0, N) { r += x[k] }", ""},
             });
}

}  // namespace
}  // namespace nestor::loop
