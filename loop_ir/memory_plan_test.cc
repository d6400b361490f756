// Plans of small programs as text; and random programs whose plans are replayed access by access.
#include "loop_ir/memory_plan.h"

#include <algorithm>
#include <cstdio>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"
#include "loop_ir/memory_plan_testing.h"
#include "loop_ir/text.h"
#include "loop_ir/text_testing.h"

namespace nestor::loop {
namespace {

Program Around(absl::string_view items) {
  return Parsed(
      absl::StrCat("program p(x: f32[N, N], w: f32[N, N]) -> (y: f32[N, N]) {\n", items, "\n}\n"));
}

// "t>u 0..3" for each buffer, "=y" after one in an output; then "y=x" aliases.
std::string TextOf(const Program& program, const MemoryPlan& plan) {
  std::vector<std::string> parts;
  const auto name = [&](std::string* out, TensorId tensor) {
    absl::StrAppend(out, program[tensor].name);
  };
  for (const PlannedBuffer& buffer : plan.buffers) {
    parts.push_back(absl::StrCat(
        absl::StrJoin(buffer.tensors, ">", name), " ", buffer.first, "..", buffer.last,
        buffer.output.value >= 0 ? absl::StrCat("=", program[buffer.output].name) : ""));
  }
  for (const auto& [output, input] : plan.aliases) {
    parts.push_back(absl::StrCat(program[output].name, "=", program[input].name));
  }
  return absl::StrJoin(parts, ", ");
}

int64_t NoGather(TensorId, int64_t) { return 0; }

// Places and replays; then with each alias.
void ExpectSound(const Program& program, const MemoryPlan& plan, const Sizes& sizes,
                 GatheredValue gathered) {
  const auto sized = SizedProgram::Create(program, sizes);
  ASSERT_TRUE(sized.ok()) << sized.status();
  const auto arena = EvaluatePlan(*sized, plan);
  ASSERT_TRUE(arena.ok()) << arena.status();
  EXPECT_GE(arena->total, arena->lower_bound);
  for (int alias = -1; alias < static_cast<int>(plan.aliases.size()); ++alias) {
    EXPECT_EQ(ReplayPlan(*sized, plan, *arena, gathered, alias), absl::OkStatus())
        << alias << "\n"
        << ToText(program);
  }
}

TEST(MemoryPlan, LifetimesAndInPlace) {
  const struct {
    const char* program;
    const char* plan;
  } kCases[] = {
      {"for i in [0, N) { for j in [0, N) { y[i, j] = x[i, j] } }", "y=x, y=w"},
      {"for i in [0, N) { for j in [0, N) { y[i, j] = x[j, i] } }", "y=w"},
      // An elementwise chain is one buffer.
      {"temp t: f32[N]  temp u: f32[N]  for i in [0, N) { t[i] = x[i, 0] }  for i in [0, N) { u[i] = exp(t[i]) }  "
       "for i in [0, N) { for j in [0, N) { y[i, j] = u[i] } }",
       "t>u 0..2, y=x, y=w"},
      // Needed later on.
      {"temp t: f32[N]  temp u: f32[N]  for i in [0, N) { t[i] = x[i, 0] }  for i in [0, N) { u[i] = exp(t[i]) }  "
       "for i in [0, N) { for j in [0, N) { y[i, j] = u[i] + t[j] } }",
       "t 0..2, u 1..2, y=x, y=w"},
      // Another element than the one written.
      {"temp t: f32[N]  temp u: f32[N]  for i in [0, N) { t[i] = x[i, 0] }  for i in [0, N) { u[i] = t[N - 1 - i] }  "
       "for i in [0, N) { for j in [0, N) { y[i, j] = u[i] } }",
       "t 0..1, u 1..2, y=x, y=w"},
      {"temp t: f32[N]  temp u: f32[N]  for i in [0, N) { t[i] = x[i, 0] }  "
       "for i in [0, N) { u[i] = t[i] + t[i - 1 | 0.0] }  for i in [0, N) { for j in [0, N) { y[i, j] = u[i] } }",
       "t 0..1, u 1..2, y=x, y=w"},
      // Another shape; another size; the same size of another type.
      {"temp t: f32[N]  temp u: f32[N + 1]  for i in [0, N) { t[i] = x[i, 0] }  for i in [0, N) { u[i] = t[i] }  "
       "for i in [0, N) { for j in [0, N) { y[i, j] = u[i] } }",
       "t 0..1, u 1..2, y=x, y=w"},
      {"temp t: f32[N]  temp u: f64[N]  for i in [0, N) { t[i] = x[i, 0] }  for i in [0, N) { u[i] = f64(t[i]) }  "
       "for i in [0, N) { for j in [0, N) { y[i, j] = f32(u[i]) } }",
       "t 0..1, u 1..2, y=x, y=w"},
      {"temp t: f32[N]  temp u: i32[N]  for i in [0, N) { t[i] = x[i, 0] }  for i in [0, N) { u[i] = bits(t[i]) }  "
       "for i in [0, N) { for j in [0, N) { y[i, j] = from_bits(u[i]) } }",
       "t>u 0..2, y=x, y=w"},
      // A row is read whole before it is written.
      {"temp t: f32[N, N]  temp u: f32[N, N]  for i in [0, N) { for j in [0, N) { t[i, j] = x[i, j] } }  "
       "for i in [0, N) { acc m: f32 = max  for j in [0, N) { m max= t[i, j] }  for j in [0, N) { u[i, j] = m } }  "
       "for i in [0, N) { for j in [0, N) { y[i, j] = u[i, j] } }",
       "t>u 0..4, y=x, y=w"},
      {"temp t: f32[N, N]  temp u: f32[N, N]  for i in [0, N) { for j in [0, N) { t[i, j] = x[i, j] } }  "
       "for i in [0, N) { for j in [0, N) { u[i, j] = t[i, N - 1 - j] } }  "
       "for i in [0, N) { for j in [0, N) { y[i, j] = u[i, j] } }",
       "t 0..1, u 1..2, y=x, y=w"},
      {"temp t: f32[N, N]  temp u: f32[N, N]  for i in [0, N) { for j in [0, N) { t[i, j] = x[i, j] } }  "
       "for i in [0, N) { for j in [0, N) { u[i, j] = 1.0 }  for j in [0, N) { u[i, j] += t[i, j] } }  "
       "for i in [0, N) { for j in [0, N) { y[i, j] = u[i, j] } }",
       "t 0..2, u 1..3, y=x, y=w"},
      // A loop that does not tell elements apart.
      {"temp t: f32[N]  temp u: f32[N]  for i in [0, N) { t[i] = x[i, 0] }  "
       "for k in [0, N) { for i in [0, N) { u[i] = t[i] + x[i, k] } }  "
       "for i in [0, N) { for j in [0, N) { y[i, j] = u[i] } }",
       "t 0..1, u 1..2, y=x, y=w"},
      {"temp t: f32[N]  temp u: f32[N]  for i in [0, N) { t[i] = x[i, 0] }  "
       "for i in [0, N) { for k in [0, N) { u[i] = t[i] + x[i, k] } }  "
       "for i in [0, N) { for j in [0, N) { y[i, j] = u[i] } }",
       "t 0..1, u 1..2, y=x, y=w"},
      // The heir reads itself; the donor is written once more.
      {"temp t: f32[N]  temp u: f32[N]  for i in [0, N) { t[i] = x[i, 0] }  "
       "for i in [0, N) { u[i] = t[i]  u[i] = u[i] + 1.0 }  for i in [0, N) { for j in [0, N) { y[i, j] = u[i] } }",
       "t>u 0..3, y=x, y=w"},
      {"temp t: f32[N]  temp u: f32[N]  for i in [0, N) { t[i] = x[i, 0] }  "
       "for i in [0, N) { t[i] = t[i] * 2.0  u[i] = t[i] }  for i in [0, N) { for j in [0, N) { y[i, j] = u[i] } }",
       "t>u 0..3, y=x, y=w"},
      {"temp t: f32[N]  temp u: f32[N]  for i in [0, N) { t[i] = x[i, 0] }  "
       "for i in [0, N) { u[i] = t[i]  t[i] = 0.0 }  for i in [0, N) { for j in [0, N) { y[i, j] = u[i] } }",
       "t 0..2, u 1..3, y=x, y=w"},
      // One heir a donor, one donor an heir.
      {"temp t: f32[N]  temp u: f32[N]  temp v: f32[N]  for i in [0, N) { t[i] = x[i, 0] }  "
       "for i in [0, N) { u[i] = t[i]  v[i] = u[i] }  for i in [0, N) { for j in [0, N) { y[i, j] = u[i] + v[j] } }",
       "t>u 0..3, v 1..3, y=x, y=w"},
      {"temp t: f32[N]  temp u: f32[N]  temp v: f32[N]  for i in [0, N) { t[i] = x[i, 0]  u[i] = x[i, 1] }  "
       "for i in [0, N) { v[i] = t[i] + u[i] }  for i in [0, N) { for j in [0, N) { y[i, j] = v[i] } }",
       "t>v 0..3, u 0..2, y=x, y=w"},
      // Scopes. Steps are items.
      {"temp t: f32[N]  for i in [0, N) { t[i] = x[i, 0] }  for i in [0, N) { y[i, 0] = t[i] }  "
       "for i in [0, N) { for j in [1, N) { y[i, j] = x[i, j] } }",
       "t 0..1, y=w"},
      {"for i in [0, N) { temp e: f32[N]  temp r: f32[4] register  temp s: f32  for j in [0, N) { e[j] = x[i, j] }  r[0] = 1.0  s = 2.0  "
       "for j in [0, N) { y[i, j] = e[j] + r[0] + s } }",
       "e 3..6, y=x, y=w"},
      {"acc a: f32[N] = sum  for i in [0, N) { for j in [0, N) { y[i, j] = x[i, j] } }  for i in [0, N) { a[i] += x[i, 0] } "
       " for i in [0, N) { y[i, 0] = a[i] }",
       "a 1..2, y=w"},
      {"for i in [0, N) { acc a: f32[N] = sum  for j in [0, N) { a[j] += x[i, j] }  for j in [0, N) { y[i, j] = a[j] } }",
       "a 0..2, y=x, y=w"},
      // An output that is read is one still; an input that is read later stays.
      {"for i in [0, N) { for j in [0, N) { y[i, j] = x[i, j] } }  for i in [0, N) { for j in [0, N) { y[i, j] = y[i, j] + w[i, j] } }",
       "y=x"},
      // The program's accumulator is filled before the first item that touches it.
      {"acc a: f32[N] = sum  temp t: f32[N]  for i in [0, N) { t[i] = x[i, 0] }  for i in [0, N) { y[i, 0] = t[i] }  "
       "for i in [0, N) { a[i] += x[i, 1] }  for i in [0, N) { for j in [1, N) { y[i, j] = a[i] } }",
       "t 0..1, a 2..3, y=w"},
      // It cannot begin in place: the fill would overwrite elements that are still read.
      {"acc a: f32[N] = sum  temp t: f32[N]  for i in [0, N) { t[i] = x[i, 0] }  for i in [0, N) { a[i] += t[i] }  "
       "for i in [0, N) { for j in [0, N) { y[i, j] = a[i] } }",
       "t 0..1, a 1..2, y=x, y=w"},
      // A loop's temporaries: one that is touched in a loop below lives as long as that loop.
      {"for i in [0, N) { temp a: f32[N]  temp b: f32[N]  temp c: f32[N]  for j in [0, N) { a[j] = x[i, j] }  "
       "for j in [0, N) { b[N - 1 - j] = a[j] }  for j in [0, N) { c[N - 1 - j] = b[j] }  "
       "for j in [0, N) { y[i, j] = c[j] } }",
       "a 3..4, b 4..5, c 5..6, y=x, y=w"},
      {"for i in [0, N) { temp a: f32[N]  temp b: f32[N]  for j in [0, N) { a[j] = x[i, j] }  "
       "for j in [0, N) { b[j] = exp(a[j]) }  for j in [0, N) { y[i, j] = b[j] } }",
       "a>b 2..4, y=x, y=w"},
      {"for i in [0, N) { temp a: f32[N]  for j in [0, N) { a[j] = x[i, j] }  "
       "for k in [0, 2) { temp b: f32[N]  for j in [0, N) { b[j] = exp(a[j]) }  for j in [0, N) { y[i, j] = b[j] } } }",
       "a 1..4, b 3..4, y=x, y=w"},
      {"for i in [0, N) { temp a: f32[N]  temp b: f32[N]  for j in [0, N) { a[j] = x[i, j] }  "
       "for k in [0, 2) { for j in [0, N) { y[i, j] = a[j] }  for j in [0, N) { b[j] = x[i, j] } }  "
       "for j in [0, N) { y[i, j] = b[j] } }",
       "a 2..4, b 3..5, y=w"},
      {"for i in [0, N) { temp a: f32[N]  for j in [0, N) { a[j] = x[i, j] }  for j in [0, N) { y[i, j] = a[j] }  "
       "acc s: f32[N] = sum  for j in [0, N) { s[j] += x[j, i] }  for j in [0, N) { y[i, j] = s[j] } }",
       "a 1..2, s 3..5, y=w"},
      // Unused.
      {"acc a: f32[N] = sum  for i in [0, N) { for j in [0, N) { y[i, j] = 1.0 } }", "y=x, y=w"},
      {"temp t: f32[N]  for i in [0, N) { for j in [0, N) { y[i, j] = 1.0 } }", "y=x, y=w"},
  };
  for (const auto& c : kCases) {
    const Program program = Around(c.program);
    const MemoryPlan plan = PlanMemory(program);
    EXPECT_EQ(TextOf(program, plan), c.plan) << c.program;
    ExpectSound(program, plan, {{"N", 5}}, NoGather);
    MemoryOptions options;
    options.use_outputs = true;
    ExpectSound(program, PlanMemory(program, options), {{"N", 5}}, NoGather);
  }
}

TEST(MemoryPlan, Options) {
  const Program program = Around(
      "temp t: f32[N, N]  temp u: f32[N, N]  for i in [0, N) { for j in [0, N) { t[i, j] = x[i, j] } }  "
      "for i in [0, N) { for j in [0, N) { u[i, j] = exp(t[i, j]) } }  "
      "for i in [0, N) { for j in [0, N) { y[i, j] = u[i, j] } }");
  MemoryOptions apart, outputs;
  apart.in_place = false;
  outputs.use_outputs = true;
  EXPECT_EQ(TextOf(program, PlanMemory(program, apart)), "t 0..1, u 1..2, y=x, y=w");
  EXPECT_EQ(TextOf(program, PlanMemory(program, outputs)), "t>u 0..2=y");
  const auto sized = SizedProgram::Create(program, {{"N", 8}});
  ASSERT_TRUE(sized.ok());
  EXPECT_EQ(EvaluatePlan(*sized, PlanMemory(program, apart))->total, 512);
  EXPECT_EQ(EvaluatePlan(*sized, PlanMemory(program))->total, 256);
  EXPECT_EQ(EvaluatePlan(*sized, PlanMemory(program, outputs))->total, 0);
}

TEST(MemoryPlan, Errors) {
  const Program program = Around(
      "temp t: f32[N, N, N]  temp u: f32[N, N, N]  for i in [0, N) { t[i, 0, 0] = 1.0  u[0, i, 0] = 2.0  y[i, i] = t[0, 0, 0] + u[0, 0, 0] }");
  for (int64_t n : {int64_t{1} << 20, int64_t{1} << 30}) {
    const auto sized = SizedProgram::Create(program, {{"N", n}});
    ASSERT_TRUE(sized.ok()) << sized.status();
    EXPECT_EQ(EvaluatePlan(*sized, PlanMemory(program)).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
}

// ---- Random programs

// Temps of random sizes and lifetimes over blocks.
std::string RandomIntervals(int temps, std::mt19937_64& random) {
  const int blocks = temps + 1;
  std::vector<std::string> bodies(blocks);
  std::string text = "program p(x: f32[N]) -> (y: f32) {\n";
  for (int t = 0; t < temps; ++t) {
    const int size = random() % 4 == 0 ? 1 + random() % 4000 : 1 + random() % 200;
    absl::StrAppend(&text, "temp t", t, ": f32[", size, "]\n");
    int first = static_cast<int>(random() % blocks), last = static_cast<int>(random() % blocks);
    if (random() % 2 == 0) last = std::min(blocks - 1, first + static_cast<int>(random() % 4));
    if (first > last) std::swap(first, last);
    absl::StrAppend(&bodies[first], "t", t, "[0] = 1.0  ");
    absl::StrAppend(&bodies[last], "y = t", t, "[0]  ");
  }
  for (const std::string& body : bodies)
    absl::StrAppend(&text, "for i in [0, N) { ", body, "y = 1.0 }\n");
  return text + "}\n";
}

void ExpectApart(const MemoryPlan& plan, const Arena& arena) {
  for (size_t a = 0; a < plan.buffers.size(); ++a) {
    EXPECT_EQ(arena.offsets[a] % kArenaAlignment, 0);
    EXPECT_LE(arena.offsets[a] + arena.bytes[a],
              plan.buffers[a].is_private ? arena.private_total : arena.total);
    for (size_t b = 0; b < a; ++b) {
      const bool meet = plan.buffers[a].first <= plan.buffers[b].last &&
                        plan.buffers[b].first <= plan.buffers[a].last;
      const bool apart = arena.offsets[a] + arena.bytes[a] <= arena.offsets[b] ||
                         arena.offsets[b] + arena.bytes[b] <= arena.offsets[a];
      EXPECT_TRUE(!meet || apart) << a << " and " << b;
    }
  }
}

TEST(MemoryPlan, RandomIntervals) {
  std::mt19937_64 random(1);
  std::vector<double> ratios;
  for (int trial = 0; trial < 300; ++trial) {
    const Program program = Parsed(RandomIntervals(2 + trial % 60, random));
    const auto sized = SizedProgram::Create(program, {{"N", 1}});
    ASSERT_TRUE(sized.ok()) << sized.status();
    const MemoryPlan plan = PlanMemory(program);
    const auto arena = EvaluatePlan(*sized, plan);
    ASSERT_TRUE(arena.ok()) << arena.status();
    ExpectApart(plan, *arena);
    EXPECT_EQ(ReplayPlan(*sized, plan, *arena, NoGather), absl::OkStatus());
    ratios.push_back(static_cast<double>(arena->total) / static_cast<double>(arena->lower_bound));
  }
  std::sort(ratios.begin(), ratios.end());
  std::printf("arena / lower bound: median %.3f, 9th decile %.3f, worst %.3f\n", ratios[150],
              ratios[270], ratios[299]);
  EXPECT_LE(ratios[150], 1.05);
  EXPECT_LE(ratios[270], 1.15);
}

// One of the places that in-place proofs must tell apart.
std::string RandomPlace(std::mt19937_64& random) {
  static const char* const kPlaces[] = {"i, j", "i, j",         "i, j", "j, i",
                                        "i, 0", "i, N - 1 - j", "0, j", "i, i"};
  return kPlaces[random() % 8];
}

// Blocks of two loops over three temps, everything written first.
std::string RandomElementwise(std::mt19937_64& random) {
  std::string text = "program p(x: f32[N, N], w: f32[N, N]) -> (y: f32[N, N], z: f32[N, N]) {\n";
  std::vector<std::string> written = {"x", "w"};
  const auto read = [&] {
    return absl::StrCat(written[random() % written.size()], "[", RandomPlace(random), "]");
  };
  for (int t = 0; t < 5; ++t) absl::StrAppend(&text, "temp t", t, ": f32[N, N]\n");
  for (const char* target : {"t0", "t1", "t2", "t3", "t4", "y", "z"}) {
    std::string head = random() % 6 == 0 ? "for k in [0, 2) { " : "";
    absl::StrAppend(&text, head, "for i in [0, N) { ");
    if (random() % 4 == 0)
      absl::StrAppend(&text, "acc s: f32 = max  for j in [0, N) { s max= ", read(), " }  ");
    absl::StrAppend(&text, "for j in [0, N) { ", target, "[i, j] = ", read(), " + ", read(), " } }",
                    head.empty() ? "" : " }", "\n");
    written.push_back(target);
    if (random() % 3 == 0)
      written.erase(written.begin() + static_cast<int64_t>(random() % written.size()));
  }
  return text + "}\n";
}

// Temps and accumulators of loops within loops, each written before it is read.
class ScopeWriter {
 public:
  explicit ScopeWriter(std::mt19937_64& random) : random_(random) {}

  std::string Run(int depth) {
    std::string text;
    const size_t around = visible_.size();
    for (int item = 0; item < 5; ++item) {
      const bool nested = depth < 2 && random_() % 5 == 0;
      text += nested ? absl::StrCat("for k", next_++, " in [0, 2) { ", Run(depth + 1), "}\n")
                     : Tensor();
    }
    visible_.resize(around);
    return text;
  }

 private:
  std::string Tensor() {
    const std::string name = absl::StrCat("t", next_++);
    const bool is_sum = random_() % 4 == 0;
    std::string text = absl::StrCat(
        is_sum ? "acc " : "temp ", name, is_sum ? ": f32[N] = sum  " : ": f32[N]  ",
        "for j in [0, N) { ", name, is_sum ? "[j] += " : "[j] = ", Read(), " + ", Read(), " }");
    visible_.push_back(name);
    if (random_() % 2 == 0) absl::StrAppend(&text, "  for j in [0, N) { y[i, j] = ", Read(), " }");
    return text + "\n";
  }

  // Mostly one of the last.
  std::string Read() {
    if (visible_.empty() || random_() % 4 == 0) return "x[i, j]";
    const size_t back = random_() % std::min<size_t>(visible_.size(), random_() % 4 == 0 ? 9 : 2);
    return absl::StrCat(visible_[visible_.size() - 1 - back],
                        random_() % 2 == 0 ? "[j]" : "[N - 1 - j]");
  }

  std::mt19937_64& random_;
  std::vector<std::string> visible_;
  int next_ = 0;
};

TEST(MemoryPlan, RandomScopes) {
  std::mt19937_64 random(3);
  int shared = 0, taken_over = 0;
  for (int trial = 0; trial < 500; ++trial) {
    const Program program = Around(absl::StrCat(
        "for i in [0, N) { for j in [0, N) { y[i, j] = 0.0 }\n", ScopeWriter(random).Run(0), "}"));
    const MemoryPlan plan = PlanMemory(program);
    const auto sized = SizedProgram::Create(program, {{"N", 20}});
    ASSERT_TRUE(sized.ok()) << sized.status();
    const auto arena = EvaluatePlan(*sized, plan);
    ASSERT_TRUE(arena.ok()) << arena.status();
    EXPECT_EQ(arena->total, 0);
    ExpectApart(plan, *arena);
    const int64_t apart = AlignedForArena(20 * 4) * static_cast<int64_t>(plan.buffers.size());
    shared += AlignedForArena(arena->private_total) < apart;
    for (const PlannedBuffer& buffer : plan.buffers) taken_over += buffer.tensors.size() > 1;
    EXPECT_EQ(ReplayPlan(*sized, plan, *arena, NoGather), absl::OkStatus()) << ToText(program);
  }
  EXPECT_GT(shared, 250);
  EXPECT_GT(taken_over, 100);
}

TEST(MemoryPlan, RandomInPlace) {
  std::mt19937_64 random(2);
  int taken_over = 0, aliases = 0;
  for (int trial = 0; trial < 2000; ++trial) {
    const Program program = Parsed(RandomElementwise(random));
    MemoryOptions options;
    options.use_outputs = trial % 2 == 0;
    const MemoryPlan plan = PlanMemory(program, options);
    for (const PlannedBuffer& buffer : plan.buffers) taken_over += buffer.tensors.size() > 1;
    aliases += plan.aliases.empty() ? 0 : 1;
    ExpectSound(program, plan, {{"N", 3}}, NoGather);
  }
  EXPECT_GT(taken_over, 100);
  EXPECT_GT(aliases, 100);
}

}  // namespace
}  // namespace nestor::loop
