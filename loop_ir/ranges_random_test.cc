// Proofs about random nests of loops, every one checked by enumeration.
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"
#include "loop_ir/ranges_testing.h"
#include "loop_ir/text.h"

namespace nestor::loop {
namespace {

class Generator {
 public:
  explicit Generator(uint32_t seed) : random_(seed) {}

  std::string Program() {
    std::string text = "program p(x: f32[N, M], z: f32[N*M], w: f32[K]; $s: i64";
    if (Pick(2)) absl::StrAppend(&text, " in [", Pick(3) - 1, ", ", Pick(2) ? "inf" : "4", "]");
    absl::StrAppend(&text, ", $t: i64) -> (r: f32) {\n");
    if (Pick(3) == 0)
      absl::StrAppend(&text, "  require ", Symbolic(1), " == ", Symbolic(1), " \"\"\n");
    if (Pick(3) == 0) absl::StrAppend(&text, "  require 1 <= $t <= inf \"\"\n");
    if (Pick(3) == 0) absl::StrAppend(&text, "  require 0 <= ", Symbolic(1), " <= inf \"\"\n");
    Scope(text, 1);
    return text + "}\n";
  }

 private:
  int Pick(int n) { return static_cast<int>(random_() % n); }

  std::string Atom() {
    static const char* const kSymbols[] = {"N", "M", "K", "$s", "$t"};
    if (!vars_.empty() && Pick(2)) return vars_[Pick(static_cast<int>(vars_.size()))];
    return Pick(3) ? kSymbols[Pick(5)] : absl::StrCat(Pick(5) - 1);
  }

  std::string Expression(int depth) {
    if (depth == 0 || Pick(4) == 0) return Atom();
    const std::string a = Expression(depth - 1), b = Expression(depth - 1);
    switch (Pick(8)) {
      case 0: return absl::StrCat("min(", a, ", ", b, ")");
      case 1: return absl::StrCat("max(", a, ", ", b, ")");
      case 2: return absl::StrCat("(", a, ")/", "(", Symbolic(1), ")");
      case 3: return absl::StrCat("(", a, ")%", "(", Symbolic(1), ")");
      case 4: return absl::StrCat("(", a, ")*", Symbolic(0));
      case 5: return absl::StrCat("(", a, ") - (", b, ")");
      default: return absl::StrCat("(", a, ") + (", b, ")");
    }
  }

  std::string Symbolic(int depth) {
    const std::vector<std::string> kept = std::move(vars_);
    vars_.clear();
    const std::string text = Expression(depth);
    vars_ = kept;
    return absl::StrCat("(", text, ")");
  }

  std::string Condition() {
    static const char* const kCompare[] = {" < ", " <= ", " >= ", " > ", " == ", " != "};
    if (Pick(6) == 0)
      return absl::StrCat("(", Condition(), Pick(2) ? ") && (" : ") || (", Condition(), ")");
    if (Pick(8) == 0) return absl::StrCat("!(", Condition(), ")");
    return absl::StrCat(Expression(1), kCompare[Pick(6)], Expression(Pick(3)));
  }

  std::string Place(int rank) {
    std::vector<std::string> place;
    for (int i = 0; i < rank; ++i) place.push_back(Expression(Pick(3)));
    return absl::StrJoin(place, ", ");
  }

  std::string Conditions() {
    std::vector<std::string> conditions = {Condition()};
    while (Pick(2)) conditions.push_back(Condition());
    return absl::StrJoin(conditions, ", ");
  }

  void Scope(std::string& text, int depth) {
    const std::string indent(2 * depth, ' ');
    const std::string var = absl::StrCat("i", next_var_++);
    const std::string begin = Pick(2) ? "0" : Expression(1);
    absl::StrAppend(&text, indent, "for ", var, " in [", begin, ", ", Expression(Pick(3)), ")",
                    Pick(4) ? "" : absl::StrCat(" step ", 1 + Pick(4)), " {\n");
    vars_.push_back(var);
    const std::string load =
        Pick(2) ? absl::StrCat("x[", Place(2)) : absl::StrCat(Pick(2) ? "z[" : "w[", Place(1));
    absl::StrAppend(&text, indent, "  drop r if ", Conditions(), " = ", load, " | 0.0 if ",
                    Conditions(), "]\n");
    if (depth < 3) Scope(text, depth + 1);
    vars_.pop_back();
    absl::StrAppend(&text, indent, "}\n");
  }

  std::mt19937 random_;
  std::vector<std::string> vars_;
  int next_var_ = 0;
};

TEST(RangesRandom, ProgramsAgreeWithEnumeration) {
  std::mt19937 random(7);
  int64_t checked = 0, proven = 0;
  for (uint32_t seed = 0; seed < 3000; ++seed) {
    const std::string text = Generator(seed).Program();
    absl::StatusOr<Program> program = ParseProgram(text);
    ASSERT_TRUE(program.ok()) << program.status() << "\n" << text;
    const Verdicts verdicts = Judge(*program);
    for (char c : verdicts.text) proven += c == 't' || c == 'f' || c == 'y';
    checked += CheckVerdicts(*program, verdicts, random);
    ASSERT_FALSE(::testing::Test::HasFailure()) << "seed " << seed;
  }
  RecordProperty("checked", absl::StrCat(checked));
  RecordProperty("proven", absl::StrCat(proven));
  EXPECT_GT(proven, 8000);
}

}  // namespace
}  // namespace nestor::loop
