// Errors and options that only loop programs have: reads of unwritten elements, accesses out of
// range, limits, shuffled loops. Values are tested by the table of SEMANTICS
// (tests/semantics_test.cc).
#include "interp/interpreter.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
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

// In an innermost loop accesses are located at its ends; in one around another loop they are located
// at each step. Both do the same, where the ends do not tell what is between them, too.
TEST(Interpreter, LocatesAtTheEndsOfALoopAsAtEachStep) {
  const struct {
    const char* header;
    const char* statement;
  } kCases[] = {
      {"[0, N)", "y[i] = x[i]"},
      {"[0, N)", "y[N - 1 - i] = x[3 - i] + x[i*0 + 1]"},
      {"[0, N)", "y[i] = x[i*i % 4]"},
      {"[0, N)", "y[i] = x[i*i - 3*i + 2]"},  // the same at both ends
      {"[0, N)", "y[i] = x[i*i]"},            // out of range
      {"[0, N)", "y[i] = x[(i + 1) / 2]"},
      {"[0, N)", "y[i] = x[i % 3]"},                // linear but at the last step
      {"[0, N)", "y[i] = x[(i == 1) + (i == 2)]"},  // 0 at both ends
      {"[0, N)", "y[i] = x[(i < 2) * 3]"},
      {"[0, N)", "y[i] = x[max(1, min(i, 2))]"},
      {"[0, N)", "y[i] = x[i - 1 | 7.0]"},
      {"[0, N)", "y[i] = x[i*3 - 4 | 7.0]"},
      {"[0, N)", "y[i] = x[i + 4 | 7.0]"},
      {"[0, N)", "y[i] = x[i + 9223372036854775805 | 7.0]"},
      {"[0, N)", "y[i] = x[2 / (i - 1) | 7.0]"},  // undefined between the ends
      {"[0, N)", "y[i] = x[(i - 1)*(i - 2) | 7.0]"},
      {"[0, N)", "drop y[i] if i != 1 = x[i]"},
      {"[0, N)", "drop y[i] if 1 <= i, i < 3 = x[i]"},
      {"[0, N)", "drop y[i] if i < 9 = x[i]"},
      {"[0, N)", "drop y[i] if i < 0 = x[i + 100]"},
      {"[0, N)", "drop y[i] if i == 0 || i == 3 = x[i]"},
      {"[0, N)", "drop y[i] if !(i < 2) = x[i]"},
      {"[0, N)", "drop y[i] if (i - 1)*(i - 2) == 0 = x[i]"},
      {"[0, 2*N) step 2", "w[i] = x[i / 2]"},
      {"[0, 2*N) step 2", "y[i / 2] = w[7 - i] + w[i | 7.0]"},
      {"[0, 2*N) step 2", "w[i + 1] = x[i - 2 | 7.0]"},
      {"[-9, 9) step 3", "drop y[i] if 0 <= i = x[i / 3 + 1]"},
      {"[-N, N) step 2", "y[(i + 4) / 2] = x[-1 - i | 7.0]"},
      {"[0, N)", "y[t[i]] = x[t[3 - i]]"},
      {"[0, N)", "t[i] = index(3 - t[i])"},
  };
  int64_t succeed = 0;
  for (const auto& c : kCases) {
    const auto run = [&](const char* inner) {
      const std::string text =
          absl::StrCat("program p(x: f32[N]) -> (y: f32[N]) { temp t: i64[4]  temp w: f32[8]  "
                       "for j in [0, 4) { y[j] = 9.0  t[j] = index(j*3 % 4) }  "
                       "for j in [0, 8) { w[j] = index(j) }  for i in ",
                       c.header, " { ", inner, c.statement, *inner == 0 ? "" : " }", " }  ",
                       "for j in [0, 4) { y[j] = y[j] + x[t[j]] + w[j] + 10.0 * w[j + 4] } }");
      return RunText(text.c_str());
    };
    const auto at_ends = run(""), at_each_step = run("for z in [0, 1) { ");
    EXPECT_EQ(at_ends.status().code(), at_each_step.status().code())
        << c.header << c.statement << at_ends.status() << at_each_step.status();
    if (!at_ends.ok() || !at_each_step.ok()) continue;
    EXPECT_TRUE(BitEqual((*at_ends)[0], (*at_each_step)[0])) << c.header << c.statement;
    ++succeed;
  }
  EXPECT_GT(succeed, 25);
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
