// Which symbols decide the class of a program, and which sizes make one class.
#include "jit/size_classes.h"

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/optional.h"
#include "gtest/gtest.h"
#include "loop_ir/text.h"

namespace nestor::jit {
namespace {

using Sizes = absl::flat_hash_map<std::string, int64_t>;

loop::Program Parse(const char* loops) {
  constexpr char kHead[] =
      "program p(x: f32[N, C], i: i64[C], w: f32[K]; $s: i64 = 1, $k: i64 = 1) -> (y: f32[N, C]) {\n";
  return loop::ParseProgram(absl::StrCat(kHead, loops, "\n}")).value();
}

absl::optional<int64_t> Find(const Sizes& sizes, const std::string& name) {
  const auto size = sizes.find(name);
  if (size == sizes.end()) return absl::nullopt;
  return size->second;
}

TEST(SizeClasses, ComputedWith) {
  const struct {
    const char* loops;
    const char* symbols;
  } kCases[] = {
      // Lengths that occur only as lengths are not computed with, and an index alone is
      // no arithmetic.
      {"for n in [0, N) { for c in [0, C) { y[n, c] = x[n, c] } }", ""},
      {"for n in [0, N) { temp t: f32[C + 1]  for c in [0, C) { t[c] = x[n, c] y[n, c] = t[c] } }",
       ""},
      {"for n in [0, N) { for c in [0, C) { y[n, c] = f32(index(n)) } }", ""},
      {"for n in [0, N - $k) { for c in [$s, C/K) { y[n, c] = x[n, c] } }", ""},
      // In a place.
      {"for n in [0, N) { for c in [0, C) { y[n, c] = x[n, $k] } }", "$k"},
      {"for n in [0, N) { for c in [0, 3) { y[n, c*$s] = x[n, c] } }", "$s"},
      {"for n in [0, N) { for c in [0, C) { y[n, c] = x[n, i[c*$s] | 0.0] } }", "$s C"},
      // The length of a window.
      {"for n in [0, N) { for c in [0, C) { for k in [0, K) { y[n, c] += x[n, c + k | 0.0] * w[k] } } }",
       "C K"},
      // The length of an image that the window moves over.
      {"for n in [0, N) { for c in [0, C + 2 - K) { for k in [0, K) { y[n, c] += x[n, c + k - 1 | 0.0] * w[k] } } }",
       "C K"},
      // In a condition, a fill, a value.
      {"for n in [0, N) { for c in [0, C) { y[n, c] = x[n, c | 0.0 if 3 < $k] } }", "$k"},
      {"for n in [0, N) { for c in [0, C) { drop y[n, c] if c < 2 = x[n, c] } }", "C"},
      {"for n in [0, N) { for c in [0, C) { y[n, c] = f32(index(C)) } }", "C"},
      {"for n in [0, N) { for c in [0, C) { y[n, c] = f32(i[c | index($k)]) } }", "$k"},
  };
  for (const auto& c : kCases)
    EXPECT_EQ(absl::StrJoin(SymbolsOf(Parse(c.loops)).computed_with, " "), c.symbols) << c.loops;
}

TEST(SizeClasses, BesideWindows) {
  const struct {
    const char* loops;
    const char* symbols;
  } kCases[] = {
      {"for n in [0, N) { for c in [0, C) { for k in [0, K) { y[n, c] += x[n, c + k | 0.0] * w[k] } } }",
       "C K N"},
      {"for n in [0, N) { for c in [0, C) { for k in [0, K) { y[n, c] += x[n, $s*c + 2*k | 0.0] * w[k] } } }",
       "C K N"},
      // Not a loop of another block, of an axis that was split in two, or of a shifted access.
      {"for c in [0, 3) { for k in [0, 2) { y[0, 0] += x[0, c + k | 0.0] } } for n in [0, N) { y[n, 0] = 0.0 }",
       ""},
      {"for n in [0, N) { for c in [0, 2) { for k in [0, K) { drop y[n, K*c + k] = x[n, K*c + k | 0.0] } } }",
       ""},
      {"for n in [0, N) { for c in [0, C) { y[n, c] = x[n, c + 1 | 0.0] } }", ""},
  };
  for (const auto& c : kCases)
    EXPECT_EQ(absl::StrJoin(SymbolsOf(Parse(c.loops)).beside_windows, " "), c.symbols) << c.loops;
}

TEST(SizeClasses, EndAxes) {
  const loop::Program program =
      Parse("for n in [0, N) { for c in [0, C) { y[n, c] = x[n, c] * w[0] } }");
  EXPECT_EQ(absl::StrJoin(SymbolsOf(program).end_axes, " "), "C N") << "w and i have no other axis";
  SizeClassOptions options;
  options.least_work = 100;
  const SizeClasses classes(program, options);
  const auto class_of = [&](const Sizes& sizes) {
    return classes.Of([&](const std::string& name) { return Find(sizes, name); });
  };
  EXPECT_EQ(class_of({{"N", 100}, {"C", 1}, {"K", 1}}), SizeClass({{"C", 1}}));
  EXPECT_EQ(class_of({{"N", 100}, {"C", 2}, {"K", 1}}), SizeClass());
  EXPECT_EQ(class_of({{"N", 1}, {"C", 100}, {"K", 1}}), SizeClass({{"N", 1}}));
  EXPECT_EQ(class_of({{"N", 99}, {"C", 1}, {"K", 1}}), SizeClass()) << "too little work";
}

TEST(SizeClasses, ShortSums) {
  const char* const sum =
      "for n in [0, N) { for c in [0, C) { for d in [0, C) { acc a: f32 = sum for k in [0, K) { a += w[k] * x[n, k] } y[n, c] = a } } }";
  const char* const compares =
      " for n in [0, N) { acc m: f32 = max for k in [0, K) { m max= x[n, k] } y[n, 0] = m }";
  const auto text_of = [](const std::string& loops, const Sizes& sizes) {
    SizeClassOptions options;
    options.least_work = 100;
    const loop::Program program = Parse(loops.c_str());
    const SizeClass found = SizeClasses(program, options).Of([&](const std::string& name) {
      return Find(sizes, name);
    });
    return absl::StrJoin(found, " ", absl::PairFormatter("="));
  };
  EXPECT_EQ(text_of(sum, {{"N", 1000}, {"C", 4}, {"K", 3}}), "C=4 K=3");
  EXPECT_EQ(text_of(sum, {{"N", 1000}, {"C", 16}, {"K", 17}}), "") << "a long loop inside";
  EXPECT_EQ(text_of(sum, {{"N", 1000}, {"C", 17}, {"K", 3}}), "") << "one short loop";
  EXPECT_EQ(text_of(sum, {{"N", 16}, {"C", 16}, {"K", 16}}), "") << "no long loop around";
  EXPECT_EQ(text_of(sum, {{"N", 17}, {"C", 1}, {"K", 1}}), "") << "too little work";
  EXPECT_EQ(text_of(sum, {{"N", 1000}, {"C", 12}, {"K", 32}}), "C=12") << "few columns";
  EXPECT_EQ(text_of(sum, {{"N", 1000}, {"C", 13}, {"K", 32}}), "");
  EXPECT_EQ(text_of(sum, {{"N", 4}, {"C", 100}, {"K", 320}}), "") << "a short batch";
  EXPECT_EQ(text_of(absl::StrCat(sum, compares), {{"N", 1000}, {"C", 4}, {"K", 3}}), "");
}

TEST(SizeClasses, WorkAt) {
  const Sizes sizes = {{"N", 1000}, {"C", 7}, {"K", 3}, {"$s", 2}, {"$k", -5}};
  const struct {
    const char* loops;
    double work;
  } kCases[] = {
      {"for n in [0, N) { for c in [0, C) { y[n, c] = x[n, c] } }", 7000},
      {"for n in [0, N) { for c in [0, C) { y[n, c] = x[n, c] * 2.0 + 1.0 } }", 14000},
      {"for n in [0, N) { for c in [0, C) { y[n, c] = 0.0 for k in [0, K) { y[n, c] += x[n, c] * w[k] } } }",
       49000},
      {"for n in [$s, N) step 4 { y[n, 0] = 0.0 }", 249.5},
      {"for n in [0, $k) { for c in [0, $k) { y[n, c] = 0.0 } }", 0},
      {"for n in [0, N) { for c in [0, n) { y[n, 0] = 0.0 } }", 1000},
      {"for n in [0, N/($s - 2)) { y[n, 0] = 0.0 }", 1},
  };
  for (const auto& c : kCases) {
    EXPECT_EQ(WorkAt(Parse(c.loops), [&](const std::string& name) { return Find(sizes, name); }),
              c.work)
        << c.loops;
  }
}

TEST(SizeClasses, OfSizes) {
  const loop::Program program = Parse(
      "for n in [0, N) { for c in [0, C) { for k in [0, K) { y[n, c] += x[n, c*$s + k - $k | 0.0] * w[k] } } }");
  SizeClassOptions options;
  options.least_work = 1000;
  const auto text = [&](const Sizes& sizes) {
    const SizeClass constants = SizeClasses(program, options).Of([&](const std::string& name) {
      return Find(sizes, name);
    });
    return absl::StrJoin(constants, " ", absl::PairFormatter("="));
  };
  EXPECT_EQ(text({{"N", 10}, {"C", 100}, {"K", 3}, {"$s", 2}, {"$k", 0}}), "$k=0 $s=2 K=3 N=10");
  EXPECT_EQ(text({{"N", 10}, {"C", 100}, {"K", 16}, {"$s", 17}, {"$k", -16}}), "$k=-16 K=16 N=10");
  EXPECT_EQ(text({{"N", 10}, {"C", 1}, {"K", 100}, {"$s", 2000}, {"$k", -17}}), "C=1 N=10");
  EXPECT_EQ(text({{"N", 10}, {"C", 100}, {"K", 30}, {"$s", 17}, {"$k", 30}}), "")
      << "all are large";
  // Two operations each, of which a sixteenth is enough.
  EXPECT_EQ(text({{"N", 1}, {"C", 32}, {"K", 1}, {"$s", 30}, {"$k", 30}}), "K=1 N=1");
  EXPECT_EQ(text({{"N", 1}, {"C", 31}, {"K", 1}, {"$s", 30}, {"$k", 30}}), "") << "too little work";
  EXPECT_EQ(text({{"N", 0}, {"C", 49}, {"K", 2}, {"$s", 30}, {"$k", 30}}), "") << "no work";
  options.largest_constant = 1;
  EXPECT_EQ(text({{"N", 10}, {"C", 100}, {"K", 3}, {"$s", 1}, {"$k", 0}}), "$k=0 $s=1");
  options.variants = 0;
  EXPECT_EQ(text({{"N", 10}, {"C", 100}, {"K", 3}, {"$s", 1}, {"$k", 0}}), "");
}

}  // namespace
}  // namespace nestor::jit
