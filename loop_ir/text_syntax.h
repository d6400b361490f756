// What the printer and the parser of programs share: operators and precedence.
#ifndef NESTOR_LOOP_IR_TEXT_SYNTAX_H_
#define NESTOR_LOOP_IR_TEXT_SYNTAX_H_

#include "absl/strings/string_view.h"
#include "uops/dtype.h"
#include "uops/graph.h"
#include "uops/scalar_op.h"

namespace nestor::loop {

struct InfixRow {
  absl::string_view text;
  ScalarOp op;
  int tightness;  // from loose to tight
  bool logical;   // infix on bool only
};

inline constexpr int kLoosest = 1, kCompareTightness = 3, kSumTightness = 4, kPrefixTightness = 6,
                     kPrimaryTightness = 7;

inline constexpr InfixRow kInfixRows[] = {
    {"||", ScalarOp::kOr, 1, true},  {"&&", ScalarOp::kAnd, 2, true},
    {"==", ScalarOp::kEq, 3, false}, {"!=", ScalarOp::kNe, 3, false},
    {"<", ScalarOp::kLt, 3, false},  {"<=", ScalarOp::kLe, 3, false},
    {">", ScalarOp::kGt, 3, false},  {">=", ScalarOp::kGe, 3, false},
    {"+", ScalarOp::kAdd, 4, false}, {"-", ScalarOp::kSub, 4, false},
    {"*", ScalarOp::kMul, 5, false}, {"/", ScalarOp::kDiv, 5, false},
    {"%", ScalarOp::kMod, 5, false},
};

struct PrefixRow {
  absl::string_view text;
  ScalarOp op;
  bool logical;
};
inline constexpr PrefixRow kPrefixRows[] = {{"-", ScalarOp::kNeg, false}, {"!", ScalarOp::kNot, true}};

// The signs of sum and prod; every other accumulation is the op's name with "=".
inline absl::string_view AccumulationSign(ReduceOp op) {
  return op == ReduceOp::kSum ? "+" : op == ReduceOp::kProd ? "*" : Name(op);
}

}  // namespace nestor::loop

#endif  // NESTOR_LOOP_IR_TEXT_SYNTAX_H_
