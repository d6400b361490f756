// The parts of an executable, for the files that define its members.
#ifndef NESTOR_JIT_EXECUTABLE_CODE_H_
#define NESTOR_JIT_EXECUTABLE_CODE_H_

#include <memory>
#include <utility>
#include <vector>

#include "jit/call_arguments.h"
#include "jit/executable.h"
#include "jit/layout_kernels.h"
#include "jit/variants.h"
#include "loop_ir/program.h"

namespace nestor::jit {

// Immutable but for what `variants` compiles later.
struct Executable::Code {
  // `signature`: null for the general code's program.
  Code(std::unique_ptr<const Variants> variants, const ExecutableOptions& options,
       std::unique_ptr<const loop::Program> signature)
      : variants(std::move(variants)), signature(std::move(signature)),
        program(this->signature != nullptr ? *this->signature
                                           : this->variants->general().program()),
        options(options), aliases(AliasesOf(this->variants->general())) {}

  // Where the arguments of a call lie when it begins, as far as their size tells.
  Residence ResidenceOf(double bytes) const {
    const auto reaches = [&](int64_t least) {
      return least > 0 && bytes >= static_cast<double>(least);
    };
    if (reaches(options.streaming_bytes)) return Residence::kMemory;
    return reaches(options.prefetching_bytes) ? Residence::kLastCache : Residence::kCore;
  }

  const std::unique_ptr<const Variants> variants;
  const std::unique_ptr<const loop::Program> signature;
  const loop::Program& program;  // calls are bound to and checked by it, whatever code runs
  const ExecutableOptions options;
  const std::vector<std::pair<int, int>> aliases;  // of the general code
};

}  // namespace nestor::jit

#endif  // NESTOR_JIT_EXECUTABLE_CODE_H_
