// Each rule computes the row on some members of the operands' sets, mostly on their ends: a
// monotone row takes its least value at the low ends, a product at two of four corners. A value
// between two results need not be a result, but an enclosure's finite part is an interval. So the
// hull of results is an inner set.
//
// f64 holds the results of a row of narrower floats before they are rounded:
//  - A product of two values of f32 has 48 bits, so it is exact.
//  - A sum or square root of values is rounded to f64 and then to its type, and that gives
//    what one rounding gives, since 53 >= 2 * 24 + 2 (Figueroa, When is double rounding
//    innocuous?, 1995). A term that is added unrounded, and a quotient (the JIT may multiply by
//    the reciprocal), move inwards by a few units of 2^-52 first.
//
// A composed row is its body, as in the oracle. An integer row runs on members.
#include "check/bounds/inner_rows.h"

#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "uops/invariant.h"
#include "uops/notation/module.h"

namespace nestor {
namespace {

using Args = absl::Span<const InnerSet>;
using Floats = absl::Span<const FloatSet>;

// ---- Integers and bool

IntegerSet OnMembers(Doubles& f64, ScalarOp op, DType target, Args args) {
  NodeList values;
  NodeId known;
  for (const InnerSet& arg : args) {
    const IntegerSet& member = absl::get<IntegerSet>(arg);
    values.push_back(member.value);
    known = KnownBoth(f64, known, member.known);
  }
  return {f64.graph().AddMap(op, values, target), known};
}

TruthSet TruthOf(Doubles& f64, const IntegerSet& x) {
  if (!x.known.valid()) return DecidedSet(f64, x.value);
  return {f64.And(x.value, x.known), f64.And(f64.Not(x.value), x.known)};
}

IntegerSet TruthAsInteger(Doubles& f64, const TruthSet& x, DType target) {
  const NodeId value = f64.graph().AddCast(x.may_be_true, target);
  return {value, IsDecided(f64, x) ? NodeId() : f64.Or(x.may_be_true, x.may_be_false)};
}

FloatSet TruthAsFloat(Doubles& f64, const TruthSet& x) {
  const NodeId value = f64.graph().AddCast(x.may_be_true, DType::kF64);
  if (IsDecided(f64, x)) return PointSet(value);
  const NodeId any = f64.Or(x.may_be_true, x.may_be_false);
  if (x.exclusive) return PointSet(f64.OnlyWhere(any, value));
  return {f64.OnlyWhere(any, f64.Where(x.may_be_false, 0, 1)),
          f64.OnlyWhere(any, f64.Where(x.may_be_true, 1, 0)), true};
}

TruthSet Both(Doubles& f64, const TruthSet& a, const TruthSet& b) {
  return {f64.And(a.may_be_true, b.may_be_true), f64.Or(a.may_be_false, b.may_be_false),
          a.exclusive && b.exclusive};
}

TruthSet Opposite(const TruthSet& x) { return {x.may_be_false, x.may_be_true, x.exclusive}; }

TruthSet Same(Doubles& f64, const TruthSet& a, const TruthSet& b) {
  const auto either = [&](NodeId x, NodeId y, NodeId u, NodeId v) {
    return f64.Or(f64.And(x, y), f64.And(u, v));
  };
  return {either(a.may_be_true, b.may_be_true, a.may_be_false, b.may_be_false),
          either(a.may_be_true, b.may_be_false, a.may_be_false, b.may_be_true),
          a.exclusive && b.exclusive};
}

// `or` is the opposite of `and` of the opposites, so that one rule serves both.
InnerSet OnTruths(Doubles& f64, ScalarOp op, DType target, Args args) {
  const auto at = [&](size_t i) { return absl::get<TruthSet>(args[i]); };
  switch (op) {
    case ScalarOp::kCopy: return at(0);
    case ScalarOp::kNot: return Opposite(at(0));
    case ScalarOp::kAnd: return Both(f64, at(0), at(1));
    case ScalarOp::kOr: return Opposite(Both(f64, Opposite(at(0)), Opposite(at(1))));
    case ScalarOp::kEq: return Same(f64, at(0), at(1));
    case ScalarOp::kXor:
    case ScalarOp::kNe: return Opposite(Same(f64, at(0), at(1)));
    default: break;
  }
  NESTOR_CHECK(op == ScalarOp::kCast, Row(op).name);
  if (target == DType::kBool) return at(0);
  if (IsFloat(target)) return TruthAsFloat(f64, at(0));
  return TruthAsInteger(f64, at(0), target);
}

InnerSet OnIntegers(Doubles& f64, ScalarOp op, DType target, Args args) {
  const IntegerSet result = OnMembers(f64, op, target, args);
  if (target == DType::kBool) return TruthOf(f64, result);
  if (!IsFloat(target)) return result;
  const NodeId wide = f64.graph().AddCast(result.value, DType::kF64);
  return PointSet(result.known.valid() ? f64.OnlyWhere(result.known, wide) : wide);
}

// ---- Floats

// Moves the ends inwards, then rounds them to the type.
FloatSet Inner(Doubles& f64, DType type, NodeId low, NodeId high) {
  if (type == DType::kF64) return PointSet(low);
  return RoundedSet(f64, type, {f64.Up(low, 2), f64.Down(high, 2)});
}

FloatSet Negated(Doubles& f64, const FloatSet& x) {
  const NodeId low = f64.Neg(x.high);
  return {low, x.IsPoint() ? low : f64.Neg(x.low), x.rounded};
}

// Applies the row at both ends; it rounds nothing.
FloatSet AtEnds(Doubles& f64, ScalarOp op, const FloatSet& x) {
  return {f64.Apply(op, x.low), f64.Apply(op, x.high), true};
}

// [-3, 2] -> [0, 3], [1, 2] -> [1, 2], [-3, -2] -> [2, 3]
FloatSet Magnitude(Doubles& f64, const FloatSet& x) {
  if (x.IsPoint()) return PointSet(f64.Abs(x.low));
  return {f64.Max(f64.Max(x.low, f64.Neg(x.high)), 0), f64.Max(f64.Neg(x.low), x.high), true};
}

// Whether the sum of a and b in f64 is exact. An error is a multiple of the last place of either,
// so it shows in the sum less the other one.
NodeId IsExactSum(Doubles& f64, NodeId a, NodeId b, NodeId sum) {
  return f64.And(f64.Apply(ScalarOp::kEq, f64.Sub(sum, a), b),
                 f64.Apply(ScalarOp::kEq, f64.Sub(sum, b), a));
}

// Ties of the type are frequent among exact sums, so these do not move.
FloatSet Sum(Doubles& f64, DType type, const FloatSet& a, const FloatSet& b) {
  const NodeId low = f64.Add(a.low, b.low), high = f64.Add(a.high, b.high);
  if (a.rounded && b.rounded) return RoundedSet(f64, type, {low, high});
  return RoundedSet(f64, type,
                    {f64.Where(IsExactSum(f64, a.low, b.low, low), low, f64.Up(low, 2)),
                     f64.Where(IsExactSum(f64, a.high, b.high, high), high, f64.Down(high, 2))});
}

// The distinct ends of a set.
NodeList EndsOf(const FloatSet& x) {
  if (x.IsPoint()) return {x.low};
  return {x.low, x.high};
}

// The hull of f(x, y) over ends of a and b.
template <class Function>
FloatSet AtCorners(Doubles& f64, const FloatSet& a, const FloatSet& b, Function&& f) {
  FloatSet hull;
  for (NodeId x : EndsOf(a)) {
    for (NodeId y : EndsOf(b)) {
      const NodeId corner = f(x, y);
      hull.low = hull.low.valid() ? f64.Min(hull.low, corner) : corner;
      hull.high = hull.high.valid() ? f64.Max(hull.high, corner) : corner;
    }
  }
  return hull;
}

// x * x of one x: the corners low * high of two independent operands cannot occur.
FloatSet Square(Doubles& f64, const FloatSet& x) {
  const NodeId low = f64.Mul(x.low, x.low), high = f64.Mul(x.high, x.high);
  return x.IsPoint() ? FloatSet{low, low} : FloatSet{f64.Min(low, high), f64.Max(low, high)};
}

// The exact products, and the values that they round to.
FloatSet Product(Doubles& f64, DType type, const FloatSet& a, const FloatSet& b) {
  const auto multiply = [&](NodeId x, NodeId y) { return f64.Mul(x, y); };
  const bool same = a.low == b.low && a.high == b.high;
  const FloatSet exact = same ? Square(f64, a) : AtCorners(f64, a, b, multiply);
  if (type == DType::kF64) return PointSet(exact.low);
  return {f64.Min(exact.low, f64.Nearest(type, exact.low)),
          f64.Max(exact.high, f64.Nearest(type, exact.high))};
}

FloatSet Quotient(Doubles& f64, DType type, const FloatSet& a, const FloatSet& b) {
  const auto divide = [&](NodeId x, NodeId y) { return f64.Apply(ScalarOp::kDiv, x, y); };
  const FloatSet q = AtCorners(f64, a, b, divide);
  return Inner(f64, type, q.low, q.high);
}

FloatSet MultiplyAdd(Doubles& f64, DType type, Floats args) {
  const auto at = [&](NodeId addend) {
    return AtCorners(f64, args[0], args[1], [&](NodeId x, NodeId y) {
      return f64.graph().AddMap(ScalarOp::kFma, {x, y, addend});
    });
  };
  return Inner(f64, type, at(args[2].low).low, at(args[2].high).high);
}

// For narrower floats f64 gives the exact products, or values that round to 0 or infinity
// as these do.
FloatSet Scaled(Doubles& f64, DType type, const FloatSet& a, const FloatSet& b) {
  const auto scale = [&](NodeId x, NodeId y) { return f64.Apply(ScalarOp::kLdexp, x, y); };
  const FloatSet exact = AtCorners(f64, a, b, scale);
  return RoundedSet(f64, type, {exact.low, exact.high});
}

// Some members compare so where a's least is below b's greatest; some do not where a's greatest is
// at least b's least. Both may hold.
TruthSet Less(Doubles& f64, const FloatSet& a, const FloatSet& b) {
  return {f64.Apply(ScalarOp::kLt, a.low, b.high), f64.Apply(ScalarOp::kGe, a.high, b.low),
          a.IsPoint() && b.IsPoint()};
}

TruthSet LessOrEqual(Doubles& f64, const FloatSet& a, const FloatSet& b) {
  return Opposite(Less(f64, b, a));
}

TruthSet Equal(Doubles& f64, const FloatSet& a, const FloatSet& b) {
  return Both(f64, LessOrEqual(f64, a, b), LessOrEqual(f64, b, a));
}

// A known end is a number, and both ends are finite or neither is.
TruthSet IsInfinite(Doubles& f64, const FloatSet& x) {
  const NodeId magnitude = f64.Abs(x.low);
  return {f64.Apply(ScalarOp::kEq, magnitude, std::numeric_limits<double>::infinity()),
          f64.Apply(ScalarOp::kLt, magnitude, std::numeric_limits<double>::infinity()), true};
}

InnerSet FloatCast(Doubles& f64, DType operand, DType target, const FloatSet& x) {
  if (target == DType::kBool) return Opposite(Equal(f64, x, PointSet(f64.Number(0, x.low))));
  if (!IsFloat(target)) return IntegerSet{f64.graph().AddCast(x.low, target), f64.IsNumber(x.low)};
  if (target == DType::kF64) return PointSet(x.low);
  // From f64 to 16 bits there is one rounding.
  if (operand == DType::kF64)
    return PointSet(f64.graph().AddCast(f64.graph().AddCast(x.low, target), DType::kF64));
  return RoundedSet(f64, target, {x.low, x.high});
}

IntegerSet FloatBits(Doubles& f64, DType operand, const FloatSet& x) {
  return {f64.graph().AddMap(ScalarOp::kToBits, {f64.graph().AddCast(x.low, operand)}),
          f64.IsNumber(x.low)};
}

// Rows that the oracle applies to unrounded operands.
bool PassesUnrounded(ScalarOp op, DType operand, DType target) {
  return op == ScalarOp::kAdd || op == ScalarOp::kSub || op == ScalarOp::kNeg ||
         op == ScalarOp::kCopy || (op == ScalarOp::kCast && HoldsProducts(target, operand));
}

InnerSet PrimitiveOnFloats(Doubles& f64, ScalarOp op, DType operand, DType target, Floats args) {
  const FloatSet &a = args[0], &b = args.back();
  switch (op) {
    case ScalarOp::kNeg: return Negated(f64, a);
    case ScalarOp::kCopy: return a;
    case ScalarOp::kAbs: return Magnitude(f64, a);
    case ScalarOp::kSign:
    case ScalarOp::kFloor:
    case ScalarOp::kCeil:
    case ScalarOp::kRound:
    case ScalarOp::kTrunc: return AtEnds(f64, op, a);
    case ScalarOp::kSqrt: {
      const FloatSet root = AtEnds(f64, op, a);
      return RoundedSet(f64, operand, {root.low, root.high});
    }
    case ScalarOp::kAdd: return Sum(f64, operand, a, b);
    case ScalarOp::kSub: return Sum(f64, operand, a, Negated(f64, b));
    case ScalarOp::kMul: return Product(f64, operand, a, b);
    case ScalarOp::kDiv: return Quotient(f64, operand, a, b);
    case ScalarOp::kFma: return MultiplyAdd(f64, operand, args);
    case ScalarOp::kLdexp: return Scaled(f64, operand, a, b);
    case ScalarOp::kMax: return FloatSet{f64.Max(a.low, b.low), f64.Max(a.high, b.high), true};
    case ScalarOp::kMin: return FloatSet{f64.Min(a.low, b.low), f64.Min(a.high, b.high), true};
    case ScalarOp::kEq: return Equal(f64, a, b);
    case ScalarOp::kNe: return Opposite(Equal(f64, a, b));
    case ScalarOp::kLt: return Less(f64, a, b);
    case ScalarOp::kLe: return LessOrEqual(f64, a, b);
    case ScalarOp::kGt: return Less(f64, b, a);
    case ScalarOp::kGe: return LessOrEqual(f64, b, a);
    case ScalarOp::kCast: return FloatCast(f64, operand, target, a);
    case ScalarOp::kToBits: return FloatBits(f64, operand, a);
    case ScalarOp::kIsNan: return TruthSet{f64.Truth(false, a.low), f64.IsNumber(a.low), true};
    case ScalarOp::kIsInf: return IsInfinite(f64, a);
    default: break;
  }
  NESTOR_CHECK(false, absl::StrCat(Row(op).name, " of ", Name(operand)));
}

// ---- Bodies

Op BodyOf(ScalarOp op, DType type) {
  const absl::StatusOr<Module> module = Module::Parse(BodyText(op, type));
  NESTOR_CHECK(module.ok(), absl::StrCat(Row(op).name, ": ", module.status().ToString()));
  absl::StatusOr<Op> body = module->Instantiate("", {{"a", ArgumentSpec{type, 0}}});
  NESTOR_CHECK(body.ok(), absl::StrCat(Row(op).name, ": ", body.status().ToString()));
  return *std::move(body);
}

InnerSet ConstantSet(Doubles& f64, const Scalar& value, NodeId like) {
  if (IsFloat(value.type)) return PointSet(f64.Number(value.ToDouble(), like));
  if (value.type == DType::kBool) return DecidedSet(f64, f64.Truth(value.ToInt() != 0, like));
  Graph& graph = f64.graph();
  return IntegerSet{graph.AddSplat(graph.AddConstant(value), Shape(graph.shape(like))), NodeId()};
}

// REQUIRES: args are floats.
InnerSet OnBody(Doubles& f64, ScalarOp op, DType type, Args args) {
  const Op body = BodyOf(op, type);
  const Graph& graph = body.graph;
  const std::vector<bool> live = Reachable(graph, body.ResultNodes());
  std::vector<InnerSet> sets(graph.size());
  for (size_t i = 0; i < body.args.size(); ++i) sets[body.args[i].node.value] = args[i];
  const NodeId like = absl::get<FloatSet>(args[0]).low;
  for (int i = 0; i < graph.size(); ++i) {
    const NodeId id{i};
    if (!live[i]) continue;
    if (const Constant* constant = graph.As<Constant>(id))
      sets[i] = ConstantSet(f64, constant->value, like);
    const Map* map = graph.As<Map>(id);
    if (map == nullptr) continue;
    std::vector<InnerSet> operands;
    for (NodeId arg : map->args) operands.push_back(sets[arg.value]);
    sets[i] = InnerRow(f64, map->op, graph.type(map->args.back()), graph.type(id), operands);
  }
  return sets[body.results[0].node.value];
}

InnerSet OnFloats(Doubles& f64, ScalarOp op, DType operand, DType target, Args args) {
  const ScalarOpRow& row = Row(op);
  std::vector<FloatSet> floats;
  for (const InnerSet& arg : args) {
    const FloatSet& set = absl::get<FloatSet>(arg);
    floats.push_back(PassesUnrounded(op, operand, target) ? set : RoundedSet(f64, operand, set));
  }
  if (row.transcendental) return InnerTranscendental(f64, op, operand, floats);
  if (row.body == nullptr) return PrimitiveOnFloats(f64, op, operand, target, floats);
  return OnBody(f64, op, operand, std::vector<InnerSet>(floats.begin(), floats.end()));
}

// ---- Choice

// The end of the operand that may be chosen, where at most one may be.
NodeId ChosenEnd(Doubles& f64, const TruthSet& c, NodeId a, NodeId b) {
  return f64.Where(c.may_be_true, a, IsDecided(f64, c) ? b : f64.OnlyWhere(c.may_be_false, b));
}

FloatSet ChosenFloat(Doubles& f64, DType type, const TruthSet& c, const FloatSet& a,
                     const FloatSet& b) {
  const NodeId low = ChosenEnd(f64, c, a.low, b.low), high = ChosenEnd(f64, c, a.high, b.high);
  // An f64's set is any of its members.
  if (c.exclusive || type == DType::kF64) return {low, high, a.rounded && b.rounded};
  const NodeId both = f64.And(c.may_be_true, c.may_be_false);
  return {f64.Where(both, f64.Min(a.low, b.low), low),
          f64.Where(both, f64.Max(a.high, b.high), high)};
}

IntegerSet ChosenInteger(Doubles& f64, const TruthSet& c, const IntegerSet& a,
                         const IntegerSet& b) {
  const NodeId value = f64.Where(c.may_be_true, a.value, b.value);
  if (IsDecided(f64, c) && !a.known.valid() && !b.known.valid()) return {value, NodeId()};
  const NodeId all = f64.Truth(true, value);
  const NodeId a_known = a.known.valid() ? a.known : all, b_known = b.known.valid() ? b.known : all;
  return {value, f64.Or(f64.And(c.may_be_true, a_known),
                        f64.And(f64.Not(c.may_be_true), f64.And(c.may_be_false, b_known)))};
}

TruthSet ChosenTruth(Doubles& f64, const TruthSet& c, const TruthSet& a, const TruthSet& b) {
  const auto either = [&](NodeId x, NodeId y) {
    return f64.Or(f64.And(c.may_be_true, x), f64.And(c.may_be_false, y));
  };
  return {either(a.may_be_true, b.may_be_true), either(a.may_be_false, b.may_be_false),
          c.exclusive && a.exclusive && b.exclusive};
}

}  // namespace

NodeId KnownBoth(Doubles& f64, NodeId a, NodeId b) {
  if (!a.valid()) return b;
  return b.valid() ? f64.And(a, b) : a;
}

InnerSet InnerChoice(Doubles& f64, DType type, const TruthSet& condition, const InnerSet& a,
                     const InnerSet& b) {
  if (const auto* x = absl::get_if<FloatSet>(&a))
    return ChosenFloat(f64, type, condition, *x, absl::get<FloatSet>(b));
  if (const auto* x = absl::get_if<IntegerSet>(&a))
    return ChosenInteger(f64, condition, *x, absl::get<IntegerSet>(b));
  return ChosenTruth(f64, condition, absl::get<TruthSet>(a), absl::get<TruthSet>(b));
}

FloatSet InnerQuotient(Doubles& f64, DType type, const FloatSet& a, const FloatSet& b) {
  const FloatSet x = RoundedSet(f64, type, a), y = RoundedSet(f64, type, b);
  const FloatSet q = Quotient(f64, type, x, y);
  if (type == DType::kF64) return q;
  const FloatSet reciprocal = Quotient(f64, type, PointSet(f64.Number(1, y.low)), y);
  const FloatSet product = Product(f64, type, x, reciprocal);
  return {f64.Min(q.low, product.low), f64.Max(q.high, product.high)};
}

InnerSet InnerRow(Doubles& f64, ScalarOp op, DType operand, DType target, Args args) {
  if (op == ScalarOp::kSelect)
    return InnerChoice(f64, operand, absl::get<TruthSet>(args[0]), args[1], args[2]);
  if (operand == DType::kBool) return OnTruths(f64, op, target, args);
  return IsFloat(operand) ? OnFloats(f64, op, operand, target, args)
                          : OnIntegers(f64, op, target, args);
}

}  // namespace nestor
