// The texts of messages: whatever a user wrote, they are valid UTF-8, of bounded
// length, and say what was probably meant.
#ifndef NESTOR_UOPS_MESSAGE_H_
#define NESTOR_UOPS_MESSAGE_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace nestor {

// The mark that some editors put before a text in UTF-8.
inline constexpr absl::string_view kByteOrderMark = "\xef\xbb\xbf";

// The bytes of the UTF-8 character that `text` begins with, 1 to 4; 0 if there is none.
size_t Utf8Length(absl::string_view text);

// `text` with each byte that belongs to no UTF-8 character as \xNN.
std::string ValidUtf8(absl::string_view text);

// `text` with each word (letters, digits, _) of more than `longest` characters cut to as many,
// followed by "...".
inline constexpr size_t kLongestWord = 64;
std::string ClipWords(absl::string_view text, size_t longest = kLongestWord);

// ", did you mean 'x'?" for the nearest of `known`, or "". `name` itself is no answer.
std::string DidYouMean(absl::string_view name, absl::Span<const std::string> known);

// The operator of other languages, unknown to this notation, that `text` begins with, such as "//"
// or "?"; empty if there is none.
absl::string_view ForeignOperator(absl::string_view text);

// How the notation writes what `word`, an operator as above or a name, means in other languages, as
// in ": a choice is where(c, a, b)"; or "".
std::string ForeignHint(absl::string_view word);

// A JSON string with its quotes.
std::string JsonString(absl::string_view text);

}  // namespace nestor

#endif  // NESTOR_UOPS_MESSAGE_H_
