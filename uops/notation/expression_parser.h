// Reads expressions of the notation: the parser of statements and ops is built on it.
#ifndef NESTOR_UOPS_NOTATION_EXPRESSION_PARSER_H_
#define NESTOR_UOPS_NOTATION_EXPRESSION_PARSER_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "uops/index/operators.h"
#include "uops/notation/ast.h"
#include "uops/notation/lexer.h"
#include "uops/notation/token_reader.h"

namespace nestor {

class ExpressionParser : protected TokenReader {
 public:
  explicit ExpressionParser(std::vector<Token> tokens) : TokenReader(std::move(tokens)) {}

 protected:
  // ---- Tokens

  bool AtLiteral(size_t ahead = 0) const;
  void SkipEnds();
  absl::StatusOr<Token> Name(absl::string_view what);

  // ---- Expressions

  absl::StatusOr<ast::Literal> SignedLiteral();
  // Items up to and with "]".
  absl::StatusOr<std::vector<ast::Item>> Items();
  absl::StatusOr<ast::ExprPtr> Expression() { return Operators(kLoosest); }
  // An operand and the operators after it that are at least as tight as `tightness`.
  absl::StatusOr<ast::ExprPtr> Operators(int tightness);

  absl::flat_hash_set<std::string> type_variables_;  // of the op: their names are casts

 private:
  absl::Status OneItem(std::vector<ast::Item>& items);
  absl::StatusOr<ast::ExprPtr> Chain(ast::ExprPtr first, int tightness);
  absl::StatusOr<ast::ExprPtr> Prefix();
  absl::StatusOr<ast::ExprPtr> Primary();
  absl::StatusOr<ast::ExprPtr> Size();
  absl::StatusOr<ast::ExprPtr> Reduction();
  absl::StatusOr<ast::ExprPtr> Function();
  absl::StatusOr<ast::ExprPtr> Access();
};

}  // namespace nestor

#endif  // NESTOR_UOPS_NOTATION_EXPRESSION_PARSER_H_
