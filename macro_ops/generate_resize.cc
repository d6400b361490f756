// resize: one axis after the other. Output i of $n is at the place num / den among the C
// elements of its axis; both are integers, and so the nearest element and the share of the next
// one are exact.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/substitute.h"
#include "macro_ops/generator_words.h"
#include "uops/invariant.h"

namespace nestor {
namespace {

// The place of output $0 of $1 among $2.
struct Fraction {
  const char* name;
  const char* numerator;
  const char* denominator;
};
// The names and formulas are those of ONNX Resize, times the denominator so that all is in
// integers. For example half_pixel: (i + 0.5) * C / n - 0.5 = ((2i + 1) C - n) / (2n).
constexpr Fraction kCoordinates[] = {
    {"half_pixel", "((2*$0 + 1)*$2 - $1)", "(2*$1)"},
    // The same, but 0 where $1 is 1.
    {"pytorch_half_pixel", "((2*$0 + 1)*$2 - $1) * min($1 - 1, 1)", "(2*$1)"},
    {"align_corners", "($0*($2 - 1))", "max($1 - 1, 1)"},
    {"asymmetric", "($0*$2)", "$1"},
    {"tf_half_pixel_for_nn", "((2*$0 + 1)*$2)", "(2*$1)"},
};

// The element taken for $0 / $1.
struct Rounding {
  const char* name;
  const char* index;
};
constexpr Rounding kRoundings[] = {
    // Floor divisions, which round towards minus infinity, also where a place lies before the first
    // element.
    {"round_prefer_floor", "(2*$0 + $1 - 1) / (2*$1)"},
    {"round_prefer_ceil", "(2*$0 + $1) / (2*$1)"},
    {"floor", "$0 / $1"},
    {"ceil", "($0 + $1 - 1) / $1"},
};

// The row of a table that a word names.
template <typename Row, size_t n>
absl::StatusOr<const Row*> Choice(const Row (&rows)[n], const std::string& word) {
  std::vector<std::string> names;
  for (const Row& row : rows) {
    if (row.name == word) return &row;
    names.push_back(row.name);
  }
  return absl::InvalidArgumentError(absl::StrCat("'", word, "' is none of ", List(names)));
}

class Resizer {
 public:
  Resizer(std::string mode, const Fraction& fraction, const Rounding& rounding, int axes)
      : mode_(std::move(mode)), fraction_(fraction), rounding_(rounding), axes_(axes) {}

  std::string Text() const {
    std::string text = absl::StrCat("op resize(x: T[..N, ", List(Names("C", axes_)), "]; ",
                                    absl::StrJoin(Names("$n", axes_), " in [1, inf], "),
                                    " in [1, inf]) -> (y) {\n");
    for (int axis = 0; axis < axes_; ++axis)
      absl::StrAppend(&text, mode_ == "nearest" ? Nearest(axis) : Weighted(axis));
    return absl::StrCat(text, "}\n");
  }

 private:
  // The statement for an axis: `value` is the value at each place.
  std::string Step(int axis, const std::string& value) const {
    const std::string to = axis + 1 == axes_ ? "y" : absl::StrCat("x", axis + 1);
    return absl::StrCat("  ", to, "[..n, ", List(Names("i", axes_)), "] = ", value, "\n    where ",
                        Numbered("i", axis), " < $n", axis, "\n");
  }

  // The element `index` of the axis, or the one at the edge if it is outside.
  std::string Element(int axis, const std::string& index) const {
    std::vector<std::string> place = Names("i", axes_);
    place[axis] = absl::StrCat("min(max(", index, ", 0), C", axis, " - 1)");
    return absl::StrCat(axis == 0 ? "x" : absl::StrCat("x", axis), "[..n, ", List(place), "]");
  }

  std::string Filled(const char* pattern, int axis) const {
    return absl::Substitute(pattern, Numbered("i", axis), absl::StrCat("$n", axis),
                            absl::StrCat("C", axis));
  }
  std::string Numerator(int axis) const { return Filled(fraction_.numerator, axis); }
  std::string Denominator(int axis) const { return Filled(fraction_.denominator, axis); }

  std::string Nearest(int axis) const {
    return Step(
        axis, Element(axis, absl::Substitute(rounding_.index, Numerator(axis), Denominator(axis))));
  }

  // The sum over taps; w is the weight of each, by its distance d.
  std::string Weighted(int axis) const {
    const bool cubic = mode_ == "cubic";
    const int before = cubic ? 1 : 0;
    const std::string i = Numbered("i", axis), d = absl::StrCat("d", axis, "[", i, ", k]");
    // Keys' cubic convolution (1981) with a = -0.75: one polynomial up to a distance of 1, one up
    // to 2.
    const std::string weight =
        cubic ? absl::Substitute("where($0 <= 1, (1.25*$0 - 2.25)*square($0) + 1, "
                                 "((-0.75*$0 + 3.75)*$0 - 6)*$0 + 3)",
                                 d)
              : absl::StrCat("1 - ", d);
    const std::string floor = absl::StrCat(Numerator(axis), " / ", Denominator(axis));
    return absl::StrCat(
        "  ", d, " = abs(k - ", before, " - T(", Numerator(axis), " % ", Denominator(axis), ") / ",
        Denominator(axis), ") where ", i, " < $n", axis, ", k < ", cubic ? 4 : 2, "\n  w", axis,
        "[", i, ", k] = ", weight, "\n",
        Step(axis, absl::StrCat("sum[k](w", axis, "[", i, ", k] * ",
                                Element(axis, absl::StrCat(floor, " + k - ", before)), ")")));
  }

  const std::string mode_;
  const Fraction& fraction_;
  const Rounding& rounding_;
  const int axes_;
};

}  // namespace

// Only nearest takes a fourth word, as it alone rounds to an element.
absl::StatusOr<std::string> GenerateResize(Words words) {
  if (words.size() != 3 && words.size() != 4)
    return ExpectWords(words, 3, "a mode, coordinates, a number of axes and perhaps a rounding");
  const std::string& mode = words[0];
  if (mode != "nearest" && mode != "linear" && mode != "cubic") {
    return absl::InvalidArgumentError(
        absl::StrCat("'", mode, "' is none of nearest, linear, cubic"));
  }
  if (words.size() == 4 && mode != "nearest")
    return absl::InvalidArgumentError(absl::StrCat(mode, " rounds nothing"));
  NESTOR_ASSIGN_OR_RETURN(const Fraction* const fraction, Choice(kCoordinates, words[1]));
  NESTOR_ASSIGN_OR_RETURN(const int axes, IntegerWord(words, 2, 1, kMostGenerated));
  NESTOR_ASSIGN_OR_RETURN(const Rounding* const rounding,
                          Choice(kRoundings, words.size() == 4 ? words[3] : "round_prefer_floor"));
  return Resizer(mode, *fraction, *rounding, axes).Text();
}

}  // namespace nestor
