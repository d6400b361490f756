// The text of DrawNestProgram is mostly an op, and otherwise refused for the reasons in the header.
#include "check/engines/nest_programs.h"

#include <string>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "uops/notation/module.h"

namespace nestor {
namespace {

TEST(NestPrograms, AreOps) {
  constexpr int kPrograms = 2000;
  int refused = 0;
  for (int seed = 1; seed <= kPrograms; ++seed) {
    Random random(static_cast<uint64_t>(seed));
    const DType type = seed % 5 == 0 ? DType::kI32 : DType::kF32;
    const std::string text = DrawNestProgram(random, type);
    const auto module = Module::Parse(text);
    const absl::Status status =
        module.ok() ? module->Instantiate("", {}).status() : module.status();
    if (status.ok()) continue;
    ++refused;
    EXPECT_TRUE(absl::StrContains(status.message(), "has no range") ||
                absl::StrContains(status.message(), "unknown dimension"))
        << status << "\n"
        << text;
  }
  EXPECT_LE(refused, kPrograms / 5);
}

}  // namespace
}  // namespace nestor
