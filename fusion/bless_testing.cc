// A source is read just well enough to find its string literals: text in comments is none, and
// literals with only white space between them are one string. A row's two strings are found by
// their content, so it does not matter how they are laid out.
#include "fusion/bless_testing.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"
#include "uops/invariant.h"

namespace nestor::loop {
namespace {

struct Text {
  size_t begin, end;  // in the source, from the first quote to the last
  std::string value;
};

class Reader {
 public:
  explicit Reader(absl::string_view source) : source_(source) {}

  std::vector<Text> Texts() {
    while (at_ < source_.size()) {
      const size_t begin = at_;
      if (At("//")) SkipTo("\n");
      else if (At("/*")) SkipTo("*/");
      else if (At("R\"")) Add(begin, Raw());
      else if (At("\"")) Add(begin, Quoted('"'));
      else if (At("'") && (at_ == 0 || !absl::ascii_isalnum(source_[at_ - 1])))
        Quoted('\''), joins_ = false;
      else joins_ = joins_ && absl::ascii_isspace(source_[at_]), ++at_;
    }
    return std::move(texts_);
  }

 private:
  bool At(absl::string_view what) const { return absl::StartsWith(source_.substr(at_), what); }

  // Returns the text up to `end`, and moves on past it.
  std::string SkipTo(absl::string_view end) {
    const size_t found = std::min(source_.find(end, at_), source_.size());
    std::string between(source_.substr(at_, found - at_));
    at_ = std::min(found + end.size(), source_.size());
    return between;
  }

  std::string Raw() {
    at_ += 2;
    const std::string delimiter = SkipTo("(");
    return SkipTo(absl::StrCat(")", delimiter, "\""));
  }

  std::string Quoted(char quote) {
    const size_t begin = ++at_;
    while (at_ < source_.size() && source_[at_] != quote) at_ += source_[at_] == '\\' ? 2 : 1;
    std::string value;
    absl::CUnescape(source_.substr(begin, at_ - begin), &value);
    ++at_;
    return value;
  }

  void Add(size_t begin, const std::string& value) {
    if (joins_) texts_.back().value += value;
    else texts_.push_back({begin, at_, value});
    texts_.back().end = at_;
    joins_ = true;
  }

  const absl::string_view source_;
  size_t at_ = 0;
  bool joins_ = false;  // a literal here continues the last one
  std::vector<Text> texts_;
};

// A scope of one line is put on one line with its braces where that is short enough, as in
// the tables.
std::vector<std::string> Folded(const std::vector<std::string>& lines) {
  constexpr size_t kWidth = 100;
  std::vector<std::string> folded;
  for (const std::string& line : lines) {
    const size_t n = folded.size();
    const bool ends_one =
        n >= 2 && absl::StripAsciiWhitespace(line) == "}" && absl::EndsWith(folded[n - 2], "{");
    const absl::string_view inside = ends_one ? absl::StripAsciiWhitespace(folded[n - 1]) : "";
    if (!ends_one || absl::EndsWith(inside, "{") ||
        folded[n - 2].size() + inside.size() + 3 > kWidth) {
      folded.push_back(line);
      continue;
    }
    const std::string whole = absl::StrCat(folded[n - 2], " ", inside, " }");
    folded.resize(n - 2);
    folded.push_back(whole);
  }
  return folded;
}

std::string AsLiteral(const std::vector<std::string>& lines, size_t column) {
  if (lines.empty()) return "\"\"";
  if (lines.size() == 1) return absl::StrCat("\"", absl::CEscape(lines[0]), "\"");
  const std::string indent = absl::StrCat("\n", std::string(column + 2, ' '));
  return absl::StrCat("R\"(", indent, absl::StrJoin(lines, indent), ")\"");
}

}  // namespace

absl::StatusOr<std::string> WithExpectation(absl::string_view source, absl::string_view before,
                                            absl::string_view after,
                                            const std::vector<std::string>& expected) {
  const std::vector<Text> texts = Reader(source).Texts();
  const Text* found = nullptr;
  for (size_t i = 1; i < texts.size(); ++i) {
    if (texts[i - 1].value != before || texts[i].value != after) continue;
    if (found != nullptr) return absl::NotFoundError("several rows are the same");
    found = &texts[i];
  }
  if (found == nullptr)
    return absl::NotFoundError("the row does not stand in the source as literals");
  const size_t line = source.rfind('\n', found->begin) + 1;  // npos + 1 is 0
  return absl::StrCat(source.substr(0, found->begin),
                      AsLiteral(Folded(expected), found->begin - line), source.substr(found->end));
}

bool IsBlessing() { return std::getenv("NESTOR_BLESS") != nullptr; }

absl::Status Bless(absl::string_view before, absl::string_view after,
                   const std::vector<std::string>& expected) {
  const char* const root = std::getenv("BUILD_WORKSPACE_DIRECTORY");
  if (root == nullptr)
    return absl::FailedPreconditionError("only `bazelw run` says where the source is");
  const std::string path =
      absl::StrCat(root, "/", testing::UnitTest::GetInstance()->current_test_info()->file());
  std::ifstream in(path);
  const std::string source{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  NESTOR_ASSIGN_OR_RETURN(const std::string blessed,
                          WithExpectation(source, before, after, expected));
  std::ofstream(path) << blessed;
  return absl::OkStatus();
}

}  // namespace nestor::loop
