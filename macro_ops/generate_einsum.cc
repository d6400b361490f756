// einsum, as numpy.einsum has it: a letter is an index, and names a dimension. Letters that are not
// in the result are summed over; `...` is a pack. Without "->" the result has the letters that
// occur once, in the order of the alphabet.
//
//   bij,bjk->bik      out[b, i, k] = sum[j](x0[b, i, j] * x1[b, j, k])
#include <algorithm>
#include <map>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "macro_ops/generator_words.h"
#include "uops/invariant.h"

namespace nestor {
namespace {

constexpr char kPack = '.';  // stands for `...` in a term

struct Equation {
  std::vector<std::string> operands;
  std::string result;
};

absl::Status CheckTerm(absl::string_view term) {
  if (term.size() > kMostGenerated) return absl::InvalidArgumentError("too many axes");
  for (char c : term) {
    if (c != kPack && !absl::ascii_isalpha(c)) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", absl::string_view(&c, 1), "' in '", term, "' is no letter"));
    }
  }
  if (std::count(term.begin(), term.end(), kPack) > 1) {
    return absl::InvalidArgumentError(absl::StrCat("'", term, "' has more than one '...'"));
  }
  return absl::OkStatus();
}

// The result without an arrow: the pack, and the letters that occur once, in alphabetical order.
std::string ImpliedResult(const std::vector<std::string>& operands) {
  std::map<char, int> counts;
  for (const std::string& term : operands) {
    for (char c : term) ++counts[c];
  }
  std::string result;
  for (const auto& [c, count] : counts) {
    if (c == kPack || count == 1) result += c;
  }
  return result;
}

// Each letter of the result is one of an operand, and stands there once.
absl::Status CheckResult(const Equation& equation) {
  const std::string all = absl::StrJoin(equation.operands, "");
  for (char c : equation.result) {
    const std::string shown = c == kPack ? "..." : std::string(1, c);
    if (!absl::StrContains(all, c))
      return absl::InvalidArgumentError(absl::StrCat("no operand has the result's '", shown, "'"));
    if (std::count(equation.result.begin(), equation.result.end(), c) > 1) {
      return absl::InvalidArgumentError(absl::StrCat("the result has '", shown, "' twice"));
    }
  }
  return absl::OkStatus();
}

// Checked here, so that every error names a letter or a term, not a place in generated text.
// "bij, bjk -> bik" -> operands {"bij", "bjk"}, result "bik"; "...ij->...ji" -> {".ij"}, ".ji"
absl::StatusOr<Equation> ReadEquation(absl::string_view text) {
  const std::string short_text = absl::StrReplaceAll(text, {{" ", ""}, {"...", "."}});
  const std::vector<std::string> sides = absl::StrSplit(short_text, "->");
  if (sides.size() > 2) return absl::InvalidArgumentError("more than one '->'");
  Equation equation;
  equation.operands = absl::StrSplit(sides[0], ',');
  if (equation.operands.size() > kMostGenerated)
    return absl::InvalidArgumentError("too many operands");
  for (const std::string& term : equation.operands) NESTOR_RETURN_IF_ERROR(CheckTerm(term));
  equation.result = sides.size() == 2 ? sides[1] : ImpliedResult(equation.operands);
  NESTOR_RETURN_IF_ERROR(CheckTerm(equation.result));
  NESTOR_RETURN_IF_ERROR(CheckResult(equation));
  return equation;
}

// Capital letters are indices, too; dimensions begin with N, so that none is a letter alone.
std::string Index(char letter) { return letter == kPack ? "..n" : std::string(1, letter); }
std::string Dimension(char letter) {
  return letter == kPack ? "..N" : absl::StrCat("N", std::string(1, letter));
}

// The letters, each spelled by `name`.
std::string Spelled(absl::string_view letters, std::string (*name)(char)) {
  return absl::StrJoin(letters, ", ", [&](std::string* out, char c) { out->append(name(c)); });
}

// "[i, j]"; nothing for a scalar.
std::string Place(absl::string_view term) {
  return term.empty() ? "" : absl::StrCat("[", Spelled(term, Index), "]");
}

// In the order in which they appear, each once.
std::string SummedLetters(const Equation& equation) {
  std::string summed;
  for (char c : absl::StrJoin(equation.operands, "")) {
    if (!absl::StrContains(equation.result, c) && !absl::StrContains(summed, c)) summed += c;
  }
  return summed;
}

}  // namespace

// All products in one sum: fusion splits the sum of many factors where that saves work.
absl::StatusOr<std::string> GenerateEinsum(Words words) {
  NESTOR_ASSIGN_OR_RETURN(const Equation equation, ReadEquation(words[0]));
  std::vector<std::string> arguments, factors;
  for (size_t i = 0; i < equation.operands.size(); ++i) {
    const std::string& term = equation.operands[i];
    arguments.push_back(absl::StrCat("x", i, ": T[", Spelled(term, Dimension), "]"));
    factors.push_back(absl::StrCat("x", i, Place(term)));
  }
  const std::string product = absl::StrJoin(factors, " * "), summed = SummedLetters(equation);
  const std::string value =
      summed.empty() ? product : absl::StrCat("sum[", Spelled(summed, Index), "](", product, ")");
  return absl::StrCat("op einsum(", List(arguments), ") -> (out) {\n  out", Place(equation.result),
                      " = ", value, "\n}\n");
}

}  // namespace nestor
