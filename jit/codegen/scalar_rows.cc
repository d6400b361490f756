// From a row of scalar_ops.inc to operations: a primitive by its expansion, any other row by its
// body, step by step; the steps are rows again. The table has an entry for each primitive row; one
// whose expansion is not declared does not compile.
#include "jit/codegen/scalar_rows.h"

#include <algorithm>

#include "absl/container/fixed_array.h"
#include "jit/codegen/scalar_rows_expansions.h"
#include "uops/scalar_body.h"

namespace nestor::jit {
namespace {

using Expand = TypedValue (*)(const Expansion&);
constexpr Expand kExpansions[] = {
#define PRIMITIVE(Enumerator, ...) Expand##Enumerator,
#define MIXED(Enumerator, ...) Expand##Enumerator,
#define COMPOSED(...) nullptr,
#define TRANSCENDENTAL(...) nullptr,
#include "uops/scalar_ops.inc"
#undef PRIMITIVE
#undef MIXED
#undef COMPOSED
#undef TRANSCENDENTAL
};

TypedValue Apply(ValueBuilder& builder, ScalarOp op, absl::Span<const TypedValue> args,
                 DType target, bool in_transcendental);

// Values are numbered as in the body: arguments, constants, then one per step.
TypedValue ApplyBody(ValueBuilder& builder, const ScalarBody& body,
                     absl::Span<const TypedValue> args, bool in_transcendental) {
  absl::FixedArray<TypedValue, 96> values(args.size() + body.constants.size() + body.steps.size());
  size_t next = std::copy(args.begin(), args.end(), values.begin()) - values.begin();
  for (size_t i = 0; i < body.constants.size(); ++i) {
    values[next++] = builder.Constant({body.constant_types[i], body.constants[i]});
  }
  for (const ScalarBody::Step& step : body.steps) {
    TypedValue operands[3];
    const int arity = Row(step.op).arity;
    for (int i = 0; i < arity; ++i) operands[i] = values[step.args[i]];
    values[next++] = Apply(builder, step.op, absl::MakeConstSpan(operands, arity), step.target,
                           in_transcendental);
  }
  return values[body.result];
}

TypedValue Apply(ValueBuilder& builder, ScalarOp op, absl::Span<const TypedValue> args,
                 DType target, bool in_transcendental) {
  const DType operand = args.back().type;
  if (!HasBody(op, operand))
    return kExpansions[static_cast<int>(op)]({builder, args, target, in_transcendental});
  // With an instruction that multiplies by 2^n a body needs no products of powers of two.
  const BodyForm form =
      builder.Has(Opcode::kScale, Lane::kF32) ? BodyForm::kLdexp : BodyForm::kFactors;
  const ScalarFunction function = FunctionOf(op, operand, target, form);
  return ApplyBody(builder, *function.body, args, in_transcendental || Row(op).transcendental);
}

}  // namespace

TypedValue ApplyScalarOp(ValueBuilder& builder, ScalarOp op, absl::Span<const TypedValue> args,
                         DType target) {
  return Apply(builder, op, args, target, /*in_transcendental=*/false);
}

}  // namespace nestor::jit
