// The pipeline's own behaviour, with passes made for it: order, edits, and the messages that name
// the pass that failed or broke the program.
#include "fusion/pipeline.h"

#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"
#include "loop_ir/text.h"
#include "loop_ir/verify.h"

namespace nestor::fusion {
namespace {

using loop::ParseProgram;
using loop::Program;

constexpr char kText[] =
    "program p(x: f32[N]) -> (y: f32[N]) {\n"
    "  temp t: f32[N]\n"
    "  for i in [0, N) { t[i] = exp(x[i]) }  for j in [0, N) { y[j] = t[j] + 1.0 }\n}\n";

Program Small() {
  const absl::StatusOr<Program> program = ParseProgram(kText);
  EXPECT_TRUE(program.ok()) << program.status();
  return *program;
}

std::string Names(const Pipeline& pipeline) {
  return absl::StrJoin(pipeline.passes(), " ",
                       [](std::string* out, const Pass& pass) { out->append(pass.name); });
}

absl::StatusOr<bool> Nothing(Program&) { return false; }

// A pipeline of passes that do nothing, to be changed.
Pipeline Of(const std::vector<std::string>& names) {
  Pipeline pipeline = Pipeline::Default();
  pipeline.Truncate(1);
  for (const std::string& name : names) {
    EXPECT_TRUE(pipeline.InsertBefore("assume_products", {name, Nothing}).ok());
  }
  EXPECT_TRUE(pipeline.Disable("assume_products").ok());
  return pipeline;
}

// The position of a pass; -1: there is none.
int PositionOf(const Pipeline& pipeline, absl::string_view name) {
  int position = 0;
  for (const Pass& pass : pipeline.passes()) {
    if (pass.name == name) return position;
    ++position;
  }
  return -1;
}

// The order that the comments between the lines of the list promise.
TEST(Pipeline, DefaultOrder) {
  const Pipeline pipeline = Pipeline::Default();
  const struct {
    const char* earlier;
    const char* later;
  } kOrder[] = {
      {"assume_products", "dead_code"},
      {"assume_products", "substitute"},
      {"dead_code", "substitute"},
      {"substitute", "merge"},
      {"gather_from_scatter", "merge"},
      {"merge", "demote"},
      {"demote", "merge_2"},
      {"merge_2", "contract"},
      {"contract", "split_loops"},
      {"contract", "hoist"},
      {"split_loops", "hoist"},
      {"hoist", "common_subexpressions"},
      {"common_subexpressions", "dead_code_2"},
  };
  for (const auto& [earlier, later] : kOrder) {
    EXPECT_GE(PositionOf(pipeline, earlier), 0) << earlier;
    EXPECT_LT(PositionOf(pipeline, earlier), PositionOf(pipeline, later))
        << earlier << ", " << later;
  }
  EXPECT_EQ(pipeline.passes().front().name, "assume_products");
  EXPECT_EQ(pipeline.passes().back().name, "dead_code_2");
}

// A pass that runs again has a number at the end: 2, 3, ... in order.
TEST(Pipeline, DefaultNumbers) {
  const Pipeline pipeline = Pipeline::Default();
  for (const Pass& pass : pipeline.passes()) {
    const size_t end = pass.name.find_last_of('_');
    int number = 0;
    if (end == std::string::npos || !absl::SimpleAtoi(pass.name.substr(end + 1), &number)) continue;
    const std::string base = pass.name.substr(0, end);
    const std::string before = number == 2 ? base : absl::StrCat(base, "_", number - 1);
    EXPECT_GE(PositionOf(pipeline, before), 0) << pass.name;
    EXPECT_LT(PositionOf(pipeline, before), PositionOf(pipeline, pass.name)) << pass.name;
  }
}

TEST(Pipeline, NamesAreUnique) {
  const Pipeline pipeline = Pipeline::Default();
  absl::flat_hash_set<std::string> names;
  for (const Pass& pass : pipeline.passes())
    EXPECT_TRUE(names.insert(pass.name).second) << pass.name;
}

TEST(Pipeline, Inserts) {
  Pipeline pipeline = Of({"a", "b", "c"});
  EXPECT_EQ(Names(pipeline), "a b c");
  EXPECT_TRUE(pipeline.InsertBefore("a", {"first", Nothing}).ok());
  EXPECT_TRUE(pipeline.InsertAfter("c", {"last", Nothing}).ok());
  EXPECT_TRUE(pipeline.InsertBefore("b", {"before_b", Nothing}).ok());
  EXPECT_TRUE(pipeline.InsertAfter("b", {"after_b", Nothing}).ok());
  EXPECT_EQ(Names(pipeline), "first a before_b b after_b c last");
}

TEST(Pipeline, DisablesAndTruncates) {
  Pipeline pipeline = Of({"a", "b", "c", "d"});
  EXPECT_TRUE(pipeline.Disable("b").ok());
  EXPECT_EQ(Names(pipeline), "a c d");
  pipeline.Truncate(7);
  EXPECT_EQ(Names(pipeline), "a c d");
  pipeline.Truncate(2);
  EXPECT_EQ(Names(pipeline), "a c");
  EXPECT_FALSE(pipeline.Disable("b").ok());
  EXPECT_TRUE(pipeline.InsertAfter("c", {"b", Nothing}).ok()) << "the name is free again";
  pipeline.Truncate(-1);
  EXPECT_EQ(Names(pipeline), "");
}

TEST(Pipeline, Errors) {
  Pipeline pipeline = Of({"a", "b"});
  const std::string missing = "there is no pass called c; there are: a, b";
  for (const absl::Status& status :
       {pipeline.InsertBefore("c", {"d", Nothing}), pipeline.InsertAfter("c", {"d", Nothing}),
        pipeline.Disable("c")}) {
    EXPECT_EQ(status, absl::NotFoundError(missing));
  }
  const std::string taken = "there is a pass called b";
  for (const absl::Status& status :
       {pipeline.InsertBefore("a", {"b", Nothing}), pipeline.InsertAfter("b", {"b", Nothing})}) {
    EXPECT_EQ(status, absl::AlreadyExistsError(taken));
  }
  EXPECT_EQ(Names(pipeline), "a b");
}

TEST(Pipeline, RunsInOrder) {
  std::string ran;
  Pipeline pipeline = Of({"a", "b", "c"});
  const auto note = [&](Program&) -> absl::StatusOr<bool> { return ran.append(" x"), false; };
  EXPECT_TRUE(pipeline.InsertBefore("b", {"noting", note}).ok());
  RunOptions options;
  std::vector<std::string> seen;
  options.observer = [&](const PassReport& report, const Program& program) {
    EXPECT_EQ(program.name, "p");
    EXPECT_GE(report.time, absl::ZeroDuration());
    seen.push_back(
        absl::StrCat(report.number, " ", report.pass.name, report.changed ? " changed" : "", ran));
  };
  Program program = Small();
  EXPECT_TRUE(pipeline.Run(program, options).ok());
  EXPECT_EQ(absl::StrJoin(seen, "; "), "0 a; 1 noting x; 2 b x; 3 c x");
  EXPECT_EQ(ToText(program), ToText(Small()));
}

// Each pass of the default list is observed, with the program as it leaves it.
TEST(Pipeline, ObservesEveryPass) {
  const Pipeline pipeline = Pipeline::Default();
  Program program = Small();
  std::string text = ToText(program), names;
  RunOptions options;
  options.verify = true;
  options.observer = [&](const PassReport& report, const Program& after) {
    EXPECT_EQ(ToText(after) != text, report.changed) << report.pass.name;
    text = ToText(after);
    absl::StrAppend(&names, names.empty() ? "" : " ", report.pass.name);
  };
  EXPECT_TRUE(pipeline.Run(program, options).ok());
  EXPECT_EQ(names, Names(pipeline));
  EXPECT_EQ(
      text,
      "program p(x: f32[N]) -> (y: f32[N]) {\n  for j in [0, N) {\n    y[j] = exp(x[j]) + 1.0\n  }\n}\n");
}

TEST(Pipeline, NamesThePassThatFails) {
  Pipeline pipeline = Of({"a", "b"});
  const auto fail = [](Program&) -> absl::StatusOr<bool> {
    return absl::UnimplementedError("too many loops");
  };
  EXPECT_TRUE(pipeline.InsertBefore("b", {"mine", fail}).ok());
  std::string seen;
  RunOptions options;
  options.observer = [&](const PassReport& report, const Program&) {
    seen.append(report.pass.name);
  };
  Program program = Small();
  EXPECT_EQ(pipeline.Run(program, options), absl::InternalError("pass mine: too many loops"));
  EXPECT_EQ(seen, "a");
}

TEST(Pipeline, NamesThePassThatBreaksTheProgram) {
  Pipeline pipeline = Of({"a", "b"});
  const auto break_it = [](Program& program) -> absl::StatusOr<bool> {
    return program.body.clear(), true;
  };
  EXPECT_TRUE(pipeline.InsertBefore("b", {"mine", break_it}).ok());
  RunOptions options;
  options.verify = true;
  Program program = Small();
  EXPECT_EQ(
      pipeline.Run(program, options),
      absl::InternalError("after pass mine: program p: y is an output that no statement writes"));
  // Nor is a program taken that is broken before.
  EXPECT_EQ(Of({}).Run(program, options),
            absl::InternalError(
                "before the first pass: program p: y is an output that no statement writes"));
  options.verify = false;
  EXPECT_TRUE(pipeline.Run(program, options).ok());
}

TEST(Pipeline, StrictLeavesOutWhatReordersRounding) {
  Pipeline pipeline = Of({"a", "b"});
  EXPECT_TRUE(pipeline.InsertBefore("b", {"mine", Nothing, /*reorders_rounding=*/true}).ok());
  for (bool strict : {false, true}) {
    std::string seen;
    RunOptions options;
    options.strict = strict;
    options.observer = [&](const PassReport& report, const Program&) {
      absl::StrAppend(&seen, report.number, report.pass.name, " ");
    };
    Program program = Small();
    EXPECT_TRUE(pipeline.Run(program, options).ok());
    EXPECT_EQ(seen, strict ? "0a 2b " : "0a 1mine 2b ");
  }
}

// A pass that says "unchanged" and breaks the program.
TEST(Pipeline, VerifiesBehindEachPass) {
  Pipeline pipeline = Of({"a"});
  const auto lie = [](Program& program) -> absl::StatusOr<bool> {
    return program.body.clear(), false;
  };
  EXPECT_TRUE(pipeline.InsertAfter("a", {"mine", lie}).ok());
  RunOptions options;
  options.verify = true;
  Program program = Small();
  EXPECT_FALSE(pipeline.Run(program, options).ok());
}

}  // namespace
}  // namespace nestor::fusion
