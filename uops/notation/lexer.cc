// One RE2 pattern for each kind of token; the first character says which.
//
// A newline ends a statement only outside ( ) and [ ], only if the line does not
// end in an operator, an assignment or a comma, and only if the next token is not
// `where` (SEMANTICS 2), so newlines are kept as candidates while reading and
// settled in a second step, when the neighbours are known.
#include "uops/cpp20.h"

#include "uops/notation/lexer.h"

#include <map>
#include <utility>

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "re2/re2.h"
#include "uops/index/operators.h"
#include "uops/message.h"

namespace nestor {
namespace {

struct Pattern {
  const RE2 regex;
  TokenKind kind;
};

// Every operator, and the other signs: assignments, brackets and separators.
std::vector<absl::string_view> Symbols() {
  std::vector<absl::string_view> symbols = {"->", "..", "=", "+=", "*=", "|", ":", ";",
                                            ",",  "(",  ")", "{",  "}",  "[", "]"};
  for (const InfixOperator& op : kInfixOperators) symbols.push_back(op.text);
  for (const PrefixOperator& op : kPrefixOperators) symbols.push_back(op.text);
  return symbols;
}

// The signs that begin with one character are one alternative, as in `->?`: no
// alternative begins as another does, so that RE2 reads a token in one pass.
std::string SymbolPattern() {
  // By first character: the second characters, and whether the first is also a symbol by itself.
  std::map<char, std::pair<std::string, bool>> tails;
  for (absl::string_view symbol : Symbols()) {
    auto& [second, alone] = tails[symbol[0]];
    if (symbol.size() == 1) alone = true;
    else if (!absl::StrContains(second, symbol[1])) second += symbol[1];
  }
  std::vector<std::string> alternatives;
  for (const auto& [first, tail] : tails) {
    const std::string begin = RE2::QuoteMeta(std::string(1, first)), &second = tail.first;
    if (second.empty()) alternatives.push_back(begin);
    else
      alternatives.push_back(
          absl::StrCat(begin, "[", RE2::QuoteMeta(second), "]", tail.second ? "?" : ""));
  }
  return absl::StrCat("(", absl::StrJoin(alternatives, "|"), ")");
}

// The pattern of the tokens that begin with `c`: no two kinds begin alike.
const Pattern& PatternFor(char c) {
  static const auto* const name = new Pattern{RE2(R"(([A-Za-z_][A-Za-z0-9_]*))"), TokenKind::kName};
  static const auto* const param =
      new Pattern{RE2(R"((\$[A-Za-z_][A-Za-z0-9_]*))"), TokenKind::kParam};
  static const auto* const number =
      new Pattern{RE2(R"(([0-9]+(?:\.[0-9]+|\.)?(?:[eE][+-]?[0-9]+)?))"), TokenKind::kNumber};
  static const auto* const string =
      new Pattern{RE2(R"-(("(?:[^"\\\n]|\\.)*"))-"), TokenKind::kString};
  static const auto* const symbol = new Pattern{RE2(SymbolPattern()), TokenKind::kSymbol};
  if (c == '_' || absl::ascii_isalpha(static_cast<unsigned char>(c))) return *name;
  if (absl::ascii_isdigit(static_cast<unsigned char>(c))) return *number;
  return c == '$' ? *param : c == '"' ? *string : *symbol;
}

bool ContinuesLine(const Token& token) {
  if (token.kind != TokenKind::kSymbol) return false;
  return !(token.text == ")" || token.text == "]" || token.text == "}");
}

// Two operators in a row that no program holds, as in "//".
bool IsForeign(const Pattern& pattern, absl::string_view from) {
  return pattern.kind == TokenKind::kSymbol && !ForeignOperator(from).empty();
}

// The error that describes the text at `position`, which begins no token.
absl::Status Unexpected(const ast::Position& position, absl::string_view rest) {
  const absl::string_view foreign = ForeignOperator(rest);
  if (!foreign.empty())
    return ErrorAt(position, absl::StrCat("unexpected '", foreign, "'", ForeignHint(foreign)));
  const size_t length = Utf8Length(rest);
  if (length == 0) {
    return ErrorAt(position,
                   absl::StrFormat("the byte 0x%02x is not UTF-8: only comments may hold such",
                                   static_cast<unsigned char>(rest[0])));
  }
  if (rest[0] == '"')
    return ErrorAt(position, "a string that does not end on its line, or is not UTF-8");
  const bool control = rest[0] >= 0 && rest[0] < ' ';
  const std::string shown =
      control ? absl::StrFormat("\\x%02x", rest[0]) : std::string(rest.substr(0, length));
  return ErrorAt(position, absl::StrCat("unexpected character '", shown, "'"));
}

// Keeps the candidates that end a statement, one per run; in place, for a file may
// hold millions of tokens.
void SettleNewlines(std::vector<Token>& tokens) {
  size_t kept = 0;
  int depth = 0;
  int bodies = 0;  // around the token; elsewhere newlines mean nothing
  for (size_t i = 0; i < tokens.size(); ++i) {
    Token& token = tokens[i];
    if (token.kind == TokenKind::kSymbol && (token.text == "(" || token.text == "[")) ++depth;
    if (token.kind == TokenKind::kSymbol && (token.text == ")" || token.text == "]")) --depth;
    if (token.kind == TokenKind::kSymbol && (token.text == "{" || token.text == "}")) {
      depth = 0;
      bodies = std::max(0, bodies + (token.text == "{" ? 1 : -1));
    }
    if (token.kind == TokenKind::kEnd && token.text == "\n") {
      const bool where_next = i + 1 < tokens.size() && tokens[i + 1].kind == TokenKind::kName &&
                              tokens[i + 1].text == "where";
      const bool repeated = kept > 0 && tokens[kept - 1].kind == TokenKind::kEnd;
      if (bodies == 0 || depth > 0 || repeated || ContinuesLine(tokens[kept - 1]) || where_next)
        continue;
    }
    if (kept != i) tokens[kept] = std::move(token);
    ++kept;
  }
  tokens.resize(kept);
}

}  // namespace

absl::Status ErrorAt(const ast::Position& position, absl::string_view message) {
  return absl::InvalidArgumentError(
      absl::StrCat(position.line, ":", position.column, ": ", ClipWords(ValidUtf8(message))));
}

absl::StatusOr<std::vector<Token>> Tokenize(absl::string_view text) {
  // This matches byte by byte: a comment may hold bytes that are not UTF-8.
  static const RE2* const kSkip = new RE2(R"(([ \t\r]+|#[^\n]*))", RE2::Latin1);
  absl::ConsumePrefix(&text, kByteOrderMark);
  re2::StringPiece rest(text.data(), text.size());
  std::vector<Token> tokens;
  ast::Position position;
  re2::StringPiece piece;
  while (!rest.empty()) {
    if (absl::StrContains(" \t\r#", rest[0]) && RE2::Consume(&rest, *kSkip, &piece)) {
      position.column += static_cast<int>(piece.size());
      continue;
    }
    if (rest[0] == '\n') {
      const bool repeated = !tokens.empty() && tokens.back().kind == TokenKind::kEnd;
      if (!repeated) tokens.push_back({TokenKind::kEnd, "\n", position});
      rest.remove_prefix(1);
      position = {position.line + 1, 1};
      continue;
    }
    const absl::string_view from(rest.data(), rest.size());
    const Pattern& pattern = PatternFor(rest[0]);
    if (!RE2::Consume(&rest, pattern.regex, &piece) || IsForeign(pattern, from))
      return Unexpected(position, from);
    const bool semicolon = piece == ";";
    tokens.push_back({semicolon ? TokenKind::kEnd : pattern.kind, std::string(piece), position});
    position.column += static_cast<int>(piece.size());
  }
  SettleNewlines(tokens);
  tokens.push_back({TokenKind::kEof, "", position});
  return tokens;
}

}  // namespace nestor
