// Statements are drawn over four dimensions, each with one index; an operand is an earlier
// value with just those dimensions, or a new argument, with its axes in any order.
#include "check/engines/nest_programs.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/optional.h"
#include "check/engines/expression_generator.h"
#include "check/engines/nest_axes.h"
#include "check/engines/partial_uses.h"
#include "check/engines/program_generator.h"
#include "check/engines/window_statements.h"

namespace nestor {
namespace {

class Writer {
 public:
  Writer(Random& random, DType type) : random_(random), type_(type), expressions_(random, type) {}

  // op drawn(x0: f32[M, K], x1: f32[K, N]) -> (t0) {
  //   t0[i, j] = sum[k](x0[i, k] * x1[k, j])
  // }
  std::string Run() {
    const int statements = random_.Pick({1, 1, 1, 2, 2, 3, 4});
    for (int i = 0; i < statements; ++i) AddStatement();
    ChooseResults();
    // Every dimension must be one of some argument.
    if (expressions_.arguments().empty()) expressions_.Access({0}, /*fresh=*/true);
    return absl::StrCat("op drawn(", absl::StrJoin(expressions_.arguments(), ", "),
                        params_.empty() ? "" : absl::StrCat("; ", absl::StrJoin(params_, ", ")),
                        ") -> (", absl::StrJoin(results_, ", "), ") {\n  ",
                        absl::StrJoin(statements_, "\n  "), "\n}\n");
  }

 private:
  bool IsFloat() const { return nestor::IsFloat(type_); }

  // `count` different axes in any order, none of them the pack.
  Axes Drawn(int count) {
    Axes all = {0, 1, 2, 3};
    random_.Shuffle(all);
    all.resize(static_cast<size_t>(count));
    return all;
  }

  std::string NextName() const { return absl::StrCat("t", statements_.size()); }

  // ---- Statements

  // Adds a statement over `axes` and returns the name of the value that it defines. Without a pack,
  // expressions may read it from here on.
  std::string Define(const Axes& axes, const std::string& expression) {
    const bool has_pack = expressions_.mentions_pack();
    const std::string name = DefineUnread(axes, expression);
    if (has_pack) return name;
    expressions_.AddValue(name, axes);
    if (axes.empty()) return name;
    defined_ = {name, Indices(axes), {}};
    for (int axis : axes) defined_->extents.push_back(kAxes[axis].dimension);
    return name;
  }

  // The same for a value that no expression reads, as it has another type. A pack that the
  // statement mentions becomes the first axis.
  std::string DefineUnread(const Axes& axes, const std::string& expression) {
    const std::string name = NextName();
    Axes left = axes;
    if (expressions_.mentions_pack()) left.insert(left.begin(), kPack);
    const std::string indices =
        left.empty() ? "" : absl::StrCat("[", absl::StrJoin(Indices(left), ", "), "]");
    statements_.push_back(absl::StrCat(name, indices, " = ", expression, Ranges(axes)));
    names_.push_back(name);
    expressions_.BeginStatement();
    return name;
  }

  // Ranges, some of which would follow from accesses as well.
  std::string Ranges(const Axes& axes) {
    if (axes.empty() || !random_.Chance(30)) return "";
    std::vector<std::string> ranges;
    for (int axis : axes)
      ranges.push_back(absl::StrCat(kAxes[axis].index, " < ", kAxes[axis].dimension));
    return absl::StrCat(" where ", absl::StrJoin(ranges, ", "));
  }

  void AddStatement() {
    defined_.reset();
    DrawStatement();
    if (defined_ && random_.Chance(30)) AddPartialUse();
  }

  void DrawStatement() {
    switch (random_.Below(18)) {
      case 0:
      case 1:
      case 2: return AddProduct();
      case 3: return AddLine();
      case 16:
      case 17: return AddLayers();
      case 4:
      case 5: return AddRows();
      case 6: return AddShift();
      case 7: return AddScatter();
      case 8: return AddGather();
      case 9: return AddManyOperands();
      case 10:
      case 12: return AddColumns();
      case 11: return AddTwins();
      case 13:
      case 14: return AddScan();
      default: return AddMap();
    }
  }

  void AddMap() {
    const Axes axes = Drawn(random_.Pick({1, 2, 2, 3}));
    Define(axes, expressions_.Expression(axes, 3));
  }

  // Expressions of the same operands that differ in one constant, or in nothing.
  // What a pass that shares or merges equal expressions must keep apart: max(x, 0.0) and max(x,
  // -0.0).
  void AddTwins() {
    const Axes axes = Drawn(random_.Pick({1, 2}));
    const std::string a = expressions_.Access(axes), b = expressions_.Access(axes);
    const std::vector<std::string> constants =
        IsFloat() ? std::vector<std::string>{"0.0", "-0.0", "1.0", b}
                  : std::vector<std::string>{"0", "1", "-1", b};
    const std::string op = random_.Pick({std::string("max"), std::string("min"), std::string("max"),
                                         IsFloat() ? std::string("pow") : std::string("min")});
    const int count = static_cast<int>(random_.Between(2, 3));
    const bool in_one = expressions_.mentions_pack() || random_.Chance(30);
    const bool zeros = random_.Chance(50);  // of both signs
    std::string sum = b;
    for (int i = 0; i < count; ++i) {
      const std::string constant =
          zeros ? constants[static_cast<size_t>(i % 2)] : random_.Pick(constants);
      const std::string twin = absl::StrCat(op, "(", a, ", ", constant, ")");
      if (in_one) absl::StrAppend(&sum, " - ", twin);
      else wanted_.push_back(Define(axes, twin));
    }
    if (in_one) Define(axes, sum);
  }

  std::string SumOp() {
    return random_.Pick({std::string("sum"), std::string("sum"), std::string("sum"),
                         std::string("sum"), std::string("max"), std::string("min"),
                         std::string("prod")});
  }

  // c[i, j] = sum[k](a[i, k] * b[k, j]) and the like, with statements that may come
  // before and after.
  void AddProduct() {
    const Axes all = Drawn(4);
    const Axes rows = {all[0]}, columns = {all[1]};
    Axes sums = {all[2]};
    Axes batch;
    if (random_.Chance(25)) batch.push_back(all[3]);
    else if (random_.Chance(30)) sums.push_back(all[3]);
    const std::string a = Factor(Union(Union(rows, sums), Subset(random_, batch, 80)));
    const std::string b = Factor(Union(Union(columns, sums), Subset(random_, batch, 80)));
    const std::string product = absl::StrCat(a, " * ", b);
    const std::string combined = random_.Chance(70)   ? product
                                 : random_.Chance(50) ? absl::StrCat("mulz(", a, ", ", b, ")")
                                 : random_.Chance(60) ? Gated(product, rows, columns, sums)
                                                      : absl::StrCat("abs(", a, " - ", b, ")");
    const std::string third =
        random_.Chance(10) ? absl::StrCat(" * ", expressions_.Access(sums)) : "";
    Axes left = Union(Union(batch, rows), columns);
    if (random_.Chance(20)) random_.Shuffle(left);
    const std::string total =
        absl::StrCat(SumOp(), "[", absl::StrJoin(Indices(sums), ", "), "](", combined, third, ")");
    Define(left, random_.Chance(40) ? absl::StrCat(total, random_.Chance(50) ? " + " : " * ",
                                                   expressions_.Expression(left, 1))
                                    : total);
  }

  // The product where a condition on one side takes it, as a mask of rows.
  std::string Gated(absl::string_view product, const Axes& rows, const Axes& columns,
                    const Axes& sums) {
    const Axes side = Union(random_.Chance(70) ? rows : columns, sums);
    const std::string bound = expressions_.Access(random_.Chance(50) ? side : sums);
    return absl::StrCat("where(", expressions_.Access(side), " > ", bound, ", ", product, ", ",
                        IsFloat() ? "0.0" : "0", ")");
  }

  // Mostly an access, which a schedule can pack; now and then an expression that must be computed
  // first.
  std::string Factor(const Axes& axes) {
    return random_.Chance(20) ? expressions_.Expression(axes, 1) : expressions_.Access(axes);
  }

  // Convolutions or poolings, each of the results of the one before.
  void AddLayers() {
    Images images = DrawImages(random_);
    do {
      const std::string name = NextName();
      AddWindow(DrawLayer(random_, type_, expressions_, name, images));
    } while (random_.Chance(40));
  }

  void AddLine() {
    params_ = LineParams();
    AddWindow(DrawLine(random_, type_, expressions_, NextName()));
  }

  void AddWindow(const WindowStatement& window) {
    statements_.push_back(window.text);
    names_.push_back(window.value.name);
    defined_ = window.value;
  }

  // Another statement, of a value that the last one has defined.
  void AddPartialUse() {
    const std::string name = NextName();
    statements_.push_back(DrawPartialUse(random_, type_, *defined_, name));
    names_.push_back(name);
  }

  // A reduction of each row, and a function of the row and its reduction, as in a softmax:
  //   t0[i] = max[j](x0[i, j]);  t1[i, j] = x0[i, j] - t0[i]
  void AddRows() {
    const Axes axes = Drawn(random_.Pick({2, 2, 3}));
    const Axes rows(axes.begin(), axes.end() - 1);
    const std::string body = expressions_.Expression(axes, 2);
    const std::string index = kAxes[axes.back()].index;
    const bool has_pack = expressions_.mentions_pack();
    const std::string name = Define(rows, absl::StrCat(SumOp(), "[", index, "](", body, ")"));
    if (!random_.Chance(60) || has_pack) return;
    const std::string total =
        rows.empty() ? name : absl::StrCat(name, "[", absl::StrJoin(Indices(rows), ", "), "]");
    Define(axes,
           absl::StrCat(expressions_.Access(axes), random_.Chance(50) ? " - " : " * ", total));
  }

  // A running sum, product or the like, and a function of it:
  //   for i < M { t0[i] = t0[i - 1] + x0[i]; t0_made[i] = t0[i] * x1[i] }
  void AddScan() {
    const Axes axes = Drawn(random_.Pick({1, 1, 2}));
    const std::string a = expressions_.Access(axes), b = expressions_.Access(axes);
    if (expressions_.mentions_pack()) {
      Define(axes, absl::StrCat(a, " - ", b));
      return;
    }
    const std::string name = NextName();
    const std::string steps = kAxes[axes.back()].index;
    const auto at = [&](const std::string& step) {
      std::vector<std::string> place = Indices(axes);
      place.back() = step;
      return absl::StrCat(name, "[", absl::StrJoin(place, ", "), "]");
    };
    const std::string fill = random_.Pick({std::string(""), std::string(" | 1")});
    const std::string last = at(absl::StrCat(steps, random_.Chance(70) ? " - 1" : " + 1", fill));
    const std::vector<std::string> kinds = {absl::StrCat(last, " + ", a),
                                            absl::StrCat(a, " * ", b, " + ", last),
                                            absl::StrCat(last, " - ", a),
                                            absl::StrCat(last, " * ", a),
                                            absl::StrCat("max(", last, ", ", a, ")"),
                                            absl::StrCat("min(", a, ", ", last, ")"),
                                            absl::StrCat(last, " * ", b, " + ", a)};
    std::string body = absl::StrCat(at(steps), " = ", random_.Pick(kinds));
    names_.push_back(name);
    expressions_.AddValue(name, axes);
    if (random_.Chance(40)) {
      const std::string made = absl::StrCat(name, "_made");
      absl::StrAppend(&body, "; ", made, "[", absl::StrJoin(Indices(axes), ", "), "] = ", at(steps),
                      " * ", b);
      names_.push_back(made);
    }
    statements_.push_back(
        absl::StrCat("for ", steps, " < ", kAxes[axes.back()].dimension, " { ", body, " }"));
  }

  // Sums of the same tensor along both axes, and over all.
  void AddColumns() {
    const Axes axes = Drawn(2);
    const std::string body = expressions_.Access(axes, /*fresh=*/true);
    if (expressions_.mentions_pack()) {
      Define(axes, body);
      return;
    }
    Define({axes[1]}, absl::StrCat(SumOp(), "[", kAxes[axes[0]].index, "](", body, ")"));
    if (random_.Chance(50)) {
      Define({},
             absl::StrCat(SumOp(), "[", Indices(axes)[0], ", ", Indices(axes)[1], "](", body, ")"));
    }
    // The same sum in both orders, which round differently.
    if (random_.Chance(60)) {
      const std::string op = SumOp(), i = Indices(axes)[0], j = Indices(axes)[1];
      Define({}, absl::StrCat(op, "[", i, ", ", j, "](", body, ") * ", IsFloat() ? "0.5" : "2",
                              " - ", op, "[", j, ", ", i, "](", body, ")"));
    }
    if (random_.Chance(40)) {
      DefineUnread({axes[0]}, absl::StrCat(random_.Chance(50) ? "argmax[" : "argmin[",
                                           kAxes[axes[1]].index, "](", body, ")"));
    }
  }

  // Neighbours, repetitions, concatenations and reversals of one tensor.
  void AddShift() {
    const std::string x = expressions_.NewArgument(Name(type_), "M, N");
    const std::string name = NextName();
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
    if (random_.Chance(40))
      sum = absl::StrCat(sum, random_.Chance(50) ? " + " : " * ", x, "[i, j]");
    const bool needs_range = place[1][0] == '\0';
    const char* const range = needs_range ? " where i < M, j < N" : place[1];
    const bool both = sum.find("[i, j]") != std::string::npos;
    statements_.push_back(absl::StrCat(name, "[i, j] = ", sum, range,
                                       !needs_range && !both ? OtherRange(place[1]) : ""));
    names_.push_back(name);
  }

  // The range of the rest of the index that a `where` leaves open.
  static std::string OtherRange(const std::string& range) {
    std::string more;
    if (range.find("i <") == std::string::npos) more += ", i < M";
    if (range.find("j <") == std::string::npos) more += ", j < N";
    return more;
  }

  // Places that hit each element once, some twice, or none; and places from a tensor:
  //   t0[2*i + 1, j]: f32[2*M + 2, N] += x0[i, j]      t0[x1[i], j]: f32[M, N] max= x0[i, j]
  void AddScatter() {
    const std::string x = expressions_.NewArgument(Name(type_), "M, N");
    const std::string name = NextName();
    std::string place =
        random_.Pick({std::string("j, i"), std::string("2*i + 1, j"), std::string("i, j"),
                      std::string("3*i - j, j"), std::string("j, i + 1"), std::string("2*i, 3*j"),
                      std::string("i + j, j"), std::string("i / 2, j"), std::string("i % 2, j")});
    if (random_.Chance(40)) place = absl::StrCat(NewIndices("M"), "[i], j");
    const std::string op = random_.Pick({std::string("+="), std::string("+="), std::string("max="),
                                         std::string("min="), std::string("*=")});
    const std::string extent = random_.Pick({std::string("M, N"), std::string("2*M + 2, N"),
                                             std::string("M + N, N + 3"), std::string("4, N")});
    statements_.push_back(absl::StrCat(name, "[", place, "]: ", Name(type_), "[", extent, "] ", op,
                                       " ", x, "[i, j]"));
    names_.push_back(name);
  }

  // An argument to gather or scatter by.
  std::string NewIndices(const std::string& shape) {
    return expressions_.NewArgument(
        Name(random_.Chance(50) ? DType::kI64 : DrawIntegerType(random_)), shape);
  }

  // Integers to gather by may be out of range: then the fill is read.
  void AddGather() {
    const std::string x = expressions_.NewArgument(Name(type_), "M, N");
    const std::string ids = NewIndices("K");
    const std::string name = NextName();
    const std::string place = random_.Chance(60) ? absl::StrCat(ids, "[k], j")
                                                 : absl::StrCat("(", ids, "[k] + 1) / 2, j");
    const std::string access =
        absl::StrCat(x, "[", place, random_.Chance(30) && IsFloat() ? " | 0.5" : "", "]");
    if (random_.Chance(30)) statements_.push_back(absl::StrCat(name, "[j] = sum[k](", access, ")"));
    else statements_.push_back(absl::StrCat(name, "[k, j] = ", access));
    names_.push_back(name);
  }

  // More values at once than there are registers.
  void AddManyOperands() {
    const Axes axes = Drawn(random_.Pick({1, 2}));
    const int count = static_cast<int>(random_.Between(8, 26));
    std::vector<std::string> names, terms;
    for (int i = 0; i < count; ++i) {
      const bool fresh = expressions_.arguments().size() < 8;
      names.push_back(expressions_.Access(Subset(random_, axes, 85), fresh));
    }
    for (int i = 0; i < count; ++i) {
      terms.push_back(absl::StrCat("(", names[static_cast<size_t>(i)],
                                   random_.Chance(50) ? " - " : " * ",
                                   names[static_cast<size_t>(random_.Below(count))], ")"));
    }
    random_.Shuffle(terms);
    Define(axes, Balanced(terms, 0, terms.size()));
  }

  // A tree, not a chain: the operands of all its levels are needed at once.
  std::string Balanced(const std::vector<std::string>& terms, size_t begin, size_t end) {
    if (end - begin == 1) return terms[begin];
    const size_t middle = begin + (end - begin) / 2;
    const std::string a = Balanced(terms, begin, middle), b = Balanced(terms, middle, end);
    if (random_.Chance(25)) return absl::StrCat("max(", a, ", ", b, ")");
    return absl::StrCat("(", a, random_.Chance(50) ? " + " : " - ", b, ")");
  }

  // The last statement's value is one, so that the statements before it are of use.
  void ChooseResults() {
    for (const std::string& name : names_) {
      const bool wanted = std::find(wanted_.begin(), wanted_.end(), name) != wanted_.end();
      if (name == names_.back() || wanted || random_.Chance(45)) results_.push_back(name);
    }
  }

  Random& random_;
  const DType type_;
  ExpressionGenerator expressions_;
  std::vector<std::string> params_, statements_, names_, results_;
  std::vector<std::string> wanted_;  // names that are to be results
  absl::optional<DefinedValue>
      defined_;  // by the last statement; none if it has no axes of its own
};

}  // namespace

std::string DrawNestProgram(Random& random, DType type) { return Writer(random, type).Run(); }

}  // namespace nestor
