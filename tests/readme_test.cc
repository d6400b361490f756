// Every snippet of the README and of pages that have commands runs, and prints what the
// page says: shell blocks line by line, the README's first C++ block as examples/tour.cc.
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"
#include "re2/re2.h"

namespace nestor {
namespace {

std::string ReadText(const std::string& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file.good()) << path;
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// The texts of the blocks that begin with ```language.
std::vector<std::string> Blocks(const std::string& text, const std::string& language) {
  std::vector<std::string> blocks;
  bool inside = false;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    if (line == absl::StrCat("```", language)) {
      inside = true;
      blocks.emplace_back();
    } else if (line == "```") {
      inside = false;
    } else if (inside) {
      absl::StrAppend(&blocks.back(), line, "\n");
    }
  }
  return blocks;
}

std::string Output(const std::string& command) {
  FILE* pipe = popen(command.c_str(), "r");
  std::string text;
  char buffer[4096];
  while (const size_t n = fread(buffer, 1, sizeof buffer, pipe)) text.append(buffer, n);
  EXPECT_EQ(pclose(pipe), 0) << command;
  return text;
}

struct Step {
  std::string command, output;
};

std::vector<Step> Steps(const std::string& block) {
  std::vector<Step> steps;
  for (absl::string_view line : absl::StrSplit(block, '\n', absl::SkipEmpty())) {
    if (absl::StartsWith(line, "$ ")) steps.push_back({std::string(line.substr(2)), ""});
    else absl::StrAppend(&steps.back().output, line, "\n");
  }
  return steps;
}

// The text without measured times: "in 0.805 s".
std::string WithoutTimes(std::string text) {
  RE2::GlobalReplace(&text, " in [0-9.e+-]+ s\\b", " in .. s");
  return text;
}

class Page : public testing::TestWithParam<const char*> {};

TEST_P(Page, ShellSnippetsPrintWhatTheyShow) {
  char here[4096];
  ASSERT_NE(getcwd(here, sizeof here), nullptr);
  const std::string page = ReadText(GetParam());
  char directory[] = "/tmp/nestor_readme_XXXXXX";
  ASSERT_NE(mkdtemp(directory), nullptr);
  ASSERT_EQ(setenv("PATH", absl::StrCat(here, "/cli:", getenv("PATH")).c_str(), 1), 0);
  ASSERT_EQ(chdir(directory), 0);
  Output(absl::StrCat("cp ", here, "/examples/check_a_kernel/softmax.c ."));
  int commands = 0;
  for (const std::string& block : Blocks(page, "sh")) {
    for (const Step& step : Steps(block)) {
      ++commands;
      // A file is shown by cat: it is what the README says it is.
      if (absl::StartsWith(step.command, "cat "))
        std::ofstream(step.command.substr(4)) << step.output;
      EXPECT_EQ(WithoutTimes(Output(step.command)), WithoutTimes(step.output)) << step.command;
    }
  }
  EXPECT_GE(commands, 5);
  ASSERT_EQ(chdir(here), 0);
  Output(absl::StrCat("rm -rf ", directory));
}
INSTANTIATE_TEST_SUITE_P(Pages, Page,
                         testing::Values("README.md", "docs/check.md", "docs/macro_ops.md",
                                         "examples/check_a_kernel/README.md"));

// The text after the mark is the command's output; where this fails, update the page.
TEST(MacroOpsPage, HasTheTableOfToday) {
  const std::string page = ReadText("docs/macro_ops.md"), mark = "<!-- nestor ops --table -->\n";
  const size_t at = page.find(mark);
  ASSERT_NE(at, std::string::npos);
  EXPECT_EQ(page.substr(at + mark.size()), Output("cli/nestor ops --table"));
}

TEST(Readme, CppSnippetIsTheTour) {
  const std::vector<std::string> blocks = Blocks(ReadText("README.md"), "cpp");
  ASSERT_EQ(blocks.size(), 1u);
  const std::string source = ReadText("examples/tour.cc");
  const std::string begin = "// README begins\n", end = "// README ends\n";
  const size_t from = source.find(begin) + begin.size();
  EXPECT_EQ(blocks[0], source.substr(from, source.find(end) - from));
  EXPECT_EQ(Output("examples/tour"), "[1.0, 4.0, 9.0]\n"
                                     "op f_grad(g_y: f32[N], x: f32[N]) -> (g_x) {\n"
                                     "  t0[i] = g_y[i] * x[i]\n"
                                     "  g_x[i] = t0[i] + t0[i]\n"
                                     "}\n");
}

}  // namespace
}  // namespace nestor
