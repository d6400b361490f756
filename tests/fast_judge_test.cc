// The fast judge on the macro library, on activations and norms that are written here, and on
// all their gradients: its bounds lie in the oracle's enclosures for all values; it accepts nearly
// all right results; and it is fast. The table that it prints is in docs/bounds.md.
//
// NESTOR_RANDOM_SEED and NESTOR_RANDOM_COUNT (rounds of draws) in the environment choose other
// values.
#include "check/bounds/fast_judge.h"

#include <chrono>
#include <cmath>
#include <iostream>
#include <limits>
#include <map>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "check/bounds/fast_judge_testing.h"
#include "check/random.h"
#include "gtest/gtest.h"
#include "interp/reference.h"
#include "nestor.h"
#include "tests/random_programs.h"

namespace nestor {
namespace {

// ---- Cases

struct CaseArgument {
  const char* name;
  Dims shape;
  int64_t bound = 0;  // of integers, and of floats that are not negative
};

struct Case {
  const char* name;
  std::vector<CaseArgument> args;
  std::vector<std::pair<const char*, double>> params = {};
  const char* body = nullptr;  // of an op of x alone that is not in the library
};

const std::vector<Case>& Cases() {
  static const auto* const cases = new std::vector<Case>{
      {"matmul", {{"a", {10, 50}}, {"b", {50, 20}}}},
      {"linear", {{"x", {20, 30}}, {"w", {20, 30}}, {"b", {20}}}},
      {"conv2d", {{"x", {1, 4, 9, 8}}, {"w", {8, 2, 3, 3}}}, {{"$pad", 1}, {"$groups", 2}}},
      {"max_pool2d", {{"x", {2, 3, 16, 16}}}, {{"$k", 3}, {"$stride", 2}, {"$pad", 1}}},
      {"avg_pool2d", {{"x", {2, 3, 16, 16}}}, {{"$k", 3}, {"$stride", 2}, {"$pad", 1}}},
      {"softmax", {{"x", {10, 100}}}},
      {"log_softmax", {{"x", {10, 100}}}},
      {"layer_norm", {{"x", {10, 100}}, {"scale", {100}}, {"bias", {100}}}},
      {"attention", {{"q", {2, 8, 16}}, {"k", {2, 9, 16}}, {"v", {2, 9, 16}}}},
      {"causal_attention", {{"q", {2, 8, 16}}, {"k", {2, 8, 16}}, {"v", {2, 8, 16}}}},
      {"cross_entropy", {{"logits", {20, 50}}, {"labels", {20}, 50}}},
      {"embedding", {{"table", {20, 50}}, {"ids", {30}, 20}}},
      {"sgd",
       {{"p", {500}}, {"g", {500}}, {"m", {500}}},
       {{"$lr", 0.1}, {"$momentum", 0.9}, {"$weight_decay", 0.01}}},
      {"adam",
       {{"p", {500}}, {"g", {500}}, {"m", {500}}, {"v", {500}, 1}},
       {{"$step", 7}, {"$beta2", 0.875}}},
      {"rms_norm",
       {{"x", {10, 100}}},
       {},
       "y[i, j] = x[i, j] * rsqrt(sum[k](square(x[i, k])) / C + 1e-5)"},
      {"gelu", {{"x", {10, 100}}}, {}, "y[i, j] = gelu(x[i, j])"},
      {"silu", {{"x", {10, 100}}}, {}, "y[i, j] = silu(x[i, j])"},
      {"sigmoid", {{"x", {10, 100}}}, {}, "y[i, j] = sigmoid(x[i, j])"},
      {"tanh", {{"x", {10, 100}}}, {}, "y[i, j] = tanh(x[i, j])"},
      {"relu", {{"x", {10, 100}}}, {}, "y[i, j] = relu(x[i, j])"},
      {"softplus", {{"x", {10, 100}}}, {}, "y[i, j] = softplus(x[i, j])"},
      {"sines", {{"x", {10, 100}}}, {}, "y[i, j] = sin(x[i, j]) * cos(x[i, j] + 1.0)"},
      {"variance",
       {{"x", {10, 100}}},
       {},
       "m[i] = sum[k](x[i, k]) / C; y[i] = sum[k](square(x[i, k] - m[i])) / C"},
      {"prod", {{"x", {30, 20}}}, {}, "y[i] = prod[k](x[i, k])"},
      {"cumsum", {{"x", {10, 30}}}},
      {"linear_scan", {{"a", {10, 30}}, {"x", {10, 30}}}},
      {"logcumsumexp", {{"x", {10, 30}}}},
      {"rnn",
       {{"x", {5, 2, 6}},
        {"h0", {2, 8}},
        {"wx", {8, 6}},
        {"wh", {8, 8}},
        {"bx", {8}},
        {"bh", {8}}}},
      // A value that a discrete step sees in the next step, and a select by it.
      {"spikes",
       {{"x", {10, 30}}},
       {},
       "for t < C { v[i, t] = where(v[i, t - 1] > 1.0, 0.0, v[i, t - 1]) * 0.75 + x[i, t] / (x[i, 0] + 3.0) }; y[i, t] = v[i, t]"},
      {"powers", {{"x", {10, 100}, 3}}, {}, "y[i, j] = pow(x[i, j], 1.5) + log(x[i, j] + 0.5)"},
      {"max", {{"x", {50, 20}}}, {}, "y[i] = max[k](x[i, k])"},
      {"scatter", {{"x", {50, 20}}}, {}, "y[i % 7, k]: f32[7, C] += x[i, k]"},
  };
  return *cases;
}

constexpr DType kTypes[] = {DType::kF32, DType::kBF16, DType::kF16};

absl::StatusOr<Op> OpOf(const Case& c, DType type) {
  if (c.body == nullptr) {
    ArgumentSpecs specs;
    const ast::Op& syntax = MacroLibrary().Syntax(c.name);
    for (const ast::Argument& arg : syntax.args) {
      for (const CaseArgument& a : c.args) {
        if (arg.name != a.name) continue;
        specs[a.name] = {TypeByName(arg.type.text).value_or(type),
                         static_cast<int>(a.shape.size())};
      }
    }
    return LibraryOp(c.name, specs);
  }
  const std::string body = absl::StrReplaceAll(c.body, {{"f32", Name(type)}});
  return Parse(absl::StrCat("op f(x: ", Name(type), "[N, C]) -> (y) { ", body, " }"));
}

// ---- Values

enum class Values { kModerate, kIntegers, kLarge, kSmall, kSpecial };
constexpr Values kAllValues[] = {Values::kModerate, Values::kIntegers, Values::kLarge,
                                 Values::kSmall, Values::kSpecial};

double DrawFloat(DType type, Values values, Random& random) {
  const double unit = static_cast<double>(random.Bits() >> 11) * 0x1p-53, even = 4 * unit - 2;
  const FloatFormat& format = FormatOf(type);
  switch (values) {
    case Values::kModerate: return even;
    case Values::kIntegers: return static_cast<double>(random.Between(-3, 3));
    case Values::kLarge:
      return even * std::ldexp(1.0, static_cast<int>(random.Between(1, format.max_exponent)));
    case Values::kSmall:
      return even * std::ldexp(1.0, format.min_exponent + static_cast<int>(random.Between(-4, 12)));
    case Values::kSpecial: break;
  }
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (random.Chance(90))
    return random.Chance(50) ? even : static_cast<double>(random.Between(-2, 2));
  return random.Pick({0.0, -0.0, 1.0, -1.0, kInfinity, -kInfinity, std::nan(""),
                      static_cast<double>(format.Largest()),
                      static_cast<double>(format.LeastSubnormal()), 88.0, -104.0, 700.0});
}

Tensor DrawTensor(DType type, const Dims& shape, int64_t bound, Values values, Random& random) {
  std::vector<double> elements(*NumElements(shape));
  for (double& x : elements) {
    x = IsFloat(type) ? DrawFloat(type, values, random)
                      : static_cast<double>(random.Below(std::max<int64_t>(bound, 1)));
    if (IsFloat(type) && bound > 0) x = std::fabs(x);
  }
  return Tensor::Of(type, shape, elements);
}

// An op and its inputs.
struct Trial {
  std::map<std::string, Tensor> tensors;
  RunInputs inputs;

  void Give(const std::string& name, Tensor tensor) {
    tensors[name] = std::move(tensor);
    inputs.tensors[name] = tensors[name].view();
  }
};

void GiveParams(const Op& op, const Case& c, Trial& trial) {
  for (const ParamInfo& param : op.params) {
    if (param.value) trial.inputs.params[param.name] = *param.value;
    for (const auto& [name, value] : c.params) {
      if (param.name == name) trial.inputs.params[name] = Scalar::Of(param.type, value);
    }
  }
}

Trial Draw(const Op& op, const Case& c, Values values, Random& random) {
  Trial trial;
  for (const CaseArgument& arg : c.args) {
    trial.Give(arg.name,
               DrawTensor(op.FindArgument(arg.name)->type, arg.shape, arg.bound, values, random));
  }
  GiveParams(op, c, trial);
  return trial;
}

// The gradient's arguments: the op's tensors, and adjoints.
Trial DrawForGradient(const Op& op, const Op& gradient, const Trial& forward,
                      const std::vector<Tensor>& results, Values values, Random& random) {
  Trial trial;
  for (const Argument& arg : gradient.args) {
    for (size_t i = 0; i < results.size(); ++i) {
      const std::string& name = op.results[i].name;
      if (arg.name == name) trial.Give(arg.name, results[i]);
      if (arg.name == absl::StrCat("g_", name)) {
        trial.Give(arg.name, DrawTensor(arg.type, results[i].shape(), 0, values, random));
      }
    }
    const auto it = forward.tensors.find(arg.name);
    if (it != forward.tensors.end()) trial.Give(arg.name, it->second);
  }
  for (const ParamInfo& param : gradient.params)
    trial.inputs.params[param.name] = forward.inputs.params.at(param.name);
  return trial;
}

// The op of a case, or its gradient.
struct Subject {
  std::string name;
  Op forward;
  Op op;
  bool is_gradient;

  Trial DrawTrial(const Case& c, Values values, Random& random) const {
    Trial trial = Draw(forward, c, values, random);
    if (!is_gradient) return trial;
    return DrawForGradient(forward, op, trial, *Run(forward, trial.inputs), values, random);
  }
};

std::vector<Subject> SubjectsOf(const Case& c, DType type) {
  const Op op = *OpOf(c, type);
  std::vector<Subject> subjects = {{c.name, op, op, false}};
  const auto gradient = Gradient(op);
  if (gradient.ok())
    subjects.push_back({absl::StrCat(c.name, "'s gradient"), op, gradient->op, true});
  return subjects;
}

// ---- Soundness

void TestBounds(const Case& c, const Subject& subject, Random& random, BoundCounts& counts) {
  absl::StatusOr<FastJudge> judge = FastJudge::Create(subject.op);
  ASSERT_TRUE(judge.ok()) << judge.status();
  for (Values values : kAllValues) {
    const Trial trial = subject.DrawTrial(c, values, random);
    EXPECT_EQ(BoundsViolation(subject.op, trial.inputs, *judge, counts), "")
        << "values " << static_cast<int>(values);
  }
}

TEST(FastJudge, BoundsOfMacroOps) {
  BoundCounts counts;
  Random random(Setting("NESTOR_RANDOM_SEED", 1));
  for (int64_t rounds = Setting("NESTOR_RANDOM_COUNT", 1); rounds > 0; --rounds) {
    for (const Case& c : Cases()) {
      for (DType type : kTypes) {
        for (const Subject& subject : SubjectsOf(c, type)) {
          SCOPED_TRACE(absl::StrCat(subject.name, " ", Name(type)));
          TestBounds(c, subject, random, counts);
        }
      }
    }
  }
  EXPECT_EQ(counts.refused, 0);
  std::cerr << counts << "\n";
}

// ---- What is accepted

// The results in f64, from the same inputs, each rounded once.
std::vector<Tensor> InDouble(const Op& op, DType type, const Trial& trial) {
  const absl::StatusOr<Op> wide = Parse(absl::StrReplaceAll(PrintOp(op), {{Name(type), "f64"}}));
  if (!wide.ok()) return {};
  Trial given;
  given.inputs.params = trial.inputs.params;
  for (const ParamInfo& param : wide->params) {
    Scalar& value = given.inputs.params.at(param.name);
    if (IsFloat(param.type)) value = Scalar::Float(param.type, value.ToDouble());
  }
  for (const auto& [name, tensor] : trial.tensors) {
    std::vector<double> elements;
    Dims index(tensor.shape().size(), 0);
    for (int64_t i = 0; i < tensor.num_elements();
         ++i, NextIndex(tensor.shape(), absl::MakeSpan(index))) {
      elements.push_back(At(tensor, index).ToDouble());
    }
    given.Give(name, Tensor::Of(wide->FindArgument(name)->type, tensor.shape(), elements));
  }
  std::vector<Tensor> results = *Run(*wide, given.inputs);
  for (Tensor& result : results) {
    if (result.type() == DType::kF64)
      result = Tensor::Of(type, result.shape(), result.values<double>());
  }
  return results;
}

struct Share {
  int64_t fast = 0, slow = 0, all = 0;
};

// Counts the elements of `got` that the judge and the oracle accept. The judge accepts none that
// the oracle rejects.
void Count(const std::vector<Tensor>& got, FastJudge& judge,
           const std::vector<ReferenceTensor>& want, const RunInputs& inputs, Share& share) {
  const std::vector<TensorView> views(got.begin(), got.end());
  const absl::StatusOr<FastVerdict> verdict = judge.Judge(inputs, views);
  ASSERT_TRUE(verdict.ok()) << verdict.status();
  for (size_t r = 0; r < got.size(); ++r) {
    std::vector<bool> open(want[r].elements.size(), false);
    for (int64_t i : verdict->results[r].open) open[i] = true;
    Dims index(got[r].shape().size(), 0);
    for (size_t i = 0; i < open.size(); ++i, NextIndex(got[r].shape(), absl::MakeSpan(index))) {
      const bool enclosed = Encloses(want[r].elements[i], At(got[r], index));
      EXPECT_TRUE(open[i] || enclosed) << "result " << r << " at " << i;
      share.fast += !open[i];
      share.slow += enclosed;
      ++share.all;
    }
  }
}

std::string PercentText(int64_t part, int64_t whole) {
  return absl::StrFormat("%6.2f", 100.0 * part / std::max<int64_t>(whole, 1));
}

TEST(FastJudge, AcceptsMostRightResults) {
  Random random(7);
  std::cerr
      << "percent of the elements that the oracle accepts, accepted by the fast judge: of fast code, of strict "
         "code, of f64\n";
  for (const Case& c : Cases()) {
    for (DType type : kTypes) {
      for (const Subject& subject : SubjectsOf(c, type)) {
        SCOPED_TRACE(absl::StrCat(subject.name, " ", Name(type)));
        FastJudge judge = *FastJudge::Create(subject.op);
        jit::CompileOptions strict;
        strict.mode = jit::Mode::kStrict;
        const auto fast_code = Compile(subject.op), strict_code = Compile(subject.op, strict);
        Share fast, exact, wide;
        for (int i = 0; i < 3; ++i) {
          const Trial trial = subject.DrawTrial(c, Values::kModerate, random);
          const auto want = InterpretReference(Lower(subject.op), trial.inputs);
          ASSERT_TRUE(want.ok());
          Count(*nestor::Run(**fast_code, trial.inputs), judge, *want, trial.inputs, fast);
          Count(*nestor::Run(**strict_code, trial.inputs), judge, *want, trial.inputs, exact);
          const std::vector<Tensor> rounded = InDouble(subject.op, type, trial);
          if (!rounded.empty()) Count(rounded, judge, *want, trial.inputs, wide);
        }
        EXPECT_EQ(fast.slow, fast.all);
        EXPECT_EQ(exact.slow, exact.all);
        EXPECT_GT(fast.fast, 0.97 * fast.all);
        EXPECT_GT(exact.fast, 0.97 * exact.all);
        std::cerr << absl::StrFormat(
            "%-30s %-5s %s %s %s\n", subject.name, Name(type), PercentText(fast.fast, fast.slow),
            PercentText(exact.fast, exact.slow), PercentText(wide.fast, wide.slow));
      }
    }
  }
}

// ---- Speed

// The least time of some calls.
double Microseconds(int calls, absl::FunctionRef<void()> run) {
  double best = std::numeric_limits<double>::infinity();
  for (int i = 0; i < calls; ++i) {
    const auto start = std::chrono::steady_clock::now();
    run();
    best = std::min(
        best, std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start)
                  .count());
  }
  return best;
}

TEST(FastJudge, IsFast) {
  Random random(3);
  const std::vector<Case> cases = {
      {"softmax", {{"x", {10, 100}}}},
      {"layer_norm", {{"x", {10, 100}}, {"scale", {100}}, {"bias", {100}}}},
      {"matmul", {{"a", {10, 50}}, {"b", {50, 10}}}},
      {"matmul", {{"a", {32, 32}}, {"b", {32, 32}}}},
      {"attention", {{"q", {2, 16, 16}}, {"k", {2, 16, 16}}, {"v", {2, 16, 16}}}},
      {"conv2d", {{"x", {1, 8, 16, 16}}, {"w", {8, 8, 3, 3}}}, {{"$pad", 1}}}};
  for (const Case& c : cases) {
    const Op op = *OpOf(c, DType::kF32);
    const Trial trial = Draw(op, c, Values::kModerate, random);
    FastJudge judge = *FastJudge::Create(op);
    const std::vector<Tensor> got = *nestor::Run(op, trial.inputs);
    const std::vector<TensorView> views(got.begin(), got.end());
    const loop::Program program = Lower(op);
    const double fast =
        Microseconds(30, [&] { EXPECT_TRUE(judge.Judge(trial.inputs, views)->AllAccepted()); });
    const double slow =
        Microseconds(3, [&] { EXPECT_TRUE(InterpretReference(program, trial.inputs).ok()); });
    std::cerr << absl::StrFormat("%-12s %s: %.1f us, the oracle %.0f us, %.0f times as long\n",
                                 c.name, ShapeText(c.args[0].shape), fast, slow, slow / fast);
    EXPECT_GT(slow, 10 * fast);
  }
}

}  // namespace
}  // namespace nestor
