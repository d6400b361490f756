// Random programs: the lowered programs are verified, interpreted and compared with an evaluation
// straight from the graph; both text forms parse back to the printed programs; the same for
// gradients. That evaluation sees only canonical graphs, so two more tests check that the graph's
// constructors and the simplification of index expressions keep the meaning of the request.
//
// A failure prints the smallest program of its seed that fails, in the notation,
// with its inputs. NESTOR_RANDOM_SEED and NESTOR_RANDOM_COUNT in the environment
// choose other programs.
#include <algorithm>
#include <cmath>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "autodiff/gradient.h"
#include "check/engines/program_generator.h"
#include "check/random.h"
#include "gtest/gtest.h"
#include "interp/interpreter.h"
#include "loop_ir/lower.h"
#include "loop_ir/text.h"
#include "loop_ir/verify.h"
#include "tests/random_programs.h"
#include "tests/uops_evaluator.h"
#include "uops/notation/module.h"
#include "uops/notation/print.h"

namespace nestor {
namespace {

// ---- The properties

Finding CheckProgram(const Op& op, const RunInputs& inputs, const Results& want, Counts& counts) {
  const loop::Program program = Lower(op);
  const std::string text = loop::ToText(program);
  const absl::Status verified = loop::Verify(program);
  if (!verified.ok()) return absl::StrCat("Verify: ", verified.message(), "\n", text);
  if (Finding finding = Compare(want, Run(program, inputs), "Interpret", counts)) {
    return absl::StrCat(*finding, "\n", text);
  }
  const auto parsed = loop::ParseProgram(text);
  if (!parsed.ok()) return absl::StrCat("ParseProgram: ", parsed.status().message(), "\n", text);
  const std::string again = loop::ToText(*parsed);
  if (again != text) return absl::StrCat("ToText of ParseProgram:\n", again, "\nof:\n", text);
  if (Finding finding = Compare(want, Run(*parsed, inputs), "Interpret of ParseProgram", counts)) {
    return absl::StrCat(*finding, "\n", text);
  }
  return absl::nullopt;
}

Finding CheckPrinting(const Op& op, const RunInputs& inputs, const Results& want, Counts& counts) {
  const std::string text = PrintOp(op);
  const auto module = Module::Parse(text);
  if (!module.ok()) return absl::StrCat("Parse of PrintOp: ", module.status().message());
  const auto parsed = module->Instantiate("", {});
  if (!parsed.ok()) return absl::StrCat("Instantiate of PrintOp: ", parsed.status().message());
  if (!SameOp(op, *parsed))
    return absl::StrCat("PrintOp parses to another op, which prints as\n", PrintOp(*parsed));
  if (parsed->equalities.empty() && parsed->range_checks.empty()) return absl::nullopt;
  return Compare(want, Run(Lower(*parsed), inputs), "the op that PrintOp parses to", counts);
}

Finding CheckOp(const Op& op, uint64_t seed, Counts& counts) {
  const RandomInputsResult made = RandomInputs(op, seed);
  const Results want = EvaluateGraph(op, made.inputs);
  ++counts.programs;
  if (!want.ok()) ++counts.refused;
  if (Finding finding = CheckProgram(op, made.inputs, want, counts)) return finding;
  return CheckPrinting(op, made.inputs, want, counts);
}

// Some programs have no gradient; Gradient names why.
Finding Refusal(const absl::Status& status, Counts& counts) {
  ++counts.no_gradient;
  for (const char* reason : {"a scatter by *= has no gradient", "no argument is a float"}) {
    if (absl::StrContains(status.message(), reason)) return absl::nullopt;
  }
  return absl::StrCat("Gradient: ", status.ToString());
}

// The gradient, and the gradient of the gradient, are ops like any other.
Finding CheckGradient(const Op& op, uint64_t seed, Counts& counts) {
  const auto first = Gradient(op);
  if (!first.ok()) return Refusal(first.status(), counts);
  if (Finding finding = CheckOp(first->op, seed, counts)) {
    return absl::StrCat(*finding, "\nof the gradient\n", PrintOp(first->op));
  }
  const auto second = Gradient(first->op);
  if (!second.ok()) return Refusal(second.status(), counts);
  if (Finding finding = CheckOp(second->op, seed, counts)) {
    return absl::StrCat(*finding, "\nof the second gradient\n", PrintOp(second->op));
  }
  return absl::nullopt;
}

// The graph's canonical form has the meaning of the requested node.
Finding CheckConstructors(uint64_t seed, const GeneratorOptions& options) {
  std::vector<ConstructorCall> calls;
  const Op op = RandomOp(seed, options, &calls);
  return FirstUnsoundCall(op, calls, RandomInputs(op, seed).inputs);
}

// ---- Index expressions: the pool's simplified ones against trees as written

// An expression as written, and the pool's form of it.
struct Tree {
  IndexKind kind;
  int64_t value;
  std::vector<Tree> args;
  IndexId built;
};

constexpr int kVars = 3, kSymbols = 2;
using Point = std::vector<int64_t>;  // the loop indices, then the symbols

// Tensor number t, of 4 elements; some lead outside.
absl::optional<int64_t> Gathered(int64_t tensor, int64_t place) {
  if (place < 0 || place >= 4) return absl::nullopt;
  return (place * 5 + tensor * 3) % 7 - 2;
}

Tree RandomTree(Random& random, IndexPool& pool, int depth) {
  Tree tree{};
  const int kind = static_cast<int>(random.Below(depth == 0 ? 10 : 30));
  if (kind < 3) {
    tree = {IndexKind::kConst, random.Between(-4, 4), {}, {}};
  } else if (kind < 7) {
    tree = {IndexKind::kVar, random.Below(kVars), {}, {}};
  } else if (kind < 10) {
    tree = {IndexKind::kSymbol, random.Below(kSymbols), {}, {}};
    tree.built = pool.Symbol(tree.value == 0 ? "N" : "M");
    return tree;
  } else {
    const IndexKind binary =
        random.Pick({IndexKind::kAdd, IndexKind::kAdd, IndexKind::kMul, IndexKind::kMul,
                     IndexKind::kDiv, IndexKind::kMod, IndexKind::kMin, IndexKind::kMax});
    tree.kind = kind == 10 ? IndexKind::kLoad : binary;
    tree.value = kind == 10 ? random.Below(2) : 0;
    tree.args.push_back(RandomTree(random, pool, depth - 1));
    if (kind > 10) tree.args.push_back(RandomTree(random, pool, depth - 1));
  }
  IndexList args;
  for (const Tree& arg : tree.args) args.push_back(arg.built);
  tree.built = pool.Make(tree.kind, tree.value, args);
  return tree;
}

// The kinds of divisions by zero: by an index or a gathered value; by a symbol or number.
struct Zeros {
  bool irregular = false, affine = false;
};

absl::optional<int64_t> ValueOf(const IndexPool& pool, const Tree& tree, const Point& point,
                                Zeros& zeros) {
  std::vector<int64_t> args;
  bool defined = true;
  for (const Tree& arg : tree.args) {
    const auto value = ValueOf(pool, arg, point, zeros);
    defined &= value.has_value();
    args.push_back(value.value_or(0));
  }
  if (!defined) return absl::nullopt;
  switch (tree.kind) {
    case IndexKind::kConst: return tree.value;
    case IndexKind::kVar: return point[tree.value];
    case IndexKind::kSymbol: return point[kVars + tree.value];
    case IndexKind::kLoad: return Gathered(tree.value, args[0]);
    case IndexKind::kAdd: return args[0] + args[1];
    case IndexKind::kMul: return args[0] * args[1];
    case IndexKind::kMin: return std::min(args[0], args[1]);
    case IndexKind::kMax: return std::max(args[0], args[1]);
    default: break;
  }
  if (args[1] == 0) {
    const IndexId divisor = tree.args[1].built;
    (pool.HasVar(divisor) || pool.HasLoad(divisor) ? zeros.irregular : zeros.affine) = true;
    return absl::nullopt;
  }
  const int64_t quotient =
      static_cast<int64_t>(std::floor(static_cast<double>(args[0]) / static_cast<double>(args[1])));
  return tree.kind == IndexKind::kDiv ? quotient : args[0] - quotient * args[1];
}

absl::optional<int64_t> ValueOf(const IndexPool& pool, IndexId id, const Point& point) {
  return EvaluateIndex(
      pool, id,
      [&](const IndexNode& node, absl::Span<const int64_t> args) -> absl::optional<int64_t> {
        if (node.kind == IndexKind::kVar) return point[node.value];
        if (node.kind == IndexKind::kLoad) return Gathered(node.value, args[0]);
        return point[kVars + (pool.SymbolNameAt(node.value) == "N" ? 0 : 1)];
      });
}

std::string TextOf(const IndexPool& pool, IndexId id) {
  return IndexText(pool, id,
                   {[](int64_t v) { return absl::StrCat("i", v); },
                    [](int64_t t) { return absl::StrCat("t", t); }});
}

std::string TextOf(const Tree& tree) {
  std::vector<std::string> args;
  for (const Tree& arg : tree.args) args.push_back(TextOf(arg));
  if (args.empty())
    return absl::StrCat(tree.kind == IndexKind::kVar      ? "i"
                        : tree.kind == IndexKind::kSymbol ? "s"
                                                          : "",
                        tree.value);
  return absl::StrCat("kind", static_cast<int>(tree.kind), "(", absl::StrJoin(args, ", "), ")");
}

TEST(Random, Programs) {
  GeneratorOptions options;
  options.nodes = 12;
  TestPrograms("programs", 10000, options, CheckOp);
}

TEST(Random, FloatPrograms) {
  GeneratorOptions options;
  options.nodes = 8;
  options.floats_only = true;
  TestPrograms("float programs", 2000, options, CheckOp);
}

TEST(Random, Gradients) {
  GeneratorOptions options;
  options.nodes = 6;
  options.floats_only = true;
  TestPrograms("gradients", 1000, options, CheckGradient);
}

TEST(Random, ConstructorsKeepTheMeaning) {
  const uint64_t first = Setting("NESTOR_RANDOM_SEED", 1),
                 count = Setting("NESTOR_RANDOM_COUNT", 10000);
  for (uint64_t seed = first; seed < first + count && !HasFailure(); ++seed) {
    SetCurrentCase("constructors", seed);
    GeneratorOptions options;
    for (options.nodes = 1 + static_cast<int>(seed % 12); options.nodes > 0; --options.nodes) {
      const Finding finding = CheckConstructors(seed, options);
      if (!finding) break;
      ADD_FAILURE() << "constructors seed " << seed << ", " << options.nodes
                    << " nodes: " << *finding << "\n"
                    << PrintOp(RandomOp(seed, options));
    }
  }
}

// `built` has the value of `tree` at `there`, written over the indices of `point`.
// A division by zero may be hidden where it is affine: 0*(i/N) is 0.
void ExpectValue(const IndexPool& pool, const Tree& tree, const Point& there, IndexId built,
                 const Point& point, uint64_t seed) {
  Zeros zeros;
  const auto want = ValueOf(pool, tree, there, zeros);
  const bool moved = built != tree.built;
  if (!want && (zeros.affine || (moved && zeros.irregular))) return;
  const auto got = ValueOf(pool, built, point);
  const auto shown = [](absl::optional<int64_t> v) {
    return v ? absl::StrCat(*v) : std::string("nothing");
  };
  EXPECT_EQ(shown(got), shown(want)) << "index seed " << seed << ": " << TextOf(tree) << " is "
                                     << TextOf(pool, built) << " at " << absl::StrJoin(point, ", ");
}

TEST(Random, IndexExpressionsKeepTheirValue) {
  const uint64_t first = Setting("NESTOR_RANDOM_SEED", 1),
                 count = Setting("NESTOR_RANDOM_COUNT", 30000);
  for (uint64_t seed = first; seed < first + count && !HasFailure(); ++seed) {
    Random random(seed);
    IndexPool pool;
    const Tree tree = RandomTree(random, pool, 4);
    const Tree moved[] = {RandomTree(random, pool, 1), RandomTree(random, pool, 1),
                          RandomTree(random, pool, 1)};
    const IndexId substituted =
        SubstituteVars(pool, tree.built, {moved[0].built, moved[1].built, moved[2].built});
    for (int i = 0; i < 8; ++i) {
      Point point;
      for (int v = 0; v < kVars; ++v) point.push_back(random.Below(5));
      for (int s = 0; s < kSymbols; ++s) point.push_back(random.Between(-4, 5));
      ExpectValue(pool, tree, point, tree.built, point, seed);
      Point there = point;
      bool inside = true;
      for (int v = 0; v < kVars; ++v) {
        const auto value = ValueOf(pool, moved[v].built, point);
        inside &= value.has_value();
        there[v] = value.value_or(0);
      }
      if (inside) ExpectValue(pool, tree, there, substituted, point, seed);
    }
  }
}

TEST(Random, IsDeterministic) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    EXPECT_EQ(PrintOp(RandomOp(seed)), PrintOp(RandomOp(seed)));
  }
}

}  // namespace
}  // namespace nestor
