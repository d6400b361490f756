// Rules on scalar ops, each with its equation. "Every bit" rules out most of
// algebra on floats:
//
//   x + 0.0 is not x (x = -0.0), x * 0.0 is not 0.0 (x = inf, NaN, -1.0),
//   x - x is not 0.0 (x = inf)
//
// All NaNs count as equal, so x * 1.0 and -(-x) are x. On integers, whose
// arithmetic wraps, the same rules hold.
//
// A rule that returns an operand of a float row is a rule of the law, too (docs/semantics.md,
// section 5): interp/reference_rows leaves out the same.
#include "fusion/simplify_values.h"

#include <algorithm>

#include "absl/types/span.h"
#include "absl/types/variant.h"
#include "uops/scalar_body.h"

namespace nestor::loop {
namespace {

using Result = absl::optional<ValueId>;

absl::optional<Scalar> ConstantOf(const Program& program, ValueId id) {
  if (const auto* constant = absl::get_if<ConstantValue>(&program[id].node)) return constant->value;
  return absl::nullopt;
}

// ---- Equal values

bool SameValue(const Program& program, ValueId a, ValueId b);

bool SameAccess(const Program& program, const Access& a, const Access& b) {
  const bool same_fill =
      a.fill == b.fill || (a.fill.valid() && b.fill.valid() && SameValue(program, a.fill, b.fill));
  return a.tensor == b.tensor && a.place == b.place && a.masked == b.masked &&
         a.conditions == b.conditions && same_fill;
}

bool SameNode(const Program&, const ConstantValue& a, const ConstantValue& b) {
  return a.value == b.value;
}
bool SameNode(const Program&, const ParamValue& a, const ParamValue& b) { return a.name == b.name; }
bool SameNode(const Program&, const IndexValue& a, const IndexValue& b) {
  return a.index == b.index;
}
bool SameNode(const Program& program, const LoadValue& a, const LoadValue& b) {
  return SameAccess(program, a.access, b.access);
}
bool SameNode(const Program& program, const ApplyValue& a, const ApplyValue& b) {
  return a.op == b.op && std::equal(a.args.begin(), a.args.end(), b.args.begin(), b.args.end(),
                                    [&](ValueId x, ValueId y) { return SameValue(program, x, y); });
}

// Within one statement: memory does not change between the two.
bool SameValue(const Program& program, ValueId a, ValueId b) {
  if (a == b) return true;
  const Value &x = program[a], &y = program[b];
  if (x.type != y.type || x.node.index() != y.node.index()) return false;
  return absl::visit(
      [&](const auto& node) {
        return SameNode(program, node, absl::get<std::decay_t<decltype(node)>>(y.node));
      },
      x.node);
}

// ---- The rules

struct Application {
  Program& program;
  Ranges& ranges;
  ScalarOp op;
  absl::InlinedVector<ValueId, 3> args;
  DType type;     // of the result
  DType operand;  // of the operands; for a select, of the branches

  absl::optional<Scalar> Constant(int i) const { return ConstantOf(program, args[i]); }
  bool Same(int i, int j) const { return SameValue(program, args[i], args[j]); }
};

// op(constants) = a constant.
Result Fold(const Application& a) {
  Bits operands[3] = {};
  for (size_t i = 0; i < a.args.size(); ++i) {
    const auto constant = a.Constant(static_cast<int>(i));
    if (!constant) return absl::nullopt;
    operands[i] = constant->bits;
  }
  const Bits bits = FunctionOf(a.op, a.operand, a.type)(operands);
  return a.program.AddConstant(Scalar{a.type, bits}.Canonical());
}

// where(true, x, y) = x,  where(false, x, y) = y,  where(c, x, x) = x.
Result Choose(const Application& a) {
  if (const auto condition = a.Constant(0)) return a.args[condition->bits != 0 ? 1 : 2];
  if (a.Same(1, 2)) return a.args[1];
  return absl::nullopt;
}

// op(op(x)) = x.
Result CancelTwice(const Application& a) {
  const auto* inner = absl::get_if<ApplyValue>(&a.program[a.args[0]].node);
  if (inner == nullptr || inner->op != a.op) return absl::nullopt;
  return inner->args[0];
}

// T(x) = x of a type T.
Result DropCast(const Application& a) {
  if (a.type != a.operand) return absl::nullopt;
  return a.args[0];
}

Result TakeFirst(const Application& a) { return a.args[0]; }

// op(x, x) = x.
Result DropEqual(const Application& a) {
  if (!a.Same(0, 1)) return absl::nullopt;
  return a.args[0];
}

Scalar Zero(DType type) { return Scalar::Zero(type); }
Scalar One(DType type) { return IsFloat(type) ? Scalar::Float(type, 1) : Scalar::Integer(type, 1); }
// x + -0.0 = x of floats, x + 0 = x of integers.
Scalar NeutralOfSum(DType type) { return IsFloat(type) ? Scalar::Float(type, -0.0) : Zero(type); }
Scalar AllOnes(DType type) { return IsSigned(type) ? Scalar::Integer(type, -1) : Highest(type); }

// op(x, n) = x, n being Neutral.
template <Scalar (*Neutral)(DType)>
Result DropRight(const Application& a) {
  if (a.Constant(1) != Neutral(a.operand)) return absl::nullopt;
  return a.args[0];
}

// op(n, x) = x.
template <Scalar (*Neutral)(DType)>
Result DropLeft(const Application& a) {
  if (a.Constant(0) != Neutral(a.operand)) return absl::nullopt;
  return a.args[1];
}

// op(x, z) = op(z, x) = z, z being Absorbing.
template <Scalar (*Absorbing)(DType)>
Result Absorb(const Application& a) {
  for (int i : {0, 1}) {
    if (a.Constant(i) == Absorbing(a.operand)) return a.args[i];
  }
  return absl::nullopt;
}

// and(and(x, m), n) = and(x, m), where m has no bit that n lacks.
Result DropMask(const Application& a) {
  const auto* inner = absl::get_if<ApplyValue>(&a.program[a.args[0]].node);
  const auto mask = a.Constant(1);
  if (!mask || inner == nullptr || inner->op != ScalarOp::kAnd) return absl::nullopt;
  const auto own = ConstantOf(a.program, inner->args[1]);
  if (!own || (own->bits & ~mask->bits) != 0) return absl::nullopt;
  return a.args[0];
}

// mulz(x, 0.0) = mulz(-0.0, x) = 0.0.
Result AbsorbZeros(const Application& a) {
  for (int i : {0, 1}) {
    const absl::optional<Scalar> factor = a.Constant(i);
    if (factor && factor->ToDouble() == 0) return a.program.AddConstant(Zero(a.operand));
  }
  return absl::nullopt;
}

// ---- Comparisons of index values

absl::optional<IndexId> IndexOf(Program& program, ValueId id) {
  if (program[id].type != DType::kI64) return absl::nullopt;
  if (const auto* index = absl::get_if<IndexValue>(&program[id].node)) return index->index;
  const auto constant = ConstantOf(program, id);
  if (!constant) return absl::nullopt;
  return program.pool.Const(constant->ToInt());
}

// index(a) < index(b), where it is always true, or always false.
template <IndexKind kind, bool swapped>
Result DecideIndices(const Application& a) {
  const auto left = IndexOf(a.program, a.args[swapped ? 1 : 0]),
             right = IndexOf(a.program, a.args[swapped ? 0 : 1]);
  if (!left || !right) return absl::nullopt;
  const auto decided = a.ranges.Decide(a.program.pool.Condition(kind, *left, *right));
  if (!decided) return absl::nullopt;
  return a.program.AddConstant(Scalar{DType::kBool, Bits{*decided}});
}

using Rule = Result (*)(const Application&);
struct Row {
  ScalarOp op;
  Rule rule;
};

constexpr Row kRules[] = {
    // Choice.
    {ScalarOp::kSelect, Choose},
    {ScalarOp::kMax, DropEqual},
    {ScalarOp::kMin, DropEqual},
    // Arithmetic.
    {ScalarOp::kNeg, CancelTwice},
    {ScalarOp::kMul, DropRight<One>},
    {ScalarOp::kMul, DropLeft<One>},
    {ScalarOp::kDiv, DropRight<One>},
    {ScalarOp::kMulz, AbsorbZeros},
    {ScalarOp::kSub, DropRight<Zero>},
    {ScalarOp::kAdd, DropRight<NeutralOfSum>},
    {ScalarOp::kAdd, DropLeft<NeutralOfSum>},
    // Logic and bits.
    {ScalarOp::kNot, CancelTwice},
    {ScalarOp::kAnd, DropRight<AllOnes>},
    {ScalarOp::kAnd, DropLeft<AllOnes>},
    {ScalarOp::kAnd, Absorb<Zero>},
    {ScalarOp::kAnd, DropEqual},
    {ScalarOp::kAnd, DropMask},
    {ScalarOp::kOr, DropRight<Zero>},
    {ScalarOp::kOr, DropLeft<Zero>},
    {ScalarOp::kOr, Absorb<AllOnes>},
    {ScalarOp::kOr, DropEqual},
    {ScalarOp::kXor, DropRight<Zero>},
    {ScalarOp::kXor, DropLeft<Zero>},
    // Types.
    {ScalarOp::kCast, DropCast},
    {ScalarOp::kCopy, TakeFirst},
    // Comparisons.
    {ScalarOp::kEq, DecideIndices<IndexKind::kEq, false>},
    {ScalarOp::kNe, DecideIndices<IndexKind::kNe, false>},
    {ScalarOp::kLt, DecideIndices<IndexKind::kLt, false>},
    {ScalarOp::kLe, DecideIndices<IndexKind::kLe, false>},
    {ScalarOp::kGt, DecideIndices<IndexKind::kLt, true>},
    {ScalarOp::kGe, DecideIndices<IndexKind::kLe, true>},
};

}  // namespace

// Constants first, then the rules of the op, in the order of the table.
Result SimplifyApplication(Program& program, Ranges& ranges, ValueId id) {
  const auto* apply = absl::get_if<ApplyValue>(&program[id].node);
  if (apply == nullptr) return absl::nullopt;
  const Application a{program,     ranges,           apply->op,
                      apply->args, program[id].type, program[apply->args.back()].type};
  if (const Result folded = Fold(a)) return folded;
  for (const Row& row : kRules) {
    if (row.op != a.op) continue;
    if (const Result result = row.rule(a)) return result;
  }
  return absl::nullopt;
}

}  // namespace nestor::loop
