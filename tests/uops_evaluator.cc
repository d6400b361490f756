// Every live node becomes a dense tensor, computed whole before the next by a
// plain loop over its shape; nothing is fused, masked lazily or kept strided.
//
// Arithmetic is told apart from uops/arithmetic.h on purpose: integers compute in
// 128 bits and wrap at the end, roundings go through a long double that holds every
// value of every type exactly, an arg reduction looks for its extreme first and
// then for the place.
#include "tests/uops_evaluator.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <limits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "uops/invariant.h"
#include "uops/recurrence.h"
#include "uops/scalar_body.h"

namespace nestor {
namespace {

using Int128 = __int128;
static_assert(LDBL_MANT_DIG >= 64, "a long double holds every i64");

// ---- Values of the types

struct FloatFormat {
  int digits;        // of the significand, the hidden one included
  int least;         // log2 of the smallest subnormal
  int end_exponent;  // 2^this is the first value that is too large
};

FloatFormat FormatOf(DType type) {
  switch (type) {
    case DType::kBF16: return {8, -133, 128};
    case DType::kF16: return {11, -24, 16};
    case DType::kF32: return {24, -149, 128};
    default: return {53, -1074, 1024};
  }
}

// `x` in the format, to nearest even.
long double RoundTo(DType type, long double x) {
  if (std::isnan(x) || std::isinf(x) || x == 0) return x;
  const FloatFormat format = FormatOf(type);
  int exponent;
  std::frexp(x, &exponent);
  const int unit = std::max(exponent - format.digits, format.least);
  const long double rounded = std::ldexp(std::rint(std::ldexp(x, -unit)), unit);
  const bool too_large = std::fabs(rounded) >= std::ldexp(1.0L, format.end_exponent);
  return too_large ? std::copysign(std::numeric_limits<long double>::infinity(), x) : rounded;
}

// The bits of a value that the format holds.
Bits EncodeF16(long double x) {
  const Bits sign = std::signbit(x) ? 0x8000 : 0;
  const long double magnitude = std::fabs(x);
  if (std::isinf(x)) return sign | 0x7c00;
  if (magnitude < 0x1p-14L) return sign | static_cast<Bits>(magnitude * 0x1p24L);
  int exponent;
  const long double fraction = std::frexp(magnitude, &exponent);  // in [1/2, 1)
  return sign | (static_cast<Bits>(exponent + 14) << 10) | static_cast<Bits>((2 * fraction - 1) * 1024);
}

Bits EncodeFloat(DType type, long double x) {
  if (std::isnan(x)) {
    if (type == DType::kBF16) return 0x7fc0;
    if (type == DType::kF16) return 0x7e00;
    return type == DType::kF32 ? 0x7fc00000 : 0x7ff8000000000000;
  }
  x = RoundTo(type, x);
  if (type == DType::kF16) return EncodeF16(x);
  if (type == DType::kF64) return absl::bit_cast<uint64_t>(static_cast<double>(x));
  const uint32_t single = absl::bit_cast<uint32_t>(static_cast<float>(x));
  return type == DType::kBF16 ? single >> 16 : single;
}

long double DecodeF16(Bits bits) {
  const int exponent = static_cast<int>((bits >> 10) & 31);
  const long double fraction = static_cast<long double>(bits & 1023);
  long double magnitude = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
  if (exponent == 31) {
    magnitude = fraction == 0 ? std::numeric_limits<long double>::infinity()
                              : std::numeric_limits<long double>::quiet_NaN();
  }
  return bits & 0x8000 ? -magnitude : magnitude;
}

bool HasNoSign(DType type) { return type == DType::kBool || Name(type)[0] == 'u'; }

// Of an integer type or bool.
Int128 ToInteger(DType type, Bits bits) { return HasNoSign(type) ? Int128{bits} : Int128{static_cast<int64_t>(bits)}; }

// Of any type, exactly.
long double ToReal(DType type, Bits bits) {
  switch (type) {
    case DType::kF64: return absl::bit_cast<double>(bits);
    case DType::kF32: return absl::bit_cast<float>(static_cast<uint32_t>(bits));
    case DType::kBF16: return absl::bit_cast<float>(static_cast<uint32_t>(bits << 16));
    case DType::kF16: return DecodeF16(bits);
    default: return static_cast<long double>(ToInteger(type, bits));
  }
}

int WidthOf(DType type) { return type == DType::kBool ? 1 : 8 * ByteSize(type); }
Int128 LeastOf(DType type) { return HasNoSign(type) ? 0 : -(Int128{1} << (WidthOf(type) - 1)); }
Int128 GreatestOf(DType type) {
  return HasNoSign(type) ? (Int128{1} << WidthOf(type)) - 1 : (Int128{1} << (WidthOf(type) - 1)) - 1;
}

// Modulo 2^width, in the type's range.
Bits Wrap(DType type, Int128 x) {
  const Int128 modulus = Int128{1} << WidthOf(type);
  x %= modulus;
  if (x < LeastOf(type)) x += modulus;
  if (x > GreatestOf(type)) x -= modulus;
  return static_cast<Bits>(static_cast<int64_t>(x));
}

Int128 FloorQuotient(Int128 a, Int128 b) {
  Int128 q = a / b;
  if (q * b > a && b > 0) --q;
  if (q * b < a && b < 0) --q;
  return q;
}

// ---- Scalar ops

Bits Cast(DType from, DType to, Bits bits) {
  const long double x = ToReal(from, bits);
  if (to == DType::kBool) return x != 0;
  if (IsFloat(to)) return EncodeFloat(to, x);
  if (!IsFloat(from)) return Wrap(to, ToInteger(from, bits));
  if (std::isnan(x)) return 0;
  if (x <= static_cast<long double>(LeastOf(to))) return Wrap(to, LeastOf(to));
  if (x >= static_cast<long double>(GreatestOf(to))) return Wrap(to, GreatestOf(to));
  return Wrap(to, static_cast<Int128>(x));
}

// Of a float type or an integer, bool among them; nullopt: not here.
template <class Real>
absl::optional<Real> FloatOp(ScalarOp op, Real a, Real b, Real c) {
  const Real nan = std::numeric_limits<Real>::quiet_NaN();
  switch (op) {
    case ScalarOp::kNeg: return std::copysign(a, std::signbit(a) ? Real{1} : Real{-1});
    case ScalarOp::kAbs: return std::copysign(a, Real{1});
    case ScalarOp::kSign: return a == 0 || a != a ? a : std::copysign(Real{1}, a);
    case ScalarOp::kFloor: return std::floor(a);
    case ScalarOp::kCeil: return -std::floor(-a);
    case ScalarOp::kRound: return std::rint(a);
    case ScalarOp::kSqrt: return std::sqrt(a);
    case ScalarOp::kAdd: return a + b;
    case ScalarOp::kSub: return a - b;
    case ScalarOp::kMul:
    case ScalarOp::kSquare: return a * (op == ScalarOp::kMul ? b : a);
    case ScalarOp::kDiv: return a / b;
    case ScalarOp::kRecip: return 1 / a;
    case ScalarOp::kFma: return std::fma(a, b, c);
    case ScalarOp::kMax:
      if (a != a || b != b) return nan;
      if (a == 0 && b == 0) return std::signbit(a) && std::signbit(b) ? -Real{0} : Real{0};
      return a < b ? b : a;
    case ScalarOp::kMin:
      if (a != a || b != b) return nan;
      if (a == 0 && b == 0) return std::signbit(a) || std::signbit(b) ? -Real{0} : Real{0};
      return a < b ? a : b;
    case ScalarOp::kMulz: return a == 0 || b == 0 ? Real{0} : a * b;
    case ScalarOp::kRelu: return a != a ? nan : (a > 0 ? a : Real{0});
    default: return absl::nullopt;
  }
}

// The 16-bit floats compute in float.
absl::optional<Bits> FloatOpOnBits(ScalarOp op, DType type, const Bits* v, int arity) {
  const long double x[] = {ToReal(type, v[0]), arity > 1 ? ToReal(type, v[1]) : 0,
                           arity > 2 ? ToReal(type, v[2]) : 0};
  if (type == DType::kF64) {
    const auto y = FloatOp<double>(op, x[0], x[1], x[2]);
    return y ? absl::make_optional(EncodeFloat(type, *y)) : absl::nullopt;
  }
  const auto y = FloatOp<float>(op, x[0], x[1], x[2]);
  return y ? absl::make_optional(EncodeFloat(type, *y)) : absl::nullopt;
}

// Modulo 2^128.
Int128 Product(Int128 a, Int128 b) {
  return static_cast<Int128>(static_cast<unsigned __int128>(a) * static_cast<unsigned __int128>(b));
}

absl::optional<Int128> IntegerOp(ScalarOp op, DType type, Int128 a, Int128 b) {
  const bool wide_shift = b < 0 || b >= WidthOf(type);
  switch (op) {
    case ScalarOp::kNeg: return -a;
    case ScalarOp::kAbs: return a < 0 ? -a : a;
    case ScalarOp::kSign: return (a > 0) - (a < 0);
    case ScalarOp::kNot: return type == DType::kBool ? 1 - a : -1 - a;
    case ScalarOp::kAdd: return a + b;
    case ScalarOp::kSub: return a - b;
    case ScalarOp::kMul:
    case ScalarOp::kMulz: return Product(a, b);
    case ScalarOp::kSquare: return Product(a, a);
    case ScalarOp::kRelu: return a > 0 ? a : 0;
    case ScalarOp::kFloorDiv: return b == 0 ? 0 : FloorQuotient(a, b);
    case ScalarOp::kMod: return b == 0 ? 0 : a - b * FloorQuotient(a, b);
    case ScalarOp::kMax: return a < b ? b : a;
    case ScalarOp::kMin: return a < b ? a : b;
    case ScalarOp::kAnd: return a & b;
    case ScalarOp::kOr: return a | b;
    case ScalarOp::kXor: return a ^ b;
    case ScalarOp::kShl: return wide_shift ? 0 : Product(a, Int128{1} << static_cast<int>(b));
    case ScalarOp::kShr: return wide_shift ? (a < 0 ? -1 : 0) : FloorQuotient(a, Int128{1} << static_cast<int>(b));
    default: return absl::nullopt;
  }
}

absl::optional<bool> Comparison(ScalarOp op, long double a, long double b) {
  switch (op) {
    case ScalarOp::kEq: return a == b;
    case ScalarOp::kNe: return a != b;
    case ScalarOp::kLt: return a < b;
    case ScalarOp::kLe: return a <= b;
    case ScalarOp::kGt: return a > b;
    case ScalarOp::kGe: return a >= b;
    default: return absl::nullopt;
  }
}

// Those whose operands' bits are moved, or whose rows round more than once.
absl::optional<Bits> SpecialOp(ScalarOp op, DType type, DType target, const Bits* v) {
  switch (op) {
    case ScalarOp::kCopy: return v[0];
    case ScalarOp::kSelect: return v[0] != 0 ? v[1] : v[2];
    case ScalarOp::kCast: return Cast(type, target, v[0]);
    case ScalarOp::kToBits: return Wrap(target, static_cast<Int128>(v[0]));
    case ScalarOp::kFromBits: {
      const Bits bits = target == DType::kF32 ? v[0] & 0xffffffff : v[0];
      return std::isnan(ToReal(target, bits)) ? EncodeFloat(target, NAN) : bits;
    }
    case ScalarOp::kRsqrt: {
      const Bits root = ApplyScalarOp(ScalarOp::kSqrt, type, type, v);
      return ApplyScalarOp(ScalarOp::kRecip, type, type, &root);
    }
    case ScalarOp::kFloorDiv: {
      if (!IsFloat(type)) return absl::nullopt;
      const Bits quotient = ApplyScalarOp(ScalarOp::kDiv, type, type, v);
      return ApplyScalarOp(ScalarOp::kFloor, type, type, &quotient);
    }
    default: return absl::nullopt;
  }
}

}  // namespace

Bits ApplyScalarOp(ScalarOp op, DType operand, DType target, const Bits* v) {
  if (const auto y = SpecialOp(op, operand, target, v)) return *y;
  const int arity = Row(op).arity;
  if (arity == 2) {
    const auto y = Comparison(op, ToReal(operand, v[0]), ToReal(operand, v[1]));
    if (y) return *y;
  }
  if (IsFloat(operand)) {
    if (const auto y = FloatOpOnBits(op, operand, v, arity)) return *y;
  } else {
    const auto y = IntegerOp(op, operand, ToInteger(operand, v[0]), arity > 1 ? ToInteger(operand, v[1]) : 0);
    if (y) return Wrap(operand, *y);
  }
  return FunctionOf(op, operand, target)(v);
}

namespace {

// ---- Tensors

struct Dense {
  DType type = DType::kF32;
  Dims shape;
  std::vector<Bits> elements;  // row-major
};

constexpr int64_t kMaxElements = int64_t{1} << 24;

int64_t CountOf(absl::Span<const int64_t> shape) {
  int64_t count = 1;
  for (int64_t extent : shape) count *= extent;
  return count;
}

// The index of the n-th element.
Dims PlaceOf(absl::Span<const int64_t> shape, int64_t n) {
  Dims at(shape.size());
  for (size_t axis = shape.size(); axis-- > 0; n /= shape[axis]) at[axis] = n % shape[axis];
  return at;
}

// -1 where out of bounds.
int64_t OffsetOf(absl::Span<const int64_t> shape, absl::Span<const int64_t> at) {
  int64_t offset = 0;
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    if (at[axis] < 0 || at[axis] >= shape[axis]) return -1;
    offset = offset * shape[axis] + at[axis];
  }
  return offset;
}

Tensor ToTensor(const Dense& dense) {
  Tensor tensor = *Tensor::Create(dense.type, dense.shape);
  char* element = static_cast<char*>(tensor.data());
  for (Bits bits : dense.elements) {
    Store(Scalar{dense.type, bits}, element);
    element += ByteSize(dense.type);
  }
  return tensor;
}

// ---- The graph

class Evaluator {
 public:
  Evaluator(const Op& op, const RunInputs& inputs)
      : op_(op), graph_(op.graph), inputs_(inputs), values_(op.graph.size()) {}

  absl::StatusOr<std::vector<Tensor>> Run() {
    NESTOR_RETURN_IF_ERROR(EvaluateAll(op_.ResultNodes()));
    std::vector<Tensor> results;
    for (const Result& result : op_.results) results.push_back(ToTensor(Of(result.node)));
    return results;
  }

  absl::optional<std::string> FirstUnsound(absl::Span<const ConstructorCall> calls) {
    std::vector<NodeId> nodes;
    for (int i = 0; i < graph_.size(); ++i) nodes.push_back(NodeId{i});
    if (!EvaluateAll(nodes).ok()) return absl::nullopt;
    for (const ConstructorCall& call : calls) {
      if (IsFloat(call.asked.type) && DependsOnForm(call)) continue;
      const auto want = Asked(call);
      if (!want) continue;
      const auto difference = FirstDifference(ToTensor(Of(call.given)), ToTensor(*want));
      if (difference) return absl::StrCat("node ", call.given.value, ": ", *difference);
    }
    return absl::nullopt;
  }

 private:
  absl::Status EvaluateAll(absl::Span<const NodeId> roots) {
    NESTOR_ASSIGN_OR_RETURN(binding_, Bind(SignatureOf(op_), inputs_));
    const std::vector<bool> live = Reachable(graph_, roots);
    for (int i = 0; i < graph_.size(); ++i) {
      if (live[i]) NESTOR_RETURN_IF_ERROR(Evaluate(NodeId{i}));
    }
    return absl::OkStatus();
  }

  // Float sums and products whose order the canonical form chooses.
  static bool DependsOnForm(const ConstructorCall& call) {
    const Scatter* scatter = absl::get_if<Scatter>(&call.asked.op);
    return scatter != nullptr && scatter->op <= ReduceOp::kProd;
  }

  // nullopt where it has no value.
  absl::optional<Dense> Asked(const ConstructorCall& call) {
    Dense y;
    y.type = call.asked.type;
    const auto shape = EvaluateShape(graph_.pool(), call.asked.shape, binding_, "");
    if (!shape.ok()) return absl::nullopt;
    y.shape = *shape;
    y.elements.resize(CountOf(y.shape));
    if (const Reduce* reduce = absl::get_if<Reduce>(&call.asked.op)) {
      ReduceAxes(*reduce, call.axes, y);
    } else {
      absl::visit([&](const auto& node) { Fill(node, y); }, call.asked.op);
    }
    const bool defined = !overflow_;
    overflow_ = false;
    return defined ? absl::make_optional(y) : absl::nullopt;
  }

  const Dense& Of(NodeId id) const { return values_[id.value]; }

  absl::Status Evaluate(NodeId id) {
    Dense& y = values_[id.value];
    y.type = graph_.type(id);
    const std::string name = absl::StrCat("op ", op_.name, ": node ", id.value);
    NESTOR_ASSIGN_OR_RETURN(y.shape, EvaluateShape(graph_.pool(), graph_.shape(id), binding_, name));
    NESTOR_ASSIGN_OR_RETURN(const int64_t count, NumElements(y.shape));
    if (count > kMaxElements) return absl::ResourceExhaustedError(absl::StrCat(name, " is too large"));
    y.elements.resize(count);
    absl::visit([&](const auto& node) { Fill(node, y); }, graph_[id].op);
    if (overflow_) return absl::InvalidArgumentError(absl::StrCat(name, ": an index expression overflows"));
    return absl::OkStatus();
  }

  // Sets every element of y to what f gives for its index.
  template <class F>
  static void ForEach(Dense& y, F f) {
    for (size_t n = 0; n < y.elements.size(); ++n) y.elements[n] = f(PlaceOf(y.shape, static_cast<int64_t>(n)));
  }

  void Fill(const Input& node, Dense& y) {
    const TensorView& view = inputs_.tensors.at(node.name);
    if (op_.FindArgument(node.name)->shape_only) return;
    ForEach(y, [&](const Dims& at) { return At(view, at).bits; });
  }
  void Fill(const Param& node, Dense& y) { y.elements[0] = binding_.params.at(node.name).bits; }
  void Fill(const Constant& node, Dense& y) { y.elements[0] = node.value.bits; }

  void Fill(const Index& node, Dense& y) {
    ForEach(y, [&](const Dims& at) {
      const auto value = Value(node.expr, at);
      overflow_ |= !value;
      return value ? static_cast<Bits>(*value) : 0;
    });
  }

  void Fill(const Reindex& node, Dense& y) {
    const Dense& x = Of(node.x);
    ForEach(y, [&](const Dims& at) {
      bool inside = true;
      for (IndexId condition : node.conditions) inside &= Value(condition, at).value_or(0) != 0;
      const int64_t offset = Locate(node.place, at, x);
      return inside && offset >= 0 ? x.elements[offset] : Of(node.fill).elements[0];
    });
  }

  void Fill(const Map& node, Dense& y) {
    const DType operand = graph_.type(node.args.back());
    for (size_t n = 0; n < y.elements.size(); ++n) {
      Bits operands[3] = {};
      for (size_t i = 0; i < node.args.size(); ++i) operands[i] = Of(node.args[i]).elements[n];
      y.elements[n] = ApplyScalarOp(node.op, operand, y.type, operands);
    }
  }

  void Fill(const Reduce& node, Dense& y) {
    const Dense& x = Of(node.x);
    const absl::Span<const int64_t> reduced = absl::MakeSpan(x.shape).last(node.count);
    const int64_t count = CountOf(reduced);
    for (size_t n = 0; n < y.elements.size(); ++n) {
      const absl::Span<const Bits> row = absl::MakeSpan(x.elements).subspan(n * count, count);
      y.elements[n] = IsArg(node.op) ? Arg(node.op, x.type, row) : Fold(node.op, x.type, row);
    }
  }

  // Over `axes`, in their order: each element gathers its row first.
  void ReduceAxes(const Reduce& node, const std::vector<int>& axes, Dense& y) {
    const Dense& x = Of(node.x);
    Dims extents;
    for (int axis : axes) extents.push_back(x.shape[axis]);
    const int64_t count = CountOf(extents);
    ForEach(y, [&](const Dims& at) {
      std::vector<Bits> row;
      for (int64_t n = 0; n < count; ++n) {
        const Dims inner = PlaceOf(extents, n);
        Dims place = at;
        // The reduced axes take their places again, ascending.
        for (size_t axis = 0; axis < x.shape.size(); ++axis) {
          const auto listed = std::find(axes.begin(), axes.end(), static_cast<int>(axis));
          if (listed != axes.end()) place.insert(place.begin() + axis, inner[listed - axes.begin()]);
        }
        row.push_back(x.elements[OffsetOf(x.shape, place)]);
      }
      return IsArg(node.op) ? Arg(node.op, x.type, row) : Fold(node.op, x.type, row);
    });
  }

  void Fill(const Scatter& node, Dense& y) {
    const Dense& x = Of(node.x);
    const DType wide = WideType(node.op, y.type);
    y.elements.assign(y.elements.size(), IdentityOf(node.op, wide));
    for (size_t n = 0; n < x.elements.size(); ++n) {
      const int64_t offset = Locate(node.place, PlaceOf(x.shape, static_cast<int64_t>(n)), y);
      if (offset < 0) continue;
      const Bits operands[] = {y.elements[offset], Cast(x.type, wide, x.elements[n])};
      y.elements[offset] = ApplyScalarOp(StepOf(node.op), wide, wide, operands);
    }
    for (Bits& element : y.elements) element = Cast(wide, y.type, element);
  }

  // Nothing at first; then what the bodies were, as often as there are steps: a step is right
  // once those before it are.
  void Fill(const Carry&, Dense&) {}
  void Fill(const Recurrence& node, Dense& y) {
    const Steps steps = StepsOf(graph_, node);
    const Carry& carry = *graph_.As<Carry>(node.carries[0]);
    const int64_t count = Of(node.carries[0]).shape[carry.axis];
    for (int64_t step = 0; step < count; ++step) {
      for (size_t k = 0; k < node.carries.size(); ++k) values_[node.carries[k].value] = Of(node.bodies[k]);
      for (NodeId id : steps.nodes) NESTOR_CHECK(Evaluate(id).ok(), op_.name);
    }
    y.elements = Of(node.x).elements;
  }

  // ---- Reductions

  static ScalarOp StepOf(ReduceOp op) {
    switch (op) {
      case ReduceOp::kSum: return ScalarOp::kAdd;
      case ReduceOp::kProd: return ScalarOp::kMul;
      case ReduceOp::kMax: return ScalarOp::kMax;
      case ReduceOp::kMin: return ScalarOp::kMin;
      case ReduceOp::kAny: return ScalarOp::kOr;
      default: return ScalarOp::kAnd;
    }
  }

  static DType WideType(ReduceOp op, DType type) {
    const bool rounds = op == ReduceOp::kSum || op == ReduceOp::kProd;
    return rounds && IsFloat(type) && ByteSize(type) == 2 ? DType::kF32 : type;
  }

  static Bits IdentityOf(ReduceOp op, DType type) {
    const long double inf = std::numeric_limits<long double>::infinity();
    switch (op) {
      case ReduceOp::kSum:
      case ReduceOp::kAny: return 0;
      case ReduceOp::kMax: return IsFloat(type) ? EncodeFloat(type, -inf) : Wrap(type, LeastOf(type));
      case ReduceOp::kMin: return IsFloat(type) ? EncodeFloat(type, inf) : Wrap(type, GreatestOf(type));
      default: return IsFloat(type) ? EncodeFloat(type, 1) : 1;
    }
  }

  static Bits Fold(ReduceOp op, DType type, absl::Span<const Bits> row) {
    const DType wide = WideType(op, type);
    Bits sum = IdentityOf(op, wide);
    for (Bits element : row) {
      const Bits operands[] = {sum, Cast(type, wide, element)};
      sum = ApplyScalarOp(StepOf(op), wide, wide, operands);
    }
    return Cast(wide, type, sum);
  }

  // The first NaN, else the first that no other surpasses.
  static Bits Arg(ReduceOp op, DType type, absl::Span<const Bits> row) {
    for (size_t i = 0; i < row.size(); ++i) {
      if (std::isnan(ToReal(type, row[i]))) return i;
    }
    for (size_t i = 0; i < row.size(); ++i) {
      bool surpassed = false;
      for (Bits other : row) {
        const long double a = ToReal(type, row[i]), b = ToReal(type, other);
        surpassed |= op == ReduceOp::kArgmax ? b > a : b < a;
      }
      if (!surpassed) return i;
    }
    return static_cast<Bits>(int64_t{-1});
  }

  // ---- Index expressions

  // The offset in `x`, -1 where out of bounds.
  int64_t Locate(const IndexList& place, const Dims& at, const Dense& x) {
    Dims index;
    bool defined = true;
    for (IndexId e : place) {
      const auto value = Value(e, at);
      defined &= value.has_value();
      index.push_back(value.value_or(0));
    }
    return defined ? OffsetOf(x.shape, index) : -1;
  }

  // nullopt where undefined; sets overflow_ where that is a Status.
  absl::optional<int64_t> Value(IndexId id, const Dims& at) {
    const IndexPool& pool = graph_.pool();
    const IndexNode& node = pool[id];
    Dims args;
    bool defined = true;
    for (IndexId arg : node.args) {
      const auto value = Value(arg, at);
      defined &= value.has_value();
      args.push_back(value.value_or(0));
    }
    if (!defined) return absl::nullopt;
    switch (node.kind) {
      case IndexKind::kConst: return node.value;
      case IndexKind::kVar: return at[node.value];
      case IndexKind::kSymbol: return binding_.Symbol(pool, id);
      case IndexKind::kLoad: {
        const Dense& tensor = values_[node.value];
        const int64_t offset = OffsetOf(tensor.shape, args);
        if (offset < 0) return absl::nullopt;
        const Int128 value = ToInteger(tensor.type, tensor.elements[offset]);
        if (value > GreatestOf(DType::kI64)) return absl::nullopt;
        return static_cast<int64_t>(value);
      }
      default: break;
    }
    const auto exact = Arithmetic(node.kind, args[0], args.size() > 1 ? args[1] : 0);
    if (!exact) return absl::nullopt;
    const bool fits = *exact >= LeastOf(DType::kI64) && *exact <= GreatestOf(DType::kI64);
    if (!fits) overflow_ |= pool.IsAffine(id);
    return fits ? absl::make_optional(static_cast<int64_t>(*exact)) : absl::nullopt;
  }

  static absl::optional<Int128> Arithmetic(IndexKind kind, Int128 a, Int128 b) {
    switch (kind) {
      case IndexKind::kAdd: return a + b;
      case IndexKind::kMul: return a * b;
      case IndexKind::kDiv: return b == 0 ? absl::nullopt : absl::make_optional(FloorQuotient(a, b));
      case IndexKind::kMod: return b == 0 ? absl::nullopt : absl::make_optional(a - b * FloorQuotient(a, b));
      case IndexKind::kMin: return a < b ? a : b;
      case IndexKind::kMax: return a < b ? b : a;
      case IndexKind::kLt: return a < b;
      case IndexKind::kLe: return a <= b;
      case IndexKind::kEq: return a == b;
      case IndexKind::kNe: return a != b;
      case IndexKind::kAnd: return a != 0 && b != 0;
      case IndexKind::kOr: return a != 0 || b != 0;
      case IndexKind::kNot: return a == 0;
      case IndexKind::kConst:
      case IndexKind::kVar:
      case IndexKind::kSymbol:
      case IndexKind::kLoad: break;
    }
    return absl::nullopt;
  }

  const Op& op_;
  const Graph& graph_;
  const RunInputs& inputs_;
  Binding binding_;
  std::vector<Dense> values_;  // by NodeId
  bool overflow_ = false;
};

}  // namespace

absl::StatusOr<std::vector<Tensor>> EvaluateGraph(const Op& op, const RunInputs& inputs) {
  return Evaluator(op, inputs).Run();
}

absl::optional<std::string> FirstUnsoundCall(const Op& op, absl::Span<const ConstructorCall> calls,
                                             const RunInputs& inputs) {
  return Evaluator(op, inputs).FirstUnsound(calls);
}

}  // namespace nestor
