// A text in a test is wrong more often than the code under test, so it is shown with the error.
#include "loop_ir/text_testing.h"

#include <utility>

#include "absl/status/statusor.h"
#include "gtest/gtest.h"
#include "loop_ir/text.h"
#include "loop_ir/verify.h"
#include "uops/invariant.h"

namespace nestor::loop {

Program Parsed(absl::string_view text) {
  absl::StatusOr<Program> program = ParseProgram(text);
  EXPECT_TRUE(program.ok()) << program.status() << "\n" << text;
  if (!program.ok()) return Program();
  EXPECT_TRUE(Verify(*program).ok()) << Verify(*program) << "\n" << text;
  return *std::move(program);
}

const Item& NestAt(const Program& program, size_t n) {
  const Item* nest = nullptr;
  for (size_t i = 0; i < program.body.size() && nest == nullptr; ++i) {
    if (program.body[i].As<Declaration>() == nullptr && n-- == 0) nest = &program.body[i];
  }
  NESTOR_CHECK(nest != nullptr, ToText(program));
  return *nest;
}

}  // namespace nestor::loop
