// How fusion grows with the number of statements: steps (fusion/steps.h), not times,
// so that the bounds hold on each machine.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "fusion/nest_list.h"
#include "fusion/pipeline.h"
#include "fusion/scopes.h"
#include "fusion/steps.h"
#include "gtest/gtest.h"
#include "loop_ir/program.h"
#include "nestor.h"
#include "tests/pass_sameness.h"
#include "tests/random_programs.h"

namespace nestor {
namespace {

// Name k of n: x, t1, t2, .., y.
std::string Name(int k, int n) { return k == 0 ? "x" : k == n ? "y" : absl::StrCat("t", k); }

// An op of n statements, statement k made from the names before and of it.
template <class Statement>
std::string Chain(absl::string_view arguments, int n, Statement statement) {
  std::string text = absl::StrCat("op f(", arguments, ") -> (y) {\n");
  for (int k = 1; k <= n; ++k)
    absl::StrAppend(&text, "  ", statement(Name(k - 1, n), Name(k, n)), "\n");
  return text + "}\n";
}

std::string Elementwise(int n) {
  return Chain("x: f32[N]", n,
               [](auto x, auto y) { return absl::StrCat(y, "[i] = ", x, "[i] * 1.5 + x[i]"); });
}

std::string Stencil(int n) {
  return Chain("x: f32[N]", n, [](auto x, auto y) {
    return absl::StrCat(y, "[i] = ", x, "[i - 1] + ", x, "[i] + ", x, "[i + 1] where i < N");
  });
}

std::string Softmax(int n) {
  return Chain("x: f32[N, C]", n,
               [](auto x, auto y) { return absl::StrCat(y, " = softmax(", x, ")"); });
}

std::string Matmul(int n) {
  return Chain("x: f32[N, C], w: f32[C, C]", n, [](auto x, auto y) {
    return absl::StrCat(y, "[i, j] = sum[k](", x, "[i, k] * w[k, j])");
  });
}

std::string Outputs(int n) {
  std::vector<std::string> names, lines;
  for (int k = 1; k <= n; ++k) {
    names.push_back(absl::StrCat("y", k));
    lines.push_back(absl::StrCat("y", k, "[i] = x[i] * ", k, ".5"));
  }
  return absl::StrCat("op f(x: f32[N]) -> (", absl::StrJoin(names, ", "), ") {\n",
                      absl::StrJoin(lines, "\n"), "\n}\n");
}

std::string OneSum(int n) {
  std::vector<std::string> terms;
  for (int k = 1; k <= n; ++k) terms.push_back(absl::StrCat("x[i] * ", k, ".5"));
  return absl::StrCat("op f(x: f32[N]) -> (y) { y[i] = ", absl::StrJoin(terms, " + "), " }\n");
}

constexpr struct {
  const char* name;
  std::string (*text)(int n);
  int n;
  bool in_one_loop;  // all statements could share a loop
} kKinds[] = {
    {"elementwise", Elementwise, 1000, true}, {"stencil", Stencil, 200, false},
    {"softmax", Softmax, 200, true},          {"matmul", Matmul, 400, true},
    {"outputs", Outputs, 1200, true},         {"one sum", OneSum, 1000, true},
};

struct Work {
  int64_t steps = 0;
  size_t values = 0;  // that the fused program keeps
};

Work FusionOf(const std::string& text) {
  const auto op = Parse(text);
  EXPECT_TRUE(op.ok()) << op.status() << "\n" << text;
  loop::Program program = Lower(*op);
  const int64_t before = loop::StepsOfThread();
  EXPECT_EQ(fusion::Pipeline::Default().Run(program), absl::OkStatus());
  return {loop::StepsOfThread() - before, program.values.size()};
}

// n log n is 2.2 times the work for twice the statements.
TEST(FusionGrowth, OfStepsIsNoWorseThanNLogN) {
  for (const auto& kind : kKinds) {
    const Work once = FusionOf(kind.text(kind.n)), twice = FusionOf(kind.text(2 * kind.n));
    EXPECT_LT(static_cast<double>(twice.steps) / static_cast<double>(once.steps), 2.3) << kind.name;
    EXPECT_LT(static_cast<double>(twice.values) / static_cast<double>(once.values), 2.1)
        << kind.name;
    RecordProperty(kind.name, absl::StrCat(once.steps, " ", twice.steps));
  }
}

// The result of merging on a program of many statements.
struct Merged {
  int64_t loops = 0, largest = 0, all = 0;  // all: the size of all of them
};

Merged MergedLoopsOf(const loop::Program& program) {
  Merged merged;
  for (const loop::Item& item : program.body) {
    if (item.As<loop::Declaration>() != nullptr) continue;
    const int64_t size = loop::SizeOf(program, item);
    int statements = 0;
    loop::VisitItems({item}, [&](const loop::Item& inner) {
      statements += inner.As<loop::Statement>() != nullptr;
    });
    ++merged.loops;
    merged.all += size;
    // A single statement may be larger.
    if (statements > 1) merged.largest = std::max(merged.largest, size);
  }
  return merged;
}

// However many loops may be merged, the merged ones stay within the bound, and fill it: no
// two that could be one are left. With substitution there are few long statements, without it
// many short ones.
TEST(FusionGrowth, LoopsStayWithinTheBound) {
  constexpr int64_t kMost = loop::NestList::kMostSize;
  for (const bool substitutes : {true, false}) {
    fusion::Pipeline pipeline = fusion::Pipeline::Default();
    if (!substitutes) {
      for (const char* name : {"substitute", "substitute_2"})
        EXPECT_EQ(pipeline.Disable(name), absl::OkStatus());
    }
    for (const auto& kind : kKinds) {
      loop::Program program = Lower(*Parse(kind.text(2 * kind.n)));
      fusion::RunOptions options;
      options.observer = [&](const fusion::PassReport& report, const loop::Program& now) {
        if (report.pass.name != "merge" && report.pass.name != "merge_2") return;
        const Merged merged = MergedLoopsOf(now);
        EXPECT_LE(merged.largest, kMost) << kind.name << ", " << report.pass.name;
        const int64_t enough = 2 * merged.all / kMost + 1;
        EXPECT_TRUE(!kind.in_one_loop || merged.loops <= enough)
            << kind.name << ": " << merged.loops;
      };
      EXPECT_EQ(pipeline.Run(program, options), absl::OkStatus());
    }
  }
}

// Programs large enough that partners are too many, expressions too long and values
// dropped: passes keep bits, verify and find nothing to do when they run again.
TEST(FusionGrowth, BeyondTheBoundsPassesKeepTheirPromises) {
  int bounded = 0;
  for (const auto& kind : kKinds) {
    const auto op = Parse(kind.text(kind.n / 4));
    ASSERT_TRUE(op.ok()) << op.status();
    Counts counts;
    const loop::Program lowered = Lower(*op);
    const Finding finding = CheckPasses(fusion::Pipeline::Default(), lowered, lowered,
                                        RandomInputs(*op, 1).inputs, counts, bounded);
    EXPECT_FALSE(finding.has_value()) << kind.name << ": " << *finding;
    EXPECT_EQ(counts.refused, 0) << kind.name;
  }
}

loop::Program ProgramOf(size_t statements) {
  loop::Program program;
  program.name = "f";
  const loop::TensorId y = program.AddTensor({"y", DType::kF32, {}, loop::Storage::kOutput});
  program.outputs.push_back(y);
  const loop::ValueId one = program.AddConstant(Scalar::Float(DType::kF32, 1));
  const loop::Item item{loop::Statement{{y}, absl::nullopt, one, loop::ValueId()}};
  program.body = loop::Scope(statements, item);
  return program;
}

TEST(FusionGrowth, TooManyStatementsAreRefused) {
  loop::Program most = ProgramOf(250'000), more = ProgramOf(250'001);
  const fusion::Pipeline nothing({});
  EXPECT_EQ(nothing.Run(most), absl::OkStatus());
  const absl::Status status = nothing.Run(more);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(status.message(), "program f: 250001 statements, where the passes take at most 250000");
}

}  // namespace
}  // namespace nestor
