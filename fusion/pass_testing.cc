// The printed programs are compared: the expected text is parsed, verified and printed as well, so
// that a row may be laid out as it reads best.
//
//   ExpectPass(EliminateDeadCode, kFrame, {{"r = 0.0  r = 1.0", "r = 1.0"}});
//
// The second run of a pass is checked like the first, as a run that changes nothing.
#include "fusion/pass_testing.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "fusion/bless_testing.h"
#include "gtest/gtest.h"
#include "loop_ir/text.h"
#include "loop_ir/verify.h"
#include "uops/invariant.h"

namespace nestor::loop {
namespace {

using PassRef = absl::FunctionRef<absl::StatusOr<bool>(Program&)>;

void ExpectRun(PassRef pass, Program& program, bool changes, const std::string& want) {
  const size_t values = program.values.size();
  const absl::StatusOr<bool> changed = pass(program);
  ASSERT_TRUE(changed.ok()) << changed.status();
  EXPECT_EQ(*changed, changes) << "what the pass says about a change";
  EXPECT_TRUE(*changed || program.values.size() == values) << "unchanged, but not untouched";
  EXPECT_EQ(Verify(program), absl::OkStatus());
  EXPECT_EQ(ToText(program), want);
}

std::vector<std::string> LinesOf(const std::string& text) {
  return absl::StrSplit(text, '\n', absl::SkipWhitespace());
}

// The lines of `text` without those of the frame. NotFound where these are others in it.
absl::StatusOr<std::vector<std::string>> LinesInside(const Frame& frame, const std::string& text) {
  NESTOR_ASSIGN_OR_RETURN(const Program empty, ParseProgram(absl::StrCat(frame.head, "}")));
  NESTOR_ASSIGN_OR_RETURN(const Program around, ParseProgram(absl::StrCat(frame.head, frame.tail)));
  const size_t head = LinesOf(ToText(empty)).size() - 1;
  const std::vector<std::string> outside = LinesOf(ToText(around));
  std::vector<std::string> lines = LinesOf(text);
  const bool is_around =
      lines.size() >= outside.size() &&
      std::equal(outside.begin(), outside.begin() + static_cast<int64_t>(head), lines.begin()) &&
      std::equal(outside.rbegin(), outside.rend() - static_cast<int64_t>(head), lines.rbegin());
  if (!is_around) return absl::NotFoundError("the pass changes what stands around the row");
  lines.erase(lines.end() - static_cast<int64_t>(outside.size() - head), lines.end());
  lines.erase(lines.begin(), lines.begin() + static_cast<int64_t>(head));
  for (std::string& line : lines) line.erase(0, 2);  // inside of the program
  return lines;
}

// Replaces the row's `after` in the source by the result of the pass, where it differs.
absl::Status BlessCase(PassRef pass, const Frame& frame, const PassCase& c) {
  Program program = ParseVerified(frame, c.before);
  const std::string before = ToText(program);
  NESTOR_RETURN_IF_ERROR(pass(program).status());
  const std::string made = ToText(program);
  const std::string want = *c.after == '\0' ? before : ToText(ParseVerified(frame, c.after));
  if (made == want) return absl::OkStatus();
  if (made == before) return Bless(c.before, c.after, {});
  NESTOR_ASSIGN_OR_RETURN(const std::vector<std::string> lines, LinesInside(frame, made));
  if (ToText(ParseVerified(frame, absl::StrJoin(lines, "\n"))) != made) {
    return absl::NotFoundError("the row would say something else");
  }
  return Bless(c.before, c.after, lines);
}

void ExpectCase(PassRef pass, const Frame& frame, const PassCase& c) {
  const testing::ScopedTrace trace(__FILE__, __LINE__, c.before);
  if (IsBlessing()) {
    const absl::Status blessed = BlessCase(pass, frame, c);
    EXPECT_TRUE(blessed.ok()) << "not blessed: " << blessed;
    return;
  }
  const bool changes = *c.after != '\0';
  Program program = ParseVerified(frame, c.before);
  ExpectRun(pass, program, changes, ToText(changes ? ParseVerified(frame, c.after) : program));
  const testing::ScopedTrace again(__FILE__, __LINE__, "run again");
  ExpectRun(pass, program, false, ToText(program));
}

}  // namespace

Program ParseVerified(absl::string_view text) {
  const absl::StatusOr<Program> program = ParseProgram(text);
  EXPECT_TRUE(program.ok()) << program.status() << "\n" << text;
  if (!program.ok()) return Program();
  EXPECT_EQ(Verify(*program), absl::OkStatus()) << text;
  return *program;
}

Program ParseVerified(const Frame& frame, absl::string_view items) {
  return ParseVerified(absl::StrCat(frame.head, items, frame.tail));
}

void ExpectPass(PassRef pass, const Frame& frame, absl::Span<const PassCase> cases) {
  for (const PassCase& c : cases) ExpectCase(pass, frame, c);
}

}  // namespace nestor::loop
