// Unification (as in Milner, "A theory of type polymorphism in programming", 1978) without
// variables: a value's type is known, or it is a literal or an index that takes any type that it
// meets. There is one exception to equality, the widening of integers that meet an index to i64.
//
// Types unify along the edges of the tree: the operands of arithmetic and comparisons, the branches
// of a select, a reduction and its body. So the type that a node and those below it share is found
// from below; the code that builds the nodes passes the type of the whole down.
//
//   1.0 - p[i] * 2     p is f16: so are 1.0 and 2        N - 1     i64        0.5 + 1     f32
#include "uops/infer_types.h"

#include "absl/strings/str_cat.h"
#include "uops/invariant.h"

namespace nestor::internal {
namespace {

absl::Status Mixed(DType type, const TextPosition& position) {
  return ErrorIn(position,
                 absl::StrCat("types ", Name(type), " and i64 (an index) do not mix: cast one"));
}

// The common type, or the error that names both.
absl::StatusOr<MetType> Unify(MetType a, MetType b, const TextPosition& position) {
  for (const DType type : {a.type.value_or(DType::kI64), b.type.value_or(DType::kI64)}) {
    if ((a.index_value || b.index_value) && IsInteger(type) && !WidensToI64(type))
      return Mixed(type, position);
  }
  // An integer beside an index value is i64 already.
  for (MetType* t : {&a, &b}) {
    if (t->type) t->type = t->Resolved();
  }
  if (a.type && b.type && *a.type != *b.type) {
    return ErrorIn(position, absl::StrCat("types ", Name(*a.type), " and ", Name(*b.type),
                                          " do not mix: cast one, as in ", Name(*a.type), "(..)"));
  }
  return MetType{a.type ? a.type : b.type, a.float_literal || b.float_literal,
                 a.index_value || b.index_value};
}

class TypeWalk {
 public:
  explicit TypeWalk(const Graph& graph) : graph_(graph) {}

  absl::StatusOr<MetType> Visit(const ExprNode& node) {
    const auto it = types_.find(&node);
    if (it != types_.end()) return it->second.own;
    NESTOR_ASSIGN_OR_RETURN(const NodeTypes types, VisitNew(node));
    types_[&node] = types;
    return types.own;
  }

  Types Take() { return std::move(types_); }

 private:
  // A node's own type and that of its operands; the two differ for casts, comparisons and arg
  // reductions.
  absl::StatusOr<NodeTypes> VisitNew(const ExprNode& node) {
    switch (node.form) {
      case Form::kLiteral:
        if (node.type == DType::kBool) return NodeTypes{{DType::kBool}};
        return NodeTypes{{absl::nullopt, node.type == DType::kF64}};
      case Form::kParam: return NodeTypes{{node.type}};
      case Form::kIndex: return NodeTypes{{absl::nullopt, false, true}};
      case Form::kAccess: return IsOpen(node) ? NodeTypes{} : NodeTypes{{graph_.type(node.tensor)}};
      case Form::kCast: {
        NESTOR_ASSIGN_OR_RETURN(const MetType operand, Visit(*node.args[0]));
        return NodeTypes{{node.type}, operand};
      }
      case Form::kReduce: {
        NESTOR_ASSIGN_OR_RETURN(const MetType body, Visit(*node.args[0]));
        return NodeTypes{IsArg(node.reduce) ? MetType{DType::kI64} : body, body};
      }
      case Form::kChain: {
        NESTOR_ASSIGN_OR_RETURN(const MetType operands, Operands(node, 0));
        const bool compares = Row(node.steps[0].op).result == ResultType::kBoolean;
        return NodeTypes{compares ? MetType{DType::kBool} : operands, operands};
      }
      case Form::kMap: return VisitMap(node);
    }
    return ErrorIn(node.position, "expected a value");
  }

  // The common type of the operands from number `first` on.
  absl::StatusOr<MetType> Operands(const ExprNode& node, size_t first) {
    MetType all;
    for (size_t i = first; i < node.args.size(); ++i) {
      NESTOR_ASSIGN_OR_RETURN(const MetType operand, Visit(*node.args[i]));
      NESTOR_ASSIGN_OR_RETURN(all, Unify(all, operand, node.args[i]->position));
    }
    return all;
  }

  // The condition of a select has a type of its own; all other operands have one together.
  absl::StatusOr<NodeTypes> VisitMap(const ExprNode& node) {
    const ScalarOpRow& row = Row(node.op);
    if (static_cast<int>(node.args.size()) != row.arity) {
      return ErrorIn(node.position, absl::StrCat("'", row.name, "' takes ", DescribeArity(row),
                                                 ", is given ", node.args.size()));
    }
    const bool choice = row.result == ResultType::kChoice;
    if (choice) {
      NESTOR_ASSIGN_OR_RETURN(const MetType condition, Visit(*node.args[0]));
      NESTOR_RETURN_IF_ERROR(Unify({DType::kBool}, condition, node.args[0]->position).status());
    }
    NESTOR_ASSIGN_OR_RETURN(const MetType operands, Operands(node, choice ? 1 : 0));
    NESTOR_ASSIGN_OR_RETURN(const MetType own, ResultOf(node, row, operands));
    return NodeTypes{own, operands};
  }

  // Rows whose result has another type decide it now, with the types of literals settled.
  static absl::StatusOr<MetType> ResultOf(const ExprNode& node, const ScalarOpRow& row,
                                          const MetType& operands) {
    switch (row.result) {
      case ResultType::kSame:
      case ResultType::kChoice: return operands;
      case ResultType::kBoolean: return MetType{DType::kBool};
      case ResultType::kBitsOf:
      case ResultType::kFloatOf: {
        const auto result = ResultTypeOf(row.op, operands.Resolved(), DType::kF32);
        if (result) return MetType{*result};
        break;
      }
      case ResultType::kTarget: break;  // Apply takes no cast
    }
    return ErrorIn(node.position,
                   absl::StrCat("'", row.name, "' does not take ", Name(operands.Resolved())));
  }

  const Graph& graph_;
  Types types_;
};

}  // namespace

DType MetType::Resolved() const {
  if (!type) return float_literal ? DType::kF32 : DType::kI64;
  // An integer tensor that meets an index value is widened.
  return index_value && IsInteger(*type) ? DType::kI64 : *type;
}

// A type that the statement declares meets the body's as an operand would, so literals take it.
absl::StatusOr<Types> InferTypes(const ExprNode& body, absl::optional<DType> declared,
                                 const Graph& graph) {
  TypeWalk walk(graph);
  NESTOR_ASSIGN_OR_RETURN(const MetType whole, walk.Visit(body));
  if (!declared) return walk.Take();
  NESTOR_ASSIGN_OR_RETURN(const MetType met, Unify({declared}, whole, body.position));
  // A result of a declared type is not widened.
  if (met.Resolved() == *declared) return walk.Take();
  return Mixed(*declared, body.position);
}

}  // namespace nestor::internal
