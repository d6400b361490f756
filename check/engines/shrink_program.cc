// Each way to make a program smaller proposes texts; one is kept if it parses and still fails. The
// ways take turns, from the one that removes most to those that only make the text plainer, until
// none finds anything. See the header for the method.
#include "check/engines/shrink_program.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "macro_ops/library.h"
#include "uops/dtype.h"
#include "uops/notation/lexer.h"
#include "uops/notation/module.h"

namespace nestor {
namespace {

using Tokens = std::vector<Token>;

// Above this length only the lengths n/2, n/4, .. of n tokens are tried.
constexpr size_t kLongestRange = 40;

std::string TextOf(const Tokens& tokens) {
  std::string text;
  for (const Token& token : tokens) {
    if (token.kind == TokenKind::kEof) break;
    if (token.kind == TokenKind::kEnd) absl::StrAppend(&text, token.text);  // a line break, or ";"
    else absl::StrAppend(&text, text.empty() || text.back() == '\n' ? "" : " ", token.text);
  }
  return text;
}

bool Opens(const Token& token) {
  return token.text == "(" || token.text == "[" || token.text == "{";
}
bool Closes(const Token& token) {
  return token.text == ")" || token.text == "]" || token.text == "}";
}

// Delta debugging over tokens (Zeller and Hildebrandt, 2002), with cuts that keep brackets
// balanced, so that most candidates parse.
class Shrinker {
 public:
  Shrinker(Tokens tokens, absl::FunctionRef<bool(const Op&)> fails)
      : tokens_(std::move(tokens)), fails_(fails) {}

  std::string Run() {
    bool changed = true;
    while (changed) {
      changed = DropRanges();
      changed |= ReplaceResults();
      changed |= DropAxes();
      changed |= ReplaceGroups();
      changed |= ReplaceTokens();
    }
    return TextOf(tokens_);
  }

 private:
  // Takes the candidate if it is a program that fails.
  bool Try(Tokens candidate) {
    const auto module = Module::Parse(TextOf(candidate), &MacroLibrary());
    if (!module.ok()) return false;
    const auto op = module->Instantiate("", {});
    if (!op.ok() || !fails_(*op)) return false;
    tokens_ = std::move(candidate);
    return true;
  }

  Tokens Replaced(size_t begin, size_t end, const Tokens& by) const {
    Tokens candidate(tokens_.begin(), tokens_.begin() + static_cast<int64_t>(begin));
    candidate.insert(candidate.end(), by.begin(), by.end());
    candidate.insert(candidate.end(), tokens_.begin() + static_cast<int64_t>(end), tokens_.end());
    return candidate;
  }

  // The end of the shortest range from `begin` of at least `length` tokens with all its
  // brackets; 0 where there is none.
  // from "(" of f(a, b) + c with length 1: after ")";   from ")" of it: 0
  size_t BalancedEnd(size_t begin, size_t length) const {
    int depth = 0;
    for (size_t i = begin; i < tokens_.size(); ++i) {
      if (Opens(tokens_[i])) ++depth;
      if (Closes(tokens_[i]) && --depth < 0) return 0;
      if (depth == 0 && i + 1 - begin >= length) return i + 1;
    }
    return 0;
  }

  bool DropRanges() {
    bool changed = false;
    for (size_t length = tokens_.size() / 2; length > kLongestRange; length /= 2) {
      changed |= DropRangesOf(length, length / 2);
    }
    for (size_t length = std::min(kLongestRange, tokens_.size()); length > 0; --length) {
      changed |= DropRangesOf(length, 1);
    }
    return changed;
  }

  // After a success the place stays: what followed the range stands there now.
  bool DropRangesOf(size_t length, size_t step) {
    bool changed = false;
    for (size_t begin = 0; begin < tokens_.size();) {
      const size_t end = BalancedEnd(begin, length);
      const bool exact = end > 0 && (step > 1 || end - begin == length);
      if (exact && Try(Replaced(begin, end, {}))) changed = true;
      else begin += std::max<size_t>(step, 1);
    }
    return changed;
  }

  // ---- A result for what an earlier statement defines, so that later ones can go

  bool ReplaceResults() {
    bool changed = false;
    for (size_t i = 0; i < tokens_.size() && tokens_[i].text != "{"; ++i) {
      if (tokens_[i].text != "->") continue;
      for (size_t r = i + 2; tokens_[r].text != ")"; r += 1) changed |= ReplaceResult(r);
    }
    return changed;
  }

  // op f(x: f32[N]) -> (y) {t[i] = x[i] * 2; y[i] = t[i] + 1}
  //   -> (t): then the statement of y can go
  bool ReplaceResult(size_t result) {
    for (const std::string& target : Targets()) {
      if (target == tokens_[result].text) return false;  // no earlier one
      Token token = tokens_[result];
      token.text = target;
      if (token.kind == TokenKind::kName && Try(Replaced(result, result + 1, {token}))) return true;
    }
    return false;
  }

  // The names that begin statements, in order.
  std::vector<std::string> Targets() const {
    std::vector<std::string> targets;
    for (size_t i = 1; i < tokens_.size(); ++i) {
      const bool begins = tokens_[i - 1].kind == TokenKind::kEnd || tokens_[i - 1].text == "{";
      if (begins && tokens_[i].kind == TokenKind::kName) targets.push_back(tokens_[i].text);
    }
    return targets;
  }

  // ---- One axis of a tensor, wherever it is mentioned

  bool DropAxes() {
    bool changed = false;
    for (size_t i = 0; i < tokens_.size(); ++i) {
      if (tokens_[i].kind != TokenKind::kName) continue;
      for (int axis = 0; axis < 4; ++axis) {
        while (DropAxis(tokens_[i].text, axis)) changed = true;
      }
    }
    return changed;
  }

  // x: T[N, M], x[i, j] and x[i, j]: T[N, M] without the axis.
  bool DropAxis(const std::string& name, int axis) {
    Tokens candidate;
    for (size_t i = 0; i < tokens_.size(); ++i) {
      candidate.push_back(tokens_[i]);
      if (tokens_[i].text != name) continue;
      if (IsText(i + 1, "[")) i = CopyWithout(i + 1, axis, candidate);
      if (!IsText(i + 1, ":") || !IsText(i + 3, "[")) continue;
      candidate.insert(candidate.end(), {tokens_[i + 1], tokens_[i + 2]});
      i = CopyWithout(i + 3, axis, candidate);
    }
    return candidate.size() < tokens_.size() && Try(std::move(candidate));
  }

  bool IsText(size_t i, const char* text) const {
    return i < tokens_.size() && tokens_[i].text == text;
  }

  // Copies the bracketed list from `open` on without the piece `axis`; conditions and fills are
  // kept. Returns the number of the closing bracket.
  size_t CopyWithout(size_t open, int axis, Tokens& to) const {
    const size_t end = BalancedEnd(open, 1);
    if (end == 0) return open - 1;
    size_t list_end = open + 1;
    for (int depth = 0; list_end + 1 < end; ++list_end) {
      depth += Opens(tokens_[list_end]) ? 1 : Closes(tokens_[list_end]) ? -1 : 0;
      if (depth == 0 && (tokens_[list_end].text == "if" || tokens_[list_end].text == "|")) break;
    }
    std::vector<Tokens> pieces = Pieces(open + 1, list_end);
    if (axis < static_cast<int>(pieces.size())) pieces.erase(pieces.begin() + axis);
    to.push_back(tokens_[open]);
    for (size_t i = 0; i < pieces.size(); ++i) {
      if (i > 0) to.push_back({TokenKind::kSymbol, ",", {}});
      to.insert(to.end(), pieces[i].begin(), pieces[i].end());
    }
    to.insert(to.end(), tokens_.begin() + static_cast<int64_t>(list_end),
              tokens_.begin() + static_cast<int64_t>(end));
    return end - 1;
  }

  // ---- A part for the whole

  // f(a, b) for a or b, (a) for a, x[i] for a number.
  bool ReplaceGroups() {
    bool changed = false;
    for (size_t open = 0; open < tokens_.size(); ++open) {
      while (Opens(tokens_[open]) && ReplaceGroup(open)) changed = true;
    }
    return changed;
  }

  // f(a, b): tries a, b and a number in its place; sum[k](a): also a alone.
  bool ReplaceGroup(size_t open) {
    const size_t end = BalancedEnd(open, 1);
    if (end == 0) return false;
    const bool named = open > 0 && tokens_[open - 1].kind == TokenKind::kName;
    for (const Tokens& piece : Pieces(open + 1, end - 1)) {
      if (named && TryGroup(open - 1, end, piece)) return true;
      if (TryGroup(open, end, piece)) return true;
      // sum[k](body): the body alone.
      if (open > 0 && tokens_[open - 1].text == "]" && TryReduction(open, end, piece)) return true;
    }
    for (const char* number : {"1", "1.0", "true"}) {
      if (named && TryGroup(open - 1, end, {Token{TokenKind::kNumber, number, {}}})) return true;
    }
    return false;
  }

  bool TryGroup(size_t begin, size_t end, const Tokens& by) {
    return by.size() < end - begin && Try(Replaced(begin, end, by));
  }

  bool TryReduction(size_t open, size_t end, const Tokens& body) {
    size_t begin = open;
    while (begin > 0 && tokens_[begin].text != "[") --begin;
    return begin > 0 && TryGroup(begin - 1, end, body);
  }

  // The pieces between commas, with all their brackets.
  std::vector<Tokens> Pieces(size_t begin, size_t end) const {
    std::vector<Tokens> pieces(1);
    int depth = 0;
    for (size_t i = begin; i < end; ++i) {
      depth += Opens(tokens_[i]) ? 1 : Closes(tokens_[i]) ? -1 : 0;
      if (depth == 0 && tokens_[i].text == ",") pieces.emplace_back();
      else pieces.back().push_back(tokens_[i]);
    }
    return pieces;
  }

  bool ReplaceTokens() {
    bool changed = false;
    for (size_t i = 0; i < tokens_.size(); ++i) {
      for (const std::string& simpler : Simpler(tokens_[i])) {
        Token token = tokens_[i];
        token.text = simpler;
        if (!Try(Replaced(i, i + 1, {token}))) continue;
        changed = true;
        break;
      }
    }
    return changed;
  }

  // bf16 -> f32, 2.5 -> 1.0, 12 -> 0, 1, 2, 6 or 11
  static std::vector<std::string> Simpler(const Token& token) {
    if (TypeByName(token.text)) {
      return token.text == "f32" ? std::vector<std::string>() : std::vector<std::string>{"f32"};
    }
    int64_t number;
    if (token.kind == TokenKind::kNumber && absl::SimpleAtoi(token.text, &number))
      return SmallerNumbers(number);
    if (token.kind == TokenKind::kNumber && token.text != "1.0") return {"1.0"};
    return {};
  }

  // The smallest first; number - 1 for a fault that depends on the number itself.
  static std::vector<std::string> SmallerNumbers(int64_t number) {
    std::vector<std::string> smaller;
    for (int64_t other : {int64_t{0}, int64_t{1}, int64_t{2}, number / 2, number - 1}) {
      if (other >= 0 && other < number) smaller.push_back(absl::StrCat(other));
    }
    return smaller;
  }

  Tokens tokens_;
  absl::FunctionRef<bool(const Op&)> fails_;
};

}  // namespace

std::string ShrinkProgram(const std::string& text, absl::FunctionRef<bool(const Op&)> fails) {
  const auto tokens = Tokenize(text);
  return tokens.ok() ? Shrinker(*tokens, fails).Run() : text;
}

// One name after the other, from 0 upwards, so the first size that fails is the least tried.
absl::optional<Sizes> ShrinkSizes(Sizes sizes, absl::FunctionRef<bool(const Sizes&)> fails) {
  if (!fails(sizes)) return absl::nullopt;
  std::vector<std::string> names;
  for (const auto& [name, size] : sizes) names.push_back(name);
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) {
    const int64_t size = sizes[name];
    for (int64_t smaller = std::min<int64_t>(0, size); smaller < size;
         smaller += std::max<int64_t>(1, size / 40)) {
      Sizes candidate = sizes;
      candidate[name] = smaller;
      if (!fails(candidate)) continue;
      sizes = std::move(candidate);
      break;
    }
  }
  return sizes;
}

}  // namespace nestor
