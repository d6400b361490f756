// Compares results with their enclosures and reports the one that lies farthest outside: of many
// wrong elements, that one shows the error best. An element that should be finite and is not, or
// the reverse, is the farthest of all.
#include <cmath>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "interp/reference.h"
#include "uops/invariant.h"

namespace nestor {
namespace {

// How far x lies from the middle, in half-widths; infinite where they do not compare.
long double Excess(const Enclosure& e, const Scalar& value) {
  constexpr long double kInfinity = std::numeric_limits<long double>::infinity();
  if (value.IsNaN() || !e.HasFinite() || std::isinf(ToLongDouble(value))) return kInfinity;
  const long double half = (e.high - e.low) / 2;
  return half == 0 ? kInfinity : std::fabs(ToLongDouble(value) - (e.low + half)) / half;
}

std::string ExcessText(long double excess) {
  return std::isinf(excess)
             ? ""
             : absl::StrCat(", ", static_cast<double>(excess), " half-widths from its middle");
}

}  // namespace

// Reports the element that is farthest outside, not the first: it tells best what is wrong.
absl::Status CheckEnclosed(const ReferenceTensor& want, const TensorView& got) {
  if (got.type != want.type || got.shape != want.shape) {
    return absl::InvalidArgumentError(absl::StrCat(Name(got.type), ShapeText(got.shape), ", want ",
                                                   Name(want.type), ShapeText(want.shape)));
  }
  std::string worst;
  long double worst_excess = -1;
  Dims index(want.shape.size(), 0);
  for (const Enclosure& e : want.elements) {
    const Scalar value = At(got, index);
    const long double excess = Encloses(e, value) ? -1 : Excess(e, value);
    if (excess > worst_excess) {
      worst_excess = excess;
      worst = absl::StrCat("at [", absl::StrJoin(index, ", "), "]: ", LiteralText(value),
                           " is not in ", ToString(e), ExcessText(excess), NonFiniteText(e, value));
    }
    NextIndex(want.shape, absl::MakeSpan(index));
  }
  return worst.empty() ? absl::OkStatus() : absl::InvalidArgumentError(worst);
}

}  // namespace nestor
