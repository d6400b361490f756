// A program is compiled for each instruction set that this machine has and run with its
// tensors between guard pages; its machine code is decoded, too, to see that it holds no
// instruction of another set.
#include "tests/jit_runs.h"

#include <iostream>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "interp/reference.h"
#include "jit/codegen/translate.h"
#include "jit/schedule/streaming.h"
#include "loop_ir/text.h"
#include "uops/invariant.h"

namespace nestor {

// ---- Checking

absl::Span<const jit::Isa> TestedSets() {
  static const bool said = [] {
    for (const jit::IsaFacts& set : jit::kIsas) {
      const absl::Status status = jit::CheckIsa(set.isa);
      if (!status.ok()) std::cerr << "SKIPPED: " << status.message() << "\n";
    }
    return true;
  }();
  (void)said;
  return AvailableSets();
}

std::string Describe(const jit::CompileOptions& options, const JitRunOptions& run) {
  return absl::StrCat(jit::Name(*options.isa),
                      options.mode == jit::Mode::kStrict ? " strict" : " fast", ", outputs ",
                      Name(run.outputs), run.in_place ? ", in place" : "",
                      run.poison_dead ? ", dead bytes poisoned" : "",
                      run.side == GuardedMemory::Side::kEnd ? ", to the end of a page"
                                                            : ", from the begin of a page");
}

absl::Status CheckAssembled(loop::Program unfused, const jit::CompileOptions& options) {
  NESTOR_ASSIGN_OR_RETURN(loop::Program scheduled, jit::Schedule(std::move(unfused), options));
  jit::TranslateOptions translate;
  translate.isa = *options.isa;
  if (options.streaming_bytes) NESTOR_RETURN_IF_ERROR(loop::StreamArguments(scheduled).status());
  NESTOR_ASSIGN_OR_RETURN(const auto kernel, jit::Kernel::Compile(std::move(scheduled), translate));
  return CheckInstructions(*kernel, translate.isa);
}

absl::Status CompiledVariants::CheckInstructions(const jit::Executable& executable) const {
  for (const std::shared_ptr<const jit::Kernel>& kernel : executable.kernels()) {
    if (!checked_.insert(kernel).second) continue;
    NESTOR_RETURN_IF_ERROR(nestor::CheckInstructions(*kernel, executable.options().isa));
  }
  return absl::OkStatus();
}

absl::StatusOr<CompiledVariants> CompiledVariants::Compile(loop::Program unfused,
                                                           const jit::CompileOptions& options,
                                                           absl::Span<const jit::Mode> modes) {
  CompiledVariants compiled;
  compiled.unfused_ = std::move(unfused);
  for (const jit::IsaFacts& set : jit::kIsas) {
    for (jit::Mode mode : modes) {
      Variant variant{options, nullptr};
      variant.options.isa = set.isa;
      variant.options.mode = mode;
      if (!absl::c_linear_search(TestedSets(), set.isa)) {
        NESTOR_RETURN_IF_ERROR(CheckAssembled(compiled.unfused_, variant.options));
        continue;
      }
      NESTOR_ASSIGN_OR_RETURN(variant.executable, jit::Compile(compiled.unfused_, variant.options));
      NESTOR_RETURN_IF_ERROR(compiled.CheckInstructions(*variant.executable));
      compiled.variants_.push_back(std::move(variant));
    }
  }
  return compiled;
}

namespace {

using Bounds = absl::optional<std::vector<ReferenceTensor>>;

// Compiled code refuses the inputs that the interpreter refuses, unless only a limit of the
// interpreter is exceeded.
Finding CheckRefused(const CompiledVariants::Variant& variant, const RunInputs& inputs,
                     const JitRunOptions& run, const Results& refused) {
  if (IsLimit(refused) || !RunJit(*variant.executable, inputs, run).ok()) return absl::nullopt;
  return absl::StrCat(Describe(variant.options, run), " runs, but: ", refused.status().ToString());
}

// Checks the interpreted results of the program that runs.
Finding CheckInterpreted(const Results& got, bool strict, const Results& unfused, Counts& counts) {
  if (!got.ok() && !IsLimit(got))
    return absl::StrCat("what runs is refused: ", got.status().ToString());
  if (!strict || !got.ok()) return absl::nullopt;
  return Compare(unfused, got, "strict, interpreted, against the unfused program,", counts);
}

Finding CheckVariant(const CompiledVariants::Variant& variant, const RunInputs& inputs,
                     absl::Span<const JitRunOptions> runs, const Results& unfused,
                     const Bounds& bounds, Counts& counts) {
  const bool strict = variant.options.mode == jit::Mode::kStrict;
  // The interpreted results of the program that runs; the second: with compact arguments.
  absl::optional<Results> wants[2];
  for (const JitRunOptions& run : runs) {
    const bool compact = IsCompactCall(*variant.executable, inputs, run.outputs);
    if (!wants[compact]) {
      wants[compact] = RunningProgram(*variant.executable, inputs, compact).Interpreted(Run);
      if (Finding finding = CheckInterpreted(*wants[compact], strict, unfused, counts))
        return finding;
    }
    const Results& want = *wants[compact];
    const Results got = RunJit(*variant.executable, inputs, run);
    const std::string what = Describe(variant.options, run);
    if (!got.ok()) return absl::StrCat(what, " refuses: ", got.status().ToString());
    const Results& expected = strict && !want.ok() ? unfused : want;
    if (expected.ok()) {
      if (Finding finding = Compare(expected, got, what, counts)) return finding;
    }
    if (strict || !bounds) continue;
    if (Finding finding = CompareWithBounds(*bounds, got))
      return absl::StrCat(what, ": ", *finding);
  }
  return absl::nullopt;
}

}  // namespace

Finding CompiledVariants::Check(const RunInputs& inputs, absl::Span<const JitRunOptions> runs,
                                bool bounded, Counts& counts) const {
  ++counts.programs;
  const Results unfused = Run(unfused_, inputs);
  if (!unfused.ok()) {
    ++counts.refused;
    for (const Variant& variant : variants_) {
      if (Finding finding = CheckRefused(variant, inputs, runs[0], unfused)) return finding;
    }
    return absl::nullopt;
  }
  Bounds bounds;
  if (bounded) {
    auto found = InterpretReference(unfused_, inputs);
    // A place or a condition that the bounds do not decide has no reference.
    if (found.ok()) bounds = *std::move(found);
  }
  for (const Variant& variant : variants_) {
    Finding finding = CheckVariant(variant, inputs, runs, unfused, bounds, counts);
    const absl::Status instructions = CheckInstructions(*variant.executable);
    if (!finding && !instructions.ok()) finding = instructions.ToString();
    if (!finding) continue;
    const bool compact = IsCompactCall(*variant.executable, inputs, runs[0].outputs);
    const RunningProgram running(*variant.executable, inputs, compact);
    return absl::StrCat(*finding, "\n", loop::ToText(running.program()));
  }
  return absl::nullopt;
}

Finding CheckCompiled(const loop::Program& unfused, const RunInputs& inputs,
                      const jit::CompileOptions& options, absl::Span<const JitRunOptions> runs,
                      bool bounded, Counts& counts) {
  const auto compiled = CompiledVariants::Compile(unfused, options);
  if (!compiled.ok()) return absl::StrCat("does not compile: ", compiled.status().ToString());
  return compiled->Check(inputs, runs, bounded, counts);
}

}  // namespace nestor
