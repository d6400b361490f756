// What is compared is the print of programs: the expected text is parsed, verified and
// printed as well, so that a row may be laid out as it reads best.
//
//   ExpectPass(EliminateDeadCode, kFrame, {{"block { r = 0.0  r = 1.0 }", "block { r = 1.0 }"}});
//
// The second run of a pass is checked like the first, as a run that changes nothing.
#include "fusion/pass_testing.h"

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "loop_ir/text.h"
#include "loop_ir/verify.h"

namespace nestor::fusion {
namespace {

using loop::Program;
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

void ExpectCase(PassRef pass, const Frame& frame, const PassCase& c) {
  const testing::ScopedTrace trace(__FILE__, __LINE__, c.before);
  const bool changes = *c.after != '\0';
  Program program = ParseVerified(frame, c.before);
  ExpectRun(pass, program, changes, ToText(changes ? ParseVerified(frame, c.after) : program));
  const testing::ScopedTrace again(__FILE__, __LINE__, "run again");
  ExpectRun(pass, program, false, ToText(program));
}

}  // namespace

Program ParseVerified(absl::string_view text) {
  const absl::StatusOr<Program> program = loop::ParseProgram(text);
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

}  // namespace nestor::fusion
