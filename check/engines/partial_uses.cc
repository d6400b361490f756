// The range of each index is written, as an access under a condition does not give it one.
#include "check/engines/partial_uses.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"

namespace nestor {
namespace {

std::string Access(absl::string_view name, const std::vector<std::string>& place,
                   absl::string_view tail = "") {
  return absl::StrCat(name, "[", absl::StrJoin(place, ", "), tail, "]");
}

class PartialUse {
 public:
  PartialUse(Random& random, DType type, const DefinedValue& value)
      : random_(random), type_(type), value_(value), left_(value.indices) {}

  std::string Run(const std::string& name) {
    const std::string expression = Expression();
    const std::string defined = left_.empty() ? name : Access(name, left_);
    return absl::StrCat(defined, " = ", expression, " where ", Ranges());
  }

 private:
  std::string Ranges() const {
    std::vector<std::string> ranges;
    for (size_t axis = 0; axis < value_.indices.size(); ++axis)
      ranges.push_back(absl::StrCat(value_.indices[axis], " < ", value_.extents[axis]));
    return absl::StrJoin(ranges, ", ");
  }

  size_t Axis() {
    return static_cast<size_t>(random_.Below(static_cast<int64_t>(value_.indices.size())));
  }

  // " if j % 2 == 1", with a fill now and then.
  std::string Mask() {
    const size_t axis = Axis();
    const std::string& a = value_.indices[axis];
    const std::string& b = value_.indices[Axis()];
    const std::string fill = random_.Chance(25) ? Literal(" | 1") : "";
    switch (random_.Below(5)) {
      case 0: return absl::StrCat(fill, " if ", a, " % 2 == 1");
      case 1: return absl::StrCat(fill, " if (", a, " + ", b, ") % 2 == 1");
      case 2: return absl::StrCat(fill, " if ", a, " <= ", b);
      case 3: return absl::StrCat(fill, " if ", a, " < 3");
      default: return absl::StrCat(fill, " if ", a, " + 1 < ", value_.extents[axis]);
    }
  }

  // An integer, as a literal of the type.
  std::string Literal(absl::string_view integer) const {
    return absl::StrCat(integer, IsFloat(type_) ? ".0" : "");
  }

  std::string Whole() const { return Access(value_.name, value_.indices); }
  std::string Part() { return Access(value_.name, value_.indices, Mask()); }

  std::string Shifted() {
    std::vector<std::string> place = value_.indices;
    absl::StrAppend(&place[Axis()], random_.Chance(50) ? " - 1" : " + 1");
    return Access(value_.name, place);
  }

  // Over one axis, which the statement then lacks.
  std::string Reduced(absl::string_view op, const std::string& body) {
    const size_t axis = Axis();
    left_.erase(left_.begin() + static_cast<std::ptrdiff_t>(axis));
    return absl::StrCat(op, "[", value_.indices[axis], "](", body, ")");
  }

  std::string Expression() {
    switch (random_.Below(10)) {
      case 0:
      case 1: return Part();
      case 2:
        return absl::StrCat("where(", Whole(), " > ", Literal("0"), ", ", Literal("1"), ", ",
                            Literal("0"), ")");
      case 3: std::reverse(left_.begin(), left_.end()); return Whole();
      case 4: return Reduced("sum", Part());
      case 5: return Reduced(random_.Chance(50) ? "max" : "argmax", Whole());
      case 6: return absl::StrCat(Whole(), random_.Chance(50) ? " - " : " * ", Part());
      case 7: return absl::StrCat(Whole(), " - ", Shifted());
      case 8: return absl::StrCat("max(", Part(), ", ", Literal("0"), ")");
      default:
        return absl::StrCat("where(", Part(), " <= ", Whole(), ", ", Whole(), ", ", Literal("2"),
                            ")");
    }
  }

  Random& random_;
  const DType type_;
  const DefinedValue& value_;
  std::vector<std::string> left_;  // the axes of the statement
};

}  // namespace

std::string DrawPartialUse(Random& random, DType type, const DefinedValue& value,
                           const std::string& name) {
  return PartialUse(random, type, value).Run(name);
}

}  // namespace nestor
