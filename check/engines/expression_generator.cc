// Random expressions that fusion and schedules have something to do with: values are read again, so
// that nests can be merged; in any order of axes, so that loops must be turned; at a fixed place or
// under a condition, so that not every nest fits. Most operations are bounded (exp of what is
// negative, quotients by at least 1), because an inf or a NaN in one element would hide faults in
// all that is computed from it.
#include "check/engines/expression_generator.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace nestor {

std::string ExpressionGenerator::NewArgument(absl::string_view type, const std::string& shape) {
  const std::string name = absl::StrCat("x", arguments_.size());
  arguments_.push_back(absl::StrCat(name, ": ", type, "[", shape, "]"));
  return name;
}

// A value over just these axes, in any order.
ExpressionGenerator::Value ExpressionGenerator::ValueOver(Axes axes, bool fresh) {
  std::vector<Value> fitting;
  for (const Value& value : values_) {
    if (std::is_permutation(value.axes.begin(), value.axes.end(), axes.begin(), axes.end()))
      fitting.push_back(value);
  }
  if (!fresh && !fitting.empty() && random_.Chance(60)) return random_.Pick(fitting);
  random_.Shuffle(axes);
  if (has_pack_ && random_.Chance(50)) axes.insert(axes.begin(), kPack);
  Value made{NewArgument(Name(type_), Dimensions(axes)), axes};
  // Later accesses may read it again; one with a pack has an axis that others lack.
  if (random_.Chance(50) && std::find(axes.begin(), axes.end(), kPack) == axes.end())
    values_.push_back(made);
  return made;
}

std::string ExpressionGenerator::Access(const Axes& axes, bool fresh) {
  const Value value = ValueOver(axes, fresh);
  if (value.axes.empty()) return value.name;
  if (value.axes[0] == kPack) mentions_pack_ = true;
  // One after the other, so that what is drawn does not depend on the compiler.
  const std::string condition = Condition(value.axes);
  return absl::StrCat(value.name, "[", absl::StrJoin(Place(value.axes), ", "), condition, "]");
}

// The indices; now and then one is replaced by the first or last of its axis, which does not move
// with a loop and exists only where the loop has an iteration.
std::vector<std::string> ExpressionGenerator::Place(const Axes& axes) {
  std::vector<std::string> place = Indices(axes);
  const auto fixed = static_cast<size_t>(random_.Below(static_cast<int64_t>(axes.size())));
  if (axes[fixed] == kPack || !random_.Chance(14)) return place;
  place[fixed] = random_.Chance(60) ? "0" : absl::StrCat(kAxes[axes[fixed]].dimension, " - 1");
  return place;
}

// Now and then a condition for a triangle, a band or a border.
std::string ExpressionGenerator::Condition(const Axes& axes) {
  if (axes.empty() || axes.back() == kPack || !random_.Chance(12)) return "";
  const char* const index = kAxes[axes.back()].index;
  const char* const other = kAxes[axes.front() == kPack ? axes.back() : axes.front()].index;
  switch (random_.Below(4)) {
    case 0: return absl::StrCat(" if ", index, " <= ", other);
    case 1: return absl::StrCat(" if ", index, " + 2 > ", other, ", ", index, " < ", other, " + 3");
    case 2: return absl::StrCat(" if ", index, " % 2 == 0");
    default: return absl::StrCat(" if ", index, " < ", kAxes[axes.back()].dimension, " - 1");
  }
}

std::string ExpressionGenerator::Literal() {
  if (!IsFloat(type_)) return absl::StrCat(random_.Between(IsUnsigned(type_) ? 0 : -2, 3));
  return random_.Pick({std::string("0.5"), std::string("2.0"), std::string("-1.25"),
                       std::string("0.1"), std::string("3.0"), std::string("0.0"),
                       std::string("-0.0")});
}

std::string ExpressionGenerator::Leaf(const Axes& axes) {
  const int kind = static_cast<int>(random_.Below(10));
  if (kind == 0) return absl::StrCat(Name(type_), "(", Literal(), ")");
  if (kind == 1 && !axes.empty())
    return absl::StrCat(Name(type_), "(", kAxes[random_.Pick(axes)].index, ")");
  return Access(kind < 7 ? axes : Subset(random_, axes, 60));
}

std::string ExpressionGenerator::Expression(const Axes& axes, int depth) {
  if (depth == 0 || random_.Chance(25)) return Leaf(axes);
  if (IsFloat(type_) && random_.Chance(35)) return Unary(Expression(axes, depth - 1));
  const std::string a = Expression(axes, depth - 1);
  const std::string b = Expression(axes, depth - 1);
  switch (random_.Below(8)) {
    case 0: return absl::StrCat("(", a, " - ", b, ")");
    case 1: return absl::StrCat("max(", a, ", ", b, ")");
    case 2: return absl::StrCat("min(", a, ", ", b, ")");
    case 3: return absl::StrCat("where(", a, " < ", b, ", ", Leaf(axes), ", ", b, ")");
    case 4: return Quotient(a, b);
    case 5: return absl::StrCat("(", a, " + ", b, ")");
    default: return absl::StrCat("(", a, " * ", b, ")");
  }
}

std::string ExpressionGenerator::Quotient(const std::string& a, const std::string& b) {
  if (IsFloat(type_)) return absl::StrCat("(", a, " / (abs(", b, ") + 1.0))");
  return absl::StrCat(random_.Chance(50) ? "floordiv(" : "mod(", a, ", ", b, ")");
}

// Arguments are bent so that the function is defined and stays moderate: exp(-abs(a)), sqrt of a
// positive number.
std::string ExpressionGenerator::Unary(const std::string& a) {
  switch (random_.Below(8)) {
    case 0: return absl::StrCat("exp(-abs(", a, "))");
    case 1: return absl::StrCat("relu(", a, ")");
    case 2: return absl::StrCat("tanh(", a, ")");
    case 3: return absl::StrCat("sqrt(abs(", a, ") + 0.5)");
    case 4: return absl::StrCat("sigmoid(", a, ")");
    case 5: return absl::StrCat("abs(", a, ")");
    case 6: return absl::StrCat("square(", a, ")");
    default: return absl::StrCat("(-", a, ")");
  }
}

}  // namespace nestor
