// Gradients at the law's traps (SEMANTICS 4), which are in gradient_traps.txt, and gradients that
// an author gave: values worked out by hand.
#include <cmath>
#include <fstream>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "autodiff/gradient.h"
#include "gtest/gtest.h"
#include "macro_ops/library.h"
#include "re2/re2.h"
#include "tests/gradient_testing.h"
#include "uops/call.h"
#include "uops/notation/module.h"
#include "uops/notation/print.h"

namespace nestor {
namespace {

struct Trap {
  std::string title, program;
  Values values, expected, expected_second;
  absl::flat_hash_map<std::string, Scalar> params;
  GradientRequest request;
  std::map<std::string, std::vector<std::string>> reports;
  std::vector<std::string> lacks;
  std::string may_refuse;
};

Tensor ParseTensor(const std::string& text) {
  std::string type_name, dims, values;
  EXPECT_TRUE(RE2::FullMatch(text, R"((\w+)\[([^\]]*)\]\s*(.*))", &type_name, &dims, &values))
      << text;
  const DType type = TypeByName(type_name).value_or(DType::kF64);
  std::vector<int64_t> shape;
  for (absl::string_view dim : absl::StrSplit(dims, ',', absl::SkipWhitespace())) {
    shape.emplace_back();
    EXPECT_TRUE(absl::SimpleAtoi(dim, &shape.back())) << text;
  }
  std::vector<double> numbers;
  for (absl::string_view value : absl::StrSplit(values, ' ', absl::SkipEmpty())) {
    numbers.emplace_back();
    EXPECT_TRUE(absl::SimpleAtod(value, &numbers.back())) << text;
  }
  return Tensor::Of(type, shape, numbers);
}

std::string Expand(const std::string& text) {
  const size_t begin = text.find("@{");
  if (begin == std::string::npos) return text;
  const size_t star = text.find('*', begin), end = text.find('}', star);
  int count = 0;
  EXPECT_TRUE(absl::SimpleAtoi(text.substr(star + 1, end - star - 1), &count));
  const std::string piece = text.substr(begin + 2, star - begin - 2);
  std::string result = text.substr(0, begin);
  for (int i = 1; i <= count; ++i) {
    std::string numbered = piece;
    RE2::GlobalReplace(&numbered, "#-1", absl::StrCat(i - 1));
    RE2::GlobalReplace(&numbered, "#", absl::StrCat(i));
    result += numbered;
  }
  return result + text.substr(end + 1);
}

void ParseDirective(const std::string& line, Trap& trap) {
  std::string word, name, rest;
  if (RE2::FullMatch(line, R"((d|dd) (\w+) == (.*))", &word, &name, &rest)) {
    (word == "d" ? trap.expected : trap.expected_second)[name] = ParseTensor(rest);
  } else if (RE2::FullMatch(line, R"((\$\w+) = (\S+))", &name, &rest)) {
    int64_t integer;
    trap.params[name] =
        absl::SimpleAtoi(rest, &integer) ? Scalar::I64(integer) : *ParseLiteral(rest, DType::kF64);
  } else if (RE2::FullMatch(line, R"((\w+) = (.*))", &name, &rest)) {
    trap.values[name] = ParseTensor(rest);
  } else if (RE2::FullMatch(line, R"((\w+)\s*(.*))", &word, &rest)) {
    const std::vector<std::string> names = absl::StrSplit(rest, ' ', absl::SkipEmpty());
    if (word == "of") trap.request.of = names;
    else if (word == "wrt") trap.request.wrt = names;
    else if (word == "given") trap.request.given = names;
    else if (word == "takes" || word == "shapes" || word == "results") trap.reports[word] = names;
    else if (word == "lacks") trap.lacks.push_back(rest);
    else if (word == "may_refuse") trap.may_refuse = rest;
    else ADD_FAILURE() << trap.title << ": cannot read '" << line << "'";
  }
}

std::vector<Trap> LoadTraps() {
  std::vector<Trap> traps;
  bool program = false;
  std::ifstream file("tests/gradient_traps.txt");
  EXPECT_TRUE(file.good());
  std::string line;
  while (std::getline(file, line)) {
    if (absl::StartsWith(line, "=== ")) {
      traps.emplace_back();
      traps.back().title = line.substr(4);
      program = true;
    } else if (line == "---") {
      traps.back().program = Expand(traps.back().program);
      program = false;
    } else if (program) {
      absl::StrAppend(&traps.back().program, line, "\n");
    } else if (!line.empty() && line[0] != '#') {
      ParseDirective(line, traps.back());
    }
  }
  return traps;
}

void ExpectNear(const std::string& what, const Tensor& got, const Tensor& want) {
  ASSERT_EQ(got.type(), want.type()) << what;
  ASSERT_EQ(ShapeText(got.shape()), ShapeText(want.shape())) << what;
  const double ulp = got.type() == DType::kF64 ? 0x1p-52 : 0x1p-23;
  for (int64_t i = 0; i < got.num_elements(); ++i) {
    const auto element = [i](const Tensor& t) {
      return Load(t.type(), static_cast<const char*>(t.data()) + i * ByteSize(t.type())).ToDouble();
    };
    const double x = element(got), y = element(want);
    const bool both_nan = std::isnan(x) && std::isnan(y);
    EXPECT_TRUE(both_nan || x == y || std::fabs(x - y) <= 4 * ulp * std::fabs(y))
        << what << "[" << i << "] is " << x << ", want " << y << "\n"
        << ToString(got);
  }
}

Tensor Ones(const Tensor& like) {
  return Tensor::Of(like.type(), like.shape(), std::vector<double>(like.num_elements(), 1.0));
}

void ExpectReports(const Trap& trap, const GradientResult& report) {
  std::vector<std::string> takes = report.mask;
  takes.insert(takes.end(), report.shapes.begin(), report.shapes.end());
  const std::map<std::string, std::vector<std::string>> got = {
      {"takes", takes}, {"shapes", report.shapes}, {"results", report.results}};
  for (const auto& [what, want] : trap.reports) {
    const std::vector<std::string>& names = got.at(what);
    EXPECT_EQ(std::set<std::string>(names.begin(), names.end()),
              std::set<std::string>(want.begin(), want.end()))
        << what;
  }
  for (const std::string& piece : trap.lacks)
    EXPECT_FALSE(absl::StrContains(PrintOp(report.op), piece)) << piece;
}

// No partial derivative of the second-order gradient is NaN either.
void ExpectThirdOrderIsNumber(const SecondOrder& second, const Differentiable& first,
                              const Values& values, const Values& adjoints,
                              const Values& directions) {
  const absl::StatusOr<Differentiable> third =
      Differentiable::Make(second.second().gradient_function());
  ASSERT_TRUE(third.ok()) << third.status();
  Values outer;
  for (size_t i = 0; i < first.wrt().size(); ++i)
    outer[first.report().results[i]] = directions.at(first.wrt()[i]);
  const absl::StatusOr<Values> first_args = first.GradientArguments(values, adjoints);
  ASSERT_TRUE(first_args.ok()) << first_args.status();
  const absl::StatusOr<Values> args = second.second().GradientArguments(*first_args, outer);
  ASSERT_TRUE(args.ok()) << args.status();
  const absl::StatusOr<Values> second_order = second.second()(*first_args, outer);
  ASSERT_TRUE(second_order.ok()) << second_order.status();
  Values ones;
  for (size_t i = 0; i < third->of().size(); ++i)
    ones[third->of()[i]] = Ones(second_order->at(second.second().wrt()[i]));
  const absl::StatusOr<Values> partials = (*third)(*args, ones);
  ASSERT_TRUE(partials.ok()) << partials.status();
  for (const auto& [name, tensor] : *partials) {
    for (double x : tensor.values<double>()) {
      EXPECT_FALSE(std::isnan(x)) << "third order, by " << name << ": " << ToString(tensor) << "\n"
                                  << PrintOp(third->report().op);
    }
  }
}

void RunTrap(const Trap& trap) {
  const absl::StatusOr<Module> module = Module::Parse(trap.program, &MacroLibrary());
  ASSERT_TRUE(module.ok()) << module.status();
  const absl::StatusOr<Op> op = module->Instantiate("", {});
  ASSERT_TRUE(op.ok()) << op.status();
  const Function function(*op, trap.params);
  const absl::StatusOr<Differentiable> first = Differentiable::Make(function, trap.request);
  if (!first.ok() && !trap.may_refuse.empty()) {
    EXPECT_EQ(first.status().code(), absl::StatusCode::kInvalidArgument) << first.status();
    EXPECT_TRUE(absl::StrContains(first.status().message(), trap.may_refuse)) << first.status();
    return;
  }
  ASSERT_TRUE(first.ok()) << first.status();
  SCOPED_TRACE(PrintOp(first->report().op));
  ExpectReports(trap, first->report());
  const absl::StatusOr<Values> results = function(trap.values);
  ASSERT_TRUE(results.ok()) << results.status();
  Values adjoints;
  for (const std::string& name : first->of()) {
    const auto given = trap.values.find("g_" + name);
    const bool is_adjoint = given != trap.values.end() && op->FindArgument("g_" + name) == nullptr;
    adjoints[name] = is_adjoint ? given->second : Ones(results->at(name));
  }
  const absl::StatusOr<Values> gradient = (*first)(trap.values, adjoints);
  ASSERT_TRUE(gradient.ok()) << gradient.status();
  EXPECT_FALSE(trap.expected.empty());
  for (const auto& [name, want] : trap.expected) ExpectNear("d " + name, gradient->at(name), want);
  if (trap.expected_second.empty()) return;
  const absl::StatusOr<SecondOrder> second = SecondOrder::Make(*first);
  ASSERT_TRUE(second.ok()) << second.status();
  SCOPED_TRACE(PrintOp(second->second().report().op));
  Values directions;
  for (const auto& [name, tensor] : *gradient) directions[name] = Ones(tensor);
  const absl::StatusOr<Values> total = (*second)(trap.values, adjoints, directions);
  ASSERT_TRUE(total.ok()) << total.status();
  for (const auto& [name, want] : trap.expected_second)
    ExpectNear("dd " + name, total->at(name), want);
  ExpectThirdOrderIsNumber(*second, *first, trap.values, adjoints, directions);
}

TEST(Gradient, Traps) {
  const std::vector<Trap> traps = LoadTraps();
  EXPECT_GE(traps.size(), 80u);
  for (const Trap& trap : traps) {
    SCOPED_TRACE(trap.title);
    RunTrap(trap);
  }
}

// ---- Gradients that an author gave ----

Op Parsed(const char* text) {
  absl::StatusOr<Op> op = ParseOp(text);
  EXPECT_TRUE(op.ok()) << op.status() << "\n" << text;
  return op.ok() ? *std::move(op) : Op();
}

// A wrong factor shows which gradient was taken.
TEST(Gradient, OfAnOpWithItsOwn) {
  Op square = Parsed("op square_it(x: f64[N]) -> (y) { y[i] = x[i] * x[i] }");
  square.gradient = std::make_shared<const Op>(Parsed(
      "op square_it_grad(g_y: f64[N], x: f64[N]) -> (g_x) { g_x[i] = 7.0 * g_y[i] * x[i] }"));
  const Op twice = Parsed("op twice(y: f64[N]) -> (z) { z[i] = 2.0 * y[i] }");
  const std::vector<std::string> results = {"z"};
  const Op ops[] = {square, twice};
  const absl::StatusOr<Op> both = Combine("both", ops, results);
  ASSERT_TRUE(both.ok()) << both.status();
  for (const auto& [op, want] : {std::pair(*both, 42.0), std::pair(square, 21.0)}) {
    SCOPED_TRACE(op.name);
    const absl::StatusOr<Differentiable> first = Differentiable::Make(Function(op, {}));
    ASSERT_TRUE(first.ok()) << first.status();
    const absl::StatusOr<Values> gradient = (*first)(
        {{"x", Tensor::Of<double>({1}, {3})}}, {{first->of()[0], Tensor::Of<double>({1}, {1})}});
    ASSERT_TRUE(gradient.ok()) << gradient.status();
    EXPECT_EQ(gradient->at("x").values<double>()[0], want) << PrintOp(first->report().op);
  }
}

// The adjoint of a value that two results share reaches the op's own gradient once.
TEST(Gradient, OfAnOpWithItsOwnOfWhichTwoResultsAreOneValue) {
  Op pair = Parsed("op pair(x: f64[N]) -> (y, z) {\n  y[i] = 2.0 * x[i]\n  z[i] = y[i]\n}");
  pair.gradient = std::make_shared<const Op>(Parsed(
      "op pair_grad(g_y: f64[N], g_z: f64[N]) -> (g_x) { g_x[i] = 2.0 * g_y[i] + 2.0 * g_z[i] }"));
  const absl::StatusOr<Op> caller = Combine("caller", {pair});
  ASSERT_TRUE(caller.ok()) << caller.status();
  const absl::StatusOr<Differentiable> first = Differentiable::Make(Function(*caller, {}));
  ASSERT_TRUE(first.ok()) << first.status();
  const absl::StatusOr<Values> gradient =
      (*first)({{"x", Tensor::Of<double>({1}, {5})}},
               {{"y", Tensor::Of<double>({1}, {1})}, {"z", Tensor::Of<double>({1}, {10})}});
  ASSERT_TRUE(gradient.ok()) << gradient.status();
  EXPECT_EQ(gradient->at("x").values<double>()[0], 22.0) << PrintOp(first->report().op);
}

}  // namespace
}  // namespace nestor
