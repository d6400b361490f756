// Making executables: from a program, and from one another. Code is shared, and what differs is
// cheap: an executable is a pointer to code and, for each input, either its place in a call or the
// tensor that it is bound to. So binding copies the tensor and nothing else.
#include "jit/executable.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "jit/call_arguments.h"
#include "jit/executable_code.h"
#include "jit/size_classes.h"
#include "jit/specialization.h"
#include "loop_ir/signature.h"
#include "uops/invariant.h"

namespace nestor::jit {
namespace {

using loop::Program;
using loop::TensorId;

// Never used again, unlike an address.
// Workspaces remember an executable after its end, and another one may get its address.
int64_t NextId() {
  static std::atomic<int64_t> last{0};
  return ++last;
}

}  // namespace

Executable::Executable(std::shared_ptr<const Code> code, BoundInputs inputs)
    : id_(NextId()), code_(std::move(code)), inputs_(std::move(inputs)) {}

Executable::~Executable() = default;

absl::StatusOr<std::unique_ptr<const Executable>> Executable::Create(
    Program program, const ExecutableOptions& options, std::shared_ptr<const Origin> origin) {
  NESTOR_RETURN_IF_ERROR(CheckIsa(options.isa));
  BoundInputs inputs(program.inputs.size());
  NESTOR_ASSIGN_OR_RETURN(auto variants, Variants::Create(std::move(program), options.isa,
                                                          options.size_classes, std::move(origin)));
  auto code = std::make_shared<const Code>(std::move(variants), options, nullptr);
  return absl::WrapUnique(new Executable(std::move(code), std::move(inputs)));
}

absl::StatusOr<std::unique_ptr<const Executable>> Executable::Bind(absl::string_view name,
                                                                   const TensorView& tensor) const {
  for (size_t i = 0; i < program().inputs.size(); ++i) {
    const loop::TensorInfo& info = program()[program().inputs[i]];
    // An input that is bound already has no name for Bind: it is reported as unknown.
    if (info.name != name || bound(i) != nullptr) continue;
    if (tensor.type != info.type || tensor.shape.size() != info.shape.size()) {
      return ArgumentError(
          program(), i,
          absl::StrCat(Name(tensor.type), ShapeText(tensor.shape), " given, ", Name(info.type),
                       " of ", info.shape.size(), " dimensions wanted"));
    }
    // A compact copy, so bound inputs have the layout that code likes best.
    absl::StatusOr<Tensor> copy = Tensor::FromView(tensor);
    if (!copy.ok()) return ArgumentError(program(), i, copy.status().message());
    BoundInputs inputs = inputs_;
    inputs.Bind(i, *std::move(copy));
    return absl::WrapUnique(new Executable(code_, std::move(inputs)));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("program ", program().name, ": no input to bind is called ", name));
}

// The program is scheduled again with numbers in it; calls are checked by a signature that still
// has the symbols, so that messages name them.
absl::StatusOr<std::unique_ptr<const Executable>> Executable::Specialize(
    const absl::flat_hash_map<std::string, int64_t>& sizes) const {
  const std::shared_ptr<const Origin>& origin = code_->variants->origin();
  if (origin == nullptr) {
    return absl::FailedPreconditionError(absl::StrCat(
        "program ", program().name, ": nothing to specialize is known but its scheduled program"));
  }
  // Sorted by name, so that equal sizes give equal programs.
  SizeClass constants(sizes.begin(), sizes.end());
  std::sort(constants.begin(), constants.end());
  NESTOR_RETURN_IF_ERROR(CheckConstants(SignatureOf(program()), constants));
  auto specialized = std::make_shared<const Origin>(Specialized(*origin, constants));
  NESTOR_ASSIGN_OR_RETURN(Program scheduled, specialized->schedule(specialized->unfused, {}));
  auto signature = std::make_unique<const Program>(WithSignature(scheduled, program(), constants));
  NESTOR_ASSIGN_OR_RETURN(
      auto variants, Variants::Create(std::move(scheduled), options().isa, options().size_classes,
                                      std::move(specialized)));
  auto code = std::make_shared<const Code>(std::move(variants), options(), std::move(signature));
  return absl::WrapUnique(new Executable(std::move(code), inputs_));
}

const Program& Executable::program() const { return code_->program; }
const ExecutableOptions& Executable::options() const { return code_->options; }
const Kernel& Executable::kernel() const { return code_->variants->general(); }

// For strided arguments, every axis may have any stride.
absl::StatusOr<std::shared_ptr<const Kernel>> Executable::KernelAt(loop::SymbolValue symbol,
                                                                   bool compact) const {
  KernelOptions kernel = CompactArguments(program(), options().isa);
  kernel.residence = code_->ResidenceOf(BytesAt(program(), symbol));
  kernel.translate.constant = inputs_.Constant();
  if (!compact) {
    for (Layout& layout : kernel.translate.layouts) absl::c_fill(layout, AxisLayout::kAny);
  }
  return code_->variants->For(symbol, kernel);
}

absl::Span<const std::pair<int, int>> Executable::aliases() const { return code_->aliases; }

std::vector<TensorId> Executable::inputs() const {
  std::vector<TensorId> given;
  for (size_t i = 0; i < program().inputs.size(); ++i) {
    if (bound(i) == nullptr) given.push_back(program().inputs[i]);
  }
  return given;
}

std::vector<std::shared_ptr<const Kernel>> Executable::kernels() const {
  return code_->variants->All();
}

int64_t Executable::code_bytes() const {
  int64_t bytes = 0;
  for (const std::shared_ptr<const Kernel>& kernel : kernels()) bytes += kernel->code_bytes();
  return bytes;
}

}  // namespace nestor::jit
