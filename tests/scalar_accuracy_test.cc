// Each transcendental row of the table within its stated error, on a million f32 arguments of all
// exponents and signs (of two operands: structured pairs) and on a quarter as many structured ones
// of f64, against the C library in a wider type, and MPFR where that cannot clear a result; and
// both forms of its body give the same bits. //bench:scalar_accuracy takes every f32; its results
// are a table in docs/scalar_accuracy.md, and this test checks that it lists every row, within the
// row's stated error.
#include <fstream>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "gtest/gtest.h"
#include "tests/scalar_screen.h"
#include "tests/transcendental_reference.h"
#include "uops/scalar_body.h"
#include "uops/scalar_op.h"

namespace nestor {
namespace {

constexpr int kStrata = 1 << 20;

class Judge {
 public:
  Judge(const ScalarOpRow& row, DType type)
      : row_(row), type_(type), screen_(ScreenOf(row.name)),
        function_(FunctionOf(row.op, type, type)),
        by_ldexp_(FunctionOf(row.op, type, type, BodyForm::kLdexp)) {}

  void Check(double a, double b) {
    const Scalar x = Scalar::Float(type_, a), y = Scalar::Float(type_, b);
    const Bits operands[] = {x.bits, y.bits, 0};
    const Scalar result{type_, function_(operands)}, same{type_, by_ldexp_(operands)};
    if (result.bits != same.bits && !(result.IsNaN() && same.IsNaN()) && ++wrong_ <= 3) {
      ADD_FAILURE() << row_.name << " of " << Name(type_) << " at " << LiteralText(x) << ", "
                    << LiteralText(y) << " is " << LiteralText(result) << ", but by ldexp "
                    << LiteralText(same);
    }
    const double got = result.ToDouble();
    const double stated = type_ == DType::kF32 ? row_.ulp32 : row_.ulp64;
    if (ScreenedError(screen_, type_, x.ToDouble(), y.ToDouble(), got) < 0.99 * stated) return;
    std::vector<double> args = {x.ToDouble(), y.ToDouble()};
    args.resize(static_cast<size_t>(row_.arity));
    const double error = UlpError(row_.name, Name(type_), args, got);
    if (error <= stated) return;
    if (++wrong_ > 3) return;
    ADD_FAILURE() << row_.name << " of " << Name(type_) << " at " << LiteralText(x) << ", "
                  << LiteralText(y) << " is " << got << ": off by " << error << " ulp";
  }

 private:
  const ScalarOpRow& row_;
  DType type_;
  Screen screen_;
  ScalarFunction function_, by_ldexp_;
  int wrong_ = 0;
};

void CheckStructured(const ScalarOpRow& row, DType type, int count) {
  Judge judge(row, type);
  StructuredArguments draw(type);
  for (int i = 0; i < count; ++i) {
    const auto [a, b] = draw.Next();
    judge.Check(a, b);
  }
}

// One random argument of each run of 4096 neighbours.
void CheckStrata(const ScalarOpRow& row) {
  Judge judge(row, DType::kF32);
  std::mt19937_64 random(11);
  for (int i = 0; i < kStrata; ++i) {
    const Scalar x{DType::kF32, (static_cast<Bits>(i) << 12) + random() % 4096};
    if (!x.IsNaN()) judge.Check(x.ToDouble(), 0);
  }
}

TEST(ScalarAccuracy, WithinTheStatedError) {
  for (const ScalarOpRow& row : AllScalarOps()) {
    if (!row.transcendental) continue;
    ASSERT_NE(ScreenOf(row.name).narrow, nullptr)
        << row.name << " has no row in tests/scalar_screen.cc";
    if (row.arity == 1) CheckStrata(row);
    else CheckStructured(row, DType::kF32, kStrata);
    CheckStructured(row, DType::kF64, kStrata / 4);
  }
}

// By row: the worst errors in the table of the docs, for f32 and f64.
std::map<std::string, std::pair<double, double>> Table() {
  std::map<std::string, std::pair<double, double>> table;
  std::ifstream file("docs/scalar_accuracy.md");
  for (std::string line; std::getline(file, line);) {
    const std::vector<std::string> cells = absl::StrSplit(line, '|');
    if (cells.size() != 9) continue;
    double narrow = 0, wide = 0;
    if (!absl::SimpleAtod(cells[3], &narrow) || !absl::SimpleAtod(cells[6], &wide)) continue;
    table[std::string(absl::StripAsciiWhitespace(cells[1]))] = {narrow, wide};
  }
  return table;
}

TEST(ScalarAccuracy, TheDocsListEveryRow) {
  const auto table = Table();
  for (const ScalarOpRow& row : AllScalarOps()) {
    if (!row.transcendental) continue;
    ASSERT_EQ(table.count(row.name), 1)
        << row.name << ": run //bench:scalar_accuracy and put its line there";
    EXPECT_LE(table.at(row.name).first, row.ulp32) << row.name;
    EXPECT_LE(table.at(row.name).second, row.ulp64) << row.name;
  }
  for (const auto& [name, errors] : table)
    EXPECT_TRUE(ScalarOpByName(name)) << name << " is no row";
}

}  // namespace
}  // namespace nestor
