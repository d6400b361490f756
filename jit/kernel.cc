// Translation, allocation and emission, function by function; then one piece of memory for all of
// them. Each function's operations are freed before the next is translated, so that the memory of
// compilation does not grow with the program.
//
// A parallel loop is cut into a few pieces for each thread, so that a late thread costs little: of
// eight pieces each, the last one is an eighth of a thread's work.
#include "jit/kernel.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include <immintrin.h>

#include "absl/strings/str_cat.h"
#include "jit/codegen/allocate_registers.h"
#include "jit/codegen/emit.h"
#include "jit/codegen/optimize_operations.h"
#include "jit/codegen/registers.h"
#include "uops/invariant.h"
#include "uops/mutant.h"

namespace nestor::jit {
namespace {

// A cache line: no two functions share one.
constexpr int64_t kFunctionAlignment = 64;
constexpr int64_t kPiecesPerThread = 8;

int64_t ValueOf(Operand operand, const int64_t* table) {
  return operand.kind == Operand::kTable ? table[operand.value] : operand.value;
}

// Of numbers that are not negative.
int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

loop::MemoryPlan PlanOf(const loop::Program& program, const Translation& translation) {
  loop::MemoryOptions options;
  options.in_memory = &translation.memory;
  options.kept = &translation.kept;
  return loop::PlanMemory(program, options);
}

// While this lives, the processor has the default settings that results depend on (rounding,
// flushing of subnormals) and the default traps; afterwards it has the host's again.
class DefaultFloatSettings {
 public:
  DefaultFloatSettings() : host_(_mm_getcsr()), differs_((host_ & kSettings) != kDefault) {
    if (differs_) _mm_setcsr(kDefault);
  }
  ~DefaultFloatSettings() {
    if (differs_) _mm_setcsr(host_);
  }

 private:
  static constexpr unsigned kSettings = 0xffc0;  // of MXCSR; the bits below are sticky flags
  static constexpr unsigned kDefault = 0x1f80;   // to nearest, no flushing, no traps
  const unsigned host_;
  const bool differs_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<const Kernel>> Kernel::Compile(loop::Program program,
                                                              const TranslateOptions& options) {
  std::unique_ptr<Kernel> kernel(new Kernel);
  const RegisterFile file = RegistersOf(options.isa);
  const CodeBuffer buffer;
  std::vector<uint8_t> code;
  std::vector<int64_t> offsets;
  const auto compile = [&](jit::Step& step) -> absl::Status {
    OptimizeOperations(step.operations, file);
    const Allocated allocated = AllocateRegisters(step.operations, file);
    NESTOR_ASSIGN_OR_RETURN(MachineCode machine, Emit(step.operations, allocated, buffer));
    code.resize(CeilDiv(static_cast<int64_t>(code.size()), kFunctionAlignment) * kFunctionAlignment,
                0xcc);
    offsets.push_back(static_cast<int64_t>(code.size()));
    code.insert(code.end(), machine.bytes.begin(), machine.bytes.end());
    kernel->code_bytes_ += machine.code_bytes;
    kernel->spilled_ += allocated.spilled;
    kernel->steps_.push_back({step.name, step.first_item, nullptr, machine.code_bytes,
                              step.parallel, step.constant, step.begin, step.end, step.stride,
                              step.granularity, std::move(machine.statements)});
    return absl::OkStatus();
  };
  const StepSink sink = compile;
  NESTOR_ASSIGN_OR_RETURN(Translation translation, Translate(program, options, &sink));
  NESTOR_ASSIGN_OR_RETURN(kernel->code_, CodeMemory::Seal(code));
  for (size_t i = 0; i < offsets.size(); ++i) {
    const uint8_t* begin = kernel->code_.data() + offsets[i];
    kernel->steps_[i].function = reinterpret_cast<Function>(reinterpret_cast<uintptr_t>(begin));
    ReportToPerf(begin, static_cast<size_t>(kernel->steps_[i].code_bytes), kernel->steps_[i].name);
  }
  kernel->table_ = std::move(translation.table);
  kernel->plan_ = PlanOf(program, translation);
  kernel->statements_ = std::move(translation.statements);
  kernel->program_ = std::move(program);
  if (CrashReportIsOn()) kernel->RegisterForCrashReport();
  return kernel;
}

// Texts are made now, since a signal handler can make none.
void Kernel::RegisterForCrashReport() {
  std::vector<CodeRegistration::Part> parts;
  const std::vector<std::string> texts = StatementTexts();
  for (const Step& step : steps_) {
    const size_t begin =
        static_cast<size_t>(reinterpret_cast<const uint8_t*>(step.function) - code_.data());
    const std::string function = absl::StrCat("kernel ", program_.name, ", function ", step.name);
    parts.push_back({begin, absl::StrCat(function, ", entry")});
    for (const auto& [offset, statement] : step.statements) {
      std::string place = absl::StrCat(function, ", between statements");
      if (statement >= 0)
        place = absl::StrCat(function, ", statement ", statement, ": ", texts[statement]);
      if (begin + static_cast<size_t>(offset) == parts.back().offset) parts.pop_back();
      parts.push_back({begin + static_cast<size_t>(offset), std::move(place)});
    }
  }
  if (!parts.empty())
    registration_ = CodeRegistration(code_.data(), code_.size(), std::move(parts));
}

// Steps run one after the other; a result other than 0 is the first failure, and ends the call.
int64_t Kernel::Run(const int64_t* table, absl::Span<char* const> private_memory,
                    const RunOptions& options) const {
  const DefaultFloatSettings settings;
  for (const Step& step : steps_) {
    if (step.constant && options.constants_are_there) continue;
    if (options.before != nullptr) (*options.before)(step.first_item, step.parallel);
    const int64_t result = step.parallel ? RunParallel(step, table, private_memory, options)
                                         : Call(step, table, 0, 0, private_memory[0], options);
    if (result != 0) return result;
  }
  return 0;
}

int64_t Kernel::Call(const Step& step, const int64_t* table, int64_t begin, int64_t end,
                     char* private_memory, const RunOptions& options) const {
  if (options.caller != nullptr)
    return (*options.caller)(step.function, table, begin, end, private_memory);
  return step.function(table, begin, end, private_memory);
}

// Pieces begin at multiples of the unrolled vector, so that only the last one has a tail. If
// several leave their bounds, any of them is reported.
int64_t Kernel::RunParallel(const Step& step, const int64_t* table,
                            absl::Span<char* const> private_memory,
                            const RunOptions& options) const {
  const int64_t begin = ValueOf(step.begin, table), end = ValueOf(step.end, table);
  if (begin >= end) return 0;
  const int64_t grain = step.granularity * step.stride;
  const int64_t grains = CeilDiv(end - begin, grain);
  const int64_t threads = options.executor == nullptr ? 1 : options.executor->NumThreads();
  const int64_t least = std::max<int64_t>(1, CeilDiv(options.least_iterations, step.granularity));
  const int64_t pieces = std::min(threads * kPiecesPerThread, grains / least);
  if (threads == 1 || pieces <= 1) return Call(step, table, begin, end, private_memory[0], options);
  // The pieces have the same length except for one grain: if all were rounded up, some threads
  // would have one piece less.
  const auto first = [&](int64_t piece) {
    return begin + grain * (piece * (grains / pieces) + piece * (grains % pieces) / pieces);
  };
  std::atomic<int64_t> result{0};
  options.executor->Run(pieces, [&](int worker, int64_t i) {
    const DefaultFloatSettings settings;  // a host's own pool need not pass them on
    char* memory = private_memory[NESTOR_MUTANT("workers_share_memory") ? 0 : worker];
    const int64_t code =
        Call(step, table, first(i), i + 1 < pieces ? first(i + 1) : end, memory, options);
    if (code != 0) result.store(code, std::memory_order_relaxed);
  });
  return result.load(std::memory_order_relaxed);
}

std::string Kernel::StatementText(int64_t number) const {
  if (number < 0 || number >= static_cast<int64_t>(statements_.size()))
    return absl::StrCat("statement ", number);
  return loop::ToText(program_, loop::Item{statements_[number]});
}

std::vector<Kernel::FunctionView> Kernel::Functions() const {
  std::vector<FunctionView> views;
  for (const Step& step : steps_) {
    const auto* begin =
        reinterpret_cast<const uint8_t*>(reinterpret_cast<uintptr_t>(step.function));
    views.push_back({step.name, {begin, static_cast<size_t>(step.code_bytes)}, step.statements});
  }
  return views;
}

}  // namespace nestor::jit
