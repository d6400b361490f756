// Expands the rows of scalar_ops.inc: into the table of properties, and for the primitives into one
// function per operand type. So a scalar op is added by one row, and a row without a reference does
// not compile. A reference that does not compile for a type that its row excludes is never
// instantiated.
#include "uops/scalar_op.h"

#include <iterator>
#include <string>
#include <type_traits>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "uops/arithmetic.h"
#include "uops/invariant.h"

namespace nestor {
namespace {

using enum OperandTypes;
using enum ResultType;

// How many operands a row has, and the defaults of the last ones where a call omits them.
struct Arity {
  constexpr Arity(int operands) : count(operands) {}
  template <class... Literals>
  constexpr Arity(int operands, Literals... literals) : count(operands) {
    int next = operands - static_cast<int>(sizeof...(literals));
    ((defaults[static_cast<size_t>(next++)] = literals), ...);
  }
  int count;
  std::array<const char*, 3> defaults{};
};
#define OPTIONAL(...) Arity(__VA_ARGS__)

// clang-format off
#define D(...) {__VA_ARGS__}
#define PRIMITIVE(E, name, arity, operands, result, traits, derivatives, ...) \
  {ScalarOp::k##E, name, Arity(arity).count, operands, result, traits, derivatives, \
   Arity(arity).defaults, nullptr, false, false, 0, 0},
#define COMPOSED(E, name, arity, operands, traits, derivatives, body) \
  {ScalarOp::k##E, name, Arity(arity).count, operands, kSame, traits, derivatives, \
   Arity(arity).defaults, body, false, false, 0, 0},
#define MIXED(E, name, arity, operands, traits, derivatives, reference, body) \
  {ScalarOp::k##E, name, Arity(arity).count, operands, kSame, traits, derivatives, \
   Arity(arity).defaults, body, true, false, 0, 0},
#define TRANSCENDENTAL(E, name, arity, traits, derivatives, ulp32, ulp64) \
  {ScalarOp::k##E, name, Arity(arity).count, kFloat, kSame, traits, derivatives, \
   Arity(arity).defaults, "", false, true, ulp32, ulp64},
// clang-format on
constexpr ScalarOpRow kRows[] = {
#include "uops/scalar_ops.inc"
};
#undef PRIMITIVE
#undef COMPOSED
#undef MIXED
#undef TRANSCENDENTAL
#undef D
#undef OPTIONAL

// A table of rules instead of a list of types for each row, so that a new type needs no new rows.
constexpr bool Takes(OperandTypes operands, DType type) {
  switch (operands) {
    case kAny: return true;
    case kNumber: return type != DType::kBool;
    case kFloat: return IsFloat(type);
    case kInteger: return IsInteger(type);
    case kBoolOrInteger: return !IsFloat(type);
    case kI32: return type == DType::kI32;
  }
  return false;
}

// A 16-bit float computes in f32 (Widened). Rounding the f32 result is the same as rounding the
// exact one for +, -, *, / and sqrt, since f32 has more than twice as many bits and two (Figueroa,
// "When is double rounding innocuous?", 1995).

// The one rounding of an operation that was computed in a wider type.
// All NaNs become the one NaN of the type: bits are then the same on every machine.
template <class T, class C>
Bits Narrowed(C v) {
  if constexpr (Half<T>) {
    return ToBits(T::Round(static_cast<float>(v)));
  } else if constexpr (std::is_floating_point_v<T>) {
    return v != v ? ToBits(std::numeric_limits<T>::quiet_NaN()) : ToBits(static_cast<T>(v));
  } else {
    return ToBits(static_cast<T>(v));
  }
}

template <ScalarOp op>
struct Reference {};
#define PRIMITIVE(E, name, arity, operands, result, traits, derivatives, ...)           \
  template <>                                                                           \
  struct Reference<ScalarOp::k##E> {                                                    \
    template <class A, class B, class C>                                                \
    static auto Run([[maybe_unused]] A a, [[maybe_unused]] B b, [[maybe_unused]] C c) { \
      return __VA_ARGS__;                                                               \
    }                                                                                   \
  };
#define MIXED(E, name, arity, operands, traits, derivatives, reference, body) \
  PRIMITIVE(E, name, arity, kInteger, kSame, traits, derivatives, reference)
#define COMPOSED(...)
#define TRANSCENDENTAL(...)
#include "uops/scalar_ops.inc"
#undef PRIMITIVE
#undef MIXED
#undef COMPOSED
#undef TRANSCENDENTAL

// Unused operands read as 0, so that one function serves every arity.
template <ScalarOp op, class T>
Bits RunPrimitive(const Bits* v) {
  constexpr const ScalarOpRow& row = kRows[static_cast<int>(op)];
  constexpr int n = row.arity;
  if constexpr (op == ScalarOp::kSelect) {
    return v[0] ? v[1] : v[2];
  } else if constexpr (op == ScalarOp::kCopy) {
    return v[0];
  } else {
    const auto a = Widened(FromBits<T>(v[0]));
    const auto b = Widened(FromBits<T>(n > 1 ? v[1] : 0));
    const auto c = Widened(FromBits<T>(n > 2 ? v[2] : 0));
    const auto y = Reference<op>::Run(a, b, c);
    if constexpr (row.result == kBoolean) return ToBits(static_cast<bool>(y));
    else return Narrowed<T>(y);
  }
}

// A value with more bits than an f32 holds is rounded to a 16-bit float once, not twice.
template <class From, class To>
constexpr bool kRoundsTwice =
    std::numeric_limits<From>::digits > std::numeric_limits<float>::digits&& Half<To>;

// Widens, casts in C++ with the notation's rules for what does not fit (arith::Cast), rounds once.
template <class From, class To>
Bits RunCast(const Bits* v) {
  using Wide = decltype(Widened(To{}));
  return Narrowed<To>(arith::Cast<Wide>(Widened(FromBits<From>(v[0]))));
}
template <class From, DType to>
Bits RunCastOnce(const Bits* v) {
  return Scalar::Of(to, FromBits<From>(v[0])).bits;
}

template <class From, class To>
PrimitiveFunction CastOf() {
  if constexpr (!kRoundsTwice<From, To>) return RunCast<From, To>;
  else return RunCastOnce<From, DTypeOf<To>()>;
}

PrimitiveFunction CastFunction(DType from, DType to) {
  return VisitType(from, [&](auto f) {
    return VisitType(to, [](auto t) { return CastOf<decltype(f), decltype(t)>(); });
  });
}

// Bits of a float as the sign-extended integer of its width, and back.
Bits FloatToBits32(const Bits* v) { return ToBits(static_cast<int32_t>(v[0])); }
Bits FloatToBits64(const Bits* v) { return v[0]; }
Bits Bits32ToFloat(const Bits* v) {
  return Scalar{DType::kF32, static_cast<uint32_t>(v[0])}.Canonical().bits;
}
Bits Bits64ToFloat(const Bits* v) { return Scalar{DType::kF64, v[0]}.Canonical().bits; }

// The operand types that a row's reference takes.
constexpr OperandTypes ReferenceTypes(ScalarOp op) {
  const ScalarOpRow& row = kRows[static_cast<int>(op)];
  return row.body_for_floats_only ? kInteger : row.operands;
}

// One function for each type that the row takes; `sample` stands for the kind of type, which
// decides.
template <ScalarOp op>
PrimitiveFunction ForType(DType type) {
  return VisitType(type, [](auto zero) -> PrimitiveFunction {
    using T = decltype(zero);
    constexpr bool is_float = std::is_floating_point_v<T> || Half<T>;
    constexpr DType sample = is_float                  ? DType::kF32
                             : std::is_same_v<T, bool> ? DType::kBool
                                                       : DType::kI32;
    if constexpr (Takes(ReferenceTypes(op), sample)) return RunPrimitive<op, T>;
    else return nullptr;
  });
}

PrimitiveFunction NoReference(DType) { return nullptr; }

// By ScalarOp, as kRows: both are made of the same list.
using ForTypeFunction = PrimitiveFunction (*)(DType);
constexpr ForTypeFunction kForType[] = {
#define PRIMITIVE(E, ...) ForType<ScalarOp::k##E>,
#define MIXED(E, ...) ForType<ScalarOp::k##E>,
#define COMPOSED(...) NoReference,
#define TRANSCENDENTAL(...) NoReference,
#include "uops/scalar_ops.inc"
#undef PRIMITIVE
#undef MIXED
#undef COMPOSED
#undef TRANSCENDENTAL
};

#define NESTOR_BODY(name, type, text) {#name, DType::type, {text, nullptr}},
#define NESTOR_SCALING_BODY(name, type, before, factors, scale, after) \
  {#name, DType::type, {before factors after, before scale after}},
const struct TranscendentalBody {
  const char* name;
  DType type;
  const char* texts[2];  // by BodyForm; null where the forms are one
} kTranscendentalBodies[] = {
#include "uops/transcendental_bodies.inc"
};
#undef NESTOR_BODY
#undef NESTOR_SCALING_BODY

// 16-bit floats use the body of f32.
const TranscendentalBody& TranscendentalBodyOf(const ScalarOpRow& row, DType type) {
  const DType computed = type == DType::kF64 ? DType::kF64 : DType::kF32;
  const auto* body = absl::c_find_if(kTranscendentalBodies, [&](const TranscendentalBody& b) {
    return b.type == computed && absl::string_view(b.name) == row.name;
  });
  NESTOR_CHECK(body != std::end(kTranscendentalBodies),
               absl::StrCat(row.name, " has no body for ", Name(computed)));
  return *body;
}

// "op body(a: T[], b: T[]) -> (y) { y = .. }", read like any other text
std::string ComposedBody(const ScalarOpRow& row) {
  constexpr const char* kOperands[] = {"a: T[]", "a: T[], b: T[]", "a: T[], b: T[], c: T[]"};
  return absl::StrCat("op body(", kOperands[row.arity - 1], ") -> (y) {\n", row.body, "\n}");
}

}  // namespace

const ScalarOpRow& Row(ScalarOp op) { return kRows[static_cast<int>(op)]; }

absl::Span<const ScalarOpRow> AllScalarOps() { return kRows; }

absl::optional<ScalarOp> ScalarOpByName(absl::string_view name) {
  static const auto* const by_name = [] {
    auto* map = new absl::flat_hash_map<absl::string_view, ScalarOp>;
    for (const ScalarOpRow& row : kRows) map->emplace(row.name, row.op);
    return map;
  }();
  const auto it = by_name->find(name);
  if (it == by_name->end()) return absl::nullopt;
  return it->second;
}

bool Accepts(OperandTypes operands, DType type) { return Takes(operands, type); }

std::string DescribeArity(const ScalarOpRow& row) {
  int least = row.arity;
  while (least > 1 && row.defaults[static_cast<size_t>(least - 1)] != nullptr) --least;
  const std::string fewer =
      least == row.arity ? "" : absl::StrCat(least, row.arity - least == 1 ? " or " : " to ");
  return absl::StrCat(fewer, row.arity, row.arity == 1 ? " operand" : " operands");
}

absl::string_view Describe(OperandTypes operands) {
  switch (operands) {
    case kAny: return "any type";
    case kNumber: return "a number";
    case kFloat: return "a float";
    case kInteger: return "an integer";
    case kBoolOrInteger: return "a bool or an integer";
    case kI32: return "an i32";
  }
  return "";
}

// From the row's rule; the bits of floats are defined for 32 and 64 bits only.
absl::optional<DType> ResultTypeOf(ScalarOp op, DType operand, DType target) {
  const ScalarOpRow& row = Row(op);
  if (!Accepts(row.operands, operand)) return absl::nullopt;
  switch (row.result) {
    case kSame:
    case kChoice: return operand;
    case kBoolean: return DType::kBool;
    case kTarget: return target;
    case kBitsOf:
      if (operand == DType::kF32) return DType::kI32;
      if (operand == DType::kF64) return DType::kI64;
      return absl::nullopt;
    case kFloatOf:
      if (operand == DType::kI32) return DType::kF32;
      if (operand == DType::kI64) return DType::kF64;
      return absl::nullopt;
  }
  return absl::nullopt;
}

PrimitiveFunction Primitive(ScalarOp op, DType operand, DType target) {
  switch (op) {
    case ScalarOp::kCast: return CastFunction(operand, target);
    case ScalarOp::kToBits: return operand == DType::kF64 ? FloatToBits64 : FloatToBits32;
    case ScalarOp::kFromBits: return operand == DType::kI64 ? Bits64ToFloat : Bits32ToFloat;
    default: return kForType[static_cast<int>(op)](operand);
  }
}

bool HasBody(ScalarOp op, DType type) {
  const ScalarOpRow& row = Row(op);
  return row.body != nullptr && (!row.body_for_floats_only || IsFloat(type));
}

bool HasForms(ScalarOp op, DType type) {
  const ScalarOpRow& row = Row(op);
  return row.transcendental &&
         TranscendentalBodyOf(row, type).texts[static_cast<int>(BodyForm::kLdexp)] != nullptr;
}

// For f16 and bf16 it is f32's: the casts around it are not in the text.
std::string BodyText(ScalarOp op, DType type, BodyForm form) {
  const ScalarOpRow& row = Row(op);
  if (!HasBody(op, type)) return "";
  if (!row.transcendental) return ComposedBody(row);
  if (!HasForms(op, type)) form = BodyForm::kFactors;
  // An op may not be named like a scalar op, so the text is that of an op `body`.
  const absl::string_view text = TranscendentalBodyOf(row, type).texts[static_cast<int>(form)];
  return absl::StrCat("op body", text.substr(text.find('(')));
}

}  // namespace nestor
