// Every instruction has its line, and every statement is above its code.
#include "jit/disassemble.h"

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"
#include "jit/compile.h"
#include "jit/kernel.h"
#include "loop_ir/text.h"

namespace nestor::jit {
namespace {

constexpr char kProgram[] = R"(program p(x: f32[N], s: f32[]) -> (y: f32[N], z: f32[]) {
  for i in [0, N) vector { y[i] = sqrt(x[i]) * s }
  for j in [0, N) parallel { y[j] = x[j] + y[j] }
  z = s + 2.0
})";

struct Case {
  Isa isa;
  // Lines that follow one another, with others between them.
  std::vector<const char*> lines;
};

TEST(Disassemble, ShowsStatementsAndTheirCode) {
  const Case cases[] = {
      {Isa::kAvx2,
       {"p.0:  # ", "# y[i] = sqrt(x[i]) * s", "vsqrtps ymm", "# ...", "ret", "p.1:  # ",
        "# y[j] = x[j] + y[j]", "vaddps xmm", "p.2:  # ", "# z = s + 2.0", "vaddps xmm", "ret"}},
      {Isa::kAvx512, {"p.0:  # ", "# y[i] = sqrt(x[i]) * s", "vsqrtps zmm", "ret"}},
  };
  for (const Case& c : cases) {
    TranslateOptions options;
    options.isa = c.isa;
    auto program = loop::ParseProgram(kProgram);
    ASSERT_TRUE(program.ok()) << program.status();
    ASSERT_TRUE(ProveForCode(*program, c.isa).ok());
    const auto kernel = Kernel::Compile(*program, options);
    ASSERT_TRUE(kernel.ok()) << kernel.status();
    const std::string text = Disassemble(**kernel);
    size_t from = 0;
    for (const char* line : c.lines) {
      const size_t at = text.find(line, from);
      ASSERT_NE(at, std::string::npos) << "lacks, behind what is before it: " << line << "\n"
                                       << text;
      from = at + 1;
    }
    EXPECT_EQ(text.find(" db "), std::string::npos) << text;
  }
}

// Each function's lines go from its first byte to its last: the decoder never came out
// of step.
TEST(Disassemble, LeavesNothingOut) {
  const auto program = loop::ParseProgram(kProgram);
  ASSERT_TRUE(program.ok()) << program.status();
  const auto kernel = Kernel::Compile(*program, {});
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  const std::vector<std::string> parts = absl::StrSplit(Disassemble(**kernel), ":  # ");
  const std::vector<Kernel::FunctionView> functions = (*kernel)->Functions();
  ASSERT_EQ(parts.size(), functions.size() + 1);
  for (size_t i = 0; i < functions.size(); ++i) {
    EXPECT_TRUE(absl::StrContains(parts[i + 1], "  0000  ")) << parts[i + 1];
    const std::string end = absl::StrFormat("  %04x  ret\n", functions[i].code.size() - 1);
    EXPECT_TRUE(absl::StrContains(parts[i + 1], end)) << parts[i + 1] << "lacks" << end;
  }
}

}  // namespace
}  // namespace nestor::jit
