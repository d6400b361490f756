// The table of generators, and the parsing of their calls: NAME(WORD, ..). A call is text, so that
// a generated op can be named wherever a macro op can.
#include "macro_ops/generators.h"

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "macro_ops/generator_words.h"
#include "re2/re2.h"
#include "uops/invariant.h"
#include "uops/notation/parser.h"

namespace nestor {
namespace {

constexpr Generator kGenerators[] = {
    {"along", "along(OP, RANK, AXIS)",
     "A macro op of the last axis, such as softmax, topk, variance or pad, along another axis of tensors of that rank, "
     "like the argument dim of PyTorch; results that lack the axis stay without it",
     "along(softmax, 3, 1)", GenerateAlong},
    {"concat", "concat(COUNT, RANK, AXIS)",
     "So many tensors one after another along an axis, torch.cat", "concat(3, 2, 0)",
     GenerateConcat},
    {"einsum", "einsum(EQUATION)",
     "Sums of products over any axes, diagonals and .. included, torch.einsum; what ... stands for does not broadcast",
     "einsum(bij,bjk->bik)", GenerateEinsum},
    {"permute", "permute(AXIS, ..)",
     "Axis k of the result is axis AXIS[k] of the argument, torch.permute", "permute(2, 0, 1)",
     GeneratePermute},
    {"reshape", "reshape(RANK, NEW_RANK)",
     "The same elements, row-major, in the shape [$n0, $n1, ..], torch.reshape; 0 where that has more elements",
     "reshape(3, 2)", GenerateReshape},
    {"resize", "resize(MODE, COORDINATES, AXES[, ROUNDING])",
     "The last AXES axes resized to $n0, $n1, .., ONNX Resize by sizes: MODE nearest, linear or cubic (a = -0.75); COORDINATES "
     "half_pixel, pytorch_half_pixel, align_corners, asymmetric or tf_half_pixel_for_nn; ROUNDING of nearest floor, ceil, "
     "round_prefer_floor (the default) or round_prefer_ceil",
     "resize(linear, align_corners, 2)", GenerateResize},
    {"split", "split(COUNT, RANK, AXIS)",
     "So many parts of equal length along an axis, torch.chunk where COUNT divides; what is left over is left out",
     "split(2, 2, 1)", GenerateSplit},
    {"stack", "stack(COUNT, RANK, AXIS)", "So many tensors along a new axis, torch.stack",
     "stack(3, 2, 0)", GenerateStack},
};

const Generator* Find(absl::string_view name) {
  for (const Generator& generator : kGenerators) {
    if (generator.name == name) return &generator;
  }
  return nullptr;
}

// The generator, and in `inside` the text between its parentheses; null if it is not a call.
// " concat( 3, 2, 0 )" -> the row of concat, and " 3, 2, 0 "
const Generator* ReadCall(absl::string_view call, std::string& inside) {
  std::string name;
  const bool is_call = RE2::FullMatch(re2::StringPiece(call.data(), call.size()),
                                      R"(\s*(\w+)\s*\((.*)\)\s*)", &name, &inside);
  return is_call ? Find(name) : nullptr;
}

absl::Status WordError(Words words, size_t number, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("'", words[number], "' is not ", what));
}

}  // namespace

absl::Span<const Generator> Generators() { return kGenerators; }

bool IsGeneratorCall(absl::string_view text) {
  std::string inside;
  return ReadCall(text, inside) != nullptr;
}

// An einsum's equation has commas of its own, so it is one word.
absl::StatusOr<std::string> Generate(absl::string_view call) {
  std::string inside;
  const Generator* generator = ReadCall(call, inside);
  NESTOR_CHECK(generator != nullptr, std::string(call));
  std::vector<std::string> words;
  if (generator->generate == GenerateEinsum) words = {inside};
  else words = absl::StrSplit(inside, ',');
  for (std::string& word : words) absl::StripAsciiWhitespace(&word);
  absl::StatusOr<std::string> text = generator->generate(words);
  if (text.ok()) return text;
  return absl::InvalidArgumentError(absl::StrCat(generator->usage, ": ", text.status().message()));
}

// "concat(COUNT, RANK, AXIS): takes a count, a rank and an axis, and is given 2 words"
absl::Status ExpectWords(Words words, size_t count, absl::string_view usage) {
  if (words.size() == count) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("takes ", usage, ", and is given ", words.size(), " words"));
}

absl::StatusOr<int> IntegerWord(Words words, size_t number, int low, int high) {
  int value;
  if (absl::SimpleAtoi(words[number], &value) && value >= low && value <= high) return value;
  return WordError(words, number, absl::StrCat("a number of ", low, "..", high));
}

// -1 is the last axis, as in Python.
absl::StatusOr<int> AxisWord(Words words, size_t number, int rank) {
  NESTOR_ASSIGN_OR_RETURN(const int axis, IntegerWord(words, number, -rank, rank - 1));
  return axis < 0 ? axis + rank : axis;
}

// ("i", 8) -> "i8_", as i8 is a type
std::string Numbered(absl::string_view prefix, int number) {
  const std::string name = absl::StrCat(prefix, number);
  return IsReserved(name) ? name + "_" : name;
}

// ("N", 3) -> {"N0", "N1", "N2"}
std::vector<std::string> Names(absl::string_view prefix, int count) {
  std::vector<std::string> names;
  for (int i = 0; i < count; ++i) names.push_back(Numbered(prefix, i));
  return names;
}

std::string List(const std::vector<std::string>& names) { return absl::StrJoin(names, ", "); }

}  // namespace nestor
