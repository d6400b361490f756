// The table of operators: how each is written, how tightly it binds, and what it computes on values
// and on indices. The lexer, the parsers and the printers of the notation and of loop programs read
// it, and so does the C++ builder: an operator that is added here is an operator everywhere.
// Immutable and thread-safe.
#ifndef NESTOR_UOPS_INDEX_OPERATORS_H_
#define NESTOR_UOPS_INDEX_OPERATORS_H_

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "uops/dtype.h"
#include "uops/index/index_expr.h"
#include "uops/scalar_op.h"

namespace nestor {

// How tightly operators bind: a larger number binds tighter.
inline constexpr int kOrTightness = 1, kAndTightness = 2, kCompareTightness = 3, kSumTightness = 4,
                     kProductTightness = 5, kPrefixTightness = 6, kPrimaryTightness = 7;
inline constexpr int kLoosest = kOrTightness;

struct InfixOperator {
  absl::string_view text;
  int tightness;
  ScalarOp op;      // on values; `/` and `%` of integers are floordiv and mod
  IndexKind index;  // on indices; a - b is a + -1*b there, which CombineIndices sees to
  bool swapped;     // on indices the right operand comes first: a > b is b < a
  bool logical;     // on bool and on conditions only
  bool IsArithmetic() const { return tightness >= kSumTightness; }
  bool Compares() const { return tightness == kCompareTightness; }
};

inline constexpr InfixOperator kInfixOperators[] = {
    {"||", kOrTightness, ScalarOp::kOr, IndexKind::kOr, false, true},
    {"&&", kAndTightness, ScalarOp::kAnd, IndexKind::kAnd, false, true},
    {"==", kCompareTightness, ScalarOp::kEq, IndexKind::kEq, false, false},
    {"!=", kCompareTightness, ScalarOp::kNe, IndexKind::kNe, false, false},
    {"<", kCompareTightness, ScalarOp::kLt, IndexKind::kLt, false, false},
    {"<=", kCompareTightness, ScalarOp::kLe, IndexKind::kLe, false, false},
    {">", kCompareTightness, ScalarOp::kGt, IndexKind::kLt, true, false},
    {">=", kCompareTightness, ScalarOp::kGe, IndexKind::kLe, true, false},
    {"+", kSumTightness, ScalarOp::kAdd, IndexKind::kAdd, false, false},
    {"-", kSumTightness, ScalarOp::kSub, IndexKind::kAdd, false, false},
    {"*", kProductTightness, ScalarOp::kMul, IndexKind::kMul, false, false},
    {"/", kProductTightness, ScalarOp::kDiv, IndexKind::kDiv, false, false},
    {"%", kProductTightness, ScalarOp::kMod, IndexKind::kMod, false, false},
};

struct PrefixOperator {
  absl::string_view text;
  ScalarOp op;
  bool logical;  // on bool and on conditions only
};
inline constexpr PrefixOperator kPrefixOperators[] = {{"-", ScalarOp::kNeg, false},
                                                      {"!", ScalarOp::kNot, true}};

// An operation that is written as a function of two indices: its name is that of `op`.
struct IndexFunction {
  ScalarOp op;
  IndexKind index;
};
inline constexpr IndexFunction kIndexFunctions[] = {{ScalarOp::kMin, IndexKind::kMin},
                                                    {ScalarOp::kMax, IndexKind::kMax},
                                                    {ScalarOp::kFloorDiv, IndexKind::kDiv},
                                                    {ScalarOp::kMod, IndexKind::kMod}};

// The operator with that text, or null.
const InfixOperator* FindInfix(absl::string_view text);
const PrefixOperator* FindPrefix(absl::string_view text);
const IndexFunction* FindIndexFunction(absl::string_view name);
const IndexFunction* FindIndexFunction(IndexKind kind);

// The operator that writes `op` on operands of that type, or null if `op` is written as a function.
const InfixOperator* InfixOf(ScalarOp op, DType operand);
const PrefixOperator* PrefixOf(ScalarOp op, DType operand);
// The operator that writes a node of that kind, its operands in order, or null.
const InfixOperator* InfixOf(IndexKind kind);

// What a node of that kind computes, on values; nullopt for a leaf, which computes nothing.
absl::optional<ScalarOp> ScalarOpOf(IndexKind kind);

// The index expression a `op` b: a number, or a condition.
IndexId CombineIndices(IndexPool& pool, const InfixOperator& op, IndexId a, IndexId b);

}  // namespace nestor

#endif  // NESTOR_UOPS_INDEX_OPERATORS_H_
