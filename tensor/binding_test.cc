// The law's sentences on binding are rows of tests/semantics_cases.txt, which every engine obeys;
// here is what binding finds and says of each mistake, to the letter.
#include "tensor/binding.h"

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "tensor/tensor.h"
#include "uops/dtype.h"
#include "uops/notation/module.h"
#include "uops/op.h"

namespace nestor {
namespace {

Op Parsed(absl::string_view text) {
  absl::StatusOr<Op> op = ParseOp(text);
  EXPECT_TRUE(op.ok()) << op.status() << "\n" << text;
  return op.ok() ? *std::move(op) : Op();
}

// "f32[2,3]". Nothing reads its memory.
TensorView ReadView(absl::string_view text) {
  static double memory;
  const std::vector<std::string> parts = absl::StrSplit(text, absl::ByAnyChar("[]"));
  TensorView view;
  view.type = TypeByName(parts[0]).value();
  for (absl::string_view number : absl::StrSplit(parts[1], ',', absl::SkipEmpty())) {
    view.shape.emplace_back();
    EXPECT_TRUE(absl::SimpleAtoi(number, &view.shape.back())) << text;
  }
  view.strides.assign(view.shape.size(), 0);
  view.data = &memory;
  return view;
}

// "x=f32[2,3] N=4 $k=i64:1".
RunInputs ReadInputs(absl::string_view text) {
  RunInputs inputs;
  for (absl::string_view word : absl::StrSplit(text, ' ', absl::SkipEmpty())) {
    const std::pair<std::string, std::string> given = absl::StrSplit(word, '=');
    const auto& [name, value] = given;
    if (absl::StrContains(value, '[')) {
      inputs.tensors[name] = ReadView(value);
    } else if (name[0] == '$') {
      const std::pair<std::string, std::string> number = absl::StrSplit(value, ':');
      const auto& [type, literal] = number;
      inputs.params[name] = type == "bool" ? Scalar::Of(DType::kBool, literal == "true")
                                           : ParseLiteral(literal, *TypeByName(type)).value();
    } else {
      EXPECT_TRUE(absl::SimpleAtoi(value, &inputs.dims[name])) << text;
    }
  }
  return inputs;
}

// "$k=i64:1 N=4": $params first, with their types, then dimensions; each by name.
std::string TextOf(const Binding& binding) {
  std::map<std::string, std::string> words;
  for (const auto& [name, value] : binding.symbols) words[name] = absl::StrCat(name, "=", value);
  for (const auto& [name, value] : binding.params) {
    EXPECT_TRUE(!IsInteger(value.type) || binding.Find(name) == value.ToInt()) << name;
    words[name] = absl::StrCat(name, "=", Name(value.type), ":", LiteralText(value));
  }
  return absl::StrJoin(
      words, " ", [](std::string* text, const auto& word) { absl::StrAppend(text, word.second); });
}

TEST(Bind, FindsTheValuesOfSymbols) {
  const struct {
    const char* op;
    const char* given;
    const char* want;
  } kCases[] = {
      // clang-format off
      {"op f() -> (y) { y = 1.5 }", "", ""},
      {"op f(x: f32[]) -> (y) { y = x }", "x=f32[]", ""},
      {"op f(x: f32[M, N]) -> (y) { y[i, j] = x[i, j] }", "x=f32[0,3]", "M=0 N=3"},
      {"op f(a: f32[M, K], b: f32[K, N]) -> (y) { y = M }", "a=f32[2,3] b=f32[3,4]", "K=3 M=2 N=4"},
      {"op f(x: f32[N, N]) -> (y) { y = N }", "x=f32[2,2] N=2", "N=2"},
      {"op f(x: f32[3]) -> (y) { y[i] = x[i] }", "x=f32[3]", ""},
      // Any axis that is a dimension alone binds; the other forms need not come after it.
      {"op f(z: f32[2*N + 1], x: f32[N]) -> (y) { y = N }", "z=f32[9] x=f32[4]", "N=4"},
      {"op f(z: f32[N/2, N%2]) -> (y) { y = N }", "z=f32[3,1] N=7", "N=7"},
      {"op f(x: f32[N + $k]; $k) -> (y) { y = N }", "x=f32[7] N=3 $k=i64:4", "$k=i64:4 N=3"},
      {"op f(x: f32[N]) -> (y) { y = N }", "x=f32[281474976710656]", "N=281474976710656"},
      {"op f(x: f32[N]) -> (y) { y = N }", "x=f32[281474976710656] N=281474976710656",
       "N=281474976710656"},
      // Of an argument whose elements nothing reads, the type does not matter.
      {"op f(x: f32[N], s: shape f32[M]) -> (y) { y = M }", "x=f32[2] s=i8[3]", "M=3 N=2"},
      // A number fits by its value, not by its type; floats are rounded.
      {"op f(; $k) -> (y) { y = $k }", "$k=i64:-9223372036854775808",
       "$k=i64:-9223372036854775808"},
      {"op f(; $k) -> (y) { y = $k }", "$k=u64:9223372036854775807", "$k=i64:9223372036854775807"},
      {"op f(; $k) -> (y) { y = $k }", "$k=u8:200", "$k=i64:200"},
      {"op f(; $k: u8) -> (y) { y = $k }", "$k=i64:255", "$k=u8:255"},
      {"op f(; $k: i8) -> (y) { y = $k }", "$k=i32:-128", "$k=i8:-128"},
      {"op f(; $k: u64) -> (y) { y = $k }", "$k=u64:9223372036854775807",
       "$k=u64:9223372036854775807"},
      {"op f(; $a: f32) -> (y) { y = $a }", "$a=f64:0.1", "$a=f32:0.1"},
      {"op f(; $a: bf16) -> (y) { y = $a }", "$a=f32:1.001953125", "$a=bf16:1.0"},
      {"op f(; $a: f64) -> (y) { y = $a }", "$a=u64:18446744073709551615",
       "$a=f64:18446744073709551616.0"},
      {"op f(; $a: f32) -> (y) { y = $a }", "$a=i64:-3", "$a=f32:-3.0"},
      {"op f(; $a: f32) -> (y) { y = $a }", "$a=f32:nan", "$a=f32:nan"},
      {"op f(; $a: bool) -> (y) { y = $a }", "$a=bool:true", "$a=bool:true"},
      // Defaults, and the ends of `in`.
      {"op f(; $k = 3, $a: f32 = 0.5) -> (y) { y = f32($k) * $a }", "", "$a=f32:0.5 $k=i64:3"},
      {"op f(; $k = 3 in [2, 4]) -> (y) { y = $k }", "$k=i64:2", "$k=i64:2"},
      {"op f(; $k = 3 in [2, 4]) -> (y) { y = $k }", "$k=i64:4", "$k=i64:4"},
      {"op f(; $k in [1, inf]) -> (y) { y = $k }", "$k=i64:9223372036854775807",
       "$k=i64:9223372036854775807"},
      {"op f(; $a: f32 in [0, 1]) -> (y) { y = $a }", "$a=f32:-0.0", "$a=f32:-0.0"},
      // What the statements and the calls ask for holds.
      {"op f(a: f32[N], b: f32[M]) -> (y) { y[i] = a[i] + b[i] }", "a=f32[3] b=f32[3]", "M=3 N=3"},
      {"op g(x: f32[N]; $k in [2, 4]) -> (y) { y[i] = x[i] * f32($k) }\n"
       "op f(x: f32[N]; $m) -> (y) { y = g(x; k = $m - N) }",
       "x=f32[5] $m=i64:9", "$m=i64:9 N=5"},
      // clang-format on
  };
  for (const auto& c : kCases) {
    const testing::ScopedTrace trace(__FILE__, __LINE__, absl::StrCat(c.op, "\n", c.given));
    const Op op = Parsed(c.op);
    const absl::StatusOr<Binding> binding = Bind(SignatureOf(op), ReadInputs(c.given));
    ASSERT_TRUE(binding.ok()) << binding.status();
    EXPECT_EQ(TextOf(*binding), c.want);
  }
}

TEST(Bind, NamesTheMistake) {
  const struct {
    const char* op;
    const char* given;
    const char* want;  // after "op f: "
  } kCases[] = {
      // clang-format off
      // Names.
      {"op f(x: f32[N]) -> (y) { y[i] = x[i] }", "x=f32[2] z=f32[2]",
       "no argument is named 'z', did you mean 'x'? (there are x)"},
      {"op f(input: f32[N], w: f32[N]) -> (y) { y[i] = input[i] }", "inputs=f32[2] w=f32[2]",
       "no argument is named 'inputs', did you mean 'input'? (there are input, w)"},
      {"op f() -> (y) { y = 1.5 }", "x=f32[2]", "no argument is named 'x'"},
      {"op f(; $stride = 1) -> (y) { y = $stride }", "$strid=i64:1",
       "no parameter is named '$strid', did you mean '$stride'? (there are $stride)"},
      {"op f(x: f32[N, M]) -> (y) { y = M }", "x=f32[2,3] K=3 L=3",
       "no dimension is named 'K' (there are N, M)"},
      {"op f(x: f32[N]; $k) -> (y) { y = $k }", "x=f32[2] k=1 $k=i64:1",
       "no dimension is named 'k', did you mean 'N'? (there are N)"},
      // $params.
      {"op f(; $a = 1, $k) -> (y) { y = $k }", "", "$k has no default and must be given"},
      {"op f(; $k) -> (y) { y = $k }", "$k=f64:1.0", "$k is i64, 1.0 does not fit"},
      {"op f(; $k) -> (y) { y = $k }", "$k=bool:true", "$k is i64, true does not fit"},
      {"op f(; $k) -> (y) { y = $k }", "$k=u64:9223372036854775808",
       "$k is i64, 9223372036854775808 does not fit"},
      {"op f(; $k: u64) -> (y) { y = $k }", "$k=u64:9223372036854775808",
       "$k is u64, 9223372036854775808 does not fit: "
       "an integer $param is an index value, at most 2^63 - 1"},
      {"op f(; $k: u64) -> (y) { y = $k }", "$k=i64:-1", "$k is u64, -1 does not fit"},
      {"op f(; $k: u8) -> (y) { y = $k }", "$k=i64:256", "$k is u8, 256 does not fit"},
      {"op f(; $k: u8) -> (y) { y = $k }", "$k=i64:-1", "$k is u8, -1 does not fit"},
      {"op f(; $k: i8) -> (y) { y = $k }", "$k=u8:128", "$k is i8, 128 does not fit"},
      {"op f(; $a: f32) -> (y) { y = $a }", "$a=bool:false", "$a is f32, false does not fit"},
      {"op f(; $a: bool) -> (y) { y = $a }", "$a=i64:1", "$a is bool, 1 does not fit"},
      {"op f(; $a: bool) -> (y) { y = $a }", "$a=f32:1.0", "$a is bool, 1.0 does not fit"},
      {"op f(; $k in [2, 4]) -> (y) { y = $k }", "$k=i64:1", "$k = 1 is outside [2, 4]"},
      {"op f(; $k in [2, 4]) -> (y) { y = $k }", "$k=i64:5", "$k = 5 is outside [2, 4]"},
      {"op f(; $k = 5 in [-inf, 4]) -> (y) { y = $k }", "", "$k = 5 is outside [-inf, 4]"},
      {"op f(; $k in [1, inf]) -> (y) { y = $k }", "$k=i8:0", "$k = 0 is outside [1, inf]"},
      {"op f(; $a: f32 in [0, 1]) -> (y) { y = $a }", "$a=f64:-0.5",
       "$a = -0.5 is outside [0.0, 1.0]"},
      {"op f(; $a: f32 in [0, 1]) -> (y) { y = $a }", "$a=f32:1.5",
       "$a = 1.5 is outside [0.0, 1.0]"},
      {"op f(; $a: f32 in [0, inf]) -> (y) { y = $a }", "$a=f32:nan",
       "$a = nan is outside [0.0, inf]"},
      // Dimensions that are given.
      {"op f(x: f32[N]) -> (y) { y[i] = x[i] }", "x=f32[2] N=-2", "dimension N = -2 is negative"},
      {"op f(x: f32[N]) -> (y) { y[i] = x[i] }", "x=f32[2] N=281474976710657",
       "dimension N = 281474976710657 exceeds 2^48"},
      // Of several wrong dimensions, the first in the signature.
      {"op f(x: f32[G, B], z: f32[F, A]) -> (y) { y = A }",
       "x=f32[1,1] z=f32[1,1] A=-1 B=-1 F=-1 G=-1", "dimension G = -1 is negative"},
      {"op f(x: f32[G, B], z: f32[F, A]) -> (y) { y = A }",
       "x=f32[1,1] z=f32[1,1] A=-1 B=-1 F=-1", "dimension B = -1 is negative"},
      {"op f(x: f32[G, B], z: f32[F, A]) -> (y) { y = A }", "x=f32[1,1] z=f32[1,1] A=-1 F=-1",
       "dimension F = -1 is negative"},
      // Tensors.
      {"op f(a: f32[N], b: f32[N]) -> (y) { y[i] = a[i] }", "a=f32[2]", "argument b is missing"},
      {"op f(x: f32[N]) -> (y) { y[i] = x[i] }", "N=2", "argument x is missing"},
      {"op f(x: f32[N]) -> (y) { y[i] = x[i] }", "x=f64[2]", "argument x is f32, is given f64"},
      {"op f(x: u8[N]) -> (y) { y[i] = x[i] }", "x=i8[2]", "argument x is u8, is given i8"},
      {"op f(x: f32[N]) -> (y) { y[i] = x[i] }", "x=f32[2,1]",
       "argument x has 1 dimensions, is given [2, 1]"},
      {"op f(x: f32[N]) -> (y) { y[i] = x[i] }", "x=f32[]",
       "argument x has 1 dimensions, is given []"},
      {"op f(x: f32[], s: shape f32[N]) -> (y) { y = x }", "x=f32[] s=i8[2,2]",
       "argument s has 1 dimensions, is given [2, 2]"},
      {"op f(x: f32[N]) -> (y) { y[i] = x[i] }", "x=f32[-2]",
       "argument x: axis 0 of shape [-2] has the negative extent -2"},
      {"op f(x: f32[N]) -> (y) { y[i] = x[i] }", "x=f32[281474976710657]",
       "axis 0 of x (N) is 281474976710657, which exceeds 2^48"},
      // Dimensions that disagree: both places.
      {"op f(a: f32[M, K], b: f32[K, N]) -> (y) { y = M }", "a=f32[2,3] b=f32[4,5]",
       "axis 0 of b (K) is 4, but axis 1 of a (K) is 3"},
      {"op f(x: f32[N, N]) -> (y) { y = N }", "x=f32[2,3]",
       "axis 1 of x (N) is 3, but axis 0 of x (N) is 2"},
      {"op f(x: f32[N]) -> (y) { y[i] = x[i] }", "x=f32[3] N=4",
       "axis 0 of x (N) is 3, but N=4 as given"},
      {"op f(x: f32[N], s: shape f32[N]) -> (y) { y[i] = x[i] }", "x=f32[3] s=f32[4]",
       "axis 0 of s (N) is 4, but axis 0 of x (N) is 3"},
      // Extents that are no dimension alone.
      {"op f(x: f32[3]) -> (y) { y[i] = x[i] }", "x=f32[4]", "axis 0 of x is 4, but must be 3"},
      {"op f(z: f32[2*N + 1], x: f32[N]) -> (y) { y = N }", "z=f32[8] x=f32[4]",
       "axis 0 of z is 8, but 2*N + 1 = 9"},
      {"op f(x: f32[$k]; $k) -> (y) { y[i] = x[i] }", "x=f32[2] $k=i64:3",
       "axis 0 of x is 2, but $k = 3"},
      {"op f(x: f32[2*N]) -> (y) { y = N }", "x=f32[6]",
       "argument x: axis 0 (2*N): the dimension N is not known: give N=.."},
      {"op f(x: f32[N - 3]) -> (y) { y = N }", "x=f32[0] N=2",
       "argument x: axis 0 (N - 3) is negative: -1"},
      {"op f(x: f32[N/$k]; $k) -> (y) { y = N }", "x=f32[0] N=2 $k=i64:0",
       "argument x: axis 0 (N/$k) divides by zero or overflows"},
      {"op f(x: f32[N*$k]; $k) -> (y) { y = N }", "x=f32[0] N=2 $k=i64:9223372036854775807",
       "argument x: axis 0 ($k*N) divides by zero or overflows"},
      // What statements and calls ask for.
      {"op f(a: f32[N], b: f32[M]) -> (y) { y[i] = a[i] + b[i] }", "a=f32[2] b=f32[3]",
       "index i runs over axis 0 of a (N) and over axis 0 of b (M): 2 against 3"},
      {"op f(a: f32[N], b: f32[N/$k]; $k) -> (y) { y[i] = a[i] + b[i] }",
       "a=f32[2] b=f32[1] $k=i64:2",
       "index i runs over axis 0 of a (N) and over axis 0 of b (N/$k): 2 against 1"},
      {"op g(x: f32[N]; $k in [2, 4]) -> (y) { y[i] = x[i] * f32($k) }\n"
       "op f(x: f32[N]; $m) -> (y) { y = g(x; k = $m - N) }",
       "x=f32[5] $m=i64:10", "op g: $k = 5 is out of its range"},
      // clang-format on
  };
  for (const auto& c : kCases) {
    const testing::ScopedTrace trace(__FILE__, __LINE__, absl::StrCat(c.op, "\n", c.given));
    const Op op = Parsed(c.op);
    const absl::Status status = Bind(SignatureOf(op), ReadInputs(c.given)).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(std::string(status.message()), absl::StrCat("op f: ", c.want));
  }
}

std::string MessageOf(const Op& op, const RunInputs& inputs) {
  return std::string(Bind(SignatureOf(op), inputs).status().message());
}

// Names come from the caller.
TEST(Bind, ClipsNamesThatItRepeats) {
  const Op op = Parsed("op f() -> (y) { y = 1.5 }");
  RunInputs inputs;
  inputs.dims[absl::StrCat(std::string(100, 'N'), "\xff")] = 1;
  EXPECT_EQ(MessageOf(op, inputs),
            absl::StrCat("op f: no dimension is named '", std::string(64, 'N'), "...\\xff'"));
}

TEST(Bind, RefusesViewsThatMakeNoSense) {
  const Op op = Parsed("op f(x: f32[N]) -> (y) { y[i] = x[i] }");
  RunInputs inputs = ReadInputs("x=f32[2]");
  inputs.tensors["x"].strides = {1, 1};
  EXPECT_EQ(MessageOf(op, inputs), "op f: argument x: a view of shape [2] has 2 strides");
  inputs = ReadInputs("x=f32[2]");
  inputs.tensors["x"].data = nullptr;
  EXPECT_EQ(MessageOf(op, inputs), "op f: argument x: a view of shape [2] has no memory");
}

TEST(UnboundDimensions, AreThoseThatACallerMustChoose) {
  const struct {
    const char* op;
    const char* given;
    const char* want;
  } kCases[] = {
      {"op f() -> (y) { y = 1.5 }", "", ""},
      {"op f(a: f32[M, K], b: f32[K, N]) -> (y) { y = M }", "", "M K N"},
      {"op f(a: f32[M, K], b: f32[K, N]) -> (y) { y = M }", "b=f32[3,4]", "M"},
      {"op f(a: f32[M, K], b: f32[K, N]) -> (y) { y = M }", "a=f32[2,3] N=4", ""},
      {"op f(a: f32[M, K], b: f32[K, N]) -> (y) { y = M }", "K=3", "M N"},
      // A tensor binds what stands alone, even where it comes last.
      {"op f(z: f32[2*N, M + N], x: f32[N]) -> (y) { y = N }", "x=f32[3]", "M"},
      {"op f(z: f32[2*N, M + N], x: f32[N]) -> (y) { y = N }", "z=f32[6,5]", "N M"},
      {"op f(x: f32[N], s: shape f32[M]) -> (y) { y = M }", "s=f32[2]", "N"},
      // $params are no dimensions.
      {"op f(x: f32[$k, N + $k]; $k) -> (y) { y = N }", "", "N"},
  };
  for (const auto& c : kCases) {
    const Op op = Parsed(c.op);
    EXPECT_EQ(absl::StrJoin(UnboundDimensions(SignatureOf(op), ReadInputs(c.given)), " "), c.want)
        << c.op << "\n"
        << c.given;
  }
}

TEST(EvaluateShape, GivesExtentsOrWhy) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  const struct {
    const char* shape;  // of an argument, with $k
    absl::flat_hash_map<std::string, int64_t> symbols;
    const char* want;  // [extents], or what is wrong
  } kCases[] = {
      {"", {}, "[]"},
      {"3, 0", {}, "[3, 0]"},
      {"N, 2*N - 4", {{"N", 2}}, "[2, 0]"},
      {"N/$k, N%$k", {{"N", 7}, {"$k", 2}}, "[3, 1]"},
      {"-N/2 + 4, -N%4", {{"N", 3}}, "[2, 1]"},  // quotients round down
      {"max(N, 3), min(N, 3)", {{"N", 5}}, "[5, 3]"},
      {"N", {{"N", kMost}}, "[9223372036854775807]"},
      {"N, M + 1", {{"N", 2}}, "it: axis 1 (M + 1): the dimension M is not known: give M=.."},
      {"2, N - 3", {{"N", 2}}, "it: axis 1 (N - 3) is negative: -1"},
      {"N/$k", {{"N", 2}, {"$k", 0}}, "it: axis 0 (N/$k) divides by zero or overflows"},
      {"N%$k", {{"N", 2}, {"$k", 0}}, "it: axis 0 (N%$k) divides by zero or overflows"},
      {"N + 1", {{"N", kMost}}, "it: axis 0 (N + 1) divides by zero or overflows"},
      {"2*N", {{"N", kMost}}, "it: axis 0 (2*N) divides by zero or overflows"},
  };
  for (const auto& c : kCases) {
    const Op op = Parsed(absl::StrCat("op f(x: f32[", c.shape, "]; $k = 1) -> (y) { y = 1.5 }"));
    Binding binding;
    binding.symbols = c.symbols;
    const absl::StatusOr<Dims> dims =
        EvaluateShape(op.graph.pool(), op.args[0].shape, binding, "it");
    EXPECT_EQ(dims.ok() ? ShapeText(*dims) : std::string(dims.status().message()), c.want);
    EXPECT_TRUE(dims.ok() || dims.status().code() == absl::StatusCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace nestor
