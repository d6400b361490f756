// The texts of gradients, what a request is refused for, and gradients that an author gave. Values
// are compared with differences in tests/gradient_test.cc, and at the law's traps in
// tests/gradient_traps_test.cc.
#include "autodiff/gradient.h"

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "uops/call.h"
#include "uops/notation/module.h"
#include "uops/notation/print.h"
#include "uops/op.h"

namespace nestor {
namespace {

Op Parsed(absl::string_view text) {
  absl::StatusOr<Op> op = ParseOp(text);
  EXPECT_TRUE(op.ok()) << op.status() << "\n" << text;
  return op.ok() ? *std::move(op) : Op();
}

// ---- Texts

constexpr char kFile[] = "autodiff/gradient_cases.txt";
constexpr char kSeparator[] = "\n=== ";

std::string ReadFile() {
  std::ifstream file(kFile);
  EXPECT_TRUE(file.good());
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// "TITLE\nOP---\nGRADIENT" with the gradient that is made now.
std::string WithGradient(const std::string& text) {
  const std::vector<std::string> parts = absl::StrSplit(text, absl::MaxSplits("---\n", 1));
  const Op op = Parsed(parts[0].substr(parts[0].find('\n')));
  const absl::StatusOr<GradientResult> gradient = Gradient(op);
  EXPECT_TRUE(gradient.ok()) << gradient.status();
  if (!gradient.ok()) return text;
  const std::string printed = PrintOp(gradient->op);
  EXPECT_TRUE(SameOp(Parsed(printed), gradient->op)) << printed;
  return absl::StrCat(parts[0], "---\n", printed);
}

// NESTOR_BLESS=1 ./bazelw run //autodiff:gradient_test
void Bless(const std::string& text) {
  const char* const root = std::getenv("BUILD_WORKSPACE_DIRECTORY");
  ASSERT_NE(root, nullptr) << "only `bazelw run` says where the source is";
  std::ofstream(absl::StrCat(root, "/", kFile)) << text;
}

TEST(Gradient, Texts) {
  const bool is_blessing = std::getenv("NESTOR_BLESS") != nullptr;
  std::vector<std::string> cases = absl::StrSplit(ReadFile(), kSeparator);
  EXPECT_GE(cases.size(), 20u);
  for (size_t i = 1; i < cases.size(); ++i) {
    const testing::ScopedTrace trace(__FILE__, __LINE__, cases[i].substr(0, cases[i].find('\n')));
    const std::string now = WithGradient(cases[i]);
    EXPECT_TRUE(is_blessing || now == cases[i]) << now;
    cases[i] = now;
  }
  if (is_blessing) Bless(absl::StrJoin(cases, kSeparator));
}

// ---- What is refused

TEST(Gradient, Refusals) {
  const char* const kSquare = "op f(x: f64[N]) -> (y) { y[i] = x[i] * x[i] }";
  const char* const kGather = "op f(x: f64[N], ids: i64[N]) -> (y) { y[i] = x[ids[i]] }";
  const char* const kSoftmax = "op f(x: f64[N, C]) -> (y) {\n"
                               "  e[n, c] = exp(x[n, c] - max[k](x[n, k]))\n"
                               "  y[n, c] = e[n, c] / sum[k](e[n, k])\n"
                               "}";
  const struct {
    const char* op;
    GradientRequest request;
    const char* want;
  } kCases[] = {
      // Unknown names.
      {kSquare,
       {{}, {"xx"}, {}},
       "gradient of op f: no argument is named 'xx', did you mean 'x'? (there are x)"},
      {kSquare,
       {{"z"}, {}, {}},
       "gradient of op f: no result is named 'z', did you mean 'y'? (there are y)"},
      {kSquare,
       {{}, {}, {{"g_y", "z"}}},
       "gradient of op f: no given value is named 'z' (there are x, y, g_y)"},
      // What is no float.
      {kGather, {{}, {"ids"}, {}}, "gradient of op f: argument ids is i64, not a float"},
      {"op f(x: f64[N], b: bool[N]) -> (y) { y[i] = where(b[i], x[i], 0.0) }",
       {{}, {"x", "b"}, {}},
       "gradient of op f: argument b is bool, not a float"},
      {"op f(x: f64[N, K]) -> (y) { y[n] = argmax[k](x[n, k]) }",
       {{"y"}, {}, {}},
       "gradient of op f: result y is i64, not a float"},
      {"op f(x: f64[N, K]) -> (y) { y[n] = argmax[k](x[n, k]) }",
       {},
       "gradient of op f: no result is a float"},
      {"op f(x: i64[N]) -> (y) { y[i] = f64(x[i]) }",
       {},
       "gradient of op f: no argument is a float"},
      // Given values that do not suffice: the missing ones are named.
      {kSoftmax,
       {{}, {}, {{"g_y"}}},
       "gradient of op f: what is given does not suffice: it also needs x"},
      {"op f(a: f64[M, K], b: f64[K, N]) -> (c) { c[i, j] = sum[k](a[i, k] * b[k, j]) }",
       {{}, {}, {{"g_c", "a"}}},
       "gradient of op f: what is given does not suffice: it also needs b"},
      {"op f(x: f64[N]) -> (y) { y[i] = exp(x[i]) }",
       {{}, {}, {{"x"}}},
       "gradient of op f: what is given does not suffice: it also needs g_y"},
      // A node without a gradient.
      {"op f(x: f64[N], ids: i64[N]) -> (y) { y[ids[i]]: f64[2] *= x[i] }",
       {},
       "op f: a scatter by *= has no gradient"},
  };
  for (const auto& c : kCases) {
    const absl::Status status = Gradient(Parsed(c.op), c.request).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << c.op;
    EXPECT_EQ(std::string(status.message()), c.want) << c.op;
  }
}

// ---- Gradients that an author gave

// The result that it passes on has the argument's name, and is another node.
TEST(Gradient, OfAnOpWithItsOwnThatHandsAnArgumentOn) {
  Op op =
      Parsed("op f(i: f64[N], x: f64[N]) -> (y, i) { y[j] = where(bool(i[j]), x[j], x[j] * 2.0) }");
  op.gradient = std::make_shared<const Op>(Gradient(op)->op);
  const absl::StatusOr<Op> caller = Combine("caller", {op});
  ASSERT_TRUE(caller.ok()) << caller.status();
  const absl::StatusOr<GradientResult> gradient = Gradient(*caller);
  ASSERT_TRUE(gradient.ok()) << gradient.status();
  std::set<std::string> names;
  for (const Argument& arg : gradient->op.args) {
    EXPECT_TRUE(names.insert(arg.name).second) << arg.name << " twice: " << PrintOp(gradient->op);
  }
}

TEST(Gradient, OfAnOpWhoseOwnTakesWhatIsNotThere) {
  Op op = Parsed("op f(x: f64[N]) -> (y) { y[i] = x[i] * x[i] }");
  op.gradient = std::make_shared<const Op>(
      Parsed("op f_grad(g_y: f64[N], w: f64[N]) -> (g_x) { g_x[i] = g_y[i] * w[i] }"));
  const absl::StatusOr<Op> caller = Combine("caller", {op});
  ASSERT_TRUE(caller.ok()) << caller.status();
  const absl::Status status = Gradient(*caller).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(std::string(status.message()),
            "op f: its gradient's argument w is none of its arguments, results or adjoints");
}

}  // namespace
}  // namespace nestor
