// Reads tokens and expressions of the notation: the parser of statements and ops is built on it.
#ifndef NESTOR_UOPS_NOTATION_EXPRESSION_PARSER_H_
#define NESTOR_UOPS_NOTATION_EXPRESSION_PARSER_H_

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "uops/index/operators.h"
#include "uops/notation/ast.h"
#include "uops/notation/lexer.h"

namespace nestor {

class ExpressionParser {
 public:
  explicit ExpressionParser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

 protected:
  // ---- Tokens

  const Token& Peek(size_t ahead = 0) const {
    return tokens_[std::min(next_ + ahead, tokens_.size() - 1)];
  }
  bool At(absl::string_view text, size_t ahead = 0) const;
  bool AtLiteral(size_t ahead = 0) const;
  bool Take(absl::string_view text);
  void SkipEnds();
  // The error that there is something other than `what`.
  absl::Status Expected(absl::string_view what) const;
  absl::Status Need(absl::string_view text);
  absl::StatusOr<Token> Name(absl::string_view what);
  // Reads `element` separated by commas up to `close`, which may come at once.
  absl::Status List(absl::string_view close, absl::FunctionRef<absl::Status()> element);

  // ---- Expressions

  absl::StatusOr<ast::Literal> SignedLiteral();
  // Items up to and with "]".
  absl::StatusOr<std::vector<ast::Item>> Items();
  absl::StatusOr<ast::ExprPtr> Expression() { return Operators(kLoosest); }
  // An operand and the operators after it that are at least as tight as `tightness`.
  absl::StatusOr<ast::ExprPtr> Operators(int tightness);

  std::vector<Token> tokens_;
  size_t next_ = 0;
  absl::flat_hash_set<std::string> type_variables_;  // of the op: their names are casts

 private:
  class Nesting;

  absl::Status OneItem(std::vector<ast::Item>& items);
  absl::StatusOr<ast::ExprPtr> Chain(ast::ExprPtr first, int tightness);
  const InfixOperator* AtInfix() const;
  absl::StatusOr<ast::ExprPtr> Prefix();
  absl::StatusOr<ast::ExprPtr> Primary();
  absl::StatusOr<ast::ExprPtr> Size();
  absl::StatusOr<ast::ExprPtr> Reduction();
  absl::StatusOr<ast::ExprPtr> Function();
  absl::StatusOr<ast::ExprPtr> Access();

  int nesting_ = 0;
};

}  // namespace nestor

#endif  // NESTOR_UOPS_NOTATION_EXPRESSION_PARSER_H_
