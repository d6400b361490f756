// Look-ups in the table of operators, by linear search: it has a dozen rows.
#include "uops/index/operators.h"

#include <utility>

namespace nestor {
namespace {

// The first row of `table` that `matches`, or null.
template <class Row, size_t count, class Matches>
const Row* FindRow(const Row (&table)[count], Matches matches) {
  for (const Row& row : table) {
    if (matches(row)) return &row;
  }
  return nullptr;
}

// Whether `row` writes `op` on operands of that type.
template <class Operator>
bool Writes(const Operator& row, ScalarOp op, DType operand) {
  return row.op == op && (!row.logical || operand == DType::kBool);
}

}  // namespace

const InfixOperator* FindInfix(absl::string_view text) {
  return FindRow(kInfixOperators, [&](const InfixOperator& row) { return row.text == text; });
}

const PrefixOperator* FindPrefix(absl::string_view text) {
  return FindRow(kPrefixOperators, [&](const PrefixOperator& row) { return row.text == text; });
}

const IndexFunction* FindIndexFunction(absl::string_view name) {
  return FindRow(kIndexFunctions,
                 [&](const IndexFunction& row) { return Row(row.op).name == name; });
}

const IndexFunction* FindIndexFunction(IndexKind kind) {
  return FindRow(kIndexFunctions, [&](const IndexFunction& row) { return row.index == kind; });
}

const InfixOperator* InfixOf(ScalarOp op, DType operand) {
  return FindRow(kInfixOperators,
                 [&](const InfixOperator& row) { return Writes(row, op, operand); });
}

const PrefixOperator* PrefixOf(ScalarOp op, DType operand) {
  return FindRow(kPrefixOperators,
                 [&](const PrefixOperator& row) { return Writes(row, op, operand); });
}

const InfixOperator* InfixOf(IndexKind kind) {
  return FindRow(kInfixOperators,
                 [&](const InfixOperator& row) { return row.index == kind && !row.swapped; });
}

absl::optional<ScalarOp> ScalarOpOf(IndexKind kind) {
  if (kind == IndexKind::kNot) return ScalarOp::kNot;
  if (const IndexFunction* function = FindIndexFunction(kind)) return function->op;
  const InfixOperator* const infix = InfixOf(kind);
  return infix == nullptr ? absl::nullopt : absl::make_optional(infix->op);
}

IndexId CombineIndices(IndexPool& pool, const InfixOperator& op, IndexId a, IndexId b) {
  if (op.op == ScalarOp::kSub) return pool.Sub(a, b);
  if (op.swapped) std::swap(a, b);
  return pool.Make(op.index, 0, {a, b});
}

}  // namespace nestor
