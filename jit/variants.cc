// Variants by class, as many as fit, the least recently used first to go. Code is compiled outside
// the lock, so that nobody waits for another class; if two threads compile one class at once, the
// code of the first is kept.
#include "jit/variants.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/memory/memory.h"
#include "absl/status/status.h"
#include "fusion/contract.h"
#include "fusion/merge_axes.h"
#include "fusion/simplify.h"
#include "loop_ir/constant_items.h"
#include "loop_ir/proofs.h"
#include "uops/invariant.h"

namespace nestor::jit {
namespace {

// Adapts the options to compact arguments with as many axes as the program's have.
KernelOptions WithLayoutsOf(const loop::Program& program, KernelOptions options) {
  options.translate.layouts = CompactArguments(program, options.translate.isa).translate.layouts;
  return options;
}

}  // namespace

// The origin of the program in which these dimensions are numbers; what was tuned for such sizes is
// chosen here.
Origin Specialized(const Origin& origin, const SizeClass& constants) {
  const auto value_of = [&](const std::string& name) -> absl::optional<int64_t> {
    const auto constant =
        absl::c_find_if(constants, [&](const auto& c) { return c.first == name; });
    return constant == constants.end() ? absl::nullopt : absl::make_optional(constant->second);
  };
  const auto schedule = [schedule = origin.schedule, choices = origin.tuned.At(value_of, {})](
                            loop::Program unfused, const Variation& variation) {
    return schedule(std::move(unfused), {variation.bound, choices, variation.version});
  };
  return {WithConstants(origin.unfused, constants), schedule, {}};
}

Variants::Variants(Code general, std::shared_ptr<const Kernel> compact,
                   const SizeClassOptions& options, std::shared_ptr<const Origin> origin)
    : general_(std::move(general)), compact_(std::move(compact)), origin_(std::move(origin)),
      classes_(origin_ == nullptr ? absl::nullopt
                                  : absl::make_optional(SizeClasses(origin_->unfused, options))),
      most_(static_cast<size_t>(std::max(options.variants, 0))) {}

absl::StatusOr<std::unique_ptr<const Variants>> Variants::Create(
    loop::Program scheduled, Isa isa, const SizeClassOptions& options,
    std::shared_ptr<const Origin> origin) {
  const KernelOptions layouts = CompactArguments(scheduled, isa);
  NESTOR_ASSIGN_OR_RETURN(Code general, LayoutKernels::Create(std::move(scheduled), layouts));
  NESTOR_ASSIGN_OR_RETURN(std::shared_ptr<const Kernel> compact, general->For(layouts));
  return absl::WrapUnique(
      new Variants(std::move(general), std::move(compact), options, std::move(origin)));
}

// The variant for the sizes' class, else the general kernel; where the scheduled program's indices
// might overflow at these sizes, the plain one.
absl::StatusOr<std::shared_ptr<const Kernel>> Variants::For(loop::SymbolValue symbol,
                                                            const KernelOptions& options) const {
  const absl::Status proven = loop::ProveNoOverflow(general_->program(), symbol);
  // A program that would compile for hours is refused, whatever its class.
  if (!absl::IsResourceExhausted(proven)) {
    NESTOR_ASSIGN_OR_RETURN(std::shared_ptr<const Kernel> variant, VariantFor(symbol, options));
    if (variant != nullptr) return variant;
  }
  if (proven.ok()) return general_->For(options);
  if (origin_ == nullptr) return proven;
  return PlainFor(symbol, options);
}

// The code of the unfused program, compiled when sizes first ask for it. Its index arithmetic is
// that of the op as written, which overflows at fewer sizes.
absl::StatusOr<std::shared_ptr<const Kernel>> Variants::PlainFor(
    loop::SymbolValue symbol, const KernelOptions& options) const {
  NESTOR_RETURN_IF_ERROR(loop::ProveNoOverflow(origin_->unfused, symbol));
  Code plain;
  {
    absl::MutexLock lock(&mutex_);
    plain = plain_;
  }
  if (plain == nullptr) {
    loop::Program unfused = origin_->unfused;
    NESTOR_RETURN_IF_ERROR(loop::MarkChecked(unfused).status());
    NESTOR_ASSIGN_OR_RETURN(plain, LayoutKernels::Create(std::move(unfused), options));
    absl::MutexLock lock(&mutex_);
    // Another thread may have been faster; then its code is used, and this one is dropped.
    if (plain_ == nullptr) plain_ = std::move(plain);
    plain = plain_;
  }
  return plain->For(options);
}

// From the most special class to the least, until one has code.
// with the bound inputs   ->   without   ->   null: the general code
//   and within each: merged axes, where rows are short   ->   axes as they are
absl::StatusOr<std::shared_ptr<const Kernel>> Variants::VariantFor(
    loop::SymbolValue symbol, const KernelOptions& options) const {
  if (!classes_) return std::shared_ptr<const Kernel>();
  const SizeClass constants = classes_->Of(symbol);
  const std::vector<bool> version = VersionFor(general_->program(), symbol);
  const bool has_variant = !constants.empty() || !version.empty() || classes_->ComputesMuch(symbol);
  const bool merges =
      has_variant && AreCompact(options.translate.layouts) && classes_->HasShortRows(symbol);
  const std::vector<bool>& bound = options.translate.constant;
  const auto code_for = [&](bool merges_axes, const Variation& variation) -> Code {
    return CodeAt(symbol, {constants, merges_axes, variation}, options);
  };
  const auto variation_of = [&](const std::vector<bool>& inputs) {
    return Variation{inputs, origin_->tuned.At(symbol, inputs), version};
  };
  std::vector<Variation> variations;
  if (!bound.empty()) variations.push_back(variation_of(bound));
  if (!variations.empty() && variations[0].choices.empty() && !classes_->ComputesMuch(symbol))
    variations.clear();
  variations.push_back(variation_of({}));
  for (const Variation& variation : variations) {
    if (merges) {
      if (const Code code = code_for(true, variation))
        return code->For(WithLayoutsOf(code->program(), options));
    }
    if (const Code code = code_for(false, variation)) return code->For(options);
  }
  return std::shared_ptr<const Kernel>();
}

// The work of a call is added up only where a test says that it has another version.
std::vector<bool> Variants::VersionFor(const loop::Program& program,
                                       loop::SymbolValue symbol) const {
  std::vector<bool> version = loop::VersionAt(program, symbol);
  while (!version.empty() && !version.back()) version.pop_back();
  if (!version.empty() && !classes_->PaysForVersion(symbol)) version.clear();
  return version;
}

// The tests of a class's program are known only once it is made: constants fold some away, and add
// others. Each round settles at least one more of them.
Variants::Code Variants::CodeAt(loop::SymbolValue symbol, Class of,
                                const KernelOptions& options) const {
  constexpr int kMostRounds = 4;
  for (int round = 0; round < kMostRounds && !of.IsGeneral(); ++round) {
    Code code = CodeOf(of, options);
    if (code == nullptr) return nullptr;
    std::vector<bool> version = VersionFor(code->program(), symbol);
    if (version == of.variation.version) {
      // A class holds many sizes, at some of which the indices of its program may overflow.
      return loop::ProveNoOverflow(code->program(), symbol).ok() ? code : nullptr;
    }
    of.variation.version = std::move(version);
  }
  return nullptr;
}

Variants::Code Variants::CodeOf(const Class& of, const KernelOptions& options) const {
  if (absl::optional<Code> known = Find(of)) return *std::move(known);
  absl::StatusOr<Code> code = Compile(of, options);
  // Lack of memory may be temporary: the class is not marked as one without a variant.
  if (absl::IsResourceExhausted(code.status())) return Code();
  // A null is kept as well: a class that cannot be compiled is not tried again at each call.
  return Keep(of, code.ok() ? *std::move(code) : nullptr);
}

// No code where the class would give the same kernel as the general one: no axes merge, or no block
// is constant.
absl::StatusOr<Variants::Code> Variants::Compile(const Class& of,
                                                 const KernelOptions& options) const {
  loop::Program program = WithConstants(origin_->unfused, of.constants);
  if (of.merges_axes) {
    // With the constants, a window of one element is no window any more, and takes no axis
    // of temporaries.
    NESTOR_RETURN_IF_ERROR(loop::Simplify(program).status());
    NESTOR_RETURN_IF_ERROR(loop::ContractTemporaries(program).status());
    if (!loop::MergeAxes(program)) return Code();
  }
  NESTOR_ASSIGN_OR_RETURN(loop::Program scheduled,
                          origin_->schedule(std::move(program), of.variation));
  const std::vector<bool>& bound = of.variation.bound;
  const auto keeps_some = [&] {
    return absl::c_linear_search(loop::ConstantItemsOf(scheduled, bound).is_constant, true);
  };
  if (!bound.empty() && !keeps_some()) return Code();
  const KernelOptions own = of.merges_axes ? WithLayoutsOf(scheduled, options) : options;
  return LayoutKernels::Create(std::move(scheduled), own);
}

absl::optional<Variants::Code> Variants::Find(const Class& of) const {
  absl::MutexLock lock(&mutex_);
  const Code* code = by_class_.Find(of);
  return code == nullptr ? absl::nullopt : absl::make_optional(*code);
}

Variants::Code Variants::Keep(const Class& of, Code code) const {
  absl::MutexLock lock(&mutex_);
  code = by_class_.Keep(of, std::move(code));  // the code of another thread, if that was faster
  // A call that runs the forgotten code holds a pointer to it, so the code outlives the call.
  if (by_class_.entries().size() > most_) by_class_.ForgetLast();
  return code;
}

std::vector<std::shared_ptr<const Kernel>> Variants::All() const {
  std::vector<Code> codes = {general_};
  {
    absl::MutexLock lock(&mutex_);
    codes.push_back(plain_);
    for (const auto& [of, code] : by_class_.entries()) codes.push_back(code);
  }
  std::vector<std::shared_ptr<const Kernel>> kernels;
  for (const Code& code : codes) {
    if (code == nullptr) continue;
    for (std::shared_ptr<const Kernel>& kernel : code->All()) kernels.push_back(std::move(kernel));
  }
  return kernels;
}

}  // namespace nestor::jit
