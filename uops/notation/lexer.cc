// The first character of a token says of which kind it is. Numbers and strings are RE2 patterns.
//
// A newline ends a statement only outside ( ) and [ ], only if the line does not
// end in an operator, an assignment or a comma, and only if the next token is not
// `where` (SEMANTICS 2), so newlines are kept as candidates while reading and
// settled in a second step, when the neighbours are known.
#include "uops/cpp20.h"

#include "uops/notation/lexer.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "re2/re2.h"
#include "uops/index/operators.h"
#include "uops/message.h"

namespace nestor {
namespace {

// Every operator, and the other signs: assignments, brackets and separators.
std::vector<absl::string_view> Symbols() {
  std::vector<absl::string_view> symbols = {"->", "..", "=", "+=", "*=", "|", ":", ";",
                                            ",",  "(",  ")", "{",  "}",  "[", "]"};
  for (const InfixOperator& op : kInfixOperators) symbols.push_back(op.text);
  for (const PrefixOperator& op : kPrefixOperators) symbols.push_back(op.text);
  return symbols;
}

// The symbols that begin with one character: it alone, or with one of `seconds` after it.
struct SymbolsOfCharacter {
  bool alone = false;
  std::string seconds;
};

const SymbolsOfCharacter& SymbolsFrom(char first) {
  static const auto& table = *[] {
    auto* const made = new std::array<SymbolsOfCharacter, 256>;
    for (absl::string_view symbol : Symbols()) {
      SymbolsOfCharacter& entry = (*made)[static_cast<unsigned char>(symbol[0])];
      if (symbol.size() == 1) entry.alone = true;
      else entry.seconds += symbol[1];
    }
    return made;
  }();
  return table[static_cast<unsigned char>(first)];
}

// The longest symbol wins: "+=" is one, not "+" and "=". No symbol has three characters.
size_t SymbolLength(absl::string_view text) {
  const SymbolsOfCharacter& symbols = SymbolsFrom(text[0]);
  if (text.size() > 1 && absl::StrContains(symbols.seconds, text[1])) return 2;
  return symbols.alone ? 1 : 0;
}

bool BeginsName(char c) { return c == '_' || absl::ascii_isalpha(static_cast<unsigned char>(c)); }

// 0 if no name begins the text.
size_t NameLength(absl::string_view text) {
  if (text.empty() || !BeginsName(text[0])) return 0;
  size_t length = 1;
  while (length < text.size() && (BeginsName(text[length]) ||
                                  absl::ascii_isdigit(static_cast<unsigned char>(text[length]))))
    ++length;
  return length;
}

size_t MatchLength(const RE2& regex, absl::string_view text) {
  re2::StringPiece rest(text.data(), text.size()), match;
  return RE2::Consume(&rest, regex, &match) ? match.size() : 0;
}

// A kind of token, and the bytes of the text's first one; 0: it is none.
struct Lexeme {
  TokenKind kind;
  size_t length;
};

// No two kinds begin alike. Names and symbols, of which programs consist, are found without a
// pattern: this takes a tenth of the time.
Lexeme FirstLexeme(absl::string_view text) {
  static const RE2& number = *new RE2(R"(([0-9]+(?:\.[0-9]+|\.)?(?:[eE][+-]?[0-9]+)?))");
  static const RE2& string = *new RE2(R"-(("(?:[^"\\\n]|\\.)*"))-");
  const char c = text[0];
  if (BeginsName(c)) return {TokenKind::kName, NameLength(text)};
  if (absl::ascii_isdigit(static_cast<unsigned char>(c)))
    return {TokenKind::kNumber, MatchLength(number, text)};
  if (c == '"') return {TokenKind::kString, MatchLength(string, text)};
  if (c != '$') return {TokenKind::kSymbol, SymbolLength(text)};
  const size_t name = NameLength(text.substr(1));
  return {TokenKind::kParam, name == 0 ? 0 : 1 + name};
}

// Spaces, or a comment, which may hold bytes that are not UTF-8.
size_t SkippedLength(absl::string_view text) {
  if (text[0] == '#') return std::min(text.find('\n'), text.size());
  size_t length = 0;
  while (length < text.size() &&
         (text[length] == ' ' || text[length] == '\t' || text[length] == '\r'))
    ++length;
  return length;
}

// y[i] = a[i] +        one statement
//        b[i]
bool ContinuesLine(const Token& token) {
  if (token.kind != TokenKind::kSymbol) return false;
  return !(token.text == ")" || token.text == "]" || token.text == "}");
}

// Two operators in a row that no program holds, as in "//".
bool IsForeign(const Lexeme& lexeme, absl::string_view from) {
  return lexeme.kind == TokenKind::kSymbol && !ForeignOperator(from).empty();
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
      // An unmatched "(" must not swallow the rest of a file: a brace closes all of them.
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

absl::StatusOr<std::vector<Token>> Tokenize(absl::string_view text, int line) {
  absl::ConsumePrefix(&text, kByteOrderMark);
  std::vector<Token> tokens;
  ast::Position position{line, 1};
  while (!text.empty()) {
    if (const size_t skipped = SkippedLength(text); skipped > 0) {
      position.column += static_cast<int>(skipped);
      text.remove_prefix(skipped);
      continue;
    }
    if (text[0] == '\n') {
      const bool repeated = !tokens.empty() && tokens.back().kind == TokenKind::kEnd;
      if (!repeated) tokens.push_back({TokenKind::kEnd, "\n", position});
      text.remove_prefix(1);
      position = {position.line + 1, 1};
      continue;
    }
    const Lexeme lexeme = FirstLexeme(text);
    if (lexeme.length == 0 || IsForeign(lexeme, text)) return Unexpected(position, text);
    // ";" ends a statement as a newline does, but stands for itself: it also separates $params.
    const bool semicolon = text[0] == ';';
    tokens.push_back({semicolon ? TokenKind::kEnd : lexeme.kind,
                      std::string(text.substr(0, lexeme.length)), position});
    position.column += static_cast<int>(lexeme.length);
    text.remove_prefix(lexeme.length);
  }
  SettleNewlines(tokens);
  tokens.push_back({TokenKind::kEof, "", position});
  return tokens;
}

}  // namespace nestor
