// Splits a program's text into tokens, and decides which newlines end a
// statement.
#ifndef NESTOR_UOPS_NOTATION_LEXER_H_
#define NESTOR_UOPS_NOTATION_LEXER_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "uops/notation/ast.h"

namespace nestor {

enum class TokenKind {
  kName,
  kParam,   // $name
  kNumber,  // without a sign
  kString,  // "...", quotes and escapes as written; only in loop programs
  kSymbol,  // an operator or bracket
  kEnd,     // of a statement: a newline or ";"
  kEof,
};

struct Token {
  TokenKind kind;
  std::string text;
  ast::Position position;
};

// The tokens, the last of kind kEof. A byte-order mark before the text is skipped, and comments
// may hold any bytes. Elsewhere, a character that starts no token, or a byte that is not UTF-8, is
// an error. `line`: the number of the first line.
absl::StatusOr<std::vector<Token>> Tokenize(absl::string_view text, int line = 1);

// "LINE:COLUMN: message", InvalidArgument: the form of every error in a program's text. Text from
// the user is shown as valid UTF-8, and long words are clipped.
absl::Status ErrorAt(const ast::Position& position, absl::string_view message);

}  // namespace nestor

#endif  // NESTOR_UOPS_NOTATION_LEXER_H_
