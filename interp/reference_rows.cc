// Most primitive rows are monotone in each operand while the operands keep their
// signs. So operands are cut at zero, infinities and NaN taken apart, and the
// row's own reference is run at the corners: it rounds as it must, and rounding is
// monotone, so the hull of the corners holds all results. NaN arises only where it
// arises at a corner: 0 * inf, inf - inf and 0 / 0 have each operand at an end.
//
//   [-1, 2] / [+0, 4]  =  [-1, -0] / [+0, 4]  and  [+0, 2] / [+0, 4]
//                      =  {-1/0, -1/4, -0/0, -0/4} and ..  =  -inf, inf, NaN, all finite
//
// Exceptions: sums and products run on the ends in long double, since their operands and results
// need not be rounded (FMA); equality; select; integers that may wrap, which are enumerated where
// they are few. A composed row is its body, run on enclosures. Integer operations on large sets
// give every value of the type.
#include "interp/reference_rows.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "interp/reference_transcendental.h"
#include "uops/scalar_body.h"

namespace nestor {
namespace {

using Args = absl::Span<const Enclosure>;

// How a primitive row acts on sets.
enum class Rule {
  kCorners,
  kSum,
  kDifference,
  kProduct,
  kNegation,
  kMagnitude,
  kEqual,
  kUnequal,
  kChoice,
  kCopy,
  kCast,
  kBits,
  kIsNan,
  kIsInf,
};

// Does not compile unless every primitive row has its rule.
Rule RuleOf(ScalarOp op) {
  switch (op) {
    case ScalarOp::kSign:
    case ScalarOp::kFloor:
    case ScalarOp::kCeil:
    case ScalarOp::kRound:
    case ScalarOp::kTrunc:
    case ScalarOp::kSqrt:
    case ScalarOp::kDiv:
    case ScalarOp::kFma:
    case ScalarOp::kMax:
    case ScalarOp::kMin:
    case ScalarOp::kLdexp:
    case ScalarOp::kLt:
    case ScalarOp::kLe:
    case ScalarOp::kGt:
    case ScalarOp::kGe: return Rule::kCorners;
    case ScalarOp::kAdd: return Rule::kSum;
    case ScalarOp::kSub: return Rule::kDifference;
    case ScalarOp::kMul: return Rule::kProduct;
    case ScalarOp::kNeg: return Rule::kNegation;
    case ScalarOp::kAbs: return Rule::kMagnitude;
    case ScalarOp::kEq: return Rule::kEqual;
    case ScalarOp::kNe: return Rule::kUnequal;
    case ScalarOp::kSelect: return Rule::kChoice;
    case ScalarOp::kCopy: return Rule::kCopy;
    case ScalarOp::kCast: return Rule::kCast;
    case ScalarOp::kIsNan: return Rule::kIsNan;
    case ScalarOp::kIsInf: return Rule::kIsInf;
    case ScalarOp::kNot:
    case ScalarOp::kAnd:
    case ScalarOp::kOr:
    case ScalarOp::kXor:
    case ScalarOp::kShl:
    case ScalarOp::kShr:
    case ScalarOp::kPopcount:
    case ScalarOp::kClz:
    case ScalarOp::kDotHalves:
    case ScalarOp::kToBits:
    case ScalarOp::kFromBits: return Rule::kBits;
#define PRIMITIVE(...)
#define COMPOSED(E, ...) case ScalarOp::k##E:
#define MIXED(E, ...) case ScalarOp::k##E:
#define TRANSCENDENTAL(E, ...) case ScalarOp::k##E:
#include "uops/scalar_ops.inc"
#undef PRIMITIVE
#undef COMPOSED
#undef MIXED
#undef TRANSCENDENTAL
      return Rule::kBits;
  }
  __builtin_unreachable();
}

// Rows that take a float operand unrounded. A cast to a type that holds products does, as a product
// may be computed in it.
bool PassesUnrounded(Rule rule, DType operand, DType target) {
  return rule == Rule::kSum || rule == Rule::kDifference || rule == Rule::kNegation ||
         rule == Rule::kChoice || rule == Rule::kCopy ||
         (rule == Rule::kCast && HoldsProducts(target, operand));
}

// ---- At the corners

// A set of one sign: NaN, an infinity, [low, -0] or [+0, high].
struct Piece {
  Bits low, high;
};
using Pieces = absl::InlinedVector<Piece, 5>;

// NaN, each infinity, the negative and the positive numbers apart: a primitive whose rule is
// AtCorners may jump between these, but is monotone within each. -0 belongs to the negative ones.
Pieces PiecesOf(DType type, const Enclosure& e) {
  Pieces pieces;
  const auto add = [&](long double low, long double high) {
    pieces.push_back({FromLongDouble(type, low).bits, FromLongDouble(type, high).bits});
  };
  if (e.nan) pieces.push_back({Scalar::Float(type, NAN).bits, Scalar::Float(type, NAN).bits});
  if (e.minus_infinity) add(-INFINITY, -INFINITY);
  if (e.plus_infinity) add(INFINITY, INFINITY);
  if (!e.HasFinite()) return pieces;
  if (std::signbit(e.low)) add(e.low, LesserOf(e.high, -0.0L));
  if (!std::signbit(e.high)) add(GreaterOf(e.low, 0.0L), e.high);
  return pieces;
}

// Collects results of a row.
class Hull {
 public:
  explicit Hull(DType type) : type_(type) {}

  // -0 lies below +0, so that 1/x of a set that holds both has both infinities.
  void Add(Bits bits) {
    const Scalar value{type_, bits};
    if (value.IsNaN()) {
      nan_ = true;
      return;
    }
    const long double x = ToLongDouble(value);
    low_ = any_ ? LesserOf(low_, x) : x;
    high_ = any_ ? GreaterOf(high_, x) : x;
    any_ = true;
  }

  Enclosure Take() const {
    Enclosure e = any_ ? FromEnds(type_, low_, high_) : Enclosure();
    e.nan = nan_;
    return e;
  }

 private:
  DType type_;
  bool any_ = false, nan_ = false;
  long double low_ = 0, high_ = 0;
};

// The hull of f at the corners of a box of pieces.
Enclosure BoxImage(PrimitiveFunction f, DType target, absl::Span<const Piece> box) {
  Hull hull(target);
  for (int corner = 0; corner < (1 << box.size()); ++corner) {
    Bits operands[3] = {};
    for (size_t i = 0; i < box.size(); ++i)
      operands[i] = corner >> i & 1 ? box[i].high : box[i].low;
    hull.Add(f(operands));
  }
  return hull.Take();
}

// Calls `visit` with every choice of one piece per operand.
template <class Visit>
void VisitBoxes(absl::Span<const Pieces> pieces, Visit&& visit) {
  Piece box[3];
  size_t chosen[3] = {};
  for (;;) {
    for (size_t i = 0; i < pieces.size(); ++i) box[i] = pieces[i][chosen[i]];
    visit(absl::Span<const Piece>(box, pieces.size()));
    size_t i = 0;
    while (i < pieces.size() && ++chosen[i] == pieces[i].size()) chosen[i++] = 0;
    if (i == pieces.size()) return;
  }
}

// The image of a primitive that is monotone in each operand on each piece: the hull of its values
// at the corners of all boxes of pieces.
Enclosure AtCorners(ScalarOp op, DType operand, DType target, Args args) {
  const PrimitiveFunction f = Primitive(op, operand, target);
  absl::InlinedVector<Pieces, 3> pieces;
  for (const Enclosure& arg : args) pieces.push_back(PiecesOf(operand, arg));
  Enclosure image;
  VisitBoxes(pieces,
             [&](absl::Span<const Piece> box) { image = Join(image, BoxImage(f, target, box)); });
  return image;
}

// The result where every operand has only one member.
absl::optional<Enclosure> AtOnlyMembers(ScalarOp op, DType operand, DType target, Args args) {
  Bits operands[3] = {};
  for (size_t i = 0; i < args.size(); ++i) {
    const auto member = OnlyMember(operand, args[i]);
    if (!member) return absl::nullopt;
    operands[i] = member->bits;
  }
  return Point({target, Primitive(op, operand, target)(operands)});
}

// ---- Sums and products of floats: on the ends, in long double

// Interval addition, with directed rounding; an infinity stays if the other operand has a member
// that does not cancel it, and inf + -inf is NaN.
Enclosure Sum(DType type, const Enclosure& a, const Enclosure& b) {
  Enclosure e;
  if (a.HasFinite() && b.HasFinite()) {
    e.low = AddDown(a.low, b.low);
    e.high = AddUp(a.high, b.high);
  }
  const auto either = [&](bool Enclosure::*infinity) {
    return (a.*infinity && (b.HasFinite() || b.*infinity)) ||
           (b.*infinity && (a.HasFinite() || a.*infinity));
  };
  e.plus_infinity = either(&Enclosure::plus_infinity);
  e.minus_infinity = either(&Enclosure::minus_infinity);
  e.nan = a.nan || b.nan || (a.plus_infinity && b.minus_infinity) ||
          (a.minus_infinity && b.plus_infinity);
  return Rounded(type, e);
}

Enclosure Product(DType type, Args args) {
  const auto single = AtOnlyMembers(ScalarOp::kMul, type, type, args);
  return Join(single ? *single : AtCorners(ScalarOp::kMul, type, type, args),
              ExactProduct(args[0], args[1]));
}

// ---- Equality and choice

Enclosure Truth(bool may_be_false, bool may_be_true) {
  return FromEnds(DType::kBool, may_be_false ? 0 : 1, may_be_true ? 1 : 0);
}

// Certain only if both are the same single number, or if they have no member in common.
// The sets know nothing of each other: x == x of a set with two members is undecided.
Enclosure Equal(const Enclosure& a, const Enclosure& b, bool negate) {
  const bool numbers = a.HasNumber() && b.HasNumber();
  const bool overlap = a.HasFinite() && b.HasFinite() && a.low <= b.high && b.low <= a.high;
  const bool may_be_equal =
      overlap || (a.plus_infinity && b.plus_infinity) || (a.minus_infinity && b.minus_infinity);
  const bool single =
      numbers && a.Least() == a.Greatest() && b.Least() == b.Greatest() && a.Least() == b.Least();
  const bool may_differ = a.nan || b.nan || !single;
  return negate ? Truth(may_be_equal, may_differ) : Truth(may_differ, may_be_equal);
}

Enclosure Choice(Args args) {
  if (args[0].low != 0) return args[1];
  return args[0].high != 0 ? Join(args[1], args[2]) : args[2];
}

// ---- Integers and bool

// All results on the members, where the members are few.
absl::optional<Enclosure> Enumerated(ScalarOp op, DType operand, DType target, Args args) {
  // In long double, as the product of three widths may exceed int64.
  long double count = 1;
  for (const Enclosure& arg : args) count *= arg.high - arg.low + 1;
  if (IsFloat(operand) || count > 256) return absl::nullopt;
  const PrimitiveFunction f = Primitive(op, operand, target);
  Hull hull(target);
  for (int64_t k = 0; k < static_cast<int64_t>(count); ++k) {
    int64_t rest = k;
    Bits operands[3] = {};
    for (size_t i = 0; i < args.size(); ++i) {
      const int64_t width = static_cast<int64_t>(args[i].high - args[i].low) + 1;
      operands[i] =
          FromLongDouble(operand, args[i].low + static_cast<long double>(rest % width)).bits;
      rest /= width;
    }
    hull.Add(f(operands));
  }
  return hull.Take();
}

// [low, high], or everything where that wraps. A product may be -0, which is no integer; + 0
// makes it +0.
Enclosure Unwrapped(DType type, long double low, long double high) {
  const Enclosure all = Everything(type);
  return low < all.low || high > all.high ? all : FromEnds(type, low + 0.0L, high + 0.0L);
}

// The product is rounded outwards: an end that is not exact is far out of every range.
Enclosure IntegerProduct(DType type, const Enclosure& a, const Enclosure& b) {
  const Enclosure product = ExactProduct(a, b);
  return Unwrapped(type, product.low, product.high);
}

Enclosure IntegerSum(DType type, const Enclosure& a, const Enclosure& b) {
  return Unwrapped(type, AddDown(a.low, b.low), AddUp(a.high, b.high));
}

// Small sets are enumerated, which is exact; else by the row's rule, whose result may wrap.
Enclosure ApplyToIntegers(ScalarOp op, DType operand, DType target, Args args) {
  if (const auto image = Enumerated(op, operand, target, args)) return *image;
  switch (RuleOf(op)) {
    case Rule::kCorners: return AtCorners(op, operand, target, args);
    case Rule::kSum: return IntegerSum(operand, args[0], args[1]);
    case Rule::kDifference: return IntegerSum(operand, args[0], Negated(args[1]));
    case Rule::kProduct: return IntegerProduct(operand, args[0], args[1]);
    case Rule::kNegation: return IntegerSum(operand, FromEnds(operand, 0, 0), Negated(args[0]));
    case Rule::kMagnitude:
      if (Encloses(args[0], Lowest(operand)) && IsSigned(operand)) return Everything(operand);
      return AtCorners(op, operand, target, args);
    case Rule::kEqual:
    case Rule::kUnequal: return Equal(args[0], args[1], op == ScalarOp::kNe);
    case Rule::kCopy: return args[0];
    case Rule::kCast:
      if (IsFloat(target) || target == DType::kBool) return AtCorners(op, operand, target, args);
      return Unwrapped(target, args[0].low, args[0].high);
    case Rule::kChoice:
    case Rule::kIsNan:
    case Rule::kIsInf:
    case Rule::kBits: break;
  }
  return Everything(target);
}

// ---- Primitives of floats

// One combination of members is the row's own reference; sets go by the row's rule.
Enclosure ApplyToFloats(ScalarOp op, DType operand, DType target, Args args) {
  const Rule rule = RuleOf(op);
  if (rule == Rule::kNegation) return Negated(args[0]);
  if (rule == Rule::kCopy) return args[0];
  if (rule == Rule::kProduct) return Product(operand, args);
  if (rule == Rule::kCast && HoldsProducts(target, operand))
    return Join(args[0], Rounded(target, args[0]));
  if (const auto image = AtOnlyMembers(op, operand, target, args)) return *image;
  switch (rule) {
    case Rule::kSum: return Sum(operand, args[0], args[1]);
    case Rule::kDifference: return Sum(operand, args[0], Negated(args[1]));
    case Rule::kEqual:
    case Rule::kUnequal: return Equal(args[0], args[1], op == ScalarOp::kNe);
    case Rule::kIsNan: return Truth(args[0].HasNumber(), args[0].nan);
    case Rule::kIsInf: {
      const bool infinite = args[0].plus_infinity || args[0].minus_infinity;
      return Truth(args[0].HasFinite() || args[0].nan, infinite);
    }
    case Rule::kBits: return Everything(target);
    default: return AtCorners(op, operand, target, args);
  }
}

Enclosure ApplyPrimitive(ScalarOp op, DType operand, DType target, Args args) {
  if (RuleOf(op) == Rule::kChoice) return Choice(args);
  return IsFloat(operand) ? ApplyToFloats(op, operand, target, args)
                          : ApplyToIntegers(op, operand, target, args);
}

// ---- Bodies

// A row's body as straight-line code: registers are the operands, the constants, then the result
// of each step.
Enclosure ApplyBody(const ScalarBody& body, Args args) {
  std::vector<Enclosure> registers(args.begin(), args.end());
  for (size_t i = 0; i < body.constants.size(); ++i)
    registers.push_back(Point({body.constant_types[i], body.constants[i]}));
  for (const ScalarBody::Step& step : body.steps) {
    absl::InlinedVector<Enclosure, 3> operands;
    for (int i = 0; i < Row(step.op).arity; ++i) operands.push_back(registers[step.args[i]]);
    Enclosure y = ApplyRow(step.op, step.operand, step.target, operands);
    // A square is not negative.
    const bool square =
        step.op == ScalarOp::kMul && step.args[0] == step.args[1] && IsFloat(step.target);
    if (square && y.HasFinite()) y.low = GreaterOf(y.low, 0.0L);
    if (square) y.minus_infinity = false;
    registers.push_back(y);
  }
  return registers[body.result];
}

}  // namespace

namespace {

bool IsOnly(DType type, const Enclosure& e, double value) {
  const auto member = OnlyMember(type, e);
  return member && member->bits == Scalar::Float(type, value).bits;
}

bool AreSame(const Enclosure& a, const Enclosure& b) {
  return a.low == b.low && a.high == b.high && std::signbit(a.low) == std::signbit(b.low) &&
         std::signbit(a.high) == std::signbit(b.high) && a.nan == b.nan &&
         a.plus_infinity == b.plus_infinity && a.minus_infinity == b.minus_infinity;
}

// The operand that the row returns bit for bit, whatever its value; null: none. These are the rules
// of fusion/simplify_values: a program without such a row has the same values at every other row,
// however products and sums are rounded, so each bound of the one program is a bound of the other.
// Two operands with equal sets may be equal.
const Enclosure* GivenBack(ScalarOp op, DType operand, DType target, Args args) {
  const auto left_if = [&](bool given_back) { return given_back ? &args[0] : nullptr; };
  switch (op) {
    case ScalarOp::kMul:
      return IsOnly(operand, args[0], 1) ? &args[1] : left_if(IsOnly(operand, args[1], 1));
    case ScalarOp::kDiv: return left_if(IsOnly(operand, args[1], 1));
    case ScalarOp::kAdd:
      return IsOnly(operand, args[0], -0.0) ? &args[1] : left_if(IsOnly(operand, args[1], -0.0));
    case ScalarOp::kSub: return left_if(IsOnly(operand, args[1], 0));
    case ScalarOp::kMax:
    case ScalarOp::kMin: return left_if(AreSame(args[0], args[1]));
    case ScalarOp::kCast: return left_if(operand == target);
    default: return nullptr;
  }
}

// The operands are rounded to their type first, unless the row's rule passes a wider value through;
// then the row's kind decides: a bound in ulps, a body of other operations, or a primitive.
Enclosure Image(ScalarOp op, DType operand, DType target, Args args) {
  const bool has_body = HasBody(op, operand);
  absl::InlinedVector<Enclosure, 3> rounded(args.begin(), args.end());
  if (has_body || !PassesUnrounded(RuleOf(op), operand, target)) {
    for (Enclosure& arg : rounded) arg = Rounded(operand, arg);
  }
  if (Row(op).transcendental)
    return Rounded(target, TranscendentalImage(op, AccumulatorType(operand), rounded));
  if (has_body) return ApplyBody(*FunctionOf(op, operand, target).body, rounded);
  return ApplyPrimitive(op, operand, target, rounded);
}

}  // namespace

Enclosure ApplyRow(ScalarOp op, DType operand, DType target, Args args) {
  Enclosure image = Image(op, operand, target, args);
  const Enclosure* const given_back =
      IsFloat(operand) ? GivenBack(op, operand, target, args) : nullptr;
  if (given_back != nullptr) image = Join(image, *given_back);
  for (const Enclosure& arg : args) image.may_overflow |= arg.may_overflow;
  return image;
}

Enclosure ApplyInProgram(ScalarOp op, DType operand, DType target, Args args) {
  const Enclosure e = ApplyRow(op, operand, target, args);
  if (op != ScalarOp::kDiv) return e;
  const Enclosure one = Point(Scalar::Float(operand, 1));
  const Enclosure reciprocal = ApplyRow(op, operand, target, {one, args[1]});
  return Join(e, ApplyRow(ScalarOp::kMul, operand, target, {args[0], reciprocal}));
}

}  // namespace nestor
