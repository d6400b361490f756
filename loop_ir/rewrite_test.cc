// The helpers that replace indices and values, on programs in text.
#include "loop_ir/rewrite.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "loop_ir/text.h"
#include "loop_ir/text_testing.h"
#include "loop_ir/verify.h"

namespace nestor::loop {
namespace {

Program Of(absl::string_view items) {
  return Parsed(
      absl::StrCat("program p(x: f32[N], ids: i64[N]; $k: i64 = 1) -> (y: f32[N], d: i64[N]) {\n",
                   items, "\n  drop y[0] = 0.0  drop d[0] = 0\n}\n"));
}

int32_t VarOf(const Program& program, absl::string_view name) {
  return static_cast<int32_t>(std::find(program.vars.begin(), program.vars.end(), name) -
                              program.vars.begin());
}

// i becomes i + 1 everywhere below the loop over i.
TEST(Rewrite, IndicesOfAScope) {
  const struct {
    const char* before;
    const char* after;  // "": unchanged
  } kCases[] = {
      {"y[i] = x[i]", "y[i + 1] = x[i + 1]"},
      {"drop y[i] if i < 3, ids[i] < N = x[2*i | 0.0 if i == 1]",
       "drop y[i + 1] if i + 1 < 3, ids[i + 1] < N = x[2*i + 2 | 0.0 if i + 1 == 1]"},
      {"y[0] = x[ids[ids[i]]]", "y[0] = x[ids[ids[i + 1]]]"},
      {"y[0] = f32(index(i*N)) + f32(d[i])", "y[0] = f32(index((i + 1)*N)) + f32(d[i + 1])"},
      {"acc b: f32 = argmax  b argmax= (x[i], index(i))",
       "acc b: f32 = argmax  b argmax= (x[i + 1], index(i + 1))"},
      {"for k in [i, N) { y[k] += x[i] }", "for k in [i + 1, N) { y[k] += x[i + 1] }"},
      {"for k in [0, 2*i) { temp t: f32[i]  t[k] = 1.0 }",
       "for k in [0, 2*i + 2) { temp t: f32[i + 1]  t[k] = 1.0 }"},
      {"y[0] = x[1 | 2.0 if N < 3]", ""},
      {"for k in [0, N) { y[k] = x[k] }", ""},
  };
  for (const auto& c : kCases) {
    Program program = Of(absl::StrCat("for i in [0, N) { ", c.before, " }"));
    const size_t values = program.values.size();
    VarReplacement replace(program);
    EXPECT_TRUE(replace.empty());
    const IndexId i = program.pool.Var(VarOf(program, "i"));
    replace.Set(VarOf(program, "i"), program.pool.Add(i, program.pool.Const(1)));
    EXPECT_FALSE(replace.empty());
    RewriteIndices(program, program.body[0].As<Loop>()->body,
                   [&](IndexId e) { return replace(e); });
    EXPECT_EQ(ToText(program),
              ToText(Of(absl::StrCat("for i in [0, N) { ", *c.after ? c.after : c.before, " }"))));
    if (*c.after != '\0') continue;
    EXPECT_EQ(program.values.size(), values) << "a value in which nothing was replaced is new";
  }
}

// All at once: the replacement of one index may hold another.
TEST(Rewrite, ReplacesAtOnce) {
  Program program =
      Of("for i in [0, N) { for j in [0, N) { y[i] = x[j - i] + f32(index(i + 2*j)) } }");
  VarReplacement replace(program);
  const int32_t i = VarOf(program, "i"), j = VarOf(program, "j");
  replace.Set(i, program.pool.Var(j));
  replace.Set(j, program.pool.Var(i));
  Loop& inner = *program.body[0].As<Loop>()->body[0].As<Loop>();
  RewriteIndices(program, inner.body, [&](IndexId e) { return replace(e); });
  EXPECT_EQ(
      ToText(program),
      ToText(Of("for i in [0, N) { for j in [0, N) { y[j] = x[i - j] + f32(index(2*i + j)) } }")));
}

Statement& First(Program& program) { return *program.body[0].As<Loop>()->body[0].As<Statement>(); }

// Operands first: the map sees the replacements of operands, but not that of the whole.
TEST(Rewrite, Values) {
  const struct {
    const char* before;
    const char* after;  // loads of x become loads of y, and exp(..) its operand
  } kCases[] = {
      {"x[i]", "y[i]"},
      {"exp(x[i])", "y[i]"},
      {"exp(exp(x[i]) + 1.0)", "y[i] + 1.0"},
      {"where(x[i] < 1.0, exp(x[0]), log(x[i] * x[i]))",
       "where(y[i] < 1.0, y[0], log(y[i] * y[i]))"},
      {"log(1.0) + f32(index(i))", ""},
      {"f32(d[i])", ""},
  };
  for (const auto& c : kCases) {
    Program program = Of(absl::StrCat("for i in [0, N) { y[i] = ", c.before, " }"));
    const TensorId y = program.outputs[0], x = program.inputs[0];
    Statement& statement = First(program);
    const ValueId old = statement.value;
    statement.value = RewriteValues(program, old, [&](ValueId id) -> absl::optional<ValueId> {
      if (const auto* apply = absl::get_if<ApplyValue>(&program[id].node)) {
        if (apply->op != ScalarOp::kExp) return absl::nullopt;
        return apply->args[0];
      }
      const auto* load = absl::get_if<LoadValue>(&program[id].node);
      if (load == nullptr || load->access.tensor != x) return absl::nullopt;
      Access access = load->access;
      access.tensor = y;
      return program.AddLoad(std::move(access));
    });
    EXPECT_TRUE(Verify(program).ok()) << Verify(program);
    EXPECT_EQ(statement.value == old, *c.after == '\0') << c.before;
    EXPECT_EQ(
        ToText(program),
        ToText(Of(absl::StrCat("for i in [0, N) { y[i] = ", *c.after ? c.after : c.before, " }"))));
  }
}

// Values that nothing holds are dropped, those that something holds stay as they are: operands,
// fills and positions.
TEST(Rewrite, DropsUnusedValues) {
  for (const char* items :
       {"y[0] = 1.0 + x[0]", "for i in [0, N) { y[i] = x[i | 2.0 if i < 3] * x[i] }",
        "acc b: f32 = argmax  b argmax= (x[0], index(N))  d[0] = b"}) {
    Program program = Of(items);
    const std::string text = ToText(program);
    DropUnusedValues(program);
    const size_t used = program.values.size();
    std::vector<Value> values = program.values;
    program.values.clear();
    const auto move = [](ValueId& id) { id.value += id.valid() ? 2 : 0; };
    for (int i = 0; i < 2; ++i) program.AddConstant(Scalar::Float(DType::kF32, 7));
    for (Value& value : values) {
      if (auto* load = absl::get_if<LoadValue>(&value.node)) move(load->access.fill);
      if (auto* apply = absl::get_if<ApplyValue>(&value.node))
        std::for_each(apply->args.begin(), apply->args.end(), move);
      program.values.push_back(value);
    }
    const auto move_all = [&](Statement& statement) {
      move(statement.value);
      move(statement.position);
    };
    VisitStatements(program.body, move_all);
    program.AddConstant(Scalar::Float(DType::kF32, 8));
    DropUnusedValues(program);
    EXPECT_EQ(program.values.size(), used) << items;
    EXPECT_EQ(ToText(program), text);
  }
}

TEST(Rewrite, VisitsStatementsInOrder) {
  Program program = Of(
      "y[0] = 1.0  for i in [0, N) { y[1] = 2.0  for j in [0, N) { y[2] = 3.0 }  y[3] = 4.0 }  temp t: f32  t = 5.0");
  std::string places;
  VisitStatements(program.body, [&](Statement& statement) {
    absl::StrAppend(&places, ToText(program, statement.target), "=",
                    ToText(program, statement.value), " ");
  });
  EXPECT_TRUE(absl::StartsWith(places, "y[0]=1.0 y[1]=2.0 y[2]=3.0 y[3]=4.0 t=5.0 ")) << places;
}

}  // namespace
}  // namespace nestor::loop
