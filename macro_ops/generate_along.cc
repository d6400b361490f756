// along: the axis is moved to the end, the macro op called, and the axis moved back. Fusion merges
// the moves into the reads and writes of the op.
//
//   along(softmax, 3, 1)
//     ->
//   op softmax_along(x: T[D0, C, D2]) -> (y) {
//     x_last[i0, i2, i1] = x[i0, i1, i2]
//     y_last = softmax(x_last)
//     y[i0, i1, i2] = y_last[i0, i2, i1]
//   }
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "macro_ops/generator_words.h"
#include "macro_ops/library.h"
#include "re2/re2.h"
#include "uops/invariant.h"
#include "uops/message.h"

namespace nestor {
namespace {

// The text of a signature, in pieces.
struct Signature {
  std::vector<std::string> arguments, params, results;
};

// Splits at commas outside brackets.
// "x: T[..N, C], s: f32[C]" -> {"x: T[..N, C]", "s: f32[C]"}
std::vector<std::string> SplitList(absl::string_view text) {
  std::vector<std::string> pieces;
  int depth = 0;
  for (char c : text) {
    if (c == '[') ++depth;
    if (c == ']') --depth;
    if (pieces.empty() || (c == ',' && depth == 0)) pieces.emplace_back();
    if (c != ',' || depth > 0) pieces.back() += c;
  }
  for (std::string& piece : pieces) absl::StripAsciiWhitespace(&piece);
  return pieces;
}

// "op pad(x: T[..N, C]; $k) -> (y)" -> arguments {x: T[..N, C]}, params {$k}, results {y}
Signature SignatureOf(const MacroOp& macro) {
  std::string arguments, params, results;
  NESTOR_CHECK(
      RE2::PartialMatch(macro.definition, R"(^op \w+\(([^;)]*)(?:;([^)]*))?\) -> \(([^)]*)\))",
                        &arguments, &params, &results),
      macro.definition);
  return {SplitList(arguments), SplitList(params), SplitList(results)};
}

// Axis names with the one at `axis` at the end.
std::vector<std::string> MovedToEnd(std::vector<std::string> names, int axis) {
  const std::string name = names[axis];
  names.erase(names.begin() + axis);
  names.push_back(name);
  return names;
}

struct Along {
  const MacroOp& macro;
  int rank, axis;

  // Whether the op works along the last axis of the argument: NAME: TYPE[..PACK, LAST].
  static bool IsMoved(const std::string& argument, std::string* name, std::string* type,
                      std::string* last) {
    return RE2::FullMatch(argument, R"((\w+): (\w+)\[\.\.\w+, (.*)\])", name, type, last);
  }

  std::string Moved(absl::string_view to, absl::string_view from, bool to_end) const {
    const std::vector<std::string> indices = Names("i", rank), ends = MovedToEnd(indices, axis);
    return absl::StrCat("  ", to, "[", List(to_end ? ends : indices), "] = ", from, "[",
                        List(to_end ? indices : ends), "]\n");
  }

  // The ranks of the results if the arguments have `rank` axes.
  // The op is made once to see them: topk keeps the axis, and variance does not have it.
  absl::StatusOr<std::vector<int>> ResultRanks(const Signature& signature) const {
    ArgumentSpecs specs;
    std::string name, type, last;
    for (const std::string& argument : signature.arguments) {
      if (IsMoved(argument, &name, &type, &last)) specs[name].rank = rank;
    }
    NESTOR_ASSIGN_OR_RETURN(const Op op, MacroLibrary().Instantiate(macro.name, specs));
    std::vector<int> ranks;
    for (const Result& result : op.results)
      ranks.push_back(static_cast<int>(op.graph.shape(result.node).size()));
    return ranks;
  }

  absl::StatusOr<std::string> Text() const;
};

// "k=$k" for each $param.
// The new op has the $params of the op that it calls, and hands them on.
std::string Bound(const Signature& signature) {
  std::vector<std::string> bound;
  std::string name;
  for (const std::string& param : signature.params) {
    if (RE2::PartialMatch(param, R"(^\$(\w+))", &name))
      bound.push_back(absl::StrCat(name, "=$", name));
  }
  return bound.empty() ? "" : absl::StrCat("; ", List(bound));
}

// Arguments and results of the form [..N, C] are moved; all others pass through as they are.
absl::StatusOr<std::string> Along::Text() const {
  const Signature signature = SignatureOf(macro);
  NESTOR_ASSIGN_OR_RETURN(const std::vector<int> ranks, ResultRanks(signature));
  std::vector<std::string> arguments, given, made;
  std::string before, after, name, type, last;
  for (const std::string& argument : signature.arguments) {
    const bool moves = IsMoved(argument, &name, &type, &last);
    given.push_back(moves ? absl::StrCat(name, "_last")
                          : std::string(argument.substr(0, argument.find(':'))));
    std::vector<std::string> dims = Names("D", rank);
    dims[axis] = last;
    arguments.push_back(moves ? absl::StrCat(name, ": ", type, "[", List(dims), "]") : argument);
    if (moves) absl::StrAppend(&before, Moved(given.back(), name, true));
  }
  if (before.empty())
    return absl::InvalidArgumentError(absl::StrCat(macro.name, " has no argument [..N, C]"));
  for (size_t i = 0; i < ranks.size(); ++i) {
    const bool moves = ranks[i] == rank;
    made.push_back(absl::StrCat(signature.results[i], moves ? "_last" : ""));
    if (moves) absl::StrAppend(&after, Moved(signature.results[i], made.back(), false));
  }
  const std::string params =
      signature.params.empty() ? "" : absl::StrCat("; ", List(signature.params));
  const std::string call = made.size() == 1 ? made[0] : absl::StrCat("(", List(made), ")");
  return absl::StrCat("op ", macro.name, "_along(", List(arguments), params, ") -> (",
                      List(signature.results), ") {\n", before, "  ", call, " = ", macro.name, "(",
                      List(given), Bound(signature), ")\n", after, "}\n");
}

}  // namespace

absl::StatusOr<std::string> GenerateAlong(Words words) {
  NESTOR_RETURN_IF_ERROR(ExpectWords(words, 3, "a macro op, a rank and an axis"));
  NESTOR_ASSIGN_OR_RETURN(const int rank, IntegerWord(words, 1, 1, kMostGenerated));
  NESTOR_ASSIGN_OR_RETURN(const int axis, AxisWord(words, 2, rank));
  std::vector<std::string> known;
  for (const MacroOp& macro : MacroOps()) {
    if (macro.name == words[0]) return Along{macro, rank, axis}.Text();
    known.push_back(macro.name);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("'", words[0], "' is no macro op", DidYouMean(words[0], known)));
}

}  // namespace nestor
