// Which loops of a contraction are its rows and columns.
#include "jit/schedule/contraction.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "fusion/pass_testing.h"
#include "gtest/gtest.h"

namespace nestor::loop {
namespace {

// "ROW COLUMN" of y[o, c, s] = sum[h](g[o, h] * x[c, h + s]), given the length of each loop.
std::string TileOf(const char* o, const char* c, const char* s,
                   const char* value = "g[o, h] * x[c, h + s]") {
  const std::string text = absl::StrCat(
      "program p(g: f32[O, H], x: f32[C, X], v: f32[H, O], u: f32[X, C], shape_o: shape f32[O], z: shape f32[S]) -> "
      "(y: f32[",
      o, ", ", c, ", ", s, "]) { for o in [0, ", o, ") { for c in [0, ", c, ") { for s in [0, ", s,
      ") { acc a: f32 = sum for h in [0, H) { a += ", value, " } y[o, c, s] = a } } } }");
  Program program = ParseVerified(text);
  const absl::optional<Contraction> found = ContractionOf(program, *program.body[0].As<Loop>());
  if (!found) return "none";
  return absl::StrCat(program.vars[found->row->var], " ", program.vars[found->column->var]);
}

TEST(ContractionOf, TakesColumnsThatFillVectors) {
  // Results lie side by side along s.
  EXPECT_EQ(TileOf("O", "C", "S"), "o s");
  EXPECT_EQ(TileOf("O", "C", "8"), "o s");
  // A few columns of known number would leave lanes empty. Columns that are the same for all places
  // of a window are packed once.
  EXPECT_EQ(TileOf("O", "C", "7"), "c o");
  EXPECT_EQ(TileOf("O", "C", "3"), "c o");
  EXPECT_EQ(TileOf("O", "100", "3"), "c o");
  // Packed operands fill the lanes if there are enough rows for them.
  EXPECT_EQ(TileOf("O", "4", "3"), "c o");
  // Columns across memory are packed, which does not pay for few rows.
  EXPECT_EQ(TileOf("3", "C", "7"), "o s");
  EXPECT_EQ(TileOf("8", "C", "7"), "c o");
  EXPECT_EQ(TileOf("O", "2", "3", "g[o, h] * x[c, s]"), "o s");
}

// Windows over columns that lie side by side: a tile with these columns has the results of all
// places of the window, which are stored line by line.
TEST(ContractionOf, TakesColumnsWhoseResultsLieTogether) {
  EXPECT_EQ(TileOf("O", "C", "3", "v[h, o] * u[h + s, c]"), "o c");
  EXPECT_EQ(TileOf("O", "C", "3", "v[h, o] * x[c, h + s]"), "c o") << "not side by side";
}

// Windows of an image, whose results lie one after the other: both its rows and columns are short,
// and tiles take the loop along which elements lie.
TEST(ContractionOf, TakesRowsAlongWhichWindowsSlideInPlace) {
  Program program = ParseVerified(
      "program p(w: f32[O, C, 3, 3], x: f32[C, 15, 15]) -> (y: f32[O, 49]) { "
      "for o in [0, O) { for i in [0, 7) { for j in [0, 7) { acc a: f32 = sum "
      "for c in [0, C) { for r in [0, 3) { for s in [0, 3) { a += w[o, c, r, s] * x[c, 2*i + r, 2*j + s] } } } "
      "y[o, 7*i + j] = a } } } }");
  const absl::optional<Contraction> found = ContractionOf(program, *program.body[0].As<Loop>());
  ASSERT_TRUE(found);
  EXPECT_EQ(program.vars[found->row->var], "j");
  EXPECT_EQ(program.vars[found->column->var], "o");
}

}  // namespace
}  // namespace nestor::loop
