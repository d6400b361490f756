// Errors and options that only loop programs have: reads of unwritten elements, accesses out of
// range, limits, shuffled loops. Values are tested by the table of SEMANTICS
// (tests/semantics_test.cc).
#include "interp/interpreter.h"

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "loop_ir/text.h"

namespace nestor {
namespace {

absl::StatusOr<std::vector<Tensor>> RunText(const char* text,
                                            const InterpreterOptions& options = {}) {
  const absl::StatusOr<loop::Program> program = loop::ParseProgram(text);
  EXPECT_TRUE(program.ok()) << program.status() << text;
  if (!program.ok()) return program.status();
  const Tensor x = Tensor::Of<float>({4}, {1, 2, 3, 4});
  RunInputs inputs;
  inputs.tensors["x"] = x.view();
  return Interpret(*program, inputs, options);
}

struct Refusal {
  const char* body;
  absl::StatusCode code;
  const char* piece;
  InterpreterOptions options = {};
};

TEST(Interpreter, Refuses) {
  const InterpreterOptions few_steps{10, 0, {}}, few_bytes{0, 32, {}};
  const std::vector<Refusal> refusals = {
      {"temp t: f32[N]  for i in [0, N) { y[i] = t[i] }", absl::StatusCode::kInternal,
       "not written: t[0] of [4]"},
      {"for i in [0, N) { y[i] += x[i] }", absl::StatusCode::kInternal, "not written: y[0]"},
      {"for i in [1, N) { y[i] = x[i] }", absl::StatusCode::kInternal,
       "element 0 of y was not written"},
      {"for i in [0, N) { temp t: f32  for j in [0, i) { t = x[j] }  y[i] = t }",
       absl::StatusCode::kInternal, "not written: t[]"},
      {"for i in [0, N) { y[i] = x[i + 1] }", absl::StatusCode::kOutOfRange, "x[4] of [4]"},
      {"for i in [0, N) { y[i - 1] = x[i] }", absl::StatusCode::kOutOfRange, "y[-1] of [4]"},
      {"for i in [0, N) { for j in [0, N) { y[i] = x[j] } }", absl::StatusCode::kResourceExhausted,
       "limit of 10 steps", few_steps},
      {"temp t: f32[5*N]  for i in [0, N) { t[i] = x[i] }  for i in [0, N) { y[i] = t[i] }",
       absl::StatusCode::kResourceExhausted, "tensor t [20]", few_bytes},
      {"temp t: f32[N - 5]  for i in [0, N) { y[i] = x[i] }", absl::StatusCode::kInvalidArgument,
       "negative: -1"},
      {"for i in [0, N) { y[i*9223372036854775807] = x[i] }", absl::StatusCode::kInvalidArgument,
       "overflows"},
  };
  for (const Refusal& r : refusals) {
    const std::string text = std::string("program p(x: f32[N]) -> (y: f32[N]) { ") + r.body + " }";
    const auto result = RunText(text.c_str(), r.options);
    EXPECT_EQ(result.status().code(), r.code) << text << "\n" << result.status();
    EXPECT_TRUE(absl::StrContains(result.status().message(), r.piece)) << text << "\n"
                                                                       << result.status();
  }
}

TEST(Interpreter, TempsAndAccumulatorsAreFreshOnEachEntry) {
  const auto result = RunText(R"(program p(x: f32[N]) -> (y: f32[N]) {
    for i in [0, N) {
      acc s: f32 = sum
      for j in [0, i + 1) { s += x[j] }
      y[i] = s
    }
  })");
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(BitEqual((*result)[0], Tensor::Of<float>({4}, {1, 3, 6, 10})));
}

// The value of an index is kept while what is in it stays the same: here elements and six loop
// indices change, and a loop is run again.
TEST(Interpreter, IndicesFollowWhatIsInThem) {
  const auto result = RunText(R"(program p(x: f32[N]) -> (y: f32[N]) {
    temp t: i64[1]
    for i in [0, N) {
      acc s: f32 = sum
      for a in [0, 2) { for b in [0, 2) { for c in [0, 2) { for d in [0, 2) { for e in [0, 2) {
        t[0] = index(a*i)
        s += x[(a + b + c + d + e + i) % 4] * x[t[0]]
      } } } } }
      y[i] = s
    }
  })");
  ASSERT_TRUE(result.ok()) << result.status();
  Tensor expected = Tensor::Of<float>({4}, {0, 0, 0, 0});
  for (int i = 0; i < 4; ++i) {
    for (int bits = 0; bits < 32; ++bits) {
      const int ones = __builtin_popcount(static_cast<unsigned>(bits)), gathered = (bits & 1) * i;
      expected.values<float>()[i] += static_cast<float>(((ones + i) % 4 + 1) * (gathered + 1));
    }
  }
  EXPECT_TRUE(BitEqual((*result)[0], expected));
}

// Each program runs within the bytes of its outputs and of the temporaries needed at once, and not
// within one byte less.
TEST(Interpreter, TempsHaveMemoryWhileTheyAreNeeded) {
  const struct {
    const char* body;
    int64_t bytes;  // of 4 elements each: y, and temps
  } kCases[] = {
      {"for i in [0, N) { y[i] = x[i] }", 16},
      {"temp t: f32[N]  for i in [0, N) { t[i] = x[i] }  for i in [0, N) { y[i] = t[i] }", 32},
      // In place of the one before.
      {"temp t: f32[N]  temp u: f32[N]  temp v: f32[N]  for i in [0, N) { t[i] = x[i] }  for i in [0, N) { u[i] = t[i] }  "
       "for i in [0, N) { v[i] = u[i] }  for i in [0, N) { y[i] = v[i] }",
       32},
      // The same within one loop, the last one read after it.
      {"temp t: f32[N]  temp u: f32[N]  temp v: f32[N]  for i in [0, N) { t[i] = x[i]  u[i] = t[i]  v[i] = u[i] }  "
       "for i in [0, N) { y[i] = v[i] }",
       32},
      // After the one before.
      {"temp t: f32[N]  temp u: f32[N]  for i in [0, N) { t[i] = x[i] }  for i in [0, N) { y[i] = t[N - 1 - i] }  "
       "for i in [0, N) { u[i] = y[i] }  for i in [0, N) { y[i] = u[N - 1 - i] }",
       32},
      // Together.
      {"temp t: f32[N]  temp u: f32[N]  for i in [0, N) { t[i] = x[i] }  for i in [0, N) { u[i] = t[N - 1 - i] }  "
       "for i in [0, N) { y[i] = u[N - 1 - i] }",
       48},
      {"acc s: f32[N] = sum  acc t: f32[N] = max  for i in [0, N) { s[i] += x[i] }  for i in [0, N) { y[i] = s[i] }  "
       "for i in [0, N) { t[i] max= x[i] }  for i in [0, N) { y[i] = t[i] }",
       32},
      {"temp t: f32[N]  for i in [0, N) { t[i] = x[i] }  for i in [0, N) { y[i] = t[i] }  "
       "for i in [0, N) { temp u: f32[N]  u[i] = y[i]  y[i] = u[i] }",
       32},
  };
  for (const auto& c : kCases) {
    const std::string text = std::string("program p(x: f32[N]) -> (y: f32[N]) { ") + c.body + " }";
    const auto result = RunText(text.c_str(), {0, c.bytes, {}});
    ASSERT_TRUE(result.ok()) << text << result.status();
    EXPECT_TRUE(BitEqual((*result)[0], Tensor::Of<float>({4}, {1, 2, 3, 4}))) << text;
    EXPECT_EQ(RunText(text.c_str(), {0, c.bytes - 1, {}}).status().code(),
              absl::StatusCode::kResourceExhausted)
        << text;
  }
}

// Passes may list the temporary that takes memory before its donor.
TEST(Interpreter, TakesMemoryInAnyOrderOfTemps) {
  loop::Program program =
      loop::ParseProgram("program p() -> (y: f32) { acc s: f32 = sum  temp t: f32  "
                         "t = s  y = t }")
          .value();
  std::swap(program.body[0], program.body[1]);
  const auto result = Interpret(program, {});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(BitEqual((*result)[0], Tensor::Of<float>({}, {0})));
}

// Where a tensor takes the memory of another, elements that the other one wrote are unwritten.
TEST(Interpreter, BytesOfAnotherTensorAreNotWritten) {
  const char* const kTails[] = {
      "for i in [0, N) { u[i] = t[i] }  for i in [0, N) { y[i] = v[i] }",
      // v has the memory of u, which has that of t, in place.
      "for i in [0, N) { u[i] = t[i] }  for i in [0, N - 1) { v[i] = u[i] }  for i in [0, N) { y[i] = v[i] }",
      "for i in [0, N - 1) { u[i] = t[i] }  for i in [0, N) { v[i] = u[i] }  for i in [0, N) { y[i] = v[i] }",
      "for i in [0, N - 1) { u[i] = t[i] }  for i in [0, N - 1) { v[i] = u[i] }  for i in [0, N) { y[i] = v[i] }",
  };
  for (const char* tail : kTails) {
    const std::string text =
        std::string("program p(x: f32[N]) -> (y: f32[N]) { temp t: f32[N]  temp u: f32[N]  "
                    "temp v: f32[N]  for i in [0, N) { t[i] = x[i] }  ") +
        tail + " }";
    const auto result = RunText(text.c_str());
    EXPECT_EQ(result.status().code(), absl::StatusCode::kInternal) << text;
    EXPECT_TRUE(absl::StrContains(result.status().message(), "not written"))
        << text << result.status();
  }
}

TEST(Interpreter, MaskedAccessesFillAndDrop) {
  const auto result = RunText(R"(program p(x: f32[N]) -> (y: f32[N]) {
    for i in [0, N) { y[i] = 9.0 }
    for i in [0, N) { drop y[i + 1] if i != 1 = x[i - 1 | 7.0] }
  })");
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(BitEqual((*result)[0], Tensor::Of<float>({4}, {9, 7, 9, 2})));
}

TEST(Interpreter, LeavesOutWhatIsNotNeeded) {
  const auto result = RunText(R"(program p(x: f32[N]) -> (y: f32[N]) {
    for i in [0, N) { y[i] = 9.0 }
    for i in [0, N) { y[i] += x[i - 1 | 0.0] * inf needed if 1 <= i, i < 3 }
  })");
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(BitEqual((*result)[0], Tensor::Of<float>({4}, {9, INFINITY, INFINITY, 9})));
}

TEST(Interpreter, ShuffledLoopsGiveTheSame) {
  const char* const text = R"(program p(x: f32[N]) -> (y: f32[N], last: f32) {
    for i in [0, N) parallel { y[i] = x[i] * 2.0 }
    for i in [0, N) step 2 vector { for j in [i, min(N, i + 2)) { y[j] = y[j] + x[j] } }
    last = 0.0
    for i in [0, N) { last = y[i] }
  })";
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const auto result = RunText(text, {0, 0, seed});
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_TRUE(BitEqual((*result)[0], Tensor::Of<float>({4}, {3, 6, 9, 12})));
    EXPECT_TRUE(BitEqual((*result)[1], Tensor::Of<float>({}, {12})));
  }
}

TEST(Interpreter, ShufflingShowsACarriedDependence) {
  // Not a program that the verifier accepts: the order of its loop matters.
  const char* const text = R"(program p(x: f32[N]) -> (y: f32[N]) {
    temp last: f32
    for i in [0, N) parallel { last = x[i] }
    for i in [0, N) { y[i] = last }
  })";
  bool differs = false;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const auto result = RunText(text, {0, 0, seed});
    ASSERT_TRUE(result.ok()) << result.status();
    differs |= !BitEqual((*result)[0], Tensor::Of<float>({4}, {4, 4, 4, 4}));
  }
  EXPECT_TRUE(differs);
}

}  // namespace
}  // namespace nestor
