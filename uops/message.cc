// Messages contain text from the user as it is, so it is repaired here when a message is returned,
// in one place, instead of wherever a message is made.
#include "uops/message.h"

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace nestor {
namespace {

// Levenshtein's distance.
// One row of the table at a time; in O(|a| |b|) time, which is why DidYouMean skips long names.
size_t EditDistance(absl::string_view a, absl::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row[b.size()];
}

bool IsWord(char c) { return c == '_' || absl::ascii_isalnum(static_cast<unsigned char>(c)); }

struct Foreign {
  absl::string_view word;
  absl::string_view hint;
};

constexpr Foreign kOperators[] = {
    {"//", "floor division is floordiv(a, b), a comment begins with #"},
    {"/*", "a comment runs from # to the end of the line"},
    {"**", "a power is pow(a, b)"},
    {"<<", "a shift to the left is shl(a, b)"},
    {">>", "a shift to the right is shr(a, b)"},
    {"^", "a power is pow(a, b), an exclusive or xor(a, b)"},
    {"?", "a choice is where(c, a, b)"},
    {"&", "an and is a && b, or of bits and(a, b)"},
    {"~", "a not is !a, or of bits not(a)"},
    {"@", "a product of matrices is sum[k](a[i, k] * b[k, j])"},
};

constexpr absl::string_view kMeanHint =
    "a mean is sum[j](x[j]) / N, where N is the size that j runs over";
constexpr Foreign kNames[] = {{"mean", kMeanHint}, {"avg", kMeanHint}, {"average", kMeanHint}};

}  // namespace

// Table 3-7 of the Unicode standard: the second byte's range depends on the first, which leaves out
// overlong forms, surrogates, and code points past U+10FFFF.
size_t Utf8Length(absl::string_view text) {
  const auto byte = [&](size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0;
  };
  const auto in = [&](size_t i, int low, int high) { return byte(i) >= low && byte(i) <= high; };
  if (text.empty()) return 0;
  if (byte(0) < 0x80) return 1;
  if (in(0, 0xc2, 0xdf)) return in(1, 0x80, 0xbf) ? 2 : 0;
  const int low = byte(0) == 0xe0 ? 0xa0 : byte(0) == 0xf0 ? 0x90 : 0x80;
  const int high = byte(0) == 0xed ? 0x9f : byte(0) == 0xf4 ? 0x8f : 0xbf;
  if (!in(0, 0xe0, 0xf4) || !in(1, low, high) || !in(2, 0x80, 0xbf)) return 0;
  if (byte(0) < 0xf0) return 3;
  return in(3, 0x80, 0xbf) ? 4 : 0;
}

// A message quotes the author's text: bytes that are no UTF-8 are shown as \x80, so that it can be
// printed and parsed as JSON.
std::string ValidUtf8(absl::string_view text) {
  std::string valid;
  while (!text.empty()) {
    const size_t length = Utf8Length(text);
    if (length > 0) absl::StrAppend(&valid, text.substr(0, length));
    else absl::StrAppendFormat(&valid, "\\x%02x", static_cast<unsigned char>(text[0]));
    text.remove_prefix(std::max<size_t>(length, 1));
  }
  return valid;
}

// Word by word, so that a message stays readable around a name of a megabyte.
std::string ClipWords(absl::string_view text, size_t longest) {
  std::string clipped;
  while (!text.empty()) {
    const size_t word = std::find_if_not(text.begin(), text.end(), IsWord) - text.begin();
    absl::StrAppend(&clipped, text.substr(0, std::min(word, longest)), word > longest ? "..." : "");
    text.remove_prefix(word);
    const size_t rest = std::find_if(text.begin(), text.end(), IsWord) - text.begin();
    absl::StrAppend(&clipped, text.substr(0, rest));
    text.remove_prefix(rest);
  }
  return clipped;
}

// A name is near at an edit distance below half its length (below 2 for a short one), or in another
// case. For one letter there are many such, so there it must be the only one.
std::string DidYouMean(absl::string_view name, absl::Span<const std::string> known) {
  if (name.size() > kLongestWord) return "";  // mistyped nowhere, and slow to compare
  const std::string* nearest = nullptr;
  size_t least = std::max<size_t>(2, name.size() / 2);
  bool is_only = true;  // at that distance
  for (const std::string& candidate : known) {
    if (candidate == name || candidate.size() > 2 * kLongestWord) continue;
    const size_t distance =
        absl::EqualsIgnoreCase(name, candidate) ? 0 : EditDistance(name, candidate);
    // Two equally near candidates: the first one is suggested, except for a single letter.
    if (nearest != nullptr && distance == least) is_only = false;
    if (distance >= least) continue;
    least = distance;
    nearest = &candidate;
    is_only = true;
  }
  const bool is_any_letter = name.size() == 1 && !is_only;
  return nearest == nullptr || is_any_letter ? ""
                                             : absl::StrCat(", did you mean '", *nearest, "'?");
}

absl::string_view ForeignOperator(absl::string_view text) {
  for (const Foreign& foreign : kOperators) {
    if (absl::StartsWith(text, foreign.word) && !absl::StartsWith(text, "&&")) return foreign.word;
  }
  return "";
}

std::string ForeignHint(absl::string_view word) {
  for (const Foreign& foreign : kOperators) {
    if (word == foreign.word) return absl::StrCat(": ", foreign.hint);
  }
  for (const Foreign& foreign : kNames) {
    if (word == foreign.word) return absl::StrCat(": ", foreign.hint);
  }
  return "";
}

std::string JsonString(absl::string_view text) {
  std::string json = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') absl::StrAppend(&json, "\\", absl::string_view(&c, 1));
    else if (c == '\n') json += "\\n";
    // Bytes from 0x80 on are parts of UTF-8, which JSON takes as they are.
    else if (c >= 0 && c < ' ') absl::StrAppendFormat(&json, "\\u%04x", c);
    else json.push_back(c);
  }
  return json + "\"";
}

}  // namespace nestor
