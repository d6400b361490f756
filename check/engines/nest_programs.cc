// Statements are drawn over four dimensions, each with one index; an operand is an earlier
// value with just those dimensions, or a new argument, with its axes in any order.
#include "check/engines/nest_programs.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "check/engines/program_generator.h"

namespace nestor {
namespace {

// An axis: its dimension, and the index that runs over it.
struct Axis {
  const char* dimension;
  const char* index;
};
constexpr Axis kAxes[] = {{"M", "i"}, {"N", "j"}, {"K", "k"}, {"L", "l"}, {"..B", "..b"}};
constexpr int kPack = 4;

using Axes = std::vector<int>;  // of kAxes

class Writer {
 public:
  Writer(Random& random, DType type) : random_(random), type_(type), has_pack_(random.Chance(15)) {}

  std::string Run() {
    const int statements = random_.Pick({1, 1, 1, 2, 2, 3, 4});
    for (int i = 0; i < statements; ++i) AddStatement();
    ChooseResults();
    if (arguments_.empty()) Access({0}, /*fresh=*/true);  // a dimension is one of some argument
    return absl::StrCat("op drawn(", absl::StrJoin(arguments_, ", "),
                        params_.empty() ? "" : absl::StrCat("; ", absl::StrJoin(params_, ", ")), ") -> (",
                        absl::StrJoin(results_, ", "), ") {\n  ", absl::StrJoin(statements_, "\n  "), "\n}\n");
  }

 private:
  struct Value {
    std::string name;
    Axes axes;
  };

  // ---- Axes

  Axes Drawn(int count) {
    Axes all = {0, 1, 2, 3};
    random_.Shuffle(all);
    all.resize(static_cast<size_t>(count));
    return all;
  }
  Axes Subset(const Axes& axes, int percent) {
    Axes subset;
    for (int axis : axes) {
      if (random_.Chance(percent)) subset.push_back(axis);
    }
    return subset;
  }
  static Axes Union(Axes a, const Axes& b) {
    for (int axis : b) {
      if (std::find(a.begin(), a.end(), axis) == a.end()) a.push_back(axis);
    }
    return a;
  }
  static std::vector<std::string> Indices(const Axes& axes) {
    std::vector<std::string> names;
    for (int axis : axes) names.emplace_back(kAxes[axis].index);
    return names;
  }
  static std::string Dimensions(const Axes& axes) {
    std::vector<std::string> names;
    for (int axis : axes) names.emplace_back(kAxes[axis].dimension);
    return absl::StrJoin(names, ", ");
  }

  // ---- Operands

  bool IsFloat() const { return nestor::IsFloat(type_); }
  bool Is16Bit() const { return type_ == DType::kF16 || type_ == DType::kBF16; }

  std::string NewArgument(absl::string_view type, const std::string& shape) {
    const std::string name = absl::StrCat("x", arguments_.size());
    arguments_.push_back(absl::StrCat(name, ": ", type, "[", shape, "]"));
    return name;
  }

  // A value over just these axes, in any order.
  Value ValueOver(Axes axes, bool fresh = false) {
    std::vector<Value> fitting;
    for (const Value& value : values_) {
      if (std::is_permutation(value.axes.begin(), value.axes.end(), axes.begin(), axes.end())) fitting.push_back(value);
    }
    if (!fresh && !fitting.empty() && random_.Chance(60)) return random_.Pick(fitting);
    random_.Shuffle(axes);
    if (has_pack_ && random_.Chance(50)) axes.insert(axes.begin(), kPack);
    Value made{NewArgument(Name(type_), Dimensions(axes)), axes};
    if (random_.Chance(50) && std::find(axes.begin(), axes.end(), kPack) == axes.end()) values_.push_back(made);
    return made;
  }

  std::string Access(const Axes& axes, bool fresh = false) {
    const Value value = ValueOver(axes, fresh);
    if (value.axes.empty()) return value.name;
    if (value.axes[0] == kPack) needs_pack_ = true;
    return absl::StrCat(value.name, "[", absl::StrJoin(Place(value.axes), ", "), Condition(value.axes), "]");
  }

  // The indices, but for one now and then that is the first or last of its axis: what does not
  // move with a loop, and exists only where that has an iteration.
  std::vector<std::string> Place(const Axes& axes) {
    std::vector<std::string> place = Indices(axes);
    const auto fixed = static_cast<size_t>(random_.Below(static_cast<int64_t>(axes.size())));
    if (axes[fixed] == kPack || !random_.Chance(14)) return place;
    place[fixed] = random_.Chance(60) ? "0" : absl::StrCat(kAxes[axes[fixed]].dimension, " - 1");
    return place;
  }

  // A triangle, a band or a border now and then.
  std::string Condition(const Axes& axes) {
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

  std::string Literal() {
    if (!IsFloat()) return absl::StrCat(random_.Between(IsUnsigned(type_) ? 0 : -2, 3));
    return random_.Pick({std::string("0.5"), std::string("2.0"), std::string("-1.25"), std::string("0.1"),
                         std::string("3.0"), std::string("0.0"), std::string("-0.0")});
  }

  std::string Leaf(const Axes& axes) {
    const int kind = static_cast<int>(random_.Below(10));
    if (kind == 0) return absl::StrCat(Name(type_), "(", Literal(), ")");
    if (kind == 1 && !axes.empty()) return absl::StrCat(Name(type_), "(", kAxes[random_.Pick(axes)].index, ")");
    return Access(kind < 7 ? axes : Subset(axes, 60));
  }

  // A scalar expression over at most these axes.
  std::string Expression(const Axes& axes, int depth) {
    if (depth == 0 || random_.Chance(25)) return Leaf(axes);
    if (IsFloat() && random_.Chance(35)) return Unary(Expression(axes, depth - 1));
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

  std::string Quotient(const std::string& a, const std::string& b) {
    if (IsFloat()) return absl::StrCat("(", a, " / (abs(", b, ") + 1.0))");
    return absl::StrCat(random_.Chance(50) ? "floordiv(" : "mod(", a, ", ", b, ")");
  }

  std::string Unary(const std::string& a) {
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

  // ---- Statements

  // Names what a statement over `axes` defines, a pack that it mentions in front.
  std::string Define(const Axes& axes, const std::string& expression) {
    const std::string name = absl::StrCat("t", statements_.size());
    Axes left = axes;
    if (needs_pack_) left.insert(left.begin(), kPack);
    const std::string indices = left.empty() ? "" : absl::StrCat("[", absl::StrJoin(Indices(left), ", "), "]");
    statements_.push_back(absl::StrCat(name, indices, " = ", expression, Ranges(axes)));
    if (!needs_pack_) values_.push_back({name, axes});
    names_.push_back(name);
    needs_pack_ = false;
    return name;
  }

  // Ranges that accesses would say as well, or none would.
  std::string Ranges(const Axes& axes) {
    if (axes.empty() || !random_.Chance(30)) return "";
    std::vector<std::string> ranges;
    for (int axis : axes) ranges.push_back(absl::StrCat(kAxes[axis].index, " < ", kAxes[axis].dimension));
    return absl::StrCat(" where ", absl::StrJoin(ranges, ", "));
  }

  void AddStatement() {
    switch (random_.Below(16)) {
      case 0: case 1: case 2: return AddProduct();
      case 3: return AddWindow();
      case 4: case 5: return AddRows();
      case 6: return AddShift();
      case 7: return AddScatter();
      case 8: return AddGather();
      case 9: return AddManyOperands();
      case 10: case 12: return AddColumns();
      case 11: return AddTwins();
      case 13: case 14: return AddScan();
      default: return AddMap();
    }
  }

  void AddMap() {
    const Axes axes = Drawn(random_.Pick({1, 2, 2, 3}));
    Define(axes, Expression(axes, 3));
  }

  // Expressions of the same operands that differ in one constant, or in nothing.
  void AddTwins() {
    const Axes axes = Drawn(random_.Pick({1, 2}));
    const std::string a = Access(axes), b = Access(axes);
    const std::vector<std::string> constants =
        IsFloat() ? std::vector<std::string>{"0.0", "-0.0", "1.0", b} : std::vector<std::string>{"0", "1", "-1", b};
    const std::string op = random_.Pick({std::string("max"), std::string("min"), std::string("max"),
                                         IsFloat() ? std::string("pow") : std::string("min")});
    const int count = static_cast<int>(random_.Between(2, 3));
    const bool in_one = needs_pack_ || random_.Chance(30);
    const bool zeros = random_.Chance(50);  // of both signs
    std::string sum = b;
    for (int i = 0; i < count; ++i) {
      const std::string constant = zeros ? constants[static_cast<size_t>(i % 2)] : random_.Pick(constants);
      const std::string twin = absl::StrCat(op, "(", a, ", ", constant, ")");
      if (in_one) absl::StrAppend(&sum, " - ", twin);
      else wanted_.push_back(Define(axes, twin));
    }
    if (in_one) Define(axes, sum);
  }

  std::string SumOp() {
    return random_.Pick({std::string("sum"), std::string("sum"), std::string("sum"), std::string("sum"),
                         std::string("max"), std::string("min"), std::string("prod")});
  }

  // c[i, j] = sum[k](a[i, k] * b[k, j]) and its like, with what may come before and after.
  void AddProduct() {
    const Axes all = Drawn(4);
    const Axes rows = {all[0]}, columns = {all[1]};
    Axes sums = {all[2]};
    Axes batch;
    if (random_.Chance(25)) batch.push_back(all[3]);
    else if (random_.Chance(30)) sums.push_back(all[3]);
    const std::string a = Factor(Union(Union(rows, sums), Subset(batch, 80)));
    const std::string b = Factor(Union(Union(columns, sums), Subset(batch, 80)));
    const std::string combined = random_.Chance(70)   ? absl::StrCat(a, " * ", b)
                                 : random_.Chance(50) ? absl::StrCat("mulz(", a, ", ", b, ")")
                                                      : absl::StrCat("abs(", a, " - ", b, ")");
    const std::string third = random_.Chance(10) ? absl::StrCat(" * ", Access(sums)) : "";
    Axes left = Union(Union(batch, rows), columns);
    if (random_.Chance(20)) random_.Shuffle(left);
    const std::string total =
        absl::StrCat(SumOp(), "[", absl::StrJoin(Indices(sums), ", "), "](", combined, third, ")");
    Define(left,
           random_.Chance(40) ? absl::StrCat(total, random_.Chance(50) ? " + " : " * ", Expression(left, 1)) : total);
  }

  std::string Factor(const Axes& axes) { return random_.Chance(20) ? Expression(axes, 1) : Access(axes); }

  // A convolution of one or two axes, or a pooling.
  void AddWindow() {
    const bool pools = random_.Chance(25), strided = random_.Chance(60), padded = random_.Chance(60);
    if (params_.empty()) params_ = {"$s = 1 in [1, 3]", "$p = 1 in [0, 2]"};
    const std::string stride = strided ? "$s" : "1", pad = padded ? "$p" : "0";
    const std::string place = absl::StrCat(strided ? "$s*i" : "i", " + r", padded ? " - $p" : "");
    const std::string x = NewArgument(Name(type_), "K, M"), w = pools ? "" : NewArgument(Name(type_), "N, K, R");
    const std::string extent = absl::StrCat("(M + 2*", pad, " - ", pools ? "2" : "R", ") / ", stride, " + 1");
    const std::string name = absl::StrCat("t", statements_.size());
    if (pools) {
      statements_.push_back(absl::StrCat(name, "[k, i] = ", random_.Chance(50) ? "max" : "sum", "[r](", x, "[k, ",
                                         place, IsFloat() && random_.Chance(50) ? " | -inf" : "", "]) where i < ",
                                         extent, ", r < 2"));
    } else {
      statements_.push_back(
          absl::StrCat(name, "[j, i] = sum[k, r](", x, "[k, ", place, "] * ", w, "[j, k, r]) where i < ", extent));
    }
    names_.push_back(name);
  }

  // A reduction of each row, and what is made of the row with it.
  void AddRows() {
    const Axes axes = Drawn(random_.Pick({2, 2, 3}));
    const Axes rows(axes.begin(), axes.end() - 1);
    const std::string body = Expression(axes, 2);
    const std::string index = kAxes[axes.back()].index;
    const std::string name = Define(rows, absl::StrCat(SumOp(), "[", index, "](", body, ")"));
    if (!random_.Chance(60) || values_.empty() || values_.back().name != name) return;
    const std::string total = rows.empty() ? name : absl::StrCat(name, "[", absl::StrJoin(Indices(rows), ", "), "]");
    Define(axes, absl::StrCat(Access(axes), random_.Chance(50) ? " - " : " * ", total));
  }

  // What a sum, a product or the like has come to at each step, and what is made of that.
  void AddScan() {
    const Axes axes = Drawn(random_.Pick({1, 1, 2}));
    const std::string a = Access(axes), b = Access(axes);
    if (needs_pack_) { Define(axes, absl::StrCat(a, " - ", b)); return; }
    const std::string name = absl::StrCat("t", statements_.size());
    const std::string steps = kAxes[axes.back()].index;
    const auto at = [&](const std::string& step) {
      std::vector<std::string> place = Indices(axes);
      place.back() = step;
      return absl::StrCat(name, "[", absl::StrJoin(place, ", "), "]");
    };
    const std::string fill = random_.Pick({std::string(""), std::string(" | 1")});
    const std::string last = at(absl::StrCat(steps, random_.Chance(70) ? " - 1" : " + 1", fill));
    const std::vector<std::string> kinds = {
        absl::StrCat(last, " + ", a),         absl::StrCat(a, " * ", b, " + ", last),
        absl::StrCat(last, " - ", a),         absl::StrCat(last, " * ", a),
        absl::StrCat("max(", last, ", ", a, ")"), absl::StrCat("min(", a, ", ", last, ")"),
        absl::StrCat(last, " * ", b, " + ", a)};
    std::string body = absl::StrCat(at(steps), " = ", random_.Pick(kinds));
    names_.push_back(name);
    values_.push_back({name, axes});
    if (random_.Chance(40)) {
      const std::string made = absl::StrCat(name, "_made");
      absl::StrAppend(&body, "; ", made, "[", absl::StrJoin(Indices(axes), ", "), "] = ", at(steps), " * ", b);
      names_.push_back(made);
    }
    statements_.push_back(
        absl::StrCat("for ", steps, " < ", kAxes[axes.back()].dimension, " { ", body, " }"));
  }

  // Sums of the same tensor along both axes, and over all.
  void AddColumns() {
    const Axes axes = Drawn(2);
    const std::string body = Access(axes, /*fresh=*/true);
    if (needs_pack_) { Define(axes, body); return; }
    Define({axes[1]}, absl::StrCat(SumOp(), "[", kAxes[axes[0]].index, "](", body, ")"));
    if (random_.Chance(50)) {
      Define({}, absl::StrCat(SumOp(), "[", Indices(axes)[0], ", ", Indices(axes)[1], "](", body, ")"));
    }
    // The same sum in both orders, which round differently.
    if (random_.Chance(60)) {
      const std::string op = SumOp(), i = Indices(axes)[0], j = Indices(axes)[1];
      Define({}, absl::StrCat(op, "[", i, ", ", j, "](", body, ") * ", IsFloat() ? "0.5" : "2", " - ", op, "[", j, ", ",
                              i, "](", body, ")"));
    }
    if (random_.Chance(40)) {
      Define({axes[0]},
             absl::StrCat(random_.Chance(50) ? "argmax[" : "argmin[", kAxes[axes[1]].index, "](", body, ")")),
          values_.pop_back();
    }
  }

  // Neighbours, repetitions, concatenations and reversals of one tensor.
  void AddShift() {
    const std::string x = NewArgument(Name(type_), "M, N");
    const std::string name = absl::StrCat("t", statements_.size());
    const std::string fill = random_.Chance(50) ? " | 2" : "";
    const std::string float_fill = IsFloat() && !fill.empty() ? " | 2.0" : fill;
    const char* const kPlaces[][2] = {{"i, j - 1", ""},
                                      {"i + 1, j", ""},
                                      {"j, i", ""},
                                      {"i / 2, j", " where i < 2*M"},
                                      {"M - 1 - i, j", ""},
                                      {"i, j % N", " where j < 2*N"},
                                      {"2*i, j", " where i < (M + 1) / 2"},
                                      {"i, j - 3", " where j < N + 5"},
                                      {"(i + j) % M, j", " where i < M"},
                                      {"j, i", " where i < N, j < M"}};
    const auto& place = kPlaces[random_.Below(10)];
    std::string sum = absl::StrCat(x, "[", place[0], float_fill, "]");
    if (random_.Chance(40)) sum = absl::StrCat(sum, random_.Chance(50) ? " + " : " * ", x, "[i, j]");
    const bool needs_range = place[1][0] == '\0';
    const char* const range = needs_range ? " where i < M, j < N" : place[1];
    const bool both = sum.find("[i, j]") != std::string::npos;
    statements_.push_back(
        absl::StrCat(name, "[i, j] = ", sum, range, !needs_range && !both ? OtherRange(place[1]) : ""));
    names_.push_back(name);
  }

  // The range of the index that a `where` leaves open.
  static std::string OtherRange(const std::string& range) {
    std::string more;
    if (range.find("i <") == std::string::npos) more += ", i < M";
    if (range.find("j <") == std::string::npos) more += ", j < N";
    return more;
  }

  void AddScatter() {
    const std::string x = NewArgument(Name(type_), "M, N");
    const std::string name = absl::StrCat("t", statements_.size());
    std::string place = random_.Pick({std::string("j, i"), std::string("2*i + 1, j"), std::string("i, j"),
                                      std::string("3*i - j, j"), std::string("j, i + 1"), std::string("2*i, 3*j"),
                                      std::string("i + j, j"), std::string("i / 2, j"), std::string("i % 2, j")});
    if (random_.Chance(40)) place = absl::StrCat(NewArgument(Name(random_.Chance(50) ? DType::kI64 : DrawIntegerType(random_)), "M"), "[i], j");
    const std::string op = random_.Pick(
        {std::string("+="), std::string("+="), std::string("max="), std::string("min="), std::string("*=")});
    const std::string extent = random_.Pick(
        {std::string("M, N"), std::string("2*M + 2, N"), std::string("M + N, N + 3"), std::string("4, N")});
    statements_.push_back(absl::StrCat(name, "[", place, "]: ", Name(type_), "[", extent, "] ", op, " ", x, "[i, j]"));
    names_.push_back(name);
  }

  void AddGather() {
    const std::string x = NewArgument(Name(type_), "M, N");
    const std::string ids =
        NewArgument(Name(random_.Chance(50) ? DType::kI64 : DrawIntegerType(random_)), "K");
    const std::string name = absl::StrCat("t", statements_.size());
    const std::string place =
        random_.Chance(60) ? absl::StrCat(ids, "[k], j") : absl::StrCat("(", ids, "[k] + 1) / 2, j");
    const std::string access = absl::StrCat(x, "[", place, random_.Chance(30) && IsFloat() ? " | 0.5" : "", "]");
    if (random_.Chance(30)) statements_.push_back(absl::StrCat(name, "[j] = sum[k](", access, ")"));
    else statements_.push_back(absl::StrCat(name, "[k, j] = ", access));
    names_.push_back(name);
  }

  // More values at once than there are registers.
  void AddManyOperands() {
    const Axes axes = Drawn(random_.Pick({1, 2}));
    const int count = static_cast<int>(random_.Between(8, 26));
    std::vector<std::string> names, terms;
    for (int i = 0; i < count; ++i) names.push_back(Access(Subset(axes, 85), /*fresh=*/arguments_.size() < 8));
    for (int i = 0; i < count; ++i) {
      terms.push_back(absl::StrCat("(", names[static_cast<size_t>(i)], random_.Chance(50) ? " - " : " * ",
                                   names[static_cast<size_t>(random_.Below(count))], ")"));
    }
    random_.Shuffle(terms);
    Define(axes, Balanced(terms, 0, terms.size()));
  }

  std::string Balanced(const std::vector<std::string>& terms, size_t begin, size_t end) {
    if (end - begin == 1) return terms[begin];
    const size_t middle = begin + (end - begin) / 2;
    const std::string a = Balanced(terms, begin, middle), b = Balanced(terms, middle, end);
    if (random_.Chance(25)) return absl::StrCat("max(", a, ", ", b, ")");
    return absl::StrCat("(", a, random_.Chance(50) ? " + " : " - ", b, ")");
  }

  void ChooseResults() {
    for (const std::string& name : names_) {
      const bool wanted = std::find(wanted_.begin(), wanted_.end(), name) != wanted_.end();
      if (name == names_.back() || wanted || random_.Chance(45)) results_.push_back(name);
    }
  }

  Random& random_;
  const DType type_;
  const bool has_pack_;
  bool needs_pack_ = false;  // the statement mentions it
  std::vector<std::string> arguments_, params_, statements_, names_, results_;
  std::vector<std::string> wanted_;  // names that are to be results
  std::vector<Value> values_;
};

}  // namespace

std::string DrawNestProgram(Random& random, DType type) { return Writer(random, type).Run(); }

}  // namespace nestor
