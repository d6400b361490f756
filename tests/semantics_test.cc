// Runs the table of grammar and semantics cases, semantics_cases.txt: each
// program is refused with the place and reason given, or run on every engine with the
// inputs given and compared with the results given; where `fast` may round otherwise, its
// results lie within their proven bounds. The table's format:
//
//   === title
//   the program's text
//   ---
//   error LINE:COLUMN: PIECE     refused when parsed or instantiated; the column,
//                                or both, may be left out
//   run error : PIECE            accepted, and refused when run
//   NAME = TYPE[DIMS] VALUES     an input; $NAME = VALUE; DIMENSION = VALUE
//   op NAME                      which op to run; the last one else
//   NAME == TYPE[DIMS] VALUES    a result, bit by bit; ~= within 4 ulp
//
// @{TEXT*COUNT} in a program stands for TEXT repeated. `#` begins a comment.
#include <cmath>
#include <fstream>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "gtest/gtest.h"
#include "interp/interpreter.h"
#include "interp/reference.h"
#include "jit/compile.h"
#include "loop_ir/lower.h"
#include "macro_ops/library.h"
#include "nestor.h"
#include "re2/re2.h"
#include "tensor/binding.h"
#include "uops/invariant.h"
#include "uops/notation/module.h"
#include "uops/notation/print.h"

namespace nestor {
namespace {

struct Expectation {
  std::string name;
  bool exact;
  Tensor value;
};

struct Case {
  std::string title;
  std::string program;
  int line = 0;  // of the title, in the table
  bool error = false, run_error = false;
  int error_line = 0, error_column = 0;
  std::string piece;
  std::string op;
  std::map<std::string, Tensor> inputs;
  RunInputs numbers;
  std::vector<Expectation> results;
};

std::string Expand(const std::string& text) {
  static const RE2* const marker = new RE2(R"(@\{([^*}]*)\*(\d+)\})");
  std::string result;
  re2::StringPiece rest(text), piece;
  size_t from = 0;
  std::string repeated;
  int count;
  re2::StringPiece groups[3];
  while (marker->Match(text, from, text.size(), RE2::UNANCHORED, groups, 3)) {
    const size_t at = groups[0].data() - text.data();
    result += text.substr(from, at - from);
    EXPECT_TRUE(absl::SimpleAtoi(std::string(groups[2]), &count));
    for (int i = 0; i < count; ++i) result.append(groups[1].data(), groups[1].size());
    from = at + groups[0].size();
  }
  return result + text.substr(from);
}

// TYPE[DIMS] VALUES
Tensor ParseTensor(const std::string& text) {
  std::string type_name, dims, values;
  EXPECT_TRUE(RE2::FullMatch(text, R"((\w+)\[([^\]]*)\]\s*(.*))", &type_name, &dims, &values))
      << text;
  const auto type = TypeByName(type_name);
  EXPECT_TRUE(type.has_value()) << text;
  Dims shape;
  for (absl::string_view dim : absl::StrSplit(dims, ',', absl::SkipWhitespace())) {
    int64_t extent;
    EXPECT_TRUE(absl::SimpleAtoi(dim, &extent)) << text;
    shape.push_back(extent);
  }
  Tensor tensor = *Tensor::Create(*type, shape);
  int64_t next = 0;
  for (absl::string_view value :
       absl::StrSplit(values, absl::ByAnyChar(" \t"), absl::SkipEmpty())) {
    auto scalar = ParseLiteral(value, *type);
    if (IsFloat(*type) && value == "-0") scalar = Scalar::Float(*type, -0.0);
    EXPECT_TRUE(scalar.has_value()) << text << ": " << value;
    if (next >= tensor.num_elements() || !scalar) break;
    Store(*scalar, static_cast<char*>(tensor.data()) + next++ * ByteSize(*type));
  }
  EXPECT_EQ(next, tensor.num_elements()) << text;
  return tensor;
}

void ParseDirective(const std::string& line, Case& c) {
  std::string name, rest, place;
  if (RE2::FullMatch(line, R"(run error\s*:\s*(.*))", &c.piece)) {
    c.run_error = true;
  } else if (RE2::FullMatch(line, R"(error\s*(\d*(?::\d+)?)\s*: (.*))", &place, &c.piece)) {
    c.error = true;
    const std::vector<std::string> numbers = absl::StrSplit(place, ':', absl::SkipEmpty());
    EXPECT_TRUE(numbers.empty() || absl::SimpleAtoi(numbers[0], &c.error_line));
    EXPECT_TRUE(numbers.size() < 2 || absl::SimpleAtoi(numbers[1], &c.error_column));
  } else if (RE2::FullMatch(line, R"(op (\w+))", &c.op)) {
  } else if (RE2::FullMatch(line, R"((\w+) (==|~=) (.*))", &name, &place, &rest)) {
    c.results.push_back({name, place == "==", ParseTensor(rest)});
  } else if (RE2::FullMatch(line, R"((\$?\w+) = (.*))", &name, &rest)) {
    int64_t integer;
    if (absl::StrContains(rest, "[")) c.inputs.emplace(name, ParseTensor(rest));
    else if (name[0] != '$') c.numbers.dims[name] = absl::SimpleAtoi(rest, &integer) ? integer : 0;
    else if (rest == "true" || rest == "false")
      c.numbers.params[name] = *ParseLiteral(rest, DType::kBool);
    else if (absl::SimpleAtoi(rest, &integer)) c.numbers.params[name] = Scalar::I64(integer);
    else c.numbers.params[name] = *ParseLiteral(rest, DType::kF64);
  } else {
    ADD_FAILURE() << "line " << c.line << ": cannot read '" << line << "'";
  }
}

std::vector<Case> LoadCases() {
  std::ifstream file("tests/semantics_cases.txt");
  EXPECT_TRUE(file.good());
  std::vector<Case> cases;
  std::string line;
  enum { kBefore, kProgram, kDirectives } state = kBefore;
  for (int number = 1; std::getline(file, line); ++number) {
    if (absl::StartsWith(line, "===")) {
      cases.emplace_back();
      cases.back().title = std::string(absl::StripAsciiWhitespace(line.substr(3)));
      cases.back().line = number;
      state = kProgram;
    } else if (state == kProgram && absl::StripTrailingAsciiWhitespace(line) == "---") {
      cases.back().program = Expand(cases.back().program);
      state = kDirectives;
    } else if (state == kProgram) {
      cases.back().program += line + "\n";
    } else if (state == kDirectives) {
      const std::string text(absl::StripAsciiWhitespace(line));
      if (!text.empty() && text[0] != '#') ParseDirective(text, cases.back());
    }
  }
  return cases;
}

bool Near(const Scalar& a, const Scalar& b) {
  if (a == b) return true;
  const double x = a.ToDouble(), y = b.ToDouble();
  const double ulp = a.type == DType::kF32 ? std::ldexp(1.0, -23) : std::ldexp(1.0, -52);
  return std::fabs(x - y) <= 4 * ulp * std::fabs(y);
}

void ExpectResult(const Expectation& want, const Tensor& got) {
  if (want.exact) {
    EXPECT_FALSE(FirstDifference(got, want.value).has_value())
        << want.name << ": " << *FirstDifference(got, want.value) << "\n"
        << ToString(got);
    return;
  }
  ASSERT_EQ(got.type(), want.value.type());
  ASSERT_EQ(ShapeText(got.shape()), ShapeText(want.value.shape()));
  const int size = ByteSize(got.type());
  for (int64_t i = 0; i < got.num_elements(); ++i) {
    const Scalar x = Load(got.type(), static_cast<const char*>(got.data()) + i * size);
    const Scalar y = Load(got.type(), static_cast<const char*>(want.value.data()) + i * size);
    EXPECT_TRUE(Near(x, y)) << want.name << "[" << i << "] = " << LiteralText(x) << ", want "
                            << LiteralText(y);
  }
}

void ExpectRefused(const Case& c, const absl::Status& status) {
  ASSERT_FALSE(status.ok()) << "accepted; want an error with '" << c.piece << "'";
  const std::string message(status.message());
  EXPECT_TRUE(absl::StrContains(message, c.piece)) << message << "\nwant '" << c.piece << "'";
  int line = 0, column = 0;
  RE2::PartialMatch(message, R"(^(\d+):(\d+):)", &line, &column);
  EXPECT_TRUE(c.error_line == 0 || line == c.error_line)
      << message << "\nwant line " << c.error_line;
  EXPECT_TRUE(c.error_column == 0 || column == c.error_column)
      << message << "\nwant column " << c.error_column;
}

absl::StatusOr<Op> Instantiate(const Case& c) {
  absl::StatusOr<Module> module = Module::Parse(c.program, &MacroLibrary());
  if (!module.ok()) return module.status();
  ArgumentSpecs specs;
  for (const auto& [name, tensor] : c.inputs) specs[name] = {tensor.type(), tensor.rank()};
  absl::StatusOr<Op> op = module->Instantiate(c.op, specs);
  if (!op.ok()) return op;
  // Mistakes in the other ops are found, too.
  for (const std::string& name : module->OpNames()) {
    if (name == op->name) continue;
    const absl::Status status = module->Instantiate(name, {}).status();
    if (!status.ok()) return status;
  }
  return op;
}

// The printed text parses back to the same op, but that ranges which callees ask of its $params are
// the $params' own.
void ExpectRoundTrip(Op op) {
  const std::string text = PrintOp(op);
  const absl::StatusOr<Op> parsed = ParseOp(text);
  ASSERT_TRUE(parsed.ok()) << parsed.status() << "\n" << text;
  EXPECT_EQ(PrintOp(*parsed), text);
  if (!op.range_checks.empty()) op.params = parsed->params;
  EXPECT_TRUE(SameOp(op, *parsed)) << text << "\nparses to\n" << PrintOp(*parsed);
  const std::string commented = PrintOp(op, {.equalities = true});
  const absl::StatusOr<Op> again = ParseOp(commented);
  ASSERT_TRUE(again.ok()) << again.status() << "\n" << commented;
  EXPECT_TRUE(SameOp(op, *again)) << commented;
}

using Results = absl::StatusOr<std::vector<Tensor>>;

Results RunCompiled(const Op& op, const RunInputs& inputs, jit::Mode mode) {
  jit::CompileOptions options;
  options.mode = mode;
  NESTOR_ASSIGN_OR_RETURN(const auto executable, Compile(op, options));
  return Run(*executable, inputs);
}

void ExpectOutcome(const Case& c, const Op& op, const Results& results) {
  if (c.run_error) return ExpectRefused(c, results.status());
  ASSERT_TRUE(results.ok()) << results.status();
  for (const Expectation& want : c.results) {
    bool found = false;
    for (size_t i = 0; i < op.results.size(); ++i) {
      if (op.results[i].name != want.name) continue;
      found = true;
      ExpectResult(want, (*results)[i]);
    }
    EXPECT_TRUE(found) << "no result " << want.name;
  }
}

// As ExpectOutcome, except that floats need only lie in the enclosures of the reference mode.
void ExpectBounded(const Case& c, const Op& op, const RunInputs& inputs, const Results& results) {
  const auto bounds = InterpretReference(Lower(op), inputs);
  if (c.run_error || !bounds.ok()) return ExpectOutcome(c, op, results);
  ASSERT_TRUE(results.ok()) << results.status();
  for (size_t i = 0; i < results->size(); ++i) {
    const absl::Status inside = CheckEnclosed((*bounds)[i], (*results)[i].view());
    EXPECT_TRUE(inside.ok()) << op.results[i].name << ": " << inside;
  }
}

void RunCase(const Case& c) {
  const absl::StatusOr<Op> op = Instantiate(c);
  if (c.error) return ExpectRefused(c, op.status());
  if (op.ok()) ExpectRoundTrip(*op);
  RunInputs inputs = c.numbers;
  for (const auto& [name, tensor] : c.inputs) inputs.tensors[name] = tensor.view();
  if (c.run_error && !op.ok()) return ExpectRefused(c, op.status());
  ASSERT_TRUE(op.ok()) << op.status();
  {
    SCOPED_TRACE("interpreter");
    ExpectOutcome(c, *op, Interpret(Lower(*op), inputs));
  }
  {
    SCOPED_TRACE("compiled, strict");
    ExpectOutcome(c, *op, RunCompiled(*op, inputs, jit::Mode::kStrict));
  }
  SCOPED_TRACE("compiled, fast");
  ExpectBounded(c, *op, inputs, RunCompiled(*op, inputs, jit::Mode::kFast));
}

TEST(Semantics, Table) {
  const std::vector<Case> cases = LoadCases();
  EXPECT_GE(cases.size(), 150u);
  for (const Case& c : cases) {
    SCOPED_TRACE(absl::StrCat("tests/semantics_cases.txt:", c.line, ": ", c.title));
    RunCase(c);
  }
}

}  // namespace
}  // namespace nestor
