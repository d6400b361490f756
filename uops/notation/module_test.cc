// Modules: which ops a text has, which of several is meant, and what a refused text leaves.
#include "uops/notation/module.h"

#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace nestor {
namespace {

constexpr char kTwice[] = "op twice(x: f32[N]) -> (y) { y[i] = x[i] + x[i] }\n";
constexpr char kFour[] = "op four(x: f32[N]) -> (y) {\n  t = twice(x)\n  y = twice(t)\n}\n";

using Names = std::vector<std::string>;

TEST(Module, HasItsOpsInOrder) {
  const auto module = Module::Parse(std::string(kTwice) + kFour).value();
  EXPECT_EQ(module.OpNames(), (Names{"twice", "four"}));
  EXPECT_TRUE(module.Has("four"));
  EXPECT_FALSE(module.Has("exp"));
  EXPECT_EQ(module.Syntax("four").name, "four");
  EXPECT_EQ(module.Instantiate("", {})->name, "four");  // the last one
  EXPECT_EQ(module.Instantiate("three", {}).status().code(), absl::StatusCode::kNotFound);
}

TEST(Module, CallsItsLibraryAndHidesIt) {
  const auto library = Module::Parse(kTwice).value();
  const auto module = Module::Parse(kFour, &library).value();
  EXPECT_EQ(module.OpNames(), Names{"four"});
  EXPECT_TRUE(module.Check().ok());
  // Its own op of that name takes integers, which are not given.
  const auto hides =
      Module::Parse(std::string("op twice(x: i64[N]) -> (y) { y[i] = x[i] }\n") + kFour, &library);
  EXPECT_FALSE(hides->Check().ok());
}

TEST(Module, CallsOnlyWhatIsBefore) {
  const struct {
    std::string text, message;
  } kCases[] = {
      {std::string(kFour) + kTwice, "2:7: the op 'twice' is defined after its use"},
      {"op f(x: f32[N]) -> (y) { y = f(x) }",
       "1:30: the op 'f' calls itself; ops are not recursive"},
  };
  for (const auto& c : kCases) {
    const auto module = Module::Parse(c.text);
    ASSERT_TRUE(module.ok()) << module.status();
    EXPECT_EQ(module->Check().message(), c.message);
  }
}

TEST(Module, ARefusedTextChangesNothing) {
  auto module = Module::Parse(kTwice).value();
  const Module copy = module;
  for (const std::string& refused :
       {std::string(kFour) + kTwice, std::string("op exp(x: f32[N]) -> (y) { y[i] = x[i] }"),
        std::string(kFour) + "op"}) {
    EXPECT_EQ(module.Append(refused).code(), absl::StatusCode::kInvalidArgument) << refused;
    EXPECT_EQ(copy.OpNames(), Names{"twice"}) << refused;
  }
  EXPECT_TRUE(module.Append(kFour).ok());
  EXPECT_EQ(copy.OpNames(), (Names{"twice", "four"}));  // copies share their ops
}

constexpr char kNoOp[] = "op bad(x: f32[N]) -> (y) { y[i] = }\n";

TEST(ModuleOfDefinitions, IsReadAsFarAsItIsCalled) {
  const auto library =
      Module::OfDefinitions({{"twice", kTwice}, {"bad", kNoOp, 7}, {"four", kFour, 9}});
  EXPECT_EQ(library.OpNames(), (Names{"twice", "bad", "four"}));
  EXPECT_TRUE(library.Has("bad"));
  EXPECT_EQ(library.Syntax("four").position.line, 9);
  EXPECT_EQ(library.Instantiate("four", {})->name, "four");
  EXPECT_TRUE(Module::Parse("op f(x: f32[N]) -> (y) { y = four(x) }", &library)->Check().ok());
  EXPECT_DEATH(library.Syntax("bad"), "op bad: .*7:35: expected an expression");
}

TEST(ModuleOfDefinitions, CallsOnlyWhatIsBefore) {
  const auto library = Module::OfDefinitions({{"four", kFour, 3}, {"twice", kTwice}});
  EXPECT_EQ(library.Check().message(), "4:7: the op 'twice' is defined after its use");
}

TEST(ModuleOfDefinitionsDeathTest, HasDistinctNames) {
  EXPECT_DEATH(Module::OfDefinitions({{"twice", kTwice}, {"twice", kTwice}}), "already defined");
  EXPECT_DEATH(Module::OfDefinitions({{"exp", kTwice}}), "named like the scalar op 'exp'");
}

TEST(ModuleOfDefinitions, IsReadOnceByManyThreads) {
  for (int round = 0; round < 50; ++round) {
    const auto library = Module::OfDefinitions({{"twice", kTwice}, {"four", kFour}});
    const ast::Op* read[8];
    std::vector<std::thread> threads;
    for (auto& op : read) threads.emplace_back([&] { op = &library.Syntax("four"); });
    for (std::thread& thread : threads) thread.join();
    for (const ast::Op* op : read) {
      EXPECT_EQ(op, read[0]);
      EXPECT_EQ(op->statements.size(), 2u);
    }
  }
}

}  // namespace
}  // namespace nestor
