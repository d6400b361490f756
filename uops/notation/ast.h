// The syntax tree of the notation (docs/semantics.md, section 2): what the parser reads and the
// elaborator turns into graphs. Plain data; every piece knows its position in the text, for
// messages. A tree owns its parts; later stages refer to them by address, so a tree stays where it
// is while it is elaborated.
#ifndef NESTOR_UOPS_NOTATION_AST_H_
#define NESTOR_UOPS_NOTATION_AST_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/types/optional.h"
#include "uops/graph.h"
#include "uops/index/operators.h"

namespace nestor::ast {

// 1-based line and column (in bytes).
struct Position {
  int line = 1;
  int column = 1;
};

struct Expr;
using ExprPtr = std::unique_ptr<Expr>;

// One place of an access, a left side or a list of dimensions: `i + 1`, or the pack `..n`.
struct Item {
  Position position;
  bool is_pack = false;
  std::string pack;  // of a pack: its name
  ExprPtr expr;      // else
};

enum class ExprKind {
  kLiteral,    // text
  kName,       // text
  kParam,      // text, with its "$"
  kAccess,     // text, items, fill, conditions
  kReduction,  // text, items (new indices), args[0]
  kCall,       // text: a scalar op, a type or a type variable; args
  kSize,       // text: the pack
  kPrefix,     // text: "-" or "!"; args[0]
  kChain,      // args joined by `operators`, from the left; one precedence level
};

// Which members are set follows from the kind; see ExprKind. `a - b + c` is one chain of three
// operands and two operators, so that a long sum is not deep.
struct Expr {
  ExprKind kind;
  Position position;
  std::string text;
  std::vector<ExprPtr> args;
  std::vector<const InfixOperator*> operators;  // of a chain: one fewer than args
  std::vector<Position> operator_positions;
  std::vector<Item> items;
  ExprPtr fill;  // a literal or param, or null
  std::vector<ExprPtr> conditions;
};

struct Bound {  // where NAME < limit
  Position position;
  std::string index;
  ExprPtr limit;
};

// A type, or a variable that stands for one: `f32`, `T`.
struct TypeName {
  Position position;
  std::string text;
};

struct Value {  // an argument of a call: NAME = value
  Position position;
  std::string name;
  ExprPtr expr;
};

// y[i] = ..;  y[idx[i]]: f32[N] += ..;  (y, z) = OP(x; $a = ..);  for t < N { .. }
enum class StatementKind { kDefinition, kScatter, kCall, kFor };

struct Statement {
  StatementKind kind;
  Position position;
  // The names defined: one; one or more for a call; the index for a block.
  std::vector<std::string> targets;
  std::vector<Position> target_positions;
  std::vector<Item> items;               // the left side's
  TypeName type;                         // of a scatter
  std::vector<Item> dims;                // of a scatter
  ReduceOp scatter_op = ReduceOp::kSum;  // sum, prod, max or min
  ExprPtr expr;                          // of a block: the end of its index
  std::vector<Bound> bounds;
  std::vector<Statement> block;
  std::string callee;
  Position callee_position;
  std::vector<std::string> call_args;
  std::vector<Position> call_arg_positions;
  std::vector<Value> call_values;
};

// NAME: [shape] TYPE[DIMENSIONS]
struct Argument {
  Position position;
  std::string name;
  bool shape_only = false;
  TypeName type;
  std::vector<Item> dims;
};

struct Literal {
  Position position;
  std::string text;
};

// $NAME: TYPE = value in [low, high]; a part that was left out is absent.
struct Param {
  Position position;
  std::string name;  // with its "$"
  absl::optional<TypeName> type;
  absl::optional<Literal> value, low, high;
};

struct Result {
  Position position;
  std::string name;
};

// op NAME(ARGUMENTS; PARAMS) -> (RESULTS) { STATEMENTS }
struct Op {
  Position position;
  std::string name;
  Position name_position;
  std::vector<Argument> args;
  std::vector<Param> params;
  std::vector<Result> results;
  std::vector<Statement> statements;
};

// The ops of a text, in its order. Whether names are distinct is for Module to check.
struct File {
  std::vector<Op> ops;
};

}  // namespace nestor::ast

#endif  // NESTOR_UOPS_NOTATION_AST_H_
