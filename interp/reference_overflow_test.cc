// The inf and NaN that a sum or product admits, against every order and every tree of all small
// choices of terms around the largest and the least values of a type: all that occur are admitted,
// and no others. Results that overflow or vanish only by the roundings before the last one, by a
// few units in the last place, are admitted without proof.
#include <algorithm>
#include <cmath>
#include <iostream>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "interp/enclosure.h"
#include "interp/reference_sum.h"
#include "uops/scalar_op.h"

namespace nestor {
namespace {

// All results of the terms, each used once.
class EveryTree {
 public:
  EveryTree(ReduceOp op, DType type, const std::vector<Scalar>& terms)
      : step_(Primitive(StepOp(op), type, type)), results_(size_t{1} << terms.size()) {
    for (size_t i = 0; i < terms.size(); ++i) results_[size_t{1} << i].insert(terms[i].bits);
    for (size_t subset = 1; subset < results_.size(); ++subset) Combine(subset);
  }

  const std::set<Bits>& results() const { return results_.back(); }

 private:
  // Combines both parts of each partition in two.
  void Combine(size_t subset) {
    for (size_t part = (subset - 1) & subset; part > 0; part = (part - 1) & subset) {
      for (Bits a : results_[part]) {
        for (Bits b : results_[subset ^ part]) {
          const Bits operands[] = {a, b};
          results_[subset].insert(step_(operands));
        }
      }
    }
  }

  const PrimitiveFunction step_;
  std::vector<std::set<Bits>> results_;  // by subset of the terms
};

std::string NonFinite(const Enclosure& e) {
  return absl::StrCat(e.plus_infinity ? "inf " : "", e.minus_infinity ? "-inf " : "",
                      e.nan ? "nan" : "");
}

// Terms that move a result in one direction.
struct Moving {
  long double value;
  int count = 0;

  // Whether three or more come so near to a limit that the roundings before the last decide.
  bool Within(long double low, long double high) const {
    return count > 2 && low <= value && value < high;
  }
};

bool IsBorderline(ReduceOp op, DType type, const std::vector<Scalar>& terms) {
  const FloatFormat& format = FormatOf(type);
  const long double limit = format.OverflowThreshold(),
                    near = limit * (1 - 8 * format.UnitRoundoff());
  Moving positive{0}, negative{0}, large{1}, small{1};
  for (const Scalar& term : terms) {
    const long double x = ToLongDouble(term), size = std::fabs(x);
    if (!std::isfinite(x) || x == 0) continue;
    Moving& sum = x > 0 ? positive : negative;
    sum = {sum.value + size, sum.count + 1};
    Moving& product = size > 1 ? large : small;
    if (size != 1) product = {product.value * size, product.count + 1};
  }
  if (op == ReduceOp::kSum) return positive.Within(near, limit) || negative.Within(near, limit);
  const long double half = format.LeastSubnormal() / 2;
  return large.Within(near, limit) || small.Within(std::nextafter(half, 1), 4 * half);
}

// Checks that the enclosure's inf and NaN are those of the results, which lie in it. Returns
// whether that could be decided.
bool Check(ReduceOp op, DType type, const std::vector<Scalar>& terms) {
  Accumulation accumulation(op, type);
  std::string text;
  for (const Scalar& term : terms) {
    accumulation.Take(Point(term));
    absl::StrAppend(&text, LiteralText(term), " ");
  }
  const Enclosure e = accumulation.Value();
  Enclosure arise;
  const EveryTree trees(op, type, terms);
  for (Bits bits : trees.results()) {
    EXPECT_TRUE(Encloses(e, {type, bits}))
        << text << ": " << LiteralText({type, bits}) << " is not in " << ToString(e);
    arise = Join(arise, Point({type, bits}));
  }
  if (IsBorderline(op, type, terms)) return false;
  EXPECT_EQ(NonFinite(e), NonFinite(arise))
      << Name(op) << " " << Name(type) << ": " << text << " " << ToString(e);
  const bool given = std::any_of(terms.begin(), terms.end(),
                                 [](const Scalar& t) { return !std::isfinite(t.ToDouble()); });
  EXPECT_TRUE(e.may_overflow == e.HasNonFinite() || given) << text;
  return true;
}

// Every choice of up to four of `values`, with repetition, none before `first`.
struct Choices {
  ReduceOp op;
  DType type;
  std::vector<double> values;
  std::vector<Scalar> terms = {};
  int checked = 0, borderline = 0;

  void CheckFrom(size_t first) {
    if (!terms.empty()) ++(Check(op, type, terms) ? checked : borderline);
    for (size_t i = first; i < values.size() && terms.size() < 4 && !testing::Test::HasFailure();
         ++i) {
      terms.push_back(Scalar::Float(type, values[i]));
      CheckFrom(i);
      terms.pop_back();
    }
  }
};

void CheckAll(Choices choices) {
  choices.CheckFrom(0);
  std::cerr << Name(choices.op) << " " << Name(choices.type) << ": " << choices.checked
            << " choices, borderline besides " << choices.borderline << "\n";
  EXPECT_LT(choices.borderline, choices.checked / 20);
}

constexpr DType kTypes[] = {DType::kF32, DType::kF64};

TEST(ReferenceOverflow, Sums) {
  for (DType type : kTypes) {
    const FloatFormat& format = FormatOf(type);
    const double largest = static_cast<double>(format.Largest()),
                 power = std::ldexp(1.0, format.max_exponent);
    // A term that rounds up, a tie, and one that does not round up.
    const double half_ulp = std::ldexp(1.0, format.max_exponent - format.precision);
    CheckAll({ReduceOp::kSum,
              type,
              {largest, -largest, power, -power, largest / 2, -largest / 2, half_ulp, -half_ulp,
               half_ulp / 2, 1, 0, INFINITY, -INFINITY, NAN}});
  }
}

TEST(ReferenceOverflow, Products) {
  for (DType type : kTypes) {
    const FloatFormat& format = FormatOf(type);
    const double largest = static_cast<double>(format.Largest()),
                 least = static_cast<double>(format.LeastSubnormal());
    const double normal = static_cast<double>(format.LeastNormal()),
                 root = std::ldexp(1.0, (format.max_exponent + 1) / 2);
    CheckAll({ReduceOp::kProd,
              type,
              {largest, -largest, root, -root, 2, 1, 0.75, 1 / root, normal, -normal, least, 0.0,
               -0.0, INFINITY, -INFINITY, NAN}});
  }
}

}  // namespace
}  // namespace nestor
