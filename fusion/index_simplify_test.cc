// Rewrites against a table, and random expressions against enumeration: the
// simplified expression has a value at the same points, and the same.
#include "fusion/index_simplify.h"

#include <map>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gtest/gtest.h"
#include "loop_ir/intervals.h"
#include "loop_ir/text.h"

namespace nestor::loop {
namespace {

// A nest of loops around one index expression.
struct Nest {
  Program program;
  std::vector<const Loop*> loops;
  IndexId e;
};

constexpr char kNest[] = R"(
  program p(x: f32[N, M], z: f32[C]; $p: i64 in [1, inf], $x: i64, $y: i64, $z: i64) -> (r: i64) {
    for i in [0, N) { for c in [0, C) { for b in [0, 4) { for t in [0, N) step 8 { for u in [0, min(8, N - t)) {
      r = index(EXPRESSION)
    } } } } }
  })";

// The nest with the expression in it, or a condition as the only one of a store.
void Parse(const std::string& text, Nest& nest) {
  absl::StatusOr<Program> program = ParseProgram(text);
  ASSERT_TRUE(program.ok()) << program.status() << "\n" << text;
  nest.program = *std::move(program);
  const Scope* scope = &nest.program.body;
  while (const Loop* loop = (*scope)[0].As<Loop>()) {
    nest.loops.push_back(loop);
    scope = &loop->body;
  }
  const Statement& statement = *(*scope)[0].As<Statement>();
  if (statement.target.masked) {
    nest.e = statement.target.conditions[0];
  } else {
    nest.e = absl::get<IndexValue>(nest.program[statement.value].node).index;
  }
}

void Parse(const char* nest_text, absl::string_view e, Nest& nest) {
  Parse(absl::StrReplaceAll(nest_text, {{"EXPRESSION", e}}), nest);
}

IndexId Simplified(Nest& nest, IndexId e) {
  Ranges ranges(nest.program);
  for (const Loop* loop : nest.loops) ranges.Enter(*loop);
  return SimplifyIndex(nest.program.pool, ranges, e);
}

// Evaluates both at every point of the nest.
class Comparison {
 public:
  Comparison(const Nest& nest, IndexId a, IndexId b, std::map<std::string, int64_t> symbols)
      : nest_(nest), a_(a), b_(b), symbols_(std::move(symbols)), vars_(nest.program.vars.size()) {}

  bool Equal(size_t depth = 0) {
    if (depth == nest_.loops.size()) return ++points, Eval(a_) == Eval(b_);
    const Loop& loop = *nest_.loops[depth];
    const auto begin = Eval(loop.begin), end = Eval(loop.end);
    if (!begin || !end) return true;
    for (int64_t i = *begin; i < *end; i += loop.step) {
      vars_[loop.var] = i;
      if (!Equal(depth + 1)) return false;
    }
    return true;
  }

  std::string Point() const {
    std::string text =
        absl::StrCat(Eval(a_).value_or(-99999), " is not ", Eval(b_).value_or(-99999), " at");
    for (const auto& [name, value] : symbols_) absl::StrAppend(&text, " ", name, "=", value);
    for (const Loop* l : nest_.loops)
      absl::StrAppend(&text, " ", nest_.program.vars[l->var], "=", vars_[l->var]);
    return text;
  }
  int64_t points = 0;

 private:
  absl::optional<int64_t> Eval(IndexId e) const {
    const auto leaf = [&](const IndexNode& node,
                          absl::Span<const int64_t>) -> absl::optional<int64_t> {
      if (node.kind == IndexKind::kVar) return vars_[node.value];
      return symbols_.at(nest_.program.pool.SymbolNameAt(node.value));
    };
    return EvaluateIndex(nest_.program.pool, e, leaf);
  }

  const Nest& nest_;
  IndexId a_, b_;
  std::map<std::string, int64_t> symbols_;
  std::vector<int64_t> vars_;
};

std::map<std::string, int64_t> RandomSymbols(std::mt19937& random) {
  const auto pick = [&](int low, int high) {
    return low + static_cast<int64_t>(random() % (high - low + 1));
  };
  return {{"N", pick(0, 11)},    {"M", pick(0, 4)},   {"C", pick(0, 4)},    {"$p", pick(1, 4)},
          {"$x", pick(-20, 20)}, {"$y", pick(-5, 5)}, {"$z", pick(-30, 30)}};
}

TEST(SimplifyIndex, Table) {
  const struct {
    const char* before;
    const char* after;  // "": unchanged
  } kCases[] = {
      // Remainders and quotients put together again.
      {"($x*8 + $y)/4*4 + ($x*8 + $y)%4", "$x*8 + $y"},
      {"$x/3%7*3 + $x/21*21", "$x/3*3"},
      {"$x/12*12 + $x/4%3*4 + $x%4", "$x"},
      {"$x/4*4 + $x%4 + i", "i + $x"},
      {"$x - $x/4*4", "$x%4"},
      {"$x*3 - $x/4*12", "$x%4*3"},
      {"$x/$p*$p + $x%$p", "$x"},
      {"$x/$y*$y + $x%$y", ""},
      {"$x/C*C + $x%C", "$x"},
      {"$x/($p*C)*$p*C + $x/C%$p*C + $x%C", "$x"},
      {"$x/4*8 + $x%4", "$x + $x/4*4"},
      // Ranges decide.
      {"(i*C + c)/C", "i"},
      {"(i*C + c)%C", "c"},
      {"(i*M + c)/M", "i + c/M"},
      {"(i*C + c + C)/C", "i + 1"},
      {"(i*C + c + 1)/C", "i + (c + 1)/C"},
      {"(i*C - c - 1)/C", "i - 1"},
      {"(i*C - c - 1)%C", "C - c - 1"},
      {"(($x*N + i)*C + c)/(N*C)", "$x"},
      {"(($x*N + i)*C + c)/C%N", "i"},
      {"(($x*N + i)*C + c)%C", "c"},
      {"(($x*N + i)*C + c)/N/C", "$x"},
      {"b/4", "0"},
      {"b%4", "b"},
      {"(b - 4)%4", "b"},
      {"(b - 4)/4", "-1"},
      {"i%N", "i"},
      {"(i + N)%N", "i"},
      {"i/N", "0"},
      {"i/M", ""},
      {"i%M", ""},
      // Symbolic divisors come out.
      {"($x*C + $y)/C", "$x + $y/C"},
      {"($x*C + $y)%C", "$y%C"},
      {"($x*$y + $z)/$y", "$x + $z/$y"},
      {"$x*$y/$y", ""},
      {"$x*$y%$y", ""},
      {"$x*$p/$p", "$x"},
      {"($x*($p + 1) + b)/($p + 1)", "$x + b/($p + 1)"},
      {"($x*$p + 5)/($p + 1)", "$x + (-$x + 5)/($p + 1)"},
      {"($x*$p - 9223372036854775807)/($p + 1)", ""},  // -$x - 9223372036854775807 might overflow
      // Common factors.
      {"($x*4 + b)%8", "b + $x%2*4"},
      {"($x*4 + b)/8", "$x/2"},
      {"($x*4 + b + 1)/8", ""},
      {"$x*4/8", "$x/2"},
      {"$x*4%8", "$x%2*4"},
      {"(i*C + c)/(C*4)", "i/4"},
      {"(i*C + c)%(C*4)", "c + i%4*C"},
      {"(i*C + c)/(C*$p)", "i/$p"},
      {"(i*C + c)/(C*$y)", ""},
      {"(i*C + c)/(C*M)", "i/M"},
      // Nested.
      {"$x/3/7", "$x/21"},
      {"$x/3/(-7)", ""},
      {"$x/4611686018427387904/4", ""},
      {"$x/$p/3", ""},
      {"$x%12%4", "$x%4"},
      {"$x%4%12", "$x%4"},
      {"$x%12%8", ""},
      {"($x%12 + $y)%4", "($x + $y)%4"},
      {"$x%($p*C)%C", "$x%C"},
      {"$x%(M*C)%C", ""},
      {"i%8/8", "0"},
      // Steps.
      {"t%8", "0"},
      {"t/8*8", "t"},
      {"(t + u)%8", "u"},
      {"(t + u)/8", "t/8"},
      {"(t + u)/8*8 + (t + u)%8", "t + u"},
      {"(t + b)%4", "b"},
      {"t%16", ""},
      {"(t + u)/16", "t/16"},
      // min and max.
      {"min(i, N)", "i"},
      {"max(i, 0)", "i"},
      {"min(i, M)", ""},
      {"min(max(i, 0), N - 1)", "i"},
      {"max(min($x, N), min($x, N + 1))", "min($x, N + 1)"},
      {"min(min($x, N), i)", "min(i, $x)"},
      {"min(t + 8, N) - t", ""},
      {"min(i/M, N)", ""},
      // Nothing to do, or nothing that may be done.
      {"i", ""},
      {"i*C + c", ""},
      {"i*c", ""},
      {"$x/0", ""},
      {"i*(b/4 + 1)", ""},
      {"$x/$y - $x/$y", "0"},  // the pool's own doing
      {"($x/M*C + c)%C", ""},
      {"($x/M*4%12)%4", ""},
  };
  std::mt19937 random(1);
  for (const auto& c : kCases) {
    Nest nest, expected;
    Parse(kNest, c.before, nest);
    Parse(kNest, *c.after ? c.after : c.before, expected);
    const IndexId after = Simplified(nest, nest.e);
    EXPECT_EQ(ToText(nest.program, after), ToText(expected.program, expected.e)) << c.before;
    EXPECT_EQ(Simplified(nest, after), after) << c.before;
    for (int i = 0; i < 40; ++i) {
      Comparison comparison(nest, nest.e, after, RandomSymbols(random));
      ASSERT_TRUE(comparison.Equal()) << c.before << ": " << comparison.Point();
    }
  }
}

constexpr char kConditionNest[] = R"(
  program p(x: f32[N, M], z: f32[C]; $p: i64 in [1, inf], $x: i64, $y: i64, $z: i64) -> (r: i64) {
    for i in [0, N) { for c in [0, C) { for b in [0, 4) { for t in [0, N) step 8 { for u in [0, min(8, N - t)) {
      drop r if EXPRESSION = 1
    } } } } }
  })";

TEST(SimplifyIndex, Conditions) {
  const struct {
    const char* before;
    const char* after;
  } kCases[] = {
      {"i < N", "true"},
      {"i < 0", "false"},
      {"i < M", ""},
      {"i < N && i < M", "i < M"},
      {"i < M || i < N", "true"},
      {"i < M && i < 0", "false"},
      {"i < M || i < 0", "i < M"},
      {"i/M < 3 || i < N", "i/M < 3 || true"},
      {"i/M < 3 && i < N", "i/M < 3"},
      {"i/M < 3 && i < 0", "i/M < 3 && false"},
      {"!(i < M)", "i >= M"},
      {"!!(i == M)", "i == M"},
      {"!(i == M || c == M)", ""},
      {"!(i != M)", "i == M"},
      {"i < M && i < M", "i < M"},
      {"(i*C + c)/C < $x", "i < $x"},
      {"c != C", "true"},
      {"c == C", "false"},
  };
  for (const auto& c : kCases) {
    Nest nest, expected;
    Parse(kConditionNest, c.before, nest);
    const IndexId after = Simplified(nest, nest.e);
    Parse(kConditionNest, *c.after ? c.after : c.before, expected);
    EXPECT_EQ(ToText(nest.program, after), ToText(expected.program, expected.e)) << c.before;
    EXPECT_EQ(Simplified(nest, after), after) << c.before;
  }
}

// ---- Random expressions

class Generator {
 public:
  Generator(uint32_t seed, bool edges) : random_(seed), edges_(edges) {}

  std::string Expression(int depth) {
    if (depth == 0 || Pick(6) == 0) return Leaf();
    const std::string a = Expression(depth - 1);
    switch (Pick(10)) {
      case 0: return absl::StrCat("min(", a, ", ", Expression(depth - 1), ")");
      case 1: return absl::StrCat("max(", a, ", ", Expression(depth - 1), ")");
      case 2:
      case 3: return absl::StrCat("(", a, ")/(", Divisor(), ")");
      case 4:
      case 5: return absl::StrCat("(", a, ")%(", Divisor(), ")");
      case 6: {  // both, of the same
        const std::string d = Divisor();
        return absl::StrCat("(", a, ")/(", d, ")*(", d, ") + (", a, ")%(", d, ")");
      }
      case 7:
        return absl::StrCat("(", a, ")*(", Divisor(), ") ", Pick(2) ? "+ (" : "- (",
                            Expression(depth - 1), ")");
      case 8: return absl::StrCat("(", a, ") - (", Expression(depth - 1), ")");
      default: return absl::StrCat("(", a, ") + (", Expression(depth - 1), ")");
    }
  }

  int Pick(int n) { return static_cast<int>(random_() % n); }

 private:
  std::string Leaf() {
    static const char* const kLeaves[] = {"i",  "c",  "b", "t", "u",     "i*C + c",
                                          "$x", "$z", "N", "C", "t + u", "$x*4 + b"};
    if (Pick(5) == 0) return Number();
    return kLeaves[Pick(std::size(kLeaves))];
  }

  std::string Divisor() {
    static const char* const kSymbols[] = {"C",    "N",   "M",     "$p",  "$y",
                                           "C*$p", "4*C", "C + 1", "N*C", "$p*$p"};
    return Pick(3) ? Number() : kSymbols[Pick(std::size(kSymbols))];
  }

  std::string Number() {
    static const char* const kEdges[] = {
        "9223372036854775807", "-9223372036854775807", "4611686018427387904", "4294967296",
        "3037000500",          "-4611686018427387904", "2305843009213693952"};
    static const int64_t kNumbers[] = {1, 2, 3, 4, 6, 8, 12, 16, 0, -1, -2, -3, -4, -8, 5, 7};
    if (edges_ && Pick(2)) return kEdges[Pick(std::size(kEdges))];
    return absl::StrCat(kNumbers[Pick(std::size(kNumbers))]);
  }

  std::mt19937 random_;
  bool edges_;
};

int64_t Points(uint32_t seed, bool edges, int assignments, int* changed) {
  Generator generator(seed, edges);
  std::mt19937 random(seed);
  Nest nest;
  const bool condition = generator.Pick(4) == 0;
  static const char* const kCompare[] = {" < ", " <= ", " == ", " != "};
  const std::string text = condition
                               ? absl::StrCat(generator.Expression(2), kCompare[generator.Pick(4)],
                                              generator.Expression(1))
                               : generator.Expression(3);
  Parse(condition ? kConditionNest : kNest, text, nest);
  const Program before = nest.program;
  const IndexId after = Simplified(nest, nest.e);
  *changed += after != nest.e;
  EXPECT_EQ(Simplified(nest, after), after)
      << "not idempotent, seed " << seed << ": " << text << " to " << ToText(nest.program, after);
  int64_t points = 0;
  for (int i = 0; i < assignments && after != nest.e; ++i) {
    const auto symbols = RandomSymbols(random);
    const auto value = [&](const std::string& name) -> absl::optional<int64_t> {
      return symbols.at(name);
    };
    if (edges && !ProveNoOverflow(before, value).ok()) continue;
    Comparison comparison(nest, nest.e, after, symbols);
    EXPECT_TRUE(comparison.Equal()) << "seed " << seed << ": " << text << " to "
                                    << ToText(nest.program, after) << ": " << comparison.Point();
    points += comparison.points;
  }
  return points;
}

TEST(SimplifyIndex, RandomExpressionsAgree) {
  int64_t points = 0;
  int changed = 0;
  for (uint32_t seed = 0; seed < 20000 && !HasFailure(); ++seed)
    points += Points(seed, false, 6, &changed);
  RecordProperty("points", absl::StrCat(points));
  RecordProperty("changed", changed);
  EXPECT_GT(changed, 5000);
}

TEST(SimplifyIndex, RandomExpressionsAgreeAtTheEdgesOfInt64) {
  int64_t points = 0;
  int changed = 0;
  for (uint32_t seed = 0; seed < 10000 && !HasFailure(); ++seed)
    points += Points(seed, true, 6, &changed);
  RecordProperty("points", absl::StrCat(points));
  RecordProperty("changed", changed);
  EXPECT_GT(changed, 1000);
}

}  // namespace
}  // namespace nestor::loop
