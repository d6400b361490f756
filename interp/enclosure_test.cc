// Enclosures against values that they must hold: computed in the type itself, in random orders,
// random trees, with FMAs, in wider accumulators. Each case is a small random computation: a pool
// of nodes, each an enclosure and several lanes, every lane a different allowed evaluation; each
// new node's lanes must lie in its enclosure. Values cancel, overflow, are subnormal, inf, NaN and
// zeros of both signs. Their width is measured, too: the table in docs/bounds.md is printed here.
//
// NESTOR_ENCLOSURE_CASES in the environment changes the number of checks per type.
#include "interp/enclosure.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <random>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "gtest/gtest.h"
#include "interp/reference_arg.h"
#include "interp/reference_rows.h"
#include "interp/reference_sum.h"
#include "uops/scalar_body.h"

namespace nestor {
namespace {

constexpr DType kFloats[] = {DType::kF32, DType::kF64, DType::kBF16, DType::kF16};
constexpr int kLanes = 4;

class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}
  int Below(int n) { return static_cast<int>(engine_() % static_cast<uint64_t>(n)); }
  bool Chance(int percent) { return Below(100) < percent; }
  double Unit() { return static_cast<double>(engine_() >> 11) * 0x1p-53; }
  double Signed() { return 2 * Unit() - 1; }

 private:
  std::mt19937_64 engine_;
};

int64_t Setting(const char* name, int64_t otherwise) {
  const char* text = std::getenv(name);
  int64_t value;
  return text != nullptr && absl::SimpleAtoi(text, &value) ? value : otherwise;
}

// ---- Values

enum class Flavour {
  kModerate,
  kCancelling,
  kWide,
  kSubnormal,
  kUnderflowing,
  kHuge,
  kSpecial,
  kSmallIntegers,
  kCount
};

double DrawSpecial(Random& random) {
  const double specials[] = {INFINITY, -INFINITY, NAN, 0.0, -0.0, 1.0, -1.0, 0.5};
  return specials[random.Below(8)];
}

Scalar Draw(DType type, Flavour flavour, Random& random) {
  const FloatFormat& format = FormatOf(type);
  const double unit = random.Signed();
  if (random.Chance(3)) return Scalar::Float(type, DrawSpecial(random));
  switch (flavour) {
    case Flavour::kModerate: return Scalar::Float(type, 4 * unit);
    // A few values and their negatives, off by a little.
    case Flavour::kCancelling: {
      const double big = 1.0 + random.Below(3),
                   off = random.Chance(50) ? 0 : std::ldexp(unit, -format.precision + 3);
      return Scalar::Float(type, random.Chance(50) ? big + off : -big + off);
    }
    case Flavour::kWide:
      return Scalar::Float(
          type, std::ldexp(unit, random.Below(2 * format.max_exponent) - format.max_exponent));
    case Flavour::kSubnormal:
      return Scalar::Float(
          type, std::ldexp(unit, format.min_exponent + 2 - random.Below(format.precision)));
    // Products are about the least numbers.
    case Flavour::kUnderflowing:
      return Scalar::Float(type, std::ldexp(unit, format.min_exponent / 2 + 2 - random.Below(14)));
    case Flavour::kHuge:
      return Scalar::Float(type, std::ldexp(unit, format.max_exponent - random.Below(3)));
    case Flavour::kSpecial:
      return Scalar::Float(type, random.Chance(50) ? DrawSpecial(random) : unit);
    default: return Scalar::Float(type, random.Below(9) - 4);
  }
}

struct Node {
  Enclosure e;
  Scalar lanes[kLanes];
};

Node Leaf(const Scalar& value) {
  Node node{Point(value), {}};
  for (Scalar& lane : node.lanes) lane = value;
  return node;
}

Scalar Run(ScalarOp op, DType operand, DType target, std::initializer_list<Scalar> args) {
  Bits bits[3] = {};
  size_t i = 0;
  for (const Scalar& arg : args) bits[i++] = arg.bits;
  return Scalar{target, FunctionOf(op, operand, target)(bits)};
}

Scalar Run(ScalarOp op, std::initializer_list<Scalar> args) {
  const DType type = args.begin()->type;
  return Run(op, type, type, args);
}

Scalar Convert(const Scalar& x, DType type) {
  return x.type == type ? x : Run(ScalarOp::kCast, x.type, type, {x});
}

// ---- Reductions, evaluated in some allowed way

// A sum of the terms (or of products a[i] * b[i], where b is not empty) in `type`
// or wider, rounded to `type`.
Scalar SumSomehow(DType type, const std::vector<Scalar>& a, const std::vector<Scalar>& b,
                  Random& random) {
  const bool wide = type == DType::kF32 && random.Chance(25);
  const DType in = wide ? DType::kF64 : type;
  const int fma_percent = random.Below(3) * 50;
  std::vector<Scalar> partials(random.Below(4), Scalar::Zero(in));
  for (size_t i = 0; i < a.size(); ++i) {
    if (b.empty()) {
      partials.push_back(Convert(a[i], in));
    } else if (partials.empty() || !random.Chance(fma_percent)) {
      partials.push_back(Convert(Run(ScalarOp::kMul, {a[i], b[i]}), in));
    } else {
      Scalar& into = partials[random.Below(static_cast<int>(partials.size()))];
      into = Run(ScalarOp::kFma, {Convert(a[i], in), Convert(b[i], in), into});
    }
  }
  const bool sequential = random.Chance(30);
  while (partials.size() > 1) {
    const size_t i = sequential ? 0 : random.Below(static_cast<int>(partials.size()));
    const Scalar x = partials[i];
    partials.erase(partials.begin() + i);
    Scalar& into = partials[sequential ? 0 : random.Below(static_cast<int>(partials.size()))];
    into = Run(ScalarOp::kAdd, {into, x});
  }
  return Convert(partials.empty() ? Scalar::Zero(in) : partials[0], type);
}

Scalar MultiplySomehow(std::vector<Scalar> factors, Random& random) {
  while (factors.size() > 1) {
    const size_t i = random.Below(static_cast<int>(factors.size()));
    const Scalar x = factors[i];
    factors.erase(factors.begin() + i);
    Scalar& into = factors[random.Below(static_cast<int>(factors.size()))];
    into = Run(ScalarOp::kMul, {into, x});
  }
  return factors[0];
}

// ---- One case

class Case {
 public:
  Case(DType type, uint64_t seed) : type_(type), random_(seed) {
    const Flavour flavour = static_cast<Flavour>(random_.Below(static_cast<int>(Flavour::kCount)));
    const int leaves = 3 + random_.Below(20);
    for (int i = 0; i < leaves; ++i) nodes_.push_back(Leaf(Draw(type, flavour, random_)));
  }

  // Adds a node; returns "" or what is wrong with it.
  std::string Step() {
    switch (random_.Below(8)) {
      case 0: return Check("sum", Reduce(ReduceOp::kSum, false));
      case 1: return Check("dot", Reduce(ReduceOp::kSum, true));
      case 2: return Check("prod", Reduce(ReduceOp::kProd, false));
      case 3: return Check("a*b + c", MultiplyAdd());
      case 4: return Check("a/b", Divide());
      case 5: return Check("choice", Choose());
      case 6: return Arg();
      default: return ApplyAnyRow();
    }
  }

  bool IsUseless() const {
    return nodes_.back().e.nan && nodes_.back().e.plus_infinity && nodes_.back().e.minus_infinity;
  }

 private:
  const Node& Pick() { return nodes_[random_.Below(static_cast<int>(nodes_.size()))]; }

  std::string Check(absl::string_view what, const Node& node) {
    nodes_.push_back(node);
    for (const Scalar& lane : node.lanes) {
      const Enclosure e = Rounded(lane.type, node.e);
      if (!Encloses(e, lane))
        return absl::StrCat(what, " of ", Name(type_), ": ", LiteralText(lane), " is not in ",
                            ToString(e));
    }
    return "";
  }

  Enclosure Apply(ScalarOp op, std::initializer_list<Enclosure> args) {
    return ApplyInProgram(op, type_, type_, args);
  }

  Node Reduce(ReduceOp op, bool products) {
    const DType wide = random_.Chance(20) ? type_ : AccumulatorType(type_);
    Accumulation accumulation(op, wide);
    std::vector<Scalar> a[kLanes], b[kLanes];
    const int terms = 1 + random_.Below(30);
    for (int i = 0; i < terms; ++i) {
      const Node &x = Pick(), &y = Pick();
      const Enclosure term = products ? Apply(ScalarOp::kMul, {x.e, y.e}) : Rounded(type_, x.e);
      accumulation.Take(
          ApplyRow(wide == type_ ? ScalarOp::kCopy : ScalarOp::kCast, type_, wide, {term}));
      for (int lane = 0; lane < kLanes; ++lane) {
        // A 16-bit product is rounded before it is cast, in half of the lanes.
        const bool narrow = products && wide != type_ && lane % 2 == 0;
        const Scalar rounded =
            narrow ? Run(ScalarOp::kMul, {x.lanes[lane], y.lanes[lane]}) : x.lanes[lane];
        a[lane].push_back(Convert(rounded, wide));
        if (products && !narrow) b[lane].push_back(Convert(y.lanes[lane], wide));
      }
    }
    Node node{accumulation.Value(), {}};
    if (wide != type_) node.e = ApplyRow(ScalarOp::kCast, wide, type_, {node.e});
    for (int lane = 0; lane < kLanes; ++lane) {
      const Scalar y = op == ReduceOp::kSum ? SumSomehow(wide, a[lane], b[lane], random_)
                                            : MultiplySomehow(a[lane], random_);
      node.lanes[lane] = Convert(y, type_);
    }
    return node;
  }

  Node MultiplyAdd() {
    const Node &a = Pick(), &b = Pick(), &c = Pick();
    const bool minus = random_.Chance(50);
    const Enclosure product = Apply(ScalarOp::kMul, {a.e, b.e});
    Node node{Apply(minus ? ScalarOp::kSub : ScalarOp::kAdd, {c.e, product}), {}};
    for (int lane = 0; lane < kLanes; ++lane) {
      const Scalar x = minus ? Run(ScalarOp::kNeg, {a.lanes[lane]}) : a.lanes[lane],
                   y = b.lanes[lane], z = c.lanes[lane];
      node.lanes[lane] = random_.Chance(50) ? Run(ScalarOp::kFma, {x, y, z})
                                            : Run(ScalarOp::kAdd, {z, Run(ScalarOp::kMul, {x, y})});
    }
    return node;
  }

  Node Divide() {
    const Node &a = Pick(), &b = Pick(), &c = Pick();
    Node node{Apply(ScalarOp::kAdd, {Apply(ScalarOp::kDiv, {a.e, b.e}), c.e}), {}};
    for (int lane = 0; lane < kLanes; ++lane) {
      const Scalar x = a.lanes[lane], y = b.lanes[lane], z = c.lanes[lane];
      const Scalar reciprocal = Run(ScalarOp::kDiv, {Scalar::Float(type_, 1), y});
      switch (random_.Below(3)) {
        case 0: node.lanes[lane] = Run(ScalarOp::kAdd, {Run(ScalarOp::kDiv, {x, y}), z}); break;
        case 1:
          node.lanes[lane] = Run(ScalarOp::kAdd, {Run(ScalarOp::kMul, {x, reciprocal}), z});
          break;
        default: node.lanes[lane] = Run(ScalarOp::kFma, {x, reciprocal, z});
      }
    }
    return node;
  }

  // where(a < b, c, d), with any comparison.
  Node Choose() {
    const Node &a = Pick(), &b = Pick(), &c = Pick(), &d = Pick();
    const ScalarOp compares[] = {ScalarOp::kLt, ScalarOp::kLe, ScalarOp::kGt,
                                 ScalarOp::kGe, ScalarOp::kEq, ScalarOp::kNe};
    const ScalarOp compare = compares[random_.Below(6)];
    const Enclosure condition = ApplyRow(compare, type_, DType::kBool, {a.e, b.e});
    Node node{ApplyRow(ScalarOp::kSelect, type_, type_, {condition, c.e, d.e}), {}};
    for (int lane = 0; lane < kLanes; ++lane) {
      const Scalar chosen = Run(compare, type_, DType::kBool, {a.lanes[lane], b.lanes[lane]});
      node.lanes[lane] = chosen.bits ? c.lanes[lane] : d.lanes[lane];
    }
    return node;
  }

  // The place of the greatest or least of some nodes.
  std::string Arg() {
    const ReduceOp op = random_.Chance(50) ? ReduceOp::kArgmax : ReduceOp::kArgmin;
    ArgCandidates candidates(op);
    Scalar best[kLanes];
    int place[kLanes];
    for (int i = 0; i < 8; ++i) {
      const Node& x = Pick();
      candidates.Take(Rounded(type_, x.e), Point(Scalar::I64(i)));
      for (int lane = 0; lane < kLanes; ++lane) {
        const Scalar value = x.lanes[lane];
        const ScalarOp beats = op == ReduceOp::kArgmax ? ScalarOp::kGt : ScalarOp::kLt;
        const bool better =
            i == 0 ||
            (!best[lane].IsNaN() &&
             (value.IsNaN() || Run(beats, type_, DType::kBool, {value, best[lane]}).bits));
        if (better) best[lane] = value, place[lane] = i;
      }
    }
    const Enclosure e = candidates.Position();
    for (int p : place) {
      if (!Encloses(e, Scalar::I64(p)))
        return absl::StrCat(Name(op), ": ", p, " is not in ", ToString(e));
    }
    return "";
  }

  std::string ApplyAnyRow() {
    const auto rows = AllScalarOps();
    const ScalarOpRow& row = rows[random_.Below(static_cast<int>(rows.size()))];
    if (row.op == ScalarOp::kSelect) return "";
    const auto target = ResultTypeOf(row.op, type_, AllTypes()[random_.Below(kNumTypes)]);
    if (!Accepts(row.operands, type_) || !target) return "";
    std::vector<Node> args;
    std::vector<Enclosure> sets;
    for (int i = 0; i < row.arity; ++i) {
      args.push_back(Pick());
      sets.push_back(args.back().e);
    }
    Node node{ApplyRow(row.op, type_, *target, sets), {}};
    for (int lane = 0; lane < kLanes; ++lane) {
      Bits operands[3] = {};
      for (int i = 0; i < row.arity; ++i) operands[i] = args[i].lanes[lane].bits;
      node.lanes[lane] = Scalar{*target, FunctionOf(row.op, type_, *target)(operands)};
    }
    return CheckAndReturn(row.name, *target, node);
  }

  // A node of another type is cast back to the case's.
  std::string CheckAndReturn(absl::string_view name, DType target, Node node) {
    const std::string wrong = Check(name, node);
    if (target == type_ || !wrong.empty()) return wrong;
    nodes_.pop_back();
    Node back{ApplyRow(ScalarOp::kCast, target, type_, {node.e}), {}};
    for (int lane = 0; lane < kLanes; ++lane) back.lanes[lane] = Convert(node.lanes[lane], type_);
    return Check(absl::StrCat("cast back from ", name), back);
  }

  DType type_;
  Random random_;
  std::vector<Node> nodes_;
};

TEST(Enclosure, HoldsAllowedEvaluations) {
  const int64_t checks = Setting("NESTOR_ENCLOSURE_CASES", 1000000);
  for (DType type : kFloats) {
    int64_t done = 0, useless = 0;
    for (uint64_t seed = 1; done < checks && !HasFailure(); ++seed) {
      Case c(type, seed);
      for (int step = 0; step < 12 && !HasFailure(); ++step) {
        EXPECT_EQ(c.Step(), "") << Name(type) << " seed " << seed << " step " << step;
        done += kLanes;
        useless += kLanes * c.IsUseless();
      }
    }
    std::cerr << Name(type) << ": " << done << " checks, of which " << useless * 100 / done
              << " % against all values\n";
    EXPECT_LT(useless, done / 3);
  }
}

// ---- How wide they are

struct Reduction {
  const char* name;
  ReduceOp op;
  bool products, positive;
};
constexpr Reduction kReductions[] = {
    {"sum", ReduceOp::kSum, false, false},
    {"sum of positive terms", ReduceOp::kSum, false, true},
    {"dot product", ReduceOp::kSum, true, false},
    {"product", ReduceOp::kProd, false, true},
};

// The largest distance from the exact result within the enclosure, over that of
// the evaluation in order; NaN where that is exact.
double Looseness(const Reduction& r, DType type, int terms, Random& random) {
  const DType wide = AccumulatorType(type);
  Accumulation accumulation(r.op, wide);
  Scalar native = Identity(r.op, wide);
  __float128 exact = r.op == ReduceOp::kSum ? 0 : 1;
  for (int i = 0; i < terms; ++i) {
    // Factors near 1, so that long products stay in range.
    const double x = r.op == ReduceOp::kProd
                         ? 1 + random.Signed() / 4
                         : (r.positive ? random.Unit() : random.Signed()) * (1 + random.Unit());
    const Scalar a = Scalar::Float(type, x),
                 b = Scalar::Float(type, r.products ? random.Signed() : 1);
    const Enclosure product = ApplyRow(ScalarOp::kMul, type, type, {Point(a), Point(b)});
    accumulation.Take(wide == type ? product : ApplyRow(ScalarOp::kCast, type, wide, {product}));
    const Scalar term = Convert(Run(ScalarOp::kMul, {a, b}), wide);
    native = Run(StepOp(r.op), {native, term});
    const __float128 value = static_cast<__float128>(a.ToDouble()) * b.ToDouble();
    exact = r.op == ReduceOp::kSum ? exact + value : exact * value;
  }
  Enclosure e = accumulation.Value();
  if (wide != type) e = ApplyRow(ScalarOp::kCast, wide, type, {e});
  const double observed = std::fabs(static_cast<double>(Convert(native, type).ToDouble() - exact));
  const double bound =
      std::max(static_cast<double>(e.high - exact), static_cast<double>(exact - e.low));
  return observed == 0 ? NAN : bound / observed;
}

double MedianLooseness(const Reduction& r, DType type, int terms) {
  Random random(terms);
  std::vector<double> ratios;
  for (int trial = 0; trial < (terms <= 16 ? 1001 : 101); ++trial) {
    const double ratio = Looseness(r, type, terms, random);
    if (!std::isnan(ratio)) ratios.push_back(ratio);
  }
  std::nth_element(ratios.begin(), ratios.begin() + ratios.size() / 2, ratios.end());
  return ratios[ratios.size() / 2];
}

TEST(Enclosure, IsTightForReductions) {
  constexpr int kTerms[] = {2, 4, 8, 16, 64, 256, 1024};
  std::cerr << absl::StrFormat("%-22s %-5s", "terms", "");
  for (int n : kTerms) std::cerr << absl::StrFormat("%8d", n);
  for (const Reduction& r : kReductions) {
    for (DType type : kFloats) {
      std::cerr << absl::StrFormat("\n%-22s %-5s", r.name, std::string(Name(type)));
      for (int n : kTerms) {
        const double ratio = MedianLooseness(r, type, n);
        std::cerr << absl::StrFormat("%8.1f", ratio);
        EXPECT_LT(ratio, n <= 16 ? 100 : 8 * n) << r.name << " " << Name(type) << " " << n;
      }
    }
  }
  std::cerr << "\n";
}

}  // namespace
}  // namespace nestor
