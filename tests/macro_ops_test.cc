// Every op of the macro library against plain loops (tests/naive_ops.h), at each of its sample
// shapes, in f32 and f64. Ops, shapes and $params come from the library itself; an op without a
// reference fails.
//
// Tolerance. A result is a chain of reductions and elementwise steps, each of which rounds once, so
// to first order it is off by at most (steps in the chain) * eps * (the magnitudes that were added
// up). Steps are counted in the op's graph: the lengths of its reductions, and 4 for every
// elementwise node (a transcendental's two ulps, and what an error in its operand does to it).
// Magnitudes are those of the reference's result on the inputs and on their absolute values, where
// nothing cancels, and at least 1, the size of the inputs.
#include <cmath>
#include <random>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "interp/interpreter.h"
#include "loop_ir/lower.h"
#include "macro_ops/library.h"
#include "tensor/binding.h"
#include "tests/naive_ops.h"

namespace nestor {
namespace {

using Random = std::mt19937_64;

// Values of one run: for the interpreter in the op's types, for the reference in double.
struct Inputs {
  std::map<std::string, Tensor> tensors;
  RunInputs run;
  NaiveTensors naive;
  NaiveParams naive_params;
};

// The type of an argument where type variables are `type`.
DType ArgumentType(const ast::Op& op, const std::string& name, DType type) {
  for (const ast::Argument& arg : op.args) {
    if (arg.name == name) return TypeByName(arg.type.text).value_or(type);
  }
  ADD_FAILURE() << "the sample names no argument: " << name;
  return type;
}

double DrawValue(DType type, const SampleArgument& arg, bool out_of_bounds, Random& random) {
  if (type == DType::kBool) return static_cast<double>(random() % 2);
  if (!IsFloat(type)) {
    const int64_t bound = arg.bound.value_or(10);
    // -1 and `bound` too, which are in no dimension that the bound stands for.
    const bool wide = out_of_bounds && type == DType::kI64;
    return wide ? static_cast<double>(random() % (bound + 2)) - 1 : static_cast<double>(random() % bound);
  }
  const double unit = (random() >> 11) * 0x1p-53;
  return arg.bound ? unit * *arg.bound : 4 * unit - 2;
}

Tensor DrawTensor(DType type, const SampleArgument& arg, bool out_of_bounds, Random& random) {
  std::vector<double> values(*NumElements(arg.shape));
  for (double& value : values) value = DrawValue(type, arg, out_of_bounds, random);
  return Tensor::Of(type, arg.shape, values);
}

NaiveTensor ToNaive(const Tensor& tensor) {
  NaiveTensor naive{{tensor.shape().begin(), tensor.shape().end()}, {}};
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    const char* element = static_cast<const char*>(tensor.data()) + i * ByteSize(tensor.type());
    naive.data.push_back(Load(tensor.type(), element).ToDouble());
  }
  return naive;
}

// What the sample gives, and each default as the op's type rounds it.
void SetParams(const Op& op, const Sample& sample, Inputs& inputs) {
  for (const ParamInfo& param : op.params) {
    if (param.value) inputs.naive_params[param.name.substr(1)] = param.value->ToDouble();
  }
  for (const auto& [name, literal] : sample.params) {
    const ParamInfo* param = op.FindParam(name);
    ASSERT_NE(param, nullptr) << name;
    const auto value = ParseLiteral(literal, param->type);
    ASSERT_TRUE(value.has_value()) << name << "=" << literal;
    inputs.run.params[name] = *value;
    inputs.naive_params[name.substr(1)] = value->ToDouble();
  }
}

// How many roundings a value of the op's results may have gone through; see above.
double CountSteps(const Op& op, const Binding& binding) {
  const std::vector<bool> live = Reachable(op.graph, op.ResultNodes());
  double steps = 1;
  for (int i = 0; i < op.graph.size(); ++i) {
    if (!live[i]) continue;
    if (op.graph.As<Map>(NodeId{i}) != nullptr) steps += 4;
    const Reduce* reduce = op.graph.As<Reduce>(NodeId{i});
    if (reduce == nullptr) continue;
    const auto extents = EvaluateShape(op.graph.pool(), op.graph.shape(reduce->x), binding, "a reduction");
    EXPECT_TRUE(extents.ok()) << extents.status();
    if (!extents.ok()) continue;
    double length = 1;
    for (size_t axis = extents->size() - reduce->count; axis < extents->size(); ++axis) length *= (*extents)[axis];
    steps += length;
  }
  return steps;
}

double LargestMagnitude(const NaiveTensor& a, const NaiveTensor& b) {
  double largest = 1;
  for (const NaiveTensor* tensor : {&a, &b}) {
    for (double x : tensor->data) largest = std::isfinite(x) ? std::max(largest, std::fabs(x)) : largest;
  }
  return largest;
}

NaiveTensors Magnitudes(const NaiveTensors& tensors) {
  NaiveTensors result = tensors;
  for (auto& [name, tensor] : result) {
    for (double& x : tensor.data) x = std::fabs(x);
  }
  return result;
}

void ExpectNear(const std::string& name, const Tensor& got, const NaiveTensor& want, double tolerance) {
  ASSERT_EQ(ShapeText(got.shape()), ShapeText(want.shape)) << name;
  const NaiveTensor values = ToNaive(got);
  for (size_t i = 0; i < want.data.size(); ++i) {
    const double x = values.data[i], y = want.data[i];
    const bool equal = x == y || (std::isnan(x) && std::isnan(y));
    EXPECT_TRUE(equal || std::fabs(x - y) <= tolerance)
        << name << "[" << i << "] = " << x << ", want " << y << " within " << tolerance;
  }
}

// Whether some argument's type is open.
bool IsTemplate(const std::string& name) {
  for (const ast::Argument& arg : MacroLibrary().Syntax(name).args) {
    if (!TypeByName(arg.type.text)) return true;
  }
  return false;
}

void RunSample(const MacroOp& macro, const Sample& sample, DType type, bool out_of_bounds, Random& random) {
  ArgumentSpecs specs;
  Inputs inputs;
  for (const SampleArgument& arg : sample.args) {
    const DType arg_type = ArgumentType(MacroLibrary().Syntax(macro.name), arg.name, type);
    specs[arg.name] = {arg_type, static_cast<int>(arg.shape.size())};
    const Tensor& tensor = inputs.tensors[arg.name] = DrawTensor(arg_type, arg, out_of_bounds, random);
    inputs.run.tensors[arg.name] = tensor.view();
    inputs.naive[arg.name] = ToNaive(tensor);
  }
  const absl::StatusOr<Op> op = MacroLibrary().Instantiate(macro.name, specs);
  ASSERT_TRUE(op.ok()) << op.status();
  ASSERT_NO_FATAL_FAILURE(SetParams(*op, sample, inputs));
  const auto results = Interpret(Lower(*op), inputs.run);
  ASSERT_TRUE(results.ok()) << results.status();
  const NaiveOp& naive = NaiveOps().at(macro.name);
  const NaiveTensors want = naive({inputs.naive, inputs.naive_params});
  const NaiveTensors magnitudes = Magnitudes(inputs.naive), scale = naive({magnitudes, inputs.naive_params});
  const auto binding = Bind(SignatureOf(*op), inputs.run);
  ASSERT_TRUE(binding.ok()) << binding.status();
  const double steps = CountSteps(*op, *binding);
  ASSERT_EQ(op->results.size(), want.size());
  for (size_t i = 0; i < results->size(); ++i) {
    const std::string& name = op->results[i].name;
    ASSERT_TRUE(want.count(name)) << "the reference gives no " << name;
    const DType result_type = (*results)[i].type();
    EXPECT_TRUE(!IsTemplate(macro.name) || !IsFloat(result_type) || result_type == type) << name;
    const double eps = !IsFloat(result_type) ? 0 : result_type == DType::kF32 ? 0x1p-23 : 0x1p-52;
    ExpectNear(name, (*results)[i], want.at(name), steps * eps * LargestMagnitude(want.at(name), scale.at(name)));
  }
}

std::string SampleText(const Sample& sample) {
  std::string text;
  for (const SampleArgument& arg : sample.args) absl::StrAppend(&text, " ", arg.name, "=", ShapeText(arg.shape));
  for (const auto& [name, literal] : sample.params) absl::StrAppend(&text, " ", name, "=", literal);
  return text;
}

TEST(MacroOps, HaveSamplesAndReferences) {
  EXPECT_FALSE(MacroOps().empty());
  for (const MacroOp& op : MacroOps()) {
    EXPECT_FALSE(op.samples.empty()) << op.name << " has no sample";
    EXPECT_FALSE(op.summary.empty()) << op.name << " has no summary";
    EXPECT_TRUE(NaiveOps().count(op.name)) << op.name << " has no reference in tests/naive_*.cc";
  }
  for (const auto& [name, naive] : NaiveOps()) EXPECT_TRUE(MacroLibrary().Has(name)) << name << " is no macro op";
}

TEST(MacroOps, AgreeWithPlainLoops) {
  for (const MacroOp& op : MacroOps()) {
    if (!NaiveOps().count(op.name)) continue;  // reported above
    for (size_t i = 0; i < op.samples.size(); ++i) {
      for (DType type : {DType::kF32, DType::kF64}) {
        for (uint64_t seed = 1; seed <= 4; ++seed) {
          const bool out_of_bounds = seed % 2 == 0;
          SCOPED_TRACE(absl::StrCat(op.name, SampleText(op.samples[i]), " ", Name(type), " seed ", seed));
          Random random(seed);
          RunSample(op, op.samples[i], type, out_of_bounds, random);
        }
      }
    }
  }
}

// Not even a NaN behind a place reaches it.
TEST(MacroOps, CausalAttentionDoesNotLookBehind) {
  const Tensor q = Tensor::Of<float>({3, 2}, {1, 2, 3, 4, 5, 6});
  const float nan = std::nanf("");
  const Tensor k = Tensor::Of<float>({3, 2}, {1, -1, 2, 0.5, nan, nan}), v = Tensor::Of<float>({3, 1}, {2, 3, nan});
  const auto op = MacroLibrary().Instantiate("causal_attention", {{"q", {DType::kF32, 2}}, {"k", {DType::kF32, 2}}, {"v", {DType::kF32, 2}}});
  ASSERT_TRUE(op.ok()) << op.status();
  const auto results = Interpret(Lower(*op), {{{"q", q.view()}, {"k", k.view()}, {"v", v.view()}}, {}, {}});
  ASSERT_TRUE(results.ok()) << results.status();
  const NaiveTensor y = ToNaive((*results)[0]);
  EXPECT_EQ(y.data[0], 2);
  EXPECT_TRUE(y.data[1] > 2 && y.data[1] <= 3) << y.data[1];
  EXPECT_TRUE(std::isnan(y.data[2]));
}

}  // namespace
}  // namespace nestor
