// The scalar ops: what a unary, binary or select micro-op computes on each element. The rows are in
// scalar_ops.inc; this header gives access to them. Immutable and thread-safe.
#ifndef NESTOR_UOPS_SCALAR_OP_H_
#define NESTOR_UOPS_SCALAR_OP_H_

#include <array>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "uops/dtype.h"

namespace nestor {

enum class ScalarOp : uint8_t {
#define PRIMITIVE(Enumerator, ...) k##Enumerator,
#define COMPOSED(Enumerator, ...) k##Enumerator,
#define MIXED(Enumerator, ...) k##Enumerator,
#define TRANSCENDENTAL(Enumerator, ...) k##Enumerator,
#include "uops/scalar_ops.inc"
#undef PRIMITIVE
#undef COMPOSED
#undef MIXED
#undef TRANSCENDENTAL
};

// The operand types that a row takes. All operands have one type, except for the condition of
// `where`, which is bool.
enum class OperandTypes : uint8_t { kAny, kNumber, kFloat, kInteger, kBoolOrInteger, kI32 };

// How the result's type follows from the operands'.
enum class ResultType : uint8_t {
  kSame,     // the operands' type
  kBoolean,  // bool
  kChoice,   // that of the second and third operand
  kTarget,   // named at the use: a cast
  kBitsOf,   // the signed integer of the float's width
  kFloatOf,  // the float of the integer's width
};

// Traits of a row; see scalar_ops.inc.
enum ScalarTrait : uint8_t { kUnbounded = 1, kGate = 2, kCommutes = 4, kStep = 8 };

struct ScalarOpRow {
  ScalarOp op;
  const char* name;  // in the notation, as a function
  int arity;
  OperandTypes operands;
  ResultType result;
  uint8_t traits;
  const char* derivatives[3];  // notation over a, b, c, y, g; "" for none
  // By operand: the literal that replaces it where a call omits it and those after it; null where
  // it must be given.
  std::array<const char*, 3> defaults;
  const char* body;           // notation over a, b, c giving y; null for a primitive
  bool body_for_floats_only;  // integers have a reference
  bool transcendental;        // a body per type, in transcendental_bodies.inc
  int ulp32, ulp64;           // stated error of a transcendental
};

const ScalarOpRow& Row(ScalarOp op);
absl::Span<const ScalarOpRow> AllScalarOps();
// By the name in the notation, as in "exp" or "where".
absl::optional<ScalarOp> ScalarOpByName(absl::string_view name);

// Appends make(literal) to `operands`, those of a call, for each omitted operand that has a default
// in the row. Has no effect where others are missing, too.
template <class Operands, class Make>
void FillOperands(const ScalarOpRow& row, Operands& operands, Make&& make);
// "2 operands", "1 or 2 operands": for messages.
std::string DescribeArity(const ScalarOpRow& row);

bool Accepts(OperandTypes operands, DType type);
// "a float", "a number", ...: for messages.
absl::string_view Describe(OperandTypes operands);

// The result type for operands of type `operand` (for a select: the type of the branches); `target`
// is the type that a cast names. nullopt where the row does not take `operand`.
absl::optional<DType> ResultTypeOf(ScalarOp op, DType operand, DType target);

// A primitive's reference on values in the Bits representation of dtype.h.
// Null where the row has a body for that type. `operand` as above; `target` is
// the result's type.
using PrimitiveFunction = Bits (*)(const Bits* operands);
PrimitiveFunction Primitive(ScalarOp op, DType operand, DType target);

// How a transcendental's body multiplies by a power of two: by two factors, on any machine, or by
// ldexp, where that is one instruction. The bits are the same.
enum class BodyForm : uint8_t { kFactors, kLdexp };

// Whether a body defines `op` on `type`; else it is a primitive there. The second function says
// whether the forms of the body differ. REQUIRES: the row takes `type`.
bool HasBody(ScalarOp op, DType type);
bool HasForms(ScalarOp op, DType type);

// The text of the body that defines `op` on `type`, an op of the notation with
// rank-0 arguments; empty for a primitive. Transcendentals have bodies for f32
// and f64; the 16-bit floats use f32's and round once.
std::string BodyText(ScalarOp op, DType type, BodyForm form = BodyForm::kFactors);

template <class Operands, class Make>
void FillOperands(const ScalarOpRow& row, Operands& operands, Make&& make) {
  const size_t arity = static_cast<size_t>(row.arity), given = operands.size();
  if (given >= arity || row.defaults[given] == nullptr) return;
  for (size_t i = given; i < arity; ++i) operands.push_back(make(row.defaults[i]));
}

}  // namespace nestor

#endif  // NESTOR_UOPS_SCALAR_OP_H_
