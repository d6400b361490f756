// A place in a list of tokens: what every parser of the house does there.
#ifndef NESTOR_UOPS_NOTATION_TOKEN_READER_H_
#define NESTOR_UOPS_NOTATION_TOKEN_READER_H_

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "uops/index/operators.h"
#include "uops/notation/lexer.h"

namespace nestor {

class TokenReader {
 protected:
  // REQUIRES: the last token is the end of the text, as the lexer's is.
  explicit TokenReader(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  // The next token, or one after it. Every look beyond the end sees the end.
  const Token& Peek(size_t ahead = 0) const {
    return tokens_[std::min(next_ + ahead, tokens_.size() - 1)];
  }
  bool At(absl::string_view text, size_t ahead = 0) const;
  // The infix operator that is the next token; null if it is none.
  const InfixOperator* AtInfix() const;
  // Moves past the token if it is the next one.
  bool Take(absl::string_view text);
  // The error that there is something other than `what`:
  // "2:7: expected ')', found the end of the line".
  absl::Status Expected(absl::string_view what) const;
  // Take, or the error that something else is there.
  absl::Status Need(absl::string_view text);
  // An error where the next token cannot be a bound of a range: nan, or the infinity that is not
  // `no_bound`, which is "-inf" for a lower bound and "inf" for an upper one.
  absl::Status CheckBound(absl::string_view no_bound) const;
  // Reads `element` separated by commas up to `close`, which may come at once.
  absl::Status List(absl::string_view close, absl::FunctionRef<absl::Status()> element);

  // While it lives, parsing is one step deeper in brackets, prefix operators or loops. Recursion is
  // bounded, so that no text can overflow the stack.
  class Nesting {
   public:
    explicit Nesting(TokenReader& reader) : reader_(reader) { ++reader_.nesting_; }
    ~Nesting() { --reader_.nesting_; }
    Nesting(const Nesting&) = delete;
    Nesting& operator=(const Nesting&) = delete;
    // An error where it is too deep.
    absl::Status Check() const;

   private:
    TokenReader& reader_;
  };

  std::vector<Token> tokens_;
  size_t next_ = 0;

 private:
  int nesting_ = 0;
};

}  // namespace nestor

#endif  // NESTOR_UOPS_NOTATION_TOKEN_READER_H_
