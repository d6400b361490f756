// Every op of the macro library against plain loops (tests/naive_ops.h), at each of its sample
// shapes, in f32 and f64. Ops, shapes and $params come from the library itself; an op without a
// reference fails.
//
// Tolerance. A result is a chain of reductions and elementwise steps, each of which rounds once, so
// to first order it is off by at most (steps in the chain) * eps * (the magnitudes that were added
// up). Steps are counted in the op's graph: the lengths of its reductions, and 4 for every
// elementwise node (a transcendental's two ulps, and the effect of an error in its operand).
// Magnitudes are those of the reference's result on the inputs and on their absolute values, where
// nothing cancels, and at least 1, the size of the inputs.
#include <cmath>
#include <limits>
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
    // Also -1 and `bound`, which are outside of the dimension that the bound stands for.
    const bool wide = out_of_bounds && type == DType::kI64;
    return wide ? static_cast<double>(random() % (bound + 2)) - 1
                : static_cast<double>(random() % bound);
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

// Sets the sample's $params, and each default as rounded to the op's type.
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
    const auto extents =
        EvaluateShape(op.graph.pool(), op.graph.shape(reduce->x), binding, "a reduction");
    EXPECT_TRUE(extents.ok()) << extents.status();
    if (!extents.ok()) continue;
    double length = 1;
    for (size_t axis = extents->size() - reduce->count; axis < extents->size(); ++axis)
      length *= (*extents)[axis];
    steps += length;
  }
  return steps;
}

double LargestMagnitude(const NaiveTensor& a, const NaiveTensor& b) {
  double largest = 1;
  for (const NaiveTensor* tensor : {&a, &b}) {
    for (double x : tensor->data)
      largest = std::isfinite(x) ? std::max(largest, std::fabs(x)) : largest;
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

void ExpectNear(const std::string& name, const Tensor& got, const NaiveTensor& want,
                double tolerance) {
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

void RunSample(const MacroOp& macro, const Sample& sample, DType type, bool out_of_bounds,
               Random& random) {
  ArgumentSpecs specs;
  Inputs inputs;
  for (const SampleArgument& arg : sample.args) {
    const DType arg_type = ArgumentType(MacroLibrary().Syntax(macro.name), arg.name, type);
    specs[arg.name] = {arg_type, static_cast<int>(arg.shape.size())};
    const Tensor& tensor = inputs.tensors[arg.name] =
        DrawTensor(arg_type, arg, out_of_bounds, random);
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
  const NaiveTensors magnitudes = Magnitudes(inputs.naive),
                     scale = naive({magnitudes, inputs.naive_params});
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
    ExpectNear(name, (*results)[i], want.at(name),
               steps * eps * LargestMagnitude(want.at(name), scale.at(name)));
  }
}

std::string SampleText(const Sample& sample) {
  std::string text;
  for (const SampleArgument& arg : sample.args)
    absl::StrAppend(&text, " ", arg.name, "=", ShapeText(arg.shape));
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
  for (const auto& [name, naive] : NaiveOps())
    EXPECT_TRUE(MacroLibrary().Has(name)) << name << " is no macro op";
}

TEST(MacroOps, AgreeWithPlainLoops) {
  for (const MacroOp& op : MacroOps()) {
    if (!NaiveOps().count(op.name)) continue;  // reported above
    for (size_t i = 0; i < op.samples.size(); ++i) {
      for (DType type : {DType::kF32, DType::kF64}) {
        for (uint64_t seed = 1; seed <= 4; ++seed) {
          const bool out_of_bounds = seed % 2 == 0;
          SCOPED_TRACE(
              absl::StrCat(op.name, SampleText(op.samples[i]), " ", Name(type), " seed ", seed));
          Random random(seed);
          RunSample(op, op.samples[i], type, out_of_bounds, random);
        }
      }
    }
  }
}

// ---- Edges, as PyTorch documents them, or as the op's comment says

constexpr double kInf = std::numeric_limits<double>::infinity(),
                 kNan = std::numeric_limits<double>::quiet_NaN();

struct Edge {
  const char* op;
  std::vector<NaiveTensor> args;
  NaiveParams params;
  size_t result;
  std::vector<double> want;
};

// Type variables are f64.
std::vector<double> ValuesOf(const Edge& edge) {
  const ast::Op& syntax = MacroLibrary().Syntax(edge.op);
  ArgumentSpecs specs;
  std::vector<Tensor> tensors;
  RunInputs inputs;
  for (size_t i = 0; i < edge.args.size(); ++i) {
    const DType type = TypeByName(syntax.args[i].type.text).value_or(DType::kF64);
    specs[syntax.args[i].name] = {type, static_cast<int>(edge.args[i].shape.size())};
    tensors.push_back(Tensor::Of(type, edge.args[i].shape, edge.args[i].data));
  }
  for (size_t i = 0; i < edge.args.size(); ++i)
    inputs.tensors[syntax.args[i].name] = tensors[i].view();
  const absl::StatusOr<Op> op = MacroLibrary().Instantiate(edge.op, specs);
  EXPECT_TRUE(op.ok()) << op.status();
  if (!op.ok()) return {};
  for (const auto& [name, value] : edge.params) {
    const DType type = op->FindParam(name)->type;
    inputs.params[name] = IsFloat(type) ? Scalar::Float(type, value)
                                        : Scalar::Integer(type, static_cast<int64_t>(value));
  }
  const auto results = Interpret(Lower(*op), inputs);
  EXPECT_TRUE(results.ok()) << results.status();
  return results.ok() ? ToNaive((*results)[edge.result]).data : std::vector<double>();
}

TEST(MacroOps, Edges) {
  const double log2 = std::log(2.0);
  const Edge kEdges[] = {
      // clang-format off
      // All left out; one left out; a label that is no class.
      {"cross_entropy_weighted", {{{2, 2}, {0, 0, 5, 1}}, {{2}, {-100, -100}}, {{2}, {2, 1}}},
       {}, 0, {kNan}},
      {"cross_entropy_weighted", {{{2, 2}, {0, 0, 5, 1}}, {{2}, {0, -100}}, {{2}, {2, 1}}},
       {}, 0, {log2}},
      {"cross_entropy_weighted", {{{2, 2}, {0, 0, 5, 1}}, {{2}, {0, 2}}, {{2}, {2, 1}}},
       {}, 0, {kNan}},
      {"nll_loss",
       {{{1, 2}, {-1, -2}}, {{1}, {7}}, {{2}, {1, 1}}}, {{"$ignore_index", 7}}, 0, {kNan}},
      // Everything is masked.
      {"masked_softmax", {{{2, 2}, {1, 2, 3, 3}}, {{2, 2}, {0, 0, 1, 1}}}, {}, 0, {0, 0, 0.5, 0.5}},
      {"attention_masked",
       {{{1, 1}, {1}}, {{2, 1}, {1, kNan}}, {{2, 1}, {3, kNan}}, {{1, 2}, {0, 0}}}, {}, 0, {0}},
      {"attention_masked",
       {{{1, 1}, {1}}, {{2, 1}, {1, kNan}}, {{2, 1}, {3, kNan}}, {{1, 2}, {1, 0}}}, {}, 0, {3}},
      // Not even a NaN after a place affects it.
      {"causal_attention",
       {{{3, 2}, {1, 2, 3, 4, 5, 6}}, {{3, 2}, {1, -1, -3, 2, kNan, kNan}}, {{3, 1}, {2, 3, kNan}}},
       {}, 0, {2, 2.5, kNan}},
      {"attention_cached",
       {{{1, 1, 2, 1}, {1, 1}}, {{1, 1, 3, 1}, {1, kNan, kNan}}, {{1, 1, 3, 1}, {3, kNan, kNan}}, {{1}, {1}}},
       {}, 0, {0, 3}},
      // Infinities and NaN.
      {"logsumexp", {{{4, 2}, {-kInf, -kInf, kInf, 1, -kInf, 3, kNan, 1}}},
       {}, 0, {-kInf, kInf, 3, kNan}},
      {"max_pool1d",
       {{{1, 1, 3}, {kNan, -kInf, -kInf}}}, {{"$k", 2}, {"$stride", 1}}, 0, {kNan, -kInf}},
      {"sort", {{{4}, {2, kNan, 1, 2}}}, {}, 0, {1, 2, 2, kNan}},
      {"sort", {{{4}, {2, kNan, 1, 2}}}, {}, 1, {2, 0, 3, 1}},
      {"sort_descending", {{{4}, {2, kNan, 1, 2}}}, {}, 1, {1, 0, 3, 2}},
      {"topk", {{{3}, {1, kNan, 3}}}, {{"$k", 2}}, 0, {kNan, 3}},
      {"arg_max", {{{2, 3}, {3, 1, 3, 1, kNan, 2}}}, {}, 0, {0, 1}},
      {"arg_max", {{{1, 0}, {}}}, {}, 0, {-1}},
      {"reduce_max", {{{1, 0}, {}}}, {}, 0, {-kInf}},
      {"reduce_prod", {{{1, 0}, {}}}, {}, 0, {1}},
      {"reduce_mean", {{{1, 0}, {}}}, {}, 0, {kNan}},
      {"median", {{{4}, {4, 1, 3, 2}}}, {}, 0, {2}},
      {"variance", {{{1}, {5}}}, {}, 0, {kNan}},
      {"bce_loss", {{{2}, {0, 1}}, {{2}, {1, 1}}}, {}, 0, {50}},
      {"bce_with_logits", {{{1, 1}, {1000}}, {{1, 1}, {1}}, {{1}, {1}}}, {}, 0, {0}},
      {"kl_div", {{{1, 2}, {0, 0}}, {{1, 2}, {0, 1}}}, {}, 0, {0}},
      {"cosine_similarity", {{{2}, {0, 0}}, {{2}, {1, 2}}}, {}, 0, {0}},
      {"l2_normalize", {{{2}, {0, 0}}}, {}, 0, {0, 0}},
      {"clip_by_norm", {{{2}, {0, 0}}}, {{"$max_norm", 1}}, 0, {0, 0}},
      // One element as the result or as the input.
      {"resize_linear1d_aligned", {{{3}, {7, 8, 9}}}, {{"$out", 1}}, 0, {7}},
      {"resize_linear1d", {{{1}, {7}}}, {{"$out", 3}}, 0, {7, 7, 7}},
      {"resize_cubic1d", {{{1}, {7}}}, {{"$out", 2}}, 0, {7, 7}},
      {"adaptive_avg_pool1d", {{{1, 1, 2}, {2, 4}}}, {{"$out", 3}}, 0, {2, 3, 4}},
      {"diff", {{{0}, {}}}, {}, 0, {}},
      {"split", {{{2}, {1, 2}}}, {{"$at", 5}}, 0, {1, 2}},
      {"split", {{{2}, {1, 2}}}, {{"$at", 5}}, 1, {}},
      {"diagonal", {{{2, 2}, {1, 2, 3, 4}}}, {{"$offset", 5}}, 0, {}},
      {"slice",
       {{{3}, {1, 2, 3}}}, {{"$start", 2}, {"$length", 4}, {"$step", -1}}, 0, {3, 2, 1, 0}},
      {"pad_wrap", {{{2}, {1, 2}}}, {{"$before", 3}, {"$after", 2}}, 0, {2, 1, 2, 1, 2, 1, 2}},
      // Several elements for one place, or none.
      {"scatter", {{{2}, {8, 9}}, {{3}, {0, 0, 5}}, {{3}, {1, 2, 3}}}, {}, 0, {2, 9}},
      {"segment_max", {{{1, 1}, {3}}, {{1}, {1}}}, {{"$segments", 2}}, 0, {-kInf, 3}},
      {"embedding_bag_offsets", {{{2, 1}, {1, 10}}, {{3}, {0, 1, 1}}, {{3}, {0, 0, 1}}},
       {}, 0, {0, 1, 20}},
      {"one_hot", {{{2}, {-1, 2}}}, {{"$classes", 2}}, 0, {0, 0, 0, 0}},
      // Ends of ranges.
      {"quantize_u8",
       {{{5}, {-kInf, kNan, 0.5, 1.5, 1000}}}, {{"$scale", 1}}, 0, {0, 0, 0, 2, 255}},
      {"quantize_i8", {{{2}, {-1000, 1000}}}, {{"$scale", 1}}, 0, {-128, 127}},
      {"dropout", {{{1, 2}, {1, 2}}}, {{"$p", 1}}, 0, {0, 0}},
      {"dropout", {{{1, 2}, {1, 2}}}, {{"$p", 0}}, 0, {1, 2}},
      // The known answers of Random123's kat_vectors for philox4x32-10.
      {"philox", {{{1}, {0}}, {{1}, {0}}, {{1}, {0}}, {{1}, {0}}}, {}, 0, {0x6627e8d5}},
      {"philox", {{{1}, {0}}, {{1}, {0}}, {{1}, {0}}, {{1}, {0}}}, {}, 3, {0x9b00dbd8}},
      {"philox",
       {{{1}, {0xffffffff}}, {{1}, {0xffffffff}}, {{1}, {0xffffffff}}, {{1}, {0xffffffff}}},
       {{"$key0", 0xffffffff}, {"$key1", 0xffffffff}}, 1, {0x41c83b0e}},
      {"philox",
       {{{1}, {0x243f6a88}}, {{1}, {0x85a308d3}}, {{1}, {0x13198a2e}}, {{1}, {0x03707344}}},
       {{"$key0", 0xa4093822}, {"$key1", 0x299f31d0}}, 0, {0xd16cfe09}},
      {"philox",
       {{{1}, {0x243f6a88}}, {{1}, {0x85a308d3}}, {{1}, {0x13198a2e}}, {{1}, {0x03707344}}},
       {{"$key0", 0xa4093822}, {"$key1", 0x299f31d0}}, 2, {0x5001e420}},
      // clang-format on
  };
  for (const Edge& edge : kEdges) {
    const std::vector<double> values = ValuesOf(edge);
    ASSERT_EQ(values.size(), edge.want.size()) << edge.op;
    for (size_t i = 0; i < values.size(); ++i) {
      const double got = values[i], want = edge.want[i];
      const bool equal = got == want || (std::isnan(got) && std::isnan(want));
      EXPECT_TRUE(equal || std::fabs(got - want) <= 4 * 0x1p-52 * std::fabs(want))
          << edge.op << " result " << edge.result << "[" << i << "] = " << got << ", want " << want;
    }
  }
}

}  // namespace
}  // namespace nestor
