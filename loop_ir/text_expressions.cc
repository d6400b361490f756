// Recursive descent without a syntax tree, since every name is declared before its
// use and types follow from the leaves.
//
// Index expressions and values have one grammar: Binary and Prefix are templates over which of the
// two is built; overloads (Literal, Signed, Combine, Primary) build it.
#include "loop_ir/text_expressions.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "loop_ir/operands.h"
#include "uops/invariant.h"
#include "uops/notation/parser.h"

namespace nestor::loop {
namespace {

using ast::Position;

// The type of a literal where none is expected.
DType OwnType(absl::string_view literal) {
  if (literal == "true" || literal == "false") return DType::kBool;
  // inf, nan, a point or an exponent.
  return literal.find_first_of(".eEin") == absl::string_view::npos ? DType::kI64 : DType::kF32;
}

}  // namespace

ExpressionParser::ExpressionParser(std::vector<Token> tokens) : TokenReader(std::move(tokens)) {
  // The notation's lexer keeps the ends of lines, which mean nothing here; a ";" stays.
  tokens_.erase(
      std::remove_if(tokens_.begin(), tokens_.end(),
                     [](const Token& t) { return t.kind == TokenKind::kEnd && t.text == "\n"; }),
      tokens_.end());
}

// ---- Names

bool ExpressionParser::AtTensor() const {
  const auto it = names_.find(Peek().text);
  return Peek().kind == TokenKind::kName && it != names_.end() && it->second.is_tensor;
}

absl::StatusOr<TensorId> ExpressionParser::Tensor() {
  if (AtTensor()) return TensorId{names_.at(tokens_[next_++].text).number};
  if (Peek().kind != TokenKind::kName || IsReserved(Peek().text)) return Expected("a tensor");
  return ErrorAt(Peek().position, absl::StrCat("unknown tensor '", Peek().text, "'"));
}

const ParamInfo* ExpressionParser::FindParam(absl::string_view name) const {
  for (const ParamInfo& param : program_.params) {
    if (param.name == name) return &param;
  }
  return nullptr;
}

// ---- Literals

// 3: 1 token, -3: 2, -inf: 2, true: 1, x: 0
size_t ExpressionParser::LiteralLength() const {
  const size_t sign = At("-") ? 1 : 0;
  const Token& token = Peek(sign);
  if (token.kind == TokenKind::kNumber || token.text == "inf" || token.text == "nan")
    return sign + 1;
  return sign == 0 && (token.text == "true" || token.text == "false") ? 1 : 0;
}

std::string ExpressionParser::TakeLiteral() {
  std::string text;
  for (size_t n = LiteralLength(); n > 0; --n) text += tokens_[next_++].text;
  return text;
}

// The literal is read as one of `type`, so it is rounded once: f32(0.1) is never an f64 first.
absl::StatusOr<Scalar> ExpressionParser::LiteralOf(DType type, LiteralReader read) {
  const Position position = Peek().position;
  if (LiteralLength() == 0) return Expected("a literal");
  const std::string text = TakeLiteral();
  if (type == DType::kI64 && (text == "true" || text == "false"))
    // Conditions of index expressions are 0 and 1.
    return Scalar::I64(text == "true");
  if (const auto value = read(text, type)) return *value;
  return ErrorAt(position, absl::StrCat("the literal '", text, "' does not fit ", Name(type)));
}

absl::StatusOr<absl::optional<Scalar>> ExpressionParser::BoundOf(absl::string_view no_bound,
                                                                 DType type, LiteralReader read) {
  NESTOR_RETURN_IF_ERROR(CheckBound(no_bound));
  if (At("inf", At("-") ? 1 : 0)) {
    TakeLiteral();
    return absl::optional<Scalar>();
  }
  NESTOR_ASSIGN_OR_RETURN(const Scalar value, LiteralOf(type, read));
  return absl::optional<Scalar>(value);
}

// ---- Expressions

// Operators at least as tight as `tightness`, by precedence climbing: a chain
// of any length takes no stack.
template <class T>
absl::StatusOr<T> ExpressionParser::Binary(int tightness) {
  NESTOR_ASSIGN_OR_RETURN(T left, Prefix<T>());
  for (const InfixOperator* row = AtInfix(); row != nullptr && row->tightness >= tightness;
       row = AtInfix()) {
    const Position position = tokens_[next_++].position;
    NESTOR_ASSIGN_OR_RETURN(const T right, Binary<T>(row->tightness + 1));
    // Built at once from left to right: a - b - c is (a - b) - c.
    NESTOR_ASSIGN_OR_RETURN(left, Combine(*row, position, left, right));
    const InfixOperator* following = AtInfix();
    if (row->Compares() && following != nullptr && following->Compares()) {
      return Expected("'&&' or '||' (comparisons do not chain)");
    }
  }
  return left;
}

// One rule for values and for index expressions: T says which is built.
template <class T>
absl::StatusOr<T> ExpressionParser::Prefix() {
  const Nesting nesting(*this);
  NESTOR_RETURN_IF_ERROR(nesting.Check());
  if (LiteralLength() > 0) return Literal(T());
  for (const PrefixOperator& row : kPrefixOperators) {
    const Position position = Peek().position;
    if (!Take(row.text)) continue;
    NESTOR_ASSIGN_OR_RETURN(const T operand, Prefix<T>());
    return Signed(row, position, operand);
  }
  if (!Take("(")) return Primary(T());
  NESTOR_ASSIGN_OR_RETURN(const T inner, Binary<T>(kLoosest));
  if (!Take(")")) return Expected("an operator or ')'");
  return inner;
}

absl::StatusOr<IndexId> ExpressionParser::Index(int tightness) {
  return Binary<IndexId>(tightness);
}
absl::StatusOr<ValueId> ExpressionParser::Value() { return Binary<ValueId>(kLoosest); }

absl::Status ExpressionParser::AppendIndex(IndexList& list) {
  NESTOR_ASSIGN_OR_RETURN(const IndexId e, Index());
  list.push_back(e);
  return absl::OkStatus();
}

absl::Status ExpressionParser::AppendPlace(Access& access) {
  NESTOR_RETURN_IF_ERROR(AppendIndex(access.place));
  if (Take("checked")) access.checked |= Access::CheckedBit(access.place.size() - 1);
  if (!Take("loads")) return absl::OkStatus();
  if (!Take("checked")) return Expected("'checked'");
  access.checked |= Access::kCheckedLoads;
  return absl::OkStatus();
}

absl::Status ExpressionParser::Conditions(IndexList& conditions) {
  do {
    NESTOR_RETURN_IF_ERROR(AppendIndex(conditions));
  } while (Take(","));
  return absl::OkStatus();
}

// ---- Index expressions

absl::StatusOr<IndexId> ExpressionParser::Literal(IndexId) {
  NESTOR_ASSIGN_OR_RETURN(const Scalar value, LiteralOf(DType::kI64));
  return program_.pool.Const(value.ToInt());
}

absl::StatusOr<IndexId> ExpressionParser::Signed(const PrefixOperator& row, const Position&,
                                                 IndexId operand) {
  return row.logical ? program_.pool.Not(operand) : program_.pool.Neg(operand);
}

absl::StatusOr<IndexId> ExpressionParser::Combine(const InfixOperator& row, const Position&,
                                                  IndexId a, IndexId b) {
  return CombineIndices(program_.pool, row, a, b);
}

// A $param, min or max, an element of a tensor, a loop index, or a dimension.
absl::StatusOr<IndexId> ExpressionParser::Primary(IndexId) {
  const Token& token = Peek();
  if (token.kind == TokenKind::kParam) return IntegerParam();
  if (token.kind != TokenKind::kName) return Expected("an index expression");
  if (At("min") || At("max")) return MinOrMax();
  if (IsReserved(token.text)) return Expected("an index expression");
  if (At("[", 1)) return IndexLoad();
  const auto it = names_.find(token.text);
  if (it != names_.end() && !it->second.is_tensor) {
    ++next_;
    return program_.pool.Var(it->second.number);
  }
  // In the shapes of inputs a new name declares a dimension; everywhere else it must be known.
  if (naming_dimensions_) dimensions_.insert(token.text);
  if (!dimensions_.contains(token.text)) {
    return ErrorAt(token.position, absl::StrCat("'", token.text,
                                                "' is no index of a loop around and no dimension"));
  }
  return program_.pool.Symbol(tokens_[next_++].text);
}

// In the inputs' shapes $params are met before they are declared.
absl::StatusOr<IndexId> ExpressionParser::IntegerParam() {
  const Token& token = tokens_[next_];
  const ParamInfo* param = FindParam(token.text);
  if (!naming_dimensions_ && (param == nullptr || !IsInteger(param->type))) {
    return ErrorAt(token.position, absl::StrCat("'", token.text, "' is no integer $param"));
  }
  ++next_;
  return program_.pool.Symbol(token.text);
}

absl::StatusOr<IndexId> ExpressionParser::MinOrMax() {
  const IndexKind kind = FindIndexFunction(tokens_[next_++].text)->index;
  NESTOR_RETURN_IF_ERROR(Need("("));
  NESTOR_ASSIGN_OR_RETURN(const IndexId a, Index());
  NESTOR_RETURN_IF_ERROR(Need(","));
  NESTOR_ASSIGN_OR_RETURN(const IndexId b, Index());
  NESTOR_RETURN_IF_ERROR(Need(")"));
  return program_.pool.Make(kind, 0, {a, b});
}

absl::StatusOr<IndexId> ExpressionParser::IndexLoad() {
  NESTOR_ASSIGN_OR_RETURN(const TensorId tensor, Tensor());
  NESTOR_RETURN_IF_ERROR(Need("["));
  IndexList place;
  NESTOR_RETURN_IF_ERROR(List("]", [&] { return AppendIndex(place); }));
  return program_.pool.Load(tensor.value, place);
}

// ---- Values

absl::StatusOr<ValueId> ExpressionParser::Load() {
  NESTOR_ASSIGN_OR_RETURN(Access access, LoadAccess());
  return program_.AddLoad(std::move(access));
}

// x, x[i, j], x[i, j | fill if c, c], x[ | fill]
absl::StatusOr<Access> ExpressionParser::LoadAccess() {
  Access access;
  NESTOR_ASSIGN_OR_RETURN(access.tensor, Tensor());
  if (!Take("[")) return access;
  if (!At("]") && !At("|")) {
    do {
      NESTOR_RETURN_IF_ERROR(AppendPlace(access));
    } while (Take(","));
  }
  access.masked = Take("|");
  if (access.masked) {
    NESTOR_ASSIGN_OR_RETURN(access.fill, Fill(ReadType(program_[access.tensor])));
    if (Take("if")) NESTOR_RETURN_IF_ERROR(Conditions(access.conditions));
  }
  if (!Take("]")) return Expected(access.masked ? "',', 'if' or ']'" : "',', '|' or ']'");
  return access;
}

// A bare literal takes the type of the tensor: x[i | 0] of an f32 is 0.0.
absl::StatusOr<ValueId> ExpressionParser::Fill(DType type) {
  if (LiteralLength() == 0) return Prefix<ValueId>();
  NESTOR_ASSIGN_OR_RETURN(const Scalar value, LiteralOf(type));
  return program_.AddConstant(value);
}

absl::StatusOr<ValueId> ExpressionParser::Literal(ValueId) {
  std::string text = Peek().text;
  if (text == "-") text = Peek(1).text;
  NESTOR_ASSIGN_OR_RETURN(const Scalar value, LiteralOf(OwnType(text)));
  return program_.AddConstant(value);
}

absl::StatusOr<ValueId> ExpressionParser::Signed(const PrefixOperator& row,
                                                 const Position& position, ValueId operand) {
  if (row.logical) NESTOR_RETURN_IF_ERROR(NeedBool(row.text, row.op, position, operand));
  return Apply(position, row.op, {operand});
}

// The right operand must have the type of the left one, which Apply checks.
absl::StatusOr<ValueId> ExpressionParser::Combine(const InfixOperator& row,
                                                  const Position& position, ValueId a, ValueId b) {
  if (row.logical) NESTOR_RETURN_IF_ERROR(NeedBool(row.text, row.op, position, a));
  return Apply(position, row.op, {a, b});
}

absl::Status ExpressionParser::NeedBool(absl::string_view sign, ScalarOp op,
                                        const Position& position, ValueId operand) const {
  if (program_[operand].type == DType::kBool) return absl::OkStatus();
  return ErrorAt(position,
                 absl::StrCat("'", sign, "' takes bool, is given ", Name(program_[operand].type),
                              ": write ", Row(op).name, "(..)"));
}

absl::StatusOr<ValueId> ExpressionParser::Apply(const Position& position, ScalarOp op,
                                                absl::Span<const ValueId> args, DType target) {
  std::vector<DType> types;
  for (ValueId arg : args) types.push_back(program_[arg].type);
  // Checked here, not only by the verifier: AddApply needs operands that the row takes.
  const auto type = TypeOfApply(op, types, target);
  if (!type.ok()) return ErrorAt(position, type.status().message());
  return program_.AddApply(op, args, target);
}

absl::StatusOr<ValueId> ExpressionParser::Primary(ValueId) {
  const Token& token = Peek();
  if (token.kind == TokenKind::kParam) return ValueParam();
  if (token.kind != TokenKind::kName) return Expected("a value");
  if (At("(", 1)) return Function();
  return Load();
}

// An integer $param is an index expression, and a value only as index($k).
absl::StatusOr<ValueId> ExpressionParser::ValueParam() {
  const Token& token = tokens_[next_];
  const ParamInfo* param = FindParam(token.text);
  if (param == nullptr)
    return ErrorAt(token.position, absl::StrCat("unknown parameter '", token.text, "'"));
  if (IsInteger(param->type)) {
    return ErrorAt(token.position,
                   absl::StrCat("an integer $param is a value as index(", token.text, ")"));
  }
  ++next_;
  return program_.AddParam(param->name, param->type);
}

// index(e), TYPE(v), or OP(v, ..)
absl::StatusOr<ValueId> ExpressionParser::Function() {
  const Token& name = tokens_[next_];
  next_ += 2;
  if (name.text == "index") {
    NESTOR_ASSIGN_OR_RETURN(const IndexId index, Index());
    NESTOR_RETURN_IF_ERROR(Need(")"));
    return program_.AddIndexValue(index);
  }
  if (const auto type = TypeByName(name.text)) return TypeApplied(name.position, *type);
  const auto op = ScalarOpByName(name.text);
  if (!op || *op == ScalarOp::kCast) {
    return ErrorAt(name.position, absl::StrCat("'", name.text, "' is no scalar op"));
  }
  std::vector<ValueId> args;
  NESTOR_RETURN_IF_ERROR(List(")", [&]() -> absl::Status {
    NESTOR_ASSIGN_OR_RETURN(const ValueId arg, Value());
    args.push_back(arg);
    return absl::OkStatus();
  }));
  return Apply(name.position, *op, args);
}

// f32(1.5) is a constant; f32(x) a cast.
absl::StatusOr<ValueId> ExpressionParser::TypeApplied(const Position& position, DType type) {
  const size_t literal = LiteralLength();
  if (literal > 0 && At(")", literal)) {
    NESTOR_ASSIGN_OR_RETURN(const Scalar value, LiteralOf(type));
    ++next_;
    return program_.AddConstant(value);
  }
  NESTOR_ASSIGN_OR_RETURN(const ValueId operand, Value());
  NESTOR_RETURN_IF_ERROR(Need(")"));
  return Apply(position, ScalarOp::kCast, {operand}, type);
}

}  // namespace nestor::loop
