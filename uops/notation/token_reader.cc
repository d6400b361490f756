// Messages name the place, what was expected, and what is there instead.
#include "uops/notation/token_reader.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "uops/invariant.h"
#include "uops/notation/parser.h"

namespace nestor {

// A number is never a word of the grammar.
bool TokenReader::At(absl::string_view text, size_t ahead) const {
  const Token& token = Peek(ahead);
  return token.kind != TokenKind::kNumber && token.text == text;
}

const InfixOperator* TokenReader::AtInfix() const {
  return Peek().kind == TokenKind::kSymbol ? FindInfix(Peek().text) : nullptr;
}

bool TokenReader::Take(absl::string_view text) {
  if (!At(text) || Peek().kind == TokenKind::kEof) return false;
  ++next_;
  return true;
}

absl::Status TokenReader::Expected(absl::string_view what) const {
  const Token& token = Peek();
  const std::string found = token.kind == TokenKind::kEof ? "the end of the text"
                            : token.text == "\n"          ? "the end of the line"
                                                          : absl::StrCat("'", token.text, "'");
  return ErrorAt(token.position, absl::StrCat("expected ", what, ", found ", found));
}

absl::Status TokenReader::Need(absl::string_view text) {
  return Take(text) ? absl::OkStatus() : Expected(absl::StrCat("'", text, "'"));
}

// Every comparison with nan is false, so it would bound nothing, or all.
absl::Status TokenReader::CheckBound(absl::string_view no_bound) const {
  const size_t sign = At("-") ? 1 : 0;
  const std::string text = absl::StrCat(sign == 1 ? "-" : "", Peek(sign).text);
  if (!At("nan", sign) && (!At("inf", sign) || text == no_bound)) return absl::OkStatus();
  return ErrorAt(Peek().position, absl::StrCat("expected a number or ", no_bound,
                                               " (no bound), found '", text, "'"));
}

absl::Status TokenReader::List(absl::string_view close, absl::FunctionRef<absl::Status()> element) {
  if (Take(close)) return absl::OkStatus();
  do {
    NESTOR_RETURN_IF_ERROR(element());
  } while (Take(","));
  if (!Take(close)) return Expected(absl::StrCat("',' or '", close, "'"));
  return absl::OkStatus();
}

absl::Status TokenReader::Nesting::Check() const {
  if (reader_.nesting_ <= kMaxNesting) return absl::OkStatus();
  return ErrorAt(reader_.Peek().position,
                 absl::StrCat("nested too deeply (more than ", kMaxNesting, " levels)"));
}

}  // namespace nestor
