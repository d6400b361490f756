// GatherFromScatter keeps every bit: on gradients of the macro ops at their samples and more, on
// random graphs, and on random scatters, whose places take every form that the pass knows and some
// that it does not.
//
// A failure prints the program before and after, with its seed.
// NESTOR_RANDOM_SEED and NESTOR_RANDOM_COUNT in the environment choose others.
#include "fusion/gather_from_scatter.h"

#include <cstdlib>
#include <iostream>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "autodiff/gradient.h"
#include "check/engines/finding.h"
#include "check/engines/program_generator.h"
#include "check/random.h"
#include "fusion/split_loops.h"
#include "gtest/gtest.h"
#include "interp/interpreter.h"
#include "jit/schedule/scatter_order.h"
#include "loop_ir/lower.h"
#include "loop_ir/text.h"
#include "loop_ir/verify.h"
#include "macro_ops/library.h"
#include "uops/notation/module.h"

namespace nestor {
namespace {

using Params = std::vector<std::pair<std::string, int64_t>>;

int64_t Setting(const char* name, int64_t otherwise) {
  const char* text = std::getenv(name);
  int64_t value;
  return text != nullptr && absl::SimpleAtoi(text, &value) ? value : otherwise;
}

// Whether a statement accumulates into an output or temp of the whole program.
bool HasScatter(const loop::Program& program) {
  bool found = false;
  VisitItems(program, [&](const loop::Item& item) {
    const auto* statement = item.As<loop::Statement>();
    found |= statement && statement->op &&
             program[statement->target.tensor].storage != loop::Storage::kAccumulator;
  });
  return found;
}

struct Outcome {
  bool changed = false;
  bool scatters = false;  // afterwards
  bool ran = false;
  bool reordered = false;  // what still scatters
};

void ExpectEqual(const absl::StatusOr<std::vector<Tensor>>& want,
                 const absl::StatusOr<std::vector<Tensor>>& got) {
  EXPECT_EQ(want.ok(), got.ok()) << want.status() << "\n" << got.status();
  for (size_t i = 0; want.ok() && got.ok() && i < want->size(); ++i) {
    const auto difference = FirstDifference((*got)[i], (*want)[i]);
    EXPECT_FALSE(difference.has_value()) << "result " << i << " " << *difference;
  }
}

// Runs the program before and after the pass, and after its loops are split, too: the conditions of
// a gather bound its loops. At last the loops of what still scatters change places.
Outcome ExpectSameBits(const loop::Program& before, const RunInputs& inputs) {
  loop::Program after = before;
  const auto changed = loop::GatherFromScatter(after);
  EXPECT_TRUE(changed.ok()) << changed.status();
  loop::Program split = after;
  EXPECT_TRUE(loop::SplitLoops(split).ok());
  loop::Program ordered = split;
  const bool reordered = loop::ScatterInMemoryOrder(ordered, {}).value();
  SCOPED_TRACE(absl::StrCat("before:\n", ToText(before), "after:\n", ToText(after), "split:\n",
                            ToText(split), "ordered:\n", ToText(ordered)));
  EXPECT_EQ(*changed, ToText(before) != ToText(after));
  EXPECT_TRUE(Verify(after).ok()) << Verify(after);
  EXPECT_TRUE(Verify(split).ok()) << Verify(split);
  EXPECT_TRUE(Verify(ordered).ok()) << Verify(ordered);
  const auto want = Interpret(before, inputs), got = Interpret(after, inputs);
  for (const loop::Program* later : {&after, &split, &ordered}) {
    const auto result = Interpret(*later, inputs);
    if (want.ok() && IsFeared(result.status())) return {*changed, HasScatter(after), false};
    ExpectEqual(want, result);
  }
  return {*changed, HasScatter(after), want.ok() && got.ok(), reordered};
}

// ---- Gradients of macro ops

// Floats whose sums differ in different orders, some zeros of both signs; integers below
// 4, some negative.
Tensor Draw(DType type, const Dims& shape, Random& random) {
  std::vector<double> values(*NumElements(shape));
  for (double& value : values) {
    if (!IsFloat(type)) value = type == DType::kBool ? random.Below(2) : random.Between(-1, 3);
    else
      value = random.Chance(10) ? (random.Chance(50) ? -0.0 : 0.0)
                                : random.Between(-4000, 4000) / 977.0;
  }
  return Tensor::Of(type, shape, values);
}

struct Sized {
  const char* op;
  std::map<std::string, Dims> shapes;
  Params params = {};
};

// The gradient's arguments are the op's arguments and results, and random adjoints.
Outcome CheckGradient(const Sized& c, DType type) {
  SCOPED_TRACE(c.op);
  Random random(7);
  ArgumentSpecs specs;
  for (const auto& [name, shape] : c.shapes) {
    DType own = type;
    for (const ast::Argument& syntax : MacroLibrary().Syntax(c.op).args) {
      if (syntax.name == name) own = TypeByName(syntax.type.text).value_or(type);
    }
    specs[name] = {own, static_cast<int>(shape.size())};
  }
  const auto op = MacroLibrary().Instantiate(c.op, specs);
  EXPECT_TRUE(op.ok()) << op.status();
  const auto gradient = Gradient(*op);
  EXPECT_TRUE(gradient.ok()) << gradient.status();
  std::map<std::string, Tensor> values;
  for (const auto& [name, shape] : c.shapes) values[name] = Draw(*specs[name].type, shape, random);
  RunInputs inputs;
  for (const auto& [name, value] : c.params) {
    const DType param_type = op->FindParam(name)->type;
    inputs.params[name] = IsFloat(param_type)
                              ? Scalar::Float(param_type, static_cast<double>(value))
                              : Scalar::Integer(param_type, value);
  }
  for (const auto& [name, value] : values) inputs.tensors[name] = value.view();
  const auto results = Interpret(Lower(*op), inputs);
  EXPECT_TRUE(results.ok()) << results.status();
  for (size_t i = 0; i < op->results.size(); ++i) {
    const Tensor& result = (*results)[i];
    values[op->results[i].name] = result;
    values[absl::StrCat("g_", op->results[i].name)] = Draw(result.type(), result.shape(), random);
  }
  inputs.tensors.clear();
  for (const Argument& arg : gradient->op.args)
    inputs.tensors[arg.name] = values.at(arg.name).view();
  const RunInputs all = inputs;
  inputs.params.clear();
  for (const ParamInfo& param : gradient->op.params) {
    if (all.params.contains(param.name)) inputs.params[param.name] = all.params.at(param.name);
  }
  return ExpectSameBits(Lower(gradient->op), inputs);
}

TEST(GatherFromScatter, GradientsOfWindowsGather) {
  const Sized kCases[] = {
      {"conv2d", {{"x", {2, 3, 5, 6}}, {"w", {4, 3, 3, 3}}}, {{"$pad", 1}}},
      {"conv2d", {{"x", {1, 2, 7, 6}}, {"w", {2, 2, 3, 2}}}, {{"$stride", 2}}},
      {"conv2d", {{"x", {1, 2, 9, 8}}, {"w", {2, 2, 4, 5}}}, {{"$stride", 3}, {"$pad", 2}}},
      {"conv2d",
       {{"x", {2, 4, 7, 6}}, {"w", {6, 2, 3, 3}}},
       {{"$stride", 2}, {"$pad", 1}, {"$groups", 2}}},
      {"conv2d", {{"x", {1, 6, 5, 5}}, {"w", {6, 2, 2, 2}}}, {{"$groups", 3}, {"$pad", 3}}},
      {"conv2d", {{"x", {1, 4, 5, 5}}, {"w", {4, 1, 3, 3}}}, {{"$groups", 4}, {"$dilation", 2}}},
      {"conv2d", {{"x", {1, 1, 8, 9}}, {"w", {2, 1, 3, 2}}}, {{"$stride", 3}, {"$dilation", 2}}},
      {"conv2d",
       {{"x", {1, 2, 9, 9}}, {"w", {2, 2, 3, 3}}},
       {{"$stride", 2}, {"$dilation", 2}, {"$pad", 1}}},
      {"conv2d",
       {{"x", {1, 2, 9, 9}}, {"w", {2, 2, 2, 3}}},
       {{"$stride", 2}, {"$dilation", 4}, {"$pad", 2}}},
      {"conv2d", {{"x", {1, 3, 1, 1}}, {"w", {3, 1, 1, 1}}}, {{"$groups", 3}}},
      {"conv2d", {{"x", {0, 2, 4, 4}}, {"w", {2, 2, 2, 2}}}},
      {"conv2d", {{"x", {1, 2, 3, 3}}, {"w", {0, 2, 2, 2}}}},
      {"conv2d", {{"x", {1, 0, 3, 3}}, {"w", {2, 0, 2, 2}}}},
      {"max_pool2d", {{"x", {2, 3, 6, 8}}}, {{"$k", 2}, {"$stride", 2}}},
      {"max_pool2d", {{"x", {1, 2, 7, 5}}}, {{"$k", 3}, {"$stride", 2}, {"$pad", 1}}},
      {"max_pool2d", {{"x", {1, 2, 7, 8}}}, {{"$k", 4}, {"$stride", 1}, {"$pad", 2}}},
      {"max_pool2d", {{"x", {1, 1, 8, 9}}}, {{"$k", 2}, {"$stride", 3}}},
      {"max_pool2d", {{"x", {1, 1, 1, 1}}}, {{"$k", 1}, {"$stride", 1}}},
      {"avg_pool2d", {{"x", {2, 3, 6, 8}}}, {{"$k", 2}, {"$stride", 2}}},
      {"avg_pool2d", {{"x", {1, 2, 7, 5}}}, {{"$k", 3}, {"$stride", 2}, {"$pad", 1}}},
      {"avg_pool2d", {{"x", {1, 1, 9, 9}}}, {{"$k", 5}, {"$stride", 2}, {"$pad", 4}}},
      {"avg_pool2d", {{"x", {1, 1, 4, 4}}}, {{"$k", 4}, {"$stride", 1}}},
      {"cross_entropy", {{"logits", {5, 4}}, {"labels", {5}}}},
      {"cross_entropy", {{"logits", {3, 17}}, {"labels", {3}}}},
  };
  for (const Sized& c : kCases) {
    for (DType type : {DType::kF32, DType::kF64, DType::kBF16}) {
      const Outcome outcome = CheckGradient(c, type);
      EXPECT_TRUE(outcome.changed) << c.op;
      EXPECT_FALSE(outcome.scatters) << c.op;
    }
  }
}

TEST(GatherFromScatter, GradientsOfMacroOps) {
  for (const MacroOp& op : MacroOps()) {
    if (!Gradient(*MacroLibrary().Instantiate(op.name, {})).ok()) continue;
    for (const Sample& sample : op.samples) {
      Sized c{op.name.c_str(), {}};
      for (const SampleArgument& arg : sample.args)
        c.shapes[arg.name] = Dims(arg.shape.begin(), arg.shape.end());
      for (const auto& [name, literal] : sample.params) {
        double value;
        if (absl::SimpleAtod(literal, &value))
          c.params.push_back({name, static_cast<int64_t>(value)});
      }
      CheckGradient(c, DType::kF32);
    }
  }
}

// ---- Notation: index forms that a scatter is made for

TEST(GatherFromScatter, WhatGathers) {
  const struct {
    const char* op;
    bool gathers;
  } kCases[] = {
      // Pad, slice, flip, stride; the halves of a concatenation; reshapes.
      {"op p(x: f32[N]; $a, $b in [0, 9]) -> (y) { y[i]: f32[N + $b] += x[i] * 1.5 }", true},
      {"op p(x: f32[N]; $a) -> (y) { y[i - $a]: f32[N] += x[i] * 1.5 }", true},
      {"op p(x: f32[N]) -> (y) { y[N - 1 - i]: f32[N] += x[i] }", true},
      {"op p(x: f32[N, M]) -> (y) { y[j, i]: f32[M, N] += x[i, j] }", true},
      {"op p(x: f32[N]; $s in [1, 4]) -> (y) { y[i*$s + 1]: f32[N*$s] += x[i] }", true},
      {"op p(x: f32[N]; $s in [0, 4]) -> (y) { y[i*$s + 1]: f32[N*4] += x[i] }", false},
      {"op p(x: f32[N, M]) -> (y) { y[i*M + j]: f32[N*M] += x[i, j] }", true},
      {"op p(x: f32[N, M, K]) -> (y) { y[i*M*K + j*K + k]: f32[N*M*K] += x[i, j, k] }", true},
      {"op p(x: f32[N, M, K]) -> (y) { y[i*M - j + M - 1]: f32[N*M] += x[i, j, k] }", true},
      {"op p(x: f32[A], s: shape f32[M]) -> (y) { y[i/M, i%M]: f32[A, M] += x[i] }", true},
      {"op p(x: f32[A], s: shape f32[M]) -> (y) { y[i/M, i%M]: f32[A, M + 2] += x[i] }", true},
      // Repetition and tiles: sums over an interval and a residue class.
      {"op p(x: f32[A], s: shape f32[M]) -> (y) { y[i/M]: f32[A] += x[i] }", true},
      {"op p(x: f32[A], s: shape f32[M]) -> (y) { y[i%M]: f32[M + 1] += x[i] }", false},
      {"op p(x: f32[A]; $m in [1, 5]) -> (y) { y[(i + 2)%$m]: f32[7] += x[i] }", true},
      {"op p(x: f32[A]; $m in [1, 5]) -> (y) { y[(i + 2)/$m]: f32[A] += x[i] }", true},
      // Sums along axes that a place does not name; a diagonal; windows.
      {"op p(x: f32[N, M]) -> (y) { y[j]: f32[M] += x[i, j] }", true},
      {"op p(x: f32[N]) -> (y) { y[i, i]: f32[N, N] += x[i] }", true},
      {"op p(x: f32[N, N]) -> (y) { y[i, i]: f32[N, N] += x[i, j] }", false},
      {"op p(x: f32[N, R]) -> (y) { y[i + j]: f32[N + R - 1] += x[i, j] }", true},
      {"op p(x: f32[N, R]) -> (y) { y[i - j]: f32[N] += x[i, j] }", true},
      {"op p(x: f32[N, R]) -> (y) { y[j - 2*i + 3]: f32[R] += x[i, j] }", true},
      {"op p(x: f32[N, R, S]) -> (y) { y[i + j - k]: f32[N] += x[i, j, k] }", true},
      // Gathered places, in and out of range.
      {"op p(x: f32[N], l: i64[N]) -> (y) { y[i, l[i]]: f32[N, 3] += x[i] }", true},
      {"op p(x: f32[N], l: i64[M]) -> (y) { y[i, l[i + 1]]: f32[N, 3] += x[i] }", true},
      {"op p(x: f32[N], l: i64[N]) -> (y) { y[l[i]]: f32[4] += x[i] }", false},
      {"op p(x: f32[N, D], l: i64[N]) -> (y) { y[l[i], d]: f32[4, D] += x[i, d] }", false},
      // Places that are not inverted.
      {"op p(x: f32[N]) -> (y) { y[max(i - 1, 0)]: f32[N] += x[i] }", false},
      {"op p(x: f32[N, M]) -> (y) { y[i*j]: f32[N] += x[i, j] }", false},
      // Other ops, exact in any order.
      {"op p(x: f32[N, R]; $u) -> (y) { y[i + j*$u]: f32[N] max= x[i, j] }", true},
      {"op p(x: f32[N, R]; $u) -> (y) { y[i + j*$u]: f32[N] += x[i, j] }", false},
      {"op p(x: i32[N, R]; $u) -> (y) { y[i + j*$u]: i32[N] *= x[i, j] }", true},
      {"op p(x: f16[N, R]) -> (y) { y[i + j]: f16[N] += x[i, j] }", true},
  };
  for (const auto& c : kCases) {
    const auto module = Module::Parse(c.op);
    ASSERT_TRUE(module.ok()) << module.status() << "\n" << c.op;
    const auto op = module->Instantiate("", {});
    ASSERT_TRUE(op.ok()) << op.status() << "\n" << c.op;
    for (uint64_t seed = 1; seed <= 30; ++seed) {
      const Outcome outcome = ExpectSameBits(Lower(*op), RandomInputs(*op, seed).inputs);
      ASSERT_EQ(!outcome.scatters, c.gathers) << c.op;
      ASSERT_FALSE(HasFailure()) << c.op << "\nseed " << seed;
    }
  }
}

// ---- Random graphs

TEST(GatherFromScatter, RandomGraphs) {
  const uint64_t first = Setting("NESTOR_RANDOM_SEED", 1);
  const int64_t count = Setting("NESTOR_RANDOM_COUNT", 1500);
  int gathered = 0;
  for (uint64_t seed = first; seed < first + count && !HasFailure(); ++seed) {
    GeneratorOptions options;
    options.nodes = 4 + static_cast<int>(seed % 8);
    options.floats_only = seed % 2 == 0;
    const Op op = RandomOp(seed, options);
    const auto gradient = Gradient(op);
    for (const Op* each : {&op, gradient.ok() ? &gradient->op : &op}) {
      SCOPED_TRACE(absl::StrCat("seed ", seed));
      gathered += ExpectSameBits(Lower(*each), RandomInputs(*each, seed).inputs).changed;
    }
  }
  std::cerr << "random graphs: " << gathered << " programs gather\n";
  EXPECT_GE(gathered, count / 10);
}

// ---- Random scatters

class RandomScatter {
 public:
  explicit RandomScatter(uint64_t seed) : random_(seed) {}

  std::string Text() {
    const int rank = static_cast<int>(random_.Between(1, 3));
    std::string reset, resets, walk, walks;
    std::vector<std::string> extents, at, place;
    for (int axis = 0; axis < rank; ++axis) {
      extents.push_back(
          random_.Pick<const char*>({"N", "M", "7", "N*$s + R", "N*M", "M*R", "N + 1"}));
      at.push_back(absl::StrCat("a", axis));
      absl::StrAppend(&resets, "for ", at.back(), " in [0, ", extents.back(), ") { ");
    }
    const int loops = static_cast<int>(random_.Between(1, 4));
    for (int v = 0; v < loops; ++v) absl::StrAppend(&walks, "for i", v, " in ", Bounds(v), " { ");
    for (int axis = 0; axis < rank; ++axis) place.push_back(Place(loops));
    const std::string target = absl::StrCat("y[", absl::StrJoin(at, ", "), "]");
    const std::string condition =
        random_.Chance(20)
            ? absl::StrCat(" if ", Sum(loops), random_.Pick({" < ", " != "}), Sum(loops))
            : "";
    const auto [op, identity] =
        random_.Pick<std::pair<const char*, const char*>>({{"+=", "0.0"},
                                                           {"+=", "0.0"},
                                                           {"+=", "0.0"},
                                                           {"*=", "1.0"},
                                                           {"max=", "-inf"},
                                                           {"min=", "inf"}});
    return absl::StrCat(
        "program r(x: f32[97], n: shape f32[N, M, R], l: i64[5]; $s: i64 in [1, 3], $d: i64 in [1, 3], $u: i64) "
        "-> (y: f32[",
        absl::StrJoin(extents, ", "), "]) {\n", resets, target, " = ", identity,
        std::string(rank, '}'), "\n", walks, "drop y[", absl::StrJoin(place, ", "), "]", condition,
        " ", op, " ", Value(loops, identity), std::string(loops, '}'), "\n}\n");
  }

 private:
  std::string Var(int loops) { return absl::StrCat("i", random_.Below(loops)); }

  // The bounds of loop v, outside of which are v others.
  std::string Bounds(int v) {
    if (v > 0 && random_.Chance(15)) {
      return absl::StrCat(random_.Pick({"[", "[-1 + "}), Var(v),
                          random_.Pick({", N)", ", M + 2)"}));
    }
    if (v > 0 && random_.Chance(10)) return absl::StrCat("[0, min(N, ", Var(v), " + 2))");
    return absl::StrCat(
        random_.Pick<const char*>({"[0, ", "[0, ", "[0, ", "[1, ", "[-2, "}),
        random_.Pick<const char*>({"N", "M", "R", "3", "5", "$d", "(N - R)/$s + 1", "N*M", "M"}),
        ")");
  }

  std::string Term(int loops) {
    const char* coefficient = random_.Pick<const char*>(
        {"", "", "", "", "-1*", "2*", "-3*", "$s*", "$d*", "M*", "M*R*", "-1*$s*", "$u*", "R*"});
    return absl::StrCat(coefficient, Var(loops));
  }

  std::string Sum(int loops) {
    std::string sum = Term(loops);
    while (random_.Chance(55)) absl::StrAppend(&sum, " + ", Term(loops));
    if (random_.Chance(30)) absl::StrAppend(&sum, random_.Pick({" + 1", " - 2", " + $u", " - M"}));
    return sum;
  }

  std::string Place(int loops) {
    if (random_.Chance(8)) return absl::StrCat("l[", Sum(loops), "]");
    if (random_.Chance(6)) return absl::StrCat("max(", Sum(loops), ", 1)");
    const char* divisor = random_.Pick<const char*>({"M", "3", "$s", "(N/$d)"});
    if (random_.Chance(12)) return absl::StrCat("(", Sum(loops), ")/", divisor);
    if (random_.Chance(8)) return absl::StrCat("(", Sum(loops), ")%", divisor);
    if (random_.Chance(10))
      return absl::StrCat(Sum(loops), " + (", Var(loops), ")/", divisor, "*M");
    if (random_.Chance(12)) return absl::StrCat(Var(loops), " + (", Sum(loops), ")*N/", divisor);
    return Sum(loops);
  }

  // Mostly another value in each iteration; often the op's identity where a condition fails.
  std::string Value(int loops, absl::string_view identity) {
    std::string place;
    for (int v = 0; v < loops; ++v) absl::StrAppend(&place, random_.Between(1, 60), "*i", v, " + ");
    std::string mask;
    if (random_.Chance(25)) {
      const absl::string_view fill = random_.Chance(80) ? identity : "2.0";
      mask = absl::StrCat(" | ", fill, " if ", Sum(loops), " < ", Sum(loops));
    }
    return absl::StrCat("x[(", place, random_.Below(9), ")%97", mask, "]");
  }

  Random random_;
};

TEST(GatherFromScatter, RandomScatters) {
  const uint64_t first = Setting("NESTOR_RANDOM_SEED", 1);
  const int64_t count = Setting("NESTOR_RANDOM_COUNT", 6000);
  int gathered = 0, ran = 0, reordered = 0;
  for (uint64_t seed = first; seed < first + count && !HasFailure(); ++seed) {
    const std::string text = RandomScatter(seed).Text();
    const auto program = loop::ParseProgram(text);
    ASSERT_TRUE(program.ok()) << program.status() << "\n" << text;
    ASSERT_TRUE(Verify(*program).ok()) << Verify(*program) << "\n" << text;
    Random random(seed);
    const Tensor x = Draw(DType::kF32, {97}, random), l = Draw(DType::kI64, {5}, random);
    const Tensor n = *Tensor::Create(
        DType::kF32, {random.Between(0, 4), random.Between(0, 4), random.Between(0, 3)});
    RunInputs inputs;
    inputs.tensors = {{"x", x.view()}, {"n", n.view()}, {"l", l.view()}};
    inputs.params = {{"$s", Scalar::I64(random.Between(1, 3))},
                     {"$d", Scalar::I64(random.Between(1, 3))},
                     {"$u", Scalar::I64(random.Between(-2, 3))}};
    SCOPED_TRACE(absl::StrCat("seed ", seed, ": N, M, R ", ShapeText(n.shape())));
    const Outcome outcome = ExpectSameBits(*program, inputs);
    gathered += outcome.changed;
    ran += outcome.changed && outcome.ran;
    reordered += outcome.reordered;
  }
  std::cerr << "random scatters: " << gathered << " of " << count << " gather, " << ran
            << " of these ran; " << reordered << " have loops in another order\n";
  EXPECT_GE(ran, count / 8);
  EXPECT_GE(reordered, count / 500);
}

}  // namespace
}  // namespace nestor
