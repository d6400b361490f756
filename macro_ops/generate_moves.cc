// permute, reshape, concat, stack, split: every element of the result is one of an argument, so
// each is one access whose subscripts are computed from the result's indices. No data is moved that
// a later op does not read: fusion puts the access into its reader.
//
//   permute(1, 0)        y[i1, i0] = x[i0, i1]
//   concat(2, 1, 0)      y[i0] = where(i0 < C0, x0[i0], x1[i0 - (C0)]) where i0 < C0 + C1
//   split(2, 1, 0)       y1[i0] = x[1 * (N0 / 2) + i0] where i0 < N0 / 2
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "macro_ops/generator_words.h"
#include "uops/invariant.h"

namespace nestor {
namespace {

// How many tensors, of what rank, along which axis.
struct Pieces {
  int count, rank, axis;
};

absl::StatusOr<Pieces> ReadPieces(Words words, bool axis_is_new) {
  NESTOR_RETURN_IF_ERROR(ExpectWords(words, 3, "a count, a rank and an axis"));
  Pieces pieces;
  NESTOR_ASSIGN_OR_RETURN(pieces.count, IntegerWord(words, 0, 1, kMostGenerated));
  NESTOR_ASSIGN_OR_RETURN(pieces.rank, IntegerWord(words, 1, axis_is_new ? 0 : 1, kMostGenerated));
  NESTOR_ASSIGN_OR_RETURN(pieces.axis, AxisWord(words, 2, pieces.rank + axis_is_new));
  return pieces;
}

std::vector<std::string> With(std::vector<std::string> names, int axis, const std::string& name) {
  names[axis] = name;
  return names;
}

std::vector<std::string> Without(std::vector<std::string> names, int axis) {
  names.erase(names.begin() + axis);
  return names;
}

// "x0: T[..]" for each piece, with the dimensions that `dims` gives.
template <typename Dims>
std::string Arguments(int count, const Dims& dims) {
  std::vector<std::string> arguments;
  for (int k = 0; k < count; ++k)
    arguments.push_back(absl::StrCat("x", k, ": T[", List(dims(k)), "]"));
  return List(arguments);
}

// The value of the first piece k for which `is_in_front(k)` holds; of the last piece if there
// is none.
// 3 pieces: where(f(0), v(0), where(f(1), v(1), v(2)))
template <typename IsInFront, typename Value>
std::string FirstOf(int count, const IsInFront& is_in_front, const Value& value) {
  std::string text;
  for (int k = 0; k + 1 < count; ++k)
    absl::StrAppend(&text, "where(", is_in_front(k), ", ", value(k), ", ");
  return absl::StrCat(text, value(count - 1), std::string(count - 1, ')'));
}

// "C0 + C1 + .." for the pieces before k; 0 if there are none.
std::string Before(int k) { return k == 0 ? "0" : absl::StrJoin(Names("C", k), " + "); }

// The index along an axis of x of the element with that row-major number.
// of [N0, N1, N2]:   axis 0: (n) / (N1*N2)   axis 1: (n) / (N2) % N1   axis 2: (n) % N2
std::string AxisOf(const std::string& number, const std::vector<std::string>& dims, size_t axis) {
  std::string index = absl::StrCat("(", number, ")");
  const std::vector<std::string> inner(dims.begin() + axis + 1, dims.end());
  if (!inner.empty()) absl::StrAppend(&index, " / (", absl::StrJoin(inner, "*"), ")");
  return axis == 0 ? index : absl::StrCat(index, " % ", dims[axis]);
}

}  // namespace

// "2, 0, 1" is op permute(x: T[N0, N1, N2]) -> (y) { y[i2, i0, i1] = x[i0, i1, i2] }.
absl::StatusOr<std::string> GeneratePermute(Words words) {
  if (words.size() > kMostGenerated) return absl::InvalidArgumentError("too many axes");
  const int rank = static_cast<int>(words.size());
  const std::vector<std::string> indices = Names("i", rank);
  std::vector<std::string> permuted;
  std::vector<bool> seen(rank, false);
  for (int k = 0; k < rank; ++k) {
    NESTOR_ASSIGN_OR_RETURN(const int axis, AxisWord(words, k, rank));
    if (seen[axis])
      return absl::InvalidArgumentError(absl::StrCat("axis ", axis, " stands there twice"));
    seen[axis] = true;
    permuted.push_back(indices[axis]);
  }
  return absl::StrCat("op permute(x: T[", List(Names("N", rank)), "]) -> (y) {\n  y[",
                      List(permuted), "] = x[", List(indices), "]\n}\n");
}

// The row-major number of the result's element by Horner's rule, then its places in x by division.
absl::StatusOr<std::string> GenerateReshape(Words words) {
  NESTOR_RETURN_IF_ERROR(ExpectWords(words, 2, "two ranks"));
  NESTOR_ASSIGN_OR_RETURN(const int from, IntegerWord(words, 0, 1, kMostGenerated));
  NESTOR_ASSIGN_OR_RETURN(const int to, IntegerWord(words, 1, 1, kMostGenerated));
  const std::vector<std::string> dims = Names("N", from), indices = Names("i", to),
                                 sizes = Names("$n", to);
  std::string number = "i0";
  std::vector<std::string> place, ranges, params;
  for (int k = 1; k < to; ++k)
    number =
        absl::StrCat(k == 1 ? number : absl::StrCat("(", number, ")"), "*$n", k, " + ", indices[k]);
  for (int axis = 0; axis < from; ++axis) place.push_back(AxisOf(number, dims, axis));
  for (int k = 0; k < to; ++k) {
    ranges.push_back(absl::StrCat(indices[k], " < ", sizes[k]));
    params.push_back(absl::StrCat(sizes[k], " in [0, inf]"));
  }
  return absl::StrCat("op reshape(x: T[", List(dims), "]; ", List(params), ") -> (y) {\n  y[",
                      List(indices), "] = x[", List(place), "]\n    where ", List(ranges), "\n}\n");
}

// A piece is read at its own place, which is outside of it, and so 0, wherever another one is
// chosen.
absl::StatusOr<std::string> GenerateConcat(Words words) {
  NESTOR_ASSIGN_OR_RETURN(const Pieces pieces, ReadPieces(words, false));
  const std::vector<std::string> dims = Names("N", pieces.rank), indices = Names("i", pieces.rank);
  const std::string& along = indices[pieces.axis];
  const auto value = [&](int k) {
    const std::string place = k == 0 ? along : absl::StrCat(along, " - (", Before(k), ")");
    return absl::StrCat("x", k, "[", List(With(indices, pieces.axis, place)), "]");
  };
  const auto is_in_front = [&](int k) { return absl::StrCat(along, " < ", Before(k + 1)); };
  const auto dims_of = [&](int k) { return With(dims, pieces.axis, absl::StrCat("C", k)); };
  return absl::StrCat("op concat(", Arguments(pieces.count, dims_of), ") -> (y) {\n  y[",
                      List(indices), "] = ", FirstOf(pieces.count, is_in_front, value),
                      "\n    where ", along, " < ", Before(pieces.count), "\n}\n");
}

// Two pieces along axis 0: y[i0, i1] = where(i0 == 0, x0[i1], x1[i1]) where i0 < 2.
absl::StatusOr<std::string> GenerateStack(Words words) {
  NESTOR_ASSIGN_OR_RETURN(const Pieces pieces, ReadPieces(words, true));
  const std::vector<std::string> indices = Names("i", pieces.rank + 1),
                                 inner = Without(indices, pieces.axis);
  const std::string& along = indices[pieces.axis];
  const std::string place = inner.empty() ? "" : absl::StrCat("[", List(inner), "]");
  const auto value = [&](int k) { return absl::StrCat("x", k, place); };
  const auto is_in_front = [&](int k) { return absl::StrCat(along, " == ", k); };
  const auto dims_of = [&](int) { return Names("N", pieces.rank); };
  return absl::StrCat("op stack(", Arguments(pieces.count, dims_of), ") -> (y) {\n  y[",
                      List(indices), "] = ", FirstOf(pieces.count, is_in_front, value),
                      "\n    where ", along, " < ", pieces.count, "\n}\n");
}

// In equal parts; elements after the last whole part are left out.
absl::StatusOr<std::string> GenerateSplit(Words words) {
  NESTOR_ASSIGN_OR_RETURN(const Pieces pieces, ReadPieces(words, false));
  const std::vector<std::string> dims = Names("N", pieces.rank), indices = Names("i", pieces.rank);
  const std::string length = absl::StrCat(dims[pieces.axis], " / ", pieces.count),
                    &along = indices[pieces.axis];
  std::string text = absl::StrCat("op split(x: T[", List(dims), "]) -> (",
                                  List(Names("y", pieces.count)), ") {\n");
  for (int k = 0; k < pieces.count; ++k) {
    const std::string place = k == 0 ? along : absl::StrCat(k, " * (", length, ") + ", along);
    absl::StrAppend(&text, "  y", k, "[", List(indices), "] = x[",
                    List(With(indices, pieces.axis, place)), "] where ", along, " < ", length,
                    "\n");
  }
  return absl::StrCat(text, "}\n");
}

}  // namespace nestor
