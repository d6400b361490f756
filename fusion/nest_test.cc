// The facts about nests as text, and that those of joined nests are what a new look would find.
#include "fusion/nest.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"
#include "loop_ir/perfect_nest.h"
#include "loop_ir/rewrite.h"
#include "loop_ir/text.h"
#include "loop_ir/text_testing.h"

namespace nestor::loop {
namespace {

Program Around(absl::string_view items) {
  return Parsed(absl::StrCat(
      "program p(x: f32[N, M], w: f32[M, K], v: f32[M], ids: i64[N]) -> (y: f32[N, K], z: f32[N], r: f32) {\n",
      items, "\n  drop y[0, 0] = 0.0  drop z[0] = 0.0  r = 0.0\n}\n"));
}

// "i j | x: r[i, j]  y: w[i] a[i]", each tensor with its accesses; a contraction begins with "*".
std::string TextOf(const Program& program, const Nest& nest) {
  std::string text = nest.contraction ? "*" : "";
  for (const LoopHead& head : nest.band) absl::StrAppend(&text, program.vars[head.var], " ");
  absl::StrAppend(&text, "|");
  for (const Touch& touch : nest.touches) {
    absl::StrAppend(&text, " ", program[touch.tensor].name, ":", touch.reads ? "r" : "",
                    touch.changes ? "c" : "");
    EXPECT_EQ(nest.Find(touch.tensor), &touch);
    for (const NestAccess& access : nest.AccessesOf(touch.tensor)) {
      const auto index = [&](std::string* out, IndexId e) { out->append(ToText(program, e)); };
      const char* const kind = access.kind == AccessKind::kRead    ? "r"
                               : access.kind == AccessKind::kWrite ? "w"
                                                                   : "a";
      absl::StrAppend(&text, " ", kind, "[", absl::StrJoin(access.place, ",", index), "]");
    }
  }
  return text;
}

TEST(Nest, Facts) {
  const struct {
    const char* item;
    const char* want;
  } kCases[] = {
      {"r = 1.0", "| r:c w[]"},
      {"r = r + v[0]", "| v:r r[0] r:rc r[] w[]"},
      {"for i in [0, N) { for j in [0, M) { drop y[i, j] += x[i, j] } }",
       "i j | x:r r[i,j] y:c a[i,j]"},
      // The band ends where a body holds something else than one loop.
      {"for i in [0, N) { for j in [0, M) { for k in [0, K) { y[i, k] = 1.0 }  z[i] = 2.0 } }",
       "i j | y:c w[i,k] z:c w[i]"},
      {"for i in [0, N) { temp t: f32  for j in [0, M) { t = x[i, j] } }", "i | x:r r[i,j]"},
      // Tensors that it declares itself are left out; gathers, conditions and fills are not.
      {"for i in [0, N) { acc s: f32 = sum  for j in [0, M) { s += x[i, j] }  z[i] = s }",
       "i | x:r r[i,j] z:c w[i]"},
      {"for i in [0, N) { drop z[ids[i]] if ids[i + 1] < 3 = x[i, 0 | 0.0 if ids[0] < 2] }",
       "i | x:r r[i,0] ids:r r[i] r[i + 1] r[0] z:c w[ids[i]]"},
      // A contraction: operands of two dimensions, read again along loops that they do
      // not depend on.
      {"for i in [0, N) { for k in [0, K) { acc s: f32 = sum  for j in [0, M) { s += x[i, j] * w[j, k] }  y[i, k] = s } }",
       "*i k | x:r r[i,j] w:r r[j,k] y:c w[i,k]"},
      {"for i in [0, N) { for k in [0, K) { for j in [0, M) { y[i, k] += x[i, j] } } }",
       "*i k j | x:r r[i,j] y:c a[i,k]"},
      // Not a sum over a row, nor a product with a vector alone, nor one where all loops are kept.
      {"for i in [0, N) { acc s: f32 = sum  for j in [0, M) { s += x[i, j] * v[j] }  z[i] = s }",
       "i | x:r r[i,j] v:r r[j] z:c w[i]"},
      {"for i in [0, N) { for j in [0, M) { drop y[i, j] += x[i, j] } }",
       "i j | x:r r[i,j] y:c a[i,j]"},
      {"for i in [0, N) { acc s: f32 = sum  for j in [0, M) { s += v[j] }  z[i] = s }",
       "i | v:r r[j] z:c w[i]"},
  };
  for (const auto& c : kCases) {
    const Program program = Around(c.item);
    EXPECT_EQ(TextOf(program, NestOf(program, NestAt(program, 0))), c.want) << c.item;
  }
}

// A product that is summed at a step of a recurrence in loops of its own.
TEST(Nest, ContractionThroughTemporaries) {
  const auto is_contraction = [](absl::string_view wide, absl::string_view product) {
    const Program program = Around(absl::StrCat(
        "temp wide: f32[N, N, K, M] temp product: f32[N, N, K, M] for t in [0, N) { for i in [0, N) { for k in [0, K) {"
        " for j in [0, M) { wide[t, i, k, j] = ",
        wide, " } for j in [0, M) { product[t, i, k, j] = ", product,
        " }"
        " acc s: f32 = sum  for j in [0, M) { s += product[t, i, k, j] } y[i, k] = s } } }"));
    return NestOf(program, NestAt(program, 0)).contraction;
  };
  EXPECT_TRUE(is_contraction("x[i, j]", "wide[t, i, k, j] * w[j, k]"));
  EXPECT_TRUE(is_contraction("w[j, k]", "wide[t, i, k, j]"));
  // Operands that move alike count as one.
  EXPECT_TRUE(is_contraction("x[i, j] + exp(x[i, j]) + log(x[i, j]) + sin(x[i, j])",
                             "wide[t, i, k, j] * w[j, k]"));
  EXPECT_FALSE(is_contraction("v[j]", "wide[t, i, k, j] * v[j]"));
  EXPECT_FALSE(is_contraction("1.0", "wide[t, i, k, j]"));
}

// The facts about two nests, put together, are those about the loop that holds both.
TEST(Nest, Joined) {
  const struct {
    const char* earlier;
    const char* later;  // its outermost loop is shared
  } kCases[] = {
      {"for i in [0, N) { z[i] = 1.0 }", "for h in [0, N) { z[h] = z[h] + v[0] }"},
      // The later nest's tensors come before, among and after those of the earlier one; each
      // access once.
      {"for i in [0, N) { z[i] = v[0] + v[1] }",
       "for h in [0, N) { r = x[h, 0] + v[1] + v[2] + f32(ids[h]) }"},
      {"for i in [0, N) { r = x[i, 0] + x[i, 1] }",
       "for h in [0, N) { r = x[h, 1] + x[h + 1, 2] + x[h, 0] }"},
      // Loops that are not shared, and declarations inside.
      {"for i in [0, N) { for j in [0, M) { drop y[i, j] += x[i, j] } }",
       "for h in [0, N) { acc s: f32 = sum  for k in [0, M) { s += x[h, k] }  z[h] = s }"},
      // A contraction in either.
      {"for i in [0, N) { for k in [0, K) { acc s: f32 = sum  for j in [0, M) { s += x[i, j] * w[j, k] }  y[i, k] = s } }",
       "for h in [0, N) { z[h] = 1.0 }"},
      {"for i in [0, N) { z[i] = 1.0 }",
       "for h in [0, N) { for k in [0, K) { for j in [0, M) { y[h, k] += x[h, j] } } }"},
  };
  for (const auto& c : kCases) {
    Program program = Around(absl::StrCat(c.earlier, c.later));
    const Nest earlier = NestOf(program, NestAt(program, 0)),
               later = NestOf(program, NestAt(program, 1));
    VarReplacement rename(program);
    rename.Set(later.band[0].var, program.pool.Var(earlier.band[0].var));
    Loop joined = *NestAt(program, 0).As<Loop>();
    Scope other = NestAt(program, 1).As<Loop>()->body;
    RewriteIndices(program, other, [&](IndexId e) { return rename(e); });
    joined.body.insert(joined.body.end(), other.begin(), other.end());
    const Nest got = JoinedNest(joined, earlier, later, [&](IndexId e) { return rename(e); });
    const Nest want = NestOf(program, {joined});
    EXPECT_EQ(TextOf(program, got), TextOf(program, want)) << c.later;
    EXPECT_EQ(got.vars, want.vars) << c.later;
  }
}

// The first and the last item of each row are to meet.
TEST(Nest, MovedBehind) {
  const struct {
    std::vector<const char*> statements;
    const char* want;  // for each item between: 1 if it moves after; "-": they cannot meet
  } kCases[] = {
      {{"z[0] = 1.0", "r = z[0]"}, ""},
      {{"z[0] = 1.0", "r = 2.0", "y[0, 0] = z[0]"}, "0"},
      {{"z[0] = 1.0", "r = z[0]", "y[0, 0] = z[0]"}, "1"},
      {{"z[0] = 1.0", "r = z[0]", "y[0, 0] = r"}, "-"},
      {{"z[0] = r", "r = 2.0", "y[0, 0] = z[0]"}, "1"},
      {{"z[0] = r", "r = 2.0", "y[0, 0] = r"}, "-"},
      {{"z[0] = 1.0", "z[0] = 2.0", "z[0] = 3.0"}, "-"},
      {{"z[0] = v[0]", "y[0, 0] = v[0]", "r = v[0]"}, "0"},
      // An item that depends on one that moves, moves as well; chains are followed.
      {{"z[0] = 1.0", "r = z[0]", "y[0, 0] = r", "z[1] = v[0]"}, "-"},
      {{"z[0] = 1.0", "r = z[0]", "y[0, 0] = r", "y[0, 1] = z[0]"}, "-"},
      {{"y[0, 0] = 1.0", "r = y[0, 0]", "z[0] = r", "y[0, 1] = v[0]"}, "-"},
      {{"z[0] = 1.0", "r = v[0]", "y[0, 0] = r", "r = r + z[0]"}, "00"},
  };
  TouchSet scratch;
  for (const auto& c : kCases) {
    std::string items;
    for (const char* statement : c.statements) absl::StrAppend(&items, "", statement, "  ");
    const Program program = Around(items);
    std::vector<Nest> nests;
    for (size_t i = 0; i < c.statements.size(); ++i)
      nests.push_back(NestOf(program, NestAt(program, i)));
    std::vector<const Nest*> in_order;
    for (const Nest& nest : nests) in_order.push_back(&nest);
    const auto behind = MovedBehind(in_order, scratch);
    std::string got = behind ? "" : "-";
    if (behind) {
      for (bool moves : *behind) got.push_back(moves ? '1' : '0');
    }
    EXPECT_EQ(got, c.want) << items;
  }
}

TEST(Nest, TakesApartAndPutsTogether) {
  const Program program =
      Around("for i in [0, N) { for j in [i, M) step 2 { r = x[i, j]  r = 2.0 } }");
  const Loop& loop = *NestAt(program, 0).As<Loop>();
  EXPECT_EQ(CoreOf(loop).size(), 2u);
  Program again = program;
  again.body[0] = Around(HeadsOf(loop), CoreOf(loop))[0];
  EXPECT_EQ(ToText(again), ToText(program));
}

}  // namespace
}  // namespace nestor::loop
