// An op of the library is instantiated for a drawn type and drawn ranks of its packs. Some of the
// ops, drawn or random, are then called by another one, so that calls are tried, too.
#include "check/engines/trial_programs.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "autodiff/gradient.h"
#include "check/engines/nest_programs.h"
#include "check/engines/program_generator.h"
#include "check/random.h"
#include "macro_ops/library.h"
#include "uops/call.h"

namespace nestor {
namespace {

DType FloatType(Random& random) {
  return DrawFloatType(random, {DType::kF32, DType::kF32, DType::kF32, DType::kF64, DType::kF64});
}

Op DrawGraph(Random& random) {
  GeneratorOptions options;
  options.nodes = static_cast<int>(random.Between(1, 14));
  const int kind = static_cast<int>(random.Below(100));
  options.floats_only = kind < 30;
  options.smooth = kind < 8;
  return RandomOp(random.Bits(), options);
}

// A text that does not parse, or whose types do not fit, is drawn again: the generator is a sketch.
Op DrawNest(Random& random) {
  for (;;) {
    const DType type = random.Chance(85) ? FloatType(random) : DrawIntegerType(random);
    const auto module = Module::Parse(DrawNestProgram(random, type));
    if (!module.ok()) continue;
    if (auto op = module->Instantiate("", {}); op.ok()) return *std::move(op);
  }
}

Op DrawMacroOp(Random& random) {
  const std::vector<MacroOp>& all = MacroOps();
  for (;;) {
    const size_t number = static_cast<size_t>(random.Below(static_cast<int64_t>(all.size())));
    if (auto op = DrawInstance(MacroLibrary(), all[number].name, random.Bits()))
      return *std::move(op);
  }
}

Op DrawPlain(Random& random) {
  const int kind = static_cast<int>(random.Below(100));
  if (kind < 35) return DrawGraph(random);
  return kind < 75 ? DrawNest(random) : DrawMacroOp(random);
}

// An op that calls `callee`, which may have a gradient of its own: the same one that it would have
// anyway, so that only the way to it changes.
// caller(x) -> (y) { y = callee(x) }
Op Calling(Op callee, Random& random) {
  if (random.Chance(50)) {
    GradientRequest request;
    const auto gradient = Gradient(callee, request);
    if (gradient.ok() && gradient->results.size() == gradient->op.results.size()) {
      callee.gradient = std::make_shared<const Op>(gradient->op);
    }
  }
  absl::StatusOr<Op> caller = Combine("caller", {callee});
  return caller.ok() ? *std::move(caller) : callee;
}

}  // namespace

absl::optional<Op> DrawInstance(const Module& module, const std::string& name, uint64_t seed) {
  Random random(seed);
  ArgumentSpecs specs;
  const DType type = FloatType(random);
  const int pack = random.Pick({0, 1, 1, 2});
  for (const ast::Argument& arg : module.Syntax(name).args) {
    ArgumentSpec& spec = specs[arg.name];
    int rank = 0;
    bool has_pack = false;
    for (const ast::Item& dim : arg.dims) dim.is_pack ? void(has_pack = true) : void(++rank);
    if (has_pack) spec.rank = rank + pack;
    if (!TypeByName(arg.type.text)) spec.type = type;
  }
  absl::StatusOr<Op> op = module.Instantiate(name, specs);
  if (!op.ok()) return absl::nullopt;
  return *std::move(op);
}

Op DrawTrialOp(uint64_t seed) {
  Random random(seed);
  Op op = DrawPlain(random);
  return random.Chance(8) ? Calling(std::move(op), random) : op;
}

Op Derived(const Op& op, int order, uint64_t seed) {
  Random random(seed ^ 0x2545f4914f6cdd1du);
  if (order < 0) order = random.Pick({0, 0, 0, 0, 0, 1, 1, 1, 2});
  Op derived = op;
  for (int i = 0; i < order; ++i) {
    absl::StatusOr<GradientResult> gradient = Gradient(derived);
    if (!gradient.ok()) break;
    derived = std::move(gradient->op);
  }
  return derived;
}

}  // namespace nestor
