// The reference mode against the native interpreter, whose bits, in order and with
// all loops shuffled, are two allowed evaluations of an unfused program: on random
// programs with every input that they draw (NaN, inf, subnormals, extremes), on
// their gradients, and on every sample of the macro library, there also with
// elements that are slightly wrong.
//
// NESTOR_RANDOM_SEED and NESTOR_RANDOM_COUNT in the environment choose other
// programs.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <map>
#include <random>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "autodiff/gradient.h"
#include "check/engines/finding.h"
#include "check/engines/program_generator.h"
#include "gtest/gtest.h"
#include "interp/interpreter.h"
#include "interp/reference.h"
#include "loop_ir/lower.h"
#include "loop_ir/program.h"
#include "loop_ir/steps.h"
#include "macro_ops/library.h"
#include "uops/notation/print.h"

namespace nestor {
namespace {

int64_t Setting(const char* name, int64_t otherwise) {
  const char* text = std::getenv(name);
  int64_t value;
  return text != nullptr && absl::SimpleAtoi(text, &value) ? value : otherwise;
}

struct Counts {
  int programs = 0, refused = 0, undecided = 0;
  int64_t elements = 0, points = 0;
};

void CountPoints(const std::vector<ReferenceTensor>& results, Counts& counts) {
  for (const ReferenceTensor& result : results) {
    counts.elements += static_cast<int64_t>(result.elements.size());
    for (const Enclosure& e : result.elements)
      counts.points += OnlyMember(result.type, e).has_value();
  }
}

bool HasArg(const loop::Item& item) {
  const auto* statement = item.As<loop::Statement>();
  if (statement != nullptr) return statement->op && IsArg(*statement->op);
  const auto* loop = item.As<loop::Loop>();
  return loop != nullptr && std::any_of(loop->body.begin(), loop->body.end(), HasArg);
}

// Lets the interpreter shuffle every loop except those of an argmax, whose ties are decided by
// order. That is more than the loops' dependences allow, as for a sum in any order.
void MarkForShuffling(const loop::Program& program, loop::Scope& scope) {
  for (loop::Item& item : scope) {
    auto* loop = item.As<loop::Loop>();
    if (loop == nullptr) continue;
    loop->attributes.parallel = !HasArg(item) && !RunsInSteps(program, *loop);
    MarkForShuffling(program, loop->body);
  }
}

std::string NotEnclosed(const std::vector<ReferenceTensor>& want, const std::vector<Tensor>& got,
                        absl::string_view how) {
  for (size_t i = 0; i < want.size(); ++i) {
    const absl::Status status = CheckEnclosed(want[i], got[i]);
    if (!status.ok()) return absl::StrCat(how, ": result ", i, " ", status.message());
  }
  return "";
}

// "", or what is wrong.
std::string Violation(loop::Program program, const RunInputs& inputs, Counts& counts) {
  InterpreterOptions options;
  options.max_steps = 10000000;
  const auto native = Interpret(program, inputs, options);
  const auto reference = InterpretReference(program, inputs, options);
  ++counts.programs;
  if (!native.ok()) {
    ++counts.refused;
    return reference.ok() ? absl::StrCat("the reference runs, but: ", native.status().ToString())
                          : "";
  }
  if (!reference.ok()) {
    if (!absl::StrContains(reference.status().message(), "undecided"))
      return reference.status().ToString();
    ++counts.undecided;
    return "";
  }
  CountPoints(*reference, counts);
  const std::string violation = NotEnclosed(*reference, *native, "in order");
  if (!violation.empty()) return violation;
  MarkForShuffling(program, program.body);
  options.shuffle_seed = counts.programs;
  const auto shuffled = Interpret(program, inputs, options);
  return shuffled.ok() ? NotEnclosed(*reference, *shuffled, "shuffled")
                       : shuffled.status().ToString();
}

// The op to test for a drawn op; nullopt for none.
using Derived = absl::optional<Op> (*)(const Op&);

absl::optional<Op> Itself(const Op& op) { return op; }

absl::optional<Op> GradientOf(const Op& op) {
  const auto gradient = Gradient(op);
  if (!gradient.ok()) return absl::nullopt;
  return gradient->op;
}

void TestPrograms(int64_t count, const GeneratorOptions& base, Derived derived = Itself) {
  const uint64_t first = Setting("NESTOR_RANDOM_SEED", 1);
  count = Setting("NESTOR_RANDOM_COUNT", count);
  Counts counts;
  for (uint64_t seed = first; seed < first + count && !testing::Test::HasFailure(); ++seed) {
    GeneratorOptions options = base;
    for (options.nodes = 1; options.nodes <= 1 + static_cast<int>(seed % base.nodes);
         ++options.nodes) {
      const absl::optional<Op> op = derived(RandomOp(seed, options));
      if (!op) continue;
      const RandomInputsResult made = RandomInputs(*op, seed);
      const std::string violation = Violation(Lower(*op), made.inputs, counts);
      EXPECT_EQ(violation, "") << "seed " << seed << "\n"
                               << PrintOp(*op) << "\n"
                               << InputsText(made.inputs);
      if (!violation.empty()) break;
    }
  }
  std::cerr << counts.programs << " programs, refused by both " << counts.refused << ", undecided "
            << counts.undecided << ", of " << counts.elements << " elements " << counts.points
            << " are single values\n";
  EXPECT_LE(counts.undecided, counts.programs / 100 + 3);
}

TEST(Reference, HoldsTheBitsOfRandomPrograms) {
  GeneratorOptions options;
  options.nodes = 12;
  TestPrograms(2000, options);
}

TEST(Reference, HoldsTheBitsOfRandomFloatPrograms) {
  GeneratorOptions options;
  options.nodes = 8;
  options.floats_only = true;
  TestPrograms(1000, options);
}

// Values of size 1, where bounds are narrow and most sums are inexact.
TEST(Reference, HoldsTheBitsOfModerateFloatPrograms) {
  GeneratorOptions options;
  options.nodes = 8;
  options.smooth = true;
  TestPrograms(1000, options);
}

TEST(Reference, HoldsTheBitsOfGradients) {
  GeneratorOptions options;
  options.nodes = 6;
  options.floats_only = true;
  TestPrograms(300, options, GradientOf);
  options.smooth = true;
  TestPrograms(300, options, GradientOf);
}

// ---- The macro library

using Engine = std::mt19937_64;

// The type of an argument where type variables are `type`.
DType ArgumentType(const ast::Op& op, const std::string& name, DType type) {
  for (const ast::Argument& arg : op.args) {
    if (arg.name == name) return TypeByName(arg.type.text).value_or(type);
  }
  return type;
}

Tensor DrawTensor(DType type, const SampleArgument& arg, Engine& random) {
  std::vector<double> values(*NumElements(arg.shape));
  for (double& value : values) {
    const double unit = static_cast<double>(random() >> 11) * 0x1p-53;
    const int64_t bound = arg.bound.value_or(10);
    value = !IsFloat(type) ? static_cast<double>(random() % bound)
            : arg.bound    ? unit * bound
                           : 4 * unit - 2;
  }
  return Tensor::Of(type, arg.shape, values);
}

struct SampleRun {
  std::map<std::string, Tensor> tensors;
  RunInputs inputs;
  loop::Program program;
};

// `x` with every element in another type.
Tensor Converted(const Tensor& x, DType type) {
  std::vector<double> values;
  const int64_t size = ByteSize(x.type());
  for (int64_t i = 0; i < x.num_elements(); ++i) {
    values.push_back(Load(x.type(), static_cast<const char*>(x.data()) + i * size).ToDouble());
  }
  return Tensor::Of(type, x.shape(), values);
}

// The op in `type`, on values of the type `drawn`.
absl::Status Prepare(const MacroOp& macro, const Sample& sample, DType type, uint64_t seed,
                     SampleRun& run, absl::optional<DType> drawn = absl::nullopt) {
  Engine random(seed);
  ArgumentSpecs specs;
  for (const SampleArgument& arg : sample.args) {
    const DType arg_type = ArgumentType(MacroLibrary().Syntax(macro.name), arg.name, type);
    const DType drawn_type =
        ArgumentType(MacroLibrary().Syntax(macro.name), arg.name, drawn.value_or(type));
    specs[arg.name] = {arg_type, static_cast<int>(arg.shape.size())};
    run.tensors[arg.name] = DrawTensor(drawn_type, arg, random);
    if (drawn_type != arg_type) run.tensors[arg.name] = Converted(run.tensors[arg.name], arg_type);
    run.inputs.tensors[arg.name] = run.tensors[arg.name].view();
  }
  const absl::StatusOr<Op> op = MacroLibrary().Instantiate(macro.name, specs);
  if (!op.ok()) return op.status();
  for (const ParamInfo& param : op->params) {
    if (param.value) run.inputs.params[param.name] = *param.value;
  }
  for (const auto& [name, literal] : sample.params)
    run.inputs.params[name] = *ParseLiteral(literal, op->FindParam(name)->type);
  run.program = Lower(*op);
  return absl::OkStatus();
}

// Adds each element's width relative to its largest member, in ulps.
void AddUlps(const std::vector<ReferenceTensor>& results, std::vector<double>& ulps) {
  for (const ReferenceTensor& result : results) {
    for (const Enclosure& e : result.elements) {
      if (!IsFloat(result.type) || !e.HasFinite()) continue;
      const long double size = std::max(std::fabs(e.low), std::fabs(e.high));
      ulps.push_back(static_cast<double>((e.high - e.low) / FormatOf(result.type).Ulp(size)));
    }
  }
}

TEST(Reference, HoldsTheBitsOfMacroOps) {
  for (const MacroOp& macro : MacroOps()) {
    std::vector<double> ulps;
    for (const Sample& sample : macro.samples) {
      for (DType type : {DType::kF32, DType::kF64, DType::kBF16, DType::kF16}) {
        for (uint64_t seed = 1; seed <= 2; ++seed) {
          SCOPED_TRACE(absl::StrCat(macro.name, " ", Name(type), " seed ", seed));
          SampleRun run;
          const absl::Status prepared = Prepare(macro, sample, type, seed, run);
          ASSERT_TRUE(prepared.ok()) << prepared;
          Counts counts;
          EXPECT_EQ(Violation(run.program, run.inputs, counts), "");
          EXPECT_EQ(counts.refused + counts.undecided, 0);
          const auto reference = InterpretReference(run.program, run.inputs);
          ASSERT_TRUE(reference.ok());
          if (type == DType::kF32) AddUlps(*reference, ulps);
        }
      }
    }
    std::nth_element(ulps.begin(), ulps.begin() + ulps.size() / 2, ulps.end());
    std::cerr << macro.name << ": f32 enclosures of " << (ulps.empty() ? 0 : ulps[ulps.size() / 2])
              << " ulps\n";
  }
}

// An evaluation in a wider type throughout, rounded only at its end, is an allowed one.
TEST(Reference, HoldsWiderEvaluationsOfMacroOps) {
  constexpr std::pair<DType, DType> kTypes[] = {{DType::kF32, DType::kF64},
                                                {DType::kBF16, DType::kF32},
                                                {DType::kF16, DType::kF32},
                                                {DType::kBF16, DType::kF64}};
  int runs = 0, undecided = 0;
  int64_t only_wider = 0;
  for (const MacroOp& macro : MacroOps()) {
    for (const Sample& sample : macro.samples) {
      for (const auto& [own, wider] : kTypes) {
        SCOPED_TRACE(absl::StrCat(macro.name, " of ", Name(own), " in ", Name(wider)));
        SampleRun written, computed;
        ASSERT_TRUE(Prepare(macro, sample, own, 5, written).ok());
        ASSERT_TRUE(Prepare(macro, sample, wider, 5, computed, own).ok());
        for (auto& [name, value] : computed.inputs.params) {
          if (IsFloat(value.type))
            value = Scalar::Of(value.type, written.inputs.params.at(name).ToDouble());
        }
        const auto results = Interpret(computed.program, computed.inputs);
        ASSERT_TRUE(results.ok()) << results.status();
        const auto want =
            InterpretReference(written.program, written.inputs, {}, Precision::kAsWrittenOrWider);
        const auto narrow = InterpretReference(written.program, written.inputs);
        ASSERT_TRUE(narrow.ok());
        ++runs;
        undecided += !want.ok();
        if (!want.ok()) continue;
        for (size_t r = 0; r < want->size(); ++r) {
          const Tensor rounded = Converted((*results)[r], (*want)[r].type);
          EXPECT_TRUE(CheckEnclosed((*want)[r], rounded).ok())
              << CheckEnclosed((*want)[r], rounded);
          only_wider += !CheckEnclosed((*narrow)[r], rounded).ok();
        }
      }
    }
  }
  std::cerr << runs << " runs, undecided " << undecided << "; " << only_wider
            << " results are right only so\n";
  EXPECT_LE(undecided, runs / 50);
  EXPECT_GE(only_wider, 10);
}

// Every element of every float result of every sample, moved by four half-widths
// or, where the enclosure is a single value, by one ulp.
TEST(Reference, RejectsMovedElementsOfMacroOps) {
  for (const MacroOp& macro : MacroOps()) {
    for (const Sample& sample : macro.samples) {
      SampleRun run;
      const absl::Status prepared = Prepare(macro, sample, DType::kF32, 3, run);
      ASSERT_TRUE(prepared.ok()) << prepared;
      const auto reference = InterpretReference(run.program, run.inputs);
      ASSERT_TRUE(reference.ok()) << reference.status();
      for (const ReferenceTensor& result : *reference) {
        for (const Enclosure& e : result.elements) {
          if (result.type != DType::kF32 || !e.HasFinite()) continue;
          const long double width =
              std::max((e.high - e.low) * 2, FormatOf(DType::kF32).Ulp(e.high));
          const float moved = static_cast<float>(e.high + width);
          EXPECT_FALSE(Encloses(e, Scalar::Of(DType::kF32, moved)))
              << macro.name << " " << moved << " in " << ToString(e);
        }
      }
    }
  }
}

}  // namespace
}  // namespace nestor
