// The image of a definition's value at the place of a reader, in tables: as a value, as an index,
// and where there is no such expression.
#include "fusion/composition.h"

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "loop_ir/text.h"
#include "loop_ir/text_testing.h"

namespace nestor::loop {
namespace {

// `item` defines t; `read`, a value of the loop over j, reads it.
Program Of(absl::string_view type, absl::string_view item, absl::string_view read) {
  return Parsed(absl::StrCat(
      "program p(x: f32[N], x2: f32[N, M], s: f32, ids: i64[N]; $f: f32 = 1.0, $k: i64 = 1) -> (y: f32[N], z: ",
      absl::StrContains(type, "i64") ? "i64" : "f32", "[N]) {\n  temp t: ", type, "\n  ", item,
      "\n  for j in [0, N) { z[j] = ", read, " }\n  drop y[0] = 0.0\n}\n"));
}

absl::optional<Definition> DefinitionIn(const Program& program) {
  return DefinitionOf(program, NestAt(program, 0), DeclaredIn(program.body)[0]);
}

// "i k: exp(x[i]), cost 8, alone"; "-" where there is no definition.
std::string TextOf(const Program& program, const absl::optional<Definition>& definition) {
  if (!definition) return "-";
  std::string text;
  for (int32_t var : definition->vars) absl::StrAppend(&text, program.vars[var], " ");
  absl::StrAppend(&text, ": ", ToText(program, definition->value), ", cost ", definition->cost);
  return absl::StrCat(text, definition->is_alone ? ", alone" : "");
}

TEST(Composition, Definitions) {
  const struct {
    const char* type;
    const char* item;
    const char* want;
  } kCases[] = {
      {"f32", "t = 1.0", ": 1.0, cost 0, alone"},
      {"f32[N]", "for i in [0, N) { t[i] = x[i] }", "i : x[i], cost 0, alone"},
      {"f32[M, N]", "for i in [0, N) { for k in [0, M) { t[k, i] = x2[i, k] } }",
       "k i : x2[i, k], cost 0, alone"},
      {"f32[N]", "for i in [0, N) { y[i] = 1.0  t[i] = x[i] }", "i : x[i], cost 0"},
      // The cost: one for an op, more for a slow one, none for an index.
      {"f32[N]", "for i in [0, N) { t[i] = x[i] * $f + 1.0 }",
       "i : x[i] * $f + 1.0, cost 2, alone"},
      {"f32[N]", "for i in [0, N) { t[i] = exp(x[i]) }", "i : exp(x[i]), cost 8, alone"},
      {"f32[N]", "for i in [0, N) { t[i] = f32(index(i)) }", "i : f32(index(i)), cost 0, alone"},
      {"f32[N]", "for i in [0, N) { t[i] = f32(ids[i]) }", "i : f32(ids[i]), cost 1, alone"},
      // Not every element, or not once.
      {"f32[N]", "for i in [1, N) { t[i] = x[i] }", "-"},
      {"f32[N]", "for i in [0, M) { t[i] = x[i] }", "-"},
      {"f32[N]", "for i in [0, N) step 2 { t[i] = x[i] }", "-"},
      {"f32[N, N]", "for i in [0, N) { t[i, i] = x[i] }", "-"},
      {"f32[N, N]", "for i in [0, N) { for k in [0, i) { t[i, k] = x[k] } }", "-"},
      {"f32[N]", "for i in [0, N) { for k in [0, M) { t[i] = x2[i, k] } }", "-"},
      {"f32", "for i in [0, N) { t = x[i] }", "-"},
      {"f32[N]", "for i in [0, N) { t[N - 1 - i] = x[i] }", "-"},
      {"f32[N]", "for i in [0, N) { drop t[i] = x[i] }", "-"},
      {"f32[N]", "for i in [0, N) { t[i] += x[i] }", "-"},
      {"f32[N]", "for i in [0, N) { t[i] = x[i]  t[i] = 1.0 }", "-"},
      {"f32[N]", "for i in [0, N) { y[i] = x[i] }", "-"},
      // Reads of tensors that the item changes or declares, also by an index.
      {"f32[N]", "for i in [0, N) { t[i] = y[i]  y[i] = 1.0 }", "-"},
      {"f32[N]", "for i in [0, N) { temp v: f32  v = x[i]  t[i] = v }", "-"},
      {"f32[N]", "for i in [0, N) { temp v: i64  v = 1  t[i] = x[v[]] }", "-"},
      {"f32[N]", "for i in [0, N) { t[i] = t[i - 1 | 0.0] }", "-"},
  };
  for (const auto& c : kCases) {
    const Program program = Of(c.type, c.item, absl::StrContains(c.type, "[") ? "1.0" : "t");
    EXPECT_EQ(TextOf(program, DefinitionIn(program)), c.want) << c.item;
  }
}

TEST(Composition, Values) {
  const struct {
    const char* value;  // of t[i]
    const char* read;   // of t
    const char* want;   // "-": no expression
  } kCases[] = {
      {"x[i]", "t[N - 1 - j]", "x[-j + N - 1]"},
      {"x[ids[i]]", "t[ids[j]]", "x[ids[ids[j]]]"},
      {"f32(index(2*i))", "t[j + 1]", "f32(index(2*j + 2))"},
      {"x[i] * x[N - 1 - i | 0.5 if i < 3]", "t[j + 1]",
       "x[j + 1] * x[-j + N - 2 | 0.5 if j + 1 < 3]"},
      {"x[i]", "t[j | 0.5 if j < 2]", "x[j | 0.5 if j < 2]"},
      {"x[i + 1 | 0.5]", "t[j | 0.5]", "x[j + 1 | 0.5 if 0 <= j, j < N]"},
      {"x[i + 1 | 0.5]", "t[j | 1.5]",
       "where(index(0) <= index(j) && index(j) < index(N), x[j + 1 | 0.5 if 0 <= j, j < N], 1.5)"},
      {"x2[i, 0]", "t[j - 1 | 0.5]", "x2[j - 1, 0 | 0.5]"},
      {"x2[0, i]", "t[j - 1 | 0.5]", "x2[0, j - 1 | 0.5 if 0 <= j - 1, j - 1 < N]"},
      {"exp(x[i])", "t[j | 0.5 if j < 1 || !(j < 4)]",
       "where((index(j) < index(1) || !(index(j) < index(4))) && index(0) <= index(j) && index(j) < index(N), "
       "exp(x[j | 0.0 if j < 1 || !(j < 4), 0 <= j, j < N]), 0.5)"},
      // A condition that may have no value cannot be the condition of a `where`.
      {"exp(x[i])", "t[ids[j] | 0.5]", "-"},
      {"exp(x[i])", "t[j | 0.5 if ids[j] < 3]", "-"},
      {"exp(x[i])", "t[j | 0.5 if 7/$k < 3]", "-"},
      {"exp(x[i])", "t[j/2 | 0.5]",
       "where(index(0) <= index(j/2) && index(j/2) < index(N), exp(x[j/2 | 0.0 if 0 <= j/2, j/2 < N]), 0.5)"},
  };
  for (const auto& c : kCases) {
    Program program =
        Of("f32[N]", absl::StrCat("for i in [0, N) { t[i] = ", c.value, " }"), c.read);
    const auto definition = DefinitionIn(program);
    ASSERT_TRUE(definition.has_value()) << c.value;
    const Statement& reader = *NestAt(program, 1).As<Loop>()->body[0].As<Statement>();
    const Access access = absl::get<LoadValue>(program[reader.value].node).access;
    const auto composed = Compose(program, *definition, access);
    EXPECT_EQ(composed ? ToText(program, *composed) : "-", c.want) << c.value << "  " << c.read;
  }
}

TEST(Composition, Indices) {
  const struct {
    const char* type;
    const char* item;
    const char* read;  // index(a read of t)
    const char* want;  // "-": no expression
  } kCases[] = {
      {"i64[N]", "for i in [0, N) { t[i] = ids[i] }", "index(t[j + 1])", "ids[j + 1]"},
      {"i64", "t = index(N + 1)", "index(t[])", "N + 1"},
      {"i64[N]", "for i in [0, N) { t[i] = index(i) }", "index(t[j])", "-"},
      {"i64[N]", "for i in [0, N) { t[i] = 3 }", "index(t[j])", "-"},
      {"i64[N]", "for i in [0, N) { t[i] = ids[i | 0] }", "index(t[j])", "-"},
      {"i64[N]", "for i in [0, N) { t[i] = ids[i - 1] }", "index(t[j])", "-"},
      {"i64[M]", "for i in [0, M) { t[i] = ids[i] }", "index(t[j])", "-"},
      {"i64[N]", "for i in [0, N) { t[i] = ids[i] + 1 }", "index(t[j])", "-"},
  };
  for (const auto& c : kCases) {
    Program program = Of(c.type, c.item, c.read);
    const auto definition = DefinitionIn(program);
    ASSERT_TRUE(definition.has_value()) << c.item;
    const Statement& reader = *NestAt(program, 1).As<Loop>()->body[0].As<Statement>();
    const IndexNode load = program.pool[absl::get<IndexValue>(program[reader.value].node).index];
    ASSERT_EQ(load.kind, IndexKind::kLoad);
    const auto composed = ComposeIndex(program, *definition, load.args);
    EXPECT_EQ(composed ? ToText(program, *composed) : "-", c.want) << c.item;
  }
}

}  // namespace
}  // namespace nestor::loop
