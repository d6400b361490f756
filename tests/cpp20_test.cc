// Under an older standard, the first error of each public header says that Nestor needs C++20. The
// headers are those that nestor.h includes.
#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "gtest/gtest.h"

namespace nestor {
namespace {

std::vector<std::string> PublicHeaders() {
  std::vector<std::string> headers = {"nestor.h"};
  std::ifstream file("nestor.h");
  EXPECT_TRUE(file.good());
  std::stringstream text;
  text << file.rdbuf();
  for (absl::string_view line : absl::StrSplit(text.str(), '\n')) {
    if (!absl::ConsumePrefix(&line, "#include \"") || absl::StartsWith(line, "absl/")) continue;
    headers.emplace_back(line.substr(0, line.find('"')));
  }
  return headers;
}

// The compiler's output up to its first error.
std::string Errors(absl::string_view standard, const std::string& header) {
  const std::string command = absl::StrCat(
      "g++ -std=", standard, " -Wfatal-errors -fsyntax-only -I. -x c++ ", header, " 2>&1");
  FILE* pipe = popen(command.c_str(), "r");
  std::string text;
  char buffer[4096];
  while (const size_t n = fread(buffer, 1, sizeof buffer, pipe)) text.append(buffer, n);
  pclose(pipe);
  return text;
}

TEST(Cpp20, IsNamedFirstWhereItIsMissing) {
  const std::vector<std::string> headers = PublicHeaders();
  EXPECT_GE(headers.size(), 10u);
  for (const char* standard : {"c++11", "c++14", "c++17"}) {
    for (const std::string& header : headers) {
      EXPECT_TRUE(absl::StrContains(Errors(standard, header),
                                    "error: #error \"Nestor needs C++20: compile with -std=c++20"))
          << standard << " " << header << ": " << Errors(standard, header);
    }
  }
  EXPECT_EQ(Errors("c++20", "uops/cpp20.h"), "");
}

}  // namespace
}  // namespace nestor
