// The law is inclusion: the judge's bounds of an element must lie in the oracle's enclosure of it.
#include "check/bounds/fast_judge_testing.h"

#include <cmath>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "interp/reference.h"
#include "loop_ir/lower.h"

namespace nestor {
namespace {

bool IsKnown(double low, double high) {
  const bool ordered = low < high || (low == high && std::signbit(low) >= std::signbit(high));
  return std::isfinite(low) && std::isfinite(high) && ordered;
}

std::string OutsideText(const ReferenceTensor& want, const Tensor& low, const Tensor& high,
                        BoundCounts& counts) {
  for (size_t i = 0; i < want.elements.size(); ++i) {
    const double l = low.values<double>()[i], h = high.values<double>()[i];
    ++counts.elements;
    if (!IsKnown(l, h)) continue;
    ++counts.known;
    counts.wide += l < h;
    for (const double end : {l, h}) {
      const Scalar value = Scalar::Float(want.type, end);
      if (value.ToDouble() == end && Encloses(want.elements[i], value)) continue;
      return absl::StrCat("at ", i, ": [", LiteralText(Scalar::Float(DType::kF64, l)), ", ",
                          LiteralText(Scalar::Float(DType::kF64, h)), "] is not within ",
                          ToString(want.elements[i]));
    }
  }
  return "";
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const BoundCounts& counts) {
  return out << counts.runs << " runs, " << counts.refused << " refused, of " << counts.elements
             << " elements " << counts.known << " known, " << counts.wide
             << " as more than one value";
}

std::string BoundsViolation(const Op& op, const RunInputs& inputs, FastJudge& judge,
                            BoundCounts& counts) {
  InterpreterOptions options;
  options.max_steps = 10000000;
  const auto want = InterpretReference(Lower(op), inputs, options);
  const auto bounds = judge.Bounds(inputs);
  ++counts.runs;
  if (!want.ok() || !bounds.ok()) {
    ++counts.refused;
    // The oracle refuses an index that a set does not decide.
    const bool undecided = !want.ok() && absl::StrContains(want.status().message(), "undecided");
    if (want.ok() == bounds.ok() || undecided) return "";
    return absl::StrCat("the oracle: ", want.status().ToString(),
                        ", the judge: ", bounds.status().ToString());
  }
  for (size_t i = 0; i < want->size(); ++i) {
    const std::string text =
        OutsideText((*want)[i], (*bounds)[2 * i], (*bounds)[2 * i + 1], counts);
    if (!text.empty()) return absl::StrCat("result ", op.results[i].name, " ", text);
  }
  return "";
}

}  // namespace nestor
