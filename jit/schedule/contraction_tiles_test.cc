// Which nests are contractions, and what one becomes. Results of tiles are compared with the
// interpreter's in tests/jit_contractions_test.
#include "jit/schedule/contraction_tiles.h"

#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/strings/substitute.h"
#include "absl/types/optional.h"
#include "absl/types/variant.h"
#include "fusion/pass_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "jit/target/isa.h"
#include "loop_ir/dependence.h"
#include "loop_ir/program.h"
#include "loop_ir/proofs.h"
#include "loop_ir/text.h"
#include "loop_ir/verify.h"

namespace nestor::loop {
namespace {

constexpr Frame kFrame = {
    "program p(a: f32[M, K], b: f32[K, N], d: f32[N, K], g: f32[3, K], ids: i64[K], x: f32[M, N, K], z: f32[]) -> (c: f32[M, N], one: f32[1]) {\n",
    "\n  drop one[0] = 0.0\n}\n"};

constexpr char kEnd[] = " for o in [0, M) { for q in [0, N) { c[o, q] = 0.0 } }";
std::string Product(absl::string_view value) {
  return absl::StrCat(
      "for i in [0, M) { for j in [0, N) { acc s: f32 = sum for k in [0, K) { s += ", value,
      " } c[i, j] = s } }");
}

// One row and one vector in a tile, and whole sums.
ContractionTileOptions SmallestTile() {
  ContractionTileOptions options;
  options.isa = jit::Isa::kAvx2;
  options.rows = 1;
  options.vectors = 1;
  options.row_block = 1;
  options.column_block = 1;
  return options;
}

// A tile large enough to prefetch.
ContractionTileOptions FetchingTile() {
  ContractionTileOptions options = SmallestTile();
  options.isa = jit::Isa::kAvx512;
  options.rows = 8;
  options.vectors = 2;
  return options;
}

constexpr char kSmallProduct[] =
    "program p(a: f32[16, 8], b: f32[8, 16]) -> (c: f32[16, 16]) { for i in [0, 16) { for j in [0, 16) { "
    "acc e: f32 = sum for k in [0, 8) { e += a[i, k] * b[k, j] } c[i, j] = e } } }";

// Columns of a bound input are copied by themselves, once for all calls.
TEST(ContractionTiles, TextInTextOut) {
  Program program = ParseVerified(kSmallProduct);
  ContractionTileOptions options = SmallestTile();
  options.bound = {false, true};
  ASSERT_EQ(TileContractions(program, options).value(), true);
  EXPECT_EQ(ToText(program), ToText(ParseVerified(R"(
program p(a: f32[16, 8], b: f32[8, 16]) -> (c: f32[16, 16]) {
  temp columns: f32[2, 8, 8]
  for v in [0, 2) { for k_2 in [0, 8) { for l in [0, 8) vector { columns[v, k_2, l] = b[k_2, 8*v + l] } } }
  for p in [0, 16) {
    for q in [0, 2) {
      for s in [0, 1) {
        for p_2 in [0, min(-p + 16, 1)) {
          for q_2 in [0, min(-q + 2, 1)) {
            temp tile: f32[1, 1, 8] register
            for r in [0, 1) unroll { for v_2 in [0, 1) unroll { for l_2 in [0, 8) vector { tile[r, v_2, l_2] = 0.0 } } }
            for k_3 in [0, 8) unroll {
              for r_2 in [0, 1) unroll { for v_3 in [0, 1) unroll { for l_3 in [0, 8) vector {
                tile[r_2, v_3, l_3] = tile[r_2, v_3, l_3] + a[p + p_2 + r_2, k_3] * columns[q + q_2 + v_3, k_3, l_3]
              } } }
            }
            for r_3 in [0, 1) unroll { for v_4 in [0, 1) unroll { for l_4 in [0, 8) vector {
              c[p + p_2 + r_3, 8*q + 8*q_2 + 8*v_4 + l_4] = tile[r_3, v_4, l_4]
            } } }
          }
        }
      }
    }
  }
})")));
}

// The topmost tile of each block copies columns as it sums.
TEST(ContractionTiles, PanelsInTextOut) {
  Program program = ParseVerified(kSmallProduct);
  ASSERT_EQ(TileContractions(program, SmallestTile()).value(), true);
  EXPECT_EQ(ToText(program), ToText(ParseVerified(R"(
program p(a: f32[16, 8], b: f32[8, 16]) -> (c: f32[16, 16]) {
  for p in [0, 16) {
    for q in [0, 2) {
      temp panel: f32[1, 8, 8]
      for p_2 in [0, min(-p + 16, 1)) {
        for s in [0, 1) {
          for p_3 in [0, min(-p - p_2 + 16, 1)) {
            for q_2 in [0, min(-q + 2, 1)) {
              temp tile: f32[1, 1, 8] register
              for r in [0, 1) unroll { for v in [0, 1) unroll { for l in [0, 8) vector { tile[r, v, l] = 0.0 } } }
              for z in [0, min(-min(p_2 + p_3, 1) + 1, 1)) {
                for k_2 in [0, 8) unroll {
                  for r_2 in [0, 1) unroll { for v_2 in [0, 1) unroll { for l_2 in [0, 8) vector {
                    tile[r_2, v_2, l_2] = tile[r_2, v_2, l_2] + a[p + p_2 + p_3 + r_2, k_2] * b[k_2, 8*q + 8*q_2 + 8*v_2 + l_2]
                  } } }
                  for v_3 in [0, 1) unroll { for l_3 in [0, 8) vector {
                    panel[q_2 + v_3, k_2, l_3] = b[k_2, 8*q + 8*q_2 + 8*v_3 + l_3]
                  } }
                }
              }
              for z_2 in [0, min(p_2 + p_3, 1)) {
                for k_3 in [0, 8) unroll {
                  for r_3 in [0, 1) unroll { for v_4 in [0, 1) unroll { for l_4 in [0, 8) vector {
                    tile[r_3, v_4, l_4] = tile[r_3, v_4, l_4] + a[p + p_2 + p_3 + r_3, k_3] * panel[q_2 + v_4, k_3, l_4]
                  } } }
                }
              }
              for r_4 in [0, 1) unroll { for v_5 in [0, 1) unroll { for l_5 in [0, 8) vector {
                c[p + p_2 + p_3 + r_4, 8*q + 8*q_2 + 8*v_5 + l_5] = tile[r_4, v_5, l_5]
              } } }
            }
          }
        }
      }
    }
  }
})")));
}

// The accesses that loops prefetch, each after the loop's index.
std::vector<std::string> PrefetchesOf(const Program& program) {
  std::vector<std::string> prefetches;
  VisitItems(program, [&](const Item& item) {
    const auto* loop = item.As<Loop>();
    if (loop == nullptr) return;
    for (const Prefetch& prefetch : loop->prefetches) {
      const bool second = prefetch.cache == Prefetch::Cache::kSecond;
      const std::string element = ToText(program, prefetch.access);
      prefetches.push_back(
          absl::StrCat(program.vars[loop->var], second ? ": (2) " : ": ", element));
    }
  });
  return prefetches;
}

// While tiles read a panel, they fetch columns of the next block of the sum, or, at its last block,
// of the next block of columns.
TEST(ContractionTiles, PanelsAreFetchedAhead) {
  Program program = ParseVerified(
      "program p(a: f32[64, 64], b: f32[64, 64]) -> (c: f32[64, 64]) { for i in [0, 64) { for j in [0, 64) { "
      "acc e: f32 = sum for k in [0, 64) { e += a[i, k] * b[k, j] } c[i, j] = e } } }");
  ContractionTileOptions options = FetchingTile();
  options.row_block = 4;
  options.sum_block = 32;
  ASSERT_EQ(TileContractions(program, options).value(), true);
  EXPECT_TRUE(Verify(program).ok()) << Verify(program);
  EXPECT_THAT(PrefetchesOf(program),
              ::testing::ElementsAre(
                  "k_2: (2) a[32*p + 32*p_2 + 8*p_3 + r_4 + 8, -224*s - 128*r_4 + 8*k_2]",
                  "k_3: (2) b[k_3 + 64*min(-s + 1, 1) - 32, 32*q + 32*q_2 + "
                  "16*((p_3 + 1)%2) - 32*min(-s + 1, 1) + 32]",
                  "k_3: (2) a[32*p + 32*p_2 + 8*p_3 + r_6 + 8, -224*s - 128*r_6 + 8*k_3]",
                  "k_4: (2) a[32*p + 32*p_2 + 8*p_3 + r_8 + 8, -224*s - 128*r_8 + 8*k_4]"));
  // The two tiles below the topmost one of a block of rows do so; in the second block of rows,
  // which shares the panel, only at the last block of the sum.
  EXPECT_THAT(
      ToText(program),
      ::testing::HasSubstr(
          "for z_4 in [0, min(min(-min(min(-s + 1, 1), min(4*p_2, 1)) + 1, min(p_3, 1) - min(p_3/3, 1)), 1)) "
          "{\n                for r_6 in [0, 8) {\n                  "
          "for k_3 in [32*s + 16*r_6, min(32*s + 16*r_6 + 16, min(32*s + 32, 64))) prefetch"));
}

// Tiles fetch the rows of the tile below, each in one of as many pieces of the sum; by then
// every eighth element of the row is fetched. Copies of columns are fetched for the next block
// of the sum.
TEST(ContractionTiles, RowsAndCopiesAreFetchedAhead) {
  Program program = ParseVerified(
      "program p(a: f32[64, 512], b: f32[64, 512]) -> (c: f32[64, 64]) { for i in [0, 64) { for j in [0, 64) { "
      "acc e: f32 = sum for k in [0, 512) { e += a[i, k] * b[j, k] } c[i, j] = e } } }");
  ContractionTileOptions options = FetchingTile();
  options.sum_block = 256;
  ASSERT_EQ(TileContractions(program, options).value(), true);
  EXPECT_TRUE(Verify(program).ok()) << Verify(program);
  EXPECT_THAT(
      PrefetchesOf(program),
      ::testing::ElementsAre("k_3: (2) columns[2*q + 2*q_2 + p_2%2, k_3 + 256, 0]",
                             "k_3: (2) a[8*p + 8*p_2 + r_4 + 8, -1792*s - 256*r_4 + 8*k_3]"));
  EXPECT_THAT(ToText(program), ::testing::HasSubstr("for r_4 in [0, 8) {\n              "
                                                    "for k_3 in [256*s + 32*r_4, "));
}

// Several blocks of columns are enough to share out: each reads its copy once.
TEST(ContractionTiles, BlocksOfColumnsAreSharedOut) {
  const auto blocks_of_rows = [](absl::string_view columns) {
    Program program = ParseVerified(absl::StrCat(
        "program p(a: f32[64, K], b: f32[", columns, ", K]) -> (c: f32[64, ", columns,
        "]) { for i in [0, 64) { for j in [0, ", columns,
        ") { acc e: f32 = sum for k in [0, K) { e += a[i, k] * b[j, k] } c[i, j] = e } } }"));
    ContractionTileOptions options = FetchingTile();
    options.row_block = 16;
    EXPECT_TRUE(TileContractions(program, options).value());
    return absl::StrContains(ToText(program), "for p in [0, 1)") ? 1 : 2;
  };
  EXPECT_EQ(blocks_of_rows("64"), 1);
  EXPECT_EQ(blocks_of_rows("32"), 2);
}

// If rows are points of an image, whose number is a product, some tiles have one row less, so that
// no tile keeps only part of its rows; and all are shared out in as many blocks of columns as there
// are tiles beside each other, up to 16.
TEST(ContractionTiles, PointsOfATemporaryAreSharedOut) {
  const auto text_of = [](absl::string_view points, absl::string_view read) {
    Program program = ParseVerified(
        absl::StrCat("program p(x: f32[", points, ", K], w: f32[K, 640]) -> (y: f32[", points,
                     ", 640]) { temp t: f32[", points, ", K] for a in [0, ", points,
                     ") { for d in [0, K) { t[a, d] = x[a, d] } } for i in [0, ", points,
                     ") { for j in [0, 640) { acc s: f32 = sum for k in [0, K) { s += ", read,
                     "[i, k] * w[k, j] } y[i, j] = s } } }"));
    ContractionTileOptions options = FetchingTile();
    options.panels = false;
    EXPECT_TRUE(TileContractions(program, options).value());
    EXPECT_TRUE(Verify(program).ok()) << Verify(program);
    return ToText(program);
  };
  using ::testing::HasSubstr;
  using ::testing::Not;
  const auto has_lower_tiles = HasSubstr("f32[7, 2, 16] register");
  EXPECT_THAT(text_of("H*W", "t"), has_lower_tiles);
  EXPECT_THAT(text_of("H*W", "x"), Not(has_lower_tiles));
  EXPECT_THAT(text_of("M", "t"), Not(has_lower_tiles));
  EXPECT_THAT(text_of("H*W", "t"), HasSubstr("16/max((H*W + 7)/8"));
}

// Columns that windows slide over are read in place; each step fetches a vector of those of the
// next block of the sum.
TEST(ContractionTiles, ColumnsInPlaceAreFetchedAhead) {
  Program program = ParseVerified(
      "program p(g: f32[64, 4, 32], x: f32[4, 66, 48]) -> (y: f32[3, 64, 32]) { for q in [0, 3) { for o in [0, 64) {"
      " for c in [0, 32) { acc s: f32 = sum for m in [0, 4) { for i in [0, 32) { s += g[o, m, i] * x[m, q + 2*i, c] } }"
      " y[q, o, c] = s } } } }");
  ContractionTileOptions options = FetchingTile();
  options.sum_block = 32;
  ASSERT_EQ(TileContractions(program, options).value(), true);
  EXPECT_TRUE(Verify(program).ok()) << Verify(program);
  EXPECT_THAT(PrefetchesOf(program),
              ::testing::ElementsAre("i_2: (2) x[m_2 + 1, q_4 + 2*i_2, 32*q_2 + 32*q_3 + "
                                     "16*((p_2 + q_4)%2)]"));
}

// A tile that has all rows reads columns in place, four steps at a time for all tiles of a block;
// partial sums are kept.
TEST(ContractionTiles, FewRowsInTextOut) {
  Program program = ParseVerified(
      "program p(a: f32[2, 8], b: f32[8, 16]) -> (c: f32[2, 16]) { for i in [0, 2) { for j in [0, 16) { "
      "acc e: f32 = sum for k in [0, 8) { e += a[i, k] * b[k, j] } c[i, j] = e } } }");
  ContractionTileOptions options = SmallestTile();
  options.rows = 2;
  options.sum_block = 4;
  ASSERT_EQ(TileContractions(program, options).value(), true);
  EXPECT_EQ(ToText(program), ToText(ParseVerified(R"(
program p(a: f32[2, 8], b: f32[8, 16]) -> (c: f32[2, 16]) {
  for q in [0, 2) {
    temp partial: f32[16, 7, 8]
    for s in [0, 2) {
      for p in [0, 1) {
        for q_2 in [0, min(-q + 2, 1)) {
          temp tile: f32[2, 1, 8] register
          for z in [0, min(-min(s, 1) + 1, 1)) {
            for r in [0, 2) unroll { for v in [0, 1) unroll { for l in [0, 8) vector { tile[r, v, l] = 0.0 } } }
          }
          for z_2 in [0, min(s, 1)) {
            for r_2 in [0, 2) unroll { for v_2 in [0, 1) unroll { for l_2 in [0, 8) vector {
              tile[r_2, v_2, l_2] = partial[2*p + r_2, q_2 + v_2, l_2]
            } } }
          }
          for k_2 in [4*s, min(4*s + 4, 8)) {
            for v_3 in [0, 1) unroll { for l_3 in [0, 8) vector {
              tile[0, v_3, l_3] = tile[0, v_3, l_3] + a[min(2*p, 1), k_2] * b[k_2, 8*q + 8*q_2 + 8*v_3 + l_3]
            } }
            for v_4 in [0, 1) unroll { for l_4 in [0, 8) vector {
              tile[1, v_4, l_4] = tile[1, v_4, l_4] + a[min(2*p + 1, 1), k_2] * b[k_2, 8*q + 8*q_2 + 8*v_4 + l_4]
            } }
          }
          for z_3 in [0, min(-s + 1, 1)) {
            for r_3 in [0, 2) unroll { for v_5 in [0, 1) unroll { for l_5 in [0, 8) vector {
              partial[2*p + r_3, q_2 + v_5, l_5] = tile[r_3, v_5, l_5]
            } } }
          }
          for z_4 in [0, min(-min(-s + 1, 1) + 1, 1)) {
            for r_4 in [0, 2) unroll {
              for z_5 in [0, min(max(-2*p - r_4 + 2, 0), 1)) {
                for v_6 in [0, 1) unroll { for l_6 in [0, 8) vector {
                  c[2*p + r_4, 8*q + 8*q_2 + 8*v_6 + l_6] = tile[r_4, v_6, l_6]
                } }
              }
            }
          }
        }
      }
    }
  }
})")));
}

// Whether the pass takes the program; if so, a second run must leave it alone.
bool IsTiled(absl::string_view items) {
  Program program = ParseVerified(kFrame, items);
  const auto changed = TileContractions(program, SmallestTile());
  EXPECT_TRUE(changed.ok()) << changed.status();
  EXPECT_TRUE(Verify(program).ok()) << Verify(program);
  const std::string text = ToText(program);
  EXPECT_EQ(absl::StrContains(text, "tile"), *changed);
  EXPECT_EQ(TileContractions(program, SmallestTile()).value(), false) << text;
  EXPECT_EQ(ToText(program), text);
  return *changed;
}

// A short batch loop for which nothing is packed moves around the tiles of a block, whatever was
// around it before; one that columns depend on, or a long one, stays.
TEST(ContractionTiles, PutsShortBatchesInsideOfBlocks) {
  const auto outermost = [](absl::string_view batches, absl::string_view columns) {
    Program program = ParseVerified(absl::StrCat(
        "program p(a: f32[", batches, ", 17, 800], b: f32[", batches, ", 800, 20]) -> (c: f32[",
        batches, ", 17, 20]) { ", "for g in [0, ", batches,
        ") { for i in [0, 17) { for j in [0, 20) { acc e: f32 = sum for k in [0, 800) { ",
        "e += a[g, i, k] * b[", columns, ", k, j] } c[g, i, j] = e } } } }"));
    EXPECT_EQ(TileContractions(program, SmallestTile()).value(), true);
    std::set<std::string> names;  // of outermost loops, without what makes them unique
    for (const Item& item : program.body) {
      if (const auto* loop = item.As<Loop>()) names.insert(program.vars[loop->var].substr(0, 1));
    }
    return absl::StrJoin(names, " ");
  };
  EXPECT_EQ(outermost("3", "0"), "p v");
  EXPECT_EQ(outermost("3", "g"), "g");
  EXPECT_EQ(outermost("9", "0"), "g v");
}

// Rows of the second product lie across the sum, and would be copied for each gate as well.
TEST(ContractionTiles, PacksColumnsOnceForBatchesThatShareThem) {
  const auto order = [](absl::string_view row) {
    Program program = ParseVerified(absl::Substitute(
        "program p(x: f32[T, 32, 32], w: f32[G, N, 32]) -> (y: f32[T, 32, G, N]) { "
        "for t in [0, T) { for g in [0, G) { for i in [0, 32) { for j in [0, N) { "
        "acc e: f32 = sum for k in [0, 32) { e += x[t, $0] * w[g, j, k] } y[t, i, g, j] = e } } } } }",
        row));
    EXPECT_TRUE(TileContractions(program, SmallestTile()).value());
    const std::string text = ToText(program);
    const size_t copies = text.find("temp columns");
    EXPECT_NE(copies, std::string::npos);
    return std::pair(text.find("for g") < copies, text.find("for t") < copies);
  };
  EXPECT_EQ(order("i, k"), std::pair(true, false));
  EXPECT_EQ(order("k, i"), std::pair(true, true));
}

// A gradient by windows of two: the sums of both places are kept, since their results lie together,
// and apart from those of the next column.
TEST(ContractionTiles, ResultsOfWindowsAreStoredTogether) {
  Program program = ParseVerified(
      "program p(g: f32[8, 64], x: f32[66, 32]) -> (y: f32[8, 32, 2]) { for r in [0, 2) { for o in [0, 8) {"
      " for c in [0, 32) { acc s: f32 = sum for h in [0, 64) { s += g[o, h] * x[h + r, c] } y[o, c, r] = s } } } }");
  ContractionTileOptions options = FetchingTile();
  options.vectors = 1;
  ASSERT_EQ(TileContractions(program, options).value(), true);
  EXPECT_TRUE(Verify(program).ok()) << Verify(program);
  EXPECT_THAT(ToText(program), ::testing::HasSubstr(R"(
            for r_6 in [0, 8) {
              for v_4 in [0, 1) {
                for l_4 in [0, 16) {
                  for r_7 in [0, 2) unroll {
                    y[)"));
}

TEST(ContractionTiles, TakesContractions) {
  for (const char* value : {
           "a[i, k] * b[k, j]",
           "a[i, k] * d[j, k]",
           "a[i, k] * b[k, j] * a[0, k]",
           "max(a[i, k], b[k, j])",
           "a[i, k | 0.0] * b[k - 1, j | 0.0]",
           // Loads that move with the row or the column only by a condition.
           "a[i, k] + z[ | 0.0 if j == 0]",
           "z[ | 0.0 if i == 0] + b[k, j]",
           "a[i, k] * d[0, k | 0.0 if j == 0]",
           "g[0, k | 0.0 if i == 0] * b[k, j]",
           "a[0, 0 | 0.0 if i == 0] + b[0, 0 | 0.0 if j == 0]",
       }) {
    EXPECT_TRUE(IsTiled(Product(value))) << value;
  }
}

// Two loops may be the rows: where the outer one is short, the inner one may not be.
TEST(ContractionTiles, TakesWhatIsLeftOfFewRows) {
  EXPECT_TRUE(IsTiled(
      "temp t: f32[N, M, N] for h in [0, N) { for i in [0, M) { for j in [0, N) { acc s: f32 = sum "
      "for k in [0, K) { s += d[h, k] * a[i, k] * b[k, j] } t[h, i, j] = s } } }" +
      std::string(kEnd) + ""));
}

// In the version for few rows, the nest is as it was, with rows that are known to be few.
TEST(ContractionTiles, FewRowsRunAsTheyWere) {
  const auto tiled = [](std::vector<bool> version) {
    Program program = ParseVerified("program p(a: f32[M, K], b: f32[K, N]) -> (c: f32[M, N]) { " +
                                    Product("a[i, k] * b[k, j]") + " }");
    ContractionTileOptions options = SmallestTile();
    options.version = std::move(version);
    EXPECT_TRUE(TileContractions(program, options).value());
    EXPECT_FALSE(TileContractions(program, options).value()) << "a second run";
    EXPECT_TRUE(Verify(program).ok()) << Verify(program);
    return ToText(program);
  };
  EXPECT_THAT(tiled({}), testing::HasSubstr("version min(max(-M + 4, 0), 1) == 0"));
  EXPECT_THAT(tiled({}), testing::HasSubstr("tile"));
  EXPECT_EQ(tiled({true}),
            ToText(ParseVerified(
                "program p(a: f32[M, K], b: f32[K, N]) -> (c: f32[M, N]) { version "
                "min(1, max(0, 4 - M)) == 1 for i in [0, min(M, 3)) { for j in [0, N) { "
                "acc s: f32 = sum for k in [0, K) { s += a[i, k] * b[k, j] } c[i, j] = s } } }")));
}

// There is no version for few rows where they are not known to be few: if their number may have no
// value (M may be 0), nothing is proven about it.
TEST(ContractionTiles, EndsWhereNothingIsKnownOfRows) {
  for (const char* rows :
       {"N / M", "max(N / M, 1)", "K % M", "N * (K / M)", "0 / 0", "max(0 / 0, 1)"}) {
    EXPECT_TRUE(IsTiled(
        absl::StrCat(kEnd, " for i in [0, ", rows, ") { for j in [0, N) { acc s: f32 = sum ",
                     "for k in [0, K) { s += a[i, k | 0.0] * b[k, j] } drop c[i, j] = s } }")))
        << rows;
  }
}

// Taken where packed operands are in range for all steps that the sum may have.
TEST(ContractionTiles, TakesSumsOfMovingBounds) {
  EXPECT_TRUE(IsTiled(
      "temp t: f32[K, M, N] for h in [0, K) { for i in [0, M) { for j in [0, N) { acc s: f32 = sum "
      "for k in [max(3 - h, 0), min(K, h + 7)) { s += a[i, k] * b[k, j] } t[h, i, j] = s } } }" +
      std::string(kEnd) + ""));
  EXPECT_FALSE(IsTiled(
      "temp t: f32[K, M, N] for h in [0, K) { for i in [0, M) { for j in [0, N) { acc s: f32 = sum "
      "for k in [h, h + 7) { s += a[i, k | 0.0] * b[k, j | 0.0] } t[h, i, j] = s } } }" +
      std::string(kEnd) + ""));
}

// Bounds that rise or fall with the row.
TEST(ContractionTiles, TakesTriangles) {
  for (const char* bounds : {"[0, min(K, i + 1))", "[i, K)", "[max(i - 3, 0), min(K, i + 7))",
                             "[0, K - i)", "[0, min(K, i / 2))"}) {
    EXPECT_TRUE(
        IsTiled(absl::StrCat("for i in [0, M) { for j in [0, N) { acc s: f32 = sum for k in ",
                             bounds, " { s += a[i, k | 0.0] * b[k, j | 0.0] } c[i, j] = s } }")))
        << bounds;
  }
  // Rows of a strip, whose number moves with the strip.
  EXPECT_TRUE(IsTiled(
      "for p in [0, (M + 23)/24) { for r in [0, min(M - 24*p, 24)) { for j in [0, N) { acc s: f32 = sum "
      "for k in [0, 24*p + r + 1) { s += a[24*p + r, k | 0.0] * b[k, j | 0.0] } c[24*p + r, j] = s } } }"));
}

// Whether columns of the nest are copied by tiles.
bool UsesPanels(absl::string_view items) {
  Program program = ParseVerified(kFrame, items);
  EXPECT_EQ(TileContractions(program, SmallestTile()).value(), true) << items;
  return absl::StrContains(ToText(program), "temp panel");
}

// Not columns that are read across, beside a mask, or in other iterations of a loop around as well.
TEST(ContractionTiles, CopiesColumnsInTilesWhereNobodyElseReadsThem) {
  const auto in_loop = [](absl::string_view column) {
    return absl::StrCat(
        "temp t: f32[3, M, N] temp u: f32[3, K, N] for h_2 in [0, 3) { for k_2 in [0, K) { for j_2 in [0, N) { "
        "u[h_2, k_2, j_2] = b[k_2, j_2] } } } for h in [0, 3) { for i in [0, M) { for j in [0, N) { "
        "acc s: f32 = sum for k in [0, K) { s += a[i, k] * ",
        column, " } t[h, i, j] = s } } }", kEnd, "");
  };
  EXPECT_TRUE(UsesPanels(Product("a[i, k] * b[k, j]")));
  EXPECT_TRUE(UsesPanels(in_loop("u[h, k, j]")));
  EXPECT_FALSE(UsesPanels(in_loop("b[k, j]")));
  EXPECT_FALSE(UsesPanels(Product("a[i, k] * d[j, k]")));
  EXPECT_FALSE(UsesPanels(Product("a[i, k | 0.0] * b[k - 1, j | 0.0]")));
}

// Where all columns are in whole tiles, no copy of others is made, and nothing reads one.
TEST(ContractionTiles, WholeTilesMayHaveAllColumns) {
  for (const jit::Isa isa : {jit::Isa::kAvx2, jit::Isa::kAvx512}) {
    for (const int columns : {8, 16, 24, 32, 48, 64, 96}) {
      Program program = ParseVerified(absl::StrCat(
          "program p(a: f32[M, K], b: f32[K, ", columns, "]) -> (c: f32[M, ", columns,
          "]) { for i in [0, M) { for j in [0, ", columns,
          ") { acc e: f32 = sum for k in [0, K) { e += a[i, k] * b[k, j] } c[i, j] = e } } }"));
      ContractionTileOptions options;
      options.isa = isa;
      ASSERT_EQ(TileContractions(program, options).value(), true) << columns;
      EXPECT_TRUE(Verify(program).ok()) << Verify(program) << "\n" << ToText(program);
    }
  }
}

// Names of the tensors that are copied as columns.
std::string CopiedColumns(absl::string_view text, std::vector<bool> bound = {},
                          std::vector<bool> version = {}) {
  Program program = ParseVerified(text);
  ContractionTileOptions options;
  options.isa = jit::Isa::kAvx2;
  options.bound = std::move(bound);
  options.version = std::move(version);
  options.many_elements = 2560;
  EXPECT_EQ(TileContractions(program, options).value(), true);
  EXPECT_TRUE(Verify(program).ok()) << Verify(program);
  std::set<std::string> copied;
  VisitItems(program, [&](const Item& item) {
    const auto* statement = item.As<Statement>();
    if (statement == nullptr ||
        !absl::StartsWith(program[statement->target.tensor].name, "columns"))
      return;
    const auto* load = absl::get_if<LoadValue>(&program[statement->value].node);
    if (load != nullptr) copied.insert(program[load->access.tensor].name);
  });
  return absl::StrJoin(copied, " ");
}

// The same for a[i, k] * d[j, k], at these sizes.
std::string Columns(absl::string_view rows, absl::string_view columns, absl::string_view steps,
                    std::vector<bool> bound = {}, std::vector<bool> version = {}) {
  const std::string text =
      absl::StrCat("program p(a: f32[", rows, ", ", steps, "], d: f32[", columns, ", ", steps,
                   "]) -> (c: f32[", rows, ", ", columns, "]) { for i in [0, ", rows,
                   ") { for j in [0, ", columns, ") { acc e: f32 = sum for k in [0, ", steps,
                   ") { e += a[i, k] * d[j, k] } c[i, j] = e } } }");
  return CopiedColumns(text, std::move(bound), std::move(version));
}

TEST(ContractionTiles, SizesDecideWhatIsTurned) {
  EXPECT_EQ(Columns("8", "32", "64"), "a");
  EXPECT_EQ(Columns("16", "32", "128"), "d") << "too many rows";
  EXPECT_EQ(Columns("8", "32", "40"), "d") << "a short sum";
  EXPECT_EQ(Columns("4", "32", "40"), "a") << "as many elements as the caches hold half of";
  EXPECT_EQ(Columns("4", "32", "39"), "d") << "few elements";
  EXPECT_EQ(Columns("8", "32", "64", {false, true}), "d") << "once for all calls";
  EXPECT_EQ(Columns("M", "N", "K"), "d") << "for all sizes";
  EXPECT_EQ(Columns("M", "N", "K", {}, {true}), "a") << "a version";
  EXPECT_EQ(Columns("8", "32", "K", {}, {true}), "a");
  EXPECT_EQ(Columns("64", "N", "64", {}, {true}), "d") << "for no N";
}

// Rows of an image lie along the window and along the row: they are read in place.
TEST(ContractionTiles, RowsOfImagesAreNotTurned) {
  EXPECT_EQ(
      CopiedColumns(
          "program p(a: f32[C, W + 2], d: f32[O, C, 3]) -> (c: f32[W, O]) { for i in [0, W) { "
          "for j in [0, O) { acc e: f32 = sum for k in [0, C) { for l in [0, 3) { "
          "e += a[k, i + l] * d[j, k, l] } } c[i, j] = e } } }"),
      "d");
}

TEST(ContractionTiles, FewColumnsAreTurnedWhereRowsLieAlongLanes) {
  const auto stores = [](absl::string_view text, std::vector<bool> version = {}) {
    Program program = ParseVerified(text);
    ContractionTileOptions options = SmallestTile();
    options.isa = jit::Isa::kAvx512;
    options.version = std::move(version);
    EXPECT_EQ(TileContractions(program, options).value(), true);
    std::set<std::string> last_indices;
    VisitItems(program, [&](const Item& item) {
      const auto* statement = item.As<Statement>();
      if (statement == nullptr || program[statement->target.tensor].name != "c") return;
      const std::string last = ToText(program, statement->target.place.back());
      last_indices.insert(absl::StrContains(last, "l") ? "lane" : "row");
    });
    return absl::StrJoin(last_indices, " ");
  };
  const auto product = [](const char* rows, const char* columns) {
    return absl::StrCat(
        "program p(a: f32[9, ", rows, "], b: f32[9, ", columns, "]) -> (c: f32[", rows, ", ",
        columns, "]) { for i in [0, ", rows, ") { for j in [0, ", columns,
        ") { acc s: f32 = sum for k in [0, 9) { s += a[k, i] * b[k, j] } c[i, j] = s } } }");
  };
  EXPECT_EQ(stores(product("32", "12")), "row");
  EXPECT_EQ(stores(product("32", "13")), "lane") << "few lanes are empty";
  EXPECT_EQ(stores(product("15", "12")), "lane") << "few rows, too";
  EXPECT_EQ(stores(product("M", "12")), "lane") << "for all sizes";
  EXPECT_EQ(stores(product("M", "12"), {true}), "row") << "a version";
}

constexpr char kFewColumns[] =
    "program p(a: f32[5, 19], b: f32[19, 4]) -> (c: f32[5, 4]) { for i in [0, 5) { for j in [0, 4) { "
    "acc e: f32 = sum for k in [0, 19) { e += a[i, k] * b[k, j] } c[i, j] = e + 1.0 } } }";

// Three rows in a tile; the fourth and the fifth have a tile each.
TEST(ContractionTiles, FewColumnsInTextOut) {
  Program program = ParseVerified(kFewColumns);
  ContractionTileOptions options;
  options.isa = jit::Isa::kAvx2;
  ASSERT_EQ(TileFewColumns(program, options).value(), false) << "a short sum";
  std::string text = kFewColumns;
  absl::StrReplaceAll({{"19", "35"}}, &text);
  program = ParseVerified(text.c_str());
  ASSERT_EQ(TileFewColumns(program, options).value(), true);
  EXPECT_EQ(ToText(program), ToText(ParseVerified(R"(
program p(a: f32[5, 35], b: f32[35, 4]) -> (c: f32[5, 4]) {
  temp columns: f32[5, 4, 8]
  for k_2 in [0, 4) { for v in [0, 4) { for l in [0, 8) { columns[k_2, v, l] = b[8*k_2 + l, v] } } }
  for k_3 in [0, 1) { for v_2 in [0, 4) { for l_2 in [0, 3) { columns[k_3 + 4, v_2, l_2] = b[8*k_3 + l_2 + 32, v_2] } } }
  for p in [0, 1) {
    temp tile: f32[3, 4, 8] register
    for r in [0, 3) unroll { for v_3 in [0, 4) unroll { for l_3 in [0, 8) vector { tile[r, v_3, l_3] = 0.0 } } }
    for k_4 in [0, 4) {
      for r_2 in [0, 3) unroll { for v_4 in [0, 4) unroll { for l_4 in [0, 8) vector {
        tile[r_2, v_4, l_4] = tile[r_2, v_4, l_4] + a[3*p + r_2, 8*k_4 + l_4] * columns[k_4, v_4, l_4]
      } } }
    }
    for r_3 in [0, 3) unroll { for v_5 in [0, 4) unroll { for l_5 in [0, 3) vector {
      tile[r_3, v_5, l_5] = tile[r_3, v_5, l_5] + a[3*p + r_3, l_5 + 32] * columns[4, v_5, l_5]
    } } }
    for r_4 in [0, 3) unroll {
      for v_6 in [0, 4) unroll {
        temp lanes: f32[4] register
        for l_6 in [0, 4) vector { lanes[l_6] = tile[r_4, v_6, l_6] + tile[r_4, v_6, l_6 + 4] }
        temp lanes_2: f32[2] register
        for l_7 in [0, 2) vector { lanes_2[l_7] = lanes[l_7] + lanes[l_7 + 2] }
        temp lanes_3: f32[1] register
        for l_8 in [0, 1) vector { lanes_3[l_8] = lanes_2[l_8] + lanes_2[l_8 + 1] }
        c[3*p + r_4, v_6] = lanes_3[0] + 1.0
      }
    }
  }
  for p_2 in [0, 2) {
    temp tile_2: f32[1, 4, 8] register
    for r_5 in [0, 1) unroll { for v_7 in [0, 4) unroll { for l_9 in [0, 8) vector { tile_2[r_5, v_7, l_9] = 0.0 } } }
    for k_5 in [0, 4) {
      for r_6 in [0, 1) unroll { for v_8 in [0, 4) unroll { for l_10 in [0, 8) vector {
        tile_2[r_6, v_8, l_10] = tile_2[r_6, v_8, l_10] + a[p_2 + r_6 + 3, 8*k_5 + l_10] * columns[k_5, v_8, l_10]
      } } }
    }
    for r_7 in [0, 1) unroll { for v_9 in [0, 4) unroll { for l_11 in [0, 3) vector {
      tile_2[r_7, v_9, l_11] = tile_2[r_7, v_9, l_11] + a[p_2 + r_7 + 3, l_11 + 32] * columns[4, v_9, l_11]
    } } }
    for r_8 in [0, 1) unroll {
      for v_10 in [0, 4) unroll {
        temp lanes_4: f32[4] register
        for l_12 in [0, 4) vector { lanes_4[l_12] = tile_2[r_8, v_10, l_12] + tile_2[r_8, v_10, l_12 + 4] }
        temp lanes_5: f32[2] register
        for l_13 in [0, 2) vector { lanes_5[l_13] = lanes_4[l_13] + lanes_4[l_13 + 2] }
        temp lanes_6: f32[1] register
        for l_14 in [0, 1) vector { lanes_6[l_14] = lanes_5[l_14] + lanes_5[l_14 + 1] }
        c[p_2 + r_8 + 3, v_10] = lanes_6[0] + 1.0
      }
    }
  }
})")));
  ASSERT_EQ(TileFewColumns(program, options).value(), false);
}

// Copies read all columns and steps, even where there are no rows; and a copy that is larger than
// its tensor is assumed to be small.
TEST(ContractionTiles, FewColumnsAreInRangeAndSmall) {
  const auto taken = [](absl::string_view value, std::vector<bool> version = {true}) {
    Program program = ParseVerified(absl::StrCat(
        "program p(a: f32[M, K], b: f32[K], d: f32[4, K], e: f32[4]) -> (c: f32[M, 4]) { for i in [0, M) { for j in [0, 4) { "
        "acc s: f32 = sum for k in [0, K) { s += ",
        value, " } c[i, j] = s } } }"));
    ContractionTileOptions options;
    options.isa = jit::Isa::kAvx512;
    options.version = std::move(version);
    const Program before = program;
    TileFewColumns(program, options).value();
    program.version.clear();
    if (ToText(program) == ToText(before)) return std::string("left");
    return std::string(program.assumptions.empty() ? "taken" : "assumed to be small");
  };
  EXPECT_EQ(taken("a[i, k] * d[j, k]"), "taken");
  EXPECT_EQ(taken("a[i, k] * d[j, k]", {}), "left") << "its sum may be short";
  EXPECT_EQ(taken("a[i, k] * e[j]"), "assumed to be small");
  EXPECT_EQ(taken("a[i, k] * b[k + j | 0.0]"), "assumed to be small");
  EXPECT_EQ(taken("a[i, k] * b[k + j]"), "left") << "leaves its tensor";
}

// The indices of the loops around the first store to partial sums that wait for the next block of a
// sum, and the shape of these.
std::string AroundWaitingSums(absl::string_view text, const ContractionTileOptions& options) {
  Program program = ParseVerified(text);
  EXPECT_EQ(TileContractions(program, options).value(), true);
  EXPECT_TRUE(Verify(program).ok()) << Verify(program);
  std::string found;
  std::vector<std::string> around;
  const std::function<void(const Scope&)> look = [&](const Scope& scope) {
    for (const Item& item : scope) {
      if (const auto* loop = item.As<Loop>()) {
        around.push_back(program.vars[loop->var].substr(0, 1));
        look(loop->body);
        around.pop_back();
      }
      const auto* statement = item.As<Statement>();
      if (statement == nullptr || !found.empty()) continue;
      const TensorInfo& target = program[statement->target.tensor];
      if (absl::StartsWith(target.name, "partial"))
        found = absl::StrCat(absl::StrJoin(around, ""), " ", target.shape.size());
    }
  };
  look(program.body);
  return found;
}

ContractionTileOptions SmallBlocks(int64_t row_block) {
  ContractionTileOptions options = SmallestTile();
  options.rows = 4;
  options.row_block = row_block;
  options.sum_block = 2;
  return options;
}

// Loops over a few rows of an image read the columns of a block of the sum (s) one after the other,
// unless too many partial sums would have to be kept.
TEST(ContractionTiles, ShortLoopsShareColumnsOfABlock) {
  const auto around = [](absl::string_view begin, absl::string_view end, int64_t row_block) {
    return AroundWaitingSums(
        absl::StrCat(
            "program p(w: f32[N, K], x: f32[20, 400, K]) -> (y: f32[20, 400, N]) { for t in [0, 5) { for h in [",
            begin, ", ", end,
            ") { for i in [0, 400) { for j in [0, N) { acc s: f32 = sum for k in [0, K) { s += w[j, k] * "
            "x[h, i, k] } drop y[h, i, j] = s } } } } }"),
        SmallBlocks(row_block));
  };
  EXPECT_EQ(around("4*t", "4*t + 4", 16), "tpqshpqzrvl 4");
  EXPECT_EQ(around("4*t", "min(4*t + 4, 17)", 16), "tpqshpqzrvl 4");
  EXPECT_EQ(around("0", "8", 36), "tpqshpqzrvl 4");
  EXPECT_EQ(around("0", "8", 37), "tpqhspqzrvl 3");
  EXPECT_EQ(around("0", "9", 16), "thpqspqzrvl 3");
}

// Places of a window (w) read nearly the same columns in a tile.
TEST(ContractionTiles, PlacesOfAWindowGoAroundATile) {
  EXPECT_EQ(
      AroundWaitingSums(
          "program p(g: f32[M, K], x: f32[K + 3, 64]) -> (y: f32[M, 32, 3]) { for w in [0, 3) { "
          "for i in [0, M) { for j in [0, 32) { acc s: f32 = sum for k in [0, K) { s += g[i, k] * x[k + w, j] } "
          "y[i, j, w] = s } } } }",
          SmallBlocks(16)),
      "pqspqwzrvl 4");
}

// Steps of a window are written out; the first row is not needed at the first step in the first
// tile, nor the last row at the last step in the last tile.
TEST(ContractionTiles, RowsThatAreNotNeededAreLeftOut) {
  const auto steps_of = [](absl::string_view length, int sums) {
    Program program = ParseVerified(absl::StrReplaceAll(
        "program p(w: f32[K, 3, 8], x: f32[K, N + 2]) -> (y: f32[N, 8]) { for i in [0, N) { for j in [0, 8) { acc s: f32 = sum "
        "for k in [0, K) { for p in [0, 3) { s += x[k, i + p] * w[k, p, j] needed if 1 <= i + p, i + p < N + 1 } } y[i, j] = s } } }",
        {{"N", length}}));
    ContractionTileOptions options = SmallestTile();
    options.rows = 4;
    EXPECT_EQ(TileContractions(program, options).value(), true);
    // Rows of a tile and steps of windows for each statement that sums in it, or the
    // condition on it.
    std::vector<std::string> steps;
    for (absl::string_view line : absl::StrSplit(ToText(program), '\n')) {
      const absl::string_view code = absl::StripAsciiWhitespace(line);
      const bool is_sum = absl::StrContains(code, " + x[k");
      if (is_sum || absl::StrContains(code, "[0, min(max(")) steps.emplace_back(code);
      if (is_sum && --sums == 0) break;
    }
    return steps;
  };
  const auto step = [](absl::string_view row, absl::string_view column, int p, int number) {
    const std::string tile = absl::StrCat("tile[", row, ", v_", number, ", l_", number, "]");
    return absl::StrCat(tile, " = ", tile, " + x[k_3, 4*p_3 + 4*p_4", column,
                        "] * columns[q + q_2 + v_", number, ", k_3, ", p, ", l_", number, "]");
  };
  EXPECT_THAT(
      steps_of("8", 5),
      testing::ElementsAre(
          step("r_3", " + r_3", 0, 5), "for z_3 in [0, min(max(4*p_3 + 4*p_4, 0), 1)) {",
          step("0", "", 0, 4), step("r_4", " + r_4 + 1", 1, 6), step("r_5", " + r_5 + 2", 2, 7),
          "for z_4 in [0, min(max(-4*p_3 - 4*p_4 + 4, 0), 1)) {", step("3", " + 5", 2, 8)));
  // Whole tiles of any number of rows.
  EXPECT_THAT(steps_of("N", 5),
              testing::Contains("for z_4 in [0, min(max(-4*p_3 - 4*p_4 + N - 4, 0), 1)) {"));
}

// A block has this many steps of all sums together.
TEST(ContractionTiles, BlocksOfSeveralSums) {
  const auto text_of = [](absl::string_view inner) {
    Program program = ParseVerified(
        absl::StrCat("program p(a: f32[M, 64, ", inner, "], b: f32[64, ", inner,
                     ", N]) -> (c: f32[M, N]) { for i in [0, M) { "
                     "for j in [0, N) { acc e: f32 = sum for k in [0, 64) { for l in [0, ",
                     inner, ") { e += a[i, k, l] * b[k, l, j] } } c[i, j] = e } } }"));
    ContractionTileOptions options = SmallestTile();
    options.sum_block = 36;
    EXPECT_EQ(TileContractions(program, options).value(), true);
    return ToText(program);
  };
  EXPECT_THAT(text_of("9"), testing::HasSubstr("for s in [0, 16)"));
  EXPECT_THAT(text_of("40"), testing::HasSubstr("for s in [0, 64)"));
  EXPECT_THAT(
      text_of("R"),
      testing::HasSubstr("for s in [0, max((max(36/max(R, 1), 1) + 63)/max(36/max(R, 1), 1), 1))"));
}

// Rows that fit one block are divided into two, to be shared out, unless there is a
// batch of products.
TEST(ContractionTiles, RowsAreInTwoBlocksAtLeast) {
  const auto blocks = [](bool is_batch, int rows) {
    const std::string outside = is_batch ? "for g in [0, 9) { " : "", end = is_batch ? " }" : "",
                      g = is_batch ? "g" : "0";
    Program program = ParseVerified(
        absl::StrCat("program p(a: f32[9, ", rows, ", 800], b: f32[9, 800, 8]) -> (c: f32[9, ",
                     rows, ", 8]) { ", outside, "for i in [0, ", rows,
                     ") { for j in [0, 8) { acc e: f32 = sum for k in [0, 800) { e += a[", g,
                     ", i, k] * b[", g, ", k, j] } drop c[", g, ", i, j] = e } }", end, " }"));
    ContractionTileOptions options = SmallestTile();
    options.row_block = 4;
    EXPECT_EQ(TileContractions(program, options).value(), true);
    absl::optional<int64_t> count;
    VisitItems(program, [&](const Item& item) {
      const auto* loop = item.As<Loop>();
      if (!count && loop != nullptr && program.vars[loop->var] == "p")
        count = program.pool.ConstValue(loop->end);
    });
    return count.value_or(-1);
  };
  EXPECT_EQ(blocks(false, 2), 2);
  EXPECT_EQ(blocks(false, 4), 2);
  EXPECT_EQ(blocks(false, 9), 3);
  EXPECT_EQ(blocks(true, 4), 1);
  EXPECT_EQ(blocks(true, 9), 3);
}

// Two nests side by side, one of which runs, have no loop index in common.
TEST(ContractionTiles, NestsThatSizesChooseBetweenHaveIndicesOfTheirOwn) {
  Program program = ParseVerified(
      "program p(a: f32[B, H, M, K], d: f32[B, H, N, K]) -> (c: f32[B, H, M, N]) { for b in [0, B) { "
      "for h in [0, H) { for i in [0, M) { for j in [0, N) { acc e: f32 = sum "
      "for k in [0, K) { e += a[b, h, i, k] * d[b, h, j, k] } c[b, h, i, j] = e } } } } }");
  ContractionTileOptions options;
  options.isa = jit::Isa::kAvx2;
  EXPECT_EQ(TileContractions(program, options).value(), true);
  EXPECT_TRUE(Verify(program).ok()) << Verify(program);
}

// A place that is not proven to be in range is tested at each step, which takes longer
// than the product.
TEST(ContractionTiles, PlacesOfAllTilesAreProven) {
  for (const jit::Isa isa : {jit::Isa::kAvx2, jit::Isa::kAvx512}) {
    for (const char* value : {"a[i, k] * b[k, j]", "a[i, k] * d[j, k]"}) {
      Program program = ParseVerified(kFrame, Product(value));
      ContractionTileOptions options;
      options.isa = isa;
      ASSERT_EQ(TileContractions(program, options).value(), true) << value;
      ASSERT_TRUE(MarkChecked(program).ok());
      EXPECT_FALSE(absl::StrContains(ToText(program), "checked"))
          << Name(isa) << ", " << value << ":\n"
          << ToText(program);
    }
  }
}

// Rows of an image are shared out among tiles of two heights, one of which may keep a part of its
// rows: each is in range, and results of two strips are proven apart.
TEST(ContractionTiles, SharedRowsAreProvenInRangeAndApart) {
  Program program = ParseVerified(
      "program p(x: f32[H, C], w: f32[C, 3, 64], z: shape f32[W]) -> (y: f32[H*W, 64]) { for h in [0, H) { "
      "temp t: f32[C, 2*W + 1] for c in [0, C) { for j in [0, 2*W + 1) { t[c, j] = x[h, c] } } for i in [0, W) { "
      "for o in [0, 64) { acc s: f32 = sum for c in [0, C) { for r in [0, 3) { s += t[c, 2*i + r] * w[c, r, o] } } "
      "y[h*W + i, o] = s } } } }");
  ContractionTileOptions options;
  options.isa = jit::Isa::kAvx2;
  ASSERT_EQ(TileContractions(program, options).value(), true);
  ASSERT_TRUE(MarkChecked(program).ok());
  const std::string text = ToText(program);
  EXPECT_THAT(text, testing::HasSubstr("f32[5, 2, 8] register"));
  EXPECT_THAT(text, testing::HasSubstr("f32[4, 2, 8] register"));
  EXPECT_THAT(text, testing::Not(testing::HasSubstr("f32[6, 2, 8] register")));
  EXPECT_THAT(text, testing::Not(testing::HasSubstr("checked")));
  EXPECT_EQ(CarriedTensor(program, *program.body.back().As<Loop>()), absl::nullopt) << text;
}

// So are they where tiles copy columns to panels.
TEST(ContractionTiles, SharedRowsOfPanelsAreProven) {
  Program program = ParseVerified(
      "program p(g: f32[B, L, E], m: f32[S]) -> (c: f32[B, S, E]) { temp t: f32[S] for k in [0, S) { t[k] = "
      "exp(m[k]) } for b in [0, B) { for k in [0, S) { for j in [0, E) { acc e: f32 = sum for l in [0, L) { "
      "e += g[b, l, j] * t[k] } c[b, k, j] = e } } } }");
  ContractionTileOptions options;
  options.isa = jit::Isa::kAvx2;
  options.rows = 6;
  options.vectors = 1;
  ASSERT_EQ(TileContractions(program, options).value(), true);
  ASSERT_TRUE(MarkChecked(program).ok());
  EXPECT_THAT(ToText(program), testing::HasSubstr("panel"));
  EXPECT_THAT(ToText(program), testing::Not(testing::HasSubstr("checked")));
}

// A few rows leave registers for more vectors, of which images often have 7 or 14 in a row.
TEST(ContractionTiles, FewRowsHaveWideTiles) {
  const auto text_of = [](absl::string_view rows) {
    Program program = ParseVerified(absl::Substitute(
        "program p(a: f32[$0, K], b: f32[K, N]) -> (c: f32[$0, N]) { for i in [0, $0) { for j in [0, N) { "
        "acc s: f32 = sum for k in [0, K) { s += a[i, k] * exp(b[k, j]) } c[i, j] = s } } }",
        rows));
    ContractionTileOptions options;
    options.isa = jit::Isa::kAvx512;
    EXPECT_TRUE(TileContractions(program, options).value());
    return ToText(program);
  };
  EXPECT_THAT(text_of("3"), testing::HasSubstr("f32[3, 7, 16] register"));
  EXPECT_THAT(text_of("2"), testing::HasSubstr("f32[2, 7, 16] register"));
  EXPECT_THAT(text_of("5"), testing::HasSubstr("f32[5, 5, 16] register"));
  EXPECT_THAT(text_of("M"), testing::HasSubstr("f32[8, 3, 16] register"));
}

// Rows of a temporary that lie side by side are read in place, except those of a single matrix,
// which are copied.
TEST(ContractionTiles, RowsSideBySide) {
  const auto copies_rows = [](absl::string_view batch) {
    Program program = ParseVerified(absl::Substitute(
        "program p(x: f32[$0K, M], d: f32[K, N]) -> (c: f32[$0M, N]) { temp t: f32[$0K, M] $1for a in [0, K) { "
        "for b in [0, M) { t[$2a, b] = x[$2a, b] } } $3 $1for i in [0, M) { for j in [0, N) { acc s: f32 = sum for k in [0, K) { "
        "s += t[$2k, i] * d[k, j] } c[$2i, j] = s } } $3 }",
        batch, batch.empty() ? "" : "for g in [0, G) { ", batch.empty() ? "" : "g, ",
        batch.empty() ? "" : "}"));
    EXPECT_TRUE(TileContractions(program, SmallestTile()).value());
    return absl::StrContains(ToText(program), "temp rows: f32[");
  };
  EXPECT_TRUE(copies_rows(""));
  EXPECT_FALSE(copies_rows("G, "));
}

// Memory is planned before any loop runs: no copy's length depends on a loop around.
TEST(ContractionTiles, CopiesOfColumnsWhoseNumberMovesArePlanned) {
  Program program = ParseVerified(
      "program p(a: f32[G, M, K], b: f32[G, K, N]) -> (c: f32[G, M, N], one: f32[1]) { for g in [0, G) { drop one[0] = 1.0 "
      "for i in [0, M) { for j in [0, min(N, g + 1)) { acc e: f32 = sum for k in [0, K) { e += a[g, i, k] * b[g, k, j] } "
      "c[g, i, j] = e } } } }");
  ASSERT_EQ(TileContractions(program, {}).value(), true);
  for (const TensorInfo& tensor : program.tensors) {
    for (IndexId extent : tensor.shape)
      EXPECT_FALSE(program.pool.HasVar(extent)) << tensor.name << "\n" << ToText(program);
  }
}

TEST(ContractionTiles, LeavesWhatIsNone) {
  for (const char* value : {
           "a[i, k]",  // nothing that columns share
           "b[k, j]",
           "x[i, j, k]",  // all elements are read once
           "x[i, j, k] * a[i, k]",
           "a[i, k] * b[ids[k], j | 0.0]",  // looked up
           "a[i, k] * b[k, j] * f32(index(j))",
       }) {
    EXPECT_FALSE(IsTiled(Product(value))) << value;
  }
}

// With fewer rows and columns than a tile, and few steps.
TEST(ContractionTiles, LeavesTinyProducts) {
  const auto is_tiled = [](int rows, int columns, int steps, absl::string_view read) {
    Program program = ParseVerified(absl::StrCat(
        "program p(a: f32[B, 99, 99], b: f32[B, 99, 99]) -> (c: f32[B, 99, 99]) { for n in [0, B) { for i in [0, ",
        rows, ") { for j in [0, ", columns, ") { acc e: f32 = sum for k in [0, ", steps,
        ") { e += a[n, i, k] * ", read, " } drop c[n, i, j] = e } } } }"));
    ContractionTileOptions options;
    options.isa = jit::Isa::kAvx512;
    return TileContractions(program, options).value();
  };
  EXPECT_FALSE(is_tiled(8, 15, 16, "b[n, k, j]"));
  EXPECT_TRUE(is_tiled(9, 15, 16, "b[n, k, j]"));
  EXPECT_TRUE(is_tiled(8, 16, 16, "b[n, k, j]"));
  EXPECT_TRUE(is_tiled(8, 15, 17, "b[n, k, j]"));
  // Read across columns.
  EXPECT_FALSE(is_tiled(4, 4, 16, "b[n, j, k]"));
  EXPECT_TRUE(is_tiled(4, 12, 16, "b[n, j, k]"));
}

// Of a triangle, more columns are packed than are summed.
TEST(ContractionTiles, TrianglesReadTemporariesThatAreStoredWhole) {
  const auto is_tiled = [](absl::string_view stores) {
    return IsTiled(absl::StrCat(
        "temp t: f32[K, N] ", stores,
        " for i in [0, M) { for j in [0, N) { acc s: f32 = sum for k in [0, min(i, K)) { s += a[i, k] * t[k, j] } c[i, j] = s } }"));
  };
  EXPECT_TRUE(is_tiled("for o in [0, K) { for q in [0, N) { t[o, q] = 1.0 } }"));
  EXPECT_TRUE(is_tiled(
      "for q in [0, N) { for o in [0, K) { acc u: f32 = sum for r in [0, M) { u += 1.0 } t[o, q] = u } }"));
  for (
      const char* stores : {
          "for o in [0, min(M, K)) { for q in [0, N) { t[o, q] = 1.0 } }",        // a part
          "for o in [0, K) { for q in [0, N) { t[K - 1 - o, q] = 1.0 } }",        // not seen
          "for o in [0, K) { for q in [0, N) { drop t[o, q] if q < M = 1.0 } }",  // perhaps
          "for o in [0, K) { for q in [0, N) { t[o, q] = 1.0 } } for o in [0, K) { drop t[o, 0] = 2.0 }",  // twice
          "for r in [0, M) { for o in [0, K) { for q in [0, N) { t[o, q] = 1.0 } } }",  // perhaps never
      }) {
    EXPECT_FALSE(is_tiled(stores)) << stores;
  }
}

TEST(ContractionTiles, LeavesWhatIsInOrder) {
  const std::string ends = kEnd;
  // The sum is no scalar of the nest, or used within; bounds that move; rows that are few.
  const std::string kCases[] = {
      "temp t: f32[M, N] for i in [0, M) { for j in [0, N) { t[i, j] = 0.0 for k in [0, K) { t[i, j] += a[i, k] * b[k, j] } } }" +
          ends + "",
      "for i in [0, M) { for j in [0, i) { acc s: f32 = sum for k in [0, K) { s += a[i, k] * b[k, j | 0.0] } drop c[i, j] = s } }",
      "for i in [0, M) { for j in [0, N) { acc s: f32 = sum for k in [0, max(i, M - i)) { s += a[i, k | 0.0] * b[k, j | 0.0] } c[i, j] = s } }",
      "for i in [0, M) { for j in [0, N) { acc s: f32 = sum for k in [0, min(i, j)) { s += a[i, k | 0.0] * b[k, j | 0.0] } c[i, j] = s } }",
      "" + ends +
          " for i in [0, 1) { for j in [0, N) { acc s: f32 = sum for k in [0, K) { s += g[i, k] * b[k, j] } drop c[i, j] = s } }",
      "for i in [0, M) { for j in [0, N) { acc s: f32 = sum for k in [0, K) { s += a[i, k] * c[0, j | 0.0] } c[i, j] = s } }",
  };
  for (const std::string& items : kCases) EXPECT_FALSE(IsTiled(items)) << items;
}

}  // namespace
}  // namespace nestor::loop
