// SplitLoops keeps every bit: on random graphs, and on random loops with all conditions that
// it splits at.
//
// A failure prints the program before and after, with its seed.
// NESTOR_RANDOM_SEED and NESTOR_RANDOM_COUNT in the environment choose others.
#include "fusion/split_loops.h"

#include <cstdlib>
#include <iostream>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "check/engines/finding.h"
#include "check/engines/program_generator.h"
#include "check/random.h"
#include "fusion/pipeline.h"
#include "gtest/gtest.h"
#include "interp/interpreter.h"
#include "loop_ir/lower.h"
#include "loop_ir/text.h"
#include "loop_ir/verify.h"
#include "nestor.h"

namespace nestor {
namespace {

int64_t Setting(const char* name, int64_t otherwise) {
  const char* text = std::getenv(name);
  int64_t value;
  return text != nullptr && absl::SimpleAtoi(text, &value) ? value : otherwise;
}

using Pass = absl::StatusOr<bool> (*)(loop::Program&);

// Whether the pass changed the program.
bool ExpectSameBits(const loop::Program& before, const RunInputs& inputs,
                    Pass pass = loop::SplitLoops) {
  loop::Program after = before;
  const auto changed = pass(after);
  EXPECT_TRUE(changed.ok()) << changed.status();
  SCOPED_TRACE(absl::StrCat("before:\n", ToText(before), "after:\n", ToText(after)));
  EXPECT_EQ(*changed, ToText(before) != ToText(after));
  EXPECT_TRUE(Verify(after).ok()) << Verify(after);
  const auto want = Interpret(before, inputs), got = Interpret(after, inputs);
  // Near the ends of int64 the proof that nothing overflows may refuse one of the two programs.
  if (want.ok() != got.ok() && (IsFeared(want.status()) || IsFeared(got.status()))) return *changed;
  EXPECT_EQ(want.ok(), got.ok()) << want.status() << "\n" << got.status();
  for (size_t i = 0; want.ok() && got.ok() && i < want->size(); ++i) {
    const auto difference = FirstDifference((*got)[i], (*want)[i]);
    EXPECT_FALSE(difference.has_value()) << "result " << i << " " << *difference;
  }
  return *changed;
}

TEST(SplitLoops, RandomGraphs) {
  const uint64_t first = Setting("NESTOR_RANDOM_SEED", 1);
  const int64_t count = Setting("NESTOR_RANDOM_COUNT", 2000);
  int64_t split = 0;
  for (uint64_t seed = first; seed < first + count && !HasFailure(); ++seed) {
    GeneratorOptions options;
    options.nodes = 4 + static_cast<int>(seed % 8);
    const Op op = RandomOp(seed, options);
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    split += ExpectSameBits(Lower(op), RandomInputs(op, seed).inputs);
  }
  std::cerr << "random graphs: " << split << " of " << count << " split\n";
  EXPECT_GE(split, count / 10);
}

// Windows over images of all small sizes, which may be smaller than a border.
TEST(SplitWindows, AllSmallImages) {
  for (const char* window : {"k=3, stride=2, pad=1", "k=3, stride=1, pad=1", "k=5, stride=1, pad=2",
                             "k=2, stride=3, pad=1"}) {
    for (const char* pool : {"max_pool2d(x; ", "avg_pool2d(x; "}) {
      const auto op =
          Parse(absl::StrCat("op f(x: f32[N, C, H, W]) -> (y) { y = ", pool, window, ") }"));
      ASSERT_TRUE(op.ok()) << op.status();
      loop::Program program = Lower(*op);
      ASSERT_TRUE(fusion::Pipeline::Default().Run(program).ok());
      for (int64_t h = 1; h <= 7; ++h) {
        for (int64_t w = 1; w <= 9; ++w) {
          std::vector<float> values(static_cast<size_t>(2 * h * w));
          for (size_t i = 0; i < values.size(); ++i)
            values[i] = static_cast<float>(i * 37 % 41) - 50;
          const Tensor x = Tensor::Of<float>({1, 2, h, w}, values);
          RunInputs inputs;
          inputs.tensors["x"] = x;
          EXPECT_TRUE(ExpectSameBits(program, inputs, loop::SplitWindows)) << pool << " " << window;
        }
      }
    }
  }
}

// Masked windows: the number of elements of a window that are its maximum.
TEST(SplitWindows, MaskedWindows) {
  const auto op = Parse(
      "op f(x: f32[H, W], m: f32[H, W]) -> (y) { "
      "y[i, j] = sum[q, r](i64(x[i + q - 1, j + 2 * r - 2 | 7] == m[i, j])) where i < H, j < W, q < 3, r < 3 }");
  ASSERT_TRUE(op.ok()) << op.status();
  loop::Program program = Lower(*op);
  ASSERT_TRUE(fusion::Pipeline::Default().Run(program).ok());
  for (int64_t h = 1; h <= 5; ++h) {
    for (int64_t w = 1; w <= 9; ++w) {
      std::vector<float> values(static_cast<size_t>(h * w));
      for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i * 5 % 3 + 5);
      const Tensor x = Tensor::Of<float>({h, w}, values);
      RunInputs inputs;
      inputs.tensors["x"] = inputs.tensors["m"] = x;
      EXPECT_TRUE(ExpectSameBits(program, inputs, loop::SplitWindows));
    }
  }
}

class RandomLoops {
 public:
  explicit RandomLoops(uint64_t seed) : random_(seed) {}

  std::string Text() {
    return absl::StrCat(
        "program r(x: f32[N, M], n: shape f32[R]; $s: i64 in [1, 3], $u: i64) -> (y: f32[N, M]) {\n"
        "for a in [0, N) { for b in [0, M) { y[a, b] = 0.5 } }\n",
        Loop(0), "}\n");
  }

 private:
  // Loop number v, inside v others.
  std::string Loop(int v) {
    const std::string begin = random_.Pick<const char*>({"0", "0", "0", "1", "-2", "$u"});
    std::string end = random_.Pick<const char*>({"N", "M", "N + R", "3", "7", "2*M"});
    if (v > 0 && random_.Chance(20)) end = "i0 + 2";
    std::string text = absl::StrCat("for i", v, " in [", begin, ", ", end, ") {\n");
    const bool sums = random_.Chance(40);
    const char* op = random_.Pick({"sum", "max"});
    if (sums) absl::StrAppend(&text, "acc s", v, ": f32 = ", op, "\n");
    if (v < 2 && random_.Chance(v == 0 ? 70 : 35)) {
      absl::StrAppend(&text, Loop(v + 1));
    } else if (sums) {
      const std::string condition =
          random_.Chance(50) ? Condition(v) : absl::StrCat("j", v, " <= i", v);
      absl::StrAppend(&text, "for j", v, " in [0, ", random_.Pick({"N", "5"}), ") { drop s", v,
                      " if ", condition, op[0] == 's' ? " += " : " max= ", Value(v), " }\n");
    }
    for (int64_t i = random_.Between(v > 0, 1); i >= 0; --i) absl::StrAppend(&text, Statement(v));
    if (sums) absl::StrAppend(&text, "drop y[i", random_.Below(v + 1), ", 0] = s", v, "\n");
    return text + "}\n";
  }

  std::string Index(int v) {
    const std::string var = absl::StrCat("i", random_.Below(v + 1)),
                      other = absl::StrCat("i", random_.Below(v + 1));
    const std::string shift =
        random_.Pick<const char*>({"", "", " + 1", " - 1", " - R", " + $u", " - 2*$s"});
    const std::string form = random_.Pick<const char*>({"", "", "2*", "-1*", "$s*", "$u*", "-3*"});
    if (random_.Chance(12)) return absl::StrCat("(", var, shift, ")/$s");
    if (random_.Chance(8)) return absl::StrCat("(", var, shift, ")%3");
    if (random_.Chance(25)) return absl::StrCat(form, var, " + ", other, shift);
    return absl::StrCat(form, var, shift);
  }

  std::string Comparison(int v) {
    return absl::StrCat(
        Index(v), random_.Pick({" < ", " <= ", " == ", " != "}),
        random_.Chance(50) ? Index(v) : random_.Pick<const char*>({"N", "R", "3", "M - 1"}));
  }

  std::string Condition(int v) {
    if (random_.Chance(20)) return absl::StrCat("!(", Comparison(v), ")");
    if (random_.Chance(30))
      return absl::StrCat(Comparison(v), random_.Pick({" && ", " || "}), Comparison(v));
    return Comparison(v);
  }

  std::string Load(int v) {
    const std::string condition = random_.Chance(25) ? absl::StrCat(" if ", Condition(v)) : "";
    return absl::StrCat("x[", Index(v), ", ", Index(v), " | 1.25", condition, "]");
  }

  std::string Value(int v) {
    if (random_.Chance(30)) {
      const char* sign = random_.Pick({" < ", " >= ", " == "});
      const std::string compares = absl::StrCat("index(i", random_.Below(v + 1), ")", sign,
                                                "index(", random_.Pick({"N - 1", "R", "i0"}), ")");
      return absl::StrCat("where(", random_.Chance(20) ? "!" : "", "(", compares, "), ", Load(v),
                          ", 0.0)");
    }
    return random_.Chance(50) ? Load(v) : absl::StrCat(Load(v), " + ", Load(v));
  }

  std::string Statement(int v) {
    const std::string condition = random_.Chance(40) ? absl::StrCat(" if ", Condition(v)) : "";
    const char* op = random_.Pick({" = ", " += ", " += "});
    return absl::StrCat("drop y[", Index(v), ", ", Index(v), "]", condition, op, Value(v), "\n");
  }

  Random random_;
};

TEST(SplitLoops, RandomLoops) {
  const uint64_t first = Setting("NESTOR_RANDOM_SEED", 1);
  const int64_t count = Setting("NESTOR_RANDOM_COUNT", 600);
  int64_t split = 0;
  for (uint64_t seed = first; seed < first + count && !HasFailure(); ++seed) {
    const std::string text = RandomLoops(seed).Text();
    const auto program = loop::ParseProgram(text);
    ASSERT_TRUE(program.ok()) << program.status() << "\n" << text;
    ASSERT_TRUE(Verify(*program).ok()) << Verify(*program) << "\n" << text;
    Random random(seed);
    Tensor x = *Tensor::Create(DType::kF32, {random.Between(0, 4), random.Between(0, 4)});
    for (float& value : x.values<float>())
      value = static_cast<float>(random.Between(-4000, 4000)) / 977;
    const Tensor n = *Tensor::Create(DType::kF32, {random.Between(0, 3)});
    RunInputs inputs;
    inputs.tensors = {{"x", x.view()}, {"n", n.view()}};
    inputs.params = {{"$s", Scalar::I64(random.Between(1, 3))},
                     {"$u", Scalar::I64(random.Between(-2, 3))}};
    SCOPED_TRACE(
        absl::StrCat("seed ", seed, ": N, M ", ShapeText(x.shape()), ", R ", ShapeText(n.shape())));
    split += ExpectSameBits(*program, inputs);
  }
  std::cerr << "random loops: " << split << " of " << count << " split\n";
  EXPECT_GE(split, count / 5);
}

}  // namespace
}  // namespace nestor
