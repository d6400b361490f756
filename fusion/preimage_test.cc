// Rows say what a preimage is, as text; each is then compared with a walk over the whole nest, for
// small sizes and each element.
#include "fusion/preimage.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "loop_ir/program.h"
#include "loop_ir/ranges.h"
#include "loop_ir/text.h"
#include "uops/index/index_expr.h"

namespace nestor::loop {
namespace {

struct PreimageCase {
  const char* shape;  // of the tensor; the element is a, b, ..
  const char* nest;
  const char* place;
  const char* want;  // "for LOOPS: SOLUTION if CONDITIONS"; "none"
};

constexpr char kSignature[] =
    "program p(x: f32[N, M, R, H], s: shape f32[C, D], u: i64[N]; $s: i64 in [1, inf],"
    " $d: i64 in [1, inf], $g: i64 in [1, inf], $p: i64) -> () {\n";

// The nest inside loops over the elements.
class Scatter {
 public:
  explicit Scatter(const PreimageCase& c) {
    const Program shape = Parsed(absl::StrCat(kSignature, "temp t: f32[", c.shape, "]\n}"));
    std::string text = absl::StrCat(kSignature, "temp t: f32[", c.shape, "]\n");
    const IndexList extents = shape[DeclaredIn(shape.body)[0]].shape;
    for (size_t axis = 0; axis < extents.size(); ++axis) {
      absl::StrAppend(&text, "for ", std::string(1, static_cast<char>('a' + axis)), " in [0, ",
                      ToText(shape, extents[axis]), ") { ");
    }
    absl::StrAppend(&text, c.nest, " drop t[", c.place, "] += 1.0");
    text.append(absl::c_count(text, '{') - 1, '}');
    program_ = Parsed(absl::StrCat(text, "\n}"));
    const Scope* scope = &program_.body;
    while (const Loop* loop = scope->back().As<Loop>()) {
      (element_.size() < extents.size() ? element_ : nest_).push_back(loop);
      scope = &loop->body;
    }
    target_ = &scope->back().As<Statement>()->target;
  }

  Program& program() { return program_; }
  absl::Span<const Loop* const> element() const { return element_; }
  absl::Span<const Loop* const> nest() const { return nest_; }
  const IndexList& place() const { return target_->place; }

  absl::optional<Preimage> Solve(bool ordered) {
    IndexList element;
    Ranges ranges(program_);
    for (const Loop* loop : element_) {
      element.push_back(program_.pool.Var(loop->var));
      ranges.Enter(*loop);
    }
    const auto solve = [&] {
      return SolvePreimage(program_, nest_, place(), element, program_[target_->tensor].shape,
                           ordered, ranges);
    };
    // A second time: what the first one assumed is forgotten.
    absl::optional<Preimage> preimage = solve();
    const absl::optional<Preimage> again = solve();
    EXPECT_TRUE(preimage ? again && again->conditions == preimage->conditions : !again);
    return preimage;
  }

 private:
  static Program Parsed(const std::string& text) {
    absl::StatusOr<Program> program = ParseProgram(text);
    EXPECT_TRUE(program.ok()) << program.status() << "\n" << text;
    return program.ok() ? *std::move(program) : Program();
  }

  Program program_;
  std::vector<const Loop*> element_, nest_;
  const Access* target_;
};

// An index of the nest that is a loop's of the result as it is, is left out.
std::string TextOf(Scatter& scatter, const absl::optional<Preimage>& preimage) {
  if (!preimage) return "none";
  IndexPool& pool = scatter.program().pool;
  const auto text = [&](IndexId e) { return ToText(scatter.program(), e); };
  std::string loops;
  for (const Loop& loop : preimage->loops) {
    absl::StrAppend(&loops, "for ", scatter.program().vars[loop.var], " in [", text(loop.begin),
                    ", ", text(loop.end), "): ");
  }
  std::vector<std::string> solution, conditions;
  for (size_t i = 0; i < scatter.nest().size(); ++i) {
    const Loop& loop = *scatter.nest()[i];
    if (preimage->solution[i] == pool.Var(loop.var)) continue;
    solution.push_back(
        absl::StrCat(scatter.program().vars[loop.var], " = ", text(preimage->solution[i])));
  }
  for (IndexId condition : preimage->conditions) conditions.push_back(text(condition));
  return absl::StrCat(loops, absl::StrJoin(solution, ", "), conditions.empty() ? "" : " if ",
                      absl::StrJoin(conditions, ", "));
}

// The values of symbols and loop indices.
class Numbers {
 public:
  Numbers(const Program& program, std::mt19937& random) : program_(program) {
    for (const char* name : {"N", "M", "R", "H", "C", "D"}) symbols_[name] = random() % 6;
    for (const char* name : {"$s", "$d", "$g"}) symbols_[name] = 1 + random() % 3;
    symbols_["$p"] = static_cast<int64_t>(random() % 6) - 2;
    for (int64_t i = 0; i < symbols_["N"]; ++i) looked_up_.push_back(random() % 4);
  }

  std::string Text() const { return absl::StrJoin(symbols_, " ", absl::PairFormatter("=")); }

  // Calls `visit` for each iteration of the loops, in order.
  template <class Loops>
  void Walk(const Loops& loops, absl::FunctionRef<void()> visit, size_t from = 0) {
    if (from == loops.size()) return visit();
    const Loop& loop = Head(loops[from]);
    const absl::optional<int64_t> begin = Value(loop.begin), end = Value(loop.end);
    ASSERT_TRUE(begin && end) << "a bound has no value";
    for (int64_t i = *begin; i < *end; ++i) {
      vars_[loop.var] = i;
      Walk(loops, visit, from + 1);
    }
  }

  absl::optional<int64_t> Value(IndexId e) const {
    return EvaluateIndex(
        program_.pool, e,
        [&](const IndexNode& node, absl::Span<const int64_t> args) -> absl::optional<int64_t> {
          if (node.kind == IndexKind::kVar) return vars_.at(node.value);
          if (node.kind == IndexKind::kSymbol)
            return symbols_.at(program_.pool.SymbolNameAt(node.value));
          if (args[0] < 0 || args[0] >= static_cast<int64_t>(looked_up_.size()))
            return absl::nullopt;
          return looked_up_[args[0]];
        });
  }

  std::vector<absl::optional<int64_t>> Values(const IndexList& list) const {
    std::vector<absl::optional<int64_t>> values;
    for (IndexId e : list) values.push_back(Value(e));
    return values;
  }

 private:
  static const Loop& Head(const Loop* loop) { return *loop; }
  static const Loop& Head(const Loop& loop) { return loop; }

  const Program& program_;
  std::map<std::string, int64_t> symbols_;
  std::map<int64_t, int64_t> vars_;
  std::vector<int64_t> looked_up_;  // u
};

using Iterations = std::vector<std::vector<absl::optional<int64_t>>>;

// The iterations of the nest that reach each element, by a walk over all of them and by the
// preimage.
void ExpectExact(Scatter& scatter, const Preimage& preimage, bool ordered, Numbers numbers) {
  IndexList element, own;
  for (const Loop* loop : scatter.element())
    element.push_back(scatter.program().pool.Var(loop->var));
  for (const Loop* loop : scatter.nest()) own.push_back(scatter.program().pool.Var(loop->var));
  numbers.Walk(scatter.element(), [&] {
    Iterations want, got;
    Numbers all = numbers, inside = numbers;
    all.Walk(scatter.nest(), [&] {
      if (all.Values(scatter.place()) == numbers.Values(element)) want.push_back(all.Values(own));
    });
    inside.Walk(preimage.loops, [&] {
      for (IndexId condition : preimage.conditions) {
        if (inside.Value(condition).value_or(0) == 0) return;
      }
      got.push_back(inside.Values(preimage.solution));
    });
    if (!ordered) {
      absl::c_sort(want);
      absl::c_sort(got);
    }
    EXPECT_EQ(got, want) << "element " << testing::PrintToString(numbers.Values(element)) << " at "
                         << numbers.Text();
  });
}

void ExpectPreimages(absl::Span<const PreimageCase> cases, bool ordered) {
  std::mt19937 random(1);
  for (const PreimageCase& c : cases) {
    const testing::ScopedTrace trace(__FILE__, __LINE__, absl::StrCat(c.nest, " ", c.place));
    Scatter scatter(c);
    const std::string before = ToText(scatter.program());
    const absl::optional<Preimage> preimage = scatter.Solve(ordered);
    EXPECT_EQ(TextOf(scatter, preimage), c.want);
    EXPECT_EQ(ToText(scatter.program()), before);
    for (int i = 0; i < 40 && preimage && !testing::Test::HasFailure(); ++i)
      ExpectExact(scatter, *preimage, ordered, Numbers(scatter.program(), random));
  }
}

// One equation that determines an index, or none.
TEST(Preimage, Solves) {
  constexpr PreimageCase kCases[] = {
      {"N", "for i in [0, N) {", "i", "i = a"},
      {"N", "for i in [0, M) {", "i", "i = a if a < M"},
      {"N", "for i in [2, N - 1) {", "i", "i = a if 2 <= a, a < N - 1"},
      {"N", "for i in [0, N) {", "i + $p", "i = a - $p if 0 <= a - $p, a - $p < N"},
      {"N", "for i in [0, N) {", "N - 1 - i", "i = -a + N - 1"},
      {"N", "for i in [0, N) {", "$p - i", "i = -a + $p if 0 <= -a + $p, -a + $p < N"},
      // Strides, which must divide.
      {"$s*N", "for i in [0, N) {", "i*$s", "i = a/$s if a%$s == 0"},
      {"H", "for i in [0, N) {", "3*i + 1",
       "i = (a + 2)/3 - 1 if (a + 2)%3 == 0, 0 <= (a + 2)/3 - 1, (a + 2)/3 - 1 < N"},
      {"H", "for i in [0, N) {", "H - 1 - 2*i",
       "i = (-a + H + 1)/2 - 1 if (-a + H + 1)%2 == 0, (-a + H + 1)/2 - 1 < N"},
      {"H", "for i in [0, N) {", "-i*$s", "i = -a/$s if -a%$s == 0, 0 <= -a/$s, -a/$s < N"},
      {"H", "for i in [0, N) {", "i*$s*$d - $p",
       "i = (a + $p)/($d*$s) if (a + $p)%($d*$s) == 0, 0 <= (a + $p)/($d*$s), "
       "(a + $p)/($d*$s) < N"},
      // Two axes; a diagonal.
      {"N, M", "for j in [0, M) { for i in [0, N) {", "i, j", "j = b, i = a"},
      {"N, N", "for i in [0, N) {", "i, i", "i = a if a == b"},
      {"N, M", "for i in [0, N) { for j in [0, M) {", "i, j - i", "i = a, j = a + b if a + b < M"},
      // An axis that names no index.
      {"N, M", "for i in [0, N) {", "i, 3", "i = a if 3 == b"},
      // A looked up place, at indices that are known.
      {"N, M", "for i in [0, N) {", "i, u[i]", "i = a if u[a] == b"},
      {"N, M", "for i in [0, M) {", "i + 1, u[i]",
       "i = a - 1 if 0 <= a - 1, a - 1 < M, u[a - 1] == b"},
  };
  ExpectPreimages(kCases, /*ordered=*/true);
}

// The digits of a number, quotients and remainders.
TEST(Preimage, SolvesDigits) {
  constexpr PreimageCase kCases[] = {
      {"M*N", "for i in [0, N) { for j in [0, M) {", "i*M + j", "i = a/M, j = a%M"},
      {"M*N", "for i in [0, N) { for j in [2, M) {", "i*M + j",
       "i = (a - 2)/M, j = (a - 2)%M + 2 if 0 <= (a - 2)/M, (a - 2)%M + 2 < M"},
      {"12", "for i in [0, 3) { for j in [0, 3) {", "4*i + j", "i = a/4, j = a%4 if a%4 < 3"},
      {"M*N", "for i in [0, N) { for j in [0, M) {", "i*M - j + M - 1",
       "i = -((-a + M - 1)/M), j = (-a + M - 1)%M"},
      {"M*N*R", "for i in [0, N) { for j in [0, M) { for k in [0, R) {", "i*M*R + j*R + k",
       "i = a/R/M, j = a/R%M, k = a%R"},
      {"N, M", "for i in [0, N) {", "i/M, i%M", "i = a*M + b if a*M + b < N"},
      {"N, M + 2", "for i in [0, N) {", "i/M, i%M", "i = a*M + b if b < M, a*M + b < N"},
      {"N, $s", "for i in [0, H) {", "(i + 2)/$s, (i + 2)%$s",
       "i = a*$s + b - 2 if 0 <= a*$s + b - 2, a*$s + b - 2 < H"},
      {"N, M", "for i in [0, N) {", "i/M, i%H", "for i in [a*M, min(N, a*M + M)):  if i%H == b"},
  };
  ExpectPreimages(kCases, /*ordered=*/true);
}

// Indices that no equation determines run over their ranges.
TEST(Preimage, Iterates) {
  constexpr PreimageCase kCases[] = {
      {"M", "for i in [0, N) { for j in [0, M) {", "j", "for i in [0, N): j = a"},
      {"", "for i in [0, N) {", "", "for i in [0, N): "},
      // A quotient: an interval. A remainder: a residue class.
      {"N", "for i in [0, N) {", "i/M", "for i in [a*M, min(N, a*M + M)): "},
      {"N", "for i in [0, N) {", "(i + 2)/$s",
       "for i in [max(a*$s - 2, 0), min(N, a*$s + $s - 2)): "},
      {"M", "for i in [0, N) {", "i%$s",
       "for i in [0, (-(a%$s) + N - 1)/$s + 1): i = i*$s + a%$s if a < $s"},
      {"M", "for i in [0, N) {", "(i + 1)%M",
       "for i in [0, (-((a - 1)%M) + N - 1)/M + 1): i = i*M + (a - 1)%M"},
      {"$g*C", "for j in [0, C) { for k in [0, D) {", "j + k/(D/$g)*C",
       "for k in [a/C*(D/$g), min(D, a/C*(D/$g) + D/$g)): j = a%C"},
      // A stride of unknown sign, and a bent place, are conditions.
      {"N", "for i in [0, N) {", "i*$p", "for i in [0, N):  if i*$p == a"},
      {"N", "for i in [0, N) {", "max(i - 1, 0)", "for i in [0, N):  if max(i - 1, 0) == a"},
      // Looked up, or multiplied: no condition that a loop could do with.
      {"N", "for i in [0, N) {", "u[i]", "none"},
      {"N, M", "for i in [0, N) { for j in [0, M) {", "u[i], j", "none"},
      {"N", "for i in [0, N) { for j in [0, M) {", "i*j", "none"},
  };
  ExpectPreimages(kCases, /*ordered=*/true);
}

// The smaller of two loops that slide along each other stays, and runs such that the other one's
// index ascends.
TEST(Preimage, SlidesWindows) {
  constexpr PreimageCase kCases[] = {
      {"H", "for l in [0, N) { for r in [0, R) {", "l + r - $p",
       "for l in [0, N): r = a - l + $p if 0 <= a - l + $p, a - l + $p < R"},
      {"H", "for l in [0, (H - R)/$s + 1) { for r in [0, R) {", "l*$s + r - $p",
       "for r in [0, (a + $p)/$s - (a + $p - R)/$s): "
       "l = r + (a + $p - R)/$s + 1, r = a - r*$s - ((a + $p - R)/$s)*$s + $p - $s "
       "if 0 <= r + (a + $p - R)/$s + 1, r + (a + $p - R)/$s + 1 < (H - R)/$s + 1"},
      {"H", "for l in [0, (H - R)/$s + 1) { for r in [0, R) {", "l*$s - r",
       "for r in [0, -((a - 1)/$s) + (a + R - 1)/$s): "
       "l = r + (a - 1)/$s + 1, r = -a + r*$s + (a - 1)/$s*$s + $s "
       "if r + (a - 1)/$s + 1 < (H - R)/$s + 1"},
      {"H", "for l in [0, (H - R)/$s + 1) { for r in [0, R) {", "l*$s + r*$d",
       "for r in [0, R): l = (a + r*$d - $d*R + $d)/$s, r = -r + R - 1 "
       "if (a + r*$d - $d*R + $d)%$s == 0, 0 <= (a + r*$d - $d*R + $d)/$s, "
       "(a + r*$d - $d*R + $d)/$s < (H - R)/$s + 1"},
      {"H", "for l in [0, (H - R)/$s + 1) { for r in [0, R) {", "l*$s - r*$d",
       "for r in [0, R): l = (a + r*$d)/$s if (a + r*$d)%$s == 0, (a + r*$d)/$s < (H - R)/$s + 1"},
      {"H", "for r in [0, R) { for l in [0, (H - R)/$s + 1) {", "l*$s + r",
       "for r in [0, R): l = (a - r)/$s if (a - r)%$s == 0, 0 <= (a - r)/$s, "
       "(a - r)/$s < (H - R)/$s + 1"},
      {"9", "for l in [0, 4) { for r in [0, 3) {", "2*l + r",
       "for r in [0, a/2 - (a + 1)/2 + 2): "
       "l = r + (a + 1)/2 - 1, r = a - 2*r - 2*((a + 1)/2) + 2 "
       "if 0 <= r + (a + 1)/2 - 1, r + (a + 1)/2 - 1 < 4"},
      {"9", "for l in [0, 4) { for r in [0, 3) {", "2*l - 3*r + 4",
       "for r in [0, 3): l = (a + 3*r)/2 - 2 if (a + 3*r)%2 == 0, 0 <= (a + 3*r)/2 - 2, "
       "(a + 3*r)/2 - 2 < 4"},
      {"N", "for l in [0, N) { for r in [1, 4) {", "2*l - r",
       "for r in [0, -(a/2) + (a + 1)/2 + 1): "
       "l = r + a/2 + 1, r = -a + 2*r + 2*(a/2) + 2 if r + a/2 + 1 < N"},
      {"H, 9", "for l in [0, N) { for m in [0, 4) { for r in [0, R) { for q in [0, 3) {",
       "l - r, 2*m + 3*q",
       "for l in [0, N): for q in [0, 3): "
       "m = (b + 3*q)/2 - 3, r = -a + l, q = -q + 2 "
       "if (b + 3*q)%2 == 0, 0 <= (b + 3*q)/2 - 3, (b + 3*q)/2 - 3 < 4, 0 <= -a + l, -a + l < R"},
      {"H", "for l in [0, (H - R)/$s + 1) { for r in [0, R) {", "l*$s + r*$p",
       "for l in [0, (H - R)/$s + 1): for r in [0, R):  if l*$s + r*$p == a"},
  };
  ExpectPreimages(kCases, /*ordered=*/true);
}

// Where the order does not matter, windows run upwards, and steps of unknown sign are solved, too.
TEST(Preimage, InAnyOrder) {
  constexpr PreimageCase kCases[] = {
      {"H", "for l in [0, (H - R)/$s + 1) { for r in [0, R) {", "l*$s + r",
       "for r in [0, a/$s - (a - R)/$s): "
       "l = r + (a - R)/$s + 1, r = a - r*$s - ((a - R)/$s)*$s - $s "
       "if 0 <= r + (a - R)/$s + 1, r + (a - R)/$s + 1 < (H - R)/$s + 1"},
      {"H", "for l in [0, (H - R)/$s + 1) { for r in [0, R) {", "l*$s + r*$d",
       "for r in [0, R): l = (a - r*$d)/$s if (a - r*$d)%$s == 0, 0 <= (a - r*$d)/$s, "
       "(a - r*$d)/$s < (H - R)/$s + 1"},
      {"H", "for l in [0, (H - R)/$s + 1) { for r in [0, R) {", "l*$s + r*$p",
       "for r in [0, R): l = (a - r*$p)/$s if (a - r*$p)%$s == 0, 0 <= (a - r*$p)/$s, "
       "(a - r*$p)/$s < (H - R)/$s + 1"},
  };
  ExpectPreimages(kCases, /*ordered=*/false);
}

// Roughly, and averaged over the elements: an interval or a residue class is a part of the nest's
// loop, and the elements of an axis share its iterations.
TEST(Preimage, EstimatesTrips) {
  const struct {
    const char* shape;
    const char* nest;
    const char* place;
    const char* want;
  } kCases[] = {
      {"N", "for i in [0, N) {", "i", ""},
      {"M", "for i in [2, N) { for j in [0, M) {", "j", "N - 2"},
      {"M", "for i in [0, N) {", "i/$s", "min(N/M, min($s, N))"},
      {"M", "for i in [0, N) {", "i%$s", "min(N/$s, N/M)"},
      {"H", "for l in [0, (H - R)/$s + 1) { for r in [0, R) {", "l*$s + r", "R/$s"},
      {"H", "for l in [0, (H - R)/$s + 1) { for r in [0, R) {", "l*$s + r*$d", "R"},
  };
  for (const auto& c : kCases) {
    Scatter scatter({c.shape, c.nest, c.place, ""});
    const absl::optional<Preimage> preimage = scatter.Solve(/*ordered=*/true);
    ASSERT_TRUE(preimage.has_value()) << c.place;
    std::vector<std::string> trips;
    for (IndexId e : preimage->trips) trips.push_back(ToText(scatter.program(), e));
    EXPECT_EQ(absl::StrJoin(trips, "; "), c.want) << c.place;
  }
}

// Nothing is divided by what may be 0.
TEST(Preimage, NeedsBoundsThatHaveValues) {
  constexpr PreimageCase kCases[] = {
      {"N", "for i in [0, N) {", "i/$p", "for i in [0, N):  if i/$p == a"},
      {"N", "for i in [0, N) {", "i%M", "for i in [0, N):  if i%M == a"},
      {"N", "for i in [0, N/M) { for j in [0, N) {", "j", "none"},
  };
  ExpectPreimages(kCases, /*ordered=*/true);
}

}  // namespace
}  // namespace nestor::loop
